"""`bayesmf report`: the page of a run that was made before."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from bayesmf._errors import DataError
from bayesmf._files import unsealed
from bayesmf.cli import _features, _known, _reading
from bayesmf.cli._tools import command

# What of a record a page cannot do without.
_NEEDED = {"fit": ("data", "fingerprint", "center"), "compare": ("data", "asked", "command")}


def add(commands: Any) -> None:
    """Add the commands of this module."""
    parser = command(
        commands,
        "report",
        _report,
        "write the HTML page of a run of fit or compare",
        "Example:\n  bayesmf report ic50-fit\n\n"
        "The page is made from the folder and the data it was made of. Of a comparison only the\n"
        "best model is fitted again.",
    )
    parser.add_argument(
        "run_folder", metavar="RUN", help="a folder that fit or compare has written"
    )
    parser.add_argument("--data", metavar="DATA", help="where the data are now, if they have moved")
    parser.add_argument("--output", metavar="FILE", help="default: report.html in the folder")
    parser.add_argument("--quiet", action="store_true", help="do not say where the page is")


def _report(options: argparse.Namespace) -> int:
    folder = Path(options.run_folder)
    record = read_record(folder)
    data = options.data or record["data"]
    X, limits = _reading.read(data, record)
    X, _ = _known.without_held_out(X, record)
    path = Path(options.output) if options.output else folder / "report.html"
    if record["kind"] == "fit":
        _of_fit(folder, record, X, path, Path(data).name)
    else:
        _of_comparison(folder, record, X, limits, path, Path(data).name)
    if not options.quiet:
        print(path)
    return 0


def read_record(folder: Path) -> dict[str, Any]:
    """How a folder was made, by its run.json."""
    try:
        record = unsealed((folder / "run.json").read_text(encoding="utf-8"))
        assert set(_NEEDED[record["kind"]]) <= set(record)
    except (OSError, ValueError, KeyError, TypeError, AssertionError):
        raise DataError(
            f"{folder} is not a folder that bayesmf fit or compare has written: its run.json is "
            "missing or damaged."
        ) from None
    return record


def load_posterior(folder: Path) -> Any:
    """What a fit has kept of its posterior."""
    from bayesmf.posterior.posterior import Posterior

    files = [path for path in (folder / "posterior.nc", folder / "posterior.npz") if path.exists()]
    if not files:
        raise DataError(f"{folder} has lost its posterior.nc; fit again to get one.")
    return Posterior.load(files[0])


def _of_fit(folder: Path, record: dict[str, Any], X: Any, path: Path, name: str) -> None:
    from bayesmf.estimators import BayesianMF
    from bayesmf.report.gather import write_fit

    if X.fingerprint() != record["fingerprint"]:
        raise DataError(f"The data in {name} are not those of the run in {folder}; give --data.")
    posterior = load_posterior(folder)
    mf = BayesianMF.from_posterior(
        posterior, X, record["center"], record.get("scale", "none"), record.get("transform")
    )
    write_fit(mf, X, path, f"{name}, filled in", command=record.get("command", ""))


def _of_comparison(
    folder: Path, record: dict[str, Any], X: Any, limits: dict[str, Any], path: Path, name: str
) -> None:
    from bayesmf.comparison.compare import compare

    X = X.with_features(**_features.read(record))
    unfinished = bool(record.get("interrupted"))
    if unfinished:
        print("The comparison was stopped early; what is left of it runs first.", file=sys.stderr)
    found = compare(
        X, **record["asked"], **limits, store=folder / "trials", n_jobs=-1, progress=unfinished
    )
    advice, title = record.get("fit", ""), f"Which model for {name}"
    found.report(path, title, advice=advice, command=record["command"])
