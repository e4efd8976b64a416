"""All claims of all papers: verdicts as recorded, and confirmations that fail on what was changed."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from schedgym.documents import read_yaml
from schedgym.papers import list_claims
from schedgym.papers.claims import show
from tests.long import long
from tests.papers.recorded import instance_of, takes_minutes

pytestmark = long

#: claims on running times, which other work on the machine may change
TIMED = {
    f"shi2017/{name}"
    for name in (
        "fast-10-times",
        "figure-4c",
        "figure-5c",
        "figure-5c-fast",
        "figure-6b",
        "figure-6b-genetic",
        "figure-6b-ontapra",
        "offline-running-time",
    )
}
CHANGED = {
    f"{paper}/{name}": change
    for paper, changes in read_yaml(Path(__file__).with_name("changed.yaml")).items()
    for name, change in changes.items()
}


@pytest.mark.parametrize("name", [entry.name for entry in list_claims()])
def test_verdicts_are_as_recorded(results, name) -> None:
    """With evidence in one line, and all that was found can be written and shown."""
    result = results[name]
    assert name in TIMED or takes_minutes(name) or result.as_recorded, result.finding.evidence
    assert result.finding.evidence and "\n" not in result.finding.evidence
    json.dumps(result.to_dict(), allow_nan=False)
    for finding in result.findings.values():
        for instance in (finding.counterexample, finding.witness):
            assert instance is None or (show(instance) and name in CHANGED)


@pytest.mark.parametrize("name", CHANGED)
def test_changed_instances_are_not_confirmed(results, name) -> None:
    if takes_minutes(name):
        pytest.skip("its instance is found in minutes: .ci/checks")
    (entry,) = list_claims(name)
    found = copy.deepcopy(dict(instance_of(results[name])))
    assert entry.confirm(found)
    assert found.keys() >= CHANGED[name].keys()
    assert not entry.confirm(found | CHANGED[name])
