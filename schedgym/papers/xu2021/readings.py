"""The points that the paper leaves open on its algorithm, its norm and its experiments."""

from __future__ import annotations

from pathlib import Path

from schedgym.documents import read_yaml
from schedgym.papers.readings import OpenPoint

POINTS = {name: OpenPoint(**row) for name, row in read_yaml(Path(__file__).with_suffix(".yaml")).items()}
START = POINTS["START"]
NORM = POINTS["NORM"]
HORIZON = POINTS["HORIZON"]
ESTIMATION = POINTS["ESTIMATION"]
