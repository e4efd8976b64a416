"""Tokens of jobs and resources for networks: columns and scales, and what agents score in each view."""

from __future__ import annotations

from schedgym.core.tokens import RULE_VIEW, ScoredView, Scores, Tokens, TokenSet
from schedgym.problems.partial_value.rules import MOST_SCORE

__all__ = [
    "COUNT_SCALE",
    "DENSITY_SCALE",
    "GLOBAL_COLUMNS",
    "JOB_COLUMNS",
    "RESOURCE_COLUMNS",
    "SHARE_SCALE",
    "SLOT_SCALE",
    "TASK_SCALE",
    "TOKENS",
    "VALUE_SCALE",
]

#: columns of a job token before its shares of the resources: value, served share, tasks it may get, slots
#: left, gain of one more task, the same per dominant share, dominant share of all it may get; utility;
#: tasks served so far, exponent of a power
JOB_COLUMNS = (
    *("value", "served", "cap", "slots left", "marginal", "density", "dominant"),
    *("linear", "power", "log", "done", "exponent"),
)
#: columns of a resource token: load if all active jobs got all they may get, the visible jobs' part of it
RESOURCE_COLUMNS = ("load", "seen")
#: slot, active jobs, those beyond the window, 1 if tasks are whole
GLOBAL_COLUMNS = ("slot", "jobs", "beyond", "whole")
VALUE_SCALE = 3.0
TASK_SCALE = 20.0
SLOT_SCALE = 8.0
SHARE_SCALE = 0.02
DENSITY_SCALE = 50.0
COUNT_SCALE = 32.0


TOKENS = Tokens(
    sets=(TokenSet("jobs", "job_mask"), TokenSet("resources")),
    globals=GLOBAL_COLUMNS,
    views={
        "priority": ScoredView(
            "scores", (Scores("job", ("jobs",), "job"),), "clip", (-1.0, 1.0), scale=MOST_SCORE
        ),
        "prices": ScoredView(
            "scores", (Scores("resource", ("resources",), "resource"),), "clip", (-50.0, 50.0)
        ),
        "rule": RULE_VIEW,
    },
    acting=("window", "single_task", "serving"),
)
