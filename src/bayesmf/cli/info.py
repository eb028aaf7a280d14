"""Commands that tell what there is: matrices, models, and the state of the installation."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Iterator
from typing import Any

from bayesmf.cli._tools import command

_OPTIONAL = {
    "pandas": "tables", "pyarrow": "Parquet files", "openpyxl": "Excel files",
    "xarray": "saving posteriors",
    "h5netcdf": "saving posteriors", "pooch": "downloads", "matplotlib": "figures",
    "distributed": "Dask clusters",
}  # fmt: skip


def add(commands: Any) -> None:
    """Add the commands of this module."""
    for name, run, text, more in (
        ("datasets", _datasets, "list the known matrices and whether they are here",
         "Matrices are looked for in the folder that BAYESMF_DATA names, then in the cache."),
        ("models", _models, "list the models, their settings and what each is good for",
         "A setting is changed with bayesmf fit --set name=value; none means that the rank\n"
         "or the data decide. The first letter of a name stands for the likelihood and may be\n"
         "exchanged, as in TGGW or NGG; the list ends with all letters."),
        ("doctor", _doctor, "check the installation and tell what a bug report should say",
         "Ends with 1 if the check failed."),
    ):  # fmt: skip
        parser = command(commands, name, run, text, more)
        parser.add_argument("--json", action="store_true", help="print JSON")


def _datasets(options: argparse.Namespace) -> int:
    from bayesmf.datasets import CATALOGUE, present

    rows = []
    for name, entry in CATALOGUE.items():
        n, m = entry.shape
        rows.append({
            "name": name, "rows": n, "columns": m, "observed": entry.n_observed / (n * m),
            "present": present(name), "title": entry.title, "licence": entry.licence,
            "source": entry.source,
        })  # fmt: skip
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        here = "here  " if row["present"] else "absent"
        print(
            f"{row['name']:17} {row['rows']:5} x {row['columns']:<5} {row['observed']:6.1%}  "
            f"{here}  {row['title']}"
        )
        print(f"{'':17} {row['source']}")
    return 0


def _models(options: argparse.Namespace) -> int:
    from bayesmf.model.presets import PRESETS, hyperparameters, preset

    rows: list[dict[str, Any]] = [
        {
            "name": name, "likelihood": row.likelihood.name, "rows": _prior(preset(name).rows),
            "columns": _prior(preset(name).cols), "support": _support(preset(name)),
            "hyperparameters": hyperparameters(name), "good_for": row.good_for,
            "letters": _fitting(name),
        }
        for name, row in PRESETS.items()
    ]  # fmt: skip
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        settings = ", ".join(f"{k}={_setting(v)}" for k, v in row["hyperparameters"].items())
        print(f"{row['name']:5} {row['good_for']}")
        left, right = row["rows"], row["columns"]
        sides = f"rows and columns {left}" if left == right else f"rows {left}, columns {right}"
        print(f"{'':5} {row['likelihood']} likelihood, {row['support']}; {sides}")
        print(f"{'':5} {settings}")
    print("\n".join(_letters()))
    return 0


def _letters() -> Iterator[str]:
    """The likelihoods, their letters, and the models whose first letter they may take."""
    from bayesmf.model.presets import LETTERS, PRESETS, SUITS

    yield "\nThe first letter may be that of another likelihood:"
    for letter, likelihood in LETTERS.items():
        names = [name for name in PRESETS if letter in _fitting(name)]
        about = SUITS.get(letter, likelihood.needs)
        yield f"{letter:5} {likelihood.name} likelihood: {about}"
        settings = ", ".join(f"{k}={_setting(v)}" for k, v in likelihood.hyperparameters().items())
        if settings:
            yield f"{'':5} {settings}"
        yield f"{'':5} as in {', '.join(f'{letter}{name[1:]}' for name in names)}"


def _fitting(name: str) -> list[str]:
    """Letters of the likelihoods under which the priors of a model can be drawn."""
    from bayesmf.model.presets import LETTERS, preset

    sides = type(preset(name).rows), type(preset(name).cols)
    return [letter for letter, known in LETTERS.items() if all(map(known().fits, sides))]


def _support(model: Any) -> str:
    """Where the factors of a model lie."""
    return ("real-valued", "semi-nonnegative", "nonnegative")[sum(model.nonnegative)]


def _prior(prior: Any) -> str:
    """A prior in words: its class, and that of its hyperprior if it has one."""
    name = type(prior).__name__
    for value in vars(prior).values():
        if type(value).__module__ == "bayesmf.priors.hyperpriors":
            return f"{name} with {type(value).__name__}"
    return name


def _setting(value: Any) -> str:
    return "none" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _doctor(options: argparse.Namespace) -> int:
    from bayesmf import _threads
    from bayesmf._versions import version, versions
    from bayesmf.datasets import CATALOGUE, present
    from bayesmf.kernels.compile import CACHE

    found: dict[str, Any] = {
        "versions": versions(), "optional": {name: version(name) for name in _OPTIONAL},
        "platform": platform.platform(), "cores": os.cpu_count(), "threads": _threads.count(-1),
        "kernel_cache": None if CACHE is None else str(CACHE),
        "BAYESMF_DATA": os.environ.get("BAYESMF_DATA"),
        "datasets": [name for name in CATALOGUE if present(name)], "check": _self_check(),
    }  # fmt: skip
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print("\n".join(_report(found)))
    return 0 if found["check"]["passed"] else 1


def _self_check() -> dict[str, Any]:
    """Sample a tiny matrix whose hidden values are known; the first time kernels are compiled."""
    begin = time.perf_counter()
    try:
        import numpy as np

        from bayesmf import sample

        rng = np.random.default_rng(0)
        truth = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20))
        hidden = rng.random(truth.shape) < 0.2
        X = np.where(hidden, np.nan, truth + 0.1 * rng.normal(size=truth.shape))
        posterior = sample(X, "GGG", 2, draws=50, burn_in=50, random_state=0)
        error = float(np.sqrt(np.mean((posterior.predict() - truth)[hidden] ** 2)))
        passed = error < 0.2  # twice the noise; without a model it would be 1.4
        text = f"error {error:.3f} on hidden cells, which must be below 0.2"
    except Exception as problem:  # whatever it is, the report must tell
        passed, text = False, f"{type(problem).__name__}: {problem}"
    return {"passed": passed, "found": text, "seconds": round(time.perf_counter() - begin, 3)}


def _report(found: dict[str, Any]) -> list[str]:
    """What the doctor found, in lines."""
    extras = [
        f"{name} {version}" if version else f"{name} absent ({_OPTIONAL[name]})"
        for name, version in found["optional"].items()
    ]
    cache, check = found["kernel_cache"], found["check"]
    no_cache = "none can be written: set BAYESMF_CACHE to a folder that can be"
    return [
        "versions   " + ", ".join(f"{k} {v}" for k, v in found["versions"].items()),
        "optional   " + ", ".join(extras),
        f"platform   {found['platform']}",
        f"cores      {found['cores']}, of which {found['threads']} may be used",
        f"kernels    {cache + ' (can be written)' if cache else no_cache}",
        f"data       BAYESMF_DATA is {found['BAYESMF_DATA'] or 'not set'}; present are "
        + ", ".join(found["datasets"]),
        f"check      {'passed' if check['passed'] else 'FAILED'} in {check['seconds']:.2f} s "
        f"({check['found']})",
    ]
