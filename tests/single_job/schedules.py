"""Schedules of single-job for the tests: see :mod:`tests.records`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.papers.shi2017.model import one_job
from schedgym.problems.single_job.workload import make_workload
from tests.parallel_jct import random_jobs
from tests.records import COLUMNS, Change, Run, put, section_changed

#: an episode ends with the job
RARE = {"truncated"}


def instance_of(workload: Workload) -> one_job.SingleJob:
    """The model's instance, its groups and limits by the model's own means where it has them."""
    jobs, cluster = workload.jobs, workload.cluster
    caps = bool(cluster.get("server_caps", True))
    capacity = cluster["cpu"].tolist()
    if "arity" in cluster:
        limits = one_job.fat_tree(int(cluster["arity"]), *cluster["beta"].tolist(), server_caps=caps)
        groups = tuple(limit.servers for limit in limits)
        bounds = one_job.limits_now(limits, capacity)
    else:
        groups = random_jobs.groups_from_matrix(cluster["groups"].tolist())
        if "limit" in cluster:
            bounds = tuple(cluster["limit"].tolist())
        else:
            shares = zip(groups, cluster["beta"].tolist(), strict=True)
            bounds = tuple(share * sum(capacity[j] for j in group) for group, share in shares)
        if caps:
            groups = (*((j,) for j in range(len(capacity))), *groups)
            bounds = (*capacity, *bounds)
    return one_job.SingleJob(
        tuple(jobs["load"].tolist()),
        tuple(map(tuple, jobs["efficiency"].tolist())),
        groups,
        bounds,
        float(jobs["energy_cap"]),
        tuple(jobs["power"].tolist()) if "power" in jobs else (),
    )


def toy_optimum(workload: Workload, environment: Mapping[str, Any]) -> float:
    """Of all placements."""
    return float(one_job.best(instance_of(workload))[0])


def smaller(tasks: int, servers: int = 16, **cluster: Any) -> Workload:
    rng = np.random.default_rng(tasks)
    load, efficiency = rng.uniform(1, 9, tasks), rng.uniform(0.1, 1, (tasks, servers))
    return make_workload(load, efficiency, 10 * load.sum(), rng.uniform(1, 9, servers), **cluster)


#: of the tree of 16 servers: they, 8 racks, 4 pods, the data centre
ROOM = 29
#: seven times the tree's pairs of a group and its server
EVERYTHING = np.ones((ROOM, 16), dtype=int)


def others() -> list[Workload]:
    """Workloads with other tasks and groups, for environments of 6 tasks or more with 16 servers."""
    return [
        smaller(4, arity=4),
        smaller(3, groups=[[1] * 16, [0] * 12 + [1] * 4], limit=[5, 1]),
        smaller(6, groups=EVERYTHING, limit=np.arange(1, 1 + ROOM), server_caps=False),
        smaller(1, arity=4, server_caps=False),
    ]


def make_record(
    workload: Workload, placement: tuple[int, ...], evaluation: one_job.Evaluation
) -> ScheduleRecord:
    tasks = len(placement)
    return ScheduleRecord(
        workload,
        job=np.arange(tasks),
        server=np.array(placement),
        start=np.zeros(tasks),
        end=np.array([float(x) for x in evaluation.times]),
        amount=np.array([[float(x)] for x in evaluation.vcpus]),
        final_time=float(evaluation.jct),
        truncated=False,
    )


def runs(count: int, seed: int) -> Iterator[Run]:
    """Random placements within the cap, by Eq. 16 or equal shares; nothing is exhausted."""
    rng = random.Random(seed)
    for x in range(seed, seed + count):
        own = {"dyadic": x % 2 == 0, "exhausted": 0.0, "feasible": True, "power": x % 4 < 2}
        instance = random_jobs.random_instance(rng, weighted=x % 3 < 2, **own)
        placement = one_job.rec(instance, one_job.random_placement(instance, rng))
        assert placement is not None
        evaluation = (one_job.optra if x % 3 else one_job.equal_share)(instance, placement)
        workload = random_jobs.job_workload(instance)
        allocated = float(sum(evaluation.vcpus))
        metrics = {
            "jct": float(evaluation.jct),
            "energy": float(evaluation.energy),
            "energy_share": float(evaluation.energy) / float(workload.jobs["energy_cap"]),
            "allocated": allocated,
            "utilization": allocated / (10.0 * instance.servers),
            "mean_task_time": float(sum(evaluation.times)) / instance.tasks,
            "servers_used": len(set(placement)),
            "equal_share_jct": float(one_job.equal_share(instance, placement).jct),
        }
        fates = {
            "server": list(placement),
            "cpu": [float(x) for x in evaluation.vcpus],
            "completion": [float(x) for x in evaluation.times],
        }
        yield Run(make_record(workload, placement, evaluation), metrics, fates)


def is_valid(record: ScheduleRecord) -> bool:
    """The rules, task by task and group by group, for schedules without close calls."""
    jobs, cluster = record.workload.jobs, record.workload.cluster
    rows = list(zip(*(getattr(record, name).tolist() for name in COLUMNS), strict=True))
    tasks, servers = len(jobs["load"]), len(cluster["cpu"])
    if [row[0] for row in rows] != list(range(tasks)) or record.truncated:
        return False
    energy = 0.0
    for i, j, start, end, (vcpu,) in rows:
        if j not in range(servers) or start != 0 or not vcpu > 0 or end > record.final_time:
            return False
        leq = jobs["load"][i] / jobs["efficiency"][i, j]
        energy += leq * (jobs["power"][i] if "power" in jobs else 1.0)
        if abs(vcpu * end - leq) > 1e-6 * leq:
            return False
    for group, limit in zip(cluster["groups"], cluster["limit"], strict=True):
        if sum(group[row[1]] * row[4][0] for row in rows) > limit * (1 + 1e-6):
            return False
    return energy <= jobs["energy_cap"] * (1 + 1e-6) and record.final_time == max(row[3] for row in rows)


def slower(record: ScheduleRecord, row: int, factor: float) -> dict[str, Any]:
    """All tasks with fewer vCPU, or more, for as much longer."""
    times = {"end": record.end / factor, "final_time": record.final_time / factor}
    return {"amount": record.amount * factor, **times}


def weighted_groups(record: ScheduleRecord, row: int, factor: float) -> dict[str, Any]:
    """The server of the row is in no group, and the others count otherwise."""
    groups = record.workload.cluster["groups"]
    given = put(groups, (slice(None), record.server[row] % groups.shape[1]), 0.0)
    return section_changed(record, "cluster", groups=given + factor * (groups - given))


def capped(record: ScheduleRecord, row: int, factor: float) -> dict[str, Any]:
    """A cap near the energy that the job takes."""
    jobs = record.workload.jobs
    tasks, servers = jobs["efficiency"].shape
    job, server = record.job % tasks, record.server % servers
    energy = (jobs["load"][job] / jobs["efficiency"][job, server]).sum()
    return section_changed(record, "jobs", energy_cap=np.array(energy * factor))


CHANGES: dict[str, Change] = {
    "slower": slower,
    "limit": lambda record, row, factor: section_changed(
        record, "cluster", limit=record.workload.cluster["limit"] * factor
    ),
    "weight": weighted_groups,
    "cap": capped,
}


def example() -> ScheduleRecord:
    """Two servers of 1 and 9 vCPU; both may give 3 in all. Test vector 1 with a cap of 10."""
    workload = Workload(
        "single-job",
        {"load": np.array([6.0, 3.0]), "efficiency": np.ones((2, 2)), "energy_cap": np.array(10.0)},
        {"cpu": np.array([9.0, 1.0]), "groups": np.array([[1, 1]]), "beta": np.array([0.3])},
    )
    return make_record(workload, (0, 1), one_job.Evaluation((3.0, 3.0), (2.0, 1.0), 3.0, 9.0))
