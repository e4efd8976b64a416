"""Points that the paper leaves open, on measures of size (section III-A) and measurements (section VI)."""

from __future__ import annotations

from schedgym.papers.readings import points_of

POINTS = points_of("noroozoliaee2014")
OUTPERFORMING = POINTS["OUTPERFORMING"]
HEAD = POINTS["HEAD"]
WINDOW = POINTS["WINDOW"]
