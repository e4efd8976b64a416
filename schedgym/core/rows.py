"""Helpers of kernels that treat all arrays of a bundle alike: copy one element of each, or clear it.

What belongs to one job stands in as many arrays as it has quantities. To move a job is a line per array,
which nobody should write or read: these functions write them, from the declarations of the bundle.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from schedgym.core.arrays import Declaration, declarations
from schedgym.core.jit import helper

__all__ = ["clearer", "copier"]


def copier(bundle: type[Any], other: type[Any] | None = None, without: Collection[str] = ()) -> Any:
    """A helper ``copy(source, i, target, j)``: element i of each array becomes element j of its namesake.

    Args:
        bundle: of the source.
        other: of the target, if that is another one; arrays that only one of the two has are left alone.
        without: names of arrays that are left alone, too.
    """
    shared = {array.name for array in declarations(other or bundle)} - set(without)
    arrays = [array for array in declarations(bundle) if array.name in shared]
    return _made("source, i, target, j", arrays, "target.{0}[j{1}] = source.{0}[i{1}]")


def clearer(bundle: type[Any]) -> Any:
    """A helper ``clear(target, j)``: element j of each array becomes zero."""
    return _made("target, j", declarations(bundle), "target.{0}[j{1}] = 0")


def _made(arguments: str, arrays: Collection[Declaration], assignment: str) -> Any:
    """The helper with an assignment for each array of one or two dimensions."""
    lines = [f"def each({arguments}):"]
    for array in arrays:
        if len(array.dimensions) == 1:
            lines.append("    " + assignment.format(array.name, ""))
        elif len(array.dimensions) == 2:
            lines.append(f"    for k in range(target.{array.name}.shape[1]):")
            lines.append("        " + assignment.format(array.name, ", k"))
    scope: dict[str, Any] = {}
    exec("\n".join(lines), scope)
    return helper(scope["each"])
