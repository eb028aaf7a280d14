"""Milliseconds per Gibbs sweep of presets, next to SMURFF and myFM in the same run.

For every dataset and rank all presets and peers are warmed up first, then measured in rounds: each
round gives every one of them a batch of sweeps, so that all see the machine in the same condition,
and the best round counts. A batch lasts about 0.3 seconds or more. Predictions are not part of a
sweep, neither here nor for the peers. Use an idle machine: SMURFF's threads spin while they wait
for each other, so that one busy core makes it several times slower, and the presets much less.

GGGW has SMURFF's model, GGGU that of myFM; ``--models``, ``--data`` and ``--ranks`` choose others.
A preset's first call (set-up, compiling the kernels or loading them from the cache, one sweep) is
kept among the figures. Presets share kernels, so the first one of a group compiles for those that
follow; `first_use` measures a preset alone with an empty cache.

The peers are optional (`peers` says what they are). They get the data less its mean. Their time
per sweep is the difference between a long and a short run, each the best of all rounds, divided by
the sweeps between them, so that set-up cancels.
"""

from __future__ import annotations

from typing import Any

from benchmarks.common import TITLES, Dataset, facts, load, say, watch_other_work
from benchmarks.peers import SWEEPERS, installed
from benchmarks.report import Options, claim, table
from benchmarks.timing import PresetTimer, RunTimer, Timer, in_rounds

Place = tuple[str, int]  # dataset, rank

# The project's targets: a peer's time over that of the preset with the same model.
SMURFF_TARGETS = {
    ("gdsc", 5): 4.0,
    ("gdsc", 20): 4.0,
    ("gdsc", 50): 4.0,
    ("movielens", 5): 4.0,
    ("movielens", 20): 3.0,
    ("movielens", 50): 2.5,
    ("million", 20): 5.0,
}
MYFM_TARGET = 8.0
PEERS = {"GGGW": "smurff", "GGGU": "myfm"}  # by the preset with the same model
LABELS = {"smurff": "SMURFF", "myfm": "myFM (one thread)"}
RANKS = {"gdsc": (5, 20, 50), "movielens": (5, 20, 50), "million": (20,)}
SHORT = 20  # the rank that the README quotes


def measure(
    dataset: Dataset, rank: int, models: tuple[str, ...], peers: list[str], options: Options
) -> list[dict[str, Any]]:
    """Measure all contestants on one dataset at one rank."""
    say(f"{dataset.name}, K = {rank}")
    batch = 2 * options.batch
    timers: dict[str, Timer] = {
        name: PresetTimer(dataset.X, name, rank, options.threads, batch) for name in models
    }
    for name in peers:
        timers[name] = RunTimer(SWEEPERS[name](dataset.X, rank, options.threads), batch)
    busy_elsewhere = watch_other_work()
    in_rounds(timers.values(), options.repeats)
    place = {"dataset": dataset.name, "rank": rank, "cores_busy_elsewhere": busy_elsewhere()}
    return [{"name": name, **place, **timer.result()} for name, timer in timers.items()]


def beside(
    ms: dict[tuple[str, str, int], float | None], model: str, peer: str, places: list[Place]
) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Rows of a peer and of its times over those of the preset with the same model; the claims."""
    theirs = [ms[peer, *place] for place in places]
    ratios = [t / o if (o := ms[model, *p]) else None for t, p in zip(theirs, places, strict=True)]
    rows = [
        [LABELS[peer], *theirs],
        ["*times faster*", *(r if r is None else f"{r:.1f}" for r in ratios)],
    ]
    claims = []
    for place, ratio in zip(places, ratios, strict=True):
        least = SMURFF_TARGETS.get(place) if peer == "smurff" else MYFM_TARGET
        if least is not None:
            title = f"{LABELS[peer]} / {model}, {place[0]}, K = {place[1]}"
            claims.append(claim(title, ratio, "times", least=least))
    return rows, claims


def in_short(found: dict[str, Any]) -> dict[str, Any]:
    """The README's table: every matrix at one rank, a row for each preset and its peer."""
    ms = {(r["name"], r["dataset"]): r["ms"] for r in found["data"] if r["rank"] == SHORT}
    rows = []
    for model, peer in PEERS.items():
        for name, about in found["datasets"].items():
            ours, theirs = ms.get((model, name)), ms.get((peer, name))
            data = TITLES[name] if about["source"] == "real" else "synthetic"
            faster = f"{theirs / ours:.1f}" if ours and theirs else None
            entries = f"{about['observed']:,}"
            rows.append((data, entries, model, ours, LABELS[peer], theirs, faster))
    header = ("data", "entries", "model", "ms", "peer", "ms", "times faster")
    return table(f"Milliseconds per sweep, K = {SHORT}", header, rows)


def part(options: Options) -> dict[str, Any]:
    """SMURFF against GGGW and myFM against GGGU, at every rank on every dataset."""
    models = options.models or tuple(PEERS)
    wanted = [PEERS[name] for name in models if name in PEERS]
    peers = installed(wanted) if options.peers else []
    datasets = {name: load(name, options.quick) for name in options.data or RANKS}
    places: list[Place] = [
        (name, rank)
        for name in datasets
        for rank in options.ranks or RANKS.get(name, RANKS["gdsc"])[: 1 if options.quick else None]
    ]
    results = [
        result
        for name, rank in places
        for result in measure(datasets[name], rank, models, peers, options)
    ]
    # The time of a chain that did not stay finite means nothing; of peers this is not known.
    ms = {
        (r["name"], r["dataset"], r["rank"]): r["ms"] if r.get("finite", True) else None
        for r in results
    }
    claims: list[dict[str, Any]] = []
    rows: list[list[Any]] = []
    for model in models:
        rows.append([model, *(ms[model, *place] for place in places)])
        if PEERS.get(model) in peers:
            more, claimed = beside(ms, model, PEERS[model], places)
            rows += more
            claims += claimed
    header = ["ms per sweep", *(f"{dataset} {rank}" for dataset, rank in places)]
    return {
        "claims": claims,
        "tables": [table("Milliseconds per sweep beside the peers", header, rows)],
        "data": results,
        "datasets": facts(*datasets.values()),
    }
