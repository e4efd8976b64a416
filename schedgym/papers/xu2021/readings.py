"""The points that the paper leaves open on its algorithm, its norm and its experiments.

OCORP starts from high prices by default, as with either choice of the jobs' demands more statements hold so.
"""

from __future__ import annotations

from schedgym.papers.readings import points_of

POINTS = points_of("xu2021")
DEMANDS = POINTS["DEMANDS"]
START = POINTS["START"]
NORM = POINTS["NORM"]
HORIZON = POINTS["HORIZON"]
FILLING = POINTS["FILLING"]
ESTIMATION = POINTS["ESTIMATION"]
