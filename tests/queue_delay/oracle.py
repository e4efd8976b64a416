"""A slow, plain second implementation of the QueueDelay scheduling problem (test oracle).

Written from the specification alone, with lists, floats and loops, to be compared with the
compiled simulator. It favours being easy to check over being fast: nothing is cached, the
remaining capacity of a server is summed anew whenever it is needed, and the metrics come from a
pass over all elementary intervals between events.

Arithmetic is spelled out so that starts can be compared bit for bit:

* used = ((0 + d1) + d2) + ... over the tasks running on the server, in order of start;
  remaining = capacity - used; a task fits if demand <= remaining + 1e-9 in both resources.
* sizes of a pair (x, y): L2 is x*x + y*y, product x*y, weighted sum a1*x + a2*y; the dot
  product of a demand (c, m) with the remaining (rc, rm) is c*rc + m*rm. A norm with another p
  is what the caller gives.
* the running mean demand is (((0 + d1) + d2) + ...) / count in order of submission.
* finish = start + execution; two instants are one only if the floats are equal.

The built-in ``sum`` is avoided on floats: since Python 3.12 it compensates rounding errors.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

Task = tuple[float, float, float, float]
"""(arrival, execution, cpu, memory)"""
Server = tuple[float, float]
"""(cpu, memory)"""
ChooseRandom = Callable[[list[int]], int]
Norm = Callable[[float, float], float]

TOLERANCE = 1e-9

SIZES = ("nb", "dp", "product", "sum", "avgsum")
LITERAL_SCHEMES = ("ff", "bf", "wf", "rf")
REPAIRED_SCHEMES = tuple(f"{name}-all" for name in LITERAL_SCHEMES)
SCHEMES = (
    "bf-exec",
    *(f"ffd-{size}" for size in SIZES),
    *(f"bfd-{size}" for size in SIZES),
    "fcfs",
    *LITERAL_SCHEMES,
    *REPAIRED_SCHEMES,
    "dot-exec",
)
RANDOM_SCHEMES = ("rf", "rf-all")
BLOCKING_SCHEMES = tuple(f"ffd-{size}" for size in SIZES)
BACKFILLING = "easy-backfill"  # not of the paper
NORM_SCHEMES = ("ffd-nb", "bfd-nb", "bf", "wf", "bf-all", "wf-all")


class Outcome(NamedTuple):
    """What a scheme did with a workload.

    start: start time of each task, None when it never ran.
    server: index of its server, -1 when it never ran.
    stranded: the tasks that never ran, in submission order.
    end_of_events: the instant of the last event; nothing can happen after it.
    reserved: the first reservation of each task that had one.
    """

    start: list[float | None]
    server: list[int]
    stranded: list[int]
    end_of_events: float
    reserved: dict[int, float] = {}


# --------------------------------------------------------------------------------------------
# Simulation
# --------------------------------------------------------------------------------------------


class _Cluster:
    """The state of one simulation: servers, queue, clock, and what has been submitted."""

    def __init__(
        self,
        tasks: Sequence[Task],
        servers: Sequence[Server],
        weights: tuple[float, float],
        choose_random: ChooseRandom | None,
        norm: Norm,
    ) -> None:
        self.tasks = tasks
        self.servers = servers
        self.weights = weights
        self.choose_random = choose_random
        self.norm = norm
        self.clock = 0.0
        self.running: list[list[int]] = [[] for _ in servers]  # in order of start
        self.queue: list[int] = []  # in order of submission
        self.submitted = 0
        self.start: list[float | None] = [None] * len(tasks)
        self.finish: list[float] = [math.inf] * len(tasks)
        self.server: list[int] = [-1] * len(tasks)
        self.reserved: dict[int, float] = {}  # a head's first reservation

    def remaining(self, j: int) -> tuple[float, float]:
        used_cpu = 0.0
        used_memory = 0.0
        for i in self.running[j]:
            used_cpu = used_cpu + self.tasks[i][2]
            used_memory = used_memory + self.tasks[i][3]
        return self.servers[j][0] - used_cpu, self.servers[j][1] - used_memory

    def fits(self, i: int, j: int) -> bool:
        left_cpu, left_memory = self.remaining(j)
        _, _, cpu, memory = self.tasks[i]
        return cpu <= left_cpu + TOLERANCE and memory <= left_memory + TOLERANCE

    def place(self, i: int, j: int) -> None:
        """Start task i on server j now (and take it out of the queue if it waits there)."""
        assert self.fits(i, j)
        assert self.start[i] is None
        self.start[i] = self.clock
        self.finish[i] = self.clock + self.tasks[i][1]
        self.server[i] = j
        self.running[j].append(i)
        if i in self.queue:
            self.queue.remove(i)

    def mean_demand(self) -> tuple[float, float]:
        total_cpu = 0.0
        total_memory = 0.0
        for i in range(self.submitted):
            total_cpu = total_cpu + self.tasks[i][2]
            total_memory = total_memory + self.tasks[i][3]
        return total_cpu / self.submitted, total_memory / self.submitted

    def size(self, metric: str, x: float, y: float) -> float:
        """Size of a pair of amounts; 'dp' has no size of its own and measures by L2."""
        if metric in ("nb", "dp"):
            return self.norm(x, y)
        if metric == "product":
            return x * y
        a1, a2 = self.weights if metric == "sum" else self.mean_demand()
        return a1 * x + a2 * y

    def dot(self, i: int, j: int) -> float:
        left_cpu, left_memory = self.remaining(j)
        return self.tasks[i][2] * left_cpu + self.tasks[i][3] * left_memory

    def left_over(self, i: int, j: int, metric: str) -> float:
        """Size of what server j would have left after starting task i."""
        left_cpu, left_memory = self.remaining(j)
        return self.size(metric, left_cpu - self.tasks[i][2], left_memory - self.tasks[i][3])

    def pick_server(self, i: int, rule: str, metric: str = "nb") -> int:
        """The server the rule gives task i, or -1 if it fits none. Ties: lowest index."""
        fitting = [j for j in range(len(self.servers)) if self.fits(i, j)]
        if not fitting:
            return -1
        if rule == "random":
            if self.choose_random is None:
                raise ValueError("this scheme needs choose_random")
            chosen = self.choose_random(list(fitting))
            if chosen not in fitting:
                raise ValueError(f"choose_random gave {chosen}, not one of {fitting}")
            return chosen
        best = fitting[0]
        if rule == "first":
            return best
        for j in fitting[1:]:
            if rule == "best":
                better = self.left_over(i, j, metric) < self.left_over(i, best, metric)
            elif rule == "worst":
                better = self.left_over(i, j, metric) > self.left_over(i, best, metric)
            elif rule == "dot":
                better = self.dot(i, j) > self.dot(i, best)
            else:
                raise AssertionError(rule)
            if better:
                best = j
        return best

    # What happens at the epochs ---------------------------------------------------------------

    def place_or_queue(self, i: int, rule: str, metric: str = "nb") -> None:
        """Arriving task: start it where the rule says, else let it wait."""
        j = self.pick_server(i, rule, metric)
        if j < 0:
            self.queue.append(i)
        else:
            self.place(i, j)

    def by_size(self, metric: str) -> list[int]:
        """The waiting tasks, largest first, ties by submission."""
        keyed = [(-self.size(metric, self.tasks[i][2], self.tasks[i][3]), i) for i in self.queue]
        return [i for _, i in sorted(keyed)]

    def scan(self, j: int, order: list[int]) -> None:
        """Offer server j to every waiting task in this order; start each that fits."""
        for i in order:
            if self.fits(i, j):
                self.place(i, j)

    def scan_by_dot(self, j: int) -> None:
        """Start on server j the fitting task of largest dot product, again and again."""
        while True:
            best = -1
            for i in self.queue:
                if self.fits(i, j) and (best < 0 or self.dot(i, j) > self.dot(best, j)):
                    best = i
            if best < 0:
                return
            self.place(best, j)

    def heads_on_one(self, j: int) -> None:
        """Start the head of the queue on server j as long as it fits there."""
        while self.queue and self.fits(self.queue[0], j):
            self.place(self.queue[0], j)

    def largest(self, metric: str) -> int:
        """The largest waiting task; by 'dp' the one with the largest dot product on any server."""
        if metric != "dp":
            return self.by_size(metric)[0]
        best, most = -1, -math.inf
        for i in self.queue:
            for j in range(len(self.servers)):
                if self.dot(i, j) > most:
                    best, most = i, self.dot(i, j)
        return best

    def heads_anywhere(self, rule: str, size_order: str | None = None) -> None:
        """Start heads on any server until one fits nowhere.

        The head is the earliest submitted, or the largest where a size metric is given.
        """
        while self.queue:
            head = self.queue[0] if size_order is None else self.largest(size_order)
            j = self.pick_server(head, rule)
            if j < 0:
                return
            self.place(head, j)

    # EASY backfilling, word for word: nothing is kept between two calls ----------------------------

    def fits_later(self, i: int, j: int, time: float, beside: int = -1) -> bool:
        """Whether task i fits on server j at a later time, beside the tasks that still run there then.

        Args: ``beside``, if any, is a task that would start on server j now.
        """
        here = [k for k in self.running[j] if self.finish[k] > time]
        cpu = self.servers[j][0] - math.fsum(self.tasks[k][2] for k in here)
        memory = self.servers[j][1] - math.fsum(self.tasks[k][3] for k in here)
        if beside >= 0 and self.clock + self.tasks[beside][1] > time:
            cpu, memory = cpu - self.tasks[beside][2], memory - self.tasks[beside][3]
        return self.tasks[i][2] <= cpu + TOLERANCE and self.tasks[i][3] <= memory + TOLERANCE

    def reservation(self, i: int) -> tuple[float, int]:
        """The earliest time, and then the lowest server, at which task i fits if nothing else starts."""
        ends = sorted({self.finish[k] for on_one in self.running for k in on_one})
        return next((t, j) for t in ends for j in range(len(self.servers)) if self.fits_later(i, j, t))

    def backfill(self) -> None:
        """Start heads; then later tasks, each where it does not delay the head's reservation."""
        self.heads_anywhere("first")
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


def squares(x: float, y: float) -> float:
    """The L2 norm, squared."""
    return x * x + y * y


_PLAIN_RULES = {"ff": "first", "bf": "best", "wf": "worst", "rf": "random"}


def _arrival_epoch(cluster: _Cluster, scheme: str, blocking: bool, bypass: bool, i: int) -> None:
    family, _, variant = scheme.partition("-")
    if blocking and not bypass:
        cluster.queue.append(i)
        cluster.heads_anywhere("dot" if variant == "dp" else "first", size_order=variant)
    elif scheme == BACKFILLING:
        cluster.queue.append(i)
        cluster.backfill()
    elif scheme == "bf-exec":
        cluster.place_or_queue(i, "best")
    elif scheme in ("dot-exec", "ffd-dp"):
        cluster.place_or_queue(i, "dot")
    elif scheme == "fcfs":
        cluster.queue.append(i)
        cluster.heads_anywhere("first")
    elif family == "ffd":
        cluster.place_or_queue(i, "first")
    elif family == "bfd":
        cluster.place_or_queue(i, "best", variant)
    else:
        cluster.place_or_queue(i, _PLAIN_RULES[family])


def _completion_epoch(cluster: _Cluster, scheme: str, blocking: bool, j: int) -> None:
    family, _, variant = scheme.partition("-")
    if blocking:
        cluster.heads_anywhere("dot" if variant == "dp" else "first", size_order=variant)
    elif scheme == BACKFILLING:
        cluster.backfill()
    elif scheme in ("bf-exec", "dot-exec"):
        order = sorted(cluster.queue, key=lambda i: (cluster.tasks[i][1], i))
        cluster.scan(j, order)
    elif scheme == "fcfs":
        cluster.heads_anywhere("first")
    elif variant == "dp":
        cluster.scan_by_dot(j)
    elif family in ("ffd", "bfd"):
        cluster.scan(j, cluster.by_size(variant))
    elif variant == "all":
        cluster.heads_anywhere(_PLAIN_RULES[family])
    else:
        cluster.heads_on_one(j)


def _check(tasks: Sequence[Task], servers: Sequence[Server]) -> None:
    if not tasks or not servers:
        raise ValueError("need at least one task and one server")
    previous = -math.inf
    for i, (arrival, execution, cpu, memory) in enumerate(tasks):
        if arrival < previous:
            raise ValueError(f"task {i} arrives before its predecessor")
        previous = arrival
        if not execution > 0.0:
            raise ValueError(f"task {i} has execution time {execution}")
        if not any(cpu <= c + TOLERANCE and memory <= m + TOLERANCE for c, m in servers):
            raise ValueError(f"task {i} fits no empty server")


def simulate(
    tasks: Sequence[Task],
    servers: Sequence[Server],
    scheme: str,
    *,
    blocking: bool = False,
    bypass: bool = False,
    weights: tuple[float, float] = (1.0, 1.0),
    choose_random: ChooseRandom | None = None,
    norm: Norm | None = None,
) -> Outcome:
    """Run one scheme on one workload until nothing can happen any more.

    tasks: (arrival, execution, cpu, memory) in submission order, arrivals not decreasing.
    servers: (cpu, memory) capacities.
    scheme: a name in SCHEMES, or BACKFILLING.
    blocking: the head-of-line variant, for BLOCKING_SCHEMES only.
    bypass: with blocking, arriving tasks are tried before they join the queue.
    weights: of cpu and memory in the 'sum' size.
    choose_random: maps the ascending list of fitting servers to one of them; needed by rf
        (called at arrivals) and rf-all (called at arrivals and completions), and called even
        if only one server fits.
    norm: of a pair of amounts, for NORM_SCHEMES only; the L2 norm if it is not given.

    At one instant: all completions are released; one completion epoch per server that released
    something, by index; one arrival epoch per arriving task, in submission order. A task whose
    execution time vanishes in start + execution completes at that same instant, in a further
    round after the arrivals.
    """
    if scheme not in (*SCHEMES, BACKFILLING):
        raise ValueError(f"unknown scheme {scheme!r}")
    if blocking and scheme not in BLOCKING_SCHEMES:
        raise ValueError(f"{scheme} has no blocking variant")
    if scheme in RANDOM_SCHEMES and choose_random is None:
        raise ValueError(f"{scheme} needs choose_random")
    if norm is not None and scheme not in NORM_SCHEMES:
        raise ValueError(f"{scheme} compares no norms")
    _check(tasks, servers)

    cluster = _Cluster(tasks, servers, weights, choose_random, norm or squares)
    while True:
        instants = [cluster.finish[i] for on_one in cluster.running for i in on_one]
        if cluster.submitted < len(tasks):
            instants.append(tasks[cluster.submitted][0])
        if not instants:
            break
        now = min(instants)
        cluster.clock = now

        released = []
        for j, on_one in enumerate(cluster.running):
            still_running = [i for i in on_one if cluster.finish[i] != now]
            if len(still_running) < len(on_one):
                released.append(j)
            cluster.running[j] = still_running
        for j in released:
            _completion_epoch(cluster, scheme, blocking, j)

        while cluster.submitted < len(tasks) and tasks[cluster.submitted][0] == now:
            i = cluster.submitted
            cluster.submitted += 1
            _arrival_epoch(cluster, scheme, blocking, bypass, i)

    return Outcome(cluster.start, cluster.server, list(cluster.queue), cluster.clock, cluster.reserved)


# --------------------------------------------------------------------------------------------
# Delays and metrics
# --------------------------------------------------------------------------------------------


def _total(values: Sequence[float]) -> float:
    """Plain left to right sum."""
    total = 0.0
    for value in values:
        total = total + value
    return total


def _mean(values: Sequence[float]) -> float:
    return _total(values) / len(values)


def _charged_starts(tasks: Sequence[Task], outcome: Outcome) -> list[float]:
    """Start times in which the stranded tasks have those of the virtual serial run."""
    starts = [math.nan if start is None else start for start in outcome.start]
    clock = outcome.end_of_events
    for i in outcome.stranded:
        starts[i] = clock
        clock = clock + tasks[i][1]
    return starts


def delays(tasks: Sequence[Task], outcome: Outcome) -> list[float]:
    """Queuing delay (start - arrival) of each task.

    Stranded tasks are charged as if run one after another, in submission order, from
    outcome.end_of_events.
    """
    starts = _charged_starts(tasks, outcome)
    return [start - task[0] for start, task in zip(starts, tasks, strict=True)]


def percentile(values: Sequence[float], q: float) -> float:
    """The q-th percentile (0..100) with linear interpolation, as numpy defines it."""
    ordered = sorted(values)
    position = q / 100.0 * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


class _Interval(NamedTuple):
    """A stretch of time between neighbouring instants, in which nothing changes."""

    begin: float
    length: float
    queued: int
    running: int
    used_cpu: float
    used_memory: float


def _intervals(tasks: Sequence[Task], outcome: Outcome) -> list[_Interval]:
    starts = _charged_starts(tasks, outcome)
    finishes = [start + task[1] for start, task in zip(starts, tasks, strict=True)]
    arrivals = [task[0] for task in tasks]
    instants = sorted({*arrivals, *starts, *finishes})
    found = []
    for begin, end in zip(instants, instants[1:], strict=False):
        queued = running = 0
        used_cpu = used_memory = 0.0
        for i, (arrival, _, cpu, memory) in enumerate(tasks):
            if arrival <= begin and end <= starts[i]:
                queued += 1
            elif starts[i] <= begin and end <= finishes[i]:
                running += 1
                if outcome.server[i] >= 0:
                    used_cpu += cpu
                    used_memory += memory
        found.append(_Interval(begin, end - begin, queued, running, used_cpu, used_memory))
    return found


def metrics(tasks: Sequence[Task], servers: Sequence[Server], outcome: Outcome) -> dict[str, float]:
    """All metrics of an outcome, by summing over the intervals between neighbouring instants.

    The makespan reaches from the first arrival to the last completion, that of the virtual
    serial run of stranded tasks included. Stranded tasks count as queued until their virtual
    start and as running during the virtual run, but use no server capacity. Utilisation is
    used / (capacity * window) for three windows: the makespan, first to last arrival, and the
    times at which the queue is not empty. A window of no length gives 0.0.
    """
    waits = delays(tasks, outcome)
    intervals = _intervals(tasks, outcome)
    last_arrival = tasks[-1][0]

    windows = {
        "": intervals,
        "_to_last_arrival": [part for part in intervals if part.begin < last_arrival],
        "_backlog": [part for part in intervals if part.queued > 0],
    }
    makespan = _total([part.length for part in intervals])
    result = {
        "mean_delay": _mean(waits),
        "median_delay": percentile(waits, 50.0),
        "p95_delay": percentile(waits, 95.0),
        "max_delay": max(waits),
        "makespan": makespan,
    }
    total_cpu = _total([cpu for cpu, _ in servers])
    total_memory = _total([memory for _, memory in servers])
    for suffix, parts in windows.items():
        length = _total([part.length for part in parts])
        work_cpu = _total([part.used_cpu * part.length for part in parts])
        work_memory = _total([part.used_memory * part.length for part in parts])
        available_cpu = total_cpu * length
        available_memory = total_memory * length
        result[f"utilization_cpu{suffix}"] = work_cpu / available_cpu if available_cpu else 0.0
        result[f"utilization_memory{suffix}"] = work_memory / available_memory if available_memory else 0.0
    backlog = _total([part.length for part in windows["_backlog"]])
    queue_area = _total([part.queued * part.length for part in intervals])
    running_area = _total([part.running * part.length for part in intervals])
    result["mean_queued"] = queue_area / makespan if makespan else 0.0
    result["mean_running"] = running_area / makespan if makespan else 0.0
    result["beta"] = backlog / makespan if makespan else 0.0
    result["stranded"] = float(len(outcome.stranded))
    return result


# --------------------------------------------------------------------------------------------
# Bounds
# --------------------------------------------------------------------------------------------


def _ratio(capacity: float, demand: float) -> float:
    """How often the demand goes into the capacity; x/0 is infinity.

    The tolerance of the fit test belongs in here: three tasks of 0.1 do run together on a
    server of 0.3 although 0.3 / 0.1 < 3 in floating point.
    """
    return math.inf if demand == 0.0 else (capacity + TOLERANCE) / demand


def _floor(value: float) -> float:
    return value if math.isinf(value) else float(math.floor(value))


def tasks_at_once(servers: Sequence[Server], cpu: float, memory: float) -> float:
    """How many tasks of this one demand run together: sum_j floor(min(C_j/c, M_j/m))."""
    return _total([_floor(min(_ratio(c, cpu), _ratio(m, memory))) for c, m in servers])


def k_low(tasks: Sequence[Task], servers: Sequence[Server]) -> float:
    """Tasks at once if all had the largest cpu and the largest memory demand."""
    return tasks_at_once(servers, max(t[2] for t in tasks), max(t[3] for t in tasks))


def k_high(tasks: Sequence[Task], servers: Sequence[Server]) -> float:
    """Tasks at once if all had the smallest cpu and the smallest memory demand."""
    return tasks_at_once(servers, min(t[2] for t in tasks), min(t[3] for t in tasks))


def batch_bound(tasks: Sequence[Task], servers: Sequence[Server]) -> float:
    """Mean start of shortest-processing-time on k_high identical machines from time 0."""
    machines = min(k_high(tasks, servers), len(tasks))
    free_at = [0.0] * int(machines)
    starts = []
    for execution in sorted(task[1] for task in tasks):
        machine = free_at.index(min(free_at))
        starts.append(free_at[machine])
        free_at[machine] += execution
    return _mean(starts)


def mean_busy_times(arrivals: Sequence[float], volumes: Sequence[float], rate: float) -> list[float]:
    """Mean busy times on one machine, preemptive, smallest original volume first.

    A volume of zero is run at its arrival.
    """
    left = list(volumes)
    moments = [0.0] * len(volumes)  # integral of time over the volume processed
    clock = -math.inf
    while any(amount > 0.0 for amount in left):
        unfinished = [i for i, amount in enumerate(left) if amount > 0.0]
        clock = max(clock, min(arrivals[i] for i in unfinished))
        present = [i for i in unfinished if arrivals[i] <= clock]
        i = min(present, key=lambda one: (volumes[one], one))
        later = [arrivals[one] for one in unfinished if arrivals[one] > clock]
        next_arrival = min(later, default=math.inf)
        finish = clock + left[i] / rate
        if finish <= next_arrival:
            done, end = left[i], finish
            left[i] = 0.0
        else:
            done, end = min(left[i], (next_arrival - clock) * rate), next_arrival
            left[i] -= done
        moments[i] += done * (clock + end) / 2.0
        clock = end
    return [
        moment / volume if volume > 0.0 else arrival
        for moment, volume, arrival in zip(moments, volumes, arrivals, strict=True)
    ]


def pooled_bound(tasks: Sequence[Task], servers: Sequence[Server], resource: int) -> float:
    """Bound from pooling one resource (0 cpu, 1 memory) of all servers into one machine."""
    arrivals = [task[0] for task in tasks]
    volumes = [task[1] * task[2 + resource] for task in tasks]
    rate = _total([server[resource] for server in servers])
    busy = mean_busy_times(arrivals, volumes, rate)
    return _mean(busy) - _mean([task[1] for task in tasks]) / 2.0 - _mean(arrivals)


def lower_bound(tasks: Sequence[Task], servers: Sequence[Server]) -> float:
    """A lower bound on the mean queuing delay under any scheduler.

    The maximum of 0, the pooled bounds of both resources and, if all tasks arrive at one
    instant, the batch bound. It may exceed a schedule's delay by rounding and by the 1e-9 by
    which servers may be overfilled.
    """
    bounds = [0.0, pooled_bound(tasks, servers, 0), pooled_bound(tasks, servers, 1)]
    if tasks[0][0] == tasks[-1][0]:
        bounds.append(batch_bound(tasks, servers))
    return max(bounds)


def theorem_bounds(
    tasks: Sequence[Task],
    servers: Sequence[Server],
    outcome: Outcome,
    *,
    printed_mu: str = "service",
) -> dict[str, float]:
    """The paper's theorems 5.1 and 5.2, as printed and as corrected, for one schedule.

    With lambda = tasks / makespan, T the mean response (delay + execution), U and L the largest
    and smallest demands, beta the share of the makespan in which the queue is not empty:

    printed_upper: mu - floor(max(1/U_c, 1/U_m)) / lambda
    printed_lower: mu - floor(min(1/L_c, 1/L_m)) / lambda
    corrected_upper: T - beta * k_low / lambda. It needs that at any time at which the queue is
        not empty, every server has refused some task since it last released one. That is so
        where the queue holds a task that fits nowhere, and for the literal ff, bf, wf, rf too.
    corrected_lower: T - k_high / lambda, for any scheduler

    printed_mu: 'service' reads mu as the mean execution time, as the paper introduces it;
        'response' reads it as T, as the paper's proofs use it.
    """
    if printed_mu not in ("service", "response"):
        raise ValueError(f"unknown reading of mu {printed_mu!r}")
    measured = metrics(tasks, servers, outcome)
    service = _mean([task[1] for task in tasks])
    response = measured["mean_delay"] + service
    mu = service if printed_mu == "service" else response
    per_task = measured["makespan"] / len(tasks)  # 1 / lambda
    most = [_ratio(1.0, max(task[2 + r] for task in tasks)) for r in (0, 1)]
    least = [_ratio(1.0, min(task[2 + r] for task in tasks)) for r in (0, 1)]
    beta = measured["beta"]
    busy = beta * k_low(tasks, servers) if beta > 0.0 else 0.0
    return {
        "printed_upper": mu - _times(_floor(max(most)), per_task),
        "printed_lower": mu - _times(_floor(min(least)), per_task),
        "corrected_upper": response - busy * per_task,
        "corrected_lower": response - _times(k_high(tasks, servers), per_task),
    }


def _times(count: float, length: float) -> float:
    """count * length, with a count of infinity winning over a length of zero."""
    return count if math.isinf(count) else count * length


# --------------------------------------------------------------------------------------------
# Random instances
# --------------------------------------------------------------------------------------------


def random_instance(rng: random.Random, *, adversarial: bool = True) -> tuple[list[Task], list[Server]]:
    """A small random workload (3-14 tasks, 1-4 servers); every task fits some empty server.

    Adversarial: times from a grid of 1 or 0.1, demands and capacities from a grid of 0.1 or
    0.25, many equal arrivals, now and then a demand of zero in one resource. Otherwise: no ties.
    Servers mostly differ in shape, and each task is drawn to fit one of them, so that some tasks
    fit few servers. No task has a demand of zero in both resources.
    """
    n_servers = rng.choice([1, 2, 2, 3, 3, 4])
    n_tasks = rng.choice([rng.randint(3, 14), rng.randint(9, 14)])
    servers: list[Server] = []
    tasks: list[Task] = []

    if not adversarial:
        horizon = rng.choice([1.0, 4.0, 10.0])
        least, most = rng.choice([(0.05, 0.5), (0.05, 1.0), (0.3, 1.0)])
        for _ in range(n_servers):
            sides = (1.0, rng.uniform(0.2, 1.0))
            servers.append(rng.choice([sides, sides[::-1]]))
        for at in sorted(rng.uniform(0.0, horizon) for _ in range(n_tasks)):
            cpu, memory = rng.choice(servers)
            execution = rng.lognormvariate(1.0, 1.0)
            tasks.append((at, execution, rng.uniform(least, most) * cpu, rng.uniform(least, most) * memory))
        return tasks, servers

    steps = rng.choice([4, 10])  # the grid of demands and capacities
    tick = rng.choice([1.0, 1.0, 0.1])  # the grid of times
    ticks = rng.choice([0, 2, 5, 12])
    longest = rng.choice([3, 10])
    demands = rng.choice(["small", "any", "tall"])
    grid: list[tuple[int, int]] = []
    for j in range(n_servers):
        if demands == "tall":  # narrow servers, turned alternately
            shape = (steps, rng.randint(max(1, steps // 5), steps // 2))
            grid.append(shape if j % 2 == 0 else shape[::-1])
        else:
            shape = (steps, rng.randint(max(1, steps // 5), steps))
            grid.append(rng.choice([shape, shape[::-1]]))
    if demands != "tall" and rng.random() < 0.2:
        grid = [grid[0]] * n_servers
    servers = [(cpu / steps, memory / steps) for cpu, memory in grid]
    for at in sorted(rng.randint(0, ticks) for _ in range(n_tasks)):
        on_cpu, on_memory = rng.choice(grid)
        if demands == "small":
            cpu = rng.randint(1, max(1, on_cpu // 2))
            memory = rng.randint(1, max(1, on_memory // 2))
        elif demands == "any":
            cpu, memory = rng.randint(1, on_cpu), rng.randint(1, on_memory)
        else:  # more than half of the longer side, so that only one kind of server will do
            cpu, memory = rng.randint(1, on_cpu), rng.randint(1, on_memory)
            if on_cpu >= on_memory:
                cpu = rng.randint(on_cpu // 2 + 1, on_cpu)
            else:
                memory = rng.randint(on_memory // 2 + 1, on_memory)
        if rng.random() < 0.05:
            cpu, memory = rng.choice([(0, memory), (cpu, 0)])
        execution = rng.randint(1, longest)
        tasks.append((at * tick, execution * tick, cpu / steps, memory / steps))
    return tasks, servers
