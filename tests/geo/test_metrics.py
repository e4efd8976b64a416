"""Metrics, fates and the validator by hand; random schedules: tests/test_all_records.py."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest

from schedgym.errors import InvalidSchedule
from schedgym.papers.guan2022 import model
from schedgym.papers.guan2022.model import Instance, Job
from schedgym.problems.geo.metrics import fates, metrics, validate
from schedgym.problems.geo.workload import tables
from tests.geo.instances import workload_of
from tests.geo.schedules import example, make_record, record_of
from tests.records import rows_taken


def test_weighted_percentiles_do_not_hang_on_rounding() -> None:
    # 10 jobs of one task; job i joins at 0.1 i: exactly half of the time has the lower deviations
    jobs = [Job(0.1 * i, ((0.1, (0,)), *(((0.1, (0,)),) * (i % 2)))) for i in range(10)]
    instance = Instance((3,), [Job(job.arrival, job.tasks + ((0.1, (0,)),)) for job in jobs])
    outcome = model.simulate_assign(instance, "fcfs")
    computed = metrics(record_of(instance, outcome, random.Random(2)))
    for name, share in (("median_std", 50), ("p90_std", 90)):
        pairs = [
            (model.deviation(list(part.occupied.values())), part.end - part.begin) for part in outcome.series
        ]
        near = [model.weighted_percentile(pairs, share + e) for e in (-1e-7, 1e-7)]
        assert computed[name] == pytest.approx(near[0])


def test_tasks_that_never_ran_are_charged_one_after_another() -> None:
    jobs = [Job(0, ((2, (0,)), (3, (0,)))), Job(1, ((1, (0,)),)), Job(6, ((4, (0,)), (5, (0,))))]
    workload = workload_of(Instance((2,), jobs))
    nan = math.nan
    record = make_record(workload, [0.0, nan, 1.0, nan, 6.0], [0] * 5, truncated=True)
    # the last end is at 11; job 0 would end at 14, job 2 at 18
    measured = metrics(record)
    assert measured["mean_response"] == pytest.approx((14 + 1 + 12) / 3)
    assert measured["makespan"] == 18.0
    assert measured["utilization"] == pytest.approx((2 + 1 + 5) / (2 * 18))
    assert measured["fairness_integral"] == pytest.approx(0.5 * 5)  # (0, 1) from 6 to 11
    assert measured["mean_std"] == pytest.approx(0.5 * 5 / 18)
    # (1), (1, 1), (0), (0, 1), none
    assert measured["mean_jain"] == pytest.approx((13 + 5 * 0.5) / 18)
    assert fates(record) == {"completion": [None, 2.0, None], "response": [None, 1.0, None]}
    validate(record)
    # the same as if they ran, but for what hangs on slots
    ran = metrics(make_record(workload, [0.0, 11.0, 1.0, 14.0, 6.0], [0] * 5))
    for name in ("mean_response", "median_response", "p99_response", "max_response", "makespan"):
        assert measured[name] == pytest.approx(ran[name])


def test_table_sorts_by_job_then_sites_then_place() -> None:
    sites = ((1,), (0, 1), (0,), (0, 1))
    jobs = [Job(0, tuple((x + 1, s) for x, s in enumerate(sites))), Job(0, ((9, (1, 0)),))]
    own = tables(workload_of(Instance((1, 1), jobs), order=[4, 3, 0, 1, 2]))
    assert own.task_index.tolist() == [4, 1, 3, 2, 0]
    assert own.duration.tolist() == [3.0, 4.0, 2.0, 1.0, 9.0]
    assert own.task_start.tolist() == [0, 4, 5]


# Validator ------------------------------------------------------------------------------------


def test_a_truncated_schedule_may_lack_tasks_or_all() -> None:
    record = example()
    for kept in (3, 0):
        validate(dataclasses.replace(record, truncated=True, **rows_taken(record, slice(kept))))


def test_a_slot_is_free_at_the_instant_of_an_end() -> None:
    workload = workload_of(Instance((1,), [Job(0, ((1, (0,)),) * 3)]))
    validate(make_record(workload, [2.0, 0.0, 1.0], [0, 0, 0]))
    with pytest.raises(InvalidSchedule, match=r"site \[0\]"):
        validate(make_record(workload, [1.999, 0.0, 1.0], [0, 0, 0]))
