"""Group effects: how real groups differ, learned from labelled groups, and estimates that allow for it."""
