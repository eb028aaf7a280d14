"""Run the whole benchmark: one table and one JSON file with every figure and its target.

    python benchmarks/run.py [--only sweep,study] [--resume] [--quick] [--no-peers]
    python benchmarks/run.py --readme

Writes ``benchmarks/results/bench.md`` and ``bench.json``, after every part, and the plot of
``docs/images/scaling.svg``. Parts that do not run keep the figures that are already in the JSON
file, if they are of the same machine, versions and settings; every part says which commit was
measured. ``--resume`` runs only parts that this commit lacks. ``--quick`` is a smoke test: small
synthetic matrices, results under other names. ``--readme`` runs nothing: it puts the results into
the README and docs/performance.md, between their two markers. Set BAYESMF_DATA to the folder of the
real matrices, and leave the machine idle.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from _common import machine, version, watch_other_work
from _report import PAGE, RESULTS, Options, everything, markdown, print_part, quote, readme_block

ROOT = Path(__file__).parents[1]
# Memory comes first: a child's peak counts what its parent held when it was started.
PARTS = ("memory", "sweep", "study", "hardware", "mixing", "poisson", "scaling", "first_use")
PACKAGES = ("numpy", "scipy", "numba", "smurff", "myfm", "hpfrec")


def commit() -> str | None:
    """The commit that is measured, "-dirty" if the code differs from it; None if not known."""
    try:
        head, changes = (
            subprocess.run(
                ["git", *words], cwd=ROOT, check=True, capture_output=True, text=True
            ).stdout.strip()
            for words in (
                ("rev-parse", "--short=12", "HEAD"),
                ("status", "--porcelain", "--", "src", "benchmarks/*.py"),
            )
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}-dirty" if changes else head


def earlier(path: Path, setting: dict[str, Any]) -> dict[str, Any]:
    """Parts of earlier runs on the same machine with the same versions and settings."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if any(found.get(key) != value for key, value in setting.items()):
        return {}
    return {name: part for name, part in found["parts"].items() if "error" not in part}


def run_part(name: str, options: Options) -> dict[str, Any]:
    """Run one part, how long it took and what else went on; a failure is part of the result."""
    print(f"\n== {name}", flush=True)
    begin, busy_elsewhere = time.perf_counter(), watch_other_work()
    try:
        result = import_module(name).part(options)
        print_part(result)
    except Exception as error:
        traceback.print_exc()
        result = {"error": f"{type(error).__name__}: {error}"}
    seconds = time.perf_counter() - begin
    print(f"{name}: {seconds:.0f} s", flush=True)
    return {**result, "seconds": seconds, "cores_busy_elsewhere": busy_elsewhere()}


def write(results: dict[str, Any], stem: Path) -> None:
    """Write the JSON file and the table."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, indent=1, default=float)
    stem.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    stem.with_suffix(".md").write_text(markdown(results), encoding="utf-8")


def run(chosen: list[str], options: Options, stem: Path, resume: bool) -> dict[str, Any]:
    """Run the chosen parts and write the results after each."""
    settings = {key: getattr(options, key) for key in ("repeats", "threads", "peers", "quick")}
    now = commit()
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
        done[name] = {"commit": now, **run_part(name, options)}
        results["parts"] = {part: done[part] for part in PARTS if part in done}
        write(results, stem)
    return results


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", metavar="PART,...", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--resume", action="store_true", help="run only the parts that are missing")
    parser.add_argument("--quick", action="store_true", help="small data: only shows that it runs")
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out")
    parser.add_argument("--repeats", type=int, help="rounds; the best one counts (default: 5)")
    parser.add_argument("--threads", type=int, default=2, help="threads of presets and peers")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--readme", action="store_true", help="put the results into the README")
    args = parser.parse_args()
    args.parts = args.only.split(",") if args.only else list(PARTS)
    for name in args.parts:
        if name not in PARTS:
            parser.error(f"no part {name!r}; there are {', '.join(PARTS)}")
    return args


def main() -> None:
    args = parse()
    stem = args.out / ("quick" if args.quick else "bench")
    if args.readme:
        results = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
        quote(ROOT / "README.md", "benchmark", readme_block(results))
        return quote(PAGE, "benchmark", everything(results))
    final = not args.quick and args.out == RESULTS
    images = ROOT / "docs" / "images" if final else args.out
    repeats = args.repeats or (2 if args.quick else 5)
    options = Options(repeats, args.threads, not args.no_peers, args.quick, images)
    results = run(args.parts, options, stem, args.resume)
    claims = [entry for part in results["parts"].values() for entry in part.get("claims", ())]
    failed = [name for name, part in results["parts"].items() if "error" in part]
    met = sum(entry["met"] for entry in claims)
    print(f"\n{met} of {len(claims)} targets met; see {stem.with_suffix('.md')}")
    if args.quick:
        print("A quick run on small data: its figures mean nothing.")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
