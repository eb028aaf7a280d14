"""Whether chains agree at the defaults: presets and likelihoods, in two source trees in turns.

Two chains of 250 sweeps and 250 draws, at rank 5 on CCLE IC50 and 10 on methylation, GDSC and
MovieLens 100K, from four seeds; a tenth of the entries is held out. The census counts the cells
whose split R-hat is above 1.1, among up to 100,000, and takes the seconds of the run on two
threads, and the effective sample size of 200 held-out cells, both chains added up: its median over
the cells, divided by the seconds of the sweeps that were kept, is what a second brings.

``--other`` names the source tree to compare with (old; without it, this one alone is run);
``--models`` and ``--data`` choose, ``--ranks`` asks for others, which have a table of their own.
What is done is kept in a file, so that a run goes on where it was stopped; a change of the samplers
has to empty it. Seconds want an idle machine.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import bayesmf
from bayesmf.posterior.diagnostics import split_rhat
from bayesmf.splits import holdout
from benchmarks.common import ROOT, TITLES, facts, kept, load, read_json
from benchmarks.mixing import effective_size
from benchmarks.report import RESULTS, Options, table
from benchmarks.versions import Tree, read_matrix, tree, write_matrix

STORE = RESULTS / "census-runs.json"
RANKS = {"ccle": 5, "methylation": 10, "gdsc": 10, "movielens": 10}
SEEDS, CELLS, SCREENED, ABOVE = range(4), 200, 100_000, 1.1
LIKELIHOODS = ("GGGW rows", "GGGW cols", "GGGW both", "TGGW", "NGG", "NGGG", "OGGW")
RATINGS = ("OGGW",)  # for the ratings of MovieLens alone
MODELS = (*bayesmf.PRESETS, *LIKELIHOODS)
GROUPS = {  # by the letters of a name: the first that fits
    "counts": ("P", "N"), "Student-t": ("T",), "Laplace, horseshoe": ("GL", "GHH"),
    "nonnegative": ("GE", "GT", "GVn"), "normal, volume": ("G", "O"),
}  # fmt: skip
FEW, SOME = 0.01, 0.05  # of the cells


def share_above(U: np.ndarray, V: np.ndarray) -> float:
    """Share of the cells whose chains disagree, from draws (chains, draws, n, K) of both sides."""
    rows = np.linspace(0, U.shape[2] - 1, min(U.shape[2], max(1, SCREENED // V.shape[2])))
    found = []
    for i in np.array_split(rows.round().astype(int), -(-len(rows) // 8)):
        values = U[:, :, i] @ V.swapaxes(2, 3)
        found.append(split_rhat(values.reshape(*values.shape[:2], -1)))
    return float(np.mean(np.concatenate(found) > ABOVE))


def held_out(X: Any) -> tuple[Any, tuple[np.ndarray, np.ndarray]]:
    """All but a tenth of the entries, and `CELLS` of the cells that were held out."""
    train, (rows, cols, _) = holdout(X, 0.1, random_state=0)
    chosen = np.random.default_rng(0).permutation(rows.size)[:CELLS]
    return train, (rows[chosen], cols[chosen])


def run(X: Any, cells: Any, model: str, rank: int, seed: int, sweeps: int) -> dict[str, Any]:
    """One run of two chains; the name of a model may be followed by who has noise of its own."""
    name, _, noise = model.partition(" ")
    begin = time.perf_counter()
    posterior = bayesmf.sample(
        X, name, rank, chains=2, burn_in=sweeps, draws=sweeps, keep=("U", "V"), n_jobs=2,
        random_state=seed, noise=noise or None,
    )  # fmt: skip
    seconds = time.perf_counter() - begin
    U, V = posterior.draws["U"], posterior.draws["V"]
    rows, cols = cells
    values = np.einsum("cdtk,cdtk->cdt", U[:, :, rows], V[:, :, cols])
    size = np.median(sum(effective_size(chain) for chain in values))
    kept = posterior.seconds[:, sweeps:].sum() / 2  # chains run side by side
    return {"above": share_above(U, V), "seconds": seconds, "ess": size, "rate": size / kept}


def serve() -> None:
    """Answer requests by runs with the package of this process's tree (see `versions`)."""
    print(json.dumps([bayesmf.__file__, list(bayesmf.PRESETS)]), flush=True)
    known: dict[str, Any] = {}
    for line in sys.stdin:
        path, *case = json.loads(line)
        if path not in known:
            known[path] = held_out(read_matrix(path))
        print(json.dumps(run(*known[path], *case)), flush=True)


def measure(trees: dict[str, Tree], name: str, options: Options) -> None:
    """Every model on one matrix, in all trees in turns, into the file."""
    dataset = load(name, options.quick)
    path = write_matrix(dataset.X, ROOT / "build" / f"census-{name}.npz")
    chosen = options.models or [m for m in MODELS if m not in RATINGS or name == "movielens"]
    for model, rank in product(chosen, options.ranks or (RANKS[name],)):
        asked = f"{model}, {rank}" if options.ranks else model
        for seed in SEEDS:
            for which, one in trees.items():
                make = partial(one.ask, path, model, rank, seed, 250)
                kept(STORE, f"{which}, {name}, {asked}, {seed}", make=make)


def part(options: Options) -> dict[str, Any]:
    """All matrices."""
    if options.quick:
        X = load("ccle", quick=True).X
        found = run(X, (np.arange(5), np.arange(5)), "GEE", 2, 0, 10)
        return {"claims": [], "tables": [], "data": {"runs": found}, "datasets": {}}
    names = [name for name in RANKS if not options.data or name in options.data]
    with ExitStack() as stack:
        sources: dict[str, Path] = {"new": ROOT / "src"}
        if options.other is not None:
            sources["old"] = options.other
        trees = {
            which: stack.enter_context(tree(source, "benchmarks.census"))
            for which, source in sources.items()
        }
        for name in names:
            measure(trees, name, options)
    data = {"runs": read_json(STORE)}
    return {
        "claims": [], "tables": tables(data), "data": data,
        "datasets": facts(*(load(name) for name in names)),
    }  # fmt: skip


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Every model on every matrix: shares of cells; seconds and effective samples, new / old."""
    runs = data["runs"]
    cases = dict.fromkeys(tuple(place.split(", ")[1:-1]) for place in runs)
    usual: list[Any] = []
    others: list[Any] = []  # at a rank that was asked for
    for case in sorted(cases, key=lambda c: (list(RANKS).index(c[0]), MODELS.index(c[1]))):
        found = {
            which: [runs.get(", ".join((which, *case, str(seed)))) for seed in SEEDS]
            for which in ("old", "new")
        }
        if all(found["new"]):
            rows = others if len(case) > 2 else usual
            rows.append((TITLES[case[0]], *case[1:], *_figures(found)))
    figures = ("above 1.1, old", "above 1.1, new", "seconds, new / old",
               "effective samples per second, new / old")  # fmt: skip
    made = [in_groups(runs)]
    for title, rows, head in (
        ("Cells that disagree, run by run", usual, ("data", "model")),
        ("At other ranks", others, ("data", "model", "rank")),
    ):
        if rows:
            made.append(table(title, (*head, *figures), rows, quoted=True))
    return made


def group(model: str) -> str:
    """The group of a model; GL21 is a nonnegative one."""
    name = model.replace("GL21", "GE")
    return next(title for title, heads in GROUPS.items() if name.startswith(heads))


def in_groups(runs: dict[str, Any]) -> dict[str, Any]:
    """How many runs of every group have few cells that disagree."""
    shares: dict[tuple[str, str], list[float]] = {}
    for place, one in runs.items():
        which, _, model, *other = place.split(", ")
        if len(other) == 1:  # the seed alone: at the usual rank
            shares.setdefault((group(model), which), []).append(one["above"])
    rows = []
    for title in reversed(GROUPS):
        found = [np.array(shares.get((title, which), [])) for which in ("old", "new")]
        if not found[1].size:
            continue
        parts = [
            f"{100 * np.mean(one <= limit):.0f} %" if one.size else "-"
            for limit in (FEW, SOME) for one in found
        ]  # fmt: skip
        rows.append((title, found[1].size, *parts))
    header = ("priors, likelihoods", "runs", "at most 1 %, old", "at most 1 %, new",
              "at most 5 %, old", "at most 5 %, new")  # fmt: skip
    return table("Runs with few cells that disagree", header, rows, quoted=True)


def _figures(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    shares = [
        " ".join(f"{100 * one['above']:.1f}" for one in found[which]) + " %" if all(found[which])
        else "-"
        for which in ("old", "new")
    ]  # fmt: skip
    if not all(found["old"]):
        return [*shares, "-", "-"]
    best = {which: min(one["seconds"] for one in runs) for which, runs in found.items()}
    rate = {which: np.median([one["rate"] for one in runs]) for which, runs in found.items()}
    return [*shares, f"{best['new'] / best['old']:.2f}", f"{rate['new'] / rate['old']:.1f}"]
