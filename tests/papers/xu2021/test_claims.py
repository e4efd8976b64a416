"""The claims of xu2021 on the small scale: verdicts as recorded, figures, confirmations that fail."""

from __future__ import annotations

import copy
from fractions import Fraction as F

import pytest

from schedgym.papers import Verdict, list_claims
from schedgym.papers.xu2021.instances import pooled, read_instance, rule
from schedgym.papers.xu2021.model import flowtime
from tests.flowtime.optima import optimum
from tests.long import long
from tests.papers.recorded import check_recorded

pytestmark = long

PAPER = "xu2021"
CLAIMS = [entry.name for entry in list_claims(PAPER)]


@pytest.mark.parametrize("name", CLAIMS)
def test_verdicts_are_as_recorded(results, name) -> None:
    check_recorded(results[name])


def test_corollary_2(results) -> None:
    """The ratios of smallest volume first, by brute force: that of the hill climb is the worst known."""
    finding = results[f"{PAPER}/corollary-2"].finding
    found, figures = finding.witness, finding.figures
    worst = read_instance(figures["worst_tiny"])
    untied = [(0, 1, 2), (0, 2, 5), (0, 6, 2)], 6  # no equal volumes
    for (jobs, cores), ratio in (
        (read_instance(found), F(found["ratio"])),
        (worst, F(7, 6)),
        (untied, F(6, 5)),
    ):
        own = flowtime(jobs, rule("svf", jobs, cores))
        assert F(own, int(optimum(pooled(jobs, cores), 1))) == ratio
    assert figures["worst_tiny_ratio"] == "7/6"
    assert F(7, 6) < F(found["ratio"]) == F(figures["worst_ratio"]) < F(3, 2)
    assert min(figures["family"].values()) > 7 / 6


# confirmations can fail --------------------------------------------------------------------------------

STATED = {
    "example-1": ("printed_addend", 3),
    "constant-factor": ("flowtime", [106, 1340, 18841]),
    "surrogate-is-no-bound": ("flowtime", 2),
    "pooled-srpt-is-no-bound": ("pooled", 5),
    "fractional-above-actual": ("gamma", 7.0),
    "theorem-1-iterations": ("second", [[1], [0]]),
    "theorem-1": ("cells", 3),
    "theorem-2": ("ratio", "1"),
    "alternation": ("memory", [2]),
    "equation-19": ("memory", 3),
    "jobs-on-a-server": ("jobs_there", 3),
    "lemma-1": ("cores", 2),
    "algorithm-1-line-7": ("completion", 5),
    "dynamic-regret": ("regret", "1"),
    "equation-26": ("T", 3),
    "theorem-4": ("regret", "3"),
    "equation-27-online": ("slot", 4),
    "gamma-4000": ("gamma", 10**6),
    "least-makespan": ("cores", 1),
    "step-size": ("exponent", "3/2"),
    "corollary-1": ("longest_gap", [1, 1, 1]),
    "switching-cost": ("cost_split", "1"),
    "transient-z": ("z", 1),
    "transient-horizon": ("slots", 1),
    "lemma-2": ("left", [1]),
    "theorem-6": ("svf", "15/2"),
    "equation-45": ("latency", [1, 1]),
}


@pytest.mark.parametrize(
    "name",
    [e.name for e in list_claims(PAPER) if {*e.recorded.values()} & {Verdict.REFUTED, Verdict.CORRECTED}],
)
def test_changed_counterexamples_are_not_confirmed(results, name) -> None:
    (entry,) = list_claims(name)
    found = copy.deepcopy(dict(results[name].finding.counterexample))
    assert entry.confirm(found)
    key, value = STATED[entry.name.partition("/")[2]]
    assert found[key] != value
    assert not entry.confirm(found | {key: value})


def test_changed_witnesses_are_not_confirmed(results) -> None:
    changes = {
        "corollary-2": {"ratio": "7/6"},
        "equation-6": {"processing": [2]},
        "fit-bounds-unfinished-work": {"served": ["1"]},
    }
    for name, change in changes.items():
        (entry,) = list_claims(f"{PAPER}/{name}")
        found = dict(results[entry.name].finding.witness)
        assert entry.confirm(found) and not entry.confirm(found | change)
