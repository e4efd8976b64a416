"""Points that the paper leaves open, on measures of size (section III-A) and measurements (section VI)."""

from __future__ import annotations

from pathlib import Path

from schedgym.documents import read_yaml
from schedgym.papers.readings import OpenPoint

POINTS = {name: OpenPoint(**row) for name, row in read_yaml(Path(__file__).with_suffix(".yaml")).items()}
OUTPERFORMING = POINTS["OUTPERFORMING"]
HEAD = POINTS["HEAD"]
WINDOW = POINTS["WINDOW"]
