"""Chapter 4: IMF, AMF and SIG-AMF, for tasks that can run at one site."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from schedgym.core.arrays import Floats, Integers
from schedgym.papers import Finding, Run, Shown, judge
from schedgym.papers.guan2022 import batches, model
from schedgym.papers.guan2022.batches import Batch
from schedgym.papers.guan2022.properties import (
    check_completion,
    check_printed,
    confirm_balance,
    confirm_below_floors,
    confirm_printed_check,
    count_programs,
    run_programs,
    spread_of,
)
from schedgym.papers.guan2022.share_search import (
    LEVELS,
    NAMES,
    SINGLE,
    Flaws,
    Step,
    below_floors,
    claim,
    draw_instances,
    enumerate_instances,
    read_instance,
    search,
    states,
    steps_of,
)
from schedgym.papers.guan2022.shares import completion_shares, water_filling
from schedgym.papers.searches import Sentences, count


@claim("water-filling-example")
def _check_water_filling(run: Run, say: Sentences) -> Finding:
    found = water_filling([[2], [4], [10], [40]], [20])[:, 0].tolist()
    shares = batches.fair_shares(np.array([[[2], [4], [10], [40]]]), np.array([[20]]), ((0,),), "amf")
    other = shares._replace(aggregate=np.array([[2, 3, 7, 8]]) * batches.unit(4))
    fair = bool(batches.satisfies_definition(shares)[0]), bool(batches.satisfies_definition(other)[0])
    right = found == [2.0, 4.0, 7.0, 7.0] and fair == (True, False)
    return say(judge(right), {}, solver=found, fair=fair)


def _confirm_imf_sharing(instance: Shown) -> bool:
    demand, slots, _, _ = read_instance(instance)
    return any(
        share < min(Fraction(row[j]), Fraction(u, len(demand)))
        for j, u in enumerate(slots)
        for share, row in zip(model.water_fill([row[j] for row in demand], u), demand, strict=True)
    )


@claim("imf-sharing", confirm=_confirm_imf_sharing)
def _check_imf_sharing(run: Run) -> Finding:
    def flaw(batch: Batch) -> Flaws:
        one = batches.unit(batch.jobs)
        floor = np.minimum(batch.demand * one, batch.slots[:, None] * (one // batch.jobs))
        yield (batches.water_shares(batch.demand, batch.slots) < floor).any(axis=(1, 2)), {}

    found = search("imf", flaw, steps_of("imf", run.small), run.rng, run.small)
    return found.flaw()


def _confirm_two_matrices(instance: Shown) -> bool:
    demand, slots, groups, policy = read_instance(instance)
    tasks = [d if k == instance["group"] else 0 for k, d in enumerate(demand[instance["job"]])]
    spread = model.useful_range(demand, slots, groups, policy, instance["job"], tasks)
    return spread[0] < spread[1] and states(instance, least_and_most=spread)


@claim("amf-matrix", confirm=_confirm_two_matrices)
def _check_amf_matrix(run: Run, say: Sentences) -> Finding:
    def flaw(batch: Batch) -> Flaws:
        shares = batch.shares()
        kinds = len(batch.groups)
        for i, k in itertools.product(range(batch.jobs), range(kinds)):
            tasks = np.where(np.arange(kinds) == k, batch.demand[:, i], 0)
            least, most = batches.least_useful(shares, i, tasks), batches.most_useful(shares, i, tasks)
            spread = np.stack([least, most], axis=1)
            yield np.diff(spread)[:, 0] != 0, {"job": i, "group": k, "least_and_most": spread}

    found = search("amf", flaw, steps_of("amf", run.small))
    return say(judge(found.found), {}, witness=found.found, looked=found.looked())


def _lying_matrices(run: Run) -> Iterator[tuple[Integers, Floats, Floats]]:
    """Yield random AMF instances: demand [J, M], an AMF matrix, and one for a lie of job 0."""
    for demand, slots, groups in draw_instances(run.rng, True, 40 if run.small else 1500, 20):
        for tasks, capacity in zip(demand, slots, strict=True):
            lie = tasks.copy()
            lie[0] = np.maximum(tasks[0] + run.rng.integers(-5, 7, tasks.shape[1]), 0)
            turns = [run.rng.permutation(len(tasks)) for _ in range(2)]
            matrices = [
                completion_shares(case, batches.pad(groups), capacity, order=turn)[1][:, :, 0]
                for case, turn in zip((tasks, lie), turns, strict=True)
            ]
            yield tasks, matrices[0], matrices[1]


@claim("amf-lying-per-site")
def _check_lemma_4_3(run: Run, say: Sentences) -> Finding:
    checked, grown = 0, 0.0
    for demand, honest, lying in _lying_matrices(run):
        checked += 1
        grown = max(grown, float((np.minimum(lying, demand) - honest).sum(axis=0).max()))
    return say(judge(grown < LEVELS), {"checked": checked, "largest_growth": grown})


@claim("amf-lying-spreads")
def _check_lemma_4_4(run: Run, say: Sentences) -> Finding:
    def benefits(matrices: tuple[Integers, Floats, Floats]) -> Iterator[bool]:
        demand, honest, lying = matrices
        change = np.minimum(lying, demand) - honest
        total = change.sum(axis=1)
        for h, k in itertools.permutations(range(len(demand)), 2):
            if k and total[h] > LEVELS and ((change[h] > LEVELS) & (change[k] < -LEVELS)).any():
                yield bool(total[k] >= LEVELS)

    checked, met, broken = count(_lying_matrices(run), benefits)
    figures = {"checked": checked, "conditions_met": met, "broken": broken}
    return say(judge(met and not broken), figures)


@claim("amf-sharing", confirm=confirm_below_floors)
def _check_amf_sharing(run: Run, say: Sentences) -> Finding:
    example, slots, groups = [[2, 2], [0, 3]], [4, 4], batches.single_sites(2)
    own = model.aggregates_of(example, slots, groups, "amf")
    spread = model.useful_range(example, slots, groups, "amf", 0, [0, 2])
    sig = model.aggregates_of(example, slots, groups, "sig-amf")
    found = search("amf", below_floors, steps_of("amf", run.small))
    as_printed = own == [3, 3] and [*spread] == [1, 1] and sig == [4, 2]
    return say(judge(as_printed and found.found), {}, witness=found.found, looked=found.looked())


@claim("amf-decided-balance", confirm=confirm_balance)
def _check_amf_balance(run: Run) -> Finding:
    def flaw(batch: Batch) -> Flaws:
        own, other = batch.aggregates(), batch.aggregates("imf")
        yield spread_of(own) > spread_of(other), {"compared": "imf"}

    return search("amf", flaw, steps_of("amf", run.small), run.rng, run.small).flaw()


@claim("demand-beyond-slots")
def _check_demand_beyond_slots(run: Run, say: Sentences) -> Finding:
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
                step = Step(jobs, sites, kinds, slots, single)
                for given in enumerate_instances(step, beyond=2 if kinds < 3 else 1):
                    batch = Batch(policy, *given)
                    most = np.array([batch.slots[0, list(group)].sum() for group in batch.groups])
                    cut = batch._replace(demand=np.minimum(batch.demand, most))
                    checked[policy] += len(batch.demand)
                    broken[policy] += int((batch.aggregates() != cut.aggregates()).any(axis=1).sum())
    figures = {f"checked_{policy}": count for policy, count in checked.items()}
    told = ", ".join(f"{NAMES[policy]} {count:,}" for policy, count in checked.items())
    return say(judge(not any(broken.values())), figures, told=told)


@claim("algorithm-5")
def _check_algorithm_5(run: Run, say: Sentences) -> Finding:
    found = run_programs(run, "amf", literal=True)
    return say(judge(found.all_right), {"right": found.right, "wrong": found.wrong}, of=sum(found))


@claim("algorithm-5-sig", confirm=confirm_printed_check)
def _check_algorithm_5_sig(run: Run) -> Finding:
    return check_printed(run, "sig-amf")


@claim("algorithm-6")
def _check_algorithm_6(run: Run) -> Finding:
    return check_completion(run, ("amf", "sig-amf"), count_programs(run))
