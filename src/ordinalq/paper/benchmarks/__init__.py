"""Benchmarks of other authors, with their protocols and measures, next to their published figures."""
