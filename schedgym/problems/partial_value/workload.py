"""Workloads of PartialValue: the schema, the paper's generator, traces.

Times are slots 1, 2, ...: a job may be served in the slots t with arrival <= t <= deadline. Sizes are in
absolute units (of the cluster's capacity); a share is a task's demand over the capacity.

Source: zheng2016, sections II and V.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import SHARED, Floats, Integers, Shown, allocate
from schedgym.core.future import change_future
from schedgym.core.jit import helper, record_dtype
from schedgym.core.kernels import draw_kernel
from schedgym.core.random import exponential, stream, uniform
from schedgym.core.source import constants_of, count_windows, draw_alone, first_of_window
from schedgym.core.workload import Field, Schema, Workload, most_slots, refuse
from schedgym.errors import InvalidParameter, InvalidWorkload
from schedgym.problems.partial_value.problem import UTILITIES
from schedgym.problems.partial_value.rules import LARGEST, LAST_SLOT, TOLERANCE
from schedgym.solvers.dual_prices import POWER

if TYPE_CHECKING:
    from schedgym.problems.partial_value.problem import PartialValueParameters
    from schedgym.traces.base import JobTrace, Trace

Fields = dict[str, npt.NDArray[Any]]

#: whole tasks that fit in all slots together, for each slot that there may be: rules serve one at a time
MOST_TASKS_PER_SLOT = 100
#: exponent that arrays have for a job whose utility has none
EXPONENT = 0.5

#: values that are drawn, as in the paper
LEAST_VALUE, MOST_VALUE = 1.0, 5.0

ARRIVALS, DEADLINES, VALUES, DEMANDS, WINDOWS, AMOUNTS = range(6)  # random streams


# Schema ---------------------------------------------------------------------------------------


def _check(sections: dict[str, Fields], prefix: str) -> None:
    """Check that jobs end after they arrive, that some slot exists, and that powers have exponents."""
    jobs = sections["jobs"]
    arrival, deadline, power = jobs["arrival"], jobs["deadline"], jobs["utility"] == POWER
    early = deadline < arrival
    first = arrival[np.argmax(early)]
    refuse(deadline, early, f"{prefix}jobs.deadline", f"must be >= {first:g}, the arrival")
    if deadline.max() < 1:
        raise InvalidWorkload(f"{prefix}jobs.deadline: must be >= 1, the first slot, for one job at least")
    if "exponent" in jobs:
        refuse(jobs["exponent"], jobs["exponent"] >= 1, f"{prefix}jobs.exponent", "must be < 1 ()")
    elif power.any():
        i = int(np.argmax(power))
        raise InvalidWorkload(f"{prefix}jobs.exponent: missing, but jobs.utility[{i}] is 'power'")
    with np.errstate(over="ignore"):
        share = jobs["demand"] / sections["cluster"]["capacity"]
    refuse(share, share > LARGEST, f"{prefix}jobs.demand", f"must be <= {LARGEST:g} times the capacity")


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
        refuse(values, broken, f"jobs.{name}", "must be a whole number in the discrete model")


def check_length(workload: Workload, model: str | None, prefix: str = "") -> None:
    """Raise InvalidWorkload for more slots, or whole tasks, than the episodes of an environment may have.

    An episode has a step for each slot up to the last deadline. In the discrete model rules serve tasks one
    by one: in a slot a job has as many as it can run there, has in all, and has resources for.
    """
    jobs, count = workload.jobs, len(workload.jobs["arrival"])
    deadline, most = jobs["deadline"], most_slots(count)
    refuse(deadline, deadline > most, f"{prefix}jobs.deadline", f"{count} jobs may take {most} slots")
    if model != "discrete":
        return
    share = (jobs["demand"] / workload.cluster["capacity"]).max(axis=1)
    fitting = np.divide(1.0, share, out=np.full(count, np.inf), where=share > 0.0)
    slots = np.floor(deadline) - np.maximum(np.ceil(jobs["arrival"]), 1.0) + 1.0
    tasks = np.maximum(slots, 0.0) * np.minimum(np.minimum(jobs["parallelism"], jobs["tasks"]), fitting)
    most *= MOST_TASKS_PER_SLOT
    if tasks.sum() > most:
        i = int(tasks.argmax())
        raise InvalidWorkload(
            f"{prefix}jobs.tasks[{i}]: {count} jobs may have {most} whole tasks that fit in their slots, and "
            f"these have {tasks.sum():.0f}, got {jobs['tasks'][i]:g}"
        )


def make_workload(capacity: npt.ArrayLike, **jobs: Any) -> Workload:
    """Make a checked workload.

    Args:
        capacity: C, of each resource; [m].
        jobs: the fields of ``SCHEMA.jobs`` by name, each [N], or one number or name for all jobs (not
            for arrivals and demands): ``arrival`` and ``deadline`` [slots], ``parallelism`` X, most tasks per
            slot, ``tasks`` Y in all, ``demand`` R [N, m], ``utility`` ("linear": v y, "power":
            v y^exponent, "log": v log(1 + y); names, or their numbers as an array), ``value`` v, and
            ``exponent`` where utilities are powers.

    Raises:
        InvalidWorkload: naming the field and the first bad index.
    """
    count = np.shape(jobs.get("arrival", 0))
    each = {name: np.full(count, value) if np.ndim(value) == 0 else value for name, value in jobs.items()}
    return SCHEMA.parse({"jobs": each, "cluster": {"capacity": capacity}})


# Arrays for kernels ---------------------------------------------------------------------------

#: number of jobs that a workload has in its arrays
SIZE = record_dtype(("jobs", np.int64))


class Jobs(NamedTuple):
    """The workload of an episode, as kernels take it; arrays may be longer."""

    size: Annotated[Any, SIZE]
    arrival: Annotated[Floats, "job"]  # [slots]
    deadline: Annotated[Floats, "job"]  # [slots]
    parallelism: Annotated[Floats, "job"]  # X, tasks per slot
    tasks: Annotated[Floats, "job"]  # Y
    value: Annotated[Floats, "job"]  # v
    exponent: Annotated[Floats, "job"]  # EXPONENT where the workload has none
    utility: Annotated[Integers, "job"]  # LINEAR, POWER or LOG
    demand: Annotated[Floats, "job", "resource"]  # R
    share: Annotated[Floats, "job", "resource"]  # demand over capacity
    capacity: Annotated[Floats, "resource", Shown("C, of each resource", LARGEST)]


def tables(workload: Workload) -> Jobs:
    """Convert a checked workload to the arrays that kernels take, for one environment."""
    jobs, capacity = workload.jobs, workload.cluster["capacity"]
    count = len(jobs["arrival"])
    return Jobs(
        size=np.array((count,), dtype=SIZE),
        share=jobs["demand"] / capacity,
        capacity=capacity,
        **{"exponent": np.full(count, EXPONENT), **jobs},
    )


def rebuild(jobs: Jobs) -> Workload:
    """Convert an environment's :class:`Jobs` to a workload, with exponents if a utility is "power"."""
    columns = {field.name: getattr(jobs, field.name)[: int(jobs.size["jobs"])] for field in SCHEMA.jobs}
    if not (columns["utility"] == POWER).any():
        del columns["exponent"]
    return SCHEMA.parse({"jobs": columns, "cluster": {"capacity": jobs.capacity}})


@helper
def horizon(jobs: Jobs) -> int:
    """Return T, the last slot in which a job could be served."""
    last = 1.0
    for job in range(jobs.size.jobs):
        last = max(last, jobs.deadline[job])
    return int(math.floor(last))


# Generator ------------------------------------------------------------------------------------

#: inputs of the compiled draw: the parameters of the same names, except for the last two
ORIGIN = record_dtype(
    ("jobs", np.int64),
    ("rate", np.float64),  # synthetic only, as are the next six
    ("windows", np.float64),
    ("heterogeneity", np.float64),
    ("shared", np.int64),  # whether jobs share the heavy demand of a resource
    ("tasks", np.float64),
    ("capacity", np.float64),
    ("single", np.int64),
    ("parallelism", np.float64),
    ("utility", np.int64),  # LINEAR, POWER or LOG
    ("exponent", np.float64),  # EXPONENT where the utility has none
    ("slot_seconds", np.float64),  # trace only, as are the next three
    ("load", np.float64),  # 0: the capacity of the trace's machines
    ("trace_windows", np.int64),  # whole ones; 0: synthetic
    ("whole", np.int64),  # whether capacities are whole numbers
)


class Origin(NamedTuple):
    """The inputs of a draw besides seed and episode; jobs of a trace are in this problem's units."""

    constants: Annotated[Any, ORIGIN]
    arrival: Annotated[Floats, "traced"]  # [s], not decreasing
    slots: Annotated[Integers, "traced"]  # in which a job may be served
    tasks: Annotated[Floats, "traced"]  # Y, whole
    demand: Annotated[Floats, "traced", "resource"]  # R
    machines: Annotated[Floats, "known"]  # capacity of the trace's machines; empty if unknown


class Drawing(NamedTuple):
    """The arrays of a draw: its source, and the workload that it writes."""

    source: Annotated[Origin, SHARED]
    jobs: Jobs


class Source:
    """The source of an environment's episodes: the paper's generator, or windows of a trace.

    The paper's generator (section V): Poisson(rate) jobs arrive in each slot from the first one on, until
    there are enough; a deadline is the arrival plus the whole slots of an exponential time; a task needs
    U[1, R] of cpu or memory, with equal chance, and 1 of the other (``single``: 1 of the only resource);
    each job draws that amount, or all jobs of a workload share one of cpu and one of memory (``heavy``);
    values are U[1, 5]. All jobs have the same X, Y and kind of utility.

    A window of a trace has the jobs that :func:`from_trace` makes, the first of them in slot 1, and values
    as above. Its capacity of each resource is the work of all jobs over ``load`` times the number of slots
    in which jobs could be served (1 if they need nothing of it), but no task's demand is larger.

    Args:
        parameters: of the environment.
        trace: of :func:`from_trace`, if the parameters name a trace.

    Attributes:
        jobs, resources: sizes of an episode.
        sizes: the same as lengths of the dimensions of :class:`Jobs`.
        windows: number of whole windows of the trace; 0 for the synthetic generator.
        arrays: the arrays that the compiled draw takes.

    Raises:
        InvalidParameter: when the arguments do not go together, or lead beyond LAST_SLOT or LARGEST.
    """

    def __init__(self, parameters: PartialValueParameters, trace: Origin | None = None) -> None:
        if trace is None:
            self.jobs, self.windows = int(parameters.jobs), 0
            self._check_synthetic(parameters)
            trace = allocate(Origin, {"traced": 0, "resource": 1 if parameters.single else 2, "known": 0})
        else:
            self.jobs, self.windows = count_windows(parameters.jobs, len(trace.arrival))
            self._check_windows(parameters, trace)
        self.resources = trace.demand.shape[1]
        self.sizes = {"job": self.jobs, "resource": self.resources}
        constants = constants_of(
            ORIGIN,
            parameters,
            jobs=self.jobs,
            utility=UTILITIES.index(parameters.utility),
            exponent=parameters.exponent if parameters.utility == "power" else EXPONENT,
            load=parameters.load or 0.0,
            shared=parameters.heavy == "resource",
            trace_windows=self.windows,
            whole=trace.constants["whole"],
        )
        self.arrays = trace._replace(constants=constants)

    def _check_synthetic(self, given: PartialValueParameters) -> None:
        """Refuse parameters of the generator that lead beyond LAST_SLOT or LARGEST."""
        last = LAST_SLOT / 100  # an exponential draw is less than 37 times its mean
        if self.jobs / given.rate > last:
            raise InvalidParameter(
                f"rate: {self.jobs} jobs at {given.rate:g} per slot take more than {last:g} slots"
            )
        limits = {"windows": (last, " slots"), "heterogeneity": (LARGEST, ""), "capacity": (LARGEST, "")}
        for name, (most, unit) in limits.items():
            if getattr(given, name) > most:
                raise InvalidParameter(f"{name}: must be <= {most:g}{unit}, got {getattr(given, name):g}")
        if given.heterogeneity / given.capacity > LARGEST:
            raise InvalidParameter(
                f"capacity: {given.capacity:g} is too small for a demand of {given.heterogeneity:g}"
            )

    def _check_windows(self, parameters: PartialValueParameters, trace: Origin) -> None:
        """Refuse a trace that lacks data, and windows of more slots than an episode may have."""
        if parameters.load is None and len(trace.machines) == 0:
            raise InvalidParameter(
                "load: 'none' takes the capacity of the trace's machines, which it does not tell"
            )
        used = self.windows * self.jobs
        times, slots = (a[:used].reshape(self.windows, -1) for a in (trace.arrival, trace.slots))
        last = float(((times - times[:, :1]) / parameters.slot_seconds + slots).max()) + 1.0
        most = min(most_slots(len(trace.arrival)), LAST_SLOT)
        if last > most:
            raise InvalidParameter(
                f"trace: a window of {self.jobs} jobs takes {last:g} slots, and a trace of "
                f"{len(trace.arrival)} jobs may take {most:g}: take longer slots or fewer jobs"
            )


def make_source(parameters: PartialValueParameters) -> Source:
    """Make the source that an environment's parameters name; read the trace's files, if any."""
    if parameters.trace is None:
        return Source(parameters)
    from schedgym.traces import read_trace

    if parameters.nodes is not None and parameters.load is not None:
        raise InvalidParameter(
            f"nodes: has no effect with load {parameters.load:g}, which sets the capacity: load none"
        )
    return Source(
        parameters,
        from_trace(
            read_trace(parameters.trace, nodes=parameters.nodes, format=parameters.trace_format), parameters
        ),
    )


def from_trace(trace: Trace | JobTrace, parameters: PartialValueParameters) -> Origin:
    """Cut the jobs of a trace into tasks of one slot, of which ``parallelism`` (X) run at a time.

    A task of the trace that runs for D seconds on c cores with g GiB becomes a job whose tasks need 1/X of c
    and g each. It has Y = X D / slot_seconds tasks, rounded up: with X tasks at a time it takes as long as in
    the trace. It may be served in slack D / slot_seconds slots, rounded up, of which the first is the one in
    which it arrives. A trace without memory has cpu as its only resource; sizes in shares stay shares.

    A job of a trace with only its bytes (SWIM) has a task per 10^9 bytes of input, which takes one core and
    one slot. It may be served in slack times the ceil(Y / X) slots that it takes with X tasks at a time. Jobs
    without input are ignored. Capacities are then whole cores.

    Args:
        trace: as read by :func:`schedgym.traces.read_trace`.
        parameters: of the environment: length of a slot, slack and parallelism.

    Raises:
        InvalidWorkload: when no job is left, or one is too large.
    """
    from schedgym.traces.base import Trace, round_up

    parallelism = parameters.parallelism
    if isinstance(trace, Trace):
        if not trace.cores.any() and trace.gpu.any():
            raise InvalidWorkload(f"{trace.name}: has GPUs only; this problem needs processors")
        arrival, length = trace.arrival, trace.duration / parameters.slot_seconds
        tasks = np.maximum(round_up(parallelism * length), 1.0)
        sizes, machines = [trace.cores], [trace.machine_cores]
        if trace.memory.any():
            sizes.append(trace.memory)
            machines.append(trace.machine_memory)
        demand = np.column_stack(sizes) / parallelism
        capacity = np.array([size.sum() for size in machines])
        unit = False
    else:
        arrival, counts = trace.with_input()
        tasks = counts.astype(np.float64)
        length = np.ceil(tasks / parallelism)
        demand, capacity, unit = np.ones((len(tasks), 1)), np.zeros(1), True
    slots = np.maximum(round_up(parameters.slack * length), 1.0)
    for values, most, what in ((tasks, LARGEST, "tasks"), (slots, LAST_SLOT, "slots until the deadline")):
        if values.max() > most:
            i = int(np.argmax(values > most))
            raise InvalidWorkload(
                f"{trace.name}: job [{i}] has {values[i]:g} {what}, more than {most:g}: take longer slots"
            )
    constants = np.zeros((), dtype=ORIGIN)
    constants["whole"] = unit
    return Origin(
        constants=constants,
        arrival=np.ascontiguousarray(arrival),
        slots=slots.astype(np.int64),
        tasks=tasks,
        demand=np.ascontiguousarray(demand),
        machines=capacity if (capacity > 0).all() else np.zeros(0),
    )


def generate(seed: int, episode: int, source: Source) -> Workload:
    """The workload that an environment reset with ``seed`` meets in its ``episode`` (counted from 0)."""
    return rebuild(draw_alone(draw, Drawing, source, seed, episode))


@helper
def draw_synthetic(source: Any, jobs: Jobs, seed: np.uint64, episode: int) -> None:
    """Draw the jobs of the paper's generator."""
    arrivals = stream(seed, episode, ARRIVALS)
    deadlines = stream(seed, episode, DEADLINES)
    demands = stream(seed, episode, DEMANDS)
    amounts = stream(seed, episode, AMOUNTS)
    amounts, of_cpu = uniform(amounts)
    amounts, of_memory = uniform(amounts)
    clock = 0.0
    for j in range(source.jobs):
        # the numbers of arrivals in unit intervals are Poisson
        arrivals, gap = exponential(arrivals)
        clock += gap / source.rate
        deadlines, time = exponential(deadlines)
        jobs.arrival[j] = 1.0 + math.floor(clock)
        jobs.deadline[j] = jobs.arrival[j] + math.floor(time * source.windows)
        jobs.tasks[j] = source.tasks
        for r in range(jobs.demand.shape[1]):
            jobs.demand[j, r] = 1.0
        if source.single == 0:
            demands, which = uniform(demands)
            demands, amount = uniform(demands)
            if source.shared:
                amount = of_cpu if which < 0.5 else of_memory
            jobs.demand[j, 0 if which < 0.5 else 1] = 1.0 + (source.heterogeneity - 1.0) * amount
    for r in range(jobs.demand.shape[1]):
        jobs.capacity[r] = source.capacity


@helper
def draw_window(origin: Origin, jobs: Jobs, seed: np.uint64, episode: int) -> None:
    """Take the episode's window of a trace."""
    source = origin.constants
    first = first_of_window(seed, episode, WINDOWS, source.trace_windows, source.jobs)
    covered = 0.0  # slots in which jobs could be served,
    end = 0.0  # and the last of them so far
    for j in range(source.jobs):
        slot = 1.0 + math.floor((origin.arrival[first + j] - origin.arrival[first]) / source.slot_seconds)
        jobs.arrival[j] = slot
        jobs.deadline[j] = slot + origin.slots[first + j] - 1.0
        jobs.tasks[j] = origin.tasks[first + j]
        for r in range(jobs.demand.shape[1]):
            jobs.demand[j, r] = origin.demand[first + j, r]
        covered += max(jobs.deadline[j] - max(end, slot - 1.0), 0.0)
        end = max(end, jobs.deadline[j])
    for r in range(jobs.demand.shape[1]):
        if source.load == 0.0:
            jobs.capacity[r] = origin.machines[r]
            continue
        work = 0.0
        largest = 0.0
        for j in range(source.jobs):
            work += jobs.tasks[j] * jobs.demand[j, r]
            largest = max(largest, jobs.demand[j, r])
        size = max(work / (source.load * covered), largest)
        if source.whole:
            size = math.ceil(size)
        jobs.capacity[r] = size if size > 0.0 else 1.0


@helper
def draw_one(env: Drawing, seed: np.uint64, episode: int) -> int:
    """Draw the workload of (seed, episode).

    Job j takes the j-th draws of each stream, so that a change of one parameter leaves the rest as it is.
    Another rate keeps windows and demands; other windows keep arrivals; another heterogeneity or another
    choice of ``heavy`` keeps which demand is the heavy one; another number of jobs keeps the jobs that stay.
    """
    source, jobs = env.source.constants, env.jobs
    jobs.size.jobs = source.jobs
    if source.trace_windows > 0:
        draw_window(env.source, jobs, seed, episode)
    else:
        draw_synthetic(source, jobs, seed, episode)
    values = stream(seed, episode, VALUES)
    for j in range(source.jobs):
        values, u = uniform(values)
        jobs.value[j] = LEAST_VALUE + (MOST_VALUE - LEAST_VALUE) * u
        jobs.parallelism[j] = source.parallelism
        jobs.utility[j] = source.utility
        jobs.exponent[j] = source.exponent
        for r in range(jobs.demand.shape[1]):
            jobs.share[j, r] = jobs.demand[j, r] / jobs.capacity[r]
    return 0


draw = draw_kernel(__name__, Drawing, draw_one)


def shuffle_future(workload: Workload, slot: float, rng: np.random.Generator) -> Workload:
    """See :func:`~schedgym.core.future.change_future`; values and the time until deadlines change."""
    factors = {"value": (0.5, 1.0), "deadline": (0.5, 1.0)}
    return change_future(SCHEMA, workload, slot, rng, factors, instants=("deadline",))
