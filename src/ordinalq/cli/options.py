"""What several verbs ask: a model about a table, by groups. The options are written here once."""

import hashlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordinalq.cli.app import (
    EncodingOption,
    FormatOption,
    JsonOption,
    ModelArgument,
    QuotingOption,
    TrustOption,
    WeightOption,
    WeightsOption,
)
from ordinalq.cli.wording import listed

if TYPE_CHECKING:
    from ordinalq.inference.options import Plan
    from ordinalq.io.table import Table
    from ordinalq.quantifiers.base import Quantifier
    from ordinalq.tables.aggregate import Finished
    from ordinalq.tables.model_file import ModelInfo


MoreArgument = Annotated[list[Path] | None, typer.Argument(help="More files of the table.")]


@dataclass(frozen=True)
class Job:
    """A model, a table of any size, and how its groups are estimated."""

    model: ModelArgument
    table: Annotated[
        Path, typer.Argument(help="Table of any size: a file, a folder, a pattern '*.parquet'; - is standard input.")
    ]
    by: Annotated[
        str | None, typer.Option(help="Groups: a column, several as in a,b, or periods such as date:month.")
    ] = None
    interval_of: Annotated[
        str | None,
        typer.Option(
            "--interval-of",
            help="Intervals for exactly these rows, the 'sample', or for their 'population'; default: sample, for "
            "comparisons and periods population.",
        ),
    ] = None
    labels: Annotated[
        str | None, typer.Option(help="Column with labels of some rows, drawn at random within each group.")
    ] = None
    basis: Annotated[
        str,
        typer.Option(
            "--basis",
            help="With labels: rest on the 'labels' alone, also on the 'model' of groups, or on what suits ('auto').",
        ),
    ] = "auto"
    weight: WeightOption = None
    weights: WeightsOption = "survey"
    n_jobs: Annotated[int, typer.Option(help="Processes that read and score; -1: all processors.")] = 1
    random_state: Annotated[int, typer.Option(min=0, help="Seed of intervals and draws.")] = 0
    trust: TrustOption = ""
    format: FormatOption = None
    encoding: EncodingOption = "utf-8"
    quoting: QuotingOption = "auto"
    json: JsonOption = False

    def plan(self, of: str = "sample") -> "Plan":
        """Return how intervals are made; a wrong option is an error."""
        from ordinalq._utils.validation import check_choice
        from ordinalq.inference.options import BASES, OF, Plan

        of = of if self.interval_of is None else self.interval_of
        check_choice("--interval-of", of, OF)
        check_choice("--basis", self.basis, BASES)
        return Plan(of=of, random_state=self.random_state, basis=self.basis)

    @property
    def in_time(self) -> bool:
        """Whether the last of the columns of groups are periods of time."""
        from ordinalq.samples.keys import with_period

        return self.by is not None and with_period(self.by.strip())[1] is not None

    def output(self, path: Path) -> Path:
        """Return a path that can be written and is neither the model nor the table."""
        from ordinalq.io.writing import check_output

        return check_output(path, self.model, *(part.path for part in self.file.files))

    def and_files(self, more: Sequence[str | Path] | None) -> "Job":
        """Return the job with more files of the table."""
        job = replace(self)
        if more:
            vars(job)["file"] = self._opened([self.table, *more])
        return job

    @cached_property
    def file(self) -> "Table":
        """The table."""
        return self._opened(self.table)

    def _opened(self, path: Any) -> "Table":
        from ordinalq.io.table import open_table

        return open_table(path, self.format, self.encoding, self.quoting)

    @cached_property
    def _loaded(self) -> "tuple[Any, ModelInfo]":
        from ordinalq.tables.model_file import load_model_and_info

        return load_model_and_info(self.model, trusted=listed(self.trust))

    @property
    def loaded(self) -> Any:
        """The model."""
        return self._loaded[0]

    @property
    def info(self) -> "ModelInfo":
        """What the model's file says of it."""
        return self._loaded[1]

    @property
    def quantifier(self) -> "Quantifier":
        """The quantifier of the model."""
        from ordinalq.tables.inner import fitted_quantifier

        return fitted_quantifier(self.loaded)

    def check_resume(self, out: Path | None) -> None:
        """Refuse to keep what is finished where nobody would find it, or of what cannot be read again."""
        if out is None:
            raise ValueError("--resume needs --out: what is finished is kept beside it.")
        if str(self.table) == "-":
            raise ValueError("--resume needs a table in files, which can be read again, got standard input.")

    def finished(self, out: Path) -> "Finished":
        """Return the folder beside the output that keeps what is finished."""
        from ordinalq.tables.aggregate import Finished
        from ordinalq.version import __version__

        digest = hashlib.sha256(self.model.read_bytes()).hexdigest()
        how = (
            self.by,
            self.labels,
            self.weight,
            self.weights,
            self.file.format,
            self.encoding,
            self.quoting,
            self.trust,
        )
        return Finished(out.with_name(out.name + ".parts"), repr((__version__, digest, *how)))

    @property
    def columns(self) -> list[str] | None:
        """The columns of groups, where there are any."""
        return columns_of(self.by, self.file)

    @contextmanager
    def reading(self) -> Iterator[dict[str, Any]]:
        """Show how far the table is read; give what functions that read it are told."""
        from ordinalq.cli import display as show

        with show.working(f"reading {self.file.name}"):
            yield {
                "by": self.columns,
                "labels": self.labels,
                "weight": self.weight,
                "weights": self.weights,
                "n_jobs": self.n_jobs,
            }


def columns_of(by: str | None, file: "Table") -> list[str] | None:
    """Return the columns that a,b names, or one whose own name has a comma."""
    if by is None:
        return None
    return [by] if "," not in by or by in file.columns() else listed(by)


def asks(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the arguments and options of a :class:`Job` around its own; it takes the job in their place."""
    shared = [*inspect.signature(Job).parameters.values()]
    own = [*inspect.signature(verb).parameters.values()][1:]

    def run(**given: Any) -> None:
        verb(Job(**{one.name: given.pop(one.name) for one in shared}), **given)

    named = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*shared[:2], *own, *shared[2:])]
    run.__name__, run.__doc__ = verb.__name__, verb.__doc__
    run.__annotations__ = {one.name: one.annotation for one in named}
    run.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    return run
