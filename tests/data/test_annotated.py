"""AnnData in and out: layers, names, zeros that are not stored, files."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from bayesmf import BayesianMF, DataError, ModelError, ObservedMatrix, from_anndata, read_matrix

pytest.importorskip("anndata")
from anndata import AnnData, read_h5ad

from bayesmf.cli import main


def counts():
    X = np.random.default_rng(0).poisson(1.0, (9, 6)).astype(float)
    X[0, 0] = 0.0
    return X


def annotated(X):
    data = AnnData(X)
    data.obs_names = [f"cell {i}" for i in range(X.shape[0])]
    data.var_names = [f"gene {j}" for j in range(X.shape[1])]
    return data


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_zeros_that_are_not_stored_are_values_unless_told_otherwise(kind):
    X = counts()
    data = annotated(kind(X))
    found = from_anndata(data)
    np.testing.assert_array_equal(found.to_array(), X)
    assert found.row_labels[3] == "cell 3" and found.col_labels[5] == "gene 5"
    missing = from_anndata(data, zeros="missing")
    np.testing.assert_array_equal(missing.to_array(), np.where(X == 0, np.nan, X))
    np.testing.assert_array_equal(ObservedMatrix.of(data).to_array(), X)


def test_layers_and_gaps():
    data = annotated(counts())
    data.layers["log"] = np.log(counts() + 1)
    data.layers["log"][2, 3] = np.nan
    found = from_anndata(data, "log")
    assert found.n_observed == 53 and np.isnan(found.to_array()[2, 3])
    with pytest.raises(DataError, match=r"no layer 'logs'; layers: log.* Did you mean 'log'"):
        from_anndata(data, "logs")
    with pytest.raises(ModelError, match="zeros must be"):
        from_anndata(data, zeros="gone")
    with pytest.raises(DataError, match="not ndarray"):
        from_anndata(counts())
    with pytest.raises(DataError, match="pass only X"):
        ObservedMatrix.of(data, mask=counts() > 0)


@pytest.mark.filterwarnings("ignore:.*infer_string")  # pandas 3 about anndata's own writing
def test_a_file_is_read_and_results_come_back_through_one(tmp_path):
    X = counts()
    X[1, 2] = X[4, 4] = np.nan
    annotated(X).write_h5ad(tmp_path / "data.h5ad")
    matrix = read_matrix(tmp_path / "data.h5ad")
    np.testing.assert_array_equal(matrix.to_array(), X)
    data = read_h5ad(tmp_path / "data.h5ad")
    mf = BayesianMF("GGG", 2, draws=20, burn_in=5, random_state=0).fit(data)
    assert mf.to_anndata(data) is data
    data.write_h5ad(tmp_path / "filled.h5ad")
    again = read_h5ad(tmp_path / "filled.h5ad")
    mean, std = mf.predict(return_std=True)
    np.testing.assert_allclose(again.layers["bayesmf_completed"], np.where(np.isnan(X), mean, X))
    np.testing.assert_allclose(again.layers["bayesmf_sd"], std)
    np.testing.assert_allclose(again.varm["bayesmf"], mf.components_.T)
    assert again.obsm["X_bayesmf"].shape == (9, 2) and again.uns["bayesmf"]["model"] == "GGG"
    assert mf.to_anndata().obs_names.tolist() == data.obs_names.tolist()
    with pytest.raises(DataError, match="not those of the fit"):
        mf.to_anndata(data[::-1].copy())


def test_files_that_are_none(tmp_path):
    (tmp_path / "text.h5ad").write_text("hello")
    with pytest.raises(DataError, match=r"text.h5ad: The file is no .h5ad file"):
        read_matrix(tmp_path / "text.h5ad")
    with pytest.raises(DataError, match="no file"):
        from_anndata(tmp_path / "none.h5ad")


@pytest.mark.filterwarnings("ignore:.*infer_string", "ignore::bayesmf.ConvergenceWarning")
def test_a_layer_on_the_command_line(tmp_path, monkeypatch, capsys):
    """Of `fit`, and of `report` and `predict`, which find it in what `fit` wrote; of `compare`."""
    data = annotated(counts())
    data.layers["log"] = np.log(counts() + 1)
    data.layers["log"][2, 3] = np.nan
    data.write_h5ad(tmp_path / "cells.h5ad")
    monkeypatch.chdir(tmp_path)
    quick = ["--model", "GGG", "--rank", "1", "--draws", "20", "--burn-in", "5", "--seed", "0"]
    assert main(["fit", "cells.h5ad", "--layer", "log", *quick, "--quiet"]) == 0
    completed = read_matrix("cells-fit/completed.csv").to_array()
    seen = np.isfinite(data.layers["log"])
    np.testing.assert_allclose(completed[seen], data.layers["log"][seen])
    assert main(["report", "cells-fit", "--quiet"]) == 0
    (tmp_path / "new.csv").write_text("id," + ",".join(data.var_names) + "\nnew,1,0,1,,1,0\n")
    assert main(["predict", "cells-fit", "--rows", "new.csv", "--output", "new"]) == 0
    assert read_matrix("new/predicted.csv").shape == (1, 6)
    compare = ["compare", "cells.h5ad", "--models", "GGG,row-average", "--ranks", "1"]
    assert main([*compare, "--budget", "quick", "--layer", "log", "--no-report"]) == 0
    assert "--layer log" in (tmp_path / "cells-compare" / "run.json").read_text()
    capsys.readouterr()
    assert main(["fit", "cells.h5ad", "--layer", "logs", *quick, "--output", "other"]) == 2
    assert "no layer 'logs'; layers: log" in capsys.readouterr().err
    assert main(["fit", "new.csv", "--layer", "log", *quick]) == 2
    assert "--layer" in capsys.readouterr().err
