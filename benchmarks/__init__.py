"""Benchmarks: ``python -m benchmarks.run`` measures, one part or all (see `benchmarks.run`)."""
