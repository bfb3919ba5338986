"""Users' tables: reading them in portions, the kinds of their columns, encoding as numbers; and writing whole files."""
