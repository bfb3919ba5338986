"""Everyday use: from a table to a model, from a model and a table to estimates; models in files."""
