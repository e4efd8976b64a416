"""The descriptor, its discovery, and the checks of parameters."""

from __future__ import annotations

import dataclasses
import importlib
import json
import pickle
import sys

import pytest

import schedgym
from schedgym import evaluation as schedgym_evaluation
from schedgym.core.policy import _discover
from schedgym.core.problem import Metric, Parameters, get_problem, list_problems, parameter
from schedgym.errors import InvalidParameter, TraceFormatError, UnknownName, suggest
from schedgym.traces import formats
from tests.interpreted import python
from tests.tables import table


@dataclasses.dataclass(frozen=True)
class Example(Parameters):
    count: int = parameter(3, "how many", minimum=1, maximum=10)
    rate: float = parameter(1.0, "how fast", minimum=0, exclusive=True)
    load: float | None = parameter(None, "how full", minimum=0)
    mode: str = parameter("slow", "which way", choices=("slow", "fast"))
    window: int | str = parameter(4, "how wide", minimum=1, choices=("all",))
    flag: bool = parameter(False, "whether")
    path: str | None = parameter(None, "where")


def test_defaults_and_sound_values() -> None:
    assert Example.build() == Example()
    values = {"count": 10, "rate": 2, "load": 0, "mode": "fast", "window": "all", "flag": True}
    assert Example.build(**values).__dict__ == {**values, "path": None}
    assert Example.build(rate=1e-300).rate == 1e-300
    assert json.loads(json.dumps(Example.build().__dict__)) == Example.build().__dict__


@pytest.mark.parametrize(("values", "message"), table(__file__, "test_what_is_wrong_is_named"))
def test_what_is_wrong_is_named(values, message) -> None:
    with pytest.raises(UnknownName if message.startswith("unknown") else InvalidParameter) as caught:
        Example.build(**values)
    assert str(caught.value) == message


@pytest.mark.parametrize(("name", "text", "value"), table(__file__, "test_values_from_a_command_line"))
def test_values_from_a_command_line(name, text, value) -> None:
    parsed = Example.parse(name, text)
    assert parsed == value and type(parsed) is type(value)


@pytest.mark.parametrize(("name", "text", "message"), table(__file__, "test_bad_values_from_a_command_line"))
def test_bad_values_from_a_command_line(name, text, message) -> None:
    with pytest.raises((InvalidParameter, UnknownName)) as caught:
        Example.parse(name, text)
    assert message in str(caught.value)


def test_problems_are_found_by_name_and_by_id() -> None:
    problem = get_problem("queue-delay")
    assert list_problems()["queue-delay"] is problem is get_problem("schedgym/QueueDelay-v0")
    with pytest.raises(UnknownName, match="did you mean 'queue-delay'"):
        get_problem("queue-dealy")
    with pytest.raises(UnknownName, match="did you mean 'schedgym/QueueDelay-v0'"):
        get_problem("schedgym/QueueDelay-v1")
    assert problem.metric("beta") == next(m for m in problem.metrics if m.name == "beta")
    assert isinstance(problem.metric("beta"), Metric)
    with pytest.raises(UnknownName, match="did you mean 'mean_delay'"):
        problem.metric("mean_dealy")
    assert problem.schema.problem == problem.name


def test_the_objective_may_be_chosen_by_a_parameter() -> None:
    problem = get_problem("queue-delay")
    assert problem.objective_of({}) == problem.objective_of(problem.parameters()) == "mean_delay"
    chosen = dataclasses.replace(problem, objectives={"soon": "makespan", "even": "max_delay"})
    assert chosen.objective_of({"objective": "soon", "tasks": 3}) == "makespan"
    assert chosen.objective_of(type("Given", (), {"__init__": lambda self: None})()) == "mean_delay"
    given = dataclasses.make_dataclass("Given", [("objective", str, "even")])()
    assert chosen.objective_of(given) == "max_delay"


def test_an_id_has_values_of_its_own() -> None:
    problem = get_problem("queue-delay")
    (id,) = problem.ids
    busy = dataclasses.replace(problem.ids[id], parameters={"tasks": 7, "servers": 2})
    other = dataclasses.replace(problem, ids={id: problem.ids[id], "schedgym/Busy-v0": busy})
    assert other.build(id).tasks == problem.parameters().tasks
    built = other.build("schedgym/Busy-v0", {"servers": 5})
    assert (built.tasks, built.servers) == (7, 5)
    with pytest.raises(UnknownName, match="did you mean 'servers'"):
        other.build(id, {"server": 3})


def test_the_public_function_is_not_hidden_by_the_subpackage() -> None:
    """``schedgym.problems`` is both a public function and a folder."""
    code = (
        "import schedgym; assert callable(schedgym.list_problems); "
        "print(list(schedgym.list_problems())); import schedgym.problems.queue_delay.problem"
    )
    assert "queue-delay" in python("-c", code).stdout


def test_lazy_names_of_the_root() -> None:
    assert schedgym.Workload.__module__ == "schedgym.core.workload"
    assert schedgym.ScheduleRecord.__name__ == "ScheduleRecord"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = schedgym.nothing


@pytest.mark.parametrize("module", [schedgym, schedgym_evaluation])
def test_completion_shows_the_public_names(module) -> None:
    assert dir(module) == sorted(module.__all__)


def test_errors_say_what_and_where_and_can_be_pickled() -> None:
    error = UnknownName("view", "pik", ("pick", "route"))
    assert str(error) == "unknown view 'pik'; did you mean 'pick'?"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert suggest("zzz", ("b", "a")) == "; known: a, b"
    assert suggest("zzz", ()) == "; none is known"
    assert suggest("zzz", ("b", "a", "b")) == "; known: a, b"
    many = [f"name{i}" for i in range(30)]
    assert suggest("zzz", many, "schedgym list").endswith("; all 30: schedgym list")
    assert "name29" in suggest("zzz", many), "it is listed nowhere else"
    located = TraceFormatError("t.csv", 12, "cpu", "not a number")
    assert str(located) == "t.csv:12: cpu: not a number"
    again = pickle.loads(pickle.dumps(located))
    assert (str(again), again.line, again.column) == (str(located), 12, "cpu")
    assert str(TraceFormatError("t.csv", 0, "", "empty")) == "t.csv: empty"
    assert issubclass(InvalidParameter, ValueError) and issubclass(UnknownName, LookupError)


def test_parts_of_the_package_are_there_after_the_import():
    """``schedgym.evaluation`` needs no import of its own, and costs nothing before it is used."""
    code = (
        "import schedgym, sys; assert 'schedgym.evaluation' not in sys.modules; "
        "print(schedgym.evaluation.evaluate.__name__, schedgym.traces.ENTRY_POINTS)"
    )
    assert python("-c", code).stdout.split() == ["evaluate", "schedgym.traces"]
    with pytest.raises(AttributeError, match="no attribute 'evaluations'"):
        _ = schedgym.evaluations


@pytest.mark.parametrize(("group", "value", "message"), table(__file__, "test_entry_points_that_are_refused"))
def test_entry_points_that_are_refused(group, value, message, tmp_path, monkeypatch):
    find = {"problems": list_problems, "policies": _discover, "traces": formats}[group]
    (tmp_path / "third_party.py").write_text(
        "import dataclasses\nfrom schedgym.problems.geo.problem import PROBLEM\nNUMBER = 3\nTAKEN = PROBLEM\n"
        "ids = {'schedgym/GeoFair-v0': PROBLEM.ids['schedgym/GeoFair-v0']}\n"
        "IDS = dataclasses.replace(PROBLEM, name='other', ids=ids)\n"
        "from schedgym.traces import Field, TableFormat\n"
        "SWF = TableFormat(name='swf', columns={'submit': Field('when'), 'duration': Field('long')})\n"
    )
    (tmp_path / "fcfs_again.py").write_text(
        "import schedgym\nschedgym.register_policy('queue-delay/fcfs', source='')(type('Again', (), {}))\n"
    )
    folder = tmp_path / "third_party-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[schedgym.{group}]\nanything = {value}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    monkeypatch.delitem(sys.modules, "third_party", raising=False)
    find.cache_clear()
    with pytest.raises(InvalidParameter) as caught:
        find()
    assert str(caught.value) == message
    monkeypatch.undo()
    importlib.invalidate_caches()
    find()
    assert "geo" in list_problems()
