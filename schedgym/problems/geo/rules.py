"""The thesis's shares of the sites' slots, as compiled functions of one environment.

The baseline policies call them on an observation, the environment in its views ``weights`` and ``fair-rule``.
They allocate no memory. Arrays are laid out as in :mod:`schedgym.problems.geo.orders`.

Source: guan2022, chapters 4 and 5. The solvers are in ``schedgym.solvers``.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from schedgym.core.arrays import SCRATCH, Floats, Integers, Integers32, Renamed
from schedgym.core.jit import helper, pure_kernel
from schedgym.problems.geo.orders import sort_by_key
from schedgym.solvers import max_min
from schedgym.solvers.balance import SiteLists, place

FAIR_RULES: tuple[str, ...] = (
    "imf",
    "amf",
    "sig-amf",
    "opt-amf",
    "opt-sig-amf",
    "gamf",
    "sig-gamf",
    "opt-gamf",
    "opt-sig-gamf",
)
IMF, AMF, SIG_AMF, OPT_AMF, OPT_SIG_AMF, GAMF, SIG_GAMF, OPT_GAMF, OPT_SIG_GAMF = range(len(FAIR_RULES))

CLOSED = -1.0  # the share of an entry at which no task may start
SHARING_TOLERANCE = 1e-6  # slots; with fewer than 1000 jobs, different aggregates differ by more


class FairScratch(NamedTuple):
    """Scratch space of :func:`fair`, :func:`weighted_fair`, :func:`sharing_violations`, besides a Network."""

    demand: Annotated[Integers32, "job", "site"]  # tasks by associated site
    seconds: Annotated[Floats, "job", "site"]  # their durations
    held: Annotated[Integers, "job", "site"]  # units that a job gets in any case
    singles: Annotated[Integers, "site", 1]  # every site alone
    order: Annotated[Integers, "job"]
    key: Annotated[Integers, "job"]
    rate: Annotated[Floats, "job"]
    wanted: Annotated[Floats, "job"]
    given: Annotated[Floats, "job"]
    tasks: Annotated[Integers, "group"]
    placement: Annotated[Integers, "group", "choice"]
    ascending: Annotated[Integers, "group", "choice"]  # as in SiteLists, without closed entries


Sharing = Annotated[FairScratch, SCRATCH]
FairNetwork = Annotated[
    max_min.Network,
    SCRATCH,
    Renamed(**{name: f"network_{name}" for name in max_min.network_sizes(1, 1, 1, 1)}),
]


def work_sizes(jobs: int, groups: int, choices: int, sites: int) -> dict[str, int]:
    """Return the dimensions of all scratch space: ``choices`` is the most sites of a group."""
    network = max_min.network_sizes(jobs, max(groups, sites), choices, sites)  # of groups, or of single sites
    lengths = {"job": jobs, "group": groups, "choice": choices, "site": sites}
    return lengths | {"placing_node": groups + sites} | {f"network_{k}": n for k, n in network.items()}


@helper
def _load(associated: bool, n: int, scale: int, unfinished: Integers32, cluster: Any, work: Any) -> None:
    """Load the network with the groups, or with single sites and the tasks associated with them."""
    net, scratch, slots = work.network, work.sharing, cluster.slots
    if associated:
        for j in range(slots.shape[0]):
            scratch.singles[j, 0] = j
        max_min.load_network(scratch.demand, scratch.singles, slots, scale, n, net)
    else:
        max_min.load_network(unfinished, cluster.sites, slots, scale, n, net)


@helper
def _prepare(associated: bool, n: int, unfinished: Any, cluster: Any, work: Any, share: Floats) -> None:
    """Set shares to zero; with ``associated`` close all but a group's first entry, and sum up demands."""
    width, demand = cluster.sites.shape[1], work.sharing.demand
    for i in range(n):
        for e in range(share.shape[1]):
            # chapter 4 knows one site per task: other entries are closed, or idle slots would go to them
            share[i, e] = CLOSED if associated and e % width != 0 else 0.0
        if associated:
            for j in range(demand.shape[1]):
                demand[i, j] = 0
            for k in range(unfinished.shape[1]):
                if unfinished[i, k] > 0:
                    demand[i, cluster.sites[k, 0]] += unfinished[i, k]


@helper
def _split(i: int, j: int, amount: float, unfinished: Any, cluster: Any, work: Any, share: Any) -> None:
    """Split a job's share of a site over the groups associated with it, in proportion to their tasks."""
    width, demand = cluster.sites.shape[1], work.sharing.demand
    for position in range(cluster.site_start[j], cluster.site_start[j + 1]):
        entry = cluster.entries[position]
        k = entry // width
        if entry == k * width and unfinished[i, k] > 0:
            share[i, entry] = amount
            if unfinished[i, k] < demand[i, j]:
                share[i, entry] = amount * unfinished[i, k] / demand[i, j]


@helper
def _write(
    associated: bool, n: int, scale: int, unfinished: Integers32, cluster: Any, work: Any, share: Floats
) -> None:
    """Write the allocation of the solved network in slots; the other entries are already set."""
    width, net = cluster.sites.shape[1], work.network
    for i in range(n):
        for g in range(net.start[i], net.start[i + 1]):
            k = net.kind[g]
            if associated:
                amount = (net.flow[g] + net.held[g]) / scale
                _split(i, k, amount, unfinished, cluster, work, share)
            else:
                for a in range(width):
                    share[i, k * width + a] = net.flow[g * width + a] / scale


@pure_kernel
def weighted_fair(
    associated: bool, n: int, weights: Any, unfinished: Integers32, cluster: Any, work: Any, share: Floats
) -> None:
    """Compute shares whose aggregates, divided by the jobs' weights, are max-min fair.

    Args:
        associated: tasks run at their associated sites (with equal weights: AMF), else at any (GAMF).
        n: jobs.
        weights: [>= n] at least 0; those below 1e-9 of the largest are raised to it, and if all are 0,
            they are all 1.
        unfinished: [>= n, K] unfinished tasks.
        cluster: :class:`Cluster`.
        work: ``sharing`` and ``network``.
        share: [>= n, E] written, n rows: slots at each entry, :data:`CLOSED` where no task may start.
    """
    net = work.network
    scale = max_min.unit_scale(cluster.slots, 1)
    _prepare(associated, n, unfinished, cluster, work, share)
    _load(associated, n, scale, unfinished, cluster, work)
    largest = 0.0
    for i in range(n):
        largest = max(largest, float(weights[i]))
    if largest > 0.0:
        for i in range(n):
            net.weight[i] = max(weights[i] / largest, max_min.LEAST_WEIGHT)
    max_min.share_into(net, n, 1 if associated else cluster.sites.shape[1], scale)
    _write(associated, n, scale, unfinished, cluster, work, share)


@helper
def _share_each_site(n: int, unfinished: Integers32, cluster: Any, work: Any, share: Floats) -> None:
    """IMF: share every site by itself."""
    wanted = work.sharing.wanted[:n]
    given = work.sharing.given[:n]
    for j in range(cluster.slots.shape[0]):
        for i in range(n):
            wanted[i] = work.sharing.demand[i, j]
        # no site knows of the others
        max_min.water_into(float(cluster.slots[j]), wanted, given)
        for i in range(n):
            if given[i] > 0.0:
                _split(i, j, given[i], unfinished, cluster, work, share)


@helper
def _set_floors(associated: bool, n: int, unit: int, unfinished: Integers32, cluster: Any, work: Any) -> None:
    """Guarantee each job what it can use of 1 / n of every site; 1 / n slot is ``unit`` units."""
    net, scratch, slots = work.network, work.sharing, cluster.slots
    # with one site per task a floor is a minimum per site, and needs no flow
    if associated:
        for i in range(n):
            for j in range(slots.shape[0]):
                scratch.held[i, j] = min(int(scratch.demand[i, j]) * n, int(slots[j])) * unit
        max_min.hold_in_network(scratch.held, n, 1, net)
    else:
        for i in range(n):
            total = _set_up_alone(i, n, unfinished, cluster, work)
            left = place(scratch.tasks, cluster, scratch.placement, work.placing)
            net.floor[i] = (total - left) * unit


@helper
def _time(
    associated: bool, n: int, scale: int, unfinished: Integers32, seconds: Any, cluster: Any, work: Any
) -> None:
    """Let the network estimate completion times by known durations, with ``associated`` summed by site."""
    table = work.sharing.seconds
    if not associated:
        max_min.time_in_network(seconds, scale, n, work.network)
        return
    for i in range(n):
        for j in range(table.shape[1]):
            table[i, j] = 0.0
        for k in range(unfinished.shape[1]):
            if unfinished[i, k] > 0:
                table[i, cluster.sites[k, 0]] += seconds[i, k]
    max_min.time_in_network(table, scale, n, work.network)


@pure_kernel
def fair(
    rule: int, n: int, unfinished: Integers32, seconds: Any, cluster: Any, work: Any, share: Floats
) -> None:
    """Compute the shares of a rule of chapters 4 and 5.

    If several groups of a job have the same associated site, imf and the amf rules split the job's share of
    the site in proportion to the demands.

    Args:
        rule: index into :data:`FAIR_RULES`.
        n: jobs; the floor of a job is the slots that it can use of 1 / n of every site.
        unfinished: [>= n, K] unfinished tasks, the demand.
        seconds: [>= n, K] the sum of their durations, by which the opt- rules then estimate completion times;
            without rows: durations are not known, and all count as equal.
        cluster: :class:`Cluster`.
        work: ``placing``, ``sharing`` and ``network``.
        share: [>= n, E] written, n rows: slots at each entry, :data:`CLOSED` where no task may start.

    Source: guan2022, sections 4.1 to 4.5 and 5.2 to 5.4; ``seconds``: the footnote of 4.5.2.
    Deviations: a_ijk >= 0, which (5.2) omits.
    """
    associated = rule < GAMF
    _prepare(associated, n, unfinished, cluster, work, share)
    if n == 0:
        return
    if rule == IMF:
        _share_each_site(n, unfinished, cluster, work, share)
        return
    net, scratch = work.network, work.sharing
    # guaranteed floors are in units of 1 / n slot: the scale must be a multiple of n
    floors = rule == SIG_AMF or rule == OPT_SIG_AMF or rule == SIG_GAMF or rule == OPT_SIG_GAMF
    scale = max_min.unit_scale(cluster.slots, n if floors else 1)
    _load(associated, n, scale, unfinished, cluster, work)
    if floors:
        _set_floors(associated, n, scale // n, unfinished, cluster, work)
    used = 1 if associated else cluster.sites.shape[1]
    max_min.share_into(net, n, used, scale)
    # the most urgent job, with the fewest tasks, is rearranged first
    if rule == OPT_AMF or rule == OPT_SIG_AMF or rule == OPT_GAMF or rule == OPT_SIG_GAMF:
        for i in range(n):
            scratch.key[i] = 0
            for k in range(unfinished.shape[1]):
                scratch.key[i] += unfinished[i, k]
        sort_by_key(scratch.order, scratch.key, n)
        if seconds.shape[0] > 0:
            _time(associated, n, scale, unfinished, seconds, cluster, work)
        max_min.complete_into(net, scratch.order, n, used, scratch.rate)
    _write(associated, n, scale, unfinished, cluster, work, share)


@helper
def _set_up_alone(i: int, n: int, unfinished: Integers32, cluster: Any, work: Any) -> int:
    """Set up a job alone with 1 / n of every site, in units of 1 / n; return the sum of its demand."""
    total = 0
    for k in range(unfinished.shape[1]):
        work.sharing.tasks[k] = int(unfinished[i, k]) * n
        total += work.sharing.tasks[k]
    for j in range(cluster.slots.shape[0]):
        work.placing.capacity_left[j] = cluster.slots[j]
    return total


@helper
def _reach(i: int, n: int, unfinished: Integers32, share: Floats, cluster: Any) -> int:
    """Return what a job could use of 1 / n of each site alone, at open entries, in units of 1 / n slot."""
    width = cluster.sites.shape[1]
    reach = 0
    for j in range(cluster.slots.shape[0]):
        wanted = 0
        for position in range(cluster.site_start[j], cluster.site_start[j + 1]):
            entry = cluster.entries[position]
            if share[i, entry] >= 0.0:
                wanted += int(unfinished[i, entry // width])
        reach += min(wanted * n, cluster.slots[j])
    return reach


@pure_kernel
def sharing_violations(n: int, unfinished: Integers32, share: Floats, cluster: Any, work: Any) -> int:
    """Count the jobs that have less than they could use alone of an equal part of every site.

    The incentive of job i is violated if A_i < X_i - :data:`SHARING_TOLERANCE`. A_i is the sum of its shares,
    and X_i its maximum flow with capacities u_j / n, over the entries that are not closed to it.

    Args:
        n: jobs.
        unfinished: [>= n, K] unfinished tasks.
        share: [>= n, E] slots at each entry; negative where no task may start.
        cluster: :class:`Cluster`.
        work: ``placing`` and ``sharing``.

    Source: guan2022, (4.3), (4.4) and (5.21) to (5.24).
    """
    groups, width = cluster.sites.shape
    scratch = work.sharing
    whole = 0
    for j in range(cluster.slots.shape[0]):
        whole += cluster.slots[j]
    count = 0
    for i in range(n):
        total = 0
        aggregate = SHARING_TOLERANCE
        for k in range(groups):
            tasks = int(unfinished[i, k])
            if tasks > 0:
                total += tasks
                for a in range(width):
                    aggregate += max(share[i, k * width + a], 0.0)
        # cheap upper bounds of X first: most jobs need no flow
        if aggregate * n >= min(total * n, whole):
            continue
        if aggregate * n >= _reach(i, n, unfinished, share, cluster):
            continue
        # the flow may not use closed entries
        for k in range(groups):
            kept = 0
            for b in range(width):
                a = cluster.ascending[k, b]
                if a >= 0 and share[i, k * width + a] >= 0.0:
                    scratch.ascending[k, kept] = a
                    kept += 1
            for b in range(kept, width):
                scratch.ascending[k, b] = -1
        total = _set_up_alone(i, n, unfinished, cluster, work)
        opened = SiteLists(cluster.sites, scratch.ascending, cluster.site_start, cluster.entries)
        left = place(scratch.tasks, opened, scratch.placement, work.placing)
        if aggregate * n < total - left:
            count += 1
    return count
