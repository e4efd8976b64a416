"""Tokens of jobs and servers for networks: their columns and scales, and what agents score in each view."""

from __future__ import annotations

from schedgym.core.tokens import RULE_VIEW, ScoredView, Scores, Tokens, TokenSet

__all__ = [
    "CLOCK_SCALE",
    "COUNT_SCALE",
    "GLOBAL_COLUMNS",
    "JOB_COLUMNS",
    "SERVER_COLUMNS",
    "SLOT_SCALE",
    "TOKENS",
    "WORK_SCALE",
]

#: of a job token before its servers: in slots, cores or shares; cores in the last slot, those granted in this
#: one, whether it is in its second phase
JOB_COLUMNS = (
    *("age", "processing", "demand", "memory", "slots left", "remaining work"),
    *("cap", "held", "granted", "second phase"),
)
#: of a server token: shares of the cores of all, and of the largest memory; what is free of its own
SERVER_COLUMNS = ("cores", "free cores", "memory", "free memory")
#: slot, active jobs, those beyond the window, their remaining work
GLOBAL_COLUMNS = ("slot", "jobs", "beyond", "work left")
SLOT_SCALE = 50.0  # x / (x + 50 slots) scales lengths and ages
WORK_SCALE = 50.0  # w / (w + 50 slots of all cores) scales work
CLOCK_SCALE = 1000.0
COUNT_SCALE = 32.0


_JOB = Scores("job", ("jobs",), "job")
TOKENS = Tokens(
    sets=(TokenSet("jobs", "job_mask"), TokenSet("servers")),
    globals=GLOBAL_COLUMNS,
    views={
        "priority": ScoredView("scores", (_JOB,), "squash", (-1.0, 1.0)),
        "pick": ScoredView("choice", (_JOB, Scores("close"))),
        "rule": RULE_VIEW,
    },
    acting=("window", "packing"),
)
