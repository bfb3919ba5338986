"""Quantification methods: one class per row of the paper's tables, and the parts to compose others."""
