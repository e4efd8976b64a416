"""Workloads of PartialValue: the schema, the paper's generator, traces, toy instances.

Times are slots 1, 2, ...: a job may be served in the slots t with arrival <= t <= deadline. Sizes are in
absolute units (of the cluster's capacity); a share is a task's demand over the capacity.

Source: paper 002, sections II and V.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import helper, pure_kernel, record_dtype
from schedgym.core.random import exponential, stream, uniform
from schedgym.core.workload import Field, Schema, Workload
from schedgym.errors import InvalidParameter, InvalidWorkload
from schedgym.problems.partial_value.problem import UTILITIES

if TYPE_CHECKING:
    from schedgym.problems.partial_value.problem import PartialValueParameters
    from schedgym.traces.base import JobTrace, Trace

__all__ = [
    "EXPONENT",
    "LAST_SLOT",
    "LINEAR",
    "LOG",
    "POWER",
    "SCHEMA",
    "TOLERANCE",
    "TOYS",
    "Source",
    "Tables",
    "Toy",
    "TraceJobs",
    "check_model",
    "draw",
    "draw_python",
    "from_trace",
    "generate",
    "horizon",
    "make_source",
    "make_workload",
    "rebuild",
    "shuffle_future",
    "tables",
    "toy",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Fields = dict[str, npt.NDArray[Any]]

#: a load of at most 1 + TOLERANCE fits; a job with at most TOLERANCE tasks left is complete
TOLERANCE = 1e-9
#: latest arrival and deadline [slots], so that clocks are exact in float64
LAST_SLOT = 10**9
#: largest number of tasks, value, demand and capacity, so that their products are finite
LARGEST = 1e12

LINEAR, POWER, LOG = range(len(UTILITIES))
#: exponent in arrays of a job whose utility has none
EXPONENT = 0.5

ARRIVALS, DEADLINES, VALUES, DEMANDS, WINDOWS = range(5)  # random streams


# Schema ---------------------------------------------------------------------------------------


def _check(sections: dict[str, Fields], prefix: str) -> None:
    """What must hold between fields: jobs end after they arrive, some slot exists, powers have exponents."""
    jobs = sections["jobs"]
    arrival, deadline, utility = jobs["arrival"], jobs["deadline"], jobs["utility"]
    early = deadline < arrival
    if early.any():
        i = int(np.argmax(early))
        raise InvalidWorkload(
            f"{prefix}jobs.deadline[{i}]: must be >= {arrival[i]:g}, the arrival, got {deadline[i]:g}"
        )
    if deadline.max() < 1:
        raise InvalidWorkload(f"{prefix}jobs.deadline: must be >= 1, the first slot, for one job at least")
    power = utility == POWER
    if power.any() and "exponent" not in jobs:
        i = int(np.argmax(power))
        raise InvalidWorkload(f"{prefix}jobs.exponent: missing, but jobs.utility[{i}] is 'power'")
    if "exponent" in jobs and (jobs["exponent"] >= 1).any():
        i = int(np.argmax(jobs["exponent"] >= 1))
        raise InvalidWorkload(f"{prefix}jobs.exponent[{i}]: must be < 1 (), got {jobs['exponent'][i]:g}")
    with np.errstate(over="ignore"):
        share = jobs["demand"] / sections["cluster"]["capacity"]
    beyond = share > LARGEST
    if beyond.any():
        i, r = (int(k) for k in np.argwhere(beyond)[0])
        raise InvalidWorkload(
            f"{prefix}jobs.demand[{i}][{r}]: must be <= {LARGEST:g} times the capacity, got {share[i, r]:g}"
        )


def _size(name: str, unit: str, *dimensions: str, least: float = 0.0, exclusive: bool = True) -> Field:
    return Field(name, unit, dimensions, minimum=least, maximum=LARGEST, exclusive=exclusive)


SCHEMA = Schema(
    problem="partial-value",
    jobs=(
        Field("arrival", "slots", ("job",), maximum=LAST_SLOT, ascending=True),
        Field("deadline", "slots", ("job",), maximum=LAST_SLOT),
        _size("parallelism", "tasks per slot", "job"),
        _size("tasks", "tasks", "job", least=TOLERANCE),
        _size("demand", "units of the resource", "job", "resource", exclusive=False),
        Field("utility", "", ("job",), kind="int", choices=UTILITIES),
        _size("value", "", "job"),
        Field("exponent", "", ("job",), maximum=1.0, exclusive=True, optional=True),
    ),
    cluster=(_size("capacity", "units of the resource", "resource"),),
    check=_check,
)


def check_model(workload: Workload, model: str | None) -> None:
    """Raise InvalidWorkload unless the workload suits the model: "discrete" has whole tasks only."""
    if model != "discrete":
        return
    for name in ("parallelism", "tasks"):
        values = workload.jobs[name]
        broken = values != np.floor(values)
        if broken.any():
            i = int(np.argmax(broken))
            raise InvalidWorkload(
                f"jobs.{name}[{i}]: must be a whole number in the discrete model, got {values[i]:g}"
            )


def make_workload(
    arrival: npt.ArrayLike,
    deadline: npt.ArrayLike,
    parallelism: npt.ArrayLike,
    tasks: npt.ArrayLike,
    demand: npt.ArrayLike,
    utility: str | Sequence[str] | Integers,
    value: npt.ArrayLike,
    capacity: npt.ArrayLike,
    *,
    exponent: npt.ArrayLike | None = None,
) -> Workload:
    """A checked workload.

    Args:
        arrival: of each job [slots], not decreasing; [N].
        deadline: last slot in which a job may be served [slots]; [N].
        parallelism: X, most tasks in a slot; one number, or [N].
        tasks: Y, tasks in all; one number, or [N].
        demand: R, of a task for each resource [units of the resource]; [N, m].
        utility: "linear" (v y), "power" (v y^exponent) or "log" (v log(1 + y)): one name, or one per job, or
            their numbers as an array [N].
        value: v; one number, or [N].
        capacity: C, of each resource; [m].
        exponent: of the jobs with utility "power"; one number, or [N].

    Raises:
        InvalidWorkload: naming the field and the first bad index.
    """
    count = np.shape(arrival)

    def each(values: Any) -> Any:
        return np.full(count, values) if np.ndim(values) == 0 else values

    jobs: dict[str, Any] = {
        "arrival": arrival,
        "deadline": deadline,
        "parallelism": each(parallelism),
        "tasks": each(tasks),
        "demand": demand,
        "utility": each(utility),
        "value": each(value),
    }
    if exponent is not None:
        jobs["exponent"] = each(exponent)
    return SCHEMA.parse({"jobs": jobs, "cluster": {"capacity": capacity}})


# Tables for kernels ---------------------------------------------------------------------------


class Tables(NamedTuple):
    """A workload as arrays for kernels. N jobs, m resources."""

    arrival: Floats  # [N] slots
    deadline: Floats  # [N] slots
    parallelism: Floats  # [N] X, tasks per slot
    tasks: Floats  # [N] Y
    value: Floats  # [N] v
    exponent: Floats  # [N] EXPONENT where the workload tells none
    utility: Integers  # [N] LINEAR, POWER or LOG
    demand: Floats  # [N, m] R
    share: Floats  # [N, m] demand over capacity
    capacity: Floats  # [m] C


def tables(workload: Workload) -> Tables:
    """A checked workload as arrays for kernels."""
    jobs, capacity = workload.jobs, workload.cluster["capacity"]
    return Tables(
        arrival=jobs["arrival"],
        deadline=jobs["deadline"],
        parallelism=jobs["parallelism"],
        tasks=jobs["tasks"],
        value=jobs["value"],
        exponent=jobs.get("exponent", np.full(len(jobs["arrival"]), EXPONENT)),
        utility=jobs["utility"],
        demand=jobs["demand"],
        share=jobs["demand"] / capacity,
        capacity=capacity,
    )


def rebuild(instance: Tables) -> Workload:
    """The workload of one instance's arrays, of which all but ``arrival`` may be longer than it is.

    It has exponents if a job's utility is "power".
    """
    n = len(instance.arrival)
    return make_workload(
        instance.arrival,
        instance.deadline[:n],
        instance.parallelism[:n],
        instance.tasks[:n],
        instance.demand[:n],
        instance.utility[:n],
        instance.value[:n],
        instance.capacity,
        exponent=instance.exponent[:n] if (instance.utility[:n] == POWER).any() else None,
    )


def horizon(instance: Tables) -> int:
    """T, the last slot in which a job could be served."""
    return int(math.floor(instance.deadline.max()))


# Generator ------------------------------------------------------------------------------------

#: where episodes come from, for the compiled draw
SOURCE = record_dtype(
    ("windows", np.int64),  # of a trace; 0: synthetic
    ("jobs", np.int64),  # of an episode
    ("rate", np.float64),  # arrivals per slot; synthetic only, as are the next five
    ("window", np.float64),  # mean slots from arrival to deadline
    ("heterogeneity", np.float64),
    ("tasks", np.float64),
    ("capacity", np.float64),
    ("single", np.int64),
    ("parallelism", np.float64),
    ("value_min", np.float64),
    ("value_max", np.float64),
    ("utility", np.int64),
    ("exponent", np.float64),
    ("slot_seconds", np.float64),  # trace only, as are the next two
    ("load", np.float64),  # 0: the capacity of the trace's machines
    ("whole", np.int64),  # whether capacities are whole numbers
)


class TraceJobs(NamedTuple):
    """Jobs of a trace in this problem's units, except for their arrivals. J jobs, m resources."""

    arrival: Floats  # [J] s, not decreasing
    slots: Integers  # [J] in which a job may be served
    tasks: Floats  # [J] Y, whole
    demand: Floats  # [J, m] R
    machines: Floats  # [m] capacity of the trace's machines; empty if it tells none
    unit: bool  # whether every task needs one unit of one resource


class Source:
    """Where an environment's episodes come from: the paper's generator, or windows of a trace.

    The paper's generator (section V): Poisson(rate) jobs arrive in each slot from the first one on, until
    there are enough; a deadline is the arrival plus the whole slots of an exponential time; a task needs
    U[1, R] of cpu or memory, with equal chance, and 1 of the other (``single``: 1 of the only resource);
    values are U[value_min, value_max]. All jobs have the same X, Y and kind of utility.

    A window of a trace has the jobs that :func:`from_trace` makes, the first of them in slot 1, and values
    as above. Its capacity of each resource is the work of all jobs over ``load`` times the number of slots
    in which jobs could be served (1 if they need nothing of it), but no task's demand is larger.

    Attributes:
        jobs: number of jobs N of an episode.
        resources: number of resources m.
        trace: the trace's jobs, or empty arrays.
        constants: SOURCE record [1].
    """

    def __init__(
        self,
        jobs: int | str,
        *,
        rate: float = 10.0,
        windows: float = 6.0,
        heterogeneity: float = 8.0,
        single: bool = False,
        tasks: int = 100,
        parallelism: int = 20,
        capacity: float = 100.0,
        value_min: float = 1.0,
        value_max: float = 5.0,
        utility: str = "power",
        exponent: float = EXPONENT,
        slot_seconds: float = 300.0,
        load: float | None = 1.5,
        trace: TraceJobs | None = None,
    ) -> None:
        """Check and prepare; arguments as in the environment's parameters.

        Raises:
            InvalidParameter: when these do not go together, or lead beyond LAST_SLOT or LARGEST.
        """
        if isinstance(jobs, str):
            if trace is None:
                raise InvalidParameter(f"jobs: {jobs!r} needs a trace")
            jobs = len(trace.arrival)
        count = 0 if trace is None else len(trace.arrival) // jobs
        self.jobs = jobs
        if trace is None:
            last = LAST_SLOT / 100  # an exponential draw is less than 37 times its mean
            if jobs / rate > last:
                raise InvalidParameter(
                    f"rate: {jobs} jobs at {rate:g} per slot take more than {last:g} slots"
                )
            if windows > last:
                raise InvalidParameter(f"windows: must be <= {last:g} slots, got {windows:g}")
            for name, size in (("heterogeneity", heterogeneity), ("capacity", capacity)):
                if size > LARGEST:
                    raise InvalidParameter(f"{name}: must be <= {LARGEST:g}, got {size:g}")
            if heterogeneity / capacity > LARGEST:
                raise InvalidParameter(
                    f"capacity: {capacity:g} is too small for a demand of {heterogeneity:g}"
                )
            resources = 1 if single else 2
            none = np.zeros(0)
            self.trace = TraceJobs(
                none, np.zeros(0, dtype=np.int64), none, np.zeros((0, resources)), none, single
            )
        else:
            if count == 0:
                raise InvalidParameter(
                    f"jobs: a window of {jobs} is longer than the trace, which has {len(trace.arrival)} jobs"
                )
            if load is None and len(trace.machines) == 0:
                raise InvalidParameter(
                    "load: 'none' takes the capacity of the trace's machines, which it does not tell"
                )
            self.trace, resources = trace, trace.demand.shape[1]
            self._check_windows(count, slot_seconds)
        if value_max > LARGEST:
            raise InvalidParameter(f"value_max: must be <= {LARGEST:g}, got {value_max:g}")
        self.resources = resources
        self.constants = np.zeros(1, dtype=SOURCE)
        self.constants[0] = (
            count,
            jobs,
            rate,
            windows,
            heterogeneity,
            tasks,
            capacity,
            single,
            parallelism,
            value_min,
            value_max,
            UTILITIES.index(utility),
            exponent if utility == "power" else EXPONENT,
            slot_seconds,
            load or 0.0,
            self.trace.unit,
        )

    def _check_windows(self, count: int, slot_seconds: float) -> None:
        """Refuse windows whose clock would pass LAST_SLOT."""
        times = self.trace.arrival[: count * self.jobs].reshape(count, -1)
        slots = self.trace.slots[: count * self.jobs].reshape(count, -1)
        last = float(((times - times[:, :1]) / slot_seconds + slots).max()) + 1.0
        if last > LAST_SLOT:
            raise InvalidParameter(
                f"trace: a window of {self.jobs} jobs takes {last:g} slots, more than {LAST_SLOT:g}: take "
                "longer slots or fewer jobs"
            )

    @property
    def windows(self) -> int:
        """Number of whole windows of the trace; 0 for the synthetic generator."""
        return int(self.constants["windows"][0])


def make_source(parameters: PartialValueParameters) -> Source:
    """The source that an environment's parameters name; reads the trace's files, if any."""
    trace = None
    if parameters.trace is not None:
        from schedgym.traces import read_trace

        if parameters.nodes is not None and parameters.load is not None:
            raise InvalidParameter(
                f"nodes: has no effect with load {parameters.load:g}, which sets the capacity: load none"
            )
        found = read_trace(parameters.trace, nodes=parameters.nodes)
        trace = from_trace(
            found,
            slot_seconds=parameters.slot_seconds,
            slack=parameters.slack,
            parallelism=parameters.parallelism,
        )
    return Source(
        parameters.jobs,
        rate=parameters.rate,
        windows=parameters.windows,
        heterogeneity=parameters.heterogeneity,
        single=parameters.single,
        tasks=parameters.tasks,
        parallelism=parameters.parallelism,
        capacity=parameters.capacity,
        value_min=parameters.value_min,
        value_max=parameters.value_max,
        utility=parameters.utility,
        exponent=parameters.exponent,
        slot_seconds=parameters.slot_seconds,
        load=parameters.load,
        trace=trace,
    )


def from_trace(
    trace: Trace | JobTrace, *, slot_seconds: float = 300.0, slack: float = 2.0, parallelism: int = 20
) -> TraceJobs:
    """Jobs of a trace, cut into tasks of one slot of which ``parallelism`` (X) run at a time.

    A task of the trace that runs for D seconds on c cores with g GiB becomes a job whose tasks need 1/X of c
    and g each. It has Y = X D / slot_seconds of them, rounded up: at full width it takes as long as in the
    trace. It may be served in slack D / slot_seconds slots, rounded up, of which the first is the one in
    which it arrives. A trace that tells no memory has cpu as its only resource; sizes in shares stay shares.

    A job of a trace that tells its bytes only (SWIM) has a task per 10^9 bytes of input, which takes one
    core and one slot. It may be served in slack times the ceil(Y / X) slots that it takes at full width.
    Jobs without input are left out. There, capacities are whole cores.

    Args:
        trace: as read by :func:`schedgym.traces.read_trace`.
        slot_seconds: length of a slot [s].
        slack: slots until the deadline, in multiples of those that a job needs; >= 1.
        parallelism: X.

    Raises:
        InvalidWorkload: when no job is left, or one is too large.
    """
    from schedgym.traces.base import Trace

    if isinstance(trace, Trace):
        arrival, length = trace.arrival, trace.duration / slot_seconds
        tasks = np.maximum(_round_up(parallelism * length), 1.0)
        sizes, machines = [trace.cores], [trace.machine_cores]
        if trace.memory.any():
            sizes.append(trace.memory)
            machines.append(trace.machine_memory)
        demand = np.column_stack(sizes) / parallelism
        room = np.array([size.sum() for size in machines])
        unit = False
    else:
        tasks = trace.map_tasks().astype(np.float64)
        kept = tasks > 0
        if not kept.any():
            raise InvalidWorkload(f"{trace.name}: no job has a map task")
        arrival, tasks = trace.arrival[kept], tasks[kept]
        length = np.ceil(tasks / parallelism)
        demand, room, unit = np.ones((len(tasks), 1)), np.zeros(1), True
    slots = np.maximum(_round_up(slack * length), 1.0)
    for values, most, what in ((tasks, LARGEST, "tasks"), (slots, LAST_SLOT, "slots until the deadline")):
        if values.max() > most:
            i = int(np.argmax(values > most))
            raise InvalidWorkload(
                f"{trace.name}: job [{i}] has {values[i]:g} {what}, more than {most:g}: take longer slots"
            )
    return TraceJobs(
        arrival=np.ascontiguousarray(arrival),
        slots=slots.astype(np.int64),
        tasks=tasks,
        demand=np.ascontiguousarray(demand),
        machines=room if (room > 0).all() else np.zeros(0),
        unit=unit,
    )


def _round_up(values: Floats) -> Floats:
    """Whole numbers, to the accuracy of floats: 0.07 of 100 is 7."""
    return np.ceil(values * (1.0 - 1e-12))


def generate(seed: int, episode: int, source: Source) -> Workload:
    """The workload that an environment reset with ``seed`` meets in its ``episode`` (counted from 0)."""
    from schedgym.core.random import root_seed

    n, m = source.jobs, source.resources
    shapes = {"demand": (n, m), "share": (n, m), "capacity": (m,)}
    empty: dict[str, Any] = {name: np.zeros((1, *shapes.get(name, (n,)))) for name in Tables._fields}
    arrays = Tables(**empty | {"utility": np.zeros((1, n), dtype=np.int64)})
    draw_python(np.ones(1, dtype=bool), np.array([root_seed(seed)]), np.array([episode]), source, arrays)
    return rebuild(Tables(*(array[0] for array in arrays)))


def draw_python(
    mask: npt.NDArray[np.bool_],
    seeds: npt.NDArray[np.uint64],
    episodes: Integers,
    source: Source,
    arrays: Any,
) -> None:
    """:func:`draw`, called from Python (uncompiled, its modular arithmetic would warn of overflow).

    ``arrays`` has the arrays that are written as its attributes: those of :class:`Tables` with an axis in
    front.
    """
    trace = source.trace
    with np.errstate(over="ignore"):
        draw(
            mask,
            seeds,
            episodes,
            source.constants,
            trace.arrival,
            trace.slots,
            trace.tasks,
            trace.demand,
            trace.machines,
            *(getattr(arrays, name) for name in Tables._fields),
        )


@helper
def draw_synthetic(
    seed: np.uint64,
    episode: int,
    source: Any,
    b: int,
    arrival: Any,
    deadline: Any,
    tasks: Any,
    demand: Any,
    capacity: Any,
) -> None:
    """Jobs of the paper's generator."""
    arrivals = stream(seed, episode, ARRIVALS)
    deadlines = stream(seed, episode, DEADLINES)
    demands = stream(seed, episode, DEMANDS)
    clock = 0.0
    for j in range(source.jobs):
        # the numbers of arrivals in unit intervals are Poisson
        arrivals, gap = exponential(arrivals)
        clock += gap / source.rate
        deadlines, time = exponential(deadlines)
        arrival[b, j] = 1.0 + math.floor(clock)
        deadline[b, j] = arrival[b, j] + math.floor(time * source.window)
        tasks[b, j] = source.tasks
        for r in range(demand.shape[2]):
            demand[b, j, r] = 1.0
        if source.single == 0:
            demands, which = uniform(demands)
            demands, amount = uniform(demands)
            demand[b, j, 0 if which < 0.5 else 1] = 1.0 + (source.heterogeneity - 1.0) * amount
    for r in range(demand.shape[2]):
        capacity[b, r] = source.capacity


@helper
def draw_window(
    seed: np.uint64,
    episode: int,
    source: Any,
    trace_arrival: Any,
    trace_slots: Any,
    trace_tasks: Any,
    trace_demand: Any,
    machines: Any,
    b: int,
    arrival: Any,
    deadline: Any,
    tasks: Any,
    demand: Any,
    capacity: Any,
) -> None:
    """The episode's window of a trace: consecutive ones in turn, from a first that the seed decides."""
    _, u = uniform(stream(seed, 0, WINDOWS))
    first = ((int(u * source.windows) + episode) % source.windows) * source.jobs
    resources = demand.shape[2]
    covered = 0.0  # slots in which jobs could be served,
    end = 0.0  # and the last of them so far
    for j in range(source.jobs):
        slot = 1.0 + math.floor((trace_arrival[first + j] - trace_arrival[first]) / source.slot_seconds)
        arrival[b, j] = slot
        deadline[b, j] = slot + trace_slots[first + j] - 1.0
        tasks[b, j] = trace_tasks[first + j]
        for r in range(resources):
            demand[b, j, r] = trace_demand[first + j, r]
        covered += max(deadline[b, j] - max(end, slot - 1.0), 0.0)
        end = max(end, deadline[b, j])
    for r in range(resources):
        if source.load == 0.0:
            capacity[b, r] = machines[r]
            continue
        work = 0.0
        largest = 0.0
        for j in range(source.jobs):
            work += tasks[b, j] * demand[b, j, r]
            largest = max(largest, demand[b, j, r])
        size = max(work / (source.load * covered), largest)
        if source.whole:
            size = math.ceil(size)
        capacity[b, r] = size if size > 0.0 else 1.0


@pure_kernel
def draw(
    mask: npt.NDArray[np.bool_],
    seeds: npt.NDArray[np.uint64],
    episodes: Integers,
    constants: npt.NDArray[Any],
    trace_arrival: Floats,
    trace_slots: Integers,
    trace_tasks: Floats,
    trace_demand: Floats,
    machines: Floats,
    arrival: Floats,
    deadline: Floats,
    parallelism: Floats,
    tasks: Floats,
    value: Floats,
    exponent: Floats,
    utility: Integers,
    demand: Floats,
    share: Floats,
    capacity: Floats,
) -> None:
    """Draw the workload of (seed, episode) for environments.

    Job j takes the j-th draws of each stream, so that a change of one parameter leaves all else: of the rate,
    the windows and demands; of the windows, the arrivals; of heterogeneity, which demand is the heavy one;
    of the number of jobs, the jobs that stay.

    Args:
        mask: which ones [B].
        seeds: root seeds [B].
        episodes: numbers of the episodes [B].
        constants: SOURCE [1].
        trace_arrival: of the trace's jobs [s], [J], or empty, as are the next four; see :class:`TraceJobs`.
        trace_slots: [J].
        trace_tasks: [J].
        trace_demand: [J, m].
        machines: [m], or empty.
        arrival: written, [B, >= N], as are all that follow; see :class:`Tables`.
        deadline: [B, >= N].
        parallelism: [B, >= N].
        tasks: [B, >= N].
        value: [B, >= N].
        exponent: [B, >= N].
        utility: [B, >= N].
        demand: [B, >= N, m].
        share: [B, >= N, m].
        capacity: [B, m].
    """
    source = constants[0]
    for b in range(mask.shape[0]):
        if not mask[b]:
            continue
        seed = seeds[b]
        episode = episodes[b]
        if source.windows > 0:
            draw_window(
                seed,
                episode,
                source,
                trace_arrival,
                trace_slots,
                trace_tasks,
                trace_demand,
                machines,
                b,
                arrival,
                deadline,
                tasks,
                demand,
                capacity,
            )
        else:
            draw_synthetic(seed, episode, source, b, arrival, deadline, tasks, demand, capacity)
        values = stream(seed, episode, VALUES)
        for j in range(source.jobs):
            values, u = uniform(values)
            value[b, j] = source.value_min + (source.value_max - source.value_min) * u
            parallelism[b, j] = source.parallelism
            utility[b, j] = source.utility
            exponent[b, j] = source.exponent
            for r in range(demand.shape[2]):
                share[b, j, r] = demand[b, j, r] / capacity[b, r]


# Toy instances --------------------------------------------------------------------------------


class Toy(NamedTuple):
    """A toy instance and its greatest total value.

    Attributes:
        model: "continuous" or "discrete".
        jobs: rows (arrival, deadline, parallelism, tasks, value, demand of each resource).
        capacity: of each resource.
        utility: of all jobs.
        optimum: over all schedules.
    """

    model: str
    jobs: tuple[tuple[float, float, float, float, float, tuple[float, ...]], ...]
    capacity: tuple[float, ...]
    utility: str
    optimum: float


_ONE = (1.0,)
_EXAMPLE_2 = ((1, 2, 0.75, 0.5, 1, _ONE), (1, 2, 0.75, 2, 1, _ONE))
TOYS: dict[str, Toy] = {
    # the job with the least value must go first, as its task does not fit beside the last job's
    "example-1": Toy(
        "continuous",
        ((1, 2, 1, 1, 2, (0.2, 0.8)), (1, 2, 2, 2, 1, (0.5, 0.5)), (2, 2, 2, 2, 2, (0.8, 0.2))),
        (1.0, 1.0),
        "linear",
        6.0,
    ),
    # the second job could take more, but only 0.75 in a slot: it must be served in both
    "example-2": Toy("continuous", _EXAMPLE_2, _ONE, "power", math.sqrt(0.5) + math.sqrt(1.5)),
    "example-2-log": Toy("continuous", _EXAMPLE_2, _ONE, "log", math.log(1.5 * 2.5)),
    # the less valuable job must have its half of both slots
    "in-both-slots": Toy(
        "continuous", ((1, 2, 1, 1, 1.001, _ONE), (1, 2, 0.5, 1, 1, _ONE)), _ONE, "linear", 2.001
    ),
    # the urgent job first: the factor 2 of the greedy is tight
    "urgent-first": Toy("discrete", ((1, 1, 1, 1, 1, _ONE), (1, 2, 1, 1, 1.01, _ONE)), _ONE, "linear", 2.01),
    # test vectors 4 of the specification
    "aware-2": Toy(
        "discrete",
        ((1, 1, 2, 5, 1, _ONE), (1, 2, 1, 1, 1.001, _ONE), (1, 2, 1, 1, 1.51, _ONE)),
        (2.0,),
        "linear",
        4.511,
    ),
    "aware-3": Toy(
        "discrete",
        ((1, 1, 3, 4, 1.499, _ONE), (1, 3, 1, 1, 1.5001, _ONE), (1, 3, 2, 2, 2, _ONE)),
        (3.0,),
        "linear",
        9.9971,
    ),
    # three small tasks are worth more than the large one, and fit only beside none
    "three-for-one": Toy(
        "discrete", ((1, 1, 1, 1, 4, (3.0, 1.0)), (1, 1, 3, 3, 2, (1.0, 1.0))), (3.0, 3.0), "linear", 6.0
    ),
    # marginal values fall: the third task of one job is worth less than the first of the other
    "take-turns": Toy(
        "discrete",
        ((1, 2, 2, 4, 2, _ONE), (1, 2, 2, 4, 1, _ONE)),
        (2.0,),
        "log",
        2 * math.log(4) + math.log(2),
    ),
}


def toy(name: str) -> tuple[Workload, float]:
    """The toy instance ``name`` and its greatest total value in the model ``TOYS[name].model``."""
    model, rows, capacity, utility, optimum = TOYS[name]
    arrival, deadline, parallelism, tasks, value, demand = zip(*rows, strict=True)
    exponent = EXPONENT if utility == "power" else None
    workload = make_workload(
        arrival, deadline, parallelism, tasks, demand, utility, value, capacity, exponent=exponent
    )
    check_model(workload, model)
    return workload, optimum


# Another future -------------------------------------------------------------------------------


def shuffle_future(workload: Workload, slot: float, rng: np.random.Generator) -> Workload:
    """The workload with another future: the jobs that arrive after ``slot`` trade places.

    They also become less valuable, arrive earlier (but after ``slot``) and have less time. An environment or
    a policy that is shown nothing of the future behaves the same up to the decision of ``slot``, which shows
    the jobs with arrival <= slot.

    Args:
        workload: the instance.
        slot: jobs that arrive in it or earlier stay as they are.
        rng: decides who gets what, and the factors.
    """
    jobs = {name: array.copy() for name, array in workload.jobs.items()}
    arrival = jobs["arrival"]
    later = np.flatnonzero(arrival > slot)
    if len(later) == 0:
        return workload
    order = rng.permutation(later)
    for name, values in jobs.items():
        if name != "arrival":
            values[later] = workload.jobs[name][order]
    left = (workload.jobs["deadline"] - workload.jobs["arrival"])[order]
    gaps = np.diff(arrival[later], prepend=slot) * rng.uniform(0.5, 1.0, len(later))
    arrival[later] = np.maximum(slot + np.cumsum(gaps), np.nextafter(slot, np.inf))
    jobs["deadline"][later] = np.minimum(
        np.maximum(arrival[later] + left * rng.uniform(0.5, 1.0, len(later)), arrival[later]),
        workload.jobs["deadline"].max(),
    )
    jobs["value"][later] *= rng.uniform(0.5, 1.0, len(later))
    return SCHEMA.parse({"jobs": jobs, "cluster": workload.cluster})
