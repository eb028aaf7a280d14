"""Draws of the samplers, for goodness of fit."""

from zlib import crc32

import numpy as np

from bayesmf.kernels import fill as kinds
from bayesmf.kernels import random
from bayesmf.priors import distributions as dist
from bayesmf.streams import Stream, seed_words
from tests.helpers.verdicts import seeded

SHAPE = (1000, 100)  # draws of one test: streams, and draws from each


def stream(seed=0, *case):
    """Random numbers of a seed, others in each repetition and in each case."""
    entropy = [seeded(seed), crc32(repr(case).encode())]
    return Stream(seed_words(np.random.SeedSequence(entropy)))


def fill(kind, *parameters, shape=SHAPE, seed=0):
    return stream(seed, kind, *parameters).fill(kind, shape, *parameters).ravel()


def one_by_one(primitive, *parameters, n=20_000, seed=0):
    """Draws of one stream, by the primitive itself."""
    state = np.empty(4, np.uint64)
    random.seed_stream(stream(seed, *parameters).key(), 0, state)
    return np.array([primitive(state, *parameters) for _ in range(n)])


def log_scales(exponent, log_weights, n=100_000, seed=0):
    weights = np.array([[log_weights.get(p, -np.inf)] for p in (-2, -1, 1, 2)])
    out = np.empty(n)
    key = stream(seed, exponent, log_weights).key()
    exponents = np.full(n, float(exponent))
    kinds.fill_log_scales(key, exponents, np.tile(weights, (1, n)), -np.inf, -np.inf, out)
    return out


def wisharts(dof, scale, n=4000, seed=0):
    numbers, law = stream(seed, dof, scale), dist.Wishart(dof=dof, scale=scale)
    return np.array([law.draw(numbers, scale.shape) for _ in range(n)])
