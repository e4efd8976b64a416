"""Metrics, fates and the validator by hand; random schedules: tests/test_all_records.py."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from schedgym.core.record import ScheduleRecord
from schedgym.errors import InvalidSchedule
from schedgym.papers.shi2017.model import one_job, online
from schedgym.problems.parallel_jct.metrics import fates, metrics, validate
from tests.parallel_jct.schedules import example, workload_of
from tests.records import record_of_rows, section_changed


def vector_5() -> online.Workload:
    efficiency = ((1.0, 0.5),)
    jobs = (online.Job(0.0, (100.0,), efficiency), online.Job(2.0, (50.0,), efficiency))
    return online.Workload(jobs, (10.0, 10.0), one_job.fat_tree(2, 0.5, 0.5, 0.5))


def test_nothing_launched_and_late_jobs() -> None:
    workload = workload_of(vector_5())
    empty = ScheduleRecord(
        workload,
        np.zeros(0, dtype=np.int64),
        np.zeros(0, dtype=np.int64),
        np.zeros(0),
        np.zeros(0),
        np.zeros((0, 2)),
        1.0,
        True,
    )
    validate(empty)
    computed = metrics(empty)
    assert computed["average_jct"] == computed["mean_waiting"] == 0.5  # the job that arrives at 2 counts 0
    assert computed["makespan"] == computed["max_jct"] == 1.0
    zero = ("mean_running", "finished", "launched", "utilization", "energy", "energy_share", "granted")
    assert all(computed[name] == 0.0 for name in zero)
    assert fates(empty) == {"start": [None] * 2, "completion": [None] * 2, "energy": [None] * 2}
    with pytest.raises(InvalidSchedule, match=r"^job \[0\] never starts$"):
        validate(dataclasses.replace(empty, truncated=False))


def test_a_job_ends_with_its_last_task_and_completes_at_the_cut_only_if_its_work_is_done() -> None:
    record = example()
    computed = fates(record)
    assert computed["completion"] == [4.0, 8.0]
    for end, whole in ((8.0, True), (8.0 - 1e-8, False), (8.0 - 1e-10, True)):
        cut = dataclasses.replace(
            record, end=np.where(record.end == 8.0, end, record.end), final_time=end, truncated=True
        )
        validate(cut)
        assert fates(cut)["completion"] == [4.0, end if whole else None]


# Validator ------------------------------------------------------------------------------------


def test_capacities_that_are_no_limits() -> None:
    """Without ``server_caps`` a job may hold more than a server has, and then nothing is left to add."""
    cluster = {"cpu": np.array([7.0, 13.0]), "server_caps": np.array(False)}
    workload = section_changed(example(), "cluster", **cluster)["workload"]
    others = [(1, 0, 0, 2.5, 4, 0), (2, 1, 2, 2 + 60 / 13, 5, 8)]
    record = record_of_rows(workload, [(0, 0, 0, 7.5, 4, 0), *others])
    with pytest.raises(InvalidSchedule, match=r"^task \[0\] at 2.5 s: 0 extra vCPU, not its share 3$"):
        validate(record)
    record = record_of_rows(workload, [(0, 0, 0, 2.5, 4, 0), *others, (0, 0, 2.5, 2.5 + 20 / 7, 4, 3)])
    validate(record)
    with pytest.raises(
        InvalidSchedule, match=r"^job \[0\]: starts at 0 s with 8 base vCPU in server \[0\], of 7$"
    ):
        validate(
            dataclasses.replace(record, **section_changed(record, "cluster", server_caps=np.array(True)))
        )


def test_jobs_launched_at_once_need_an_order() -> None:
    """The first may have half of the 16 vCPU, the second half of what that leaves."""
    for first, second, valid in ((8, 4, True), (4, 8, True), (5, 5.5, True), (6, 6, False), (8, 4.5, False)):
        jobs = tuple(online.Job(0.0, (float(load),), ((1.0, 1.0),)) for load in (first, second))
        limits = (one_job.Limit("server", (0,), 1), one_job.Limit("server", (1,), 1))
        limits += (one_job.Limit("dc", (0, 1), 0.5),)
        workload = workload_of(online.Workload(jobs, (8.0, 8.0), limits))
        record = record_of_rows(workload, [(0, 0, 1, 2, first, 0), (1, 1, 1, 2, second, 0)])
        if valid:
            validate(record)
        else:
            with pytest.raises(InvalidSchedule, match="base vCPU in group"):
                validate(record)
