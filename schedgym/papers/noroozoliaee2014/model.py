"""Tiny instances of queues on servers with two resources, in exact numbers.

Plain lists and loops suffice, as instances have a handful of tasks. Times are whole numbers. Demands and
capacities are whole numbers, too: multiples of 1 / ``unit`` of the largest capacity of each resource.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

__all__ = [
    "SCHEMES",
    "Instance",
    "Measured",
    "Schedule",
    "Server",
    "Task",
    "at_once",
    "clusters",
    "draw",
    "feasible",
    "instances",
    "lower_bounds",
    "measure",
    "on_one",
    "optimum",
    "pairs",
    "random_schedule",
    "select",
    "simulate",
    "size",
]

Server = tuple[int, int]


class Task(NamedTuple):
    """Arrival, execution time and demands of a task, in the units of the module."""

    arrival: int
    execution: int
    cpu: int
    memory: int


class Instance(NamedTuple):
    """Tasks in order of submission, servers as (cpu, memory), and the largest capacity of each resource."""

    tasks: tuple[Task, ...]
    servers: tuple[Server, ...]
    unit: int


class Schedule(NamedTuple):
    """Start (None: never) and server (-1: none) of each task."""

    start: tuple[int | None, ...]
    server: tuple[int, ...]


# the schemes -------------------------------------------------------------------------------------------

#: rule -> score of a server, of which the least is chosen; demand (c, m), remaining (x, y)
SERVER_RULES: dict[str, Callable[[int, int, int, int], int]] = {
    "first": lambda c, m, x, y: 0,
    "best": lambda c, m, x, y: (x - c) ** 2 + (y - m) ** 2,
    "best-before": lambda c, m, x, y: x * x + y * y,
    "worst": lambda c, m, x, y: -((x - c) ** 2 + (y - m) ** 2),
    "dot": lambda c, m, x, y: -(c * x + m * y),
}
#: order of the queue -> key of a task, of which the least comes first; "dot": see simulate
ORDERS: dict[str, Callable[[Task], int]] = {
    "submission": lambda task: 0,
    "execution": lambda task: task.execution,
    "norm": lambda task: -(task.cpu**2 + task.memory**2),
    "dot": lambda task: 0,
}


class _Scheme(NamedTuple):
    """Rules of a scheme: does an arrival join the queue or bypass it, and what may a completion start?"""

    joins: bool
    rule: str
    completion: str
    order: str


#: "before" is BF-EXEC with the remaining resources as they are before the placement
SCHEMES: dict[str, _Scheme] = {
    "bf-exec": _Scheme(False, "best", "scan", "execution"),
    "bf-exec-before": _Scheme(False, "best-before", "scan", "execution"),
    "ffd-nb": _Scheme(False, "first", "scan", "norm"),
    "ffd-dp": _Scheme(False, "dot", "scan", "dot"),
    "ffd-nb-blocking": _Scheme(True, "first", "heads", "norm"),
    "ffd-dp-blocking": _Scheme(True, "dot", "heads", "dot"),
    "ffd-nb-bypass": _Scheme(False, "first", "heads", "norm"),
    "ffd-dp-bypass": _Scheme(False, "dot", "heads", "dot"),
    "fcfs": _Scheme(True, "first", "heads", "submission"),
    **{
        name + end: _Scheme(False, rule, completion, "submission")
        for name, rule in (("ff", "first"), ("bf", "best"), ("wf", "worst"))
        for end, completion in (("", "head"), ("-all", "heads"))
    },
}


def select(rule: str, task: Task, remaining: Sequence[Server]) -> int:
    """Return the server that a rule selects for a task (the lowest of equals), -1 if it fits none."""
    c, m = task.cpu, task.memory
    score = SERVER_RULES[rule]
    fitting = [(score(c, m, x, y), j) for j, (x, y) in enumerate(remaining) if c <= x and m <= y]
    return min(fitting)[1] if fitting else -1


def _largest_dot(task: Task, remaining: Sequence[Server]) -> int:
    """Return the largest dot product with what a server has left, whether the task fits there or not."""
    return max(task.cpu * x + task.memory * y for x, y in remaining)


def simulate(instance: Instance, name: str) -> Schedule:
    """Simulate a scheme until no event is left.

    At each instant, first all completed tasks release their resources; then each server that released some is
    offered waiting tasks, servers by index; then arriving tasks are placed or queued in order of submission.
    """
    tasks, servers, _ = instance
    joins, rule, completion, order = SCHEMES[name]
    key = ORDERS[order]
    remaining = list(servers)
    start: list[int | None] = [None] * len(tasks)
    where = [-1] * len(tasks)
    queue: list[int] = []
    running: set[int] = set()

    def put(i: int, j: int, now: int) -> None:
        start[i], where[i] = now, j
        remaining[j] = remaining[j][0] - tasks[i].cpu, remaining[j][1] - tasks[i].memory
        running.add(i)
        if i in queue:
            queue.remove(i)

    def heads(now: int) -> None:
        while queue:
            i = min(
                queue,
                key=lambda i: (-_largest_dot(tasks[i], remaining) if order == "dot" else key(tasks[i]), i),
            )
            j = select(rule, tasks[i], remaining)
            if j < 0:
                return
            put(i, j, now)

    def offer(j: int, now: int) -> None:
        """Offer the released server to waiting tasks."""
        if completion == "heads":
            heads(now)
        elif completion == "head":
            while queue and fits(queue[0], j):
                put(queue[0], j, now)
        elif order == "dot":
            while fitting := [i for i in queue if fits(i, j)]:
                x, y = remaining[j]
                put(min(fitting, key=lambda i: (-tasks[i].cpu * x - tasks[i].memory * y, i)), j, now)
        else:
            for i in sorted(queue, key=lambda i: (key(tasks[i]), i)):
                if fits(i, j):
                    put(i, j, now)

    def fits(i: int, j: int) -> bool:
        return tasks[i].cpu <= remaining[j][0] and tasks[i].memory <= remaining[j][1]

    def end(i: int) -> int:
        begin = start[i]
        assert begin is not None
        return begin + tasks[i].execution

    submitted = 0
    while submitted < len(tasks) or running:
        instants = [end(i) for i in running]
        if submitted < len(tasks):
            instants.append(tasks[submitted].arrival)
        now = min(instants)
        done = [i for i in running if end(i) == now]
        for i in done:
            running.remove(i)
            x, y = remaining[where[i]]
            remaining[where[i]] = x + tasks[i].cpu, y + tasks[i].memory
        for j in sorted({where[i] for i in done}):
            offer(j, now)
        while submitted < len(tasks) and tasks[submitted].arrival == now:
            i = submitted
            submitted += 1
            if joins:
                queue.append(i)
                heads(now)
            elif (j := select(rule, tasks[i], remaining)) >= 0:
                put(i, j, now)
            else:
                queue.append(i)
    return Schedule(tuple(start), tuple(where))


# schedules ---------------------------------------------------------------------------------------------


def feasible(instance: Instance, schedule: Schedule) -> bool:
    """Return True if every task runs, none before its arrival, and no server is ever overloaded."""
    tasks, servers, _ = instance
    spans = []
    for task, start, j in zip(tasks, schedule.start, schedule.server, strict=True):
        if start is None or start < task.arrival or not 0 <= j < len(servers):
            return False
        spans.append((start, start + task.execution, j, task))
    for t, _, j, _ in spans:  # the load rises only where a task starts
        there = [task for begin, end, server, task in spans if server == j and begin <= t < end]
        if sum(task.cpu for task in there) > servers[j][0]:
            return False
        if sum(task.memory for task in there) > servers[j][1]:
            return False
    return True


class Measured(NamedTuple):
    """Metrics of a schedule; averages are over the time from the first arrival to the last completion.

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


def measure(instance: Instance, start: Sequence[int | None]) -> Measured:
    """Compute delays from the starts, and numbers of tasks by counting them in every unit of time."""
    tasks = instance.tasks
    begins = [s for s in start if s is not None]
    if len(begins) != len(tasks):
        raise ValueError("a task never runs")
    count, first = len(tasks), tasks[0].arrival
    ends = [s + task.execution for s, task in zip(begins, tasks, strict=True)]
    span = max(ends) - first
    more_queued, more_running = [0] * (span + 1), [0] * (span + 1)  # changes at each instant
    for task, begin, end in zip(tasks, begins, ends, strict=True):
        more_queued[task.arrival - first] += 1
        more_queued[begin - first] -= 1
        more_running[begin - first] += 1
        more_running[end - first] -= 1
    queued, running = (list(itertools.accumulate(more))[:span] for more in (more_queued, more_running))
    delay = Fraction(sum(s - task.arrival for s, task in zip(begins, tasks, strict=True)), count)
    execution = Fraction(sum(task.execution for task in tasks), count)
    return Measured(
        delay,
        execution,
        delay + execution,
        Fraction(span, count),
        Fraction(sum(queued), span),
        Fraction(sum(running), span),
        Fraction(sum(q > 0 for q in queued), span),
        min((r for q, r in zip(queued, running, strict=True) if q), default=None),
        max(running),
    )


def at_once(instance: Instance, demand: Server, pick: Callable[[int, int], int] = min) -> int:
    """Return how many tasks of one demand run at once: sum over servers of floor(pick(C / c, M / m))."""
    return sum(pick(x // demand[0], y // demand[1]) for x, y in instance.servers)


def on_one(instance: Instance, demand: Server, pick: Callable[[int, int], int] = min) -> int:
    """Return the same for one server of size 1, as the paper prints it: floor(pick(1 / c, 1 / m))."""
    return pick(instance.unit // demand[0], instance.unit // demand[1])


def _earliest(
    instance: Instance, placed: Sequence[tuple[int, int, int]], i: int, j: int, late: int = 0
) -> int:
    """Return the first instant at which task i can run on server j beside the tasks that are placed.

    ``placed`` has (task, start, server). The task starts no earlier than ``late`` after its arrival.
    """
    tasks, servers, _ = instance
    task = tasks[i]
    there = [(begin, begin + tasks[k].execution, tasks[k]) for k, begin, server in placed if server == j]

    def free(begin: int) -> bool:
        moments = [begin, *(b for b, _, _ in there if begin < b < begin + task.execution)]
        for t in moments:
            beside = [one for b, e, one in there if b <= t < e]
            if sum(one.cpu for one in beside) + task.cpu > servers[j][0]:
                return False
            if sum(one.memory for one in beside) + task.memory > servers[j][1]:
                return False
        return True

    ready = task.arrival + late
    moments = sorted({ready, *(e for _, e, _ in there if e > ready)})
    return next(t for t in moments if free(t))


def optimum(instance: Instance, placed: Sequence[tuple[int, int, int]] = ()) -> tuple[int, Schedule]:
    """Return the least sum of queuing delays, and a schedule that reaches it.

    All orders of the tasks are tried, each task at its earliest instant on each server. One of these
    schedules is optimal, as delaying a task never reduces the sum.

    Args:
        instance: an instance with up to about five tasks.
        placed: tasks that are placed already: (task, start, server).
    """
    tasks, servers, _ = instance
    count = len(tasks)
    hosts = [[j for j, (x, y) in enumerate(servers) if task.cpu <= x and task.memory <= y] for task in tasks]
    best: tuple[int, Schedule] | None = None

    def extend(placed: list[tuple[int, int, int]], total: int) -> None:
        nonlocal best
        if best is not None and total >= best[0]:
            return
        if len(placed) == count:
            by_task = sorted(placed)
            best = total, Schedule(tuple(s for _, s, _ in by_task), tuple(j for _, _, j in by_task))
            return
        known = {i for i, _, _ in placed}
        for i in range(count):
            if i not in known:
                for j in hosts[i]:
                    begin = _earliest(instance, placed, i, j)
                    extend([*placed, (i, begin, j)], total + begin - tasks[i].arrival)

    extend(list(placed), sum(begin - tasks[i].arrival for i, begin, _ in placed))
    assert best is not None
    return best


def lower_bounds(instance: Instance) -> dict[str, Fraction]:
    """Return lower bounds on the mean delay of any schedule, from the workload alone.

    "pooled" runs volumes preemptively, the smallest first, on one machine; it is the larger bound of the two
    resources. "batch", only if all tasks arrive at once, runs the shortest task first on as many machines as
    tasks of the least demands can run at once.
    """
    tasks = instance.tasks
    count = len(tasks)
    means = Fraction(sum(task.execution + 2 * task.arrival for task in tasks), 2 * count)
    pooled: list[Fraction] = []
    for r in (0, 1):
        rate = sum(server[r] for server in instance.servers)
        volumes = [task.execution * task[2 + r] for task in tasks]
        pooled.append(
            sum(_busy([task.arrival for task in tasks], volumes, rate), Fraction(0)) / count - means
        )
    found = {"pooled": max(pooled)}
    if tasks[0].arrival == tasks[-1].arrival:
        least = min(task.cpu for task in tasks), min(task.memory for task in tasks)
        machines = [0] * min(at_once(instance, least), count)
        starts = 0
        for execution in sorted(task.execution for task in tasks):
            machines.sort()
            starts += machines[0]
            machines[0] += execution
        found["batch"] = Fraction(starts, count)
    return found


def _busy(arrivals: Sequence[int], volumes: Sequence[int], rate: int) -> list[Fraction]:
    """Return mean busy times when the smallest original volume runs first."""
    left = [Fraction(volume) for volume in volumes]
    moment = [Fraction(0)] * len(left)
    clock = Fraction(0)
    while any(left):
        open_ = [i for i, amount in enumerate(left) if amount]
        clock = max(clock, Fraction(min(arrivals[i] for i in open_)))
        i = min((i for i in open_ if arrivals[i] <= clock), key=lambda i: (volumes[i], i))
        stop = min([clock + left[i] / rate, *(Fraction(arrivals[k]) for k in open_ if arrivals[k] > clock)])
        done = (stop - clock) * rate
        moment[i] += done * (clock + stop) / 2
        left[i] -= done
        clock = stop
    return [m / volume for m, volume in zip(moment, volumes, strict=True)]


# instances ---------------------------------------------------------------------------------------------


def pairs(unit: int, least: int = 1) -> list[Server]:
    """Return all pairs of cpu and memory from ``least`` to ``unit`` units."""
    return [(c, m) for c in range(least, unit + 1) for m in range(least, unit + 1)]


def clusters(count: int, unit: int) -> list[tuple[Server, ...]]:
    """Return all lists of ``count`` servers in which the largest capacity of each resource is the unit."""
    return [
        servers
        for servers in itertools.product(pairs(unit), repeat=count)
        if all(max(server[r] for server in servers) == unit for r in (0, 1))
    ]


def instances(count: int, longest: int, latest: int, servers: int, unit: int) -> Iterator[Instance]:
    """Yield all instances of a size; every task fits some server, and the first arrives at 0.

    Args:
        count: number of tasks.
        longest: longest execution time.
        latest: latest arrival.
        servers: number of servers.
        unit: largest demand and capacity.
    """
    for cluster in clusters(servers, unit):
        own = [(c, m) for c, m in pairs(unit) if any(c <= x and m <= y for x, y in cluster)]
        kinds = [Task(a, e, c, m) for a in range(latest + 1) for e in range(1, longest + 1) for c, m in own]
        for tasks in itertools.product(kinds, repeat=count):
            if tasks[0].arrival == 0 and all(
                one.arrival <= other.arrival for one, other in itertools.pairwise(tasks)
            ):
                yield Instance(tasks, cluster, unit)


def size(instance: Instance) -> tuple[int, ...]:
    """Return the size of an instance: tasks, servers, execution times, unit, arrivals, demands."""
    tasks, servers, unit = instance
    return (
        len(tasks),
        len(servers),
        sum(task.execution for task in tasks),
        unit,
        sum(task.arrival for task in tasks),
        sum(task.cpu + task.memory for task in tasks),
        *(-capacity for server in servers for capacity in server),
        *itertools.chain(*tasks),
    )


def draw(
    rng: np.random.Generator, *, tasks: int = 12, servers: int = 4, unit: int = 8, longest: int = 10
) -> Instance:
    """Draw a random instance up to these sizes, with many simultaneous events, in which every task can run.

    Servers differ in shape. A task is drawn to fit one of them; in half of the instances it fills most of it.
    """

    def whole(least: int, most: int) -> int:
        return int(rng.integers(least, most + 1))

    cluster = [(unit, unit)]
    if servers > 1 and whole(0, 3):
        narrow = whole(max(1, unit // 5), unit)
        cluster = [(unit, narrow), (narrow, unit)]
    for _ in range(whole(0, max(0, servers - len(cluster)))):
        cluster.append((whole(max(1, unit // 5), unit), whole(max(1, unit // 5), unit)))
    span, large = whole(0, 2 * tasks), whole(0, 1)
    found = []
    for at in sorted([0, *(whole(0, span) for _ in range(whole(2, tasks) - 1))]):
        x, y = cluster[whole(0, len(cluster) - 1)]
        demand = (whole(1, x), whole(1, y))
        if large:
            demand = (
                (max(demand[0], x // 2 + 1), demand[1]) if x >= y else (demand[0], max(demand[1], y // 2 + 1))
            )
        found.append(Task(at, whole(1, longest), *demand))
    return Instance(tuple(found), tuple(cluster), unit)


def random_schedule(rng: np.random.Generator, instance: Instance) -> Schedule:
    """Place tasks in a random order on random servers, each as early as it can run or later."""
    placed: list[tuple[int, int, int]] = []
    for i in rng.permutation(len(instance.tasks)).tolist():
        task = instance.tasks[i]
        hosts = [j for j, (x, y) in enumerate(instance.servers) if task.cpu <= x and task.memory <= y]
        j = hosts[int(rng.integers(len(hosts)))]
        late = int(rng.integers(4)) if rng.integers(2) else 0
        placed.append((i, _earliest(instance, placed, i, j, late), j))
    by_task = sorted(placed)
    return Schedule(tuple(s for _, s, _ in by_task), tuple(j for _, _, j in by_task))
