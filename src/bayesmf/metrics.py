"""How close predictions come to the truth."""

import numpy as np
import numpy.typing as npt

from bayesmf._errors import DataError

FloatArray = npt.NDArray[np.float64]


def mse(truth: npt.ArrayLike, prediction: npt.ArrayLike) -> float:
    """Return the mean squared error.

    Parameters
    ----------
    truth, prediction : array_like
        Finite numbers of one shape; pass the entries that are known, not the missing ones.

    Examples
    --------
    >>> mse([1.0, 2.0], [1.0, 4.0])
    2.0
    """
    y, guess = _checked(truth, prediction)
    return float(np.mean((y - guess) ** 2))


def r2(truth: npt.ArrayLike, prediction: npt.ArrayLike) -> float:
    """Return the coefficient of determination, the share of the variance that is predicted.

    It is 1 for a perfect prediction, 0 for one no better than the mean of the truth, negative
    for a worse one, and NaN when the truth does not vary.

    Parameters
    ----------
    truth, prediction : array_like
        Finite numbers of one shape; pass the entries that are known, not the missing ones.

    Examples
    --------
    >>> r2([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    0.5
    """
    y, guess = _checked(truth, prediction)
    if np.ptp(y) == 0:
        return float("nan")
    return float(1 - np.sum((y - guess) ** 2) / np.sum((y - y.mean()) ** 2))


def pearson(truth: npt.ArrayLike, prediction: npt.ArrayLike) -> float:
    """Return the Pearson correlation, which is NaN when either side does not vary.

    Parameters
    ----------
    truth, prediction : array_like
        Finite numbers of one shape; pass the entries that are known, not the missing ones.

    Examples
    --------
    >>> pearson([1.0, 2.0, 3.0], [30.0, 20.0, 10.0])
    -1.0
    """
    pair = _checked(truth, prediction)
    # The range tells a constant exactly; a variance may be off zero by rounding.
    if any(np.ptp(side) == 0 for side in pair):
        return float("nan")
    y, guess = (side - side.mean() for side in pair)
    # Scaled by the largest deviation, so that squares neither overflow nor vanish.
    y, guess = y / np.abs(y).max(), guess / np.abs(guess).max()
    correlation = np.sum(y * guess) / np.sqrt(np.sum(y**2) * np.sum(guess**2))
    return float(np.clip(correlation, -1.0, 1.0))


def _checked(truth: npt.ArrayLike, prediction: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    y, guess = _finite(truth, "truth"), _finite(prediction, "prediction")
    if y.shape != guess.shape:
        raise DataError(f"truth has shape {y.shape} but prediction {guess.shape}; match them.")
    return y, guess


def _finite(numbers: npt.ArrayLike, name: str) -> FloatArray:
    try:
        array = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be an array of real numbers.") from None
    if not array.size:
        raise DataError(f"{name} is empty; pass at least one number.")
    if not (finite := np.isfinite(array)).all():
        k = int(np.argmin(finite))
        raise DataError(f"{name} is {array.flat[k]} at position {k}; pass finite numbers only.")
    return array
