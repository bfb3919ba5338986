"""Group effects: what real groups have in common, learned from labelled groups, and estimates that know of it."""
