"""Messy files are read to the true matrix, or say what makes them so; then that works."""

from __future__ import annotations

import ast
import re
import shlex

import numpy as np
import pytest

from bayesmf import DataError, read_matrix
from bayesmf.cli import _reading, parser
from bayesmf.data.inspection import inspect
from tests.reading.corpus import CASES, made

SAID = re.compile(r"(\w+)=('(?:[^'\\]|\\.)*'|\"[^\"]*\"|-?\d+) \((--.*?)\)(?= |;|\.|,|$)")
JOINED = ("drop", "missing")  # options that name several things


def said(message):
    """The first option that a sentence names, in Python and on the command line."""
    name, value, words = SAID.search(message).groups()
    return name, ast.literal_eval(value), shlex.split(words)


def mended(path, mends):
    """Read, doing what each sentence says, until nothing is left to mend.

    Returns the matrix, the options in Python, and those on the command line.
    """
    options, words = {}, []
    for _ in range(len(mends) + 1):
        try:
            X = read_matrix(path, **options)
            sentences = inspect(X)
        except DataError as error:
            X, sentences = None, [str(error)]
        todo = [(s.index(mend), mend, s) for s in sentences for mend in mends if mend in s]
        if not todo:
            assert X is not None, sentences
            return X, options, words
        _, mend, sentence = min(todo)
        mends = [other for other in mends if other != mend]
        name, value, line = said(sentence)
        if name in options:
            value = f"{options[name]},{value}"
            words = [*words[: words.index(f"--{name}")], *words[words.index(f"--{name}") + 2 :]]
            line = [f"--{name}", value]
        options[name], words = value, [*words, *line]
    raise AssertionError((mends, options))


@pytest.mark.parametrize("case", CASES)
def test_messy_files(tmp_path, case):
    path, sheet, messes = made(case, tmp_path)
    mends = [mess.mend for mess in messes if mess.mend]
    X, options, words = mended(path, mends)
    assert bool(options) == bool(mends), "each option that is needed is named, and no other"
    check(X, sheet)
    told = " ".join(X.origin.notes)
    for mess in messes:
        assert mess.told in told
    for command in ("fit", "compare"):  # the same options, the same matrix
        given = vars(parser().parse_args([command, str(path), *words]))
        check(_reading.read(given["data"], given)[0], sheet)
    assert X.origin.corner == ("" if sheet.corner == "none" else sheet.corner)


def check(X, sheet):
    np.testing.assert_array_equal(X.to_array(), sheet.values)
    assert X.row_labels.tolist() == sheet.rows and X.col_labels.tolist() == sheet.cols
    found = {}
    if X.bounds is not None:
        i, j, _ = X.triples()
        ends = zip(X.bounds.low, X.bounds.high, strict=True)
        every = zip(zip(i, j, strict=True), ends, strict=True)
        found = {cell: end for cell, end in every if end[0] < end[1]}
    assert found == sheet.bounds


def test_there_are_at_least_sixty_files_and_no_two_are_alike(tmp_path):
    files = {made(case, tmp_path)[0].read_bytes() for case in CASES}
    assert len(files) == len(CASES) >= 60
