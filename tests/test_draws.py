"""The draws of every problem: repeatable, the same in batches and one by one, compiled and interpreted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from schedgym.core.arrays import allocate, members
from schedgym.core.problem import list_problems
from schedgym.core.random import root_seeds
from schedgym.core.tables import tabled
from schedgym.errors import InvalidParameter, InvalidWorkload
from schedgym.traces.base import Trace
from tests.interpreted import python
from tests.long import long
from tests.tables import declared

ROOT = Path(__file__).resolve().parents[1]

CASES = {name: declared(name)["drawn"] for name in list_problems()}
each = pytest.mark.parametrize(
    ("name", "values"), [(name, values) for name, cases in CASES.items() for values in cases]
)


def source_of(name: str, values: dict[str, Any], folder: Path) -> tuple[Any, Any]:
    """The module of a problem's workloads, and the source that parameters name."""
    values = dict(values)
    if "trace" in values:
        path = folder / f"trace.{values['trace']}"
        if values["trace"] == "swim":
            rows = [f"job{i}\t{3 * i}\t3\t{(i % 5 + 1) * 10**9}\t0\t0" for i in range(10)]
        else:
            jobs = (f"{i} {60 * i} 0 {600 + 60 * i} {1 + i % 4} -1 {1024 * i} 1" for i in range(1, 11))
            rows = [f"{job} -1 -1 1 1 1 1 1 1 -1 -1" for job in jobs]
        path.write_text("".join(f"{row}\n" for row in rows))
        values["trace"] = str(path)
        if values["trace"].endswith("swf") and name in ("flowtime", "queue-delay"):
            (folder / "nodes.csv").write_text("cores,memory\n4,16\n8,32\n2,8\n")
            values["nodes"] = str(folder / "nodes.csv")
    problem = list_problems()[name]
    room = problem.module("workload")
    return room, room.make_source(problem.build(next(iter(problem.ids)), values))


@each
def test_seeds_and_episodes_differ_and_repeat(name: str, values: dict[str, Any], tmp_path: Path) -> None:
    room, source = source_of(name, values, tmp_path)
    pairs = [(seed, episode) for seed in range(3) for episode in range(3)]
    found = [room.generate(*pair, source) for pair in pairs]
    again = source_of(name, values, tmp_path)[1]
    assert [room.generate(*pair, again) for pair in pairs] == found
    if "trace" not in values:
        assert all(mine != theirs for i, mine in enumerate(found) for theirs in found[:i])


def drawn(room: Any, source: Any, tasks: int, mask: Any, seeds: list[int], episodes: Any) -> tuple[Any, Any]:
    """What the kernel says and what it writes, where numbers stood of which no draw is made."""
    sizes = {**source.sizes, **({"task": tasks} if "task" in source.sizes else {})}
    jobs = allocate(room.Jobs, sizes, len(mask))
    for array in jobs[1:]:
        array[...] = -9
    if hasattr(source, "lists"):
        source.set_lists(jobs, slice(None))
    drawing = room.Drawing(source.arrays, jobs, *[None] * (len(members(room.Drawing)) - 2))
    for _ in range(2):  # drawing again changes nothing
        with np.errstate(over="ignore"):  # uncompiled, modular arithmetic would warn
            needed = room.draw(*tabled(drawing, source.sizes), mask, root_seeds(seeds), episodes)
    return needed, jobs


@each
def test_batches_equal_single_draws(name: str, values: dict[str, Any], tmp_path: Path) -> None:
    """Also into arrays that are too long and full of unlikely numbers; what is not drawn stays."""
    room, source = source_of(name, values, tmp_path)
    seeds, episodes, mask = [3, 8, 9], np.array([0, 4, 1]), np.array([True, False, True])
    own = [room.generate(seed, int(episode), source) for seed, episode in zip(seeds, episodes, strict=True)]
    _, jobs = drawn(room, source, source.sizes.get("task", 0) + 500, mask, seeds, episodes)
    same = getattr(source, "lists", {})
    for field, array in jobs._asdict().items():
        if field in ("size", *same):
            continue
        assert (array[1] == -9).all(), field
        for b in (0, 2):
            tables = room.tables(own[b], same["sites"]) if same else room.tables(own[b])
            expected = getattr(tables, field)
            part = (b, *(slice(length) for length in expected.shape))
            assert_array_equal(array[part], expected, field)
            rest = array[b].copy()
            rest[part[1:]] = -9
            assert (rest == -9).all(), field


@pytest.mark.parametrize(
    ("name", "values"), [(name, values) for name in ("geo", "parallel-jct") for values in CASES[name]]
)
def test_too_small_arrays_say_what_is_needed(name: str, values: dict[str, Any], tmp_path: Path) -> None:
    """Where it is drawn how many tasks a job has; with that room all is as with more."""
    room, source = source_of(name, values, tmp_path)
    which: Any = np.ones(2, dtype=bool), [3, 9], np.array([0, 1])
    needed, large = drawn(room, source, 3000, *which)
    for tasks in (0, 1, needed - 1):
        assert drawn(room, source, tasks, *which)[0] == needed
    again, exact = drawn(room, source, needed, *which)
    assert again == needed
    for mine, theirs in zip(exact, large, strict=True):
        assert_array_equal(mine, theirs[:, : mine.shape[1]] if mine.ndim > 1 else theirs)


def rows(section: str) -> list[Any]:
    """What the tests of the problems declare in a section, a row a case."""
    return [(name, *row) for name in list_problems() for row in declared(name).get(section, ())]


@pytest.mark.parametrize(("name", "values", "changes", "same", "different"), rows("streams"))
def test_streams_are_apart(
    name: str,
    values: dict[str, Any],
    changes: dict[str, Any],
    same: dict[str, float],
    different: list[str],
    tmp_path: Path,
) -> None:
    """What a parameter does not name is drawn as before, and of more jobs and servers the first ones."""
    base, other = (
        room.tables(room.generate(5, 1, source))
        for room, source in (source_of(name, given, tmp_path) for given in (values, values | changes))
    )
    for field, factor in same.items():
        mine, theirs = getattr(base, field), getattr(other, field)
        theirs = theirs[tuple(slice(length) for length in mine.shape)]
        np.testing.assert_allclose(theirs, factor * mine, rtol=0 if factor == 1 else 1e-12, err_msg=field)
    for field in different:
        assert not np.array_equal(getattr(base, field), getattr(other, field)), field


@pytest.mark.parametrize(("name", "values", "message"), rows("refused_sources"))
def test_sources_refuse_what_cannot_be(
    name: str, values: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidParameter) as caught:
        source_of(name, values, tmp_path)
    assert str(caught.value).startswith(message)


TRACES = [(name, values) for name, cases in CASES.items() for values in cases if "trace" in values]


@pytest.mark.parametrize(("name", "values"), TRACES)
def test_windows_of_a_trace_are_consecutive_and_cover_it(
    name: str, values: dict[str, Any], tmp_path: Path
) -> None:
    """Windows of 4 of 10 jobs, by turns, which begin with any of them."""
    room, source = source_of(name, values, tmp_path)
    _, everything = source_of(name, values | {"tasks" if name == "queue-delay" else "jobs": 10}, tmp_path)
    assert (source.windows, everything.windows) == (2, 1)

    def jobs(source: Any, seed: int, episode: int = 0) -> dict[str, Any]:
        workload = room.generate(seed, episode, source)
        return workload.jobs | ({"tasks": np.bincount(workload.tasks["job"])} if workload.tasks else {})

    def start(own: dict[str, Any]) -> int:
        """The first job of a window, known by what is not drawn."""
        parts = {first: slice(first, first + 4) for first in (0, 4)}
        (found,) = (
            first
            for first, part in parts.items()
            if all(np.array_equal(own[field], whole[field][part]) for field in of_trace)
        )
        if name in ("queue-delay", "parallel-jct"):  # others scale them to a load
            assert_array_equal(own["arrival"], whole["arrival"][parts[found]] - whole["arrival"][found])
        return found

    whole, again = jobs(everything, 0), jobs(everything, 1)
    of_trace = [field for field in whole if field not in ("arrival", "deadline", "value")]
    of_trace = [field for field in of_trace if np.array_equal(whole[field], again[field])]
    starts = [start(jobs(source, 9, episode)) for episode in range(4)]
    assert sorted(starts[:2]) == [0, 4] and starts[2:] == starts[:2]
    assert {start(jobs(source, seed)) for seed in range(20)} == {0, 4}


@pytest.mark.parametrize("name", ["flowtime", "partial-value"])
def test_jobs_of_a_trace_by_hand(name: str) -> None:
    """Of a trace's tasks, by parameters; or the words in which they are refused."""
    problem, given = list_problems()[name], declared(name)["traces"]
    for changes, values, expected in given["cases"]:
        arrays = {**given["trace"], **changes}
        unit = {"unit": arrays.pop("unit")} if "unit" in arrays else {}
        trace = Trace("made", **{field: np.array(own, dtype=float) for field, own in arrays.items()}, **unit)
        parameters = problem.build(next(iter(problem.ids)), {"trace": "made", **values})
        if isinstance(expected, str):
            with pytest.raises((InvalidWorkload, InvalidParameter)) as caught:
                problem.module("workload").from_trace(trace, parameters)
            assert str(caught.value) == expected
            continue
        jobs = problem.module("workload").from_trace(trace, parameters)
        assert {field: getattr(jobs, field).tolist() for field in expected} == expected


SCRIPT = """
import hashlib, sys
from pathlib import Path
from schedgym.core.problem import list_problems
from tests.test_draws import CASES, source_of

for problem in list_problems().values():
    problem.module("workload")
assert "networkx" not in sys.modules, "the import is not light"
digest = hashlib.sha256()
for name, cases in CASES.items():
    for values in cases:
        room, source = source_of(name, values, Path(sys.argv[1]))
        for seed in (0, 1):
            w = room.generate(seed, seed + 1, source)
            for section in (w.jobs, w.tasks, w.cluster, w.parameters):
                for array in section.values():
                    digest.update(array.tobytes())
            if name == "flowtime":
                jobs = room.tables(w)
                digest.update(repr((room.eq27(jobs), room.max_slots(jobs, 10.0))).encode())
print(digest.hexdigest())
"""


@long
def test_compiled_and_interpreted_draw_the_same(tmp_path: Path) -> None:
    both = [python("-c", SCRIPT, str(tmp_path), NUMBA_DISABLE_JIT=disabled) for disabled in ("0", "1")]
    assert both[0].stderr == both[1].stderr == ""
    assert both[0].stdout == both[1].stdout
