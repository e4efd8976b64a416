"""What the paper says of its experiments, and no figure shows.

What it says of its figures is judged there (``figures``, ``schedgym reproduce``). The jobs are those of the
preset "kw", at the small scale a quarter as many in a quarter of the time.
"""

from __future__ import annotations

from typing import Any

from schedgym.papers import NOT_REPRODUCED, Finding, Played, Run, claim, judge
from schedgym.papers.judging import Comparison, against, compare, tell
from schedgym.papers.xu2021.instances import PAPER
from schedgym.problems.flowtime.problem import PROBLEM

__all__: list[str] = []

ID = "schedgym/FlowtimePacking-v0"
RULES = ("svf", "srvf", "srpt", "srf")  # those that the paper compares with
SMALL = {"jobs": 1600, "horizon": 888}
STATED = 0.34  # in the introduction
CLOSE = 0.1  # share by which a norm may grow and the policy still works well
#: variances of estimates: section VI-D calls errors of less than 0.4 usual, whose variance is below 0.16
VARIANCE = 0.16


def _play(run: Run, policy: str, **parameters: Any) -> Played:
    size = {} if run.scale == "paper" else SMALL
    return run.play(
        ID, [policy, *RULES], run.size(5, 100, 2), parameters={**PROBLEM.presets["kw"], **size, **parameters}
    )


def _norms(played: Played, policy: str, metric: str = "l2") -> list[Comparison]:
    """Compare a policy's norm of the flowtimes with that of each rule."""
    return against(
        policy, played.metric(policy, metric), {rule: played.metric(rule, metric) for rule in RULES}
    )


@claim(
    PAPER,
    "introduction-34-percent",
    text="OCORP+M reduces the total job flowtime by nearly 34% in comparison with existing schemes",
    source="section I; sections VI-A and VI-C",
    recorded=NOT_REPRODUCED,
)
def _check_introduction(run: Run) -> Finding:
    played = _play(run, "ocorp+m", kind="2d")
    found = {metric: _norms(played, "ocorp+m", metric) for metric in ("l2", "l1")}
    changes = {
        metric: {rule: entry.value for rule, entry in zip(RULES, own, strict=True)}
        for metric, own in found.items()
    }
    reached = [all(change <= -STATED for change in own.values()) for own in changes.values()]
    text = f"l2 norm: {tell(found['l2'])}; sum: {tell(found['l1'])}. Section VI-A says 34% of OCORP, without"
    text += " memory, and section VI-C 24% of OCORP+M: the two do not agree"
    return Finding(judge(any(reached)), text, figures=changes)


@claim(
    PAPER,
    "usual-estimates",
    text="where demands are estimated with the usual errors, of variance 0.16, OCORP+M still works well",
    source="section VI-D, after Fig. 11",
    recorded=NOT_REPRODUCED,
)
def _check_estimates(run: Run) -> Finding:
    exact = _play(run, "ocorp+m", kind="2d")
    wrong = _play(run, "ocorp+m", kind="2d", estimation="under", variance=VARIANCE)
    pairs = {
        policy: (wrong.metric(policy, "l2"), exact.metric(policy, "l2")) for policy in ("ocorp+m", *RULES)
    }
    grown = {policy: compare(policy, *pair) for policy, pair in pairs.items()}
    ahead = _norms(wrong, "ocorp+m")
    text = f"l2 norm against exact demands: {tell(list(grown.values()))}; with errors {tell(ahead)}"
    figures = {policy: entry.value for policy, entry in grown.items()}
    good = grown["ocorp+m"].value <= CLOSE or all(entry.value < 0.0 for entry in ahead)
    return Finding(judge(good), text, figures=figures)
