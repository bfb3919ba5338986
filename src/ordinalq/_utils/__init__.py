"""General helpers: argument checks, text, progress, processes."""
