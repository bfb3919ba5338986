"""A local page for analysts, `ordinalq app`: the command line's steps in a browser, on this machine only."""
