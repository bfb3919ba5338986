"""Progress of long work."""

import logging

from progress_record import ProgressRecord

import ordinalq as oq
from ordinalq._utils.progress import ProgressHandler, iterate_parts, iterate_steps, logger, report_step


def test_steps_inside_of_a_step_share_its_width():
    with ProgressHandler() as far:
        report_step("reading", 0, 10, 2)
        assert (far.part, far.what) == (0.0, "reading")
        report_step("", 2, 10, 8)
        told = [(round(far.part, 3), far.what) for _ in iterate_steps("fold", range(4))]
        assert told == [(0.2, "fold 1 of 4"), (0.4, "fold 2 of 4"), (0.6, "fold 3 of 4"), (0.8, "fold 4 of 4")]
        assert (far.part, far.what) == (1.0, "")


def test_a_fit_reports_its_models_and_folds_in_order(rng):
    y = rng.integers(1, 4, 120)
    X = y[:, None] + rng.normal(size=(120, 2))
    with ProgressRecord() as far:
        oq.AdjustedML(oq.classifiers.OrdinalStack(cv=3)).fit(X, y)
    parts = [part for part, _ in far.told]
    assert parts == sorted(parts)
    assert parts[-1] == 1
    assert "model 1 of 3, fold 3 of 3" in [what for _, what in far.told]


def test_handlers_of_all_other_records_receive_no_progress(monkeypatch, rng):
    records = []

    class Everything(logging.Handler):
        def emit(self, record):
            records.append(record)

    monkeypatch.setattr(logging.getLogger(), "handlers", [Everything()])
    monkeypatch.setattr(logging.getLogger(), "level", logging.INFO)
    y = rng.integers(1, 4, 60)
    oq.PACC().fit(y[:, None] + rng.normal(size=(60, 2)), y)
    assert not records
    with ProgressHandler():
        assert logger.level == logging.INFO
    assert logger.level == logging.NOTSET


def test_work_that_fails_leaves_no_listener():
    try:
        with ProgressHandler():
            raise RuntimeError
    except RuntimeError:
        assert not any(isinstance(handler, ProgressHandler) for handler in logger.handlers)


def test_progress_along_a_file_ends_when_reading_stops():
    with ProgressRecord() as far:
        report_step("", 0, 2)
        assert list(iterate_parts("reading", [("a", 0), ("b", 5), ("c", 10)], 10)) == ["a", "b", "c"]
        report_step("", 1, 2)
        for _ in iterate_parts("reading", [("a", 5), ("b", 10)], 10):
            break
        report_step("", 2, 2)
    assert [part for part, _ in far.told] == [0, 0, 0.25, 0.5, 0.5, 0.5, 1, 1]
    assert far.what == ""


def test_no_items_take_no_work():
    with ProgressHandler() as far:
        assert list(iterate_steps("fold", [])) == []
        assert far.what == ""
