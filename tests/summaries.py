"""Estimates from given scores, and of tables in files, as services and verbs make them."""

import ordinalq as oq
from ordinalq.inference.predict import estimate, group_samples
from ordinalq.tables.inner import fitted_quantifier
from ordinalq.tables.predict import summarize_table


def intervals(quantifier, S, level=0.95, groups=None, **plan):
    """Return the estimates of groups, samples or everything (None), with intervals unless the level is None."""
    return estimate(
        quantifier, quantifier.summarize(S, group_samples(groups, len(S))), level, oq.inference.IntervalOptions(**plan)
    )


def predict_table(model, file, *, level=None, plan=None, **how):
    """Return the estimates of a table, or of each group of its rows, as `ordinalq predict` makes them."""
    return estimate(fitted_quantifier(model), summarize_table(model, file, **how), level, plan)
