"""Rows of columns whose names and values cannot part: a column is a field of a named tuple.

The tokens of an observation and what a scorer sees of them are rows of numbers. A named tuple declares the
columns of a row, in their order; those of tokens are annotated with what they are. Kernels write a row by
:func:`put`, read one by :func:`read`, and reach a single column by :func:`places`. The names that agents and
documents show are those of the fields.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from numba.core import errors, types
from numba.extending import intrinsic
from numba.np import arrayobj

from schedgym.core.jit import COMPILED

Row = TypeVar("Row", bound=tuple[Any, ...])


class Columns:
    """A mark of an array of tokens: what stands in a row, where its length depends on sizes.

    Args:
        parts: named tuples, and "dimension: what they are" of columns that are as many as it is long.
    """

    def __init__(self, *parts: Any) -> None:
        self.parts = parts


def names_of(*rows: Any) -> tuple[str, ...]:
    """The names of the columns of rows that stand one after the other.

    Of the fields ``log_load``, ``quiet_times_free`` and ``load_to_the_4`` they are "log load", "quiet * free"
    and "load^4".
    """
    names = (name for row in rows for name in row._fields)
    return tuple(name.replace("_times_", " * ").replace("_to_the_", "^").replace("_", " ") for name in names)


def places(row: Any) -> Any:
    """The place of each column in its row, by name."""
    return row(*range(len(row._fields)))


class _Put(Protocol):
    def __call__(self, row: Any, first: int, values: Any) -> None: ...


class _Read(Protocol):
    def __call__(self, columns: type[Row], row: Any) -> Row: ...


def _check_row(row: Any) -> None:
    if not isinstance(row, types.Array) or row.ndim != 1 or row.layout != "C":
        raise errors.TypingError(f"a row must be a contiguous array with one dimension, got {row}")


def _compiled_put(typing_context: Any, row: Any, first: Any, values: Any) -> Any:
    _check_row(row)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, place, kinds = signature.args
        array = arrayobj.make_array(kind)(context, builder, arguments[0])
        begin = context.cast(builder, arguments[1], place, types.intp)
        for k, own in enumerate(kinds):
            value = context.cast(builder, builder.extract_value(arguments[2], k), own, kind.dtype)
            at = builder.add(begin, context.get_constant(types.intp, k))
            builder.store(value, builder.gep(array.data, [at]))
        return context.get_dummy_value()

    return types.none(row, first, values), generate


def _compiled_read(typing_context: Any, columns: Any, row: Any) -> Any:
    _check_row(row)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = arrayobj.make_array(signature.args[1])(context, builder, arguments[1])
        places = [context.get_constant(types.intp, k) for k in range(len(signature.return_type))]
        values = [builder.load(builder.gep(array.data, [place])) for place in places]
        return context.make_tuple(builder, signature.return_type, values)

    own = columns.instance_class
    return types.NamedUniTuple(row.dtype, len(own._fields), own)(columns, row), generate


def _put(row: Any, first: int, values: Any) -> None:
    for k in range(len(values)):
        row[first + k] = values[k]


def _read(columns: Any, row: Any) -> Any:
    return columns(*(float(number) for number in row[: len(columns._fields)]))


#: write a named tuple of numbers into a row, from the place ``first`` on
put: _Put = intrinsic(_compiled_put) if COMPILED else _put
#: return the first numbers of a row as a named tuple of this class
read: _Read = intrinsic(_compiled_read) if COMPILED else _read
