"""Metrics, fates and the validator by hand; random schedules: tests/test_all_records.py."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from schedgym.errors import InvalidSchedule
from schedgym.papers.xu2021 import model
from schedgym.papers.xu2021.model import Instance, Job
from schedgym.problems.flowtime.metrics import fates, metrics, validate
from schedgym.problems.flowtime.workload import make_workload
from tests.flowtime.schedules import example, record_of
from tests.records import record_of_rows


def test_by_hand() -> None:
    # job 0 runs on both servers, is stopped in slot 3, goes on elsewhere; job 1 takes its place
    jobs = [Job(0, 3, 3), Job(2, 1, 3)]
    allocations = [[[2, 1], [0, 0]], [[2, 0], [0, 0]], [[0, 0], [2, 1]], [[0, 1], [0, 0]], [[2, 1], [0, 0]]]
    instance = Instance(jobs, [2, 1])
    record = record_of(instance, model.replay(instance, allocations))
    validate(record)
    computed = metrics(record)
    wanted = {
        "l1": 6.0,
        "mean_slowdown": (5 / 3 + 1) / 2,
        "makespan": 5.0,
        "mean_waiting": 1.0,
        "waiting_small": 0.0,
        "waiting_medium": 2.0,
        "waiting_big": 0.0,
        "waiting_longest": 2.0,
        "preemptions": 1.0,
        "migrations": 2.0,  # in slot 4 on server 1, in slot 5 on server 0
        "resizes": 2.0,  # in slots 2 and 5
        "splits": 3.0,
        "switching_cost": (1 + 4 + 1 + 4) / 9,  # in slots 2 to 5
        "idle": 3 / 15,
        "longest_gap": 1.0,
        "mean_unfinished": (6 + 4 + 4 + 3 + 0) / 3,
    }
    assert {name: computed[name] for name in wanted} == pytest.approx(wanted)
    assert computed["fractional"] == pytest.approx(
        (1 / 3 + 3) + (4 / 3 + 3) * 2 / 3 + (16 / 3 + 3) / 3 + (25 / 3 + 3) + 2
    )


def test_nothing_ran() -> None:
    instance = Instance([Job(0, 2, 1), Job(9, 2, 1)], [3])
    record = record_of(instance, model.replay(instance, [[[0], [0]]] * 4))
    validate(record)
    computed = metrics(record)
    wanted = {"l1": 4.0, "finished": 0.0, "idle": 1.0, "longest_gap": 4.0, "makespan": 4.0}
    assert {name: computed[name] for name in wanted} == wanted
    assert computed["mean_waiting"] == 2.0
    assert fates(record)["completion"] == [None, None]
    none = dataclasses.replace(record, final_time=0.0)
    assert set(metrics(none).values()) == {0.0}


def test_slots_far_apart() -> None:
    """Long runs are not walked slot by slot."""
    p = 10**7
    workload = make_workload([0, 10**9], [p, 3], [2, 5], [3])
    record = record_of_rows(workload, [(0, 0, 0, 2 * p, 1), (1, 0, 10**9, 10**9 + 5, 3)])
    validate(record)
    computed = metrics(record)
    assert computed["l1"] == 2 * p + 5
    ages = 2 * p * (2 * p + 1) * (4 * p + 1) // 6
    second = (55 / 3 + 15) * 3 / 5
    assert computed["fractional"] == pytest.approx((ages / p + 2 * p * p) / 2 + second, rel=1e-12)
    work = 2 * p * (2 * p - 1) // 2 + 12 + 9 + 6 + 3
    assert computed["mean_unfinished"] == pytest.approx(work / (10**9 + 1), rel=1e-12)


# Validator ------------------------------------------------------------------------------------


def test_grants_beyond_use_need_declared_demands() -> None:
    declared = make_workload([0], [2], [2], [8], declared_cpu=[5])
    validate(record_of_rows(declared, [(0, 0, 0, 2, 5)]))
    validate(record_of_rows(declared, [(0, 0, 0, 1, 5), (0, 0, 1, 3, 1)]))
    assert metrics(record_of_rows(declared, [(0, 0, 0, 2, 5)]))["wasted"] == 6.0
    honest = make_workload([0], [2], [2], [8])
    with pytest.raises(InvalidSchedule, match=r"job \[0\] in slot 1: has 5 cores and can use 2"):
        validate(record_of_rows(honest, [(0, 0, 0, 2, 5)]))


def test_the_end_of_a_record() -> None:
    record = example()
    validate(record)
    for final in (4.0, 6.0):
        with pytest.raises(InvalidSchedule):
            validate(dataclasses.replace(record, final_time=final))
    validate(dataclasses.replace(record, final_time=6.0, truncated=True))


def test_metrics_refuse_indices_out_of_range() -> None:
    record = example()
    for name, bad in (("job", 2), ("server", 2), ("job", -1)):
        with pytest.raises(InvalidSchedule, match=name):
            metrics(dataclasses.replace(record, **{name: np.array([0, bad])}))
