"""Runs of the registered policies: on small instances, and on the stand-in for the Google trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from schedgym.papers import Evaluation, Run, Shown
from schedgym.papers.judging import Confirm
from schedgym.papers.noroozoliaee2014.instances import read_instance
from schedgym.papers.noroozoliaee2014.model import Instance, Schedule, metrics
from schedgym.papers.run import play_workload
from schedgym.papers.searches import Details, confirm_by

ID = "schedgym/QueueDelay-v0"
#: returns the schedule of an instance under a scheme, in the model or in the environment
Play = Callable[[Instance, str], Schedule]
#: returns the details of what is wrong with an instance, or None
Flaw = Callable[..., Details]


def play_instance(instance: Instance, name: str) -> tuple[Schedule, dict[str, float]]:
    """Return schedule and metrics of a registered policy (see :func:`sweep_policies`) on an instance."""
    from schedgym.problems.queue_delay.metrics import fates, metrics
    from schedgym.problems.queue_delay.workload import make_workload

    (tasks, servers), unit = instance, instance.unit
    rows = [(task.arrival, task.execution, task.cpu / unit, task.memory / unit) for task in tasks]
    workload = make_workload(rows, [(c / unit, m / unit) for c, m in servers])
    registered, options = _registered(name)
    sizes = {"tasks": len(tasks), "servers": len(servers)}
    record = play_workload(ID, f"queue-delay/{registered}", workload, sizes, **options)
    fate = fates(record)
    return Schedule(fate["start"], fate["server"], record.final_time), metrics(record)


def in_environment(flaw: Flaw) -> Confirm:
    """Return a confirmation: under the registered policies, in the environment, the flaw is the same.

    The environment's metrics of their schedules must be those of the model.
    """

    def confirm(shown: Shown) -> bool:
        alike = True

        def play(instance: Instance, name: str) -> Schedule:
            nonlocal alike
            schedule, measured = play_instance(instance, name)
            expected = metrics(instance, schedule)
            alike &= np.allclose([measured[key] for key in expected], [*expected.values()], 0, 1e-9)
            return schedule

        return confirm_by(read_instance, lambda instance: flaw(instance, play))(shown) and alike

    return confirm


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
