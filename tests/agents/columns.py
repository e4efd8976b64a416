"""The columns of every problem in numpy, written anew from their names, to test the compiled ones with.

Each function gets the tokens of a batch of observations, one row after the other (:class:`TokenRows`), and
returns the values of columns and factors by their names. ``columns.yaml`` lists the columns of each set; one
called "a * b" is the product of a and b.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from schedgym.core.tokens import TokenSet
from schedgym.papers.zheng2016.concave import divide_slot
from schedgym.problems.flowtime import columns as flowtime
from schedgym.problems.geo import columns as geo
from schedgym.problems.parallel_jct import columns as parallel_jct
from schedgym.problems.partial_value import columns as partial_value
from schedgym.problems.queue_delay import columns as queue_delay
from schedgym.solvers.dual_prices import SlotJobs
from tests.tables import declared

Values = dict[str, Any]
NAMES = declared("agents", "columns")
EDGE = np.float32(1e-5)


class TokenRows:
    """Single tokens out of a batch of observations, one after the other: T rows.

    Args:
        observation: a batch of observations, [B, ...].
        sets: the set of the tokens, or the two sets of whose pairs they are.
        env: environment of each row, int64 [T].
        slot: its place among the tokens or pairs, int64 [T].

    Attributes:
        observation, env: the arguments.
        places: key -> index of each row's token in that entry.
    """

    def __init__(self, observation: Any, sets: tuple[TokenSet, ...], env: Any, slot: Any) -> None:
        self.observation, self.env = observation, env
        first = sets[0]
        self.places: dict[str, tuple[Any, ...]] = {first.key: (env, slot)}
        if first.axes is not None:
            row, column = first.axes
            width = observation[first.key].shape[2]
            self.places = {first.key: (env, slot // width, slot % width), column: (env, slot % width)}
            if row is not None:
                self.places[row] = (env, slot // width)
        elif len(sets) == 2:
            other = sets[1].key
            width = observation[other].shape[1]
            self.places = {first.key: (env, slot // width), other: (env, slot % width)}

    def __getitem__(self, key: str) -> Any:
        """The rows' own tokens in this entry, [F, T]; ``globals``: those of their environments."""
        index: Any = self.env if key == "globals" else self.places[key]
        return np.asarray(self.observation[key][index].T)

    def columns(self, problem: str, name: str) -> list[tuple[str, Any]]:
        """The name and the values of each column; of a set that is not here, the features as they are."""
        if (problem, name) not in VALUES:
            return [(f"{key} {i}", column) for key in self.places for i, column in enumerate(self[key])]
        values = VALUES[problem, name](self)
        return [(column, product(values, column.split(" * "))) for column in NAMES[problem][name]]


def product(values: Values, parts: list[str]) -> Any:
    """A column, or the product of its parts; a factor that is no column of its name stands as "name *"."""
    if len(parts) == 1:
        return values[parts[0]]
    return np.prod([values.get(f"{part} *", values.get(part)) for part in parts], axis=0)


def log_odds(share: Any) -> Any:
    """log(x / c) of x / (x + c)."""
    share = np.clip(share, EDGE, np.float32(1.0) - EDGE)
    return np.log(share / (np.float32(1.0) - share))


def unscaled(share: Any, scale: float) -> Any:
    """The number n of n / (n + scale)."""
    return np.float32(scale) * share / (np.float32(1.0 + 1e-6) - share)


def flowtime_measures(rows: TokenRows) -> Any:
    """Of the whole observation, [T] each: memory of all servers, prices of cores and memory, mean work,
    pressure, and whether a job has several tasks."""
    observation = rows.observation
    jobs = observation["jobs"].astype(np.float64)
    there = jobs[:, :, 1] > 0
    count = np.maximum(there.sum(axis=1), 1)
    memory_all = observation["servers"][:, :, 2].sum(axis=1, dtype=np.float64)
    demand = unscaled(jobs[:, :, 2], 1.0) * there
    cores, memory = demand.sum(axis=1), jobs[:, :, 3].sum(axis=1) / np.where(memory_all > 0, memory_all, 1.0)
    work = unscaled(jobs[:, :, 5], flowtime.WORK_SCALE).sum(axis=1)
    slots = unscaled(jobs[:, :, 4], flowtime.SLOT_SCALE).sum(axis=1) / count
    several = (there & (jobs[:, :, 6] > 1.01 * demand)).any(axis=1)
    measures = [memory_all, cores / (cores + memory + 1e-6), memory / (cores + memory + 1e-6)]
    measures += [work / count + 1e-6, np.log1p(work / (slots + 1e-6)), several]
    return [measure[rows.env] for measure in measures]


def flowtime_job_columns(rows: TokenRows) -> Values:
    jobs = rows["jobs"]
    age, length, demand, memory, left, work, cap, held, granted, phase = jobs[: flowtime.JOB_FEATURES]
    log_age, log_length, log_demand = log_odds(age), log_odds(length), log_odds(demand)
    memory_all, core_price, memory_price, mean_work, pressure, several = flowtime_measures(rows)
    need = unscaled(demand, 1.0) + 1e-6
    room = memory / np.where(memory_all > 0, memory_all, 1.0)
    slots = unscaled(age, flowtime.SLOT_SCALE) + unscaled(left, flowtime.SLOT_SCALE)
    return {
        "log work left": log_odds(work),
        "log slots left": log_odds(left),
        "log demand": log_demand,
        "log memory": np.log(room + 1e-6),
        "log age": log_age,
        "log flowtime": np.log(slots + 1e-6),
        "log processing": log_length,
        "log volume": log_length + log_demand,
        "age": age,
        "cap": cap,
        "memory": memory,
        "held": held,
        "granted": granted,
        "held all": (held > 0).astype(np.float32),
        "second phase": phase,
        "log slowdown": log_age - log_length,
        "last slot": (left < np.float32(1.01 / (1.01 + flowtime.SLOT_SCALE))).astype(np.float32),
        "log dominant": np.log(np.maximum(need, room)),
        "log priced demand": np.log(core_price * need + memory_price * room + 1e-6),
        "log tasks": np.log(np.maximum(cap, need) / need),
        "work share": unscaled(work, flowtime.WORK_SCALE) / mean_work,
        "memory *": (memory_all > 0).astype(np.float64),
        "pressure": pressure,
        "tasks": several,
        "linear": 2.0 * rows["globals"][4] - 1.0,
    }


def geo_job_columns(rows: TokenRows, ordered: bool = False) -> Values:
    observation, env = rows.observation, rows.env
    jobs, sites = rows["jobs"], observation["sites"]
    count = sites.shape[1]
    features = jobs.shape[0]
    unfinished, waiting, running, age, new, able, here, ended, duration, elapsed = jobs[: geo.JOB_FEATURES]
    groups = features - geo.JOB_FEATURES - count * (2 if ordered else 1)
    slots = np.maximum(unscaled(sites[:, :, 0], geo.COUNT_SCALE), 1.0)  # [B, M]
    base = geo.JOB_FEATURES + groups
    whole = unscaled(observation["jobs"][:, :, base : base + count], geo.COUNT_SCALE)  # [B, W, M]
    if ordered:  # then a token also has the tasks assigned to each site
        whole = whole + unscaled(observation["jobs"][:, :, base + count :], geo.COUNT_SCALE)
    load = whole.sum(axis=1) / slots  # [B, M]
    mine = whole[env, rows.places["jobs"][1]]  # [T, M]
    share = mine / slots[env]
    total = np.maximum(mine.sum(axis=1), 1e-6)
    by_group = unscaled(jobs[geo.JOB_FEATURES : base], geo.COUNT_SCALE)  # [K, T]
    typical = unscaled(observation["globals"][:, -1], geo.AGE_SCALE)[env]
    typical = np.where(typical > 0, typical, 1.0)
    run = unscaled(elapsed, geo.AGE_SCALE)
    unknown = np.maximum(typical, geo.AHEAD * run)
    estimate = np.maximum(np.where(ended > 0, unscaled(duration, geo.AGE_SCALE), unknown), 1e-6)
    work = estimate * unscaled(unfinished, geo.COUNT_SCALE)
    work -= np.minimum(run, estimate) * unscaled(running, geo.COUNT_SCALE)
    return {
        "log unfinished": log_odds(unfinished),
        "log waiting": log_odds(waiting),
        "log running": np.log1p(unscaled(running, geo.COUNT_SCALE)),
        "log age": np.log1p(unscaled(age, geo.AGE_SCALE)),
        "age": age,
        "new": new,
        "log bottleneck": np.log1p(share.max(axis=1)),
        "log largest group": np.log1p(by_group.max(axis=0)),
        "contention": (mine * load[env]).sum(axis=1) / total,
        "worst contention": np.log1p(np.where(mine > 0, load[env], 0.0).max(axis=1)),
        "waiting share": waiting / np.maximum(unfinished, 1e-6),
        "log able here": np.log1p(unscaled(able, geo.COUNT_SCALE)),
        "log here": np.log1p(unscaled(here, geo.COUNT_SCALE)),
        "known": (ended > 0).astype(np.float32),
        "log duration": np.log(estimate / typical),
        "log work": np.log(np.maximum(work, 1e-6) / typical),
    }


def parallel_jct_measures(rows: TokenRows) -> Any:
    """Of the whole observation, [T] each: the columns that all jobs share; mean and deviation of log load."""
    observation, env = rows.observation, rows.env
    servers, about = observation["servers"].astype(np.float64), observation["globals"].astype(np.float64)
    jobs = observation["jobs"].astype(np.float64)
    count = servers.shape[1]
    shown = np.maximum((jobs[:, :, 1] > 0).sum(axis=1), 1)
    tasks = unscaled(jobs[:, :, 1], parallel_jct.COUNT_SCALE).sum(axis=1)
    tasks = tasks * (1.0 + unscaled(about[:, 5], parallel_jct.COUNT_SCALE) / shown)
    running = unscaled(servers[:, :, 2], parallel_jct.COUNT_SCALE).sum(axis=1)
    whole = {"available": about[:, 3], "idle": (servers[:, :, 2] == 0).mean(axis=1)}
    whole |= {"crowd": np.log1p(running / count), "pressure": np.log1p(tasks / count)}
    whole["log offered"] = log_odds(about[:, 13])
    shared = {name: values[env] for name, values in whole.items()}
    return shared, log_odds(about[:, 11])[env], unscaled(about[:, 12], 1.0)[env]


def parallel_jct_job_columns(rows: TokenRows) -> Values:
    age, tasks, load, energy, failed, bound, _ = rows["jobs"]
    servers, env = rows.observation["servers"], rows.env
    # share of all vCPU that n tasks can have at most on n servers
    free = servers[:, :, 0] * servers[:, :, 1] / servers[:, :, 0].sum(axis=1, keepdims=True)
    most = np.cumsum(-np.sort(-free, axis=1), axis=1)
    number = np.rint(unscaled(tasks, parallel_jct.COUNT_SCALE)).astype(np.int64)
    own = most[env, np.clip(number, 1, most.shape[1]) - 1]
    log_bound, log_load = log_odds(bound), log_odds(load)
    alone = np.maximum(log_bound, log_load - np.log(own + EDGE))
    waited = np.log1p(unscaled(age, parallel_jct.TIME_SCALE))
    shared, mean, deviation = parallel_jct_measures(rows)
    count = most.shape[1]
    return {
        **shared,
        "log bound": log_bound,
        "log time": alone,
        "log load": log_load,
        "log tasks": log_odds(tasks),
        "log age": waited,
        "age": age,
        "energy": energy,
        "log slowdown": waited - alone,
        "z load": (log_load - mean) / np.maximum(deviation, 0.1),
        "relative time": alone - mean,
        "log wait": np.log1p(unscaled(age, parallel_jct.TIME_SCALE) / (100.0 * np.exp(mean))),
        "stretch": np.log(own + EDGE) - np.log(np.minimum(number, count) / count),
        "spread": np.log(number / count),
        "fixed": 1.0 - rows["globals"][14],
    }


def partial_value_job_columns(rows: TokenRows) -> Values:
    jobs = rows["jobs"]
    value, served, most, left, marginal, density, dominant = jobs[:7]
    demand = unscaled(jobs[partial_value.JOB_FEATURES :], partial_value.SHARE_SCALE) + np.float32(
        1e-6
    )  # [m, T] shares of the capacity
    load = unscaled(rows.observation["resources"][:, :, 0], 1.0)[rows.env].T + np.float32(1e-6)
    values = {
        "log value": log_odds(value),
        "served": served,
        "log cap": log_odds(most),
        "log slots left": np.log(unscaled(left, partial_value.SLOT_SCALE) + 1.0),
        "slots left": left,
        "last slot": (left < 0.01).astype(np.float32),
        "log marginal": log_odds(marginal),
        "log density": log_odds(density),
        "dominant": dominant,
        "log dominant": np.log(demand.max(axis=0)),
        "log total demand": np.log(demand.sum(axis=0)),
        "linear": jobs[7],
        "whole": rows["globals"][3],
        "contention": np.log(load.max(axis=0)),
    }
    for power in (1.0, 4.0):
        weight = load**power
        priced = (demand * weight).sum(axis=0) / weight.sum(axis=0)
        values[f"log demand at load^{power:g}"] = np.log(priced)
    prices = partial_value_prices(rows)[rows.env].T
    prices = np.where(prices.sum(axis=0) > 0, prices, load)
    values["log demand at dual prices"] = np.log((demand * prices).sum(axis=0) / prices.sum(axis=0) + 1e-6)
    seen = rows.observation["jobs"]
    there = seen[:, :, 0] > 0
    patience = np.log(unscaled(seen[:, :, 3].astype(np.float64), partial_value.SLOT_SCALE) + 1.0) * there
    values["patience"] = (patience.sum(axis=1) / np.maximum(there.sum(axis=1), 1))[rows.env]
    return values


def partial_value_prices(rows: TokenRows) -> Any:
    """The dual prices of each environment's slot, [B, m], of the jobs that the tokens tell."""
    observation = rows.observation
    found = []
    for jobs, mask in zip(observation["jobs"].astype(np.float64), observation["job_mask"], strict=True):
        own = jobs[mask.astype(bool)].T
        given = {
            "served": unscaled(own[10], partial_value.TASK_SCALE),
            "cap": unscaled(own[2], partial_value.TASK_SCALE),
            "share": unscaled(own[partial_value.JOB_FEATURES :].T, partial_value.SHARE_SCALE),
            "utility": own[7:10].argmax(axis=0) if own.size else np.zeros(0, dtype=np.int64),
            "value": unscaled(own[0], partial_value.VALUE_SCALE),
            "exponent": own[11],
        }
        found.append(divide_slot(SlotJobs(**{k: np.ascontiguousarray(v) for k, v in given.items()}))[1])
    return np.array(found)


def partial_value_resource_columns(rows: TokenRows) -> Values:
    load, seen = rows["resources"]
    return {"log load": log_odds(load), "load": load, "seen": seen}


def queue_delay_resources(rows: TokenRows) -> tuple[Any, Any, Any]:
    """Demand of each row's task, capacity of all servers, and what is free of it: resource by resource."""
    count = rows.observation["tasks"].shape[2] - len(queue_delay.TASK)
    servers = rows.observation["servers"].astype(np.float64)
    demand = rows["tasks"][:count].astype(np.float64) if "tasks" in rows.places else None
    return demand, servers[:, :, :count], servers[:, :, count : 2 * count]


def queue_delay_task_columns(rows: TokenRows) -> Values:
    demand, capacity, free = queue_delay_resources(rows)
    log_execution, waiting, arriving = rows["tasks"][len(demand) :].astype(np.float64)
    about = rows.observation["globals"].astype(np.float64)
    mean_demand, about = about[:, 4 : 4 + len(demand)], np.delete(about, slice(4, 4 + len(demand)), axis=1)
    room, there = capacity.sum(axis=1), capacity.sum(axis=1) > 0
    asked = np.where(there, mean_demand / np.where(there, room, 1.0), 0.0)
    prices = asked / np.maximum(asked.sum(axis=1), 1e-12)[:, np.newaxis]
    shares = np.where(there, free.sum(axis=1) / np.where(there, room, 1.0), 1.0)
    waiting_share = unscaled(about[:, 2], queue_delay.COUNT_SCALE) * asked.max(axis=1)
    quiet, load = about[:, 8] >= 0.9, log_odds(about[:, 7])
    overload = np.where(quiet, 0.0, np.clip(load - np.log(4.0), 0.0, 5.0))
    whole = {
        "pressure": np.log1p(waiting_share),
        "log load": load,
        "overload": overload,
        "free": shares.min(axis=1),
        "empty": (free.sum(axis=1) >= room).all(axis=1),
        "calm": (overload == 0.0) & ~quiet,
        "quiet": quiet,
        "completion": about[:, 1],
    }
    shared = {name: values[rows.env].astype(np.float64) for name, values in whole.items()}
    mean, deviation = about[rows.env, 5:7].T * queue_delay.LOG_DAY
    execution, waited = log_execution * queue_delay.LOG_DAY, unscaled(waiting, queue_delay.WAITING_SCALE)
    return {
        **shared,
        "arrival": 1.0 - shared["completion"],
        "log execution": execution,
        "slowdown": np.log1p(waited) - execution,
        "arriving": arriving,
        "z execution": (execution - mean) / np.maximum(deviation, 0.1),
        "log wait": np.log1p(waited / np.exp(mean)),
        "log demand": np.log(demand.max(axis=0) + EDGE),
        "log priced demand": np.log((prices[rows.env].T * demand).sum(axis=0) + EDGE),
        "spread": np.ptp(demand, axis=0),
    }


def queue_delay_fit(rows: TokenRows, server: Any) -> Values:
    """How the tasks fit servers; ``server``: that of each row, [T], -1 for none."""
    demand, capacity, free = (array.T if array.ndim == 2 else array for array in queue_delay_resources(rows))
    there = (capacity[rows.env, server] > 0) & (server >= 0)[:, np.newaxis]
    count, free = np.maximum(there.sum(axis=1), 1), free[rows.env, server]
    left = np.maximum(free - demand, 0.0) * there
    least = np.where(there, left, np.inf).min(axis=1)
    least = np.where(there.any(axis=1), least, 0.0)
    return {
        "dot": (demand * free * there).sum(axis=1) / count,
        "left norm": np.sqrt((left**2).sum(axis=1) / count),
        "left least": least,
        "left uneven": left.max(axis=1) - least,
    }


def queue_delay_released(rows: TokenRows) -> Any:
    """The released server of each row's environment, -1 for none."""
    released = rows.observation["servers"][:, :, -1]
    return np.where(released.max(axis=1) > 0, released.argmax(axis=1), -1)[rows.env]


def queue_delay_pick_columns(rows: TokenRows) -> Values:
    return queue_delay_task_columns(rows) | queue_delay_fit(rows, queue_delay_released(rows))


def queue_delay_server_columns(rows: TokenRows) -> Values:
    _, capacity, free = queue_delay_resources(rows)
    server = rows.places["servers"][1]
    capacity, free = capacity[rows.env, server], free[rows.env, server]
    there = capacity > 0
    least, most = np.where(there, free, np.inf).min(axis=1), free.max(axis=1)
    return {
        "capacity": capacity.sum(axis=1) / np.maximum(there.sum(axis=1), 1),
        "idle": (free >= capacity).all(axis=1),
        "free share": np.where(there, free / np.where(there, capacity, 1.0), 1.0).min(axis=1),
        "free least": np.minimum(least, most),
        "free uneven": most - np.minimum(least, most),
    }


def queue_delay_placement_columns(rows: TokenRows) -> Values:
    server = rows.places["servers"][1]
    values = queue_delay_task_columns(rows) | queue_delay_fit(rows, server)
    return values | queue_delay_server_columns(rows) | {"released": server == queue_delay_released(rows)}


def single_job_place_columns(rows: TokenRows) -> Values:
    limit, before, pull, efficiency, after, energy, legal = rows["servers"]
    whole = rows["globals"]
    return {
        "time after": after,
        "energy share": energy,
        "time before": before,
        "pull": pull,
        "limit": limit,
        "efficiency": efficiency,
        "log time after": log_odds(after),
        "log time before": log_odds(before),
        "log pull": log_odds(pull),
        "longer": np.maximum(after - whole[1], 0.0),
        "progress": whole[0],
        "spare": whole[3],
        "load": whole[6],
    }


def single_job_pair_columns(rows: TokenRows) -> Values:
    efficiency, time, energy = rows["pairs"]
    load, best, mean, near, _, longest, own, own_time = rows["jobs"]
    limit, server_time, _ = rows["servers"][:3]
    # energy of a move per load that it takes from the longest group: own over new efficiency, less 1
    loss = np.log((own + EDGE) / (efficiency + EDGE))
    # times as shares of the job's, before and after the move, on the old and the new server; their mean
    levels = np.minimum(unscaled(rows.observation["servers"][:, :, 1], 1.0), 2.0)
    mean_level = levels.mean(axis=1)[rows.env]
    there, after = levels[rows.env, rows.places["servers"][1]], np.minimum(unscaled(time, 1.0), 2.0)
    here = np.minimum(unscaled(own_time, 1.0), 2.0)
    left = np.maximum(here - (after - there) * efficiency / (own + EDGE), 0.0)
    uneven = (left - mean_level) ** 2 + (after - mean_level) ** 2
    evener = (here - mean_level) ** 2 + (there - mean_level) ** 2 - uneven
    return {
        "longest": longest,
        "time": time,
        "log time": log_odds(time),
        "energy": energy,
        "gain": own_time - time,
        "log gain": np.log(np.maximum(own_time - time, 0.0) + EDGE),
        "energy per gain": np.log(np.maximum(energy, 0.0) + 1e-3) - np.log(own_time - time + 1e-3),
        "efficiency": efficiency,
        "server time": server_time,
        "limit": limit,
        "load": load,
        "own time": own_time,
        "log load": log_odds(load),
        "log inefficiency": loss,
        "evener": evener,
        "spare": rows["globals"][3],
        # log of the job's time over its time if all limits were used evenly
        "excess": np.clip(log_odds(rows["globals"][1]), 0.0, 2.0),
    }


#: (problem, name of the columns) -> what they are made of
VALUES: dict[tuple[str, str], Callable[[TokenRows], Values]] = {
    ("flowtime", "job"): flowtime_job_columns,
    ("geo", "job"): geo_job_columns,
    ("geo", "ordered job"): partial(geo_job_columns, ordered=True),
    ("parallel-jct", "job"): parallel_jct_job_columns,
    ("partial-value", "job"): partial_value_job_columns,
    ("partial-value", "resource"): partial_value_resource_columns,
    ("queue-delay", "pick"): queue_delay_pick_columns,
    ("queue-delay", "placement"): queue_delay_placement_columns,
    ("queue-delay", "server"): queue_delay_server_columns,
    ("single-job", "place"): single_job_place_columns,
    ("single-job", "move"): single_job_pair_columns,
}
