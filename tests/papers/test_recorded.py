"""All claims of all papers: verdicts as recorded, and confirmations that fail on changed instances."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import pytest

from schedgym.documents import read_yaml
from schedgym.papers.claims import show
from tests.long import long
from tests.papers.recorded import COMMITTED, is_measured, is_tiny

pytestmark = long

#: claims on running times, which other work on the machine may change
TIMED = re.compile(r"shi2017/(fast-10-times|figure-4c|figure-5c(-fast)?|figure-6b.*|offline-running-time)")
RATIO_OF_TIMES = "shi2017/closed-form-is-faster"  # is the figure of this claim
CHANGED = {
    f"{paper}/{name}": changes if isinstance(changes, list) else [changes]
    for paper, claims in read_yaml(Path(__file__).with_name("changed.yaml")).items()
    for name, changes in claims.items()
}


def alike(own, other) -> bool:
    """Whether two contents of JSON are the same but for rounding."""
    if isinstance(own, dict):
        return own.keys() == other.keys() and all(alike(own[key], other[key]) for key in own)
    if isinstance(own, list):
        return len(own) == len(other) and all(map(alike, own, other))
    return own == (pytest.approx(other, rel=1e-6, abs=1e-6) if isinstance(own, float) else other)


@pytest.mark.parametrize("name", COMMITTED)  # all claims, as is tested; to list them imports every check
def test_verdicts_are_as_recorded(results, name) -> None:
    """With evidence in one line, all of it can be written and shown, and no changed instance is confirmed.

    Instances, and what was counted, are those of docs/claims.json.
    """
    result = results[name]
    tiny = is_tiny(result.claim)
    assert TIMED.fullmatch(name) or tiny or result.as_recorded, result.finding.evidence
    assert result.finding.evidence and "\n" not in result.finding.evidence
    written = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    if not is_measured(result.claim) and name != RATIO_OF_TIMES:
        for part in ("counterexample", "witness", "figures"):
            assert alike(written[part], COMMITTED[name][part]), part
    instances = [own.counterexample or own.witness for own in result.findings.values()]
    for found in filter(None, instances):
        assert show(found) and result.claim.confirm(found)
        for change in CHANGED[name]:
            assert found.keys() >= change.keys()
            assert not result.claim.confirm(copy.deepcopy(dict(found)) | change), change
    # on the tiny scale a search may find none
    assert any(instances) == (name in CHANGED) or tiny
