"""Tokens of jobs and sites for networks: their columns and scales, and what agents score in each view."""

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


def _job_columns(rows: TokenRows) -> Columns:
    observation, env = rows.observation, rows.env
    jobs, sites = rows["jobs"], observation["sites"]
    count = sites.shape[1]
    features = jobs.shape[0]
    # a token this wide also has the tasks assigned to each site
    ordered = (features - len(JOB_COLUMNS)) % 2 == 0 and features > len(JOB_COLUMNS) + 2 * count
    unfinished, waiting, running, age, new, able, here = jobs[: len(JOB_COLUMNS)]
    groups = features - len(JOB_COLUMNS) - count * (2 if ordered else 1)
    slots = np.maximum(unscaled(sites[:, :, 0], COUNT_SCALE), 1.0)  # [B, M]
    base = len(JOB_COLUMNS) + groups
    whole = unscaled(observation["jobs"][:, :, base : base + count], COUNT_SCALE)  # [B, W, M]
    if ordered:
        whole = whole + unscaled(observation["jobs"][:, :, base + count :], COUNT_SCALE)
    load = whole.sum(axis=1) / slots  # [B, M]
    mine = whole[env, rows.places["jobs"][1]]  # [T, M]
    share = mine / slots[env]
    total = np.maximum(mine.sum(axis=1), 1e-6)
    by_group = unscaled(jobs[len(JOB_COLUMNS) : base], COUNT_SCALE)  # [K, T]
    return [
        ("log unfinished", log_odds(unfinished)),
        ("log waiting", log_odds(waiting)),
        ("log running", np.log1p(unscaled(running, COUNT_SCALE))),
        ("log age", np.log1p(unscaled(age, AGE_SCALE))),
        ("age", age),
        ("new", new),
        ("log bottleneck", np.log1p(share.max(axis=1))),
        ("log largest group", np.log1p(by_group.max(axis=0))),
        ("contention", (mine * load[env]).sum(axis=1) / total),
        ("worst contention", np.log1p(np.where(mine > 0, load[env], 0.0).max(axis=1))),
        ("waiting share", waiting / np.maximum(unfinished, 1e-6)),
        ("log able here", np.log1p(unscaled(able, COUNT_SCALE))),
        ("log here", np.log1p(unscaled(here, COUNT_SCALE))),
    ]


_JOB = Scores("job", ("jobs",), _job_columns)
TOKENS = Tokens(
    sets=(TokenSet("jobs", "job_mask"), TokenSet("sites")),
    globals=GLOBAL_COLUMNS,
    views={
        "priority": ScoredView("scores", (_JOB,), "squash", (-1.0, 1.0)),
        "weights": ScoredView("scores", (_JOB,), "weight", (0.0, 1.0)),
        "pick": ScoredView("choice", (_JOB,)),
        "rule": RULE_VIEW,
        "fair-rule": RULE_VIEW,
    },
    acting=("window", "placement", "dispatch_sites", "aggressive", "work_conserving"),
)
