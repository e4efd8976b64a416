"""What the tests of every paper's claims ask of results."""

from __future__ import annotations

import json
import os

import pytest

from schedgym.papers.claims import show

#: claims that take minutes: their verdicts are asked for in .ci/checks; elsewhere they run on the tiny scale
MINUTES = {
    "noroozoliaee2014/best-fit",
    "noroozoliaee2014/dot-product",
    "noroozoliaee2014/figure-3-ffd-nb",
    "shi2017/drc-impact-numbers",
    "shi2017/figure-5a",
    "shi2017/figure-6a-fast",
    "shi2017/jct-grows",
    "shi2017/ontapra-is-best",
    "shi2017/weibull",
    "xu2021/usual-estimates",
}
if int(os.environ.get("SCHEDGYM_FUZZ", "0")) >= 10_000:
    MINUTES = set()

#: for tests of what these claims find
in_minutes = pytest.mark.skipif(bool(MINUTES), reason="its claims take minutes: .ci/checks")


def instance_of(results, name):
    """The counterexample or the witness of a claim, by its name without the paper's."""
    (finding,) = (result.finding for key, result in results.items() if key.partition("/")[2] == name)
    return finding.counterexample or finding.witness


def check_recorded(result, timed: bool = False) -> None:
    """The verdict is the recorded one, with evidence in one line, and all of it can be written and shown.

    Where running times are measured (``timed``), other work on the machine may change the verdict.
    """
    assert timed or result.claim.name in MINUTES or result.as_recorded, result.finding.evidence
    assert result.finding.evidence and "\n" not in result.finding.evidence
    json.dumps(result.to_dict(), allow_nan=False)
    for instance in (result.finding.counterexample, result.finding.witness):
        assert instance is None or show(instance)
