"""Dask clusters: a connection that says in one sentence what became of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from bayesmf._errors import ModelError, needs


@contextmanager
def connected(address: str, **options: Any) -> Iterator[Any]:
    """A client of the cluster at an address; a scheduler that is lost meanwhile is named."""
    try:
        from distributed import Client
    except ImportError:
        raise needs("--dask", "Dask", "dask") from None
    if not re.search(r"://|:\d+$", address):
        raise ModelError(
            f"--dask must be the address of a scheduler, such as tcp://10.0.0.1:8786, got "
            f"{address!r}."
        )
    try:
        client = Client(address, timeout="30s", **options)
    except (OSError, ValueError) as error:
        raise ModelError(f"--dask {address}: no scheduler answers there ({error}).") from None
    with client:
        try:
            yield client
        except (Exception, CancelledError) as error:
            if client.status == "running":
                raise
            raise lost(address) from error


def lost(address: str) -> ModelError:
    """The error of a scheduler that went away."""
    return ModelError(
        f"--dask {address}: the scheduler does not answer any more; start it again, and repeat the "
        "call: what was stored is not done again."
    )
