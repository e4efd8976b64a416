"""The paper's statements examined on the workloads of a comparison: each holds, in part, or not."""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import Any

from schedgym.core.problem import Statement
from schedgym.evaluation.comparison import Evaluation


class Verdict(enum.StrEnum):
    """The verdict of a run on a statement of a paper."""

    HOLDS = "holds"
    CORRECTED = "holds with a correction"
    IN_PART = "in part"
    REFUTED = "refuted"
    NOT_REPRODUCED = "not reproduced"
    NOT_TOLD = "cannot be told"
    NOT_JUDGED = "cannot be judged"
    OPEN = "one episode: no interval, no verdict"
    UNDEFINED = "the other mean may be 0: no ratio, no verdict"


HOLDS, CORRECTED, IN_PART = Verdict.HOLDS, Verdict.CORRECTED, Verdict.IN_PART
REFUTED, NOT_REPRODUCED = Verdict.REFUTED, Verdict.NOT_REPRODUCED

PARTLY = 0.5  # of what a paper states: less of it is none


def judge_gain(gain: float, low: float, by: float, most: float = math.inf) -> Verdict:
    """Judge a gain by the one that a paper states.

    Args:
        gain: the measured gain, as a share.
        low: lower end of its interval; nan: there is none, and the gain decides alone.
        by: the share stated.
        most: a gain of this size or larger is so large that it is not the effect that the paper saw.

    Returns:
        "holds" if it is above 0, significantly, and at least ``by``, but below ``most``; "in part" if it is
        only significant and at least half of ``by``; else "not reproduced".
    """
    if not gain > 0.0 or low <= 0.0 or gain < PARTLY * by:
        return NOT_REPRODUCED
    return HOLDS if by <= gain < most else IN_PART


@dataclasses.dataclass(frozen=True)
class Examined:
    """A statement about one rival in one setting.

    Attributes:
        statement: the paper's statement.
        rival: the policy compared with.
        setting: swept parameter -> value.
        gain: improvement over the rival, as a part of the rival's mean; nan without a mean.
        low, high: its interval; nan for a single episode, or where the rival's mean may be 0.
        verdict: result of :func:`judge_gain`; none without an interval.
    """

    statement: Statement
    rival: str
    setting: dict[str, Any]
    gain: float
    low: float
    high: float
    verdict: Verdict


def examine(evaluation: Evaluation) -> list[Examined]:
    """Examine the statements of the problem's paper whose policies an evaluation compares.

    They are on workloads of its generator: none is examined on others, of which they say nothing.
    """
    given = {**evaluation.parameters, **dict.fromkeys(evaluation.swept, "")}
    if any(given.get(name) is not None for name in ("trace", "workload")):
        return []
    found, measured = [], set(evaluation.frame["metric"])  # the use of resources that there are
    for statement in evaluation.problem.statements:
        rivals = [rival for rival in statement.rivals if rival in evaluation.policies]
        if statement.policy not in evaluation.policies or statement.metric not in measured:
            continue
        for setting, comparison in evaluation.comparisons(statement.metric):
            for rival in rivals:
                own = comparison.against(statement.policy, rival).relative
                ends = (-comparison.metric.sign * end for end in (own.value, own.low, own.high))
                gain, low, high = next(ends), *sorted(ends)
                verdict = judge_gain(gain, low, statement.by)
                if math.isnan(low):
                    few = len(comparison.tables[rival][0]) < 2
                    verdict = Verdict.OPEN if few else Verdict.UNDEFINED
                found.append(Examined(statement, rival, setting, gain, low, high, verdict))
    return found
