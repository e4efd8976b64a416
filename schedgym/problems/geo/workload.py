"""Workloads of GeoAssign and GeoFair: the schema, the thesis's generator, the Facebook trace.

Times are seconds. A task group is a distinct ordered list of available sites; the first is the associated
one.

Source: guan2022, sections 3.3, 4.6 and 5.5.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import SCRATCH, SHARED, Floats, Integers, Integers32, Shown, length
from schedgym.core.future import change_future
from schedgym.core.jit import helper, record_dtype
from schedgym.core.kernels import draw_kernel
from schedgym.core.random import exponential, normal_pair, stream, substream, uniform
from schedgym.core.source import constants_of, count_windows, draw_alone, first_of_window
from schedgym.core.workload import Field, Schema, Workload, check_tasks, refuse
from schedgym.errors import InvalidParameter, InvalidWorkload
from schedgym.problems.geo.problem import DURATIONS
from schedgym.solvers.balance import make_site_lists

if TYPE_CHECKING:
    from schedgym.problems.geo.problem import GeoParameters
    from schedgym.traces.base import JobTrace, Trace

#: no task of a workload may end later [s], so that clocks have a finite bound and resolve 0.2 ms
LAST_TIME = 1e12
#: most slots of a site
MOST_SLOTS = 10**6
#: most tasks and jobs, as far as observations and actions go
MOST_TASKS = 10**7

PARETO, CONSTANT, PER_JOB = range(3)  # in the order of DURATIONS
PARETO_SHAPE = 1.259
PARETO_LEAST = (PARETO_SHAPE - 1.0) / PARETO_SHAPE  # share of the mean: 0.4114 s of 2 s
#: longest duration that is drawn [s] (one in 6e11), so that clocks stay below LAST_TIME
LONGEST = 1e9

#: tasks of a job: the share with one task, else a log-normal rounded up. Fitted to the 24,024 jobs of
#: Facebook's 2010 trace that read any input, by the moments of the logarithms, 1 GB of input a task
SINGLE = 0.722
SIZE_MU, SIZE_SIGMA = 2.859, 1.954

ARRIVALS, SIZES, PERMUTATIONS, ASSOCIATIONS, TIMES, WINDOWS = range(6)  # random streams


# Schema ---------------------------------------------------------------------------------------


def _check(sections: dict[str, dict[str, npt.NDArray[Any]]], prefix: str) -> None:
    """Check that jobs have tasks, that tasks have distinct sites, and that time stays bounded."""
    arrival, tasks = sections["jobs"]["arrival"], sections["tasks"]
    check_tasks(tasks["job"], len(arrival), prefix)
    sites, count = tasks["sites"], len(sections["cluster"]["slots"])
    if sites.shape[1] == 0 or (sites[:, 0] < 0).any():
        i = int(np.argmax(sites[:, 0] < 0)) if sites.shape[1] else 0
        raise InvalidWorkload(f"{prefix}tasks.sites[{i}]: task has no available site")
    refuse(sites, sites >= count, f"{prefix}tasks.sites", f"there are {count} sites")
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
        Field("sites", "site", ("task", "choice"), kind="int", ragged=True),  # the associated one first
    ),
    cluster=(Field("slots", "slots", ("site",), kind="int", minimum=1, maximum=MOST_SLOTS),),
    check=_check,
)


#: makes a checked workload, of arrival, job, duration, sites and slots in this order, or by name
make_workload = SCHEMA.make


# Arrays for kernels ---------------------------------------------------------------------------

#: numbers of jobs, tasks and groups that a workload has in its arrays
SIZE = record_dtype(("jobs", np.int64), ("tasks", np.int64), ("groups", np.int64))


class Jobs(NamedTuple):
    """The workload of an episode, as kernels take it; arrays may be longer.

    Tasks are sorted by job, then group, then their order in the workload. An entry k * A + a is the a-th of
    the at most A sites of group k.
    """

    size: Annotated[Any, SIZE]
    arrival: Annotated[Floats, "job"]  # [s]
    task_start: Annotated[Integers32, "job+1"]  # first task of a job
    duration: Annotated[Floats, "task"]  # [s]
    group: Annotated[Integers32, "task"]
    task_index: Annotated[Integers32, "task"]  # index in the workload
    slots: Annotated[Integers, "site", Shown("slots of each site", MOST_SLOTS)]
    # as in SiteLists, with what follows
    sites: Annotated[
        Integers,
        "group",
        "choice",
        Shown("of each group, the associated one first; -1 pads", length("site", -1), -1),
    ]
    ascending: Annotated[Integers, "group", "choice"]
    site_start: Annotated[Integers, "site+1"]
    entries: Annotated[Integers, "entry"]
    entry_groups: Annotated[Integers, "entry"]


def row_keys(lists: Integers, count: int) -> Integers:
    """Return a number per row, in the rows' lexicographic order (-1 sorts first); [rows, A] -> [rows]."""
    keys = np.zeros(len(lists), dtype=np.int64)
    bound = 1
    for column in lists.T:
        if bound * (count + 1) >= 2**63:
            keys = np.unique(keys, return_inverse=True)[1].reshape(-1)
            bound = int(keys.max()) + 1
        keys = keys * (count + 1) + (column + 1)
        bound *= count + 1
    return keys


def group_lists(workload: Workload) -> Integers:
    """Return the distinct lists of sites of a workload, in lexicographic order, padded with -1; [K, A]."""
    lists: Integers = workload.tasks["sites"]
    _, first = np.unique(row_keys(lists, len(workload.cluster["slots"])), return_index=True)
    return lists[first]


def group_numbers(workload: Workload, groups: npt.ArrayLike) -> Integers | None:
    """Return for each task the row of ``groups`` that is its list of sites; None if a list is missing.

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
    keys = row_keys(np.concatenate([rows, padded]), int(max(rows.max(), lists.max())) + 1)
    own, tasks = keys[: len(rows)], keys[len(rows) :]
    order = np.argsort(own)
    place = np.minimum(np.searchsorted(own, tasks, sorter=order), len(own) - 1)
    numbers = order[place]
    return numbers if np.array_equal(own[numbers], tasks) else None


def index_lists(groups: npt.ArrayLike, slots: Integers) -> dict[str, Integers]:
    """Return the fields of :class:`Jobs` that say where the tasks of each group may run.

    Args:
        groups: lists of sites, padded with -1 at the end, also rows of -1 at the end; [K, A].
        slots: of each site; [M].
    """
    lists = make_site_lists(groups, len(slots))
    entry_groups = lists.entries // lists.sites.shape[1]
    return {"slots": np.array(slots), **lists._asdict(), "entry_groups": entry_groups}


def tables(workload: Workload, groups: npt.ArrayLike | None = None) -> Jobs:
    """Convert a workload to the arrays that kernels take, for one environment.

    Args:
        workload: a checked instance.
        groups: lists to number the groups by, [K, A], also rows of -1 at the end; None takes the distinct
            lists of the workload in lexicographic order.

    Raises:
        InvalidWorkload: when a task's list of sites is not among ``groups``.
    """
    arrival, job = workload.jobs["arrival"], workload.tasks["job"]
    lists = index_lists(group_lists(workload) if groups is None else groups, workload.cluster["slots"])
    group = group_numbers(workload, lists["sites"])
    if group is None:
        raise InvalidWorkload("tasks.sites: has a list that is none of the environment's groups")
    order = np.lexsort((group, job))
    known = np.count_nonzero(lists["sites"][:, 0] >= 0)
    return Jobs(
        size=np.array((len(arrival), len(job), known), dtype=SIZE),
        arrival=np.array(arrival),
        task_start=np.searchsorted(job[order], np.arange(len(arrival) + 1)).astype(np.int32),
        duration=workload.tasks["duration"][order],
        group=group[order].astype(np.int32),
        task_index=order.astype(np.int32),
        **lists,
    )


def rebuild(jobs: Jobs) -> Workload:
    """Convert an environment's :class:`Jobs` to a workload."""
    count, tasks = int(jobs.size["jobs"]), int(jobs.size["tasks"])
    place = np.argsort(jobs.task_index[:tasks], kind="stable")
    job = np.repeat(np.arange(count), np.diff(jobs.task_start[: count + 1]))
    lists = jobs.sites[jobs.group[:tasks]]
    return make_workload(jobs.arrival[:count], job[place], jobs.duration[place], lists[place], jobs.slots)


# Generator ------------------------------------------------------------------------------------

#: inputs of the compiled draw
ORIGIN = record_dtype(
    ("windows", np.int64),  # of a trace; 0: synthetic
    ("jobs", np.int64),  # of an episode
    ("max_tasks", np.int64),
    ("durations", np.int64),
    ("mean_duration", np.float64),  # [s]
    ("longest", np.float64),
    ("capacity", np.float64),  # slots in use on average
)


class Origin(NamedTuple):
    """The inputs of a draw besides seed and episode."""

    constants: Annotated[Any, ORIGIN]
    arrival: Annotated[Floats, "traced"]  # of the trace's jobs [s]
    tasks: Annotated[Integers, "traced"]
    levels: Annotated[Floats, "site"]  # the distribution of ranks, see rank_distribution
    guide: Annotated[Integers, "guide"]


class Scratch(NamedTuple):
    """Scratch space of the draw of a job."""

    rank_tasks: Annotated[Integers, "site"]  # tasks of a rank
    rank_site: Annotated[Integers, "site"]  # site of a rank
    next_task: Annotated[Integers, "site"]  # position of the next task of a site


class Drawing(NamedTuple):
    """The arrays of a draw: its source, the workload that it writes, and scratch space."""

    source: Annotated[Origin, SHARED]
    jobs: Jobs
    scratch: Annotated[Scratch, SCRATCH]


class Source:
    """The source of an environment's episodes: the synthetic generator, or windows of a trace.

    Args:
        parameters: of the environment.
        trace: arrivals and numbers of tasks of the trace's jobs, by :func:`from_trace`, if there is one.

    Attributes:
        jobs: number of jobs N of an episode.
        windows: number of whole windows of the trace; 0 for the synthetic generator.
        lists: the groups, which are the same in all episodes: group s is the window of sites
            s, s + 1, ..., s + k - 1 (mod M); K = M groups of A = k choices. Fields of :class:`Jobs`.
        sizes: initial lengths of the arrays: enough for every window of a trace, else a guess.
        arrays: the arrays that the compiled draw takes.
    """

    def __init__(self, parameters: GeoParameters, trace: tuple[Floats, Integers] | None = None) -> None:
        sites, choices, most_tasks = parameters.sites, parameters.choices, parameters.max_tasks
        if trace is None:
            trace = np.zeros(0), np.zeros(0, dtype=np.int64)
            self.jobs, self.windows = int(parameters.jobs), 0
            most = self.jobs * min(most_tasks, 20)
        else:
            self.jobs, self.windows = count_windows(parameters.jobs, len(trace[0]))
            most = int(trace[1][: self.windows * self.jobs].reshape(self.windows, -1).sum(axis=1).max())
        groups = (np.arange(sites)[:, np.newaxis] + np.arange(choices)) % sites
        self.lists = index_lists(groups, np.full(sites, parameters.slots, dtype=np.int64))
        constants = constants_of(
            ORIGIN,
            parameters,
            windows=self.windows,
            jobs=self.jobs,
            durations=DURATIONS.index(parameters.durations),
            longest=min(parameters.duration_cap or LONGEST, LONGEST),
            capacity=sites * parameters.slots * parameters.utilization,
        )
        arrival, tasks = trace[0], np.ascontiguousarray(trace[1], dtype=np.int64)
        levels = rank_distribution(sites, parameters.zipf)
        self.arrays = Origin(constants, np.ascontiguousarray(arrival), tasks, *levels)
        self.sizes = {"job": self.jobs, "task": most, "site": sites}
        self.sizes |= {"group": sites, "choice": choices, "entry": groups.size}

    def set_lists(self, jobs: Jobs, index: Any) -> None:
        """Write :attr:`lists` into the arrays of the environments that ``index`` names."""
        jobs.size["groups"][index] = len(self.lists["sites"])
        for name, values in self.lists.items():
            getattr(jobs, name)[index] = values


def rank_distribution(count: int, zipf: float) -> tuple[Floats, Integers]:
    """Make tables to draw a rank i = 0..count-1 with probability ~ (i + 1)^-zipf.

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
    """Make the source that an environment's parameters name; read the trace's file, if any."""
    if parameters.trace is None:
        return Source(parameters)
    from schedgym.traces import read_trace

    return Source(parameters, from_trace(read_trace(parameters.trace, format=parameters.trace_format)))


def from_trace(trace: Trace | JobTrace) -> tuple[Floats, Integers]:
    """Return arrivals [s] and numbers of tasks of a trace's jobs that have map tasks (1 GB of input each).

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
    return trace.with_input()


def generate(seed: int, episode: int, source: Source) -> Workload:
    """The workload that an environment reset with ``seed`` meets in its ``episode`` (counted from 0)."""
    return rebuild(draw_alone(draw, Drawing, source, seed, episode)._replace(**source.lists))


@helper
def draw_rank(state: np.uint64, levels: Any, guide: Any) -> tuple[np.uint64, int]:
    """Return the next state and a rank: the first with a level above a uniform number (Chen, Asau 1974)."""
    state, u = uniform(state)
    rank = guide[int(u * guide.shape[0])]
    while levels[rank] <= u:
        rank += 1
    return state, rank


@helper
def draw_duration(state: np.uint64, mean: float, longest: float) -> tuple[np.uint64, float]:
    """Return the next state and a Pareto duration with this mean, at most ``longest`` [s]."""
    state, x = exponential(state)
    return state, min(PARETO_LEAST * mean * math.exp(x / PARETO_SHAPE), longest)


@helper
def draw_size(state: np.uint64, most: int) -> tuple[np.uint64, int]:
    """Return the next state and a number of tasks from 1 to ``most``."""
    state, u = uniform(state)
    if u < SINGLE:
        return state, 1
    state, z, _ = normal_pair(state)
    return state, int(math.ceil(min(math.exp(SIZE_MU + SIZE_SIGMA * z), float(most))))


@helper
def draw_jobs(env: Drawing, seed: np.uint64, episode: int) -> int:
    """Draw arrivals and numbers of tasks; return the total number of tasks."""
    jobs, constants = env.jobs, env.source.constants
    windows = constants.windows
    first = 0
    if windows > 0:
        first = first_of_window(seed, episode, WINDOWS, windows, constants.jobs)
    gaps = stream(seed, episode, ARRIVALS)
    sizes = stream(seed, episode, SIZES)
    tasks = 0
    clock = 0.0
    for i in range(constants.jobs):
        if windows > 0:
            count = env.source.tasks[first + i]
            clock = env.source.arrival[first + i] - env.source.arrival[first]
        else:
            sizes, count = draw_size(sizes, constants.max_tasks)
            if i > 0:
                gaps, gap = exponential(gaps)
                clock += gap
        jobs.arrival[i] = clock
        jobs.task_start[i] = tasks
        tasks += count
    jobs.task_start[constants.jobs] = tasks
    jobs.size.jobs = constants.jobs
    jobs.size.tasks = tasks
    return tasks


@helper
def draw_sites(env: Drawing, seed: np.uint64, episode: int, i: int) -> None:
    """Draw a job's number of tasks per rank and the site of each rank; set the positions of their tasks."""
    jobs, source, scratch = env.jobs, env.source, env.scratch
    sites = jobs.slots.shape[0]
    for s in range(sites):
        scratch.rank_tasks[s] = 0
        scratch.rank_site[s] = s
    state = substream(stream(seed, episode, ASSOCIATIONS), i)
    for _ in range(jobs.task_start[i + 1] - jobs.task_start[i]):
        state, rank = draw_rank(state, source.levels, source.guide)
        scratch.rank_tasks[rank] += 1
    state = substream(stream(seed, episode, PERMUTATIONS), i)
    for a in range(sites):
        state, u = uniform(state)
        other = a + int(u * (sites - a))
        site = scratch.rank_site[other]
        scratch.rank_site[other] = scratch.rank_site[a]
        scratch.rank_site[a] = site
        scratch.next_task[site] = scratch.rank_tasks[a]
    place = int(jobs.task_start[i])
    for s in range(sites):
        own = scratch.next_task[s]
        scratch.next_task[s] = place
        place += own


@helper
def draw_tasks(env: Drawing, seed: np.uint64, episode: int, i: int, work: float) -> float:
    """Draw a job's tasks; returns ``work`` with theirs added.

    Task x takes the x-th draws of rank (drawn a second time) and duration of the job's own streams. So
    another skew or number of choices keeps all durations (and with them the scaled arrivals), other durations
    keep the sites, and another limit of a job's tasks keeps all jobs that it does not cut.
    """
    jobs, source, scratch = env.jobs, env.source, env.scratch
    mean, longest = source.constants.mean_duration, source.constants.longest
    kind = source.constants.durations
    state = substream(stream(seed, episode, ASSOCIATIONS), i)
    time = substream(stream(seed, episode, TIMES), i)
    duration = min(mean, longest)
    if kind == PER_JOB:
        time, duration = draw_duration(time, mean, longest)
    for _ in range(jobs.task_start[i + 1] - jobs.task_start[i]):
        state, rank = draw_rank(state, source.levels, source.guide)
        site = scratch.rank_site[rank]
        if kind == PARETO:
            time, duration = draw_duration(time, mean, longest)
        task = scratch.next_task[site]
        scratch.next_task[site] = task + 1
        jobs.duration[task] = duration
        jobs.group[task] = site
        jobs.task_index[task] = task
        work += duration
    return work


@helper
def draw_one(env: Drawing, seed: np.uint64, episode: int) -> int:
    """Draw the workload of (seed, episode); return its number of tasks, which may exceed the arrays."""
    jobs, constants = env.jobs, env.source.constants
    tasks = draw_jobs(env, seed, episode)
    if tasks > jobs.duration.shape[0]:
        return tasks
    work = 0.0
    for i in range(constants.jobs):
        draw_sites(env, seed, episode, i)
        work = draw_tasks(env, seed, episode, i, work)
    span = jobs.arrival[constants.jobs - 1]
    if span > 0.0:
        factor = work / (constants.capacity * span)
        for i in range(constants.jobs):
            jobs.arrival[i] *= factor
    return tasks


draw = draw_kernel(__name__, Drawing, draw_one)


def shuffle_future(workload: Workload, time: float, rng: np.random.Generator) -> Workload:
    """See :func:`~schedgym.core.future.change_future`; durations change."""
    return change_future(SCHEMA, workload, time, rng, {"duration": (0.25, 1.0)})
