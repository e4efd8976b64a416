"""Mutated files of every kind: each is read as it stands, or refused in one line that names it.

Workloads, traces, configurations, sweeps, agents and results stores are mutated by a seeded generator. A
mutant that is accepted is compared with what the file says by a reader of the test's own (so that no default
stands in for what is missing or misspelt), and run: an environment, some steps. One that is refused raises
one of the named exceptions. Nothing else may happen: no other exception, no warning, no code executed, no
file left behind, no crash, no ten seconds.

``SCHEDGYM_FUZZ=10000`` runs as many mutants in all instead of 250 (``make test-all``: 2,000), and from there
on in every view. Mutant number n of a family is the same in every run:

    python -m tests.test_mutations workload.json 17 /tmp/x

writes it to a folder, and says what becomes of it.
"""

from __future__ import annotations

import copy
import faulthandler
import functools
import gzip
import io
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import string
import subprocess
import sys
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import schedgym  # noqa: F401  (registers the ids)
from schedgym import errors
from schedgym.core.problem import Parameters, Problem, list_problems
from schedgym.core.workload import Field, Workload
from schedgym.core.workload_files import load_workload, save_workload
from schedgym.errors import SchedgymError
from schedgym.traces import JobTrace, Trace, inspect_trace, read_trace
from tests.interpreted import python
from tests.long import some
from tests.tables import entry

COUNT = int(os.environ.get("SCHEDGYM_FUZZ", "250"))
ALL = 10_000  # from so many mutants on, views are drawn, too
PATIENCE = 10.0  # s of processor time, and six times as many of a clock that others may slow down
MEMORY = 6 * 2**30  # bytes of address space that reading may take
STEPS = 8
ROOT = Path(__file__).parents[1]
SHARES = entry(__file__, "SHARES")
NAMED = tuple(
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, SchedgymError) and kind is not SchedgymError
)  # and InvalidAgentFile

Json = Any
Paths = list[Path]


class Violation(AssertionError):
    """What must not happen to a mutant."""


# mutations of bytes and of data ----------------------------------------------------------------------

WORDS = (
    'NaN Infinity -Infinity nan -.inf .nan 1e308 1e999 -1 -0 0 1e-320 null true "" [] {} [[]] 1_000 0x10 # '
    '&a *a "\\ud800" "\\u0000" <<: ? !!binary !!set , : [ ] { } " \' \\ / ; ='
)
TOKENS = [*WORDS.split(" "), *"\r\n\t \x0b\x85\0\ufeff\u0663\u2028\xff", "9" * 5000, "[" * 3000, "{" * 3000]
TOKENS += ['{"a":' * 2000, "!!python/object/apply:os.mkdir [MARK]", "%YAML 9\n---\n"]
NUMBERS: list[float] = [-1, 0, 1, 2, -0.0, 0.5, 1e-320, 1e6, 1e12, 1e16, 1e308, -1e308, 10**400]
NUMBERS += [math.nan, math.inf, -math.inf, *(10**k for k in (6, 7, 9, 12)), 2**31, 2**53, 2**53 + 1]
NUMBERS += [2**63 - 1, 2**63, 2**64]
JUNK: list[Json] = [None, True, False, [], {}, [[]], [None], {"a": 1}, [[1, 2], [3]], *NUMBERS]
JUNK += ["", "1", "x\ny", "\u2028", "nan", "x" * 3000]


def change_bytes(data: bytes, draw: random.Random, most: int = 4) -> bytes:
    """Bytes flipped, set, cut, doubled, moved, zeroed, or tokens put between them."""
    changed = bytearray(data)
    for _ in range(draw.randint(1, most)):
        size = len(changed)
        at, length = draw.randrange(size + 1), draw.choice((1, 1, 2, 4, 20, 200))
        what = draw.randrange(8)
        if what == 0 and at < size:
            changed[at] ^= 1 << draw.randrange(8)
        elif what == 1 and at < size:
            changed[at] = draw.randrange(256)
        elif what == 2:
            del changed[at : at + length]
        elif what == 3:
            changed[at:at] = changed[at : at + length]
        elif what == 4:
            other = draw.randrange(size + 1)
            changed[at : at + length] = changed[other : other + length]
        elif what == 5:
            changed[at : at + length] = bytes(len(changed[at : at + length]))
        elif what == 6 and draw.random() < 0.3:
            del changed[at:]
        else:
            changed[at : at + draw.choice((0, 0, 1, 5))] = draw.choice(TOKENS).encode("utf-8", "replace")
    return bytes(changed)


class Twin(str):
    """A name that can stand beside itself in an object."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def misspell(name: str, draw: random.Random) -> str:
    """Another name, much like this one."""
    at = draw.randrange(len(name) or 1)
    return draw.choice(
        [
            name[:at] + name[at + 1 :] + ("" if len(name) > 1 else "x"),
            name[:at] + draw.choice(string.ascii_lowercase) + name[at:],
            name.upper() if name.upper() != name else name.lower(),
            *(f"{name} ", f" {name}", f"{name}s", f"{name}\0", f"{name}\n", f"{name}/x", "", "x" * 3000),
        ]
    )


def containers(data: Json, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Json]]:
    """(path, value) of every object and list; of long lists of numbers only the list itself."""
    if isinstance(data, dict):
        yield path, data
        for name, value in data.items():
            yield from containers(value, (*path, name))
    elif isinstance(data, list):
        yield path, data
        for i, value in enumerate(data[:3]):
            yield from containers(value, (*path, i))


def change_data(data: Json, draw: random.Random) -> tuple[Json, str, tuple[Any, ...]]:
    """A mutant of JSON data, what was done ("misspelt", "missing", "doubled", ""), and to which key."""
    data = copy.deepcopy(data)
    found = list(containers(data))
    objects = [(path, value) for path, value in found if isinstance(value, dict) and value]
    if objects and draw.random() < 0.5:
        path, target = draw.choice(objects)
        name = draw.choice(list(target))
        what = draw.randrange(7)
        if what == 0:
            new = misspell(name, draw)
            if new in target:
                return data, "", path
            items = [(new if key == name else key, value) for key, value in target.items()]
            target.clear()
            target.update(items)
            return data, "misspelt", (*path, name)
        if what == 1:
            del target[name]
            return data, "missing", (*path, name)
        if what == 2:
            target[Twin(name)] = draw.choice([target[name], *JUNK])
            return data, "doubled", (*path, name)
        if what == 3:
            new = misspell(name, draw)
            if new not in target:
                if draw.random() < 0.1:  # many names cost no time
                    target |= dict.fromkeys(map(str, range(draw.choice((10, 50_000)))))
                target[new] = draw.choice([target[name], *JUNK])
                return data, "misspelt", (*path, new)
        if what == 4:
            other, home = draw.choice(list(target)), draw.choice(objects)[1]
            if home is not target[name]:
                home[other] = copy.deepcopy(target[name])
        elif what == 5:
            other = draw.choice(list(target))
            target[name], target[other] = target[other], target[name]
        else:
            target[name] = draw.choice(JUNK)
        return data, "", path
    lists = [(path, value) for path, value in found if isinstance(value, list) and value]
    if not lists:
        return draw.choice(JUNK), "", ()
    path, rows = draw.choice(lists)
    at = draw.randrange(len(rows))
    for _ in range(draw.choice((1, 1, 1, 3))):
        what = draw.randrange(9)
        if what == 0:
            del rows[at:]
        elif what == 1:
            rows.insert(at, copy.deepcopy(rows[at % len(rows)]) if rows else 0)
        elif what == 2:
            rows.extend(copy.deepcopy(rows))
        elif what == 3:
            rows.sort(key=repr, reverse=draw.random() < 0.5)
        elif what == 4 and rows:
            deep: Json = rows[at % len(rows)]
            for _ in range(draw.choice((1, 3, 40, 900, 4000))):
                deep = [deep]
            rows[at % len(rows)] = deep
            break
        elif what == 5 and rows:
            rows[at % len(rows)] = draw.choice(JUNK)
        elif what == 6:
            factor = draw.choice((0, -1, 0.5, 1e-9, 1e9, 1e15, 1e300))
            small = [isinstance(x, (int, float)) and abs(x) < 2**70 and not isinstance(x, bool) for x in rows]
            rows[:] = [x * factor if fits else x for x, fits in zip(rows, small, strict=True)]
        elif rows and all(isinstance(x, (int, float)) for x in rows):
            rows[at % len(rows)] = draw.choice(NUMBERS)
    return data, "", path


def dumped(data: Json) -> str:
    """JSON text, also of what nests too deeply for the encoder."""
    try:
        return json.dumps(data)
    except RecursionError:
        return "[" * 5000 + "]" * 5000


# what an accepted file must be -------------------------------------------------------------------------


def unique(pairs: list[tuple[str, Json]]) -> Json:
    if len({name for name, _ in pairs}) < len(pairs):
        raise Violation("accepted, though a name is there twice")
    return dict(pairs)


def same(said: Json, read: Json, keys: tuple[str, ...] = ()) -> bool:
    """Whether what was read is what the file said."""
    if isinstance(said, dict):
        if keys and isinstance(read, list):
            return set(said) == set(keys) and same([said[key] for key in keys], read)
        return (
            isinstance(read, dict)
            and said.keys() == read.keys()
            and all(same(said[k], read[k]) for k in said)
        )
    if isinstance(said, list):
        return isinstance(read, list) and len(said) == len(read) and all(map(same, said, read))
    if isinstance(said, bool) or isinstance(read, bool) or not isinstance(said, (int, float)):
        return type(said) is type(read) and bool(said == read)
    return isinstance(read, (int, float)) and float(said) == float(read)


def contains(read: Json, said: Json) -> bool:
    """Whether all that was said is in what was read, which may say more; nothing is said by null."""
    if isinstance(said, dict):
        return isinstance(read, dict) and all(
            value is None or (name in read and contains(read[name], value)) for name, value in said.items()
        )
    return same(said, json.loads(json.dumps(read)))


def play(env: Any, draw: random.Random, act: Callable[[Any], Any] | None = None, whole: bool = False) -> None:
    """Some steps, or a whole episode; observations lie in their space."""
    env.action_space.seed(draw.randrange(2**31))
    observation, _ = env.reset(seed=draw.randrange(2**31))
    for _ in range(100 * STEPS if whole else STEPS):
        if not env.observation_space.contains(observation):
            raise Violation(f"an observation is outside its space: {str(observation)[:500]}")
        action = env.action_space.sample() if act is None else act(observation)
        observation, reward, terminated, truncated, _ = env.step(action)
        if not math.isfinite(reward):
            raise Violation(f"a reward is {reward}")
        if terminated or truncated:
            return
    if whole:  # compile what ends an episode
        env.simulator.measure(np.ones(1, dtype=bool))


def make(id: str, **parameters: Any) -> Any:
    return gym.make(id, disable_env_checker=True, **parameters).unwrapped


# families of files -----------------------------------------------------------------------------------


class Family:
    """Files of a kind: ``write`` makes a mutant and says how, ``check`` reads it.

    Attributes:
        everywhere: whether each view is to be run.
    """

    executes = False  # whether reading may import and compile what Python's libraries need

    def __init__(self, folder: Path, everywhere: bool = False) -> None:
        self.folder, self.everywhere = folder, everywhere
        self.refuse: str | None = None  # why the present mutant must not be accepted

    def write(self, draw: random.Random) -> Paths:
        """Write a mutant; the file that is mutated comes first."""
        raise NotImplementedError

    def read(self, paths: Paths) -> Any:
        """What is guarded: nothing is executed or written."""
        raise NotImplementedError

    def use(self, paths: Paths, found: Any, draw: random.Random) -> None:
        """What was read is what the file says, and runs."""
        raise NotImplementedError


class Workloads(Family):
    """Workload files of every problem."""

    def __init__(self, folder: Path, everywhere: bool = False) -> None:
        super().__init__(folder, everywhere)
        self.sources: list[tuple[Problem, str, Workload]] = []
        for name, problem in list_problems().items():
            given = [load_workload(ROOT / f"schedgym/problems/{name.replace('-', '_')}/example.json")]
            given += instances(problem)
            id = next(iter(problem.ids))
            self.sources += [(problem, id, workload) for workload in given]
        self.expected = True  # whether the reader is told the problem
        path = folder / "valid.npz"
        for problem, id, workload in self.sources:  # so that what is compiled is compiled
            self.problem, self.id = problem, id
            save_workload(workload, path)
            for view in [view.name for view in self.problem.views][: None if everywhere else 1]:
                self.run(self.read([path]), path, view, random.Random(0), whole=True)
        path.unlink()

    def choose(self, draw: random.Random) -> Workload:
        self.expected = draw.random() < 0.5
        problems = sorted({source[0].name for source in self.sources})
        name = draw.choice(problems)
        own = [source for source in self.sources if source[0].name == name]
        self.problem, self.id, workload = draw.choice(own)
        return workload

    def field(self, section: str, name: str) -> Field | None:
        fields: tuple[Field, ...] = getattr(self.problem.schema, section, ())
        return next((field for field in fields if field.name == name), None)

    def needed(self, key: tuple[Any, ...]) -> bool:
        """Whether a workload cannot be without this."""
        if key == ("problem",):
            return True
        if len(key) == 2:
            field = self.field(*key)
            return field is not None and not field.optional
        return len(key) == 3 and bool(getattr(self.field(*key[:2]), "keys", ()))

    def read(self, paths: Paths) -> Workload:
        return load_workload(paths[0], self.problem.schema if self.expected else None)

    def run(self, found: Workload, path: Path, view: str, draw: random.Random, whole: bool = False) -> None:
        given = {"workload": str(path), "view": view}
        if found.problem == "flowtime":
            given["kind"] = self.problem.module("workload").kind_of(found)
        if found.problem != "single-job" and draw.random() < 0.2:
            given["window"] = "all"
        play(make(self.id, **given), draw, whole=whole)

    def use(self, paths: Paths, found: Workload, draw: random.Random) -> None:
        self.problem = list_problems()[found.problem]
        self.id = next(iter(self.problem.ids))
        self.compare(paths[0], found)
        again = paths[0].with_name(f"again{draw.choice(('.json', '.npz'))}")
        save_workload(found, again)
        if load_workload(again) != found:
            raise Violation("is not what it was after it was saved and loaded")
        again.unlink()
        views = [view.name for view in self.problem.views]
        self.run(found, paths[0], draw.choice(views) if self.everywhere else views[0], draw)

    def compare(self, path: Path, found: Workload) -> None:
        raise NotImplementedError


def instances(problem: Problem) -> list[Workload]:
    """Small instances of every kind that a problem generates, and with every optional field."""
    from tests.test_all_problems import SIZES

    id, room = next(iter(problem.ids)), problem.module("workload")
    found: dict[Any, Workload] = {}
    sizes, view = SIZES[problem.name], vars(problem.build(id, {}))["view"]
    known = [name for name in problem.parameters.kinds() if problem.parameters.acts_in(name, view)]
    for other in [{}, *sizes["OTHER"]]:
        given = {**sizes["SMALL"], **sizes["SHORT"], **other}
        parameters = problem.build(id, {name: value for name, value in given.items() if name in known})
        workload = room.generate(3, 0, room.make_source(parameters))
        names = tuple(tuple(getattr(workload, s)) for s in ("jobs", "tasks", "cluster", "parameters"))
        found.setdefault(names, workload)
        if "arity" in workload.cluster:
            servers = len(workload.cluster["cpu"])
            cluster = {"cpu": workload.cluster["cpu"], "groups": np.eye(servers, dtype=int)}
            cluster["groups"][0] = 1
            known_fields = [field.name for field in problem.schema.cluster]
            for name, value in (("beta", 0.5), ("limit", 3.0)):
                if name not in known_fields:
                    continue
                sections = {s: dict(getattr(workload, s)) for s in ("jobs", "tasks", "parameters")}
                sections["cluster"] = {**cluster, name: np.full(servers, value)}
                sections["cluster"] |= {"server_caps": True} if name == "beta" else {}
                found.setdefault(("groups", name), problem.schema.parse(sections))
    return list(found.values())


class JsonWorkloads(Workloads):
    """As JSON."""

    def write(self, draw: random.Random) -> Paths:
        path = self.folder / "mutant.json"
        workload = self.choose(draw)
        save_workload(workload, path)
        text = path.read_bytes()
        if draw.random() < 0.4:
            path.write_bytes(change_bytes(text, draw))
            return [path]
        if draw.random() < 0.3:
            path.write_text(json.dumps(self.extreme(json.loads(text), draw)))
            return [path]
        data, what, key = change_data(json.loads(text), draw)
        if what in ("misspelt", "doubled") or (what == "missing" and self.needed(key)):
            self.refuse = f"{what}: {key}"
        path.write_text(dumped(data))
        return [path]

    def extreme(self, data: Json, draw: random.Random) -> Json:
        """Numbers at the ends of what a field may hold."""
        for _ in range(draw.choice((1, 1, 2, 4))):
            section = draw.choice([s for s in ("jobs", "tasks", "cluster", "parameters") if data.get(s)])
            name = draw.choice(list(data[section]))
            field, values = self.field(section, name), data[section][name]
            if field is None or field.kind == "bool" or field.choices or not isinstance(values, list):
                continue
            numbers = [field.minimum, min(field.maximum, 2.0**53), 1, 2, 10.0 ** draw.randint(0, 13)]
            numbers += [] if field.kind == "int" else [5e-324, 1e-9, 0.1, math.nextafter(numbers[0], 1)]
            value = draw.choice(numbers)
            value = int(value) if field.kind == "int" else value
            rows = draw.choice(values) if isinstance(values[0], list) else values
            if rows and draw.random() < 0.7:
                start = draw.randrange(len(rows))  # to the end, so that times ascend
                rows[start:] = [value] * (1 if draw.random() < 0.5 else len(rows) - start)
            elif rows:
                rows[:] = [value] * len(rows)
            if field.ascending and draw.random() < 0.8:
                rows.sort()
        return data

    def compare(self, path: Path, found: Workload) -> None:
        said = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique)
        saved = path.with_name("plain.json")
        save_workload(found, saved)
        read = json.loads(saved.read_text())
        saved.unlink()
        if isinstance(said.get("jobs"), dict) and "tasks" in said["jobs"] and "tasks" in read:
            said["tasks"] = said["jobs"].pop("tasks")
        if said.pop("problem") != read.pop("problem"):
            raise Violation("of another problem")
        for section in {*said, *read}:
            ours, theirs = said.get(section, {}), read.get(section, {})
            if ours.keys() != theirs.keys():
                raise Violation(f"{section}: the file has {sorted(ours)}, read were {sorted(theirs)}")
            for name, value in ours.items():
                if not same(value, theirs[name], getattr(self.field(section, name), "keys", ())):
                    raise Violation(
                        f"{section}.{name}: the file has {value!r:.200}, read was {theirs[name]!r:.200}"
                    )


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.mark),)


def pack(members: list[tuple[str, bytes]], draw: random.Random) -> bytes:
    """A zip archive; names may stand there twice."""
    stream = io.BytesIO()
    method = draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", method) as archive:
        warnings.simplefilter("ignore")
        for name, data in members:
            archive.writestr(name, data)
    return stream.getvalue()


def member(array: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def members_of(path: Path) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def change_array(array: Any, draw: random.Random, mark: Path) -> bytes:
    """An array's member: another type, shape, order, or content; a lying header; or no array at all."""
    array = np.array(array)
    what = draw.randrange(12)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if what == 0:
            bomb = np.empty(draw.choice(((), (1,), array.shape)), dtype=object)
            bomb.fill(Bomb(mark))
            return member(bomb)
        if what == 1 and array.dtype.kind in "fiub":
            kinds = "f2 f4 >f8 i1 i4 >i8 u1 u8 ? c16 S8 U8 M8[s] m8[s] g V8".split()
            return member(array.astype(draw.choice(kinds)))
        if what == 2:
            shapes = [(-1,), (1, -1), (-1, 1), (1, 1, -1), array.shape[::-1]]
            return member(array.reshape(draw.choice(shapes)))
        if what == 3:
            return member(array[..., : draw.randrange(3)] if array.ndim else array[np.newaxis])
        if what == 4:
            return member(np.concatenate([np.atleast_1d(array)] * 2, axis=draw.randrange(max(array.ndim, 1))))
        if what == 5:
            return member(np.asfortranarray(array[::-1] if array.ndim else array))
        if what in (6, 7, 8) and array.size and array.dtype.kind in "fiub":
            array = array.astype(draw.choice((float, array.dtype)))
            value = draw.choice(NUMBERS)
            try:
                array.flat[draw.randrange(array.size)] = value
            except (OverflowError, ValueError):
                array = array * draw.choice((0.0, -1.0, 1e300))
            return member(array)
        if what == 9:
            header = io.BytesIO()
            shape = draw.choice(((10**15,), (2**63,), (-1,), (10**9, 10**9), (True,), (3,), (), (0,) * 70))
            kind = draw.choice(("<f8", "|O", "<i8", "|V0", "<U1000000000", "x", "<f8,<f8"))
            np.lib.format.write_array_header_1_0(
                header, {"descr": kind, "fortran_order": False, "shape": shape}
            )
            return header.getvalue() + array.tobytes()
        if what == 10:
            return draw.choice((b"", b"\x93NUMPY", b"1 2 3", b"\x80\x04N.", member(array)[:-1]))
    return change_bytes(member(array), draw)


class NpzWorkloads(Workloads):
    """As numpy archives."""

    def write(self, draw: random.Random) -> Paths:
        path, mark = self.folder / "mutant.npz", self.folder / "mark"
        workload = self.choose(draw)
        save_workload(workload, path)
        if draw.random() < 0.25:
            path.write_bytes(change_bytes(path.read_bytes(), draw))
            return [path]
        members = members_of(path)
        at = draw.randrange(len(members))
        name, data = members[at]
        bare = name.removesuffix(".npy")
        key = tuple(bare.split("/"))
        what = draw.randrange(8)
        if what == 0:
            new = misspell(bare, draw).split("\0")[0]  # which ends a name in a zip archive
            members[at] = (f"{new}.npy", data)
            if key != tuple(new.split("/")):
                self.refuse = f"misspelt: {new!r:.80}"
        elif what == 1:
            del members[at]
            if self.needed(key):
                self.refuse = f"missing: {key}"
        elif what == 2:
            twin = draw.choice((name, bare))
            members.append((twin, draw.choice((data, change_array(np.load(io.BytesIO(data)), draw, mark)))))
            self.refuse = f"doubled: {twin}"
        elif what == 3:
            other = draw.randrange(len(members))
            members[at], members[other] = (name, members[other][1]), (members[other][0], data)
        else:
            for _ in range(draw.choice((1, 1, 2))):
                at = draw.randrange(len(members))
                name, data = members[at]
                try:
                    array = np.load(io.BytesIO(data))
                except Exception:  # changed before, and no array any more
                    continue
                members[at] = (name, change_array(array, draw, mark))
        path.write_bytes(pack(members, draw))
        return [path]

    def compare(self, path: Path, found: Workload) -> None:
        with zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            if len(set(names)) < len(names):
                raise Violation("accepted, though a member is there twice")
            said = {
                name: np.load(io.BytesIO(archive.read(full)), allow_pickle=False)
                for name, full in zip(names, archive.namelist(), strict=True)
            }
        if str(said.pop("problem")) != found.problem:
            raise Violation("of another problem")
        read = {
            f"{section}/{name}": array
            for section in ("jobs", "tasks", "cluster", "parameters")
            for name, array in getattr(found, section).items()
        }
        if said.keys() != read.keys():
            raise Violation(f"the file has {sorted(said)}, read were {sorted(read)}")
        for name, array in said.items():
            field = self.field(*name.split("/"))
            own = read[name]
            if field is not None and field.choices and array.dtype.kind == "U":
                own = np.array(field.choices)[own]
            if field is not None and field.ragged and array.shape[1] > own.shape[1]:
                array = array[:, : own.shape[1]]  # the rest are pads
            if not np.array_equal(array, own):
                raise Violation(f"{name}: the file has {array!r:.200}, read was {own!r:.200}")


# traces ------------------------------------------------------------------------------------------------


class Traces(Family):
    """Files of tasks and of machines of every format, plain or compressed, read with each way to fail."""

    def __init__(self, folder: Path, everywhere: bool = False) -> None:
        super().__init__(folder, everywhere)
        from tests.traces.logs import LOGS, MACHINES, MACHINES_CSV

        machines = {"google2011": MACHINES, "slurm": MACHINES_CSV.splitlines()}
        self.files: dict[str, tuple[str, list[str], list[str] | None]] = {
            name: (log.suffix, log.lines, machines.get(name, list(log.machines)) or None)
            for name, log in LOGS.items()
            if name in ("alibaba", "google2011", "slurm", "swf", "swim")  # a format of each kind
        }
        self.format, self.given = "swim", None
        self.on_error, self.limit, self.header = "raise", None, False
        self.runs: dict[str, list[tuple[str, bool, dict[str, Any]]]] = {}
        for format in self.files:
            self.format = format
            paths = self.plain()
            trials = [
                (id, machines, own)
                for id, own in self.environments()
                for machines in (False, True)[: len(paths)]
            ]
            self.runs[self.format] = [trial for trial in trials if self.runs_with(paths, *trial)]
            if not self.runs[self.format]:
                raise Violation(f"{self.format}: no environment runs it")
            for path in paths:
                path.unlink()

    @staticmethod
    def environments() -> Iterator[tuple[str, dict[str, Any]]]:
        yield "schedgym/QueueDelay-v0", {"tasks": 2, "servers": 1}
        yield "schedgym/FlowtimePacking-v0", {"jobs": 2, "kind": "1d", "servers": "64+32"}
        yield "schedgym/FlowtimePacking-v0", {"jobs": "all", "kind": "2d", "servers": "64+32"}
        yield "schedgym/GeoAssign-v0", {"jobs": 2, "sites": 3, "choices": 2}
        yield "schedgym/ParallelJCT-v0", {"jobs": 1, "arity": 4}
        yield "schedgym/PartialValue-v0", {"jobs": 2}

    def runs_with(self, paths: Paths, id: str, machines: bool, parameters: dict[str, Any]) -> bool:
        try:
            self.play(paths, id, machines, parameters, random.Random(0), whole=True)
        except SchedgymError:
            return False
        return True

    @staticmethod
    def play(
        paths: Paths, id: str, machines: bool, parameters: dict[str, Any], draw: random.Random, whole: bool
    ) -> None:
        """Steps in windows of the trace, with its file of machines or without."""
        files = {path.name.split("_")[0]: str(path) for path in paths}
        nodes = {"nodes": files["nodes"]} if machines else {}
        play(make(id, trace=files["tasks"], **nodes, **parameters), draw, whole=whole)

    def plain(self, packed: bool = False) -> Paths:
        suffix, rows, machines = self.files[self.format]
        end = ".gz" if packed else ""
        paths = [self.folder / f"tasks_mutant.{suffix}{end}"]
        paths += [] if machines is None else [self.folder / f"nodes_mutant.csv{end}"]
        for path, lines in zip(paths, (rows, machines), strict=False):
            data = "".join(f"{line}\n" for line in lines or ()).encode()
            path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
        return paths

    def write(self, draw: random.Random) -> Paths:
        self.format = draw.choice(sorted(self.files))
        self.given = draw.choice((None, self.format))
        self.on_error = draw.choice(("raise", "raise", "skip"))
        self.limit = draw.choice((None, None, None, 1, 3))
        packed = draw.random() < 0.2
        paths = self.plain(packed)
        target = draw.choice((0, 0, len(paths) - 1))
        paths = [paths[target], *paths[:target], *paths[target + 1 :]]  # the mutant first
        data = paths[0].read_bytes()
        if packed and draw.random() < 0.5:
            more = (gzip.compress(b"1,2\n"), b"\0" * 9, b"x", data, data[: len(data) // 2])
            paths[0].write_bytes(draw.choice((data + draw.choice(more), change_bytes(data, draw))))
            return paths
        text = gzip.decompress(data) if packed else data
        text = change_bytes(text, draw) if draw.random() < 0.3 else self.change(text, draw, paths[0])
        paths[0].write_bytes(gzip.compress(text) if packed else text)
        return paths

    def change(self, text: bytes, draw: random.Random, path: Path) -> bytes:
        """Cells, rows and columns changed."""
        comma = {"swf": None, "swim": "\t", "slurm": "|"}.get(
            self.format if path.name.startswith("tasks_") else "", ","
        )
        joint = comma or " "
        lines = [line.split(comma) for line in text.decode().splitlines()]
        header = (
            self.format in ("alibaba", "slurm") or path.name.startswith("nodes_") and self.format == "swf"
        )
        for _ in range(draw.choice((1, 1, 2))):
            at = draw.randrange(len(lines))
            row = lines[at]
            cell = draw.randrange(len(row))
            what = draw.randrange(9)
            if what in (0, 1, 2):
                row[cell] = str(draw.choice([*JUNK, *TOKENS]))
            elif what == 3:
                del row[cell]
            elif what == 4:
                row.insert(cell, row[cell])
            elif what == 5:
                del lines[at : at + draw.choice((1, 1, 5))]
            elif what == 6:
                lines.insert(draw.randrange(len(lines) + 1), list(row))
            elif what == 7:
                row[cell] = draw.choice(
                    ('"', "'", f'"{row[cell]}"', f" {row[cell]} ", "\ufeff", "1" * 70_000)
                )
            elif header:
                wanted = [i for i, name in enumerate(lines[0]) if name in NEEDED]
                place = draw.choice(wanted or [0])
                name = lines[0][place]
                if draw.random() < 0.5:
                    lines[0][place] = misspell(name, draw)
                    if lines[0][place].strip() != name:
                        self.refuse = f"misspelt: {name}"
                else:
                    lines[0][draw.choice([i for i in range(len(lines[0])) if i != place] or [0])] = name
                    self.refuse = f"doubled: {name}" if len(lines[0]) > 1 else None
                break
            if not lines:
                break
        end = draw.choice(("\n", "\n", "\n", "\r\n", "\n\n", "\r", ""))
        return "".join(joint.join(row) + end for row in lines).encode("utf-8", "surrogatepass")

    def read(self, paths: Paths) -> Trace | JobTrace:
        tasks = next(path for path in paths if path.name.startswith("tasks_"))
        nodes = next((path for path in paths if path.name.startswith("nodes_")), None)
        given = {"format": self.given, "on_error": self.on_error, "limit": self.limit}
        json.dumps(inspect_trace(tasks, nodes, **given), allow_nan=False)  # type: ignore[arg-type]
        return read_trace(tasks, nodes=nodes, **given)  # type: ignore[arg-type]

    def use(self, paths: Paths, found: Trace | JobTrace, draw: random.Random) -> None:
        tasks = next(path for path in paths if path.name.startswith("tasks_"))
        for name, values in vars(found).items():
            if not isinstance(values, np.ndarray):
                continue
            known = values[~np.isnan(values)] if name in ("start", "deadline") else values
            if not (np.isfinite(known).all() and (known >= 0).all()):
                raise Violation(f"{name}: {values}")
        if (np.diff(found.arrival) < 0).any():
            raise Violation("arrivals decrease")
        if self.on_error == "raise" and any("malformed" in reason for reason in found.dropped):
            raise Violation(f"left out without a word: {found.dropped}")
        if self.limit is not None and len(found.arrival) > self.limit:
            raise Violation(f"{len(found.arrival)} tasks, of {self.limit}")
        if self.limit is None and found.name != "google2011":
            self.count(tasks, found)
        if draw.random() < 0.3:
            self.play(paths, *draw.choice(self.runs[self.format]), draw, whole=False)

    def count(self, tasks: Path, found: Trace | JobTrace) -> None:
        """No row is lost without a word."""
        data = tasks.read_bytes()
        data = gzip.decompress(data) if tasks.suffix == ".gz" else data
        lines = [line for line in data.split(b"\n") if line.decode("utf-8-sig", "replace").strip()]
        rows = [
            line for line in lines if not (found.name == "swf" and line.lstrip(b"\xef\xbb\xbf")[:1] == b";")
        ]
        count = len(rows) - (found.name in ("alibaba", "slurm"))
        if found.rows != count:
            raise Violation(f"of {count} rows {found.rows} are accounted for")


NEEDED = ("cpu_milli", "memory_mib", "creation_time", "deletion_time", "scheduled_time") + (
    *("cores", "memory", "Submit", "Elapsed", "State"),
)


# YAML --------------------------------------------------------------------------------------------------


class Texts(Family):
    """YAML files: made of changed data, as YAML or as JSON (which YAML contains), or changed as text."""

    free: tuple[tuple[str, ...], ...] = ()  # paths below which names are the user's own
    needed: tuple[tuple[str, ...], ...] = ()

    def __init__(self, folder: Path, everywhere: bool = False) -> None:
        super().__init__(folder, everywhere)
        self.data: Json = None
        self.sources = self.valid()
        path = folder / "valid.yaml"
        for source in self.sources:
            path.write_text(dumped(source))
            self.use([path], self.read([path]), random.Random(0))
        path.unlink()

    def valid(self) -> list[Json]:
        raise NotImplementedError

    def write(self, draw: random.Random) -> Paths:
        import yaml

        path = self.folder / "mutant.yaml"
        source, self.data = draw.choice(self.sources), None
        if draw.random() < 0.4:
            text = yaml.safe_dump(source, sort_keys=False).encode()
            text = change_bytes(text, draw)
            path.write_bytes(text.replace(b"MARK", str(self.folder / "mark").encode()))
            return [path]
        data, what, key = change_data(source, draw)
        names = tuple(name for name in key if isinstance(name, str))
        if any(names[: len(start)] == start and len(names) > len(start) for start in self.free):
            what = what if what == "doubled" else ""
        if what in ("misspelt", "doubled") or (what == "missing" and names in self.needed):
            self.refuse = f"{what}: {key!r:.80}"
        try:
            if what == "doubled" or draw.random() < 0.3:
                raise ValueError
            text = yaml.safe_dump(data, sort_keys=False, allow_unicode=draw.random() < 0.5).encode()
            self.data = data
        except (ValueError, RecursionError):
            text = dumped(data).encode()
        path.write_bytes(text)
        return [path]


class Configs(Texts):
    """Configurations of trainings."""

    free = (("scorer", "skip"),)
    needed = (("id",), ("algorithm",), ("view",))

    def valid(self) -> list[Json]:
        from schedgym.agents.config import list_configs, load_config, shipped_config

        shipped = [shipped_config(name) for name in list_configs()]
        return [*shipped, *(load_config(name).to_dict() for name in list_configs())]

    def read(self, paths: Paths) -> Any:
        from schedgym.agents.config import load_config

        return load_config(paths[0])

    def use(self, paths: Paths, found: Any, draw: random.Random) -> None:
        from schedgym.agents.config import make_config

        read = found.to_dict()
        if make_config(read) != found or make_config(json.loads(json.dumps(read))) != found:
            raise Violation("is not what it was after it was written and read")
        if self.data is not None and not contains(read, self.data):
            raise Violation(f"the file has {self.data!r:.400}, read was {read!r:.400}")


class Sweeps(Texts):
    """Specifications of sweeps, also planned; agents and workloads are files beside them."""

    free = (("experiments", "policies"), ("experiments", "agents"))
    needed = (("name",), ("experiments",), ("experiments", "id"))

    def valid(self) -> list[Json]:
        return list(entry(__file__, "SWEEPS"))

    def read(self, paths: Paths) -> Any:
        from schedgym.evaluation.sweeps import load_spec

        return load_spec(paths[0])

    def use(self, paths: Paths, found: Any, draw: random.Random) -> None:
        import dataclasses

        from schedgym.evaluation import sweeps

        try:
            sweeps._plan(found)
        except OSError as error:  # of an agent's file
            if error.filename is None:
                raise
        read = dataclasses.asdict(found)
        if sweeps.make_spec(read) != found:
            raise Violation("is not what it was after it was written and read")
        if self.data is not None:
            for said, own in zip(self.data["experiments"], read["experiments"], strict=True):
                if not contains(own, said):
                    raise Violation(f"the file has {said!r:.400}, read was {own!r:.400}")
            if not contains(read, {name: v for name, v in self.data.items() if name != "experiments"}):
                raise Violation(f"the file has {self.data!r:.400}, read was {read!r:.400}")


# agents ------------------------------------------------------------------------------------------------


class Agents(Family):
    """Agent files; half of the mutants carry the checksum that belongs to them."""

    def __init__(self, folder: Path, everywhere: bool = False) -> None:
        super().__init__(folder, everywhere)
        from schedgym.agents.files import list_pretrained
        from tests.test_all_problems import SIZES

        self.sources = list(list_pretrained().items())
        self.small = {name: sizes["SMALL"] for name, sizes in SIZES.items()}
        self.whole, self.original = True, None
        for _, path in self.sources:
            self.use([path], self.read([path]), random.Random(0))
        self.whole = False

    def write(self, draw: random.Random) -> Paths:
        from schedgym.agents import files

        path, mark = self.folder / "mutant.npz", self.folder / "mark"
        _, source = draw.choice(self.sources)
        self.original = None
        if draw.random() < 0.2:
            path.write_bytes(change_bytes(source.read_bytes(), draw))
            self.original = files.load_agent(source)
            return [path]
        members = dict(members_of(source))
        name = draw.choice([n for n in members if n != f"{files.CHECKSUM}.npy"])
        sign = True
        if name == f"{files.TEXT}.npy" or draw.random() < 0.5:
            name = f"{files.TEXT}.npy"
            data = json.loads(np.load(io.BytesIO(members[name])).tobytes())
            data, what, key = change_data(data, draw)
            text = dumped(data).encode()
            if draw.random() < 0.1:
                text = change_bytes(text, draw)
            members[name] = member(np.frombuffer(text, dtype=np.uint8))
            if (
                what == "missing"
                and len(key) == 1
                or what == "misspelt"
                and key
                and key[0] in ("network", "parameters")
            ):
                self.refuse = f"{what}: {key!r:.80}"
        else:
            what = draw.choice(("array", "array", "misspelt", "missing", "unsigned"))
            sign = what != "unsigned"
            if what in ("misspelt", "missing"):
                data = members.pop(name)
                bare = name.removesuffix(".npy")
                new = misspell(bare, draw).split("\0")[0] if what == "misspelt" else ""
                if what == "misspelt":
                    members[f"{new}.npy"] = data
                if new != bare:
                    self.refuse = f"{what}: {name}"
            else:
                members[name] = change_array(np.load(io.BytesIO(members[name])), draw, mark)
        if sign:
            try:
                arrays = {n.removesuffix(".npy"): np.load(io.BytesIO(data)) for n, data in members.items()}
                weights = {
                    n.removeprefix(files.PREFIX): a for n, a in arrays.items() if n.startswith(files.PREFIX)
                }
                checksum = files._digest(weights, arrays[files.TEXT].tobytes())
                members[f"{files.CHECKSUM}.npy"] = member(np.frombuffer(checksum, dtype=np.uint8))
            except Exception:  # no arrays any more
                pass
        pairs = list(members.items())
        if draw.random() < 0.05:
            pairs.append(draw.choice(pairs))
            self.refuse = "doubled"
        path.write_bytes(pack(pairs, draw))
        return [path]

    def read(self, paths: Paths) -> Any:
        from schedgym.agents.files import load_agent

        return load_agent(paths[0])

    def use(self, paths: Paths, found: Any, draw: random.Random) -> None:
        from schedgym.agents.agent_policy import AgentPolicy
        from schedgym.core.problem import get_problem
        from schedgym.evaluation.plan import acting_parameters

        if self.original is not None and found.sha256 != self.original.sha256:
            raise Violation("accepted with other content, and without its checksum")
        problem, policy = get_problem(found.id), AgentPolicy(found)
        given = acting_parameters(problem, found.id, self.small[problem.name], policy)
        env = make(found.id, **given)
        policy.reset(env.interface, np.random.default_rng(0))
        play(env, draw, policy, whole=self.whole)


# stores ------------------------------------------------------------------------------------------------


class Stores(Family):
    """Results stores, changed as bytes and in what their tables hold; read, and written to."""

    executes = True  # pandas makes classes

    def __init__(self, folder: Path, everywhere: bool = False) -> None:
        super().__init__(folder, everywhere)
        from schedgym.evaluation.episodes import BOUNDS
        from schedgym.evaluation.store import SCHEMA, Line, ResultsStore, Setting, Unit

        self.newer = (SCHEMA + 1, SCHEMA + 2, 2**31 - 1)
        self.setting = Setting(
            "queue-delay", "schedgym/QueueDelay-v0", {"tasks": 4}, "mean_delay", "min", "1"
        )
        self.line = Line(self.setting, "fcfs", {}, None, "line")
        self.unit = Unit(self.line, 7, 0, 2)
        path = folder / "mutant.db"
        with ResultsStore(path, "w") as store:
            for seed in range(4):
                store.add(Unit(Line(self.setting, None, {}, None, "b"), seed, 0, 3), BOUNDS, np.zeros((3, 2)))
                store.add(Unit(self.line, seed, 0, 3), ["mean_delay", "truncated"], np.ones((3, 2)))
                store.add(
                    Unit(Line(self.setting, "ppo", {}, 5, "p"), seed, 0, 3), ["mean_delay"], np.ones((3, 1))
                )
            store.fail(Unit(self.line, 9, 0, 3), "Traceback")
            store.add_manifest({"command": "test"})
        self.original = path.read_bytes()
        self.writes = self.flipped = False
        self.use([path], self.read([path]), random.Random(0))
        path.unlink()

    def write(self, draw: random.Random) -> Paths:
        path = self.folder / "mutant.db"
        self.writes = draw.random() < 0.3
        self.flipped = draw.random() < 0.5  # an index that lies is found by no query
        if self.flipped:
            data = bytearray(self.original)
            filled = [i for i, byte in enumerate(data) if byte]  # the pages are half empty
            for _ in range(draw.randint(1, 20)):
                data[draw.choice(filled)] = draw.randrange(256)
            path.write_bytes(change_bytes(bytes(data), draw) if draw.random() < 0.3 else data)
            return [path]
        path.write_bytes(self.original)
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            for _ in range(draw.choice((1, 1, 2))):
                self.alter(connection, draw)
        finally:
            connection.close()
        return [path]

    def alter(self, connection: sqlite3.Connection, draw: random.Random) -> None:
        """A statement that SQLite carries out and schedgym never would."""
        rows = connection.execute(
            "SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite%'"
        ).fetchall()
        tables = [name for kind, name in rows if kind == "table"]
        if not tables:
            return
        table = draw.choice(tables)
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        column = draw.choice(columns)
        kind, name = draw.choice(rows)
        parts = {"table": table, "column": column, "kind": kind, "name": name}
        parts["value"] = draw.choice(entry(__file__, "VALUES"))
        parts |= {"newer": draw.choice(self.newer), "older": draw.choice((1, 0, -1))}
        statement, why = draw.choice(entry(__file__, "STATEMENTS"))
        try:
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.executescript(statement.format(**parts))
        except sqlite3.Error:
            return  # SQLite refuses it
        self.refuse = self.refuse or why

    def read(self, paths: Paths) -> Any:
        from schedgym.evaluation.store import ResultsStore

        with ResultsStore(paths[0]) as store:
            counts: Counter[str] = Counter()
            for setting in store.settings():
                for own in store.contenders(setting):
                    counts[own.policy] += len(own.values)
            return counts, store.frame(), store.failed(), store.manifests()

    def use(self, paths: Paths, found: Any, draw: random.Random) -> None:
        from schedgym.evaluation.store import ResultsStore

        counts, frame = found[:2]
        counted = frame[frame["metric"] == "mean_delay"].groupby(["policy"]).size()
        for policy, episodes in counts.items():
            if counted.get(policy, 0) != episodes and not self.flipped:
                raise Violation(f"{policy}: {episodes} episodes, {counted.get(policy, 0)} in the frame")
        if self.writes:
            with ResultsStore(paths[0], "w") as store:
                store.add(self.unit, ["mean_delay", "truncated"], np.ones((2, 2)))
            self.read(paths)


FAMILIES: dict[str, type[Family]] = {
    "workload.json": JsonWorkloads,
    "workload.npz": NpzWorkloads,
    "trace": Traces,
    "config": Configs,
    "sweep": Sweeps,
    "agent": Agents,
    "store": Stores,
}


# the guarded process ------------------------------------------------------------------------------------


class Guard:
    """An audit hook: what happens while a file is read, and must not."""

    FORBIDDEN = tuple(
        "exec import marshal. pickle. code.__new__ ctypes. socket. subprocess. shutil. tempfile. webbrowser. "
        "urllib. os.system os.exec os.spawn os.posix_spawn os.fork os.mkdir os.remove os.rename os.rmdir "
        "os.symlink os.link os.truncate os.chmod os.putenv sqlite3.load_extension "
        "sqlite3.enable_load_extension".split()
    )

    def __init__(self) -> None:
        self.armed, self.seen = False, list[str]()

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.armed:
            return
        bad = event.startswith(self.FORBIDDEN)
        if event == "compile":  # numpy reads headers by ast.literal_eval, which parses only
            bad = arguments[1] not in ("<unknown>", b"<unknown>")
        if event == "open" and isinstance(arguments[1], str):
            bad = any(letter in arguments[1] for letter in "wax+")
        if bad:
            self.seen.append(f"{event}{arguments!r:.200}")


def evaluate_annotations() -> None:
    """Have Python evaluate the annotations of parameters once, which it else does whenever it reads some."""
    Parameters.kinds = classmethod(functools.cache(Parameters.kinds.__func__))  # type: ignore[assignment, method-assign, attr-defined]
    kinds = [Parameters]
    for kind in kinds:
        kind.kinds()
        kinds += kind.__subclasses__()


def trial(family: Family, guard: Guard, number: int, name: str) -> str:
    """What became of a mutant: "accepted" or "refused"; a Violation else."""
    draw = random.Random(f"{name} {number}")
    family.refuse = None
    paths = family.write(draw)
    there = sorted(path.name for path in paths)
    result, reading = "accepted", True
    try:
        guard.seen.clear()
        guard.armed = not family.executes
        try:
            found = family.read(paths)
        finally:
            guard.armed = reading = False
        family.use(paths, found, draw)
    except NAMED as error:
        result = "refused"
        message = str(error)
        if len(message.splitlines()) != 1:
            raise Violation(f"not one line: {message!r:.300}") from error
        told = not reading and isinstance(error, OTHERS) and TOLD.search(message)
        if not any(path.stem in message for path in paths) and not told:
            raise Violation(f"does not name the file: {message!r:.300}") from error
    if guard.seen:
        raise Violation(f"reading did {guard.seen}")
    left = sorted(path.name for path in family.folder.iterdir() if not path.name.endswith(SIDE))
    if left != there:
        raise Violation(f"left behind: {set(left) ^ set(there)}")
    if result == "accepted" and family.refuse is not None:
        raise Violation(f"accepted, though {family.refuse}")
    return result


#: of a store whose writer died, SQLite keeps these beside it
SIDE = ("-wal", "-shm")
#: how environments and plans refuse what they are told besides a file
OTHERS = (errors.InvalidParameter, errors.UnknownName)
TOLD = re.compile(r"^[a-z_]+: |\bexperiments\[\d+\]")


def guarded(name: str, numbers: range, folder: Path) -> dict[str, Any]:
    """Try mutants in this process, from which there is no way back."""
    from schedgym.agents.files import InvalidAgentFile

    global NAMED
    NAMED = (*NAMED, InvalidAgentFile)
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)  # and so it ends
    warnings.simplefilter("error")
    guard = Guard()
    sys.addaudithook(guard)
    family = FAMILIES[name](folder, everywhere=COUNT >= ALL)
    evaluate_annotations()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    outcome: dict[str, Any] = {"accepted": 0, "refused": 0, "slowest": 0.0, "violations": []}
    began = time.perf_counter()
    present = folder.with_name("present")
    for number in numbers:
        present.write_text(str(number))
        faulthandler.dump_traceback_later(6 * PATIENCE, exit=True)
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        start = time.process_time()
        try:
            outcome[trial(family, guard, number, name)] += 1
        except Exception as error:
            guard.armed = False
            text = traceback.format_exc().splitlines()[-7:] if not isinstance(error, Violation) else []
            outcome["violations"].append(f"{name} {number}: {error!r:.600}\n" + "\n".join(text))
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
        outcome["slowest"] = max(outcome["slowest"], time.process_time() - start)
        if len(numbers) > 1:
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    outcome["seconds"] = time.perf_counter() - began
    return outcome


def run(name: str, first: int, count: int, folder: Path) -> dict[str, Any]:
    """Try mutants in a process of their own."""
    (folder / "mutant").mkdir()
    command = [sys.executable, "-m", "tests.test_mutations", name, f"{first}+{count}", str(folder / "mutant")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600)
    if done.returncode:
        number = (folder / "present").read_text() if (folder / "present").exists() else "none"
        pytest.fail(f"{name} {number}: ended with {done.returncode}\n{done.stderr[-4000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("name", some(SHARES))
def test_mutants_are_read_as_they_stand_or_refused_by_name(name: str, tmp_path: Path) -> None:
    if name in ("config", "sweep"):
        pytest.importorskip("yaml", reason="needs the extra agents")
    if name == "store":
        pytest.importorskip("pandas", reason="needs the extra eval")
    count = max(round(SHARES[name] * COUNT), 1)
    outcome = run(name, 0, count, tmp_path)
    assert not outcome["violations"], "\n".join(outcome["violations"][:20])
    assert outcome["accepted"] + outcome["refused"] == count
    assert min(outcome["accepted"], outcome["refused"]) > count / 50, outcome


def test_the_guard_sees(tmp_path: Path) -> None:
    code = (
        "import os, sys, pickle\nfrom tests.test_mutations import Guard\n"
        "guard = Guard()\nsys.addaudithook(guard)\n"
        "import ast\nguard.armed = True\nast.literal_eval('[1]')\nassert not guard.seen\n"
        "exec('1')\npickle.loads(pickle.dumps(os.getcwd))\nos.system('true')\nopen(os.devnull, 'w').close()\n"
        "guard.armed = False\nprint(sorted({text.split('(')[0] for text in guard.seen}))"
    )
    done = python("-c", code)
    assert done.stdout.strip() == "['compile', 'exec', 'open', 'os.system', 'pickle.find_class']", done


def test_what_mutants_have_found(tmp_path: Path) -> None:
    """Faults of readers that only some mutants meet."""
    value = json.loads((ROOT / "schedgym/problems/partial_value/example.json").read_text())

    def refused(path: Path, message: str) -> None:
        began = time.process_time()
        with pytest.raises((errors.InvalidWorkload, errors.InfeasibleInstance), match=message) as caught:
            load_workload(path)
        assert path.name in str(caught.value) and len(str(caught.value).splitlines()) == 1
        assert time.process_time() - began < PATIENCE

    text, archive = tmp_path / "mutant.json", tmp_path / "mutant.npz"
    text.write_text(json.dumps(value | dict.fromkeys(map(str, range(200_000)))))
    refused(text, "unknown field")
    text.write_text(json.dumps(value | {"a\nb": 1}))
    refused(text, r"a\\nb: unknown field")
    text.write_text(json.dumps(value | {"problem": "partial-valu"}))
    refused(text, "problem: unknown problem 'partial-valu'; did you mean 'partial-value'")

    workload = load_workload(ROOT / "schedgym/problems/queue_delay/example.json")
    save_workload(workload, archive)
    whole = archive.read_bytes()
    draw = random.Random(0)
    members = members_of(archive)
    archive.write_bytes(pack([*members, members[-1]], draw))
    refused(archive, "given twice")
    name = bytearray(member(np.array("queue-delay")))
    name[-4:] = b"\xff\xff\xff\x7f"
    archive.write_bytes(
        pack([*(m for m in members if m[0] != "problem.npy"), ("problem.npy", bytes(name))], draw)
    )
    refused(archive, "characters that do not exist")
    at = whole.rindex(b"PK\x05\x06") + 12  # of the directory's size and place, which lead out of the file
    archive.write_bytes(whole[:at] + b"\xf0" * 8 + whole[at + 8 :])
    refused(archive, "not a readable numpy archive")


if __name__ == "__main__":
    which, span, place = sys.argv[1:]
    start, _, many = span.partition("+")
    target = Path(place)
    target.mkdir(exist_ok=True)
    chosen = range(int(start), int(start) + int(many or 1))
    print(json.dumps(guarded(which, chosen, target)))
