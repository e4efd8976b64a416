"""Workloads of FlowtimePacking: the schema, the stand-in for the paper's trace, traces.

Times are slots, sizes whole cores and GB. A plain job is one task; a MapReduce job has map tasks and, once
all of these have ended, reduce tasks. In arrays a plain job is a job with a map phase of one task.

Source: xu2021, sections II, V and VI; the generator stands in for its ten hours of a Google cluster.
"""

from __future__ import annotations

import bisect
import math
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import SCRATCH, SHARED, Floats, Integers, Integers32, Shown
from schedgym.core.future import change_future
from schedgym.core.jit import helper, pure_kernel, record_dtype
from schedgym.core.kernels import draw_kernel
from schedgym.core.order import sort
from schedgym.core.random import normal_pair, stream, substream, uniform
from schedgym.core.source import constants_of, count_windows, draw_alone, first_of_window
from schedgym.core.tables import accessor, batch_of_one, tabled
from schedgym.core.workload import Field, Schema, Workload, most_slots, refuse
from schedgym.errors import InvalidParameter, InvalidWorkload
from schedgym.problems.flowtime.problem import KINDS, FlowtimeParameters, parse_servers

if TYPE_CHECKING:
    from schedgym.traces.base import JobTrace, Trace

Fields = dict[str, npt.NDArray[Any]]

#: latest arrival [slots], largest latency, and most work of a workload [core-slots], so that clocks are exact
#: in float64
LAST_SLOT = 10**12
#: most cores of a server, and of a job or task
MOST_CORES = 10**6
#: most memory of a server or job [GB]
MOST_MEMORY = 10**6
#: most cores that a job declares, and most work of a workload by what its jobs declare [core-slots]
MOST_DECLARED, MOST_DECLARED_WORK = 10**9, 10**14
#: largest Gamma of Eq. 27 by what jobs declare [slots]
LAST_GAMMA = 4 * MOST_DECLARED_WORK
#: most jobs that observations count, and their last clock [slots]: three times Eq. 27, which is at most four
#: times the work
MOST_VISIBLE, LAST_CLOCK = 10**7, 12 * LAST_SLOT + 1
#: most tasks of a workload, and of one that an environment runs, in all and for each job
MOST_TASKS = 10**7
MOST_TASKS_RUN, MOST_TASKS_PER_JOB = 10_000, 1_000

ONE, TWO, MAPREDUCE = range(len(KINDS))

# The stand-in, in slots of 10 s and for 3600 of them (project specification, workload "KW")
LONG_SHARE = 0.02  # of the jobs: bounded Pareto, few cores; the others are log-normal
LONG_EXPONENT = 0.8
LONG_LEAST = 100  # slots
LONG_MOST = (11, 12)  # of the horizon, as a fraction: 3300 of 3600
LONG_CORES = (0.7, 0.3)  # of those jobs have 1, 2 cores
SHORT_MEDIAN, SHORT_SIGMA, SHORT_MOST = 3.0, 1.3, 100  # slots
SHORT_CORES = (0.05, 0.1, 0.15, 0.3, 0.4)  # have 1, 2, 4, 8, 16 cores
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
    """Check that all jobs are of one kind and can end, and that the total work is bounded."""
    jobs, tasks = sections["jobs"], sections["tasks"]
    memory, server_memory = jobs.get("memory"), sections["cluster"].get("memory")
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
    if phases and server_memory is not None:
        raise InvalidWorkload(f"{prefix}cluster.memory: MapReduce jobs have no memory demand")
    if memory is None and "declared_memory" in jobs:
        raise InvalidWorkload(f"{prefix}jobs.memory: missing, but jobs declare memory")
    if (memory is None) != (server_memory is None) and not phases:
        where, has = ("jobs", "servers") if memory is None else ("cluster", "jobs")
        raise InvalidWorkload(f"{prefix}{where}.memory: missing, but {has} have memory")
    for name in ("memory", "declared_memory"):
        if server_memory is not None and name in jobs:
            largest = server_memory.max()
            most = f"no server has more than {largest} GB"
            refuse(jobs[name], jobs[name] > largest, f"{prefix}jobs.{name}", most)
    if phases:
        for name, unit in (("reduce_processing", "slots"), ("reduce_cpu", "cores")):
            empty = (jobs["reduce_tasks"] > 0) & (jobs[name] < 1)
            least = f"must be >= 1 ({unit}) where there are reduce tasks"
            refuse(jobs[name], empty, f"{prefix}jobs.{name}", least)
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


def _bound(parts: list[list[npt.NDArray[Any]]], most: int, what: str) -> None:
    work = sum(float(np.prod([factor.astype(np.float64) for factor in part], axis=0).sum()) for part in parts)
    if work > most:
        raise InvalidWorkload(f"{what} in all must be <= {most:g} core-slots, got {work:g}")


def _check_latencies(jobs: Fields, tasks: Fields, prefix: str) -> None:
    """Check that latencies have a row per task, in the order of the jobs."""
    if not tasks:
        return
    for name in ("job", "latency"):
        if name not in tasks:
            raise InvalidWorkload(f"{prefix}tasks.{name}: missing")
    expected = np.repeat(np.arange(len(jobs["arrival"])), jobs["map_tasks"] + jobs["reduce_tasks"])
    given = tasks["job"]
    common = min(len(expected), len(given))
    wrong = np.flatnonzero(expected[:common] != given[:common])
    if len(wrong):
        i = int(wrong[0])
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
        Field("latency", "of a task at full rate", ("task", "server"), maximum=LAST_SLOT, optional=True),
    ),
    cluster=(
        Field("cpu", "cores", ("server",), kind="int", minimum=1, maximum=MOST_CORES),
        Field("memory", "GB", ("server",), kind="int", minimum=1, maximum=MOST_MEMORY, optional=True),
    ),
    check=_check,
)


def kind_of(workload: Workload) -> str:
    """Return the kind of a workload's jobs: "1d", "2d" or "mapreduce"."""
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
    """Make a checked workload of plain jobs.

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
    return SCHEMA.make(
        arrival,
        processing=processing,
        cpu=cpu,
        memory=memory,
        declared_cpu=declared_cpu,
        declared_memory=declared_memory,
        **{"cluster.cpu": servers, "cluster.memory": server_memory},
    )


def make_mapreduce(
    arrival: npt.ArrayLike,
    tasks: npt.ArrayLike,
    processing: npt.ArrayLike,
    cpu: npt.ArrayLike,
    servers: npt.ArrayLike,
    *,
    latency: npt.ArrayLike | None = None,
) -> Workload:
    """Make a checked workload of MapReduce jobs.

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
    plain = SCHEMA.make(**jobs, **{"cluster.cpu": servers})
    if latency is None:
        return plain
    counts = plain.jobs["map_tasks"] + plain.jobs["reduce_tasks"]
    rows = {"job": np.repeat(np.arange(len(counts)), counts), "latency": latency}
    return SCHEMA.make(**plain.jobs, **rows, **{"cluster.cpu": servers})


# A workload as kernels take it ------------------------------------------------------------------

#: number of jobs that a workload has in its arrays, their kind (an index into KINDS), and whether the
#: workload says what they declare
SIZE = record_dtype(("jobs", np.int64), ("kind", np.int64), ("declared", np.int64))


class Jobs(NamedTuple):
    """The workload of an episode, as kernels take it; arrays may be longer. An axis of 2 is (map, reduce).

    A phase without tasks has processing 0 and cpu 0. If the kind is not "2d", all memory is 0, else every
    server has some. Tasks are in the order of their jobs, map before reduce tasks.
    """

    size: Annotated[Any, SIZE]
    arrival: Annotated[Integers, "job"]  # slots
    tasks: Annotated[Integers, "job", 2]
    processing: Annotated[Integers, "job", 2]  # slots, of a task
    cpu: Annotated[Integers, "job", 2]  # cores, of a task
    memory: Annotated[Integers, "job"]  # GB
    declared_cpu: Annotated[Integers, "job"]  # cores, of phase 0
    declared_memory: Annotated[Integers, "job"]  # GB
    first_task: Annotated[Integers32, "job+1"]
    latency: Annotated[Floats, "latency_row", "server"]  # of each task, or without rows
    server_cpu: Annotated[Integers, "server", Shown("of each server [cores]", LAST_SLOT)]
    server_memory: Annotated[Integers, "server", Shown("of each server [GB]", LAST_SLOT, when="kind=2d")]

    @property
    def kind(self) -> str:
        """The kind of one workload's jobs: "1d", "2d" or "mapreduce"."""
        return KINDS[int(self.size["kind"])]


def tables(workload: Workload) -> Jobs:
    """Convert a checked workload to the arrays that kernels take, for one environment."""
    jobs, cluster = workload.jobs, workload.cluster
    kind = kind_of(workload)
    count, zeros = len(jobs["arrival"]), np.zeros(len(jobs["arrival"]), dtype=np.int64)
    if kind == "mapreduce":
        tasks, processing, cpu = (
            np.column_stack([jobs[f"map_{name}"], jobs[f"reduce_{name}"]])
            for name in ("tasks", "processing", "cpu")
        )
        processing[tasks == 0] = 0
        cpu[tasks == 0] = 0
    else:
        tasks = np.column_stack([zeros + 1, zeros])
        processing = np.column_stack([jobs["processing"], zeros])
        cpu = np.column_stack([jobs["cpu"], zeros])
    memory, servers = jobs.get("memory", zeros), cluster["cpu"]
    first = np.zeros(count + 1, dtype=np.int32)
    first[1:] = np.cumsum(tasks.sum(axis=1))
    declared = "declared_cpu" in jobs or "declared_memory" in jobs
    return Jobs(
        size=np.array((count, KINDS.index(kind), declared), dtype=SIZE),
        arrival=np.array(jobs["arrival"]),
        tasks=tasks,
        processing=processing,
        cpu=cpu,
        memory=np.array(memory),
        declared_cpu=np.array(jobs.get("declared_cpu", cpu[:, 0])),
        declared_memory=np.array(jobs.get("declared_memory", memory)),
        first_task=first,
        latency=np.array(workload.tasks.get("latency", np.zeros((0, len(servers))))),
        server_cpu=np.array(servers),
        server_memory=np.array(cluster.get("memory", np.zeros_like(servers))),
    )


def rebuild(jobs: Jobs) -> Workload:
    """Convert an environment's :class:`Jobs` to a workload, without latencies if ``latency`` has no rows."""
    n, servers = int(jobs.size["jobs"]), jobs.server_cpu
    arrival, processing, cpu = jobs.arrival[:n], jobs.processing[:n], jobs.cpu[:n]
    if jobs.kind == "mapreduce":
        latency = jobs.latency[: jobs.first_task[n]] if len(jobs.latency) else None
        return make_mapreduce(arrival, jobs.tasks[:n], processing, cpu, servers, latency=latency)
    two, declared = jobs.kind == "2d", bool(jobs.size["declared"])
    return make_workload(
        arrival,
        processing[:, 0],
        cpu[:, 0],
        servers,
        memory=jobs.memory[:n] if two else None,
        server_memory=jobs.server_memory if two else None,
        declared_cpu=jobs.declared_cpu[:n] if declared else None,
        declared_memory=jobs.declared_memory[:n] if declared and two else None,
    )


# Eq. 27 and the end of an episode ---------------------------------------------------------------


@helper
def length_of(jobs: Jobs, job: int) -> int:
    """Return the least number of slots of a job: one task's slots, summed over its phases."""
    return jobs.processing[job, 0] + jobs.processing[job, 1]


@helper
def eq27_limit(jobs: Jobs, declared: bool) -> float:
    """Return Gamma of Eq. 27; see :func:`eq27`."""
    work = 0
    last = 0
    for j in range(jobs.size.jobs):
        last = max(last, jobs.arrival[j] + 2 * length_of(jobs, j), 2 * jobs.arrival[j])
        if declared and jobs.size.kind != MAPREDUCE:
            work += jobs.processing[j, 0] * jobs.declared_cpu[j]
        else:
            for z in range(2):
                work += jobs.tasks[j, z] * jobs.processing[j, z] * jobs.cpu[j, z]
    total = 0
    for i in range(jobs.server_cpu.shape[0]):
        total += jobs.server_cpu[i]
    return max(float(last), 4.0 * float(work) / float(total))


@helper
def slot_limit(jobs: Jobs, gamma: float) -> int:
    """Return the slots after which an episode is truncated; see :func:`max_slots`."""
    longest = eq27_limit(jobs, False)
    work = 0
    for j in range(jobs.size.jobs):
        work += jobs.processing[j, 0] * jobs.memory[j]
    total = 0
    for i in range(jobs.server_memory.shape[0]):
        total += jobs.server_memory[i]
    if total > 0:
        longest = max(longest, 4.0 * float(work) / float(total))
    return int(math.ceil(3.0 * max(longest, gamma)))


def slots_needed(alone: Floats, length: Floats, span: Any, busy: Any) -> Floats:
    """Return the most slots with an active job, if no core is idle that a job can use; in 2D about so many.

    In each of them some job does as much as if it were alone. After the last arrival all cores are in use
    (in 2D: or memory is), or every job runs at its full rate.

    Args:
        alone: slots of each job if it were alone; [..., N].
        length: slots of each job at its full rate; [..., N].
        span: slots from the first to the last arrival; [...].
        busy: slots of all work on all cores (in 2D: and of what jobs hold on all memory); [...].
    """
    return np.ceil(np.minimum(np.ceil(alone).sum(axis=-1), span + length.max(axis=-1) + busy))


def check_length(workload: Workload, prefix: str = "") -> None:
    """Raise InvalidWorkload for more slots or tasks than the episodes of an environment may have."""
    own, count = tables(workload), len(workload.jobs["arrival"])
    phase = "map_" if own.kind == "mapreduce" else ""
    tasks, most_tasks = own.tasks.sum(axis=1), MOST_TASKS_RUN + MOST_TASKS_PER_JOB * count
    if phase and tasks.sum() > most_tasks:
        i = int(tasks.argmax())
        raise InvalidWorkload(
            f"{prefix}jobs.map_tasks[{i}]: {count} jobs may have {most_tasks} tasks in all, and these have "
            f"{tasks.sum()}, got {own.tasks[i, 0]}"
        )
    length = own.processing.sum(axis=1).astype(np.float64)
    work = (own.tasks * own.processing * own.cpu).sum(axis=1) / own.server_cpu.sum()
    if not phase:
        rate = np.minimum(own.cpu[:, 0], own.declared_cpu)
        if own.kind == "2d":
            order = np.argsort(own.server_memory)
            cores = np.cumsum(own.server_cpu[order][::-1])[::-1]  # of servers with at least so much memory
            rate = np.minimum(rate, cores[np.searchsorted(own.server_memory[order], own.declared_memory)])
        length *= own.cpu[:, 0] / rate
    alone = length + work if phase else np.maximum(length, work)
    if own.kind == "2d":
        work += length * own.declared_memory / own.server_memory.sum()
    needed, most = float(slots_needed(alone, length, np.ptp(own.arrival), work.sum())), most_slots(count)
    if needed > most:
        i = int(alone.argmax())
        raise InvalidWorkload(
            f"{prefix}jobs.{phase}processing[{i}]: {count} jobs may take {most} slots, and these need up to "
            f"{needed:.0f}, got {own.processing[i, 0]}"
        )


class Instance(NamedTuple):
    """The arrays of :func:`limits`: a workload alone."""

    jobs: Jobs


instance_access = accessor(Instance)


@pure_kernel
def limits(table: Any, tools: Any, declared: bool, gamma: float) -> Any:
    """Return Gamma of Eq. 27, and the slots after which an episode is truncated, for a workload alone."""
    jobs = instance_access(table, tools, 0).jobs
    return eq27_limit(jobs, declared), slot_limit(jobs, gamma)


def eq27(jobs: Jobs, *, declared: bool = False) -> float:
    """Return Gamma of Eq. 27 over the whole workload: max(a + 2p, 2a, 4 sum(p d) / sum C) [slots].

    For a MapReduce job, p is the sum over its phases and p d its work (the paper leaves p undefined there).

    Args:
        jobs: the workload.
        declared: use the cores that the jobs declare as d.
    """
    return float(limits(*tabled(Instance(batch_of_one(jobs)), {}), declared, 0.0)[0])


def max_slots(jobs: Jobs, gamma: float = 4000.0) -> int:
    """Return the slots until truncation: 3 max(Eq. 27, gamma, in 2D 4 sum(p m) / sum M), rounded up."""
    return int(limits(*tabled(Instance(batch_of_one(jobs)), {}), False, float(gamma))[1])


# Generator ------------------------------------------------------------------------------------

#: where episodes come from, for the compiled draw
ORIGIN = record_dtype(
    ("windows", np.int64),  # of a trace; 0: synthetic
    ("jobs", np.int64),  # of an episode
    ("kind", np.int64),
    ("horizon", np.int64),  # slots; synthetic only, as are the next three
    ("long_least", np.float64),
    ("long_most", np.float64),
    ("short_most", np.float64),
    ("most_demand", np.int64),  # cores of a generated job
    ("memory", np.int64),  # of the largest server
    ("declared", np.int64),  # whether the jobs mis-declare, and
    ("sigma", np.float64),  # by how much
    ("latency", np.int64),  # whether tasks have latencies
    ("capacity", np.float64),  # trace: cores in use on average; 0: keep its gaps, with
    ("slot_seconds", np.float64),
)


class TraceJobs(NamedTuple):
    """Jobs of a trace in this problem's units, except for their arrivals."""

    arrival: Annotated[Floats, "traced"]  # [s], not decreasing
    processing: Annotated[Integers, "traced"]  # slots
    cpu: Annotated[Integers, "traced"]  # cores
    memory: Annotated[Integers, "traced"]  # GB; 0 in 1D


class Origin(NamedTuple):
    """The inputs of a draw besides seed and episode: the servers, and the trace's jobs, if any."""

    constants: Annotated[Any, ORIGIN]
    server_cpu: Annotated[Integers, "server"]
    server_memory: Annotated[Integers, "server"]
    arrival: Annotated[Floats, "traced"]
    processing: Annotated[Integers, "traced"]
    cpu: Annotated[Integers, "traced"]
    memory: Annotated[Integers, "traced"]


class Drawn(NamedTuple):
    """Scratch space of a draw: jobs in the order in which they are drawn."""

    number: Annotated[Integers, "job"]  # of the jobs in order of arrival; before that keys to sort by
    processing: Annotated[Integers, "job"]
    cpu: Annotated[Integers, "job"]


class Drawing(NamedTuple):
    """The arrays of a draw: its source, the workload that it writes, and scratch space."""

    source: Annotated[Origin, SHARED]
    jobs: Jobs
    drawn: Annotated[Drawn, SCRATCH]


class Source:
    """The source of an environment's episodes: the synthetic generator, or windows of a trace.

    The generator draws the specification's stand-in "KW" at any scale. Of the jobs, 2% are long: their length
    is bounded Pareto (exponent 0.8) from min(100, U / 3) to U slots, where U is 11/12 of the horizon (100 to
    3300 of 3600), on 1 or 2 cores. The others are log-normal (median 3, sigma 1.3), at most min(100, U)
    slots, on 1 to 16 cores. Both are rounded to slots, at least one; no job asks for more cores than there
    are, or than ``most_demand``: with 4, 85% of the others ask for 4. Arrivals are uniform over the horizon,
    drawn again until the job could end within it. The horizon, if not given, is the one that the jobs'
    expected work fills with ``load``, at least 12 slots; a trace's window has exactly that load: its gaps are
    scaled to it.

    In 2D memory is log-normal around 2 GB per core of the job, in whole GB, and fits the largest server.
    MapReduce jobs are the same jobs cut into phases: each phase uses the job's cores, in tasks of 1, 2 or 4
    of them (a reduce task at least as many as a map task); its slots are divided between map and reduce
    tasks; 30% of the jobs, and those of a single slot, have no reduce tasks. So length, work and load stay
    the same. Latencies of
    tasks are 1 to 5 per server, but 0 on up to three servers that hold the data of a map task.

    Args:
        parameters: of the environment.
        trace: jobs to take consecutive windows of.

    Attributes:
        kind: "1d", "2d" or "mapreduce".
        jobs: number of jobs N of an episode.
        windows: number of whole windows of the trace; 0 for the synthetic generator.
        horizon: slots in which the generated jobs arrive and could end; 0 for a trace.
        server_cpu: cores of each server; int64 [M].
        phase_tasks: most tasks that a phase of a job can have.
        sizes: lengths of the dimensions of :class:`Jobs`, and ``task``: the most tasks of an episode.
        arrays: the arrays that the compiled draw takes.

    Raises:
        InvalidParameter: when the sizes do not go together.
    """

    def __init__(self, parameters: FlowtimeParameters, trace: TraceJobs | None = None) -> None:
        self.kind = parameters.kind
        self.server_cpu, server_memory = make_servers(parameters)
        cores, load = int(self.server_cpu.sum()), parameters.load or 0.0
        most_demand = min(parameters.most_demand, cores)
        self.windows = self.horizon = 0
        capacity = long_least = long_most = 0.0
        if trace is None:
            self.jobs = int(parameters.jobs)
            self.horizon = parameters.horizon or horizon_of(self.jobs, cores, load, most_demand)
            long_least, long_most = long_range(self.horizon)
            none = np.zeros(0, dtype=np.int64)
            trace = TraceJobs(np.zeros(0), none, none, none)
        else:
            capacity = load * cores
            self.jobs, self.windows = count_windows(parameters.jobs, len(trace.arrival))
            self._check_windows(trace, capacity, int(server_memory.sum()), parameters.slot_seconds)
        declared = parameters.estimation != "none"
        constants = constants_of(
            ORIGIN,
            parameters,
            windows=self.windows,
            jobs=self.jobs,
            kind=KINDS.index(self.kind),
            horizon=self.horizon,
            long_least=long_least,
            long_most=long_most,
            short_most=min(SHORT_MOST, long_most),
            most_demand=most_demand,
            memory=server_memory.max(),
            declared=declared,
            sigma=math.sqrt(parameters.variance) if declared else 0.0,
            capacity=capacity,
        )
        self.arrays = Origin(constants, self.server_cpu, server_memory, *trace)
        phased = self.kind == "mapreduce"
        self.phase_tasks = most_demand if phased else 1
        tasks = self.jobs * (2 * self.phase_tasks if phased else 1)
        self.sizes = {"job": self.jobs, "server": len(self.server_cpu), "task": tasks}
        self.sizes["latency_row"] = tasks if parameters.latency else 0

    def _check_windows(self, trace: TraceJobs, capacity: float, memory: int, slot_seconds: float) -> None:
        """Refuse windows whose work or clock would pass LAST_SLOT, or that need too many slots."""
        count = self.windows * self.jobs
        times, length, cpu, held = (
            array[:count].astype(np.float64).reshape(self.windows, -1)
            for array in (trace.arrival, trace.processing, trace.cpu, trace.memory)
        )
        work = (length * cpu).sum(axis=1)
        span = work / capacity if capacity else (times[:, -1] - times[:, 0]) / slot_seconds
        if work.max() > LAST_SLOT:
            raise InvalidParameter(
                f"trace: a window of {self.jobs} jobs has {work.max():g} core-slots of work, more than "
                f"{LAST_SLOT:g}: take longer slots or fewer jobs"
            )
        if span.max() > LAST_SLOT:
            raise InvalidParameter(
                f"trace: a window of {self.jobs} jobs takes {span.max():g} slots to arrive"
            )
        cores = self.server_cpu.sum()
        busy = work / cores + (length * held).sum(axis=1) / max(memory, 1)
        needed = slots_needed(length * np.maximum(cpu / cores, 1.0), length, span, busy).max()
        most = most_slots(len(trace.arrival))
        if needed > most:
            raise InvalidParameter(
                f"trace: a window of {self.jobs} jobs needs up to {needed:g} slots, and a trace of "
                f"{len(trace.arrival)} jobs may take {most:g}: take longer slots or fewer jobs"
            )


def make_servers(parameters: FlowtimeParameters) -> tuple[Integers, Integers]:
    """Return cores and memory [GB] of each server, both [M]; memory is rounded down, at least 1, in 1D 0.

    Raises:
        InvalidParameter: when a server has too much memory.
    """
    cpu = np.array(parse_servers(parameters.servers), dtype=np.int64)
    if parameters.kind != "2d":
        return cpu, np.zeros_like(cpu)
    most = float(cpu.max()) * parameters.memory_per_core
    if most > MOST_MEMORY:
        raise InvalidParameter(f"memory_per_core: a server would have {most:g} GB, more than {MOST_MEMORY:g}")
    return cpu, np.maximum(np.floor(cpu * parameters.memory_per_core), 1.0).astype(np.int64)


def long_range(horizon: int) -> tuple[float, float]:
    """Least and most processing of long jobs [slots]."""
    most = max(1, LONG_MOST[0] * horizon // LONG_MOST[1])
    return float(min(LONG_LEAST, max(1, most // 3))), float(most)


def mean_work(horizon: int, most_demand: int) -> float:
    """Return the expected work of a generated job [core-slots], long jobs before rounding to slots."""
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
        work += share * slots * sum(weight * min(1 << e, most_demand) for e, weight in enumerate(demands))
    return work


def horizon_of(jobs: int, cores: int, load: float, most_demand: int) -> int:
    """Return the longest horizon [slots] that the expected work of ``jobs`` jobs fills with ``load``."""
    # the work that one more slot adds decreases with the horizon
    slots = range(LEAST_HORIZON + 1, LAST_SLOT + 1)
    too_long = bisect.bisect_left(
        slots, True, key=lambda horizon: jobs * mean_work(horizon, most_demand) < load * cores * horizon
    )
    return LEAST_HORIZON + too_long


def make_source(parameters: FlowtimeParameters) -> Source:
    """Make the source that an environment's parameters name; read the trace's files, if any."""
    if parameters.trace is None:
        return Source(parameters)
    from schedgym.traces import read_trace

    return Source(
        parameters,
        from_trace(
            read_trace(parameters.trace, nodes=parameters.nodes, format=parameters.trace_format), parameters
        ),
    )


def from_trace(trace: Trace | JobTrace, parameters: FlowtimeParameters) -> TraceJobs:
    """Jobs of a trace's tasks: durations in slots, demands in whole cores and GB, all rounded up.

    A core of the trace counts as a core, a GiB as a GB. But shares of the largest machine, and with ``nodes``
    all sizes, are scaled so that the trace's largest machine is the largest server, per resource. A job has
    at least one slot and one core; it may ask for more cores than there are, and then takes longer.

    Args:
        trace: with duration [s], cores and (2D) memory of each task.
        parameters: of the environment: its servers, slots, kind and nodes.

    Raises:
        InvalidParameter: when the trace has jobs by their bytes instead of tasks, or in 2D no memory.
        InvalidWorkload: when a job asks for more cores than MOST_CORES, or more memory than any server has.
    """
    from schedgym.traces.base import round_up, tasks_of

    trace = tasks_of(trace, "processors and duration")
    if not trace.cores.any() and trace.gpu.any():
        raise InvalidParameter(f"trace: the {trace.name} trace has GPUs only; this problem needs processors")
    server_cpu, server_memory = make_servers(parameters)
    two_d, scaled = parameters.kind == "2d", parameters.nodes is not None
    if two_d and not trace.memory.any():
        raise InvalidParameter(f"trace: the {trace.name} trace tells no memory, which kind '2d' needs")
    shares = trace.unit.startswith("share")

    def whole(sizes: Floats, machines: Floats, servers: Integers) -> Floats:
        largest = machines.max(initial=0.0) if scaled else 0.0
        if largest == 0.0 and not shares:
            return round_up(sizes)
        return round_up(sizes * float(servers.max()) / (largest or 1.0))

    processing = np.maximum(round_up(trace.duration / parameters.slot_seconds), 1.0)
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


def generate(seed: int, episode: int, source: Source) -> Workload:
    """The workload that an environment reset with ``seed`` meets in its ``episode`` (counted from 0)."""
    return rebuild(draw_alone(draw, Drawing, source, seed, episode))


@helper
def nearest(value: float) -> int:
    """Return the nearest whole number, but at least 1."""
    return max(1, int(math.floor(value + 0.5)))


@helper
def draw_long(state: np.uint64, least: float, most: float) -> tuple[np.uint64, int]:
    """Return the next state and a bounded Pareto number of slots."""
    state, u = uniform(state)
    tail = math.exp(LONG_EXPONENT * math.log(least / most))
    return state, nearest(min(least * math.exp(-math.log1p(-u * (1.0 - tail)) / LONG_EXPONENT), most))


@helper
def draw_cores(state: np.uint64, long: bool) -> tuple[np.uint64, int]:
    """Return the next state, and the cores of a long or of another job."""
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
def draw_latencies(jobs: Jobs, seed: np.uint64, episode: int, j: int) -> None:
    """Draw the latencies of the tasks of job j."""
    servers = jobs.latency.shape[1]
    first = jobs.first_task[j]
    state = substream(stream(seed, episode, LATENCIES), j)
    for q in range(jobs.tasks[j, 0] + jobs.tasks[j, 1]):
        for i in range(servers):
            state, u = uniform(state)
            jobs.latency[first + q, i] = 1.0 + math.floor(u * FARTHEST)
        for _ in range(REPLICAS):
            state, u = uniform(state)
            if q < jobs.tasks[j, 0]:
                jobs.latency[first + q, int(u * servers)] = 0.0


@helper
def cut_into_phases(jobs: Jobs, seed: np.uint64, episode: int, number: int, j: int) -> None:
    """Turn the plain job j into a MapReduce job, by the draws of job ``number``."""
    slots = jobs.processing[j, 0]
    cores = jobs.cpu[j, 0]
    widths = 1 + (cores % 2 == 0) + (cores % 4 == 0)  # powers of 2 that divide the cores, up to 4
    state = substream(stream(seed, episode, PHASES), number)
    state, u = uniform(state)
    width = int(u * widths)
    state, u = uniform(state)
    wider = width + int(u * (widths - width))
    state, u = uniform(state)
    state, share = uniform(state)
    jobs.tasks[j, 0] = cores >> width
    jobs.cpu[j, 0] = 1 << width
    if slots > 1 and u < REDUCE_SHARE:
        share = MAP_LENGTH[0] + share * (MAP_LENGTH[1] - MAP_LENGTH[0])
        jobs.processing[j, 0] = min(nearest(slots * share), slots - 1)
        jobs.processing[j, 1] = slots - jobs.processing[j, 0]
        jobs.tasks[j, 1] = cores >> wider
        jobs.cpu[j, 1] = 1 << wider


@helper
def draw_synthetic(env: Drawing, seed: np.uint64, episode: int) -> None:
    """Draw arrivals, slots and cores of the stand-in's jobs, in order of arrival."""
    source, jobs, drawn = env.source.constants, env.jobs, env.drawn
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
        drawn.number[i] = (slot << INDEX_BITS) + i
        drawn.processing[i] = slots
        drawn.cpu[i] = min(cores, source.most_demand)
    sort(drawn.number, source.jobs)
    for j in range(source.jobs):
        key = drawn.number[j]
        i = key & (MOST_JOBS - 1)
        drawn.number[j] = i
        jobs.arrival[j] = key >> INDEX_BITS
        jobs.processing[j, 0] = drawn.processing[i]
        jobs.cpu[j, 0] = drawn.cpu[i]


@helper
def draw_window(env: Drawing, seed: np.uint64, episode: int) -> None:
    """Take the episode's window of a trace."""
    source, trace, jobs = env.source.constants, env.source, env.jobs
    first = first_of_window(seed, episode, WINDOWS, source.windows, source.jobs)
    work = 0
    for j in range(source.jobs):
        env.drawn.number[j] = j
        jobs.processing[j, 0] = trace.processing[first + j]
        jobs.cpu[j, 0] = trace.cpu[first + j]
        jobs.memory[j] = trace.memory[first + j]
        work += trace.processing[first + j] * trace.cpu[first + j]
    origin = trace.arrival[first]
    span = trace.arrival[first + source.jobs - 1] - origin
    slot = source.slot_seconds
    if source.capacity > 0.0 and span > 0.0:
        slot = span * source.capacity / float(work)
    for j in range(source.jobs):
        jobs.arrival[j] = int(math.floor((trace.arrival[first + j] - origin) / slot))


@helper
def complete_job(env: Drawing, seed: np.uint64, episode: int, j: int) -> None:
    """Draw memory, phases and declarations of job j, which already has its slots and cores."""
    source, jobs = env.source.constants, env.jobs
    number = env.drawn.number[j]
    jobs.tasks[j, 0] = 1
    jobs.tasks[j, 1] = 0
    jobs.processing[j, 1] = 0
    jobs.cpu[j, 1] = 0
    if source.kind != TWO:
        jobs.memory[j] = 0
    elif source.windows == 0:
        _, z, _ = normal_pair(substream(stream(seed, episode, MEMORIES), number))
        size = MEMORY_MEDIAN * jobs.cpu[j, 0] * math.exp(MEMORY_SIGMA * z)
        jobs.memory[j] = min(nearest(size), source.memory)
    if source.kind == MAPREDUCE:
        cut_into_phases(jobs, seed, episode, number, j)
    jobs.declared_cpu[j] = jobs.cpu[j, 0]
    jobs.declared_memory[j] = jobs.memory[j]
    if source.declared:
        _, x, y = normal_pair(substream(stream(seed, episode, DECLARATIONS), number))
        jobs.declared_cpu[j] = max(1, int(math.ceil(jobs.cpu[j, 0] * (1.0 + source.sigma * x))))
        if source.kind == TWO:
            size = math.ceil(jobs.memory[j] * (1.0 + source.sigma * y))
            jobs.declared_memory[j] = min(max(1, int(size)), source.memory)


@helper
def draw_one(env: Drawing, seed: np.uint64, episode: int) -> int:
    """Draw the workload of (seed, episode); the arrays hold the most tasks that an episode can have.

    Every job has its own draws of each quantity, so that a change of one parameter leaves the rest as it is.
    Another load or horizon keeps each job's demands, memory, phases and declarations; other servers or
    another kind keep all that they do not limit; another number of jobs keeps the draws of those that stay.
    """
    source, jobs = env.source.constants, env.jobs
    jobs.size.jobs = source.jobs
    jobs.size.kind = source.kind
    jobs.size.declared = source.declared
    for i in range(jobs.server_cpu.shape[0]):
        jobs.server_cpu[i] = env.source.server_cpu[i]
        jobs.server_memory[i] = env.source.server_memory[i]
    if source.windows > 0:
        draw_window(env, seed, episode)
    else:
        draw_synthetic(env, seed, episode)
    count = 0
    for j in range(source.jobs):
        complete_job(env, seed, episode, j)
        jobs.first_task[j] = count
        count += jobs.tasks[j, 0] + jobs.tasks[j, 1]
    jobs.first_task[source.jobs] = count
    if source.latency:
        for j in range(source.jobs):
            draw_latencies(jobs, seed, episode, j)
    return 0


draw = draw_kernel(__name__, Drawing, draw_one)


def shuffle_future(workload: Workload, slot: float, rng: np.random.Generator) -> Workload:
    """See :func:`~schedgym.core.future.change_future`; lengths of tasks change.

    The observation of ``slot`` shows the jobs that arrive before it, so those that arrive in it change, too.
    """
    factors = dict.fromkeys(("processing", "map_processing", "reduce_processing"), (0.3, 1.0))
    return change_future(SCHEMA, workload, math.ceil(slot) - 1, rng, factors)
