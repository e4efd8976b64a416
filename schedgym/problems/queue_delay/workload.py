"""Workloads of QueueDelay: the schema, the generator with the paper's parameters, traces.

Sizes are shares of the largest machine, times are seconds. A workload file has a field for each resource, by
its name, in ``jobs`` and in ``cluster``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import SHARED, Floats, Integers, Shown
from schedgym.core.future import change_future
from schedgym.core.jit import helper, record_dtype
from schedgym.core.kernels import draw_kernel
from schedgym.core.random import exponential, normal_pair, stream, uniform
from schedgym.core.rows import copy_entries
from schedgym.core.source import constants_of, count_windows, draw_alone, first_of_window
from schedgym.core.workload import Field, Schema, Workload
from schedgym.errors import InvalidParameter, InvalidWorkload
from schedgym.problems.queue_delay.problem import RESOURCES, TIMES, refuse_resources
from schedgym.problems.queue_delay.rules import TOLERANCE

if TYPE_CHECKING:
    from schedgym.problems.queue_delay.problem import QueueDelayParameters
    from schedgym.traces.base import JobTrace, Trace

#: no task of a workload may end later [s], so that clocks have a finite bound and resolve 0.2 ms
LAST_TIME = 1e12
#: most tasks of a workload, as far as observations go
MOST_TASKS = 10**7

#: machine types of the 2011 Google trace (cpu, memory, count), 12,583 machines in all:
#: Reiss, Wilkes, Hellerstein, "Google cluster-usage traces: format + schema", 2011; Reiss et al., SoCC 2012
GOOGLE_2011_MACHINES = np.array(
    [
        (0.5, 0.4995, 6732),
        (0.5, 0.2493, 3863),
        (0.5, 0.749, 1001),
        (1.0, 1.0, 795),
        (0.25, 0.2498, 126),
        (0.5, 0.1241, 52),
        (0.5, 0.03085, 5),
        (0.5, 0.9678, 5),
        (1.0, 0.5, 3),
        (0.5, 0.06158, 1),
    ]
)
EXECUTION_MEDIAN = 300.0  # s
EXECUTION_RANGE = (1.0, 86400.0)  # s
CPU_MEDIAN, CPU_SIGMA, CPU_MAX = 0.025, 0.9, 0.5
MEMORY_MEDIAN, MEMORY_SIGMA, MEMORY_MAX = 0.019, 1.1, 0.24
DEMAND_MIN = 0.001
LOG_CORRELATION = 0.45  # between the logarithms of cpu and memory

# resources besides cpu and memory are devices, our own assumption (GPU clusters have such servers and tasks)
DEVICES = 8  # of a server that has any
DEVICES_ASKED = np.array([1, 2, 4, 8])  # by a task that asks for any, each as often
SERVERS_WITH_DEVICES = 0.5  # share of the servers, besides the first, that have any

ARRIVALS, EXECUTIONS, DEMANDS, SERVERS, WINDOWS, DEVICES_DRAWN = range(6)  # random streams


def _check(sections: dict[str, dict[str, npt.NDArray[Any]]], prefix: str) -> None:
    """Check the resources, that every task fits some empty server, and that time stays bounded."""
    jobs, cluster = sections["jobs"], sections["cluster"]
    if wrong := refuse_resources(list(cluster)):
        raise InvalidWorkload(f"{prefix}cluster: its resources {wrong}")
    for own, other, place in ((jobs, cluster, "cluster"), (cluster, jobs, "jobs")):
        for name in own:
            if name not in other and name not in TIMES:
                raise InvalidWorkload(f"{prefix}{place}.{name}: missing")
    demand = np.column_stack([jobs[name] for name in cluster])
    alone = np.zeros(len(demand), dtype=bool)
    for size in np.unique(np.column_stack(list(cluster.values())), axis=0):
        alone |= (demand <= size + TOLERANCE).all(axis=1)
    if not alone.all():
        i = int(np.flatnonzero(~alone)[0])
        needs = ", ".join(f"{name} {jobs[name][i]:g}" for name in cluster)
        raise InvalidWorkload(f"{prefix}jobs: task [{i}] ({needs}) fits no empty server")
    end = float(jobs["arrival"][-1] + jobs["execution"].sum())
    if end > LAST_TIME:
        raise InvalidWorkload(
            f"{prefix}jobs: last arrival plus all execution times must be <= {LAST_TIME:g} s, got {end:g}"
        )


_SHARE = "share of the largest server"
_DEMAND = Field("", _SHARE, ("task",), maximum=1.0, optional=True)
_CAPACITY = Field("", _SHARE, ("server",), maximum=1.0, optional=True)
SCHEMA = Schema(
    problem="queue-delay",
    jobs=(
        Field("arrival", "s", ("task",), ascending=True),
        Field("execution", "s", ("task",), exclusive=True),
        *(dataclasses.replace(_DEMAND, name=name) for name in RESOURCES),
    ),
    cluster=tuple(dataclasses.replace(_CAPACITY, name=name) for name in RESOURCES),
    further={"jobs": _DEMAND, "cluster": _CAPACITY},
    check=_check,
)


#: number of tasks that a workload has in its arrays
SIZE = record_dtype(("tasks", np.int64))


class Jobs(NamedTuple):
    """The workload of an episode, as kernels take it; arrays may be longer."""

    size: Annotated[Any, SIZE]
    arrival: Annotated[Floats, "task"]  # [s]
    execution: Annotated[Floats, "task"]  # [s]
    demand: Annotated[Floats, "task", "static_resource"]
    capacity: Annotated[Floats, "server", "static_resource", Shown("of each server, in each resource")]


def tables(workload: Workload) -> Jobs:
    """Convert a workload to the arrays that kernels take, for one environment."""
    jobs, cluster = workload.jobs, workload.cluster
    return Jobs(
        size=np.array((len(jobs["arrival"]),), dtype=SIZE),
        arrival=np.array(jobs["arrival"]),
        execution=np.array(jobs["execution"]),
        demand=np.column_stack([jobs[name] for name in cluster]),
        capacity=np.column_stack(list(cluster.values())),
    )


def rebuild(jobs: Jobs, resources: Sequence[str] | None = None) -> Workload:
    """Convert an environment's :class:`Jobs` to a workload; ``resources`` as for :func:`make_workload`."""
    count = int(jobs.size["tasks"])
    table = np.column_stack([jobs.arrival[:count], jobs.execution[:count], jobs.demand[:count]])
    return make_workload(table, jobs.capacity, resources)


def make_workload(tasks: Any, servers: Any, resources: Sequence[str] | None = None) -> Workload:
    """Make a checked workload.

    Args:
        tasks: rows (arrival [s], execution [s], demand of each resource), arrivals ascending; [K, 2 + R].
        servers: rows (capacity of each resource), [M, R].
        resources: names of the R resources; None: the first R of "cpu", "memory", "gpu", "disk".

    Raises:
        InvalidWorkload: naming the field and the first bad index.
    """
    try:
        table, sizes = np.asarray(tasks), np.asarray(servers)
    except ValueError:
        raise InvalidWorkload("tasks, servers: must be rows of numbers, of one length each") from None
    most = len(RESOURCES) if resources is None else len(resources)
    if sizes.ndim != 2 or not 1 <= sizes.shape[1] <= most:
        raise InvalidWorkload(f"servers: must be rows of 1 to {most} numbers, got shape {sizes.shape}")
    names = resources or RESOURCES[: sizes.shape[1]]
    if table.ndim != 2 or table.shape[1] != 2 + len(names):
        raise InvalidWorkload(f"tasks: must be rows of {2 + len(names)} numbers, got shape {table.shape}")
    return SCHEMA.parse(
        {
            "jobs": dict(zip((*TIMES, *names), table.T, strict=True)),
            "cluster": dict(zip(names, sizes.T, strict=True)),
        }
    )


#: where episodes come from, for the compiled draw
ORIGIN = record_dtype(
    ("tasks", np.int64),  # of an episode
    ("windows", np.int64),  # of a trace; 0: synthetic
    ("arrival_rate", np.float64),
    ("load", np.float64),  # 0: as drawn
    ("execution_sigma", np.float64),
    ("device_share", np.float64),
    ("device_part_share", np.float64),
    ("cpu", np.int64),  # number of this resource; -1: there is none
    ("memory", np.int64),
)


class Origin(NamedTuple):
    """The inputs of a draw besides seed and episode: the constants, and the trace's tasks and machines."""

    constants: Annotated[Any, ORIGIN]
    trace: Annotated[
        Floats, "traced", "static_resource+2"
    ]  # the trace's tasks (arrival s, execution s, demand)
    nodes: Annotated[Floats, "node", "static_resource"]  # to draw servers from; node 0 is always server 0
    order: Annotated[Integers, "node"]  # scratch space of the draw


class Drawing(NamedTuple):
    """The arrays of a draw: its source, and the workload that it writes."""

    source: Annotated[Origin, SHARED]
    jobs: Jobs


class Source:
    """The source of an environment's episodes: the synthetic generator, or windows of a trace.

    Args:
        parameters: of the environment.
        trace: tasks and machines of the trace that the parameters name, if any, by :func:`from_trace`.

    Attributes:
        resources: names of the resources.
        windows: number of whole windows of the trace; 0 for the synthetic generator.
        sizes: lengths of the dimensions of :class:`Jobs`.
        arrays: the arrays that the compiled draw takes.
    """

    def __init__(self, parameters: QueueDelayParameters, trace: tuple[Floats, Floats] | None = None) -> None:
        self.resources, count = parameters.resources, len(parameters.resources)
        table, nodes = trace or (np.zeros((0, 2 + count)), np.zeros((0, count)))
        tasks, self.windows = parameters.tasks, 0
        servers = len(nodes) if parameters.servers == "all" else int(parameters.servers)
        if trace is not None:
            _, self.windows = count_windows(tasks, len(table), "tasks")
            if servers > len(nodes):
                raise InvalidParameter(f"servers: {servers} are more than the trace's {len(nodes)} nodes")
            beyond = (table[:, 2:] > nodes[0] + TOLERANCE).any(axis=1)
            if servers < len(nodes) and beyond.any():
                i = int(np.flatnonzero(beyond)[0])
                needs = ", ".join(
                    f"{name} {x:g}" for name, x in zip(self.resources, table[i, 2:], strict=True)
                )
                raise InvalidWorkload(
                    f"trace: task [{i}] ({needs} of the largest machine) "
                    "does not fit the largest machine, the only one that is always among the servers"
                )
        columns = {name: self.resources.index(name) if name in self.resources else -1 for name in RESOURCES}
        constants = constants_of(
            ORIGIN, parameters, windows=self.windows, load=parameters.load or 0.0, **columns
        )
        order = np.zeros(len(nodes), dtype=np.int64)
        self.arrays = Origin(constants, np.ascontiguousarray(table), np.ascontiguousarray(nodes), order)
        self.sizes = {"task": tasks, "server": servers, "static_resource": count}


def make_source(parameters: QueueDelayParameters) -> Source:
    """Make the source that an environment's parameters name; read the trace's files, if any."""
    if parameters.trace is None:
        return Source(parameters)
    from schedgym.traces import read_trace

    trace = read_trace(parameters.trace, nodes=parameters.nodes, format=parameters.trace_format)
    return Source(parameters, from_trace(trace, parameters.pool, parameters.resources))


def shares_of(trace: Trace, resources: Sequence[str] | None = None) -> tuple[dict[str, Floats], Floats]:
    """Return the demands and the capacities of a trace as shares of the largest machine, by resource.

    Memory limits nothing if the trace does not tell that of machines.

    Args:
        trace: with machines.
        resources: names among "cpu", "memory", "gpu"; None: cpu, memory, and gpu if some task asks for one,
            and some machine has one.

    Returns:
        resource -> demand of each task [N]; and the machines' capacities [P, R].

    Raises:
        InvalidParameter: for a resource that the trace does not have.
    """
    known = {
        "cpu": (trace.cores, trace.machine_cores),
        "memory": (trace.memory, trace.machine_memory),
        "gpu": (trace.gpu, trace.machine_gpu),
    }
    demands, capacities = {}, []
    counted = trace.gpu.any() and trace.machine_gpu.any()
    for name in resources or ("cpu", "memory", *(["gpu"] if counted else [])):
        if name not in known or (name == "gpu" and not trace.machine_gpu.any()):
            raise InvalidParameter(f"resources: no machine of the {trace.name} trace has {name!r}")
        demand, capacity = known[name]
        if not capacity.any():
            demand, capacity = np.zeros_like(demand), np.ones_like(capacity)
        demands[name] = demand / capacity.max()
        capacities.append(capacity / capacity.max())
    return demands, np.column_stack(capacities)


def from_trace(
    trace: Trace | JobTrace, pool: bool | None = None, resources: Sequence[str] = RESOURCES[:2]
) -> tuple[Floats, Floats]:
    """Convert tasks and machines of a trace to this problem's units.

    Sizes are those of :func:`shares_of`. Machines are listed largest first (by the smallest of their shares).
    Tasks are those that :func:`~schedgym.traces.machines.place` finds a machine for.

    Args:
        trace: with arrival and duration [s], cores and memory per task, and machines.
        pool: whether the machines are one pool; None: if some task needs several.
        resources: those that tasks and machines have.

    Returns:
        tasks [N, 2 + R] (arrival, execution, demands) in order of arrival, and machines [P, R].

    Raises:
        InvalidParameter: when the trace has jobs instead of tasks, no machines, or not these resources, or
            when too much of its work fits none of the machines.
    """
    from schedgym.traces.base import tasks_of
    from schedgym.traces.machines import place

    trace = tasks_of(trace, "processors, memory and duration")
    if len(trace.machine_cores) == 0:
        raise InvalidParameter(f"nodes: the {trace.name} trace needs its file of machines")
    trace = place(trace, pool).trace
    demands, nodes = shares_of(trace, resources)
    if trace.gpu.any() and not any(demand.any() for demand in demands.values()):
        raise InvalidParameter(
            f"resources: tasks of the {trace.name} trace ask for gpu only, not for {' or '.join(resources)}"
        )
    largest = int(np.argmax(nodes.min(axis=1)))
    nodes = np.concatenate([nodes[largest : largest + 1], np.delete(nodes, largest, axis=0)])
    table = np.column_stack([trace.arrival, trace.duration, *demands.values()])
    table = table[np.argsort(trace.arrival, kind="stable")]
    table[:, 0] -= table[0, 0]
    return table, nodes


def generate(seed: int, episode: int, source: Source) -> Workload:
    """The workload that an environment reset with ``seed`` meets in its ``episode`` (counted from 0)."""
    return rebuild(draw_alone(draw, Drawing, source, seed, episode), source.resources)


@helper
def draw_servers(source: Any, jobs: Jobs, seed: np.uint64, episode: int) -> None:
    """Draw servers from the machine mix, independently; a shorter list is the beginning of a longer one.

    Server 0 is redrawn until it holds the largest demand, so that every task fits somewhere.
    """
    state = stream(seed, episode, SERVERS)
    kinds = GOOGLE_2011_MACHINES.shape[0]
    total = 0.0
    for k in range(kinds):
        total += GOOGLE_2011_MACHINES[k, 2]
    for j in range(jobs.capacity.shape[0]):
        while True:
            state, u = uniform(state)
            left = u * total
            kind = 0
            while kind < kinds - 1 and left >= GOOGLE_2011_MACHINES[kind, 2]:
                left -= GOOGLE_2011_MACHINES[kind, 2]
                kind += 1
            cpu = GOOGLE_2011_MACHINES[kind, 0]
            memory = GOOGLE_2011_MACHINES[kind, 1]
            if j > 0 or (cpu >= CPU_MAX and memory >= MEMORY_MAX):
                break
        if source.cpu >= 0:
            jobs.capacity[j, source.cpu] = cpu
        if source.memory >= 0:
            jobs.capacity[j, source.memory] = memory


@helper
def draw_devices(source: Any, jobs: Jobs, seed: np.uint64, episode: int) -> None:
    """Draw the devices that servers have and tasks ask for; the first server has some of each kind."""
    state = stream(seed, episode, DEVICES_DRAWN)
    share, part = source.device_share, source.device_part_share
    most = DEVICES_ASKED.shape[0] - 1
    for r in range(max(source.cpu, source.memory) + 1, jobs.capacity.shape[1]):
        for j in range(jobs.capacity.shape[0]):
            state, u = uniform(state)
            jobs.capacity[j, r] = 1.0 if j == 0 or u < SERVERS_WITH_DEVICES else 0.0
        for i in range(jobs.size.tasks):
            state, u = uniform(state)
            asked = 0.0
            if u < share:
                place = u / share  # uniform, too, in each of the two parts of [0, 1)
                if place < part or part == 1.0:
                    asked = 1.0 - place / part
                else:
                    k = int((place - part) / (1.0 - part) * (most + 1))
                    asked = float(DEVICES_ASKED[min(k, most)])
            jobs.demand[i, r] = asked / DEVICES


@helper
def draw_synthetic(source: Any, jobs: Jobs, seed: np.uint64, episode: int) -> None:
    """Draw the tasks of the stand-in for the 2011 Google trace."""
    arrivals = stream(seed, episode, ARRIVALS)
    executions = stream(seed, episode, EXECUTIONS)
    demands = stream(seed, episode, DEMANDS)
    clock = 0.0
    rest = math.sqrt(1.0 - LOG_CORRELATION * LOG_CORRELATION)
    spare = 0.0
    for i in range(source.tasks):
        arrivals, gap = exponential(arrivals)
        clock += gap / source.arrival_rate
        if i % 2 == 0:
            executions, z, spare = normal_pair(executions)
        else:
            z = spare
        execution = EXECUTION_MEDIAN * math.exp(source.execution_sigma * z)
        demands, x, y = normal_pair(demands)
        cpu = CPU_MEDIAN * math.exp(CPU_SIGMA * x)
        memory = MEMORY_MEDIAN * math.exp(MEMORY_SIGMA * (LOG_CORRELATION * x + rest * y))
        jobs.arrival[i] = clock
        jobs.execution[i] = min(max(execution, EXECUTION_RANGE[0]), EXECUTION_RANGE[1])
        if source.cpu >= 0:
            jobs.demand[i, source.cpu] = min(max(cpu, DEMAND_MIN), CPU_MAX)
        if source.memory >= 0:
            jobs.demand[i, source.memory] = min(max(memory, DEMAND_MIN), MEMORY_MAX)


@helper
def draw_window(origin: Origin, jobs: Jobs, seed: np.uint64, episode: int) -> None:
    """Take the episode's window of a trace, with its clock from 0, on nodes drawn without replacement.

    A shorter list of servers is the beginning of a longer one.
    """
    windows, count = origin.constants.windows, origin.constants.tasks
    first = first_of_window(seed, episode, WINDOWS, windows, count)
    for i in range(count):
        task = origin.trace[first + i]
        jobs.arrival[i] = task[0] - origin.trace[first, 0]
        jobs.execution[i] = task[1]
        for r in range(jobs.demand.shape[1]):
            jobs.demand[i, r] = task[2 + r]
    state = stream(seed, episode, SERVERS)
    order = origin.order
    population = order.shape[0]
    for k in range(population):
        order[k] = k
    for j in range(jobs.capacity.shape[0]):
        if j > 0:  # node 0 stays server 0; the others as the first steps of a Fisher-Yates shuffle
            state, u = uniform(state)
            k = j + int(u * (population - j))
            order[j], order[k] = order[k], order[j]
        copy_entries(origin.nodes, order[j], jobs.capacity, j)


@helper
def scale_to_load(load: float, jobs: Jobs) -> None:
    """Scale arrivals so that the busiest resource's volume is ``load`` times its capacity over the span."""
    count = jobs.size.tasks
    longest = 0.0
    for r in range(jobs.demand.shape[1]):
        work = total = 0.0
        for i in range(count):
            work += jobs.execution[i] * jobs.demand[i, r]
        for j in range(jobs.capacity.shape[0]):
            total += jobs.capacity[j, r]
        if work > 0.0:  # else there may be nothing of it
            longest = max(longest, work / total)
    origin = jobs.arrival[0]
    span = jobs.arrival[count - 1] - origin
    if span > 0.0:
        factor = longest / load / span
        for i in range(count):
            jobs.arrival[i] = (jobs.arrival[i] - origin) * factor


@helper
def draw_one(env: Drawing, seed: np.uint64, episode: int) -> int:
    """Draw the workload of (seed, episode)."""
    source = env.source.constants
    env.jobs.size.tasks = source.tasks
    if source.windows > 0:
        draw_window(env.source, env.jobs, seed, episode)
    else:
        draw_servers(source, env.jobs, seed, episode)
        draw_synthetic(source, env.jobs, seed, episode)
        draw_devices(source, env.jobs, seed, episode)
    if source.load > 0.0:
        scale_to_load(source.load, env.jobs)
    return 0


draw = draw_kernel(__name__, Drawing, draw_one)


def shuffle_future(workload: Workload, time: float, rng: np.random.Generator) -> Workload:
    """See :func:`~schedgym.core.future.change_future`; execution times and demands change."""
    factors = {"execution": (0.5, 2.0), **dict.fromkeys(workload.cluster, (0.5, 1.0))}
    return change_future(SCHEMA, workload, time, rng, factors)
