"""Section III: the slot with memory, Theorems 1 and 2."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from schedgym.papers import CORRECTED, HOLDS, NOT_REPRODUCED, REFUTED, Finding, Run, Shown, searches
from schedgym.papers.searches import Details, Searched, Sentences, Smallest, confirm_by, smallest_flaw
from schedgym.papers.xu2021 import model
from schedgym.papers.xu2021.instances import claim
from schedgym.papers.xu2021.model import Matrix, Slot


def _draw_slot(run: Run, most_jobs: int = 5) -> Slot:
    """Draw a random slot, in which the demands of the jobs are their caps."""
    rng = run.rng

    def numbers(count: int, least: int, most: int) -> tuple[int, ...]:
        return tuple(int(x) for x in rng.integers(least, most + 1, size=count))

    servers, jobs = int(rng.integers(1, 4)), int(rng.integers(1, most_jobs + 1))
    memory = numbers(servers, 1, 8)
    reserve = numbers(jobs, 1, int(rng.integers(1, min(4, max(memory)) + 1)))
    demands = numbers(jobs, 1, 6)
    return Slot(numbers(jobs, 1, 9), demands, reserve, numbers(servers, 1, 6), memory)


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
    return model.pack(model.fill(order, slot.caps, sum(slot.cpu)), slot.cpu)


def _last(slot: Slot) -> Matrix:
    """Return what Algorithm 1 ends with."""
    return model.alternate(slot, _first(slot))[1][-1]


def _slot_size(slot: Slot) -> tuple[int, ...]:
    sums = [sum(values) for values in (slot.cpu, slot.memory, slot.caps, slot.reserve, slot.worth)]
    return (len(slot.cpu), len(slot.caps), *sums, *itertools.chain(*slot))


def _find_flaw(slots: Iterable[Slot], flaw: Callable[[Slot], Details]) -> Searched:
    """Find the smallest slot with a flaw."""
    return smallest_flaw(slots, flaw, size=_slot_size, show=_show_slot)


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
        and model.placement_value(second, slot.worth) > model.placement_value(first, slot.worth)
        and all(
            not new or old for a, b in zip(first, second, strict=True) for old, new in zip(a, b, strict=True)
        )
    )


@claim("theorem-1-iterations", confirm=_confirm_rounds)
def _check_iterations(run: Run, say: Sentences) -> Finding:
    rounds: Counter[int] = Counter()
    later = 0

    def flaw(slot: Slot) -> Details:
        nonlocal later
        cores, kept = model.alternate(slot, _first(slot))
        rounds[len(kept)] += 1
        later += any(pair != (cores[1], kept[1]) for pair in zip(cores[2:], kept[2:], strict=True))
        return {"first": kept[0], "second": kept[1]} if len(kept) > 2 else None

    drawn = (_draw_slot(run) for _ in range(3_000 if run.small else 100_000))
    slots = itertools.chain(_small_slots(1, 2, 3, 2, 2), _small_slots(2, 2, 2, 2, 2), drawn)
    searched = _find_flaw(slots, flaw)
    figures = {f"rounds_{count}": many for count, many in sorted(rounds.items())} | {"changed_later": later}
    verdict = NOT_REPRODUCED if later or searched.found is None else HOLDS
    return say(verdict, figures, witness=searched.found, checked=searched.checked, improved=rounds[3])


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
def _check_theorem_1(run: Run, say: Sentences) -> Finding:
    wide = {servers: _operations(_wide_job(servers)) for servers in (2, 8, 32, 128)}
    checked = more = 0
    drawn = (_draw_slot(run, 9) for _ in range(3_000 if run.small else 100_000))
    for slot in itertools.chain(_small_slots(2, 2, 2, 2, 1), drawn, map(_wide_job, wide)):
        found = _operations(slot)
        checked += 1
        more += found.cells > found.corrected or found.pairs > len(slot.caps) + len(slot.cpu) - 1
    sizes = [2**k for k in (4, 8, 12)]
    compared = [searches.count_comparisons(run.rng.permutation(n).tolist()) / n for n in sizes]
    ratios = [one.cells / one.claimed for one in wide.values()]
    figures = {
        "cells_over_claimed": dict(zip(wide, ratios, strict=True)),
        "checked": checked,
        "above_corrected": more,
        "comparisons_per_job": dict(zip(sizes, compared, strict=True)),
    }
    slot = _wide_job(2)
    example = _show_slot(slot) | {"cells": wide[2].cells, "claimed": wide[2].claimed}
    wrong = more or ratios[-1] < 2 * ratios[0] or compared[-1] < 2 * compared[0]
    return say(
        NOT_REPRODUCED if wrong else CORRECTED,
        figures,
        counterexample=example,
        ratios=ratios,
        takes=", ".join(f"{ratio:.0f}" for ratio in ratios),
        widths=", ".join(map(str, wide)),
        sorting=", ".join(f"{each:.1f}" for each in compared),
        counts=", ".join(map(str, sizes)),
    )


def _ratio(slot: Slot, demands: Sequence[int]) -> Fraction:
    """Return the ratio of Theorem 2."""
    m, d = max(slot.reserve), min(demands)
    return min(
        Fraction((memory - m) * d, (cores + 2 * d) * m)
        for memory, cores in zip(slot.memory, slot.cpu, strict=True)
    )


Best = Callable[[Slot], int]  # returns the optimum of a slot


def _above_optimum(slot: Slot, best: Best = model.best_value) -> Details:
    """Return the ratio of Theorem 2 of a slot in which it is not reached."""
    ratio = _ratio(slot, slot.caps)
    reached, optimum = model.placement_value(_last(slot), slot.worth), best(slot)
    if reached >= ratio * optimum:
        return None
    return {"ratio": str(ratio), "reached": reached, "optimum": optimum}


@claim("theorem-2", confirm=confirm_by(_slot, lambda slot: _above_optimum(slot, model.plain_best)))
def _check_theorem_2(run: Run, say: Sentences) -> Finding:
    broken = 0
    least, worst = Fraction(10), Fraction(1)

    def flaw(slot: Slot) -> Details:
        nonlocal broken, least, worst
        ratio = min(Fraction(1), _ratio(slot, slot.caps))
        reached, optimum = model.placement_value(_last(slot), slot.worth), model.best_value(slot)
        if optimum:
            worst = min(worst, Fraction(reached, optimum))
        if ratio > 0 and optimum:
            least = min(least, Fraction(reached, optimum) / ratio)
        broken += reached < ratio * optimum
        return _above_optimum(slot, lambda slot: optimum)

    drawn = (_draw_slot(run) for _ in range(1_500 if run.small else 100_000))
    searched = _find_flaw(itertools.chain(_small_slots(1, 1, 2, 8, 1), drawn), flaw)
    # seven jobs with one core-slot left: d_min says nothing of how many fit on a server
    left = Slot((10,) * 7 + (9,), (1,) * 7 + (8,), (1,) * 8, (8,), (3,))
    reached, optimum = model.placement_value(_last(left), left.worth), model.best_value(left)
    ratio = _ratio(left, [8] * 8)
    figures = {
        "checked": searched.checked,
        "above_one": searched.flawed,
        "below_min_one": broken,
        "worst_share_reached": str(worst),
        "least_reached_over_promised": str(least),
        "work_left": {"reached": reached, "optimum": optimum, "ratio": str(ratio)},
    }
    more = ""
    if reached < min(Fraction(1), ratio) * optimum:
        more = (
            "; if the work left limits cores, d_min must be the least such limit (else it is reached in "
            f"{reached} of {optimum})"
        )
    verdict = NOT_REPRODUCED if broken else CORRECTED if searched.flawed else HOLDS
    return say(verdict, figures, counterexample=searched.found, more=more)


def _below_optimum(slot: Slot, best: Best = model.best_value) -> Details:
    """Return what alternation ends with, if it is below the optimum."""
    last = _last(slot)
    reached, optimum = model.placement_value(last, slot.worth), best(slot)
    return {"alternation": last, "reached": reached, "optimum": optimum} if reached < optimum else None


def _confirm_alternation(instance: Shown) -> bool:
    slot = _slot(instance)
    same = confirm_by(_slot, lambda slot: _below_optimum(slot, model.plain_best))
    return same(instance) and _fits(instance["alternation"], slot)


@claim("alternation", confirm=_confirm_alternation)
def _check_alternation(run: Run, say: Sentences) -> Finding:
    worst = Fraction(1)

    def flaw(slot: Slot) -> Details:
        nonlocal worst
        details = _below_optimum(slot)
        if details is not None:
            worst = min(worst, Fraction(details["reached"], details["optimum"]))
        return details

    sizes = [(1, 2, 3, 2, 3), (2, 2, 2, 2, 3)] if run.small else [(1, 3, 3, 3, 4), (2, 2, 3, 3, 3)]
    searched = _find_flaw(itertools.chain.from_iterable(_small_slots(*size) for size in sizes), flaw)
    figures = {"checked": searched.checked, "below": searched.flawed, "worst_share": str(worst)}
    verdict = HOLDS if searched.found is None else REFUTED
    return say(verdict, figures, counterexample=searched.found)


def _greedy(values: Sequence[int], weights: Sequence[int], capacity: int) -> int:
    """Return the value that the proof of Theorem 2 constructs: items that still fit, by decreasing value."""
    total = 0
    for j in sorted(range(len(values)), key=lambda j: (-values[j], j)):
        if weights[j] <= capacity:
            capacity -= weights[j]
            total += values[j]
    return total


def _server(values: Sequence[int], weights: Sequence[int], memory: int) -> dict[str, Any]:
    """Return a server as a finding shows it, with the constructed value and the optimum."""
    taken = model.knapsack(values, weights, memory)
    return {
        "values": list(values),
        "memory_of_jobs": list(weights),
        "memory": memory,
        "constructed": _greedy(values, weights, memory),
        "optimum": sum(itertools.compress(values, taken)),
        "better": list(itertools.compress(range(len(values)), taken)),
    }


def _confirm_knapsack(instance: Shown) -> bool:
    values, weights = instance["values"], instance["memory_of_jobs"]
    better = instance["better"]
    return (
        sum(weights[j] for j in better) <= instance["memory"]
        and sum(values[j] for j in better) == instance["optimum"] > instance["constructed"]
        and _greedy(values, weights, instance["memory"]) == instance["constructed"]
    )


@claim("equation-19", confirm=_confirm_knapsack)
def _check_equation_19(run: Run, say: Sentences) -> Finding:
    kinds = list(itertools.product(range(1, 5), range(1, 4)))
    servers = [
        _server([value for value, _ in items], [weight for _, weight in items], memory)
        for count in (1, 2, 3)
        for memory in range(1, 5)
        for items in itertools.combinations_with_replacement(kinds, count)
    ]
    more = sum(one["constructed"] > one["optimum"] for one in servers)

    def size(one: Shown) -> tuple[Any, ...]:
        values, weights = one["values"], one["memory_of_jobs"]
        return len(values), one["memory"], sum(weights), sum(values), values

    checked, less, found = smallest_flaw(
        servers, lambda one: one if one["constructed"] < one["optimum"] else None, size=size
    )
    verdict = HOLDS if found is None else CORRECTED if not more else NOT_REPRODUCED
    return say(verdict, {"checked": checked, "less": less, "more": more}, counterexample=found)


def _crowded(cpu: Sequence[int], demands: Sequence[int], server: int) -> dict[str, Any]:
    """Return how jobs are packed on servers, as a finding shows it, and how many are on one of them."""
    cores = model.fill(range(len(demands)), demands, sum(cpu))
    rows = model.pack(cores, cpu)
    here = sum(1 for row in rows if row[server])
    shown = {"cpu": list(cpu), "demands": list(demands), "cores": cores, "placement": rows}
    return shown | {"server": server, "jobs_there": here}


def _is_crowded(shown: Shown) -> bool:
    return (shown["jobs_there"] - 2) * min(shown["demands"]) > shown["cpu"][shown["server"]] - 2


def _confirm_hosts(instance: Shown) -> bool:
    again = _crowded(instance["cpu"], instance["demands"], instance["server"])
    return again == instance and _is_crowded(again)


@claim("jobs-on-a-server", confirm=_confirm_hosts)
def _check_hosts(run: Run, say: Sentences) -> Finding:
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

    checked, wide = 0, 0
    best = Smallest()
    for cpu, demands in cases():
        checked += 1
        for packed in (_crowded(cpu, demands, i) for i in range(len(cpu))):
            if _is_crowded(packed) and max(demands) > min(cpu):
                wide += 1
            elif _is_crowded(packed):
                best.see((len(cpu), len(demands), sum(cpu), sum(demands), *cpu, *demands), packed)
    figures = {"checked": checked, "where_a_job_is_wider_than_a_server": wide}
    verdict = HOLDS if best.found is None else REFUTED
    return say(verdict, figures, counterexample=best.found, wide=wide)
