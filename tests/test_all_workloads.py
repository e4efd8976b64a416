"""Workloads of every problem: what schemas and environments refuse, files, what is drawn, saved and loaded.

``tests/<problem>/workloads.yaml`` has sound workloads of every form, and changes that make them unsound.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from schedgym.core.arrays import declarations
from schedgym.core.problem import list_problems
from schedgym.core.workload import Workload
from schedgym.core.workload_files import load_workload, save_workload
from schedgym.errors import InfeasibleInstance, InvalidWorkload
from schedgym.evaluation.episodes import checked_gap, lower_bound, slack_of
from schedgym.problems.toys import load_toys
from tests.tables import declared
from tests.test_all_records import PROBLEMS, SPARE, schedules_of
from tests.test_draws import each, rows, source_of

ROOT = Path(__file__).resolve().parents[1]


def changed(sound: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Sections with fields "section.name" replaced, or left out (None)."""
    sections = {section: dict(fields) for section, fields in sound.items()}
    for place, value in changes.items():
        section, _, field = place.partition(".")
        if value is None:
            del sections[section][field]
        else:
            sections.setdefault(section, {})[field] = value
    return sections


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_wrong_is_named(name: str, tmp_path: Path) -> None:
    """By the schema, and by the reader of files, which says in which file."""
    schema, given, path = list_problems()[name].schema, declared(name), tmp_path / "w.json"
    for form, changes, message in given["refused"]:
        sections = changed(given["sound"][form], changes)
        with pytest.raises((InvalidWorkload, InfeasibleInstance)) as caught:
            schema.parse(sections)
        assert str(caught.value) == message
        path.write_text(json.dumps({"problem": name, **sections}))
        with pytest.raises((InvalidWorkload, InfeasibleInstance)) as caught:
            load_workload(path, schema)
        assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize("name", PROBLEMS)
def test_arrays_by_hand(name: str) -> None:
    """What kernels get, of the types that are declared."""
    problem, given = list_problems()[name], declared(name)
    room = problem.module("workload")
    for form, changes, arrays in given.get("arrays", ()):
        own = room.tables(problem.schema.parse(changed(given["sound"][form], changes)))
        found = {field: np.asarray(getattr(own, field)).tolist() for field in arrays}
        np.testing.assert_equal(found, arrays, f"{form}, {changes}")
        for declaration, array in zip(declarations(room.Jobs), own, strict=True):
            assert array.dtype == declaration.dtype, declaration


def check_files(name: str, workload: Workload, folder: Path) -> None:
    """Both kinds of files give back the same workload, with the same arrays for kernels."""
    tables = list_problems()[name].module("workload").tables
    for suffix in (".json", ".npz"):
        path = folder / f"w{suffix}"
        save_workload(workload, path)
        again = load_workload(path)
        assert again == workload and again.checked
        for section in ("jobs", "tasks", "cluster", "parameters"):
            assert getattr(again, section).keys() == getattr(workload, section).keys()
        for mine, theirs in zip(tables(again), tables(workload), strict=True):
            assert mine.dtype == theirs.dtype
            assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_form_survives_files(name: str, tmp_path: Path) -> None:
    for sections in declared(name)["sound"].values():
        check_files(name, list_problems()[name].schema.parse(sections), tmp_path)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_workload_that_may_have_changed_is_checked_anew(name: str) -> None:
    """Unpickled arrays can be written, and others put in their place: an environment would run forever."""
    schema = list_problems()[name].schema
    env = gym.make(next(iter(list_problems()[name].ids)))
    sound = schema.parse(next(iter(declared(name)["sound"].values())))
    written, exchanged = pickle.loads(pickle.dumps(sound)), schema.parse(vars(sound))
    first = next(iter(sound.jobs))
    written.jobs[first][0] = -1
    cast(dict[str, Any], exchanged.jobs)[first] = -1.0 * sound.jobs[first] - 1.0
    for own in (written, exchanged):
        assert sound.checked and not own.checked
        with pytest.raises(InvalidWorkload, match=rf"^jobs.{first}\[0\]: must be >= "):
            env.reset(options={"workload": own})


@pytest.mark.parametrize("name", PROBLEMS)
def test_files_give_back_random_workloads(name: str, tmp_path: Path) -> None:
    for run in schedules_of(name).runs(40, 7):
        check_files(name, run.record.workload, tmp_path)


@pytest.mark.parametrize("name", ["flowtime", "geo", "partial-value", "queue-delay"])  # others: by the source
def test_arrays_give_back_the_workload(name: str) -> None:
    """Also with spare places behind them, full of unlikely numbers."""
    room = list_problems()[name].module("workload")
    for run in schedules_of(name).runs(40, 8):
        workload = room.rebuild(room.tables(run.record.workload))
        # not kept are phases without tasks, and exponents that no utility has
        odd = {"map_tasks", "exponent"} & run.record.workload.jobs.keys()
        assert odd or workload == run.record.workload
        longer = []
        for declaration, array in zip(declarations(room.Jobs), room.tables(workload), strict=True):
            names = [str(dimension).partition("+")[0] for dimension in declaration.dimensions]
            spare = [(0, SPARE.get(name, 0)) for name in names[: array.ndim]]
            longer.append(np.pad(array, spare, constant_values=7) if spare and array.size else array)
        assert room.rebuild(room.Jobs(*longer)) == workload


@each
def test_files_give_back_what_is_drawn(name: str, values: dict[str, Any], tmp_path: Path) -> None:
    room, source = source_of(name, values, tmp_path)
    for seed in range(3):
        check_files(name, room.generate(seed, 1, source), tmp_path)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_example_in_the_package(name: str, tmp_path: Path) -> None:
    path = ROOT / "schedgym/problems" / name.replace("-", "_") / "example.json"
    workload = load_workload(path)
    assert workload.problem == name
    check_files(name, workload, tmp_path)
    said, saved = (json.loads(file.read_text()) for file in (path, tmp_path / "w.json"))
    for section in ("jobs", "tasks", "cluster", "parameters"):
        # values with names are saved as a list
        own = {k: list(v.values()) if isinstance(v, dict) else v for k, v in said.get(section, {}).items()}
        assert saved.get(section, {}) == own


@pytest.mark.parametrize(("name", "values", "given", "message"), rows("unfit"))
def test_workloads_that_do_not_fit_are_refused(
    name: str, values: dict[str, Any], given: dict[str, Any], message: str | None
) -> None:
    """By an environment, which is as before; without a message it takes them, though they are smaller."""
    problem = list_problems()[name]
    id = next(iter(problem.ids))
    env = gym.make(id, disable_env_checker=True, **values).unwrapped
    env.reset(seed=0)
    if "parameters" in given:  # what another environment draws
        other = gym.make(id, disable_env_checker=True, **values | given["parameters"]).unwrapped
        other.reset(seed=0)
        workload = other.record().workload
    else:
        workload = problem.schema.parse(given)
    before = env.record().digest()
    if message is None:
        env.reset(options={"workload": workload})
        assert env.record().workload is workload
        return
    with pytest.raises(InvalidWorkload, match=message):
        env.reset(options={"workload": workload})
    assert env.record().digest() == before


@pytest.mark.parametrize("name", PROBLEMS)
def test_bounds_by_hand(name: str) -> None:
    problem = list_problems()[name]
    for row in declared(name).get("bounds", ()):
        workload = problem.schema.parse(row["workload"])
        for function, arguments, expected, close in row["bounds"]:
            if isinstance(arguments, dict):
                arguments = [problem.build(next(iter(problem.ids)), arguments)]
            found = getattr(problem.module("bounds"), function)(workload, *arguments)
            told = found.tolist() if isinstance(found, np.ndarray) else found
            wanted = None if expected is None else pytest.approx(expected, rel=close)
            assert told == wanted, (function, arguments)


@pytest.mark.parametrize(("name", "toy"), [(name, toy) for name in PROBLEMS for toy in load_toys(name)])
def test_toys_have_the_optimum_that_they_claim(name: str, toy: str) -> None:
    """By search through all schedules, or the best of many; and the bound is not beyond it."""
    problem, (workload, optimum, _, environment) = list_problems()[name], load_toys(name)[toy]
    assert schedules_of(name).toy_optimum(workload, environment) == pytest.approx(optimum, rel=1e-9)
    parameters = problem.build(next(iter(problem.ids)), environment)
    bound = lower_bound(problem, workload, parameters)
    if bound is not None:
        metric = problem.metric(problem.objective_of(parameters))
        checked_gap(metric, bound, optimum, slack_of(workload), toy)
