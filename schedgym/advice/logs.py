"""A cluster's log under policies: its parts as workloads, and what becomes of every job of them.

A log of no more tasks than its problem runs is one episode, from an empty cluster. Of a longer one, parts are
sampled; each begins with the tasks that run when it begins (by their durations), on a cluster without a
queue, and these count for no result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.core.problem import Problem
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import Workload
from schedgym.envs import SchedulingEnv
from schedgym.evaluation.engines import Engine
from schedgym.evaluation.episodes import lower_bound
from schedgym.evaluation.runner import compare
from schedgym.traces.base import RESOURCES, Trace, offered_load
from schedgym.traces.feed import MOST, PART, select

WINDOWS = 20  # into which the tasks that are run are divided
LEAST = 5  # tasks of a window


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """Consecutive tasks of a log, with all tasks of their jobs.

    Attributes:
        trace: the tasks, and in front of them those that were running already.
        carried: number of those that were running already.
        first: position in the log of the first of the other tasks.
    """

    trace: Trace
    carried: int
    first: int

    @property
    def others(self) -> int:
        """The number of jobs that were running already; in logs without jobs each task is one."""
        return len(np.unique(self.trace.job[: self.carried])) if len(self.trace.job) else self.carried

    @property
    def jobs(self) -> int:
        """The number of the other jobs."""
        count = len(np.unique(self.trace.job)) if len(self.trace.job) else len(self.trace.arrival)
        return count - self.others


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """The outcomes of the jobs of a log's parts under policies; in logs without jobs each task is one.

    Attributes:
        outcomes: policy -> outcome of each job, [jobs], in the order of the log.
        windows: of consecutive jobs, as slices of these.
        bound: best mean outcome that any policy could reach, None if there is no bound.
        seconds: policy -> time that it took to decide [s].
        alone: mean outcome if every job had the cluster to itself.
        records: policy -> schedule of each part.
    """

    outcomes: Mapping[str, Floats]
    windows: tuple[slice, ...]
    bound: float | None
    seconds: Mapping[str, float]
    alone: float = 0.0
    records: Mapping[str, Sequence[ScheduleRecord]] = dataclasses.field(default_factory=dict)

    def means(self, policy: str) -> Floats:
        """The outcomes in each window, summed, over the mean number of jobs of a window.

        These are the means of the windows, weighted so that their mean is that of all jobs.
        """
        sums = np.array([self.outcomes[policy][window].sum() for window in self.windows])
        return sums * len(self.windows) / len(self.outcomes[policy])


def loads(trace: Trace) -> dict[str, float]:
    """:func:`~schedgym.traces.base.offered_load` of what the jobs take, under the names of quantities."""
    return {RESOURCES[name]: load for name, load in offered_load(trace).items() if load}


def all_at_once(trace: Trace) -> dict[str, float]:
    """Shares of the machines that all tasks would take together, under the names of quantities."""
    sizes = {name: float(getattr(trace, f"machine_{name}").sum()) for name in RESOURCES}
    asked = {name: float(getattr(trace, name).sum()) for name, size in sizes.items() if size}
    return {RESOURCES[name]: size / sizes[name] for name, size in asked.items() if size or name == "cores"}


def busiest(shares: Mapping[str, float], alone: str = "") -> str:
    """The largest of some resources' shares with its name, e.g. "12% of the gpus"; ``alone`` for one only."""
    name = max(shares, key=shares.__getitem__)
    return f"{100 * shares[name]:.3g}%" + (f" of the {name}" if len(shares) > 1 else alone)


def cut(trace: Trace, seed: int = 0, most: int = MOST, part: int = PART) -> list[Part]:
    """The parts of a log that are run: all of it, or a sample of about so many tasks, in whole jobs.

    Args:
        trace: with the tasks of each job side by side, if it tells jobs.
        seed: of the sample.
        most: tasks that are run.
        part: tasks of a part, where not all are run.
    """
    count = len(trace.arrival)
    if count <= most:
        return [Part(trace, 0, 0)]
    size = min(part, most)
    edges = np.arange(count // size + 1) * size
    if len(trace.job):
        begins = np.flatnonzero(np.diff(trace.job, prepend=-1.0, append=-2.0))  # of jobs, and the end
        edges = np.unique(begins[np.searchsorted(begins, edges)])
    chosen = np.random.default_rng(seed).choice(
        len(edges) - 1, min(most // size, len(edges) - 1), replace=False
    )
    return [_part(trace, int(edges[i]), int(edges[i + 1] - edges[i])) for i in sorted(chosen.tolist())]


def _part(trace: Trace, first: int, size: int) -> Part:
    """Tasks from place ``first`` on, behind those that run when the first arrives.

    What a task is worth that runs already is its share of the work that is left.
    """
    begin = trace.arrival[first]
    begun = trace.begun[:first]
    running = np.flatnonzero((begun < begin) & (begun + trace.duration[:first] > begin))
    chosen = np.concatenate([running, np.arange(first, first + size)])
    arrival, duration = trace.arrival[chosen].copy(), trace.duration[chosen].copy()
    carried = len(running)
    duration[:carried] = begun[running] + duration[:carried] - begin
    arrival[:carried] = begin
    changes = {"arrival": arrival, "duration": duration}
    if len(trace.value):
        changes["value"] = trace.value[chosen] * duration / trace.duration[chosen]
    return Part(select(trace, chosen, **changes), carried, first)


def _own(part: Part, factor: float) -> Trace:
    """A part's tasks at so many times their load; those that were running already keep theirs."""
    trace = part.trace
    arrival = trace.arrival[0] + (trace.arrival - trace.arrival[0]) / factor
    deadline = trace.deadline + (arrival - trace.arrival) if len(trace.deadline) else trace.deadline
    return dataclasses.replace(trace, arrival=arrival, deadline=deadline)


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
    engine: Engine | None = None,
    progress: bool | None = None,
    slot: float = 1.0,
) -> Run:
    """Run policies over the parts of a log.

    Args:
        problem: has a module ``log``.
        parts: of the log, by :func:`cut`.
        policies: label -> name or policy.
        factor: number by which the log's load is multiplied: the times between arrivals are divided by it.
        seed: of random policies.
        engine: runs the policies; None: this process.
        progress: as for :func:`~schedgym.evaluation.runner.evaluate`.
        slot: length of the problem's slots [s].
    """
    log = problem.module("log")
    traces = [_own(part, factor) for part in parts]
    given = log.parameters(traces[0])
    workloads: list[Workload] = [log.workload_of(trace, slot) for trace in traces]
    unit = slot if log.OUTCOME.timed else 1.0
    evaluation = compare(
        log.ID,
        policies,
        seed=seed,
        observe=observe,
        parameters=given,
        workloads=workloads,
        engine=engine,
        progress=progress,
    )
    outcomes: dict[str, list[Floats]] = {label: [] for label in policies}
    records: dict[str, list[ScheduleRecord]] = {label: [] for label in policies}
    seconds = dict.fromkeys(policies, 0.0)
    for one in evaluation.observed:
        values, record = one.values
        outcomes[one.policy].append(unit * values[parts[one.episode].others :])
        # one copy of the workload for all policies
        records[one.policy].append(dataclasses.replace(record, workload=workloads[one.episode]))
        seconds[one.policy] += one.seconds
    sizes = [part.jobs for part in parts]
    bounds, alone = [], []
    ((_, comparison),) = evaluation.comparisons()
    for i, (part, trace, workload, size) in enumerate(zip(parts, traces, workloads, sizes, strict=True)):
        bound = None if comparison.bounds is None else float(comparison.bounds[i])
        if part.carried:  # the sweep's is of the tasks that ran already, too
            own = log.workload_of(select(trace, slice(part.carried, None)), slot)
            bound = lower_bound(problem, own, problem.build(log.ID, given))
        bounds.append(None if bound is None else unit * bound / (size if log.OUTCOME.total else 1))
        alone.append(unit * log.alone(workload)[part.others :].mean())
    best = None if None in bounds else float(np.average(bounds, weights=sizes))  # type: ignore[arg-type]
    found = {label: np.concatenate(values) for label, values in outcomes.items()}
    return Run(found, _windows(sizes), best, seconds, float(np.average(alone, weights=sizes)), records)


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
