"""Properties of fair shares: claims that are registered for one policy after another."""

from __future__ import annotations

import itertools
import statistics

import numpy as np

from schedgym.papers import HOLDS, NOT_REPRODUCED, REFUTED, Finding, Run, Shown
from schedgym.papers.guan2022 import batches, model
from schedgym.papers.guan2022.batches import Batch, Floats, Groups, Integers
from schedgym.papers.guan2022.findings import (
    CLOSE,
    NAMES,
    claim,
    found_flaw,
    found_nothing,
    read_instance,
    states,
)
from schedgym.papers.guan2022.share_search import (
    SINGLE,
    draw_instances,
    draw_lies,
    enumerate_lies,
    envy,
    pareto,
    search,
    steps_of,
    unfair,
)
from schedgym.papers.guan2022.shares import isolated_share, max_min


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
        return found_flaw(found)

    @claim(f"{policy}-envy", confirm=_confirm_envy)
    def check_envy(run: Run) -> Finding:
        found = search(policy, envy, steps_of(policy, run.small), run.rng, run.small)
        more = "so in every matrix with these aggregates" if policy == "sig-gamf" else ""
        return found_flaw(found, more=more)

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
        more = "; so in every matrix with these aggregates" if policy == "sig-gamf" else ""
        text = f"this is the smallest counterexample in {looked}{more}"
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
            return found_flaw(found)
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
        return found_nothing(found, f"by Definition 4.1; {more}", **figures)


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
