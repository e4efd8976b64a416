"""The papers' figures and tables as experiments: data, picture, and what is claimed beside what is measured.

One module per paper; ``schedgym reproduce`` runs them. See :mod:`schedgym.reproduce.frame`, and
:mod:`schedgym.reproduce.judging` of how claims are judged.
"""

from schedgym.reproduce.frame import (
    SCALES,
    Figure,
    Outcome,
    Panel,
    Played,
    Run,
    Series,
    figure,
    list_figures,
    main,
    make_figure,
    reproduce,
)
from schedgym.reproduce.judging import Reading

__all__ = [
    "SCALES",
    "Figure",
    "Outcome",
    "Panel",
    "Played",
    "Reading",
    "Run",
    "Series",
    "figure",
    "list_figures",
    "main",
    "make_figure",
    "reproduce",
]
