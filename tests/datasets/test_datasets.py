"""Datasets: exact counts, formats of the files, errors, archives and downloads."""

from __future__ import annotations

import doctest
import hashlib
import io
import stat
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from bayesmf import DataError, ObservedMatrix, Poisson, datasets
from bayesmf.datasets import CATALOGUE, _files, catalogue, embedded, loaders
from tests.helpers.matrices import data_folder

EMBEDDED = ["digits", "drug_sensitivity"]
REAL = {  # shape and number of the raw values, where these can be had
    "GDSC": ((707, 139), 79_262),
    "CTRP_small": ((399, 52), 14_998),
    "CCLE_IC50": ((504, 24), 11_670),
    "CCLE_EC50": ((504, 24), 7_626),
    "CCLE_EC50_clean": ((504, 24), 7_200),
    "MovieLens_100K": ((943, 1682), 100_000),
    "Methylation_GM": None,
}
STUDY = {  # largest value, variance to the digits published, share of zeros
    "GDSC": (100, 1919, 0.229),
    "CCLE_IC50": (8, 12.07, None),
    "CCLE_EC50": (9, 10.54, 0.480),
    "MovieLens_100K": (5, 1.262, 0),
    "Methylation_GM": (19, 21.30, None),
}


def real(name: str, **options) -> datasets.Dataset:
    """A dataset from the real files, or a skipped test."""
    folder = data_folder()
    if folder is None or not datasets.present(name, data_home=folder):
        pytest.skip(f"the files of {name} are not here: set BAYESMF_DATA to their folder")
    return datasets.load(name, data_home=folder, download=False, **options)


def write(folder: Path, files: dict[str, str], encoding: str = "utf-8") -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding=encoding)
    return folder


def small(name: str, folder: Path, raw: bool = False) -> ObservedMatrix:
    return datasets.load(name, raw, data_home=folder, download=False, check=False).X


def same(X: ObservedMatrix, values: list) -> bool:
    return np.array_equal(X.to_array(), np.array(values, dtype=float), equal_nan=True)


# The study's matrices.


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_counts_and_labels_of_the_real_matrices(name):
    """`load` checks the counts itself; here they are compared once more, without it."""
    data = real(name, check=False)
    entry = CATALOGUE[name]
    assert (data.X.shape, data.X.n_observed) == (entry.shape, entry.n_observed)
    assert (data.name, data.rows, data.truth) == (name, entry.rows, None)
    for labels, size in zip((data.X.row_labels, data.X.col_labels), data.X.shape, strict=True):
        assert labels is not None
        assert len(set(labels)) == size
        assert all(isinstance(label, str) and label.strip() == label != "" for label in labels)
    values = data.X.rows.values
    assert np.array_equal(values, np.trunc(values))
    assert values.min() >= 0


@pytest.mark.data
@pytest.mark.parametrize("name", STUDY)
def test_values_are_those_of_the_study(name):
    X = real(name).X
    largest, variance, zeros = STUDY[name]
    assert X.rows.values.max() == largest
    digits = len(str(variance).partition(".")[2])
    assert round(X.variance, digits) == variance
    if zeros is not None:
        assert round(np.mean(X.rows.values == 0), 3) == zeros


@pytest.mark.data
@pytest.mark.parametrize("name", [name for name, raw in REAL.items() if raw])
def test_raw_values_on_request(name):
    X = real(name, raw=True).X
    assert (X.shape, X.n_observed) == REAL[name]
    if name != "MovieLens_100K":
        assert (X.rows.values % 1 != 0).any()
        prepared = real(name).X
        assert set(prepared.row_labels) <= set(X.row_labels)


@pytest.mark.data
def test_the_raw_values_of_the_integer_table_cannot_be_had():
    with pytest.raises(DataError, match=r"no raw values; for these get matched_methylation_geneB"):
        real("Methylation_GM", raw=True)


@pytest.mark.data
def test_the_study_added_425_zeros_to_ec50():
    study, clean = real("CCLE_EC50").X, real("CCLE_EC50_clean").X
    shared = np.isin(study.row_labels, clean.row_labels)
    assert study.row_labels[shared].tolist() == clean.row_labels.tolist()
    assert study.col_labels.tolist() == clean.col_labels.tolist()
    there, here = study.to_array()[shared], clean.to_array()
    true = ~np.isnan(here)
    assert np.array_equal(there[true], here[true])
    assert not np.nan_to_num(there[~true]).any()
    raw = real("CCLE_EC50", raw=True).X
    made_up = raw.to_array() < 1e-300
    assert made_up.sum() == 426
    assert made_up[np.isin(raw.row_labels, study.row_labels)].sum() == 425


@pytest.mark.data
def test_the_two_ways_to_ic50_agree():
    table = real("CCLE_IC50").X
    recipe = CATALOGUE["CCLE_IC50"].recipes[1]
    listed = recipe.read([data_folder() / file for file in recipe.files], False)
    assert np.array_equal(table.to_array(), listed.to_array(), equal_nan=True)
    assert table.row_labels.tolist() == listed.row_labels.tolist()
    assert table.col_labels.tolist() == listed.col_labels.tolist()


@pytest.mark.data
def test_films_of_the_same_title_are_told_apart():
    titles = real("MovieLens_100K", raw=True).X.col_labels
    assert titles[0] == "Toy Story (1995)"
    assert {"Chasing Amy (1997) [246]", "Chasing Amy (1997) [268]"} <= set(titles)
    assert "Misérables, Les (1995)" in titles


# Formats, on small files.


def write_ctrp(folder: Path) -> Path:
    """Two compounds, of which one is in no curve, and four cell lines, of which one is not."""
    curves = "experiment_id\tconc_pts_fit\tapparent_ec50_umol\tmaster_cpd_id\n"
    curves += "1\t16\t7.9\t11\n2\t16\t123.4\t11\n3\t16\t3.2\t11\n4\t16\t0.5\t11\n"
    return write(
        folder,
        {
            "ctrp/v20.data.curves_post_qc.txt": curves,
            "ctrp/v20.meta.per_experiment.txt": (
                "experiment_id\trun_id\tmaster_ccl_id\n1\ta\t7\n2\tb\t8\n3\tc\t7\n4\td\t9\n"
            ),
            "ctrp/v20.meta.per_cell_line.txt": (
                "master_ccl_id\tccl_name\n9\tZR-75\n7\ta-10\n6\tunused\n8\tA 1X\n"
            ),
            "ctrp/v20.meta.per_compound.txt": (
                'master_cpd_id\tcpd_name\tcpd_smiles\n12\tparbendazole\tC\n11\t"BI-2536"\tN\n'
            ),
        },
    )


def test_ctrp(tmp_path):
    """Capped, truncated, sorted by name; of two curves the last counts; empty columns stay."""
    folder = write_ctrp(tmp_path)
    X = small("CTRP", folder)
    assert X.row_labels.tolist() == ["a-10", "A 1X", "ZR-75"]
    assert X.col_labels.tolist() == ["BI-2536", "parbendazole"]
    assert same(X, [[3, np.nan], [100, np.nan], [0, np.nan]])
    raw = small("CTRP", folder, raw=True)
    assert raw.row_labels.tolist() == ["a-10", "A 1X", "unused", "ZR-75"]
    assert raw.to_array()[:, 0].tolist()[:2] == [3.2, 123.4]
    assert loaders.fetch_ctrp(raw=True, data_home=folder).X.n_observed == 3


def test_the_small_ctrp(tmp_path):
    """Names alone in a line; cell lines with fewer than three values dropped, truncated."""
    table = "20\t0.3\t7.9\nnan\tnan\tnan\n1\tnan\t2\n"
    names = {"cell_lines": "a\nb\nc\n", "drugs": "x\ny\nz\n", "ctrp_ec50": table}
    write(tmp_path, {f"drug_overlap/{name}.txt": text for name, text in names.items()})
    X = small("CTRP_small", tmp_path)
    assert same(X, [[20, 0, 7]])
    assert (X.row_labels.tolist(), X.col_labels.tolist()) == (["a"], ["x", "y", "z"])
    assert small("CTRP_small", tmp_path, raw=True).shape == (3, 3)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("v20.data.curves_post_qc", "apparent_ec50", "ec50", "no column 'apparent_ec50_umol'"),
        ("v20.data.curves_post_qc", "4\t16\t0.5", "5\t16\t0.5", "experiment 5 is not in"),
        ("v20.data.curves_post_qc", "0.5\t11", "0.5\t13", "refers to '13'"),
        ("v20.data.curves_post_qc", "0.5\t11", "low\t11", "holds 'low' for a value"),
        ("v20.data.curves_post_qc", "4\t16\t0.5\t11", "4\t16", "line 5 is too short"),
    ],
)
def test_a_broken_table_is_named(tmp_path, file, old, new, message):
    path = write_ctrp(tmp_path) / "ctrp" / f"{file}.txt"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DataError, match=message) as caught:
        small("CTRP", tmp_path)
    assert file in str(caught.value)


ML_1M = {  # film 9 and user 4 have fewer than three ratings; film 2 has none
    "ml-1m/ratings.dat": "".join(
        f"{user}::{film}::{1 + (user + film) % 5}::978300760\n"
        for user, film in [(u, f) for u in (1, 2, 3) for f in (1, 3, 5)] + [(1, 9), (4, 1), (4, 9)]
    ),
    "ml-1m/movies.dat": (
        "1::Amélie (2001)::Comedy\n2::Unseen (1999)::Drama\n3::Twin: A (1990)::Drama\n"
        "5::Twin: A (1990)::Drama\n9::Rare | One (1980)::Horror\n"
    ),
}


def test_movielens_1m(tmp_path):
    folder = write(tmp_path, {f"movielens/{k}": v for k, v in ML_1M.items()}, "latin-1")
    X = small("MovieLens_1M", folder)
    assert X.row_labels.tolist() == ["user 1", "user 2", "user 3"]
    assert X.col_labels.tolist() == ["Amélie (2001)", "Twin: A (1990) [3]", "Twin: A (1990) [5]"]
    assert same(X, [[3, 5, 2], [4, 1, 3], [5, 2, 4]])
    raw = small("MovieLens_1M", folder, raw=True)
    assert (raw.shape, raw.n_observed) == ((4, 5), 12)
    assert loaders.fetch_movielens("1m", raw=True, data_home=folder).X.shape == (4, 5)


def test_movielens_100k_format(tmp_path):
    ratings = "".join(f"{u}\t{f}\t3\t88125\n" for u in (3, 1, 2) for f in (2, 1, 3))
    films = "".join(f"{f}|Film {f} (1995)|01-Jan-1995||http://x|0|1\n" for f in (1, 2, 3))
    folder = "movielens/ml-100k"
    write(tmp_path, {f"{folder}/u.data": ratings, f"{folder}/u.item": films})
    X = small("MovieLens_100K", tmp_path)
    assert same(X, [[3] * 3] * 3)
    assert X.col_labels[1] == "Film 2 (1995)"
    (tmp_path / folder / "u.data").write_text(ratings + "1\t7\t3\t88125\n")
    with pytest.raises(DataError, match=r"u\.data: film 7 is not in .*u\.item; take both"):
        small("MovieLens_100K", tmp_path)
    (tmp_path / folder / "u.data").write_text(ratings + "1\tseven\t3\t88125\n")
    with pytest.raises(DataError, match=r"u\.data is not a table of numbers .*seven.* get it"):
        small("MovieLens_100K", tmp_path)
    (tmp_path / folder / "u.item").write_text("no list\n")
    with pytest.raises(DataError, match=r"u\.item is not a list"):
        small("MovieLens_100K", write(tmp_path, {f"{folder}/u.data": ratings}))


@pytest.mark.parametrize("corner", ["", "gene\t"], ids=["no corner", "corner"])
@pytest.mark.parametrize(
    ("name", "file"), [("Methylation_GM", "geneBody"), ("Methylation_PM", "genePromoter")]
)
def test_methylation(tmp_path, name, file, corner):
    """Driver genes in the order of their list, times 20, truncated."""
    table = f"{corner}P1\tP2\n207\t0.999\t0.04\n5\t0.5\tNA\n7157\t0.351\t0.1\n"
    path = f"methylation/matched_methylation_{file}"
    drivers = "methylation/intogen-BRCA-drivers-data.geneid"
    write(tmp_path, {path: table, drivers: "7157\n999\n207\n"})
    X = small(name, tmp_path)
    assert (X.row_labels.tolist(), X.col_labels.tolist()) == (["7157", "207"], ["P1", "P2"])
    assert same(X, [[7, 2], [19, 0]])
    assert same(small(name, tmp_path, raw=True), [[0.999, 0.04], [0.5, np.nan], [0.351, 0.1]])
    write(tmp_path, {drivers: "1\n"})
    with pytest.raises(DataError, match=rf"{file} has none of the genes in .*geneid"):
        small(name, tmp_path)


def test_the_integer_table_is_read_where_the_raw_one_is_absent(tmp_path):
    write(tmp_path, {"methylation/gene_body_integer.txt": "18\t3\n0\t19\n4\t4\n"})
    X = small("Methylation_GM", tmp_path)
    assert same(X, [[18, 3], [0, 19], [4, 4]])
    assert X.cell_name(2, 1) == "row 'gene 3', column 'patient 2'"


def test_a_table_and_its_labels_must_agree(tmp_path):
    names = "a\tA\nb\tB\n"
    files = {"gdsc/ic50.txt": "1\t2\n", "gdsc/cell_lines.txt": names, "gdsc/drugs.txt": names}
    with pytest.raises(DataError, match=r"ic50\.txt is 1 x 2, but its labels name 2 rows and 2 co"):
        small("GDSC", write(tmp_path, files))
    with pytest.raises(DataError, match=r"cell_lines\.txt or .*drugs\.txt lacks its second column"):
        small("GDSC", write(tmp_path, {"gdsc/drugs.txt": "a\n"}))


# The catalogue.


def test_the_catalogue_is_complete():
    published = [
        "GDSC",
        "CTRP",
        "CTRP_small",
        "CCLE_IC50",
        "CCLE_EC50",
        "CCLE_EC50_clean",
        "MovieLens_100K",
    ]
    published += ["MovieLens_1M", "Methylation_GM", "Methylation_PM"]
    assert [*published, *EMBEDDED] == list(CATALOGUE)
    for name, entry in CATALOGUE.items():
        assert all((entry.title, entry.description, entry.licence, entry.source)), name
        assert entry.n_observed <= entry.shape[0] * entry.shape[1]
        assert (name in EMBEDDED) == (entry.files == ())
        assert bool(entry.url) == bool(entry.known_hash) == name.startswith("MovieLens")


def test_the_functions_load_what_they_say(monkeypatch):
    asked = []
    monkeypatch.setattr(loaders, "load", lambda name, *options: asked.append((name, *options)))
    options = (True, "folder", False, False)
    datasets.fetch_gdsc(*options)
    datasets.fetch_ctrp(*options)
    datasets.fetch_ctrp(*options, small=True)
    for measure in ("ic50", "ec50"):
        for version in ("study", "clean"):
            datasets.fetch_ccle(measure, version, *options)
    for size in ("100k", "1m"):
        datasets.fetch_movielens(size, *options)
    for region in ("gene_body", "promoter"):
        datasets.fetch_methylation(region, *options)
    assert all(tuple(rest) == options for _, *rest in asked)
    assert Counter(name for name, *_ in asked) == {
        name: 1 + (name == "CCLE_IC50") for name in CATALOGUE if name not in EMBEDDED
    }


def test_unknown_names_and_options_are_refused_with_a_hint():
    with pytest.raises(DataError, match=r"no dataset 'gdcs'.*Did you mean 'GDSC'\?"):
        datasets.load("gdcs")
    with pytest.raises(DataError, match=r"no dataset 'digit'.*Did you mean 'digits'\?"):
        datasets.present("digit")
    with pytest.raises(DataError, match=r"measure must be 'ic50' or 'ec50', not 'IC50'\. Did you"):
        datasets.fetch_ccle("IC50")
    with pytest.raises(DataError, match="version must be 'study' or 'clean', not 'paper'"):
        datasets.fetch_ccle("ec50", version="paper")
    with pytest.raises(DataError, match="size must be '100k' or '1m', not '10m'"):
        datasets.fetch_movielens("10m")
    with pytest.raises(DataError, match="region must be"):
        datasets.fetch_methylation("body")


def test_counts_are_checked(tmp_path):
    write(tmp_path, {"methylation/gene_body_integer.txt": "18\t3\n0\t19\n"})
    message = (
        r"Methylation_GM: .*gene_body_integer\.txt gives 2 x 2 with 4 observed entries instead "
        "of 160 x 254 with 40640; get the file again, or pass check=False"
    )
    with pytest.raises(DataError, match=message):
        datasets.fetch_methylation(data_home=tmp_path)


def test_where_files_are_looked_for(tmp_path, monkeypatch):
    import pooch

    first, cache, home = (tmp_path / name for name in ("first", "cache", "home"))
    monkeypatch.setattr(pooch, "os_cache", lambda _project: cache)
    monkeypatch.setenv("BAYESMF_DATA", str(first))
    assert _files.folders() == [first, cache]
    assert _files.folders(home) == [home]
    monkeypatch.delenv("BAYESMF_DATA")
    assert _files.folders() == [cache]
    assert not datasets.present("Methylation_GM")
    write(cache, {"methylation/gene_body_integer.txt": "1\t2\n"})
    assert datasets.present("Methylation_GM")
    assert not datasets.present("Methylation_GM", data_home=home)
    assert datasets.present("digits", data_home=home)
    monkeypatch.setenv("BAYESMF_DATA", str(first))
    assert same(datasets.load("Methylation_GM", check=False).X, [[1, 2]])
    write(first, {"methylation/gene_body_integer.txt": "3\t4\n"})
    assert same(datasets.load("Methylation_GM", check=False).X, [[3, 4]])


# Files that are absent.


@pytest.fixture
def offline(monkeypatch, tmp_path) -> Path:
    """An empty data folder, and no network."""
    import pooch
    import requests

    def refuse(url, *_ignored):
        raise requests.ConnectionError(f"no route to {url}")

    monkeypatch.setattr(_files, "download", refuse)
    monkeypatch.setattr(pooch, "os_cache", lambda _project: tmp_path / "cache")
    monkeypatch.setenv("BAYESMF_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name not in EMBEDDED])
def test_absent_files_are_named_with_source_and_folder(offline, name):
    """Also where a download is forbidden by the caller."""
    entry = CATALOGUE[name]
    with pytest.raises(DataError) as caught:
        datasets.load(name, download=False)
    message = str(caught.value)
    for part in (*entry.files, entry.source, str(offline), entry.licence):
        assert part in message
    assert ("or pass download=True" in message) == bool(entry.url)
    assert ("neither holds nor downloads" in message) == (not entry.url)


@pytest.mark.parametrize("name", ["MovieLens_100K", "MovieLens_1M"])
def test_a_failed_download_says_what_to_do(offline, name):
    with pytest.raises(DataError, match="could not be downloaded") as caught:
        datasets.load(name)
    for part in (CATALOGUE[name].url, str(offline / "movielens"), "no route", "by hand"):
        assert part in str(caught.value)
    assert [path for path in offline.rglob("*") if path.is_file()] == []


def test_without_pooch(offline, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataError, match=r"ml-1m\.zip needs pooch; run pip install 'bayesmf\[data]"):
        datasets.fetch_movielens("1m")
    monkeypatch.delenv("BAYESMF_DATA")
    assert not datasets.present("MovieLens_1M")
    with pytest.raises(DataError, match=r"that BAYESMF_DATA names: .*pip install 'bayesmf\[data]'"):
        datasets.fetch_movielens("1m")
    assert datasets.load("drug_sensitivity").X.shape == (120, 40)


# Archives.


def zipped(members: dict[str, str], modes: dict[str, int] | None = None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, text in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (modes or {}).get(name, stat.S_IFREG | 0o644) << 16
            pack.writestr(info, text.encode("latin-1"))
    return buffer.getvalue()


def tarred(members: dict[str, str], kinds: dict[str, bytes] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as pack:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.type = (kinds or {}).get(name, tarfile.REGTYPE)
            info.linkname = text if info.type != tarfile.REGTYPE else ""
            info.size = len(text) if info.type == tarfile.REGTYPE else 0
            pack.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


HOSTILE = {
    "parent.zip": (zipped({"good": "1", "a/../../evil": "x"}), "evil"),
    "absolute.zip": (zipped({"good": "1", "/tmp/evil": "x"}), "/tmp/evil"),
    "backslash.zip": (zipped({"good": "1", "..\\evil": "x"}), "evil"),
    "drive.zip": (zipped({"good": "1", "C:\\evil": "x"}), "C:"),
    "link.zip": (zipped({"good": "1", "evil": "/etc"}, {"evil": stat.S_IFLNK | 0o777}), "evil"),
    "parent.tar.gz": (tarred({"good": "1", "../evil": "x"}), "../evil"),
    "absolute.tar.gz": (tarred({"good": "1", "/tmp/evil": "x"}), "/tmp/evil"),
    "symlink.tar.gz": (tarred({"good": "1", "evil": "/etc"}, {"evil": tarfile.SYMTYPE}), "evil"),
    "hardlink.tar.gz": (tarred({"good": "1", "evil": "../x"}, {"evil": tarfile.LNKTYPE}), "evil"),
    "device.tar.gz": (tarred({"good": "1", "evil": ""}, {"evil": tarfile.CHRTYPE}), "evil"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_are_refused_as_a_whole(tmp_path, name):
    content, member = HOSTILE[name]
    archive, folder = tmp_path / name, tmp_path / "inner" / "folder"
    archive.write_bytes(content)
    with pytest.raises(DataError, match="nothing was unpacked") as caught:
        _files.unpack(archive, folder)
    assert member in str(caught.value)
    assert str(archive) in str(caught.value)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [archive]


@pytest.mark.parametrize("name", ["good.zip", "good.tar.gz"])
def test_good_archives_are_unpacked(tmp_path, name):
    members = {"ml/a.txt": "one", "ml/deep/b.txt": "two"}
    (tmp_path / name).write_bytes((zipped if name.endswith("zip") else tarred)(members))
    _files.unpack(tmp_path / name, tmp_path / "out")
    found = {str(p.relative_to(tmp_path / "out")): p for p in (tmp_path / "out").rglob("*.*")}
    assert {key: path.read_text() for key, path in found.items()} == members


def test_a_file_that_is_no_archive(tmp_path):
    (tmp_path / "page.zip").write_text("<html>not found</html>")
    with pytest.raises(DataError, match=r"page\.zip is neither a zip nor a tar archive"):
        _files.unpack(tmp_path / "page.zip", tmp_path / "out")


# Downloads from a server on this machine.


class Server:
    """Serves one archive, cuts the first answers short, and remembers the ranges asked for."""

    def __init__(self, content: bytes, cuts: int = 0, ranges: bool = True) -> None:
        self.content, self.cuts, self.ranges = content, cuts, ranges
        self.asked: list[int] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *_ignored: object) -> None:
                """Say nothing."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,))
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.http.server_port}/ml-1m.zip"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        begin = int(request.headers.get("Range", "bytes=0-")[6:-1])
        self.asked.append(begin)
        if begin >= len(self.content):
            request.send_response(416)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        is_part = self.ranges and begin > 0
        body = self.content[begin if is_part else 0 :]
        request.send_response(206 if is_part else 200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if len(self.asked) <= self.cuts:
            body = body[: len(body) // 2]
        request.wfile.write(body)

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


ARCHIVED = {**ML_1M, "ml-1m/README": np.random.default_rng(0).bytes(500_000).decode("latin-1")}
CONTENT = zipped(ARCHIVED)
CHUNK = 1 << 16  # of a chunk that was cut, nothing is kept


@pytest.fixture
def serve(monkeypatch) -> Iterator:
    """Start servers and let MovieLens 1M come from them, without waits between attempts."""
    servers: list[Server] = []
    monkeypatch.setattr(_files, "_WAIT", 0.0)

    def start(content: bytes = CONTENT, expected: bytes = CONTENT, **options) -> Server:
        servers.append(Server(content, **options))
        known = "md5:" + hashlib.md5(expected).hexdigest()
        entry = replace(CATALOGUE["MovieLens_1M"], url=servers[-1].url, known_hash=known)
        monkeypatch.setitem(CATALOGUE, "MovieLens_1M", entry)
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


UNPACKED = {f"movielens/{name}" for name in ARCHIVED}


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no ranges"])
def test_a_cut_download_goes_on_where_it_stopped(tmp_path, serve, ranges):
    server = serve(cuts=1, ranges=ranges)
    X = datasets.fetch_movielens("1m", data_home=tmp_path, check=False).X
    assert X.n_observed == 9
    half = len(CONTENT) // 2
    assert server.asked[0] == 0
    assert half - CHUNK < server.asked[1] <= half
    assert files_of(tmp_path) == UNPACKED
    datasets.fetch_movielens("1m", data_home=tmp_path, check=False)
    assert len(server.asked) == 2  # what is there is not downloaded again


def test_a_download_goes_on_in_the_next_session(tmp_path, serve):
    server = serve(cuts=_files._ATTEMPTS)
    with pytest.raises(DataError, match="could not be downloaded"):
        datasets.fetch_movielens("1m", data_home=tmp_path, check=False)
    assert files_of(tmp_path) == {"movielens/ml-1m.zip.part"}
    begun = (tmp_path / "movielens" / "ml-1m.zip.part").stat().st_size
    datasets.fetch_movielens("1m", data_home=tmp_path, check=False)
    assert server.asked[-1] == begun > server.asked[-2] > server.asked[-3] > 0
    assert files_of(tmp_path) == UNPACKED


def test_a_whole_part_is_taken_as_it_is(tmp_path, serve):
    server = serve()
    (tmp_path / "movielens").mkdir()
    (tmp_path / "movielens" / "ml-1m.zip.part").write_bytes(CONTENT)
    datasets.fetch_movielens("1m", data_home=tmp_path, check=False)
    assert server.asked == [len(CONTENT)]
    assert files_of(tmp_path) == UNPACKED


def test_a_wrong_checksum_is_refused_and_leaves_nothing(tmp_path, serve):
    serve(expected=b"something else")
    with pytest.raises(DataError, match=r"could not be downloaded .*does not match the known hash"):
        datasets.fetch_movielens("1m", data_home=tmp_path, check=False)
    assert files_of(tmp_path) == set()


def test_a_hostile_download_is_refused_and_leaves_nothing(tmp_path, serve):
    content = zipped({**ML_1M, "../evil": "x"})
    serve(content, content)
    with pytest.raises(DataError, match=r"'\.\./evil'"):
        datasets.fetch_movielens("1m", data_home=tmp_path, check=False)
    assert files_of(tmp_path) == set()


def test_the_downloaded_counts_are_checked(tmp_path, serve):
    serve()
    with pytest.raises(DataError, match=r"ratings\.dat gives 3 x 3 with 9 observed"):
        datasets.fetch_movielens("1m", data_home=tmp_path)


# Datasets that need no file.


def test_digits():
    data = datasets.load_digits()
    X = data.X
    assert (X.shape, X.n_observed) == ((1797, 64), 115_008)
    Poisson().check(X)
    assert X.rows.values.max() == 16
    assert X.row_labels[17] == "digit 7 #17"
    assert X.col_labels[63] == "pixel 7,7"
    assert same(datasets.load_digits(raw=True).X, X.to_array())


def test_drug_sensitivity_has_the_truth_that_its_description_says():
    data = datasets.load_drug_sensitivity()
    X, truth = data.X, data.truth
    assert X.shape == truth.shape == (120, 40)
    assert (X.row_labels[0], X.col_labels[-1]) == ("CL-001", "drug 40")
    assert X.rows.values.min() >= 0 and truth.min() > 0
    assert str(datasets.NOISE_SD) in data.description
    i, j, values = X.triples()
    noise = values - truth[i, j]
    assert abs(noise.mean()) < 4 * datasets.NOISE_SD / np.sqrt(noise.size)
    assert abs(noise.std() / datasets.NOISE_SD - 1) < 4 / np.sqrt(2 * noise.size)
    centred = truth - truth.mean(axis=1, keepdims=True)
    centred -= centred.mean(axis=0)
    spectrum = np.linalg.svd(centred, compute_uv=False)
    assert spectrum[embedded.RANK - 1] > 1 > 1e-9 > spectrum[embedded.RANK]
    counts = X.cols.counts
    assert counts[-12:].max() <= 60 < 90 < counts[:-12].min()
    assert X.rows.counts.min() >= 3


def test_drug_sensitivity_is_always_the_same():
    first, second = datasets.load_drug_sensitivity(), datasets.load("drug_sensitivity", raw=True)
    assert np.array_equal(first.X.to_array(), second.X.to_array(), equal_nan=True)
    assert np.array_equal(first.truth, second.truth)
    assert first.truth is not second.truth
    np.testing.assert_allclose(
        [first.X.mean, first.X.variance, first.truth[0, 0], first.truth[-1, -1]],
        [7.43308874014, 2.45864637887, 8.12343258455, 7.96508200737],
        rtol=1e-9,
    )


# The package.


@pytest.mark.parametrize("module", [catalogue, loaders])
def test_examples_in_docstrings_run(module):
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_public_names_are_documented():
    for name in datasets.__all__:
        assert getattr(datasets, name).__doc__, name


def test_import_is_light():
    code = (
        "import sys, bayesmf.datasets; heavy = 'pandas', 'sklearn', 'scipy', 'numba', 'pooch', "
        "'requests', 'tqdm'; print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
