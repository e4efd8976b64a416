"""Section III: the slot with memory, Theorems 1 and 2."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from schedgym.papers import CORRECTED, HOLDS, NOT_REPRODUCED, REFUTED, Finding, Run, Shown
from schedgym.papers.searches import Smallest
from schedgym.papers.xu2021.instances import claim
from schedgym.papers.xu2021.model.slot import (
    Matrix,
    Slot,
    alternate,
    best_value,
    fill,
    knapsack,
    pack,
    placement_value,
)


def _draw_slot(run: Run, most_jobs: int = 5) -> tuple[Slot, tuple[int, ...]]:
    """Draw a random slot, and the demands of its jobs, which are their caps."""
    rng = run.rng

    def numbers(count: int, least: int, most: int) -> tuple[int, ...]:
        return tuple(int(x) for x in rng.integers(least, most + 1, size=count))

    servers, jobs = int(rng.integers(1, 4)), int(rng.integers(1, most_jobs + 1))
    memory = numbers(servers, 1, 8)
    reserve = numbers(jobs, 1, int(rng.integers(1, min(4, max(memory)) + 1)))
    demands = numbers(jobs, 1, 6)
    return Slot(numbers(jobs, 1, 9), demands, reserve, numbers(servers, 1, 6), memory), demands


def _show_slot(slot: Slot) -> dict[str, Any]:
    return {name: list(values) for name, values in slot._asdict().items()}


def _slot(instance: Shown) -> Slot:
    return Slot(*(tuple(instance[name]) for name in Slot._fields))


def _small_slots(servers: int, jobs: int, cores: int, memory: int, worth: int) -> Iterator[Slot]:
    """Yield slots with given numbers of servers and jobs, and up to given cores and GB per server."""
    sizes = list(itertools.product(range(1, cores + 1), range(1, memory + 1)))
    kinds = list(itertools.product(range(worth, 0, -1), range(1, cores + 1), range(1, memory + 1)))
    for machines in itertools.combinations_with_replacement(sizes, servers):
        for chosen in itertools.combinations_with_replacement(kinds, jobs):
            worths, caps, reserve = zip(*chosen, strict=True)
            cpu, server_memory = zip(*machines, strict=True)
            if max(reserve) <= max(server_memory):
                yield Slot(worths, caps, reserve, cpu, server_memory)


def _first(slot: Slot) -> Matrix:
    """Return the first x: jobs by falling worth, packed."""
    order = sorted(range(len(slot.caps)), key=lambda j: (-slot.worth[j], j))
    return pack(fill(order, slot.caps, sum(slot.cpu)), slot.cpu)


def _last(slot: Slot) -> Matrix:
    """Return what Algorithm 1 ends with."""
    return alternate(slot, _first(slot))[1][-1]


def _slot_size(slot: Slot) -> tuple[int, ...]:
    sums = [sum(values) for values in (slot.cpu, slot.memory, slot.caps, slot.reserve, slot.worth)]
    return (len(slot.cpu), len(slot.caps), *sums, *itertools.chain(*slot))


def plain_best(slot: Slot) -> int:
    """Return the optimum of P3 by trying all cores of all jobs on all servers; for a handful of cores."""

    def tries(i: int) -> Iterator[tuple[int, ...]]:
        for cores in itertools.product(*(range(min(cap, slot.cpu[i]) + 1) for cap in slot.caps)):
            held = sum(m for m, u in zip(slot.reserve, cores, strict=True) if u)
            if sum(cores) <= slot.cpu[i] and held <= slot.memory[i]:
                yield cores

    best = 0
    for rows in itertools.product(*(list(tries(i)) for i in range(len(slot.cpu)))):
        sums = [sum(row[j] for row in rows) for j in range(len(slot.caps))]
        if all(u <= cap for u, cap in zip(sums, slot.caps, strict=True)):
            best = max(best, sum(w * u for w, u in zip(slot.worth, sums, strict=True)))
    return best


def _fits(rows: Sequence[Sequence[int]], slot: Slot) -> bool:
    """Return True if a placement keeps all constraints of P3."""
    servers = range(len(slot.cpu))
    return (
        all(0 <= sum(row) <= cap and min(row) >= 0 for row, cap in zip(rows, slot.caps, strict=True))
        and all(sum(row[i] for row in rows) <= slot.cpu[i] for i in servers)
        and all(
            sum(m for m, row in zip(slot.reserve, rows, strict=True) if row[i]) <= slot.memory[i]
            for i in servers
        )
    )


def _confirm_rounds(instance: Shown) -> bool:
    slot = _slot(instance)
    first, second = instance["first"], instance["second"]
    # the second placement is feasible and better, so no argmin could keep the first
    return (
        _fits(first, slot)
        and _fits(second, slot)
        and placement_value(second, slot.worth) > placement_value(first, slot.worth)
        and all(
            not new or old for a, b in zip(first, second, strict=True) for old, new in zip(a, b, strict=True)
        )
    )


@claim("theorem-1-iterations", confirm=_confirm_rounds)
def _check_iterations(run: Run) -> Finding:
    rounds: dict[int, int] = {}
    later = 0
    best = Smallest()
    drawn = (_draw_slot(run)[0] for _ in range(3_000 if run.small else 100_000))
    for slot in itertools.chain(_small_slots(1, 2, 3, 2, 2), _small_slots(2, 2, 2, 2, 2), drawn):
        cores, kept = alternate(slot, _first(slot))
        rounds[len(kept)] = rounds.get(len(kept), 0) + 1
        later += any(pair != (cores[1], kept[1]) for pair in zip(cores[2:], kept[2:], strict=True))
        if len(kept) > 2:
            best.see(_slot_size(slot), _show_slot(slot) | {"first": kept[0], "second": kept[1]})
    figures = {f"rounds_{count}": many for count, many in sorted(rounds.items())} | {"changed_later": later}
    if later or best.found is None:
        return Finding(NOT_REPRODUCED, f"changed after the second in {later} slots", figures=figures)
    text = (
        f"x and z are final after two iterations in all {sum(rounds.values()):,} slots; in {rounds[3]:,} "
        "the second improves on the first, and the loop makes a third, which changes nothing, as the "
        "second x fits"
    )
    return Finding(HOLDS, text, witness=best.found, figures=figures)


class Operations(NamedTuple):
    """The numbers of operations of one update of x and z.

    Attributes:
        pairs: jobs on servers, over all servers.
        cells: of the tables of all knapsacks, a job of server i having M_i of them.
        claimed: n max M_i.
        corrected: (n + M - 1) max M_i.
    """

    pairs: int
    cells: int
    claimed: int
    corrected: int


def _operations(slot: Slot) -> Operations:
    """Count what the first x and z of a slot take."""
    jobs, servers = range(len(slot.caps)), range(len(slot.cpu))
    x = _first(slot)
    hosted = [sum(1 for row in x if row[i]) for i in servers]
    most = max(slot.memory)
    return Operations(
        sum(hosted),
        sum(count * memory for count, memory in zip(hosted, slot.memory, strict=True)),
        len(jobs) * most,
        (len(jobs) + len(servers) - 1) * most,
    )


def _comparisons(values: Sequence[int]) -> int:
    """Return how many comparisons of two values sorting takes."""
    count = 0

    def compare(a: int, b: int) -> int:
        nonlocal count
        count += 1
        return a - b

    sorted(values, key=functools.cmp_to_key(compare))
    return count


def _wide_job(servers: int) -> Slot:
    """Return a slot with one job of as many cores as there are servers, each with one core and 1 GB."""
    return Slot((1,), (servers,), (1,), (1,) * servers, (1,) * servers)


def _confirm_operations(instance: Shown) -> bool:
    slot = _slot(instance)
    # one job gets all cores, one on each server: a knapsack with one cell each, M in all, for n max M_i = 1
    rows = [[1] * len(slot.cpu)]
    return (
        slot.caps == (len(slot.cpu),)
        and set(slot.cpu) == set(slot.memory) == {1}
        and _fits(rows, slot)
        and sum(slot.cpu) == sum(rows[0]) == instance["cells"]
        and instance["cells"] > len(slot.caps) * max(slot.memory) == instance["claimed"]
    )


@claim("theorem-1", confirm=_confirm_operations)
def _check_theorem_1(run: Run) -> Finding:
    wide = {servers: _operations(_wide_job(servers)) for servers in (2, 8, 32, 128)}
    checked = more = 0
    drawn = (_draw_slot(run, 9)[0] for _ in range(3_000 if run.small else 100_000))
    for slot in itertools.chain(_small_slots(2, 2, 2, 2, 1), drawn, map(_wide_job, wide)):
        found = _operations(slot)
        checked += 1
        more += found.cells > found.corrected or found.pairs > len(slot.caps) + len(slot.cpu) - 1
    sizes = [2**k for k in (4, 8, 12)]
    compared = [_comparisons(run.rng.permutation(n).tolist()) / n for n in sizes]
    figures = {
        "cells_over_claimed": {servers: one.cells / one.claimed for servers, one in wide.items()},
        "checked": checked,
        "above_corrected": more,
        "comparisons_per_job": dict(zip(sizes, compared, strict=True)),
    }
    ratios = [one.cells / one.claimed for one in wide.values()]
    if more or ratios[-1] < 2 * ratios[0] or compared[-1] < 2 * compared[0]:
        return Finding(NOT_REPRODUCED, f"cells / (n max M_i) {ratios}, {more} above", figures=figures)
    takes, widths = (", ".join(map(str, row)) for row in ([int(ratio) for ratio in ratios], wide))
    sorting, counts = ", ".join(f"{each:.1f}" for each in compared), ", ".join(map(str, sizes))
    text = (
        f"for one job of M cores on M servers of one core and 1 GB, the knapsack problems need {takes} times "
        f"n max M_i cells for M = {widths}; (n + M - 1) max M_i cells are enough in all {checked:,} slots. "
        f"The order of Eq. 21 takes {sorting} comparisons per job for n = {counts}, in total O(n log n + (n "
        "+ M) max M_i). Every x after the first is a transportation problem, which takes longer"
    )
    slot = _wide_job(2)
    found = _operations(slot)
    example = _show_slot(slot) | {"cells": found.cells, "claimed": found.claimed}
    return Finding(CORRECTED, text, counterexample=example, figures=figures)


def _ratio(slot: Slot, demands: Sequence[int]) -> Fraction:
    """Return the ratio of Theorem 2."""
    m, d = max(slot.reserve), min(demands)
    return min(
        Fraction((memory - m) * d, (cores + 2 * d) * m)
        for memory, cores in zip(slot.memory, slot.cpu, strict=True)
    )


def _confirm_ratio(instance: Shown) -> bool:
    slot = _slot(instance)
    m, d = max(instance["reserve"]), min(instance["caps"])
    claimed = min((r - m) / (c + 2 * d) * d / m for r, c in zip(slot.memory, slot.cpu, strict=True))
    best = plain_best(slot)
    # the slot's optimum is what is reached, and nothing can be above it
    return (
        best == instance["optimum"] == instance["reached"]
        and abs(claimed - Fraction(instance["ratio"])) < 1e-9
        and Fraction(instance["ratio"]) > 1
    )


@claim("theorem-2", confirm=_confirm_ratio)
def _check_theorem_2(run: Run) -> Finding:
    checked = above = broken = 0
    least = Fraction(10)
    worst = Fraction(1)
    best = Smallest()
    drawn = (_draw_slot(run) for _ in range(1_500 if run.small else 100_000))
    tiny = ((slot, slot.caps) for slot in _small_slots(1, 1, 2, 8, 1))
    for slot, demands in itertools.chain(tiny, drawn):
        ratio = _ratio(slot, demands)
        reached, optimum = placement_value(_last(slot), slot.worth), best_value(slot)
        checked += 1
        if optimum:
            worst = min(worst, Fraction(reached, optimum))
        if ratio > 0 and optimum:
            least = min(least, Fraction(reached, optimum) / min(Fraction(1), ratio))
        broken += reached < min(Fraction(1), ratio) * optimum
        if reached < ratio * optimum:
            above += 1
            details = {"ratio": str(ratio), "reached": reached, "optimum": optimum}
            best.see(_slot_size(slot), _show_slot(slot) | details)
    # seven jobs with one core-slot left: d_min says nothing of how many fit on a server
    left = Slot((10,) * 7 + (9,), (1,) * 7 + (8,), (1,) * 8, (8,), (3,))
    reached, optimum = placement_value(_last(left), left.worth), best_value(left)
    beyond = reached < min(Fraction(1), _ratio(left, [8] * 8)) * optimum
    figures = {
        "checked": checked,
        "above_one": above,
        "below_min_one": broken,
        "worst_share_reached": str(worst),
        "least_reached_over_promised": str(least),
        "work_left": {"reached": reached, "optimum": optimum, "ratio": str(_ratio(left, [8] * 8))},
    }
    if broken:
        return Finding(NOT_REPRODUCED, f"min(1, .) fails in {broken} of {checked:,} slots", figures=figures)
    if best.found is None:
        return Finding(HOLDS, f"in all {checked:,} slots", figures=figures)
    text = (
        f"in {above:,} of {checked:,} slots the ratio is above 1 and not reached; min(1, ratio) is "
        "reached in all"
    )
    if beyond:
        text += (
            f"; if the work left limits cores, d_min must be the least such limit (else it is reached in "
            f"{reached} of {optimum})"
        )
    return Finding(CORRECTED, text, counterexample=best.found, figures=figures)


def _confirm_alternation(instance: Shown) -> bool:
    slot = _slot(instance)
    return (
        _fits(instance["alternation"], slot)
        and _last(slot) == instance["alternation"]
        and placement_value(instance["alternation"], slot.worth) == instance["reached"]
        and plain_best(slot) == instance["optimum"] > instance["reached"]
    )


@claim("alternation", confirm=_confirm_alternation)
def _check_alternation(run: Run) -> Finding:
    checked = below = 0
    worst = Fraction(1)
    best = Smallest()
    sizes = [(1, 2, 3, 2, 3), (2, 2, 2, 2, 3)] if run.small else [(1, 3, 3, 3, 4), (2, 2, 3, 3, 3)]
    for slot in itertools.chain.from_iterable(_small_slots(*size) for size in sizes):
        last = _last(slot)
        reached, optimum = placement_value(last, slot.worth), best_value(slot)
        checked += 1
        if reached < optimum:
            below += 1
            worst = min(worst, Fraction(reached, optimum))
            details = {"alternation": last, "reached": reached, "optimum": optimum}
            best.see(_slot_size(slot), _show_slot(slot) | details)
    figures = {"checked": checked, "below": below, "worst_share": str(worst)}
    if best.found is None:
        return Finding(HOLDS, f"in all {checked:,} slots", figures=figures)
    text = (
        f"the result is below the optimum in {below:,} of {checked:,} slots (at worst {worst} of it): a job "
        "that the first x leaves out never comes back (without backfill)"
    )
    return Finding(REFUTED, text, counterexample=best.found, figures=figures)


def _greedy(values: Sequence[int], weights: Sequence[int], capacity: int) -> int:
    """Return the value that the proof of Theorem 2 constructs: items that still fit, by decreasing value."""
    total = 0
    for j in sorted(range(len(values)), key=lambda j: (-values[j], j)):
        if weights[j] <= capacity:
            capacity -= weights[j]
            total += values[j]
    return total


def _confirm_knapsack(instance: Shown) -> bool:
    values, weights = instance["values"], instance["memory_of_jobs"]
    better = instance["better"]
    return (
        sum(weights[j] for j in better) <= instance["memory"]
        and sum(values[j] for j in better) == instance["optimum"] > instance["constructed"]
        and _greedy(values, weights, instance["memory"]) == instance["constructed"]
    )


@claim("equation-19", confirm=_confirm_knapsack)
def _check_equation_19(run: Run) -> Finding:
    checked = less = more = 0
    best = Smallest()
    for count in (1, 2, 3):
        kinds = list(itertools.product(range(1, 5), range(1, 4)))
        for items in itertools.combinations_with_replacement(kinds, count):
            values, weights = zip(*items, strict=True)
            for memory in range(1, 5):
                taken = knapsack(values, weights, memory)
                own, optimum = _greedy(values, weights, memory), sum(itertools.compress(values, taken))
                checked += 1
                more += own > optimum
                if own < optimum:
                    less += 1
                    example = {
                        "values": list(values),
                        "memory_of_jobs": list(weights),
                        "memory": memory,
                        "constructed": own,
                        "optimum": optimum,
                        "better": list(itertools.compress(range(count), taken)),
                    }
                    best.see((count, memory, sum(weights), sum(values), *values, *weights), example)
    figures = {"checked": checked, "less": less, "more": more}
    if best.found is None:
        return Finding(HOLDS, f"in all {checked:,} servers", figures=figures)
    text = (
        f'it is worth less on {less:,} of {checked:,} servers, and more on {more}: "<=" is meant, which '
        "the rest of the proof needs"
    )
    return Finding(
        CORRECTED if not more else NOT_REPRODUCED, text, counterexample=best.found, figures=figures
    )


def _confirm_hosts(instance: Shown) -> bool:
    cpu, cores, rows = instance["cpu"], instance["cores"], instance["placement"]
    i = instance["server"]
    here = sum(1 for row in rows if row[i])
    return (
        rows == pack(cores, cpu)
        and [sum(row) for row in rows] == cores
        and all(sum(row[s] for row in rows) <= cpu[s] for s in range(len(cpu)))
        and here == instance["jobs_there"] > (cpu[i] - 2) / min(instance["demands"]) + 2
    )


@claim("jobs-on-a-server", confirm=_confirm_hosts)
def _check_hosts(run: Run) -> Finding:
    checked = wide = 0
    best = Smallest()
    most = 5 if run.small else 7

    def cases() -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        for servers in range(1, 4):
            for cpu in itertools.combinations_with_replacement(range(most, 0, -1), servers):
                for count in range(1, 5):
                    for demands in itertools.combinations_with_replacement(range(1, most + 2), count):
                        yield cpu, demands
        for servers, capacity in itertools.product(range(2, 6), range(2, 13)):  # equal servers and jobs
            for d in range(2, capacity + 1):
                for count in range(1, -(-servers * capacity // d) + 1):
                    yield (capacity,) * servers, (d,) * count

    for cpu, demands in cases():
        cores = fill(range(len(demands)), demands, sum(cpu))
        rows = pack(cores, cpu)
        checked += 1
        for i, capacity in enumerate(cpu):
            here = sum(1 for row in rows if row[i])
            if (here - 2) * min(demands) <= capacity - 2:
                continue
            if max(demands) > min(cpu):
                wide += 1
                continue
            details = {"cpu": list(cpu), "demands": list(demands), "cores": cores, "placement": rows}
            best.see(
                (len(cpu), len(demands), sum(cpu), sum(demands), *cpu, *demands),
                details | {"server": i, "jobs_there": here},
            )
    figures = {"checked": checked, "where_a_job_is_wider_than_a_server": wide}
    if best.found is None:
        return Finding(HOLDS, f"in all {checked:,} packings", figures=figures)
    text = "a server can get parts of more than two jobs, even if each job fits on each server (if not, in"
    text += f" {wide:,} more cases of {checked:,} packings), so n is not bounded as the proof says"
    return Finding(REFUTED, text, counterexample=best.found, figures=figures)
