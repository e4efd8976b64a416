"""What the tests of every paper's claims ask of results."""

from __future__ import annotations

import json
import os
import re

import pytest

from schedgym.papers.claims import show

#: claims that take minutes, and those that share their runs: their verdicts are asked for in .ci/checks;
#: elsewhere they run on the tiny scale
MINUTES = re.compile(
    r"noroozoliaee2014/(best-fit|dot-product|figure-3-ffd-nb)"
    r"|shi2017/(figure-5a|figure-6.*|online-.*|drc-impact.*|jct-grows|weibull|ontapra-is-best)"
    r"|shi2017/(slf-approximates-sjf|llf-is-worst|fast-10-times)"
    r"|xu2021/usual-estimates"
)
ALL = int(os.environ.get("SCHEDGYM_FUZZ", "0")) >= 10_000


def takes_minutes(name: str) -> bool:
    """Return True for a claim that is checked on the tiny scale, where its verdict may differ."""
    return not ALL and MINUTES.fullmatch(name) is not None


#: for tests of what these claims find
in_minutes = pytest.mark.skipif(not ALL, reason="its claims take minutes: .ci/checks")


def instance_of(results, name):
    """The counterexample or the witness of a claim, by its name without the paper's."""
    (finding,) = (result.finding for key, result in results.items() if key.partition("/")[2] == name)
    return finding.counterexample or finding.witness


def check_recorded(result, timed: bool = False) -> None:
    """The verdict is the recorded one, with evidence in one line, and all of it can be written and shown.

    Where running times are measured (``timed``), other work on the machine may change the verdict.
    """
    assert timed or takes_minutes(result.claim.name) or result.as_recorded, result.finding.evidence
    assert result.finding.evidence and "\n" not in result.finding.evidence
    json.dumps(result.to_dict(), allow_nan=False)
    for instance in (result.finding.counterexample, result.finding.witness):
        assert instance is None or show(instance)
