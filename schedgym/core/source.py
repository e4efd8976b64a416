"""Functions that the workload generators of all problems share."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgym.core.arrays import allocate, members
from schedgym.core.jit import COMPILED, helper, pure_kernel
from schedgym.core.random import root_seed, root_seeds, stream, uniform
from schedgym.core.tables import tabled
from schedgym.errors import InvalidParameter


def constants_of(record: np.dtype[Any], parameters: Any, /, **others: Any) -> Any:
    """Return a record of numbers: each field is the one of ``others``, or the parameter, of its name."""
    names = record.names or ()
    values = (others[name] if name in others else getattr(parameters, name) for name in names)
    return np.array(tuple(values), dtype=record)


def count_windows(wanted: int | str, known: int, what: str = "jobs") -> tuple[int, int]:
    """Return how many of a trace's jobs an episode has, and how many whole windows of so many the trace has.

    Args:
        wanted: jobs of an episode; "all": as many as the trace has.
        known: jobs of the trace.
        what: name of the parameter, and of the things that the trace has.

    Raises:
        InvalidParameter: when the trace is shorter than a window.
    """
    count = known if isinstance(wanted, str) else wanted
    if known < count:
        raise InvalidParameter(
            f"{what}: a window of {count} is longer than the trace, which has {known} {what}: take no more"
        )
    return count, known // count


@helper
def first_of_window(seed: np.uint64, episode: int, name: int, windows: int, count: int) -> int:
    """Return the first job of an episode's window of a trace.

    Consecutive episodes take consecutive windows of ``count`` jobs, in turn, from one that the seed decides
    by its stream ``name``.
    """
    _, u = uniform(stream(seed, 0, name))
    return ((int(u * windows) + episode) % windows) * count


@pure_kernel
def _first_window(seed: np.uint64, name: int, windows: int) -> int:
    return first_of_window(seed, 0, name, windows, 1)


def first_window(seed: int, name: int, windows: int) -> int:
    """Return the window of a trace, counted from 0, that episode 0 of ``seed`` takes.

    Args:
        seed: seed of the environment, as the user gives it.
        name: the problem's random stream of windows.
        windows: number of windows of the trace.
    """
    with np.errstate(over="warn" if COMPILED else "ignore"):  # uncompiled, modular arithmetic would warn
        return int(_first_window(root_seed(seed), name, windows))


def draw_alone(kernel: Any, drawing: type[Any], source: Any, seed: int, episode: int) -> Any:
    """Draw the workload of one episode: the problem's bundle ``Jobs``, without a batch axis.

    Args:
        kernel: the problem's ``draw``. If it needs longer arrays, their dimension "task" grows.
        drawing: the bundles that it works on: source, jobs, and work space, if any.
        source: has ``arrays``, the first bundle, and ``sizes`` of the others.
        seed: seed of the environment, as the user gives it.
        episode: counted from 0.
    """
    one, sizes, bundle = np.ones(1, dtype=bool), dict(source.sizes), members(drawing)[1].bundle
    while True:
        jobs = allocate(bundle, sizes, 1)
        work_space = [None] * (len(members(drawing)) - 2)
        table = tabled(drawing(source.arrays, jobs, *work_space), sizes)
        with np.errstate(over="warn" if COMPILED else "ignore"):  # uncompiled, modular arithmetic would warn
            needed = int(kernel(*table, one, root_seeds([seed]), np.array([episode])))
        if needed <= sizes.get("task", 0):
            return bundle(*(array[0] for array in jobs))
        sizes["task"] = needed
