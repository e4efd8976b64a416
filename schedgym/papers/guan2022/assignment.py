"""Chapters 1 and 3: assigning tasks to sites."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from schedgym.evaluation.runner import compare
from schedgym.papers import CORRECTED, HOLDS, NOT_REPRODUCED, REFUTED, Finding, Run, Shown, judge
from schedgym.papers.guan2022 import model
from schedgym.papers.guan2022.batches import Groups, settings
from schedgym.papers.guan2022.runs import ASSIGN, placements
from schedgym.papers.guan2022.share_search import claim
from schedgym.papers.searches import Details, Sentences, Smallest, confirm_by, smallest_flaw
from schedgym.problems.geo.workload import make_workload


def _all_groups(sites: int) -> Groups:
    """Every set of sites."""
    return tuple(g for n in range(1, sites + 1) for g in itertools.combinations(range(sites), n))


#: chapter 1: the sites of three equal jobs, and the times at which they end as printed
FIGURES = {
    "figure-1.1": ([[0, 1, 2]] * 3, [4, 7, 10]),
    "figure-1.2": ([[0], [1], [2]], [10, 10, 10]),
}


def _figure(sites: Sequence[Sequence[int]], tasks: int, slots: Sequence[int]) -> list[int]:
    """Place three equal jobs in order; each balances the load of its sites, earlier jobs included."""
    instance = model.make_instance(slots, [(0, [(tasks, own)]) for own in sites])
    return model.simulate_assign(instance, "btaaj-fcfs", fine=False).completion


def _confirm_figure(instance: Shown) -> bool:
    # no order of the jobs at a site ends them before its slots can have done the work, nor need any end later
    seen: Counter[tuple[int, ...]] = Counter()
    least = []
    for own in map(tuple, instance["sites"]):
        seen[own] += instance["tasks"]
        least.append(math.ceil(Fraction(seen[own], sum(instance["slots"][site] for site in own))))
    return instance["completions"] == least != instance["printed"]


def _check_figure(run: Run, say: Sentences, sites: list[list[int]], printed: list[int]) -> Finding:
    three, one = (_figure(sites, 10, [slots] * 3) for slots in (3, 1))
    verdict = HOLDS if three == printed else CORRECTED if one == printed else REFUTED
    shown = {"slots": [3, 3, 3], "tasks": 10, "sites": sites, "completions": three, "printed": printed}
    return say(verdict, {"three_slots": three, "one_slot": one}, counterexample=shown)


for _name, (_sites, _printed) in FIGURES.items():
    claim(_name, confirm=_confirm_figure)(functools.partial(_check_figure, sites=_sites, printed=_printed))


TABLE_3_1 = model.make_instance([1, 1, 1], [(0, [(8, (0, 1))]), (1, [(15, (0, 1, 2))]), (2, [(6, (1, 2))])])


@claim("table-3.1")
def _check_table_3_1(run: Run, say: Sentences) -> Finding:
    printed = {"btawj-fcfs": "22/3", "btaaj-fcfs": "20/3", "scta": "19/3", "ata": "17/3"}
    found = {}
    for policy in printed:
        ends = model.simulate_assign(TABLE_3_1, policy, fine=False).completion
        found[policy] = [end - job.arrival for end, job in zip(ends, TABLE_3_1.jobs, strict=True)]
    means = {policy: str(Fraction(sum(values), 3)) for policy, values in found.items()}
    told = ", ".join(f"{policy} {means[policy]} {values}" for policy, values in found.items())
    return say(judge(means == printed), means, told=told)


def _splits(row: Sequence[int], groups: Groups) -> Iterator[model.Counts]:
    """Yield all placements of a job, by (group, site)."""
    options = [itertools.combinations_with_replacement(g, n) for n, g in zip(row, groups, strict=True)]
    for chosen in itertools.product(*options):
        yield {(k, j): part.count(j) for k, part in enumerate(chosen) for j in groups[k] if j in part}


def _placements(tasks: Sequence[int], groups: Groups, sites: int) -> set[tuple[int, ...]]:
    """Return all placements of a job, as tasks per site."""
    return {tuple(model.per_site(counts, sites)) for counts in _splits(tasks, groups)}


def _least_level(tasks: Sequence[int], groups: Groups, slots: Sequence[int], load: Sequence[int]) -> Fraction:
    """Return, by brute force, the least maximum of tasks per slot over the sites that the job uses."""
    return min(
        max(Fraction(r + q, u) for q, r, u in zip(counts, load, slots, strict=True) if q)
        for counts in _placements(tasks, groups, len(slots))
    )


Levels = tuple[Fraction, Fraction, Fraction]


def _levels(case: Shown) -> Levels:
    """Return C, the largest number of tasks per slot that the flow gives, and the least possible one."""
    slots, load, tasks = case["slots"], case["load"], case["tasks"]
    level, placed = model.balance(tasks, case["groups"], slots, load)
    counts = model.per_site(placed, len(slots))
    got = max(Fraction(r + q, u) for q, r, u in zip(counts, load, slots, strict=True) if q)
    return level, got, _least_level(tasks, case["groups"], slots, load)


def _small_jobs(slots: int, most: int, load: int) -> Iterator[dict[str, Any]]:
    """Yield all jobs on up to two sites, up to given totals of slots and tasks and a load per site."""
    for sites in (1, 2):
        for total, kinds in itertools.product(range(sites, slots + 1), range(1, 2**sites)):
            for groups, amounts in settings(sites, kinds, total):
                for tasks in itertools.product(range(1, most + 1), repeat=kinds):
                    if sum(tasks) <= most:
                        for before in itertools.product(range(load + 1), repeat=sites):
                            case = {"slots": amounts, "groups": [[*group] for group in groups]}
                            yield case | {"tasks": [*tasks], "load": [*before]}


def _above_least(levels: Levels) -> Details:
    """Return the three levels, if the flow gives more than the least."""
    level, got, best = map(str, levels)
    return {"C": level, "got": got, "best": best} if levels[1] > levels[2] else None


@claim("balanced-allocation", confirm=confirm_by(_levels, _above_least))
def _check_balanced_allocation(run: Run, say: Sentences) -> Finding:
    whole = 0

    def flaw(case: Shown) -> Details:
        nonlocal whole
        level, got, best = levels = _levels(case)
        whole += level == math.ceil(best) and got <= level
        return _above_least(levels)

    cases = _small_jobs(*((4, 4, 2) if run.small else (6, 6, 3)))
    parts = ("slots", "tasks", "load")
    checked, worse, found = smallest_flaw(
        cases, flaw, size=lambda case: (len(case["slots"]), *(sum(case[part]) for part in parts)), show=dict
    )
    figures = {"checked": checked, "least_whole_C": whole, "above_the_least": worse}
    verdict = NOT_REPRODUCED if whole < checked else HOLDS if found is None else CORRECTED
    return say(verdict, figures, counterexample=found, others=checked - whole)


def _estimates(instance: Shown) -> tuple[list[Fraction], list[int]]:
    slots = instance["slots"]
    meant = [
        max(Fraction(q, u) for q, u in zip(row, slots, strict=True) if q) for row in instance["assigned"]
    ]
    return meant, [max(row) for row in instance["assigned"]]


def _first(meant: Sequence[Fraction], printed: Sequence[int]) -> dict[str, int]:
    """Return the job that is appended first, by either estimate."""
    return {"first_meant": meant.index(min(meant)), "first_printed": printed.index(min(printed))}


def _confirm_estimate(instance: Shown) -> bool:
    meant, printed = _estimates(instance)
    first = _first(meant, printed)
    alone = [math.ceil(meant[i]) for i in first.values()]
    return instance == {**instance, **first} and alone[0] < alone[1]


@claim("completion-estimate", confirm=_confirm_estimate)
def _check_completion_estimate(run: Run, say: Sentences) -> Finding:
    checked = equal = 0
    worst = Smallest()
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
                case |= _first(meant, printed)
                differ = case["first_meant"] != case["first_printed"]
                equal += differ and low == total - low
                if differ and _confirm_estimate(case):
                    worst.see(sum(map(sum, pair)), case)
        if worst.found is not None:
            break
    verdict = HOLDS if worst.found is None else CORRECTED if equal == 0 else REFUTED
    figures = {"checked": checked, "different_order_with_equal_slots": equal}
    return say(verdict, figures, counterexample=worst.found)


def _greedy_levels(loads: Sequence[int], tasks: int, strict: bool) -> list[tuple[int, int]]:
    """Return all pairs (h, p) that the conditions of section 3.2.4 allow, for loads in ascending order."""
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


def _confirm_greedy(instance: Shown) -> bool:
    loads, tasks = instance["loads"], instance["tasks"]
    sums = [sum(max(p - r, 0) for r in loads) for p in range(max(loads) + tasks + 1)]
    return tasks in sums and not _greedy_levels(loads, tasks, True)


@claim("greedy-level", confirm=_confirm_greedy)
def _check_greedy_level(run: Run, say: Sentences) -> Finding:
    most = (3, 3, 7) if run.small else (4, 4, 12)
    checked = none = right = 0
    smallest: dict[str, Any] | None = None
    for sites in range(1, most[0] + 1):
        for loads in itertools.combinations_with_replacement(range(most[1] + 1), sites):
            for tasks in range(1, most[2] + 1):
                checked += 1
                levels = _greedy_levels(loads, tasks, False)
                placed = model.greedy([tasks], [range(sites)], [1] * sites, loads, literal=True)
                if len(levels) == 1:
                    (h, p), after = levels[0], [r + placed.get((0, j), 0) for j, r in enumerate(loads)]
                    short = sum(p - r for r in loads[:h]) - tasks
                    right += after == [p - (x < short) if x < h else r for x, r in enumerate(loads)]
                if not _greedy_levels(loads, tasks, True):
                    none += 1
                    smallest = smallest or {"loads": list(loads), "tasks": tasks}
    figures = {"checked": checked, "no_level_as_printed": none, "one_level_with_<=": right}
    verdict = HOLDS if smallest is None else CORRECTED if right == checked else REFUTED
    return say(verdict, figures, counterexample=smallest)


#: labels of Table 3.2 -> the policies that sections 3.2.1 and 3.2.2 call so
SWAPPED = {"BTAWJ": "btawj-fcfs", "BTAAJ": "btaaj-fcfs"}


def _placed_beside(slots: Sequence[int], ahead: int, tasks: int) -> dict[str, list[int]]:
    """Return where the policies run a job's tasks, which have two sites, beside a job at the first site."""
    first = [(0, 1.0, [0])] * ahead
    rows = first + [(int(ahead > 0), 1.0, [0, 1])] * tasks
    job, duration, sites = zip(*rows, strict=True)
    workload = make_workload([0.0] * (1 + (ahead > 0)), job, duration, list(sites), slots)
    seen = compare(ASSIGN, SWAPPED, episodes=1, observe=placements, workloads=[workload])
    return {entry.policy: entry.values[-1] for entry in seen.observed}


def _confirm_swap(instance: Shown) -> bool:
    within, across = (
        model.per_site(model.balance([instance["tasks"]], [(0, 1)], instance["slots"], [ahead, 0])[1], 2)
        for ahead in (0, instance["outstanding"])
    )
    return within == instance["BTAWJ"] and across == instance["BTAAJ"] and within != across


@claim("table-3.2", confirm=_confirm_swap)
def _check_table_3_2(run: Run, say: Sentences) -> Finding:
    checked = 0
    moved = dict.fromkeys(SWAPPED, 0)
    example: dict[str, Any] | None = None
    for slots, tasks in itertools.product(([1, 1], [1, 2]), range(1, 4)):
        alone = _placed_beside(slots, 0, tasks)
        for ahead in range(1, 4):
            beside = _placed_beside(slots, ahead, tasks)
            checked += 1
            for label in SWAPPED:
                moved[label] += beside[label] != alone[label]
            if beside["BTAAJ"] != alone["BTAAJ"] and example is None:
                example = {"slots": slots, "outstanding": ahead, "tasks": tasks} | beside
    told = ", ".join(f"{label}'s in {count}" for label, count in moved.items())
    figures = {"checked": checked} | {f"changed_{label}": count for label, count in moved.items()}
    if moved["BTAAJ"] == 0:
        return say(judge(moved["BTAWJ"]), figures, told=told, more="")
    verdict = REFUTED if moved["BTAWJ"] else CORRECTED
    more = "; with the two names swapped the table says what sections 3.2.1 and 3.2.2 do"
    return say(verdict, figures, counterexample=example, told=told, more=more)


def _count_allocations(rows: Sequence[Sequence[int]], policy: str) -> int:
    """Return how many task allocations a policy computes when the last of some waiting jobs arrives."""
    groups, slots, last = ((0,), (0, 1), (1,)), [1, 1], len(rows) - 1
    counted = 0

    def place(i: int, load: Sequence[int]) -> model.Counts:
        nonlocal counted
        counted += 1
        return model.balance(rows[i], groups, slots, load)[1]

    placed = {} if policy == "ATA" else {i: place(i, [0, 0]) for i in range(last)}
    counted = 0
    if policy in ("BTAWJ", "BTAAJ"):
        placed[last] = place(last, model.total_load(placed if policy == "BTAAJ" else {}, 2))
    model.swag_plan(range(len(rows)), int, slots, placed, place)
    return counted


@claim("task-allocations")
def _check_allocations(run: Run, say: Sentences) -> Finding:
    policies = ("BTAWJ", "BTAAJ", "SCTA", "ATA")
    numbers = range(1, 9 if run.small else 17)
    most = dict.fromkeys(policies, 0)
    ordered = True
    for jobs in numbers:
        drawn = [run.rng.integers(1, 9, (jobs, 3)).tolist() for _ in range(20)]
        counts = {policy: [_count_allocations(rows, policy) for rows in drawn] for policy in policies}
        most = {policy: max(values) for policy, values in counts.items()}
        alone = set(counts["BTAWJ"]) == set(counts["BTAAJ"]) == {1}
        between = all(1 <= scta <= jobs for scta in counts["SCTA"])
        ordered &= alone and between and set(counts["ATA"]) == {jobs * (jobs + 1) // 2}
    counted = ", ".join(f"{policy} {count}" for policy, count in most.items())
    figures = {"most_jobs": numbers[-1]} | {f"most_{policy}": count for policy, count in most.items()}
    return say(judge(ordered), figures, ordered="true" if ordered else "false", counted=counted)


def _optimum(rows: Sequence[Sequence[int]], groups: Groups, slots: Sequence[int]) -> int:
    """Return, by brute force, the least sum of completions of jobs with unit tasks.

    All placements and orders are tried. One order for all sites suffices: the job that ends last may as well
    be last at every site.
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
    """Return the sum of completions of SCTA from the last of some arrivals on, and the optimum."""
    jobs = [(arrival, list(zip(tasks, groups, strict=True))) for arrival, tasks in history]
    outcome = model.simulate_assign(model.make_instance(slots, jobs, groups=groups), "scta", fine=False)
    last = history[-1][0]
    (rows,) = (d.view.waiting.values() for d in outcome.decisions if d.view.clock == last)
    return sum(end - last for end in outcome.completion if end > last), _optimum(list(rows), groups, slots)


def _swag_total(
    rows: Sequence[Sequence[int]], groups: Groups, slots: Sequence[int], placed: Mapping[int, model.Counts]
) -> int:
    """Return the sum of completions of jobs with unit tasks by SWAG; those not in ``placed`` can move."""

    def place(i: int, load: Sequence[int]) -> model.Counts:
        return model.balance(rows[i], groups, slots, load)[1]

    plan = model.swag_plan(range(len(rows)), int, slots, placed, place)
    return sum(map(math.ceil, plan.estimate.values()))


def _exceeds(case: Shown) -> Details:
    """Return the sums of :func:`_arrivals`, if SCTA has more than m times the optimum."""
    got, best = _arrivals(case["arrivals"], tuple(map(tuple, case["groups"])), case["slots"])
    return {"scta": got, "optimum": best} if got > len(case["slots"]) * best else None


@claim("m-approximation", confirm=confirm_by(dict, _exceeds))
def _check_m_approximation(run: Run, say: Sentences) -> Finding:
    worst = {1: Fraction(0), 2: Fraction(0), 3: Fraction(0)}
    checked = 0
    for rows, groups, sites, scta in _outstanding(run):
        slots = [1] * sites
        best = _optimum(rows, groups, slots)
        found = [_swag_total(rows, groups, slots, dict(enumerate(placed))) for placed in ([], *scta)]
        worst[sites] = max(worst[sites], Fraction(max(found), best))
        checked += len(found)
    figures: dict[str, Any] = {"decisions": checked}
    figures |= {f"worst_ratio_{m}_sites": str(ratio) for m, ratio in worst.items()}
    told = ", ".join(f"{float(ratio):.2f} at m = {m}" for m, ratio in worst.items())
    ata = _worst_ata(run)
    figures["worst_ratio_over_m_of_ata_with_several_slots"] = str(ata)
    if any(ratio > m for m, ratio in worst.items()):
        return say(NOT_REPRODUCED, figures, told=told, ata=float(ata))
    beyond = _beyond_m()
    verdict = HOLDS if beyond is None else CORRECTED
    return say(verdict, figures, counterexample=beyond, told=told, ata=float(ata))


def _beyond_m() -> dict[str, Any] | None:
    """Find the smallest of a family of arrivals with which SCTA exceeds m optima with several slots.

    One job fills two sites for exactly C instants, so its flow is unique. A job with c tasks at the first
    site overtakes it there. When the second site is done, a task arrives that can run at the first site only.
    """
    for fast in range(2, 7):
        for level, ahead in itertools.product(range(3, 9), range(1, 7)):
            arrivals = [[0, [0, level * (1 + fast)]], [1, [ahead, 0]], [level, [1, 0]]]
            case = {"slots": [1, fast], "groups": [[0], [0, 1]], "arrivals": arrivals}
            if ahead < level - 1 and (found := _exceeds(case)):
                return {**case, **found}
    return None


def _draw_rows(rng: np.random.Generator, groups: Groups, most: int) -> list[list[int]]:
    """Draw two or three jobs [J][K], each with up to ``most`` tasks in groups at random."""
    rows = []
    for _ in range(int(rng.integers(2, 4))):
        total = int(rng.integers(1, most + 1))
        rows.append(rng.multinomial(total, np.full(len(groups), 1 / len(groups))).tolist())
    return rows


def _worst_ata(run: Run) -> Fraction:
    """Return the largest ratio of ATA to m times the optimum: random, 2 or 3 sites, up to 4 slots a site."""
    worst = Fraction(0)
    for _ in range(60 if run.small else 1500):
        sites = int(run.rng.integers(2, 4))
        groups = _all_groups(sites)
        slots = run.rng.integers(1, 5, sites).tolist()
        rows = _draw_rows(run.rng, groups, 5)
        best = _optimum(rows, groups, slots)
        worst = max(worst, Fraction(_swag_total(rows, groups, slots, {}), sites * best))
    return worst


def _outstanding(run: Run) -> Iterator[tuple[list[list[int]], Groups, int, list[list[model.Counts]]]]:
    """Yield outstanding jobs, then a new one, and placements of the former: enumerated, then random."""
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
        rows = _draw_rows(run.rng, groups, 4)
        options = [list(_splits(row, groups)) for row in rows[:-1]]
        yield rows, groups, sites, [[s[int(run.rng.integers(len(s)))] for s in options] for _ in range(8)]
