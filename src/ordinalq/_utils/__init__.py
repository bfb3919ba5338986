"""Helpers that have nothing to do with quantification: argument checks, text, progress, processes."""
