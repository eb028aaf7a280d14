"""Whether chains agree about many numbers at once, and which of them agree with each other."""

from __future__ import annotations

import numpy as np

from bayesmf.streams import Array

RHAT_LIMIT = 1.1  # beyond it chains disagree by more than the spread of a chain excuses
_AT_REST = 100  # draws of a chain, from which on one at rest can be told from one that moves
_APART = 0.05  # share of the series about which the halves of a chain, or two chains, may disagree


def split_rhat(draws: Array) -> Array:
    """Plain split R-hat of many series at once: draws (chains, draws, n) to (n,).

    It lacks the rank normalisation of `diagnose`, and is as quick as an average.
    """
    half = draws.shape[1] // 2
    parts = np.concatenate([draws[:, :half], draws[:, -half:]])
    within = parts.var(axis=1, ddof=1).mean(axis=0)
    between = parts.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((half - 1) / half + between / within)
    return np.where(within > 0, ratio, 1.0)


def settled_apart(draws: Array) -> tuple[tuple[int, ...], ...]:
    """Groups of chains that agree, where each is at rest, but not all are in one place.

    From draws (chains, draws, n) of many series. Empty where chains agree, and where one still
    moves, so that nothing can be said.
    """
    chains = len(draws)
    if chains < 2 or draws.shape[1] < _AT_REST:
        return ()

    def apart(*some: int) -> float:
        return float(np.mean(split_rhat(draws[list(some)]) > RHAT_LIMIT))

    if max(apart(c) for c in range(chains)) > _APART:
        return ()
    groups: list[list[int]] = []
    for c in range(chains):
        near = [group for group in groups if any(apart(c, d) <= _APART for d in group)]
        groups = [group for group in groups if group not in near]
        groups.append(sorted([c, *(d for group in near for d in group)]))
    return tuple(tuple(group) for group in sorted(groups)) if len(groups) > 1 else ()
