"""Streams under a battery of tests of randomness: draws of one, first draws of many, interleaved.

The same battery notices generators and ways of seeding that are known to be bad.
"""

from itertools import count, islice

import numpy as np
import pytest

from bayesmf.kernels.compile import kernel
from bayesmf.kernels.random import next_bits, seed_stream
from bayesmf.streams import Stream, seed_words
from tests.exactness.battery import TESTS, battery
from tests.exactness.test_random import scan, words_of
from tests.helpers.verdicts import seeded

CHUNK = 2**20
LONG = 2**25 // CHUNK
FAMILY_ERROR = 1e-4
START = np.uint64(88172645463325252)


@kernel
def advance(states, words):
    """Draws of several streams in turn: words (draws, streams)."""
    for i in range(words.shape[0]):
        for j in range(words.shape[1]):
            words[i, j] = next_bits(states[j])


def started(rows):
    """States of streams of these rows under one key."""
    key = Stream(seed_words(seeded()), chain=1, sweep=7).key()
    states = np.empty((len(rows), 4), np.uint64)
    for row, state in zip(rows, states, strict=True):
        seed_stream(key, row, state)
    return states


def interleaved(rows):
    """Chunks of draws of these rows' streams in turn."""
    states = started(rows)
    for _ in count():
        words = np.empty((CHUNK // len(rows), len(rows)), np.uint64)
        advance(states, words)
        yield words.ravel()


def along(axis, seed=None):
    """Chunks of first draws where one of chain, site, sweep and row counts up."""
    for first in count(0, CHUNK):
        axes = [np.array([start]) for start in (0, 1, 0, 0)]
        axes[axis] = np.arange(first, first + CHUNK)
        yield scan(seed_words(seeded()) if seed is None else seed, *axes)[1].ravel()


def of_a_run():
    """Chunks of first draws of 4 chains, 8 sites, 64 sweeps and 512 rows."""
    for first in count(0, 64):
        sweeps = np.arange(first, first + 64)
        yield scan(seed_words(seeded()), range(4), range(1, 9), sweeps, range(512))[1].ravel()


SUBJECTS = {
    "one stream": lambda: interleaved([0]),
    "four rows in turn": lambda: interleaved([0, 1, 2, 3]),
    "first draws over rows": lambda: along(3),
    "first draws over rows, plain seed": lambda: along(3, words_of("plain")),
    "first draws over sweeps": lambda: along(2),
    "first draws over sites": lambda: along(1),
    "first draws over chains": lambda: along(0),
    "first draws of a run": of_a_run,
}
LEVEL = FAMILY_ERROR / (len(TESTS) * len(SUBJECTS))


def judge(verdict, subject, chunks):
    found = battery(islice(SUBJECTS[subject](), chunks))
    worst = min(found, key=found.get)
    verdict("streams", subject, found[worst], LEVEL, at_least=True, worst=worst)


@pytest.mark.seeds
@pytest.mark.parametrize("subject", SUBJECTS)
def test_battery(subject, verdict):
    judge(verdict, subject, 1)


@pytest.mark.slow
@pytest.mark.parametrize("subject", SUBJECTS)
def test_long_battery(subject, verdict):
    judge(verdict, subject, LONG)


# Power


def congruential():
    """Modulus 2^64: bit k has period 2^(k + 1)."""
    powers = np.multiply.accumulate(np.full(CHUNK, 6364136223846793005, np.uint64))
    return powers + np.uint64(1442695040888963407) * np.cumsum(powers, dtype=np.uint64)


def good(seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, CHUNK, dtype=np.uint64)


def randu():
    """Its 31 bits above 33 good ones."""
    powers = np.multiply.accumulate(np.full(CHUNK, 65539, np.uint64))
    return powers << np.uint64(33) | good() >> np.uint64(31)


@kernel
def xorshift(x, words):
    for i in range(words.size):
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
        words[i] = x


@kernel
def unscrambled(state, words):
    for i in range(words.size):
        words[i] = state[0]
        next_bits(state)


def written(write, start):
    words = np.empty(CHUNK, np.uint64)
    write(start, words)
    return words


def biased(place=37, excess=0.01):
    """One bit is one slightly too often."""
    forced = np.random.default_rng(1).random(CHUNK) < excess
    return np.where(forced, good() | np.uint64(1 << place), good())


def unmixed_rows():
    """First draws of the states (row, a, b, c)."""
    states = np.tile(started([0]), (CHUNK, 1))
    states[:, 0] = np.arange(CHUNK)
    words = np.empty((1, CHUNK), np.uint64)
    advance(states, words)
    return words[0]


def one_sweep_ahead():
    """First draws of 1024 sweeps of 1024 rows: what row r has, row r + 1 has a sweep before."""
    first = next(along(3))
    return first[np.add.outer(np.arange(1024), np.arange(1024)).ravel()]


def one_draw_ahead():
    """Sixteen draws of every row, which are those of the row before after its first."""
    stream = next(interleaved([0]))
    return stream[np.add.outer(np.arange(CHUNK // 16), np.arange(16)).ravel()]


LOW = (
    "low byte", "low 16 bits", "low pairs", "low triples", "low runs", "low longest run",
    "low gaps", "low poker", "low walk", "low collisions", "low linear complexity",
    "correlation of low bits", "each flip",
)  # fmt: skip
HIGH = (
    "high triples", "high collisions", "high birthdays", "high rank 32", "rank 64", "longest run",
    "bytes by place", "16 bits", "correlation of bits",
)  # fmt: skip
ORDER = (
    "high 16 bits", "high pairs", "high gaps", "high poker", "poker within words", "order",
    "low order", "maximum of eight", "low maximum of eight", "low birthdays", "low rank 32", "runs",
    "walk of 1024 bits", "walk of 16384 bits",
)  # fmt: skip
AGAIN = ("repeated words", "weights of six", "correlation of uniforms", "correlation of weights")
LINEAR = ("low linear complexity", "high linear complexity")

# A broken generator, and the tests that must all notice it
BROKEN = {
    "congruential, modulus 2^64": (congruential, LOW),
    "RANDU": (randu, HIGH),
    "xorshift without scrambling": (lambda: written(xorshift, START), ("rank 64", *LINEAR)),
    "xoshiro without scrambling": (lambda: written(unscrambled, started([0])[0]), LINEAR),
    "one biased bit": (biased, ("each bit",)),
    "rows not mixed": (unmixed_rows, ORDER),
    "two rows share a stream": (lambda: next(interleaved([0, 1, 1, 2])), AGAIN),
    "rows one sweep ahead": (one_sweep_ahead, ("monobit", *AGAIN)),
    "rows one draw ahead": (one_draw_ahead, AGAIN),
}


def test_every_test_notices_something():
    assert {test for _, tests in BROKEN.values() for test in tests} == set(TESTS)


@pytest.mark.parametrize("name", BROKEN)
def test_battery_notices(name, verdict):
    words, tests = BROKEN[name]
    found = battery([words()], tests)
    verdict.rejects("streams", name, max(found.values()) < LEVEL, found)
