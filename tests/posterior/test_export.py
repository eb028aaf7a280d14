"""Tables, trees and files of a posterior."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bayesmf import ARD, Exponential, Gaussian, Laplace, Model, Posterior, chain, sample
from bayesmf._errors import DataError
from bayesmf.model.presets import PRESETS
from bayesmf.sampler.state import Problem

xr = pytest.importorskip("xarray")
OPTIONS = {"draws": 6, "burn_in": 4, "chains": 2, "keep": "all", "random_state": 0}


def frame():
    values = np.random.default_rng(0).poisson(4.0, (9, 7)).astype(float)
    values[2, 3] = np.nan
    labels = [f"row {i}" for i in range(8)] + ["<script>"]
    return pd.DataFrame(values, index=labels, columns=[10 * j for j in range(7)])


@pytest.mark.parametrize("name", PRESETS)
def test_a_posterior_comes_back_from_its_file(tmp_path, name):
    posterior = sample(frame(), name, 2, **OPTIONS)
    posterior.save(tmp_path / "run.nc")
    again = Posterior.load(tmp_path / "run.nc")
    assert repr(again.model) == repr(posterior.model) and again.model.name == name
    assert again.settings == json.loads(json.dumps(posterior.settings))
    assert again.notes == posterior.notes and again.shape == posterior.shape
    for field in ("mean", "variance", "train_mse", "U_mean", "V_mean", "empty_rows"):
        np.testing.assert_array_equal(getattr(again, field), getattr(posterior, field))
    assert set(again.draws) == set(posterior.draws)
    for variable, draws in posterior.draws.items():
        np.testing.assert_array_equal(again.draws[variable], draws)
    assert again.row_labels.tolist() == posterior.row_labels.tolist()
    assert again.col_labels.tolist() == posterior.col_labels.tolist()
    problem = Problem.of(frame(), posterior.model, 2)
    ahead = [next(chain(problem, state=p.states[1])) for p in (posterior, again)]
    np.testing.assert_array_equal(ahead[0].U, ahead[1].U)
    assert [path.name for path in tmp_path.iterdir()] == ["run.nc"]


def test_a_custom_model_and_chosen_cells_come_back(tmp_path):
    model = Model(Gaussian(2.0, 3.0), rows=Exponential(ARD(1, 2)), cols=Laplace(0.5))
    posterior = sample(frame(), model, 2, cells=([0, 2], [1, 3]), **OPTIONS)
    posterior.save(tmp_path / "run.nc")
    again = Posterior.load(tmp_path / "run.nc")
    assert repr(again.model) == repr(posterior.model)
    np.testing.assert_array_equal(again.predict([2], [3]), posterior.predict([2], [3]))


def test_tree_and_table():
    posterior = sample(frame(), "GGGA", 2, **OPTIONS)
    tree = posterior.to_datatree()
    assert tree["/posterior/U"].dims == ("chain", "draw", "row", "component")
    assert tree["/posterior/relevance"].dims == ("chain", "draw", "component")
    assert tree["/predictions/mean"].sel(row="row 3").shape == (7,)
    table = posterior.to_dataframe()
    assert list(table.columns) == ["row", "column", "mean", "std"] and len(table) == 63
    first = table[(table["row"] == "<script>") & (table["column"] == 20)]
    assert first["mean"].item() == posterior.mean[8, 2]


def test_files_that_are_no_posteriors(tmp_path):
    with pytest.raises(DataError, match="no file"):
        Posterior.load(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("hello")
    with pytest.raises(DataError, match="damaged"):
        Posterior.load(tmp_path / "text.nc")
    xr.Dataset({"x": ("t", [1.0])}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(DataError, match="not written by"):
        Posterior.load(tmp_path / "other.nc")


def test_a_failed_save_leaves_the_old_file(tmp_path):
    posterior = sample(frame(), "GGG", 2, **OPTIONS)
    posterior.save(tmp_path / "run.nc")
    before = (tmp_path / "run.nc").read_bytes()
    broken = replace(posterior, settings={"draws": object()})
    with pytest.raises(TypeError):
        broken.save(tmp_path / "run.nc")
    assert (tmp_path / "run.nc").read_bytes() == before
