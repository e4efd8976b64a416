"""Tokens of tasks and servers for networks: their columns and scales, and what agents score in each view."""

from __future__ import annotations

from schedgym.core.tokens import ScoredView, Scores, Tokens, TokenSet

__all__ = [
    "COUNT_SCALE",
    "GLOBAL_COLUMNS",
    "JOB_COLUMNS",
    "PAIR_COLUMNS",
    "PLACE_COLUMNS",
    "SERVER_COLUMNS",
    "TOKENS",
]

#: columns of a task token: load, highest and mean efficiency, share of servers nearly as efficient, placed,
#: next (in view search: it takes as long as the job), efficiency and time at its server
JOB_COLUMNS = (
    *("load", "best efficiency", "mean efficiency", "near", "placed", "next"),
    *("own efficiency", "own time"),
)
#: columns of a server token: capacity, time, time of the unplaced tasks that are most efficient there
SERVER_COLUMNS = ("limit", "time", "pull")
#: further columns in view place, of the next task: efficiency, time after, share of the spare energy, legal
PLACE_COLUMNS = ("efficiency", "time after", "energy share", "legal")
#: columns of a task on a server, views plan and search: efficiency (constant), time, change of energy
PAIR_COLUMNS = ("efficiency", "time", "energy")
#: progress, completion time, energy, spare energy, energy still to come, tasks, next load
GLOBAL_COLUMNS = ("progress", "time", "energy", "spare", "least to come", "tasks", "load")
COUNT_SCALE = 40.0  # n / (n + 40) scales the number of tasks


TOKENS = Tokens(
    sets=(TokenSet("jobs", "job_mask"), TokenSet("servers"), TokenSet("pairs", axes=("jobs", "servers"))),
    globals=GLOBAL_COLUMNS,
    views={
        "place": ScoredView("choice", (Scores("server", ("servers",), "place"),)),
        "search": ScoredView("choice", (Scores("move", ("pairs",), "move"), Scores("stop"))),
    },
    acting=("max_moves", "fallback"),
)
