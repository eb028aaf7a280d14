"""The exceptions of the package, and hints for misspelt names."""

from collections.abc import Iterable
from difflib import get_close_matches


class BayesmfError(ValueError):
    """Base of every error that the package raises on purpose."""


class DataError(BayesmfError):
    """The data cannot be used as they are."""


class ModelError(BayesmfError):
    """A model, a hyperparameter or an option is unknown or out of range."""


class ConvergenceWarning(UserWarning):
    """The chains of a run disagree, so that its results should not be trusted yet."""


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
