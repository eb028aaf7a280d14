"""The HTML report: what it holds, that labels stay text, and how it behaves in a browser."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesmf import BayesianMF, ObservedMatrix
from bayesmf._errors import ConvergenceWarning, DataError
from bayesmf.posterior.diagnostics import Diagnosis
from bayesmf.report import (
    Diagnostic,
    Factor,
    Histogram,
    Levels,
    RankingRow,
    ReportData,
    Surprise,
    build,
    charts,
    write,
)
from bayesmf.report.axes import Axis, short
from bayesmf.report.gather import describe
from bayesmf.report.markup import embed, number, percent, places_for, tag, with_error

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(2)</script>",
    "=cmd()",
    "../../x",
    "' onfocus='alert(3)",
    "line\u2028end",
]
CELL_LINES = [
    "MCF-7", "HCC1954", "T-47D", "SK-BR-3", "BT-474", "A549", "NCI-H460", "HCT-116", "SW480",
    "HT-29", "COLO-205", "PC-3", "DU-145", "U-87", "SF-268", "A375", "SK-MEL-5", "OVCAR-3",
    "SK-OV-3", "K-562", "HL-60", "MOLT-4", "RPMI-8226", "786-O", "ACHN", "CAKI-1", "HeLa", "HepG2",
    "Huh-7", "PANC-1", "MIA-PaCa-2", "AsPC-1", "RD",
]  # fmt: skip
MORE = ["Capan-1", "BxPC-3", "KM12", "LoVo", "SNU-16", "TT", "5637"]
MORE_DRUGS = ["afatinib", "axitinib", "bosutinib", "crizotinib", "etoposide", "foretinib"]
DRUGS = [
    "erlotinib", "lapatinib", "gefitinib", "sunitinib", "sorafenib", "imatinib", "dasatinib",
    "nilotinib", "bortezomib", "paclitaxel", "docetaxel", "vinblastine", "gemcitabine", "cisplatin",
    "methotrexate", "olaparib", "temsirolimus", "vorinostat", "trametinib",
]  # fmt: skip
MODELS = {  # kind, rank, error
    "GGGA": ("real", 8, 0.712), "GGGW": ("real", 7, 0.718), "GGGU": ("real", 7, 0.722),
    "GVG": ("real", 6, 0.741), "GGG": ("real", 6, 0.744), "GLL": ("real", 6, 0.748),
    "GLLI": ("real", 6, 0.751), "GEEA": ("nonnegative", 7, 0.763), "GEE": ("nonnegative", 6, 0.779),
    "GTTN": ("nonnegative", 6, 0.786), "GTT": ("nonnegative", 6, 0.791),
    "GL21": ("nonnegative", 5, 0.838), "GEG": ("semi-nonnegative", 6, 0.754),
    "GVnG": ("semi-nonnegative", 6, 0.77), "PGG": ("counts", 5, 0.905),
    "PGGG": ("counts", None, None), "NMF": ("baseline", 4, 1.12),
    "row average": ("baseline", None, 2.9),
}  # fmt: skip
SECTIONS = [
    "data", "models", "rank", "calibration", "matrix", "surprises", "factors", "trust", "repeat",
]  # fmt: skip
CAP = 14.0
FIRST = "Use GGGA at rank 8: its error on held-out cells is 0.712 ± 0.009."


def ranking(rng: np.random.Generator) -> list[RankingRow]:
    """Eighteen methods, of which one stopped early and two tie."""
    rows = []
    for model, (kind, rank, error) in MODELS.items():
        if error is None:
            rows.append(RankingRow(model, kind, status="stopped early", folds=2))
            continue
        found = {"GGGA": "recommended", "GGGW": "tie", "GGGU": "tie"}.get(model, "worse")
        found = "baseline" if kind == "baseline" else found
        row = RankingRow(
            model, kind, rank, error, 0.009 + 0.004 * rng.random() * (model != "GGGA"),
            behind=error / 0.71 - 1, status=found, folds=5,
        )  # fmt: skip
        if kind != "baseline":
            row = dataclasses.replace(
                row,
                log_density=-1.2 - error / 8,
                coverage=0.9 + 0.02 * rng.standard_normal(),
            )
        rows.append(row)
    return sorted(rows, key=lambda row: np.inf if row.mse is None else row.mse)


def curves(rng: np.random.Generator) -> dict[str, list[tuple[int, float, float | None]]]:
    """Errors that fall, and then rise with the rank."""
    ranks = [1, 2, 3, 4, 5, 6, 8, 10, 14]
    found = {}
    for model, (_, best, error) in MODELS.items():
        if best is not None and error is not None:
            bend = 0.1 + 0.25 * rng.random()
            found[model] = [
                (r, error + bend * np.log(r / best) ** 2 * (0.55 if r > best else 0.4), 0.012)
                for r in ranks
            ]
    return found


def factor(rng: np.random.Generator, size: float, rows: list[str], cols: list[str]) -> Factor:
    """Three labels of each side that weigh much, and three that weigh as much below zero."""
    sides = []
    for labels in (rows, cols):
        picked = rng.permutation(len(labels))[:6]
        loadings = rng.uniform(0.5, 2, 6) * [1, 1, 1, -1, -1, -1]
        sides.append([(labels[k], float(x)) for k, x in zip(picked, loadings, strict=True)])
    return Factor(size, *sides)


def matrices(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Nonnegative products of rank three, capped, and observed less and less to the right."""
    shape = (40, 25)
    truth = rng.gamma(2, 0.7, (40, 3)) @ rng.gamma(2, 0.7, (25, 3)).T
    observed = rng.random(shape) < np.linspace(0.95, 0.45, 25)
    observed[5] = rng.random(25) < 0.2
    return {
        "values": np.minimum(truth + 0.5 * rng.standard_normal(shape), CAP),
        "mean": np.minimum(truth + 0.25 * rng.standard_normal(shape), CAP),
        "std": 0.4 + 0.1 * np.sqrt(truth) + 0.2 * rng.random(shape) + 0.5 * ~observed,
        "observed": observed,
    }


def unexpected(rng: np.random.Generator, m: dict, rows: list[str], cols: list[str]) -> list:
    """Ten observed cells that lie off their intervals."""
    picked = np.argwhere(m["observed"])[rng.permutation(m["observed"].sum())[:8]].tolist()
    found = []
    for n, (i, j) in enumerate([(0, 1), (1, 0), *picked]):
        mean, reach = m["mean"][i, j], 1.645 * m["std"][i, j]
        value = mean + (-1) ** n * reach * (3 - 0.17 * n)
        found.append(Surprise(rows[i], cols[j], value, mean, mean - reach, mean + reach))
    return found


def fake(hostile: bool = True, **changes: object) -> ReportData:
    """A report with everything in it: 40 x 25 cells, 18 methods, hostile labels."""
    rng = np.random.default_rng(3)
    rows = [*(HOSTILE if hostile else MORE), *CELL_LINES]
    cols = [*(HOSTILE[:6] if hostile else MORE_DRUGS), *DRUGS]
    found = matrices(rng)
    seen = found["values"][found["observed"]]
    counts, edges = np.histogram(seen, bins=28)
    everything: dict[str, object] = {
        "title": "Drug sensitivity: which factorisation?",
        "subtitle": "An example with made-up numbers: 40 cell lines, 25 drugs, five folds",
        "settings": {
            "command": "bayesmf compare sensitivity.csv --models all --ranks 1..14 --folds 5 "
            "--seed 7 --out report.html",
            "file": "sensitivity.csv", "seed": 7, "folds": 5, "chains": 4, "burn_in": 1000,
            "draws": 1000, "ranks": [1, 2, 3, 4, 5, 6, 8, 10, 14], "scaling": None,
            "biases": False, "hyperparameters": {"alpha0": 1.0, "beta0": 1.0},
        },
        "versions": {"bayesmf": "0.1.0", "python": "3.11.9", "numpy": "2.1.0"},
        "shape": (40, 25), "n_observed": seen.size, "row_labels": rows, "col_labels": cols,
        "histogram": Histogram(edges.tolist(), counts.tolist()),
        "warnings": [
            f"{np.mean(seen == CAP):.1%} of the values are exactly {CAP:g}: probably capped.",
            f"The row {rows[5]} has few values: little can be said about it.",
        ],
        "about": {"GGGA": "normal noise; good for an unknown rank"},
        "advice": "bayesmf fit sensitivity.csv --model GGGA --rank 8 --scale global --seed 7",
        "recommendation": [
            FIRST, "GGGW and GGGU are as good within the error.", "Nonnegative models cost about "
            "7 % in error; choose GEEA if parts that only add up are worth that to you.",
        ],
        "meaning": {model: f"a made-up {kind} model" for model, (kind, _, _) in MODELS.items()},
        "ranking": ranking(rng),
        "excluded": {
            "PGGG": "Its chains did not reach the third fold within the time allowed.",
            "NMF-KL": "It needs whole numbers, and the values have fractions.",
        },
        "rank_curves": curves(rng),
        "calibration": [
            (0.1, 0.113), (0.25, 0.274), (0.5, 0.541), (0.75, 0.772), (0.9, 0.886), (0.99, 0.968),
        ],
        **found,
        "surprises": unexpected(rng, found, rows, cols),
        "factors": [factor(rng, x, rows, cols) for x in (0.46, 0.21, 0.12, 0.09, 0.07, 0.05)],
        "diagnosis": "The four chains agree about everything but one cell, for which twice as many "
        "draws would be needed. Means and 90 % intervals of all others can be relied on.",
        "diagnostics": [
            Diagnosis("noise precision", 4.02, 0.21, 1.003, 1840.2, 2210.0, 0.004),
            Diagnostic("training error", 0.241, 0.0102, 1.012, 212.0, 340.0),
            Diagnostic("ARD precision 1", 0.81, 0.33, 1.004, 1302.0, 1500.0),
            Diagnostic("cell (3, 8)", 2.31, 0.52, 1.13, 41.0, 38.0),
            Diagnostic("cell (12, 4)", 0.71, 0.48, None, None, None),
        ],
    }  # fmt: skip
    return ReportData(**(everything | changes))  # type: ignore[arg-type]


class Reader(HTMLParser):
    """Reads a page strictly: elements must nest, and ids be unique."""

    VOID = frozenset({"meta", "link", "input"})

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.words.append(data)

    def all(self, attribute: str) -> list[str]:
        return [a[attribute] or "" for _, a in self.seen if attribute in a]


@pytest.fixture(scope="module")
def page() -> str:
    return build(fake())


def test_the_page_is_well_formed(page):
    reader = Reader(page)
    ids = reader.all("id")
    assert len(ids) == len(set(ids))
    for attribute in ("aria-labelledby", "aria-describedby"):
        assert set(reader.all(attribute)) <= set(ids)
    assert {link[1:] for link in reader.all("href") if link[0] == "#"} <= set(ids)
    assert next(a for t, a in reader.seen if t == "html")["lang"] == "en"
    levels = [int(t[1]) for t, _ in reader.seen if re.fullmatch("h[1-6]", t)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    landmarks = [t for t, _ in reader.seen]
    assert [landmarks.count(t) for t in ("header", "nav", "main", "footer")] == [1] * 4
    assert all("aria-label" in a or "aria-hidden" in a for t, a in reader.seen if t == "svg")


def test_sections_come_in_order(page):
    found = re.findall(r'<section id="(\w+)"', page)
    assert found == SECTIONS
    assert re.findall(r'<li><a href="#(\w+)"', page) == found
    assert page.index(FIRST) < page.index("<nav") < page.rindex(FIRST)


def test_nothing_is_loaded_from_elsewhere(page):
    reader = Reader(page)
    assert not re.search(r"https?:", page)
    policy = next(a["content"] for _, a in reader.seen if "http-equiv" in a)
    assert "//" not in page.replace(policy, "").replace("../../x", "")
    assert reader.all("src") == [] and reader.all("style") == []
    assert all(link == "data:," or link[0] == "#" for link in reader.all("href"))
    assert not [name for _, a in reader.seen for name in a if name.startswith("on")]
    assert "url(" not in page and "@import" not in page and "eval" not in page


def test_the_policy_allows_this_style_and_script_only(page):
    policy = next(a["content"] for _, a in Reader(page).seen if "http-equiv" in a)
    assert policy is not None and "default-src 'none'" in policy and "unsafe" not in policy
    for kind, pattern in (("style", "<style>(.*?)</style>"), ("script", "<script>(.*?)</script>")):
        (source,) = re.findall(pattern, page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


@pytest.mark.parametrize("label", HOSTILE)
def test_labels_stay_text(label):
    everywhere = fake(
        title=label, subtitle=label, settings={"command": label, label: label},
        versions={label: label}, warnings=[label], note=label, recommendation=[label],
        about={label: label}, advice=label, meaning={label: label},
        ranking=[RankingRow(label, label, 1, 1.0, 0.1, status=label)], excluded={label: label},
        rank_curves={label: [(1, 1.0, None)]}, surprises=[Surprise(label, label, 1, 2, 1, 3)],
        factors=[Factor(1.0, [(label, 1.0)], [(label, -1.0)])], diagnosis=label,
        diagnostics=[Diagnostic(label)], row_labels=[label] * 40, col_labels=[label] * 25,
    )  # fmt: skip
    built = build(everywhere)
    reader = Reader(built)
    assert [t for t, _ in reader.seen].count("script") == 2
    assert not {"img", "iframe", "object"} & {t for t, _ in reader.seen}
    assert not [name for _, a in reader.seen for name in a if name.startswith("on")]
    assert "".join(reader.words).count(label) >= 15
    json_text = built.split('id="report-data">')[1].split("</script>")[0]
    assert "<" not in json_text and ">" not in json_text and "&" not in json_text


def test_control_characters_are_replaced():
    built = build(ReportData("a\x00b\x1bc\ud800d"))
    assert "<h1>a\ufffdb\ufffdc\ufffdd</h1>" in built


def test_sections_without_data_are_left_out():
    bare = build(ReportData("Only a title"))
    assert "<section" not in bare and 'class="lead"' not in bare
    Reader(bare)
    empty = {"ranking": (), "recommendation": (), "excluded": {}, "rank_curves": {}}
    single = build(fake(**empty, calibration=(), values=None))
    assert re.findall(r'<section id="(\w+)"', single) == [SECTIONS[0], *SECTIONS[4:]]
    Reader(single)
    only_mean = build(ReportData("x", mean=np.eye(3)))
    assert 'id="heatmap"' in only_mean and 'name="layer"' not in only_mean
    assert 'id="pattern"' not in only_mean


def test_missing_numbers_are_dashes():
    rows = [RankingRow("A", mse=float("nan")), RankingRow("B", mse=1.0, mse_error=None)]
    built = build(ReportData("x", ranking=rows))
    assert 'data-value="">\u2013</td>' in built
    assert "Log density" not in built and "Folds" not in built
    nan = np.full((2, 2), np.nan)
    assert "NaN" not in build(ReportData("x", mean=nan, std=nan, observed=np.ones((2, 2))))
    everything_missing = build(ReportData("x", ranking=[RankingRow("A")]))
    assert "Error (MSE)" not in everything_missing


def levels(labels: list[str], spread: float = 1.0) -> list[Levels]:
    """Noise of some columns, the first of them measured badly."""
    means = np.geomspace(1.0 + 3 * spread, 1.0, len(labels)).tolist()
    listed = [(name, m, 0.9 * m, 1.2 * m) for name, m in zip(labels, means, strict=True)]
    return [Levels("columns", len(labels) + 3, 1.0, listed, "in units of the known errors", gap=9)]


def test_noise_of_rows_and_columns():
    built = build(fake(noise=levels(HOSTILE + DRUGS)))
    reader = Reader(built)
    assert re.findall(r'<section id="(\w+)"', built) == [*SECTIONS[:6], "noise", *SECTIONS[6:]]
    said = "".join(reader.words)
    assert "Some columns are noisier than a typical one" in said
    assert "The noise is in units of the known errors." in said
    assert f"Of {len(HOSTILE + DRUGS) + 3} columns the noisiest and the most precise" in said
    assert said.count("erlotinib: ") == 1  # what pointing at it tells
    assert [t for t, _ in reader.seen].count("script") == 2
    even = build(ReportData("x", noise=levels(DRUGS, 0.0)))
    assert "All columns are about equally noisy" in even
    assert "<section" not in build(ReportData("x", noise=[Levels("rows", 0, 1.0, [])]))


@pytest.mark.parametrize("options", [{"noise": "both"}, {"scale": "cols"}, {"scale": "none"}])
def test_a_fit_says_who_is_noisy(options):
    rng = np.random.default_rng(0)
    sd = np.where(np.arange(70) == 5, 9.0, 0.5)
    X = rng.normal(size=(30, 1)) @ rng.normal(size=(1, 70)) + sd * rng.normal(size=(30, 70))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mf = BayesianMF("GGG", 1, draws=20, burn_in=20, random_state=0, **options).fit(X)
    found = describe(mf, ObservedMatrix.of(X))["noise"]
    if options == {"scale": "none"}:
        assert found == []
        return
    cols = found[-1]
    if "noise" in options:
        assert (found[0].side, found[0].total, len(found[0].levels)) == ("rows", 30, 30)
    else:  # each column has the noise of its scale
        assert len(found) == 1
    assert (cols.side, cols.total, len(cols.levels)) == ("columns", 70, 30)
    assert cols.levels[0][0] == "5" and cols.levels[0][2] > cols.typical
    means = [level[1] for level in cols.levels]
    assert means == sorted(means, reverse=True)
    Reader(build(ReportData("x", noise=found)))


@pytest.mark.parametrize("scale", ["global", "none"])
def test_a_fit_says_what_features_explain(scale):
    """One hostile feature makes all of one column, in the units of the data."""
    rng, names = np.random.default_rng(0), [f"line {i}" for i in range(40)]
    known = pd.DataFrame(rng.normal(size=(40, 3)), names, [HOSTILE[0], "b", "c"])
    data = pd.DataFrame(rng.normal(0, 0.3, (40, 5)), names, DRUGS[:5])
    data[DRUGS[2]] += 8 * known[HOSTILE[0]]
    X = ObservedMatrix.of(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mf = BayesianMF("GGGW", 1, draws=60, burn_in=40, random_state=0, scale=scale)
        mf.fit(X, row_features=known, row_kernel=np.eye(40), col_features=np.arange(5.0))
    groups = describe(mf, X)["features"]
    assert [(g.side, g.name, g.total) for g in groups] == [
        ("rows", "features", 3), ("rows", "kernel", 40), ("columns", "features", 1)
    ]  # fmt: skip
    feature, column, mean, low, high = groups[0].weights[0]
    slope = 8 * known[HOSTILE[0]].std(ddof=0)
    assert (feature, column, groups[0].unit) == (HOSTILE[0], DRUGS[2], "the data")
    assert low <= mean <= high and abs(mean - slope) < 0.1 * slope
    assert groups[0].importance[0][0] == HOSTILE[0] and groups[0].importance[0][1] > 0.5
    assert groups[1].weights == groups[1].importance == ()
    built = build(ReportData("x", features=groups))
    Reader(built)
    assert HOSTILE[0] not in built.split("<section")[1] and "What features explain" in built
    assert describe(BayesianMF("GGG", 1, draws=5, burn_in=5).fit(data), X)["features"] == []


@pytest.mark.parametrize(
    ("model", "quantities"),
    [
        ("OGG", ["cut 1", "cut 2"]),
        ("TGG", ["degrees of freedom", "noise precision"]),
        ("NGG", ["size"]),
    ],
)
def test_what_belongs_to_a_likelihood_is_among_the_quantities(model, quantities):
    X = np.clip(np.random.default_rng(0).poisson(1.0, (12, 9)), 0, 2).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mf = BayesianMF(model, 1, draws=20, burn_in=20, random_state=0, scale="none").fit(X)
    parts = describe(mf, ObservedMatrix.of(X))
    assert set(quantities) <= {row.quantity for row in parts["diagnostics"]}
    assert parts["noise"] == []
    assert f">{quantities[0]}<" in build(ReportData("x", **parts))


def test_known_limits_are_no_longer_a_warning():
    X = np.random.default_rng(0).normal(size=(20, 10)).clip(None, 0.5)
    for upper in (None, 0.5):
        mf = BayesianMF("GGG", 1, draws=5, burn_in=5, random_state=0).fit(X, upper=upper)
        said = " ".join(describe(mf, ObservedMatrix.of(X))["warnings"])
        assert ("probably cut off there" in said) == (upper is None)


def test_matrices_must_fit_together():
    with pytest.raises(DataError, match="one shape"):
        build(ReportData("x", mean=np.ones((2, 3)), std=np.ones((3, 2))))
    with pytest.raises(DataError, match="2 row labels for 3 rows"):
        build(ReportData("x", mean=np.ones((3, 3)), row_labels=["a", "b"]))


def test_the_file_is_written_whole(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    data = fake()
    write(data, path)
    assert path.read_text(encoding="utf-8") == build(data)
    assert path.read_text(encoding="utf-8").endswith("</html>")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]

    def fails(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_text", fails)
    with pytest.raises(OSError, match="disk full"):
        write(dataclasses.replace(data, title="another"), path)
    assert "another" not in path.read_text(encoding="utf-8")


def test_a_large_matrix_stays_a_small_file():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(0, 100, (400, 400)), rng.random((400, 400))
    built = build(ReportData("x", mean=mean, std=std, observed=std > 0.5, values=mean))
    assert len(built) < 6e6


def test_numbers_are_short():
    assert [number(x) for x in (0, 0.71234, 12345.6, -3, None)] == [
        "0", "0.712", "12,346", "-3.00", "\u2013",
    ]  # fmt: skip
    assert number(1.5e-9) == "1.50e-09"
    places = [places_for(e) for e in ([0.0087], [0.012, None, 0.02, float("nan")], [12.0], [])]
    assert places == [4, 3, 0, None]
    assert with_error(0.71234, 0.0087, 3) == "0.712 \u00b1 0.009"
    assert with_error(2.0, None, 3) == "2.000" and with_error(2.0, 0.1, None) == "2.00"
    assert (percent(0.318), percent(0.9), percent(0.9, fixed=True)) == ("31.8 %", "90 %", "90.0 %")
    assert embed({"a": "</script>&"}) == '{"a":"\\u003c/script\\u003e\\u0026"}'
    assert tag("p", "<", tag("b", "&"), hidden=True, id=None) == "<p hidden>&lt;<b>&amp;</b></p>"


def test_labels_that_begin_alike_stay_different():
    names = [f"cell line from the collection no. {i:06d}" for i in range(9)]
    assert len({short(name) for name in names}) == 9
    assert max(len(short(name)) for name in names) == 18 and short("MCF-7") == "MCF-7"
    drawn = Reader(charts.levels(Levels("rows", 99, 1.0, [(n, 1.0, 0.9, 1.2) for n in names])))
    assert {short(name) for name in names} <= set(drawn.words)


def test_a_gap_stands_where_rows_are_left_out():
    listed = [(name, 1.0, 0.9, 1.1) for name in "abcde"]
    drawn = [charts.levels(Levels("rows", 9, 1.0, listed, gap=gap)) for gap in (None, 3)]
    assert ["\u22ef" in one for one in drawn] == [False, True]
    places = [re.findall(r'y="([\d.]+)" class="tick" text-anchor="end">[a-e]<', d) for d in drawn]
    moved = [float(b) - float(a) for a, b in zip(*places, strict=True)]
    assert moved == [0, 0, 0, charts.STEP, charts.STEP]


def test_nothing_covers_the_bars_of_the_histogram_of_shares():
    drawn = charts.pit([100] * 19 + [300])
    assert drawn.index('class="band"') < drawn.index('class="bar"') < drawn.index('class="edge"')


def test_ticks_are_round():
    assert Axis(0, 1, 0, 100).ticks(5) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert Axis(0.5, 120, 0, 100, log=True).ticks(3) == [1, 10, 100]
    assert Axis(0, 1, 0, 100)(7) == 100


# --- In a browser -------------------------------------------------------------------------------

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--force-prefers-reduced-motion", "--hide-scrollbars",
]  # fmt: skip


@contextmanager
def chromium(folder: Path) -> Iterator:
    """A headless browser that keeps its profile in a folder, and what pages say."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no Chromium with chromedriver is installed")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}", "--window-size=1280,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    session = webdriver.Chrome(options, webdriver.ChromeService(driver))
    try:
        yield session
    finally:
        session.quit()


def visit(browser, data: ReportData, folder: Path) -> None:
    """Write a report and open the file."""
    write(data, folder / "report.html")
    browser.get((folder / "report.html").as_uri())


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator:
    with chromium(tmp_path_factory.mktemp("browser")) as session:
        yield session


@pytest.fixture
def tab(browser, tmp_path) -> Iterator:
    """The full report, loaded afresh; nothing may be on the console afterwards."""
    visit(browser, fake(noise=levels(HOSTILE + DRUGS)), tmp_path)
    yield browser
    assert browser.get_log("browser") == []


def resize(tab, width: int, height: int = 900) -> None:
    """Give the page itself so many pixels, which no window can be narrow enough for."""
    tab.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )


def column(tab, index: int) -> list[str]:
    """What a column of the ranking shows, from top to bottom."""
    script = (
        "return [...document.querySelectorAll('#models tbody tr')]"
        ".map(row => row.cells[arguments[0]].textContent)"
    )
    return tab.execute_script(script, index)


def head(tab, name: str):
    """The sort button of a column of the ranking."""
    buttons = tab.find_elements("css selector", "#models thead button")
    return next(button for button in buttons if button.text.startswith(name))


def aria_sort(button) -> str | None:
    return button.find_element("xpath", "..").get_attribute("aria-sort")


def test_browser_loads_quietly(tab):
    assert tab.title == "Drug sensitivity: which factorisation?"
    assert tab.execute_script("return performance.getEntriesByType('resource').length") == 0
    from selenium.common.exceptions import NoAlertPresentException

    with pytest.raises(NoAlertPresentException):
        tab.switch_to.alert  # noqa: B018
    assert tab.execute_script("return document.querySelectorAll('img, iframe').length") == 0


def test_browser_sorts_by_click(tab):
    before = column(tab, 0)
    coverage = head(tab, "Coverage")
    assert aria_sort(coverage) is None
    coverage.click()
    assert aria_sort(coverage) == "ascending"
    script = (
        "return [...document.querySelectorAll('#models tbody tr')]"
        ".map(row => row.cells[7].dataset.value)"
    )
    shares = tab.execute_script(script)
    known = [float(s) for s in shares if s]
    assert known == sorted(known) and shares[-1] == ""
    assert column(tab, 0) != before and sorted(column(tab, 0)) == sorted(before)
    coverage.click()
    assert aria_sort(coverage) == "descending"
    shares = tab.execute_script(script)
    assert [float(s) for s in shares if s] == known[::-1] and shares[-1] == ""
    head(tab, "Model").click()
    assert aria_sort(coverage) is None
    assert column(tab, 0) == sorted(before, key=str.casefold)


def test_browser_shows_the_whole_ranking_on_a_desktop(tab):
    resize(tab, 1280)
    script = (
        "document.querySelector('#models tbody tr .label').append(arguments[0]);"
        "const box = document.querySelector('#models .scroll');"
        "return [box.scrollWidth, box.clientWidth]"
    )
    needs, has = tab.execute_script(script, " + noise cols + limits + log1p + biases")
    assert needs <= has


def test_browser_sorts_by_keyboard(tab):
    from selenium.webdriver.common.keys import Keys

    button = head(tab, "Rank")
    button.send_keys(Keys.ENTER)
    assert aria_sort(button) == "ascending"
    ranks = column(tab, 2)
    assert ranks[0] == "4" and ranks[-1] == "\u2013"
    button.send_keys(Keys.SPACE)
    assert aria_sort(button) == "descending"
    assert column(tab, 2)[0] == "8" and column(tab, 2)[-1] == "\u2013"


def test_browser_switches_layers(tab):
    from selenium.webdriver.common.keys import Keys

    picture = "return document.getElementById('heatmap').toDataURL()"
    canvas = tab.find_element("id", "heatmap")
    seen = [(tab.execute_script(picture), canvas.get_attribute("aria-label"))]
    choice = tab.find_element("css selector", "input[name=layer]")
    for _ in range(2):  # the arrow keys move between the layers
        choice.send_keys(Keys.ARROW_RIGHT)
        choice = tab.switch_to.active_element
        seen.append((tab.execute_script(picture), canvas.get_attribute("aria-label")))
    assert len({pixels for pixels, _ in seen}) == 3
    assert [about.split(":")[0] for _, about in seen] == ["Values", "Uncertainty", "Observed only"]
    blank = (
        "const c = document.getElementById('heatmap'); "
        "const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; "
        "return [...p].filter((x, i) => i % 4 === 3 && x === 0).length"
    )
    assert tab.execute_script(blank) == 1000 - fake().n_observed


def test_browser_describes_cells(tab):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    said = tab.find_element("id", "cell")
    canvas = tab.find_element("id", "heatmap")
    canvas.send_keys(Keys.ARROW_RIGHT)
    assert said.text.startswith(f"{HOSTILE[0]}, {HOSTILE[1]}: ") and "\u00b1" in said.text
    canvas.send_keys(Keys.END + Keys.ARROW_DOWN * 50)
    assert said.text.startswith("RD, trametinib: ")
    assert ("predicted" in said.text) != bool(np.asarray(fake().observed)[39, 24])
    ActionChains(tab).move_to_element(canvas).perform()
    assert said.text.startswith(("DU-145, ", "PC-3, ", "U-87, ", "COLO-205, "))


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_browser_page_does_not_scroll_sideways(tab, width):
    resize(tab, width)
    script = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    scroll, client = tab.execute_script(script)
    assert client == width and scroll <= client
    cut = (
        "return [...document.querySelectorAll('svg.chart, canvas, .card, p, h2, pre')]"
        ".filter(e => e.getBoundingClientRect().right > innerWidth + 0.5).map(e => e.outerHTML)"
    )
    assert tab.execute_script(cut) == []
    tab.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_browser_turns_dark(tab):
    script = "return getComputedStyle(document.body).backgroundColor"
    toggle = tab.find_element("id", "theme")
    light, pressed = tab.execute_script(script), toggle.get_attribute("aria-pressed")
    toggle.click()
    dark = tab.execute_script(script)
    assert (pressed, toggle.get_attribute("aria-pressed")) == ("false", "true")
    assert sum(map(int, re.findall(r"\d+", dark)[:3])) < 120
    assert sum(map(int, re.findall(r"\d+", light)[:3])) > 700
    tab.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": "dark"}]},
    )
    tab.refresh()
    assert tab.execute_script(script) == dark
    tab.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert "0, 0, 0, 0" in tab.execute_script(script)
    tab.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def test_browser_text_has_contrast(tab):
    """All text has a contrast of 4.5 to 1 with what is behind it, light and dark."""
    script = """
      const rgb = (c) => c.match(/[\\d.]+/g).map(Number);
      const light = (c) => { const [r, g, b] = rgb(c).slice(0, 3).map((x) => x / 255)
        .map((x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const behind = (e) => { for (; e; e = e.parentElement) {
        const c = getComputedStyle(e).backgroundColor; const v = rgb(c);
        if (v.length < 4 || v[3] > 0) return c; } };
      const low = [];
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const e = walker.currentNode.parentElement;
        const skipped = e.closest('script, title, noscript, canvas');
        if (skipped || !walker.currentNode.data.trim()) continue;
        const s = getComputedStyle(e);
        const ink = light(e.closest('svg') ? s.fill : s.color), paper = light(behind(e));
        const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
        if (ratio < 4.5) low.push([ratio, e.outerHTML.slice(0, 80)]);
      }
      return low;"""
    assert tab.execute_script(script) == []
    tab.find_element("id", "theme").click()
    assert tab.execute_script(script) == []


def test_browser_copies_the_command(tab):
    from selenium.webdriver.support.ui import WebDriverWait

    boxes = tab.find_elements("css selector", ".command")
    commands = [box.find_element("tag name", "pre").text for box in boxes]
    assert commands == [fake().advice, fake().settings["command"]]
    for box in boxes:
        box.find_element("tag name", "button").click()
        said = box.find_element("css selector", "[role=status]")
        WebDriverWait(tab, 5).until(lambda _, said=said: said.text)
        assert said.text.startswith(("Copied", "Selected"))


def test_browser_first_screen_says_what_to_do(tab):
    """Model, what it is, and the command, before any scrolling, on a desk and on a phone."""
    for width, height in ((1280, 800), (390, 844)):
        resize(tab, width, height)
        for part in (".lead", "header .hint", "header pre", "header button"):
            box = tab.find_element("css selector", part).rect
            assert box["y"] >= 0 and box["y"] + box["height"] <= height, (part, width)
    tab.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_browser_unfolds_long_rankings(tab):
    """All are there without a script; with it, those that were stopped early come when asked."""
    shown = "return [...document.querySelectorAll('#models tbody tr')].filter(r => r.offsetHeight)"
    more = tab.find_element("css selector", ".more")
    assert more.text == "Show all 18" and len(tab.execute_script(shown)) == 17
    more.click()
    assert more.text == "Show fewer" and len(tab.execute_script(shown)) == 18
    more.click()
    assert len(tab.execute_script(shown)) == 17
    tab.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert len(tab.execute_script(shown)) == 18
    tab.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def odd_reports() -> Iterator[ReportData]:
    """Reports of data that leave little to draw."""
    nan = float("nan")
    yield ReportData("a title and nothing else")
    yield ReportData(
        "one cell", shape=(1, 1), n_observed=1, mean=[[2.0]], std=[[0.0]], observed=[[True]],
        histogram=Histogram([1.5, 2.5], [1]), rank_curves={"A": [(3, 1.0, None)], "B": []},
        ranking=[RankingRow("A", mse=1.0)], calibration=[(0.9, 1.0)],
        surprises=[Surprise("r", "c", 1.0, 2.0, 2.0, 2.0)],
        factors=[Factor(None, [("r", 0.0)], [])],
    )  # fmt: skip
    yield ReportData(
        "nothing is known", mean=np.full((3, 4), nan), std=np.full((3, 4), nan),
        observed=np.zeros((3, 4)), histogram=Histogram([0.0, 1.0], [0]),
        ranking=[RankingRow("A", mse=nan, coverage=nan), RankingRow("B", "odd", status="odd")],
        rank_curves={"A": [(1, nan, nan)]}, calibration=[(0.5, nan)],
        surprises=[Surprise("r", "c", nan, nan, nan, nan)],
        factors=[Factor(nan, [("r", nan)], [("c", -1.0)])],
        diagnostics=[Diagnostic("q", nan, nan, nan, nan, nan)],
    )  # fmt: skip
    noise = [("a" * 99, 1e9, 1e8, 1e10), ("b", nan, nan, nan), ("c", 1e-9, 0.0, 1e-8)]
    yield ReportData(
        "far apart", mean=[[1e-9, 1e9]], noise=[Levels("rows", 3, 1.0, noise)],
        histogram=Histogram([1e-9, 1.0, 1e9], [1, 10**9]),
        ranking=[RankingRow("A", mse=1e-9, mse_error=1e-12), RankingRow("B", mse=1e9)],
        rank_curves={"A": [(1, 1e-9, 1e-8), (2, 1e9, None)]},
    )  # fmt: skip


@pytest.mark.parametrize("odd", list(odd_reports()), ids=lambda data: data.title)
def test_browser_shows_odd_data_quietly(browser, tmp_path, odd):
    Reader(build(odd))
    visit(browser, odd, tmp_path)
    assert browser.title == odd.title
    assert not re.search(r"\bnan\b|\binf\b|undefined|NaN", browser.page_source.split("<script")[0])
    assert browser.get_log("browser") == []


def photograph(page: Path, folder: Path) -> None:
    """Make pictures of a comparison's page: its first screen, and whether the noise fits."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as place, chromium(Path(place)) as session:
        resize(session, 1280)
        session.get(page.resolve().as_uri())
        resize(session, 1280, session.execute_script("return document.body.scrollHeight"))
        box = session.find_element("id", "residuals").rect
        top = int(box["y"])
        whole = Image.open(io.BytesIO(session.get_screenshot_as_png())).convert("RGB")
        crops = {"compare-first": (0, 0, 1280, 740), "compare-residuals": (
            int(box["x"]) - 16, top, 1280, top + min(int(box["height"]), 950)
        )}  # fmt: skip
        for name, crop in crops.items():
            part = whole.crop(crop)
            part = part.resize((960, 960 * part.height // part.width), Image.Resampling.LANCZOS)
            part.quantize(128, dither=Image.Dither.NONE).save(folder / f"{name}.png", optimize=True)


if __name__ == "__main__":
    photograph(Path(sys.argv[1]), Path(sys.argv[2]))
