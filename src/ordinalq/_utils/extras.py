"""Optional dependencies: one error message that names the extra to install."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def require_extra(extra: str, feature: str) -> Iterator[None]:
    """Raise ImportError that names the extra if an import in the block fails.

    Parameters
    ----------
    extra : str
        Extra of ordinalq that installs the package, such as "tables".
    feature : str
        Feature that needs the package. The message starts with it.

    Raises
    ------
    ImportError
        If a package is not installed. Modules of ordinalq that do not exist raise ModuleNotFoundError as usual.

    Examples
    --------
    >>> with require_extra("tables", "reading tables"):
    ...     import no_such_package
    Traceback (most recent call last):
    ImportError: reading tables needs no_such_package. Install it with: pip install "ordinalq[tables]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "ordinalq"):
            raise
        message = f'{feature} needs {package}. Install it with: pip install "ordinalq[{extra}]"'
        raise ImportError(message, name=package) from error
