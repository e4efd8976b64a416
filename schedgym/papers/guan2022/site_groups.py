"""Chapter 5: GAMF and SIG-GAMF, for tasks that can run at any site of a group."""

from __future__ import annotations

import itertools
from fractions import Fraction

import networkx as nx
import numpy as np

from schedgym.core.arrays import Integers
from schedgym.papers import CORRECTED, REFUTED, Finding, Run, Shown, judge
from schedgym.papers.guan2022 import batches, model
from schedgym.papers.guan2022.batches import Batch, Groups
from schedgym.papers.guan2022.linear_programs import linear_completion_shares
from schedgym.papers.guan2022.properties import (
    check_completion,
    check_printed,
    confirm_balance,
    confirm_below_floors,
    confirm_printed_check,
    count_programs,
    run_both_programs,
    spread_of,
)
from schedgym.papers.guan2022.share_search import (
    Flaws,
    Search,
    Step,
    below_floors,
    claim,
    read_instance,
    search,
    states,
    steps_of,
)
from schedgym.papers.searches import Sentences


@claim("gamf-sharing", confirm=confirm_below_floors)
def _check_gamf_sharing(run: Run, say: Sentences) -> Finding:
    found = search("gamf", below_floors, steps_of("gamf", run.small))
    return say(judge(found.found), {}, witness=found.found, looked=found.looked())


@claim("sig-gamf-is-sig-amf", confirm=confirm_below_floors)
def _check_sig_gamf_is_sig_amf(run: Run) -> Finding:
    def flaw(batch: Batch) -> Flaws:
        own, sig = batch.aggregates(), batch.aggregates("sig-amf")
        yield (own != sig).any(axis=1), {"aggregates": own, "sig_amf": sig}

    found = search("sig-gamf", flaw, steps_of("sig-amf", run.small))
    return found.flaw(more="(5.24) bounds only the sum over the sites, (4.3) and (4.4) bound each site")


# one job
ALONE = [
    Step(1, sites, kinds, slots, False)
    for sites, kinds in ((1, 1), (2, 1), (2, 2), (2, 3))
    for slots in range(sites, 6)
]


def merged_sites(groups: Groups, sites: int) -> list[int]:
    """Return for each site [M] the site of least number that a chain of groups connects it to."""
    chains: nx.Graph[int] = nx.Graph(pair for group in groups for pair in itertools.pairwise(group))
    chains.add_nodes_from(range(sites))
    least = {site: min(chain) for chain in nx.connected_components(chains) for site in chain}
    return [least[site] for site in range(sites)]


def _printed_domain(batch: Batch) -> Batch:
    """Return the instances that (5.2) to (5.4) allow without a_ijk >= 0: connected sites are one site."""
    groups, slots = batch.groups, batch.slots
    names = merged_sites(groups, slots.shape[1])
    kept = sorted(set(names))
    merged = np.stack(
        [slots[:, [j for j, n in enumerate(names) if n == name]].sum(axis=1) for name in kept], axis=1
    )
    return batch._replace(slots=merged, groups=tuple((kept.index(names[group[0]]),) for group in groups))


def _with_matrix(found: Search) -> Search:
    """Add to a search result a matrix [J][K][M] of the printed aggregates that meets (5.1) to (5.3)."""
    instance = dict(found.found or {})
    demand, slots, groups, _ = read_instance(instance)
    printed = [float(Fraction(text)) for text in instance["printed"]]
    lists = batches.pad(tuple(map(tuple, groups)))
    allocation, _ = linear_completion_shares(demand, lists, slots, printed, literal=True)
    matrix = [[["0"] * len(slots) for _ in groups] for _ in demand]
    for i, k in itertools.product(range(len(demand)), range(len(groups))):
        for j, share in zip(groups[k], allocation[i, k].tolist(), strict=False):
            matrix[i][k][j] = str(Fraction(share).limit_denominator(360))
    return found._replace(found=instance | {"matrix": matrix})


def _confirm_domain(instance: Shown) -> bool:
    demand, slots, groups, _ = read_instance(instance)
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
    most = model.rank_function(model.Problem(demand, slots, groups), range(len(demand)))
    own, printed = model.aggregates_of(demand, slots, groups, "gamf"), [sum(row, Fraction(0)) for row in sums]
    stated = states(instance, aggregates=own, printed=printed)
    return rational and feasible and stated and sum(printed) > most


@claim("rational-allocations", confirm=_confirm_domain)
def _check_rational_allocations(run: Run) -> Finding:
    def flaw(batch: Batch) -> Flaws:
        own, printed = batch.aggregates(), _printed_domain(batch).aggregates()
        yield (own != printed).any(axis=1), {"aggregates": own, "printed": printed}

    found = search("gamf", flaw, ALONE, beyond=2)
    if found.found is None:
        return found.nothing()
    text = (
        "a_ijk >= 0 is missing: with a negative share at one site a job can have more slots at another "
        "than there are"
    )
    return _with_matrix(found).flaw(CORRECTED, text)


def _confirm_endless(instance: Shown) -> bool:
    demand, slots, groups, _ = read_instance(instance)
    own = model.aggregates_of(demand, slots, groups, "gamf")
    return len(own) == 1 and own[0] < sum(demand[0]) and own[0] < sum(slots)


@claim("algorithm-7", confirm=_confirm_endless)
def _check_algorithm_7(run: Run) -> Finding:
    def flaw(batch: Batch) -> Flaws:
        own = batch.aggregates()[:, 0]
        yield (own < batch.demand.sum(axis=(1, 2))) & (own < batch.slots.sum(axis=1)), {}

    found = search("gamf", flaw, ALONE, beyond=2)
    printed, meant, figures = run_both_programs(run, "gamf")
    text = (
        f"with HiGHS, printed: {printed.wrong} wrong, {printed.endless} that do not end of {sum(printed):,} "
        "random instances; with the free site in the unfinished group (line 15), sums of d_lk (line 12) "
        f"and a_ijk >= 0: {meant.wrong + meant.endless} wrong"
    )
    if found.found is None:
        return Finding(judge(printed.all_right), text, figures=figures)
    verdict = CORRECTED if meant.all_right else REFUTED
    more = "if a task waits and a site is free that cannot run it, line 15 never removes the job"
    return found.flaw(verdict, f"{more}; {text}", **figures)


@claim("algorithm-7-sig", confirm=confirm_printed_check)
def _check_algorithm_7_sig(run: Run) -> Finding:
    return check_printed(run, "sig-gamf")


@claim("algorithm-8")
def _check_algorithm_8(run: Run) -> Finding:
    return check_completion(run, ("gamf", "sig-gamf"), count_programs(run))


@claim("gamf-decided-balance", confirm=confirm_balance)
def _check_gamf_balance(run: Run) -> Finding:
    def both(batch: Batch) -> tuple[Integers, Integers]:
        sites = batch.slots.shape[1]
        tasks = batches.at_associated(batch.demand, batch.groups, sites)
        alone = batch._replace(demand=tasks, groups=batches.single_sites(sites))
        return batch.aggregates(), alone.aggregates("amf")

    def flaw(batch: Batch) -> Flaws:
        own, other = both(batch)
        yield spread_of(own) > spread_of(other), {"compared": "amf", "aggregates": own, "amf": other}

    def lower(batch: Batch) -> Flaws:
        own, other = (np.sort(found, axis=1) for found in both(batch))
        first = np.argmax(own != other, axis=1)[:, None]
        yield (np.take_along_axis(own, first, 1) < np.take_along_axis(other, first, 1))[:, 0], {}

    found = search("gamf", flaw, steps_of("gamf", run.small))
    ordered = search("gamf", lower, steps_of("gamf", run.small), run.rng, run.small)
    text = "instead, GAMF's aggregates, sorted, are never lexicographically lower, in all "
    text += f"{ordered.enumerated + ordered.drawn:,} instances"
    return found.flaw(REFUTED, text if ordered.found is None else "not even lexicographically no lower")
