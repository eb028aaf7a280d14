"""A matrix with missing entries, and offsets taken off it."""
