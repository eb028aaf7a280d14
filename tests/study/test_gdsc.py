"""Accuracy on GDSC against the numbers that the study published."""

from __future__ import annotations

import pytest

from benchmarks.gdsc import PUBLISHED, held_out_error


@pytest.mark.data
@pytest.mark.parametrize("name", PUBLISHED)
def test_held_out_error_is_no_worse_than_published(gdsc, name):
    error = held_out_error(gdsc, name)
    assert error <= 1.01 * PUBLISHED[name][0], error
