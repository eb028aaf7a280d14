"""Damages of files, as disks, users and killed programs make them."""

from pathlib import Path

import numpy as np

BLOCK = 512  # bytes that are lost together
HOW = ("flip", "zero", "cut", "delete", "swap", "grow")


def files(folder):
    """Files of a folder that are read back, in order."""
    return sorted(p for p in Path(folder).rglob("*") if p.is_file() and p.name != ".lock")


def damage(folder, seed):
    """Damage one or two files of a folder; returns what was done, in words."""
    rng = np.random.default_rng(seed)
    found = files(folder)
    path = found[rng.integers(len(found))]
    how, place = str(rng.choice(HOW)), rng.random()
    if how == "delete":
        path.unlink()
    elif how == "swap":
        other = found[rng.integers(len(found))]
        first, second = path.read_bytes(), other.read_bytes()
        path.write_bytes(second)
        other.write_bytes(first)
        return f"{path.name} and {other.name} swapped"
    else:
        path.write_bytes(changed(path.read_bytes(), how, place))
    return f"{how} {path.name} at {place:.3f}"


def changed(content, how, place):
    """The content of a file after a damage at a place, a share of its length."""
    k = int(place * len(content))
    if how == "flip":
        bit = 1 << int(place * len(content) * 8) % 8
        return content[:k] + bytes([content[k] ^ bit]) + content[k + 1 :]
    if how == "zero":
        return content[:k] + bytes(len(content[k : k + BLOCK])) + content[k + BLOCK :]
    return content[:k] if how == "cut" else content + bytes(BLOCK)
