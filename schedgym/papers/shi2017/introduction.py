"""Section 1: the example, and the numbers that the paper states of its results."""

from __future__ import annotations

from fractions import Fraction

from schedgym.papers import CORRECTED, HOLDS, NOT_REPRODUCED, Finding, Run, Shown
from schedgym.papers.exact import as_text, as_texts
from schedgym.papers.searches import Sentences
from schedgym.papers.shi2017.instances import claim, read_job, show_job
from schedgym.papers.shi2017.model.one_job import SingleJob, best, equal_share, optra, placements
from schedgym.papers.shi2017.runs import STATED

# without efficiencies; a job may use 30 in each rack. Which servers share a rack is seen in the figure only
FIGURE_2 = SingleJob(
    (100, 200, 400, 500),
    ((1, 1, 1),) * 4,
    ((0,), (1,), (2,), (0, 1), (2,)),
    (35, 10, 30, 30, 30),
    1200,
)


def _confirm_figure_2(shown: Shown) -> bool:
    """Confirm by sums over the racks and Eq. 1."""
    job, placement = read_job(shown), shown["placement"]
    found = []
    for name in ("schedule_a", "schedule_b"):
        vcpu = [Fraction(x) for x in shown[name]]
        for servers, limit in (((0,), 35), ((1,), 10), ((2,), 30), ((0, 1), 30)):
            if sum(c for j, c in zip(placement, vcpu, strict=True) if j in servers) > limit:
                return False
        found.append(max(Fraction(x) / c for x, c in zip(job.load, vcpu, strict=True)))
    return as_texts(found) == [shown["jct_a"], shown["jct_b"]] == ["100/3", 20]


@claim("figure-2", confirm=_confirm_figure_2)
def _check_figure_2(run: Run, say: Sentences) -> Finding:
    job, stated = FIGURE_2, Fraction(100, 3)
    shared = {p: equal_share(job, p).jct for p in placements(job)}
    least, _ = best(job)
    both = [p for p, slow in shared.items() if slow == stated and optra(job, p).jct == least]
    figures = {
        "optimum": as_text(least),
        "placements": len(shared),
        "equal_shares_33.33": sum(slow == stated for slow in shared.values()),
        "eq_16_33.33": sum(optra(job, p).jct == stated for p in shared),
        "both": len(both),
    }
    if least != 20 or not both:
        return say(NOT_REPRODUCED, figures)
    placement = both[0]
    witness = show_job(job) | {
        "placement": list(placement),
        "schedule_a": as_texts(equal_share(job, placement).vcpus),
        "schedule_b": as_texts(optra(job, placement).vcpus),
        "jct_a": as_text(shared[placement]),
        "jct_b": as_text(least),
    }
    return say(HOLDS, figures, witness=witness)


def _confirm_stated(shown: Shown) -> bool:
    low, high = shown["range"]
    return STATED[shown["figure"]][shown["rival"]] == shown["stated"] and not low <= shown["stated"] <= high


@claim("stated-ranges", confirm=_confirm_stated)
def _check_stated(run: Run, say: Sentences) -> Finding:
    ranges = {"Fig. 4(a)": (40, 430), "Fig. 5(a)": (40, 430)}
    ranges |= dict.fromkeys(("Fig. 6(a)", "Fig. 6(a), without DRC"), (60, 280))
    beyond = [
        {"figure": figure, "rival": rival, "stated": number, "range": list(ranges[figure])}
        for figure, numbers in STATED.items()
        for rival, number in numbers.items()
        if not ranges[figure][0] <= number <= ranges[figure][1]
    ]
    figures = {"numbers": sum(map(len, STATED.values())), "beyond": len(beyond)}
    rest = ", ".join(f"{b['rival']} {b['stated']}% in {b['figure']}" for b in beyond)
    verdict = CORRECTED if beyond else HOLDS
    return say(verdict, figures, counterexample=next(iter(beyond), None), rest=rest)


def _confirm_percentages(shown: Shown) -> bool:
    own, rival = shown["own"], shown["rival"]
    smaller, longer = 100 * (1 - Fraction(own, rival)), 100 * (Fraction(rival, own) - 1)
    return own > 0 and as_texts([smaller, longer]) == [shown["smaller"], shown["longer"]] and longer >= 100


@claim("percentages", confirm=_confirm_percentages)
def _check_percentages(run: Run, say: Sentences) -> Finding:
    numbers = [number for figure in STATED.values() for number in figure.values()]
    impossible = sum(number >= 100 for number in numbers)
    most = 100 - Fraction(10_000, 100 + max(numbers))
    shown = {"own": 1, "rival": 2, "smaller": 50, "longer": 100}
    figures = {"at_least_100": impossible, "numbers": len(numbers), "most_smaller": float(most)}
    return say(CORRECTED, figures, counterexample=shown, largest=max(numbers))
