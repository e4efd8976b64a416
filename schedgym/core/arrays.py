"""Declarations of arrays: a bundle states the element type and the dimensions of each of its arrays.

A bundle is a named tuple of arrays. An annotation states the type of the elements and the dimensions that the
array has for ONE environment::

    class State(NamedTuple):
        scalars: Annotated[Any, SCALARS]  # a record: no dimension
        served: Annotated[Floats, "job"]
        held: Annotated[Integers, "job", "server"]
        first_task: Annotated[Integers32, "job+1"]
        phase_demand: Annotated[Integers, "job", 2]
        start: Annotated[Floats, "task", Fill(math.nan)]
        free: Annotated[Integers, "server", Shown("what is not in use [cores]", MOST_CORES)]
        server_tokens: Annotated[Floats32, "server", ServerToken]  # as many columns as the tuple has fields

From these annotations also follow the spaces of observations and their documentation (:class:`Shown`). The
dimension "unit_window" is as long as "window" where observations are in exact units, and else 0;
"token_window" where they are tokens; "own_window" where they are in exact units, and copies of the state.
The length of a dimension such as "static_resource" is part of the type of an environment in kernels, which
are compiled for it; an environment has one such length (see :func:`schedgym.core.tables.pack`).

A problem gathers its bundles in one more named tuple, its environment; bundles marked ``SHARED`` are the same
for all environments, those marked ``SCRATCH`` are work space, one for each thread. In memory all others are
batch-first: axis 0 is the environment. Kernels get one environment at a time, without that axis (see
:func:`schedgym.core.tables.accessor`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import numpy as np
import numpy.typing as npt

# Kinds of arrays; all are C-contiguous.
Floats = Annotated[npt.NDArray[np.float64], np.dtype(np.float64)]
Floats32 = Annotated[npt.NDArray[np.float32], np.dtype(np.float32)]
Integers = Annotated[npt.NDArray[np.int64], np.dtype(np.int64)]
Integers32 = Annotated[npt.NDArray[np.int32], np.dtype(np.int32)]
Bytes = Annotated[npt.NDArray[np.int8], np.dtype(np.int8)]
Flags = Annotated[npt.NDArray[np.bool_], np.dtype(np.bool_)]

#: marks of a bundle in an environment
SHARED, SCRATCH = "shared", "scratch"

#: how the name of a dimension begins whose length kernels know when they are compiled
STATIC = "static_"

#: bytes before and after every array, with SCHEDGYM_GUARD=1, to find kernels that write beyond one
GUARD = 64 if os.environ.get("SCHEDGYM_GUARD") == "1" else 0
PATTERN = 0xA5

#: of an array, the batch axis included
MOST_DIMENSIONS = 3

#: name of a dimension -> its length
Sizes = Mapping[str, int]
#: of values: a number, one for each column, or a function of the simulator, which has sizes and parameters
Limit = float | Sequence[float] | Callable[[Any], float | Sequence[float]]
Bundle = TypeVar("Bundle", bound=tuple[Any, ...])
Mark = TypeVar("Mark")


@dataclasses.dataclass(frozen=True)
class Fill:
    """A mark of an array: the initial value of its elements, which otherwise is zero."""

    value: float


@dataclasses.dataclass(frozen=True)
class Shown:
    """A mark of an array that observations show: what :mod:`schedgym.spaces` makes a space of.

    Arrays of float32 are tokens, all others are in exact units. An array without elements is not shown.

    Attributes:
        meaning: what it is, with the unit of its values in brackets.
        most, least: limits of its values.
        name: its name in observations, if it is not the array's.
        shape: its dimensions in observations, if the array has several of them in one.
        when: what must hold for it to be shown: "name", which must be true, or "name=one|two", a choice;
            several are separated by spaces. They are parameters, or else attributes of the simulator.
        single: True if it is one whole number, and its space Discrete.
    """

    meaning: str = ""
    most: Limit = 1.0
    least: Limit = 0.0
    name: str = ""
    shape: tuple[int | str, ...] = ()
    when: str = ""
    single: bool = False

    @property
    def conditions(self) -> list[tuple[str, list[str]]]:
        """The conditions of ``when``: a name, and its values; none if it must be true."""
        parts = (condition.partition("=") for condition in self.when.split())
        return [(name, values.split("|") if values else []) for name, _, values in parts]

    def holds(self, simulator: Any) -> bool:
        """Return True if all conditions hold in a simulator's environments."""
        for name, values in self.conditions:
            given = getattr(simulator.parameters if hasattr(simulator.parameters, name) else simulator, name)
            if not (given in values if values else given):
                return False
        return True


def length(dimension: str, more: int = 0, times: float = 1.0) -> Callable[[Any], float]:
    """A limit of values: the length of a dimension, plus ``more``, ``times`` a number."""
    return lambda simulator: (simulator.sizes[dimension] + more) * times


class Renamed:
    """A mark of a bundle in an environment: it renames dimensions, as ``Renamed(job="window")`` does."""

    def __init__(self, **names: str) -> None:
        self.names = names


@dataclasses.dataclass(frozen=True)
class Declaration:
    """One array of a bundle.

    Attributes:
        name: name of the field.
        dtype: type of the elements.
        dimensions: lengths, names of lengths, or a name and a number added to its length ("job+1"). That of a
            named tuple is the number of its fields.
        fill: initial value of the elements.
        marks: further marks, which other modules read.
    """

    name: str
    dtype: np.dtype[Any]
    dimensions: tuple[int | str, ...]
    fill: float
    marks: tuple[Any, ...] = ()

    def mark(self, kind: type[Mark]) -> Mark | None:
        """The array's mark of this kind, if it has one."""
        return next((mark for mark in self.marks if isinstance(mark, kind)), None)

    def shape(self, sizes: Sizes, renamed: Mapping[str, str]) -> tuple[int, ...]:
        """The array's shape under these sizes."""
        return shape_of(self.dimensions, sizes, renamed)


@dataclasses.dataclass(frozen=True)
class Member:
    """One bundle of an environment: its field's name, its class, and if it is shared or work space."""

    name: str
    bundle: type[Any]
    kind: str
    renamed: Mapping[str, str]


def shape_of(
    dimensions: tuple[int | str, ...], sizes: Sizes, renamed: Mapping[str, str] | None = None
) -> tuple[int, ...]:
    """The lengths of dimensions, as :class:`Declaration` has them."""
    lengths = []
    for dimension in dimensions:
        name, _, more = str(dimension).partition("+")
        own = sizes[(renamed or {}).get(name, name)] if isinstance(dimension, str) else dimension
        lengths.append(own + int(more or 0))
    return tuple(lengths)


def declarations(bundle: Any) -> tuple[Declaration, ...]:
    """The arrays of a bundle, in the order of its fields."""
    return _declarations(bundle)


@functools.cache
def _declarations(bundle: Any) -> tuple[Declaration, ...]:
    hints = typing.get_type_hints(bundle, include_extras=True)
    found = []
    for name in bundle._fields:
        dtype, *rest = hints[name].__metadata__
        fill = next((entry.value for entry in rest if isinstance(entry, Fill)), 0.0)
        lengths = (len(entry._fields) if hasattr(entry, "_fields") else entry for entry in rest)
        dimensions = tuple(entry for entry in lengths if isinstance(entry, (int, str)))
        marks = tuple(entry for entry in rest if not isinstance(entry, (int, str, Fill)))
        if not dimensions and dtype.names is None:
            raise TypeError(f"{bundle.__name__}.{name}: an array that is no record needs a dimension")
        if len(dimensions) >= MOST_DIMENSIONS:  # one is the batch axis, which work space has on a GPU
            raise TypeError(f"{bundle.__name__}.{name}: has more than {MOST_DIMENSIONS - 1} dimensions")
        found.append(Declaration(name, dtype, dimensions, fill, marks))
    return tuple(found)


def members(environment: Any) -> tuple[Member, ...]:
    """The bundles of an environment, in the order of its fields."""
    return _members(environment)


@functools.cache
def _members(environment: Any) -> tuple[Member, ...]:
    hints = typing.get_type_hints(environment, include_extras=True)
    found = []
    for name in environment._fields:
        marks = getattr(hints[name], "__metadata__", ())
        bundle = typing.get_args(hints[name])[0] if marks else hints[name]
        kind = next((mark for mark in marks if isinstance(mark, str)), "")
        renamed = next((mark.names for mark in marks if isinstance(mark, Renamed)), {})
        found.append(Member(name, bundle, kind, renamed))
    return tuple(found)


def allocate(
    bundle: type[Bundle], sizes: Sizes, batch: int | None = None, renamed: Mapping[str, str] | None = None
) -> Bundle:
    """Make a bundle's arrays.

    Args:
        bundle: a named tuple of declared arrays.
        sizes: length of each dimension that it names.
        batch: number of environments, which become axis 0; None: no such axis.
        renamed: dimension -> the name under which ``sizes`` has it.
    """
    first = () if batch is None else (batch,)
    arrays = []
    for array in declarations(bundle):
        shape = (*first, *array.shape(sizes, renamed or {}))
        arrays.append(_filled(shape, array.dtype, array.fill))
    return bundle(*arrays)


def _filled(shape: tuple[int, ...], dtype: np.dtype[Any], fill: float) -> npt.NDArray[Any]:
    if not GUARD:
        return np.full(shape, fill, dtype) if fill else np.zeros(shape, dtype)
    length = math.prod(shape) * dtype.itemsize
    memory = _Guarded(length + 2 * GUARD, np.uint8)
    memory[:] = PATTERN
    memory[GUARD : GUARD + length] = 0
    array: npt.NDArray[Any] = np.ndarray(shape, dtype, memory, GUARD)
    if fill:
        array[...] = fill
    return array


class _Guarded(np.ndarray):
    """The memory of an array, and GUARD bytes at each of its ends."""


def check_guards(arrays: Any) -> None:
    """Raise MemoryError, which names the array, if a guard of one of the bundles has changed.

    Pickled, copied and read arrays have none.
    """
    for bundle in arrays:
        for name, array in zip(bundle._fields, bundle, strict=True) if bundle is not None else ():
            memory = array.base
            if isinstance(memory, _Guarded):
                ends = np.concatenate([memory[:GUARD], memory[-GUARD:]])
                if (ends != PATTERN).any():
                    raise MemoryError(f"{type(bundle).__name__}.{name}: a kernel wrote beyond the array")


def allocate_all(environment: type[Bundle], sizes: Sizes, num_envs: int) -> Bundle:
    """Make the batch-first arrays of ``num_envs`` environments; shared arrays and work space exist once."""
    made = (
        allocate(member.bundle, sizes, None if member.kind else num_envs, member.renamed)
        for member in members(environment)
    )
    return environment(*made)


def batched(arrays: Any, *left_out: str) -> list[tuple[npt.NDArray[Any], Declaration]]:
    """Every batch-first array once, with its declaration, but for those of the bundles ``left_out``."""
    found: dict[int, tuple[npt.NDArray[Any], Declaration]] = {}
    for member, bundle in zip(members(type(arrays)), arrays, strict=True):
        if not member.kind and member.name not in left_out:
            for declared, array in zip(declarations(member.bundle), bundle, strict=True):
                own = tuple(_renamed(dimension, member.renamed) for dimension in declared.dimensions)
                found.setdefault(id(array), (array, dataclasses.replace(declared, dimensions=own)))
    return list(found.values())


def _renamed(dimension: int | str, renamed: Mapping[str, str]) -> int | str:
    if isinstance(dimension, int):
        return dimension
    name, plus, more = dimension.partition("+")
    return f"{renamed.get(name, name)}{plus}{more}"


def memory_of(environment: Any, sizes: Sizes) -> dict[str, int]:
    """The bytes of each array of one environment, shared arrays and work space too, by "bundle.array"."""
    return {
        f"{member.name}.{declared.name}": math.prod(declared.shape(sizes, member.renamed))
        * declared.dtype.itemsize
        for member in members(environment)
        for declared in declarations(member.bundle)
    }


def regrow(arrays: Bundle, sizes: Sizes, num_envs: int) -> Bundle:
    """Return the arrays resized, with their contents; arrays whose shape stays are the same objects.

    An array that stands in several bundles is one object afterwards, too.
    """
    grown: dict[int, npt.NDArray[Any]] = {}
    result = []
    for member, bundle in zip(members(type(arrays)), arrays, strict=True):
        first = () if member.kind else (num_envs,)
        fields = []
        for declared, array in zip(declarations(member.bundle), bundle, strict=True):
            shape = (*first, *declared.shape(sizes, member.renamed))
            if id(array) not in grown:
                grown[id(array)] = array if shape == array.shape else _copied(array, shape, declared.fill)
            fields.append(grown[id(array)])
        result.append(member.bundle(*fields))
    return type(arrays)(*result)


def _copied(array: npt.NDArray[Any], shape: tuple[int, ...], fill: float) -> npt.NDArray[Any]:
    new = _filled(shape, array.dtype, fill)
    both = tuple(slice(min(lengths)) for lengths in zip(array.shape, shape, strict=True))
    new[both] = array[both]
    return new


def sizes_of(instance: tuple[Any, ...]) -> dict[str, int]:
    """The lengths of the named dimensions of a bundle without a batch axis."""
    found: dict[str, int] = {}
    for declared, array in zip(declarations(type(instance)), instance, strict=True):
        for dimension, length in zip(declared.dimensions, array.shape, strict=True):
            if isinstance(dimension, str):
                name, _, more = dimension.partition("+")
                found[name] = length - int(more or 0)
    return found


def static_length(arrays: Any) -> int:
    """The length of the STATIC dimension of an environment's bundles, 2 where they have none."""
    for member, bundle in zip(members(type(arrays)), arrays, strict=True):
        for declared, array in zip(declarations(member.bundle), bundle or (), strict=False):
            for dimension, length in zip(reversed(declared.dimensions), reversed(array.shape), strict=False):
                if isinstance(dimension, str) and dimension.startswith(STATIC):
                    return int(length) - int(dimension.partition("+")[2] or 0)
    return 2
