"""Measure: every figure that the README and the docs quote, one part or many.

    python -m benchmarks.run [PART ...] [--quick] [--no-peers] [--repeats N] [--threads N]
    python -m benchmarks.run --resume
    python -m benchmarks.run [PART ...] --readme

Without a name, the parts of the benchmark proper run, which share one table and one JSON file with
every figure and its target: ``benchmarks/results/bench.md`` and ``bench.json``, written after every
part, and the plot of ``docs/images/scaling.svg``. Parts that do not run keep the figures that are
already in the JSON file, if they are of the same machine, versions and settings; every part says
which commit was measured. ``--resume`` runs only parts that this commit lacks. The other parts run
when they are named, and have a file each, ``benchmarks/results/PART.json``.

``--models``, ``--ranks``, ``--data``, ``--missing`` and ``--other`` are for the parts that know
them. What such a choice finds is not put among the figures of ``bench.json``; ``--json`` writes the
figures of one part to any file. ``--quick`` is a smoke test: small synthetic matrices, results
under other names. ``--readme`` runs nothing: it puts results into the pages that quote them,
between two markers. Set BAYESMF_DATA to the folder of the real matrices, and leave the machine
idle.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import report
from benchmarks.common import (
    DATASETS,
    ROOT,
    MissingError,
    commit_of,
    machine,
    read_json,
    version,
    watch_other_work,
    write_json,
)
from benchmarks.report import RESULTS, Options


class Part(NamedTuple):
    """A module with a function ``part`` (`report` says what that is), and when it runs."""

    what: str
    bench: bool = False  # of the benchmark proper: runs by default, its figures are in bench.json
    takes: tuple[str, ...] = ()  # options of its own
    repeats: int = 5  # rounds, if nothing else is asked
    pages: tuple[str, ...] = ()  # that quote its own file, between the markers of its name
    readme: bool = False  # whether the README quotes it in short, between such markers
    data: tuple[str, ...] = DATASETS  # matrices to choose from
    kept: str = ""  # key of its own file whose matrices are kept when others are run
    module: str = ""  # where it is not the name of the part


_FIVE = ("methylation", "gdsc", "ccle", "ccle_ec50", "movielens")
_PUBLIC = ("u1", "u2", "u3", "u4", "u5")

# Memory comes first: a child's peak counts what its parent held when it was started.
PARTS = {
    "memory": Part("memory of a run on a million entries", True, ("models",)),
    "sweep": Part("a sweep beside SMURFF and myFM", True, ("models", "ranks", "data"), readme=True),
    "study": Part("a sweep beside the runtime that the study printed", True),
    "hardware": Part("how close sweeps come to what the machine can do", True),
    "mixing": Part("effective samples per second beside SMURFF", True),
    "poisson": Part("time to a held-out likelihood beside hpfrec", True),
    "scaling": Part("growth with the entries, and what threads bring", True),
    "first_use": Part("from the start to the first sweep", True, ("models", "missing")),
    "accuracy": Part(
        "held-out error beside SMURFF and myFM (hours)", takes=("models", "ranks", "data"),
        pages=("docs/estimators.md",), kept="errors",
    ),
    "chains": Part("what a second chain costs", repeats=15, pages=("docs/performance.md",)),
    "cluster": Part(
        "one chain on a Dask cluster, beside threads", repeats=3, pages=("docs/scaling-out.md",)
    ),
    "compare": Part(
        "how good the advice of compare is (hours)", takes=("data",), repeats=10,
        data=(*_FIVE, "overlap"), kept="compare",
    ),
    "families": Part(
        "whether compare finds the likelihood that made the data", takes=("models",),
        pages=("docs/compare.md",),
    ),
    "race": Part(
        "how long compare takes, in two source trees", takes=("other", "data"), repeats=2,
        pages=("docs/compare.md",), kept="race",
    ),
    "evidence": Part(
        "held-out entries beside every peer (hours)", takes=("models", "data"),
        pages=("docs/accuracy.md",), data=(*_FIVE, *_PUBLIC), kept="scores",
    ),
    "coverage": Part("how often intervals hold the truth", module="interval_coverage"),
    "exponents": Part("growth with rows, columns, entries and rank"),
    "features": Part(
        "features: new rows and columns, ratings, beside SMURFF and myFM", takes=("models", "data"),
        data=("lines", "drugs", "within", "u1", "u3"), pages=("docs/side-information.md",),
        kept="scores",
    ),
    "feature_sweeps": Part(
        "a sweep with features beside one without, SMURFF and myFM",
        pages=("docs/side-information.md",),
    ),
    "fetching": Part("what fetching ahead brings", repeats=3, pages=("docs/performance.md",)),
    "gdsc": Part("held-out error on GDSC beside the published one"),
    "likelihoods": Part(
        "a sweep under every likelihood beside the plain one", pages=("docs/performance.md",)
    ),
    "noise": Part(
        "held-out scores of likelihoods beside SMURFF and myFM", takes=("models", "data"),
        data=(*_FIVE, *_PUBLIC, "overlap"),
        pages=("docs/which-noise.md",), kept="scores",
    ),
    "size": Part("up to a hundred million entries on one machine", pages=("docs/size.md",)),
    "simulated": Part(
        "whether likelihoods find what simulated data were made with",
        pages=("docs/which-noise.md",),
    ),
    "tables": Part(
        "held-out cells of thirteen tables beside imputers", takes=("models", "data"),
        data=("iris", "wine", "diabetes", "breast_cancer", "overlap_ccle_ec50", "overlap_ccle_ic50",
              "overlap_gdsc", "overlap_ctrp", "ccle", "methylation", "digits", "gdsc", "movielens"),
        pages=("docs/defaults.md",), readme=True, kept="scores",
    ),
    "imputation": Part(
        "coverage of pooled coefficients after multiple imputation", pages=("docs/defaults.md",)
    ),
    "ranks": Part(
        "whether the automatic rank is right", pages=("docs/defaults.md",)
    ),
    "census": Part(
        "whether chains agree, in two source trees",
        takes=("other", "models", "data", "ranks"),
        data=("ccle", "methylation", "gdsc", "movielens"), pages=("docs/mixing.md",),
    ),
    "gold": Part(
        "usual runs beside ones fifty times as long (hours)", takes=("models", "data"),
        data=("ccle", "methylation", "gdsc"), pages=("docs/mixing.md",),
    ),
    "relaxation": Part(
        "what drawing rows on the other side of their mean brings", pages=("docs/mixing.md",)
    ),
    "tempering": Part(
        "how many rungs a tempering of modes would need", takes=("models", "data"),
        data=("methylation", "gdsc"), pages=("docs/mixing.md",),
    ),
    "units": Part("whether the units of the data matter", pages=("docs/defaults.md",)),
    "verdicts": Part(
        "whether the verdict on a run is right", takes=("models",), pages=("docs/defaults.md",)
    ),
    "volume": Part(
        "why the study's errors of GVG rise with the rank", pages=("docs/study.md",)
    ),
    "versions": Part(
        "sweeps and starts of two source trees", takes=("other", "models", "ranks", "data")
    ),
}  # fmt: skip
BENCH = [name for name, part in PARTS.items() if part.bench]
CHOICES = ("models", "ranks", "data", "missing", "other")
PACKAGES = ("numpy", "scipy", "numba", "smurff", "myfm", "hpfrec")


def module(name: str) -> Any:
    """The module of a part, imported now."""
    return import_module(f"benchmarks.{PARTS[name].module or name}")


def earlier(path: Path, setting: dict[str, Any]) -> dict[str, Any]:
    """Parts of earlier runs on the same machine with the same versions and settings."""
    found = read_json(path)
    if any(found.get(key) != value for key, value in setting.items()):
        return {}
    return {name: part for name, part in found.get("parts", {}).items() if "error" not in part}


def run_part(name: str, options: Options) -> dict[str, Any]:
    """Run one part, how long it took and what else went on; a failure is part of the result."""
    print(f"\n== {name}", flush=True)
    now, begin, busy_elsewhere = commit_of(ROOT), time.perf_counter(), watch_other_work()
    try:
        result = module(name).part(options)
        report.print_part(result)
    except Exception as error:
        if isinstance(error, MissingError):
            print(error)
        else:
            traceback.print_exc()
        result = {"error": f"{type(error).__name__}: {error}"}
    seconds = time.perf_counter() - begin
    print(f"{name}: {seconds:.0f} s", flush=True)
    return {"commit": now, **result, "seconds": seconds, "cores_busy_elsewhere": busy_elsewhere()}


def run(chosen: list[str], options: Options, stem: Path, resume: bool) -> dict[str, Any]:
    """Run parts of the benchmark proper, and write the JSON file and the table after each."""
    settings = {key: getattr(options, key) for key in ("repeats", "threads", "peers", "quick")}
    now = commit_of(ROOT)
    fixed = now is not None and not now.endswith("-dirty")
    results: dict[str, Any] = {
        "machine": machine(),
        "versions": {name: version(name) for name in ("bayesmf", *PACKAGES)},
        "settings": settings,
    }
    results["parts"] = done = earlier(stem.with_suffix(".json"), results)
    for name in chosen:
        if resume and fixed and name in done and done[name]["commit"] == now:
            print(f"\n== {name}: kept from the run before")
            continue
        done[name] = run_part(name, options)
        results["parts"] = {part: done[part] for part in BENCH if part in done}
        write_json(stem.with_suffix(".json"), results)
        stem.with_suffix(".md").write_text(report.markdown(results), encoding="utf-8")
    return results


def run_alone(name: str, options: Options, path: Path | None) -> bool:
    """Run a part that has a file of its own, write it, and say whether all went well."""
    result = run_part(name, options)
    if path is None or "error" in result:
        return "error" not in result
    if not PARTS[name].bench:
        data = result.pop("data")
        result = {k: v for k, v in result.items() if k not in ("claims", "tables")} | data
    if key := PARTS[name].kept:
        known = read_json(path)
        result |= {k: known.get(k, {}) | result[k] for k in ("datasets", key)}
    write_json(path, {"machine": machine(), **result})
    print(f"see {path}")
    return True


def put_into_pages(chosen: list[str], folder: Path) -> None:
    """Put the results that are there between the markers of the pages that quote them."""
    results = read_json(folder / "bench.json")
    if results and any(PARTS[name].bench for name in chosen):
        report.quote(ROOT / "docs" / "performance.md", "benchmark", report.everything(results))
    for name in chosen:
        if not (found := on_file(name, folder)):
            continue
        for page in PARTS[name].pages:
            report.quote(ROOT / page, name, report.tables_block(module(name).tables(found)))
        if PARTS[name].readme:
            report.quote(ROOT / "README.md", name, report.bare(module(name).in_short(found)))


def on_file(name: str, folder: Path) -> dict[str, Any]:
    """What was found by a part, in the common file or in its own; empty if there is nothing."""
    if not PARTS[name].bench:
        return read_json(folder / f"{name}.json")
    return read_json(folder / "bench.json").get("parts", {}).get(name, {})


def words(text: str) -> list[str]:
    """A list with commas; spaces are the parser's business."""
    return text.split(",")


def numbers(text: str) -> list[int]:
    """The same of numbers."""
    return [int(word) for word in words(text)]


def parse() -> argparse.Namespace:
    named = [f"  {name:10} {part.what}{' *' * part.bench}" for name, part in PARTS.items()]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run",
        description=__doc__,
        epilog="\n".join(["parts (* runs by default):", *named]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("parts", nargs="*", metavar="PART", help="what to measure; see below")
    add("--resume", action="store_true", help="run only the parts that are missing in bench.json")
    add("--quick", action="store_true", help="small data: only shows that it runs")
    add("--no-peers", action="store_true", help="leave the peers out")
    add("--repeats", type=int, help="rounds; the best one counts (default: 5, chains 15)")
    add("--threads", type=int, default=2, help="threads of presets and peers")
    add("--models", nargs="+", type=words, metavar="MODEL", help="presets to measure")
    add("--ranks", nargs="+", type=numbers, metavar="K", help="ranks to measure at")
    add("--data", "--datasets", nargs="+", type=words, metavar="NAME", help="matrices")
    add("--missing", type=float, help="share of missing entries in the matrix of first_use")
    add("--other", type=Path, metavar="SRC", help="source tree to compare with")
    add("--out", type=Path, default=RESULTS, help="folder of the results")
    add("--json", type=Path, metavar="FILE", help="write the figures of one part here alone")
    add("--readme", action="store_true", help="put the results into the pages that quote them")
    args = parser.parse_args()
    check(parser, args)
    return args


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Take lists apart, and stop if anything was asked that a part does not know."""
    for name in args.parts:
        if name not in PARTS:
            parser.error(f"no part {name!r}; there are {', '.join(PARTS)}")
    wanted = args.parts or (PARTS if args.readme else BENCH)
    args.parts = [name for name in PARTS if name in wanted]
    for key in ("models", "ranks", "data"):
        setattr(args, key, tuple(word for words in getattr(args, key) or () for word in words))
    args.chosen = [key for key in CHOICES if getattr(args, key) not in (None, ())]
    for key in args.chosen:
        if not all(key in PARTS[name].takes for name in args.parts):
            takers = ", ".join(name for name, part in PARTS.items() if key in part.takes)
            parser.error(f"--{key} is for {takers} alone")
    matrices = {matrix: None for name in args.parts for matrix in PARTS[name].data}
    for name in args.data:
        if name not in matrices:
            parser.error(f"no data {name!r}; there are {', '.join(matrices)}")
    if args.json and len(args.parts) != 1:
        parser.error("--json is for one part")


def main() -> None:
    args = parse()
    if args.readme:
        return put_into_pages(args.parts, args.out)
    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    final = not (args.quick or args.json) and args.out == RESULTS
    options = Options(
        args.repeats or (2 if args.quick else 5), args.threads, not args.no_peers, args.quick,
        ROOT / "docs" / "images" if final else args.out,
        args.models, args.ranks, args.data, args.missing, args.other,
    )  # fmt: skip
    failed = []
    alone = [n for n in args.parts if args.json or args.chosen or not PARTS[n].bench]
    if together := [n for n in args.parts if n not in alone]:
        stem = args.out / ("quick" if args.quick else "bench")
        results = run(together, options, stem, args.resume)["parts"]
        claims = [entry for part in results.values() for entry in part.get("claims", ())]
        failed += [name for name, part in results.items() if "error" in part]
        met = sum(entry["met"] for entry in claims)
        print(f"\n{met} of {len(claims)} targets met; see {stem.with_suffix('.md')}")
    for name in alone:
        own = args.out / f"{'quick.' * args.quick}{name}.json"
        path = args.json or (None if PARTS[name].bench else own)
        repeats = args.repeats or (2 if args.quick else PARTS[name].repeats)
        if not run_alone(name, options._replace(repeats=repeats), path):
            failed.append(name)
    if args.quick:
        print("A quick run on small data: its figures mean nothing.")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
