"""What can be said beyond a single estimate, of any quantifier: groups, intervals, diagnosis, choice of strengths.

Written against the contract (`ordinalq.contract`), never against a method.
"""
