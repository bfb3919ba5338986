"""Shares of a sample given the mean of a function of its items, and what was known of them before."""
