"""Tables, through which kernels access the arrays of one environment.

Passing a hundred arrays to a kernel takes 7 us, and a step of a single environment only 0.3 us. Therefore
:func:`pack` writes the addresses and shapes of all arrays into a table, once. Inside the kernel,
:func:`accessor` returns one environment for a table and an index: the same named tuples of arrays, without
the batch axis.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from numba.core import cgutils, imputils, types
from numba.core.typing import templates
from numba.extending import intrinsic, models, register_model
from numba.np import arrayobj

from schedgym.core.arrays import (
    GUARD,
    MOST_DIMENSIONS,
    SCRATCH,
    SHARED,
    STATIC,
    Declaration,
    Integers,
    Member,
    Sizes,
    allocate,
    check_guards,
    declarations,
    members,
    shape_of,
    static_length,
)
from schedgym.core.jit import COMPILED

Bundle = TypeVar("Bundle", bound=tuple[Any, ...])


class Shifted(NamedTuple):
    """A table whose environment 0 is the environment ``first``: what each thread of a GPU has.

    Work space is shifted, too, and then batch-first as all else.
    """

    table: Any
    first: Any


def row_of(address: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The row of a table for an array: its address, and its shape padded to MOST_DIMENSIONS lengths."""
    return (address, *shape, *(0,) * (MOST_DIMENSIONS - len(shape)))


def table_of(rows: Integers, static: int) -> Integers:
    """The table of rows, int64 [arrays, 1 + MOST_DIMENSIONS], with as many axes as ``static`` says.

    Kernels are compiled for the number of axes, and so know the length that it stands for: there are more of
    length 1 in front, or only one in all.
    """
    return rows.ravel() if static == 1 else rows.reshape((*(1,) * (static - 2), *rows.shape))


def _rows(arrays: Any, kinds: tuple[str, ...]) -> list[tuple[int, ...]]:
    """The row of each array of the bundles of these kinds."""
    rows = []
    for member, bundle in zip(members(type(arrays)), arrays, strict=True):
        if member.kind not in kinds:
            continue
        if bundle is None:  # the kernels that get this table do not touch it
            rows += [row_of(0, ())] * len(declarations(member.bundle))
            continue
        for declared, array in zip(declarations(member.bundle), bundle, strict=True):
            dimensions = len(declared.dimensions) + (member.kind == "")
            if array.dtype != declared.dtype or array.ndim != dimensions or not array.flags.c_contiguous:
                raise TypeError(
                    f"{type(bundle).__name__}.{declared.name}: must be a contiguous {declared.dtype} array "
                    f"with {dimensions} dimensions, got {array.dtype} {array.shape}"
                )
            rows.append(row_of(array.ctypes.data, array.shape))
    return rows


def pack(arrays: Any, scratch: bool = False) -> Any:
    """A table of an environment's arrays for kernels: int64 [arrays, 1 + MOST_DIMENSIONS].

    It keeps the arrays alive; pack again when one is replaced. Where they have a STATIC dimension, it has the
    axes of :func:`table_of`. Uncompiled (NUMBA_DISABLE_JIT=1) it is the bundles themselves.

    Args:
        arrays: a named tuple of bundles; see :mod:`schedgym.core.arrays`.
        scratch: True to pack the work space, False to pack everything else.
    """
    if not COMPILED:
        return arrays
    rows = _rows(arrays, (SCRATCH,) if scratch else ("", SHARED))
    memory = _Memory(np.array(rows, dtype=np.int64).tobytes())
    memory.owner = arrays
    table = np.frombuffer(memory, dtype=np.int64).reshape(-1, 1 + MOST_DIMENSIONS)
    return table if scratch else table_of(table, static_length(arrays))


class _Memory(bytearray):
    """The memory of a table, which keeps alive what the table points at."""

    owner: Any

    if GUARD:

        def __del__(self) -> None:
            """Check the guards of the arrays; an error reaches sys.unraisablehook."""
            check_guards(self.owner)


#: in the place of work space in an environment that :func:`tabled` packs: it makes that itself
MADE_HERE: Any = None


def tabled(arrays: Any, sizes: Sizes) -> tuple[Any, Any]:
    """Bundles and their work space, packed, as kernels take them: ``kernel(*tabled(...), ...)``."""
    return pack(arrays), pack(make_tools(type(arrays), sizes), scratch=True)


def make_tools(environment: type[Any], sizes: Sizes) -> Any:
    """The work space of an environment's kernels, for one thread; the other bundles are None."""
    return environment(
        *(
            allocate(member.bundle, sizes, None, member.renamed) if member.kind == SCRATCH else None
            for member in members(environment)
        )
    )


def batch_of_one(instance: Bundle) -> Bundle:
    """Return a bundle without a batch axis as that of a batch with one environment."""
    return type(instance)(*(array[np.newaxis] for array in instance))


def accessor(environment: type[Any]) -> Any:
    """An intrinsic ``access(table, tools, b)`` for kernels: environment b, without the batch axis.

    ``table`` and ``tools`` are results of :func:`pack`, the second one of the work space, or both are
    :class:`Shifted`. The result has the
    bundles as attributes, and each bundle its arrays; a record is the record itself. It is two pointers and a
    number: an array is made of its row of the table where it is used, so that a helper which is given the
    whole environment compiles as fast as one that is given two arrays, and runs as fast. The arrays own
    nothing (numba's reference count is null): the table keeps them alive.
    """
    if not COMPILED:

        def access_uncompiled(table: Any, tools: Any, b: int) -> Any:
            made: list[Any] = []
            places = {"": b}
            if isinstance(table, Shifted):
                places = {"": table.first + b, SCRATCH: tools.first}
                table, tools = table.table, tools.table
            for member, shared, own in zip(members(environment), table, tools, strict=True):
                bundle = own if member.kind == SCRATCH else shared
                if bundle is None:
                    made.append(None)
                elif member.kind in places:
                    made.append(type(bundle)(*(a[places[member.kind]] for a in bundle)))
                else:
                    made.append(type(bundle)(*(a[()] if a.ndim == 0 else a for a in bundle)))
            return environment(*made)

        return access_uncompiled

    @intrinsic  # type: ignore[untyped-decorator]
    def access(typing_context: Any, table: Any, tools: Any, b: Any) -> Any:
        shifted = isinstance(table, types.BaseTuple)
        kind = _EnvironmentType(environment, shifted, (table.types[0] if shifted else table).ndim)

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            made = cgutils.create_struct_proxy(kind)(context, builder)
            first = {}
            for name, type_, value in zip(("table", "tools"), signature.args, arguments, strict=False):
                if kind.shifted:
                    first[name] = context.cast(
                        builder, builder.extract_value(value, 1), type_.types[1], types.intp
                    )
                    type_, value = type_.types[0], builder.extract_value(value, 0)
                setattr(made, name, arrayobj.make_array(type_)(context, builder, value).data)
            index = context.cast(builder, arguments[2], signature.args[2], types.intp)
            made.index = builder.add(index, first["table"]) if kind.shifted else index
            made.lane = first.get("tools", context.get_constant(types.intp, 0))
            return made._getvalue()

        return kind(table, tools, b), codegen

    return access


class _EnvironmentType(types.Type):  # type: ignore[misc]
    """The type of an environment in a kernel: the two tables, its index, and that of its work space."""

    def __init__(self, environment: type[Any], shifted: bool, static: int) -> None:
        self.environment, self.shifted, self.static = environment, shifted, static
        name = f"{environment.__module__}.{environment.__qualname__}"
        super().__init__(name=f"Environment({name}, {shifted}, {static})")

    def bundle(self, member: Member) -> Any:
        """The type of one of its bundles."""
        is_batch = member.kind == "" or (self.shifted and member.kind == SCRATCH)
        return _BundleType(member.bundle, is_batch, self.static)


class _BundleType(types.Type):  # type: ignore[misc]
    """The type of an environment's bundle in a kernel: its rows of a table and the index."""

    def __init__(self, bundle: type[Any], is_batch: bool, static: int) -> None:
        self.bundle, self.is_batch, self.static = bundle, is_batch, static
        # the layout is part of the name: a cached kernel of another file must not serve another layout
        layout = [(d.name, d.dtype.str, d.dtype.descr, d.dimensions, static) for d in declarations(bundle)]
        digest = hashlib.sha256(repr(layout).encode()).hexdigest()[:16]
        super().__init__(name=f"Bundle({bundle.__module__}.{bundle.__qualname__}, {is_batch}, {digest})")

    def length(self, dimension: int | str) -> int | None:
        """The length of a STATIC dimension; None for any other, which is read where it is used."""
        name = str(dimension)
        if not name.startswith(STATIC):
            return None
        return shape_of((name,), {name.partition("+")[0]: self.static})[0]

    def array(self, declared: Declaration) -> Any:
        """The type of one of its arrays."""
        element = numba.from_dtype(declared.dtype)
        dimensions = len(declared.dimensions)
        return types.Array(element, dimensions, "C") if dimensions else element


@register_model(_EnvironmentType)
class _EnvironmentModel(models.StructModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        table = types.CPointer(types.int64)
        places = [("index", types.intp), ("lane", types.intp)]
        super().__init__(manager, kind, [("table", table), ("tools", table), *places])


@register_model(_BundleType)
class _BundleModel(models.StructModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, [("rows", types.CPointer(types.int64)), ("index", types.intp)])


@templates.infer_getattr
class _EnvironmentAttributes(templates.AttributeTemplate):  # type: ignore[misc]
    key = _EnvironmentType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        for member in members(kind.environment):
            if member.name == name:
                return kind.bundle(member)
        return None


@templates.infer_getattr
class _BundleAttributes(templates.AttributeTemplate):  # type: ignore[misc]
    key = _BundleType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        for declared in declarations(kind.bundle):
            if declared.name == name:
                return kind.array(declared)
        return None


@imputils.lower_getattr_generic(_EnvironmentType)  # type: ignore[untyped-decorator]
def _lower_bundle(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    environment = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    first = {"table": 0, "tools": 0}
    for member in members(kind.environment):
        which = "tools" if member.kind == SCRATCH else "table"
        if member.name == name:
            break
        first[which] += len(declarations(member.bundle))
    made = cgutils.create_struct_proxy(kind.bundle(member))(context, builder)
    offset = context.get_constant(types.intp, first[which] * (1 + MOST_DIMENSIONS))
    made.rows = builder.gep(getattr(environment, which), [offset])
    made.index = environment.lane if which == "tools" else environment.index
    return made._getvalue()


@imputils.lower_getattr_generic(_BundleType)  # type: ignore[untyped-decorator]
def _lower_array(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    bundle = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    row, declared = next((i, d) for i, d in enumerate(declarations(kind.bundle)) if d.name == name)
    array_type = kind.array(declared)

    def entry(column: int) -> Any:
        place = context.get_constant(types.intp, row * (1 + MOST_DIMENSIONS) + column)
        loaded = builder.load(builder.gep(bundle.rows, [place]))
        # no kernel writes to a table: what was loaded once need not be loaded again
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    is_record = not declared.dimensions
    itemsize = context.get_constant(types.intp, declared.dtype.itemsize)
    shape = [
        entry(1 + kind.is_batch + axis) if length is None else context.get_constant(types.intp, length)
        for axis, length in enumerate(map(kind.length, declared.dimensions))
    ]
    address = entry(0)
    if kind.is_batch:
        stride = itemsize
        for length in shape:
            stride = builder.mul(stride, length)
        address = builder.add(address, builder.mul(bundle.index, stride))
    if is_record:
        return builder.inttoptr(address, context.get_value_type(array_type))
    array = arrayobj.make_array(array_type)(context, builder)
    strides = [itemsize]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    arrayobj.populate_array(
        array,
        data=builder.inttoptr(address, array.data.type),
        shape=shape,
        strides=strides,
        itemsize=itemsize,
        meminfo=None,
    )
    return array._getvalue()
