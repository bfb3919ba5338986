"""Solvers: each minimises the objectives of a whole batch of samples over the simplex."""
