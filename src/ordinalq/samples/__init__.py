"""The data model: samples of items, keys of groups, labels, weights and summaries."""
