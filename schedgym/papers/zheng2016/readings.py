"""The points that zheng2016 leaves open, and that change a verdict.

Tried without effect on any verdict: deadlines rounded up or to the nearest slot, whole heavy demands, ties
of equal deadlines in Algorithm 3, equal-opp by totals, by shares or at random, primal-dual's B over all jobs.
"""

from __future__ import annotations

from schedgym.papers.readings import points_of

POINTS = points_of("zheng2016")
FRACTIONAL = POINTS["FRACTIONAL"]
EXPONENT = POINTS["EXPONENT"]
HEAVY = POINTS["HEAVY"]
MISFIT = POINTS["MISFIT"]
IMPROVEMENT = POINTS["IMPROVEMENT"]
