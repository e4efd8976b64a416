"""Which claims take minutes, and what the tests read of results."""

from __future__ import annotations

import os
import re

import pytest

from schedgym.papers import Claims, Paper, Shown
from schedgym.papers.claims import Result
from schedgym.papers.registry import Check

#: claims that take minutes, and those that share their runs: their verdicts are asked for in .ci/checks;
#: elsewhere they run on the tiny scale
MINUTES = re.compile(
    r"noroozoliaee2014/(best-fit|dot-product|l2-norm|figure-3-ffd-nb)"
    r"|shi2017/(figure-[45]a-fast|figure-5a|figure-6.*|online-.*|drc-impact.*|jct-grows|weibull)"
    r"|shi2017/(ontapra-is-best|slf-approximates-sjf|llf-is-worst|fast-10-times)"
    r"|xu2021/usual-estimates"
)
ALL = int(os.environ.get("SCHEDGYM_FUZZ", "0")) >= 10_000


def takes_minutes(name: str) -> bool:
    """Return True for a claim that is checked on the tiny scale, where its verdict may differ."""
    return not ALL and MINUTES.fullmatch(name) is not None


#: for tests of what these claims find
in_minutes = pytest.mark.skipif(not ALL, reason="its claims take minutes: .ci/checks")


def instance_of(result: Result) -> Shown:
    """The counterexample or the witness of a claim, under the first reading that has one."""
    instances = (own.counterexample or own.witness for own in result.findings.values())
    return next(filter(None, instances))


def enter_claim(paper: Paper, row: dict, check: Check, points: tuple = (), confirm=None) -> None:
    """Register a claim of a test's own paper, as a row of claims.yaml; points are under their own names."""
    row = {"text": f"text of {row['name']}", "source": "section 1", "recorded": "holds"} | row
    row |= {"under": [point.name for point in points]}
    claim = Claims(paper, {"tests": [row]}, {point.name: point for point in points})
    claim(row["name"], confirm)(check)
