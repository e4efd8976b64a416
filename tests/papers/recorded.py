"""What the tests of every paper's claims ask of results."""

from __future__ import annotations

import json

from schedgym.evaluation.statements import Verdict
from schedgym.papers.claims import show


def instance_of(results, name):
    """The counterexample or the witness of a claim, by its name without the paper's."""
    (finding,) = (result.finding for key, result in results.items() if key.partition("/")[2] == name)
    return finding.counterexample or finding.witness


def by_verdict(results, names) -> dict[Verdict, set[str]]:
    """The names of the claims, without their paper, by verdict."""
    found: dict[Verdict, set[str]] = {verdict: set() for verdict in Verdict}
    for name in names:
        found[results[name].finding.verdict].add(name.partition("/")[2])
    return found


def check_recorded(result, timed: bool = False) -> None:
    """The verdict is the recorded one, with evidence in one line, and all of it can be written and shown.

    Where running times are measured (``timed``), other work on the machine may change the verdict.
    """
    assert timed or result.as_recorded, result.finding.evidence
    assert result.finding.evidence and "\n" not in result.finding.evidence
    json.dumps(result.to_dict(), allow_nan=False)
    for instance in (result.finding.counterexample, result.finding.witness):
        assert instance is None or show(instance)
