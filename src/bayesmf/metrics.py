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


def standard_error(values: npt.ArrayLike) -> float:
    """Standard error of the mean of independent values; NaN if there are fewer than two.

    Examples
    --------
    >>> standard_error([1.0, 2.0, 3.0, 4.0])
    0.6454972243679028
    """
    x = np.asarray(values, dtype=np.float64)
    if x.size < 2 or not np.isfinite(x).all():
        return float("nan")
    return float(x.std(ddof=1) / x.size**0.5)


def coverage(truth: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike) -> float:
    """Return the share of the truth that lies between the ends of its intervals, ends included.

    Parameters
    ----------
    truth, lower, upper : array_like
        Finite numbers of one shape.

    Examples
    --------
    >>> coverage([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0], [3.0, 3.0, 3.0, 3.0])
    0.75
    """
    y, low = _checked(truth, lower)
    _, high = _checked(truth, upper)
    return float(np.mean((low <= y) & (y <= high)))


def crps(truth: npt.ArrayLike, draws: npt.ArrayLike) -> float:
    """Return the mean continuous ranked probability score of predictive draws; less is better.

    It is in the units of the data, and the mean absolute error if there is no spread. The estimate
    is unbiased for any number of draws.

    Parameters
    ----------
    truth : array_like
        Finite numbers, (n,).
    draws : array_like
        Values of the predictive distribution of each, (draws, n), at least two of them.

    Examples
    --------
    >>> crps([0.0], [[-1.0], [1.0]])
    0.0
    """
    y, x = _against_draws(truth, draws)
    D = len(x)
    ordered = np.sort(x, axis=0)
    weights = 2 * np.arange(1, D + 1) - D - 1
    gap = (weights[:, None] * ordered).sum(axis=0) / (D * (D - 1))  # half of E|X - X'|
    return float(np.mean(np.abs(x - y).mean(axis=0) - gap))


def pit(truth: npt.ArrayLike, draws: npt.ArrayLike, random_state: int | None = None) -> FloatArray:
    """Return the probability integral transforms, uniform on (0, 1) for calibrated predictions.

    Each is the rank of a truth among its predictive draws, ties broken at random, so that counts
    are uniform too.

    Parameters
    ----------
    truth : array_like
        Finite numbers, (n,).
    draws : array_like
        Values of the predictive distribution of each, (draws, n), at least two of them.
    random_state : int, optional
        Seed of the random part; 0 by default, so that the same input gives the same output.

    Examples
    --------
    >>> bool(0.5 < pit([0.9], [[0.1], [0.2], [0.3]])[0] <= 1.0)
    True
    """
    y, x = _against_draws(truth, draws)
    below, equal = (x < y).sum(axis=0), (x == y).sum(axis=0)
    u = np.random.default_rng(random_state or 0).random(y.shape)
    return (below + u * (equal + 1)) / (len(x) + 1)


def _against_draws(truth: npt.ArrayLike, draws: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    y, x = _finite(truth, "truth"), _finite(draws, "draws")
    if x.ndim != y.ndim + 1 or x.shape[1:] != y.shape or len(x) < 2:
        raise DataError(
            f"draws must have shape (draws, {', '.join(map(str, y.shape))}) with at least two "
            f"draws for a truth of shape {y.shape}; got {x.shape}."
        )
    return y, x


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
