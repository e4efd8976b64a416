"""Tokens of jobs and resources for networks: columns and scales, and what agents score in each view."""

from __future__ import annotations

import numpy as np

from schedgym.core.tokens import (
    RULE_VIEW,
    Columns,
    ScoredView,
    Scores,
    TokenRows,
    Tokens,
    TokenSet,
    log_odds,
    unscaled,
)
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
#: left, gain of one more task, the same per dominant share, dominant share of all it may get; kind of utility
JOB_COLUMNS = (
    *("value", "served", "cap", "slots left", "marginal", "density", "dominant"),
    *("linear", "power", "log"),
)
#: columns of a resource token: load if all active jobs got all they may get, the visible jobs' part of it
RESOURCE_COLUMNS = ("load", "seen")
#: slot, active jobs, those beyond the window
GLOBAL_COLUMNS = ("slot", "jobs", "beyond")
VALUE_SCALE = 3.0
TASK_SCALE = 20.0
SLOT_SCALE = 8.0
SHARE_SCALE = 0.02
DENSITY_SCALE = 50.0
COUNT_SCALE = 32.0


def _job_columns(rows: TokenRows) -> Columns:
    jobs = rows["jobs"]
    value, served, most, left, marginal, density, dominant = jobs[:7]
    demand = unscaled(jobs[len(JOB_COLUMNS) :], SHARE_SCALE) + np.float32(
        1e-6
    )  # [m, T] shares of the capacity
    load = unscaled(rows.observation["resources"][:, :, 0], 1.0)[rows.env].T + np.float32(1e-6)
    columns = [
        ("log value", log_odds(value)),
        ("served", served),
        ("log cap", log_odds(most)),
        ("log slots left", np.log(unscaled(left, SLOT_SCALE) + 1.0)),
        ("slots left", left),
        ("last slot", (left < 0.01).astype(np.float32)),
        ("log marginal", log_odds(marginal)),
        ("log density", log_odds(density)),
        ("dominant", dominant),
        ("log dominant", np.log(demand.max(axis=0))),
        ("log total demand", np.log(demand.sum(axis=0))),
    ]
    for power in (1.0, 4.0):
        weight = load**power
        priced = (demand * weight).sum(axis=0) / weight.sum(axis=0)
        columns.append((f"log demand at load^{power:g}", np.log(priced)))
    return columns


def _resource_columns(rows: TokenRows) -> Columns:
    load, seen = rows["resources"]
    return [("log load", log_odds(load)), ("load", load), ("seen", seen)]


TOKENS = Tokens(
    sets=(TokenSet("jobs", "job_mask"), TokenSet("resources")),
    globals=GLOBAL_COLUMNS,
    views={
        "priority": ScoredView(
            "scores", (Scores("job", ("jobs",), _job_columns),), "clip", (-1.0, 1.0), scale=MOST_SCORE
        ),
        "prices": ScoredView(
            "scores", (Scores("resource", ("resources",), _resource_columns),), "clip", (-50.0, 50.0)
        ),
        "rule": RULE_VIEW,
    },
    acting=("window", "single_task"),
)
