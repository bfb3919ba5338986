"""Models of tables: fit, predict, evaluate, save and load."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ordinalq.tables.model import TableModel as TableModel
    from ordinalq.tables.model_file import load_model as load_model
    from ordinalq.tables.model_file import save_model as save_model


def __getattr__(name: str) -> Any:
    """Load a public name on first use.

    Model files need skops. Tables need the text features of scikit-learn.
    """
    if name == "TableModel":
        from ordinalq.tables.model import TableModel

        return TableModel
    if name in ("load_model", "save_model"):
        from ordinalq.tables import model_file

        return getattr(model_file, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
