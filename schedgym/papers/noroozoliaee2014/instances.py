"""Small instances, and how findings show them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from schedgym.papers import Run, Shown, get_paper
from schedgym.papers.noroozoliaee2014.model import Instance, Task, instances, size
from schedgym.papers.searches import Searched, smallest_flaw

__all__ = [
    "PAPER",
    "find_flaw",
    "read_instance",
    "show_instance",
    "show_share",
    "tiny_instances",
    "total_delay",
]

PAPER = get_paper("noroozoliaee2014")


def show_share(units: int, unit: int) -> str:
    """Write a demand or capacity as a share of the largest server."""
    return str(Fraction(units, unit))


def show_instance(instance: Instance) -> dict[str, Any]:
    """Return an instance as a finding shows it."""
    tasks, servers, unit = instance
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
    return Instance(tuple(tasks), tuple((int(c * unit), int(m * unit)) for c, m in servers), unit)


def total_delay(instance: Instance, start: Sequence[int | None]) -> int:
    """Return the sum of the queuing delays."""
    return sum(s - task.arrival for s, task in zip(start, instance.tasks, strict=True) if s is not None)


def find_flaw(cases: Iterable[Instance], flaw: Callable[[Instance], dict[str, Any] | None]) -> Searched:
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
