"""The points that zheng2016 leaves open, and that change a verdict.

Tried without effect on any verdict: deadlines rounded up or to the nearest slot, whole heavy demands, ties
of equal deadlines in Algorithm 3, equal-opp by totals, by shares or at random, primal-dual's B over all jobs.
"""

from __future__ import annotations

from schedgym.papers.readings import OpenPoint

FRACTIONAL = OpenPoint(
    "fractional solution",
    says="Section III: the fractional solution is an upper bound to the discrete one.",
    leaves_open="whether the offline optima of both models are meant, or the solutions of the algorithms "
    "for them",
    choices={"offline optima": "optimum", "solutions of Algorithm 1": "algorithm"},
    default="offline optima",
)

EXPONENT = OpenPoint(
    "exponent of the prices",
    says="Section IV-B: primal-dual, from reference [5], raises b_i by e^(B-1) m to a power. In the "
    "available text this fraction is incomplete, with the denominator 1 - max_s' r_is' and the "
    "numerator 1.",
    leaves_open="the numerator; in [5] it is the task's own share r_is",
    choices={"numerator r_is": 1, "numerator 1": 0},
    default="numerator r_is",
)

HEAVY = OpenPoint(
    "heavy demands",
    says="Section V: a task of a CPU-heavy job needs R_1 units of CPU, one of a memory-heavy job R_2 of"
    " memory; R_1 and R_2 are uniform in [1, R].",
    leaves_open="whether R_1 and R_2 are drawn once for all jobs of a scenario, or anew for every job",
    choices={"heavy demands drawn per resource": "resource", "heavy demands drawn per job": "job"},
    default="heavy demands drawn per resource",
)

MISFIT = OpenPoint(
    "misfits of the heuristics",
    says="Section V: s-greedy serves the highest marginal values, equal-opp all jobs with equal opportunity.",
    leaves_open="whether a whole task that does not fit ends the slot, or tasks after it are tried",
    choices={"heuristics stop at a misfit": False, "heuristics pass over misfits": True},
    default="heuristics stop at a misfit",
)

IMPROVEMENT = OpenPoint(
    "improvement",
    says="Section V: the improvement over heuristics is bigger for larger R (Fig. 2c) or windows (Fig. 2d).",
    leaves_open="whether the improvement is the ratio or the difference of the utility gains",
    choices={"improvement as a share": "share", "improvement as a difference": "difference"},
    default="improvement as a share",
)

POINTS = [FRACTIONAL, EXPONENT, HEAVY, MISFIT, IMPROVEMENT]
