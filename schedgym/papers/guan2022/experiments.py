"""Sections 3.4, 4.7 and 5.6 of guan2022: what they say about the experiments, on a fitted generator.

The figures judge the same sentences on the traces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from schedgym.papers import (
    HOLDS,
    IN_PART,
    NOT_REPRODUCED,
    Finding,
    Judged,
    Played,
    Run,
    Verdict,
    claim,
)
from schedgym.papers.guan2022.findings import PAPER
from schedgym.papers.guan2022.readings import BALANCE, DURATIONS, EVENNESS, INCENTIVE
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
from schedgym.papers.readings import OpenPoint, name_reading, readings_of

ASSIGNED_UNDER = (DURATIONS, EVENNESS)
SHARED_UNDER = (DURATIONS,)


def _by_reading(points: Sequence[OpenPoint], *verdicts: Verdict) -> dict[str, Verdict]:
    """Return the verdicts by the words of the readings, of which the default is the first."""
    return dict(zip(map(name_reading, readings_of(points)), verdicts, strict=True))


def register_sentence(
    name: str, sentence: str, source: str, under: Sequence[OpenPoint], find: Callable[[Run], Judged]
) -> None:
    """Register a sentence of the thesis as a claim, with the verdicts of ``RECORDED``."""
    verdicts = RECORDED.get(name, (HOLDS,))
    recorded = verdicts[0] if len(verdicts) == 1 else _by_reading(under, *verdicts)

    @claim(PAPER, name, text=sentence, source=source, under=under, recorded=recorded)
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


#: verdicts under the readings of a claim, the default first; one: the same under all
RECORDED: dict[str, tuple[Verdict, ...]] = {
    "skew-lengthens-responses": (HOLDS,),
    "combined-against-separate": (IN_PART, NOT_REPRODUCED, IN_PART, NOT_REPRODUCED),
    "ata-against-scta": (IN_PART,),
    "ata-gain-grows": (HOLDS, NOT_REPRODUCED, HOLDS, HOLDS),
    "greedy-against-ata": (IN_PART, NOT_REPRODUCED, NOT_REPRODUCED, NOT_REPRODUCED),
    "greedy-against-others": (IN_PART,),
    "swag-much-higher": (IN_PART, IN_PART, NOT_REPRODUCED, NOT_REPRODUCED),
    "btawj-against-swag": (NOT_REPRODUCED, HOLDS, NOT_REPRODUCED, HOLDS),
    "same-at-all-utilizations": (HOLDS,),
    "almost-all-percentiles": (IN_PART, IN_PART, NOT_REPRODUCED, NOT_REPRODUCED),
    "btawj-queues": (NOT_REPRODUCED, NOT_REPRODUCED, NOT_REPRODUCED, HOLDS),
    "more-sites": (HOLDS, IN_PART, HOLDS, IN_PART),
    "one-site": (HOLDS,),
    "same-for-all-sites": (HOLDS,),
    "aggressive-recomputation": (HOLDS,),
    "amf-balance": (NOT_REPRODUCED, IN_PART, NOT_REPRODUCED, IN_PART),
    "amf-balance-near-uniform": (NOT_REPRODUCED,),
    "amf-variants-alike": (IN_PART, HOLDS),
    "sig-amf-same-deviation": (IN_PART, HOLDS),
    "amf-over-lifetime": (NOT_REPRODUCED, IN_PART),
    "amf-against-imf": (NOT_REPRODUCED,),
    "amf-gain-grows": (NOT_REPRODUCED, IN_PART),
    "opt-amf-against-amf": (NOT_REPRODUCED,),
    "opt-amf-gain-grows": (IN_PART, NOT_REPRODUCED),
    "sig-amf-same-response": (IN_PART, HOLDS),
    "amf-keeps-incentive": (HOLDS, NOT_REPRODUCED, HOLDS, IN_PART),
    "gamf-balance": (NOT_REPRODUCED,),
    "sig-gamf-same-deviation": (IN_PART, HOLDS),
    "gamf-against-amf": (IN_PART,),
    "opt-gamf-against-gamf": (IN_PART,),
    "sig-gamf-same-response": (IN_PART, HOLDS),
    "gamf-keeps-incentive": (HOLDS,),
}


def _judged(said: Said, runs: Callable[[Run], Played]) -> Callable[[Run], Judged]:
    return lambda run: said.judge(runs(run))


def _register_sentences(
    statements: Mapping[str, Said], source: str, under: Sequence[OpenPoint], runs: Callable[[Run], Played]
) -> None:
    for name, said in statements.items():
        if name in ("amf-balance", "gamf-balance"):
            pair = ("AMF", "IMF", MUCH) if name == "amf-balance" else ("GAMF", "AMF", 0.0)
            register_sentence(name, said.sentence, source, (*under, BALANCE), _judge_balance(*pair))
        else:
            register_sentence(name, said.sentence, source, under, _judged(said, runs))


_register_sentences(ASSIGNING, "section 3.4, Figs. 3.11 and 3.12", ASSIGNED_UNDER, _assigned)
_register_sentences(DISTRIBUTIONS, "section 3.4, Figs. 3.13 and 3.14", ASSIGNED_UNDER, _distributed)
register_sentence(
    "btawj-queues",
    "under BTAWJ the instantaneous task queue lengths at various sites can be quite different and even less "
    "balanced than those in the original SWAG algorithm",
    "section 3.4",
    ASSIGNED_UNDER,
    _judge_queues,
)
_register_sentences(BY_SITES, "section 3.4, Figs. 3.15 and 3.16", ASSIGNED_UNDER, _by_sites)
_register_sentences(LITTLE, "section 4.7, Fig. 4.3", SHARED_UNDER, _little)
_register_sentences(SHARED_DEVIATIONS, "section 4.7, Figs. 4.4 and 4.5", SHARED_UNDER, _shared)
register_sentence(
    "amf-over-lifetime",
    "the aggregate amount of resources received by a job is more consistent throughout its lifetime in AMF "
    "than in IMF",
    "section 4.7",
    SHARED_UNDER,
    _judge_lifetime,
)
_register_sentences(SHARED_RESPONSES, "section 4.7, Figs. 4.6 and 4.7", SHARED_UNDER, _shared)
register_sentence(
    INCENTIVES["AMF"],
    "most of the resource allocations generated by AMF satisfy the sharing incentive property",
    "section 4.7",
    (*SHARED_UNDER, INCENTIVE),
    lambda run: judge_incentive(run, fitted(run), "AMF"),
)
_register_sentences(GENERAL_DEVIATIONS, "section 5.6, Figs. 5.1 and 5.2", SHARED_UNDER, _shared)
_register_sentences(GENERAL_RESPONSES, "section 5.6, Figs. 5.3 and 5.4", SHARED_UNDER, _shared)
register_sentence(
    INCENTIVES["GAMF"],
    "most of the resource allocations generated by GAMF satisfy the sharing incentive property",
    "section 5.6",
    (*SHARED_UNDER, INCENTIVE),
    lambda run: judge_incentive(run, fitted(run), "GAMF"),
)
