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


OWN, ZERO = "ocorp+m", "ocorp+m from 0"  # lambda from 1e11, and from 0


def _play(run: Run, **parameters: Any) -> Played:
    size = {} if run.scale == "paper" else SMALL
    return run.play(
        ID,
        {OWN: OWN, ZERO: OWN, **{rule: rule for rule in RULES}},
        run.size(5, 100, 2),
        parameters={**PROBLEM.presets["kw-2d"], **size, **parameters},
        options={ZERO: {"lambda0": 0.0}},
    )


def _norms(played: Played, policy: str, metric: str = "l2") -> list[Comparison]:
    """Compare a policy's norm of the flowtimes with that of each rule."""
    others = {rule: played.metric(rule, metric) for rule in RULES}
    return against(policy, played.metric(policy, metric), others)


@claim(
    PAPER,
    "introduction-34-percent",
    text="OCORP+M reduces the total job flowtime by nearly 34% in comparison with existing schemes",
    source="section I; sections VI-A and VI-C",
    recorded=NOT_REPRODUCED,
)
def _check_introduction(run: Run) -> Finding:
    played = _play(run)
    found = {
        (policy, metric): _norms(played, policy, metric) for policy in (OWN, ZERO) for metric in ("l2", "l1")
    }
    reached = [all(entry.value <= -STATED for entry in own) for own in found.values()]
    text = (
        f"l2 norm: {tell(found[OWN, 'l2'])}; sum: {tell(found[OWN, 'l1'])}; l2 norm: "
        f"{tell(found[ZERO, 'l2'])}. Section VI-A says 34% of OCORP, without memory, and section VI-C 24% of "
        "OCORP+M: the two do not agree"
    )
    figures = {
        f"{policy}, {metric}": {rule: entry.value for rule, entry in zip(RULES, own, strict=True)}
        for (policy, metric), own in found.items()
    }
    return Finding(judge(any(reached)), text, figures=figures)


@claim(
    PAPER,
    "usual-estimates",
    text="where demands are estimated with the usual errors, of variance 0.16, OCORP+M still works well",
    source="section VI-D, after Fig. 11",
    recorded=NOT_REPRODUCED,
)
def _check_estimates(run: Run) -> Finding:
    exact, wrong = _play(run), _play(run, estimation="under", variance=VARIANCE)
    grown = {
        policy: compare(policy, wrong.metric(policy, "l2"), exact.metric(policy, "l2"))
        for policy in (OWN, ZERO, *RULES)
    }
    ahead = {policy: _norms(wrong, policy) for policy in (OWN, ZERO)}
    text = f"l2 norm against exact demands: {tell(list(grown.values()))}; with errors {tell(ahead[OWN])}; "
    text += tell(ahead[ZERO])
    good = (
        grown[policy].value <= CLOSE or all(entry.value < 0.0 for entry in ahead[policy])
        for policy in (OWN, ZERO)
    )
    figures = {policy: entry.value for policy, entry in grown.items()}
    return Finding(judge(any(good)), text, figures=figures)
