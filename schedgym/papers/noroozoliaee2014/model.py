"""The model of noroozoliaee2014 in plain Python: queues on servers with resources, schemes, and bounds.

The paper has two resources, cpu and memory; tasks and servers may have any number of them. Whole numbers give
exact results, which the claims examine; demands and capacities are then multiples of 1 / ``Instance.unit`` of
the largest capacity. Floats give the starts of the environment's kernels, bit for bit, as these expressions
are evaluated in this order:

- used = ((0 + d1) + d2) + ... over the tasks that run on a server, in order of start; remaining = capacity -
  used; a task fits if its demand <= remaining + ``TOLERANCE`` in all resources.
- Sizes of (x, y) are x x + y y (L2 norm), x y (product) and a1 x + a2 y (sums), where the weights of the
  average sum are the mean demands ((0 + d1) + d2 + ...) / count of the tasks submitted so far. The dot
  product of a demand and what remains is c x + m y. Further resources follow in the same way. A product for
  a server leaves out the resources that it has none of.
- end = start + execution; two instants are one only if they are equal.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

Number = Any  # whole: exact results; float: those of the kernels
Server = tuple[Number, ...]
Norm = Callable[..., Number]

TOLERANCE = 1e-9  # by which servers may be overfilled, and by which sizes may differ and be tied
SIMULTANEOUS = 1e-12  # share of its time by which an event may be later than another and simultaneous


class Task(tuple[Number, ...]):
    """Arrival, execution time and demands of a task: ``Task(arrival, execution, cpu, memory)``."""

    def __new__(cls, *numbers: Number) -> Task:  # noqa: D102
        return super().__new__(cls, numbers)

    def __getnewargs__(self) -> tuple[Number, ...]:
        """The arguments of ``__new__``, for pickle."""
        return tuple(self)

    arrival, execution, cpu, memory = (property(operator.itemgetter(k)) for k in range(4))
    demand = property(operator.itemgetter(slice(2, None)))


class Instance(NamedTuple):
    """Tasks in order of submission, and servers as (cpu, memory), or with other resources."""

    tasks: Sequence[Task]
    servers: Sequence[Server]

    @property
    def unit(self) -> Number:
        """The largest capacity."""
        return max(map(max, self.servers))


class Schedule(NamedTuple):
    """What a scheme did.

    Attributes:
        start: start of each task; None: it never ran.
        server: its server; -1: none.
        end: the last event, after which nothing can happen (0 where all tasks run).
        reserved: task -> its first reservation, of tasks that had one (easy-backfill).
    """

    start: Sequence[Number | None]
    server: Sequence[int]
    end: Number = 0
    reserved: Mapping[int, Number] = {}


# the schemes -------------------------------------------------------------------------------------------


def added(numbers: Iterable[Number]) -> Number:
    """Return the sum, added from the left; Python's own rounds otherwise."""
    return functools.reduce(operator.add, numbers, 0)


def squares(*amounts: Number) -> Number:
    """Return the square of the L2 norm."""
    return added(x * x for x in amounts)


#: rule -> score of a server, of which the least is chosen; the task, what the server has left, and a size
SERVER_RULES: dict[str, Callable[[Task, Server, Norm], Number]] = {
    "first": lambda task, left, size: 0,
    "best": lambda task, left, size: size(*_minus(left, task)),
    "best-before": lambda task, left, size: size(*left),
    "worst": lambda task, left, size: -size(*_minus(left, task)),
    "dot": lambda task, left, size: -_dot(task, left),
}
SIZES = ("nb", "dp", "product", "sum", "avgsum")  # the L2 norm, the dot product, ...


class Scheme(NamedTuple):
    """Rules of a scheme.

    Attributes:
        rule: chooses a server for a task (SERVER_RULES, or "random").
        completion: what a released server brings about. "scan": each waiting task that fits there starts, in
            order; "head": the first one starts as long as it fits there; "heads": as long as it fits any
            server; "backfill": that, and then later ones that do not delay the first one's reservation.
        order: of waiting tasks: "submission", "execution" (shortest first), or a size (largest first).
        joins: True if an arrival joins the queue, False if it is placed first, wherever it fits.
        size: by which rules "best" and "worst" measure what is left.
    """

    rule: str
    completion: str
    order: str = "submission"
    joins: bool = False
    size: str = "nb"


SCHEMES: dict[str, Scheme] = {
    "bf-exec": Scheme("best", "scan", "execution"),
    # with the remaining resources as they are before the placement
    "bf-exec-before": Scheme("best-before", "scan", "execution"),
    "dot-exec": Scheme("dot", "scan", "execution"),
    "fcfs": Scheme("first", "heads", joins=True),
    "easy-backfill": Scheme("first", "backfill", joins=True),  # not of the paper
}
for _size in SIZES:
    _rule = "dot" if _size == "dp" else "first"
    SCHEMES[f"ffd-{_size}"] = Scheme(_rule, "scan", _size)
    SCHEMES[f"ffd-{_size}-blocking"] = Scheme(_rule, "heads", _size, joins=True)
    SCHEMES[f"ffd-{_size}-bypass"] = Scheme(_rule, "heads", _size)
    SCHEMES[f"bfd-{_size}"] = Scheme("best", "scan", _size, size=_size)
for _name, _rule in {"ff": "first", "bf": "best", "wf": "worst", "rf": "random"}.items():
    SCHEMES[_name] = Scheme(_rule, "head")  # as the paper says it
    SCHEMES[f"{_name}-all"] = Scheme(_rule, "heads")


def _dot(task: Task, left: Server) -> Number:
    return added(d * x for d, x in zip(task.demand, left, strict=True))


def _minus(left: Server, task: Task) -> Server:
    return tuple(x - d for x, d in zip(left, task.demand, strict=True))


def _fits(task: Task, left: Server) -> bool:
    return all(d <= x + TOLERANCE for d, x in zip(task.demand, left, strict=True))


def select(
    rule: str,
    task: Task,
    remaining: Sequence[Server],
    size: Callable[[int], Norm] = lambda j: squares,
    choose: Callable[[list[int]], int] | None = None,
) -> int:
    """Return the server that a rule selects for a task (the lowest of equals), -1 if it fits none.

    ``size`` has the size by which each server is measured.
    """
    fitting = [j for j, left in enumerate(remaining) if _fits(task, left)]
    if rule == "random" and fitting:
        assert choose is not None
        return choose(fitting)
    return _first(fitting, lambda j: SERVER_RULES[rule](task, remaining[j], size(j)))


def _first(candidates: Iterable[int], key: Callable[[int], Number]) -> int:
    """Return the first candidate of the least key, -1 if there is none; rounding makes no key less."""
    keys = {i: key(i) for i in candidates}
    least = min(keys.values(), default=0)
    return next((i for i, own in keys.items() if own - least <= TOLERANCE * max(abs(own), abs(least))), -1)


def _reached(event: Number, instant: Number) -> bool:
    """Return True if an event is not later than an instant, but for rounding."""
    return bool(event - instant <= SIMULTANEOUS * abs(instant))


class _Cluster:
    """Servers, queue and clock of one simulation."""

    def __init__(
        self,
        instance: Instance,
        scheme: Scheme,
        weights: Sequence[Number],
        norm: Norm,
        choose: Callable[[list[int]], int] | None,
    ) -> None:
        self.tasks, self.servers = instance
        self.scheme, self.weights, self.norm, self.choose = scheme, weights, norm, choose
        self.clock: Number = 0
        self.submitted = 0
        self.queue: list[int] = []  # in order of submission
        self.running: list[list[int]] = [[] for _ in self.servers]  # in order of start
        self.left = list(self.servers)
        self.start: list[Number | None] = [None] * len(self.tasks)
        self.end: list[Number] = [math.inf] * len(self.tasks)
        self.server = [-1] * len(self.tasks)
        self.reserved: dict[int, Number] = {}

    def run(self) -> Schedule:
        while True:
            instants = [self.end[i] for there in self.running for i in there]
            if self.submitted < len(self.tasks):
                instants.append(self.tasks[self.submitted].arrival)
            if not instants:
                return Schedule(tuple(self.start), tuple(self.server), self.clock, self.reserved)
            first = min(instants)
            ended = [end for there in self.running for i in there if _reached(end := self.end[i], first)]
            self.clock = max([self.clock, *ended] if ended else [self.clock, first])
            for j in self.release():
                self.offer(j)
            while self.submitted < len(self.tasks) and _reached(
                self.tasks[self.submitted].arrival, self.clock
            ):
                self.clock = max(self.clock, self.tasks[self.submitted].arrival)
                self.submitted += 1
                self.arrive(self.submitted - 1)

    def release(self) -> list[int]:
        """End the tasks that are done; return the servers that they ran on."""
        released = []
        for j, there in enumerate(self.running):
            stay = [i for i in there if self.end[i] > self.clock]
            if len(stay) < len(there):
                self.running[j] = stay
                self.take_from(j)
                released.append(j)
        return released

    def take_from(self, j: int) -> None:
        """Compute what server j has left."""
        used = _sums([self.tasks[i] for i in self.running[j]], len(self.servers[j]))
        self.left[j] = tuple(x - y for x, y in zip(self.servers[j], used, strict=True))

    def arrive(self, i: int) -> None:
        """Place task i, or let it wait."""
        if self.scheme.joins:
            self.queue.append(i)
            self.backfill() if self.scheme.completion == "backfill" else self.heads()
        elif (j := self.select(i)) >= 0:
            self.place(i, j)
        else:
            self.queue.append(i)

    def offer(self, j: int) -> None:
        """Offer the released server j to waiting tasks."""
        completion = self.scheme.completion
        if completion == "heads":
            self.heads()
        elif completion == "backfill":
            self.backfill()
        elif completion == "head":
            while self.queue and self.fits(self.queue[0], j):
                self.place(self.queue[0], j)
        elif self.scheme.order == "dp":
            while fitting := [i for i in self.queue if self.fits(i, j)]:
                self.place(_first(fitting, lambda i: -_dot(self.tasks[i], self.left[j])), j)
        else:
            waiting = list(self.queue)
            while waiting:
                i = _first(waiting, functools.partial(self.key, j=j))
                waiting.remove(i)
                if self.fits(i, j):
                    self.place(i, j)

    def heads(self) -> None:
        """Start the first tasks of the queue until one fits nowhere."""
        while self.queue:
            i = _first(self.queue, self.key)
            j = self.select(i)
            if j < 0:
                return
            self.place(i, j)

    def key(self, i: int, j: int = -1) -> Number:
        """Return the key of a waiting task, of which the least comes first; j is a released server."""
        task, order = self.tasks[i], self.scheme.order
        if order == "submission":
            return 0
        if order == "execution":
            return task.execution
        if order == "dp":  # the largest dot product on any server, whether the task fits there or not
            return -max(_dot(task, left) for left in self.left)
        return -self.size(order, j, *task.demand)

    def size(self, name: str, j: int, *amounts: Number) -> Number:
        """Return the size of amounts for server j (-1: none); "dp" is the norm where it is no dot product."""
        if name in ("nb", "dp"):
            return self.norm(*amounts)
        if name == "product":
            there = self.servers[j] if j >= 0 else [1] * len(amounts)
            return math.prod(x for x, capacity in zip(amounts, there, strict=True) if capacity)
        weights = self.weights if name == "sum" else self.mean_demands()
        return added(a * x for a, x in zip(weights, amounts, strict=True))

    def mean_demands(self) -> list[Number]:
        total = _sums(self.tasks[: self.submitted], len(self.servers[0]))
        return [x / self.submitted for x in total]

    def fits(self, i: int, j: int) -> bool:
        return _fits(self.tasks[i], self.left[j])

    def select(self, i: int) -> int:
        def size(j: int) -> Norm:
            return functools.partial(self.size, self.scheme.size, j)

        return select(self.scheme.rule, self.tasks[i], self.left, size, self.choose)

    def place(self, i: int, j: int) -> None:
        """Start task i on server j now."""
        assert self.start[i] is None and self.fits(i, j)
        self.start[i], self.server[i] = self.clock, j
        self.end[i] = self.clock + self.tasks[i].execution
        self.running[j].append(i)
        self.take_from(j)
        if i in self.queue:
            self.queue.remove(i)

    # EASY backfilling, word for word: nothing is kept between two calls

    def backfill(self) -> None:
        """Start heads; then later tasks, each where it does not delay the head's reservation."""
        self.heads()
        if not self.queue:
            return
        head, *others = self.queue
        time, reserved = self.reservation(head)
        self.reserved.setdefault(head, time)
        for i in others:
            for j in range(len(self.servers)):
                if self.fits(i, j) and (j != reserved or self.fits_later(head, j, time, beside=i)):
                    self.place(i, j)
                    break

    def reservation(self, i: int) -> tuple[Number, int]:
        """Return the earliest time, and the lowest server, at which task i fits if nothing else starts."""
        known = {self.end[k] for there in self.running for k in there}
        ends = sorted({max(later for later in known if _reached(later, end)) for end in known})
        return next((t, j) for t in ends for j in range(len(self.servers)) if self.fits_later(i, j, t))

    def fits_later(self, i: int, j: int, time: Number, beside: int = -1) -> bool:
        """Return whether task i fits on server j beside the tasks that still run there at a later time.

        ``beside``, if not -1, is a task that would start on server j now.
        """
        here = [k for k in self.running[j] if not _reached(self.end[k], time)]
        left = tuple(
            x - math.fsum(self.tasks[k].demand[r] for k in here) for r, x in enumerate(self.servers[j])
        )
        if beside >= 0 and not _reached(self.clock + self.tasks[beside].execution, time):
            left = _minus(left, self.tasks[beside])
        return _fits(self.tasks[i], left)


def _sums(tasks: Iterable[Task], resources: int) -> list[Number]:
    """Return the sums of the tasks' demands, added in their order."""
    return [added(task.demand[r] for task in tasks) for r in range(resources)]


def simulate(
    instance: Instance,
    name: str,
    *,
    weights: Sequence[Number] = (),
    norm: Norm = squares,
    choose: Callable[[list[int]], int] | None = None,
) -> Schedule:
    """Simulate a scheme until no event is left.

    At each instant, first all completed tasks release their resources; then each server that released some is
    offered waiting tasks, servers by index; then arriving tasks are placed or queued in order of submission.
    A task so short that it ends when it starts completes in a further round of the same instant.

    Args:
        instance: every task fits some empty server.
        name: of SCHEMES.
        weights: of the resources in the size "sum"; none: all 1.
        norm: of amounts, in place of the L2 norm.
        choose: maps the ascending list of fitting servers to one of them, for rf and rf-all; it is called
            even if only one server fits.
    """
    weights = weights or [1] * len(instance.servers[0])
    return _Cluster(instance, SCHEMES[name], weights, norm, choose).run()


# schedules ---------------------------------------------------------------------------------------------


def feasible(instance: Instance, schedule: Schedule) -> bool:
    """Return True if every task runs, none before its arrival, and no server is ever overloaded."""
    tasks, servers = instance
    spans = []
    for task, start, j in zip(tasks, schedule.start, schedule.server, strict=True):
        if start is None or start < task.arrival or not 0 <= j < len(servers):
            return False
        spans.append((start, start + task.execution, j, task))
    for t, _, j, _ in spans:  # the load rises only where a task starts
        there = [task for begin, end, server, task in spans if server == j and begin <= t < end]
        total = Task(t, 0, *_sums(there, len(servers[j])))
        if not _fits(total, servers[j]):
            return False
    return True


def _charged(instance: Instance, schedule: Schedule) -> list[Number]:
    """Return starts; tasks that never ran are run one after another from the last event on."""
    starts = list(schedule.start)
    clock = schedule.end
    for i, task in enumerate(instance.tasks):
        if starts[i] is None:
            starts[i] = clock
            clock += task.execution
    return starts


def delays(instance: Instance, schedule: Schedule) -> list[Number]:
    """Return each task's queuing delay; those that never ran wait for each other after the last event."""
    starts = _charged(instance, schedule)
    return [start - task.arrival for start, task in zip(starts, instance.tasks, strict=True)]


class Interval(NamedTuple):
    """Time between neighbouring events: begin, length, numbers of tasks, and what they use of a resource."""

    begin: Number
    length: Number
    queued: int
    running: int
    used: Sequence[Number]


def intervals(instance: Instance, schedule: Schedule) -> list[Interval]:
    """Return the intervals from the first arrival to the last completion.

    Tasks that never ran run after the last event, as in :func:`delays`, but use nothing then.
    """
    tasks = instance.tasks
    spans = [
        (task.arrival, start, start + task.execution)
        for task, start in zip(tasks, _charged(instance, schedule), strict=True)
    ]
    found = []
    for begin, end in itertools.pairwise(sorted({moment for span in spans for moment in span})):
        running = [i for i, (_, start, stop) in enumerate(spans) if start <= begin < stop]
        placed = [tasks[i] for i in running if schedule.server[i] >= 0]
        used = _sums(placed, len(instance.servers[0]))
        queued = sum(arrival <= begin < start for arrival, start, _ in spans)
        found.append(Interval(begin, end - begin, queued, len(running), used))
    return found


def _ratio(number: Number, of: Number) -> Fraction:
    return Fraction(number) / Fraction(of)


class Measured(NamedTuple):
    """What the paper's section V speaks of; averages are over the time from first arrival to last completion.

    Attributes:
        delay: W, the mean queuing delay.
        execution: the mean execution time.
        response: T, their sum.
        gap: 1 / lambda, the time per task.
        queued: N_q, the mean number of waiting tasks.
        running: N_r, the mean number of running tasks.
        beta: the share of time in which tasks wait.
        least: running tasks at any time at which tasks wait; None if none ever does.
        most: running tasks at any time.
    """

    delay: Fraction
    execution: Fraction
    response: Fraction
    gap: Fraction
    queued: Fraction
    running: Fraction
    beta: Fraction
    least: int | None
    most: int


def measure(instance: Instance, schedule: Schedule) -> Measured:
    """Compute delays from the starts, and numbers of tasks by counting them between events."""
    parts = intervals(instance, schedule)
    count, span = len(instance.tasks), sum(part.length for part in parts)
    delay = _ratio(sum(delays(instance, schedule)), count)
    execution = _ratio(sum(task.execution for task in instance.tasks), count)
    return Measured(
        delay,
        execution,
        delay + execution,
        _ratio(span, count),
        _ratio(sum(part.queued * part.length for part in parts), span),
        _ratio(sum(part.running * part.length for part in parts), span),
        _ratio(sum(part.length for part in parts if part.queued), span),
        min((part.running for part in parts if part.queued), default=None),
        max(part.running for part in parts),
    )


def utilisation(instance: Instance, schedule: Schedule, resource: int, window: str = "") -> Fraction:
    """Return the share of a resource (0: cpu, 1: memory, ...) in use, 0 in a window of no length.

    Windows are "": first arrival to last completion; "_to_last_arrival"; "_backlog": while tasks wait.
    """
    parts = intervals(instance, schedule)
    if window == "_to_last_arrival":
        parts = [part for part in parts if part.begin < instance.tasks[-1].arrival]
    elif window == "_backlog":
        parts = [part for part in parts if part.queued]
    held = sum(server[resource] for server in instance.servers) * sum(part.length for part in parts)
    return _ratio(sum(part.used[resource] * part.length for part in parts), held) if held else Fraction(0)


def metrics(
    instance: Instance, schedule: Schedule, resources: Sequence[str] = ("cpu", "memory")
) -> dict[str, float]:
    """Return the environment's metrics, with the names of the resources."""
    waits, measured = delays(instance, schedule), measure(instance, schedule)
    found = {
        "mean_delay": measured.delay,
        "median_delay": np.median(waits),
        "p95_delay": np.percentile(waits, 95),
        "max_delay": max(waits),
        "makespan": measured.gap * len(waits),
        "mean_queued": measured.queued,
        "mean_running": measured.running,
        "beta": measured.beta,
        "stranded": sum(start is None for start in schedule.start),
    }
    for resource, name in enumerate(resources):
        for window in ("", "_to_last_arrival", "_backlog"):
            found[f"utilization_{name}{window}"] = utilisation(instance, schedule, resource, window)
    return {name: float(value) for name, value in found.items()}


# theorems 5.1 and 5.2 ----------------------------------------------------------------------------------


def largest_demands(instance: Instance) -> Server:
    """Return U, the largest demand for each resource."""
    return tuple(map(max, zip(*(task.demand for task in instance.tasks), strict=True)))


def least_demands(instance: Instance) -> Server:
    """Return L, the least demand for each resource."""
    return tuple(map(min, zip(*(task.demand for task in instance.tasks), strict=True)))


def _times(capacity: Number, demand: Number) -> Number:
    """Return how often a demand goes into a capacity."""
    return math.floor((capacity + TOLERANCE) / demand) if demand else math.inf


def at_once(instance: Instance, demand: Server, pick: Callable[..., Number] = min) -> Number:
    """Return how many tasks of one demand run at once: sum over servers of floor(pick(C / c, M / m))."""
    return sum(pick(map(_times, server, demand)) for server in instance.servers)


def on_one(instance: Instance, demand: Server, pick: Callable[..., Number] = min) -> Number:
    """Return the same for one server of size 1, as the paper prints it: floor(pick(1 / c, 1 / m))."""
    return pick(_times(instance.unit, own) for own in demand)


class Reading(NamedTuple):
    """A form of the theorems: W <= (or >=) mu - beta k / lambda.

    Attributes:
        upper: True for Theorem 5.1, with the largest demands, False for Theorem 5.2, with the least.
        response: True if mu is the mean response time, False if it is the mean execution time.
        pick: combines the numbers of tasks that the resources allow: min or max.
        every: True if k is the sum over all servers, False if it is that of one server of size 1.
        beta: True if the form has the factor beta.
    """

    upper: bool
    response: bool
    pick: Callable[..., Any]
    every: bool
    beta: bool


UPPER = Reading(upper=True, response=True, pick=min, every=True, beta=True)
LOWER = Reading(upper=False, response=True, pick=min, every=True, beta=False)
PRINTED_UPPER = Reading(upper=True, response=False, pick=max, every=False, beta=False)
PRINTED_LOWER = Reading(upper=False, response=False, pick=min, every=False, beta=False)


def bound(instance: Instance, found: Measured, reading: Reading) -> Number:
    """Return the bound of a theorem on W.

    As corrected the upper one needs that at any time at which tasks wait, every server has refused some task
    since it last released one: so it is where the queue holds a task that fits nowhere, and under ff, bf, wf,
    rf. The lower one holds for any schedule.
    """
    demand = largest_demands(instance) if reading.upper else least_demands(instance)
    mu = found.response if reading.response else found.execution
    k = (at_once if reading.every else on_one)(instance, demand, reading.pick)
    share = found.beta if reading.beta else 1
    return mu - share * k * found.gap if share else mu


# optima, and bounds from the workload alone ------------------------------------------------------------


def earliest(
    instance: Instance, placed: Sequence[tuple[int, Number, int]], i: int, j: int, late: int = 0
) -> Number:
    """Return the first instant at which task i can run on server j beside the tasks that are placed.

    ``placed`` has (task, start, server). The task starts no earlier than ``late`` after its arrival.
    """
    tasks, servers = instance
    task = tasks[i]
    there = [(begin, begin + tasks[k].execution, tasks[k]) for k, begin, server in placed if server == j]

    def free(begin: Number) -> bool:
        moments = [begin, *(b for b, _, _ in there if begin < b < begin + task.execution)]
        for t in moments:
            beside = [one for b, e, one in there if b <= t < e]
            used = _sums(beside, len(servers[j]))
            # floats may be added in another order than in a schedule that just fits
            if not _fits(task, tuple(x - y + TOLERANCE for x, y in zip(servers[j], used, strict=True))):
                return False
        return True

    ready = task.arrival + late
    return next(t for t in sorted({ready, *(e for _, e, _ in there if e > ready)}) if free(t))


def optimum(instance: Instance, placed: Sequence[tuple[int, Number, int]] = ()) -> tuple[Number, Schedule]:
    """Return the least sum of queuing delays, and a schedule that reaches it.

    All orders of the tasks are tried, each task at its earliest instant on each server. One of these
    schedules is optimal, as delaying a task never reduces the sum.

    Args:
        instance: an instance with up to about five tasks.
        placed: tasks that are placed already: (task, start, server).
    """
    tasks, servers = instance
    hosts = [[j for j, server in enumerate(servers) if _fits(task, server)] for task in tasks]
    best: tuple[Number, Schedule] | None = None

    def extend(placed: list[tuple[int, Number, int]], total: Number) -> None:
        nonlocal best
        if best is not None and total >= best[0]:
            return
        if len(placed) == len(tasks):
            by_task = sorted(placed)
            best = total, Schedule(tuple(s for _, s, _ in by_task), tuple(j for _, _, j in by_task))
            return
        known = {i for i, _, _ in placed}
        for i in range(len(tasks)):
            if i not in known:
                for j in hosts[i]:
                    begin = earliest(instance, placed, i, j)
                    extend([*placed, (i, begin, j)], total + begin - tasks[i].arrival)

    extend(list(placed), sum(begin - tasks[i].arrival for i, begin, _ in placed))
    assert best is not None
    return best


def mean_busy_times(arrivals: Sequence[Number], volumes: Sequence[Number], rate: Number) -> list[Fraction]:
    """Return mean busy times on one machine on which the smallest original volume runs first.

    The machine preempts; a volume of 0 runs at its arrival.
    """
    left = [Fraction(volume) for volume in volumes]
    moment = [Fraction(0)] * len(left)  # integral of time over the volume processed
    clock = Fraction(0)
    while any(left):
        open_ = [i for i, amount in enumerate(left) if amount]
        clock = max(clock, Fraction(min(arrivals[i] for i in open_)))
        i = min((i for i in open_ if arrivals[i] <= clock), key=lambda i: (volumes[i], i))
        later = [Fraction(arrivals[k]) for k in open_ if arrivals[k] > clock]
        stop = min([clock + left[i] / Fraction(rate), *later])
        done = (stop - clock) * Fraction(rate)
        moment[i] += done * (clock + stop) / 2
        left[i] -= done
        clock = stop
    return [
        total / Fraction(volume) if volume else Fraction(arrival)
        for total, volume, arrival in zip(moment, volumes, arrivals, strict=True)
    ]


def pooled_bound(instance: Instance, resource: int) -> Fraction:
    """Return a lower bound on the mean delay: all servers as one machine of a resource (0 is cpu)."""
    tasks = instance.tasks
    rate = sum(Fraction(server[resource]) for server in instance.servers)
    volumes = [Fraction(task.execution) * Fraction(task[2 + resource]) for task in tasks]
    busy = mean_busy_times([task.arrival for task in tasks], volumes, rate)
    means = sum(Fraction(task.execution) / 2 + Fraction(task.arrival) for task in tasks)
    return (sum(busy, Fraction(0)) - means) / len(tasks)


def batch_bound(instance: Instance) -> Fraction:
    """Return a lower bound on the mean delay of tasks that all arrive at once.

    The shortest task runs first on as many machines as tasks of the least demands can run at once.
    """
    tasks = instance.tasks
    machines: list[Number] = [0] * min(at_once(instance, least_demands(instance)), len(tasks))
    starts: Number = 0
    for execution in sorted(task.execution for task in tasks):
        machines.sort()
        starts += machines[0]
        machines[0] += execution
    return _ratio(starts, len(tasks))


def workload_bound(instance: Instance) -> Fraction:
    """Return the largest of these bounds, and 0.

    A schedule may be below it by rounding, and by the tolerance by which servers may be overfilled.
    """
    bounds = [Fraction(0), *(pooled_bound(instance, r) for r in range(len(instance.servers[0])))]
    if instance.tasks[0].arrival == instance.tasks[-1].arrival:
        bounds.append(batch_bound(instance))
    return max(bounds)
