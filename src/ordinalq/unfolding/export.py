"""Files of unfolded spectra: JSON, YAML in the layout of HEPData, ROOT."""

import json
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from ordinalq._utils.extras import require_extra
from ordinalq._utils.validation import Floats
from ordinalq.quantifiers.run_ibu import IBU, RUN
from ordinalq.unfolding.engine import Column, Shift
from ordinalq.unfolding.measurement import Measurement
from ordinalq.unfolding.spectrum import SmoothSpectrum
from ordinalq.unfolding.strength import Scan

FORMAT = "ordinalq unfolding 1"
# Methods that a file may name; others raise an error.
METHODS: dict[str, Any] = {kind.__name__: kind for kind in (SmoothSpectrum, RUN, IBU)}
# Fields of a measurement that are stored.
STORED = (
    "counts",
    "variances",
    "M",
    "acceptance",
    "background",
    "shape",
    "observed_shape",
    "edges",
    "blocks",
    "covariance",
    "has_losses",
    "fakes",
)
NUMBERS = ("strength", "n_df", "n_iter", "converged", "chi_square", "dof", "p_value")
ARRAYS = ("flat", "jacobian", "statistical", "refolded_flat")


def to_json(of: Any) -> str:
    """Return an Unfolding as JSON.

    It has estimate, covariances by source, smearing matrix, measurement and method.
    """
    name = type(of.method).__name__
    if name not in METHODS:
        raise TypeError(f"to_json supports {', '.join(METHODS)}, got {name}.")
    known = {key: _plain(getattr(of.measurement, key)) for key in STORED}
    parameters = {key: _plain(value) for key, value in of.method.get_params(deep=False).items() if value is not None}
    content = {
        "format": FORMAT,
        "values": _plain(of.counts),
        "covariance_total": _plain(of.covariance_total),
        "covariance": {
            "statistical": _plain(of.statistical),
            **{key: _plain(value) for key, value in of.systematic.items()},
            "bias": _plain(of.bias_covariance),
        },
        "smearing": _plain(of.smearing),
        "offset": _plain(of.offset),
        "sigma": _plain(of.sigma),
        "method": {"name": name, "parameters": parameters},
        "measurement": known,
        "moves": {key: _plain(value) for key, value in of.moves.items()},
        "shifts": [{key: _plain(value) for key, value in vars(shift).items()} for shift in of.shifts],
        "scan": None if of.scan is None else {key: _plain(value) for key, value in vars(of.scan).items()},
        **{key: _plain(getattr(of, key)) for key in (*NUMBERS, *ARRAYS)},
    }
    return json.dumps(content, allow_nan=False)


def from_json(kind: Any, text: str) -> Any:
    """Return the Unfolding that :func:`to_json` wrote."""
    content = json.loads(text)
    if content.get("format") != FORMAT:
        raise ValueError(f"the file must have the format {FORMAT!r}, got {content.get('format')!r}.")
    stored = {"fakes": None, **content["measurement"]}
    lists: dict[str, Any] = {key: tuple(stored[key]) for key in ("shape", "observed_shape")}
    lists["blocks"] = None if stored["blocks"] is None else tuple(stored["blocks"])
    lists["edges"] = None if stored["edges"] is None else tuple(_array(part) for part in stored["edges"])
    rest: dict[str, Any] = {key: _array(stored[key]) for key in STORED if key not in (*lists, "has_losses")}
    measurement = Measurement(**rest, **lists, has_losses=stored["has_losses"])
    method = METHODS[content["method"]["name"]](**content["method"]["parameters"])
    scan = content["scan"]
    if scan is not None:
        scan = Scan(**{key: _array(value) if isinstance(value, list) else value for key, value in scan.items()})
    covariances = {key: _array(value) for key, value in content["covariance"].items()}
    sources = {key: covariances[key] for key in content["moves"]}
    numbers = {key: float("nan") if content[key] is None else content[key] for key in NUMBERS}
    result = kind(
        measurement=measurement,
        method=method,
        systematic=sources,
        moves={key: _array(value).reshape(-1, len(content["flat"])) for key, value in content["moves"].items()},
        scan=scan,
        shifts=tuple(_shift(part) for part in content["shifts"]),
        **numbers,
        **{key: _array(content[key]) for key in ARRAYS},
    )
    # The values of cached properties.
    vars(result).update(sigma=_array(content["sigma"]), bias_covariance=covariances["bias"])
    return result


def _shift(part: dict[str, Any]) -> Shift:
    """Return a stored shift; one column of the response is a pair."""
    response = part["response"]
    if isinstance(response, list) and isinstance(response[0], int):
        found: Any = Column(response[0], _array(response[1]))
    else:
        found = _array(response)
    return Shift(_array(part["counts"]), found, _array(part["background"]))


def _plain(value: Any) -> Any:
    """Return numbers as JSON has them; infinite edges are texts, and NaN is null."""
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def _array(value: Any) -> Any:
    return None if value is None else np.asarray(value, dtype=np.float64)


def to_hepdata(of: Any, folder: Path, name: str, variable: str, units: str) -> list[Path]:
    """Write submission.yaml and one file per table; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    axes = _bins(of, variable, units)
    sources = {"stat": of.statistical, **{f"sys,{key}": part for key, part in of.systematic.items()}}
    sources["sys,regularization bias"] = of.bias_covariance
    errors = {key: np.sqrt(np.maximum(np.diag(part), 0.0)) for key, part in sources.items()}
    values = [
        {"value": float(t), "errors": [{"symerror": float(error[i]), "label": key} for key, error in errors.items()]}
        for i, t in enumerate(of.flat)
    ]
    tables = {name: (axes, "events", values)}
    matrices = {"total covariance": of.covariance_total}
    matrices |= {f"covariance ({key})": part for key, part in sources.items()}
    matrices["additional smearing matrix"] = of.smearing
    for title, matrix in matrices.items():
        tables[f"{name} {title}"] = (_pairs(len(of.flat)), title, [{"value": float(x)} for x in matrix.ravel()])
    files, entries = [], []
    names = _file_names(["submission", *tables])[1:]
    for stem, (title, (independent, header, column)) in zip(names, tables.items(), strict=True):
        path = folder / f"{stem}.yaml"
        table = {
            "dependent_variables": [{"header": {"name": header}, "values": column}],
            "independent_variables": independent,
        }
        path.write_text(_yaml(table), encoding="utf-8")
        entries.append({"name": title, "description": title, "keywords": [], "data_file": path.name})
        files.append(path)
    submission = folder / "submission.yaml"
    submission.write_text("---\n".join(_yaml(entry) for entry in entries), encoding="utf-8")
    return [submission, *files]


def _bins(of: Any, variable: str, units: str) -> list[dict[str, Any]]:
    """Return the independent variables: edges along each axis, or bin numbers."""
    table = of.frame()
    header: dict[str, str] = {"name": variable} | ({"units": units} if units else {})
    found: list[dict[str, Any]] = []
    for low in (column for column in table if str(column).startswith("low")):
        high = str(low).replace("low", "high")
        values = [{"low": float(a), "high": float(b)} for a, b in zip(table[low], table[high], strict=True)]
        found.append({"header": {**header, "name": variable + str(low)[3:]}, "values": values})
    for column in (column for column in table if str(column).startswith(("bin", "block"))):
        found.append({"header": {"name": str(column)}, "values": [{"value": int(k)} for k in table[column]]})
    return found


def _pairs(n: int) -> list[dict[str, Any]]:
    at = np.indices((n, n)).reshape(2, -1) + 1
    return [{"header": {"name": f"bin {k + 1}"}, "values": [{"value": int(i)} for i in at[k]]} for k in range(2)]


def _file_names(titles: Iterable[str]) -> list[str]:
    """Return unique names of letters, digits and underscores.

    They differ by more than case; repeated ones end in _2, _3.
    """
    found: dict[str, str] = {}
    for title in titles:
        plain = "_".join("".join(c if c.isalnum() else " " for c in title).split())
        candidates = (plain if k == 1 else f"{plain}_{k}" for k in count(1))
        name = next(name for name in candidates if name.lower() not in found)
        found[name.lower()] = name
    return list(found.values())


def _yaml(value: Any, indent: int = 0) -> str:
    """Return mappings, lists, numbers and strings as YAML, quoted as JSON."""
    pad = "  " * indent
    if isinstance(value, dict) and value:
        lines = []
        for key, part in value.items():
            nested = isinstance(part, dict | list) and part
            lines.append(f"{pad}{key}:\n{_yaml(part, indent + 1)}" if nested else f"{pad}{key}: {_flow(part)}\n")
        return "".join(lines)
    if isinstance(value, list) and value:
        return "".join(f"{pad}- {_flow(part)}\n" if _is_short(part) else _item(part, indent) for part in value)
    return f"{pad}{_flow(value)}\n"


def _is_short(part: Any) -> bool:
    """Return whether an item of a list fits on one line: no lists of mappings within."""
    return not isinstance(part, dict) or "header" not in part


def _item(part: Any, indent: int) -> str:
    text = _yaml(part, indent + 1)
    return "  " * indent + "- " + text.lstrip(" ")


def _flow(part: Any) -> str:
    """Return a value on one line."""
    if isinstance(part, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {_flow(value)}" for key, value in part.items()) + "}"
    if isinstance(part, list):
        return "[" + ", ".join(map(_flow, part)) + "]"
    return _number(part) if isinstance(part, float) else json.dumps(part)


def _number(value: float) -> str:
    """Return a number as YAML 1.1 has it, with a point before an exponent."""
    if not np.isfinite(value):
        return ".nan" if np.isnan(value) else ".inf" if value > 0 else "-.inf"
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e")


def to_root(of: Any, path: Any) -> None:
    """Write a ROOT file with uproot."""
    with require_extra("root", "writing ROOT files"):
        import uproot
    with uproot.recreate(path) as file:
        for key, value in _root_objects(of):
            file[key] = value


def _root_objects(of: Any) -> Iterable[tuple[str, Any]]:
    yield "spectrum", of.histogram()
    yield "covariance_total", _matrix(of.covariance_total)
    yield "covariance_statistical", _matrix(of.statistical)
    for key, part in zip(_file_names(of.systematic), of.systematic.values(), strict=True):
        yield f"covariance_{key}", _matrix(part)
    yield "covariance_bias", _matrix(of.bias_covariance)
    yield "smearing", _matrix(of.smearing)


def _matrix(values: Floats) -> tuple[Floats, ...]:
    """Return a matrix as a histogram over numbers of bins."""
    return values, *(np.arange(size + 1) + 0.5 for size in values.shape)
