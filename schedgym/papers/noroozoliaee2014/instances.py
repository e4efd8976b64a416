"""Small instances in whole numbers: all of a size, random ones, and how findings show them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from schedgym.papers import Run, Shown
from schedgym.papers.noroozoliaee2014.model import Instance, Schedule, Server, Task, earliest
from schedgym.papers.registry import Claims
from schedgym.papers.searches import Details, Searched, smallest_flaw

claim = Claims.of("noroozoliaee2014")
OPEN = claim.points  # that the paper leaves open


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
                yield Instance(tasks, cluster)


def size(instance: Instance) -> tuple[int, ...]:
    """Return the size of an instance: tasks, servers, execution times, unit, arrivals, demands."""
    tasks, servers = instance
    return (
        len(tasks),
        len(servers),
        sum(task.execution for task in tasks),
        instance.unit,
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
    return Instance(tuple(found), tuple(cluster))


def random_schedule(rng: np.random.Generator, instance: Instance) -> Schedule:
    """Place tasks in a random order on random servers, each as early as it can run or later."""
    placed: list[tuple[int, int, int]] = []
    for i in rng.permutation(len(instance.tasks)).tolist():
        task = instance.tasks[i]
        hosts = [j for j, (x, y) in enumerate(instance.servers) if task.cpu <= x and task.memory <= y]
        j = hosts[int(rng.integers(len(hosts)))]
        late = int(rng.integers(4)) if rng.integers(2) else 0
        placed.append((i, earliest(instance, placed, i, j, late), j))
    by_task = sorted(placed)
    return Schedule(tuple(s for _, s, _ in by_task), tuple(j for _, _, j in by_task))


def show_share(units: int, unit: int) -> str:
    """Write a demand or capacity as a share of the largest server."""
    return str(Fraction(units, unit))


def show_instance(instance: Instance) -> dict[str, Any]:
    """Return an instance as a finding shows it."""
    (tasks, servers), unit = instance, instance.unit
    return {
        "arrival": [task.arrival for task in tasks],
        "execution": [task.execution for task in tasks],
        "cpu": [show_share(task.cpu, unit) for task in tasks],
        "memory": [show_share(task.memory, unit) for task in tasks],
        "servers": [[show_share(c, unit), show_share(m, unit)] for c, m in servers],
    }


def read_instance(shown: Shown) -> Instance:
    """Return the instance that a finding shows."""
    servers = [(Fraction(c), Fraction(m)) for c, m in shown["servers"]]
    demands = [(Fraction(c), Fraction(m)) for c, m in zip(shown["cpu"], shown["memory"], strict=True)]
    unit = math.lcm(*(number.denominator for pair in servers + demands for number in pair))
    tasks = [
        Task(arrival, execution, int(c * unit), int(m * unit))
        for arrival, execution, (c, m) in zip(shown["arrival"], shown["execution"], demands, strict=True)
    ]
    return Instance(tuple(tasks), tuple((int(c * unit), int(m * unit)) for c, m in servers))


def show_schedule(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as a finding shows it."""
    return {"start": list(schedule.start), "server": list(schedule.server)}


def read_schedule(shown: Shown) -> Schedule:
    """Return the schedule that a finding shows."""
    return Schedule(tuple(shown["start"]), tuple(shown["server"]))


def total_delay(instance: Instance, start: Sequence[int | None]) -> int:
    """Return the sum of the queuing delays."""
    return sum(s - task.arrival for s, task in zip(start, instance.tasks, strict=True) if s is not None)


def find_flaw(cases: Iterable[Instance], flaw: Callable[[Instance], Details]) -> Searched:
    """Find the smallest instance with a flaw, and its details."""
    return smallest_flaw(cases, flaw, size=size, show=show_instance)


def tiny_instances(run: Run, most: int = 3) -> Iterator[Instance]:
    """Yield instances with up to three tasks on up to two servers, by number of tasks."""
    sizes = [
        (1, 2, 0, 1, 2),
        (1, 2, 0, 1, 4),
        (1, 2, 0, 2, 2),
        (2, 3, 1, 1, 2),
        (2, 2, 1, 2, 2),
        (3, 2, 0, 1, 2),
    ]
    if not run.small:
        sizes += [(2, 3, 2, 2, 2), (2, 2, 1, 1, 4), (3, 3, 1, 1, 2), (3, 2, 1, 2, 2)]
    for count, longest, latest, servers, unit in sizes:
        if count <= most:
            yield from instances(count, longest, latest, servers, unit)
