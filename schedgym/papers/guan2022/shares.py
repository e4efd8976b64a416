"""The shares that the shipped solvers give to the jobs of one decision, by ``schedgym.solvers.max_min``.

``sites`` [K, A] lists the available sites of each group, padded with -1; ``demand`` [J, K] is the number of
tasks of each job in each group, and ``slots`` [M] that of the slots of each site. Shares are in slots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Floats
from schedgym.errors import InfeasibleInstance
from schedgym.solvers.balance import make_placement_scratch, make_site_lists, place
from schedgym.solvers.max_min import (
    Network,
    complete_into,
    hold_in_network,
    load_network,
    make_network,
    share_into,
    time_in_network,
    unit_scale,
    water_into,
)


class Loaded(NamedTuple):
    """A network with the jobs of a decision, and the units in a slot."""

    network: Network
    scale: int


def load(
    demand: npt.ArrayLike, sites: npt.ArrayLike, slots: npt.ArrayLike, floors: npt.ArrayLike | None = None
) -> Loaded:
    """Return a network without flow.

    Args:
        demand: [J, K].
        sites: [K, A].
        slots: [M].
        floors: least aggregates [J] (of SIG-GAMF: :func:`isolated_share`), or least shares [J, K] of groups
            with a single site (of SIG-AMF: min(d_ij, u_j / n)); none by default.

    Raises:
        InfeasibleInstance: the floors of a site are more than its slots.
    """
    tasks, lists, capacity = np.asarray(demand), np.asarray(sites), np.asarray(slots)
    (jobs, kinds), width = tasks.shape, lists.shape[1]
    scale = unit_scale(capacity) if floors is None else unit_scale(capacity, max(jobs, 1))
    network = make_network(jobs, kinds, width, capacity.size, int(np.count_nonzero(tasks)))
    load_network(tasks, lists, capacity, scale, jobs, network)
    if floors is not None:
        least = np.minimum(np.asarray(floors), capacity.sum() + 1)
        units = np.rint(least * scale).astype(np.int64)
        if units.ndim == 1:
            network.floor[:] = units
        elif hold_in_network(units, jobs, width, network):
            raise InfeasibleInstance("floors: more than a site's slots")
    return Loaded(network, scale)


def solve(loaded: Loaded, width: int) -> Floats:
    """Compute max-min fair flows of a loaded network, A = ``width``; return the aggregates [J].

    Raises:
        InfeasibleInstance: no allocation reaches the floors.
    """
    if share_into(loaded.network, len(loaded.network.share), width, loaded.scale):
        raise InfeasibleInstance("floors: no allocation reaches them all")
    return loaded.network.share


def allocation(loaded: Loaded, demand: npt.ArrayLike, width: int) -> Floats:
    """Return the shares [J, K, A] of a solved network."""
    network, scale = loaded
    result = np.zeros((*np.shape(demand), width))
    for i in range(len(network.share)):
        for g in range(network.start[i], network.start[i + 1]):
            result[i, network.kind[g]] = network.flow[g * width : (g + 1) * width] / scale
            result[i, network.kind[g], 0] += network.held[g] / scale
    return result


def max_min(
    demand: npt.ArrayLike, sites: npt.ArrayLike, slots: npt.ArrayLike, *, floors: npt.ArrayLike | None = None
) -> tuple[Floats, Floats]:
    """Return the max-min fair aggregates [J], and shares [J, K, A] that have them.

    With groups of one site each this is AMF, else GAMF; ``floors`` are those of :func:`load`. Without floors
    the aggregates are the exact quotients, rounded once.

    Raises:
        InfeasibleInstance: no allocation reaches the floors.
    """
    loaded, width = load(demand, sites, slots, floors), np.shape(sites)[1]
    return solve(loaded, width), allocation(loaded, demand, width)


def completion_shares(
    demand: npt.ArrayLike,
    sites: npt.ArrayLike,
    slots: npt.ArrayLike,
    *,
    floors: npt.ArrayLike | None = None,
    order: npt.ArrayLike | None = None,
    seconds: npt.ArrayLike | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Return the aggregates of :func:`max_min` with shares that let jobs finish early: Algorithms 6 and 8.

    Args:
        demand: [J, K].
        sites: [K, A].
        slots: [M].
        floors: those of :func:`load`.
        order: the jobs, first served first; by increasing number of tasks by default, ties by index.
        seconds: w [J, K] sum of the durations of each group's tasks, if they are known.

    Returns:
        Aggregates [J], shares [J, K, A], and y [J], the least share of a job's group of its demand (or of its
        w); inf for a job without tasks.

    Raises:
        InfeasibleInstance: no allocation reaches the floors.
    """
    loaded, width = load(demand, sites, slots, floors), np.shape(sites)[1]
    aggregates = solve(loaded, width)
    jobs = len(aggregates)
    if seconds is not None:
        time_in_network(np.asarray(seconds), loaded.scale, jobs, loaded.network)
    turns = np.argsort(np.sum(demand, axis=1), kind="stable") if order is None else np.asarray(order)
    rate = np.zeros(jobs)
    complete_into(loaded.network, turns, jobs, width, rate)
    return aggregates, allocation(loaded, demand, width), rate


def isolated_share(demand: npt.ArrayLike, sites: npt.ArrayLike, slots: npt.ArrayLike) -> Floats:
    """Return X [J], the slots that each job alone could use of 1 / J of every site: (5.21) to (5.23)."""
    tasks, capacity = np.asarray(demand), np.asarray(slots)
    lists = make_site_lists(sites, capacity.size)
    scratch = make_placement_scratch(len(lists.sites), capacity.size)
    placement = np.zeros(lists.sites.shape, dtype=np.int64)
    share = np.zeros(len(tasks))
    # in parts of a slot, of which a site has as many as it has slots
    for i, wanted in enumerate(tasks * len(tasks)):
        scratch.capacity_left[:] = capacity
        share[i] = (wanted.sum() - place(wanted, lists, placement, scratch)) / len(tasks)
    return share


def water_filling(demand: npt.ArrayLike, slots: npt.ArrayLike) -> Floats:
    """Return the shares [J, M] of IMF: every site by itself; ``demand`` is [J, M]."""
    wanted = np.array(demand, dtype=np.float64, order="F")
    share = np.zeros_like(wanted)
    for j, total in enumerate(np.asarray(slots).tolist()):
        water_into(float(total), wanted[:, j], share[:, j])
    return share
