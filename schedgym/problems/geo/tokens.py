"""Tokens of jobs and sites for networks: their columns and scales, and what agents score in each view."""

from __future__ import annotations

from schedgym.core.tokens import RULE_VIEW, ScoredView, Scores, Tokens, TokenSet

__all__ = [
    "AGE_SCALE",
    "CLOCK_SCALE",
    "COUNT_SCALE",
    "GLOBAL_COLUMNS",
    "JOB_COLUMNS",
    "SITE_COLUMNS",
    "TOKENS",
]

#: columns of a job token before its groups and sites: unfinished, waiting, running tasks, age, 1 if new;
#: waiting tasks that may start at the open site, tasks running there
JOB_COLUMNS = ("unfinished", "waiting", "running", "age", "new", "able here", "here")
#: columns of a site token: slots, free share, waiting tasks that may run there, assigned to it, open
SITE_COLUMNS = ("slots", "free", "runnable", "assigned", "open")
#: arrival, completion, slot; active jobs, those beyond the window, waiting tasks, clock
GLOBAL_COLUMNS = ("arrival", "completion", "slot", "jobs", "beyond", "waiting", "clock")
COUNT_SCALE = 8.0  # n / (n + 8) scales counts
AGE_SCALE = 10.0  # a / (a + 10 s) scales ages
CLOCK_SCALE = 600.0  # t / (t + 10 min) scales the clock


_JOB, _ORDERED = (Scores("job", ("jobs",), columns) for columns in ("job", "ordered job"))
TOKENS = Tokens(
    sets=(TokenSet("jobs", "job_mask"), TokenSet("sites")),
    globals=GLOBAL_COLUMNS,
    views={
        "priority": ScoredView("scores", (_ORDERED,), "squash", (-1.0, 1.0)),
        "weights": ScoredView("scores", (_JOB,), "weight", (0.0, 1.0)),
        "pick": ScoredView("choice", (_JOB,)),
        "rule": RULE_VIEW,
        "fair-rule": RULE_VIEW,
    },
    acting=("window", "placement", "dispatch_sites", "aggressive", "work_conserving"),
)
