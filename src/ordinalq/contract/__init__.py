"""The nouns of the middle floor: Quantifier, Summary, Estimates and Plan."""
