"""Workloads of ParallelJCT: the schema, the paper's generator, traces, energy caps.

Times are seconds, loads vCPU seconds at efficiency 1, capacities vCPU. On a server a task uses the energy
power * load / efficiency, whatever its vCPU.

Source: shi2017, section 6.2.1; for the energy caps also section 6.1.1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import SHARED, Bytes, Floats, Integers, Shown
from schedgym.core.future import change_future
from schedgym.core.jit import helper, record_dtype
from schedgym.core.kernels import draw_kernel
from schedgym.core.random import exponential, stream, substream, uniform
from schedgym.core.source import constants_of, count_windows, draw_alone, first_of_window
from schedgym.core.workload import Field, Schema, Workload, check_tasks
from schedgym.errors import InvalidParameter, InvalidWorkload
from schedgym.problems.single_job import topology
from schedgym.problems.single_job.workload import (
    LEAST_EFFICIENCY,
    LEAST_LOAD,
    LEAST_POWER,
    LONGEST,
    MOST_ENERGY,
    MOST_LOAD,
    MOST_POWER,
    check_most,
    powers,
)

if TYPE_CHECKING:
    from schedgym.problems.parallel_jct.problem import ParallelJCTParameters
    from schedgym.traces.base import JobTrace, Trace

#: no job of a workload may arrive later [s], so that clocks resolve 0.2 ms
LAST_TIME = 1e12
#: most jobs, tasks and rows of them, as far as observations go
MOST_JOBS = 10**7
#: largest ratio of energy cap to the energy at efficiency 1
MOST_RATIO = 1e6
#: a drawn energy cap exceeds the job's energy at efficiency 1 by at most this share
ENERGY_RANGE = 0.1

#: readings of the paper's "Weibull distribution with scale parameter A = 0.5 and scale parameter B = 0.8": a
#: job has ceil(factor W) tasks, W Weibull; reading -> (factor, scale, shape)
WEIBULL = {"x70": (70.0, 0.5, 0.8), "scale-half": (1.0, 0.5, 0.8), "shape-half": (1.0, 0.8, 0.5)}
#: most tasks of a job. The paper's 70 cuts 17.5% of the jobs of x70; of the other readings no job in practice
#: reaches 200: one in 10^52 (scale-half), one in 7 million (shape-half)
DEFAULT_MOST_TASKS = {"x70": 70, "scale-half": 200, "shape-half": 200}

#: number of the first stream of a job's rounds between ticks
BETWEEN = 2**62

ARRIVALS, SIZES, LOADS, EFFICIENCIES, CAPS, WINDOWS = range(6)  # random streams


# Schema ---------------------------------------------------------------------------------------


def _check(sections: dict[str, dict[str, npt.NDArray[Any]]], prefix: str) -> None:
    """Check that jobs have tasks, that the tree fits its servers, and that times are finite."""
    jobs, tasks = sections["jobs"], sections["tasks"]
    topology.check_cluster(sections["cluster"], prefix)
    check_tasks(tasks["job"], len(jobs["arrival"]), prefix)
    with np.errstate(over="ignore"):
        work = tasks["load"] / tasks["efficiency"].min(axis=1)
        most = np.bincount(tasks["job"], work)
        energy = np.maximum(most, np.bincount(tasks["job"], powers(tasks) * work))
    check_most(energy, MOST_ENERGY, f"{prefix}jobs: the largest possible energy of job [{{}}]", "vCPU s")
    cluster = sections["cluster"]
    groups = topology.cluster_groups(cluster)
    limits = topology.group_limits(groups.matrix, groups.share, cluster["cpu"])
    with np.errstate(over="ignore", divide="ignore"):
        longest = most / (limits / groups.matrix.max(axis=1)).min()
    check_most(longest, LONGEST, f"{prefix}jobs: the longest possible time of job [{{}}] alone", "s")
    topology.check_reach(cluster, groups.matrix, limits, topology.MOST_CPU * len(cluster["cpu"]), prefix)


def has_powers(workload: Workload) -> bool:
    """Return True if a task's power per vCPU is not 1."""
    return bool((powers(workload.tasks) != 1.0).any())


SCHEMA = Schema(
    problem="parallel-jct",
    jobs=(
        Field("arrival", "s", ("job",), ascending=True, maximum=LAST_TIME),
        # a job's energy cap over its energy at efficiency 1 (the sum of power * load), in every round, unless
        # its least energy is larger; without it caps are drawn anew in every round
        Field(
            "energy_cap_ratio",
            "cap / energy at efficiency 1",
            ("job",),
            exclusive=True,
            maximum=MOST_RATIO,
            optional=True,
        ),
    ),
    tasks=(
        Field("job", "job", ("task",), kind="int", ascending=True),
        Field("load", "vCPU s", ("task",), minimum=LEAST_LOAD, maximum=MOST_LOAD),
        Field("efficiency", "share of the load", ("task", "server"), exclusive=True, maximum=1.0),
        # the constant alpha of the paper's Eq. 7, which its experiments set to 1; default: 1
        Field("power", "per vCPU", ("task",), minimum=LEAST_POWER, maximum=MOST_POWER, optional=True),
    ),
    cluster=topology.CLUSTER,
    parameters=(Field("energy_seed", "", (), kind="int", optional=True),),  # of the draws of caps; default: 0
    check=_check,
)


#: makes a checked workload, of arrival, job, load, efficiency, cpu in this order, and of others by name
make_workload = SCHEMA.make


#: number of jobs that a workload has in its arrays
SIZE = record_dtype(("jobs", np.int64))


class Jobs(NamedTuple):
    """The workload of an episode, as kernels take it; arrays may be longer."""

    size: Annotated[Any, SIZE]
    arrival: Annotated[Floats, "job"]  # [s]
    first_task: Annotated[Integers, "job+1"]
    total_load: Annotated[Floats, "job"]  # [vCPU s]
    ideal_energy: Annotated[Floats, "job"]  # sum of power * load, the energy at efficiency 1
    least_energy: Annotated[Floats, "job"]  # every task on its most efficient server
    least_work: Annotated[Floats, "job"]  # the equivalent loads there [vCPU s]
    energy_cap_ratio: Annotated[Floats, "job"]  # energy cap over ideal energy, nan: the cap is drawn
    energy_seed: Annotated[Integers, 1]
    load: Annotated[Floats, "task"]  # [vCPU s]
    efficiency: Annotated[Floats, "task", "server"]
    power: Annotated[Floats, "task"]  # per vCPU
    cpu: Annotated[Floats, "server", Shown("of each server [vCPU]", topology.MOST_CPU, name="capacity")]
    matrix: Annotated[
        Bytes,
        "group",
        "server",
        Shown("1 for servers in a group, or A_jk", topology.MOST_WEIGHT, name="groups"),
    ]
    share: Annotated[Floats, "group"]  # of a group's available vCPU that a job may use

    @property
    def most_tasks(self) -> int:
        """The largest number of tasks of a job in one environment's workload."""
        return int(np.diff(self.first_task[: int(self.size["jobs"]) + 1]).max())


def tables(workload: Workload) -> Jobs:
    """Convert a workload to the arrays that kernels take, for one environment."""
    jobs, tasks = workload.jobs, workload.tasks
    arrival, load = jobs["arrival"], tasks["load"]
    first = np.searchsorted(tasks["job"], np.arange(len(arrival) + 1))
    groups, power = topology.cluster_groups(workload.cluster), powers(tasks)
    least = load / tasks["efficiency"].max(axis=1)
    ratio = jobs.get("energy_cap_ratio")
    return Jobs(
        size=np.array((len(arrival),), dtype=SIZE),
        arrival=arrival,
        first_task=first.astype(np.int64),
        total_load=_sums(load, first),
        ideal_energy=_sums(power * load, first),
        least_energy=_sums(power * least, first),
        least_work=_sums(least, first),
        energy_cap_ratio=np.full(len(arrival), np.nan) if ratio is None else ratio,
        energy_seed=np.array([workload.parameters.get("energy_seed", 0)], dtype=np.int64),
        load=load,
        efficiency=tasks["efficiency"],
        power=power,
        cpu=workload.cluster["cpu"],
        matrix=(groups.matrix != 0).astype(np.int8),
        share=groups.share,
    )


def _sums(values: Floats, first: Integers) -> Floats:
    """Sum over each job's tasks, from its first to its last, as the draw does; [J]."""
    return np.array([np.cumsum(values[a:b])[-1] for a, b in zip(first[:-1], first[1:], strict=True)])


# Energy caps ----------------------------------------------------------------------------------


@helper
def energy_draw(seed: int, job: int, round: int) -> float:
    """Return U in [0, 1) of a job's ``round``, a function of its arguments without state.

    A round at a tick is numbered by the ticks at which the job has waited before: 0, 1, ... A round between
    ticks is numbered by the earlier ones of its kind: -1, -2, ... So the two kinds have draws of their own,
    and whether the other kind of round is opened changes none of them.
    """
    if round < 0:
        round = BETWEEN - int(round)  # uncompiled, an int32 would overflow
    _, u = uniform(stream(np.uint64(seed), job, round))
    return u


@helper
def is_granted(jobs: Jobs, job: int) -> Any:
    """Return True if no cap that the job can have admits it; then its cap is its least energy."""
    most = jobs.energy_cap_ratio[job]
    if math.isnan(most):
        most = 1.0 + ENERGY_RANGE
    return jobs.least_energy[job] > most * jobs.ideal_energy[job]


@helper
def cap_of_round(jobs: Jobs, job: int, round: int) -> float:
    """Return the energy cap [power * vCPU s] of a job in ``round``, numbered as in :func:`energy_draw`.

    With a ratio the cap is the ratio times the energy at efficiency 1 (in the paper, where all power is 1,
    the load); else it is drawn, U[1, 1.1] times that energy in each round: the paper generates the constraint
    "whenever the scheduler is to schedule that job" (section 6.2.1).
    """
    if is_granted(jobs, job):
        return jobs.least_energy[job]
    ratio = jobs.energy_cap_ratio[job]
    if math.isnan(ratio):
        ratio = 1.0 + ENERGY_RANGE * energy_draw(jobs.energy_seed[0], job, round)
    return ratio * jobs.ideal_energy[job]


# Generator ------------------------------------------------------------------------------------


class TraceJobs(NamedTuple):
    """Jobs of a trace; a task's load is its duration on one vCPU, or drawn if the trace has none."""

    arrival: Floats  # [J] on the trace's own clock [s]
    first_task: Integers  # [J + 1]
    load: Floats  # [Q] [vCPU s], or empty: drawn
    dropped: dict[str, int]  # reason why jobs were left out -> their number


#: inputs of the compiled draw
ORIGIN = record_dtype(
    ("windows", np.int64),  # of a trace; 0: synthetic
    ("jobs", np.int64),  # of an episode
    ("most_tasks", np.int64),  # of a synthetic job
    ("weibull_factor", np.float64),
    ("weibull_scale", np.float64),
    ("weibull_shape", np.float64),
    ("rate", np.float64),  # [1/s]
    ("load_max", np.float64),  # [vCPU s]
    ("cpu", np.float64),  # [vCPU]
)


class Origin(NamedTuple):
    """The inputs of a draw besides seed and episode."""

    constants: Annotated[Any, ORIGIN]
    matrix: Annotated[Bytes, "group", "server"]  # of the constraint groups, the same in all episodes
    share: Annotated[Floats, "group"]
    arrival: Annotated[Floats, "traced"]  # of the jobs of a trace, see TraceJobs
    first_task: Annotated[Integers, "traced+1"]
    load: Annotated[Floats, "traced_task"]


class Drawing(NamedTuple):
    """The arrays of a draw: its source, and the workload that it writes."""

    source: Annotated[Origin, SHARED]
    jobs: Jobs


class Source:
    """The source of an environment's episodes: the paper's generator, or windows of a trace.

    Synthetic jobs arrive by a Poisson process from time 0; those of a trace keep their arrivals, with the
    first at time 0. Loads are U(0, load_max] unless a trace has them, efficiencies U[0.1, 1].

    Args:
        parameters: of the environment.
        trace: the jobs of the trace that the parameters name, if any.

    Attributes:
        parameters: as given.
        trace: the jobs of the trace, or None.
        jobs, servers: J, M.
        windows: number of whole windows of the trace; 0 for the synthetic generator.
        most_tasks: the largest number of tasks that a job may have.
        groups: the constraint groups, the same in all episodes.
        arrays: the arrays that the compiled draw takes.
    """

    def __init__(self, parameters: ParallelJCTParameters, trace: TraceJobs | None = None) -> None:
        self.parameters, self.windows = parameters, 0
        if trace is None:
            self.jobs = int(parameters.jobs)
            self.most_tasks = parameters.most_tasks or DEFAULT_MOST_TASKS[parameters.reading]
            self.trace = TraceJobs(np.zeros(0), np.zeros(1, dtype=np.int64), np.zeros(0), {})
        else:
            self.trace = trace
            self.jobs, self.windows = count_windows(parameters.jobs, len(trace.arrival))
            self.most_tasks = int(np.diff(trace.first_task[: self.windows * self.jobs + 1]).max())
        shares = (parameters.rack_share, parameters.pod_share, parameters.data_centre_share)
        self.groups = topology.fat_tree_groups(parameters.arity, *shares, parameters.server_caps)
        self.servers = self.groups.matrix.shape[1]
        factor, scale, shape = WEIBULL[parameters.reading]
        constants = constants_of(
            ORIGIN,
            parameters,
            windows=self.windows,
            jobs=self.jobs,
            most_tasks=self.most_tasks,
            weibull_factor=factor,
            weibull_scale=scale,
            weibull_shape=shape,
        )
        self.arrays = Origin(constants, self.groups.matrix, self.groups.share, *self.trace[:3])

    @property
    def sizes(self) -> dict[str, int]:
        """Lengths of a workload's dimensions, with enough tasks for a trace and most synthetic episodes."""
        if self.windows:
            starts = self.trace.first_task[: self.windows * self.jobs + 1 : self.jobs]
            tasks = int(np.diff(starts).max())
        else:
            mean, deviation = size_moments(self.parameters.reading, self.most_tasks)
            enough = self.jobs * mean + 4.0 * math.sqrt(self.jobs) * deviation
            tasks = min(math.ceil(enough), self.jobs * self.most_tasks)
        groups, servers = self.groups.matrix.shape
        return {"job": self.jobs, "task": tasks, "server": servers, "group": groups}


def size_moments(reading: str, most_tasks: int) -> tuple[float, float]:
    """Return mean and standard deviation of the number of tasks of a synthetic job."""
    factor, scale, shape = WEIBULL[reading]
    beyond = np.arange(most_tasks, dtype=np.float64)  # P(tasks > k), k = 0, 1, ...
    tail = np.exp(-((beyond / (factor * scale)) ** shape))
    mean = float(tail.sum())
    square = float(((2.0 * beyond + 1.0) * tail).sum())
    return mean, math.sqrt(max(square - mean * mean, 0.0))


def make_source(parameters: ParallelJCTParameters) -> Source:
    """Make the source that an environment's parameters name; read the trace's file, if any."""
    if parameters.trace is None:
        return Source(parameters)
    from schedgym.traces import read_trace

    trace = from_trace(read_trace(parameters.trace, format=parameters.trace_format), parameters.most_tasks)
    if len(trace.load) and parameters.load_max != type(parameters).load_max:
        raise InvalidParameter("load_max: has no effect on a trace that tells durations: leave it out")
    return Source(parameters, trace)


def from_trace(trace: Trace | JobTrace, most_tasks: int | None = None) -> TraceJobs:
    """Convert the jobs of a trace.

    In a trace of tasks with their jobs (Google 2011), a job has the tasks that the trace keeps; it arrives
    with the first of them, and a task's load is its duration on one vCPU. In a trace of jobs with their data
    (SWIM), a job has a task per 1 GB of map input, and the loads are drawn.

    Args:
        trace: as read.
        most_tasks: jobs with more tasks are left out, and counted; None: no limit.

    Raises:
        InvalidParameter: when the trace does not say which tasks form a job.
        InvalidWorkload: when no job is left, or a load or an arrival is too large.
    """
    from schedgym.traces.base import JobTrace

    dropped: dict[str, int] = {}
    if isinstance(trace, JobTrace):
        counts = trace.map_tasks()
        arrival, load = trace.arrival, np.zeros(0)
        if (counts == 0).any():
            dropped["no map task"] = int((counts == 0).sum())
    else:
        if not len(trace.job):
            raise InvalidParameter(f"trace: the {trace.name} trace does not tell which tasks form a job")
        # tasks are sorted by arrival, so a job arrives with its first one, and jobs are sorted by it
        _, first, number, counts = np.unique(
            trace.job, return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        arrival, counts = trace.arrival[first[order]], counts[order]
        load = trace.duration[np.argsort(place[number.reshape(-1)], kind="stable")]
        if (load > MOST_LOAD).any():
            raise InvalidWorkload(
                f"{trace.name}: a task lasts {load.max():g} s, but the most are {MOST_LOAD:g}"
            )
    kept = counts > 0
    if most_tasks is not None:
        large = counts > most_tasks
        if large.any():
            dropped[f"more than {most_tasks} tasks"] = int(large.sum())
        kept &= ~large
    if not kept.any():
        reasons = ", ".join(f"{count} with {reason}" for reason, count in dropped.items())
        raise InvalidWorkload(f"{trace.name}: no job is left: {reasons}")
    if load.size:
        load = load[np.repeat(kept, counts)]
    arrival = arrival[kept]
    if arrival[-1] - arrival[0] > LAST_TIME:
        raise InvalidWorkload(f"{trace.name}: arrivals must lie within {LAST_TIME:g} s")
    first = np.concatenate([[0], np.cumsum(counts[kept])]).astype(np.int64)
    return TraceJobs(np.ascontiguousarray(arrival), first, np.ascontiguousarray(load), dropped)


def rebuild(source: Source, jobs: Jobs) -> Workload:
    """Convert one environment's :class:`Jobs`, which were drawn from ``source``, to a workload."""
    parameters, count = source.parameters, int(jobs.size["jobs"])
    first = jobs.first_task[: count + 1]
    return make_workload(
        jobs.arrival[:count],
        np.repeat(np.arange(count), np.diff(first)),
        jobs.load[: first[-1]],
        jobs.efficiency[: first[-1]],
        jobs.cpu,
        arity=parameters.arity,
        beta=(parameters.rack_share, parameters.pod_share, parameters.data_centre_share),
        server_caps=parameters.server_caps,
        energy_seed=int(jobs.energy_seed[0]),
    )


def generate(seed: int, episode: int, source: Source) -> Workload:
    """The workload that an environment reset with ``seed`` meets in its ``episode`` (counted from 0)."""
    return rebuild(source, draw_alone(draw, Drawing, source, seed, episode))


@helper
def draw_size(state: np.uint64, source: Any) -> tuple[np.uint64, int]:
    """Return the next state, and a number of tasks from 1 to the most of a job."""
    state, x = exponential(state)
    variate = source.weibull_scale * math.pow(x, 1.0 / source.weibull_shape)
    most = float(source.most_tasks)
    return state, max(int(math.ceil(min(source.weibull_factor * variate, most))), 1)


@helper
def draw_tasks(env: Drawing, seed: np.uint64, episode: int, job: int, known: int) -> None:
    """Draw a job's tasks into its rows by ``first_task``; ``known`` is its first task in the trace.

    Task x of a job takes the x-th draws of load and efficiencies of the job's own streams. So a change of the
    sizes of jobs leaves the tasks that remain as they were.
    """
    source, jobs = env.source.constants, env.jobs
    loads = substream(stream(seed, episode, LOADS), job)
    efficiencies = substream(stream(seed, episode, EFFICIENCIES), job)
    total = 0.0
    least = 0.0
    first = jobs.first_task[job]
    for q in range(first, jobs.first_task[job + 1]):
        if env.source.load.shape[0] > 0:
            load = env.source.load[known + q - first]
        else:
            loads, u = uniform(loads)
            load = source.load_max * (1.0 - u)
        jobs.load[q] = load
        jobs.power[q] = 1.0
        total += load
        best = 0.0
        for j in range(jobs.cpu.shape[0]):
            efficiencies, u = uniform(efficiencies)
            own = LEAST_EFFICIENCY + (1.0 - LEAST_EFFICIENCY) * u
            jobs.efficiency[q, j] = own
            best = max(best, own)
        least += load / best
    jobs.total_load[job] = total
    jobs.ideal_energy[job] = total
    jobs.least_energy[job] = least
    jobs.least_work[job] = least


@helper
def draw_one(env: Drawing, seed: np.uint64, episode: int) -> int:
    """Draw the workload of (seed, episode); returns its number of tasks.

    Jobs whose tasks do not fit the arrays are left out; the caller then draws again into longer arrays.
    """
    source, jobs = env.source.constants, env.jobs
    first = 0
    if source.windows > 0:
        first = first_of_window(seed, episode, WINDOWS, source.windows, source.jobs)
    gaps = stream(seed, episode, ARRIVALS)
    sizes = stream(seed, episode, SIZES)
    jobs.size.jobs = source.jobs
    jobs.first_task[0] = 0
    clock = 0.0
    known = 0
    for i in range(source.jobs):
        if source.windows > 0:
            known = env.source.first_task[first + i]
            count = env.source.first_task[first + i + 1] - known
            clock = env.source.arrival[first + i] - env.source.arrival[first]
        else:
            sizes, count = draw_size(sizes, source)
            gaps, gap = exponential(gaps)
            clock += gap / source.rate
        jobs.arrival[i] = clock
        jobs.energy_cap_ratio[i] = math.nan
        jobs.first_task[i + 1] = jobs.first_task[i] + count
        if jobs.first_task[i + 1] <= jobs.load.shape[0]:
            draw_tasks(env, seed, episode, i, known)
    for j in range(jobs.cpu.shape[0]):
        jobs.cpu[j] = source.cpu
    for k in range(jobs.share.shape[0]):
        jobs.share[k] = env.source.share[k]
        for j in range(jobs.cpu.shape[0]):
            jobs.matrix[k, j] = env.source.matrix[k, j]
    _, u = uniform(stream(seed, episode, CAPS))
    jobs.energy_seed[0] = int(u * 2.0**53)
    return jobs.first_task[source.jobs]


draw = draw_kernel(__name__, Drawing, draw_one)


def shuffle_future(workload: Workload, time: float, rng: np.random.Generator) -> Workload:
    """See :func:`~schedgym.core.future.change_future`; loads, efficiencies, powers and ratios change."""
    factors = {"load": (0.25, 1.0), "efficiency": (0.5, 1.0), "power": (0.5, 1.0)}
    factors["energy_cap_ratio"] = (0.5, 1.0)
    return change_future(SCHEMA, workload, time, rng, factors)
