"""The points that the paper leaves open on its experiments (section 6), and the choices.

Defaults are those under which most of the paper's own statements hold: equal shares in all statements on
times of Figs. 4 and 5, the limits as the paper lists them (with one for each server TaPRA-fast is much worse
than TaPRA), the MAR test of all schedulers in those of Fig. 6(a) (without it the rivals take 3 to
60 times as long as OnTaPRA, where the paper states 1.05 to 3.3 times), 70 times the Weibull variable, as only
then jobs have to wait. Between thresholds of 30% and 50% of that test only the verdict on the numbers of
DRC's impact turns; with 5% or 10% the rivals without DRC are further from the paper's numbers (3 draws). At
30% OnTaPRA's own average JCT with DRC is the lowest.
"""

from __future__ import annotations

from schedgym.papers.readings import points_of

POINTS = points_of("shi2017")
SIZING = POINTS["SIZING"]
LIMITS = POINTS["LIMITS"]
MAR = POINTS["MAR"]
THRESHOLD = POINTS["THRESHOLD"]
TASKS = POINTS["TASKS"]
RESPECTIVELY = POINTS["RESPECTIVELY"]
