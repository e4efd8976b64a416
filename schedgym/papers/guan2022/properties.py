"""Properties of fair shares, and algorithms for them: checks that claims of several policies share."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from schedgym.core.arrays import Floats, Integers
from schedgym.errors import InfeasibleInstance
from schedgym.papers import CORRECTED, HOLDS, NOT_REPRODUCED, REFUTED, Finding, Run, Shown, judge
from schedgym.papers.guan2022 import batches, model
from schedgym.papers.guan2022.batches import Batch, Groups
from schedgym.papers.guan2022.linear_programs import linear_completion_shares, linear_max_min
from schedgym.papers.guan2022.share_search import (
    CLOSE,
    LEVELS,
    NAMES,
    SINGLE,
    Flaws,
    Search,
    claim,
    draw_instances,
    draw_lies,
    enumerate_lies,
    envy,
    pareto,
    read_instance,
    search,
    states,
    steps_of,
    texts,
    unfair,
)
from schedgym.papers.guan2022.shares import completion_shares, isolated_share, max_min


def _confirm_pareto(instance: Shown) -> bool:
    demand, slots, groups, policy = read_instance(instance)
    most = model.rank_function(model.Problem(demand, slots, groups), range(len(demand)))
    return sum(model.aggregates_of(demand, slots, groups, policy)) < most


def _confirm_envy(instance: Shown) -> bool:
    demand, slots, groups, policy = read_instance(instance)
    i, other = instance["job"], instance["envies"]
    own = model.aggregates_of(demand, slots, groups, policy)
    useful = model.useful_range(demand, slots, groups, policy, other, demand[i])[policy != "sig-gamf"]
    return states(instance, aggregates=own, useful=useful) and useful > own[i]


def _confirm_lie(instance: Shown) -> bool:
    demand, slots, groups, policy = read_instance(instance)
    i = instance["job"]
    lying = [instance["report"] if x == i else row for x, row in enumerate(demand)]
    honest = model.aggregates_of(demand, slots, groups, policy)
    gets = model.useful_range(lying, slots, groups, policy, i, demand[i])[policy != "sig-gamf"]
    after = model.aggregates_of(lying, slots, groups, policy)
    stated = states(instance, aggregates=honest, aggregates_if_lying=after, useful_if_lying=gets)
    return stated and gets > honest[i]


def _register_properties(policy: str) -> None:
    """Register the claims that a policy is Pareto efficient, envy-free and strategy-proof."""

    @claim(f"{policy}-pareto", confirm=_confirm_pareto)
    def check_pareto(run: Run) -> Finding:
        found = search(policy, pareto, steps_of(policy, run.small), run.rng, run.small)
        return found.flaw()

    @claim(f"{policy}-envy", confirm=_confirm_envy)
    def check_envy(run: Run) -> Finding:
        found = search(policy, envy, steps_of(policy, run.small), run.rng, run.small)
        more = "so in every allocation with these totals of the jobs" if policy == "sig-gamf" else ""
        return found.flaw(more=more)

    @claim(f"{policy}-strategy", confirm=_confirm_lie)
    def check_strategy(run: Run) -> Finding:
        found = enumerate_lies(policy, steps_of(policy, run.small))
        if found.found is None:
            lie, drawn = draw_lies(policy, run.rng, run.small)
            found = found._replace(found=lie, drawn=drawn)
        figures = {"misreports": found.enumerated, "random": found.drawn, "complete": found.complete()}
        looked = found.looked("misreports")
        if found.found is None:
            return Finding(HOLDS, f"no counterexample in {looked}", figures=figures)
        more = "; so in every allocation with these totals of the jobs" if policy == "sig-gamf" else ""
        text = f"the counterexample is the smallest in {looked}{more}"
        return Finding(REFUTED, text, counterexample=found.found, figures=figures)


for _policy in NAMES:
    _register_properties(_policy)


def _confirm_unfair(instance: Shown) -> bool:
    demand, slots, groups, policy = read_instance(instance)
    batch = Batch(policy, np.array([demand]), np.array([slots]), tuple(map(tuple, groups)))
    return not batches.satisfies_definition(batch.shares())[0]


#: policy -> the claim that its shares are max-min fair
FAIR = {
    "amf": "amf-achievable",
    "sig-amf": "sig-amf-sharing",
    "gamf": "gamf-achievable",
    "sig-gamf": "sig-gamf-sharing",
}


def _register_fairness(policy: str, name: str) -> None:
    """Register the claim that a policy's shares are max-min fair, and that the shipped solver finds them."""

    @claim(name, confirm=_confirm_unfair)
    def check(run: Run) -> Finding:
        found = search(policy, unfair, steps_of(policy, run.small), run.rng, run.small)
        if found.found is not None:
            return found.flaw()
        compared, right, kept = _compare_solver(run, policy, 600 if run.small else 20000)
        figures = {"solver_compared": compared, "solver_right": right, "solver_floors_met": kept}
        if right < compared or kept < compared:
            return Finding(NOT_REPRODUCED, f"the shipped solver differs: {figures}", figures=figures)
        more = f"the shipped solver gives the same in {compared:,}"
        if policy == "amf":
            same, brute = _brute_force()
            figures |= {"brute_force": brute}
            if same < brute:
                return Finding(NOT_REPRODUCED, f"{brute - same} brute-force vectors differ", figures=figures)
            more += f", brute force over matrices in {brute}"
        return found.nothing(f"by Definition 4.1; {more}", **figures)


for _policy, _name in FAIR.items():
    _register_fairness(_policy, _name)


def _compare_solver(run: Run, policy: str, count: int) -> tuple[int, int, int]:
    """Count random instances, and those where the shipped solver has right aggregates, and meets floors."""
    compared = right = kept = 0
    for demand, slots, groups in draw_instances(run.rng, policy in SINGLE, count // 20, 20):
        jobs = demand.shape[1]
        shares = batches.fair_shares(demand, slots, groups, policy)
        exact, least = shares.aggregate / batches.unit(jobs), shares.least / batches.unit(jobs)
        for b in range(len(demand)):
            floors = floors_of(demand[b], slots[b], groups, policy)
            found, allocation = max_min(demand[b], batches.pad(groups), slots[b], floors=floors)
            same = (found == exact[b]).all() if floors is None else np.abs(found - exact[b]).max() <= CLOSE
            sums = allocation.sum(axis=(1, 2))
            met = (sums >= least[b] - CLOSE).all()
            if policy == "sig-amf":
                met = (allocation[:, :, 0] >= shares.held[b] / batches.unit(jobs) - CLOSE).all()
            compared, right, kept = compared + 1, right + bool(same), kept + bool(met)
    return compared, right, kept


def floors_of(demand: Integers, slots: Integers, groups: Groups, policy: str) -> Floats | None:
    """Return the floors of a policy in the form that the solvers expect."""
    if policy == "sig-gamf":
        return isolated_share(demand, batches.pad(groups), slots)
    if policy == "sig-amf":
        return np.asarray(np.minimum(demand, slots[[group[0] for group in groups]] / len(demand)))
    return None


def _brute_force() -> tuple[int, int]:
    """Compare AMF of two jobs on two sites with the lexicographic maximum over all matrices in half slots.

    Half slots suffice, as all levels of two jobs are multiples of 1/2.

    Returns:
        the number of instances with equal results, and the number compared.
    """
    equal = compared = 0
    for slots in ((1, 1), (1, 2), (2, 2), (1, 3)):
        rows = batches.demand_rows(batches.single_sites(2), slots).tolist()
        for first, second in itertools.combinations_with_replacement(rows, 2):
            best = max(
                sorted((a + b, c + d))
                for a in range(2 * first[0] + 1)
                for c in range(min(2 * second[0], 2 * slots[0] - a) + 1)
                for b in range(2 * first[1] + 1)
                for d in range(min(2 * second[1], 2 * slots[1] - b) + 1)
            )
            batch = Batch("amf", np.array([[first, second]]), np.array([slots]), batches.single_sites(2))
            compared += 1
            equal += best == sorted((2 * batch.aggregates()[0] // batches.unit(2)).tolist())
    return equal, compared


def confirm_below_floors(instance: Shown) -> bool:
    """Return True if GAMF's aggregates fall below its floors, or others differ from SIG-AMF's, as stated."""
    demand, slots, groups, policy = read_instance(instance)
    own = model.aggregates_of(demand, slots, groups, policy)
    if policy != "gamf":
        sig = model.aggregates_of(demand, slots, groups, "sig-amf")
        return states(instance, aggregates=own, sig_amf=sig) and own != sig
    floors = model.isolated_shares(model.Problem(demand, slots, groups))
    lacks = any(a < x for a, x in zip(own, floors, strict=True))
    return states(instance, aggregates=own, isolated=floors) and lacks


def spread_of(aggregates: Integers) -> Integers:
    """Return J^2 times the variance of the aggregates [B]."""
    jobs = aggregates.shape[1]
    return np.asarray(jobs * (aggregates**2).sum(axis=1) - aggregates.sum(axis=1) ** 2)


def confirm_balance(instance: Shown) -> bool:
    """Return True if the aggregates vary more than those of the policy they are compared with."""
    demand, slots, groups, policy = read_instance(instance)
    own = model.aggregates_of(demand, slots, groups, policy)
    tasks = batches.at_associated(np.array(demand), tuple(map(tuple, groups)), len(slots)).tolist()
    other = model.aggregates_of(tasks, slots, batches.single_sites(len(slots)), instance["compared"])
    stated = states(instance, **{"aggregates": own, instance["compared"]: other})
    return stated and statistics.pvariance(own) > statistics.pvariance(other)


# the algorithms of both chapters, as printed and as meant, compared with exact shares ----------------


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
        exact = batches.fair_shares(demand, slots, groups, policy).aggregate[0] / batches.unit(
            demand.shape[1]
        )
        floors = floors_of(demand[0], slots[0], groups, policy)
        try:
            found = linear_max_min(demand[0], batches.pad(groups), slots[0], floors=floors, literal=literal)[
                0
            ]
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
            mask &= total == batch.slots.sum(axis=1) * batches.unit(batch.jobs)
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
    return _with_solution(found).flaw(verdict, more, **figures)


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
        basic, matrix = max_min(tasks, batches.pad(groups), capacity, floors=floors)
        aggregates, allocation, rate = completion_shares(tasks, batches.pad(groups), capacity, floors=floors)
        order = np.argsort(tasks.sum(axis=1), kind="stable")
        first = int(next(i for i in order if tasks[i].any()))
        busy = tasks[first] > 0
        before = float((matrix[first].sum(axis=1)[busy] / tasks[first][busy]).min())
        given = floors if floors is not None and floors.ndim == 2 else None
        best = linear_completion_shares(tasks, batches.pad(groups), capacity, aggregates, floors=given)[1][
            first
        ]
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
