"""Percentiles at the edge of a step, and the order of tasks; other metrics: tests/test_all_records.py."""

from __future__ import annotations

import random

import pytest

from schedgym.papers.guan2022 import model
from schedgym.papers.guan2022.model import Instance, Job
from schedgym.problems.geo.metrics import metrics
from schedgym.problems.geo.workload import tables
from tests.geo.instances import workload_of
from tests.geo.schedules import record_of


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


def test_table_sorts_by_job_then_sites_then_place() -> None:
    sites = ((1,), (0, 1), (0,), (0, 1))
    jobs = [Job(0, tuple((x + 1, s) for x, s in enumerate(sites))), Job(0, ((9, (1, 0)),))]
    own = tables(workload_of(Instance((1, 1), jobs), order=[4, 3, 0, 1, 2]))
    assert own.task_index.tolist() == [4, 1, 3, 2, 0]
    assert own.duration.tolist() == [3.0, 4.0, 2.0, 1.0, 9.0]
    assert own.task_start.tolist() == [0, 4, 5]
