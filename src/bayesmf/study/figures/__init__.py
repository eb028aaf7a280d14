"""Figures: how they look, rows of curves that experiments share, priors and values of datasets."""
