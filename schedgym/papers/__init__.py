"""The papers examined: exact reference models, claims as executable checks, figures as experiments.

Each paper has a folder, named by its citation key. ``schedgym claims`` checks claims and
``schedgym reproduce`` makes figures; both find them in one registry (:mod:`schedgym.papers.registry`), and a
verdict always comes from a run (:mod:`schedgym.papers.judging`).
"""

from schedgym.evaluation.comparison import Evaluation
from schedgym.evaluation.pictures import Panel, Series
from schedgym.evaluation.statements import CORRECTED, HOLDS, IN_PART, NOT_REPRODUCED, REFUTED, Verdict
from schedgym.papers.claims import Result, check_claims, show
from schedgym.papers.figures import draw, make_figure, reproduce
from schedgym.papers.judging import NOT_JUDGED, NOT_TOLD, Finding, Judged, Shown, judge
from schedgym.papers.paper import PAPERS, Paper, get_paper
from schedgym.papers.registry import (
    Claim,
    Claims,
    Figure,
    Outcome,
    figure,
    judged_claim,
    list_claims,
    list_figures,
)
from schedgym.papers.run import Run

__all__ = [
    "CORRECTED",
    "HOLDS",
    "IN_PART",
    "NOT_JUDGED",
    "NOT_REPRODUCED",
    "NOT_TOLD",
    "PAPERS",
    "REFUTED",
    "Claim",
    "Claims",
    "Figure",
    "Finding",
    "Outcome",
    "Panel",
    "Paper",
    "Evaluation",
    "Judged",
    "Result",
    "Run",
    "Series",
    "Shown",
    "Verdict",
    "check_claims",
    "draw",
    "figure",
    "get_paper",
    "judge",
    "judged_claim",
    "list_claims",
    "list_figures",
    "make_figure",
    "reproduce",
    "show",
]
