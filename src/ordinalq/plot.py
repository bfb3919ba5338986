"""Pictures: arrays and tables in, matplotlib axes out."""
