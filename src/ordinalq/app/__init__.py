"""Web app `ordinalq app`: the steps of the command line in a local browser."""
