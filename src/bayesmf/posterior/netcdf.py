"""Posteriors in NetCDF files: the tree that ArviZ reads, and beside it what it has no place for.

After the end of the NetCDF file, where its readers do not look, follows a checksum of all of it: a
damaged one can make them run for ever. One of each array is in the attributes, in case that others
write to the file.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmf._errors import DataError, needs
from bayesmf._files import array_digest, claim, compare_checksums, json_digest, replacing
from bayesmf.posterior.files import arrays_of
from bayesmf.streams import Array

if TYPE_CHECKING:
    from bayesmf.posterior.posterior import Posterior

# Arrays of `files.arrays_of` that ArviZ has no place for.
_DIMS = {
    "U_mean": ("chain", "row", "component"), "V_mean": ("chain", "column", "component"),
    "empty_rows": ("row",), "empty_cols": ("column",), "cell_0": ("cell",), "cell_1": ("cell",),
}  # fmt: skip
# What stands before the names of the arrays in a node; its own name elsewhere.
_NODES = {"posterior": "draws/", "predictions": "", "sample_stats": "", "run": ""}
_PADDING = bytes(4096)  # so that a lost block at the end of the file loses the checksum alone
_BLOCK = 2**20  # bytes that are read at once
_HEADER = 2**13  # bytes about an array in a file, at most
_MARK = b"bayesmf sha256 "
_OLD_STATE = "numbers"  # attribute of a state in format 1


def save_netcdf(posterior: Posterior, path: str | Path) -> None:
    """Write a posterior to a NetCDF file, whole or not at all."""
    xr = _xarray("save")
    tree = posterior.to_datatree()
    arrays = arrays_of(posterior)
    run = {name: (dims, arrays[name]) for name, dims in _DIMS.items() if name in arrays}
    tree["/run"] = xr.DataTree(xr.Dataset(run))
    for node in sorted({k.partition("/")[0] for k in arrays if "/" in k} - {"draws"}):
        own = {k.partition("/")[2]: v for k, v in arrays.items() if k.startswith(f"{node}/")}
        data = {k: (tuple(f"{k}_{axis}" for axis in range(v.ndim)), v) for k, v in own.items()}
        tree[f"/{node}"] = xr.DataTree(xr.Dataset(data))
    sums = {name: array_digest(array, name) for name, array in arrays.items()}
    tree.attrs["checksums"] = json.dumps(sums)
    tree.attrs["digest"] = json_digest(tree.attrs)
    parts = [part for node in tree.subtree for part in node.variables.values()]
    with replacing(path) as partial:
        # What HDF5 could not write it tries again when it is collected, and ends the process.
        claim(partial, sum(part.nbytes + _HEADER for part in parts))
        tree.to_netcdf(partial, engine="h5netcdf")
        seal = _PADDING + _MARK + _file_digest(partial, partial.stat().st_size)
        with partial.open("ab") as file:
            file.write(seal)


def read_netcdf(path: str | Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays by name and plain data about them; files of format 1 have no checksums."""
    xr = _xarray("load")
    try:
        _check_seal(Path(path))
        with xr.open_datatree(path, engine="h5netcdf") as tree:
            tree = tree.load()
        about = {k: v.item() if isinstance(v, np.generic) else v for k, v in tree.attrs.items()}
        arrays, numbers = _flat(tree)
        digest, sums = about.pop("digest", None), about.get("checksums")
        if about.get("format", 1) == 1:
            return arrays, {"states": json.dumps(numbers), **about}
        if json_digest(about) != digest:
            raise ValueError("the checksum of its attributes is not that which was written")
        found = {name: array_digest(array, name) for name, array in arrays.items()}
        compare_checksums(json.loads(str(sums)), found)
    except Exception as error:  # whatever the readers of HDF5 and NetCDF may raise
        what = str(error).partition("\n")[0].rstrip(".")
        raise DataError(
            f"{path} is not a NetCDF file, or is damaged ({what}); restore it, or make it again."
        ) from None
    return arrays, about


def _file_digest(path: Path, size: int) -> bytes:
    """Hash of the first bytes of a file, as text."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for start in range(0, size, _BLOCK):
            digest.update(file.read(min(_BLOCK, size - start)))
    return digest.hexdigest().encode()


def _check_seal(path: Path) -> None:
    """Compare a file with the checksum at its end, if it has one."""
    end = len(_MARK) + 64
    size = path.stat().st_size - end
    with path.open("rb") as file:
        file.seek(max(0, size))
        seal = file.read()
    if seal.startswith(_MARK):
        size -= len(_PADDING)
        if seal != _MARK + _file_digest(path, size):
            raise ValueError("its checksum is not that which was written")


def _flat(tree: Any) -> tuple[dict[str, Array], list[str]]:
    """Arrays of a tree under the names of `files.arrays_of`; numbers of states in format 1."""
    arrays: dict[str, Array] = {}
    numbers: list[str] = []
    for node, part in sorted(tree.children.items()):
        prefix = _NODES.get(node, f"{node}/")
        arrays |= {f"{prefix}{name}": v.to_numpy() for name, v in part.data_vars.items()}
        if _OLD_STATE in part.attrs:
            numbers.append(part.attrs[_OLD_STATE])
    return arrays, numbers


def _xarray(what: str) -> Any:
    try:
        import h5netcdf  # noqa: F401
        import h5py  # noqa: F401
        import xarray
    except ImportError:
        raise needs(f"{what} of NetCDF files", "h5netcdf", "arviz") from None
    return xarray
