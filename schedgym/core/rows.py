"""Helpers of kernels that copy and clear rows: of all arrays of a bundle, of one array, of a record or mask.

Each quantity of a job stands in an array of its own, so that moving a job takes one statement per array.
These functions generate the statements from the declarations of the bundle.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numba.core import imputils, types
from numba.extending import intrinsic
from numba.np import arrayobj

from schedgym.core.arrays import Declaration, declarations
from schedgym.core.jit import COMPILED, helper


def _compiled_with_columns(typing_context: Any, array: Any, columns: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, count = signature.args[0], context.get_constant(types.intp, len(signature.args[1]))
        given = arrayobj.make_array(kind)(context, builder, arguments[0])
        made, size = arrayobj.make_array(kind)(context, builder), given.itemsize
        arrayobj.populate_array(
            made,
            data=given.data,
            shape=[builder.extract_value(given.shape, 0), count],
            strides=[builder.mul(count, size), size],
            itemsize=size,
            meminfo=given.meminfo,
            parent=given.parent,
        )
        return imputils.impl_ret_borrowed(context, builder, kind, made._getvalue())

    return array(array, columns), generate


def _with_columns(array: Any, columns: Any) -> Any:
    return array


#: return a contiguous array [rows, columns] as one of which kernels know, when they are compiled, that it has
#: as many columns as there are elements in the tuple ``columns``
with_columns: Any = intrinsic(_compiled_with_columns) if COMPILED else _with_columns


@helper
def copy_entries(source: Any, i: int, target: Any, j: int) -> None:
    """Copy row i of an array to row j of another of as many columns."""
    for k in range(target.shape[1]):
        target[j, k] = source[i, k]


@helper
def clear_entries(array: Any, first: int, last: int) -> None:
    """Set the rows from ``first`` to before ``last`` of an array to zero."""
    for i in range(first, last):
        for k in range(array.shape[1]):
            array[i, k] = 0


@helper
def mark(mask: Any, before: int, count: int) -> None:
    """Change a mask that shows the first ``before`` rows so that it shows the first ``count`` rows."""
    for r in range(before, count):
        mask[r] = 1
    for r in range(count, before):
        mask[r] = 0


def copier(
    bundle: type[Any],
    other: type[Any] | None = None,
    only: Collection[str] = (),
    without: Collection[str] = (),
) -> Any:
    """A helper ``copy(source, i, target, j)``: element i of each array becomes element j of its namesake.

    Args:
        bundle: bundle of the source.
        other: bundle of the target, if it is another; arrays that only one of the two has are left alone.
        only: names of the arrays that are copied; all others are left alone.
        without: names of arrays that are left alone, too.
    """
    shared = {array.name for array in declarations(other or bundle)} - set(without)
    arrays = [array for array in _chosen(bundle, only) if array.name in shared]
    return _made("source, i, target, j", arrays, "target.{0}[j{1}] = source.{0}[i{1}]")


def clearer(bundle: type[Any], only: Collection[str] = ()) -> Any:
    """A helper ``clear(target, j)``: element j of each array (of those that ``only`` names) becomes zero."""
    return _made("target, j", _chosen(bundle, only), "target.{0}[j{1}] = 0")


def resetter(record: np.dtype[Any], without: Collection[str] = ()) -> Any:
    """A helper ``reset(record)``: each field becomes zero, but for those that ``without`` names."""
    names = [name for name in record.names or () if name not in without]
    return _compiled(["def each(record):", *(f"    record.{name} = 0" for name in names)])


def _chosen(bundle: type[Any], only: Collection[str]) -> list[Declaration]:
    """The arrays of a bundle that ``only`` names; all, if it names none."""
    return [array for array in declarations(bundle) if not only or array.name in only]


def _made(arguments: str, arrays: Collection[Declaration], assignment: str) -> Any:
    """The helper with an assignment for each array of one or two dimensions."""
    lines = [f"def each({arguments}):"]
    for array in arrays:
        if len(array.dimensions) == 1:
            lines.append("    " + assignment.format(array.name, ""))
        elif len(array.dimensions) == 2:
            lines.append(f"    for k in range(target.{array.name}.shape[1]):")
            lines.append("        " + assignment.format(array.name, ", k"))
    return _compiled(lines)


def _compiled(lines: list[str]) -> Any:
    """The helper ``each`` that these lines define."""
    scope: dict[str, Any] = {}
    exec("\n".join(lines), scope)
    return helper(scope["each"])
