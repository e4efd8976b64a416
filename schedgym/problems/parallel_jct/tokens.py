"""Tokens of jobs, servers and moves for networks: columns and scales, and what agents score in each view."""

from __future__ import annotations

from schedgym.core.tokens import ScoredView, Scores, Tokens, TokenSet

__all__ = [
    "COUNT_SCALE",
    "GLOBAL_COLUMNS",
    "JOB_COLUMNS",
    "LOAD_SCALE",
    "MOVE_COLUMNS",
    "SERVER_COLUMNS",
    "TIME_SCALE",
    "TOKENS",
]

#: columns of a job token: age, tasks, load, least energy over the cap, failed, least time on the available
#: vCPU, being planned
JOB_COLUMNS = ("age", "tasks", "load", "energy", "failed", "bound", "open")
#: columns of a server token: capacity, available share, running tasks, 1 if a task may get vCPU there; for
#: the task to be placed (view place): its efficiency there, its time there, 1 if it may go there
SERVER_COLUMNS = ("capacity", "available", "running", "alive", "efficiency", "time", "legal")
#: event, available share, waiting jobs, those beyond the window, running tasks, time to the next tick,
#: progress of the job being planned, its energy over the cap, its time so far; and of the jobs that have
#: arrived so far, with the load of each in seconds of all servers: its geometric mean, the standard deviation
#: of its logarithm, and l / (l + 1) of the sum of loads l over the time since the first arrival
GLOBAL_COLUMNS = (
    *("arrival", "completion", "tick", "available", "waiting", "beyond", "running", "time to tick"),
    *("progress", "energy", "time"),
    *("mean load", "deviation of log load", "offered load"),
)
#: columns of a move (view search): efficiency there, the task's time there over the job's, legal
MOVE_COLUMNS = ("efficiency", "time", "legal")
TIME_SCALE = 100.0  # t / (t + 100 s)
COUNT_SCALE = 32.0
LOAD_SCALE = 100.0  # work / (work + 100 s of all servers)


_PICK = (Scores("job", ("jobs",), "job"), Scores("end"))
TOKENS = Tokens(
    sets=(TokenSet("jobs", "job_mask"), TokenSet("servers"), TokenSet("moves", axes=(None, "servers"))),
    globals=GLOBAL_COLUMNS,
    views={
        "pick": ScoredView("choice", _PICK),
        "place": ScoredView("choice", (*_PICK, Scores("server", ("servers",), "server"))),
        "search": ScoredView("choice", (*_PICK, Scores("move", ("moves",), "move"), Scores("launch"))),
    },
    acting=("window", "running_window", "rounds", "planner", "max_moves"),
)
