"""The points that the thesis leaves open, and the choices that are run.

The defaults are those under which most of the paper's statements hold, for durations most of those of the
chapter; a test counts the recorded verdicts. With a duration of its own for each task, the longest task of a
job decides its response time whatever the algorithm does, and differences fall to a few percent: then
statements that policies are alike hold better, and those that one is better are about next to nothing.
With whole tasks per slot, small jobs leave the choice of site
to the ties of a flow, which sends them all to the site of the lowest number: then BTAWJ is worse than SWAG in
some settings, as section 3.4 says, but ATA-Greedy is better than ATA, and BTAAJ than SCTA.

Most allocations satisfy the sharing incentive if each job's is counted; under AMF, where sites are skewed,
only a third of the decisions satisfy it for all jobs at once. Deviations leave out the time after the last
arrival; with it AMF's is up to 6% below IMF's, not 4% (3 draws of the claims' jobs), and no verdict turns.
"""

from __future__ import annotations

from schedgym.papers.readings import points_of

POINTS = points_of("guan2022")
#: open for each chapter, by the same name
CHAPTERS = {chapter: POINTS[f"DURATIONS_{chapter}"] for chapter in (3, 4, 5)}
DURATIONS = CHAPTERS[3]
EVENNESS = POINTS["EVENNESS"]
BALANCE = POINTS["BALANCE"]
INCENTIVE = POINTS["INCENTIVE"]
