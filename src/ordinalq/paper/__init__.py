"""The experiments of the paper and their report."""
