"""Sections 6 and 6.1: the set-up of the experiments, and those with one job."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import networkx
import numpy as np

from schedgym.papers import CORRECTED, NOT_REPRODUCED, REFUTED, Finding, Run, Shown, judge
from schedgym.papers.exact import as_text, as_texts
from schedgym.papers.judging import excess, grows, larger
from schedgym.papers.searches import Details, Sentences, count, smallest_flaw
from schedgym.papers.shi2017 import runs
from schedgym.papers.shi2017.instances import HALF, OPEN, SHARES, claim, jobs_to_place
from schedgym.papers.shi2017.model import one_job as model

# section 6: the set-up -------------------------------------------------------------------------------


def fat_tree_network(arity: int) -> networkx.Graph[Any]:
    """Return the fat tree of switches with ``arity`` ports (Al-Fares, Loukissas, Vahdat 2008).

    A pod has an edge switch for each rack and arity/2 aggregation switches, each connected to each edge
    switch; (arity/2)^2 core switches connect the pods. Nodes have an attribute ``level``: 0 for servers.
    """
    half = arity // 2
    graph: networkx.Graph[Any] = networkx.Graph()
    graph.add_nodes_from(range(arity * half * half), level=0)
    for pod in range(arity):
        graph.add_nodes_from((("edge", pod, i) for i in range(half)), level=1)
        graph.add_nodes_from((("aggregation", pod, i) for i in range(half)), level=2)
        for rack in range(half):
            first = (pod * half + rack) * half
            graph.add_edges_from((("edge", pod, rack), server) for server in range(first, first + half))
            graph.add_edges_from((("edge", pod, rack), ("aggregation", pod, i)) for i in range(half))
    for i, core in itertools.product(range(half), repeat=2):
        graph.add_node(("core", i, core), level=3)
        graph.add_edges_from((("core", i, core), ("aggregation", pod, i)) for pod in range(arity))
    return graph


@claim("fat-tree")
def _check_fat_tree(run: Run, say: Sentences) -> Finding:
    from schedgym.problems.single_job.topology import fat_tree_groups

    sizes, wrong = {}, 0
    for y in (2, 4, 6, 8, 10, 12):
        servers = sum(level == 0 for _, level in fat_tree_network(y).nodes(data="level"))
        groups = len(fat_tree_groups(y, server_caps=False).matrix)
        sizes[y] = servers
        wrong += servers * 4 != y**3 or groups != 1 + y + y * y // 2
    good = not wrong and (sizes[6], sizes[8], sizes[12]) == (54, 128, 432)
    counted = ", ".join(f"y = {y}: {m}" for y, m in sizes.items())
    return say(judge(good), {"servers": sizes}, counted=counted)


def _tree_job(capacity: Sequence[int], arity: int, server_caps: bool) -> model.SingleJob:
    """Return a job of one task that only the first server runs as efficiently as the energy cap demands."""
    row = (1,) + (HALF,) * (len(capacity) - 1)
    return model.job_on(model.fat_tree(arity, *SHARES, server_caps), capacity, (1,), (row,), 1)


def _confirm_server_capacity(shown: Shown) -> bool:
    """Confirm by the paper's shares of the first server's rack, pod and data centre."""
    capacity, arity = shown["capacity"], shown["arity"]
    rack, pod = arity // 2, arity**2 // 4
    limit = min(
        share * sum(capacity[:size]) for share, size in zip(SHARES, (rack, pod, len(capacity)), strict=True)
    )
    return (
        len(capacity) * 4 == arity**3
        and min(capacity) > 0
        and as_text(limit) == shown["vcpu"]
        and limit > capacity[0]
    )


@claim("server-capacity", confirm=_confirm_server_capacity)
def _check_server_capacity(run: Run, say: Sentences) -> Finding:
    within = 0

    def flaw(tree: tuple[int, list[int]]) -> Details:
        nonlocal within
        arity, capacity = tree
        vcpu, kept = (model.optra(_tree_job(capacity, arity, caps), (0,)).vcpus[0] for caps in (False, True))
        within += kept <= capacity[0]
        return {"arity": arity, "capacity": capacity, "vcpu": as_text(vcpu)} if vcpu > capacity[0] else None

    trees = [(2, list(capacity)) for capacity in itertools.product(range(1, 9), repeat=2)]
    trees += [(4, [1, *own, *[1] * 12]) for own in itertools.product(range(1, 5), repeat=3)]
    checked, flawed, found = smallest_flaw(trees, flaw, size=lambda tree: sum(tree[1]))
    episodes = 30 if run.small else 200
    size = {"tasks": 40, "arity": 8, "server_caps": False}
    played = run.play(runs.SINGLE, ["tapra-fast"], episodes, parameters=size, observe=_overloads)
    beyond = played.values("tapra-fast")
    figures = {"checked": checked, "beyond": flawed, "jobs": len(beyond), "overloaded": sum(beyond)}
    verdict = NOT_REPRODUCED if not flawed or within < checked else CORRECTED
    return say(verdict, figures, counterexample=found, outside=checked - within, episodes=episodes)


def _overloads(env: Any) -> bool:
    """Return True if a plan gives a server's tasks more vCPU than it has."""
    record = env.record()
    cpu = np.asarray(record.workload.cluster["cpu"])
    used = np.bincount(record.server, weights=record.amount[:, 0], minlength=len(cpu))
    return bool((used > cpu * (1 + 1e-9)).any())


def _confirm_data_centre(shown: Shown) -> bool:
    """Confirm that the constraints of the pods add up to that of the data centre, and so imply it."""
    capacity, arity = shown["capacity"], shown["arity"]
    size = arity**2 // 4
    pods = [SHARES[1] * sum(capacity[p * size : (p + 1) * size]) for p in range(arity)]
    return as_texts(pods) == shown["pods"] and as_text(SHARES[2] * sum(capacity)) == shown[
        "data_centre"
    ] == as_text(sum(pods, Fraction(0)))


@claim("data-centre-row", confirm=_confirm_data_centre)
def _check_data_centre(run: Run, say: Sentences) -> Finding:
    matters = slower = looser = 0
    checked = 200 if run.small else 10_000
    for _ in range(checked):
        arity = 2 if run.rng.integers(2) else 4
        servers = arity**3 // 4
        capacity = [int(x) for x in run.rng.integers(1, 9, servers)]
        n = int(run.rng.integers(1, 5))
        efficiency = tuple(
            tuple(Fraction(int(x), 4) for x in run.rng.integers(1, 5, servers)) for _ in range(n)
        )
        loads = tuple(int(x) for x in run.rng.integers(1, 9, n))
        placement = tuple(int(j) for j in run.rng.integers(servers, size=n))
        *others, row = model.fat_tree(arity, *SHARES)
        half = row._replace(share=row.share / 2)  # beta_DC = 0.1 would matter
        without, with_row, with_half = (
            model.optra(model.job_on(limits, capacity, loads, efficiency), placement)
            for limits in (others, [*others, row], [*others, half])
        )
        matters += with_row.jct != without.jct
        slower += with_row.times != without.times
        looser += with_half.jct != without.jct
    figures = {"checked": checked, "jct_differs": matters, "a_task_is_slower": slower, "with_0.1": looser}
    if matters or not looser:
        return say(judge(matters), figures, looser=looser)
    *_, first, second, whole = model.limits_now(model.fat_tree(2, *SHARES), (1, 1))
    shown: dict[str, Any] = {"arity": 2, "capacity": [1, 1]}
    shown |= {"pods": as_texts([first, second]), "data_centre": as_text(whole)}
    return say(REFUTED, figures, counterexample=shown, looser=looser)


def _confirm_least_energy(shown: Shown) -> bool:
    (load,), (efficiency,) = shown["load"], shown["efficiency"]
    return as_text(load / Fraction(efficiency)) == shown["least"] and Fraction(shown["least"]) > load


@claim("minimum-energy", confirm=_confirm_least_energy)
def _check_least_energy(run: Run, say: Sentences) -> Finding:
    below = count(
        jobs_to_place(run),
        lambda job: min(map(job.energy, model.placements(job))) >= sum(job.load),
    ).false
    failed = {}
    for servers in (54, 128, 250, 432):
        shares = []
        for _ in range(60 if run.small else 1_000):
            loads = 3600 * (1 - run.rng.random(100))
            ratio = (loads / run.rng.uniform(0.1, 1.0, (100, servers)).max(axis=1)).sum() / loads.sum()
            shares.append(min(max((ratio - 1) / 0.1, 0.0), 1.0))  # the part of the draws below it
        failed[servers] = float(np.mean(shares))
    figures = {"below": below, "infeasible": failed}
    shown = {"load": [1], "efficiency": ["1/2"], "least": 2}
    told = ", ".join(f"{share:.1%} ({m} servers)" for m, share in failed.items())
    right = not below and min(failed.values()) > 0
    return say(CORRECTED if right else NOT_REPRODUCED, figures, counterexample=shown, failed=told)


@claim("mm-ga-min-min")
def _check_mm_ga(run: Run, say: Sentences) -> Finding:
    names = [name + run.choice(OPEN["SIZING"]) for name in ("min-min", "mm-ga")]
    episodes = 20 if run.small else 100
    found = run.play(runs.SINGLE, names, episodes, parameters={"tasks": 20, "arity": 6})
    first, evolved = (found.metric(name, "jct") for name in names)
    worse, better = int((evolved > first * (1 + 1e-12)).sum()), int((evolved < first).sum())
    return say(judge(not worse), {"jobs": episodes, "worse": worse, "better": better})


# section 6.1: one job --------------------------------------------------------------------------------

SWEEPS = {"tasks": runs.by_tasks, "servers": runs.by_servers}
#: by how much planning takes longer than with TaPRA [%]
FIGURE_4_TIMES = {name: 100 * (s / 6 - 1) for name, s in zip(runs.RIVALS, (4500, 4500, 180), strict=True)}
FIGURE_5_TIMES = {name: 100 * (s / 33 - 1) for name, s in zip(runs.RIVALS, (4700, 4800, 1000), strict=True)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Planners(runs.Compare):
    """A comparison of planners.

    Attributes:
        sweeps: names of SWEEPS.
        at: "first" or "last" place of a sweep; "": at all places.
        metric: name of a metric.
        only: "TAPRA" if these alone are run, on more draws.
    """

    sweeps: Sequence[str]
    at: str = ""
    metric: str = "jct"
    only: str = ""

    def __call__(self, run: Run) -> Finding:
        """Compare them at places of the sweeps."""
        reads, what = [], ""
        for name in self.sweeps:
            sweep = SWEEPS[name](run, runs.TAPRA if self.only else None)
            for place in {"first": sweep.places[:1], "last": sweep.places[-1:]}.get(self.at, sweep.places):
                where = f"{place} {name}"
                what = where if self.at else f"means of {sweep.played.episodes} draws"
                reads.append(("" if self.at else where, sweep.metric(self.metric, place)))
        return self.judge(run, reads, what)


@claim("jct-grows")
def _check_grows(run: Run) -> Finding:
    sweep = runs.by_tasks(run)
    reads = [sweep.metric("jct", place) for place in sweep.places]
    found = [grows(label, [read(label) for read in reads]) for label in (*runs.TAPRA, *runs.RIVALS)]
    return runs.found_by(found, what=f"from {sweep.places[0]} to {sweep.places[-1]} tasks")


@claim("figure-4a-equal-shares")
def _check_shares(run: Run) -> Finding:
    tasks, episodes = run.size(200, 200, 10), run.size(10, 50, 2)
    size = {"tasks": tasks, "arity": run.size(8, 8, 4), "server_caps": run.choice(OPEN["LIMITS"])}
    played = run.play(runs.SINGLE, {"TaPRA": "tapra"}, episodes, parameters=size, observe=_shared_least)
    least = np.array(played.values("TaPRA"))
    found = excess(
        "least JCT with equal shares, N max load / B_DC, against TaPRA", least, played.metric("TaPRA", "jct")
    )
    return runs.found_by([found], larger(runs.STATED["Fig. 4(a)"]["GSA"] / 100), what=f"{tasks} tasks")


def _shared_least(env: Any) -> float:
    """Return a lower bound with equal shares: a task has at most B_DC / N, and works at least its load."""
    workload = env.record().workload
    load, cpu = np.asarray(workload.jobs["load"]), np.asarray(workload.cluster["cpu"])
    return float(len(load) * load.max() / (float(SHARES[2]) * cpu.sum()))


def _middle(sweep: runs.Sweep) -> int:
    """Return the number of tasks next to 100, for which the paper gives running times."""
    return min(sweep.places, key=lambda place: abs(place - 100))


@claim("figure-4c")
def _check_figure_4c(run: Run) -> Finding:
    sweep = runs.by_tasks(run)
    middle = _middle(sweep)
    found = runs.against(sweep.seconds(middle), runs.RIVALS, runs.TAPRA, FIGURE_4_TIMES, runs.medians_of)
    moves = 128 * 100 * 101 // 2
    more = (
        f"Min-Min tries {moves:,} placements, each of which takes nanoseconds if only the change is computed"
    )
    what = f"{middle} tasks, times as long"
    return runs.found_by(found, what=what, more=more, timed=True, placements_of_min_min=moves)


@claim("figure-5c")
def _check_figure_5c(run: Run) -> Finding:
    sweep = runs.by_servers(run)
    many = sweep.places[-1]
    found = runs.against(sweep.seconds(many), runs.RIVALS, ["TaPRA"], FIGURE_5_TIMES, runs.medians_of)
    return runs.found_by(found, what=f"{many} servers, times as long", timed=True)


@claim("figure-5c-fast")
def _check_figure_5c_fast(run: Run) -> Finding:
    sweep = runs.by_servers(run)
    many = sweep.places[-1]
    found = runs.against(sweep.seconds(many), ["TaPRA"], ["TaPRA-fast"], 100 * (33 / 15 - 1), runs.medians_of)
    return runs.found_by(found, what=f"{many} servers", timed=True)


@claim("offline-running-time")
def _check_running_time(run: Run) -> Finding:
    sweep = runs.by_tasks(run)
    middle = _middle(sweep)
    read = sweep.seconds(middle)
    found = runs.against(read, ["GSA"], runs.TAPRA, 2900, runs.medians_of)
    found += [
        dataclasses.replace(own, verdict=larger(199.0)(own))
        for own in runs.against(read, ["Min-Min", "MM-GA"], runs.TAPRA, make=runs.medians_of)
    ]
    return runs.found_by(found, what=f"{middle} tasks", timed=True)


claim.compare("one_job", _Planners)
