"""Runs of the registered policies: on small instances, and on the stand-in for the Google trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from schedgym.papers import Evaluation, Run
from schedgym.papers.noroozoliaee2014.model import Instance
from schedgym.papers.run import play_workload

ID = "schedgym/QueueDelay-v0"


class _Played(NamedTuple):
    """Schedule and metrics of a registered policy in the environment."""

    start: list[float | None]
    server: list[int]
    metrics: dict[str, float]


def play_instance(instance: Instance, name: str) -> _Played:
    """Run a policy (see :func:`sweep_policies`) on an instance."""
    (tasks, servers), unit = instance, instance.unit
    rows = [(task.arrival, task.execution, task.cpu / unit, task.memory / unit) for task in tasks]
    return play_rows(rows, [(c / unit, m / unit) for c, m in servers], name)


def play_rows(tasks: Sequence[Sequence[float]], servers: Sequence[Sequence[float]], name: str) -> _Played:
    """Run a registered policy on tasks (arrival, execution, cpu, memory) and servers (cpu, memory)."""
    from schedgym.problems.queue_delay.metrics import fates, metrics
    from schedgym.problems.queue_delay.workload import make_workload

    registered, options = _registered(name)
    sizes = {"tasks": len(tasks), "servers": len(servers)}
    record = play_workload(ID, f"queue-delay/{registered}", make_workload(tasks, servers), sizes, **options)
    fate = fates(record)
    return _Played(fate["start"], fate["server"], metrics(record))


def _registered(name: str) -> tuple[str, dict[str, Any]]:
    """Return the registered policy of a name, and its options."""
    if name.endswith("-bypass"):
        return name.replace("-bypass", "-blocking"), {"bypass": True}
    return name, {}


def sweep_policies(run: Run, policies: Sequence[str]) -> Evaluation:
    """Run policies on 10 to 80 servers; claims and figures share the runs of the same policies.

    Names that end in -bypass are those of the policies that end in -blocking, with the option ``bypass``.
    """
    blocking = any(name.endswith(("-blocking", "-bypass")) for name in policies)
    return run.play(
        ID,
        {name: _registered(name)[0] for name in policies},
        run.size(10, 50, 2),
        {"servers": run.size(range(10, 90, 10), range(10, 90, 10), (2, 4))},
        # schedules are the same in both views; "rule" makes them sooner, but cannot carry blocking
        options={name: options for name in policies if (options := _registered(name)[1])},
        parameters={"tasks": run.size(2000, 2000, 60), "view": "placement" if blocking else "rule"},
    )
