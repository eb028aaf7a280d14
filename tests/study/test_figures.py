"""Figures from a small made-up store: files, what they contain, failures, the same bytes again."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import integrate

from bayesmf import ModelError, preset
from bayesmf.model.presets import PAPER, hyperparameters
from bayesmf.study.experiments.noise import PLOT as NOISE
from bayesmf.study.figures import curves, inputs, style
from bayesmf.study.published import errors
from bayesmf.study.reproduce import draw_results, expand
from bayesmf.study.tables import cells
from bayesmf.study.tasks import Task, models
from bayesmf.tasks.store import Store
from tests.study.small import STUDY

pytest.importorskip("matplotlib", reason="figures need matplotlib")

SOME = ("GGG", "GGGU", "GEE", "GEG", "PGG", "NMF", "row_average")
LEVEL = dict(zip(SOME, (700, 710, 720, 705, 760, 755, 900), strict=True))


def some_tasks(experiment: str, dataset: str, protocol: str = "paper", repeats: int = 2):
    found = expand(experiment, protocol, "full", dataset)
    return [task for task in found if task.model in SOME and task.repeat < repeats]


def result(task: Task) -> dict:
    rng = np.random.default_rng(int(task.key[:8], 16))
    level = LEVEL[task.model] * (1 + 0.02 * rng.random())
    if task.experiment == "convergence":
        falling = level * (1 + 20 * np.exp(-np.arange(60.0)))
        one = task.model == "row_average"
        return {"train_mse": falling.tolist(), "elapsed": np.arange(1, 2 if one else 61).tolist()}
    if task.experiment == "runtime":
        return {"seconds": 1e-3 * (task.rank or 1), "sweeps": 10}
    return {"mse": level, "score": 2000 / level}


def fill(folder: Path, tasks: list[Task], changed=lambda task: None) -> Store:
    store = Store(folder)
    for task in tasks:
        store.add(task, changed(task) or result(task), 1.0)
    return store


def draw_all(folder: Path, store: Store, tasks: list[Task]) -> list[Path]:
    return draw_results(folder, cells(store.records(tasks)))


def curve(plot: curves.Plot, found: list[tuple[Task, dict]]) -> style.Curve:
    return curves.curve(plot, cells((t, {"result": r, "seconds": 1.0}) for t, r in found))


def texts(path: Path) -> str:
    root = ElementTree.parse(path).getroot()
    return " ".join("".join(part.itertext()) for part in root.iter() if part.tag.endswith("text"))


def names(path: Path) -> list[str]:
    root = ElementTree.parse(path).getroot()
    return [part.get("id", "") for part in root.iter() if part.get("id")]


def count(path: Path, words: str) -> int:
    return sum(words in name for name in names(path))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> tuple[Path, list[Path], Store, list[Task]]:
    root = tmp_path_factory.mktemp("drawn")
    tasks = [task for name in STUDY for task in some_tasks(name, "GDSC")]
    store = fill(root / "store", tasks)
    return root, draw_all(root / "figures", store, tasks), store, tasks


def test_every_experiment_is_drawn_as_svg_and_png(drawn):
    root, written, _, _ = drawn
    expected = {
        "convergence_GDSC", "runtime", "cross_validation", "noise_GDSC_sameK",
        "noise_GDSC_perModelK", "sparsity_GDSC_sameK", "sparsity_GDSC_perModelK",
        "model_selection_GDSC",
    }  # fmt: skip
    found = sorted(str(path.relative_to(root / "figures")) for path in written)
    assert found == sorted(f"paper/{name}.{kind}" for name in expected for kind in ("svg", "png"))
    for path in written:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        else:
            assert "GDSC" in texts(path) and "protocol: paper" in texts(path)
    assert sorted(set((root / "figures").rglob("*.*"))) == sorted(written)  # nothing half written


def test_a_redraw_gives_the_same_bytes(drawn, tmp_path):
    root, written, store, tasks = drawn
    few = [task for task in tasks if task.experiment in ("convergence", "sparsity")]
    for path in draw_all(tmp_path, store, few):
        assert path.read_bytes() == (root / "figures" / path.relative_to(tmp_path)).read_bytes()
    assert b"date" not in written[0].read_bytes()


def test_things_in_a_file_have_different_names(drawn):
    for path in drawn[1]:
        if path.suffix == ".svg":
            assert max(Counter(names(path)).values()) == 1, path


def test_published_results_lie_beside_ours(drawn):
    folder = drawn[0] / "figures" / "paper"
    for name in ("convergence_GDSC", "runtime", "noise_GDSC_sameK", "sparsity_GDSC_sameK"):
        path = folder / f"{name}.svg"
        assert count(path, "-ours-GEE") and count(path, "panel-0-published-GEE"), name
        assert "published" in texts(path)
    assert "published" in texts(folder / "cross_validation.svg")


def test_published_noise_is_the_ratio_to_our_variance():
    tasks = some_tasks("noise", "GDSC")
    mine = [(t, result(t)) for t in tasks if (t.model, t.variant) == ("GEE", "sameK")]
    ours = curve(NOISE, mine)
    study = [errors()["noise", "GDSC", "sameK", "GEE", s].mean for s in ours.x]
    np.testing.assert_allclose(ours.study, 2000 / np.array(study))
    sound = [(t, {"mse": 700.0, "score": 3.0}) for t in some_tasks("noise", "GDSC", "sound")]
    assert curve(NOISE, sound).study.size == 0  # whose noise is another one


def test_means_and_standard_errors_of_a_curve():
    tasks = [t for t in some_tasks("sparsity", "GDSC", repeats=3) if t.model == "GGG"]
    tasks = [t for t in tasks if t.variant == "sameK" and t.setting == 0.3]
    found = [(t, {"mse": v}) for t, v in zip(tasks, (1.0, 2.0, 6.0), strict=True)]
    ours = curve(curves.Plot("fraction unobserved"), found)
    assert ours.mean == [3.0] and not ours.failed.any()
    np.testing.assert_allclose(ours.error, np.std([1, 2, 6], ddof=1) / 3**0.5)


def test_failures_and_missing_models_are_survived_and_shown(tmp_path):
    def changed(task: Task) -> dict | None:
        gone = {"mse": None, "failed": "The predictions are not finite."}
        one = task.model == "GEE" and task.repeat == 0
        return gone if task.model == "GGGU" or one else None

    tasks = [task for name in STUDY for task in some_tasks(name, "CTRP", "sound")]
    kept = [task for task in tasks if task.model != "PGG"]
    store = fill(tmp_path / "store", kept, changed)
    written = draw_all(tmp_path / "figures", store, tasks)
    assert len(written) == 12
    folder = tmp_path / "figures" / "sound"
    assert "failed: GGGU" in texts(folder / "convergence_CTRP.svg")
    assert "failed: GEE" not in texts(folder / "convergence_CTRP.svg")
    assert "failed: GGGU, GEE" in texts(folder / "runtime.svg")  # which has one repeat
    for name in ("sparsity_CTRP_sameK", "noise_CTRP_sameK", "cross_validation"):
        path = folder / f"{name}.svg"
        assert count(path, "failed-GEE") and not count(path, "failed-GGG")
        assert count(path, "beyond-ours-GGGU") and "beyond the axis" in texts(path)
        assert "some repeats failed" in texts(path)
        assert not count(path, "-PGG")


def test_nothing_but_failures_is_drawn_too(tmp_path):
    tasks = [t for name in STUDY for t in some_tasks(name, "CTRP") if t.model == "GGG"]
    store = fill(tmp_path / "store", tasks, lambda task: {"mse": None, "failed": "no"})
    assert len(draw_all(tmp_path / "figures", store, tasks)) == 12


def test_no_records_make_no_figures(tmp_path):
    assert draw_all(tmp_path / "out", Store(tmp_path), some_tasks("noise", "GDSC")) == []
    assert not (tmp_path / "out").exists()


def test_points_beyond_the_range_have_their_triangles(tmp_path):
    tasks = some_tasks("sparsity", "MovieLens_1M")
    tasks = [task for task in tasks if task.model in ("GGG", "GEE", "PGG", "NMF")]
    far = {("NMF", 0.9), ("PGG", 0.9), ("NMF", 0.7)}
    store = fill(
        tmp_path / "store", tasks,
        lambda task: {"mse": 1e8} if (task.model, task.setting) in far else None,
    )  # fmt: skip
    path = draw_all(tmp_path / "figures", store, tasks)[0]
    assert count(path, "panel-0-beyond-ours-NMF") == 2
    assert count(path, "panel-0-beyond-ours-PGG") == 1
    assert not count(path, "beyond-ours-GGG") and not count(path, "beyond-published")


def test_triangles_at_one_place_do_not_hide_each_other():
    with style.drawing():
        _, (ax,) = style.panels(1, 1, 8, 6)
        ax.set_ylim(0, 1)
        taken: style.Taken = {}
        for model in ("GGG", "GEE"):
            x, y = np.array([1.0, 2.0]), np.array([5.0, -3.0])
            assert style.mark_beyond(ax, model, x, y, taken)
            assert style.mark_beyond(ax, model, x, y, taken, published=True)
    heights = {(line.get_gid(), line.get_marker(), line.get_ydata()[0]) for line in ax.lines}
    step = style.STEP
    assert {h for _, m, h in heights if m == "^"} == {1, 1 - step}
    assert {h for _, m, h in heights if m == "v"} == {0, step}
    assert len(ax.lines) == 8


def test_limits_are_readable():
    inside = list(np.linspace(10, 12, 50))
    assert style.limits(inside) == pytest.approx((9.9, 12.1))
    low, high = style.limits([*inside, 1e9, np.inf, np.nan])
    assert 9 < low < 10 and 12 < high < 16
    assert style.limits([]) == (0.0, 1.0)
    low, high = style.limits([5.0])
    assert low < 5 < high
    low, high = style.limits([1.0, 10.0, 100.0, -1.0], log=True)
    assert 0 < low < 1 and high > 100 and style.wide(low, high)


def test_looks_tell_models_apart_without_colours():
    assert set(style.LOOKS) == set(models("sound"))
    groups: dict[str, list[str]] = {}
    for model in style.LOOKS:
        groups.setdefault(style.group(model), []).append(model)
    assert len(groups) == 5
    for some in (*groups.values(), *curves.PANELS.values()):
        markers = [style.LOOKS[model][1] for model in some]
        assert len(set(markers)) == len(markers), some
    colours = [colour for colour, _ in style.LOOKS.values()]
    assert len(set(colours)) == len(colours)
    assert set(PAPER) <= {model for panel in curves.PANELS.values() for model in panel}


def test_colours_are_those_of_the_groups():
    def strongest(model: str) -> int:
        colour = style.LOOKS[model][0]
        return int(np.argmax([int(colour[i : i + 2], 16) for i in (1, 3, 5)]))

    expected = {"real-valued": 0, "semi-nonnegative": 1, "nonnegative": 2, "Poisson": 0}
    for model in PAPER:
        assert strongest(model) == expected[style.group(model)], model


def test_drawing_leaves_the_settings_of_the_caller_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    with style.drawing():
        assert matplotlib.rcParams["svg.hashsalt"] == "bayesmf"
    assert dict(matplotlib.rcParams) == before


def test_without_matplotlib_there_is_a_plain_error(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModelError, match=r"pip install 'bayesmf\[report\]'"):
        draw_all(tmp_path, Store(tmp_path), [])


# --- Priors and values --------------------------------------------------------------------------

PRIORS = {model: d for some in inputs.DENSITIES.values() for model, (_, d) in some.items()}


@pytest.mark.parametrize("model", PRIORS)
def test_densities_integrate_to_one(model):
    h = hyperparameters(model.partition(" ")[0])
    x = np.concatenate([np.linspace(1e-9, 30, 6001), np.geomspace(30.01, 1e6, 2000)])
    total = integrate.trapezoid(PRIORS[model](x, h), x)
    assert total * (2 if model in inputs.DENSITIES["real-valued"] else 1) == pytest.approx(
        1, abs=2e-3
    )


@pytest.mark.parametrize("model", ["GGG", "GLL", "GEE", "GTT", "PGG"])
def test_densities_are_those_of_the_package(model):
    prior = preset(model).rows
    fixed = {
        name: getattr(prior, name)
        for name in ("precision", "scale", "rate", "mean", "shape")
        if hasattr(prior, name)
    }
    x = np.array([0.1, 1.0, 4.0])
    ours = np.log(PRIORS[model](x, hyperparameters(model)))
    theirs = np.array([prior.log_density(np.array([[v]]), fixed) for v in x])
    np.testing.assert_allclose(np.diff(ours), np.diff(theirs), rtol=1e-6)


@pytest.mark.parametrize("model", ["GTTN", "PGGG", "GEEA", "GGGA", "GLLI"])
def test_hierarchical_densities_are_those_of_prior_draws(model):
    rng = np.random.default_rng(0)
    n, h = 200_000, hyperparameters(model)
    if model == "GTTN":
        tau = rng.gamma(h["a"] - 0.5, 1 / h["b"], n)
        x = rng.normal(rng.normal(h["mu_mu"], h["tau_mu"] ** -0.5, n), tau**-0.5)
        x = x[x >= 0]
    elif model == "PGGG":
        rate = rng.gamma(h["a_prime"], h["b_prime"] / h["a_prime"], n)
        x = rng.gamma(h["a"], 1 / rate)
    elif model == "GLLI":
        x = np.abs(rng.laplace(0, rng.wald(5, 5, n)))
    else:
        rate = rng.gamma(h["alpha0"], 1 / h["beta0"], n)
        x = rng.exponential(1 / rate) if model == "GEEA" else np.abs(rng.normal(0, rate**-0.5))
    grid = np.linspace(1e-9, 3, 2001)
    below = integrate.trapezoid(PRIORS[model](grid, h), grid)
    below *= 2 if model in inputs.DENSITIES["real-valued"] else 1
    assert np.mean(x < 3) == pytest.approx(below, abs=0.006)


def test_priors_are_drawn(tmp_path):
    svg, png = inputs.draw_priors(tmp_path)
    assert (svg.name, png.name) == ("priors.svg", "priors.png")
    assert all(count(svg, f"prior-{model.replace(' ', '_')}") for model in PRIORS)
    assert "GVG: a row" in texts(svg)
    again = inputs.draw_priors(tmp_path / "again")[0]
    assert again.read_bytes() == svg.read_bytes()


@pytest.mark.skipif(
    importlib.util.find_spec("bayesmf.datasets") is None, reason="there are no datasets yet"
)
def test_values_of_datasets_are_drawn(tmp_path, monkeypatch):
    from bayesmf import datasets

    monkeypatch.setattr(datasets, "present", lambda name: name != "GDSC")
    svg, _ = inputs.draw_values(tmp_path, ["drug_sensitivity", "GDSC", "digits"])
    assert "drug_sensitivity" in texts(svg) and "digits" in texts(svg) and "GDSC" not in texts(svg)
    assert inputs.draw_values(tmp_path / "none", ["GDSC"]) == []
    assert not (tmp_path / "none").exists()


def test_a_curve_that_leaves_the_axis_by_far_can_be_drawn(tmp_path):
    """Markers are spread along a curve: one of ten billion axis heights would fill the memory."""
    x = np.arange(1.0, 66.0)
    with style.drawing():
        figure, (ax,) = style.panels(1, 1, style.COLUMN, 6.0)
        ax.set(ylim=(0, 1))
        wild = style.Curve(x, 1e10 / x**8, np.zeros(65), np.zeros(65, bool), x, 1e11 / x**8)
        notes = style.draw_curve(ax, "GGG", wild, {}, 0.01)
        written = style.save(figure, tmp_path, "wild")
    assert written[0].stat().st_size < 100_000 and "published" in notes
