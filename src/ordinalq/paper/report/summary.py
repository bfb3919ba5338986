"""What an experiment shows, in plain words: what was done, what is best, which conclusions of the paper hold."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ordinalq._utils.validation import Floats
from ordinalq.paper.experiments.outcome import Outcome
from ordinalq.paper.report import facts
from ordinalq.paper.report.claims import claim_sentences
from ordinalq.paper.report.formats import short
from ordinalq.paper.report.results import result_facts

NEW = "new ordinal"  # the paper's own group of methods
# What the names of measures and protocols stand for, where they first occur.
MEANING = {
    "nmd": "NMD, the normalized match distance, is how far an estimate must be moved to become the truth, as a part of "
    "the way from all mass in the lowest class to all in the highest: 0 is perfect, .01 a hundredth of that way.",
    "md": "MD, the match distance, is how much mass times how many classes an estimate must be moved to become the "
    "truth.",
    "rnod": "RNOD, the root normalized order-aware divergence, is between 0 and 1 too; it squares the error of each "
    "class and weights it by the distance between classes, so that a few large errors count more than many small ones.",
    "rsnod": "RSNOD is RNOD made symmetric in truth and estimate.",
    "rnadw": "RNADW is RNOD averaged over all classes, those without items included.",
    "APP": "APP, the artificial prevalence protocol, draws the class distribution of each sample at random, every one "
    "with the same probability.",
    "APP-OQ": "APP-OQ keeps of these samples {part}, since distributions over ordered classes tend to be smooth.",
    "real": "The protocol real has class distributions that were seen in nature.",
}


def summary(outcome: Outcome) -> list[str]:
    """State what was done and what the words mean, which methods are best, and how all this compares with the paper."""
    sentences = [_task(outcome), *_meanings(outcome), *best_sentences(outcome)]
    if not facts.compares_classifiers(outcome):
        sentences += [*_new_methods(outcome)]
    sentences += [*claim_sentences(outcome), *_ratios(outcome)]
    return sentences + ([] if outcome.about["experiment"]["profile"] == "full" else [facts.QUICK])


def short_summary(outcome: Outcome) -> list[str]:
    """Return which method is best under the first protocol, and whether the paper's claim holds."""
    return [*list(best_sentences(outcome))[:1], *list(claim_sentences(outcome))[:1]]


def best_sentences(outcome: Outcome) -> Iterator[str]:
    """State for each measure and protocol which methods are best."""
    for measure in outcome.measures:
        for protocol in outcome.protocols:
            errors = facts.results(outcome, protocol, measure)
            if not errors:
                yield f"No method has a result for {measure.upper()} under {protocol}."
                continue
            best = _best(outcome, protocol, measure)
            beyond = [m for m in errors if m not in facts.competing(errors)]
            as_good = [m for m, p in facts.p_values(errors).items() if p >= facts.LEVEL]
            others = [_unbroken(m) for m in as_good if m not in (best, *beyond)]
            text = f"{measure.upper()} under {protocol}: {_unbroken(best)} has the smallest mean error, "
            text += short(float(np.mean(errors[best])))
            among = " of the paper's" if beyond else ""
            if others:
                text += f"; not significantly worse{among}: {', '.join(others)}"
            elif len(errors) > len(beyond) + 1:
                text += f", and all others{among} are worse"
            yield f"{text}.{_beyond_sentence(errors, beyond)}"


def percent_kept(outcome: Outcome) -> str:
    """State which of the APP samples APP-OQ keeps."""
    fraction = outcome.about["experiment"].get("app_oq")
    return "the smoothest ones" if fraction is None else f"the smoothest {100 * float(fraction):g} %"


def _task(outcome: Outcome) -> str:
    """State what was done."""
    data = outcome.about["data"]
    what = "classifiers in quantifiers" if facts.compares_classifiers(outcome) else "methods"
    samples = sum(len(outcome.true_distributions(one)) for one in outcome.protocols if one != "APP-OQ")
    items = f" of {data['sample_size']:,} items each" if "sample_size" in data else ""
    return (
        f"{len(outcome.methods)} {what} learned from {data['n_train']:,} labelled items, and estimated how the items "
        f"of {samples:,} unlabelled samples{items} are distributed over {len(data['classes'])} ordered classes."
    )


def _meanings(outcome: Outcome) -> Iterator[str]:
    for word in (*outcome.measures, *outcome.protocols):
        if word in MEANING:
            yield MEANING[word].format(part=percent_kept(outcome))


def _new_methods(outcome: Outcome) -> Iterator[str]:
    """State how often a method that the paper proposes is best, where there are others too."""
    columns = [(p, m) for m in outcome.measures for p in outcome.protocols if facts.results(outcome, p, m)]
    if not columns or {facts.group_of(method) for method in outcome.methods} <= {NEW}:
        return
    if not any(facts.group_of(method) == NEW for method in outcome.methods):
        return
    winners = {(p, m): _best(outcome, p, m) for p, m in columns}
    wins = [column for column, method in winners.items() if facts.group_of(method) == NEW]
    lost = [f"{_unbroken(winners[p, m])} is best under {m.upper()}, {p}" for p, m in columns if (p, m) not in wins]
    text = (
        "The paper's conclusion that its regularized methods outperform the existing ones holds for the best mean "
        f"error in {len(wins)} of {len(columns)} columns"
    )
    yield f"{text}; {'; '.join(lost)}." if lost else f"{text}."


def _ratios(outcome: Outcome) -> Iterator[str]:
    """Compare the mean errors with the printed ones."""
    for measure in [] if facts.compares_classifiers(outcome) else outcome.measures:
        ratios = result_facts(outcome, measure)["ratio"].dropna()
        if len(ratios):
            yield (
                f"Our {measure.upper()} over the paper's: median {ratios.median():.2f} "
                f"(from {ratios.min():.2f} to {ratios.max():.2f}, {len(ratios)} cells)."
            )


def _best(outcome: Outcome, protocol: str, measure: str) -> str:
    """Return the method of the smallest mean error, among those of the paper if there are any."""
    errors = facts.results(outcome, protocol, measure)
    return min(facts.competing(errors), key=lambda method: float(np.mean(errors[method])))


def _beyond_sentence(errors: Mapping[str, Floats], beyond: Sequence[str]) -> str:
    """State the mean errors of the methods that are not in the paper."""
    means = [f"{_unbroken(method)} {short(float(np.mean(errors[method])))}" for method in beyond]
    return f" Beyond the paper: {', '.join(means)}." if means else ""


def _unbroken(method: str) -> str:
    """Return the name of a method with hyphens at which no line ends."""
    return facts.display_name(method).replace("-", "\N{NON-BREAKING HYPHEN}")
