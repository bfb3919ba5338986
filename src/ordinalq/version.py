"""The version, in a module of its own so that files can name it."""

__version__ = "0.1.0.dev0"
