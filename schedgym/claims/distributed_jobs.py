"""Claims of "Task Allocation and Scheduling for Distributed Job Execution" (GUAN Yitong, NTU, 2022).

Chapter 3 assigns tasks to sites; chapters 4 and 5 share the sites' slots: IMF, AMF, SIG-AMF, GAMF and
SIG-GAMF. No simulator is needed here: the claims are about single decisions.

Properties of fair shares as the thesis defines them, with A_i the aggregate of job i and n jobs:

* Pareto efficiency (4.4.1, 5.3.1): no job can have more without another having less.
* Envy-freeness (4.4.2, 5.3.2): sum_k min(a_lk, d_ik) <= A_i, a_lk being what job l gets for group k.
* Strategy-proofness (4.4.3, 5.3.3): a job that reports other demands d', upward or downward, and gets a'
  has sum_k min(a'_k, d_k) <= A_i.
* Sharing incentive (4.4.4): a_ij >= min(d_ij, u_j / n). With groups (5.24): A_i >= X_i, the most that job i
  can use of u_j / n slots at each site.

A policy fixes the aggregates only. "holds" means: in no matrix with these aggregates; for AMF and GAMF even
if a slot counts as useful whenever any task of the job could run there, not only tasks of the group it was
given for. A counterexample has the flaw in every such matrix. It is the smallest by jobs, sites, groups,
slots in all, tasks in all, of those enumerated (``share_search``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from schedgym.baselines.solvers.balance import balance, greedy_balance
from schedgym.baselines.solvers.linear import linear_completion_shares, linear_max_min
from schedgym.baselines.solvers.max_min import completion_shares, isolated_share, max_min, water_filling
from schedgym.claims.exact_shares import (
    Groups,
    demand_rows,
    fair_shares,
    least_useful,
    merged_sites,
    most_beside,
    most_useful,
    pad,
    prove,
    satisfies_definition,
    settings,
    single_sites,
    unit,
    useful_range,
    water_shares,
)
from schedgym.claims.frame import Finding, Instance, Paper, Run, Verdict, claim
from schedgym.claims.share_search import (
    SINGLE,
    Flaw,
    Search,
    Step,
    aggregates_of,
    below_floors,
    draw_instances,
    draw_lies,
    enumerate_instances,
    enumerate_lies,
    envy,
    pareto,
    search,
    steps_of,
    texts,
    total_flow,
    unfair,
)
from schedgym.errors import InfeasibleInstance

__all__ = ["PAPER"]

PAPER = Paper(
    "distributed-jobs",
    "Task Allocation and Scheduling for Distributed Job Execution (GUAN Yitong, NTU, 2022)",
)

HOLDS, CORRECTED, REFUTED = Verdict.HOLDS, Verdict.CORRECTED, Verdict.REFUTED
MISSED = Verdict.NOT_REPRODUCED
NAMES = {"imf": "IMF", "amf": "AMF", "sig-amf": "SIG-AMF", "gamf": "GAMF", "sig-gamf": "SIG-GAMF"}
CLOSE = 1e-9  # of the solvers' floating-point shares, in slots
LEVELS = 1e-6  # levels of up to six jobs are multiples of 1/360 slots

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


# chapter 1 and 3: assigning tasks ------------------------------------------------------------------


def _all_groups(sites: int) -> Groups:
    """Every set of sites."""
    return tuple(g for n in range(1, sites + 1) for g in itertools.combinations(range(sites), n))


def _completions(orders: Sequence[Sequence[int]], slots: Sequence[int]) -> list[int]:
    """When unit tasks end: jobs in order, each with its tasks per site."""
    load = [0] * len(slots)
    result = []
    for counts in orders:
        load = [before + more for before, more in zip(load, counts, strict=True)]
        result.append(max(-(-load[j] // slots[j]) for j in range(len(slots)) if counts[j]))
    return result


def _per_site(tasks: Sequence[int], groups: Groups, slots: Sequence[int], load: Sequence[int]) -> list[int]:
    """The balanced placement of a job, as tasks per site."""
    placement = balance(tasks, pad(groups), slots, load)[1]
    counts = [0] * len(slots)
    for k, group in enumerate(groups):
        for a, j in enumerate(group):
            counts[j] += int(placement[k, a])
    return counts


def _figure_1_1(tasks: int, slots: Sequence[int]) -> list[int]:
    """Three equal jobs in order, their tasks balanced over all sites on top of those before."""
    everywhere = (tuple(range(len(slots))),)
    load = [0] * len(slots)
    orders = []
    for _ in range(3):
        orders.append(_per_site([tasks], everywhere, slots, load))
        load = [before + more for before, more in zip(load, orders[-1], strict=True)]
    return _completions(orders, slots)


def _confirm_figure(instance: Instance) -> bool:
    loads = itertools.accumulate([instance["tasks"]] * 3)
    least = [math.ceil(Fraction(load, sum(instance["slots"]))) for load in loads]
    # no order of three jobs ends them before the slots can have done the work, nor need any end later
    return instance["completions"] == least != instance["printed"]


@claim(
    PAPER,
    "figure-1.1",
    text="three jobs of 10 unit tasks at three sites that process 3 tasks at a time end at 4, 7 and 10",
    source="chapter 1, Fig. 1.1",
    recorded=CORRECTED,
    confirm=_confirm_figure,
)
def _check_figure(run: Run) -> Finding:
    printed = [4, 7, 10]
    three, one = _figure_1_1(10, [3, 3, 3]), _figure_1_1(10, [1, 1, 1])
    if three == printed:
        return Finding(HOLDS, f"completions {three}")
    verdict = CORRECTED if one == printed else REFUTED
    return Finding(
        verdict,
        f"with 3 tasks at a time they end at {three}; with one task at a time at {one}",
        counterexample={"slots": [3, 3, 3], "tasks": 10, "completions": three, "printed": printed},
        figures={"three_slots": three, "one_slot": one},
    )


class _Queues:
    """Unit tasks on sites, one instant after another: waiting tasks per job, group and site."""

    def __init__(self, groups: Groups, slots: Sequence[int]) -> None:
        self.groups, self.slots = groups, list(slots)
        self.waiting: dict[int, dict[tuple[int, int], int]] = {}
        self.order: list[int] = []

    def load(self, jobs: Iterable[int]) -> list[int]:
        load = [0] * len(self.slots)
        for i in jobs:
            for (_, j), count in self.waiting[i].items():
                load[j] += count
        return load

    def place(self, i: int, tasks: Sequence[int], load: Sequence[int]) -> None:
        placement = balance(tasks, pad(self.groups), self.slots, load)[1]
        self.waiting[i] = {
            (k, j): int(placement[k, a])
            for k, group in enumerate(self.groups)
            for a, j in enumerate(group)
            if placement[k, a]
        }

    def tasks(self, i: int) -> list[int]:
        counts = [0] * len(self.groups)
        for (k, _), count in self.waiting[i].items():
            counts[k] += count
        return counts

    def swag(self, moving: Iterable[int] = ()) -> list[int]:
        """SWAG's order; jobs in ``moving`` are placed anew at every position. Returns the completions."""
        free = {i: self.tasks(i) for i in moving}
        left, order = sorted(self.waiting), list[int]()
        while left:
            before = self.load(order)
            estimates = {}
            for i in left:
                if i in free:
                    self.place(i, free[i], before)
                own = self.load([i])
                estimates[i] = max(
                    Fraction(before[j] + own[j], u) for j, u in enumerate(self.slots) if own[j]
                )
            chosen = min(left, key=lambda i: (estimates[i], i))
            order.append(chosen)
            left.remove(chosen)
        self.order = order
        return _completions([self.load([i]) for i in order], self.slots)

    def step(self) -> list[int]:
        """One instant: every slot of a site runs a task of the first job that waits there. Who ended."""
        for j, u in enumerate(self.slots):
            room = u
            for i in self.order:
                for key in sorted(self.waiting[i]):
                    if key[1] == j and room:
                        taken = min(room, self.waiting[i][key])
                        self.waiting[i][key] -= taken
                        room -= taken
        ended = [i for i in self.order if not any(self.waiting[i].values())]
        for i in ended:
            self.order.remove(i)
            del self.waiting[i]
        return ended


def _assign(
    jobs: Sequence[tuple[int, Sequence[int]]], groups: Groups, slots: Sequence[int], policy: str
) -> list[int]:
    """Responses of jobs (arrival, tasks per group) with unit tasks under a policy of chapter 3."""
    queues = _Queues(groups, slots)
    response = [0] * len(jobs)
    clock = done = 0
    ended: list[int] = []
    while done < len(jobs):
        new = [i for i, (arrival, _) in enumerate(jobs) if arrival == clock]
        for i in new:
            across = policy != "btawj-fcfs"
            queues.place(i, jobs[i][1], queues.load(queues.waiting) if across else [0] * len(slots))
            if policy == "scta":
                queues.swag([i])
        if not (new or ended):
            pass  # no recomputation
        elif policy == "ata":
            queues.swag(list(queues.waiting))
        elif policy == "scta":
            queues.swag()
        else:
            queues.order = sorted(queues.waiting)
        clock += 1
        ended = queues.step()
        for i in ended:
            response[i] = clock - jobs[i][0]
            done += 1
    return response


TABLE_3_1: tuple[tuple[int, tuple[int, int, int]], ...] = ((0, (8, 0, 0)), (1, (0, 15, 0)), (2, (0, 0, 6)))
TABLE_3_1_GROUPS: Groups = ((0, 1), (0, 1, 2), (1, 2))


@claim(
    PAPER,
    "table-3.1",
    text="mean responses 22/3, 20/3 (in order of arrival), 19/3 and 17/3 s under BTAwJ, BTAaJ, SCTA, ATA",
    source="sections 3.2.1 to 3.2.4, Table 3.1",
    recorded=HOLDS,
)
def _check_table_3_1(run: Run) -> Finding:
    printed = {"btawj-fcfs": "22/3", "btaaj-fcfs": "20/3", "scta": "19/3", "ata": "17/3"}
    found = {policy: _assign(TABLE_3_1, TABLE_3_1_GROUPS, [1, 1, 1], policy) for policy in printed}
    means = {policy: str(Fraction(sum(values), 3)) for policy, values in found.items()}
    verdict = HOLDS if means == printed else MISSED
    text = ", ".join(f"{policy} {means[policy]} {values}" for policy, values in found.items())
    return Finding(verdict, f"mean and responses [s]: {text}", figures=means)


def _placements(tasks: Sequence[int], groups: Groups, sites: int) -> set[tuple[int, ...]]:
    """All ways to place a job, as tasks per site."""
    found = {(0,) * sites}
    for count, group in zip(tasks, groups, strict=True):
        splits = [
            tuple(chosen.count(j) for j in range(sites))
            for chosen in itertools.combinations_with_replacement(group, count)
        ]
        found = {tuple(map(sum, zip(a, b, strict=True))) for a in found for b in splits}
    return found


def _least_level(tasks: Sequence[int], groups: Groups, slots: Sequence[int], load: Sequence[int]) -> Fraction:
    """Brute force: the least possible largest number of tasks per slot of a site that the job uses."""
    return min(
        max(Fraction(r + q, u) for q, r, u in zip(counts, load, slots, strict=True) if q)
        for counts in _placements(tasks, groups, len(slots))
    )


def _levels(case: Instance) -> tuple[Fraction, Fraction, Fraction]:
    """C, the largest number of tasks per slot that the flow gives, and the least possible."""
    slots, load, tasks = case["slots"], case["load"], case["tasks"]
    groups = tuple(map(tuple, case["groups"]))
    level = balance(tasks, pad(groups), slots, load)[0]
    counts = _per_site(tasks, groups, slots, load)
    got = max(Fraction(r + q, u) for q, r, u in zip(counts, load, slots, strict=True) if q)
    return level, got, _least_level(tasks, groups, slots, load)


def _small_jobs(slots: int, most: int, load: int) -> Iterator[dict[str, Any]]:
    """All jobs on up to two sites: up to so many slots in all, tasks in all, tasks already at a site."""
    for sites in (1, 2):
        for total, kinds in itertools.product(range(sites, slots + 1), range(1, 2**sites)):
            for groups, amounts in settings(sites, kinds, total):
                for tasks in itertools.product(range(1, most + 1), repeat=kinds):
                    if sum(tasks) <= most:
                        for before in itertools.product(range(load + 1), repeat=sites):
                            yield {
                                "slots": amounts,
                                "groups": [list(group) for group in groups],
                                "tasks": list(tasks),
                                "load": list(before),
                            }


def _confirm_level(instance: Instance) -> bool:
    level, got, best = _levels(instance)
    stated = instance["C"], instance["got"], instance["best"]
    return stated == (str(level), str(got), str(best)) and got > best


@claim(
    PAPER,
    "balanced-allocation",
    text="the flow at the lowest C minimises the largest number of tasks per computing slot of a site",
    source="sections 3.2.1 and 3.2.2, Algorithms 1 and 2",
    recorded=CORRECTED,
    confirm=_confirm_level,
)
def _check_balanced_allocation(run: Run) -> Finding:
    checked = whole = worse = 0
    example: dict[str, Any] | None = None
    smallest: tuple[int, ...] = ()
    for case in _small_jobs(*((4, 4, 2) if run.small else (6, 6, 3))):
        level, got, best = _levels(case)
        checked += 1
        whole += level == math.ceil(best) and got <= level
        worse += got > best
        size = (len(case["slots"]), sum(case["slots"]), sum(case["tasks"]), sum(case["load"]))
        if got > best and (example is None or size < smallest):
            example, smallest = case | {"C": str(level), "got": str(got), "best": str(best)}, size
    figures = {"checked": checked, "least_whole_C": whole, "above_the_least": worse}
    if whole < checked:
        return Finding(MISSED, f"C is not the least whole number in {checked - whole} cases", figures=figures)
    if example is None:
        return Finding(HOLDS, f"{checked:,} jobs against all placements", figures=figures)
    text = (
        f"C is the least rounded up to a whole number in all {checked:,} jobs against all placements; below"
    )
    text += f" the next whole number any maximum flow will do: ours is above the least in {worse:,}"
    return Finding(CORRECTED, text, counterexample=example, figures=figures)


def _estimates(instance: Instance) -> tuple[list[Fraction], list[int]]:
    slots = instance["slots"]
    meant = [
        max(Fraction(q, u) for q, u in zip(row, slots, strict=True) if q) for row in instance["assigned"]
    ]
    return meant, [max(row) for row in instance["assigned"]]


def _confirm_estimate(instance: Instance) -> bool:
    meant, printed = _estimates(instance)
    slots, rows = instance["slots"], instance["assigned"]
    first = [meant.index(min(meant)), printed.index(min(printed))]
    alone = [_completions([rows[i]], slots)[0] for i in first]
    return first == [instance["first_meant"], instance["first_printed"]] and alone[0] < alone[1]


@claim(
    PAPER,
    "completion-estimate",
    text="by e_i = max_j (r_j + q_ij) the first job appended is one that can be completed the earliest",
    source="Algorithms 3 (line 23) and 4 (line 22)",
    recorded=CORRECTED,
    confirm=_confirm_estimate,
)
def _check_completion_estimate(run: Run) -> Finding:
    checked = equal = 0
    worst: dict[str, Any] | None = None
    for total in range(2, 6):
        for low in range(1, total // 2 + 1):
            slots = [low, total - low]
            rows = [row for row in itertools.product(range(7), repeat=2) if any(row)]
            for pair in itertools.product(rows, repeat=2):
                case: dict[str, Any] = {"slots": slots, "assigned": [list(row) for row in pair]}
                meant, printed = _estimates(case)
                if len(set(meant)) < 2 or len(set(printed)) < 2:
                    continue
                checked += 1
                case |= {
                    "first_meant": meant.index(min(meant)),
                    "first_printed": printed.index(min(printed)),
                }
                if low == total - low:
                    equal += case["first_meant"] != case["first_printed"]
                if case["first_meant"] == case["first_printed"] or not _confirm_estimate(case):
                    continue
                if worst is None or sum(map(sum, pair)) < sum(map(sum, worst["assigned"])):
                    worst = case
        if worst is not None:
            break
    if worst is None:
        return Finding(HOLDS, f"{checked:,} pairs of jobs on two sites")
    return Finding(
        CORRECTED if equal == 0 else REFUTED,
        "with the division by u_j that section 3.2.3 describes; without it only where sites have equal slots",
        counterexample=worst,
        figures={"checked": checked, "different_order_with_equal_slots": equal},
    )


def _greedy_levels(loads: Sequence[int], tasks: int, strict: bool) -> list[tuple[int, int]]:
    """The (h, p) of section 3.2.4 for loads in ascending order: all that its conditions allow."""
    found = []
    for h in range(1, len(loads) + 1):
        after = loads[h] if h < len(loads) else 10**6
        below = sum(loads[h - 1] - r for r in loads[: h - 1])
        if not below < tasks <= sum(after - r for r in loads[:h]):
            continue
        for p in range(loads[h - 1] + 1, min(after, loads[h - 1] + tasks) + 1):
            most = sum(p - r for r in loads[:h])
            if most - h < tasks and (tasks < most if strict else tasks <= most):
                found.append((h, p))
        break  # the smallest index
    return found


def _confirm_greedy(instance: Instance) -> bool:
    loads, tasks = instance["loads"], instance["tasks"]
    sums = [sum(max(p - r, 0) for r in loads) for p in range(max(loads) + tasks + 1)]
    return tasks in sums and not _greedy_levels(loads, tasks, True)


@claim(
    PAPER,
    "greedy-level",
    text="there is an integer p with sum_x ((p-1) - r_x) < |T| < sum_x (p - r_x): ATA-Greedy's level",
    source="section 3.2.4",
    recorded=CORRECTED,
    confirm=_confirm_greedy,
)
def _check_greedy_level(run: Run) -> Finding:
    most = (3, 3, 7) if run.small else (4, 4, 12)
    checked = none = right = 0
    smallest: dict[str, Any] | None = None
    for sites in range(1, most[0] + 1):
        for loads in itertools.combinations_with_replacement(range(most[1] + 1), sites):
            for tasks in range(1, most[2] + 1):
                checked += 1
                levels = _greedy_levels(loads, tasks, False)
                placed = greedy_balance([tasks], [list(range(sites))], [1] * sites, loads, literal=True)[0]
                if len(levels) == 1:
                    (h, p), after = levels[0], [r + int(q) for r, q in zip(loads, placed, strict=True)]
                    short = sum(p - r for r in loads[:h]) - tasks
                    right += after == [p - (x < short) if x < h else r for x, r in enumerate(loads)]
                if not _greedy_levels(loads, tasks, True):
                    none += 1
                    smallest = smallest or {"loads": list(loads), "tasks": tasks}
    figures = {"checked": checked, "no_level_as_printed": none, "one_level_with_<=": right}
    if smallest is None:
        return Finding(HOLDS, f"{checked:,} groups", figures=figures)
    return Finding(
        CORRECTED if right == checked else REFUTED,
        f"no such integer in {none:,} of {checked:,} groups (the tasks fill the level exactly); "
        "with |T| <= sum_x (p - r_x) exactly one in all",
        counterexample=smallest,
        figures=figures,
    )


def _optimum(rows: Sequence[Sequence[int]], groups: Groups, slots: Sequence[int]) -> int:
    """Brute force: the least sum of completions of jobs with unit tasks, over all placements and orders.

    One order for all sites is no loss: the job that ends last may as well be last at every site.
    """
    sites = len(slots)
    placements = [_placements(row, groups, sites) for row in rows]
    states: dict[tuple[int, tuple[int, ...]], int] = {(0, (0,) * sites): 0}
    for _ in rows:
        following: dict[tuple[int, tuple[int, ...]], int] = {}
        for (done, load), total in states.items():
            for i in range(len(rows)):
                if done >> i & 1:
                    continue
                for counts in placements[i]:
                    after = tuple(map(sum, zip(load, counts, strict=True)))
                    end = max(-(-after[j] // slots[j]) for j in range(sites) if counts[j])
                    key = (done | 1 << i, after)
                    if total + end < following.get(key, 1 << 30):
                        following[key] = total + end
        states = following
    return min(states.values())


def _arrivals(history: Sequence[Sequence[Any]], groups: Groups, slots: Sequence[int]) -> tuple[int, int]:
    """SCTA at the last of some arrivals: its sum of completions from then on, and the optimum."""
    queues = _Queues(groups, slots)
    clock, total = 0, 0
    for i, (arrival, tasks) in enumerate(history):
        while clock < arrival:
            if queues.step():
                queues.swag()
            clock += 1
        queues.waiting[i] = {(k, group[0]): tasks[k] for k, group in enumerate(groups) if tasks[k]}
        total = sum(queues.swag([i]))
    return total, _optimum([queues.tasks(i) for i in queues.waiting], groups, slots)


def _confirm_ratio(instance: Instance) -> bool:
    groups = tuple(map(tuple, instance["groups"]))
    got = _arrivals(instance["arrivals"], groups, instance["slots"])
    return list(got) == [instance["scta"], instance["optimum"]] and got[0] > len(instance["slots"]) * got[1]


@claim(
    PAPER,
    "m-approximation",
    text="at each arrival, with unit tasks, SCTA and ATA are within m times the least mean response, m sites",
    source="section 3.2.5, (3.1) to (3.3)",
    recorded=CORRECTED,
    confirm=_confirm_ratio,
)
def _check_m_approximation(run: Run) -> Finding:
    worst = {1: Fraction(0), 2: Fraction(0), 3: Fraction(0)}
    checked = 0
    for rows, groups, sites, scta in _outstanding(run):
        best = _optimum(rows, groups, [1] * sites)
        queues = _Queues(groups, [1] * sites)
        for i, row in enumerate(rows):
            queues.place(i, row, [0] * sites)
        found = [sum(queues.swag(range(len(rows))))]
        for placed in scta:
            queues.waiting = {i: dict(counts) for i, counts in enumerate(placed)}
            queues.place(len(placed), rows[-1], [0] * sites)
            found.append(sum(queues.swag([len(placed)])))
        worst[sites] = max(worst[sites], Fraction(max(found), best))
        checked += len(found)
    figures: dict[str, Any] = {"decisions": checked}
    figures |= {f"worst_ratio_{m}_sites": str(ratio) for m, ratio in worst.items()}
    if any(ratio > m for m, ratio in worst.items()):
        return Finding(MISSED, f"with one slot a site the worst ratios are {figures}", figures=figures)
    ata = _worst_ata(run)
    figures["worst_ratio_over_m_of_ata_with_several_slots"] = str(ata)
    text = f"one slot a site: holds in {checked:,} decisions against brute force, worst ratio "
    text += ", ".join(f"{float(ratio):.2f} at m = {m}" for m, ratio in worst.items())
    beyond = _beyond_m()
    if beyond is None:
        return Finding(HOLDS, text, figures=figures)
    text += (
        "; with several slots SCTA can exceed m, whatever flow is taken (the proof counts tasks, not time)"
    )
    text += f"; ATA has {float(ata):.2f} m at most at random"
    return Finding(CORRECTED, text, counterexample=beyond, figures=figures)


def _beyond_m() -> dict[str, Any] | None:
    """SCTA above m times the optimum with several slots: the smallest of a family of arrivals.

    A job fills two sites for C instants exactly (so its flow is the only one), one with c tasks of the first
    site overtakes it there, and when the second site is done a task arrives that is for the first site only.
    """
    groups = ((0,), (0, 1))
    for fast in range(2, 7):
        for level, ahead in itertools.product(range(3, 9), range(1, 7)):
            arrivals = [[0, [0, level * (1 + fast)]], [1, [ahead, 0]], [level, [1, 0]]]
            if ahead < level - 1:
                got, best = _arrivals(arrivals, groups, [1, fast])
                if got > 2 * best:
                    return {
                        "slots": [1, fast],
                        "groups": [list(group) for group in groups],
                        "arrivals": arrivals,
                        "scta": got,
                        "optimum": best,
                    }
    return None


def _worst_ata(run: Run) -> Fraction:
    """ATA with up to four slots a site, two or three sites, at random: the largest ratio to m optima."""
    worst = Fraction(0)
    for _ in range(60 if run.small else 1500):
        sites = int(run.rng.integers(2, 4))
        groups = _all_groups(sites)
        slots = run.rng.integers(1, 5, sites).tolist()
        queues = _Queues(groups, slots)
        rows = []
        for i in range(int(run.rng.integers(2, 4))):
            total = int(run.rng.integers(1, 6))
            rows.append(run.rng.multinomial(total, np.full(len(groups), 1 / len(groups))).tolist())
            queues.place(i, rows[-1], [0] * sites)
        got = sum(queues.swag(range(len(rows))))
        worst = max(worst, Fraction(got, sites * _optimum(rows, groups, slots)))
    return worst


Placed = list[dict[tuple[int, int], int]]


def _outstanding(run: Run) -> Iterator[tuple[list[list[int]], Groups, int, list[Placed]]]:
    """Outstanding jobs and a new one (the last), and placements of the former: enumerated, then random."""
    groups: Groups
    for sites, jobs, top in (
        ((1, 3, 3), (2, 2, 3), (2, 3, 2)) if run.small else ((1, 4, 4), (2, 2, 5), (2, 3, 3))
    ):
        groups = _all_groups(sites)
        rows = [
            list(row) for row in itertools.product(range(top + 1), repeat=len(groups)) if 0 < sum(row) <= top
        ]
        for chosen in itertools.product(rows, repeat=jobs):
            splits = [list(_splits(row, groups)) for row in chosen[:-1]]
            yield list(chosen), groups, sites, [list(placed) for placed in itertools.product(*splits)]
    for _ in range(60 if run.small else 1500):
        sites = int(run.rng.integers(2, 4))
        groups = _all_groups(sites)
        rows = []
        for _ in range(int(run.rng.integers(2, 4))):
            total = int(run.rng.integers(1, 5))
            rows.append(run.rng.multinomial(total, np.full(len(groups), 1 / len(groups))).tolist())
        options = [list(_splits(row, groups)) for row in rows[:-1]]
        yield rows, groups, sites, [[s[int(run.rng.integers(len(s)))] for s in options] for _ in range(8)]


def _splits(row: Sequence[int], groups: Groups) -> Iterator[dict[tuple[int, int], int]]:
    """All placements of a job, by (group, site)."""
    options = [itertools.combinations_with_replacement(g, n) for n, g in zip(row, groups, strict=True)]
    for chosen in itertools.product(*options):
        yield {(k, j): part.count(j) for k, part in enumerate(chosen) for j in groups[k] if j in part}


# chapter 4: properties of IMF, AMF and SIG-AMF; chapter 5: of GAMF and SIG-GAMF --------------------


def _given(instance: Instance) -> tuple[list[list[int]], list[int], list[list[int]], str]:
    return instance["demand"], instance["slots"], instance["groups"], instance["policy"]


def _states(instance: Instance, name: str, values: Iterable[Fraction]) -> bool:
    """Whether an instance says these values, if it says any."""
    return name not in instance or instance[name] == [str(x) for x in values]


def _against(found: Search, verdict: Verdict = REFUTED, more: str = "", **figures: Any) -> Finding:
    text = f"the smallest in {found.looked()}" + (f"; {more}" if more else "")
    counted = {"enumerated": found.enumerated, "complete": found.complete()} | figures
    return Finding(verdict, text, counterexample=found.found, figures=counted)


def _nothing(found: Search, more: str = "", **figures: Any) -> Finding:
    text = f"none against it: {found.looked()}" + (f"; {more}" if more else "")
    counted = {"enumerated": found.enumerated, "random": found.drawn, "complete": found.complete()}
    return Finding(HOLDS, text, figures=counted | figures)


@claim(
    PAPER,
    "water-filling-example",
    text="of demands <2, 4, 10, 40> on 20 slots the max-min fair vector is <2, 4, 7, 7>, not <2, 3, 7, 8>",
    source="section 4.1",
    recorded=HOLDS,
)
def _check_water_filling(run: Run) -> Finding:
    found = water_filling(20, [2, 4, 10, 40]).tolist()
    shares = fair_shares(np.array([[[2], [4], [10], [40]]]), np.array([[20]]), ((0,),), "amf")
    other = shares._replace(aggregate=np.array([[2, 3, 7, 8]]) * unit(4))
    fair = bool(satisfies_definition(shares)[0]), bool(satisfies_definition(other)[0])
    right = found == [2.0, 4.0, 7.0, 7.0] and fair == (True, False)
    verdict = HOLDS if right else MISSED
    return Finding(
        verdict, f"the solver gives {found}, fair by Definition 4.1: {fair[0]}; the other: {fair[1]}"
    )


def _confirm_pareto(instance: Instance) -> bool:
    demand, slots, groups, policy = _given(instance)
    most = int(total_flow(np.array([demand]), np.array([slots]), tuple(map(tuple, groups)))[0])
    if policy == "imf":
        return float(water_filling(slots, demand).sum()) < most - LEVELS
    return sum(prove(demand, slots, groups, policy).aggregates) < most


def _confirm_envy(instance: Instance) -> bool:
    demand, slots, groups, policy = _given(instance)
    i, other = instance["job"], instance["envies"]
    if policy == "imf":
        share = water_filling(slots, demand)
        return float(np.minimum(share[other], demand[i]).sum() - share[i].sum()) > LEVELS
    own = prove(demand, slots, groups, policy).aggregates
    useful = useful_range(demand, slots, groups, policy, other, demand[i])[policy != "sig-gamf"]
    return _states(instance, "aggregates", own) and instance["useful"] == str(useful) and useful > own[i]


def _confirm_lie(instance: Instance) -> bool:
    demand, slots, groups, policy = _given(instance)
    i = instance["job"]
    lying = [instance["report"] if x == i else row for x, row in enumerate(demand)]
    if policy == "imf":
        useful = np.minimum(water_filling(slots, lying)[i], demand[i]).sum()
        return float(useful - water_filling(slots, demand)[i].sum()) > LEVELS
    honest = prove(demand, slots, groups, policy).aggregates
    gets = useful_range(lying, slots, groups, policy, i, demand[i])[policy != "sig-gamf"]
    return (
        _states(instance, "aggregates", honest)
        and _states(instance, "aggregates_if_lying", prove(lying, slots, groups, policy).aggregates)
        and instance["useful_if_lying"] == str(gets)
        and gets > honest[i]
    )


def _register_properties(policy: str, sources: Sequence[str], refuted: Sequence[str] = ()) -> None:
    name = NAMES[policy]

    @claim(
        PAPER,
        f"{policy}-pareto",
        text=f"{name} is Pareto efficient",
        source=sources[0],
        recorded=HOLDS,
        confirm=_confirm_pareto,
    )
    def check_pareto(run: Run) -> Finding:
        found = search(policy, pareto(policy), steps_of(policy, run.small), run.rng, run.small)
        return _nothing(found) if found.found is None else _against(found)

    @claim(
        PAPER,
        f"{policy}-envy",
        text=f"{name} is envy-free",
        source=sources[1],
        recorded=REFUTED if "envy" in refuted else HOLDS,
        confirm=_confirm_envy,
    )
    def check_envy(run: Run) -> Finding:
        found = search(policy, envy(policy), steps_of(policy, run.small), run.rng, run.small)
        if found.found is None:
            return _nothing(found)
        return _against(
            found, more="so in every matrix with these aggregates" if policy == "sig-gamf" else ""
        )

    @claim(
        PAPER,
        f"{policy}-strategy",
        text=f"{name} is strategy-proof",
        source=sources[2],
        recorded=REFUTED if "strategy" in refuted else HOLDS,
        confirm=_confirm_lie,
    )
    def check_strategy(run: Run) -> Finding:
        found = enumerate_lies(policy, steps_of(policy, run.small))
        if found.found is None:
            lie, drawn = draw_lies(policy, run.rng, run.small)
            found = found._replace(found=lie, drawn=drawn)
        figures = {"misreports": found.enumerated, "random": found.drawn, "complete": found.complete()}
        looked = found.looked("misreports")
        if found.found is None:
            return Finding(HOLDS, f"none against it: {looked}", figures=figures)
        more = "; so in every matrix with these aggregates" if policy == "sig-gamf" else ""
        return Finding(
            REFUTED, f"the smallest in {looked}{more}", counterexample=found.found, figures=figures
        )


def _register_fairness(policy: str, name: str, text: str, source: str) -> None:
    @claim(PAPER, name, text=text, source=source, recorded=HOLDS, confirm=_confirm_unfair)
    def check(run: Run) -> Finding:
        found = search(policy, unfair(policy), steps_of(policy, run.small), run.rng, run.small)
        if found.found is not None:
            return _against(found)
        compared, right, kept = _compare_solver(run, policy, 600 if run.small else 20000)
        figures = {"solver_compared": compared, "solver_right": right, "solver_floors_met": kept}
        if right < compared or kept < compared:
            return Finding(MISSED, f"the shipped solver differs: {figures}", figures=figures)
        more = f"the shipped solver gives the same in {compared:,}"
        if policy == "amf":
            same, brute = _brute_force()
            figures |= {"brute_force": brute}
            if same < brute:
                return Finding(MISSED, f"{brute - same} brute-force vectors differ", figures=figures)
            more += f", brute force over matrices in {brute}"
        return _nothing(found, f"by Definition 4.1; {more}", **figures)


def _confirm_unfair(instance: Instance) -> bool:
    demand, slots, groups, policy = _given(instance)
    shares = fair_shares(np.array([demand]), np.array([slots]), tuple(map(tuple, groups)), policy)
    return not satisfies_definition(shares)[0]


def _compare_solver(run: Run, policy: str, count: int) -> tuple[int, int, int]:
    """The shipped solver on random instances: how many, with the right aggregates, with floors met."""
    compared = right = kept = 0
    for demand, slots, groups in draw_instances(run.rng, policy in SINGLE, count // 20, 20):
        jobs = demand.shape[1]
        shares = fair_shares(demand, slots, groups, policy)
        exact, least = shares.aggregate / unit(jobs), shares.least / unit(jobs)
        for b in range(len(demand)):
            floors = _floors(demand[b], slots[b], groups, policy)
            found, allocation = max_min(demand[b], pad(groups), slots[b], floors=floors)
            same = (found == exact[b]).all() if floors is None else np.abs(found - exact[b]).max() <= CLOSE
            sums = allocation.sum(axis=(1, 2))
            met = (sums >= least[b] - CLOSE).all()
            if policy == "sig-amf":
                met = (allocation[:, :, 0] >= shares.held[b] / unit(jobs) - CLOSE).all()
            compared, right, kept = compared + 1, right + bool(same), kept + bool(met)
    return compared, right, kept


def _floors(demand: Integers, slots: Integers, groups: Groups, policy: str) -> Floats | None:
    """The floors of a policy as the solvers take them."""
    if policy == "sig-gamf":
        return isolated_share(demand, pad(groups), slots)
    if policy == "sig-amf":
        return np.asarray(np.minimum(demand, slots[[group[0] for group in groups]] / len(demand)))
    return None


def _brute_force() -> tuple[int, int]:
    """AMF of two jobs on two sites as the lexicographic maximum over all matrices in half slots.

    Returns:
        how many are equal, and how many were compared. All levels of two jobs are multiples of 1/2.
    """
    equal = compared = 0
    for slots in ((1, 1), (1, 2), (2, 2), (1, 3)):
        rows = demand_rows(single_sites(2), slots).tolist()
        for first, second in itertools.combinations_with_replacement(rows, 2):
            best = max(
                sorted((a + b, c + d))
                for a in range(2 * first[0] + 1)
                for c in range(min(2 * second[0], 2 * slots[0] - a) + 1)
                for b in range(2 * first[1] + 1)
                for d in range(min(2 * second[1], 2 * slots[1] - b) + 1)
            )
            shares = fair_shares(np.array([[first, second]]), np.array([slots]), single_sites(2), "amf")
            compared += 1
            equal += best == sorted((2 * shares.aggregate[0] // unit(2)).tolist())
    return equal, compared


def _confirm_below_floors(instance: Instance) -> bool:
    demand, slots, groups, policy = _given(instance)
    own = prove(demand, slots, groups, policy).aggregates
    if policy == "amf":
        sig = prove(demand, slots, groups, "sig-amf").aggregates
        return _states(instance, "aggregates", own) and _states(instance, "sig_amf", sig) and own != sig
    floors = prove(demand, slots, groups, "sig-gamf").floors
    return (
        _states(instance, "aggregates", own)
        and _states(instance, "isolated", floors)
        and any(a < x for a, x in zip(own, floors, strict=True))
    )


def _confirm_imf_sharing(instance: Instance) -> bool:
    demand, slots, _, _ = _given(instance)
    floors = np.minimum(demand, np.array(slots) / len(demand))
    return bool((water_filling(slots, demand) < floors - LEVELS).any())


_register_properties("imf", ["section 4.3"] * 3)


@claim(
    PAPER,
    "imf-sharing",
    text="IMF satisfies sharing incentive: a_ij >= min(d_ij, u_j / n)",
    source="section 4.3",
    recorded=HOLDS,
    confirm=_confirm_imf_sharing,
)
def _check_imf_sharing(run: Run) -> Finding:
    def flaw(demand: Integers, slots: Integers, groups: Groups) -> Iterator[tuple[Flags, Mapping[str, Any]]]:
        one = unit(demand.shape[1])
        floor = np.minimum(demand * one, slots[:, None] * (one // demand.shape[1]))
        yield (water_shares(demand, slots) < floor).any(axis=(1, 2)), {}

    found = search("imf", flaw, steps_of("imf", run.small), run.rng, run.small)
    return _nothing(found) if found.found is None else _against(found)


_register_fairness(
    "amf",
    "amf-achievable",
    "there is an AMF allocation, and its vector of aggregates is unique",
    "Lemmas 4.1, 4.2, Theorem 4.2",
)


def _confirm_two_matrices(instance: Instance) -> bool:
    demand, slots, groups, policy = _given(instance)
    tasks = [d if k == instance["group"] else 0 for k, d in enumerate(demand[instance["job"]])]
    spread = useful_range(demand, slots, groups, policy, instance["job"], tasks)
    return spread[0] < spread[1] and _states(instance, "least_and_most", spread)


@claim(
    PAPER,
    "amf-matrix",
    text="the allocation matrix of AMF may not be unique",
    source="section 4.3.1",
    recorded=HOLDS,
    confirm=_confirm_two_matrices,
)
def _check_amf_matrix(run: Run) -> Finding:
    def flaw(demand: Integers, slots: Integers, groups: Groups) -> Iterator[tuple[Flags, Mapping[str, Any]]]:
        shares = fair_shares(demand, slots, groups, "amf")
        jobs, kinds = demand.shape[1:]
        for i, k in itertools.product(range(jobs), range(kinds)):
            tasks = np.where(np.arange(kinds) == k, demand[:, i], 0)
            least, most = least_useful(shares, i, tasks), most_useful(shares, i, tasks)
            spread = np.stack([least, most], axis=1)
            details = {"job": i, "group": k, "least_and_most": lambda b, s=spread: texts(s[b], jobs)}
            yield least < most, details

    found = search("amf", flaw, steps_of("amf", run.small))
    if found.found is None:
        return Finding(MISSED, f"unique in {found.looked()}")
    text = f"the smallest in {found.looked()} in which a job can have more or less of a site"
    return Finding(HOLDS, text, witness=found.found)


_register_properties("amf", ["Theorem 4.3", "Theorem 4.4", "Theorem 4.5"])


def _lying_matrices(run: Run) -> Iterator[tuple[Integers, Floats, Floats]]:
    """Random AMF instances: demand [J, M], an AMF matrix, and one for the case that job 0 lies."""
    for demand, slots, groups in draw_instances(run.rng, True, 40 if run.small else 1500, 20):
        for tasks, capacity in zip(demand, slots, strict=True):
            lie = tasks.copy()
            lie[0] = np.maximum(tasks[0] + run.rng.integers(-5, 7, tasks.shape[1]), 0)
            turns = [run.rng.permutation(len(tasks)) for _ in range(2)]
            matrices = [
                completion_shares(case, pad(groups), capacity, order=turn)[1][:, :, 0]
                for case, turn in zip((tasks, lie), turns, strict=True)
            ]
            yield tasks, matrices[0], matrices[1]


@claim(
    PAPER,
    "amf-lying-per-site",
    text="when a job lies, the useful allocations of all jobs together grow at no site",
    source="Lemma 4.3, Corollary 4.1",
    recorded=HOLDS,
)
def _check_lemma_4_3(run: Run) -> Finding:
    checked, grown = 0, 0.0
    for demand, honest, lying in _lying_matrices(run):
        checked += 1
        grown = max(grown, float((np.minimum(lying, demand) - honest).sum(axis=0).max()))
    figures = {"checked": checked, "largest_growth": grown}
    text = (
        f"{checked:,} random lies, matrices in random order of Algorithm 6: largest growth {grown:.1e} slots"
    )
    return Finding(HOLDS if grown < LEVELS else MISSED, text, figures=figures)


@claim(
    PAPER,
    "amf-lying-spreads",
    text="if a job benefits, also at site j, and an honest job loses at site j, then the latter benefits too",
    source="Lemma 4.4",
    recorded=HOLDS,
)
def _check_lemma_4_4(run: Run) -> Finding:
    checked = met = broken = 0
    for demand, honest, lying in _lying_matrices(run):
        change = np.minimum(lying, demand) - honest
        total = change.sum(axis=1)
        checked += 1
        for h, k in itertools.permutations(range(len(demand)), 2):
            if k and total[h] > LEVELS and ((change[h] > LEVELS) & (change[k] < -LEVELS)).any():
                met += 1
                broken += bool(total[k] < LEVELS)
    text = (
        f"{checked:,} random lies: {met:,} times the conditions hold, {broken} times the job does not benefit"
    )
    figures = {"checked": checked, "conditions_met": met, "broken": broken}
    return Finding(HOLDS if met and not broken else MISSED, text, figures=figures)


@claim(
    PAPER,
    "amf-sharing",
    text="AMF can violate the sharing incentive property",
    source="Theorem 4.6",
    recorded=HOLDS,
    confirm=_confirm_below_floors,
)
def _check_amf_sharing(run: Run) -> Finding:
    example, slots, groups = [[2, 2], [0, 3]], [4, 4], single_sites(2)
    own = prove(example, slots, groups, "amf").aggregates
    spread = useful_range(example, slots, groups, "amf", 0, [0, 2])
    sig = prove(example, slots, groups, "sig-amf").aggregates
    if own != [3, 3] or sum(spread) != 2 or spread[0] != spread[1] or sig != [4, 2]:
        return Finding(MISSED, f"the proof's example has aggregates {own}, {spread} of site B, SIG-AMF {sig}")
    found = search("amf", below_floors("amf"), steps_of("amf", run.small))
    if found.found is None:
        return Finding(MISSED, f"no instance: {found.looked()}")
    text = (
        "the proof's example: aggregates (3, 3), job 1 has 1 slot of site B in every matrix, SIG-AMF (4, 2)"
    )
    text += f"; the smallest in {found.looked()} in which no matrix meets (4.3) and (4.4)"
    return Finding(HOLDS, text, witness=found.found)


@claim(
    PAPER,
    "amf-balance",
    text="aggregates are more balanced under AMF than under IMF (at every decision no larger deviation)",
    source="section 4.7",
    recorded=HOLDS,
    confirm=lambda instance: _confirm_balance(instance),
)
def _check_amf_balance(run: Run) -> Finding:
    def flaw(demand: Integers, slots: Integers, groups: Groups) -> Iterator[tuple[Flags, Mapping[str, Any]]]:
        own, other = (aggregates_of(demand, slots, groups, policy) for policy in ("amf", "imf"))
        yield _spread(own) > _spread(other), {"associated": single_sites(slots.shape[1]), "compared": "imf"}

    found = search("amf", flaw, steps_of("amf", run.small), run.rng, run.small)
    return _nothing(found) if found.found is None else _against(found)


def _spread(aggregates: Integers) -> Integers:
    """[B]: J^2 times the variance of the aggregates."""
    jobs = aggregates.shape[1]
    return np.asarray(jobs * (aggregates**2).sum(axis=1) - aggregates.sum(axis=1) ** 2)


def _variance(values: Sequence[Fraction]) -> Fraction:
    mean = sum(values, Fraction(0)) / len(values)
    return sum(((x - mean) ** 2 for x in values), Fraction(0)) / len(values)


def _at_associated(demand: Integers, groups: Groups, sites: int) -> Integers:
    """Demand [..., M] if every task must run at the first site of its group."""
    result = np.zeros((*demand.shape[:-1], sites), dtype=np.int64)
    for k, group in enumerate(groups):
        result[..., group[0]] += demand[..., k]
    return result


def _confirm_balance(instance: Instance) -> bool:
    demand, slots, groups, policy = _given(instance)
    own = prove(demand, slots, groups, policy).aggregates
    tasks = _at_associated(np.array(demand), tuple(map(tuple, groups)), len(slots)).tolist()
    if instance["compared"] == "imf":
        shares = water_shares(np.array([tasks]), np.array([slots]))[0].sum(axis=1)
        other = [Fraction(int(x), unit(len(demand))) for x in shares]
    else:
        other = prove(tasks, slots, single_sites(len(slots)), "amf").aggregates
    return _states(instance, "aggregates", own) and _variance(own) > _variance(other)


_register_properties("sig-amf", ["section 4.4.4"] * 3)
_register_fairness(
    "sig-amf",
    "sig-amf-sharing",
    "max-min fair allocations under (4.3) and (4.4) exist and satisfy sharing incentive",
    "section 4.4.4",
)


@claim(
    PAPER,
    "demand-beyond-slots",
    text="where a demand exceeds the site's slots, the aggregates do not depend on by how much",
    source="section 4.5.3",
    recorded=HOLDS,
)
def _check_demand_beyond_slots(run: Run) -> Finding:
    sizes = [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (2, 3)]
    top = 3 if run.small else 5
    checked = {"amf": 0, "sig-amf": 0, "gamf": 0, "sig-gamf": 0}
    broken = dict.fromkeys(checked, 0)
    for policy, (jobs, sites) in itertools.product(checked, sizes):
        single = policy in SINGLE
        for kinds in (sites,) if single else range(1, min(2**sites, 4 if run.small and sites == 3 else 5)):
            for slots in range(sites, top + 1):
                if not single and (kinds > 2 or jobs > 2) and slots > 3:
                    continue
                for demand, amounts, groups in enumerate_instances(
                    Step(jobs, sites, kinds, slots, single), beyond=2 if kinds < 3 else 1
                ):
                    most = np.array([amounts[0, list(group)].sum() for group in groups])
                    own = aggregates_of(demand, amounts, groups, policy)
                    cut = aggregates_of(np.minimum(demand, most), amounts, groups, policy)
                    checked[policy] += len(demand)
                    broken[policy] += int((own != cut).any(axis=1).sum())
    text = ", ".join(f"{NAMES[policy]} {count:,}" for policy, count in checked.items())
    figures = {f"checked_{policy}": count for policy, count in checked.items()}
    if any(broken.values()):
        return Finding(MISSED, f"different aggregates: {broken}", figures=figures)
    return Finding(HOLDS, f"the same with demands cut to the slots of their sites: {text}", figures=figures)


# the algorithms of chapters 4 and 5 ----------------------------------------------------------------


def _linear(run: Run, policy: str, count: int, literal: bool) -> tuple[int, int, int]:
    """Algorithms 5 and 7 on random instances: how many are right, wrong, and never end."""
    right = wrong = endless = 0
    rng = np.random.default_rng(run.rng.integers(2**32))
    for demand, slots, groups in draw_instances(rng, policy in SINGLE, count, 1):
        exact = fair_shares(demand, slots, groups, policy).aggregate[0] / unit(demand.shape[1])
        floors = _floors(demand[0], slots[0], groups, policy)
        try:
            found = linear_max_min(demand[0], pad(groups), slots[0], floors=floors, literal=literal)[0]
        except InfeasibleInstance:
            endless += 1
            continue
        same = np.abs(found - exact).max() < LEVELS
        right, wrong = right + bool(same), wrong + (not same)
    return right, wrong, endless


def _programs(run: Run) -> int:
    return 60 if run.small else 1000


@claim(
    PAPER,
    "algorithm-5",
    text="Algorithm 5 computes AMF allocations",
    source="section 4.5.1",
    recorded=HOLDS,
)
def _check_algorithm_5(run: Run) -> Finding:
    right, wrong, endless = _linear(run, "amf", _programs(run), literal=True)
    text = f"as printed, with HiGHS: right in {right:,} of {right + wrong + endless:,} random instances"
    return Finding(HOLDS if not wrong + endless else MISSED, text, figures={"right": right, "wrong": wrong})


def _printed_check(policy: str) -> Flaw:
    """A job that can get more than T_max is stopped at it by "= T_max" for the others, in the first round.

    Some solution of the linear program with the largest T gives job l exactly T_max, and everything is
    given out, so nobody can simply have more; but the check fails, since the floor of another job is above
    T_max.
    """

    def flaw(demand: Integers, slots: Integers, groups: Groups) -> Iterator[tuple[Flags, Mapping[str, Any]]]:
        jobs = demand.shape[1]
        shares = fair_shares(demand, slots, groups, policy)
        level = shares.aggregate.min(axis=1)
        total = shares.aggregate.sum(axis=1)
        base = shares.held.sum(axis=2)
        for i in range(jobs):
            others = [x for x in range(jobs) if x != i]
            alone = (shares.capacity + shares.need[:, others].sum(1)).min(1) + base[:, others].sum(1)
            mask = (shares.aggregate[:, i] > level) & (shares.least[:, i] <= level)
            mask &= (shares.least[:, others] > level[:, None]).any(axis=1)
            mask &= alone >= total - level
            if policy == "sig-gamf":  # line 15 asks for any free site at all
                mask &= total == slots.sum(axis=1) * unit(jobs)
            yield (
                mask,
                {
                    "job": i,
                    "aggregates": lambda b: texts(shares.aggregate[b], jobs),
                    "level": lambda b: texts([level[b]], jobs)[0],
                },
            )

    return flaw


def _with_solution(found: Search) -> Search:
    """Add the aggregates of a solution with the largest T that stops the job."""
    instance = dict(found.found or {})
    demand, slots, groups, policy = _given(instance)
    proof = prove(demand, slots, groups, policy)
    level = Fraction(instance["level"])
    solution = [max(level, floor) for floor in proof.floors]
    for i in range(len(demand)):
        if i != instance["job"]:
            solution[i] = most_beside(proof, solution, i)
    return found._replace(found=instance | {"solution": [str(x) for x in solution]})


def _confirm_printed_check(instance: Instance) -> bool:
    demand, slots, groups, policy = _given(instance)
    proof = prove(demand, slots, groups, policy)
    level, job = min(proof.aggregates), instance["job"]
    solution = [Fraction(text) for text in instance["solution"]]
    feasible = all(
        sum(max(x - sum(held) - row[s], Fraction(0)) for x, held, row in zip(*rows, strict=True)) <= capacity
        for rows in [(solution, proof.held, proof.need)]
        for s, capacity in enumerate(proof.capacity)
    )
    everything = total_flow(np.array([demand]), np.array([slots]), tuple(map(tuple, groups)))[0]
    return (
        feasible
        and all(x >= max(level, floor) for x, floor in zip(solution, proof.floors, strict=True))
        and sum(solution) == everything
        and solution[job] == level < sum(demand[job])
        and proof.aggregates[job] > level
        and any(floor > level for i, floor in enumerate(proof.floors) if i != job)
        and _states(instance, "aggregates", proof.aggregates)
        and instance["level"] == str(level)
    )


def _check_printed(run: Run, policy: str) -> Finding:
    found = search(policy, _printed_check(policy), steps_of(policy, run.small))
    right, wrong, endless = _linear(run, policy, _programs(run), literal=True)
    meant = _linear(run, policy, _programs(run), literal=False)
    figures = {
        "printed_right": right,
        "printed_wrong": wrong,
        "printed_endless": endless,
        "meant_right": meant[0],
    }
    text = f"with HiGHS, printed: {wrong} wrong"
    text += f", {endless} without end" if endless else ""
    text += (
        f' of {right + wrong + endless:,} random instances; meant (">= T_max"): {meant[1] + meant[2]} wrong'
    )
    if found.found is None:
        return Finding(HOLDS if not wrong + endless else MISSED, text, figures=figures)
    verdict = CORRECTED if not meant[1] + meant[2] else REFUTED
    return _against(
        _with_solution(found), verdict, f"the job can get more than T_max, and is stopped; {text}", **figures
    )


@claim(
    PAPER,
    "algorithm-5-sig",
    text="Algorithm 5 with (4.3) and (4.4) computes SIG-AMF allocations",
    source="section 4.5.1, Algorithm 5, line 13",
    recorded=CORRECTED,
    confirm=_confirm_printed_check,
)
def _check_algorithm_5_sig(run: Run) -> Finding:
    return _check_printed(run, "sig-amf")


def _completion(run: Run, policies: Sequence[str], count: int) -> Finding:
    """Algorithms 6 and 8 against the basic allocation and the linear program."""
    checked = 0
    moved = lost = short = 0.0
    raised = 0
    for number, (demand, slots, groups) in enumerate(
        draw_instances(run.rng, policies[0] in SINGLE, count, 1)
    ):
        tasks, capacity, policy = demand[0], slots[0], policies[number % len(policies)]
        if not tasks.any():
            continue
        floors = _floors(tasks, capacity, groups, policy)
        basic, matrix = max_min(tasks, pad(groups), capacity, floors=floors)
        aggregates, allocation, rate = completion_shares(tasks, pad(groups), capacity, floors=floors)
        order = np.argsort(tasks.sum(axis=1), kind="stable")
        first = int(next(i for i in order if tasks[i].any()))
        busy = tasks[first] > 0
        before = float((matrix[first].sum(axis=1)[busy] / tasks[first][busy]).min())
        given = floors if floors is not None and floors.ndim == 2 else None
        best = linear_completion_shares(tasks, pad(groups), capacity, aggregates, floors=given)[1][first]
        sums = allocation.sum(axis=(1, 2))
        moved = max(moved, float(np.abs(sums - basic).max()), float(np.abs(aggregates - basic).max()))
        lost = max(lost, before - float(rate[first]))
        short = max(short, abs(float(best - rate[first])))
        raised += float(rate[first]) > before + LEVELS
        checked += 1
    figures = {
        "checked": checked,
        "largest_change_of_an_aggregate": moved,
        "largest_loss_of_the_first_y": lost,
        "largest_difference_to_the_program": short,
        "first_y_raised": raised,
    }
    good = moved < CLOSE and lost < CLOSE and short < 10 * LEVELS
    text = f"{checked:,} random instances: aggregates move by {moved:.0e} slots at most; the first job's y is"
    text += f" the program's optimum (within {short:.0e}), above the basic allocation's in {raised:,}"
    return Finding(HOLDS if good else MISSED, text, figures=figures)


@claim(
    PAPER,
    "algorithm-6",
    text="Algorithm 6 keeps all aggregates and gives the first job the least estimated completion time",
    source="section 4.5.2",
    recorded=HOLDS,
)
def _check_algorithm_6(run: Run) -> Finding:
    return _completion(run, ("amf", "sig-amf"), _programs(run))


_register_fairness(
    "gamf",
    "gamf-achievable",
    "there is a GAMF allocation, and its vector of aggregates is unique",
    "Lemmas 5.1, 5.2, Theorem 5.1",
)
_register_properties("gamf", ["Theorem 5.2", "Theorem 5.3", "Theorem 5.4"])


@claim(
    PAPER,
    "gamf-sharing",
    text="GAMF can violate the sharing incentive property",
    source="section 5.3.4",
    recorded=HOLDS,
    confirm=_confirm_below_floors,
)
def _check_gamf_sharing(run: Run) -> Finding:
    found = search("gamf", below_floors("gamf"), steps_of("gamf", run.small))
    if found.found is None:
        return Finding(MISSED, f"no instance: {found.looked()}")
    return Finding(HOLDS, f"the smallest in {found.looked()} with A_i < X_i", witness=found.found)


_register_properties("sig-gamf", ["section 5.3.4"] * 3, ("envy", "strategy"))
_register_fairness(
    "sig-gamf",
    "sig-gamf-sharing",
    "max-min fair allocations under (5.24) exist and satisfy sharing incentive",
    "section 5.3.4",
)


def _confirm_differs(instance: Instance) -> bool:
    demand, slots, groups, policy = _given(instance)
    own, other = (prove(demand, slots, groups, p).aggregates for p in (policy, "sig-amf"))
    return _states(instance, "aggregates", own) and _states(instance, "sig_amf", other) and own != other


@claim(
    PAPER,
    "sig-gamf-is-sig-amf",
    text="as AMF is GAMF with one available site per task, SIG-AMF is SIG-GAMF with one",
    source="section 5.3.4",
    recorded=REFUTED,
    confirm=_confirm_differs,
)
def _check_sig_gamf_is_sig_amf(run: Run) -> Finding:
    def flaw(demand: Integers, slots: Integers, groups: Groups) -> Iterator[tuple[Flags, Mapping[str, Any]]]:
        jobs = demand.shape[1]
        own, other = (aggregates_of(demand, slots, groups, p) for p in ("sig-gamf", "sig-amf"))
        details = {"aggregates": lambda b: texts(own[b], jobs), "sig_amf": lambda b: texts(other[b], jobs)}
        yield (own != other).any(axis=1), details

    found = search("sig-gamf", flaw, steps_of("sig-amf", run.small))
    if found.found is None:
        return _nothing(found)
    return _against(found, more="(5.24) asks for the sum that (4.3) and (4.4) ask for, not site by site")


# one job
ALONE = [
    Step(1, sites, kinds, slots, False)
    for sites, kinds in ((1, 1), (2, 1), (2, 2), (2, 3))
    for slots in range(sites, 6)
]


def _printed_domain(demand: Integers, slots: Integers, groups: Groups) -> tuple[Integers, Integers, Groups]:
    """The instance that (5.2) to (5.4) describe without a_ijk >= 0: sites in a chain of groups are one."""
    names = merged_sites(groups, slots.shape[1])
    kept = sorted(set(names))
    merged = np.stack(
        [slots[:, [j for j, n in enumerate(names) if n == name]].sum(axis=1) for name in kept], axis=1
    )
    return demand, merged, tuple((kept.index(names[group[0]]),) for group in groups)


def _with_matrix(found: Search) -> Search:
    """Add a matrix [J][K][M] with the printed aggregates that satisfies (5.1) to (5.3)."""
    instance = dict(found.found or {})
    demand, slots, groups, _ = _given(instance)
    keys = [(i, k, j) for i in range(len(demand)) for k, group in enumerate(groups) for j in group]
    of_site = [[float(key[2] == j) for key in keys] for j in range(len(slots))]
    pairs = list(itertools.product(range(len(demand)), range(len(groups))))
    of_group = [[float(key[:2] == pair) for key in keys] for pair in pairs]
    of_job = [[float(key[0] == i) for key in keys] for i in range(len(demand))]
    result = linprog(
        np.zeros(len(keys)),
        A_ub=np.array(of_site + of_group + [[-x for x in row] for row in of_group]),
        b_ub=np.array([*slots, *(demand[i][k] for i, k in pairs), *([0.0] * len(pairs))], dtype=np.float64),
        A_eq=np.array(of_job),
        b_eq=np.array([float(Fraction(text)) for text in instance["printed"]]),
        bounds=(None, None),
        method="highs",
    )
    matrix = [[["0"] * len(slots) for _ in groups] for _ in demand]
    for (i, k, j), value in zip(keys, result.x, strict=True):
        matrix[i][k][j] = str(Fraction(float(value)).limit_denominator(360))
    return found._replace(found=instance | {"matrix": matrix})


def _confirm_domain(instance: Instance) -> bool:
    demand, slots, groups, _ = _given(instance)
    matrix = [[[Fraction(text) for text in row] for row in rows] for rows in instance["matrix"]]
    sums = [[sum(row, Fraction(0)) for row in rows] for rows in matrix]
    rational = all(0 <= x <= d for a, b in zip(sums, demand, strict=True) for x, d in zip(a, b, strict=True))
    rational &= all(
        not row[j] or j in g
        for rows in matrix
        for row, g in zip(rows, groups, strict=True)
        for j in range(len(slots))
    )
    feasible = all(sum(row[j] for rows in matrix for row in rows) <= u for j, u in enumerate(slots))
    most = total_flow(np.array([demand]), np.array([slots]), tuple(map(tuple, groups)))[0]
    return (
        rational
        and feasible
        and _states(instance, "aggregates", prove(demand, slots, groups, "gamf").aggregates)
        and _states(instance, "printed", [sum(row, Fraction(0)) for row in sums])
        and sum(map(sum, sums)) > most
    )


@claim(
    PAPER,
    "rational-allocations",
    text="(5.1) to (5.3) describe the allocations that are feasible and rational",
    source="section 5.1; Algorithms 7 and 8; (5.23)",
    recorded=CORRECTED,
    confirm=_confirm_domain,
)
def _check_rational_allocations(run: Run) -> Finding:
    def flaw(demand: Integers, slots: Integers, groups: Groups) -> Iterator[tuple[Flags, Mapping[str, Any]]]:
        jobs = demand.shape[1]
        own = aggregates_of(demand, slots, groups, "gamf")
        printed = aggregates_of(*_printed_domain(demand, slots, groups), "gamf")
        details = {"aggregates": lambda b: texts(own[b], jobs), "printed": lambda b: texts(printed[b], jobs)}
        yield (own != printed).any(axis=1), details

    found = search("gamf", flaw, ALONE, beyond=2)
    if found.found is None:
        return _nothing(found)
    text = "a_ijk >= 0 is missing: a negative share at one site pays for slots of another that do not exist"
    return _against(_with_matrix(found), CORRECTED, text)


def _confirm_endless(instance: Instance) -> bool:
    demand, slots, groups, _ = _given(instance)
    own = prove(demand, slots, groups, "gamf").aggregates
    return len(own) == 1 and own[0] < sum(demand[0]) and own[0] < sum(slots)


@claim(
    PAPER,
    "algorithm-7",
    text="Algorithm 7 computes GAMF allocations",
    source="section 5.4, Algorithm 7, lines 12 and 15",
    recorded=CORRECTED,
    confirm=_confirm_endless,
)
def _check_algorithm_7(run: Run) -> Finding:
    def flaw(demand: Integers, slots: Integers, groups: Groups) -> Iterator[tuple[Flags, Mapping[str, Any]]]:
        own = aggregates_of(demand, slots, groups, "gamf")[:, 0]
        yield (own < demand.sum(axis=(1, 2))) & (own < slots.sum(axis=1)), {}

    found = search("gamf", flaw, ALONE, beyond=2)
    right, wrong, endless = _linear(run, "gamf", _programs(run), literal=True)
    meant = _linear(run, "gamf", _programs(run), literal=False)
    figures = {
        "printed_right": right,
        "printed_wrong": wrong,
        "printed_endless": endless,
        "meant_right": meant[0],
    }
    text = f"with HiGHS, printed: {wrong} wrong, {endless} without end of {right + wrong + endless:,} random"
    text += " instances; with the free site in the unfinished group (line 15), sums of d_lk (line 12) and"
    text += f" a_ijk >= 0: {meant[1] + meant[2]} wrong"
    if found.found is None:
        return Finding(HOLDS if not wrong + endless else MISSED, text, figures=figures)
    verdict = CORRECTED if not meant[1] + meant[2] else REFUTED
    more = "a task waits and a site is free that cannot run it, so line 15 never lets the job go"
    return _against(found, verdict, f"{more}; {text}", **figures)


@claim(
    PAPER,
    "algorithm-7-sig",
    text="Algorithm 7 with (5.24) computes SIG-GAMF allocations",
    source="section 5.4, Algorithm 7, line 16",
    recorded=CORRECTED,
    confirm=_confirm_printed_check,
)
def _check_algorithm_7_sig(run: Run) -> Finding:
    return _check_printed(run, "sig-gamf")


@claim(
    PAPER,
    "algorithm-8",
    text="Algorithm 8 keeps all aggregates and gives the first job the least estimated completion time",
    source="section 5.4",
    recorded=HOLDS,
)
def _check_algorithm_8(run: Run) -> Finding:
    return _completion(run, ("gamf", "sig-gamf"), _programs(run))


@claim(
    PAPER,
    "gamf-balance",
    text="with more available sites aggregates are more balanced (at every decision GAMF's than AMF's)",
    source="section 5.6",
    recorded=REFUTED,
    confirm=_confirm_balance,
)
def _check_gamf_balance(run: Run) -> Finding:
    def compare(demand: Integers, slots: Integers, groups: Groups) -> tuple[Integers, Integers]:
        tasks = _at_associated(demand, groups, slots.shape[1])
        alone = aggregates_of(tasks, slots, single_sites(slots.shape[1]), "amf")
        return aggregates_of(demand, slots, groups, "gamf"), alone

    def flaw(demand: Integers, slots: Integers, groups: Groups) -> Iterator[tuple[Flags, Mapping[str, Any]]]:
        jobs = demand.shape[1]
        own, other = compare(demand, slots, groups)
        yield (
            _spread(own) > _spread(other),
            {
                "compared": "amf",
                "aggregates": lambda b: texts(own[b], jobs),
                "amf": lambda b: texts(other[b], jobs),
            },
        )

    def lower(demand: Integers, slots: Integers, groups: Groups) -> Iterator[tuple[Flags, Mapping[str, Any]]]:
        own, other = (np.sort(found, axis=1) for found in compare(demand, slots, groups))
        first = np.argmax(own != other, axis=1)[:, None]
        yield (np.take_along_axis(own, first, 1) < np.take_along_axis(other, first, 1))[:, 0], {}

    found = search("gamf", flaw, steps_of("gamf", run.small))
    ordered = search("gamf", lower, steps_of("gamf", run.small), run.rng, run.small)
    if found.found is None:
        return _nothing(found)
    text = "what holds: sorted, GAMF's aggregates are lexicographically no lower, in all "
    text += f"{ordered.enumerated + ordered.drawn:,} instances"
    return _against(found, REFUTED, text if ordered.found is None else "not even lexicographically no lower")
