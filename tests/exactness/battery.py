"""A battery of tests of randomness on 64-bit words.

Every test turns a chunk of words into a statistic whose law is known: counts in cells, sums that
are normal, or a number of rare events. Statistics of further chunks are added up, so that a long
sequence needs no more memory than one chunk. P-values are two-sided: counts can be too even, too.
"""

from dataclasses import dataclass
from functools import cache
from math import comb, perm

import numpy as np
from scipy import fft, special, stats

WORD = 64
FEW = 30  # degrees of freedom below which a perfect fit is no surprise
MANY = 5000  # cells beyond which Pearson's statistic serves
ENOUGH = 15  # expected count below which rare cells are put together


def two_sided(low, high):
    return float(min(1.0, 2 * min(low, high)))


def groups(expected):
    """Where groups of cells begin, each of which has enough; the rarest cells come first."""
    starts, total = [], ENOUGH
    common = np.searchsorted(expected, ENOUGH)
    for cell, count in enumerate(expected[: common + 1].tolist()):
        if total >= ENOUGH:
            starts.append(cell)
            total = 0.0
        total += count
    return np.append(starts, np.arange(common + 1, expected.size)).astype(np.intp)


def divergence(observed, expected, freedom):
    """Pearson's statistic of many cells; of few, the likelihood ratio, true in the far tail.

    The likelihood ratio is divided by Williams' correction.
    """
    if expected.size > MANY:
        return np.sum((observed - expected) ** 2 / expected)
    ratio = 2 * np.sum(special.xlogy(observed, observed / expected))
    return max(ratio / (1 + np.sum(1 / expected) / (6 * freedom)), 0.0)


@dataclass
class Cells:
    """Counts in cells and what is expected; `totals` sums of them are fixed."""

    observed: np.ndarray
    expected: np.ndarray
    totals: int = 1

    def __add__(self, other):
        observed, expected = self.observed + other.observed, self.expected + other.expected
        return Cells(observed, expected, self.totals)

    def p(self):
        order = np.argsort(self.expected, axis=None)
        observed, expected = self.observed.ravel()[order], self.expected.ravel()[order]
        starts = groups(expected)
        observed, expected = (np.add.reduceat(x, starts) for x in (observed, expected))
        freedom = expected.size - self.totals
        statistic = divergence(observed, expected, freedom)
        worse = stats.chi2.sf(statistic, freedom)
        if freedom < FEW:
            return float(worse)
        return two_sided(stats.chi2.cdf(statistic, freedom), worse)


@dataclass
class Sums:
    """Normal sums of mean zero; the one furthest off decides, at a price for their number."""

    values: np.ndarray
    variance: float

    def __add__(self, other):
        return Sums(self.values + other.values, self.variance + other.variance)

    def p(self):
        furthest = np.abs(self.values).max() / np.sqrt(self.variance)
        return float(min(1.0, 2 * stats.norm.sf(furthest) * np.size(self.values)))


@dataclass
class Rare:
    """A Poisson number of events."""

    count: int
    mean: float

    def __add__(self, other):
        return Rare(self.count + other.count, self.mean + other.mean)

    def p(self):
        law = stats.poisson(self.mean)
        return two_sided(law.cdf(self.count), law.sf(self.count - 1))


# Bits of words


def lanes(words, dtype):
    """The parts of every word, lowest first."""
    return words.astype("<u8", copy=False).view(dtype).reshape(len(words), -1)


def serial_bits(words):
    return np.unpackbits(words.astype("<u8", copy=False).view(np.uint8), bitorder="little")


def packed(words, place):
    """Words made of one bit of 64 successive words each."""
    bits = (words[: len(words) // WORD * WORD] >> np.uint64(place)).astype(np.uint8) & 1
    return np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64)


def high(words, bits):
    return words >> np.uint64(WORD - bits)


def low(words, bits):
    return words & np.uint64(2**bits - 1)


def uniforms(words):
    return (np.float64(words >> np.uint64(12)) + 0.5) * 2.0**-52


def low_uniforms(words):
    return (np.float64(low(words, 32)) + 0.5) * 2.0**-32


@cache
def byte_bits():
    """Bit k of every byte (256, 8)."""
    return np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")


@cache
def walks16():
    """End and highest point of the walk of +1 and -1 that 16 bits describe, for all of them."""
    all_bits = np.arange(2**16, dtype="<u2")[:, None].view(np.uint8)
    steps = 2 * np.unpackbits(all_bits, axis=1, bitorder="little").astype(np.int16) - 1
    path = np.cumsum(steps, axis=1, dtype=np.int16)
    return path[:, -1], path.max(axis=1)


def weights(words):
    """Number of ones in every word."""
    end, _ = walks16()
    a, b, c, d = end[lanes(words, "<u2")].T
    return (WORD + a + b + c + d) // 2


def byte_counts(words):
    """How often every byte stands at every place (8, 256)."""
    parts = lanes(words, np.uint8)
    return np.array([np.bincount(parts[:, k], minlength=256) for k in range(8)])


def ones(words):
    """How often every bit is set."""
    return (byte_counts(words) @ byte_bits()).ravel()


# Frequencies


def monobit(words):
    return Sums(ones(words).sum() - 32 * len(words), 16 * len(words))


def each_bit(words):
    return Sums(ones(words) - 0.5 * len(words), 0.25 * len(words))


def each_flip(words):
    """Bits that differ from those of the word before."""
    return each_bit(words[1:] ^ words[:-1])


def bytes_by_place(words):
    counts = byte_counts(words)
    return Cells(counts, np.full(counts.shape, len(words) / 256), totals=8)


def equal_cells(digits, number):
    counts = np.bincount(digits.ravel().astype(np.intp), minlength=number)
    return Cells(counts, np.full(number, digits.size / number))


def sixteens(words):
    return equal_cells(lanes(words, "<u2"), 2**16)


def serial(digits, bits, size):
    """Tuples of successive digits, none used twice."""
    digits = digits[: len(digits) // size * size].reshape(-1, size).astype(np.intp)
    return equal_cells(digits @ (1 << bits * np.arange(size)), 1 << bits * size)


# Order, runs and gaps


def runs(words):
    """Changes from one bit to the next within words."""
    changed = low(words ^ (words >> np.uint64(1)), 63)
    return Sums(weights(changed).sum() - 31.5 * len(words), 15.75 * len(words))


@cache
def longest_run_law(length=WORD):
    """Probabilities of the longest run of ones."""
    at_most = []
    for longest in range(length + 1):
        strings = [2**n for n in range(longest + 1)]
        for _ in range(longest, length):
            strings.append(sum(strings[-longest - 1 :]))
        at_most.append(strings[length] / 2**length)
    return np.diff(at_most, prepend=0.0)


def longest_run(words):
    longest, left = np.zeros(len(words), np.intp), words.copy()
    while left.any():
        longest += left != 0
        left &= left << np.uint64(1)
    return Cells(np.bincount(longest, minlength=WORD + 1), len(words) * longest_run_law())


def gaps(hits, probability, last=80):
    """Distances between hits: a number of them that all but surely occurs."""
    number = int(0.95 * probability * len(hits))
    distances = np.minimum(np.diff(np.flatnonzero(hits))[:number], last)
    law = probability * (1 - probability) ** np.arange(last)
    law[-1] = (1 - probability) ** (last - 1)
    return Cells(np.bincount(distances, minlength=last + 1)[1:], number * law)


def ordering(words, size=5):
    """Which of five successive words is the least, the next, and so on."""
    order = np.argsort(words[: len(words) // size * size].reshape(-1, size), axis=1)
    counts = np.bincount(order @ size ** np.arange(size), minlength=size**size)
    grid = np.indices((size,) * size).reshape(size, -1)[::-1]
    possible = np.all(np.sort(grid, axis=0) == np.arange(size)[:, None], axis=0)
    return Cells(counts[possible], np.full(perm(size), len(order) / perm(size)))


@cache
def distinct_law(n=16):
    """Probabilities of 1, 2, ..., n different values among n of n."""
    onto = [sum((-1) ** j * comb(r, j) * (r - j) ** n for j in range(r)) for r in range(1, n + 1)]
    return np.array([comb(n, r) * ways / n**n for r, ways in enumerate(onto, 1)])


def poker(hands):
    """Number of different values in hands of 16 digits out of 16 (16, hands)."""
    seen = np.zeros(hands.shape[1], np.uint16)
    for digit in hands:
        seen |= np.uint16(1) << digit.astype(np.uint16)
    different = byte_bits().sum(axis=1)[seen[:, None].view(np.uint8)].sum(axis=1)
    return Cells(
        np.bincount(different.astype(np.int64), minlength=17)[1:], len(seen) * distinct_law()
    )


def nibbles(words):
    """The 16 digits of every word."""
    return low(words >> np.arange(0, WORD, 4, dtype=np.uint64)[:, None], 4)


def successive(digits):
    """Digits of 16 words in a row."""
    return digits[: len(digits) // 16 * 16].reshape(-1, 16).T


def maximum(uniform, size=8, cells=128):
    """The largest of eight, on the scale on which it is uniform."""
    largest = uniform[: len(uniform) // size * size].reshape(-1, size).max(axis=1)
    return equal_cells(np.floor(largest**size * cells), cells)


# Dependence


def autocorrelation(x, variance):
    """Products at all distances, round the circle; `x` has mean zero."""
    spectrum = fft.rfft(x)
    sums = fft.irfft(spectrum.real**2 + spectrum.imag**2, len(x))
    return Sums(sums[1 : len(x) // 2], len(x) * variance**2)


def signs(bits):
    return 2.0 * bits - 1.0


def weight_tuples(words, size=6):
    """Light, middling or heavy: six successive words."""
    weight = weights(words[: len(words) // size * size])
    kind = (weight > 30).astype(np.intp) + (weight > 33)
    law = np.diff(stats.binom(WORD, 0.5).cdf([30, 33, WORD]), prepend=0.0)
    joint = law
    for _ in range(size - 1):
        joint = np.multiply.outer(joint, law).ravel()
    code = kind.reshape(-1, size) @ 3 ** np.arange(size)
    return Cells(np.bincount(code, minlength=3**size), len(code) * joint)


@cache
def highest_law(steps):
    """Probabilities of the highest point, 0 to `steps`, of a walk that starts at 0."""
    end = stats.binom(steps, 0.5)
    level = np.arange(steps + 2)
    reached = end.sf((level + steps + 1) // 2 - 1) + end.sf((level + steps) // 2)
    return -np.diff(np.minimum(reached, 1.0))


def walk(words, block):
    """Highest point of walks of +1 and -1, one step per bit of `block` words."""
    end, highest = walks16()
    parts = lanes(words[: len(words) // block * block], "<u2").reshape(-1, 4 * block)
    moves = end[parts]
    before = np.cumsum(moves, axis=1, dtype=np.int16) - moves
    peak = np.maximum((before + highest[parts]).max(axis=1), 0)
    law = highest_law(WORD * block)
    return Cells(np.bincount(peak, minlength=law.size), len(peak) * law)


# Coincidences


def equal_neighbours(x):
    x = np.sort(x, axis=-1)
    return int(np.count_nonzero(x[..., 1:] == x[..., :-1]))


def collisions(balls, bits):
    n, urns = len(balls), 2.0**bits
    empty = np.expm1(n * np.log1p(-1 / urns))
    mean = n + urns * empty if bits < 50 else n * (n - 1) / (2 * urns)
    return Rare(equal_neighbours(balls), mean)


def birthdays(days, bits=36, n=2**13):
    """Spacings that occur again among n sorted birthdays (Marsaglia), triples counted once less."""
    days = np.sort(days[: len(days) // n * n].reshape(-1, n), axis=1)
    pairs = comb(n - 1, 2) * n / (2 * 2**bits)
    triples = comb(n - 1, 3) * n * (n - 1) / (3 * 4**bits)
    return Rare(equal_neighbours(np.diff(days, axis=1)), len(days) * (pairs - triples))


# Linear algebra


@cache
def rank_law(size):
    """Probabilities of the ranks 0 to `size` of a random binary matrix."""
    law = []
    for rank in range(size + 1):
        i = np.arange(rank)
        share = np.prod((1 - 2.0 ** (i - size)) ** 2 / (1 - 2.0 ** (i - rank)))
        law.append(share * 2.0 ** -float((size - rank) ** 2))
    return np.array(law)


def rank(rows, size):
    """Ranks of binary matrices of successive rows; a pivot is cleared with its column."""
    left = rows[: len(rows) // size * size].reshape(-1, size).T.copy()
    ranks = np.zeros(left.shape[1], np.intp)
    for column in range(size):
        has = (left & np.uint64(1 << column)) != 0
        pivot = np.take_along_axis(left, has.argmax(axis=0)[None], axis=0)
        left ^= np.where(has, pivot, np.uint64(0))
        ranks += has.any(axis=0)
    return Cells(np.bincount(ranks, minlength=size + 1), ranks.size * rank_law(size))


def shortest_register(bits):
    """Length of the shortest linear recurrence (Berlekamp and Massey), polynomials as integers."""
    now, before, length, last, seen = 1, 1, 0, -1, 0
    for n, bit in enumerate(bits):
        seen = seen << 1 | bit
        if (now & seen).bit_count() % 2:
            changed = now ^ before << (n - last)
            if 2 * length <= n:
                length, last, before = n + 1 - length, n, now
            now = changed
    return length


@cache
def register_law(n):
    sizes = [1] + [2 ** min(2 * n - 2 * length, 2 * length - 1) for length in range(1, n + 1)]
    return np.array([size / 2**n for size in sizes])


def linear_complexity(bits, n=1024):
    blocks = bits[: len(bits) // n * n].reshape(-1, n).tolist()
    lengths = [shortest_register(block) for block in blocks]
    return Cells(np.bincount(lengths, minlength=n + 1), len(blocks) * register_law(n))


def part(words, share):
    """Enough words for a test that is slow."""
    return words[: len(words) // share]


TESTS = {
    "monobit": monobit,
    "each bit": each_bit,
    "each flip": each_flip,
    "bytes by place": bytes_by_place,
    "low byte": lambda w: equal_cells(low(w, 8), 2**8),
    "16 bits": sixteens,
    "high 16 bits": lambda w: equal_cells(high(w, 16), 2**16),
    "low 16 bits": lambda w: equal_cells(low(w, 16), 2**16),
    "high pairs": lambda w: serial(high(w, 6), 6, 2),
    "low pairs": lambda w: serial(low(w, 6), 6, 2),
    "high triples": lambda w: serial(high(w, 4), 4, 3),
    "low triples": lambda w: serial(low(w, 4), 4, 3),
    "runs": runs,
    "low runs": lambda w: runs(packed(w, 0)),
    "longest run": longest_run,
    "low longest run": lambda w: longest_run(packed(w, 0)),
    "high gaps": lambda w: gaps(high(w, 3) == 0, 1 / 8),
    "low gaps": lambda w: gaps(low(w, 3) == 0, 1 / 8),
    "order": ordering,
    "low order": lambda w: ordering(w << np.uint64(32)),
    "poker within words": lambda w: poker(nibbles(part(w, 8))),
    "high poker": lambda w: poker(successive(high(w, 4))),
    "low poker": lambda w: poker(successive(low(w, 4))),
    "maximum of eight": lambda w: maximum(uniforms(w)),
    "low maximum of eight": lambda w: maximum(low_uniforms(w)),
    "correlation of uniforms": lambda w: autocorrelation(uniforms(w) - 0.5, 1 / 12),
    "correlation of bits": lambda w: autocorrelation(signs(serial_bits(part(w, 64))), 1.0),
    "correlation of low bits": lambda w: autocorrelation(signs(low(w, 1)), 1.0),
    "correlation of weights": lambda w: autocorrelation(weights(w) - 32.0, 16.0),
    "weights of six": weight_tuples,
    "walk of 1024 bits": lambda w: walk(w, 16),
    "walk of 16384 bits": lambda w: walk(w, 256),
    "low walk": lambda w: walk(packed(w, 0), 4),
    "high collisions": lambda w: collisions(high(w, 30), 30),
    "low collisions": lambda w: collisions(low(w, 30), 30),
    "repeated words": lambda w: collisions(w, 64),
    "high birthdays": lambda w: birthdays(high(w, 36)),
    "low birthdays": lambda w: birthdays(low(w, 36)),
    "rank 64": lambda w: rank(part(w, 4), 64),
    "high rank 32": lambda w: rank(high(part(w, 8), 32), 32),
    "low rank 32": lambda w: rank(low(part(w, 8), 32), 32),
    "low linear complexity": lambda w: linear_complexity(low(part(w, 4), 1)),
    "high linear complexity": lambda w: linear_complexity(high(part(w, 8), 1)),
}


def battery(chunks, names=None):
    """P-values by test over all chunks of words."""
    total = {}
    for words in chunks:
        for name in names or TESTS:
            found = TESTS[name](words)
            total[name] = total[name] + found if name in total else found
    return {name: statistic.p() for name, statistic in total.items()}
