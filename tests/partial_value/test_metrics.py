"""Metrics, fates and the validator by hand; random schedules: tests/test_all_records.py."""

from __future__ import annotations

import dataclasses
import math

import pytest

from schedgym.errors import InvalidSchedule
from schedgym.papers.zheng2016 import model
from schedgym.papers.zheng2016.model import LOG, Instance, Outcome
from schedgym.problems.partial_value.metrics import FULL, fates, metrics, validate
from tests.partial_value.instances import make_job
from tests.partial_value.schedules import INSTANCE, JOBS, SCHEDULE, example, record_of, runs
from tests.records import replaced


def test_a_job_that_lacks_a_rounding_error_is_complete() -> None:
    job = make_job(1.0, 3.0, 1.0, 1.0, (1.0,))
    amounts = (0.7, 0.2, 0.1)
    assert sum(amounts) < 1.0
    outcome = Outcome([(x,) for x in amounts], list(amounts), (sum(amounts),), sum(amounts))
    assert metrics(record_of(Instance((job,), (1.0,)), outcome))["completed"] == 1.0


def test_schedules_of_whole_tasks_are_accepted() -> None:
    for n, run in enumerate(runs(120, 3), 3):
        validate(run.record, whole=n % 2 == 1)


def test_without_a_row() -> None:
    nothing = model.replay(INSTANCE, [])
    record = record_of(INSTANCE, nothing)
    validate(record)
    found = metrics(record)
    assert found.pop("slots") == 4
    assert (found.pop("expired"), found.pop("never_served")) == (3, 3)
    assert set(found.values()) == {0.0}


def test_no_exponents() -> None:
    """A workload without powers need not give them."""
    instance = Instance(tuple(job._replace(kind=LOG) for job in JOBS), INSTANCE.capacity)
    record = record_of(instance, model.replay(instance, SCHEDULE))
    jobs = {name: values for name, values in record.workload.jobs.items() if name != "exponent"}
    without = dataclasses.replace(record, workload=dataclasses.replace(record.workload, jobs=jobs))
    assert metrics(without) == metrics(record)
    assert fates(without) == fates(record)


def test_full_slots() -> None:
    shares = ((FULL, 0.1), (math.nextafter(FULL, 0), 0.1), (0.5, 1.0))
    instance = Instance(tuple(make_job(1.0, 4.0, 1.0, 2.0, share) for share in shares), (1.0, 1.0))
    schedule = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.5]]
    record = record_of(instance, model.replay(instance, schedule))
    found = metrics(record)
    assert found["full_slots"] == 2 / 4
    assert fates(record)["served"] == [1.0, 1.0, 1.5]
    loads = [FULL + math.nextafter(FULL, 0) + 0.75, 1.7]
    assert found["utilization"] == pytest.approx(sum(loads) / 8, rel=1e-14)
    assert found["peak_utilization"] == pytest.approx(max(loads) / 4, rel=1e-14)


def test_parts_of_tasks_are_the_discrete_models_fault_only() -> None:
    validate(replaced(example(), {"amount[2]": 0.5}))
    with pytest.raises(InvalidSchedule, match=r"^job \[0\] in slot 2: its tasks must be a whole number$"):
        validate(replaced(example(), {"amount[2]": 0.5}), whole=True)
    with pytest.raises(InvalidSchedule, match="resource"):
        validate(replaced(example(), {"amount[0]": 1.0 + 1e-6}))


def test_rounding_is_no_fault() -> None:
    """A load of 1 + 1e-9 fits, amounts may be off by a relative 1e-9 only."""
    validate(replaced(example(), {"amount[0]": 1.0 + 1.9e-9}))  # half of it is its share: 1 + .95e-9
    with pytest.raises(InvalidSchedule, match="load"):
        validate(replaced(example(), {"amount[0]": 1.0 + 2.1e-9}))
    validate(replaced(example(), {"amount[4]": 1.0 + 0.9e-9}))
    with pytest.raises(InvalidSchedule, match="gets more tasks than it can run"):
        validate(replaced(example(), {"amount[4]": 1.0 + 1.1e-9}))
    validate(replaced(example(), {"amount[3]": 1.0 + 2.9e-9}))
    with pytest.raises(InvalidSchedule, match="gets more tasks than it has"):
        validate(replaced(example(), {"amount[3]": 1.0 + 3.1e-9}))


def test_truncated_episodes() -> None:
    """They may end early, never late."""
    validate(replaced(example(), {"rows": [*range(5)], "final_time": 3.0, "truncated": True}))
    validate(dataclasses.replace(example(), truncated=True))
    with pytest.raises(InvalidSchedule, match="final_time"):
        validate(dataclasses.replace(example(), final_time=5.0, truncated=True))


def test_episodes_end_when_nothing_is_left() -> None:
    """Once all have arrived, the slot after the last completion is not run; before, empty slots are."""
    jobs = (make_job(1, 9, 2, 2, (1.0,)), make_job(4, 9, 1, 1, (1.0,)))
    instance = Instance(jobs, (2.0,), discrete=True)
    record = record_of(instance, model.simulate(instance, "m-greedy"))
    assert record.end.tolist() == [1.0, 4.0] and record.final_time == 4.0
    validate(record)
    for final in (5.0, 9.0, 3.0):
        with pytest.raises(InvalidSchedule, match="final_time" if final > 4 else "after the end"):
            validate(dataclasses.replace(record, final_time=final))
    # the second job is not served: it could be to the end
    first = {name: getattr(record, name)[:1] for name in ("job", "server", "start", "end", "amount")}
    validate(dataclasses.replace(record, **first, final_time=9.0))
    for final in (3.0, 4.0, 8.0, 10.0):
        with pytest.raises(InvalidSchedule, match="final_time: must be 9"):
            validate(dataclasses.replace(record, **first, final_time=final))


def test_a_late_arrival_without_a_slot_keeps_the_episode_going() -> None:
    jobs = (make_job(1, 1, 1, 1, (1.0,)), make_job(3.2, 3.7, 1, 1, (1.0,)))
    instance = Instance(jobs, (1.0,))
    outcome = model.simulate(instance, "concave")
    assert len(outcome.allocation) == 3
    record = record_of(instance, outcome)
    validate(record)
    with pytest.raises(InvalidSchedule, match="final_time: must be 3"):
        validate(dataclasses.replace(record, final_time=2.0))
    assert metrics(record)["expired"] == 1
