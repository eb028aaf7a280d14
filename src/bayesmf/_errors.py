"""The exceptions of the package, and the sentences that several places need."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real


class BayesmfError(ValueError):
    """Base of every error that the package raises on purpose."""


class DataError(BayesmfError):
    """The data cannot be used as they are."""


class KindError(DataError, TypeError):
    """The data are of a kind that cannot be read: what scikit-learn calls a TypeError."""


class ModelError(BayesmfError):
    """A model, a hyperparameter or an option is unknown or out of range."""


class RangeError(ModelError, FloatingPointError):
    """A chain left the range of double precision."""


class StorageError(BayesmfError, OSError):
    """A file or folder cannot be written: the disk is full, read-only, or used by another run."""


class ConvergenceWarning(UserWarning):
    """The chains of a run disagree, so that its results should not be trusted yet."""


class DataWarning(UserWarning):
    """Results are given for something of which the data say nothing."""


def nearest(name: str, options: Iterable[str]) -> str:
    """Return a hint that names the option closest to a misspelt name.

    Parameters
    ----------
    name : str
        What was asked for.
    options : iterable of str
        What exists.

    Returns
    -------
    str
        A sentence with a leading space, ready to follow an error message; empty when no
        option is close. Case is ignored in the comparison.

    Examples
    --------
    >>> nearest("ggga", ["GGG", "GGGA", "GEE"])
    " Did you mean 'GGGA'?"
    >>> nearest("poisson", ["GGG", "GGGA"])
    ''
    """
    by_folded_name = {option.casefold(): option for option in options}
    close = get_close_matches(name.casefold(), by_folded_name, n=1)
    return f" Did you mean {by_folded_name[close[0]]!r}?" if close else ""


def positive(owner: object, **values: object) -> None:
    """Refuse hyperparameters of an owner that are not positive and finite; None is not given."""
    for name, value in values.items():
        if value is not None and not (isinstance(value, Real) and 0 < float(value) < math.inf):
            raise ModelError(
                f"{type(owner).__name__}: {name} must be a positive number, got {value!r}."
            )


def whole_number(name: str, value: object, least: int = 1) -> int:
    """Return a whole number of at least ``least``; refuse anything else, also True and 2.0."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ModelError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def needs(what: str, package: str, extra: str) -> ModelError:
    """Return the error of something that needs a package which an extra installs."""
    return ModelError(f"{what} needs {package}; install it with: pip install 'bayesmf[{extra}]'")
