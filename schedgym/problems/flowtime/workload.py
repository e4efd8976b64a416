"""Workloads of FlowtimePacking: the schema, the stand-in for the paper's trace, traces, toy instances.

Times are slots, sizes whole cores and GB. A plain job is one task; a MapReduce job has map tasks and, once
all of these have ended, reduce tasks. In arrays a plain job is a job with a map phase of one task.

Source: paper 000, sections II, V and VI; the generator stands in for its ten hours of a Google cluster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import helper, pure_kernel, record_dtype
from schedgym.core.random import GOLDEN, mix, normal_pair, stream, uniform
from schedgym.core.workload import Field, Schema, Workload
from schedgym.errors import InvalidParameter, InvalidWorkload

if TYPE_CHECKING:
    from schedgym.problems.flowtime.problem import FlowtimeParameters
    from schedgym.traces.base import JobTrace, Trace

__all__ = [
    "LAST_SLOT",
    "MOST_CORES",
    "MOST_DECLARED",
    "MOST_MEMORY",
    "MOST_TASKS",
    "SCHEMA",
    "TOYS",
    "Source",
    "Tables",
    "TraceJobs",
    "draw",
    "draw_python",
    "eq27",
    "from_trace",
    "generate",
    "kind_of",
    "make_mapreduce",
    "make_source",
    "make_workload",
    "max_slots",
    "rebuild",
    "shuffle_future",
    "slot_limit",
    "tables",
    "toy",
]

Integers = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Fields = dict[str, npt.NDArray[Any]]

#: latest arrival [slots] and most work of a workload [core-slots], so that clocks are exact in float64
LAST_SLOT = 10**12
#: most cores of a server, and of a job or task
MOST_CORES = 10**6
#: most memory of a server or job [GB]
MOST_MEMORY = 10**6
#: most cores that a job declares, and most work of a workload by what its jobs declare [core-slots]
MOST_DECLARED, MOST_DECLARED_WORK = 10**9, 10**14
#: most tasks of a workload
MOST_TASKS = 10**7

KINDS = ("1d", "2d", "mapreduce")
ONE, TWO, MAPREDUCE = range(3)

# The stand-in, in slots of 10 s and for 3600 of them (project specification, workload "KW")
LONG_SHARE = 0.02  # of the jobs: bounded Pareto, few cores; the others are log-normal
LONG_EXPONENT = 0.8
LONG_LEAST = 100  # slots
LONG_MOST = (11, 12)  # of the horizon, as a fraction: 3300 of 3600
LONG_CORES = (0.7, 0.3)  # of those jobs have 1, 2 cores
SHORT_MEDIAN, SHORT_SIGMA, SHORT_MOST = 3.0, 1.3, 100  # slots
SHORT_CORES = (0.05, 0.1, 0.15, 0.3, 0.4)  # have 1, 2, 4, 8, 16 cores
MOST_DEMAND = 16
LEAST_HORIZON = 12  # slots, of a horizon that follows from the load

# Memory (2D): log-normal around a number of GB per core. Alibaba's pods of 2023 have 3.7 GB per core in the
# median, with a deviation of 0.45 of the logarithm, on machines with 8 GB per core; here servers have 4
MEMORY_MEDIAN, MEMORY_SIGMA = 2.0, 0.5

# MapReduce: of the jobs with two slots or more, this share has a reduce phase, and the map phase takes a
# share of the job's slots that is uniform in this range
REDUCE_SHARE = 0.7
MAP_LENGTH = (0.3, 0.8)
# Latencies: whole numbers from 1 to FARTHEST, but 0 where a map task has one of its copies of the data
REPLICAS, FARTHEST = 3, 5

# random streams; within each one a job has its own
ARRIVALS, SIZES, DEMANDS, MEMORIES, DECLARATIONS, PHASES, LATENCIES, WINDOWS = range(8)

INDEX_BITS = 20  # of a job's number in a sorting key
MOST_JOBS = 1 << INDEX_BITS


# Schema ---------------------------------------------------------------------------------------

PLAIN_FIELDS = ("processing", "cpu")
NOISE_FIELDS = ("declared_cpu", "declared_memory")
PHASE_FIELDS = tuple(f"{z}_{name}" for z in ("map", "reduce") for name in ("tasks", "processing", "cpu"))


def _check(sections: dict[str, Fields], prefix: str) -> None:
    """What must hold between fields: one kind of jobs, all of which can end, and work stays bounded."""
    jobs, tasks = sections["jobs"], sections["tasks"]
    memory, room = jobs.get("memory"), sections["cluster"].get("memory")
    phases = [name for name in PHASE_FIELDS if name in jobs]
    plain = [name for name in (*PLAIN_FIELDS, "memory", *NOISE_FIELDS) if name in jobs]
    if phases and plain:
        raise InvalidWorkload(
            f"{prefix}jobs.{phases[0]}: jobs are plain ones (with {plain[0]}) or MapReduce jobs, not both"
        )
    for name in PHASE_FIELDS if phases else PLAIN_FIELDS:
        if name not in jobs:
            raise InvalidWorkload(f"{prefix}jobs.{name}: missing")
    if tasks and not phases:
        raise InvalidWorkload(f"{prefix}tasks.{next(iter(tasks))}: plain jobs have no tasks")
    if phases and room is not None:
        raise InvalidWorkload(f"{prefix}cluster.memory: MapReduce jobs have no memory demand")
    if memory is None and "declared_memory" in jobs:
        raise InvalidWorkload(f"{prefix}jobs.memory: missing, but jobs declare memory")
    if (memory is None) != (room is None) and not phases:
        where, has = ("jobs", "servers") if memory is None else ("cluster", "jobs")
        raise InvalidWorkload(f"{prefix}{where}.memory: missing, but {has} have memory")
    for name in ("memory", "declared_memory"):
        if room is not None and name in jobs:
            _refuse(jobs[name] > room.max(), prefix, name, jobs, f"no server has more than {room.max()} GB")
    if phases:
        for name, unit in (("reduce_processing", "slots"), ("reduce_cpu", "cores")):
            empty = (jobs["reduce_tasks"] > 0) & (jobs[name] < 1)
            _refuse(empty, prefix, name, jobs, f"must be >= 1 ({unit}) where there are reduce tasks")
        count = int((jobs["map_tasks"] + jobs["reduce_tasks"]).sum())
        if count > MOST_TASKS:
            raise InvalidWorkload(f"{prefix}jobs.map_tasks: at most {MOST_TASKS:g} tasks in all, got {count}")
        _check_latencies(jobs, tasks, prefix)
        parts = [[jobs[name] for name in PHASE_FIELDS[:3]], [jobs[name] for name in PHASE_FIELDS[3:]]]
    else:
        parts = [[jobs["processing"], jobs["cpu"]]]
    _bound(parts, LAST_SLOT, f"{prefix}jobs: work")
    if "declared_cpu" in jobs:
        said = [[jobs["processing"], jobs["declared_cpu"]]]
        _bound(said, MOST_DECLARED_WORK, f"{prefix}jobs: declared work")


def _refuse(bad: npt.NDArray[np.bool_], prefix: str, name: str, jobs: Fields, what: str) -> None:
    if bad.any():
        i = int(np.argmax(bad))
        raise InvalidWorkload(f"{prefix}jobs.{name}[{i}]: {what}, got {jobs[name][i]}")


def _bound(parts: list[list[npt.NDArray[Any]]], most: int, what: str) -> None:
    work = sum(float(np.prod([factor.astype(np.float64) for factor in part], axis=0).sum()) for part in parts)
    if work > most:
        raise InvalidWorkload(f"{what} in all must be <= {most:g} core-slots, got {work:g}")


def _check_latencies(jobs: Fields, tasks: Fields, prefix: str) -> None:
    """Latencies have a row per task, in the order of the jobs."""
    if not tasks:
        return
    for name in ("job", "latency"):
        if name not in tasks:
            raise InvalidWorkload(f"{prefix}tasks.{name}: missing")
    expected = np.repeat(np.arange(len(jobs["arrival"])), jobs["map_tasks"] + jobs["reduce_tasks"])
    given = tasks["job"]
    common = min(len(expected), len(given))
    wrong = expected[:common] != given[:common]
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InvalidWorkload(
            f"{prefix}tasks.job[{i}]: must be {expected[i]} (tasks stand in the order of their jobs, map "
            f"before reduce tasks), got {given[i]}"
        )
    if len(expected) != len(given):
        raise InvalidWorkload(f"{prefix}tasks.job: the jobs have {len(expected)} tasks, got {len(given)}")


def _job(name: str, unit: str, minimum: int, maximum: int, *, optional: bool = True) -> Field:
    return Field(name, unit, ("job",), kind="int", minimum=minimum, maximum=maximum, optional=optional)


SCHEMA = Schema(
    problem="flowtime",
    jobs=(
        Field("arrival", "slots", ("job",), kind="int", maximum=LAST_SLOT, ascending=True),
        _job("processing", "slots", 1, LAST_SLOT),
        _job("cpu", "cores", 1, MOST_CORES),
        _job("memory", "GB", 0, MOST_MEMORY),
        _job("declared_cpu", "cores", 1, MOST_DECLARED),
        _job("declared_memory", "GB", 0, MOST_MEMORY),
        _job("map_tasks", "tasks", 1, MOST_TASKS),
        _job("map_processing", "slots", 1, LAST_SLOT),
        _job("map_cpu", "cores", 1, MOST_CORES),
        _job("reduce_tasks", "tasks", 0, MOST_TASKS),
        _job("reduce_processing", "slots", 0, LAST_SLOT),
        _job("reduce_cpu", "cores", 0, MOST_CORES),
    ),
    tasks=(
        Field("job", "job", ("task",), kind="int", optional=True),
        Field("latency", "of a task at full rate", ("task", "server"), optional=True),
    ),
    cluster=(
        Field("cpu", "cores", ("server",), kind="int", minimum=1, maximum=MOST_CORES),
        Field("memory", "GB", ("server",), kind="int", minimum=1, maximum=MOST_MEMORY, optional=True),
    ),
    check=_check,
)


def kind_of(workload: Workload) -> str:
    """Which jobs a workload has: "1d", "2d" or "mapreduce"."""
    if "map_tasks" in workload.jobs:
        return "mapreduce"
    return "2d" if "memory" in workload.jobs else "1d"


def make_workload(
    arrival: npt.ArrayLike,
    processing: npt.ArrayLike,
    cpu: npt.ArrayLike,
    servers: npt.ArrayLike,
    *,
    memory: npt.ArrayLike | None = None,
    server_memory: npt.ArrayLike | None = None,
    declared_cpu: npt.ArrayLike | None = None,
    declared_memory: npt.ArrayLike | None = None,
) -> Workload:
    """A checked workload of plain jobs.

    Args:
        arrival: of each job [slots], not decreasing; [N].
        processing: of each job with all its cores [slots]; [N].
        cpu: cores that each job can use; [N].
        servers: cores of each server; [M].
        memory: of each job [GB], in 2D; [N].
        server_memory: of each server [GB], in 2D; [M].
        declared_cpu: cores that each job declares, if not the true ones; [N].
        declared_memory: memory that each job declares [GB], and so reserves, if not the true one; [N].

    Raises:
        InvalidWorkload: naming the field and the first bad index.
    """
    jobs = {"arrival": arrival, "processing": processing, "cpu": cpu, "memory": memory}
    jobs |= {"declared_cpu": declared_cpu, "declared_memory": declared_memory}
    cluster = {"cpu": servers, "memory": server_memory}
    return _parse(jobs, cluster)


def make_mapreduce(
    arrival: npt.ArrayLike,
    tasks: npt.ArrayLike,
    processing: npt.ArrayLike,
    cpu: npt.ArrayLike,
    servers: npt.ArrayLike,
    *,
    latency: npt.ArrayLike | None = None,
) -> Workload:
    """A checked workload of MapReduce jobs.

    Args:
        arrival: of each job [slots], not decreasing; [N].
        tasks: of each job, map and reduce (which may be 0); [N, 2].
        processing: of a task with all its cores, map and reduce [slots]; [N, 2].
        cpu: cores that a task can use, map and reduce; [N, 2].
        servers: cores of each server; [M].
        latency: of each task on each server (Eq. 45), tasks in the order of their jobs, map before reduce
            tasks; [Q, M].

    Raises:
        InvalidWorkload: naming the field and the first bad index.
    """
    jobs: dict[str, Any] = {"arrival": arrival}
    for name, values in (("tasks", tasks), ("processing", processing), ("cpu", cpu)):
        pairs = np.asarray(values)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise InvalidWorkload(f"{name}: must be pairs (map, reduce), got shape {pairs.shape}")
        jobs |= {f"map_{name}": pairs[:, 0], f"reduce_{name}": pairs[:, 1]}
    plain = _parse(jobs, {"cpu": servers})
    if latency is None:
        return plain
    counts = plain.jobs["map_tasks"] + plain.jobs["reduce_tasks"]
    rows = {"job": np.repeat(np.arange(len(counts)), counts), "latency": latency}
    return SCHEMA.parse({"jobs": plain.jobs, "tasks": rows, "cluster": plain.cluster})


def _parse(jobs: dict[str, Any], cluster: dict[str, Any]) -> Workload:
    sections = {"jobs": jobs, "cluster": cluster}
    return SCHEMA.parse(
        {s: {name: value for name, value in f.items() if value is not None} for s, f in sections.items()}
    )


# Tables for kernels ---------------------------------------------------------------------------


class Tables(NamedTuple):
    """A workload as arrays for kernels. N jobs, Q tasks, M servers; phase 0 = map, 1 = reduce.

    A phase without tasks has processing 0 and cpu 0. Without memory (kind not "2d") all memory is 0,
    else every server has some. Tasks are in the order of their jobs, map before reduce tasks.
    """

    arrival: Integers  # [N] slots
    tasks: Integers  # [N, 2]
    processing: Integers  # [N, 2] slots, of a task
    cpu: Integers  # [N, 2] cores, of a task
    memory: Integers  # [N] GB
    declared_cpu: Integers  # [N] cores, of phase 0
    declared_memory: Integers  # [N] GB
    first_task: Indices  # [N + 1]
    latency: Floats  # [Q, M], or [0, M]
    server_cpu: Integers  # [M] cores
    server_memory: Integers  # [M] GB
    kind: str  # "1d", "2d" or "mapreduce"


def tables(workload: Workload) -> Tables:
    """A checked workload as arrays for kernels."""
    jobs, cluster = workload.jobs, workload.cluster
    kind = kind_of(workload)
    count, zeros = len(jobs["arrival"]), np.zeros(len(jobs["arrival"]), dtype=np.int64)

    def phases(name: str) -> Integers:
        return np.column_stack([jobs[f"map_{name}"], jobs[f"reduce_{name}"]])

    if kind == "mapreduce":
        tasks, processing, cpu = phases("tasks"), phases("processing"), phases("cpu")
        processing[tasks == 0] = 0
        cpu[tasks == 0] = 0
    else:
        tasks = np.column_stack([zeros + 1, zeros])
        processing = np.column_stack([jobs["processing"], zeros])
        cpu = np.column_stack([jobs["cpu"], zeros])
    memory = jobs.get("memory", zeros)
    servers: Integers = cluster["cpu"]
    first = np.zeros(count + 1, dtype=np.int32)
    first[1:] = np.cumsum(tasks.sum(axis=1))
    return Tables(
        arrival=jobs["arrival"],
        tasks=tasks,
        processing=processing,
        cpu=cpu,
        memory=memory,
        declared_cpu=jobs.get("declared_cpu", np.ascontiguousarray(cpu[:, 0])),
        declared_memory=jobs.get("declared_memory", memory),
        first_task=first,
        latency=workload.tasks.get("latency", np.zeros((0, len(servers)))),
        server_cpu=servers,
        server_memory=cluster.get("memory", np.zeros_like(servers)),
        kind=kind,
    )


def rebuild(instance: Tables, *, declared: bool = False) -> Workload:
    """The workload of one instance's arrays, of which all but ``arrival`` may be longer than it is.

    Args:
        instance: the arrays; latencies without a row are none.
        declared: whether the workload says what its jobs declare; else they declare the truth.
    """
    n = len(instance.arrival)
    if instance.kind == "mapreduce":
        count = int(instance.first_task[n])
        return make_mapreduce(
            instance.arrival,
            instance.tasks[:n],
            instance.processing[:n],
            instance.cpu[:n],
            instance.server_cpu,
            latency=instance.latency[:count] if len(instance.latency) else None,
        )
    two = instance.kind == "2d"
    return make_workload(
        instance.arrival,
        instance.processing[:n, 0],
        instance.cpu[:n, 0],
        instance.server_cpu,
        memory=instance.memory[:n] if two else None,
        server_memory=instance.server_memory if two else None,
        declared_cpu=instance.declared_cpu[:n] if declared else None,
        declared_memory=instance.declared_memory[:n] if declared and two else None,
    )


# Eq. 27 and the end of an episode ---------------------------------------------------------------


@pure_kernel
def eq27_limit(
    b: int,
    jobs: int,
    declared: bool,
    arrival: Integers,
    tasks: Integers,
    processing: Integers,
    cpu: Integers,
    declared_cpu: Integers,
    server_cpu: Integers,
) -> float:
    """Gamma of Eq. 27 over the first ``jobs`` jobs of environment b; see :func:`eq27`. Arrays as in Jobs."""
    work = 0
    last = 0
    for j in range(jobs):
        length = processing[b, j, 0] + processing[b, j, 1]
        last = max(last, arrival[b, j] + 2 * length, 2 * arrival[b, j])
        if declared and tasks[b, j, 0] == 1 and tasks[b, j, 1] == 0:
            work += processing[b, j, 0] * declared_cpu[b, j]
        else:
            for z in range(2):
                work += tasks[b, j, z] * processing[b, j, z] * cpu[b, j, z]
    total = 0
    for i in range(server_cpu.shape[1]):
        total += server_cpu[b, i]
    return max(float(last), 4.0 * float(work) / float(total))


@pure_kernel
def slot_limit(
    b: int,
    jobs: int,
    gamma: float,
    arrival: Integers,
    tasks: Integers,
    processing: Integers,
    cpu: Integers,
    memory: Integers,
    server_cpu: Integers,
    server_memory: Integers,
) -> int:
    """Slots after which environment b's episode is truncated; see :func:`max_slots`. Arrays as in Jobs."""
    longest = eq27_limit(b, jobs, False, arrival, tasks, processing, cpu, memory, server_cpu)
    work = 0
    for j in range(jobs):
        work += processing[b, j, 0] * memory[b, j]
    total = 0
    for i in range(server_memory.shape[1]):
        total += server_memory[b, i]
    if total > 0:
        longest = max(longest, 4.0 * float(work) / float(total))
    return int(math.ceil(3.0 * max(longest, gamma)))


def eq27(instance: Tables, *, declared: bool = False) -> float:
    """Gamma of Eq. 27 over the whole workload: max(a + 2p, 2a, 4 sum(p d) / sum C) [slots].

    p of a MapReduce job is the sum over its phases, p d its work (the paper leaves p undefined there).

    Args:
        instance: the workload.
        declared: take what the jobs declare for d.
    """
    names = ("arrival", "tasks", "processing", "cpu", "declared_cpu", "server_cpu")
    arrays = [getattr(instance, name)[np.newaxis] for name in names]
    return float(eq27_limit(0, len(instance.arrival), declared, *arrays))


def max_slots(instance: Tables, gamma: float = 4000.0) -> int:
    """When an episode is truncated: 3 max(Eq. 27, gamma, in 2D 4 sum(p m) / sum M) slots, rounded up."""
    names = ("arrival", "tasks", "processing", "cpu", "memory", "server_cpu", "server_memory")
    arrays = [getattr(instance, name)[np.newaxis] for name in names]
    return int(slot_limit(0, len(instance.arrival), gamma, *arrays))


# Generator ------------------------------------------------------------------------------------

#: where episodes come from, for the compiled draw
SOURCE = record_dtype(
    ("windows", np.int64),  # of a trace; 0: synthetic
    ("jobs", np.int64),  # of an episode
    ("kind", np.int64),
    ("horizon", np.int64),  # slots; synthetic only, as are the next three
    ("long_least", np.float64),
    ("long_most", np.float64),
    ("short_most", np.float64),
    ("cores", np.int64),  # of all servers
    ("memory", np.int64),  # of the largest server
    ("declared", np.int64),  # whether the jobs mis-declare, and
    ("sigma", np.float64),  # by how much
    ("latency", np.int64),  # whether tasks have latencies
    ("capacity", np.float64),  # trace: cores in use on average; 0: keep its gaps, with
    ("slot_seconds", np.float64),
)


class TraceJobs(NamedTuple):
    """Jobs of a trace in this problem's units, except for their arrivals."""

    arrival: Floats  # [J] s, not decreasing
    processing: Integers  # [J] slots
    cpu: Integers  # [J] cores
    memory: Integers  # [J] GB; 0 in 1D


class Source:
    """Where an environment's episodes come from: the synthetic generator, or windows of a trace.

    The generator draws the specification's stand-in "KW" at any scale. A share of 2% of the jobs is long:
    bounded Pareto (exponent 0.8) from min(100, U / 3) to U slots, U = 11/12 of the horizon (100 to 3300 of
    3600), on 1 or 2 cores. The others are log-normal (median 3, sigma 1.3), at most min(100, U) slots, on 1
    to 16 cores. Both are rounded to slots, at least one; no job asks for more cores than there are. Arrivals
    are uniform over the horizon, drawn again until the job could end within it.

    In 2D memory is log-normal around 2 GB per core of the job, in whole GB, and fits the largest server.
    MapReduce jobs are the same jobs cut into phases: each phase uses the job's cores, in tasks of 1, 2 or 4
    of them (a reduce task at least as many as a map task); its slots are shared out among map and reduce
    tasks; 30% of the jobs, and those of a single slot, only map. So length, work and load stay.

    Attributes:
        kind: "1d", "2d" or "mapreduce".
        jobs: number of jobs N of an episode.
        declared: whether jobs declare other demands than the true ones.
        server_cpu: cores of each server; int64 [M].
        server_memory: of each server [GB], 0 except in 2D; int64 [M].
        trace: the trace's jobs, or empty arrays.
        constants: SOURCE record [1].
        scratch: work space of :func:`draw`; int64 [3, N].
    """

    def __init__(
        self,
        kind: str,
        jobs: int | str,
        servers: Sequence[int],
        *,
        memory_per_core: float = 4.0,
        load: float | None = 0.95,
        horizon: int | None = None,
        variance: float | None = None,
        slot_seconds: float = 10.0,
        trace: TraceJobs | None = None,
        latency: bool = False,
    ) -> None:
        """Check and prepare.

        Args:
            kind: "1d", "2d" or "mapreduce".
            jobs: number of jobs of an episode; "all" of a trace.
            servers: cores of each server.
            memory_per_core: of a server [GB], in 2D; a server's memory is rounded down, at least 1 GB.
            load: the work over all core-slots of the horizon: the expected one of the generator, whose
                horizon follows (at least 12 slots); of a trace the exact one of each window, whose gaps are
                scaled to it. None keeps a trace's gaps.
            horizon: slots in which jobs arrive and could end, instead of the one that follows from load.
            variance: of the relative error of what jobs declare; None: they declare the truth.
            slot_seconds: length of a slot of a trace [s].
            trace: jobs to take consecutive windows of.
            latency: whether MapReduce tasks have latencies: 1 to 5 per server, but 0 on up to three servers
                that hold the data of a map task.

        Raises:
            InvalidParameter: when these do not go together.
        """
        if kind == "mapreduce" and (trace is not None or variance is not None):
            what = "trace: has" if trace is not None else "estimation: is defined for"
            raise InvalidParameter(f"{what} plain jobs only, not for kind 'mapreduce'")
        if isinstance(jobs, str):
            if trace is None:
                raise InvalidParameter(f"jobs: {jobs!r} needs a trace")
            jobs = len(trace.arrival)
        windows = 0 if trace is None else len(trace.arrival) // jobs
        if trace is not None and windows == 0:
            raise InvalidParameter(
                f"jobs: a window of {jobs} is longer than the trace, which has {len(trace.arrival)} jobs"
            )
        if trace is None and jobs >= MOST_JOBS:
            raise InvalidParameter(f"jobs: must be < {MOST_JOBS}, got {jobs}")
        self.kind, self.jobs, self.declared = kind, jobs, variance is not None
        self.server_cpu, self.server_memory = make_servers(servers, memory_per_core if kind == "2d" else None)
        cores = int(self.server_cpu.sum())
        none = np.zeros(0, dtype=np.int64)
        self.trace = trace or TraceJobs(np.zeros(0), none, none, none)
        self.constants = np.zeros(1, dtype=SOURCE)
        capacity = slots = long_least = long_most = 0.0
        if trace is None:
            if horizon is None:
                if load is None:
                    raise InvalidParameter("load: 'none' needs a trace")
                horizon = horizon_of(jobs, cores, load)
            slots = horizon
            long_least, long_most = long_range(horizon)
        else:
            capacity = (load or 0.0) * cores
            self._check_windows(windows, capacity, slot_seconds)
        self.constants[0] = (
            windows,
            jobs,
            KINDS.index(kind),
            slots,
            long_least,
            long_most,
            min(SHORT_MOST, long_most),
            cores,
            self.server_memory.max(),
            variance is not None,
            math.sqrt(variance or 0.0),
            latency and kind == "mapreduce",
            capacity,
            slot_seconds,
        )
        self.scratch = np.zeros((3, 0 if windows else jobs), dtype=np.int64)

    def _check_windows(self, windows: int, capacity: float, slot_seconds: float) -> None:
        """Refuse windows whose work or clock would pass LAST_SLOT."""
        count = windows * self.jobs
        volume = self.trace.processing[:count].astype(np.float64) * self.trace.cpu[:count]
        work = volume.reshape(windows, -1).sum(axis=1).max()
        times = self.trace.arrival[:count].reshape(windows, -1)
        last = work / capacity if capacity else (times[:, -1] - times[:, 0]).max() / slot_seconds
        if work > LAST_SLOT:
            raise InvalidParameter(
                f"trace: a window of {self.jobs} jobs has {work:g} core-slots of work, more than "
                f"{LAST_SLOT:g}: take longer slots or fewer jobs"
            )
        if last > LAST_SLOT:
            raise InvalidParameter(f"trace: a window of {self.jobs} jobs takes {last:g} slots to arrive")

    @property
    def windows(self) -> int:
        """Number of whole windows of the trace; 0 for the synthetic generator."""
        return int(self.constants["windows"][0])

    @property
    def horizon(self) -> int:
        """Slots in which the generated jobs arrive and could end; 0 for a trace."""
        return int(self.constants["horizon"][0])

    @property
    def has_latency(self) -> bool:
        """Whether tasks have latencies."""
        return bool(self.constants["latency"][0])

    @property
    def phase_tasks(self) -> int:
        """Most tasks that a phase of a job can have."""
        return min(MOST_DEMAND, int(self.server_cpu.sum())) if self.kind == "mapreduce" else 1

    @property
    def room(self) -> int:
        """Tasks that no episode exceeds."""
        return self.jobs * (2 * self.phase_tasks if self.kind == "mapreduce" else 1)


def make_servers(servers: Sequence[int], memory_per_core: float | None) -> tuple[Integers, Integers]:
    """Cores and memory [GB] of each server, whose memory is 0 if there is none per core; both [M].

    Raises:
        InvalidParameter: when a server is too large.
    """
    cpu = np.array(servers, dtype=np.int64)
    if len(cpu) == 0 or cpu.min() < 1 or cpu.max() > MOST_CORES:
        raise InvalidParameter(f"servers: must have 1 to {MOST_CORES} cores each, got {list(servers)}")
    if memory_per_core is None:
        return cpu, np.zeros_like(cpu)
    most = float(cpu.max()) * memory_per_core
    if most > MOST_MEMORY:
        raise InvalidParameter(f"memory_per_core: a server would have {most:g} GB, more than {MOST_MEMORY:g}")
    return cpu, np.maximum(np.floor(cpu * memory_per_core), 1.0).astype(np.int64)


def long_range(horizon: int) -> tuple[float, float]:
    """Least and most processing of long jobs [slots]."""
    most = max(1, LONG_MOST[0] * horizon // LONG_MOST[1])
    return float(min(LONG_LEAST, max(1, most // 3))), float(most)


def mean_work(horizon: int, cores: int) -> float:
    """Expected work of a generated job [core-slots]; of long jobs before they are rounded to slots."""
    least, most = long_range(horizon)
    length = most
    if least < most:  # mean of a bounded Pareto
        a, ratio = LONG_EXPONENT, least / most
        length = a / (1.0 - a) * most * (ratio**a - ratio) / (1.0 - ratio**a)
    short = 1.0
    for q in range(1, int(min(SHORT_MOST, most))):  # the chance of more than q slots
        short += 0.5 * math.erfc(math.log((q + 0.5) / SHORT_MEDIAN) / SHORT_SIGMA / math.sqrt(2.0))
    work = 0.0
    for share, slots, demands in (
        (LONG_SHARE, length, LONG_CORES),
        (1.0 - LONG_SHARE, short, SHORT_CORES),
    ):
        work += share * slots * sum(weight * min(1 << e, cores) for e, weight in enumerate(demands))
    return work


def horizon_of(jobs: int, cores: int, load: float) -> int:
    """The longest horizon [slots] that the expected work of so many jobs fills with ``load``."""
    low, high = LEAST_HORIZON, LAST_SLOT
    while low < high:  # the work that a slot more brings falls with the horizon
        middle = (low + high + 1) // 2
        if jobs * mean_work(middle, cores) >= load * cores * middle:
            low = middle
        else:
            high = middle - 1
    return low


def make_source(parameters: FlowtimeParameters) -> Source:
    """The source that an environment's parameters name; reads the trace's files, if any."""
    from schedgym.problems.flowtime.problem import parse_servers

    servers = parse_servers(parameters.servers)
    trace = None
    if parameters.trace is not None:
        from schedgym.traces import read_trace

        two = parameters.kind == "2d"
        sizes = make_servers(servers, parameters.memory_per_core if two else None)
        found = read_trace(parameters.trace, nodes=parameters.nodes)
        scaled = parameters.nodes is not None
        trace = from_trace(found, *sizes, parameters.slot_seconds, two_d=two, scaled=scaled)
    return Source(
        parameters.kind,
        parameters.jobs,
        servers,
        memory_per_core=parameters.memory_per_core,
        load=parameters.load,
        horizon=parameters.horizon,
        variance=None if parameters.estimation == "none" else parameters.variance,
        slot_seconds=parameters.slot_seconds,
        trace=trace,
    )


def from_trace(
    trace: Trace | JobTrace,
    server_cpu: Integers,
    server_memory: Integers,
    slot_seconds: float,
    *,
    two_d: bool = False,
    scaled: bool = False,
) -> TraceJobs:
    """Jobs of a trace's tasks: durations in slots, demands in whole cores and GB, all rounded up.

    A core of the trace is a core here, a GiB a GB. But shares of the largest machine, and with ``scaled`` all
    sizes, are scaled so that the trace's largest machine is the largest server, per resource. A job has one
    slot and one core at least; it may ask for more cores than there are, and then takes longer.

    Args:
        trace: with duration [s], cores and (2D) memory of each task.
        server_cpu: cores of each server; [M].
        server_memory: of each server [GB]; [M].
        slot_seconds: length of a slot [s].
        two_d: whether jobs have memory.
        scaled: whether to scale by the trace's machines.

    Raises:
        InvalidParameter: when the trace has jobs by their bytes instead of tasks, or in 2D no memory.
        InvalidWorkload: when a job asks for more cores than MOST_CORES, or more memory than any server has.
    """
    from schedgym.traces.base import Trace

    if not isinstance(trace, Trace):
        raise InvalidParameter(
            f"trace: the {trace.name} trace has jobs by their bytes; this problem needs tasks with "
            "processors and duration"
        )
    if two_d and not trace.memory.any():
        raise InvalidParameter(f"trace: the {trace.name} trace tells no memory, which kind '2d' needs")
    shares = trace.unit.startswith("share")

    def whole(sizes: Floats, machines: Floats, servers: Integers) -> Floats:
        largest = machines.max(initial=0.0) if scaled else 0.0
        if largest == 0.0 and not shares:
            return _round_up(sizes)
        return _round_up(sizes * float(servers.max()) / (largest or 1.0))

    processing = np.maximum(_round_up(trace.duration / slot_seconds), 1.0)
    cpu = np.maximum(whole(trace.cores, trace.machine_cores, server_cpu), 1.0)
    memory = np.zeros_like(cpu)
    if two_d:
        memory = whole(trace.memory, trace.machine_memory, server_memory)
    for values, most, what in (
        (processing, LAST_SLOT, "slots, but the most are {}"),
        (cpu, MOST_CORES, "cores, but the most are {}"),
        (memory, server_memory.max(), "GB, but the largest server has {}"),
    ):
        beyond = values > most
        if beyond.any():
            i = int(np.argmax(beyond))
            raise InvalidWorkload(f"{trace.name}: task [{i}] takes {values[i]:g} " + what.format(most))
    return TraceJobs(
        np.ascontiguousarray(trace.arrival),
        processing.astype(np.int64),
        cpu.astype(np.int64),
        memory.astype(np.int64),
    )


def _round_up(values: Floats) -> Floats:
    """Whole numbers, to the accuracy of floats: 0.07 of 100 is 7."""
    return np.ceil(values * (1.0 - 1e-12))


def generate(seed: int, episode: int, source: Source) -> Workload:
    """The workload that an environment reset with ``seed`` meets in its ``episode`` (counted from 0)."""
    from schedgym.core.random import root_seed

    n, servers = source.jobs, len(source.server_cpu)

    def i8(*shape: int) -> Integers:
        return np.zeros((1, *shape), dtype=np.int64)

    arrays = Tables(
        arrival=i8(n),
        tasks=i8(n, 2),
        processing=i8(n, 2),
        cpu=i8(n, 2),
        memory=i8(n),
        declared_cpu=i8(n),
        declared_memory=i8(n),
        first_task=np.zeros((1, n + 1), dtype=np.int32),
        latency=np.zeros((1, source.room if source.has_latency else 0, servers)),
        server_cpu=i8(servers),
        server_memory=i8(servers),
        kind=source.kind,
    )
    draw_python(np.ones(1, dtype=bool), np.array([root_seed(seed)]), np.array([episode]), source, arrays)
    own = {name: getattr(arrays, name)[0] for name in Tables._fields if name != "kind"}
    return rebuild(arrays._replace(**own), declared=source.declared)


def draw_python(
    mask: npt.NDArray[np.bool_],
    seeds: npt.NDArray[np.uint64],
    episodes: Integers,
    source: Source,
    arrays: Any,
) -> int:
    """:func:`draw`, called from Python (uncompiled, its modular arithmetic would warn of overflow).

    ``arrays`` has the arrays that are written as its attributes, e.g. :class:`Tables` with an axis in front.
    """
    with np.errstate(over="ignore"):
        return int(
            draw(
                mask,
                seeds,
                episodes,
                source.constants,
                source.server_cpu,
                source.server_memory,
                *source.trace,
                source.scratch,
                arrays.arrival,
                arrays.tasks,
                arrays.processing,
                arrays.cpu,
                arrays.memory,
                arrays.declared_cpu,
                arrays.declared_memory,
                arrays.first_task,
                arrays.latency,
                arrays.server_cpu,
                arrays.server_memory,
            )
        )


@helper
def substream(state: np.uint64, job: int) -> np.uint64:
    """State of a job's own stream: draws for one job shift nothing for the others."""
    return mix(state + GOLDEN * np.uint64(job + 1))


@helper
def nearest(value: float) -> int:
    """The nearest whole number, but 1 at least."""
    return max(1, int(math.floor(value + 0.5)))


@helper
def draw_long(state: np.uint64, least: float, most: float) -> tuple[np.uint64, int]:
    """The next state and a bounded Pareto number of slots."""
    state, u = uniform(state)
    tail = math.exp(LONG_EXPONENT * math.log(least / most))
    return state, nearest(min(least * math.exp(-math.log1p(-u * (1.0 - tail)) / LONG_EXPONENT), most))


@helper
def draw_cores(state: np.uint64, long: bool) -> tuple[np.uint64, int]:
    """The next state and the cores of a long job, or another one."""
    state, u = uniform(state)
    exponent = 0
    if long:
        for weight in LONG_CORES[:-1]:
            u -= weight
            exponent += u >= 0.0
    else:
        for weight in SHORT_CORES[:-1]:
            u -= weight
            exponent += u >= 0.0
    return state, 1 << exponent


@helper
def sort_keys(scratch: Any, count: int) -> None:
    """Sort scratch[0, :count] in place, ascending (heapsort)."""
    for start in range(count // 2 - 1, -1, -1):
        sift(scratch, start, count)
    for end in range(count - 1, 0, -1):
        scratch[0, 0], scratch[0, end] = scratch[0, end], scratch[0, 0]
        sift(scratch, 0, end)


@helper
def sift(scratch: Any, root: int, count: int) -> None:
    """Let a key of a heap sink to its place."""
    key = scratch[0, root]
    child = 2 * root + 1
    while child < count:
        if child + 1 < count and scratch[0, child] < scratch[0, child + 1]:
            child += 1
        if scratch[0, child] <= key:
            break
        scratch[0, root] = scratch[0, child]
        root = child
        child = 2 * root + 1
    scratch[0, root] = key


@helper
def draw_latencies(
    seed: np.uint64, episode: int, b: int, j: int, tasks: Any, first_task: Any, latency: Any
) -> None:
    """Latencies of the tasks of job j."""
    servers = latency.shape[2]
    first = first_task[b, j]
    state = substream(stream(seed, episode, LATENCIES), j)
    for q in range(tasks[b, j, 0] + tasks[b, j, 1]):
        for i in range(servers):
            state, u = uniform(state)
            latency[b, first + q, i] = 1.0 + math.floor(u * FARTHEST)
        for _ in range(REPLICAS):
            state, u = uniform(state)
            if q < tasks[b, j, 0]:
                latency[b, first + q, int(u * servers)] = 0.0


@helper
def cut_into_phases(
    seed: np.uint64, episode: int, i: int, b: int, j: int, tasks: Any, processing: Any, cpu: Any
) -> None:
    """Make a MapReduce job of the plain job j, whose draws are those of number i."""
    slots = processing[b, j, 0]
    cores = cpu[b, j, 0]
    widths = 1 + (cores % 2 == 0) + (cores % 4 == 0)  # powers of 2 that divide the cores, up to 4
    state = substream(stream(seed, episode, PHASES), i)
    state, u = uniform(state)
    width = int(u * widths)
    state, u = uniform(state)
    wider = width + int(u * (widths - width))
    state, u = uniform(state)
    state, share = uniform(state)
    tasks[b, j, 0] = cores >> width
    cpu[b, j, 0] = 1 << width
    if slots > 1 and u < REDUCE_SHARE:
        share = MAP_LENGTH[0] + share * (MAP_LENGTH[1] - MAP_LENGTH[0])
        processing[b, j, 0] = min(nearest(slots * share), slots - 1)
        processing[b, j, 1] = slots - processing[b, j, 0]
        tasks[b, j, 1] = cores >> wider
        cpu[b, j, 1] = 1 << wider


@helper
def draw_synthetic(
    seed: np.uint64,
    episode: int,
    source: Any,
    scratch: Any,
    b: int,
    arrival: Any,
    processing: Any,
    cpu: Any,
) -> None:
    """Jobs of the stand-in, in order of arrival; scratch[0] holds their numbers in the order of the draws."""
    arrivals = stream(seed, episode, ARRIVALS)
    sizes = stream(seed, episode, SIZES)
    demands = stream(seed, episode, DEMANDS)
    horizon = source.horizon
    for i in range(source.jobs):
        state, u = uniform(substream(sizes, i))
        long = u < LONG_SHARE
        if long:
            state, slots = draw_long(state, source.long_least, source.long_most)
        else:
            state, z, _ = normal_pair(state)
            slots = nearest(min(SHORT_MEDIAN * math.exp(SHORT_SIGMA * z), source.short_most))
        state, cores = draw_cores(substream(demands, i), long)
        state = substream(arrivals, i)
        slot = horizon
        while slot + slots > horizon:
            state, u = uniform(state)
            slot = int(u * horizon)
        scratch[0, i] = (slot << INDEX_BITS) + i
        scratch[1, i] = slots
        scratch[2, i] = min(cores, source.cores)
    sort_keys(scratch, source.jobs)
    for j in range(source.jobs):
        key = scratch[0, j]
        i = key & (MOST_JOBS - 1)
        scratch[0, j] = i
        arrival[b, j] = key >> INDEX_BITS
        processing[b, j, 0] = scratch[1, i]
        cpu[b, j, 0] = scratch[2, i]


@helper
def draw_window(
    seed: np.uint64,
    episode: int,
    source: Any,
    trace_arrival: Any,
    trace_processing: Any,
    trace_cpu: Any,
    trace_memory: Any,
    b: int,
    arrival: Any,
    processing: Any,
    cpu: Any,
    memory: Any,
) -> None:
    """The episode's window of a trace: consecutive ones in turn, from a first that the seed decides."""
    _, u = uniform(stream(seed, 0, WINDOWS))
    first = ((int(u * source.windows) + episode) % source.windows) * source.jobs
    work = 0
    for j in range(source.jobs):
        processing[b, j, 0] = trace_processing[first + j]
        cpu[b, j, 0] = trace_cpu[first + j]
        memory[b, j] = trace_memory[first + j]
        work += trace_processing[first + j] * trace_cpu[first + j]
    origin = trace_arrival[first]
    span = trace_arrival[first + source.jobs - 1] - origin
    slot = source.slot_seconds
    if source.capacity > 0.0 and span > 0.0:
        slot = span * source.capacity / float(work)
    for j in range(source.jobs):
        arrival[b, j] = int(math.floor((trace_arrival[first + j] - origin) / slot))


@pure_kernel
def draw(
    mask: npt.NDArray[np.bool_],
    seeds: npt.NDArray[np.uint64],
    episodes: Integers,
    constants: npt.NDArray[Any],
    servers: Integers,
    servers_memory: Integers,
    trace_arrival: Floats,
    trace_processing: Integers,
    trace_cpu: Integers,
    trace_memory: Integers,
    scratch: Integers,
    arrival: Integers,
    tasks: Integers,
    processing: Integers,
    cpu: Integers,
    memory: Integers,
    declared_cpu: Integers,
    declared_memory: Integers,
    first_task: Indices,
    latency: Floats,
    server_cpu: Integers,
    server_memory: Integers,
) -> int:
    """Draw the workload of (seed, episode) for environments.

    Every job has its own draws of each quantity, so that a change of one parameter leaves all else: of
    load or horizon, which job has which demands, memory, phases and declarations; of the servers or the kind,
    all that they do not limit; of the number of jobs, the draws of those that stay.

    Args:
        mask: which ones [B].
        seeds: root seeds [B].
        episodes: numbers of the episodes [B].
        constants: SOURCE [1].
        servers: cores of each server [M].
        servers_memory: memory of each server [GB], [M].
        trace_arrival: of the trace's jobs [s], [J], or empty, as are the next three.
        trace_processing: [slots], [J].
        trace_cpu: [cores], [J].
        trace_memory: [GB], [J].
        scratch: [3, N].
        arrival: written, [B, >= N], as are all that follow; see :class:`Tables`.
        tasks: [B, >= N, 2].
        processing: [B, >= N, 2].
        cpu: [B, >= N, 2].
        memory: [B, >= N].
        declared_cpu: [B, >= N].
        declared_memory: [B, >= N].
        first_task: [B, > N].
        latency: [B, Q, M].
        server_cpu: [B, M].
        server_memory: [B, M].

    Returns:
        The most tasks of an environment. If tasks have latencies, and it exceeds Q, these are not written:
        call again with a larger array.
    """
    source = constants[0]
    most = 0
    for b in range(mask.shape[0]):
        if not mask[b]:
            continue
        seed = seeds[b]
        episode = episodes[b]
        for i in range(servers.shape[0]):
            server_cpu[b, i] = servers[i]
            server_memory[b, i] = servers_memory[i]
        if source.windows > 0:
            draw_window(
                seed,
                episode,
                source,
                trace_arrival,
                trace_processing,
                trace_cpu,
                trace_memory,
                b,
                arrival,
                processing,
                cpu,
                memory,
            )
        else:
            draw_synthetic(seed, episode, source, scratch, b, arrival, processing, cpu)
        memories = stream(seed, episode, MEMORIES)
        declarations = stream(seed, episode, DECLARATIONS)
        count = 0
        for j in range(source.jobs):
            i = j if source.windows > 0 else scratch[0, j]
            tasks[b, j, 0] = 1
            tasks[b, j, 1] = 0
            processing[b, j, 1] = 0
            cpu[b, j, 1] = 0
            if source.kind != TWO:
                memory[b, j] = 0
            elif source.windows == 0:
                _, z, _ = normal_pair(substream(memories, i))
                size = MEMORY_MEDIAN * cpu[b, j, 0] * math.exp(MEMORY_SIGMA * z)
                memory[b, j] = min(nearest(size), source.memory)
            if source.kind == MAPREDUCE:
                cut_into_phases(seed, episode, i, b, j, tasks, processing, cpu)
            declared_cpu[b, j] = cpu[b, j, 0]
            declared_memory[b, j] = memory[b, j]
            if source.declared:
                _, x, y = normal_pair(substream(declarations, i))
                declared_cpu[b, j] = max(1, int(math.ceil(cpu[b, j, 0] * (1.0 + source.sigma * x))))
                if source.kind == TWO:
                    size = math.ceil(memory[b, j] * (1.0 + source.sigma * y))
                    declared_memory[b, j] = min(max(1, int(size)), source.memory)
            first_task[b, j] = count
            count += tasks[b, j, 0] + tasks[b, j, 1]
        first_task[b, source.jobs] = count
        if source.latency and count <= latency.shape[1]:
            for j in range(source.jobs):
                draw_latencies(seed, episode, b, j, tasks, first_task, latency)
        most = max(most, count)
    return most


# Toy instances --------------------------------------------------------------------------------


class Toy(NamedTuple):
    """A toy instance and the least sum of flowtime^2 [slots^2].

    Attributes:
        jobs: rows (arrival, processing, cpu), in 2D (.., memory), or (arrival, tasks, processing, cpu) where
            all but the arrival are pairs (map, reduce).
        servers: cores of each server.
        memory: of each server [GB], in 2D.
        optimum: over all schedules of whole cores.
    """

    jobs: tuple[tuple[Any, ...], ...]
    servers: tuple[int, ...]
    memory: tuple[int, ...] | None
    optimum: float


TOYS: dict[str, Toy] = {
    # two jobs at once, each as wide as the server: the short one first
    "short-first": Toy(((0, 3, 2), (0, 1, 2)), (2,), None, 17.0),
    # test vector 1 of the specification: the long narrow job runs on beside the others, which share the rest
    "vector-1": Toy(((0, 4, 1), (0, 2, 3), (1, 3, 2)), (3,), None, 50.0),
    # the long narrow job must run beside both short wide ones
    "beside": Toy(((0, 1, 2), (0, 1, 2), (0, 3, 1)), (2, 1), None, 14.0),
    # the job that runs must give way to two that arrive later
    "make-way": Toy(((0, 4, 2), (1, 1, 2), (2, 1, 2)), (1, 1), None, 38.0),
    # no GB stays free: the two smaller jobs share the larger server for two slots
    "memory": Toy(((0, 2, 1, 3), (0, 2, 1, 2), (0, 1, 2, 2)), (2, 2), (3, 4), 12.0),
    # the job with more memory goes first, for the other one can start on the small server
    "memory-split": Toy(((0, 2, 2, 2), (0, 2, 1, 3)), (1, 2), (2, 4), 13.0),
    # test vector 8 of the specification
    "two-phases": Toy(((0, (3, 1), (2, 3), (1, 2)), (1, (1, 0), (4, 0), (2, 0))), (4,), None, 50.0),
}


def toy(name: str) -> tuple[Workload, float]:
    """The toy instance ``name`` and its least sum of flowtime^2 [slots^2]."""
    rows, servers, memory, optimum = TOYS[name]
    arrival, first, second, *rest = zip(*rows, strict=True)
    if isinstance(first[0], tuple):
        return make_mapreduce(arrival, first, second, rest[0], servers), optimum
    held = rest[0] if memory is not None else None
    return make_workload(arrival, first, second, servers, memory=held, server_memory=memory), optimum


# Another future -------------------------------------------------------------------------------


def shuffle_future(workload: Workload, slot: float, rng: np.random.Generator) -> Workload:
    """The workload with another future: the jobs that arrive in ``slot`` or later trade places.

    They may also become shorter and arrive earlier, but not before ``slot``. An environment or a policy that
    is shown nothing of the future behaves the same up to the decision of ``slot``, which shows the jobs that
    arrive before it.

    Args:
        workload: the instance.
        slot: jobs that arrive earlier stay as they are.
        rng: decides who gets what, and the factors on times.
    """
    jobs = {name: array.copy() for name, array in workload.jobs.items()}
    start = math.ceil(slot)
    arrival = jobs["arrival"]
    later = np.flatnonzero(arrival >= start)
    if len(later) == 0:
        return workload
    order = rng.permutation(later)
    gaps = np.diff(arrival[later], prepend=start) * rng.uniform(0.0, 1.0, len(later))
    arrival[later] = start + np.cumsum(np.floor(gaps).astype(np.int64))
    for name, values in jobs.items():
        if name != "arrival":
            values[later] = workload.jobs[name][order]
    factors = rng.uniform(0.3, 1.0, len(later))
    for name in ("processing", "map_processing", "reduce_processing"):
        if name in jobs:
            jobs[name][later] = np.ceil(jobs[name][later] * factors)
    rows = dict(workload.tasks)
    if rows:
        first = tables(workload).first_task
        sequence = np.concatenate([np.arange(later[0]), order])
        counts = np.diff(first)[sequence]
        taken = np.concatenate([np.arange(first[j], first[j + 1]) for j in sequence])
        rows = {"job": np.repeat(np.arange(len(counts)), counts), "latency": rows["latency"][taken]}
    return SCHEMA.parse({"jobs": jobs, "tasks": rows, "cluster": workload.cluster})
