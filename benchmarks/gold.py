"""Whether runs of the usual length find what runs fifty times as long find: means and spreads.

The gold run of a model has four chains of 1,000 sweeps and 12,500 draws each; the run beside it has
four chains of 250 and 250, from other seeds, all of them overdispersed as starts always are. A
tenth of the entries is held out, and 200 of these cells are followed. For every cell the posterior
mean, and the posterior standard deviation by way of squared deviations from the gold mean, are
compared in units of their Monte Carlo errors, which effective sample sizes give, chain by chain.
Of exact chains that have mixed, about 0.3 % of the cells differ by more than three.

Where the gold chains disagree among themselves they are told to be in modes by the rule of
`bayesmf.posterior.agreement`, and so is the short run, with the draws that it has. What is done is
kept in a file, so that a run goes on where it was stopped.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import bayesmf
from bayesmf import ObservedMatrix, Problem, chain, preset
from bayesmf.posterior.agreement import settled_apart, split_rhat
from benchmarks.census import FEW, RANKS, held_out
from benchmarks.common import TITLES, facts, kept, load, read_json
from benchmarks.mixing import effective_size
from benchmarks.report import RESULTS, Options, table

STORE = RESULTS / "gold-runs.json"
CHAINS, ABOVE, FAR = 4, 1.1, 3.0
WORKERS = 2  # chains side by side
SHORT, GOLD = (250, 250), (1000, 12_500)  # sweeps of burn-in, and draws
MATRICES = ("ccle", "methylation", "gdsc")


def draws_of(
    X: ObservedMatrix, cells: Any, name: str, rank: int, length: tuple[int, int], seed: int
) -> np.ndarray:
    """Predictions (chains, draws, cells) of all chains of a run."""
    problem = Problem.of(X, preset(name), rank)
    values = np.empty((CHAINS, length[1], cells[0].size))

    def run(one: int) -> None:
        states = chain(problem, random_state=(seed, one))
        for sweep in range(-length[0], length[1]):
            state = next(states)
            if sweep >= 0:
                values[one, sweep] = np.einsum("tk,tk->t", state.U[cells[0]], state.V[cells[1]])

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(run, range(CHAINS)))
    return values


def moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean of every column of (chains, draws, n), and its squared Monte Carlo error."""
    errors = [one.var(axis=0, ddof=1) / effective_size(one) for one in values]
    return values.mean(axis=(0, 1)), np.mean(errors, axis=0) / len(values)


def share_far(short: np.ndarray, gold: np.ndarray) -> float:
    """Share of the columns whose means differ by more than three Monte Carlo errors."""
    (a, first), (b, second) = moments(short), moments(gold)
    return float(np.mean(np.abs(a - b) > FAR * np.sqrt(first + second)))


def compared(X: ObservedMatrix, cells: Any, name: str, rank: int, lengths: Any) -> dict[str, Any]:
    """One model: both runs, and how they differ."""
    short, gold = (
        draws_of(X, cells, name, rank, length, seed)
        for seed, length in zip((1, 2), lengths, strict=True)
    )
    centre = gold.mean(axis=(0, 1))
    every = max(1, gold.shape[1] // short.shape[1])
    return {
        "means": share_far(short, gold),
        "spreads": share_far((short - centre) ** 2, (gold - centre) ** 2),
        "above": [float(np.mean(split_rhat(values) > ABOVE)) for values in (short, gold)],
        "modes": [settled_apart(short), settled_apart(gold[:, ::every])],
        "off": float(np.sqrt(np.mean((short.mean(axis=(0, 1)) - centre) ** 2))),
        "spread": float(np.sqrt(np.mean(gold.var(axis=(0, 1))))),
    }


def part(options: Options) -> dict[str, Any]:
    """All presets."""
    names = [name for name in MATRICES if not options.data or name in options.data]
    lengths = ((10, 20), (10, 40)) if options.quick else (SHORT, GOLD)
    found: dict[str, Any] = {}
    for name in names:
        train, cells = held_out(load(name, options.quick).X)
        for model in options.models or (("GEE",) if options.quick else bayesmf.PRESETS):
            make = partial(compared, train, cells, model, RANKS[name], lengths)
            if options.quick:
                found[f"{name}, {model}"] = make()
            else:
                kept(STORE, f"{name}, {model}", make=make)
    data = {"runs": found if options.quick else read_json(STORE)}
    return {
        "claims": [], "tables": tables(data), "data": data,
        "datasets": facts(*(load(name, options.quick) for name in names)),
    }  # fmt: skip


def tables(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Every model on every matrix: shares of cells that differ, and what chains do."""
    rows = []
    for place, one in data["runs"].items():
        name, model = place.split(", ")
        shares = [f"{100 * one[key]:.1f} %" for key in ("means", "spreads")]
        above = [f"{100 * share:.1f} %" for share in one["above"]]
        rows.append(
            (TITLES[name], model, *shares, f"{one['off'] / one['spread']:.3f}", *above,
             *(_modes(groups) for groups in one["modes"]))
        )  # fmt: skip
    header = (
        "data", "model", "means apart", "spreads apart", "difference / deviation",
        "above 1.1", "above 1.1, gold", "modes", "modes, gold",
    )  # fmt: skip
    return [
        table("Beside runs fifty times as long", header, rows, quoted=True), _told(data["runs"])
    ]  # fmt: skip


def _told(runs: dict[str, Any]) -> dict[str, Any]:
    """What chains that disagree were told, and whether long ones bear it out."""
    found: dict[tuple[bool, bool], list[str]] = {}
    for place, one in runs.items():
        if one["above"][0] > FEW:
            name, model = place.split(", ")
            told, true = (bool(groups) for groups in one["modes"])
            found.setdefault((told, true), []).append(f"{model} on {TITLES[name]}")
    rows = [
        ("modes" if told else "still moving", "modes" if true else "one", len(models),
         ", ".join(models))
        for (told, true), models in sorted(found.items(), reverse=True)
    ]  # fmt: skip
    header = ("short chains", "long chains", "runs", "which")
    title = "Short runs that disagree about more than one cell in a hundred"
    return table(title, header, rows, quoted=True)


def _modes(groups: Any) -> str:
    return "one" if not groups else " + ".join(str(len(group)) for group in groups)
