"""Workloads of GeoAssign and GeoFair: the schema, the thesis's generator, the Facebook trace, toy instances.

Times are seconds. A task group is a distinct ordered list of available sites; the first is the associated
one. A part is the tasks of one (job, group).

Source: thesis 004, sections 3.3, 4.6 and 5.5.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import helper, pure_kernel, record_dtype
from schedgym.core.random import GOLDEN, exponential, mix, normal_pair, stream, uniform
from schedgym.core.workload import Field, Schema, Workload
from schedgym.errors import InvalidParameter, InvalidWorkload
from schedgym.solvers.balance import SiteLists, make_site_lists

if TYPE_CHECKING:
    from schedgym.problems.geo.problem import GeoParameters
    from schedgym.traces.base import JobTrace, Trace

__all__ = [
    "DURATIONS",
    "LAST_TIME",
    "MOST_SLOTS",
    "SCHEMA",
    "TOYS",
    "Source",
    "Tables",
    "draw",
    "draw_python",
    "from_trace",
    "generate",
    "group_numbers",
    "make_source",
    "make_workload",
    "rebuild",
    "shuffle_future",
    "tables",
    "toy",
]

Integers = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

#: no task of a workload may end later [s], so that clocks have a finite bound and resolve 0.2 ms
LAST_TIME = 1e12
#: most slots of a site
MOST_SLOTS = 10**6

#: how durations are drawn, by number
DURATIONS = ("pareto", "constant", "per-job")
PARETO, CONSTANT, PER_JOB = range(3)
MEAN_DURATION = 2.0  # s
PARETO_SHAPE = 1.259
PARETO_LEAST = (PARETO_SHAPE - 1.0) / PARETO_SHAPE  # of the mean: 0.4114 s of 2 s
#: longest duration that is drawn [s] (one in 6e11), so that clocks stay below LAST_TIME
LONGEST = 1e9

#: tasks of a job: the share with one task, else a log-normal rounded up. Fitted to the 24,024 jobs of
#: Facebook's 2010 trace that read something, by the moments of the logarithms, 1 GB of input a task
SINGLE = 0.722
SIZE_MU, SIZE_SIGMA = 2.859, 1.954

ARRIVALS, SIZES, PERMUTATIONS, ASSOCIATIONS, TIMES, WINDOWS = range(6)  # random streams


# Schema ---------------------------------------------------------------------------------------


def _check(sections: dict[str, dict[str, npt.NDArray[Any]]], prefix: str) -> None:
    """What must hold between fields: jobs have tasks, tasks have distinct sites, and time stays bounded."""
    arrival, tasks = sections["jobs"]["arrival"], sections["tasks"]
    jobs, count = len(arrival), len(sections["cluster"]["slots"])
    job, sites = tasks["job"], tasks["sites"]
    if (job >= jobs).any():
        i = int(np.argmax(job >= jobs))
        raise InvalidWorkload(f"{prefix}tasks.job[{i}]: there are {jobs} jobs, got {job[i]}")
    idle = np.bincount(job, minlength=jobs) == 0
    if idle.any():
        raise InvalidWorkload(f"{prefix}jobs: job [{int(np.argmax(idle))}] has no task")
    if sites.shape[1] == 0 or (sites[:, 0] < 0).any():
        i = int(np.argmax(sites[:, 0] < 0)) if sites.shape[1] else 0
        raise InvalidWorkload(f"{prefix}tasks.sites[{i}]: task has no available site")
    beyond = sites >= count
    if beyond.any():
        i, a = (int(x) for x in np.argwhere(beyond)[0])
        raise InvalidWorkload(f"{prefix}tasks.sites[{i}][{a}]: there are {count} sites, got {sites[i, a]}")
    ordered = np.sort(sites, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        i, a = (int(x) for x in np.argwhere(twice)[0])
        raise InvalidWorkload(f"{prefix}tasks.sites[{i}]: site {ordered[i, a]} appears twice")
    end = float(arrival[-1] + tasks["duration"].sum())
    if end > LAST_TIME:
        raise InvalidWorkload(
            f"{prefix}tasks: last arrival plus all durations must be <= {LAST_TIME:g} s, got {end:g}"
        )


SCHEMA = Schema(
    problem="geo",
    jobs=(Field("arrival", "s", ("job",), ascending=True),),
    tasks=(
        Field("job", "job", ("task",), kind="int"),
        Field("duration", "s", ("task",), exclusive=True),
        Field("sites", "site", ("task", "choice"), kind="int", ragged=True),
    ),
    cluster=(Field("slots", "slots", ("site",), kind="int", minimum=1, maximum=MOST_SLOTS),),
    check=_check,
)


def make_workload(
    arrival: npt.ArrayLike, job: npt.ArrayLike, duration: npt.ArrayLike, sites: Any, slots: npt.ArrayLike
) -> Workload:
    """A checked workload.

    Args:
        arrival: of each job [s], not decreasing; [J].
        job: of each task; [T].
        duration: of each task [s]; [T].
        sites: available sites of each task, the associated one first: a list of lists, or an array [T, A]
            padded with -1 at the end of its rows.
        slots: of each site; [M].

    Raises:
        InvalidWorkload: naming the field and the first bad index.
    """
    return SCHEMA.parse(
        {
            "jobs": {"arrival": arrival},
            "tasks": {"job": job, "duration": duration, "sites": sites},
            "cluster": {"slots": slots},
        }
    )


# Tables for kernels ---------------------------------------------------------------------------


class Tables(NamedTuple):
    """A workload as arrays for kernels. J jobs, P parts, T tasks, K groups, A choices, M sites.

    Tasks are sorted by job, then group, then their order in the workload.
    """

    arrival: Floats  # [J]
    part_start: Indices  # [J + 1] first part of a job
    part_group: Indices  # [P]
    part_first: Indices  # [P + 1] first task of a part
    task_start: Indices  # [J + 1] first task of a job
    duration: Floats  # [T]
    slots: Integers  # [M]
    sites: Integers  # [K, A] see SiteLists
    ascending: Integers  # [K, A]
    site_start: Integers  # [M + 1]
    entries: Integers  # [K * A]
    task_index: Integers  # [T] index in the workload

    @property
    def group_lists(self) -> Integers:
        """The groups' site lists, padded with -1; [K, A]."""
        return self.sites


def _keys(lists: Integers, count: int) -> Integers:
    """A number per row, equal for equal rows, in lexicographic order; -1 sorts first. [rows, A] -> [rows]."""
    keys = np.zeros(len(lists), dtype=np.int64)
    bound = 1
    for column in lists.T:
        if bound * (count + 1) >= 2**63:
            keys = np.unique(keys, return_inverse=True)[1].reshape(-1)
            bound = int(keys.max()) + 1
        keys = keys * (count + 1) + (column + 1)
        bound *= count + 1
    return keys


def group_numbers(workload: Workload, groups: npt.ArrayLike) -> Integers | None:
    """The row of ``groups`` that is each task's list of sites; None if a list is not among them.

    Args:
        workload: the instance.
        groups: distinct lists, padded with -1 at the end; [K, A].

    Returns:
        [T], or None.
    """
    lists: Integers = workload.tasks["sites"]
    rows = np.asarray(groups, dtype=np.int64)
    width = max(lists.shape[1], rows.shape[1])
    if width > rows.shape[1]:
        return None
    padded = np.pad(lists, ((0, 0), (0, width - lists.shape[1])), constant_values=-1)
    keys = _keys(np.concatenate([rows, padded]), int(max(rows.max(), lists.max())) + 1)
    own, tasks = keys[: len(rows)], keys[len(rows) :]
    order = np.argsort(own)
    place = np.minimum(np.searchsorted(own, tasks, sorter=order), len(own) - 1)
    numbers = order[place]
    return numbers if np.array_equal(own[numbers], tasks) else None


def tables(workload: Workload, groups: npt.ArrayLike | None = None) -> Tables:
    """A workload as arrays for kernels.

    Args:
        workload: a checked instance.
        groups: lists to number the groups by, [K, A]; None takes the distinct lists of the workload in
            lexicographic order.

    Raises:
        InvalidWorkload: when a task's list of sites is not among ``groups``.
    """
    arrival, job = workload.jobs["arrival"], workload.tasks["job"]
    slots: Integers = workload.cluster["slots"]
    lists: Integers = workload.tasks["sites"]
    if groups is None:
        _, first, numbers = np.unique(_keys(lists, len(slots)), return_index=True, return_inverse=True)
        index = make_site_lists(lists[first], len(slots))
        group = numbers.reshape(-1)
    else:
        found = group_numbers(workload, groups)
        if found is None:
            raise InvalidWorkload("tasks.sites: has a list that is none of the environment's groups")
        index = make_site_lists(groups, len(slots))
        group = found
    keys = job * len(index.sites) + group
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    part_first = np.append(starts, len(keys))
    part_start = np.searchsorted(keys[starts] // len(index.sites), np.arange(len(arrival) + 1))
    return Tables(
        arrival=arrival,
        part_start=part_start.astype(np.int32),
        part_group=(keys[starts] % len(index.sites)).astype(np.int32),
        part_first=part_first.astype(np.int32),
        task_start=part_first[part_start].astype(np.int32),
        duration=workload.tasks["duration"][order],
        slots=slots,
        sites=index.sites,
        ascending=index.ascending,
        site_start=index.start,
        entries=index.entries,
        task_index=order.astype(np.int64),
    )


def rebuild(
    arrival: Floats,
    part_start: Indices,
    part_group: Indices,
    part_first: Indices,
    duration: Floats,
    sites: Integers,
    slots: Integers,
    task_index: Integers | None = None,
) -> Workload:
    """The workload of one environment's arrays, of which all but ``arrival`` and ``slots`` may be longer.

    Args:
        arrival: [J].
        part_start: [J + 1].
        part_group: [P].
        part_first: [P + 1].
        duration: [T].
        sites: [K, A].
        slots: [M].
        task_index: index of each task in the workload [T]; None: they stand there in this order.
    """
    jobs = len(arrival)
    parts = int(part_start[jobs])
    count = int(part_first[parts])
    sizes = np.diff(part_first[: parts + 1])
    job = np.repeat(np.repeat(np.arange(jobs), np.diff(part_start[: jobs + 1])), sizes)
    lists = sites[np.repeat(part_group[:parts], sizes)]
    times = duration[:count]
    if task_index is not None:
        place = np.empty(count, dtype=np.int64)
        place[task_index[:count]] = np.arange(count)
        job, lists, times = job[place], lists[place], times[place]
    return make_workload(arrival, job, times, lists, slots)


# Generator ------------------------------------------------------------------------------------

#: where episodes come from, for the compiled draw
SOURCE = record_dtype(
    ("windows", np.int64),  # of a trace; 0: synthetic
    ("jobs", np.int64),  # of an episode
    ("max_tasks", np.int64),
    ("durations", np.int64),
    ("mean_duration", np.float64),  # [s]
    ("longest", np.float64),
    ("capacity", np.float64),  # slots in use on average; 0: arrivals as drawn
)


class Source:
    """Where an environment's episodes come from: the synthetic generator, or windows of a trace.

    Attributes:
        jobs: number of jobs N of an episode.
        slots: of each site; int64 [M].
        lists: the groups, which are the same in all episodes: group s is the window of sites
            s, s + 1, ..., s + k - 1 (mod M); K = M groups of A = k choices.
        constants: SOURCE record [1].
        arrival, tasks: of the trace's jobs [s], [J]; else empty.
        levels, guide: of the distribution of ranks, see :func:`draw_rank`.
        scratch: work space of :func:`draw`; int64 [3, M].
    """

    def __init__(
        self,
        jobs: int | str,
        sites: int,
        slots: int,
        choices: int = 2,
        *,
        zipf: float = 1.0,
        utilization: float | None = 0.6,
        durations: str = "pareto",
        mean_duration: float = MEAN_DURATION,
        duration_cap: float | None = None,
        max_tasks: int = 100,
        trace: tuple[Floats, Integers] | None = None,
    ) -> None:
        if choices > sites:
            raise InvalidParameter(f"choices: must be <= {sites}, the number of sites, got {choices}")
        if isinstance(jobs, str):
            if trace is None:
                raise InvalidParameter(f"jobs: {jobs!r} needs a trace")
            jobs = len(trace[0])
        windows = 0
        if trace is not None:
            windows = len(trace[0]) // jobs
            if windows == 0:
                raise InvalidParameter(
                    f"jobs: a window of {jobs} is longer than the trace, which has {len(trace[0])} jobs"
                )
        self.jobs = jobs
        self.slots = np.full(sites, slots, dtype=np.int64)
        first = np.arange(sites)[:, np.newaxis]
        self.lists: SiteLists = make_site_lists((first + np.arange(choices)) % sites, sites)
        arrival, tasks = (np.zeros(0), np.zeros(0)) if trace is None else trace
        self.arrival = np.ascontiguousarray(arrival, dtype=np.float64)
        self.tasks = np.ascontiguousarray(tasks, dtype=np.int64)
        self.levels, self.guide = rank_distribution(sites, zipf)
        self.scratch = np.zeros((3, sites), dtype=np.int64)
        longest = LONGEST if duration_cap is None else min(duration_cap, LONGEST)
        capacity = float(self.slots.sum()) * (utilization or 0.0)
        self.constants = np.zeros(1, dtype=SOURCE)
        kind = DURATIONS.index(durations)
        self.constants[0] = (windows, jobs, max_tasks, kind, mean_duration, longest, capacity)

    @property
    def windows(self) -> int:
        """Number of whole windows of the trace; 0 for the synthetic generator."""
        return int(self.constants["windows"][0])

    @property
    def room(self) -> tuple[int, int]:
        """Parts and tasks to make room for at first: enough for every window of a trace, a guess else."""
        if self.windows == 0:
            tasks = min(int(self.constants["max_tasks"][0]), 20)
            return self.jobs * min(tasks, len(self.slots), 4), self.jobs * tasks
        counts = self.tasks[: self.windows * self.jobs].reshape(self.windows, self.jobs)
        parts = np.minimum(counts, len(self.slots)).sum(axis=1).max()
        return int(parts), int(counts.sum(axis=1).max())


def rank_distribution(count: int, zipf: float) -> tuple[Floats, Integers]:
    """Tables to draw a rank i = 0..count-1 with probability ~ (i + 1)^-zipf.

    Returns:
        the distribution function [count], and where to start searching it for each of the equal parts of
        the unit interval, whose number is a power of two.
    """
    weights = np.arange(1, count + 1, dtype=np.float64) ** -zipf
    levels = np.cumsum(weights)
    levels /= levels[-1]
    parts = 4 << (count - 1).bit_length()
    guide = np.searchsorted(levels, np.arange(parts) / parts, side="right")
    return levels, guide.astype(np.int64)


def make_source(parameters: GeoParameters) -> Source:
    """The source that an environment's parameters name; reads the trace's file, if any."""
    trace = None
    if parameters.trace is not None:
        from schedgym.traces import read_trace

        trace = from_trace(read_trace(parameters.trace))
    return Source(
        parameters.jobs,
        parameters.sites,
        parameters.slots,
        parameters.choices,
        zipf=parameters.zipf,
        utilization=parameters.utilization,
        durations=parameters.durations,
        mean_duration=parameters.mean_duration,
        duration_cap=parameters.duration_cap,
        max_tasks=parameters.max_tasks,
        trace=trace,
    )


def from_trace(trace: Trace | JobTrace) -> tuple[Floats, Integers]:
    """Arrivals [s] and numbers of tasks of a trace's jobs that have map tasks (1 GB of input each).

    Raises:
        InvalidParameter: when the trace has tasks instead of jobs.
        InvalidWorkload: when no job has a map task.
    """
    from schedgym.traces.base import JobTrace

    if not isinstance(trace, JobTrace):
        raise InvalidParameter(
            f"trace: the {trace.name} trace has tasks by their processors; this problem needs jobs by their "
            "input bytes"
        )
    tasks = trace.map_tasks()
    kept = tasks > 0
    if not kept.any():
        raise InvalidWorkload(f"{trace.name}: no job has a map task")
    return trace.arrival[kept], tasks[kept]


def generate(seed: int, episode: int, source: Source) -> Workload:
    """The workload that an environment reset with ``seed`` meets in its ``episode`` (counted from 0)."""
    from schedgym.core.random import root_seed

    n = source.jobs
    parts, tasks = source.room
    while True:
        arrival, duration = np.zeros((1, n)), np.zeros((1, tasks))
        part_start, task_start = (np.zeros((1, n + 1), dtype=np.int32) for _ in range(2))
        part_group = np.zeros((1, parts), dtype=np.int32)
        part_first = np.zeros((1, parts + 1), dtype=np.int32)
        needed = draw_python(
            np.ones(1, dtype=bool),
            np.array([root_seed(seed)]),
            np.array([episode]),
            source,
            arrival,
            part_start,
            part_group,
            part_first,
            task_start,
            duration,
        )
        if needed[0] <= parts and needed[1] <= tasks:
            break
        parts, tasks = needed
    return rebuild(
        arrival[0],
        part_start[0],
        part_group[0],
        part_first[0],
        duration[0],
        source.lists.sites,
        source.slots,
    )


def draw_python(
    mask: npt.NDArray[np.bool_],
    seeds: npt.NDArray[np.uint64],
    episodes: Integers,
    source: Source,
    arrival: Floats,
    part_start: Indices,
    part_group: Indices,
    part_first: Indices,
    task_start: Indices,
    duration: Floats,
) -> tuple[int, int]:
    """:func:`draw`, called from Python (uncompiled, its modular arithmetic would warn of overflow)."""
    with np.errstate(over="ignore"):
        return draw(
            mask,
            seeds,
            episodes,
            source.constants,
            source.arrival,
            source.tasks,
            source.levels,
            source.guide,
            source.scratch,
            arrival,
            part_start,
            part_group,
            part_first,
            task_start,
            duration,
        )


@helper
def substream(state: np.uint64, job: int) -> np.uint64:
    """State of a job's own stream: draws for one job shift nothing for the others."""
    return mix(state + GOLDEN * np.uint64(job + 1))


@helper
def draw_rank(state: np.uint64, levels: Any, guide: Any) -> tuple[np.uint64, int]:
    """The next state and a rank: the first whose level exceeds a uniform number (Chen and Asau 1974)."""
    state, u = uniform(state)
    rank = guide[int(u * guide.shape[0])]
    while levels[rank] <= u:
        rank += 1
    return state, rank


@helper
def draw_duration(state: np.uint64, mean: float, longest: float) -> tuple[np.uint64, float]:
    """The next state and a Pareto duration with this mean, at most ``longest`` [s]."""
    state, x = exponential(state)
    return state, min(PARETO_LEAST * mean * math.exp(x / PARETO_SHAPE), longest)


@helper
def draw_size(state: np.uint64, most: int) -> tuple[np.uint64, int]:
    """The next state and a number of tasks from 1 to ``most``."""
    state, u = uniform(state)
    if u < SINGLE:
        return state, 1
    state, z, _ = normal_pair(state)
    return state, int(math.ceil(min(math.exp(SIZE_MU + SIZE_SIGMA * z), float(most))))


@helper
def draw_environment(
    seed: np.uint64,
    episode: int,
    constants: Any,
    trace_arrival: Any,
    trace_tasks: Any,
    levels: Any,
    guide: Any,
    scratch: Any,
    b: int,
    arrival: Any,
    part_start: Any,
    part_group: Any,
    part_first: Any,
    task_start: Any,
    duration: Any,
) -> tuple[int, int]:
    """Draw one environment's workload; returns its numbers of parts and tasks.

    Task x of a job draws its rank and its duration as the x-th of the job's own streams. So a change of
    skew or choices leaves all durations (and with them the scaled arrivals) as they were, one of durations
    the sites, and one of the most tasks of a job all jobs that it does not cut.
    """
    jobs = constants[0].jobs
    windows = constants[0].windows
    kind = constants[0].durations
    mean = constants[0].mean_duration
    longest = constants[0].longest
    sites = scratch.shape[1]
    first = 0
    if windows > 0:  # consecutive episodes take consecutive windows, from one that the seed decides
        state, u = uniform(stream(seed, 0, WINDOWS))
        first = ((int(u * windows) + episode) % windows) * jobs
    gaps = stream(seed, episode, ARRIVALS)
    sizes = stream(seed, episode, SIZES)
    permutations = stream(seed, episode, PERMUTATIONS)
    associations = stream(seed, episode, ASSOCIATIONS)
    times = stream(seed, episode, TIMES)
    parts = 0
    tasks = 0
    work = 0.0
    clock = 0.0
    fits = True
    for i in range(jobs):
        if windows > 0:
            count = trace_tasks[first + i]
            clock = trace_arrival[first + i] - trace_arrival[first]
        else:
            sizes, count = draw_size(sizes, constants[0].max_tasks)
            if i > 0:
                gaps, gap = exponential(gaps)
                clock += gap
        arrival[b, i] = clock
        part_start[b, i] = parts
        task_start[b, i] = tasks
        for a in range(sites):
            scratch[0, a] = 0  # tasks of rank a
        ranks = 0
        state = substream(associations, i)
        for _ in range(count):
            state, rank = draw_rank(state, levels, guide)
            ranks += scratch[0, rank] == 0
            scratch[0, rank] += 1
        fits = parts + ranks <= part_group.shape[1] and tasks + count <= duration.shape[1]
        if not fits:
            parts += ranks
            tasks += count
            continue
        for s in range(sites):
            scratch[1, s] = s  # site of a rank
        state = substream(permutations, i)
        for a in range(sites):
            state, u = uniform(state)
            other = a + int(u * (sites - a))
            site = scratch[1, other]
            scratch[1, other] = scratch[1, a]
            scratch[1, a] = site
            scratch[2, site] = scratch[0, a]
        for s in range(sites):
            own = scratch[2, s]
            if own > 0:
                part_group[b, parts] = s
                part_first[b, parts] = tasks
                scratch[2, s] = tasks  # where the next task of site s goes
                parts += 1
                tasks += own
        state = substream(associations, i)
        time = substream(times, i)
        value = min(mean, longest)
        if kind == PER_JOB:
            time, value = draw_duration(time, mean, longest)
        for _ in range(count):
            state, rank = draw_rank(state, levels, guide)
            site = scratch[1, rank]
            if kind == PARETO:
                time, value = draw_duration(time, mean, longest)
            duration[b, scratch[2, site]] = value
            scratch[2, site] += 1
            work += value
    part_start[b, jobs] = parts
    task_start[b, jobs] = tasks
    if fits:
        part_first[b, parts] = tasks
        if constants[0].capacity > 0.0 and clock > 0.0:
            factor = work / (constants[0].capacity * clock)
            for i in range(jobs):
                arrival[b, i] *= factor
    return parts, tasks


@pure_kernel
def draw(
    mask: npt.NDArray[np.bool_],
    seeds: npt.NDArray[np.uint64],
    episodes: Integers,
    constants: npt.NDArray[Any],
    trace_arrival: Floats,
    trace_tasks: Integers,
    levels: Floats,
    guide: Integers,
    scratch: Integers,
    arrival: Floats,
    part_start: Indices,
    part_group: Indices,
    part_first: Indices,
    task_start: Indices,
    duration: Floats,
) -> tuple[int, int]:
    """Draw the workload of (seed, episode) for environments.

    Args:
        mask: which ones [B].
        seeds: root seeds [B].
        episodes: numbers of the episodes [B].
        constants: SOURCE [1].
        trace_arrival: of the trace's jobs [J], or empty.
        trace_tasks: of the trace's jobs [J], or empty.
        levels: see :func:`rank_distribution`.
        guide: see :func:`rank_distribution`.
        scratch: [3, M].
        arrival: written, [B, >= N], as are all that follow.
        part_start: [B, > N].
        part_group: [B, P].
        part_first: [B, P + 1].
        task_start: [B, > N].
        duration: [B, T].

    Returns:
        The most parts and the most tasks of an environment. If they exceed P or T, what was written is
        incomplete: call again with larger arrays.
    """
    parts = 0
    tasks = 0
    for b in range(mask.shape[0]):
        if not mask[b]:
            continue
        own_parts, own_tasks = draw_environment(
            seeds[b],
            episodes[b],
            constants,
            trace_arrival,
            trace_tasks,
            levels,
            guide,
            scratch,
            b,
            arrival,
            part_start,
            part_group,
            part_first,
            task_start,
            duration,
        )
        parts = max(parts, own_parts)
        tasks = max(tasks, own_tasks)
    return parts, tasks


# Toy instances --------------------------------------------------------------------------------

#: toy instances with the optimal mean response [s]: name -> (jobs, slots, optimum); a job is its arrival [s]
#: and rows (tasks, duration [s], sites)
TOYS: dict[str, tuple[list[tuple[float, list[tuple[int, float, tuple[int, ...]]]]], list[int], float]] = {
    # two jobs at once on one slot: the short one first
    "short-first": ([(0, [(3, 1, (0,))]), (0, [(1, 1, (0,))])], [1], 2.5),
    # the tasks are associated with one site, and half of them must move
    "spread": ([(0, [(4, 1, (0, 1))])], [2, 2], 1.0),
    # the first job must leave its associated site to the second, which has no other
    "step-aside": ([(0, [(2, 3, (0, 1))]), (0, [(2, 3, (0,))])], [2, 2], 3.0),
    # sites take tasks by their slots: two at the small one, four at the large one
    "in-proportion": ([(0, [(6, 1, (0, 1))])], [1, 2], 2.0),
    # Table 3.1 of the thesis
    "table-3.1": ([(0, [(8, 1, (0, 1))]), (1, [(15, 1, (0, 1, 2))]), (2, [(6, 1, (1, 2))])], [1] * 3, 17 / 3),
}


def toy(name: str) -> tuple[Workload, float]:
    """The toy instance ``name`` and its optimal mean response [s]."""
    jobs, slots, optimum = TOYS[name]
    rows = [
        (i, duration, sites)
        for i, (_, parts) in enumerate(jobs)
        for tasks, duration, sites in parts
        for _ in range(tasks)
    ]
    job, duration, sites = zip(*rows, strict=True)
    return make_workload([arrival for arrival, _ in jobs], job, duration, sites, slots), optimum


def shuffle_future(workload: Workload, time: float, rng: np.random.Generator) -> Workload:
    """The workload with another future: the jobs that arrive after ``time`` share out their tasks anew.

    Their sizes, durations, sites and arrivals change; how many there are and which lists of sites occur
    does not. An environment or a policy that is shown nothing of the future behaves the same up to ``time``.

    Args:
        workload: the instance.
        time: jobs that arrive at this instant or earlier stay as they are, with their tasks [s].
        rng: decides who gets what, and the factors on times.
    """
    arrival = workload.jobs["arrival"].copy()
    tasks = {name: array.copy() for name, array in workload.tasks.items()}
    later = np.flatnonzero(arrival > time)
    if len(later) == 0:
        return workload
    theirs = np.flatnonzero(arrival[tasks["job"]] > time)
    weights = rng.exponential(size=len(later))
    rest = rng.choice(later, len(theirs) - len(later), p=weights / weights.sum())
    tasks["job"][theirs] = rng.permutation(np.concatenate([later, rest]))
    tasks["sites"][theirs] = tasks["sites"][rng.permutation(theirs)]
    tasks["duration"][theirs] = tasks["duration"][rng.permutation(theirs)] * rng.uniform(0.25, 1, len(theirs))
    gaps = np.diff(arrival[later], prepend=time) * rng.uniform(0.5, 1.0, len(later))
    arrival[later] = np.maximum(time + np.cumsum(gaps), np.nextafter(time, np.inf))
    return SCHEMA.parse({"jobs": {"arrival": arrival}, "tasks": tasks, "cluster": workload.cluster})
