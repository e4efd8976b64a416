"""Workloads of ParallelJCT: the schema, the paper's generator, traces, energy caps, toy instances.

Times are seconds, loads vCPU seconds at efficiency 1, capacities vCPU.

Source: paper 001, section 6.2.1; for the energy caps also section 6.1.1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import helper, pure_kernel, record_dtype
from schedgym.core.random import GOLDEN, exponential, mix, stream, uniform
from schedgym.core.workload import Field, Schema, Workload
from schedgym.errors import InvalidParameter, InvalidWorkload
from schedgym.problems.single_job.topology import (
    CLUSTER,
    MOST_CPU,
    check_cluster,
    cluster_groups,
    fat_tree_groups,
    group_limits,
)
from schedgym.problems.single_job.workload import LEAST_LOAD, LONGEST, MOST_ENERGY, MOST_LOAD

if TYPE_CHECKING:
    from schedgym.problems.parallel_jct.problem import ParallelJCTParameters
    from schedgym.traces.base import JobTrace, Trace

__all__ = [
    "DEFAULT_MOST_TASKS",
    "ENERGY_RANGE",
    "LAST_TIME",
    "MOST_CPU",
    "MOST_ENERGY",
    "MOST_LOAD",
    "SCHEMA",
    "TOYS",
    "Source",
    "Tables",
    "TraceJobs",
    "cap_of_round",
    "cap_of_round_python",
    "draw",
    "draw_python",
    "energy_draw",
    "energy_draw_python",
    "from_trace",
    "generate",
    "make_source",
    "make_workload",
    "rebuild",
    "shuffle_future",
    "tables",
    "toy",
]

Bits = npt.NDArray[np.int8]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: no job of a workload may arrive later [s], so that clocks resolve 0.2 ms
LAST_TIME = 1e12
#: most energy cap over load
MOST_RATIO = 1e6
#: a drawn energy cap is up to this part larger than the sum of loads
ENERGY_RANGE = 0.1

#: readings of the paper's "Weibull distribution with scale parameter A = 0.5 and scale parameter B = 0.8": a
#: job has ceil(factor W) tasks, W Weibull; reading -> (factor, scale, shape)
WEIBULL = {"x70": (70.0, 0.5, 0.8), "scale-half": (1.0, 0.5, 0.8), "shape-half": (1.0, 0.8, 0.5)}
#: most tasks of a job. The paper's 70 cuts 17.5% of the jobs of x70; of the other readings no job in practice
#: reaches 200: one in 10^52 (scale-half), one in 7 million (shape-half)
DEFAULT_MOST_TASKS = {"x70": 70, "scale-half": 200, "shape-half": 200}

ARRIVALS, SIZES, LOADS, EFFICIENCIES, CAPS, WINDOWS = range(6)  # random streams


# Schema ---------------------------------------------------------------------------------------


def _check(sections: dict[str, dict[str, npt.NDArray[Any]]], prefix: str) -> None:
    """What must hold between fields: jobs have tasks, the tree fits its servers, and times are finite."""
    jobs, tasks = sections["jobs"], sections["tasks"]
    check_cluster(sections["cluster"], prefix)
    count, job = len(jobs["arrival"]), tasks["job"]
    if job[-1] >= count:
        i = int(np.argmax(job >= count))
        raise InvalidWorkload(f"{prefix}tasks.job[{i}]: there are {count} jobs, got {job[i]}")
    idle = np.bincount(job, minlength=count) == 0
    if idle.any():
        raise InvalidWorkload(f"{prefix}jobs: job [{int(np.argmax(idle))}] has no task")
    with np.errstate(over="ignore"):
        most = np.bincount(job, tasks["load"] / tasks["efficiency"].min(axis=1))
    beyond = ~(most <= MOST_ENERGY)
    if beyond.any():
        i = int(np.argmax(beyond))
        raise InvalidWorkload(
            f"{prefix}jobs: the largest possible energy of job [{i}] must be <= {MOST_ENERGY:g} vCPU s, "
            f"got {most[i]:g}"
        )
    groups = cluster_groups(sections["cluster"])
    least = group_limits(groups.matrix, groups.share, sections["cluster"]["cpu"]).min()
    with np.errstate(over="ignore", divide="ignore"):
        longest = most / least
    beyond = ~(longest <= LONGEST)
    if beyond.any():
        i = int(np.argmax(beyond))
        raise InvalidWorkload(
            f"{prefix}jobs: the longest possible time of job [{i}] alone must be <= {LONGEST:g} s, "
            f"got {longest[i]:g}"
        )


SCHEMA = Schema(
    problem="parallel-jct",
    jobs=(
        Field("arrival", "s", ("job",), ascending=True, maximum=LAST_TIME),
        Field("energy_cap_ratio", "cap / load", ("job",), exclusive=True, maximum=MOST_RATIO, optional=True),
    ),
    tasks=(
        Field("job", "job", ("task",), kind="int", ascending=True),
        Field("load", "vCPU s", ("task",), minimum=LEAST_LOAD, maximum=MOST_LOAD),
        Field("efficiency", "share of the load", ("task", "server"), exclusive=True, maximum=1.0),
    ),
    cluster=CLUSTER,
    parameters=(Field("energy_seed", "", (), kind="int", optional=True),),
    check=_check,
)


def make_workload(
    arrival: npt.ArrayLike,
    job: npt.ArrayLike,
    load: npt.ArrayLike,
    efficiency: npt.ArrayLike,
    cpu: npt.ArrayLike,
    *,
    arity: int | None = None,
    groups: npt.ArrayLike | None = None,
    beta: Any = None,
    server_caps: bool | None = None,
    energy_cap_ratio: npt.ArrayLike | None = None,
    energy_seed: int | None = None,
) -> Workload:
    """A checked workload.

    Args:
        arrival: of each job [s], not decreasing; [J].
        job: of each task, not decreasing; [Q].
        load: of each task [vCPU s]; [Q].
        efficiency: of each task on each server, in (0, 1]; [Q, M].
        cpu: of each server [vCPU]; [M].
        arity: of a fat tree, or ``groups``.
        groups: whether a server is in a group, 0 or 1; [R, M].
        beta: shares of the available vCPU of a group that a job may use. With ``arity`` of racks, pods, and
            the data centre (an object of these names, or a list; None: 0.3, 0.2, 0.2), with ``groups`` of
            each; [R].
        server_caps: whether each server's own vCPU is a limit; None: it is.
        energy_cap_ratio: each job's energy cap over its load, in every round, unless its least energy is
            larger; [J]. None: caps are drawn anew in every round.
        energy_seed: decides the draws of the caps; None: 0.

    Raises:
        InvalidWorkload: naming the field and the first bad index.
    """
    cluster: dict[str, Any] = {"arity": arity, "groups": groups, "beta": beta, "server_caps": server_caps}
    sections: dict[str, dict[str, Any]] = {
        "jobs": {"arrival": arrival, "energy_cap_ratio": energy_cap_ratio},
        "tasks": {"job": job, "load": load, "efficiency": efficiency},
        "cluster": {"cpu": cpu, **cluster},
        "parameters": {"energy_seed": energy_seed},
    }
    return SCHEMA.parse(
        {
            section: {name: value for name, value in fields.items() if value is not None}
            for section, fields in sections.items()
        }
    )


class Tables(NamedTuple):
    """A workload as arrays for kernels. J jobs, Q tasks, M servers, R groups."""

    arrival: Floats  # [J]
    first_task: Integers  # [J + 1]
    load: Floats  # [Q]
    efficiency: Floats  # [Q, M]
    total_load: Floats  # [J]
    least_energy: Floats  # [J] every task on its most efficient server
    energy_cap_ratio: Floats  # [J] nan: the cap is drawn
    energy_seed: int
    cpu: Floats  # [M]
    matrix: Bits  # [R, M]
    share: Floats  # [R]
    kind: Integers  # [R] see topology.Groups

    @property
    def most_tasks(self) -> int:
        """Largest number of tasks of a job."""
        return int(np.diff(self.first_task).max())


def tables(workload: Workload) -> Tables:
    """A checked workload as arrays for kernels."""
    jobs, tasks = workload.jobs, workload.tasks
    arrival, load = jobs["arrival"], tasks["load"]
    first = np.searchsorted(tasks["job"], np.arange(len(arrival) + 1))
    groups = cluster_groups(workload.cluster)
    ratio = jobs.get("energy_cap_ratio")
    return Tables(
        arrival=arrival,
        first_task=first.astype(np.int64),
        load=load,
        efficiency=tasks["efficiency"],
        total_load=_sums(load, first),
        least_energy=_sums(load / tasks["efficiency"].max(axis=1), first),
        energy_cap_ratio=np.full(len(arrival), np.nan) if ratio is None else ratio,
        energy_seed=int(workload.parameters.get("energy_seed", 0)),
        cpu=workload.cluster["cpu"],
        matrix=groups.matrix,
        share=groups.share,
        kind=groups.kind,
    )


def _sums(values: Floats, first: Integers) -> Floats:
    """Sums over each job's tasks, from its first to its last, as the draw sums; [J]."""
    return np.array([np.cumsum(values[a:b])[-1] for a, b in zip(first[:-1], first[1:], strict=True)])


# Energy caps ----------------------------------------------------------------------------------


@helper
def energy_draw(seed: int, job: int, round: int) -> float:
    """U in [0, 1) of a job's ``round`` (counted from 0): a function of its arguments, so without a state."""
    _, u = uniform(stream(np.uint64(seed), job, round))
    return u


def energy_draw_python(seed: int, job: int, round: int) -> float:
    """:func:`energy_draw` in plain Python."""
    mask = 2**64 - 1
    golden = int(GOLDEN)

    def mixed(word: int) -> int:
        word &= mask
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & mask
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB & mask
        return word ^ (word >> 31)

    state = mixed(mixed(mixed(seed + golden) + job) + golden * (round + 1))
    return (mixed(state + golden) >> 11) * 2.0**-53


@helper
def cap_of_round(
    total_load: float, least_energy: float, ratio: float, seed: int, job: int, round: int
) -> tuple[float, bool]:
    """The energy cap of a job in its ``round``, and whether its least energy is granted as the cap.

    With a ratio the cap is ratio * load; else it is drawn, U[1, 1.1] * load in each round. A job that no such
    cap could ever admit is granted its least energy.

    Args:
        total_load: of the job [vCPU s].
        least_energy: of the job [vCPU s].
        ratio: cap over load, nan: drawn.
        seed: ``energy_seed`` of the workload.
        job: index of the job.
        round: of planning in which the job waits, counted from 0.
    """
    most = ratio
    if math.isnan(ratio):
        most = 1.0 + ENERGY_RANGE
    if least_energy > most * total_load:
        return least_energy, True
    if math.isnan(ratio):
        most = 1.0 + ENERGY_RANGE * energy_draw(seed, job, round)
    return most * total_load, False


def cap_of_round_python(
    total_load: float, least_energy: float, ratio: float, seed: int, job: int, round: int
) -> tuple[float, bool]:
    """:func:`cap_of_round` in plain Python."""
    drawn = math.isnan(ratio)
    if least_energy > (1.0 + ENERGY_RANGE if drawn else ratio) * total_load:
        return least_energy, True
    if drawn:
        ratio = 1.0 + ENERGY_RANGE * energy_draw_python(seed, job, round)
    return ratio * total_load, False


# Generator ------------------------------------------------------------------------------------

#: where episodes come from, for the compiled draw
SOURCE = record_dtype(
    ("windows", np.int64),  # of a trace; 0: synthetic
    ("jobs", np.int64),  # of an episode
    ("most_tasks", np.int64),  # of a synthetic job
    ("weibull_factor", np.float64),
    ("weibull_scale", np.float64),
    ("weibull_shape", np.float64),
    ("rate", np.float64),  # [1/s]
    ("load_max", np.float64),  # [vCPU s]
    ("efficiency_min", np.float64),
    ("cpu", np.float64),  # [vCPU]
)


class TraceJobs(NamedTuple):
    """Jobs of a trace; a task's load is its duration on one vCPU, or drawn where the trace tells none."""

    arrival: Floats  # [J] on the trace's own clock [s]
    first: Integers  # [J + 1] first task of a job
    load: Floats  # [Q] [vCPU s], or empty: drawn
    dropped: dict[str, int]  # why jobs were left out -> how many


class Source:
    """Where an environment's episodes come from: the paper's generator, or windows of a trace.

    Synthetic jobs arrive by a Poisson process from time 0, those of a trace as they did, the first at time 0.
    Loads are U(0, load_max] unless a trace tells them, efficiencies U[efficiency_min, 1].

    Attributes:
        jobs, servers: J, M.
        arity: of the fat tree.
        beta: shares of racks, pods, and the data centre; [3].
        server_caps: whether servers' own vCPU are limits.
        cpu: of each server [vCPU].
        groups: the constraint groups, the same in all episodes.
        most_tasks: the largest number of tasks that a job may have.
        dropped: jobs of the trace that were left out: why -> how many.
        constants: SOURCE record [1].
        trace: the jobs of the trace, or none.
    """

    def __init__(
        self,
        jobs: int | str,
        arity: int,
        *,
        reading: str = "x70",
        most_tasks: int | None = None,
        rate: float = 0.15,
        load_max: float = 1000.0,
        efficiency_min: float = 0.1,
        cpu: float = 10.0,
        rack_share: float = 0.3,
        pod_share: float = 0.2,
        data_centre_share: float = 0.2,
        server_caps: bool = True,
        trace: TraceJobs | None = None,
    ) -> None:
        windows = 0
        if trace is None:
            if isinstance(jobs, str):
                raise InvalidParameter(f"jobs: {jobs!r} needs a trace")
            trace = TraceJobs(np.zeros(0), np.zeros(1, dtype=np.int64), np.zeros(0), {})
            self.most_tasks = most_tasks or DEFAULT_MOST_TASKS[reading]
        else:
            known = len(trace.arrival)
            jobs = known if isinstance(jobs, str) else jobs
            windows = known // jobs
            if windows == 0:
                raise InvalidParameter(
                    f"jobs: a window of {jobs} is longer than the trace, which has {known} jobs"
                )
            self.most_tasks = int(np.diff(trace.first[: windows * jobs + 1]).max())
        self.jobs, self.arity, self.cpu, self.server_caps, self.trace = jobs, arity, cpu, server_caps, trace
        self.dropped = trace.dropped
        self.beta = (rack_share, pod_share, data_centre_share)
        self.groups = fat_tree_groups(arity, *self.beta, server_caps)
        self.servers = self.groups.matrix.shape[1]
        self.constants = np.zeros(1, dtype=SOURCE)
        weibull = WEIBULL[reading]
        self.constants[0] = (windows, jobs, self.most_tasks, *weibull, rate, load_max, efficiency_min, cpu)

    @property
    def windows(self) -> int:
        """Number of whole windows of the trace; 0 for the synthetic generator."""
        return int(self.constants["windows"][0])

    @property
    def room(self) -> int:
        """Tasks to make room for at first: enough for all windows of a trace, and most synthetic episodes."""
        if self.windows:
            starts = self.trace.first[: self.windows * self.jobs + 1 : self.jobs]
            return int(np.diff(starts).max())
        mean, deviation = size_moments(self.constants[0])
        enough = self.jobs * mean + 4.0 * math.sqrt(self.jobs) * deviation
        return min(math.ceil(enough), self.jobs * self.most_tasks)


def size_moments(constants: Any) -> tuple[float, float]:
    """Mean and standard deviation of the number of tasks of a synthetic job."""
    beyond = np.arange(int(constants.most_tasks), dtype=np.float64)  # P(tasks > k), k = 0, 1, ...
    scale = constants.weibull_factor * constants.weibull_scale
    tail = np.exp(-((beyond / scale) ** constants.weibull_shape))
    mean = float(tail.sum())
    square = float(((2.0 * beyond + 1.0) * tail).sum())
    return mean, math.sqrt(max(square - mean * mean, 0.0))


def make_source(parameters: ParallelJCTParameters) -> Source:
    """The source that an environment's parameters name; reads the trace's file, if any."""
    trace = None
    if parameters.trace is not None:
        from schedgym.traces import read_trace

        trace = from_trace(read_trace(parameters.trace), parameters.most_tasks)
        if len(trace.load) and parameters.load_max != type(parameters).load_max:
            raise InvalidParameter("load_max: has no effect on a trace that tells durations: leave it out")
    return Source(
        parameters.jobs,
        parameters.arity,
        reading=parameters.reading,
        most_tasks=parameters.most_tasks,
        rate=parameters.rate,
        load_max=parameters.load_max,
        efficiency_min=parameters.efficiency_min,
        cpu=parameters.cpu,
        rack_share=parameters.rack_share,
        pod_share=parameters.pod_share,
        data_centre_share=parameters.data_centre_share,
        server_caps=parameters.server_caps,
        trace=trace,
    )


def from_trace(trace: Trace | JobTrace, most_tasks: int | None = None) -> TraceJobs:
    """Jobs of a trace.

    Of a trace of tasks that tells their jobs (Google 2011), a job's tasks are those that the trace keeps; it
    arrives with the first of them, and a task's load is its duration on one vCPU. Of a trace of jobs by their
    data (SWIM), a job has a task per 1 GB of map input, and the loads are drawn.

    Args:
        trace: as read.
        most_tasks: jobs with more tasks are left out, and counted; None: none is.

    Raises:
        InvalidParameter: when the trace does not tell which tasks form a job.
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
        # tasks are sorted by arrival, so a job's first one tells when it arrives, and jobs go by it
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


def rebuild(
    source: Source,
    arrival: Floats,
    first_task: Integers,
    load: Floats,
    efficiency: Floats,
    energy_seed: int,
) -> Workload:
    """The workload of one environment's drawn arrays, of which all but ``arrival`` may be longer.

    Args:
        source: what they were drawn from.
        arrival: [J].
        first_task: [J + 1].
        load: [Q].
        efficiency: [Q, M].
        energy_seed: of the draws of energy caps.
    """
    first = first_task[: len(arrival) + 1]
    count = int(first[-1])
    return make_workload(
        arrival,
        np.repeat(np.arange(len(arrival)), np.diff(first)),
        load[:count],
        efficiency[:count],
        np.full(source.servers, source.cpu),
        arity=source.arity,
        beta=source.beta,
        server_caps=source.server_caps,
        energy_seed=int(energy_seed),
    )


class _Arrays(NamedTuple):
    """What a draw fills, for one environment or more."""

    arrival: Floats
    first_task: Integers
    load: Floats
    efficiency: Floats
    total_load: Floats
    least_energy: Floats
    energy_cap_ratio: Floats
    energy_seed: Integers
    cpu: Floats


def _make_arrays(environments: int, jobs: int, tasks: int, servers: int) -> _Arrays:
    b = environments
    return _Arrays(
        arrival=np.zeros((b, jobs)),
        first_task=np.zeros((b, jobs + 1), dtype=np.int64),
        load=np.zeros((b, tasks)),
        efficiency=np.zeros((b, tasks, servers)),
        total_load=np.zeros((b, jobs)),
        least_energy=np.zeros((b, jobs)),
        energy_cap_ratio=np.zeros((b, jobs)),
        energy_seed=np.zeros(b, dtype=np.int64),
        cpu=np.zeros((b, servers)),
    )


def generate(seed: int, episode: int, source: Source) -> Workload:
    """The workload that an environment reset with ``seed`` meets in its ``episode`` (counted from 0)."""
    from schedgym.core.random import root_seed

    tasks = source.room
    while True:
        arrays = _make_arrays(1, source.jobs, tasks, source.servers)
        mask, episodes = np.ones(1, dtype=bool), np.array([episode])
        needed = draw_python(mask, np.array([root_seed(seed)]), episodes, source, arrays)
        if needed <= tasks:
            break
        tasks = needed
    return rebuild(
        source,
        arrays.arrival[0],
        arrays.first_task[0],
        arrays.load[0],
        arrays.efficiency[0],
        int(arrays.energy_seed[0]),
    )


def draw_python(
    mask: npt.NDArray[np.bool_],
    seeds: npt.NDArray[np.uint64],
    episodes: Integers,
    source: Source,
    jobs: Any,
) -> int:
    """:func:`draw`, called from Python (uncompiled, its modular arithmetic would warn of overflow).

    Args:
        mask: which environments [B].
        seeds: root seeds [B].
        episodes: numbers of the episodes [B].
        source: where they come from.
        jobs: has the arrays that :func:`draw` writes as attributes.

    Returns:
        The most tasks of an environment, see :func:`draw`.
    """
    with np.errstate(over="ignore"):
        return draw(
            mask,
            seeds,
            episodes,
            source.constants,
            source.trace.arrival,
            source.trace.first,
            source.trace.load,
            jobs.arrival,
            jobs.first_task,
            jobs.load,
            jobs.efficiency,
            jobs.total_load,
            jobs.least_energy,
            jobs.energy_cap_ratio,
            jobs.energy_seed,
            jobs.cpu,
        )


@helper
def substream(state: np.uint64, job: int) -> np.uint64:
    """State of a job's own stream: draws for one job shift nothing for the others."""
    return mix(state + GOLDEN * np.uint64(job + 1))


@helper
def draw_size(state: np.uint64, constants: Any) -> tuple[np.uint64, int]:
    """The next state and a number of tasks from 1 to the most of a job."""
    state, x = exponential(state)
    variate = constants[0].weibull_scale * math.pow(x, 1.0 / constants[0].weibull_shape)
    most = float(constants[0].most_tasks)
    return state, max(int(math.ceil(min(constants[0].weibull_factor * variate, most))), 1)


@helper
def draw_environment(
    seed: np.uint64,
    episode: int,
    constants: Any,
    trace_arrival: Any,
    trace_first: Any,
    trace_load: Any,
    b: int,
    arrival: Any,
    first_task: Any,
    load: Any,
    efficiency: Any,
    total_load: Any,
    least_energy: Any,
    energy_cap_ratio: Any,
    energy_seed: Any,
    cpu: Any,
) -> int:
    """Draw one environment's workload; returns its number of tasks.

    Task x of a job draws its load and its efficiencies as the x-th of the job's own streams. So a change of
    the sizes of jobs leaves the tasks that remain as they were.
    """
    jobs = constants[0].jobs
    windows = constants[0].windows
    low = constants[0].efficiency_min
    servers = efficiency.shape[2]
    first = 0
    if windows > 0:  # consecutive episodes take consecutive windows, from one that the seed decides
        state, u = uniform(stream(seed, 0, WINDOWS))
        first = ((int(u * windows) + episode) % windows) * jobs
    gaps = stream(seed, episode, ARRIVALS)
    sizes = stream(seed, episode, SIZES)
    loads = stream(seed, episode, LOADS)
    efficiencies = stream(seed, episode, EFFICIENCIES)
    tasks = 0
    clock = 0.0
    for i in range(jobs):
        known = 0
        if windows > 0:
            known = trace_first[first + i]
            count = trace_first[first + i + 1] - known
            clock = trace_arrival[first + i] - trace_arrival[first]
        else:
            sizes, count = draw_size(sizes, constants)
            gaps, gap = exponential(gaps)
            clock += gap / constants[0].rate
        arrival[b, i] = clock
        energy_cap_ratio[b, i] = np.nan
        first_task[b, i] = tasks
        if tasks + count > load.shape[1]:
            tasks += count
            continue
        drawn = substream(loads, i)
        state = substream(efficiencies, i)
        total = 0.0
        least = 0.0
        for x in range(count):
            if trace_load.shape[0] > 0:
                value = trace_load[known + x]
            else:
                drawn, u = uniform(drawn)
                value = constants[0].load_max * (1.0 - u)
            load[b, tasks] = value
            total += value
            best = 0.0
            for j in range(servers):
                state, u = uniform(state)
                own = low + (1.0 - low) * u
                efficiency[b, tasks, j] = own
                best = max(best, own)
            least += value / best
            tasks += 1
        total_load[b, i] = total
        least_energy[b, i] = least
    first_task[b, jobs] = tasks
    for j in range(servers):
        cpu[b, j] = constants[0].cpu
    _, u = uniform(stream(seed, episode, CAPS))
    energy_seed[b] = int(u * 2.0**53)
    return tasks


@pure_kernel
def draw(
    mask: npt.NDArray[np.bool_],
    seeds: npt.NDArray[np.uint64],
    episodes: Integers,
    constants: npt.NDArray[Any],
    trace_arrival: Floats,
    trace_first: Integers,
    trace_load: Floats,
    arrival: Floats,
    first_task: Integers,
    load: Floats,
    efficiency: Floats,
    total_load: Floats,
    least_energy: Floats,
    energy_cap_ratio: Floats,
    energy_seed: Integers,
    cpu: Floats,
) -> int:
    """Draw the workload of (seed, episode) for environments.

    Args:
        mask: which ones [B].
        seeds: root seeds [B].
        episodes: numbers of the episodes [B].
        constants: SOURCE [1].
        trace_arrival: of the trace's jobs, or empty.
        trace_first: first task of the trace's jobs.
        trace_load: of the trace's tasks, or empty.
        arrival: written, [B, >= J], as are all that follow.
        first_task: [B, > J].
        load: [B, Q].
        efficiency: [B, Q, M].
        total_load: [B, >= J].
        least_energy: [B, >= J].
        energy_cap_ratio: [B, >= J], nan.
        energy_seed: [B].
        cpu: [B, M].

    Returns:
        The most tasks of an environment. If that exceeds Q, what was written is incomplete: call again with
        larger arrays.
    """
    tasks = 0
    for b in range(mask.shape[0]):
        if not mask[b]:
            continue
        own = draw_environment(
            seeds[b],
            episodes[b],
            constants,
            trace_arrival,
            trace_first,
            trace_load,
            b,
            arrival,
            first_task,
            load,
            efficiency,
            total_load,
            least_energy,
            energy_cap_ratio,
            energy_seed,
            cpu,
        )
        tasks = max(tasks, own)
    return tasks


# Toy instances --------------------------------------------------------------------------------

#: toy instances: name -> (arguments of make_workload, least average completion time [s] with DRC and ticks
#: every 5 s)
TOYS: dict[str, tuple[dict[str, Any], float]] = {
    # vector 5 of the specification: only server 0 is within the caps. OnTaPRA launches the jobs at 0 and 5,
    # which end at 12.5 and 15; at 0 and 10 they would end at 10 and 15, and server 0 can do no more
    "vector-5": (
        {
            "arrival": [0, 2],
            "job": [0, 1],
            "load": [100, 50],
            "efficiency": [[1, 0.5]] * 2,
            "cpu": [10, 10],
            "arity": 2,
            "beta": {"rack": 0.5, "pod": 0.5, "data_centre": 0.5},
        },
        11.5,
    ),
    # a job with a task for each server
    "alone": (
        {
            "arrival": [0],
            "job": [0, 0],
            "load": [100, 50],
            "efficiency": [[1, 0.5], [0.5, 1]],
            "cpu": [10, 5],
            "arity": 2,
            "beta": [1, 1, 1],
            "energy_cap_ratio": [1],
        },
        10.0,
    ),
    # two jobs that need not meet, one of them with the least possible cap, which exceeds its ratio
    "apart": (
        {
            "arrival": [0, 0],
            "job": [0, 1],
            "load": [100, 40],
            "efficiency": [[1, 0.5], [0.25, 0.5]],
            "cpu": [10, 10],
            "arity": 2,
            "beta": [1, 1, 1],
            "energy_cap_ratio": [1, 1.5],
        },
        9.0,
    ),
    # the second job arrives between two ticks, when the first is gone
    "later": (
        {
            "arrival": [0, 18],
            "job": [0, 1],
            "load": [100, 50],
            "efficiency": [[1, 1]] * 2,
            "cpu": [10, 10],
            "groups": [[1, 1]],
            "beta": [1],
        },
        8.5,
    ),
}


def toy(name: str) -> tuple[Workload, float]:
    """The toy instance ``name`` and its least average completion time [s] with DRC and ticks every 5 s."""
    arguments, optimum = TOYS[name]
    return make_workload(**arguments), optimum


def shuffle_future(workload: Workload, time: float, rng: np.random.Generator) -> Workload:
    """The workload with another future: the jobs that arrive after ``time`` share out their tasks anew.

    Their sizes, loads, efficiencies, ratios and arrivals change; how many they are and how many tasks the
    largest has do not. An environment or a policy that is shown nothing of the future behaves the same up to
    ``time``.

    Args:
        workload: the instance.
        time: jobs that arrive at this instant or earlier stay as they are, with their tasks [s].
        rng: decides who gets what, and the factors on times and loads.
    """
    jobs = {name: array.copy() for name, array in workload.jobs.items()}
    tasks = {name: array.copy() for name, array in workload.tasks.items()}
    arrival = jobs["arrival"]
    later = np.flatnonzero(arrival > time)
    if len(later) == 0:
        return workload
    past = int(np.searchsorted(tasks["job"], later[0]))  # tasks that stay
    sizes = np.bincount(tasks["job"])[later]
    tasks["job"][past:] = np.repeat(later, rng.permutation(sizes))
    order = past + rng.permutation(len(tasks["job"]) - past)
    tasks["load"][past:] = tasks["load"][order] * rng.uniform(0.25, 1.0, len(order))
    tasks["efficiency"][past:] = tasks["efficiency"][order] * rng.uniform(0.5, 1.0, (len(order), 1))
    if "energy_cap_ratio" in jobs:
        jobs["energy_cap_ratio"][later] *= rng.uniform(0.5, 1.0, len(later))
    gaps = np.diff(arrival[later], prepend=time) * rng.uniform(0.5, 1.0, len(later))
    arrival[later] = np.maximum(time + np.cumsum(gaps), np.nextafter(time, np.inf))
    return SCHEMA.parse(
        {"jobs": jobs, "tasks": tasks, "cluster": workload.cluster, "parameters": workload.parameters}
    )
