"""Tables, trees and files of a posterior."""

import json
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

from bayesmf import (
    ARD,
    BayesianImputer,
    BayesianMF,
    Exponential,
    Gaussian,
    Laplace,
    Model,
    Normal,
    ObservedMatrix,
    Posterior,
    chain,
    sample,
)
from bayesmf._errors import DataError, ModelError, StorageError
from bayesmf._files import read_arrays, write_arrays
from bayesmf.model.presets import PRESETS
from bayesmf.sampler.state import Problem
from bayesmf.splits import holdout

xr = pytest.importorskip("xarray")
OPTIONS = {"draws": 6, "burn_in": 4, "chains": 2, "keep": "all", "random_state": 0}


def frame():
    values = np.random.default_rng(0).poisson(4.0, (9, 7)).astype(float)
    values[2, 3] = np.nan
    labels = [f"row {i}" for i in range(8)] + ["<script>"]
    return pd.DataFrame(values, index=labels, columns=[10 * j for j in range(7)])


@pytest.mark.parametrize("file", ["run.nc", "run.npz"])
@pytest.mark.parametrize("name", PRESETS)
def test_a_posterior_comes_back_from_its_file(tmp_path, name, file):
    posterior = sample(frame(), name, 2, **OPTIONS)
    posterior.save(tmp_path / file)
    again = Posterior.load(tmp_path / file)
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
    assert again.fingerprint == posterior.fingerprint != ""
    assert [path.name for path in tmp_path.iterdir()] == [file]


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


def fitted(**options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 12)) + rng.normal(0, 0.5, (30, 12))
    X[rng.random(X.shape) < 0.2] = np.nan
    X = pd.DataFrame(5 + 3 * X, [f"r{i}" for i in range(30)], [f"c{j}" for j in range(12)])
    options = {"draws": 100, "burn_in": 100, "random_state": 0, **options}
    return BayesianMF("GGG", 2, **options).fit(X), X


def test_the_tree_has_what_arviz_asks_about_data():
    mf, X = fitted()
    tree = mf.to_datatree(entries=50)
    observed, constant = tree["/observed_data/X"], tree["/constant_data"]
    i, j = (constant[f"{side}_position"].to_numpy() for side in ("row", "column"))
    assert observed.shape == (50,)
    np.testing.assert_array_equal(observed, X.to_numpy()[i, j])
    assert observed["row"].to_numpy().tolist() == [f"r{k}" for k in i]
    given = tree["/log_likelihood/X"]
    assert given.dims == ("chain", "draw", "entry") and given.shape == (2, 100, 50)
    mixed = np.log(np.mean(np.exp(given), axis=(0, 1)))
    np.testing.assert_allclose(mixed, mf.log_density(i, j, observed))
    drawn = tree["/posterior_predictive/X"]
    mean, std = mf.predict(i, j, return_std=True)
    assert np.abs((drawn.mean(("chain", "draw")) - mean) / std).max() < 5 / 200**0.5
    assert mf.to_datatree()["/observed_data/X"].size == X.notna().to_numpy().sum()
    assert "/log_likelihood" not in mf.posterior_.to_datatree().groups


def test_a_tree_of_known_errors_and_of_entries_that_are_intervals():
    X = frame().fillna(1.0)
    errors = np.full(X.shape, 0.5)
    mf = BayesianMF("GGG", 1, draws=20, burn_in=5, random_state=0).fit(X, errors=errors)
    tree = mf.to_datatree()
    np.testing.assert_allclose(tree["/constant_data/error"], 0.5)
    rounded = ObservedMatrix.of(X).rounded()
    posterior = sample(rounded, "CGGA", 1, draws=5, keep="all", random_state=0)
    with pytest.raises(DataError, match="none is exact"):
        posterior.to_datatree(rounded)
    with pytest.raises(ModelError, match="entries must be a whole number"):
        mf.to_datatree(entries=0)


def test_functions_of_arviz_run_on_the_tree():
    stats = pytest.importorskip("arviz_stats")
    plots = pytest.importorskip("arviz_plots")
    mf, _ = fitted()
    tree = mf.to_datatree(entries=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about some k-hat
        found = stats.loo(tree)
        assert found.elpd / 100 == pytest.approx(mf.loo(entries=100).log_density, abs=0.01)
    table = stats.summary(tree, var_names=["noise_precision"])
    assert float(table["mean"].iloc[0]) == pytest.approx(
        mf.posterior_.noise_precision.mean(), rel=0.01
    )
    plots.plot_ppc_dist(tree, num_samples=5, backend="none")


def test_left_out_entries_have_the_density_that_held_out_ones_have():
    mf, X = fitted(chains=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        loo = mf.loo()
    assert loo.pointwise.shape == loo.khat.shape == loo.cells[0].shape
    train, test = holdout(ObservedMatrix.of(X), 0.1, 0)
    less = BayesianMF("GGG", 2, draws=100, burn_in=100, random_state=0).fit(train)
    places = {cell: k for k, cell in enumerate(zip(*loo.cells, strict=True))}
    same = [places[cell] for cell in zip(test[0], test[1], strict=True)]
    held = less.log_density(*test)
    off = loo.pointwise[same] - held
    assert abs(off.mean()) < 4 * off.std() / off.size**0.5 + 0.1
    seen = mf.log_density(*test)
    assert (seen > loo.pointwise[same]).all()
    assert f"{loo.log_density:.4f}" in str(loo)


def test_weights_that_are_not_reliable_are_told():
    """A value that alone decides its own row."""
    X = np.random.default_rng(0).normal(size=(12, 8))
    posterior = sample(X, "GGG", 6, draws=200, keep="all", random_state=0)
    with pytest.warns(UserWarning, match="k-hat exceeds") as told:
        found = posterior.loo(X)
    assert found.unreliable > 0.01 and found.advice == str(told[0].message)
    assert found.advice in str(found)


def test_files_that_are_no_posteriors(tmp_path):
    with pytest.raises(DataError, match="no file"):
        Posterior.load(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("hello")
    with pytest.raises(DataError, match="damaged"):
        Posterior.load(tmp_path / "text.nc")
    xr.Dataset({"x": ("t", [1.0])}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(DataError, match="not written by"):
        Posterior.load(tmp_path / "other.nc")
    np.savez(tmp_path / "other.npz", x=[1.0])
    with pytest.raises(DataError, match="not written by"):
        Posterior.load(tmp_path / "other.npz")
    with pytest.raises(ModelError, match=r"must end in .npz or .nc"):
        sample(frame(), "GGG", 2, **OPTIONS).save(tmp_path / "run.pkl")


def test_variables_that_models_had_once_are_left_out(tmp_path):
    posterior = sample(frame(), "GHH", 2, **OPTIONS)
    old = dict(posterior.draws, **{"rows.local_rate": posterior.draws["rows.local"]})
    states = [
        replace(state, rows=dict(state.rows, local_rate=state.rows["local"]))
        for state in posterior.states
    ]
    replace(posterior, draws=old, states=tuple(states)).save(tmp_path / "run.npz")
    again = Posterior.load(tmp_path / "run.npz")
    assert set(again.draws) == set(posterior.draws)
    assert set(again.states[0].rows) == set(posterior.states[0].rows)


def test_a_failed_save_leaves_the_old_file(tmp_path):
    posterior = sample(frame(), "GGG", 2, **OPTIONS)
    posterior.save(tmp_path / "run.nc")
    before = (tmp_path / "run.nc").read_bytes()
    broken = replace(posterior, settings={"draws": object()})
    with pytest.raises(TypeError):
        broken.save(tmp_path / "run.nc")
    assert (tmp_path / "run.nc").read_bytes() == before
    with pytest.raises(StorageError, match="its folder does not exist"):
        posterior.save(tmp_path / "none" / "run.npz")


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [("n_components", 7, "U_mean"), ("shape", "[7, 9]", "mean"), ("row_labels", '["a"]', "labels")],
)
def test_attributes_that_contradict_the_draws_are_refused(tmp_path, name, value, named):
    sample(frame(), "GGG", 3, **OPTIONS).save(tmp_path / "run.npz")
    arrays, about = read_arrays(tmp_path / "run.npz")
    write_arrays(tmp_path / "run.npz", arrays, {**about, name: value})
    with pytest.raises(DataError, match=f"contradicts its numbers: .*{named}"):
        Posterior.load(tmp_path / "run.npz")


def test_trees_that_were_changed_are_refused(tmp_path):
    sample(frame(), "GGG", 3, **OPTIONS).save(tmp_path / "run.nc")
    with xr.open_datatree(tmp_path / "run.nc", engine="h5netcdf") as tree:
        tree.load()
    tree["/posterior/U"][0, 0, 0, 0] += 1e-9
    tree.to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(DataError, match="the checksum of 'draws/U'"):
        Posterior.load(tmp_path / "other.nc")
    tree.attrs["n_components"] = 7
    tree.to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(DataError, match="the checksum of its attributes"):
        Posterior.load(tmp_path / "other.nc")


def test_files_of_the_first_format_load(tmp_path):
    posterior = sample(frame(), "GGGA", 2, **OPTIONS)
    posterior.save(tmp_path / "run.nc")
    with xr.open_datatree(tmp_path / "run.nc", engine="h5netcdf") as tree:
        tree.load()
    for number, text in enumerate(json.loads(tree.attrs.pop("states"))):
        tree[f"/state_{number}"].attrs["numbers"] = text
    for name in ("checksums", "digest", "fingerprint"):
        del tree.attrs[name]
    tree.attrs["format"] = 1
    tree.to_netcdf(tmp_path / "old.nc", engine="h5netcdf")
    again = Posterior.load(tmp_path / "old.nc")
    np.testing.assert_array_equal(again.draws["U"], posterior.draws["U"])
    np.testing.assert_array_equal(again.states[1].V, posterior.states[1].V)
    assert again.fingerprint == ""


# --- Parts of one's own -------------------------------------------------------------------------


@dataclass(frozen=True)
class Wide(Normal):
    """A prior of one's own that can be imported."""


@pytest.mark.parametrize("file", ["run.nc", "run.npz"])
def test_priors_of_ones_own_come_back(tmp_path, file):
    @dataclass(frozen=True)
    class Local(Normal):
        """One that cannot be imported."""

    for prior in (Wide(0.5), Local(0.5)):
        model = Model(Gaussian(), rows=prior, cols=Laplace(0.5))
        sample(frame(), model, 2, **OPTIONS).save(tmp_path / file)
        if isinstance(prior, Local):
            with pytest.raises(DataError, match=r"load with parts=\[Local\]"):
                Posterior.load(tmp_path / file)
        again = Posterior.load(tmp_path / file, parts=[Local])
        assert type(again.model.rows) is type(prior) and repr(again.model) == repr(model)


def test_other_data_of_the_same_shape_are_refused(tmp_path):
    posterior = sample(frame(), "GGG", 2, **{**OPTIONS, "draws": 20})
    posterior.save(tmp_path / "run.npz")
    again = Posterior.load(tmp_path / "run.npz")
    BayesianMF.from_posterior(again, frame())
    other = frame()
    other.iloc[0, 0] += 1.0
    with pytest.raises(DataError, match="other data of the same shape"):
        BayesianMF.from_posterior(again, other)
    fitted = BayesianMF("GGG", 2, draws=5, chains=1, random_state=0).fit(frame())
    known = {"center": "auto", "scale": "auto"}
    BayesianMF.from_posterior(fitted.posterior_, frame(), **known)
    with pytest.raises(DataError, match="other data of the same shape"):
        BayesianMF.from_posterior(fitted.posterior_, other, **known)


@pytest.mark.parametrize("kind", [BayesianMF, BayesianImputer])
def test_estimators_come_back_from_their_files(tmp_path, kind):
    options = {"draws": 5, "burn_in": 2, "random_state": 0}
    fitted = kind("GGG", [1, 2], **options).fit(frame(), errors=np.ones((9, 7)))
    fitted.save(tmp_path / "mf.npz")
    again = kind.load(tmp_path / "mf.npz")
    assert again.get_params() == fitted.get_params() and again.notes_ == fitted.notes_
    assert again.cv_errors_ == fitted.cv_errors_ and again.n_components_ == fitted.n_components_
    new = frame().iloc[:3]
    np.testing.assert_array_equal(again.transform(new), fitted.transform(new))
    np.testing.assert_array_equal(again._predictive().std(), fitted._predictive().std())
    Posterior.load(tmp_path / "mf.npz")
    fitted.posterior_.save(tmp_path / "posterior.npz")
    with pytest.raises(DataError, match="from_posterior"):
        kind.load(tmp_path / "posterior.npz")
    with pytest.raises(ModelError, match=r"must end in .npz"):
        fitted.save(tmp_path / "mf.nc")
