"""How good a model is: its errors on samples of a labelled table, beside simple estimates."""

import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ordinalq.evaluation import errors
from ordinalq.files.names import require_columns
from ordinalq.files.table import TableFile
from ordinalq.labels import encode_labels
from ordinalq.protocols import APP, APPOQ, NPP
from ordinalq.samples import Samples
from ordinalq.tables.groups import GroupColumn
from ordinalq.tables.inner import fitted_quantifier
from ordinalq.tables.labels import labelled_rows, parsed_classes
from ordinalq.tables.model import TableModel, needed_columns, scores_of
from ordinalq.validation import check_choice, check_integer

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("ordinalq")

MEASURES = ("nmd", "rnod")


def evaluate_table(
    model: Any,
    file: TableFile,
    protocol: str = "app",
    *,
    by: str | None = None,
    target: str | None = None,
    n_samples: int = 1000,
    sample_size: int = 100,
    skip_unlabelled: bool = False,
    random_state: int = 0,
) -> "pd.DataFrame":
    """Measure the errors of a model on samples of a labelled table, beside simple estimates.

    Parameters
    ----------
    model : TableModel or quantifier
        See :func:`ordinalq.tables.predicting.predict_table`.
    file : TableFile
        Labelled, and none of the items that the model was fitted on.
    protocol : str, default="app"
        "app": distributions drawn uniformly; "app-oq:0.2": the smoothest fifth of them; "npp": rows drawn at random.
    by : str, default=None
        Column whose groups are the samples; then nothing is drawn.
    target : str, default=None
        Column of the labels; None takes that of the training.
    n_samples, sample_size : int, default=1000, 100
        Number of samples (before "app-oq" chooses among them) and of items in each. Where a class has fewer items than
        a sample needs, they are repeated, which is logged.
    skip_unlabelled : bool, default=False
        Leave out rows without a label, which are an error otherwise.
    random_state : int, default=0
        Seed of the samples.

    Returns
    -------
    DataFrame
        One row per estimate: name, mean and standard deviation of NMD and RNOD over the samples; ``attrs`` has
        n_samples and n_items.
    """
    import pandas as pd

    quantifier = fitted_quantifier(model)
    target = target or (model.target_ if isinstance(model, TableModel) else None)
    if target is None:
        raise ValueError("target must name the column of the labels: the model does not know it.")
    kind, _, argument = protocol.partition(":")
    check_choice("protocol", kind, ("app", "app-oq", "npp"))
    needed = list(needed_columns(model))
    columns = list(dict.fromkeys([*needed, target, *([] if by is None else [by])]))
    if not file.lacks_keys:
        require_columns(file.columns(), needed, file.name)
        require_columns(file.columns(), columns, file.name)
    classes = [str(label) for label in quantifier.classes_.tolist()]
    frame, y, _ = labelled_rows(file.read(columns), target, classes, skip_unlabelled)
    ordered, codes = encode_labels(y, parsed_classes(quantifier.classes_, y), name=target)
    if by is None:
        samples = _drawn(kind, argument, codes, ordered, n_samples, sample_size, random_state)
    else:
        samples = GroupColumn(by, file.format).samples(frame, codes, np.arange(len(ordered)))
    S = scores_of(model, frame)
    estimates = {type(quantifier).__name__: quantifier.predict_scores(S, samples)}
    if quantifier.on == "scores":
        estimates.setdefault("CC", samples.average(np.eye(len(ordered))[S.argmax(axis=1)]))
        estimates.setdefault("PCC", samples.average(S))
    estimates["training prevalences"] = np.tile(quantifier.p_train_, (len(samples), 1))
    rows = []
    for name, P in estimates.items():
        row: dict[str, Any] = {"estimate": name}
        for measure in MEASURES:
            e = errors(P, samples.prevalences, measure)
            row |= {measure: e.mean(), f"{measure}_std": e.std(ddof=1) if len(e) > 1 else np.nan}
        rows.append(row)
    table = pd.DataFrame(rows)
    table.attrs |= {"n_samples": len(samples), "n_items": len(y)}
    return table


def _drawn(
    kind: str,
    argument: str,
    codes: npt.NDArray[np.intp],
    classes: npt.NDArray[Any],
    n_samples: int,
    sample_size: int,
    random_state: int,
) -> Samples:
    """Draw samples of items with codes (N,) by a protocol."""
    check_integer("n_samples", n_samples, minimum=1)
    check_integer("sample_size", sample_size, minimum=1)
    counts = np.bincount(codes, minlength=len(classes))
    if kind == "npp":
        policy = "repeat" if len(codes) < sample_size else "error"
        return NPP(n_samples, sample_size, small_pool=policy, random_state=random_state).draw(
            codes, classes=np.arange(len(classes))
        )
    if (counts == 0).any():
        raise ValueError(
            f"the labelled table must have items of every class for samples of all distributions, but has none of "
            f"{classes[counts.argmin()]}; use protocol='npp', or groups with by='...'."
        )
    if counts.min() < sample_size:
        logger.info("class %s has only %d items, which repeat in samples", classes[counts.argmin()], counts.min())
    options: dict[str, Any] = {"small_pool": "repeat", "random_state": random_state}
    if kind == "app":
        chosen: Any = APP(n_samples, sample_size, **options)
    else:
        try:
            fraction = float(argument)
        except ValueError as error:
            raise ValueError(f"protocol must be app-oq:FRACTION, such as app-oq:0.2, got {argument!r}.") from error
        chosen = APPOQ(fraction, n_samples, sample_size, **options)
    drawn: Samples = chosen.draw(codes, classes=np.arange(len(classes)))
    return drawn
