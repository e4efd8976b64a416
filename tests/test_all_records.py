"""Schedules of every problem: metrics and fates equal the exact model, and the validator knows the rules."""

from __future__ import annotations

import dataclasses
import importlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedgym.core.arrays import declarations, members
from schedgym.core.problem import Problem, list_problems
from schedgym.core.record import ScheduleRecord
from schedgym.core.tables import tabled
from schedgym.core.workload import Workload
from schedgym.errors import InvalidSchedule
from schedgym.evaluation.episodes import checked_gap, lower_bound, slack_of
from tests.interpreted import results_of
from tests.long import long, of_trials, trials
from tests.records import COLUMNS, damage, replaced
from tests.tables import declared

PROBLEMS = list(list_problems())
IN_SECONDS = [name for name in PROBLEMS if name not in ("flowtime", "partial-value")]  # they have slots
#: with the unit of time eight times as long, what is measured in these units is eight times as much
TIMES = ("s", "vCPU s", "slot s", "power * vCPU s")


def schedules_of(name: str) -> Any:
    """What the tests of a problem declare: see :mod:`tests.records`."""
    return importlib.import_module(f"tests.{name.replace('-', '_')}.schedules")


def judge_of(name: str) -> Any:
    """The problem's module of metrics."""
    return list_problems()[name].module("metrics")


def recorded(name: str, record: ScheduleRecord | None = None) -> list[str]:
    """The metrics that a schedule alone tells; without one, those of the usual parameters."""
    problem = list_problems()[name]
    own = problem.metrics if record is None else problem.metrics_of({"resources": record.workload.cluster})
    return [metric.name for metric in own if metric.recorded]


# Metrics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_metrics_and_fates_equal_the_model(name: str) -> None:
    schedules, judge, names = schedules_of(name), judge_of(name), recorded(name)
    seen: Counter[str] = Counter()
    for run in schedules.runs(len(trials(400)), 1):
        judge.validate(run.record)
        computed = judge.metrics(run.record)
        own = recorded(name, run.record)
        assert list(computed) == own and sorted(run.metrics) == sorted(own)
        assert computed == pytest.approx(run.metrics, rel=1e-9, abs=1e-9)
        assert all(type(value) is float for value in computed.values())
        fates = judge.fates(run.record)
        assert fates.keys() == run.fates.keys()
        for key, values in run.fates.items():
            assert [value is None for value in fates[key]] == [value is None for value in values], key
            told = [value for value in fates[key] if value is not None]
            assert told == pytest.approx([value for value in values if value is not None], rel=1e-9), key
        seen.update(key for key, value in computed.items() if value != 0)
        seen["truncated"] += run.record.truncated
    assert all(seen[key] > of_trials(20) for key in {*names, "truncated"} - schedules.RARE), seen


#: places behind what an episode fills; servers and resources are as many in all environments
SPARE = {"job": 2, "task": 3, "run": 2, "log": 4, "piece": 8}


def in_one_batch(environment: Any, episodes: list[Any]) -> Any:
    """Episodes one after the other in arrays with spare places that are full of unlikely numbers."""
    bundles = []
    for member, *own in zip(members(environment), *episodes, strict=True):
        if member.kind:  # shared, or work space
            bundles.append(own[0])
            continue
        arrays = []
        for declaration, *parts in zip(declarations(member.bundle), *own, strict=True):
            names = [str(dimension).partition("+")[0] for dimension in declaration.dimensions]
            lengths = zip(*(part.shape[1:] for part in parts), strict=True)
            shape = [max(own) + SPARE.get(name, 0) for name, own in zip(names, lengths, strict=False)]
            array = np.zeros((len(parts), *shape), declaration.dtype)
            if names and names[0] not in ("server", "site"):  # those that are missing have no capacity
                array[...] = 7
            for x, part in enumerate(parts):
                array[(x, *map(slice, part.shape[1:]))] = part[0]
            arrays.append(array)
        bundles.append(member.bundle(*arrays))
    return environment(*bundles)


@pytest.mark.parametrize("name", PROBLEMS)
def test_measure_takes_rows_of_any_size_and_leaves_the_others(name: str, monkeypatch) -> None:
    judge, names, made = judge_of(name), recorded(name), []
    monkeypatch.setattr(judge, "tabled", lambda *given: made.append(given) or tabled(*given))
    # every third, so that there are as many resources
    wanted = [judge.metrics(run.record) for run in list(schedules_of(name).runs(36, 5))[::3]]
    episode = in_one_batch(judge.Episode, [episode for episode, _ in made])
    sizes = {key: max(own[key] for _, own in made) + SPARE.get(key, 0) for key in made[0][1]}
    mask = np.array([x % 3 != 1 for x in range(len(wanted))])
    for array in episode.metrics:
        array.view(np.float64)[...] = -1.0
    judge.measure(*tabled(episode, sizes), mask)
    rows = [array.view(np.float64).reshape(len(wanted), -1) for array in episode.metrics]
    found = dict(zip((m.name for m in list_problems()[name].metrics), np.hstack(rows).T, strict=True))
    for x, computed in enumerate(wanted):
        expected = computed if mask[x] else dict.fromkeys(names, -1.0)
        assert {key: float(found[key][x]) for key in names} == expected
    assert (found["repaired"] == -1.0).all(), "this is the environment's"


def rewritten(
    problem: Problem, workload: Workload, factor: float = 1.0, orders: Mapping[str, Any] | None = None
) -> Workload:
    """Times of a workload some times as long, and its servers, sites or tasks in another order."""
    sections: dict[str, dict[str, Any]] = {}
    for section in ("jobs", "tasks", "cluster"):
        for field in getattr(problem.schema, section):
            if field.name in (own := getattr(workload, section)):
                values = own[field.name] * (factor if field.unit in TIMES else 1)
                for axis, dimension in enumerate(field.dimensions):
                    if dimension in (orders or {}):
                        values = np.take(values, orders[dimension], axis)
                if orders and field.unit == "site":
                    values = np.where(values < 0, -1, np.argsort(orders["site"])[values])
                sections.setdefault(section, {})[field.name] = values
    return dataclasses.replace(workload, **sections)


@pytest.mark.parametrize("name", IN_SECONDS)
def test_scaling_time(name: str) -> None:
    """Times of the workload and of the schedule eight times as long."""
    problem, judge = list_problems()[name], judge_of(name)
    for run in schedules_of(name).runs(30, 3):
        record, workload = run.record, run.record.workload
        measured = problem.metrics_of({"resources": workload.cluster})
        factors = {metric.name: 8.0 if metric.unit in TIMES else 1.0 for metric in measured}
        if "arrival" in workload.jobs and np.ptp(workload.jobs["arrival"]) == 0:
            continue  # then geo's fairness is a sum over time
        times = {key: 8.0 * getattr(record, key) for key in ("start", "end", "final_time")}
        slower = dataclasses.replace(record, workload=rewritten(problem, workload, 8.0), **times)
        judge.validate(slower)
        one = judge.metrics(record)
        wanted = {key: factors[key] * value for key, value in one.items()}
        assert judge.metrics(slower) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "values"), [*((name, {}) for name in PROBLEMS), ("parallel-jct", {"drc": False})]
)
def test_what_a_bound_does_not_depend_on(name: str, values: dict[str, Any]) -> None:
    """Unit and origin of time, and the order of servers, and of tasks where none comes before another."""
    problem, rng = list_problems()[name], np.random.default_rng(6)
    factor = 8.0 if name in IN_SECONDS else 1.0
    close, exact = 3e-2 if name == "parallel-jct" else 1e-6, 0  # whose prices are raised only so often
    parameters = problem.build(next(iter(problem.ids)), values)
    for run in schedules_of(name).runs(20, 6):
        workload = run.record.workload
        counts = dict.fromkeys(("server", "site", "resource"), len(next(iter(workload.cluster.values()))))
        if name == "single-job":
            counts["task"] = len(workload.jobs["load"])
        orders = {dimension: rng.permutation(count) for dimension, count in counts.items()}
        other = rewritten(problem, workload, factor, orders)
        if name in IN_SECONDS and "arrival" in other.jobs:
            other.jobs["arrival"][:] += 1024.0
        one, two = (lower_bound(problem, own, parameters) for own in (workload, other))
        assert two == (one if one is None else pytest.approx(factor * one, rel=close))
        exact += one is None or two == pytest.approx(factor * one, rel=1e-6)
    assert exact > 10


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "flowtime"])  # whose cost has k
def test_no_schedule_is_better_than_the_bound(name: str) -> None:
    problem, judge = list_problems()[name], judge_of(name)
    parameters = problem.build(next(iter(problem.ids)))
    metric, bounded = problem.metric(problem.objective_of(parameters)), 0
    for run in schedules_of(name).runs(len(trials(60)), 2):
        workload = run.record.workload
        bound = None if run.record.truncated else lower_bound(problem, workload, parameters)
        if bound is not None:
            checked_gap(metric, bound, judge.metrics(run.record)[metric.name], slack_of(workload), name)
            bounded += 1
    assert bounded > of_trials(10)


def numbers_of_some_schedules() -> dict[str, list[list[float]]]:
    """Per problem, what kernels compute of some schedules."""
    found: dict[str, list[list[float]]] = {}
    for name in PROBLEMS:
        schedules, judge = schedules_of(name), judge_of(name)
        more = getattr(schedules, "numbers", lambda record: [])
        records = [run.record for run in schedules.runs(12, 4)]
        found[name] = [[*judge.metrics(record).values(), *more(record)] for record in records]
    return found


@long
def test_compiled_and_interpreted_agree() -> None:
    function = numbers_of_some_schedules.__name__
    code = f"import json; from {__name__} import {function}; print(json.dumps({function}()))"
    interpreted = results_of(code, NUMBA_DISABLE_JIT="1")
    for name, rows in numbers_of_some_schedules().items():
        rtol = 1e-6 if name == "flowtime" else 1e-12  # a bound is found by iterations
        for mine, theirs in zip(rows, interpreted[name], strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=1e-12, err_msg=name)


# Validator ------------------------------------------------------------------------------------


def keeps_the_rules(schedules: Any, record: ScheduleRecord) -> bool:
    """Whether the schedule is one, by the rules as they are written down once more."""
    finite = all(np.isfinite(getattr(record, name)).all() for name in ("start", "end", "amount"))
    return finite and bool(schedules.is_valid(record))


@pytest.mark.parametrize("name", PROBLEMS)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_validate_rejects_exactly_what_breaks_a_rule(name: str, seed: int, data: st.DataObject) -> None:
    schedules, judge = schedules_of(name), judge_of(name)
    record = next(iter(schedules.runs(1, seed))).record
    judge.validate(record)
    assert keeps_the_rules(schedules, record)
    for _ in range(data.draw(st.integers(1, 2))):
        if len(record.job):
            record = damage(record, schedules.CHANGES, data)
    if keeps_the_rules(schedules, record):
        judge.validate(record)
    else:
        with pytest.raises(InvalidSchedule):
            judge.validate(record)


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_breaks_a_rule_is_named(name: str) -> None:
    """Without a message nothing is broken; some rules hold under an option of the validator only."""
    schedules, judge = schedules_of(name), judge_of(name)
    judge.validate(schedules.example())
    for message, changes, *options in declared(name, "schedules")["broken"]:
        record = replaced(schedules.example(), changes)
        if message is None:
            judge.validate(record)
            continue
        with pytest.raises(InvalidSchedule) as caught:
            judge.validate(record, **(options[0] if options else {}))
        assert str(caught.value) == message


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("what", ["metrics", "fates", "validate"])
def test_what_does_not_exist_is_never_measured(name: str, what: str) -> None:
    """Neither by the validator nor without it: nothing is read beyond the end of an array."""
    record = schedules_of(name).example()
    noun = "job" if name in ("flowtime", "partial-value") else "task"
    for column, named in (("job", noun), ("server", "server")):
        for number in (-1, 99):
            changed = replaced(record, {f"{column}[1]": number})
            with pytest.raises(InvalidSchedule, match=rf"row \[1\] names a {named} that does not exist"):
                getattr(judge_of(name), what)(changed)
    with pytest.raises(InvalidSchedule, match="amount: must have the shape"):
        getattr(judge_of(name), what)(dataclasses.replace(record, amount=record.amount[1:]))


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("what", ["metrics", "fates", "validate"])
def test_what_are_no_numbers_is_never_measured(name: str, what: str) -> None:
    """A list, NaN as the number of a job, or an end that nobody knows: cast, they would be any number."""
    record, measured = schedules_of(name).example(), getattr(judge_of(name), what)
    for column in COLUMNS:
        own = getattr(record, column)
        whole = "whole " if column in ("job", "server") else ""
        others = [own.tolist(), own.astype(complex), own.astype(bool), own.astype(object), None]
        others += [own.astype(str), *([np.longdouble(own)] if np.longdouble(0).itemsize > 8 else [])]
        for other in [*others, np.full(own.shape, np.nan)] if whole else others:
            with pytest.raises(InvalidSchedule, match=f"^{column}: must be an array of {whole}numbers$"):
                measured(dataclasses.replace(record, **{column: other}))
    for end in (np.nan, np.inf, "4.0", None, np.array([4.0])):
        with pytest.raises(InvalidSchedule, match="^final_time: must be a finite number, got "):
            measured(dataclasses.replace(record, final_time=end))


@pytest.mark.parametrize("name", PROBLEMS)
def test_metrics_by_hand(name: str) -> None:
    """Of schedules that no random instance has; a number is the value of all metrics that are not named."""
    judge = judge_of(name)
    for changes, metrics, fates in declared(name, "schedules").get("measured", ()):
        record = replaced(schedules_of(name).example(), changes)
        found, own = judge.metrics(record), judge.fates(record)
        named = {key: value for key, value in metrics.items() if key != "others"}
        wanted = (dict.fromkeys(found, metrics["others"]) if "others" in metrics else {}) | named
        assert {key: found[key] for key in wanted} == pytest.approx(wanted, rel=1e-12)
        assert {key: own[key] for key in fates} == fates
