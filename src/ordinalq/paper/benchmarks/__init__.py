"""Benchmarks of other authors, compared with their published figures.

Protocols and measures are those of the authors.
"""
