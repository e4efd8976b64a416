"""Workload: an instance as a struct of arrays, its schema, validation, and files.

A workload is the name of its problem, ``jobs`` and ``cluster`` (named arrays, one value or row per job or
server), ``parameters`` (named numbers), and, where jobs are made of tasks, ``tasks`` (one value or row per
task). A :class:`Schema` says which fields a problem has, their units and ranges. Files are JSON (``.json``)
or numpy archives (``.npz``).
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Flags, Floats, Integers
from schedgym.errors import InvalidWorkload, one_line, suggest

SECTIONS = ("jobs", "tasks", "cluster", "parameters")

#: pads the rows of ragged fields
PAD = -1
#: names of fields that a schema does not know
FURTHER_NAME = re.compile("[a-z][a-z0-9_]{0,31}")
#: slack of the test whether a demand fits a capacity, as a share of the largest server
CAPACITY_TOLERANCE = 1e-9
#: beyond it whole numbers are not exact in float64
LARGEST_WHOLE = 2.0**53
#: most elements of a ragged field, padded, in all and for each element that is given: one long list among
#: many short ones must not exhaust the memory
MOST_PADDED, MOST_PADDED_PER_ELEMENT = 2**22, 100
#: most slots of an episode, in all and for each job: a number of a few digits must not take hours
MOST_SLOTS, MOST_SLOTS_PER_JOB = 100_000, 1_000


def most_slots(jobs: int) -> int:
    """Return how many slots with a decision the episodes of a workload of so many jobs may have."""
    return MOST_SLOTS + MOST_SLOTS_PER_JOB * jobs


def refuse(array: npt.NDArray[Any], bad: Flags, where: str, what: str) -> None:
    """Raise InvalidWorkload with the place and the value of the first element that is bad, if any is."""
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        place = "".join(f"[{i}]" for i in index)
        got = f"{array[index]:d}" if array.dtype.kind == "i" else f"{array[index]:g}"
        raise InvalidWorkload(f"{where}{place}: {what}, got {got}")


def check_tasks(job: Integers, jobs: int, prefix: str) -> None:
    """Raise InvalidWorkload unless every task's job exists, and every job has a task."""
    refuse(job, job >= jobs, f"{prefix}tasks.job", f"there are {jobs} jobs")
    idle = np.bincount(job, minlength=jobs) == 0
    if idle.any():
        raise InvalidWorkload(f"{prefix}jobs: job [{int(np.argmax(idle))}] has no task")


@dataclasses.dataclass(frozen=True)
class Field:
    """One array of a workload.

    Attributes:
        name: its key.
        unit: unit of its values, e.g. "s", "cores", "share of the largest server".
        dimensions: one symbol per axis; equal symbols have equal lengths, e.g. ("task",), ("task", "server").
        kind: "float", "int", or "bool" (true and false, which are no numbers; a range means nothing then).
        minimum, maximum: the range; ``exclusive`` leaves the minimum itself out.
        ascending: True if values may not decrease.
        optional: True if the field may be missing.
        ragged: rows are lists of different lengths, of whole numbers >= 0. Given as a list of lists, or as a
            2-dimensional array whose rows end with -1 as often as needed, which is also how they are stored.
        keys: names of the values of a 1-dimensional field, which may then also be given as an object with
            exactly these names. It is stored, and saved, as the list of its values in this order.
        choices: names of the values of an int field: lists hold names, arrays hold names or their numbers in
            this order. It is stored as numbers, and saved as names (in ``.npz`` as numbers).
    """

    name: str
    unit: str
    dimensions: tuple[str, ...]
    kind: Literal["float", "int", "bool"] = "float"
    minimum: float = 0.0
    maximum: float = np.inf
    exclusive: bool = False
    ascending: bool = False
    optional: bool = False
    ragged: bool = False
    keys: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.ragged and not (self.kind == "int" and len(self.dimensions) == 2 and self.minimum > PAD):
            raise ValueError(f"{self.name}: a ragged field has 2 dimensions and whole numbers >= 0")
        if self.keys and len(self.dimensions) != 1:
            raise ValueError(f"{self.name}: a field with keys has 1 dimension")
        if self.choices and (self.kind != "int" or self.ragged or self.keys):
            raise ValueError(f"{self.name}: a field with choices is of kind int, without lists or keys")

    def parse(self, value: object, where: str) -> npt.NDArray[Any]:
        """``value`` as a fresh array of this field; InvalidWorkload names the first bad index."""
        if self.keys and isinstance(value, Mapping):
            value = self._named(value, where)
        if self.kind == "bool":
            return np.array(self._rectangle(value, where), dtype=np.bool_)
        if self.choices:
            return self._numbered(value, where)
        array, given = self._lists(value, where) if self.ragged else (self._numbers(value, where), True)
        bad = ~np.isfinite(array)
        refuse(array, bad, where, "must be finite")
        low = array <= self.minimum if self.exclusive else array < self.minimum
        sign = ">" if self.exclusive else ">="
        refuse(array, low & given, where, f"must be {sign} {self.minimum:g} ({self.unit})")
        most = min(self.maximum, LARGEST_WHOLE) if self.kind == "int" else self.maximum
        refuse(array, array > most, where, f"must be <= {most:g} ({self.unit})")
        if self.kind == "int":
            refuse(array, array != np.floor(array), where, "must be a whole number")
            array = array.astype(np.int64)
        if self.ascending:
            descents = np.flatnonzero(np.diff(array) < 0)
            if descents.size:
                i = int(descents[0]) + 1
                raise InvalidWorkload(
                    f"{where}[{i}]: must not decrease, got {array[i]:g} after {array[i - 1]:g}"
                )
        return array

    def _named(self, values: Mapping[Any, object], where: str) -> list[Any]:
        """The values of an object in the order of ``keys``, each checked under its name."""
        for name in values:
            if name not in self.keys:
                raise InvalidWorkload(f"{where}.{shown(name)}: unknown field{suggest(str(name), self.keys)}")
        one = dataclasses.replace(self, dimensions=(), ascending=False, keys=())
        listed = []
        for name in self.keys:
            if name not in values:
                raise InvalidWorkload(f"{where}.{name}: missing")
            listed.append(one.parse(values[name], f"{where}.{name}").item())
        return listed

    def _numbered(self, value: object, where: str) -> Integers:
        """The numbers of names in ``choices``."""
        wanted = f"must be one of {', '.join(self.choices)}"
        if isinstance(value, (np.ndarray, np.integer)) and value.dtype.kind in "iu":
            raw = np.array(value)
            self._check_dimensions(raw, where, "name")
            refuse(raw, (raw < 0) | (raw >= len(self.choices)), where, wanted)
            return raw.astype(np.int64)
        raw = np.array(value, dtype=object)
        self._check_dimensions(raw, where, "name")
        table = {name: number for number, name in enumerate(self.choices)}
        numbers = np.empty(raw.shape, dtype=np.int64)
        for index, element in np.ndenumerate(raw):
            number = table.get(element) if isinstance(element, str) else None
            if number is None:
                place = "".join(f"[{i}]" for i in index)
                raise InvalidWorkload(f"{where}{place}: {wanted}, got {element!r}")
            numbers[index] = number
        return numbers

    def _check_dimensions(self, array: npt.NDArray[Any], where: str, name: str) -> None:
        if array.ndim != len(self.dimensions):
            expected = ", ".join(self.dimensions) or f"a single {name}"
            raise InvalidWorkload(
                f"{where}: must have {len(self.dimensions)} dimensions ({expected}), got {array.ndim}"
            )

    def _numbers(self, value: object, where: str) -> Floats:
        """A rectangular array of numbers, copied."""
        return np.array(self._rectangle(value, where), dtype=np.float64)

    def _rectangle(self, value: object, where: str) -> npt.NDArray[Any]:
        """A rectangular array of numbers, or of truth values."""
        kinds, fits, name, one = "iuf", _is_number, "number", "a number"
        if self.kind == "bool":
            kinds, fits, name, one = "b", _is_truth, "truth value", "true or false"
        try:
            raw = np.asarray(value)
        except ValueError:
            raise InvalidWorkload(f"{where}: must be a rectangular array of {name}s") from None
        listed = _first_unfit(value, fits) if isinstance(value, (list, tuple)) else ""
        if listed or (raw.dtype.kind not in kinds and raw.size):
            raise InvalidWorkload(f"{where}{listed}: must be {one}")
        self._check_dimensions(raw, where, name)
        return raw

    def _lists(self, value: object, where: str) -> tuple[Floats, Flags]:
        """Rows of different lengths, padded, and which elements are theirs."""
        if isinstance(value, (list, tuple)):
            return _pad(value, where)
        array = self._numbers(value, where)
        given = array != PAD
        inner = ~given[:, :-1] & given[:, 1:]
        refuse(array[:, :-1], inner, where, "must be >= 0 before the end of its list")
        width = int(given.any(axis=0).sum())
        return np.ascontiguousarray(array[:, :width]), given[:, :width]


def _pad(rows: list[Any] | tuple[Any, ...], where: str) -> tuple[Floats, Flags]:
    """Lists of numbers as one array padded with -1, and which elements are theirs; both [rows, longest]."""
    for i, row in enumerate(rows):
        if not isinstance(row, (list, tuple)) and not (isinstance(row, np.ndarray) and row.ndim == 1):
            raise InvalidWorkload(f"{where}[{i}]: must be a list of numbers")
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    width, elements = int(lengths.max(initial=0)), int(lengths.sum())
    if len(rows) * width > MOST_PADDED + MOST_PADDED_PER_ELEMENT * elements:
        i = int(lengths.argmax())
        raise InvalidWorkload(f"{where}[{i}]: {width} elements are too many for {len(rows)} lists")
    if not all(map(_may_be_a_number, set(map(type, itertools.chain.from_iterable(rows))))):
        raise InvalidWorkload(f"{where}{_first_wrong_type(rows)}: must be a number")
    try:
        flat = np.fromiter(itertools.chain.from_iterable(rows), dtype=np.float64, count=elements)
    except OverflowError:
        raise InvalidWorkload(f"{where}{_first_unfit(rows, _is_number)}: must be a number") from None
    given = np.arange(width) < lengths[:, np.newaxis]
    array = np.full(given.shape, float(PAD))
    array[given] = flat
    return array, given


def _may_be_a_number(kind: type) -> bool:
    return issubclass(kind, (int, float, np.integer, np.floating)) and not issubclass(kind, bool)


def _first_wrong_type(rows: list[Any] | tuple[Any, ...]) -> str:
    for i, row in enumerate(rows):
        for a, element in enumerate(row):
            if not _may_be_a_number(type(element)):
                return f"[{i}][{a}]"
    return ""


def _is_number(value: object) -> bool:
    return _may_be_a_number(type(value)) and not (isinstance(value, int) and abs(value) > 2**63)


def _is_truth(value: object) -> bool:
    return isinstance(value, (bool, np.bool_))


def _first_unfit(values: Any, fits: Callable[[object], bool], place: str = "") -> str:
    """The index of the first element of a nested list that does not fit, as "[2]" or "[0][3]"."""
    for i, element in enumerate(values):
        if isinstance(element, (list, tuple)) or (isinstance(element, np.ndarray) and element.ndim):
            if found := _first_unfit(element, fits, f"{place}[{i}]"):
                return found
        elif not fits(element):
            return f"{place}[{i}]"
    return ""


@dataclasses.dataclass(frozen=True)
class Schema:
    """The fields of a problem's workloads, and what must hold between them.

    Attributes:
        problem: name of the problem, e.g. "queue-delay".
        jobs, cluster, parameters, tasks: the fields of each section; without tasks there is no such section.
        further: section -> the form of fields of any other name, which all of these sections must then have;
            behind the other fields they stand in the order of their names.
        check: called with the parsed sections and a prefix for messages; raises InvalidWorkload.
    """

    problem: str
    jobs: tuple[Field, ...]
    cluster: tuple[Field, ...]
    parameters: tuple[Field, ...] = ()
    tasks: tuple[Field, ...] = ()
    further: Mapping[str, Field] = dataclasses.field(default_factory=dict)
    check: Callable[[dict[str, dict[str, npt.NDArray[Any]]], str], None] | None = None

    def make(self, *required: object, **others: object) -> Workload:
        """Make a checked workload of the values of its fields; those that are None are left out.

        Args:
            required: of the fields that are not optional, in the order of the schema.
            others: of fields by name; "cluster.cpu" is a field of the cluster whose name another section has.

        Raises:
            InvalidWorkload: naming the field and the first bad index.
            TypeError: for too many values without a name, or a field that is given twice.
        """
        places: dict[str, tuple[str, Field]] = {}
        for section in SECTIONS:
            for field in getattr(self, section):
                places.setdefault(field.name, (section, field))
                places[f"{section}.{field.name}"] = section, field
        needed = [name for name, (_, field) in places.items() if name == field.name and not field.optional]
        named = dict(zip(needed, required, strict=False))
        if len(named) < len(required) or named.keys() & others.keys():
            raise TypeError(f"give {', '.join(needed)} in this order, or by name, once each")
        sections: dict[str, dict[str, object]] = {section: {} for section in SECTIONS}
        for name, value in (named | others).items():
            if name not in places:
                raise InvalidWorkload(f"{shown(name)}: unknown field{suggest(name, places)}")
            section, field = places[name]
            if value is not None:
                sections[section][field.name] = value
        return self.parse(sections)

    def parse(self, sections: Mapping[str, Mapping[str, object]], prefix: str = "") -> Workload:
        """Validate raw sections and return them as a :class:`Workload`."""
        lengths: dict[str, tuple[int, str]] = {}
        ragged: set[str] = set()
        choices: dict[str, tuple[str, ...]] = {}
        parsed: dict[str, dict[str, npt.NDArray[Any]]] = {}
        for section in SECTIONS:
            given = sections.get(section, {})
            if not isinstance(given, Mapping):
                raise InvalidWorkload(f"{prefix}{section}: must be an object of named fields")
            fields = self.fields(section, sections, prefix)
            parsed[section] = {}
            for field in fields:
                where = f"{prefix}{section}.{field.name}"
                if field.name not in given:
                    if field.optional:
                        continue
                    raise InvalidWorkload(f"{where}: missing")
                array = field.parse(given[field.name], where)
                array.flags.writeable = False
                for symbol, length in zip(field.dimensions, array.shape, strict=True):
                    known, source = lengths.setdefault(symbol, (length, f"{section}.{field.name}"))
                    if length != known:
                        raise InvalidWorkload(
                            f"{where}: must have one value per {symbol}: {known} as in {source}, got {length}"
                        )
                    if length == 0 and not (field.ragged and symbol == field.dimensions[1]):
                        raise InvalidWorkload(f"{where}: must not be empty")
                parsed[section][field.name] = array
                if field.ragged:
                    ragged.add(f"{section}.{field.name}")
                if field.choices:
                    choices[f"{section}.{field.name}"] = field.choices
        if self.check is not None:
            self.check(parsed, prefix)
        workload = Workload(self.problem, **parsed, ragged=frozenset(ragged), choices=choices)
        object.__setattr__(workload, "_made", True)
        return workload

    def fields(
        self, section: str, sections: Mapping[str, Mapping[str, object]], prefix: str = ""
    ) -> list[Field]:
        """The fields of a section, and those of other names that are given there, if it may have any."""
        fields: tuple[Field, ...] = getattr(self, section)
        names = [field.name for field in fields]
        others = [name for name in sections.get(section, {}) if name not in names]
        alike = [sections[own] for own in self.further if isinstance(sections.get(own), Mapping)]
        for name in others:
            everywhere = section in self.further and all(name in given for given in alike)
            if not everywhere or not FURTHER_NAME.fullmatch(name):
                raise InvalidWorkload(
                    f"{prefix}{section}.{shown(name)}: unknown field{suggest(str(name), names)}"
                )
        return [*fields, *(dataclasses.replace(self.further[section], name=name) for name in sorted(others))]


@dataclasses.dataclass(frozen=True, eq=False)
class Workload:
    """An instance of a problem: read-only arrays under the names of its schema.

    Attributes:
        problem: name of the problem, e.g. "queue-delay".
        jobs: field -> array with one value (or row) per job.
        cluster: field -> array with one value (or row) per server or site.
        parameters: field -> number (0-dimensional array).
        tasks: field -> array with one value (or row) per task; empty where the problem has no such section.
        ragged: "section.field" of the arrays whose rows are lists, padded with -1 at their end.
        choices: "section.field" of the arrays whose values are numbers of names -> the names.
        checked: True if a schema made it, and no array is another or may have been written since (unpickled
            or copied ones can be); any other workload is checked before an environment runs it.
    """

    problem: str
    jobs: Mapping[str, npt.NDArray[Any]]
    cluster: Mapping[str, npt.NDArray[Any]]
    parameters: Mapping[str, npt.NDArray[Any]] = dataclasses.field(default_factory=dict)
    tasks: Mapping[str, npt.NDArray[Any]] = dataclasses.field(default_factory=dict)
    ragged: frozenset[str] = frozenset()
    choices: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    _made: bool = dataclasses.field(default=False, init=False, repr=False)

    @property
    def checked(self) -> bool:  # noqa: D102  (an attribute)
        arrays = (array for section in SECTIONS for array in getattr(self, section).values())
        return self._made and not any(np.asarray(array).flags.writeable for array in arrays)

    def __repr__(self) -> str:
        sizes = [
            f"{section}[{len(next(iter(fields.values())))}]: {', '.join(fields)}"
            for section, fields in (("jobs", self.jobs), ("tasks", self.tasks), ("cluster", self.cluster))
            if fields
        ]
        return f"Workload({self.problem!r}, {'; '.join(sizes)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Workload) or self.problem != other.problem:
            return NotImplemented if not isinstance(other, Workload) else False
        return all(
            (mine := getattr(self, section)).keys() == (theirs := getattr(other, section)).keys()
            and all(np.array_equal(mine[name], theirs[name]) for name in mine)
            for section in SECTIONS
        )


def shown(text: object) -> str:
    """Return a text of a file as one printable line of limited length."""
    line = one_line(str(text)[:201])
    return line if len(line) <= 200 else f"{line[:197]}..."
