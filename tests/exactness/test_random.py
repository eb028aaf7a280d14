"""Streams: no two keys share a state, first draws look random, threads change nothing."""

import itertools

import numpy as np
import pytest
from scipy import stats

from bayesmf.kernels import fill as kinds
from bayesmf.kernels import random
from bayesmf.kernels.compile import kernel
from bayesmf.kernels.random import next_bits, seed_stream
from bayesmf.streams import Stream, seed_words
from tests.helpers.verdicts import seeded

LEVEL = 1e-4 / 100  # there are fewer than 100 comparisons
GRID = (4, 16, 64, 256)  # chains, sites, sweeps, rows: a million keys
SEEDS = ("plain", "ordinary")
WORD = 2**64


def words_of(seed):
    """Two words of a seed: nearly all bits zero, or mixed as for a user."""
    plain = np.array([seeded(), 0], np.uint64)
    return plain if seed == "plain" else seed_words(seeded(1))


@kernel
def start(keys, rows, states, bits):
    """States of all streams of these keys (n, 4) and rows (n,), and their first bits (n, draws)."""
    for t in range(rows.size):
        seed_stream(keys[t], rows[t], states[t])
        s = states[t].copy()
        for d in range(bits.shape[1]):
            bits[t, d] = next_bits(s)


def apart(chain, site, sweep, row):
    """Last two words of the key, and the row."""
    return (chain << np.uint64(32)) | site, sweep, row


def scan(seed, chains, sites, sweeps, rows, draws=1, scheme=apart):
    """States and first bits over all combinations, in this order, the last index fastest."""
    axes = [np.asarray(axis, np.uint64) for axis in (chains, sites, sweeps, rows)]
    combined = (part.ravel() for part in np.meshgrid(*axes, indexing="ij"))
    third, fourth, row = scheme(*combined)
    keys = np.empty((row.size, 4), np.uint64)
    keys[:, 0], keys[:, 1] = seed
    keys[:, 2], keys[:, 3] = third, fourth
    states, bits = np.empty((row.size, 4), np.uint64), np.empty((row.size, draws), np.uint64)
    start(keys, row.astype(np.int64), states, bits)
    return states, bits


def distinct(states):
    """Number of different rows."""
    return len(np.unique(np.ascontiguousarray(states).view("V32")))


def grid(seed, draws=1):
    return scan(seed, *(range(size) for size in GRID), draws=draws)


# The generator itself, in whole numbers


def rotate(x, k):
    return ((x << k) | (x >> (64 - k))) % WORD


def plain_bits(s):
    """Advance xoshiro256++, as its authors wrote it, on a list of four whole numbers."""
    result = (rotate((s[0] + s[3]) % WORD, 23) + s[0]) % WORD
    shifted = (s[1] << 17) % WORD
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= shifted
    s[3] = rotate(s[3], 45)
    return result


def plain_mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % WORD
    return x ^ (x >> 31)


def test_known_output():
    """The first numbers of the reference implementation, started at 1, 2, 3, 4."""
    state = np.array([1, 2, 3, 4], np.uint64)
    known = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205]
    assert [int(next_bits(state)) for _ in known] == known


def test_generator_against_whole_numbers():
    state = np.empty(4, np.uint64)
    seed_stream(Stream(seed_words(7), chain=3, sweep=9).key(), 5, state)
    plain = [int(word) for word in state]
    for _ in range(200):
        assert int(next_bits(state)) == plain_bits(plain)
    assert [int(word) for word in state] == plain


@pytest.mark.parametrize("row", [0, 1, 77, 2**32 - 1])
def test_seeding_against_whole_numbers(row):
    key = Stream(seed_words(7), chain=3, sweep=2**32 - 2).key()
    state = np.empty(4, np.uint64)
    seed_stream(key, row, state)
    k = [int(word) for word in key]
    s = [plain_mix(k[0] ^ ((k[3] << 32) | row))]
    s.append(plain_mix(k[1] ^ k[2] ^ (s[0] * 0x9E3779B97F4A7C15 % WORD)))
    s.append(plain_mix((s[0] + s[1] + 0x9E3779B97F4A7C15) % WORD))
    s.append(plain_mix(s[1] ^ ((s[2] + 0xD1B54A32D192ED03) % WORD)))
    assert [int(word) for word in state] == s


def test_keys():
    """Sites are numbered from one in the order of use; chain, sweep and seed stand apart."""
    stream = Stream(seed_words(5), chain=2, sweep=3)
    keys = [stream.key() for _ in range(3)]
    assert [int(key[2]) for key in keys] == [(2 << 32) | site for site in (1, 2, 3)]
    assert all(int(key[3]) == 3 for key in keys)
    assert all(np.array_equal(key[:2], seed_words(5)) for key in keys)


# No two streams are the same


@pytest.mark.parametrize("seed", SEEDS)
def test_no_state_occurs_twice(seed):
    states, _ = grid(words_of(seed))
    assert len(states) == np.prod(GRID) > 1_000_000
    assert distinct(states) == len(states)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_state_occurs_twice_far_out(seed):
    """Powers of two and their neighbours, up to the ends of the ranges."""
    ends = np.unique([2**k + d for k in range(32) for d in (-1, 0, 1)] + [2**32 - 1])
    ends = ends[ends < 2**32]
    few = ends[:: len(ends) // 11]
    for axes in ((few, few, ends, ends), (ends, ends, few, few)):
        states, _ = scan(words_of(seed), *axes)
        assert distinct(states) == len(states) > 500_000


def test_first_word_tells_sweep_and_row_the_second_chain_and_site():
    """The proof of injectivity, on the grid: half the state per half of the key."""
    states, _ = grid(words_of("ordinary"))
    first = states[:, 0].reshape(GRID)
    assert np.all(first == first[:1, :1])
    assert len(np.unique(first[0, 0])) == GRID[2] * GRID[3]
    second = states[:, 1].reshape(GRID)[:, :, 3, 5]
    assert len(np.unique(second)) == GRID[0] * GRID[1]


def test_seeds_and_chains_differ():
    states = [scan(seed_words(number), range(3), [1], [0], range(50))[0] for number in range(200)]
    assert distinct(np.concatenate(states)) == 200 * 150


END = 2**32 - 1
LONG_GRID = (
    [*range(4), END],
    [*range(1, 13), 2**31, END],
    [*range(200), 999, 1000, 9999, 2**16 - 1, 2**16, 2**31, END - 1, END],
    [*range(700), 4095, 4096, 2**20, 2**31, END - 1, END],
)
SHORT_GRID = ([0, 1, 2, END], [1, 2, 3, END], [*range(20), END], [0, 1, 2, 256, END])


def shared(seed, chains, *axes, scheme=apart):
    """Numbers of keys, and of those whose stream another has: two words decide the other two."""
    halves = [scan(seed, [c], *axes, scheme=scheme)[0][:, :2].copy() for c in chains]
    first, second = np.concatenate(halves).T
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    return len(order), np.count_nonzero((first[1:] == first[:-1]) & (second[1:] == second[:-1]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_ten_million_keys_share_no_stream(seed, verdict):
    """Chains, sites, sweeps and rows as runs have them, with the ends of their ranges."""
    keys, found = shared(words_of(seed), *LONG_GRID)
    assert keys == np.prod([len(set(axis)) for axis in LONG_GRID]) > 10_000_000
    verdict("streams", "keys that share a stream", found, 0, keys=keys)


SCHEMES = {
    "site and row added": lambda chain, site, sweep, row: (
        (chain << np.uint64(32)) | (site + row), sweep, 0 * row
    ),
    "sweep and row added": lambda chain, site, sweep, row: (
        (chain << np.uint64(32)) | site, 0 * sweep, sweep + row
    ),
    "chain and site in one place": lambda chain, site, sweep, row: (chain ^ site, sweep, row),
    "rows beyond 255 forgotten": lambda chain, site, sweep, row: (
        (chain << np.uint64(32)) | site, sweep, row & np.uint64(255)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMES)
def test_scan_notices_shared_streams(name, verdict):
    _, found = shared(words_of("ordinary"), *SHORT_GRID, scheme=SCHEMES[name])
    verdict.rejects("streams", name, found > 0)


def test_scan_of_the_same_keys_finds_nothing():
    assert shared(words_of("ordinary"), *SHORT_GRID)[1] == 0


# First draws look independent


def uniforms(bits):
    return (np.float64(bits >> np.uint64(12)) + 0.5) * 2.0**-52


def fit(x):
    return stats.kstest(x, "uniform").pvalue


def correlation(x, y):
    """Probability of a correlation as strong as this."""
    z = np.corrcoef(x.ravel(), y.ravel())[0, 1] * np.sqrt(x.size)
    return 2 * stats.norm.sf(abs(z))


@pytest.fixture
def random_looking(verdict):
    """Note the smallest of some p-values."""

    def judge(subject, *found):
        verdict("streams", subject, min(1.0, *found), LEVEL, at_least=True)

    return judge


@pytest.mark.seeds
@pytest.mark.parametrize("seed", SEEDS)
def test_first_draws_are_uniform(seed, random_looking):
    u = uniforms(grid(words_of(seed))[1])[:, 0].reshape(GRID)
    found = [fit(u.ravel())]
    for axis in range(4):  # along each axis, the others fixed
        line = np.moveaxis(u, axis, -1)
        found.append(fit(line[(0,) * 3 if axis != 3 else (1, 2, 3)]))
    random_looking("first draws uniform", *found)


@pytest.mark.seeds
@pytest.mark.parametrize("seed", SEEDS)
def test_first_draws_of_neighbours_are_uncorrelated(seed, random_looking):
    u = uniforms(grid(words_of(seed), draws=3)[1]).reshape(*GRID, 3)
    first = u[..., 0]
    pairs = [(np.delete(first, 0, axis), np.delete(first, -1, axis)) for axis in range(4)]
    pairs += [(u[..., a], u[..., b]) for a, b in itertools.combinations(range(3), 2)]
    random_looking("first draws uncorrelated", *(correlation(x, y) for x, y in pairs))


@pytest.mark.seeds
@pytest.mark.parametrize("axis", range(4))
def test_every_bit_is_fair_and_flips_half_the_time(axis, random_looking):
    """A step along any part of the key changes every bit of the first draw as a coin would."""
    bits = grid(words_of("plain"))[1][:, 0].reshape(GRID)
    for words in (bits, np.delete(bits, 0, axis) ^ np.delete(bits, -1, axis)):
        ones = np.array([np.count_nonzero(words & np.uint64(1 << k)) for k in range(64)])
        z = (ones - words.size / 2) / np.sqrt(words.size / 4)
        random_looking("bits of first draws", 128 * stats.norm.sf(np.abs(z).max()))


@pytest.mark.seeds
def test_a_stream_is_uniform_and_uncorrelated(random_looking):
    state = np.empty(4, np.uint64)
    seed_stream(Stream(seed_words(seeded())).key(), 0, state)
    u = np.array([random.uniform(state) for _ in range(50_000)])
    lagged = [correlation(u[lag:], u[:-lag]) for lag in (1, 2, 3)]
    random_looking("uniforms of one stream", fit(u), *lagged)


def test_uniform_is_strictly_inside():
    """The states that give 64 zeros and 64 ones."""
    zeros = np.array([0, 5, 6, 0], np.uint64)
    ones = np.array([WORD - 1, 5, 6, 1], np.uint64)
    assert int(next_bits(zeros.copy())) == 0
    assert int(next_bits(ones.copy())) == WORD - 1
    assert random.uniform(zeros) == 2.0**-53 > 0
    assert random.uniform(ones) == 1 - 2.0**-53 < 1


# Arrays


PARAMETERS = {
    "NORMAL": (1.0, 2.0),
    "GAMMA": (0.7, 2.0),
    "EXPONENTIAL": (3.0,),
    "TRUNCATED": (-1.0, 2.0),
    "INVERSE_GAUSSIAN": (2.0, 3.0),
    "GIG": (2.5, 1.0, 4.0),
}


def draw(kind, shape, threads=1, parameters=None):
    parameters = PARAMETERS[kind] if parameters is None else parameters
    stream = Stream(seed_words(11), chain=1, sweep=4, threads=threads)
    return stream.fill(getattr(kinds, kind), shape, *parameters)


@pytest.mark.parametrize("kind", PARAMETERS)
def test_fill_does_not_depend_on_threads(kind):
    one = draw(kind, (1003, 30))
    for threads in (2, 4):
        np.testing.assert_array_equal(draw(kind, (1003, 30), threads), one)


@pytest.mark.parametrize("kind", PARAMETERS)
def test_fill_gives_every_row_its_own_stream(kind):
    """A row's draws depend neither on how many rows there are nor, at its start, on how long."""
    whole = draw(kind, (40, 7))
    np.testing.assert_array_equal(draw(kind, (15, 7)), whole[:15])
    np.testing.assert_array_equal(draw(kind, (40, 3)), whole[:, :3])
    np.testing.assert_array_equal(draw(kind, (40,)), whole[:, 0])
    assert draw(kind, ()) == whole[0, 0]
    assert len(np.unique(whole)) == whole.size


@pytest.mark.parametrize("shape", [(1, 1), (6, 1), (1, 5), (6, 5)])
def test_fill_broadcasts_parameters(shape):
    rate = np.random.default_rng(0).gamma(2.0, 1.0, shape)
    unit = draw("EXPONENTIAL", (6, 5), parameters=(1.0,))
    np.testing.assert_allclose(draw("EXPONENTIAL", (6, 5), parameters=(rate,)), unit / rate)
