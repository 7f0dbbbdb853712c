"""Converts a caller's values into those of the program, and formats tables for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy


def integers(values: Any, what: str) -> numpy.ndarray:
    """``values`` as 64-bit integers, row-major. Refuses values that a cast would change or wrongly accept as integers."""
    # As objects, because a list of integers and booleans would become integers.
    array = numpy.asarray(values, object if isinstance(values, (list, tuple)) else None)
    if array.dtype == object:
        wrong = [type(value).__name__ for value in array.flat if not _is_integer(value)]
    else:
        wrong = [] if array.dtype.kind in "iu" else [str(array.dtype)]
    if wrong:
        raise TypeError(f"{what} were given as {wrong[0]}, but must be integers; convert them if that loses nothing")
    whole = numpy.asarray(array, "<i8", order="C")
    if not numpy.array_equal(whole, array):
        raise ValueError(f"{what} were given as {array.dtype}, but some are above {2**63 - 1}")
    return whole


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, numpy.integer)) and not isinstance(value, (bool, numpy.timedelta64))


def settings(fields: Mapping[str, object] | None) -> list[str]:
    """Fields of a scenario, by dotted path, as arguments. Text is RON already."""
    texts = {path: value if isinstance(value, str) else written(value) for path, value in (fields or {}).items()}
    return [argument for path, text in texts.items() for argument in ("--set", f"{path}={text}")]


def written(value: Any) -> str:
    """A value in RON. Accepts values of numpy like those of Python."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None:
        return "None"
    if isinstance(value, Mapping):
        return f"({', '.join(f'{name}: {written(field)}' for name, field in value.items())})"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(written, value))}]"
    return json.dumps(value)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Aligns names to the left and numbers to the right."""
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = ([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])] for line in lines)
    return "\n".join("  ".join(cells).rstrip() for cells in aligned)


def number(value: Any, form: str) -> str:
    """Formats a number of a document, which is null or text if none was measured."""
    return format(value, form) if isinstance(value, (int, float)) else "-"
