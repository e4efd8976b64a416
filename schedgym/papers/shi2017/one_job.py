"""Sections 6 and 6.1: the set-up of the experiments, and those with one job."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from schedgym.core.record import ScheduleRecord
from schedgym.papers import CORRECTED, HOLDS, NOT_REPRODUCED, REFUTED, Finding, Run, Shown, claim, judge
from schedgym.papers.exact import as_text, as_texts
from schedgym.papers.shi2017.instances import HALF, PAPER, SHARES, jobs_to_place
from schedgym.papers.shi2017.reference import (
    Job,
    completion,
    energy,
    fat_tree,
    placements,
    proportional,
    task_times,
)
from schedgym.papers.shi2017.runs import FIGURE_4, FIGURE_5, SINGLE, Runs, percent, play_policies

__all__: list[str] = []

# section 6: the set-up -------------------------------------------------------------------------------


@claim(
    PAPER,
    "fat-tree",
    text="a y-array fat tree has y^3 / 4 servers and 1 + y + y^2 / 2 availability constraints",
    source="section 6.1.1",
    recorded=HOLDS,
)
def _check_fat_tree(run: Run) -> Finding:
    from schedgym.problems.single_job.topology import fat_tree as network
    from schedgym.problems.single_job.topology import fat_tree_groups

    sizes, wrong = {}, 0
    for y in (2, 4, 6, 8, 10, 12):
        servers = sum(level == 0 for _, level in network(y).nodes(data="level"))
        groups = len(fat_tree_groups(y, server_caps=False).matrix)
        sizes[y] = servers
        wrong += servers * 4 != y**3 or groups != 1 + y + y * y // 2
    figures = {"servers": sizes}
    text = f"counted in the networks: {', '.join(f'y = {y}: {m}' for y, m in sizes.items())} servers"
    good = not wrong and (sizes[6], sizes[8], sizes[12]) == (54, 128, 432)
    return Finding(judge(good), text, figures=figures)


def _tree_job(capacity: Sequence[int], arity: int, server_caps: bool) -> Job:
    """Return a job of one task that only the first server runs as efficiently as the energy cap demands."""
    groups, limits = fat_tree(capacity, arity, SHARES, server_caps)
    row = (1,) + (HALF,) * (len(capacity) - 1)
    return Job((1,), (row,), groups, limits, 1)


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


@claim(
    PAPER,
    "server-capacity",
    text="the availability constraints are those of racks, pods and the data centre",
    source="section 6.1.1, Eqs. 57 and 58 (against Eq. 5)",
    recorded=CORRECTED,
    confirm=_confirm_server_capacity,
)
def _check_server_capacity(run: Run) -> Finding:
    found: list[tuple[int, dict[str, Any]]] = []
    checked = within = 0
    trees = [(2, list(capacity)) for capacity in itertools.product(range(1, 9), repeat=2)]
    trees += [(4, [1, *own, *[1] * 12]) for own in itertools.product(range(1, 5), repeat=3)]
    for arity, capacity in trees:
        (vcpu,) = proportional(_tree_job(capacity, arity, False), (0,))
        (kept,) = proportional(_tree_job(capacity, arity, True), (0,))
        checked += 1
        within += kept <= capacity[0]
        if vcpu > capacity[0]:
            shown = {"arity": arity, "capacity": capacity, "vcpu": as_text(vcpu)}
            found.append((sum(capacity), shown))
    beyond: list[bool] = []

    def count(_: str, record: ScheduleRecord) -> None:
        cpu = np.asarray(record.workload.cluster["cpu"])
        used = np.bincount(record.server, weights=record.amount[:, 0], minlength=len(cpu))
        beyond.append(bool((used > cpu * (1 + 1e-9)).any()))

    episodes = 30 if run.small else 200
    play_policies(run, SINGLE, ("tapra-fast",), episodes, visit=count, tasks=40, arity=8, server_caps=False)
    figures = {"checked": checked, "beyond": len(found), "jobs": len(beyond), "overloaded": sum(beyond)}
    if not found or within < checked:
        return Finding(NOT_REPRODUCED, f"{checked - within} beyond with server rows", figures=figures)
    text = (
        f"a server's own capacity (Eq. 5) is missing: {sum(beyond)} of {episodes} plans of TaPRA-fast for 40"
    )
    text += f" tasks and 128 servers overload one; with a row per server none of {checked} trees do"
    return Finding(CORRECTED, text, counterexample=min(found, key=lambda p: p[0])[1], figures=figures)


def _confirm_data_centre(shown: Shown) -> bool:
    """Confirm that the constraints of the pods add up to that of the data centre, and so imply it."""
    capacity, arity = shown["capacity"], shown["arity"]
    size = arity**2 // 4
    pods = [SHARES[1] * sum(capacity[p * size : (p + 1) * size]) for p in range(arity)]
    return as_texts(pods) == shown["pods"] and as_text(SHARES[2] * sum(capacity)) == shown[
        "data_centre"
    ] == as_text(sum(pods, Fraction(0)))


@claim(
    PAPER,
    "data-centre-row",
    text="of the 1 + y + y^2 / 2 constraints the data centre's (0.2) limits a job besides the pods' (0.2)",
    source="section 6.1.1",
    recorded=REFUTED,
    ours=True,
    confirm=_confirm_data_centre,
)
def _check_data_centre(run: Run) -> Finding:
    checked = matters = slower = looser = 0
    for _ in range(200 if run.small else 10_000):
        arity = 2 if run.rng.integers(2) else 4
        servers = arity**3 // 4
        capacity = [int(x) for x in run.rng.integers(1, 9, servers)]
        n = int(run.rng.integers(1, 5))
        efficiency = tuple(
            tuple(Fraction(int(x), 4) for x in run.rng.integers(1, 5, servers)) for _ in range(n)
        )
        loads = tuple(int(x) for x in run.rng.integers(1, 9, n))
        placement = tuple(int(j) for j in run.rng.integers(servers, size=n))
        groups, limits = fat_tree(capacity, arity, SHARES)
        with_row = Job(loads, efficiency, groups, limits)
        without = Job(loads, efficiency, groups[:-1], limits[:-1])
        checked += 1
        matters += completion(with_row, placement) != completion(without, placement)
        slower += task_times(with_row, placement) != task_times(without, placement)
        half = [*limits[:-1], limits[-1] / 2]  # beta_DC = 0.1 would matter
        looser += completion(Job(loads, efficiency, groups, tuple(half)), placement) != completion(
            without, placement
        )
    figures = {"checked": checked, "jct_differs": matters, "a_task_is_slower": slower, "with_0.1": looser}
    if matters or not looser:
        return Finding(judge(matters), f"it decides in {matters} placements", figures=figures)
    groups, limits = fat_tree((1, 1), 2, SHARES)
    shown = {
        "arity": 2,
        "capacity": [1, 1],
        "pods": as_texts(limits[-3:-1]),
        "data_centre": as_text(limits[-1]),
    }
    text = (
        f"the pods' limits add up to it: it decides no JCT in {checked} random placements (with beta_DC = 0.1"
    )
    text += f" in {looser}); by Eq. 16 it only gives less to tasks that have time ({slower})"
    return Finding(REFUTED, text, counterexample=shown, figures=figures)


def _confirm_least_energy(shown: Shown) -> bool:
    (load,), (efficiency,) = shown["load"], shown["efficiency"]
    return as_text(load / Fraction(efficiency)) == shown["least"] and Fraction(shown["least"]) > load


@claim(
    PAPER,
    "minimum-energy",
    text="the minimum possible energy is the sum of the loads; E_MAX is drawn from 1 to 1.1 times that",
    source="section 6.1.1",
    recorded=CORRECTED,
    confirm=_confirm_least_energy,
)
def _check_least_energy(run: Run) -> Finding:
    below = 0
    for job in jobs_to_place(run):
        below += min(energy(job, placement) for placement in placements(job)) < sum(job.load)
    failed = {}
    for servers in (54, 128, 250, 432):
        shares = []
        for _ in range(60 if run.small else 1_000):
            loads = 3600 * (1 - run.rng.random(100))
            ratio = (loads / run.rng.uniform(0.1, 1.0, (100, servers)).max(axis=1)).sum() / loads.sum()
            shares.append(min(max((ratio - 1) / 0.1, 0.0), 1.0))  # the part of the draws below it
        failed[servers] = float(np.mean(shares))
    figures = {"below": below, "infeasible": failed}
    if below or not all(0 < a for a in failed.values()):
        return Finding(NOT_REPRODUCED, f"below the loads in {below} tiny jobs", figures=figures)
    shown = {"load": [1], "efficiency": ["1/2"], "least": 2}
    text = "it is sum load / (largest lambda), of which the loads are a lower bound; so no plan keeps "
    text += ", ".join(f"{share:.1%} ({m} servers)" for m, share in failed.items())
    text += " of the caps drawn for jobs of 100 tasks, where REC as printed has no move"
    return Finding(CORRECTED, text, counterexample=shown, figures=figures)


@claim(
    PAPER,
    "mm-ga-min-min",
    text="MM-GA is guaranteed to be no worse than Min-Min",
    source="section 6.2.3",
    recorded=HOLDS,
)
def _check_mm_ga(run: Run) -> Finding:
    names = ("min-min", "mm-ga", "min-min-equal", "mm-ga-equal")
    episodes = 20 if run.small else 100
    found = play_policies(run, SINGLE, names, episodes, tasks=20, arity=6)
    worse = better = 0
    for end in ("", "-equal"):
        first, evolved = found.values(f"min-min{end}", "jct"), found.values(f"mm-ga{end}", "jct")
        worse += int((evolved > first * (1 + 1e-12)).sum())
        better += int((evolved < first).sum())
    figures = {"jobs": 2 * episodes, "worse": worse, "better": better}
    text = f"of a plan, as it keeps the best: better in {better} of {2 * episodes} plans, worse in {worse};"
    text += " of the average JCT online nothing follows from that"
    return Finding(judge(not worse), text, figures=figures)


# section 6.1: one job --------------------------------------------------------------------------------


RIVALS = ("min-min", "mm-ga", "gsa")


@claim(
    PAPER,
    "figure-4a-smallest",
    text="TaPRA generates the smallest JCT, for 40 to 200 tasks on 128 servers",
    source="section 6.1.4, Fig. 4(a)",
    recorded=NOT_REPRODUCED,
)
def _check_smallest(run: Run) -> Finding:
    found = play_policies(run, SINGLE, ("tapra", *RIVALS), 12 if run.small else 50, tasks=40, arity=8)
    excess = {name: found.excess(name, "tapra", "jct") for name in RIVALS}
    text = "40 tasks, all sized by Eq. 16, longer than TaPRA's: "
    text += ", ".join(f"{name} {percent(each)}" for name, each in excess.items())
    good = all(each[0] > 0 for each in excess.values())
    return Finding(judge(good), text, figures={"excess": excess})


def _shared_least(record: ScheduleRecord) -> float:
    """Return a lower bound with equal shares: a task has at most B_DC / N, and works at least its load."""
    load, cpu = (np.asarray(record.workload.jobs["load"]), np.asarray(record.workload.cluster["cpu"]))
    return float(len(load) * load.max() / (float(SHARES[2]) * cpu.sum()))


@claim(
    PAPER,
    "figure-4a",
    text="200 tasks: Min-Min takes 100% longer than TaPRA, MM-GA 50%, GSA 30%",
    source="section 6.1.4, Fig. 4(a)",
    recorded=NOT_REPRODUCED,
)
def _check_figure_4a(run: Run) -> Finding:
    least: list[float] = []

    def note(label: str, record: ScheduleRecord) -> None:
        if label == "tapra":
            least.append(_shared_least(record))

    names = ("tapra", "min-min", "min-min-equal", *(() if run.small else ("mm-ga", "gsa")))
    found = play_policies(run, SINGLE, names, 8 if run.small else 50, visit=note, tasks=200, arity=8)
    excess = {name: found.excess(name, "tapra", "jct") for name in names[1:]}
    own = found.values("tapra", "jct")
    floor = 100 * (float(np.mean(least)) / float(own.mean()) - 1)
    figures = {"excess": excess, "least_with_equal_shares": floor}
    # MM-GA is not worse than Min-Min, and nothing is better than the floor if limits are split equally
    by_eq_16 = excess["min-min"][2] >= FIGURE_4["mm-ga"]
    by_shares = floor <= FIGURE_4["gsa"]
    text = f"by Eq. 16 Min-Min {percent(excess['min-min'])}, and MM-GA is no worse; with equal shares Min-Min"
    text += (
        f" {percent(excess['min-min-equal'])}, and any algorithm {floor:+.0f}% at least (N max load / B_DC)"
    )
    for name in names[3:]:
        text += f"; {name} {percent(excess[name])} by Eq. 16"
    return Finding(judge(by_eq_16 or by_shares), text, figures=figures)


@claim(
    PAPER,
    "figure-5a",
    text="432 servers: Min-Min takes 430% longer than TaPRA, MM-GA 260%, GSA 80%",
    source="section 6.1.4, Fig. 5(a)",
    recorded=NOT_REPRODUCED,
)
def _check_figure_5a(run: Run) -> Finding:
    names = ("tapra", "min-min", "min-min-equal", *(() if run.small else ("mm-ga", "gsa")))
    found = play_policies(run, SINGLE, names, 20 if run.small else 50, tasks=100, arity=12)
    excess = {name: found.excess(name, "tapra", "jct") for name in names[1:]}
    text = f"by Eq. 16 Min-Min {percent(excess['min-min'])}, and MM-GA is no worse; with equal shares Min-Min"
    text += f" {percent(excess['min-min-equal'])}"
    for name in names[3:]:
        text += f"; {name} {percent(excess[name])} by Eq. 16"
    good = max(each[2] for each in excess.values()) >= FIGURE_5["mm-ga"]
    return Finding(judge(good), text, figures={"excess": excess})


@claim(
    PAPER,
    "offline-40-430",
    text="TaPRA and TaPRA-fast reduce the JCT by 40% to 430% compared to the other algorithms",
    source="abstract, sections 6.1.4 and 7",
    recorded=NOT_REPRODUCED,
)
def _check_offline(run: Run) -> Finding:
    names = ("tapra", "tapra-fast", *RIVALS, *(f"{name}-equal" for name in RIVALS))
    found = play_policies(run, SINGLE, names, 6 if run.small else 50, tasks=40, arity=8)
    excess = {name: found.excess(name, "tapra", "jct") for name in names[1:]}
    by_eq_16 = min(excess[name][0] for name in RIVALS)
    by_shares = [excess[f"{name}-equal"] for name in RIVALS]
    text = "40 tasks, 128 servers, longer than TaPRA's by Eq. 16: "
    text += ", ".join(f"{name} {percent(excess[name])}" for name in RIVALS)
    text += f"; with equal shares {min(by_shares)[0]:+.0f}% to {max(by_shares)[0]:+.0f}%"
    return Finding(judge(by_eq_16 >= 40), text, figures={"excess": excess})


@claim(
    PAPER,
    "jct-grows",
    text="the JCT increases with the number of tasks",
    source="section 6.1.4, Fig. 4(a)",
    recorded=HOLDS,
)
def _check_grows(run: Run) -> Finding:
    names = ("tapra", "tapra-fast", "min-min", "min-min-equal")
    medians: dict[str, list[float]] = {name: [] for name in names}
    counts = (40, 100, 200) if run.small else (40, 80, 120, 160, 200)
    for tasks in counts:
        found = play_policies(run, SINGLE, names, 15 if run.small else 50, tasks=tasks, arity=8)
        for name in names:
            medians[name].append(float(np.median(found.values(name, "jct"))))
    good = all(a < b for row in medians.values() for a, b in itertools.pairwise(row))
    text = f"{counts} tasks, 128 servers, median seconds: "
    text += ", ".join(f"{name} " + " ".join(f"{x:.0f}" for x in row) for name, row in medians.items())
    return Finding(judge(good), text, figures={"medians": medians})


@claim(
    PAPER,
    "figure-4b-many",
    text="with many tasks all algorithms allocate similar amounts of vCPU",
    source="section 6.1.4, Fig. 4(b)",
    recorded=HOLDS,
)
def _check_many(run: Run) -> Finding:
    names = ("tapra", "tapra-fast", "min-min", "min-min-equal", *(() if run.small else ("mm-ga", "gsa")))
    found = play_policies(run, SINGLE, names, 8 if run.small else 50, tasks=200, arity=8)
    means = {name: float(found.values(name, "allocated").mean()) for name in names}
    text = "200 tasks, 128 servers, vCPU: " + ", ".join(f"{name} {mean:.1f}" for name, mean in means.items())
    good = max(means.values()) < 1.05 * min(means.values())
    return Finding(judge(good), text, figures={"means": means})


def _allocated(found: Runs, names: Sequence[str]) -> dict[str, dict[str, tuple[float, float, float]]]:
    return {
        own: {name: found.excess(own, name, "allocated") for name in names} for own in ("tapra", "tapra-fast")
    }


@claim(
    PAPER,
    "figure-4b-few",
    text="with few tasks TaPRA and TaPRA-fast allocate the most vCPU",
    source="section 6.1.4, Fig. 4(b)",
    recorded=NOT_REPRODUCED,
)
def _check_few(run: Run) -> Finding:
    found = play_policies(
        run, SINGLE, ("tapra", "tapra-fast", *RIVALS), 12 if run.small else 50, tasks=40, arity=8
    )
    excess = _allocated(found, RIVALS)
    text = "40 tasks, 128 servers, by Eq. 16, more than GSA: "
    text += ", ".join(f"{own} {percent(each['gsa'])}" for own, each in excess.items())
    good = all(e[0] > 0 for each in excess.values() for e in each.values())
    return Finding(judge(good), text, figures={"excess": excess})


@claim(
    PAPER,
    "figure-5b",
    text="432 servers: TaPRA and TaPRA-fast allocate 15% more vCPU than GSA, 40% more than Min-Min, MM-GA",
    source="section 6.1.4, Fig. 5(b)",
    recorded=NOT_REPRODUCED,
)
def _check_figure_5b(run: Run) -> Finding:
    rivals = ("min-min", "min-min-equal", *(() if run.small else ("mm-ga", "gsa")))
    found = play_policies(
        run, SINGLE, ("tapra", "tapra-fast", *rivals), 20 if run.small else 50, tasks=100, arity=12
    )
    excess = _allocated(found, rivals)
    text = "more than Min-Min by Eq. 16, with equal shares: "
    text += "; ".join(
        f"{own} {percent(each['min-min'])}, {percent(each['min-min-equal'])}" for own, each in excess.items()
    )
    good = all(each[name][2] >= 40 for each in excess.values() for name in rivals[:2])
    return Finding(judge(good), text, figures={"excess": excess})


@claim(
    PAPER,
    "offline-running-time",
    text="TaPRA and TaPRA-fast are 30 times faster than GSA and 200 times faster than Min-Min and MM-GA",
    source="section 6.1.4, Figs. 4(c) and 5(c)",
    recorded=NOT_REPRODUCED,
)
def _check_running_time(run: Run) -> Finding:
    names = ("tapra", "tapra-fast", *RIVALS)
    found = play_policies(run, SINGLE, names, 3 if run.small else 20, tasks=100, arity=8)
    ratios = {own: {name: found.seconds[name] / found.seconds[own] for name in RIVALS} for own in names[:2]}
    moves_tried = 128 * 100 * 101 // 2
    figures = {"ratios": ratios, "placements_of_min_min": moves_tried}
    text = "100 tasks, 128 servers, rival's time over "
    text += "; ".join(
        f"{own}'s: " + ", ".join(f"{name} {x:.3g}" for name, x in each.items())
        for own, each in ratios.items()
    )
    text += f". Min-Min tries {moves_tried:,} placements, each costs nanoseconds if evaluated by its change"
    good = all(each["gsa"] >= 30 and min(each["min-min"], each["mm-ga"]) >= 200 for each in ratios.values())
    return Finding(judge(good), text, figures=figures)
