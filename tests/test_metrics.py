import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bayesmf._errors import DataError
from bayesmf.metrics import mse, pearson, r2

vectors = hnp.arrays(np.float64, (2, 8), elements=st.integers(-50, 50).map(float))


@settings(deadline=None)
@given(vectors)
def test_against_definitions(pair):
    truth, prediction = pair
    assert mse(truth, prediction) == pytest.approx(((truth - prediction) ** 2).mean())
    if np.ptp(truth) > 0:
        assert r2(truth, prediction) == pytest.approx(1 - mse(truth, prediction) / truth.var())
        assert r2(truth, truth) == 1.0
    if np.ptp(truth) > 0 and np.ptp(prediction) > 0:
        expected = np.corrcoef(truth, prediction)[0, 1]
        assert pearson(truth, prediction) == pytest.approx(expected, abs=1e-12)


def test_known_values():
    assert mse([1.0, 2.0, 3.0], [1.0, 2.0, 6.0]) == 3.0
    assert r2([1.0, 2.0, 3.0], [2.0, 2.0, 2.0]) == 0.0
    assert pearson([[1, 2], [3, 4]], [[2, 4], [6, 8]]) == 1.0
    assert isinstance(mse([1], [2]), float)


def test_nothing_to_explain():
    assert np.isnan(r2([0.1] * 3, [0.1, 0.2, 0.3]))
    assert np.isnan(pearson([0.1, 0.2, 0.3], [0.1] * 3))
    assert np.isnan(pearson([1.0], [1.0]))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_correlation_at_extreme_scales(scale):
    x = np.array([1.0, 2.0, 4.0])
    assert pearson(scale * x, x) == pytest.approx(1.0)


@pytest.mark.parametrize("metric", [mse, r2, pearson])
@pytest.mark.parametrize(
    ("truth", "prediction", "message"),
    [
        ([1.0, 2.0], [1.0], r"truth has shape \(2,\) but prediction \(1,\)"),
        ([], [], "truth is empty"),
        ([1.0, np.nan], [1.0, 2.0], "truth is nan at position 1"),
        ([1.0, 2.0], [np.inf, 2.0], "prediction is inf at position 0"),
        (["a"], [1.0], "truth must be an array of real numbers"),
        ([1j], [1.0], "truth must be an array of real numbers"),
        ([1.0], [[1.0], [2.0, 3.0]], "prediction must be an array of real numbers"),
    ],
)
def test_errors(metric, truth, prediction, message):
    with pytest.raises(DataError, match=message):
        metric(truth, prediction)
