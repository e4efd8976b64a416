"""The algorithms of chapters 4 and 5, as printed and as meant, compared with exact shares."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from schedgym.errors import InfeasibleInstance
from schedgym.papers import CORRECTED, REFUTED, Finding, Run, Shown, judge
from schedgym.papers.guan2022 import model
from schedgym.papers.guan2022.batches import Batch, fair_shares, pad, unit
from schedgym.papers.guan2022.findings import CLOSE, LEVELS, found_flaw, read_instance, states
from schedgym.papers.guan2022.linear_programs import linear_completion_shares, linear_max_min
from schedgym.papers.guan2022.properties import floors_of
from schedgym.papers.guan2022.share_search import (
    SINGLE,
    Flaws,
    Search,
    draw_instances,
    search,
    steps_of,
    texts,
)
from schedgym.papers.guan2022.shares import completion_shares, max_min


class Solved(NamedTuple):
    """Numbers of right results of an algorithm, of wrong ones, and of runs without end."""

    right: int
    wrong: int
    endless: int

    @property
    def all_right(self) -> bool:
        """True if no run was wrong or without end."""
        return not self.wrong + self.endless


def run_programs(run: Run, policy: str, literal: bool) -> Solved:
    """Run Algorithm 5 or 7, as printed or as meant, on random instances."""
    right = wrong = endless = 0
    rng = np.random.default_rng(run.rng.integers(2**32))
    for demand, slots, groups in draw_instances(rng, policy in SINGLE, count_programs(run), 1):
        exact = fair_shares(demand, slots, groups, policy).aggregate[0] / unit(demand.shape[1])
        floors = floors_of(demand[0], slots[0], groups, policy)
        try:
            found = linear_max_min(demand[0], pad(groups), slots[0], floors=floors, literal=literal)[0]
        except InfeasibleInstance:
            endless += 1
            continue
        same = np.abs(found - exact).max() < LEVELS
        right, wrong = right + bool(same), wrong + (not same)
    return Solved(right, wrong, endless)


def run_both_programs(run: Run, policy: str) -> tuple[Solved, Solved, dict[str, int]]:
    """Run Algorithm 5 or 7 as printed and as meant; return what was counted, also as figures."""
    printed, meant = (run_programs(run, policy, literal) for literal in (True, False))
    figures = {f"printed_{name}": count for name, count in printed._asdict().items()}
    return printed, meant, figures | {"meant_right": meant.right}


def count_programs(run: Run) -> int:
    """Return the number of instances for which the linear programs are solved."""
    return 60 if run.small else 1000


def _printed_check(batch: Batch) -> Flaws:
    """Find jobs that the printed check stops at T_max in the first round though they can get more.

    Some solution of the linear program with the largest T gives job l exactly T_max and leaves no slot free,
    so no job can simply get more. The printed check, which sets the other jobs "= T_max", then fails, since
    the floor of another job is above T_max.
    """
    shares = batch.shares()
    level = shares.aggregate.min(axis=1)
    total = shares.aggregate.sum(axis=1)
    base = shares.held.sum(axis=2)
    details = {"aggregates": shares.aggregate, "level": lambda b: texts([level[b]], batch.jobs)[0]}
    for i in range(batch.jobs):
        others = [x for x in range(batch.jobs) if x != i]
        alone = (shares.capacity + shares.need[:, others].sum(1)).min(1) + base[:, others].sum(1)
        mask = (shares.aggregate[:, i] > level) & (shares.least[:, i] <= level)
        mask &= (shares.least[:, others] > level[:, None]).any(axis=1)
        mask &= alone >= total - level
        if batch.policy == "sig-gamf":  # line 15 asks for any free site at all
            mask &= total == batch.slots.sum(axis=1) * unit(batch.jobs)
        yield mask, {"job": i, **details}


def _with_solution(found: Search) -> Search:
    """Add to a search result the aggregates of a solution with the largest T that stops the job."""
    instance = dict(found.found or {})
    problem = model.sharing_problem(*read_instance(instance))
    solution = [max(Fraction(instance["level"]), floor) for floor in model.least_aggregates(problem)]
    for i in range(len(solution)):
        if i != instance["job"]:
            solution[i] = model.most_beside(problem, solution, i)
    return found._replace(found=instance | {"solution": [str(x) for x in solution]})


def confirm_printed_check(instance: Shown) -> bool:
    """Return True if the stated solution solves the linear program and stops a job that can get more."""
    problem, job = model.sharing_problem(*read_instance(instance)), instance["job"]
    own, floors = model.max_min(problem), model.least_aggregates(problem)
    level = min(own)
    solution = [Fraction(text) for text in instance["solution"]]
    return (
        all(x >= max(level, floor) for x, floor in zip(solution, floors, strict=True))
        and model.is_feasible(problem, solution)
        and sum(solution) == model.rank_function(problem, range(len(own)))
        and solution[job] == level < sum(problem.demand[job])
        and own[job] > level
        and any(floor > level for i, floor in enumerate(floors) if i != job)
        and (instance["policy"] != "sig-gamf" or sum(solution) == sum(problem.slots))  # line 15: no free site
        and states(instance, aggregates=own, level=level)
    )


def check_printed(run: Run, policy: str) -> Finding:
    """Check Algorithm 5 or 7 as printed: find a solution at which its test fails, and how often it does."""
    found = search(policy, _printed_check, steps_of(policy, run.small))
    printed, meant, figures = run_both_programs(run, policy)
    text = f"with HiGHS, printed: {printed.wrong} wrong"
    text += f", {printed.endless} that do not end" if printed.endless else ""
    text += f' of {sum(printed):,} random instances; meant (">= T_max"): {meant.wrong + meant.endless} wrong'
    if found.found is None:
        return Finding(judge(printed.all_right), text, figures=figures)
    verdict = CORRECTED if meant.all_right else REFUTED
    more = f"the job could get more than T_max, but is removed; {text}"
    return found_flaw(_with_solution(found), verdict, more, **figures)


def check_completion(run: Run, policies: Sequence[str], count: int) -> Finding:
    """Compare Algorithms 6 and 8 with the basic allocation and the linear program."""
    checked = 0
    moved = lost = short = 0.0
    raised = 0
    for number, (demand, slots, groups) in enumerate(
        draw_instances(run.rng, policies[0] in SINGLE, count, 1)
    ):
        tasks, capacity, policy = demand[0], slots[0], policies[number % len(policies)]
        if not tasks.any():
            continue
        floors = floors_of(tasks, capacity, groups, policy)
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
    text = (
        f"{checked:,} random instances: aggregates change by at most {moved:.0e} slots; the first job's y is"
    )
    text += f" the program's optimum (within {short:.0e}), above the basic allocation's in {raised:,}"
    return Finding(judge(good), text, figures=figures)
