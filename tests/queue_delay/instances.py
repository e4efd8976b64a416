"""Instances for the tests: random ones with many ties, and those that a test writes out."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

from schedgym.papers.noroozoliaee2014.model import Instance, Server, Task


def make_instance(tasks: Iterable[Sequence[float]], servers: Iterable[Server]) -> Instance:
    """The instance of tasks (arrival, execution, cpu, memory) and servers (cpu, memory)."""
    return Instance([Task(*task) for task in tasks], list(servers))


def random_instances(count: int, seed: int, every: int = 4) -> Iterator[Instance]:
    """Random instances; one in ``every`` has no ties."""
    rng = random.Random(seed)
    for n in range(count):
        yield random_instance(rng, adversarial=n % every != every - 1)


def random_instance(rng: random.Random, *, adversarial: bool = True) -> Instance:
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
            demand = rng.uniform(least, most) * cpu, rng.uniform(least, most) * memory
            tasks.append(Task(at, execution, *demand))
        return Instance(tasks, servers)

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
        tasks.append(Task(at * tick, execution * tick, cpu / steps, memory / steps))
    return Instance(tasks, servers)


def with_resources(instance: Instance, count: int, rng: random.Random) -> Instance:
    """The instance with ``count`` resources in place of two; every task still fits some empty server.

    Of a further resource some servers have nothing, some tasks ask for nothing, and many amounts are equal.
    """
    servers, tasks = [server[:count] for server in instance.servers], []
    hosts = [
        rng.choice([j for j, own in enumerate(instance.servers) if _fits(t, own)]) for t in instance.tasks
    ]
    for _ in range(2, count):
        servers = [(*server, rng.choice([0.0, 0.25, 0.5, 1.0])) for server in servers]
    for task, j in zip(instance.tasks, hosts, strict=True):
        further = [rng.choice([0.0, 0.25, 0.5, 1.0]) * capacity for capacity in servers[j][2:]]
        tasks.append(Task(*task[: 2 + min(count, 2)], *further))
    return Instance(tasks, servers)


def _fits(task: Task, server: Server) -> bool:
    return bool(task.cpu <= server[0] + 1e-9 and task.memory <= server[1] + 1e-9)
