"""The web app for analysts, `ordinalq app`: the steps of the command line in a browser, on this machine only."""
