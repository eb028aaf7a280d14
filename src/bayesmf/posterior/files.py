"""Posteriors in files: arrays by name, plain data about them, and a checksum of everything.

A file holds draws, moments, last states, labels, settings and versions. Its ending says what it is:
``.npz``, a zip archive of arrays that NumPy reads, or ``.nc``, a NetCDF file that ArviZ reads. The
model is written as plain data and rebuilt from its classes; nothing is pickled.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmf import __version__
from bayesmf._errors import BayesmfError, DataError, ModelError
from bayesmf._files import read_arrays, write_arrays
from bayesmf.data.bounds import Bounds
from bayesmf.data.observed import ObservedMatrix
from bayesmf.model.model import Model
from bayesmf.posterior.feature_files import about_features, feature_arrays, with_features
from bayesmf.posterior.parts import as_part, as_plain
from bayesmf.sampler.state import RETIRED, State
from bayesmf.streams import Array

if TYPE_CHECKING:
    from bayesmf.posterior.posterior import Posterior

FORMAT = 2  # 1 had no checksums
KINDS = (".npz", ".nc")
_MODEL = ("likelihood", "rows", "cols", "biases")
_ARRAYS = ("mean", "variance", "train_mse", "seconds", "U_mean", "V_mean")
_FLAGS = ("empty_rows", "empty_cols")
_ZIP = b"PK\x03\x04"


def save(posterior: Posterior, path: str | Path) -> None:
    """Write a posterior to a file, whole or not at all."""
    if kind_of(path) == ".npz":
        write_arrays(path, arrays_of(posterior), attributes(posterior))
        return
    from bayesmf.posterior.netcdf import save_netcdf

    save_netcdf(posterior, path)


def load(path: str | Path, parts: Iterable[type] = ()) -> dict[str, Any]:
    """Read the fields of a posterior that `save` wrote, whatever its ending is now."""
    return fields(*read(path), path, parts)


def kind_of(path: str | Path) -> str:
    """The ending of a file's name, which says what to write."""
    found = Path(path).suffix.lower()
    if found not in KINDS:
        raise ModelError(f"{path} must end in {' or '.join(KINDS)}, which say what to write.")
    return found


def read(path: str | Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays by name and plain data about them, all compared with their checksums."""
    try:
        with open(path, "rb") as file:
            is_zip = file.read(len(_ZIP)) == _ZIP
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror or error}).") from None
    if is_zip:
        arrays, about = read_arrays(path)
    else:
        from bayesmf.posterior.netcdf import read_netcdf

        arrays, about = read_netcdf(path)
    if about.get("format") not in (1, FORMAT):
        raise DataError(f"{path} was not written by this version of bayesmf.")
    return arrays, about


# --- To plain data, and back --------------------------------------------------------------------


def attributes(posterior: Posterior) -> dict[str, Any]:
    """What there is to say about the arrays: numbers and texts."""
    model = posterior.model
    return {
        "format": FORMAT,
        "created_by": f"bayesmf {__version__}, numpy {np.__version__}",
        "model_name": model.name,
        "model": json.dumps({part: as_plain(getattr(model, part)) for part in _MODEL}),
        "n_components": posterior.n_components,
        "shape": json.dumps(list(posterior.shape)),
        "settings": json.dumps(posterior.settings),
        "notes": json.dumps(list(posterior.notes)),
        "row_labels": _labels(posterior.row_labels),
        "column_labels": _labels(posterior.col_labels),
        "fingerprint": posterior.fingerprint,
        "states": json.dumps([str(state.to_arrays()["numbers"]) for state in posterior.states]),
        "features": json.dumps(about_features(model)),
    }


def arrays_of(posterior: Posterior) -> dict[str, Array]:
    """All arrays by name: "mean", "draws/U", "state_0/seed"."""
    arrays = {name: getattr(posterior, name) for name in _ARRAYS}
    arrays |= {name: getattr(posterior, name).astype(np.int8) for name in _FLAGS}
    arrays |= {f"draws/{name}": draws for name, draws in posterior.draws.items()}
    if posterior.cells is not None:
        arrays |= {f"cell_{k}": index for k, index in enumerate(posterior.cells)}
    for number, state in enumerate(posterior.states):
        own = state.to_arrays()
        arrays |= {f"state_{number}/{k}": v for k, v in own.items() if k != "numbers"}
    arrays |= feature_arrays(posterior.model)
    return {name: np.asarray(array) for name, array in arrays.items()}


def fields(
    arrays: dict[str, Array], about: dict[str, Any], path: str | Path, parts: Iterable[type] = ()
) -> dict[str, Any]:
    """The fields of a posterior; they are refused if they contradict each other."""
    try:
        plain = json.loads(about["model"])
        model = {side: as_part(plain[side], parts) for side in plain}
        found = {
            "model": with_features(
                Model(**model, name=about["model_name"]),
                arrays,
                json.loads(about.get("features", "{}")),
            ),
            "n_components": int(about["n_components"]),
            "shape": tuple(json.loads(about["shape"])),
            "cells": (arrays["cell_0"], arrays["cell_1"]) if "cell_0" in arrays else None,
            **{name: arrays[name] for name in _ARRAYS},
            **{name: arrays[name].astype(bool) for name in _FLAGS},
            "draws": _under(arrays, "draws"),
            "states": tuple(
                State.from_arrays({**_under(arrays, f"state_{k}"), "numbers": np.array(numbers)})
                for k, numbers in enumerate(json.loads(about["states"]))
            ),
            "row_labels": _read_labels(about["row_labels"]),
            "col_labels": _read_labels(about["column_labels"]),
            "notes": tuple(json.loads(about["notes"])),
            "settings": json.loads(about["settings"]),
            "fingerprint": about.get("fingerprint", ""),
        }
        _check(found)
    except BayesmfError as error:
        raise DataError(f"{path}: {error}") from None
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise DataError(f"{path} is not a file of a posterior ({error!r}).") from None
    return found


def _under(arrays: dict[str, Array], folder: str) -> dict[str, Array]:
    inside = f"{folder}/"
    found = {k.removeprefix(inside): v for k, v in arrays.items() if k.startswith(inside)}
    return {name: array for name, array in found.items() if name not in RETIRED}


def _check(found: dict[str, Any]) -> None:
    """Refuse arrays whose shapes are not those that model, rank and shape ask for."""
    (I, J), K, settings = found["shape"], found["n_components"], found["settings"]  # noqa: E741
    chains, draws = settings["chains"], settings["draws"]
    known = found["model"].variables((I, J), K)
    cells = found["cells"]
    moments = (I, J) if cells is None else cells[0].shape
    sweeps = found["train_mse"].shape
    wanted = {
        "mean": moments, "variance": moments, "train_mse": (chains, *sweeps[1:]), "seconds": sweeps,
        "U_mean": (chains, I, K), "V_mean": (chains, J, K), "empty_rows": (I,), "empty_cols": (J,),
    }  # fmt: skip
    pairs = [(name, found[name].shape, shape) for name, shape in wanted.items()]
    for name, array in found["draws"].items():
        shape = (chains, draws, *known[name].shape) if name in known else "nothing of that name"
        pairs.append((f"draws of {name}", array.shape, shape))
    for state in found["states"]:
        for name, value in state.variables().items():
            pairs.append((f"{name} of chain {state.chain}", value.shape, known[name].shape))
    for side, n in (("row", I), ("col", J)):
        labels = found[f"{side}_labels"]
        pairs.append((f"{side}_labels", None if labels is None else labels.shape,
                      None if labels is None else (n,)))  # fmt: skip
    pairs.append(("states", len(found["states"]), chains))
    for name, have, want in pairs:
        if have != want:
            raise DataError(f"what it says contradicts its numbers: {name} has {have}, not {want}.")


# --- Data ---------------------------------------------------------------------------------------


def matrix_arrays(X: ObservedMatrix) -> dict[str, Array]:
    """A matrix as arrays by name, in row order: "data/rows", "data/values"."""
    rows, cols, values = X.triples()
    values = values.astype(X.rows.stored.dtype, copy=False)
    found: dict[str, Array] = {"rows": rows, "cols": cols, "values": values}
    if X.errors is not None:
        found["errors"] = X.errors
    if X.bounds is not None:
        found |= {"low": X.bounds.low, "high": X.bounds.high}
    return {f"data/{name}": array for name, array in found.items()}


def matrix_of(arrays: dict[str, Array], shape: tuple[int, int], labels: Any) -> ObservedMatrix:
    """The matrix that `matrix_arrays` took apart."""
    found = _under(arrays, "data")
    single = found["values"].dtype == np.float32
    X = ObservedMatrix.from_triples(
        found["rows"], found["cols"], found["values"], shape, *labels, single=single
    )
    bounds = Bounds(found["low"], found["high"]) if "low" in found else None
    return replace(X, errors=found.get("errors"), bounds=bounds)


def is_plain(value: Any) -> bool:
    """Whether JSON brings a value back as it is."""
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


def _labels(labels: Array | None) -> str:
    """Labels as JSON; what is neither a text nor a number becomes a text."""
    if labels is None:
        return "null"
    plain = [x.item() if isinstance(x, np.generic) else x for x in labels]
    return json.dumps([x if isinstance(x, (str, int, float)) else str(x) for x in plain])


def _read_labels(text: str) -> Array | None:
    found = json.loads(text)
    if found is None:
        return None
    labels = np.empty(len(found), dtype=object)
    labels[:] = found
    return labels
