"""Helpers without a subject of quantification: argument checks, text, progress, processes."""
