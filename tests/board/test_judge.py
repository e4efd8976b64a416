"""The judge: it agrees with the exact models and the environments, and refuses whatever breaks a rule."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from schedgym.board.judge import judge
from schedgym.board.suites import Instance
from schedgym.core.compilation import COMPILATION
from schedgym.core.problem import get_problem, list_problems
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.errors import InvalidSchedule
from schedgym.evaluation.episodes import make_env, slack_of
from schedgym.testing import sample_action
from tests.interpreted import python
from tests.long import long, weekly
from tests.records import replaced
from tests.tables import declared, entry
from tests.test_all_records import schedules_of
from tests.test_architecture import ARCHITECTURE

PROBLEMS = list(list_problems())
SMALL = entry(__file__, "SMALL")


@dataclasses.dataclass(frozen=True)
class Given(Instance):
    """An instance with this workload."""

    made: Workload

    def workload(self) -> Workload:
        return self.made


def instance_of(workload: Workload, id: str = "", parameters: Any = None) -> Given:
    id = id or next(iter(get_problem(workload.problem).ids))
    return Given("Given-1", "test", "small", 0, id, parameters or {}, 0, "", workload)


def violation(record: ScheduleRecord, instance: Instance | None = None) -> str | None:
    """The first rule that a schedule breaks, of its own instance or another; None: it keeps them all."""
    try:
        judge(instance or instance_of(record.workload), record)
    except InvalidSchedule as error:
        return str(error)
    return None


@pytest.mark.parametrize("count", [30, pytest.param(1430, marks=[long, weekly])])  # in all 10,010
@pytest.mark.parametrize("id", SMALL)
def test_random_schedules_have_the_environments_objective(id: str, count: int) -> None:
    env, rng, whole = make_env(id, {**SMALL[id], "action_mask": True}), np.random.default_rng(0), 0
    env.action_space.seed(0)
    parameters = {name: value for name, value in SMALL[id].items() if name != "view"}
    for seed in range(count):
        observation, _ = env.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            action = sample_action(env.action_space, observation, rng)
            observation, reward, terminated, truncated, _ = env.step(action)
            total, ended = total + float(reward), terminated or truncated
        record = env.record()
        instance = instance_of(record.workload, id, parameters)
        if truncated:
            assert violation(record, instance) == "truncated: the schedule leaves work undone"
            continue
        near = slack_of(record.workload)
        expected = pytest.approx(total, rel=1e-9, abs=near)
        assert -instance.objective.sign * judge(instance, record) == expected
        whole += 1
    assert whole > 0.9 * count


@pytest.mark.parametrize("name", PROBLEMS)
def test_schedules_of_the_exact_models_have_their_objective(name: str) -> None:
    problem = get_problem(name)
    for run in schedules_of(name).runs(40, 6):
        if run.record.truncated:
            continue
        for id in problem.ids:
            instance = instance_of(run.record.workload, id)
            metric = instance.objective.name
            known = run.metrics["l2"] ** 2 if metric == "cost" else run.metrics[metric]
            assert judge(instance, run.record) == pytest.approx(known, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_breaks_a_rule_is_named(name: str) -> None:
    assert violation(schedules_of(name).example()) is None
    for message, changes, *options in declared(name, "schedules")["broken"]:
        if message is None or options:  # nothing is broken, or only under another model than the id's
            continue
        found = violation(replaced(schedules_of(name).example(), changes))
        assert found == message or found and found.startswith("truncated: ")


def test_the_workload_that_a_schedule_names_is_not_looked_at() -> None:
    record = schedules_of("queue-delay").example()
    instance = instance_of(record.workload)
    jobs = {**record.workload.jobs, "execution": 0.001 * record.workload.jobs["execution"]}
    shorter = dataclasses.replace(record.workload, jobs=jobs)
    end = record.start + jobs["execution"][record.job]
    own = dataclasses.replace(record, workload=shorter, end=end, final_time=end.max())
    assert violation(own) is None  # of its own instance it is a schedule
    assert violation(own, instance) == "task [0] does not run its whole time"


@pytest.mark.parametrize(("column", "value"), [("job", [0, 1, 2]), ("truncated", True)])
def test_malformed_columns_are_refused(column: str, value: Any) -> None:
    record = dataclasses.replace(schedules_of("queue-delay").example(), **{column: value})
    assert str(violation(record)).startswith(f"{column}: ")


def test_tasks_are_whole_in_the_discrete_model() -> None:
    record = schedules_of("partial-value").example()
    half = dataclasses.replace(record, amount=record.amount / 2)
    for model, refused in (("continuous", False), ("discrete", True)):
        found = violation(half, instance_of(record.workload, parameters={"model": model}))
        assert (found is not None) == refused


def seconds_of_compiling() -> float:
    """Seconds of compiling in this process, after a schedule of each problem is judged."""
    for name in PROBLEMS:
        assert violation(schedules_of(name).example()) is None
    return COMPILATION.seconds


@long
def test_the_judge_compiles_nothing_and_knows_no_environment() -> None:
    code = f"from {__name__} import seconds_of_compiling; print(seconds_of_compiling())"
    assert float(json.loads(python("-c", code).stdout)) == 0.0
    imported = {name for name in ARCHITECTURE.imports("schedgym.board.judge") if name.startswith("schedgym")}
    assert imported == {"schedgym.board.suites", "schedgym.core.record", "schedgym.errors"}
