"""Why the study's errors of GVG rise with the rank: whole rows against single entries.

The volume prior ties all entries of U together. The library draws whole rows of U; the study drew
its entries one by one, each given all others (its supplement prints that conditional). Both leave
the same posterior alone. Here both run for the study's number of sweeps from its start, a standard
normal draw of U, on two of the ten folds of its model selection. The study also computed adjugates
as determinant times inverse; ``printed`` does so too, to see whether that matters.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bayesmf.splits import split_at
from bayesmf.study import fitting, masks, published
from bayesmf.study.reproduce import run
from bayesmf.study.tasks import Task
from benchmarks.common import say
from benchmarks.report import Options, table

LAMBDA = 0.1
RANKS = {"GDSC": (10, 15, 30), "Methylation_GM": (10, 20, 30)}
FOLDS = 2
PRINTED = ("Methylation_GM", 10)  # where the study's arithmetic is tried: it is slow


def chain(task: Task, printed: bool = False) -> dict[str, float]:
    """One chain that draws single entries of U: errors on its fold, and of training at its end."""
    X, rng = fitting.data(task.dataset), fitting.generator("entries", task.key)
    fold = masks.plain(X, 10, fitting.generator("folds", task.dataset, task.model, task.rank))
    train, (rows, cols, values) = split_at(X, fold == task.repeat)
    R, (n, K) = train.to_array(), (task.length, task.rank or 1)
    gamma = fitting.hyperparameters(task)["gamma"]
    U, V = rng.normal(size=(R.shape[0], K)), rng.normal(0, LAMBDA**-0.5, (R.shape[1], K))
    tau = _precision(R, U, V, rng)
    means = np.zeros_like(U), np.zeros_like(V)
    kept = range(n.burn_in, n.sweeps, n.thin)
    for sweep in range(n.sweeps):
        draw_entries(R, U, V, tau, gamma, rng, printed)
        draw_normal(R.T, V, U, tau, rng)
        tau = _precision(R, U, V, rng)
        if sweep in kept:
            for mean, now in zip(means, (U, V), strict=True):
                mean += now / len(kept)
    found = np.einsum("tk,tk->t", means[0][rows], means[1][cols])
    return {
        "test": float(np.mean((values - found) ** 2)),
        "train": float(np.nanmean((R - U @ V.T) ** 2)),
    }


def _precision(R: Any, U: Any, V: Any, rng: np.random.Generator) -> float:
    errors = np.nansum((R - U @ V.T) ** 2)
    return float(rng.gamma(1 + np.isfinite(R).sum() / 2) / (1 + errors / 2))


def draw_normal(R: Any, U: Any, V: Any, tau: float, rng: np.random.Generator) -> None:
    """Rows of U with a normal prior, whole."""
    for i, row in enumerate(R):
        known = np.isfinite(row)
        root = np.linalg.cholesky(tau * V[known].T @ V[known] + LAMBDA * np.eye(U.shape[1]))
        rhs = np.linalg.solve(root, tau * V[known].T @ row[known])
        U[i] = np.linalg.solve(root.T, rhs + rng.normal(size=rhs.size))


def draw_entries(
    R: Any, U: Any, V: Any, tau: float, gamma: float, rng: np.random.Generator, printed: bool
) -> None:
    """Entries of U in turn, under the volume prior."""
    S = U.T @ U
    for i, row in enumerate(R):
        known, u = np.isfinite(row), U[i]
        G, b = V[known].T @ V[known], V[known].T @ row[known]
        S -= np.outer(u, u)
        for k, (A, h, scale) in enumerate(_terms(S, u, tau * G, tau * b, gamma, printed)):
            mean = (h - A @ u + A[k] * u[k]) / A[k]
            u[k] = mean + scale * rng.normal() / A[k] ** 0.5
        S += np.outer(u, u)


def _terms(S: Any, u: Any, G: Any, b: Any, gamma: float, printed: bool) -> Any:
    """For each entry of a row: its line of the precision matrix, linear term, and scale.

    All are divided by what the prior is larger than the data, the scale by its root.
    """
    if printed:
        for k in range(u.size):
            yield _printed(S, u, k, gamma) + G[k], b[k], 1.0
        return
    c = np.log(2 * gamma) + np.linalg.slogdet(S)[1]
    A = np.linalg.inv(S) * np.exp(min(c, 0.0)) + np.exp(-max(c, 0.0)) * G
    yield from zip(A, np.exp(-max(c, 0.0)) * b, np.full(u.size, np.exp(-max(c, 0.0) / 2)))  # noqa: B905


def _printed(S: Any, u: Any, k: int, gamma: float) -> Any:
    """The prior's part of the line as the supplement has it, by determinants times inverses."""
    others = np.arange(u.size) != k
    minor = S[np.ix_(others, others)]
    adjugate = np.linalg.det(minor) * np.linalg.inv(minor)
    line = np.zeros(u.size)
    line[others] = -2 * gamma * adjugate @ S[others, k]
    whole = np.linalg.det(minor + np.outer(u[others], u[others]))
    line[k] = 2 * gamma * (whole - u[others] @ adjugate @ u[others])
    return line


def part(options: Options) -> dict[str, Any]:
    """GVG by rank, drawn by rows and by entries, beside the published errors."""
    results = []
    for dataset, ranks in RANKS.items():
        for rank in ranks[:1] if options.quick else ranks:
            say(f"{dataset}, K = {rank}")
            task = Task("model_selection", "paper", dataset, "GVG", 0, rank, rank)
            tasks = [replace(task, repeat=k) for k in range(1 if options.quick else FOLDS)]
            study = published.errors().get(("model_selection", dataset, "", "GVG", float(rank)))
            found = {
                "dataset": dataset, "rank": rank, "published": study.mean if study else None,
                "rows": [run(one)["mse"] for one in tasks],
                "entries": [chain(one) for one in tasks],
            }  # fmt: skip
            if (dataset, rank) == PRINTED:
                found["printed"] = [chain(tasks[0], printed=True)]
            results.append(found)
    return {"claims": [], "tables": tables({"volume": results}), "data": {"volume": results}}


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Means over the folds."""
    rows = [
        [r["dataset"].replace("_", " "), r["rank"], r["published"], float(np.mean(r["rows"])),
         float(np.mean([one["test"] for one in r["entries"]])),
         float(np.mean([one["train"] for one in r["entries"]]))]
        for r in data["volume"]
    ]  # fmt: skip
    header = ["matrix", "K", "published", "whole rows", "single entries", "their training error"]
    title = "Test error of GVG by rank, by how U is drawn"
    note = "".join(
        f"With adjugates by determinants and inverses, on the first fold of "
        f"{r['dataset'].replace('_', ' ')} at K = {r['rank']}: {r['printed'][0]['test']:.6f}, "
        f"without them {r['entries'][0]['test']:.6f}."
        for r in data["volume"]
        if "printed" in r
    )
    return [table(title, header, rows, note, quoted=True)]
