"""Milliseconds per Gibbs sweep of every preset, next to SMURFF and myFM in the same run.

    python benchmarks/sweep.py [--repeats 5] [--ranks 5 20 50] [--threads 2] [--models GGG GGGW]
                               [--datasets gdsc movielens] [--no-peers] [--json FILE]

For every dataset and rank all presets and peers are warmed up first, then measured in rounds: each
round gives every one of them a batch of sweeps, so that all see the machine in the same condition,
and the best round counts. A batch lasts about 0.3 seconds or more. Predictions are not part of a
sweep, neither here nor for the peers. Use an idle machine: SMURFF's threads spin while they wait
for each other, so that one busy core makes it several times slower, and the presets much less. On
Linux the script says how much other processes ran meanwhile, and marks ratios taken on a busy
machine.

A preset's first call (set-up, compiling the kernels or loading them from the cache, one sweep) is
shown apart. Presets share kernels, so the first one of a group compiles for those that follow;
first_use.py measures a preset alone with an empty cache.

The peers are optional (`_peers.py` says what they are). They get the data less its mean. Their time
per sweep is the difference between a long and a short run, each the best of all rounds, divided by
the sweeps between them, so that set-up cancels.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from _common import (
    DATASETS,
    Dataset,
    load,
    machine,
    print_machine,
    print_table,
    verdict,
    version,
    watch_other_work,
    write_json,
)
from _peers import SWEEPERS, installed
from _report import Options, claim, table
from _timing import BATCH_SECONDS, PresetTimer, RunTimer, Timer, in_rounds
from bayesmf.presets import PRESETS

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
LABELS = {"smurff": "SMURFF", "myfm": "myFM (one thread)"}
BUSY = 0.1  # cores at work for other processes from which figures are not to be trusted


def measure(
    dataset: Dataset, rank: int, models: list[str], peers: list[str], *,
    repeats: int, threads: int, batch: float = BATCH_SECONDS,
) -> list[dict[str, Any]]:  # fmt: skip
    """Measure all contestants on one dataset at one rank."""
    print(f"{dataset.name}, K = {rank} ...", file=sys.stderr)
    timers: dict[str, Timer] = {
        name: PresetTimer(dataset.X, name, rank, threads, batch) for name in models
    }
    for name in peers:
        timers[name] = RunTimer(SWEEPERS[name](dataset.X, rank, threads), batch)
    busy_elsewhere = watch_other_work()
    in_rounds(timers.values(), repeats)
    place = {"dataset": dataset.name, "rank": rank, "cores_busy_elsewhere": busy_elsewhere()}
    return [{"name": name, **place, **timer.result()} for name, timer in timers.items()]


def tracked_ratios(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ratios that the project tracks, with their targets, where both figures were measured."""
    measured = {(r["dataset"], r["rank"], r["name"]): r for r in results}
    wanted = [
        (dataset, rank, "smurff", "GGGW", SMURFF_TARGETS.get((dataset, rank)))
        for dataset, rank in places(results)
    ]
    wanted += [(dataset, rank, "myfm", "GGGU", MYFM_TARGET) for dataset, rank in places(results)]
    ratios = []
    for dataset, rank, top, bottom, limit in wanted:
        pair = [measured.get((dataset, rank, name)) for name in (top, bottom)]
        if None in pair:
            continue
        value = pair[0]["ms"] / pair[1]["ms"]
        judgement = "-" if limit is None else verdict(value, limit, at_least=True)
        if not all(sound(r) for r in pair):
            judgement = "void (not finite)"
        elif (pair[0]["cores_busy_elsewhere"] or 0) > BUSY:
            judgement += " (machine busy)"
        target = "-" if limit is None else f"at least {limit:g}"
        ratios.append(
            {"ratio": f"{top} / {bottom}", "dataset": dataset, "rank": rank, "value": value,
             "target": target, "verdict": judgement}
        )  # fmt: skip
    return ratios


def sound(result: dict[str, Any]) -> bool:
    """Whether a chain stayed among the finite numbers; not known of peers."""
    return result.get("finite", True)


def places(results: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """The pairs of dataset and rank that were measured, in order."""
    return list(dict.fromkeys((r["dataset"], r["rank"]) for r in results))


def print_results(results: list[dict[str, Any]]) -> None:
    """Print a row for every preset and peer, and how busy the machine was otherwise."""
    columns = places(results)
    rows: dict[str, list[str]] = {}
    for r in results:
        rows.setdefault(r["name"], [r["name"]]).append(f"{r['ms']:#.3g}" + "!" * (not sound(r)))
    first_calls = {r["name"]: r.get("first_call_seconds") for r in reversed(results)}
    busy = {(r["dataset"], r["rank"]): r["cores_busy_elsewhere"] for r in results}
    print("\nMilliseconds per sweep; on the right, seconds of the first call in this process")
    print_table(
        ["", *(f"{dataset} K={rank}" for dataset, rank in columns), "first call"],
        [
            *([*row, decimals(first_calls[name])] for name, row in rows.items()),
            ["cores busy elsewhere", *(decimals(busy[place]) for place in columns), ""],
        ],
    )
    if not all(sound(r) for r in results):
        print("! The chain did not stay finite: its time means nothing.")


def print_ratios(ratios: list[dict[str, Any]]) -> None:
    keys = ("ratio", "dataset", "rank", "value", "target", "verdict")
    print("\nRatios of times")
    print_table(
        ["", "dataset", "K", "ratio", "target", ""],
        [[decimals(r[key]) if key == "value" else r[key] for key in keys] for r in ratios],
    )


def decimals(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def peer_claims(
    ms: dict[tuple[str, str, int], float], where: list[tuple[str, int]]
) -> list[dict[str, Any]]:
    """A peer's time over that of the preset with the same model, wherever it was measured."""
    claims = []
    for peer, model, targets in (
        ("smurff", "GGGW", SMURFF_TARGETS),
        ("myfm", "GGGU", dict.fromkeys(where, MYFM_TARGET)),
    ):
        for place, target in targets.items():
            if (peer, *place) in ms:
                ratio = ms[peer, *place] / ms[model, *place]
                title = f"{LABELS[peer]} / {model}, {place[0]}, K = {place[1]}"
                claims.append(claim(title, ratio, "times", least=target))
    return claims


def part(options: Options) -> dict[str, Any]:
    """SMURFF against GGGW and myFM against GGGU, at every rank on every dataset."""
    peers = installed(SWEEPERS) if options.peers else []
    where = {"gdsc": (5, 20, 50), "movielens": (5, 20, 50), "million": (20,)}
    datasets = {name: load(name, options.quick) for name in where}
    results = [
        result
        for name, ranks in where.items()
        for rank in (ranks[:1] if options.quick else ranks)
        for result in measure(
            datasets[name], rank, ["GGGW", "GGGU"], peers,
            repeats=options.repeats, threads=options.threads, batch=2 * options.batch,
        )
    ]  # fmt: skip
    ms = {(r["name"], r["dataset"], r["rank"]): r["ms"] for r in results}
    rows: list[list[Any]] = []
    for model, peer in (("GGGW", "smurff"), ("GGGU", "myfm")):
        ours = [ms[model, *place] for place in places(results)]
        rows.append([model, *ours])
        if peer in peers:
            theirs = [ms[peer, *place] for place in places(results)]
            rows.append([LABELS[peer], *theirs])
            ratios = [f"{t / o:.1f}" for t, o in zip(theirs, ours, strict=True)]
            rows.append(["*times faster*", *ratios])
    header = ["ms per sweep", *(f"{dataset} {rank}" for dataset, rank in places(results))]
    peers_table = table("Milliseconds per sweep beside the peers", header, rows, readme=True)
    return {
        "claims": peer_claims(ms, places(results)),
        "tables": [peers_table],
        "data": results,
        "datasets": {name: dataset.facts() for name, dataset in datasets.items()},
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5, help="rounds; the best one counts")
    parser.add_argument("--ranks", type=int, nargs="+", default=[5, 20, 50], help="numbers K")
    parser.add_argument("--threads", type=int, default=2, help="threads of presets and SMURFF")
    parser.add_argument(
        "--models", nargs="+", choices=PRESETS, default=list(PRESETS), metavar="MODEL",
        help="presets to measure (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--datasets", nargs="+", choices=DATASETS, default=["gdsc", "movielens"], help="matrices"
    )
    parser.add_argument("--no-peers", action="store_true", help="leave SMURFF and myFM out")
    parser.add_argument("--json", metavar="FILE", help="also write all figures to this file")
    return parser.parse_args()


def main() -> None:
    args = parse()
    print_machine(machine())
    peers = [] if args.no_peers else installed(SWEEPERS)
    datasets = [load(name) for name in args.datasets]
    for dataset in datasets:
        print(f"{dataset.name}: {'real' if dataset.real else 'SYNTHETIC'} data, {dataset.X!r}")
    results = [
        result
        for dataset in datasets
        for rank in args.ranks
        for result in measure(
            dataset, rank, args.models, peers, repeats=args.repeats, threads=args.threads
        )
    ]
    ratios = tracked_ratios(results)
    print_results(results)
    if ratios:
        print_ratios(ratios)
    write_json(
        args.json,
        {
            "peers": {name: version(name) for name in SWEEPERS},
            "settings": vars(args),
            "datasets": {dataset.name: dataset.facts() for dataset in datasets},
            "sweeps": results,
            "ratios": ratios,
        },
    )


if __name__ == "__main__":
    main()
