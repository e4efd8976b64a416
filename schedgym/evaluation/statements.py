"""What a comparison says about the paper's statements: whether they hold on these workloads."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from schedgym.core.problem import Statement, get_problem
from schedgym.evaluation.statistics import paired_differences, split_settings

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Examined", "examine"]

HOLDS, IN_PART, NOT = "holds", "in part", "not reproduced"


@dataclasses.dataclass(frozen=True)
class Examined:
    """A statement about one rival in one setting.

    Attributes:
        statement: of the paper.
        rival: the policy compared with.
        setting: swept parameter -> value.
        gain: by what part of the rival's mean the policy is better; nan without a mean.
        low, high: its interval; nan for a single episode.
        verdict: "holds" (better, significantly, by the stated part at least), "in part" (better,
            significantly, by less), else "not reproduced".
    """

    statement: Statement
    rival: str
    setting: dict[str, Any]
    gain: float
    low: float
    high: float
    verdict: str


def examine(frame: pd.DataFrame) -> list[Examined]:
    """Examine those statements of the problem's paper whose policies a frame compares.

    Args:
        frame: of :func:`~schedgym.evaluation.runner.evaluate` or ``sweep``. With one episode, "significantly"
            is left out.
    """
    problem = get_problem(frame.attrs["problem"])
    present = set(frame["policy"])
    found = []
    for statement in problem.statements:
        rivals = [rival for rival in statement.rivals if rival in present]
        if statement.policy not in present:
            continue
        sign = -1.0 if problem.metric(statement.metric).better != "max" else 1.0
        for setting, part in split_settings(frame):
            part.attrs.update(frame.attrs)
            for rival in rivals:
                rows = paired_differences(part, rival, statement.metric)
                row = rows[rows["policy"] == statement.policy].iloc[0]
                gain = sign * float(row["relative"])
                ends = sorted((sign * float(row["relative_low"]), sign * float(row["relative_high"])))
                low, high = ends
                verdict = NOT
                if gain > 0.0 and (low > 0.0 or math.isnan(low)):
                    verdict = HOLDS if gain >= statement.by else IN_PART
                found.append(Examined(statement, rival, setting, gain, low, high, verdict))
    return found
