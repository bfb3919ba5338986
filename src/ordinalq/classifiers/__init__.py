"""Classifiers: held-out scores for any of them, and ordinal ones."""
