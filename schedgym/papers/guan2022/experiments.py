"""Sections 3.4, 4.7 and 5.6 of guan2022: what they say about the experiments, on a fitted generator.

The figures judge the same sentences on the traces.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from schedgym.papers import HOLDS, NOT_REPRODUCED, Evaluation, Finding, Judged, Run, Verdict
from schedgym.papers.guan2022 import runs
from schedgym.papers.guan2022.findings import claim
from schedgym.papers.guan2022.readings import BALANCE, EVENNESS
from schedgym.papers.guan2022.statements import INCENTIVES, Sentence, judge_decided, judge_incentive
from schedgym.papers.judging import Effect, excess, judge_claim, lower, where
from schedgym.papers.registry import Check


def _little(run: Run) -> Evaluation:
    jobs = runs.fitted(run)
    parameters = {**jobs.parameters, "utilization": 0.6}
    part = jobs._replace(parameters=parameters, episodes=run.size(3, 20, 2))
    return runs.aggressive(run, part, runs.AMF, {"zipf": [jobs.skews[0], jobs.skews[-1]]})


def _shared(run: Run) -> Evaluation:
    return runs.shared(run, runs.fitted(run)._replace(utilizations=[0.6]))


def _judge_incentive(kind: str, run: Run) -> Judged:
    return judge_incentive(run, runs.fitted(run), kind)


#: runs that sentences are about
RUNS: dict[str, Callable[[Run], Evaluation]] = {
    "assigning": lambda run: runs.assigned(run, runs.fitted(run)),
    "distributions": lambda run: runs.assigned(run, runs.fitted(run)).where(zipf=1.0),
    "by sites": lambda run: runs.assigned_by_sites(run, runs.fitted(run), [0.6]),
    "recomputation": _little,
    "deviations of AMF": _shared,
    "responses of AMF": _shared,
    "deviations of GAMF": _shared,
    "responses of GAMF": _shared,
}


def _observed(
    run: Run,
    id: str,
    policies: Mapping[str, str],
    observe: Callable[[Any], float],
    options: Mapping[str, Mapping[str, Any]] | None = None,
    **more: Any,
) -> list[Effect]:
    """Compare at each skew what is observed under two policies; ``more`` are parameters of the runs."""
    jobs = runs.fitted(run)
    grid, given = {"zipf": jobs.skews}, {**jobs.parameters, "utilization": 0.6, **more}
    played = run.play(id, policies, jobs.episodes, grid, parameters=given, options=options, observe=observe)
    cases = []
    for skew in jobs.skews:
        own, other = (played.values(label, zipf=skew) for label in policies)
        cases.append(excess(" against ".join(policies), own, other, where({"zipf": skew})))
    return cases


def _judge_queues(run: Run) -> Judged:
    """Judge whether BTAwJ's queues are less balanced over the sites than SWAG's in some setting."""
    policies = {"BTAwJ": "btawj-swag", "SWAG": "swag"}
    options = {"BTAwJ": {"fine": run.choice(EVENNESS)}}
    cases = _observed(run, runs.ASSIGN, policies, runs.queue_spread, options=options)
    worse = sum(case.above for case in cases)
    listed = ", ".join(map(str, cases))
    measured = f"significantly more in {worse} of {len(cases)} settings: {listed}"
    text = "the standard deviation of BTAwJ's queues over the sites is above SWAG's in some setting"
    return Judged(text, measured, HOLDS if worse else NOT_REPRODUCED)


def _judge_lifetime(run: Run) -> Judged:
    """Judge whether a job's slots vary less over its lifetime under AMF than under IMF."""
    policies = {"Basic AMF": "amf", "IMF": "imf"}
    cases = _observed(run, runs.FAIR, policies, runs.lifetime_variation, objective="response")
    text = "a job's slots vary less over its lifetime (deviation over mean) under AMF than under IMF"
    return judge_claim(text, cases, lower())


def _found(find: Callable[[Run], Judged]) -> Check:
    """Return a check that finds what a function judges."""

    def check(run: Run) -> Finding:
        judged = find(run)
        return Finding(Verdict(judged.verdict), f"{judged.claim}: {judged.measured}")

    return check


def _sentence(**row: Any) -> Check:
    """Return the check of a sentence, as claims.yaml gives it."""
    own = Sentence(**row)

    def find(run: Run) -> Judged:
        if own.decided is None or run.choice(BALANCE) == "occupied":
            return own.judge(RUNS[own.runs](run))
        return judge_decided(run, runs.fitted(run), **own.decided)

    return _found(find)


claim.compare("experiments", _sentence)
claim("btawj-queues")(_found(_judge_queues))
claim("amf-over-lifetime")(_found(_judge_lifetime))
for _kind, _name in INCENTIVES.items():
    claim(_name)(_found(functools.partial(_judge_incentive, _kind)))
