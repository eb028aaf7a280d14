"""Compiled kernels: arrays in, arrays changed in place; no classes, no prior names."""
