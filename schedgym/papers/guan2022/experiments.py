"""Sections 3.4, 4.7 and 5.6 of guan2022: what they say about the experiments, on a fitted generator.

The figures judge the same sentences on the traces.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from schedgym.papers import HOLDS, NOT_REPRODUCED, Finding, Judged, Played, Run, Verdict
from schedgym.papers.guan2022.findings import claim
from schedgym.papers.guan2022.readings import BALANCE, DURATIONS, EVENNESS
from schedgym.papers.guan2022.runs import (
    AMF,
    ASSIGN,
    FAIR,
    aggressive,
    assigned,
    assigned_by_sites,
    fitted,
    lifetime_variation,
    queue_spread,
    shared,
)
from schedgym.papers.guan2022.statements import (
    ASSIGNING,
    BY_SITES,
    DISTRIBUTIONS,
    GENERAL_DEVIATIONS,
    GENERAL_RESPONSES,
    INCENTIVES,
    LITTLE,
    MUCH,
    SHARED_DEVIATIONS,
    SHARED_RESPONSES,
    Said,
    judge_decided,
    judge_incentive,
)
from schedgym.papers.judging import Comparison, compare, judge_claim, lower, where

ASSIGNED_UNDER = (DURATIONS, EVENNESS)
SHARED_UNDER = (DURATIONS,)


def register_sentence(name: str, find: Callable[[Run], Judged]) -> None:
    """Register a sentence of the thesis as a claim."""

    @claim(name)
    def _check(run: Run) -> Finding:
        judged = find(run)
        return Finding(Verdict(judged.verdict), f"{judged.claim}: {judged.measured}")


# section 3.4 -----------------------------------------------------------------------------------------


def _assigned(run: Run) -> Played:
    return assigned(run, fitted(run))


def _distributed(run: Run) -> Played:
    return _assigned(run).where(zipf=1.0)


def _by_sites(run: Run) -> Played:
    return assigned_by_sites(run, fitted(run), [0.6])


def _shared(run: Run) -> Played:
    return shared(run, fitted(run)._replace(utilizations=[0.6]))


def _little(run: Run) -> Played:
    jobs = fitted(run)
    parameters = {**jobs.parameters, "utilization": 0.6}
    part = jobs._replace(parameters=parameters, episodes=run.size(3, 20, 2))
    return aggressive(run, part, AMF, {"zipf": [jobs.skews[0], jobs.skews[-1]]})


def _observed(played: Played, policy: str, rival: str, skew: float) -> Comparison:
    """Compare what was observed of two policies at a skew."""
    own, other = (played.values(label, zipf=skew) for label in (policy, rival))
    return compare(f"{policy} against {rival}", own, other, where({"zipf": skew}))


def _judge_queues(run: Run) -> Judged:
    """Judge whether BTAwJ's queues are less balanced over the sites than SWAG's in some setting."""
    jobs = fitted(run)
    played = run.play(
        ASSIGN,
        {"BTAwJ": "btawj-swag", "SWAG": "swag"},
        jobs.episodes,
        {"zipf": jobs.skews},
        parameters={**jobs.parameters, "utilization": 0.6},
        options={"BTAwJ": {"fine": run.choice(EVENNESS)}},
        observe=queue_spread,
    )
    cases = [_observed(played, "BTAwJ", "SWAG", skew) for skew in jobs.skews]
    worse = sum(case.above for case in cases)
    listed = ", ".join(map(str, cases))
    measured = f"significantly more in {worse} of {len(cases)} settings: {listed}"
    text = "the standard deviation of BTAwJ's queues over the sites is above SWAG's in some setting"
    return Judged(text, measured, HOLDS if worse else NOT_REPRODUCED)


def _judge_balance(kind: str, rival: str, by: float) -> Callable[[Run], Judged]:
    """Return a function that judges one policy against another by occupied slots, or by decided shares."""
    said = SHARED_DEVIATIONS if kind == "AMF" else GENERAL_DEVIATIONS

    def find(run: Run) -> Judged:
        if run.choice(BALANCE) == "occupied":
            return said[f"{kind.lower()}-balance"].judge(_shared(run))
        words = f"much (here: by {100 * by:.0f}%) " if by else ""
        text = f"the decided aggregates of {kind} are {words}more balanced than {rival}'s"
        return judge_decided(run, fitted(run), text, kind, rival, by)

    return find


def _judge_incentive(kind: str, run: Run) -> Judged:
    return judge_incentive(run, fitted(run), kind)


def _judge_lifetime(run: Run) -> Judged:
    """Judge whether a job's slots vary less over its lifetime under AMF than under IMF."""
    jobs = fitted(run)
    played = run.play(
        FAIR,
        {"Basic AMF": "amf", "IMF": "imf"},
        jobs.episodes,
        {"zipf": jobs.skews},
        parameters={**jobs.parameters, "utilization": 0.6, "objective": "response"},
        observe=lifetime_variation,
    )
    cases = [_observed(played, "Basic AMF", "IMF", skew) for skew in jobs.skews]
    text = "a job's slots vary less over its lifetime (deviation over mean) under AMF than under IMF"
    return judge_claim(text, cases, lower())


def _judged(said: Said, runs: Callable[[Run], Played]) -> Callable[[Run], Judged]:
    return lambda run: said.judge(runs(run))


def _register_sentences(statements: Mapping[str, Said], runs: Callable[[Run], Played]) -> None:
    for name, said in statements.items():
        if name in ("amf-balance", "gamf-balance"):
            pair = ("AMF", "IMF", MUCH) if name == "amf-balance" else ("GAMF", "AMF", 0.0)
            register_sentence(name, _judge_balance(*pair))
        else:
            register_sentence(name, _judged(said, runs))


_register_sentences(ASSIGNING, _assigned)
_register_sentences(DISTRIBUTIONS, _distributed)
_register_sentences(BY_SITES, _by_sites)
_register_sentences(LITTLE, _little)
for _statements in (SHARED_DEVIATIONS, SHARED_RESPONSES, GENERAL_DEVIATIONS, GENERAL_RESPONSES):
    _register_sentences(_statements, _shared)
register_sentence("btawj-queues", _judge_queues)
register_sentence("amf-over-lifetime", _judge_lifetime)
for _kind, _name in INCENTIVES.items():
    register_sentence(_name, functools.partial(_judge_incentive, _kind))
