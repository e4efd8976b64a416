"""A cluster's log under policies: its parts as workloads, and what becomes of every job of them.

A log of no more than MOST tasks is one episode, from an empty cluster. Of a longer one, parts are sampled;
each begins with the tasks that run when it begins (by their durations), on a cluster without a queue, and
these count for no result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.problem import Problem
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.envs import SchedulingEnv
from schedgym.evaluation.runner import lower_bound, observed_sweep
from schedgym.traces.base import Trace, fitting, offered_load

__all__ = ["Part", "Run", "cut", "fitting", "loads", "run", "select"]

Floats = npt.NDArray[np.float64]

MOST = 16_000  # tasks that are run
PART = 4_000  # tasks of a part, where not all are run
WINDOWS = 20  # into which the tasks that are run are divided
LEAST = 5  # tasks of a window
ARRAYS = ("arrival", "duration", "cores", "memory", "job", "start", "deadline", "site")


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """Consecutive tasks of a log.

    Attributes:
        trace: the tasks, and in front of them those that were running already.
        carried: how many were running already.
        first: place of the first other one in the log.
    """

    trace: Trace
    carried: int
    first: int


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """What becomes of the tasks of a log's parts under policies.

    Attributes:
        outcomes: policy -> outcome of each task, [tasks], in the order of the log.
        windows: of consecutive tasks, as slices of these.
        bound: least mean outcome that any policy could reach, None if there is no bound.
        seconds: policy -> time that it took to decide [s].
        records: policy -> schedule of each part.
    """

    outcomes: Mapping[str, Floats]
    windows: tuple[slice, ...]
    bound: float | None
    seconds: Mapping[str, float]
    records: Mapping[str, Sequence[ScheduleRecord]] = dataclasses.field(default_factory=dict)

    def means(self, policy: str) -> Floats:
        """Mean outcome in each window."""
        return np.array([self.outcomes[policy][window].mean() for window in self.windows])


def select(trace: Trace, chosen: Any, **changes: Any) -> Trace:
    """A trace of some tasks of another; ``chosen`` is an index of its arrays."""
    own = {name: getattr(trace, name)[chosen] for name in ARRAYS if np.size(getattr(trace, name))}
    return dataclasses.replace(trace, **{**own, **changes})


def loads(trace: Trace) -> dict[str, float]:
    """:func:`~schedgym.traces.base.offered_load` of what the jobs take, under the names of quantities."""
    names = {"cores": "cpus"}
    return {names.get(name, name): load for name, load in offered_load(trace).items() if load}


def cut(trace: Trace, seed: int = 0, most: int = MOST) -> list[Part]:
    """The parts of a log that are run: all of it, or a sample of at most so many tasks."""
    count = len(trace.arrival)
    if count <= most:
        return [Part(trace, 0, 0)]
    size = min(PART, most)
    chosen = np.random.default_rng(seed).choice(count // size, most // size, replace=False)
    return [_part(trace, int(block) * size, size) for block in sorted(chosen.tolist())]


def _part(trace: Trace, first: int, size: int) -> Part:
    """Tasks from place ``first`` on, behind those that run when the first arrives."""
    begin = trace.arrival[first]
    begun = trace.arrival[:first] if not len(trace.start) else trace.start[:first]
    begun = np.where(np.isnan(begun), trace.arrival[:first], begun)
    running = np.flatnonzero((begun < begin) & (begun + trace.duration[:first] > begin))
    chosen = np.concatenate([running, np.arange(first, first + size)])
    arrival, duration = trace.arrival[chosen].copy(), trace.duration[chosen].copy()
    carried = len(running)
    duration[:carried] = begun[running] + duration[:carried] - begin
    arrival[:carried] = begin
    return Part(select(trace, chosen, arrival=arrival, duration=duration), carried, first)


def _own(part: Part, factor: float) -> Trace:
    """A part's tasks at so many times their load; those that were running already keep theirs."""
    trace = part.trace
    begin = trace.arrival[0]
    return dataclasses.replace(trace, arrival=begin + (trace.arrival - begin) / factor)


def observe(env: SchedulingEnv) -> tuple[Floats, ScheduleRecord]:
    """The outcome of each task of an episode, and its schedule."""
    record = env.record()
    return env.problem.module("log").outcomes(record), record


def run(
    problem: Problem,
    parts: Sequence[Part],
    policies: Mapping[str, Any],
    factor: float = 1.0,
    seed: int = 0,
    n_jobs: int = 1,
    progress: bool | None = None,
) -> Run:
    """Run policies over the parts of a log.

    Args:
        problem: has a module ``log``.
        parts: of the log, by :func:`cut`.
        policies: label -> name or policy.
        factor: number by which the log's load is multiplied: the times between arrivals are divided by it.
        seed: of random policies.
        n_jobs: processes.
        progress: as for :func:`~schedgym.evaluation.runner.evaluate`.
    """
    log = problem.module("log")
    traces = [_own(part, factor) for part in parts]
    workloads: list[Workload] = [log.workload_of(trace) for trace in traces]
    _, observed = observed_sweep(
        log.ID,
        policies,
        {},
        seed=seed,
        observe=observe,
        workloads=workloads,
        n_jobs=n_jobs,
        progress=progress,
    )
    outcomes: dict[str, list[Floats]] = {label: [] for label in policies}
    records: dict[str, list[ScheduleRecord]] = {label: [] for label in policies}
    seconds = dict.fromkeys(policies, 0.0)
    for one in observed:
        values, record = one.values
        outcomes[one.policy].append(values[parts[one.episode].carried :])
        # one copy of the workload for all policies
        records[one.policy].append(dataclasses.replace(record, workload=workloads[one.episode]))
        seconds[one.policy] += one.seconds
    bounds = []
    for part, trace in zip(parts, traces, strict=True):
        parameters = problem.build(log.ID)
        alone = trace if not part.carried else select(trace, slice(part.carried, None))
        bounds.append(lower_bound(problem, log.workload_of(alone), parameters))
    sizes = [len(part.trace.arrival) - part.carried for part in parts]
    bound = None if None in bounds else float(np.average(bounds, weights=sizes))  # type: ignore[arg-type]
    joined = {label: np.concatenate(found) for label, found in outcomes.items()}
    return Run(joined, _windows(sizes), bound, seconds, records)


def _windows(sizes: Sequence[int]) -> tuple[slice, ...]:
    """Windows of about equal size that no end of a part lies in."""
    found: list[slice] = []
    first = 0
    for size in sizes:
        count = max(1, min(WINDOWS // len(sizes), size // LEAST))
        edges = np.linspace(first, first + size, count + 1).round().astype(int).tolist()
        found += [slice(a, b) for a, b in zip(edges, edges[1:], strict=False)]
        first += size
    return tuple(found)
