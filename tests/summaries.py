"""Estimates from given scores, as services make them."""

import ordinalq as oq
from ordinalq.inference.groups import estimate, group_samples


def intervals(quantifier, S, level=0.95, groups=None, **plan):
    """Return the estimates of groups, samples or everything (None), with intervals unless the level is None."""
    return estimate(quantifier, quantifier.summarize(S, group_samples(groups, len(S))), level, oq.Plan(**plan))
