"""Table files: reading in chunks, kinds of columns, encoding as numbers, writing."""
