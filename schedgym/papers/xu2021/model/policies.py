"""Policies of one slot: priority rules, Tetris, dominant resource fairness, the transient algorithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from schedgym.papers.xu2021.model.slot import Matrix, Number

__all__ = ["Entry", "PRIORITY_RULES", "drf", "rule_order", "tetris", "transient"]

PRIORITY_RULES = ("srpt", "srvf", "svf", "srf", "fifo")


class Entry(NamedTuple):
    """A visible job as a policy sees it in one slot.

    demand: declared cores (MapReduce: of a task of the phase). cap: the most cores it may get.
    weight: of Eq. 5 (MapReduce: of problem P5). target, unit: lambda grows by
    mu (target / max(gamma - a, 1) - used / unit). slots, left, whole: remaining slots, remaining and
    original volume by the declared demand.
    """

    job: int
    phase: int
    arrival: int
    age: int
    demand: int
    cap: int
    reserve: int
    weight: Number
    target: float
    tasks: int
    unit: int
    slots: Fraction
    left: Fraction
    whole: int


def rule_order(entries: Sequence[Entry], rule: str) -> list[int]:
    """Positions of the entries by a priority rule; ties: earlier arrival, then lower id."""
    key: dict[str, Callable[[Entry], Fraction | int]] = {
        "srpt": lambda e: e.slots,
        "srvf": lambda e: e.left,
        "svf": lambda e: e.whole,
        "srf": lambda e: e.demand,
        "fifo": lambda e: e.arrival,
    }
    return sorted(
        range(len(entries)), key=lambda n: (key[rule](entries[n]), entries[n].arrival, entries[n].job)
    )


def tetris(entries: Sequence[Entry], cpu: Sequence[int], memory: Sequence[int] | None) -> Matrix:
    """Tetris (Grandl et al. 2014), for this model.

    Choice: again and again the pair of job and server with the greatest score gets min(cap, free cores).
    The alignment of a pair is d/C free/C (+ m/M freememory/M), where C and M are those of all servers. Its
    score is alignment / mean alignment - remaining volume / mean remaining volume; the means are over the
    pairs that are still open. Ties: earlier arrival, lower id, lower server.
    """
    total = sum(cpu)
    free = list(cpu)
    room = [0] * len(cpu) if memory is None else list(memory)
    u = [[0] * len(cpu) for _ in entries]
    while True:
        pairs: list[tuple[int, int, Fraction]] = []
        for n, e in enumerate(entries):
            for i in range(len(cpu)):
                if free[i] == 0 or sum(u[n]) == e.cap or e.reserve > room[i]:
                    continue
                alignment = Fraction(e.demand * free[i], total**2)
                if memory is not None:
                    alignment += Fraction(e.reserve * room[i], sum(memory) ** 2)
                pairs.append((n, i, alignment))
        if not pairs:
            return u
        mean_alignment = sum((a for _, _, a in pairs), Fraction(0)) / len(pairs)
        mean_left = sum((entries[n].left for n, _, _ in pairs), Fraction(0)) / len(pairs)

        def badness(
            pair: tuple[int, int, Fraction], a: Fraction = mean_alignment, v: Fraction = mean_left
        ) -> tuple[Fraction, int, int, int]:
            e = entries[pair[0]]
            return e.left / v - pair[2] / a, e.arrival, e.job, pair[1]

        n, i, _ = min(pairs, key=badness)
        amount = min(entries[n].cap - sum(u[n]), free[i])
        u[n][i] += amount
        free[i] -= amount
        if memory is not None:
            room[i] -= entries[n].reserve


def drf(entries: Sequence[Entry], cpu: Sequence[int], memory: Sequence[int] | None) -> Matrix:
    """Dominant resource fairness (Ghodsi et al. 2011) by progressive filling, core by core.

    Choice: the next core goes to the job with the least dominant share, max(cores/C, memory reserved/M),
    that can take one (ties: earlier arrival, lower id); of the servers it is on already that have a core
    free, else of those with a core and its memory free, it takes the one with most free cores (ties: lower
    server).
    """
    servers = range(len(cpu))
    free = list(cpu)
    room = [0] * len(cpu) if memory is None else list(memory)
    u = [[0] * len(cpu) for _ in entries]

    def share(n: int) -> tuple[Fraction, int, int]:
        e = entries[n]
        cores = Fraction(sum(u[n]), sum(cpu))
        held = Fraction(0)
        if memory is not None:
            held = Fraction(e.reserve * sum(amount > 0 for amount in u[n]), sum(memory))
        return max(cores, held), e.arrival, e.job

    def hosts(n: int) -> list[int]:
        if sum(u[n]) == entries[n].cap:
            return []
        on = [i for i in servers if u[n][i] > 0 and free[i] > 0]
        return on or [i for i in servers if free[i] > 0 and entries[n].reserve <= room[i]]

    while True:
        able = [n for n in range(len(entries)) if hosts(n)]
        if not able:
            return u
        n = min(able, key=share)
        i = min(hosts(n), key=lambda i: (-free[i], i))
        if u[n][i] == 0 and memory is not None:
            room[i] -= entries[n].reserve
        u[n][i] += 1
        free[i] -= 1


def transient(entries: Sequence[Entry], capacity: int) -> list[int]:
    """Eq. 38, solved core by core: max sum y/p, where a core of a job is worth 1 / (p d)."""
    units = sorted((e.whole, e.arrival, e.job, n) for n, e in enumerate(entries) for _ in range(e.cap))
    cores = [0] * len(entries)
    for *_, n in units[:capacity]:
        cores[n] += 1
    return cores
