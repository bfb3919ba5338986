"""From a table of items to a fitted model and estimates: files, columns, saved models."""
