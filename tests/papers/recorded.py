"""Which claims run for long, and what the tests read of results."""

from __future__ import annotations

import json
import re

from schedgym.papers import Claim, Claims, Paper, Shown
from schedgym.papers.claims import Result
from schedgym.papers.registry import Check
from tests.interpreted import ROOT
from tests.long import WEEKLY

#: name of a claim -> what ``schedgym claims`` found on the small scale, in the order of the papers
COMMITTED = {
    entry["claim"]: entry
    for entry in json.loads((ROOT / "docs" / "claims.json").read_text(encoding="utf-8"))["claims"]
}
#: the modules of claims that measure runs of policies, and single claims that take as long: their verdicts
#: are asked for in .ci/checks; elsewhere they run on the tiny scale
MEASURED = re.compile(
    r"(guan2022|noroozoliaee2014|xu2021)\.experiments/.*|noroozoliaee2014\.schedulers/.*"
    r"|shi2017\.(many_jobs/.*|one_job/((figure|fast|offline)-.*|jct-grows)|placement/fast-within-5-percent)"
)


def is_measured(claim: Claim) -> bool:
    """Return True for a claim that measures runs of policies."""
    module = claim.check.__module__.removeprefix("schedgym.papers.")
    return MEASURED.fullmatch(f"{module}/{claim.short}") is not None


def is_tiny(claim: Claim) -> bool:
    """Return True for a claim that is checked on the tiny scale, where its verdict may differ."""
    return not WEEKLY and is_measured(claim)


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
