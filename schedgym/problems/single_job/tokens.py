"""Tokens of tasks and servers for networks: their columns and scales, and what agents score in each view."""

from __future__ import annotations

import numpy as np

from schedgym.core.tokens import (
    EDGE,
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


def _place_columns(rows: TokenRows) -> Columns:
    limit, before, pull, efficiency, after, energy, legal = rows["servers"]
    whole = rows["globals"]
    return [
        ("time after", after),
        ("energy share", energy),
        ("time before", before),
        ("pull", pull),
        ("limit", limit),
        ("efficiency", efficiency),
        ("log time after", log_odds(after)),
        ("log time before", log_odds(before)),
        ("log pull", log_odds(pull)),
        ("longer", np.maximum(after - whole[1], 0.0)),
        ("energy share * load", energy * whole[6]),
        ("energy share * spare", energy * whole[3]),
        ("energy share * progress", energy * whole[0]),
        ("time after * load", after * whole[6]),
        ("pull * load", pull * whole[6]),
    ]


def _pair_columns(rows: TokenRows) -> Columns:
    efficiency, time, energy = rows["pairs"]
    load, best, mean, near, _, longest, own, own_time = rows["jobs"]
    limit, server_time, _ = rows["servers"][:3]
    spare = rows["globals"][3]
    # energy of a move per load that it takes from the longest group: own over new efficiency, less 1
    size, loss = log_odds(load), np.log((own + EDGE) / (efficiency + EDGE))
    # times as shares of the job's, before and after the move, on the old and the new server; their mean
    levels = np.minimum(unscaled(rows.observation["servers"][:, :, 1], 1.0), 2.0)
    mean_level = levels.mean(axis=1)[rows.env]
    there, after = levels[rows.env, rows.places["servers"][1]], np.minimum(unscaled(time, 1.0), 2.0)
    here = np.minimum(unscaled(own_time, 1.0), 2.0)
    left = np.maximum(here - (after - there) * efficiency / (own + EDGE), 0.0)
    # log of the job's time over its time if all limits were used evenly
    excess = np.clip(log_odds(rows["globals"][1]), 0.0, 2.0)
    uneven = (left - mean_level) ** 2 + (after - mean_level) ** 2
    evener = (here - mean_level) ** 2 + (there - mean_level) ** 2 - uneven
    return [
        ("longest", longest),
        ("time", time),
        ("log time", log_odds(time)),
        ("energy", energy),
        ("longest * time", longest * time),
        ("longest * log time", longest * log_odds(time)),
        ("longest * energy", longest * energy),
        ("longest * energy * spare", longest * energy * spare),
        ("gain", own_time - time),
        ("log gain", np.log(np.maximum(own_time - time, 0.0) + EDGE)),
        ("energy per gain", np.log(np.maximum(energy, 0.0) + 1e-3) - np.log(own_time - time + 1e-3)),
        ("efficiency", efficiency),
        ("server time", server_time),
        ("limit", limit),
        ("load", load),
        ("own time", own_time),
        ("log load", size),
        ("log inefficiency", loss),
        ("longest * log inefficiency", longest * loss),
        ("longest * log load", longest * size),
        ("evener", evener),
        ("longest * evener", longest * evener),
        ("longest * evener * spare", longest * evener * spare),
        ("longest * log load * excess", longest * size * excess),
        ("longest * log inefficiency * excess", longest * loss * excess),
    ]


TOKENS = Tokens(
    sets=(TokenSet("jobs", "job_mask"), TokenSet("servers"), TokenSet("pairs", axes=("jobs", "servers"))),
    globals=GLOBAL_COLUMNS,
    views={
        "place": ScoredView("choice", (Scores("server", ("servers",), _place_columns),)),
        "search": ScoredView("choice", (Scores("move", ("pairs",), _pair_columns), Scores("stop"))),
    },
    acting=("max_moves",),
)
