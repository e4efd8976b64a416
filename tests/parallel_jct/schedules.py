"""Schedules of parallel-jct for the tests: see :mod:`tests.records`."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.papers.shi2017.model import one_job, online
from schedgym.problems.parallel_jct.workload import tables
from schedgym.problems.single_job.topology import cluster_groups
from tests.parallel_jct import random_jobs
from tests.records import COLUMNS, Change, Run, section_changed

RARE: set[str] = set()


def workload_of(instance: online.Workload, seed: int | None = None) -> Workload:
    """The model's workload, with a seed of energy caps; its servers' rows come from ``server_caps``."""
    servers = range(len(instance.capacity))
    caps = len(instance.limits) > len(servers) and all(
        any(limit.servers == (j,) and limit.share == 1 for limit in instance.limits) for j in servers
    )
    limits = instance.limits[len(servers) if caps else 0 :]
    rows = [
        (x, load, row, alpha)
        for x, job in enumerate(instance.jobs)
        for load, row, alpha in zip(job.load, job.efficiency, job.alphas, strict=True)
    ]
    jobs = {"arrival": np.array([float(job.arrival) for job in instance.jobs])}
    if instance.energy_cap_ratio is not None:
        jobs["energy_cap_ratio"] = np.full(len(instance.jobs), float(instance.energy_cap_ratio))
    return Workload(
        "parallel-jct",
        jobs=jobs,
        tasks={
            "job": np.array([row[0] for row in rows]),
            "load": np.array([float(row[1]) for row in rows]),
            "efficiency": np.array([[float(x) for x in row[2]] for row in rows]),
        }
        | ({"power": np.array([float(row[3]) for row in rows])} if instance.jobs[0].power else {}),
        cluster={
            "cpu": np.array([float(x) for x in instance.capacity]),
            "groups": np.array([[float(limit.weight(j)) for j in servers] for limit in limits]),
            "beta": np.array([float(limit.share) for limit in limits]),
            "server_caps": np.array(caps),
        },
        parameters={} if seed is None else {"energy_seed": np.array(seed)},
    )


def instance_of(workload: Workload) -> online.Workload:
    """The model's workload, of equal ratios; its limits by the model's own means where it has them."""
    table = tables(workload)
    cluster = workload.cluster
    if "arity" in cluster:
        limits = one_job.fat_tree(
            int(cluster["arity"]),
            *cluster["beta"].tolist(),
            server_caps=bool(cluster.get("server_caps", True)),
        )
    else:
        matrix = cluster_groups(cluster).matrix.tolist()
        groups, weights = random_jobs.groups_from_matrix(matrix), random_jobs.weights_from_matrix(matrix)
        kinds = ["server" if kind == 0 else "group" for kind in cluster_groups(cluster).kind]
        limits = tuple(map(one_job.Limit, kinds, groups, table.share.tolist(), weights))
    rows = list(zip(table.first_task[:-1], table.first_task[1:], strict=True))
    jobs = tuple(
        online.Job(
            float(arrival),
            tuple(table.load[a:b].tolist()),
            tuple(map(tuple, table.efficiency[a:b].tolist())),
            tuple(table.power[a:b].tolist()),
        )
        for arrival, (a, b) in zip(table.arrival, rows, strict=True)
    )
    ratio = table.energy_cap_ratio[0]
    return online.Workload(
        jobs, tuple(table.cpu.tolist()), limits, None if math.isnan(ratio) else float(ratio)
    )


def toy_optimum(workload: Workload, environment: Mapping[str, Any]) -> float:
    """The best run of a scheduler, by whatever threshold and draws."""
    instance = instance_of(workload)
    ratio = workload.jobs.get("energy_cap_ratio")
    if ratio is not None:  # the model has one for all jobs: here the smallest, the others being granted more
        instance = online.Workload(instance.jobs, instance.capacity, instance.limits, float(ratio.min()))
    reached = []
    for scheduler, most, u in itertools.product(
        ("ontapra", "slf", "llf"), (0.1, 0.3, 0.5, 0.8), (0, 0.5, 0.999)
    ):
        own = {"mar": True, "max_percent": most, "delta_t": 5, "draw": lambda job, number, u=u: u}
        reached.append(float(online.Simulation(instance, scheduler, **own).run().average_jct))
    return min(reached)


def record_of(instance: online.Workload, outcome: online.Outcome) -> ScheduleRecord:
    """The model's schedule: shares that stay the same over several intervals are one row."""
    first = [0, *itertools.accumulate(len(job.load) for job in instance.jobs)]
    rows: list[tuple[float, int, int, float, float, float]] = []
    open_rows: dict[int, list[Any]] = {}

    def close(task: int) -> None:
        server, start, end, base, extra = open_rows.pop(task)
        rows.append((start, task, server, end, base, extra))

    for part in outcome.intervals:
        seen = set()
        for share in part.running:
            task = first[share.job] + share.task
            seen.add(task)
            now = (share.server, float(share.base), float(share.extra))
            if task in open_rows and (open_rows[task][0], *open_rows[task][3:]) != now:
                close(task)
            if task not in open_rows:
                open_rows[task] = [share.server, float(part.begin), 0.0, *now[1:]]
            open_rows[task][2] = float(part.end)
        for task in set(open_rows) - seen:
            close(task)
    for task in list(open_rows):
        close(task)
    table = np.array(sorted(rows)).reshape(-1, 6)
    return ScheduleRecord(
        workload=workload_of(instance),
        job=table[:, 1].astype(np.int64),
        server=table[:, 2].astype(np.int64),
        start=table[:, 0],
        end=table[:, 3],
        amount=table[:, 4:],
        final_time=float(outcome.end),
        truncated=any(x is None for x in outcome.finish),
    )


def draw(job: int, number: int) -> float:
    return random.Random(f"{job}/{number}").random()


def percentile(values: list[float], share: float) -> float:
    return float(np.percentile(values, 100 * share))


def expected_metrics(instance: online.Workload, outcome: online.Outcome) -> dict[str, float]:
    """The metrics' definitions on what the model knows."""
    jobs = instance.jobs
    charged = [float(x) for x in outcome.charged]
    end = float(outcome.end)
    arrival = [float(job.arrival) for job in jobs]
    launched = [i for i in range(len(jobs)) if outcome.launch[i] is not None]
    waiting = [
        max(end - arrival[i], 0.0) if x is None else float(x) - arrival[i]
        for i, x in enumerate(outcome.launch)
    ]
    done = [i for i in range(len(jobs)) if outcome.finish[i] is not None]
    running = [float(outcome.finish[i]) - float(outcome.launch[i]) for i in done]
    last = max([float(outcome.finish[i]) for i in done] + [end] * (len(done) < len(jobs)))
    makespan = max(last - arrival[0], 0.0)
    ideal = sum(float(jobs[i].ideal_energy) for i in launched)
    ratio = 1.1 if instance.energy_cap_ratio is None else float(instance.energy_cap_ratio)
    grants = [i for i in launched if float(jobs[i].least_energy) > ratio * float(jobs[i].ideal_energy)]
    used = sum(float(x) for x in outcome.consumed)
    return {
        "average_jct": float(outcome.average_jct),
        "median_jct": percentile(charged, 0.5),
        "p95_jct": percentile(charged, 0.95),
        "max_jct": max(charged),
        "mean_waiting": sum(waiting) / len(jobs),
        "p95_waiting": percentile(waiting, 0.95),
        "mean_running": sum(running) / len(running) if running else 0.0,
        "makespan": makespan,
        "finished": len(done),
        "launched": len(launched),
        "utilization": used / (float(sum(instance.capacity)) * makespan) if makespan else 0.0,
        "energy": float(outcome.energy),
        "energy_share": float(outcome.energy) / ideal if launched else 0.0,
        "granted": len(grants),
    }


def simulations(
    count: int, seed: int, max_time: float = 1e5
) -> Iterator[tuple[online.Workload, online.Outcome]]:
    """Small workloads under random schedulers, planners and parameters; two in four with DRC."""
    rng = random.Random(seed)
    for x in range(seed, seed + count):
        own = {"dyadic": x % 2 == 0, "fixed_ratio": x % 3 == 0, "weighted": x % 5 < 2, "power": x % 7 < 3}
        instance = random_jobs.random_workload(rng, jobs=6, **own)
        simulation = online.Simulation(
            instance,
            rng.choice(online.SCHEDULERS),
            rng.choice((one_job.tapra_fast, one_job.min_min)),
            drc=x % 4 < 2,
            mar=rng.choice((None, True, False)),
            delta_t=rng.choice((5.0, 10.0)),
            max_percent=rng.choice((0.1, 0.3)),
            draw=draw,
            max_time=max_time,
        )
        yield instance, simulation.run()


def runs(count: int, seed: int) -> Iterator[Run]:
    """One simulation in three is cut off."""
    while count:
        seed += 1
        max_time = (1e5, 1e5, (3.0, 7.5, 20.0)[seed % 9 // 3])[seed % 3]
        ((instance, outcome),) = simulations(1, seed, max_time)
        record = record_of(instance, outcome)
        if record.truncated and max_time == 1e5:  # FCFS: a job failed when the last task ended
            continue
        count -= 1
        columns = {"start": outcome.launch, "completion": outcome.finish, "energy": outcome.committed}
        fates = {
            name: [
                None if value is None or start is None else float(value)
                for value, start in zip(values, outcome.launch, strict=True)
            ]
            for name, values in columns.items()
        }
        yield Run(record, expected_metrics(instance, outcome), fates)


def is_valid(record: ScheduleRecord) -> bool:
    """The rules, task by task and instant by instant, for schedules without close calls."""
    workload = record.workload
    job = workload.tasks["job"].tolist()
    arrival, cpu = workload.jobs["arrival"].tolist(), workload.cluster["cpu"].tolist()
    columns = [getattr(record, name).tolist() for name in COLUMNS]
    rows = list(zip(*columns, strict=True))
    if any(x not in range(len(job)) or j not in range(len(cpu)) for x, j, *_ in rows):
        return False
    if [(row[2], row[0]) for row in rows] != sorted((row[2], row[0]) for row in rows):
        return False
    near = 1e-7
    tasks: dict[int, list[Any]] = {}
    for x, j, start, end, (base, extra) in rows:
        if not (0 <= start <= end <= record.final_time and base > 0 and extra >= 0):
            return False
        if x in tasks and (tasks[x][-1][1], *tasks[x][-1][2:4]) != (start, j, base):
            return False
        tasks.setdefault(x, []).append((start, end, j, base, extra))
    leq = {
        x: workload.tasks["load"][x] / workload.tasks["efficiency"][x, own[0][2]] for x, own in tasks.items()
    }
    for x, own in tasks.items():
        done = sum((base + extra) * (end - start) for start, end, _, base, extra in own)
        if done > leq[x] + near or (
            done < leq[x] - near and not (record.truncated and own[-1][1] == record.final_time)
        ):
            return False
    launches: dict[float, list[int]] = {}
    for i in range(len(arrival)):
        own = [x for x in range(len(job)) if job[x] == i]
        ran = [x for x in own if x in tasks]
        if not ran:
            if not record.truncated:
                return False
            continue
        if len(ran) < len(own) or len({tasks[x][0][0] for x in own}) > 1 or tasks[own[0]][0][0] < arrival[i]:
            return False
        launches.setdefault(tasks[own[0]][0][0], []).append(i)
        alpha = workload.tasks.get("power", np.ones(len(job)))
        load = alpha[own] * workload.tasks["load"][own]
        ratio = workload.jobs.get("energy_cap_ratio", np.full(len(arrival), 1.1))[i]
        least = (load / workload.tasks["efficiency"][own].max(axis=1)).sum()
        if sum(alpha[x] * leq[x] for x in own) > max(ratio * load.sum(), least) + near:
            return False
    drc = any(row[4][1] > 0 for row in rows)
    caps = bool(workload.cluster["server_caps"])
    groups = [
        (row, share) for row, share in zip(workload.cluster["groups"], workload.cluster["beta"], strict=True)
    ]
    if caps:
        groups += [([j == x for j in range(len(cpu))], 1.0) for x in range(len(cpu))]
    for now in {row[2] for row in rows}:
        for j in range(len(cpu)):
            here = [(x, p) for x, own in tasks.items() for p in own if p[2] == j and p[0] <= now < p[1]]
            if caps and sum(p[3] + p[4] for _, p in here) > cpu[j] + near:
                return False
            rest = max(cpu[j] - sum(p[3] for _, p in here), 0.0)
            for x, p in here:
                if drc and abs(p[4] - rest * leq[x] / sum(leq[y] for y, _ in here)) > near:
                    return False
        running = [x for x, own in tasks.items() if own[0][0] < now < own[-1][1]]

        def fits(order: tuple[int, ...], running: list[int] = running) -> bool:
            free = [
                cpu[j] - sum(tasks[x][0][3] for x in running if tasks[x][0][2] == j) for j in range(len(cpu))
            ]
            for i in order:
                own = [tasks[x][0] for x in tasks if job[x] == i]
                for row, share in groups:
                    allowed = share * sum(row[j] * max(free[j], 0.0) for j in range(len(cpu)))
                    if sum(row[p[2]] * p[3] for p in own) > allowed + near:
                        return False
                for p in own:
                    free[p[2]] -= p[3]
            return True

        if not any(fits(order) for order in itertools.permutations(launches.get(now, []))):
            return False
    return record.truncated or record.final_time == max(row[3] for row in rows)


def scaled_cluster(name: str) -> Change:
    """All numbers of a field of the cluster times the factor."""
    return lambda record, row, factor: section_changed(
        record, "cluster", **{name: record.workload.cluster[name] * factor}
    )


def weighted_groups(record: ScheduleRecord, row: int, factor: float) -> dict[str, Any]:
    """The server of the row counts otherwise in all groups."""
    groups = record.workload.cluster["groups"].copy()
    groups[:, record.server[row] % groups.shape[1]] *= factor
    return section_changed(record, "cluster", groups=groups)


def powered(record: ScheduleRecord, row: int, factor: float) -> dict[str, Any]:
    """The task of the row has another power."""
    tasks = record.workload.tasks
    alpha = np.array(tasks.get("power", np.ones(len(tasks["job"]))))
    alpha[record.job[row] % len(alpha)] *= factor
    return section_changed(record, "tasks", power=alpha)


CHANGES: dict[str, Change] = {
    "cpu": scaled_cluster("cpu"),
    "beta": scaled_cluster("beta"),
    "groups": weighted_groups,
    "power": powered,
    "arrival": lambda record, row, factor: section_changed(
        record, "jobs", arrival=record.workload.jobs["arrival"] + factor
    ),
    "ratio": lambda record, row, factor: section_changed(
        record, "jobs", energy_cap_ratio=np.full(len(record.workload.jobs["arrival"]), factor)
    ),
}


def example() -> ScheduleRecord:
    """Two servers of 10 vCPU in a group of which a job may have half; DRC.

    Job 0 (tasks 0 and 1, of 30 and 10) starts at 0 with 4 and 4 base vCPU on server 0, job 1 (task 2, of 60)
    at 2 with 5 base vCPU on server 1, where it has all 10.
    """
    ones = (1.0, 1.0)
    jobs = (online.Job(0.0, (30.0, 10.0), (ones, ones)), online.Job(2.0, (60.0,), ((1.0, 1.0),)))
    limits = (
        one_job.Limit("server", (0,), 1),
        one_job.Limit("server", (1,), 1),
        one_job.Limit("dc", (0, 1), 0.5),
    )
    workload = workload_of(online.Workload(jobs, (10.0, 10.0), limits))
    # extras of tasks 0, 1: 1.5 and 0.5; task 1 ends at 10 / 4.5, then task 0 has 10 vCPU in all
    turn = 10.0 / 4.5
    rest = 30.0 - 5.5 * turn
    return ScheduleRecord(
        workload,
        job=np.array([0, 1, 2, 0]),
        server=np.array([0, 0, 1, 0]),
        start=np.array([0.0, 0.0, 2.0, turn]),
        end=np.array([turn, turn, 8.0, turn + rest / 10.0]),
        amount=np.array([[4.0, 1.5], [4.0, 0.5], [5.0, 5.0], [4.0, 6.0]]),
        final_time=8.0,
        truncated=False,
    )
