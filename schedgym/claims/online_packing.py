"""Claims of "Optimal Job Scheduling With Resource Packing for Heterogeneous Servers" (OCORP, paper 000).

What the paper proves or says of single slots and of small instances, in exact numbers (``tiny_flowtime``).
Its trace experiments (section VI) are left to ``schedgym compare``. Jobs are written arrival, processing,
cpu; cores are those of all servers. "Literal" OCORP is Algorithm 1 as printed: no job runs unless its omega
is negative; in it the work left is a cap, and case 2 of Eq. 22 sums to j - 1.

A counterexample is the smallest one by number of jobs, cores, core-slots in all and slots in all, of those
enumerated.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from schedgym.claims.frame import Finding, Instance, Paper, Run, Verdict, claim
from schedgym.claims.tiny_flowtime import (
    Job,
    Schedule,
    Slot,
    alternate,
    best_value,
    completions,
    eq27,
    feasible,
    fill,
    flowtime,
    flowtime_best,
    fractional,
    fractional_best,
    keep,
    literal_ocorp,
    multisets,
    pack,
    plain_best,
    rule,
    transient_least,
    value,
)

__all__ = ["PAPER"]

PAPER = Paper(
    "online-packing",
    "Optimal Job Scheduling With Resource Packing for Heterogeneous Servers (Xu, Liu and Lau, 2021)",
)

HOLDS, CORRECTED, REFUTED = Verdict.HOLDS, Verdict.CORRECTED, Verdict.REFUTED
MISSED = Verdict.NOT_REPRODUCED
K = 2  # of the paper's experiments
GAMMA = 4000  # of the paper's experiments [slots]


# instances -------------------------------------------------------------------------------------------


def _shown(jobs: Sequence[Job], cores: int) -> dict[str, Any]:
    """An instance as a finding shows it."""
    return {
        "arrival": [a for a, _, _ in jobs],
        "processing": [p for _, p, _ in jobs],
        "cpu": [d for _, _, d in jobs],
        "cores": cores,
    }


def _given(instance: Instance) -> tuple[tuple[Job, ...], int]:
    """The opposite of :func:`_shown`."""
    columns = (instance["arrival"], instance["processing"], instance["cpu"])
    return tuple(zip(*columns, strict=True)), instance["cores"]


def _size(jobs: Sequence[Job], cores: int) -> tuple[int, ...]:
    work, length = sum(p * d for _, p, d in jobs), sum(p for _, p, _ in jobs)
    return (len(jobs), cores, work, length, sum(a for a, _, _ in jobs), *itertools.chain(*jobs))


class _Search(NamedTuple):
    """What was looked at: how many, how many were flawed, the smallest flawed one."""

    checked: int
    flawed: int
    found: dict[str, Any] | None


def _search(
    cases: Iterable[tuple[Sequence[Job], int]],
    flaw: Callable[[Sequence[Job], int], dict[str, Any] | None],
) -> _Search:
    """The smallest case with a flaw."""
    checked = flawed = 0
    best: tuple[tuple[int, ...], dict[str, Any]] | None = None
    for jobs, cores in cases:
        checked += 1
        details = flaw(jobs, cores)
        if details is None:
            continue
        flawed += 1
        size = _size(jobs, cores)
        if best is None or size < best[0]:
            best = size, _shown(jobs, cores) | details
    return _Search(checked, flawed, None if best is None else best[1])


def _tiny(run: Run, latest: int = 0) -> Iterator[tuple[tuple[Job, ...], int]]:
    """Instances with up to three jobs (paper scale: larger ones, and four jobs that are there at once)."""
    counts = [(1, 4, 3), (2, 3, 3), (3, 2 if latest else 3, 2)]
    if not run.small:
        counts = [(1, 6, 4), (2, 5, 4), (3, 3 if latest else 4, 3)]
    if not run.small and not latest:
        counts.append((4, 3, 2))
    for count, longest, widest in counts:
        for cores in range(1, 4 if run.small else 5):
            for jobs in multisets(count, longest, widest, latest if count < 3 else min(latest, 1)):
                yield jobs, cores


def _against(verdict: Verdict, searched: _Search, text: str, **figures: Any) -> Finding:
    """A finding from a search for a counterexample."""
    count = {"checked": searched.checked, "flawed": searched.flawed}
    if searched.found is None:
        return Finding(HOLDS, f"none among {searched.checked:,} instances", figures=count | figures)
    evidence = f"{searched.flawed:,} of {searched.checked:,} instances; {text}"
    return Finding(verdict, evidence, counterexample=searched.found, figures=count | figures)


def _rows(schedule: Schedule) -> list[list[int]]:
    return [list(given) for given in schedule]


def _schedule(rows: Sequence[Sequence[int]]) -> Schedule:
    return [tuple(row) for row in rows]


# sections I and II: the fractional flowtime ------------------------------------------------------------

RATES = {1: ["1/3"] * 3, 2: ["1/3"] * 3 + ["1/2"] * 2, 3: ["1/3"] * 3 + ["1/2"] * 2 + ["1"]}


def _example(p: int, added: int) -> Fraction:
    """The fractional flowtime of job p of Table I, with ``added`` for the second part of the weight."""
    rates = [Fraction(rate) for rate in RATES[p]]
    return sum((Fraction(t, p) * y for t, y in enumerate(rates, start=1)), Fraction(0)) + added


def _confirm_example(instance: Instance) -> bool:
    p, rates = instance["processing"], [Fraction(rate) for rate in instance["rates"]]
    served = sum(rates, Fraction(0))
    meant = sum((Fraction(t + p, p) * y for t, y in enumerate(rates, start=1)), Fraction(0))
    added = meant - sum((Fraction(t, p) * y for t, y in enumerate(rates, start=1)), Fraction(0))
    return (
        served == p
        and str(meant) == instance["fractional"]
        and added == p != instance["printed_addend"]
        and meant - added + instance["printed_addend"] == Fraction(instance["printed_sum"]) != meant
    )


@claim(
    PAPER,
    "example-1",
    text='under fair sharing the fractional flowtimes are 3, 5.25, "... + 6/3 + 2 = 7 1/6": a ratio of 1.1',
    source="Example 1, Table I",
    recorded=CORRECTED,
    confirm=_confirm_example,
)
def _check_example(run: Run) -> Finding:
    found = [_example(p, p) for p in RATES]
    printed = [_example(p, added) for p, added in zip(RATES, (1, 2, 2), strict=True)]
    actual = [len(rates) for rates in RATES.values()]
    ratio = sum(found, Fraction(0)) / sum(actual)
    figures = {"fractional": [str(x) for x in found], "actual": actual, "ratio": str(ratio)}
    if found != [3, Fraction(21, 4), Fraction(43, 6)] or actual != [3, 5, 6] or round(float(ratio), 1) != 1.1:
        return Finding(MISSED, f"fractional {figures['fractional']}", figures=figures)
    text = f"the values are right, the ratio is {float(ratio):.4f}; the last addend of job 3 is 3, not 2"
    example = {
        "processing": 3,
        "rates": RATES[3],
        "fractional": str(found[2]),
        "printed_addend": 2,
        "printed_sum": str(printed[2]),
    }
    return Finding(CORRECTED, text, counterexample=example, figures=figures)


def _confirm_surrogate(instance: Instance) -> bool:
    jobs, cores = _given(instance)
    return fractional_best(jobs, cores)[0] == 2 * flowtime_best(jobs, cores)[0]


@claim(
    PAPER,
    "equation-6",
    text="OPT_P2 <= 2 OPT_P1",
    source="Eq. 6",
    recorded=HOLDS,
    confirm=_confirm_surrogate,
)
def _check_equation_6(run: Run) -> Finding:
    worst, checked = Fraction(0), 0
    example: dict[str, Any] = {}
    for k in (1, 2, 3):
        for jobs, cores in _tiny(run, 1):
            ratio = fractional_best(jobs, cores, k)[0] / flowtime_best(jobs, cores, k)[0]
            checked += 1
            if ratio > worst:
                worst, example = ratio, _shown(jobs, cores)
    figures = {"checked": checked, "largest_ratio": str(worst)}
    if worst > 2:
        return Finding(MISSED, f"a ratio of {worst}", figures=figures)
    text = f"the largest of {checked:,} ratios (k = 1, 2, 3) is {worst}: every job has p^k <= f^k, and its"
    return Finding(HOLDS, text + " other part is a mean of age^k <= f^k", witness=example, figures=figures)


def _confirm_surrogate_above(instance: Instance) -> bool:
    jobs, cores = _given(instance)
    better = _schedule(instance["schedule"])
    # P2 charges each core-slot more than sum p^k / work, so no schedule is below sum p^k + ...
    return (
        feasible(jobs, cores, better)
        and flowtime(jobs, better) == instance["flowtime"]
        and str(fractional_best(jobs, cores)[0]) == instance["OPT_P2"]
        and Fraction(instance["OPT_P2"]) > instance["flowtime"]
    )


@claim(
    PAPER,
    "surrogate-is-no-bound",
    text="the optimum of the surrogate P2 is a lower bound of P1 (not said; Eq. 6 has a factor of 2)",
    source="Eq. 6",
    recorded=REFUTED,
    confirm=_confirm_surrogate_above,
)
def _check_surrogate(run: Run) -> Finding:
    def flaw(jobs: Sequence[Job], cores: int) -> dict[str, Any] | None:
        best, schedule = flowtime_best(jobs, cores)
        own = fractional_best(jobs, cores)[0]
        if own <= best:
            return None
        return {"OPT_P2": str(own), "flowtime": best, "schedule": _rows(schedule)}

    searched = _search(_tiny(run, 1), flaw)
    return _against(REFUTED, searched, "OPT_P2 is above the optimum (k = 1)")


def _bounds(jobs: Sequence[Job], cores: int, k: int) -> dict[str, Fraction]:
    """Lower bounds on the sum of flowtime^k."""
    own, alone = fractional_best(jobs, cores, k)[0], sum(p**k for _, p, _ in jobs)
    bounds = {"sum p^k": Fraction(alone), "OPT_P2 / 2": own / 2, "OPT_P2 - sum p^k": own - alone}
    if k == 1:
        bounds["OPT_P2 - sum p + sum (p - 1) / 2"] = own - alone + Fraction(sum(p - 1 for _, p, _ in jobs), 2)
    return bounds


@claim(
    PAPER,
    "lower-bounds",
    text="sum p^k is a lower bound; with Eq. 6, OPT_P2 / 2; also OPT_P2 - sum p^k (k = 1: + sum (p-1)/2)",
    source="section VI-A, Fig. 2; Eq. 6",
    recorded=HOLDS,
)
def _check_lower_bounds(run: Run) -> Finding:
    checked = 0
    largest: dict[str, Fraction] = {}
    for k in (1, 2):
        for jobs, cores in _tiny(run, 1):
            best = flowtime_best(jobs, cores, k)[0]
            checked += 1
            for name, bound in _bounds(jobs, cores, k).items():
                largest[name] = max(largest.get(name, Fraction(0)), bound / best)
    figures = {name: str(ratio) for name, ratio in largest.items()} | {"checked": checked}
    shares = ", ".join(f"{name} {ratio}" for name, ratio in largest.items())
    verdict = HOLDS if max(largest.values()) <= 1 else MISSED
    return Finding(
        verdict, f"largest share of the optimum in {checked:,} instances: {shares}", figures=figures
    )


def _confirm_pooled(instance: Instance) -> bool:
    jobs, cores = _given(instance)
    better = _schedule(instance["schedule"])
    own = flowtime(jobs, rule(instance["rule"], jobs, cores))
    return (
        feasible(jobs, cores, better)
        and flowtime(jobs, better) == instance["flowtime"]
        and own == instance["pooled"] > instance["flowtime"]
    )


@claim(
    PAPER,
    "pooled-srpt-is-no-bound",
    text="SRPT on the pooled cores, with each job's cap, is a lower bound (not said)",
    source="section VII, on SRPT",
    recorded=REFUTED,
    confirm=_confirm_pooled,
)
def _check_pooled(run: Run) -> Finding:
    smallest: _Search | None = None
    figures: dict[str, Any] = {}
    for name in ("srpt", "srvf"):

        def flaw(jobs: Sequence[Job], cores: int, name: str = name) -> dict[str, Any] | None:
            own = flowtime(jobs, rule(name, jobs, cores))
            best, schedule = flowtime_best(jobs, cores)
            if own <= best:
                return None
            return {"rule": name, "pooled": own, "flowtime": best, "schedule": _rows(schedule)}

        searched = _search(_tiny(run, 1), flaw)
        figures[f"{name}_above"] = searched.flawed
        smallest = smallest or searched
    assert smallest is not None
    text = f"by slots left; by core-slots left {figures['srvf_above']:,}"
    return _against(REFUTED, smallest, text, **figures)


@claim(
    PAPER,
    "srpt-single-server",
    text="SRPT is optimal for the overall flowtime on a single server (of one core)",
    source="section VII",
    recorded=HOLDS,
)
def _check_single(run: Run) -> Finding:
    checked = worse = 0
    for count, longest in ((2, 5), (3, 4)) if run.small else ((2, 7), (3, 5), (4, 4)):
        for jobs in multisets(count, longest, 1, 3):
            checked += 1
            worse += flowtime(jobs, rule("srpt", jobs, 1)) > flowtime_best(jobs, 1)[0]
    figures = {"checked": checked, "worse": worse}
    return Finding(HOLDS if not worse else MISSED, f"in all {checked:,} instances", figures=figures)


def _step(t: int) -> float:
    """The paper's mu for k = 2."""
    return float(t ** (K + 0.5))


def _printed_run(jobs: Sequence[Job], cores: int, gamma: float, slots: int) -> Schedule:
    """Literal OCORP as in the experiments: mu = t^(k + 1/2), k = 2."""
    return literal_ocorp(jobs, cores, K, lambda job: job[1] / max(gamma - job[0], 1), _step, slots)


def _confirm_below(instance: Instance) -> bool:
    jobs, cores = _given(instance)
    schedule = _printed_run(jobs, cores, instance["gamma"], 10**5)
    ends = completions(jobs, schedule)
    if ends != instance["completions"]:
        return False
    own = Fraction(0)
    for j, (a, p, d) in enumerate(jobs):  # Eq. 5 written out, from the slots in which the job has cores
        for t in range(1, ends[j] + 1):
            own += (Fraction((t - a) ** K, p) + p) * schedule[t - 1][j] / d
    actual = sum((end - job[0]) ** K for end, job in zip(ends, jobs, strict=True))
    return str(own) == instance["fractional"] and own < actual == instance["actual"]


@claim(
    PAPER,
    "fractional-above-actual",
    text="under OCORP the fractional flowtime is always above the actual one (k = 2)",
    source="section VI-A, Fig. 2",
    recorded=REFUTED,
    confirm=_confirm_below,
)
def _check_fractional_above(run: Run) -> Finding:
    gammas: dict[str, Callable[[Sequence[Job], int], float]] = {
        "Eq. 27": lambda jobs, cores: float(eq27(jobs, cores)),
        str(GAMMA): lambda jobs, cores: float(GAMMA),
    }
    found: dict[str, _Search] = {}
    for name, gamma in gammas.items():

        def flaw(
            jobs: Sequence[Job], cores: int, gamma: Callable[[Sequence[Job], int], float] = gamma
        ) -> dict[str, Any] | None:
            schedule = _printed_run(jobs, cores, gamma(jobs, cores), 10**5)
            own, actual = fractional(jobs, schedule, K), flowtime(jobs, schedule, K)
            if own >= actual:
                return None
            ends = completions(jobs, schedule)
            return {
                "gamma": gamma(jobs, cores),
                "completions": ends,
                "fractional": str(own),
                "actual": actual,
            }

        counts = [(1, 4, 2)] if name == str(GAMMA) else [(1, 4, 2), (2, 2, 2)]
        cases = ((jobs, c) for count in counts for c in (1, 2) for jobs in multisets(*count))
        found[name] = _search(cases, flaw)
    searched = found["Eq. 27"]
    figures = {f"below_at_gamma_{name}": one.flawed for name, one in found.items()}
    below = found[str(GAMMA)].found
    more = "" if below is None else f", {float(Fraction(below['fractional']) / below['actual']):.2f} at 4000"
    text = "Gamma of Eq. 27; a job that is served, waits and is served again has f above p + mean age"
    return _against(REFUTED, searched, text + more, **figures)


# section III: the slot with memory, and Theorems 1 and 2 -----------------------------------------------


def _draw_slot(run: Run, most_jobs: int = 5) -> tuple[Slot, tuple[int, ...]]:
    """A random slot, and the demands of its jobs, which are their caps."""
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


def _slot(instance: Instance) -> Slot:
    return Slot(*(tuple(instance[name]) for name in Slot._fields))


def _small_slots(servers: int, jobs: int, cores: int, memory: int, worth: int) -> Iterator[Slot]:
    """Slots with so many servers and jobs, up to so many cores and GB a server."""
    sizes = list(itertools.product(range(1, cores + 1), range(1, memory + 1)))
    kinds = list(itertools.product(range(worth, 0, -1), range(1, cores + 1), range(1, memory + 1)))
    for machines in itertools.combinations_with_replacement(sizes, servers):
        for chosen in itertools.combinations_with_replacement(kinds, jobs):
            worths, caps, reserve = zip(*chosen, strict=True)
            cpu, room = zip(*machines, strict=True)
            if max(reserve) <= max(room):
                yield Slot(worths, caps, reserve, cpu, room)


def _slot_size(slot: Slot) -> tuple[int, ...]:
    sums = [sum(values) for values in (slot.cpu, slot.memory, slot.caps, slot.reserve, slot.worth)]
    return (len(slot.cpu), len(slot.caps), *sums, *itertools.chain(*slot))


def _fits(rows: Sequence[Sequence[int]], slot: Slot) -> bool:
    """Whether a placement keeps to all constraints of P3."""
    servers = range(len(slot.cpu))
    return (
        all(0 <= sum(row) <= cap and min(row) >= 0 for row, cap in zip(rows, slot.caps, strict=True))
        and all(sum(row[i] for row in rows) <= slot.cpu[i] for i in servers)
        and all(
            sum(m for m, row in zip(slot.reserve, rows, strict=True) if row[i]) <= slot.memory[i]
            for i in servers
        )
    )


def _confirm_rounds(instance: Instance) -> bool:
    slot = _slot(instance)
    first, second = instance["first"], instance["second"]
    # the second placement is feasible and better, so no argmin could keep the first
    return (
        _fits(first, slot)
        and _fits(second, slot)
        and value(second, slot.worth) > value(first, slot.worth)
        and all(
            not new or old for a, b in zip(first, second, strict=True) for old, new in zip(a, b, strict=True)
        )
    )


@claim(
    PAPER,
    "theorem-1",
    text="the updates of Algorithm 1 (its loop) converge within two iterations",
    source="Theorem 1, proof",
    recorded=CORRECTED,
    confirm=_confirm_rounds,
)
def _check_theorem_1(run: Run) -> Finding:
    rounds: dict[int, int] = {}
    best: tuple[tuple[int, ...], dict[str, Any]] | None = None
    drawn = (_draw_slot(run)[0] for _ in range(3_000 if run.small else 100_000))
    for slot in itertools.chain(_small_slots(1, 2, 3, 2, 2), _small_slots(2, 2, 2, 2, 2), drawn):
        _, kept = alternate(slot)
        rounds[len(kept)] = rounds.get(len(kept), 0) + 1
        if len(kept) > 2:
            size = _slot_size(slot)
            if best is None or size < best[0]:
                best = size, _show_slot(slot) | {"first": kept[0], "second": kept[1]}
    figures = {f"rounds_{count}": many for count, many in sorted(rounds.items())}
    if max(rounds) > 3:
        return Finding(MISSED, f"{max(rounds)} rounds", figures=figures)
    if best is None:
        return Finding(HOLDS, f"two rounds in all {rounds[2]:,} slots", figures=figures)
    text = (
        f"a third is run in {rounds[3]:,} of {sum(rounds.values()):,} slots, where the second improves on the"
    )
    text += " first; it changes nothing (the second x fits as it is), so the pair is final after two"
    return Finding(CORRECTED, text, counterexample=best[1], figures=figures)


def _ratio(slot: Slot, demands: Sequence[int]) -> Fraction:
    """The ratio of Theorem 2."""
    m, d = max(slot.reserve), min(demands)
    return min(
        Fraction((room - m) * d, (cores + 2 * d) * m)
        for room, cores in zip(slot.memory, slot.cpu, strict=True)
    )


def _confirm_ratio(instance: Instance) -> bool:
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


@claim(
    PAPER,
    "theorem-2",
    text="OCORP+M reaches min_i (M_i - m_max) / (C_i + 2 d_min) * d_min / m_max of the optimum of P3",
    source="Theorem 2",
    recorded=CORRECTED,
    confirm=_confirm_ratio,
)
def _check_theorem_2(run: Run) -> Finding:
    checked = above = broken = 0
    least = Fraction(10)
    worst = Fraction(1)
    best: tuple[tuple[int, ...], dict[str, Any]] | None = None
    drawn = (_draw_slot(run) for _ in range(1_500 if run.small else 100_000))
    tiny = ((slot, slot.caps) for slot in _small_slots(1, 1, 2, 8, 1))
    for slot, demands in itertools.chain(tiny, drawn):
        ratio = _ratio(slot, demands)
        reached, optimum = value(alternate(slot)[1][-1], slot.worth), best_value(slot)
        checked += 1
        if optimum:
            worst = min(worst, Fraction(reached, optimum))
        if ratio > 0 and optimum:
            least = min(least, Fraction(reached, optimum) / min(Fraction(1), ratio))
        broken += reached < min(Fraction(1), ratio) * optimum
        if reached < ratio * optimum:
            above += 1
            size = _slot_size(slot)
            if best is None or size < best[0]:
                details = {"ratio": str(ratio), "reached": reached, "optimum": optimum}
                best = size, _show_slot(slot) | details
    # seven jobs with one core-slot left: d_min says nothing of how many fit on a server
    left = Slot((10,) * 7 + (9,), (1,) * 7 + (8,), (1,) * 8, (8,), (3,))
    reached, optimum = value(alternate(left)[1][-1], left.worth), best_value(left)
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
        return Finding(MISSED, f"min(1, .) fails in {broken} of {checked:,} slots", figures=figures)
    if best is None:
        return Finding(HOLDS, f"in all {checked:,} slots", figures=figures)
    text = f"the ratio is above 1 and not reached in {above:,} of {checked:,} slots; min(1, ratio) is in all"
    if beyond:
        text += f"; with the work left as a cap d_min must be the least cap ({reached} of {optimum} else)"
    return Finding(CORRECTED, text, counterexample=best[1], figures=figures)


def _confirm_alternation(instance: Instance) -> bool:
    slot = _slot(instance)
    return (
        _fits(instance["alternation"], slot)
        and alternate(slot)[1][-1] == instance["alternation"]
        and value(instance["alternation"], slot.worth) == instance["reached"]
        and plain_best(slot) == instance["optimum"] > instance["reached"]
    )


@claim(
    PAPER,
    "alternation",
    text="optimising x and z in turn solves the slot's problem P3 (said to be approximate in Theorem 2)",
    source="section III-A, Algorithm 1",
    recorded=REFUTED,
    confirm=_confirm_alternation,
)
def _check_alternation(run: Run) -> Finding:
    checked = below = 0
    worst = Fraction(1)
    best: tuple[tuple[int, ...], dict[str, Any]] | None = None
    sizes = [(1, 2, 3, 2, 3), (2, 2, 2, 2, 3)] if run.small else [(1, 3, 3, 3, 4), (2, 2, 3, 3, 3)]
    for slot in itertools.chain.from_iterable(_small_slots(*size) for size in sizes):
        last = alternate(slot)[1][-1]
        reached, optimum = value(last, slot.worth), best_value(slot)
        checked += 1
        if reached < optimum:
            below += 1
            worst = min(worst, Fraction(reached, optimum))
            size = _slot_size(slot)
            if best is None or size < best[0]:
                details = {"alternation": last, "reached": reached, "optimum": optimum}
                best = size, _show_slot(slot) | details
    figures = {"checked": checked, "below": below, "worst_share": str(worst)}
    if best is None:
        return Finding(HOLDS, f"in all {checked:,} slots", figures=figures)
    text = (
        f"below the optimum in {below:,} of {checked:,} slots, at worst {worst} of it: a job that the first"
    )
    text += " x leaves out never comes back (without backfill)"
    return Finding(REFUTED, text, counterexample=best[1], figures=figures)


def _greedy(values: Sequence[int], weights: Sequence[int], room: int) -> int:
    """What the proof of Theorem 2 constructs: by falling value, whatever still fits."""
    total = 0
    for j in sorted(range(len(values)), key=lambda j: (-values[j], j)):
        if weights[j] <= room:
            room -= weights[j]
            total += values[j]
    return total


def _confirm_knapsack(instance: Instance) -> bool:
    values, weights = instance["values"], instance["memory_of_jobs"]
    better = instance["better"]
    return (
        sum(weights[j] for j in better) <= instance["memory"]
        and sum(values[j] for j in better) == instance["optimum"] > instance["constructed"]
        and _greedy(values, weights, instance["memory"]) == instance["constructed"]
    )


@claim(
    PAPER,
    "equation-19",
    text="the constructed z is worth at least as much as the optimal one",
    source="Eq. 19, proof of Theorem 2",
    recorded=CORRECTED,
    confirm=_confirm_knapsack,
)
def _check_equation_19(run: Run) -> Finding:
    checked = less = more = 0
    best: tuple[tuple[int, ...], dict[str, Any]] | None = None
    for count in (1, 2, 3):
        kinds = list(itertools.product(range(1, 5), range(1, 4)))
        for items in itertools.combinations_with_replacement(kinds, count):
            values, weights = zip(*items, strict=True)
            for room in range(1, 5):
                taken = keep(values, weights, room)
                own, optimum = _greedy(values, weights, room), sum(itertools.compress(values, taken))
                checked += 1
                less += own < optimum
                more += own > optimum
                size = (count, room, sum(weights), sum(values), *values, *weights)
                if own < optimum and (best is None or size < best[0]):
                    best = (
                        size,
                        {
                            "values": list(values),
                            "memory_of_jobs": list(weights),
                            "memory": room,
                            "constructed": own,
                            "optimum": optimum,
                            "better": list(itertools.compress(range(count), taken)),
                        },
                    )
    figures = {"checked": checked, "less": less, "more": more}
    if best is None:
        return Finding(HOLDS, f"in all {checked:,} servers", figures=figures)
    text = (
        f'less in {less:,} of {checked:,} servers, more in {more}: "<=" is meant, and what follows needs it'
    )
    return Finding(CORRECTED if not more else MISSED, text, counterexample=best[1], figures=figures)


def _confirm_hosts(instance: Instance) -> bool:
    cpu, cores, rows = instance["cpu"], instance["cores"], instance["placement"]
    i = instance["server"]
    here = sum(1 for row in rows if row[i])
    return (
        rows == pack(cores, cpu)
        and [sum(row) for row in rows] == cores
        and all(sum(row[s] for row in rows) <= cpu[s] for s in range(len(cpu)))
        and here == instance["jobs_there"] > (cpu[i] - 2) / min(instance["demands"]) + 2
    )


@claim(
    PAPER,
    "jobs-on-a-server",
    text="the packing policy puts at most (C_i - 2) / d_min + 2 jobs on server i",
    source="proof of Theorem 2, before Eq. 18",
    recorded=REFUTED,
    confirm=_confirm_hosts,
)
def _check_hosts(run: Run) -> Finding:
    checked = wide = 0
    best: tuple[tuple[int, ...], dict[str, Any]] | None = None
    most = 5 if run.small else 7

    def cases() -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        for servers in range(1, 4):
            for cpu in itertools.combinations_with_replacement(range(most, 0, -1), servers):
                for count in range(1, 5):
                    for demands in itertools.combinations_with_replacement(range(1, most + 2), count):
                        yield cpu, demands
        for servers, room in itertools.product(range(2, 6), range(2, 13)):  # equal servers and jobs
            for d in range(2, room + 1):
                for count in range(1, -(-servers * room // d) + 1):
                    yield (room,) * servers, (d,) * count

    for cpu, demands in cases():
        cores = fill(range(len(demands)), demands, sum(cpu))
        rows = pack(cores, cpu)
        checked += 1
        for i, room in enumerate(cpu):
            here = sum(1 for row in rows if row[i])
            if (here - 2) * min(demands) <= room - 2:
                continue
            if max(demands) > min(cpu):
                wide += 1
                continue
            size = (len(cpu), len(demands), sum(cpu), sum(demands), *cpu, *demands)
            if best is None or size < best[0]:
                details = {"cpu": list(cpu), "demands": list(demands), "cores": cores, "placement": rows}
                best = size, details | {"server": i, "jobs_there": here}
    figures = {"checked": checked, "where_a_job_is_wider_than_a_server": wide}
    if best is None:
        return Finding(HOLDS, f"in all {checked:,} packings", figures=figures)
    text = "a server can get parts of more than two jobs, even where each job fits on each server (else in"
    text += f" {wide:,} more cases of {checked:,} packings), so n is not bounded as the proof says"
    return Finding(REFUTED, text, counterexample=best[1], figures=figures)


# section IV-A: one resource ----------------------------------------------------------------------------


def _equation_22(demands: Sequence[int], cores: int, literal: bool) -> list[Fraction]:
    """Eq. 22, as printed or with case 2 summing to j - 1."""
    rates = []
    before = 0
    for d in demands:
        zero = before + d if literal else before
        if before + d <= cores:
            rates.append(Fraction(1))
        elif zero >= cores:
            rates.append(Fraction(0))
        else:
            rates.append(Fraction(cores - before, d))
        before += d
    return rates


def _worth_of(rates: Sequence[Fraction], gains: Sequence[int]) -> Fraction:
    return sum((gain * y for gain, y in zip(gains, rates, strict=True)), Fraction(0))


def _slot_optimum(demands: Sequence[int], gains: Sequence[int], cores: int) -> Fraction:
    """The most of sum gain y, over all whole cores."""
    tries = itertools.product(*(range(d + 1) for d in demands))
    return max(
        _worth_of([Fraction(u, d) for u, d in zip(given, demands, strict=True)], gains)
        for given in tries
        if sum(given) <= cores
    )


def _confirm_lemma_1(instance: Instance) -> bool:
    demands, gains, cores = instance["demands"], instance["gains"], instance["cores"]
    own = _worth_of(_equation_22(demands, cores, True), gains)
    return (
        str(own) == instance["printed"]
        and str(_slot_optimum(demands, gains, cores)) == instance["optimum"]
        and own < Fraction(instance["optimum"])
    )


@claim(
    PAPER,
    "lemma-1",
    text="Eq. 22 is the optimal solution of P3 where memory is no limit",
    source="Lemma 1, Eq. 22",
    recorded=CORRECTED,
    confirm=_confirm_lemma_1,
)
def _check_lemma_1(run: Run) -> Finding:
    checked = printed = meant = 0
    best: tuple[tuple[int, ...], dict[str, Any]] | None = None
    most = 3 if run.small else 4
    for count in (1, 2, 3):
        kinds = list(itertools.product(range(1, most + 1), range(1, 5)))
        for items in itertools.combinations_with_replacement(kinds, count):
            # omega = -gain / d, ascending
            ordered = sorted(items, key=lambda item: Fraction(-item[1], item[0]))
            demands, gains = zip(*ordered, strict=True)
            for cores in range(1, 2 * most):
                optimum = _slot_optimum(demands, gains, cores)
                own = _worth_of(_equation_22(demands, cores, True), gains)
                checked += 1
                meant += _worth_of(_equation_22(demands, cores, False), gains) != optimum
                printed += own < optimum
                size = (count, cores, sum(demands), sum(gains), *demands, *gains)
                if own < optimum and (best is None or size < best[0]):
                    details = {"demands": list(demands), "gains": list(gains), "cores": cores}
                    best = size, details | {"printed": str(own), "optimum": str(optimum)}
    figures = {"checked": checked, "printed_below": printed, "corrected_below": meant}
    if best is None:
        return Finding(HOLDS, f"in all {checked:,} slots", figures=figures)
    text = (
        f"as printed below the optimum in {printed:,} of {checked:,} slots, as case 3 is empty; with case 2"
    )
    text += f" summing to j - 1, in {meant}"
    return Finding(CORRECTED if not meant else REFUTED, text, counterexample=best[1], figures=figures)


def _line_7(job: Job, literal: bool, slots: int) -> Schedule:
    """A lone job under literal OCORP, with the denominator of line 7 as printed or Gamma - a."""
    gamma = eq27([job], 1)
    return literal_ocorp(
        [job], 1, 1, lambda j: Fraction(j[1]) / (1 - j[0] if literal else gamma - j[0]), lambda t: t, slots
    )


def _confirm_line_7(instance: Instance) -> bool:
    job = (instance["arrival"], instance["processing"], 1)
    # the printed target is negative, or infinite: a price of 0 never grows, and no weight is below 0
    printed = instance["arrival"] == 1 or Fraction(job[1], 1 - job[0]) < 0
    schedule = _line_7(job, False, 10**4)
    return printed and job[0] >= 1 and completions([job], schedule) == [instance["completion"]]


@claim(
    PAPER,
    "algorithm-1-line-7",
    text="lambda grows by mu (p / (1 - a) - y)",
    source="Algorithm 1, line 7",
    recorded=CORRECTED,
    confirm=_confirm_line_7,
)
def _check_line_7(run: Run) -> Finding:
    slots = 200 if run.small else 5_000
    served = served_right = checked = 0
    example: dict[str, Any] | None = None
    for a, p in itertools.product(range(2, 5), range(1, 5)):
        checked += 1
        served += any(map(any, _line_7((a, p, 1), True, slots)))
        schedule = _line_7((a, p, 1), False, slots)
        right = sum(u[0] for u in schedule) == p
        served_right += right
        if example is None and right:
            example = {"arrival": a, "processing": p, "completion": completions([(a, p, 1)], schedule)[0]}
    figures = {"checked": checked, "served_as_printed": served, "finished_with_gamma_minus_a": served_right}
    if served or example is None:
        return Finding(MISSED, f"{served} of {checked} lone jobs are served", figures=figures)
    text = f"none of {checked} lone jobs that arrive at 2 to 4 is served in {slots:,} slots (k = 1, mu = t);"
    text += f" a = 1 divides by 0; with Gamma - a, Gamma by Eq. 27, {served_right} finish"
    return Finding(CORRECTED, text, counterexample=example, figures=figures)


def _confirm_benchmark(instance: Instance) -> bool:
    jobs, cores = _given(instance)
    schedule = _schedule(instance["schedule"])
    # weights are positive, so that every core costs; with no cores at all f_t is 0
    return (
        feasible(jobs, cores, schedule)
        and str(fractional(jobs, schedule)) == instance["regret"] == instance["own_cost"]
        and fractional(jobs, [(0,) * len(jobs)] * len(schedule)) == 0 == instance["regret_of_idling"]
    )


@claim(
    PAPER,
    "dynamic-regret",
    text="Eq. 23 compares with an offline optimum, y* of Eq. 25",
    source="Eq. 23 to 25, section I",
    recorded=REFUTED,
    confirm=_confirm_benchmark,
)
def _check_benchmark(run: Run) -> Finding:
    checked = 0
    example: dict[str, Any] | None = None
    for jobs, cores in _tiny(run):
        own, schedule = fractional_best(jobs, cores)
        benchmark = Fraction(0)
        for t in range(1, len(schedule) + 1):
            # f_t is linear with these coefficients, X(t) contains 0
            coefficients = [Fraction(t - a, p) + 1 for a, p, _ in jobs]
            benchmark += sum((min(Fraction(0), c) for c in coefficients), Fraction(0))
        checked += benchmark == 0
        if example is None:
            details = {"schedule": _rows(schedule), "own_cost": str(own), "regret": str(own - benchmark)}
            example = _shown(jobs, cores) | details | {"regret_of_idling": 0}
    text = (
        f"y* = 0 in all {checked:,} instances, as all weights are positive: the regret is the algorithm's own"
    )
    text += " cost, and an algorithm that serves nobody has none"
    return Finding(REFUTED, text, counterexample=example, figures={"checked": checked})


def _confirm_fit(instance: Instance) -> bool:
    a, p, gamma, end = (instance[name] for name in ("arrival", "processing", "gamma", "T"))
    # idle: no slot t <= T has t >= a + 1, so the double sum is empty
    return (
        not any(t >= a + 1 for t in range(1, end + 1))
        and instance["double_sum"] == "0"
        and Fraction((end - a) * p, gamma - a) == Fraction(instance["single_sum"]) != 0
    )


@claim(
    PAPER,
    "equation-26",
    text="the double sum of the fit is sum_j (p (T - a) / (Gamma - a) - sum_t y) over all N jobs",
    source="Eq. 26",
    recorded=CORRECTED,
    confirm=_confirm_fit,
)
def _check_equation_26(run: Run) -> Finding:
    checked = differ = wrong = 0
    example: dict[str, Any] | None = None
    for (a, p), end in itertools.product(itertools.product(range(4), range(1, 4)), range(1, 6)):
        gamma = eq27([(a, p, 1)], 1)
        goal = Fraction(p) / (gamma - a)
        double = sum((goal for t in range(1, end + 1) if t >= a + 1), Fraction(0))
        checked += 1
        differ += double != goal * (end - a)
        wrong += double != goal * max(end - a, 0)
        if example is None and double != goal * (end - a):
            example = {"arrival": a, "processing": p, "gamma": int(gamma), "T": end}
            example |= {"double_sum": str(double), "single_sum": str(goal * (end - a))}
    figures = {"checked": checked, "differ": differ, "differ_over_arrived_jobs": wrong}
    text = f"they differ in {differ} of {checked} lone idle jobs; over the jobs with a < T in {wrong}"
    return Finding(CORRECTED if not wrong else REFUTED, text, counterexample=example, figures=figures)


def _theorem_4(jobs: Sequence[Job], cores: int, k: int) -> tuple[Fraction, Fraction, Schedule]:
    """The regret of literal OCORP at T = Gamma (Eq. 27), mu = T^k (beta = 0), and the bound of Theorem 4."""
    gamma = eq27(jobs, cores)
    horizon = int(gamma)
    schedule = literal_ocorp(
        jobs, cores, k, lambda job: job[1] / (gamma - job[0]), lambda t: horizon**k, horizon
    )
    own = fractional_best(jobs, cores, k)[0]
    optimum = max(own, Fraction(flowtime_best(jobs, cores, k)[0]))
    return (
        fractional(jobs, schedule, k),
        cores * optimum / 2 * max(Fraction(p, d) for _, p, d in jobs),
        schedule,
    )


def _confirm_theorem_4(instance: Instance) -> bool:
    jobs, cores = _given(instance)
    schedule = _schedule(instance["schedule"])
    gamma = eq27(jobs, cores)
    # replayed in floats; the bound, by the larger of the optima of P1 and P2
    again = literal_ocorp(
        jobs,
        cores,
        instance["k"],
        lambda job: job[1] / (float(gamma) - job[0]),
        lambda t: float(instance["T"]) ** instance["k"],
        instance["T"],
    )
    optimum = max(
        fractional_best(jobs, cores, instance["k"])[0], Fraction(flowtime_best(jobs, cores, instance["k"])[0])
    )
    bound = Fraction(cores, 2) * optimum * max(Fraction(p, d) for _, p, d in jobs)
    return (
        instance["T"] == gamma
        and again == schedule
        and str(fractional(jobs, schedule, instance["k"])) == instance["regret"]
        and str(bound) == instance["bound"]
        and Fraction(instance["regret"]) > bound
    )


@claim(
    PAPER,
    "theorem-4",
    text="the regret of OCORP is at most C OPT^(1 - beta) / 2 * max p / d",
    source="Theorem 4, Eq. 30",
    recorded=REFUTED,
    confirm=_confirm_theorem_4,
)
def _check_theorem_4(run: Run) -> Finding:
    searched: dict[int, _Search] = {}
    worst = Fraction(0)
    for k in (1, 2):

        def flaw(jobs: Sequence[Job], cores: int, k: int = k) -> dict[str, Any] | None:
            nonlocal worst
            regret, bound, schedule = _theorem_4(jobs, cores, k)
            worst = max(worst, regret / bound)
            if regret <= bound:
                return None
            details = {"k": k, "T": int(eq27(jobs, cores)), "schedule": _rows(schedule)}
            return details | {"regret": str(regret), "bound": str(bound)}

        cases = ((jobs, cores) for jobs, cores in _tiny(run) if eq27(jobs, cores).denominator == 1)
        searched[k] = _search(cases, flaw)
    figures = {"k1_above": searched[1].flawed, "k2_above": searched[2].flawed, "largest_ratio": str(worst)}
    text = (
        f"k = 1, beta = 0, mu = T^k, T = Gamma; k = 2: {searched[2].flawed:,}; at most {float(worst):.1f} x"
    )
    text += " the bound. As y* = 0, any algorithm that ends all jobs has a regret of OPT_P2 or more"
    return _against(REFUTED, searched[1], text, **figures)


# Gamma, mu, and what follows from them -----------------------------------------------------------------


def _confirm_online(instance: Instance) -> bool:
    gammas = [float(Fraction(text)) for text in instance["gamma"]]
    first = [tuple(job) for job in instance["jobs"]]
    both = [first, [*first, tuple(instance["later_job"])]]
    slot, cores = instance["slot"], instance["cores"]
    if [eq27(jobs, cores) for jobs in both] != [Fraction(text) for text in instance["gamma"]]:
        return False
    # the prices by hand, up to the slot, in which only the first jobs are visible
    decided = []
    for gamma in gammas:
        price, chosen = 0.0, False
        (a, p, _) = first[0]
        for t in range(a + 1, slot + 1):
            chosen = (t - a) ** K / p + p - price < 0
            price = max(0.0, price + t ** (K + 0.5) * (p / (gamma - a) - (1.0 if chosen else 0.0)))
        decided.append(int(chosen))
    return (
        instance["later_job"][0] >= slot and decided == instance["cores_in_slot"] and decided[0] != decided[1]
    )


@claim(
    PAPER,
    "equation-27-online",
    text="OCORP with Gamma of Eq. 27 decides without knowing future arrivals",
    source="section II-A, Theorem 3, Eq. 27",
    recorded=REFUTED,
    confirm=_confirm_online,
)
def _check_online(run: Run) -> Finding:
    checked = differ = 0
    best: tuple[int, dict[str, Any]] | None = None
    for p, later in itertools.product(range(1, 4), range(2, 13 if run.small else 40)):
        jobs: list[Job] = [(0, p, 1)]
        longer = [*jobs, (later, 1, 1)]
        gammas = [eq27(jobs, 1), eq27(longer, 1)]
        checked += 1
        runs = [
            _printed_run(own, 1, float(gamma), later)
            for own, gamma in zip((jobs, longer), gammas, strict=True)
        ]
        both = [[u[0] for u in schedule] + [0] * (later - len(schedule)) for schedule in runs]
        slots = [t for t, (one, other) in enumerate(zip(*both, strict=True), start=1) if one != other]
        if slots:
            differ += 1
            if best is None or slots[0] < best[0]:
                best = (
                    slots[0],
                    {
                        "jobs": [list(job) for job in jobs],
                        "cores": 1,
                        "later_job": [later, 1, 1],
                        "gamma": [str(gamma) for gamma in gammas],
                        "slot": slots[0],
                        "cores_in_slot": [row[slots[0] - 1] for row in both],
                    },
                )
    figures = {"checked": checked, "differ": differ}
    if best is None:
        return Finding(HOLDS, f"in all {checked} pairs", figures=figures)
    text = (
        f"a job yet to come changes the decisions before it comes in {differ} of {checked} pairs of workloads"
    )
    return Finding(REFUTED, text, counterexample=best[1], figures=figures)


def _confirm_gamma(instance: Instance) -> bool:
    columns = _stand_in(instance["seed"])
    last = max(columns[0])
    work = Fraction(4 * sum(p * d for p, d in zip(columns[1], columns[2], strict=True)), columns[3])
    return (
        instance["latest_arrival"] == last
        and instance["four_times_the_work"] == float(work)
        and max(2 * last, work) > instance["gamma"]
    )


def _gamma_of(columns: tuple[list[int], list[int], list[int], int]) -> tuple[int, Fraction]:
    """The two parts of Eq. 27: by arrivals, by work."""
    arrival, processing, cpu, cores = columns
    ends = [max(a + 2 * p, 2 * a) for a, p in zip(arrival, processing, strict=True)]
    return max(ends), Fraction(4 * sum(p * d for p, d in zip(processing, cpu, strict=True)), cores)


def _stand_in(seed: int) -> tuple[list[int], list[int], list[int], int]:
    """Arrivals, processing times and demands of the stand-in for the trace, and its cores."""
    from schedgym.problems.flowtime.problem import PROBLEM, FlowtimeParameters
    from schedgym.problems.flowtime.workload import generate, make_source, tables

    own = tables(generate(seed, 0, make_source(FlowtimeParameters(**PROBLEM.presets["kw"]))))
    columns = own.arrival, own.processing[:, 0], own.cpu[:, 0]
    arrival, processing, cpu = (list(map(int, column)) for column in columns)
    return arrival, processing, cpu, int(own.server_cpu.sum())


@claim(
    PAPER,
    "gamma-4000",
    text="Gamma = 4000 slots is the Gamma of Theorem 3 for ten hours of arrivals (3600 slots)",
    source="section VI-A, Eq. 27",
    recorded=REFUTED,
    confirm=_confirm_gamma,
)
def _check_gamma(run: Run) -> Finding:
    gammas = []
    for seed in range(1 if run.small else 5):
        by_arrivals, by_work = _gamma_of(_stand_in(seed))
        gammas.append(max(float(by_arrivals), float(by_work)))
    figures = {"eq27": gammas}
    if min(gammas) <= GAMMA:
        return Finding(HOLDS, f"Eq. 27 gives {gammas}", figures=figures)
    text = f"Eq. 27 gives {gammas[0]:.0f} on the stand-in for the trace; any arrival after slot 2000"
    text += " gives 2 a > 4000"
    own = _stand_in(0)
    example = {"seed": 0, "latest_arrival": max(own[0]), "four_times_the_work": float(_gamma_of(own)[1])}
    return Finding(REFUTED, text, counterexample=example | {"gamma": GAMMA}, figures=figures)


def _confirm_least_slots(instance: Instance) -> bool:
    jobs, cores = _given(instance)
    work = Fraction(sum(p * d for _, p, d in jobs), cores)
    # a job needs p slots at least, however many cores there are
    return str(work) == instance["work_over_cores"] and instance["least"] == max(p for _, p, _ in jobs) > work


@claim(
    PAPER,
    "least-makespan",
    text="sum p d / sum C is the least number of slots in which all jobs can be completed",
    source="section IV-A, after Theorem 3",
    recorded=CORRECTED,
    confirm=_confirm_least_slots,
)
def _check_least_slots(run: Run) -> Finding:
    below = 0

    def flaw(jobs: Sequence[Job], cores: int) -> dict[str, Any] | None:
        nonlocal below
        least = min(len(rule(name, jobs, cores)) for name in ("srf", "svf", "srvf", "srpt"))
        work = Fraction(sum(p * d for _, p, d in jobs), cores)
        below += least < work
        longest = max(p for _, p, _ in jobs)
        if work >= longest:
            return None
        return {"work_over_cores": str(work), "least": longest}

    searched = _search(_tiny(run), flaw)
    if below:
        return Finding(MISSED, f"{below} schedules are shorter", figures={"below": below})
    return _against(CORRECTED, searched, "a lower bound; a job needs p slots")


def _confirm_step(instance: Instance) -> bool:
    k, exponent = instance["k"], Fraction(instance["exponent"])
    return k - exponent == Fraction(instance["beta"]) and not 0 <= k - exponent < 1


@claim(
    PAPER,
    "step-size",
    text="mu = t^(k + 0.5) of the experiments is a step size T^(k - beta), 0 <= beta < 1, of Theorems 3 to 5",
    source="section VI, Theorems 3 to 5",
    recorded=REFUTED,
    confirm=_confirm_step,
)
def _check_step(run: Run) -> Finding:
    betas = {k: k - (k + Fraction(1, 2)) for k in range(1, 11)}
    allowed = sum(0 <= beta < 1 for beta in betas.values())
    example = {"k": K, "exponent": str(K + Fraction(1, 2)), "beta": str(betas[K])}
    text = "beta is -1/2 for every k; mu also changes from slot to slot, in the theorems it does not"
    if allowed:
        return Finding(HOLDS, f"for {allowed} of {len(betas)} k", figures={"allowed": allowed})
    return Finding(REFUTED, text, counterexample=example, figures={"allowed": 0, "checked": len(betas)})


def _target(gamma: Any) -> Callable[[Job], Any]:
    """What lambda aims at per slot."""
    return lambda job: job[1] / (gamma - job[0])


def _constant(mu: Any) -> Callable[[int], Any]:
    """A step size that is the same in all slots."""
    return lambda t: mu


def _longest_gap(jobs: Sequence[Job], schedule: Schedule) -> int:
    """The longest run of slots without a core between arrival and completion (or the end)."""
    longest = 0
    for j, (a, p, d) in enumerate(jobs):
        gap, left = 0, p * d
        for given in schedule[a:]:
            if not left:
                break
            gap = 0 if given[j] else gap + 1
            left -= given[j]
            longest = max(longest, gap)
    return longest


def _confirm_gap(instance: Instance) -> bool:
    sizes, horizons, gaps = instance["unit_jobs"], instance["T"], instance["longest_gap"]
    rows = list(zip(sizes, horizons, gaps, strict=True))
    # one core serves one job a slot: whatever the policy, one of n jobs is not served in n - 1 slots
    least = all(gap >= n - 1 and horizon == 4 * n for n, horizon, gap in rows)
    return least and instance["cores"] == 1 and len(rows) > 2 and sizes == sorted(sizes)


@claim(
    PAPER,
    "corollary-1",
    text="each unfinished job is processed at least once within O(T^beta) slots, 0 <= beta < 1",
    source="Corollary 1, Eq. 29",
    recorded=REFUTED,
    confirm=_confirm_gap,
)
def _check_corollary_1(run: Run) -> Finding:
    sizes = [4, 16, 64] if run.small else [4, 16, 64, 256, 1024]
    horizons, gaps = [], []
    for count in sizes:
        jobs: list[Job] = [(0, 1, 1)] * count
        gamma = int(eq27(jobs, 1))
        schedule = literal_ocorp(jobs, 1, K, _target(gamma), _constant(gamma**K), gamma)
        horizons.append(gamma)
        gaps.append(_longest_gap(jobs, schedule))
    figures = {"gap_over_T": [gap / horizon for gap, horizon in zip(gaps, horizons, strict=True)]}
    example = {"unit_jobs": sizes, "cores": 1, "T": horizons, "longest_gap": gaps}
    if min(figures["gap_over_T"]) < Fraction(1, 8):
        return Finding(MISSED, f"gaps {gaps} for T = {horizons}", figures=figures)
    text = (
        f"n equal unit jobs on one core, T = Gamma = 4 n: gaps {gaps} for T = {horizons}, linear in T; under"
    )
    text += " any policy the last of n waits n - 1 = T / 4 - 1 slots"
    return Finding(REFUTED, text, counterexample=example, figures=figures)


@claim(
    PAPER,
    "theorem-3",
    text="the dynamic fit grows at most like T^beta sqrt(N) for T <= Gamma (beta = 0 and 1/2)",
    source="Theorem 3, Eq. 28",
    recorded=HOLDS,
)
def _check_theorem_3(run: Run) -> Finding:
    largest: dict[int, float] = {}
    for count in (4, 16, 48) if run.small else (4, 16, 64, 256):
        for trial in range(4):
            draw = run.rng.integers
            last = 0 if trial < 2 else count
            arrivals = sorted(int(x) for x in draw(0, last + 1, size=count))
            jobs = [(a, int(draw(1, 9)), int(draw(1, 5))) for a in arrivals]
            gamma = float(eq27(jobs, 4))
            for beta, end in itertools.product((0.0, 0.5), (int(gamma) // 2, int(gamma))):
                schedule = literal_ocorp(jobs, 4, K, _target(gamma), _constant(end ** (K - beta)), end)
                fit = sum(max(end - a, 0) * p / (gamma - a) for a, p, _ in jobs)
                fit -= sum(u / job[2] for given in schedule for u, job in zip(given, jobs, strict=True))
                arrived = sum(a < end for a in arrivals)
                largest[count] = max(largest.get(count, 0.0), fit / (end**beta * math.sqrt(arrived)))
    figures = {f"N_{count}": most for count, most in largest.items()}
    values = list(largest.values())
    text = "largest fit / (T^beta sqrt(N)) of random workloads, at T = Gamma / 2 and Gamma: "
    text += ", ".join(f"{most:.2f} (N = {count})" for count, most in largest.items())
    verdict = HOLDS if max(values) <= 4 and values[-1] <= 2 * max(values[0], 1.0) else MISSED
    return Finding(verdict, text, figures=figures)


# section IV-B: switching -------------------------------------------------------------------------------


def _switching(before: Sequence[int], after: Sequence[int], d: int) -> Fraction:
    """The part of a job in S(t)."""
    return sum((Fraction(new - old, d) ** 2 for old, new in zip(before, after, strict=True)), Fraction(0))


def _confirm_switching(instance: Instance) -> bool:
    d, before = instance["cpu"], instance["before"]
    whole, split = instance["whole"], instance["split"]
    costs = [sum((x - y) ** 2 for x, y in zip(row, before, strict=True)) for row in (whole, split)]
    return (
        sum(whole) == sum(split) == d
        and sum(map(bool, whole)) < sum(map(bool, split))
        and [str(Fraction(cost, d * d)) for cost in costs] == [instance["cost_whole"], instance["cost_split"]]
        and costs[0] > costs[1]
    )


@claim(
    PAPER,
    "switching-cost",
    text="the switching cost S(t) keeps a job together: on fewer servers it costs no more",
    source="section IV-B, Eq. 31",
    recorded=REFUTED,
    confirm=_confirm_switching,
)
def _check_switching(run: Run) -> Finding:
    checked = less = 0
    example: dict[str, Any] | None = None
    for servers, d in itertools.product(range(2, 5), range(1, 5)):
        before = [0] * servers
        whole = [d] + [0] * (servers - 1)
        for split in itertools.product(range(d + 1), repeat=servers):
            if sum(split) == d and sum(map(bool, split)) > 1:
                checked += 1
                own = _switching(before, whole, d), _switching(before, split, d)
                less += own[1] < own[0]
                if example is None and own[1] < own[0]:
                    example = {"cpu": d, "before": before, "whole": whole, "split": list(split)}
                    example |= {"cost_whole": str(own[0]), "cost_split": str(own[1])}
    four = str(_switching([0] * 4, [1] * 4, 4))
    figures = {"checked": checked, "split_is_cheaper": less, "four_cores_on_four_servers": four}
    if example is None:
        return Finding(HOLDS, f"in all {checked} splits", figures=figures)
    text = (
        f"a job that starts again pays less for all {less} of {checked} splits than on one server: 4 cores as"
    )
    text += f" 1+1+1+1 cost alpha {four}, as 4 alpha"
    return Finding(REFUTED, text, counterexample=example, figures=figures)


# section IV-C: all jobs at once ------------------------------------------------------------------------


def _confirm_z(instance: Instance) -> bool:
    rate, z = instance["rate"], instance["z"]
    return sum([rate * z] * instance["slots"]) < instance["processing"] <= sum([rate] * instance["slots"])


@claim(
    PAPER,
    "transient-z",
    text="in the transient case z = 0 leaves the cpu as the only resource",
    source="section IV-C, before Eq. 35",
    recorded=CORRECTED,
    confirm=_confirm_z,
)
def _check_z(run: Run) -> Finding:
    text = "with z = 0 no job is served (Eq. 3) and P3 is 0; z = 1 is meant, as in the rest of section IV"
    return Finding(CORRECTED, text, counterexample={"processing": 1, "rate": 1, "z": 0, "slots": 1})


def _confirm_horizon(instance: Instance) -> bool:
    jobs, cores = _given(instance)
    work = sum(p * d for _, p, d in jobs)
    return instance["slots"] * cores >= work > sum(p for _, p, _ in jobs) * cores


@claim(
    PAPER,
    "transient-horizon",
    text="L = sum p is the largest number of slots that it takes to complete all jobs",
    source="section IV-C, Eq. 35",
    recorded=CORRECTED,
    confirm=_confirm_horizon,
)
def _check_horizon(run: Run) -> Finding:
    narrow = 0

    def flaw(jobs: Sequence[Job], cores: int) -> dict[str, Any] | None:
        nonlocal narrow
        slots = max(len(rule(name, jobs, cores)) for name in ("svf", "srf", "srpt", "fifo"))
        if slots <= sum(p for _, p, _ in jobs):
            return None
        narrow += max(d for _, _, d in jobs) <= cores
        return {"slots": slots}

    searched = _search(_tiny(run), flaw)
    text = f"all with a demand above all cores; without one, {narrow}"
    return _against(CORRECTED if not narrow else REFUTED, searched, text, where_demands_fit=narrow)


@claim(
    PAPER,
    "equation-37",
    text="in an optimal solution sum_j y_j(t) / p_j does not increase with t",
    source="Eq. 37",
    recorded=HOLDS,
)
def _check_equation_37(run: Run) -> Finding:
    checked = rising = 0
    for k in (1, 2):
        for jobs, cores in _tiny(run):
            schedule = fractional_best(jobs, cores, k)[1]
            sums = [
                sum((Fraction(u, p * d) for (_, p, d), u in zip(jobs, given, strict=True)), Fraction(0))
                for given in schedule
            ]
            checked += 1
            rising += any(later > sooner for sooner, later in itertools.pairwise(sums))
    figures = {"checked": checked, "rising": rising}
    text = f"in all {checked:,} optima: whole slots can be exchanged, as the constraints are the same in each"
    return Finding(HOLDS if not rising else MISSED, text, figures=figures)


def _equation_39(jobs: Sequence[Job], left: Sequence[int], cores: int, literal: bool) -> list[Fraction]:
    """Eq. 39 by rising volume, as printed (max) or with min; left: core-slots."""
    pick = max if literal else min
    rates = [Fraction(0)] * len(jobs)
    room = Fraction(cores)
    for j in sorted(range(len(jobs)), key=lambda j: (jobs[j][1] * jobs[j][2], j)):
        d, slots = jobs[j][2], Fraction(left[j], jobs[j][2])
        if room >= d:
            rates[j] = pick(Fraction(1), slots)
        elif room > 0:
            rates[j] = pick(room / d, slots)
        room -= d * rates[j]
    return rates


def _local_best(jobs: Sequence[Job], left: Sequence[int], cores: int) -> Fraction:
    """The optimum of problem (38), over all whole cores."""
    caps = [min(job[2], work) for job, work in zip(jobs, left, strict=True)]
    best = Fraction(0)
    for given in itertools.product(*(range(cap + 1) for cap in caps)):
        if sum(given) <= cores:
            own = sum((Fraction(u, p * d) for (_, p, d), u in zip(jobs, given, strict=True)), Fraction(0))
            best = max(best, own)
    return best


def _confirm_equation_39(instance: Instance) -> bool:
    jobs, cores = _given(instance)
    rates = [Fraction(rate) for rate in instance["printed"]]
    limits = [
        min(Fraction(1), Fraction(work, job[2])) for job, work in zip(jobs, instance["left"], strict=True)
    ]
    broken = any(y > limit for y, limit in zip(rates, limits, strict=True))
    used = sum((job[2] * y for job, y in zip(jobs, rates, strict=True)), Fraction(0))
    own = _equation_39(jobs, instance["left"], cores, True)
    return rates == own and (broken or used > cores)


@claim(
    PAPER,
    "lemma-2",
    text="Eq. 39 is the optimal solution of problem (38)",
    source="Lemma 2, Eq. 39",
    recorded=CORRECTED,
    confirm=_confirm_equation_39,
)
def _check_lemma_2(run: Run) -> Finding:
    meant = 0

    def states() -> Iterator[tuple[Sequence[Job], int, tuple[int, ...]]]:
        for count in (1, 2) if run.small else (1, 2, 3):
            for jobs in multisets(count, 3 if count < 3 else 2, 3):
                for left in itertools.product(*(range(1, p * d + 1) for _, p, d in jobs)):
                    for cores in range(1, 5):
                        yield jobs, cores, left

    checked = printed = 0
    best: tuple[tuple[int, ...], dict[str, Any]] | None = None
    for jobs, cores, left in states():
        optimum = _local_best(jobs, left, cores)
        own = _equation_39(jobs, left, cores, False)
        reached = sum((y / job[1] for y, job in zip(own, jobs, strict=True)), Fraction(0))
        whole = all((y * job[2]).denominator == 1 for y, job in zip(own, jobs, strict=True))
        meant += reached != optimum or not whole
        checked += 1
        rates = _equation_39(jobs, left, cores, True)
        limits = [min(Fraction(1), Fraction(work, job[2])) for job, work in zip(jobs, left, strict=True)]
        if any(y > limit for y, limit in zip(rates, limits, strict=True)):
            printed += 1
            size = (*_size(jobs, cores), *left)
            if best is None or size < best[0]:
                details = {"left": list(left), "printed": [str(y) for y in rates]}
                best = size, _shown(jobs, cores) | details
    figures = {"checked": checked, "printed_infeasible": printed, "corrected_not_optimal": meant}
    if best is None:
        return Finding(HOLDS, f"in all {checked:,} states", figures=figures)
    text = (
        f"as printed infeasible in {printed:,} of {checked:,} states (y > 1 or more than is left); with min"
    )
    text += f" for max optimal and whole in all but {meant}"
    return Finding(CORRECTED if not meant else REFUTED, text, counterexample=best[1], figures=figures)


@claim(
    PAPER,
    "transient-is-svf",
    text="the transient algorithm of Eq. 39 is smallest volume first",
    source="section IV-C, Remark 3",
    recorded=HOLDS,
)
def _check_transient(run: Run) -> Finding:
    checked = differ = 0
    for jobs, cores in _tiny(run):
        left = [p * d for _, p, d in jobs]
        schedule: Schedule = []
        while any(left):
            alive = [j for j, work in enumerate(left) if work]
            rates = _equation_39([jobs[j] for j in alive], [left[j] for j in alive], cores, False)
            given = [0] * len(jobs)
            for j, y in zip(alive, rates, strict=True):
                given[j] = int(y * jobs[j][2])
            left = [work - u for work, u in zip(left, given, strict=True)]
            schedule.append(tuple(given))
        checked += 1
        differ += schedule != rule("svf", jobs, cores)
    text = f"the same cores in every slot of {checked:,} instances (min for max)"
    return Finding(HOLDS if not differ else MISSED, text, figures={"checked": checked, "differ": differ})


def _orders(jobs: Sequence[Job]) -> Iterator[tuple[Job, ...]]:
    """The jobs in all orders that smallest volume first can take them in."""
    for order in itertools.permutations(jobs):
        volumes = [p * d for _, p, d in order]
        if volumes == sorted(volumes):
            yield order


def _least_svf(jobs: Sequence[Job], cores: int, k: int) -> Fraction:
    """The least sum of fractional flowtimes of smallest volume first, over all orders of equal volumes."""
    return min(fractional(order, rule("svf", order, cores), k) for order in _orders(jobs))


def _confirm_theorem_6(instance: Instance) -> bool:
    jobs, cores = _given(instance)
    better, k = _schedule(instance["schedule"]), instance["k"]
    return (
        feasible(jobs, cores, better)
        and str(fractional(jobs, better, k)) == instance["better"]
        and str(_least_svf(jobs, cores, k)) == instance["svf"]
        and Fraction(instance["better"]) < Fraction(instance["svf"])
    )


@claim(
    PAPER,
    "theorem-6",
    text="the transient algorithm minimises the sum of fractional flowtimes",
    source="Theorem 6",
    recorded=REFUTED,
    confirm=_confirm_theorem_6,
)
def _check_theorem_6(run: Run) -> Finding:
    searched: dict[int, _Search] = {}
    worst = {1: Fraction(1), 2: Fraction(1)}
    for k in (1, 2):

        def flaw(jobs: Sequence[Job], cores: int, k: int = k) -> dict[str, Any] | None:
            own = _least_svf(jobs, cores, k)
            best, schedule = fractional_best(jobs, cores, k)
            worst[k] = max(worst[k], own / best)
            if own <= best:
                return None
            return {"k": k, "svf": str(own), "better": str(best), "schedule": _rows(schedule)}

        searched[k] = _search(_tiny(run), flaw)
    figures = {"k2_flawed": searched[2].flawed} | {f"k{k}_worst_ratio": str(x) for k, x in worst.items()}
    text = f"k = 1, whatever the order of equal volumes; at worst {worst[1]} of the optimum; k = 2:"
    text += f" {searched[2].flawed:,}, {float(worst[2]):.2f}. What is best in each slot is not best in all"
    return _against(REFUTED, searched[1], text, **figures)


# Corollary 2: wide short jobs before narrow long ones of no less volume: (1 + sqrt 2) / 2 in the limit
FAMILY = [(10, 3, 4, 7), (20, 6, 8, 7), (40, 12, 16, 7)]
LARGE_FAMILY = [*FAMILY, (80, 23, 33, 7), (160, 47, 66, 3)]
# the worst of a hill climb; with volumes 2, 10 and 12, which cannot tie (processing 1, 2, 6), it is 6/5
HARD: tuple[tuple[Job, ...], int] = (((0, 2, 5), (0, 1, 2), (0, 5, 2)), 6)


def _family(cores: int, narrow: int, wide: int, slots: int) -> list[Job]:
    return [(0, slots, cores)] * wide + [(0, slots * cores, 1)] * narrow


def _confirm_ratio_of_svf(instance: Instance) -> bool:
    jobs, cores = _given(instance)
    better = _schedule(instance["schedule"])
    own, best = flowtime(jobs, rule("svf", jobs, cores)), flowtime(jobs, better)
    return (
        all(job[0] == 0 for job in jobs)
        and feasible(jobs, cores, better)
        and (own, best) == (instance["svf"], instance["optimum"])
        and str(Fraction(own, best)) == instance["ratio"]
        and best >= sum(p for _, p, _ in jobs)
    )


class _Ratios(NamedTuple):
    """Smallest volume first against the optimum, all jobs at once."""

    checked: int
    worst: Fraction
    instance: dict[str, Any]
    excess: Fraction  # the largest of svf - optimum - sum p / 2


def _ratios(run: Run) -> _Ratios:
    checked, worst, excess = 0, Fraction(0), Fraction(-(10**9))
    best: dict[str, Any] = {}
    sizes = (
        [(2, 4, 3, 4), (3, 4, 3, 4), (4, 3, 2, 3)]
        if run.small
        else [(3, 5, 5, 6), (4, 3, 3, 4), (5, 3, 2, 4)]
    )
    for count, longest, widest, most in sizes:
        for cores in range(1, most + 1):
            for demands in itertools.combinations_with_replacement(range(1, widest + 1), count):
                least = transient_least(demands, cores)
                for lengths in itertools.product(range(1, longest + 1), repeat=count):
                    jobs = [(0, p, d) for p, d in zip(lengths, demands, strict=True)]
                    own = flowtime(jobs, rule("svf", jobs, cores))
                    optimum = least(tuple(p * d for _, p, d in jobs))
                    checked += 1
                    excess = max(excess, own - optimum - Fraction(sum(lengths), 2))
                    if Fraction(own, optimum) > worst:
                        worst = Fraction(own, optimum)
                        best = _shown(jobs, cores) | {"svf": own, "optimum": optimum}
    return _Ratios(checked, worst, best, excess)


@claim(
    PAPER,
    "corollary-2",
    text="the transient algorithm's flowtime is at most OPT_P1 + sum p / 2 <= 3/2 OPT_P1",
    source="Corollary 2",
    recorded=HOLDS,
    confirm=_confirm_ratio_of_svf,
)
def _check_corollary_2(run: Run) -> Finding:
    found = _ratios(run)
    family = {}
    for parts in FAMILY if run.small else LARGE_FAMILY:
        jobs, cores = _family(*parts), parts[0]
        own, other = (flowtime(jobs, rule(name, jobs, cores)) for name in ("svf", "srf"))
        family[parts] = Fraction(own, other)
    jobs, cores = list(HARD[0]), HARD[1]
    own = flowtime(jobs, rule("svf", jobs, cores))
    best, schedule = flowtime_best(jobs, cores)
    ratio = Fraction(own, best)
    witness = _shown(jobs, cores) | {"svf": own, "optimum": best, "ratio": str(ratio)}
    worst = max(found.worst, ratio, *family.values())
    figures = {
        "checked": found.checked,
        "worst_tiny_ratio": str(found.worst),
        "worst_tiny": found.instance,
        "largest_excess": str(found.excess),
        "family": {str(parts): float(each) for parts, each in family.items()},
        "worst_ratio": str(worst),
    }
    if worst > Fraction(3, 2) or found.excess > 0:
        return Finding(MISSED, f"a ratio of {worst}", figures=figures)
    text = (
        f"no counterexample: worst ratio {found.worst} of {found.checked:,} tiny instances, {ratio} of a hill"
    )
    text += f" climb, {float(max(family.values())):.3f} at least with wide short jobs before narrow long ones"
    text += " (in the limit (1 + sqrt 2) / 2); not proven, as Theorem 6 is false"
    return Finding(HOLDS, text, witness=witness | {"schedule": _rows(schedule)}, figures=figures)


@claim(
    PAPER,
    "introduction-2-competitive",
    text="smallest volume first has a competitive ratio of two when all jobs arrive at the same time",
    source="section I (Corollary 2 says 3/2)",
    recorded=HOLDS,
)
def _check_introduction(run: Run) -> Finding:
    found = _ratios(run)
    figures = {"checked": found.checked, "worst_ratio": str(found.worst)}
    text = f"worst ratio {found.worst} in {found.checked:,} instances; Corollary 2 says 3/2"
    return Finding(HOLDS if found.worst <= 2 else MISSED, text, figures=figures)


# section V ---------------------------------------------------------------------------------------------


def _confirm_latency(instance: Instance) -> bool:
    (one, other), latency = instance["placements"], instance["latency"]
    printed = [sum(latency) * sum(placed) for placed in (one, other)]
    meant = [sum(x * y for x, y in zip(latency, placed, strict=True)) for placed in (one, other)]
    return (
        printed == instance["printed"] and meant == instance["meant"] and len(set(printed)) < len(set(meant))
    )


@claim(
    PAPER,
    "equation-45",
    text="minimising Psi of Eq. 45 assigns tasks to machines with a small latency",
    source="Eq. 45",
    recorded=CORRECTED,
    confirm=_confirm_latency,
)
def _check_equation_45(run: Run) -> Finding:
    checked = same = 0
    for latency in itertools.product(range(4), repeat=2):
        costs = {sum(latency) * sum(placed) for placed in ((1, 0), (0, 1))}
        checked += 1
        same += len(costs) == 1
    example = {"latency": [0, 1], "placements": [[1, 0], [0, 1]], "printed": [1, 1], "meant": [0, 1]}
    figures = {"checked": checked, "indifferent": same}
    if same < checked:
        return Finding(MISSED, f"indifferent in {same} of {checked}", figures=figures)
    text = f"x lacks the index i: Psi is the same for all placements ({same} of {checked} pairs of latencies)"
    return Finding(CORRECTED, text, counterexample=example, figures=figures)
