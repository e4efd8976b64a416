"""Judge a schedule: by its rows and the instance alone, without an environment, a simulator or a kernel.

The rules of a problem are those of its validator (``schedgym/problems/<problem>/metrics.py``), which knows
nothing of the dynamics. The objective is computed here once more, in plain Python; tests hold it to the exact
models of the papers and to the environments. It is what the rewards sum to, up to the sign, and up to 1e-9 of
it and 1e-12 of the sum of the instance's times, as the order of summation differs.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from schedgym.board.suites import Instance
from schedgym.core.record import ScheduleRecord
from schedgym.errors import InvalidParameter, InvalidSchedule


def judge(instance: Instance, schedule: ScheduleRecord) -> float:
    """Judge a schedule of an instance. The workload that the schedule itself names is not looked at.

    All work must be done: a schedule that was cut off breaks a rule.

    Returns:
        its value, in the unit of the problem's objective.

    Raises:
        InvalidSchedule: for the first rule that it breaks.
        InvalidWorkload: if the instance cannot be made here as it was frozen.
    """
    parameters = instance.problem.build(instance.id, instance.parameters)
    if schedule.truncated:
        raise InvalidSchedule("truncated: the schedule leaves work undone")
    own = dataclasses.replace(schedule, workload=instance.workload())
    validate = instance.problem.module("metrics").validate
    validate(own, **({"whole": True} if getattr(parameters, "model", None) == "discrete" else {}))
    return float(OBJECTIVES[instance.problem.name](own, parameters))


# objectives of valid schedules ----------------------------------------------------------------


def _mean_delay(record: ScheduleRecord, parameters: Any) -> float:
    """noroozoliaee2014: the mean time that tasks wait [s]."""
    delays = record.start - record.workload.jobs["arrival"][record.job]
    return math.fsum(delays) / len(delays)


def _cost(record: ScheduleRecord, parameters: Any) -> float:
    """xu2021: the sum of the flowtimes, each to the k-th power [slots^k]."""
    if parameters.alpha:
        raise InvalidParameter("alpha: the judge knows no switching cost")
    arrival = record.workload.jobs["arrival"].tolist()
    return math.fsum(flowtime**parameters.norm for flowtime in _flowtimes(record.job, record.end, arrival))


def _value(record: ScheduleRecord, parameters: Any) -> float:
    """zheng2016: the value v y, v y^exponent or v log(1 + y) of the y tasks that are served of each job."""
    jobs = record.workload.jobs
    served = np.bincount(record.job, record.amount[:, 0], len(jobs["tasks"]))
    forms = {"linear": served, "power": served ** jobs["exponent"], "log": np.log1p(served)}
    names = [record.workload.choices["jobs.utility"][kind] for kind in jobs["utility"]]
    return math.fsum(v * forms[name][j] for j, (name, v) in enumerate(zip(names, jobs["value"], strict=True)))


def _geo(record: ScheduleRecord, parameters: Any) -> float:
    """guan2022: the mean response time [s], or the integral of fairness, or a weighted sum of both."""
    arrival = record.workload.jobs["arrival"].tolist()
    owner = record.workload.tasks["job"][record.job]
    response = _flowtimes(owner, record.end, arrival)
    mean = math.fsum(response) / len(response)
    if parameters.objective == "response":
        return mean
    weight = parameters.fairness_weight if parameters.objective == "weighted" else 1.0
    return weight * _fairness(record, owner.tolist(), arrival) + (1.0 - weight) * mean


def _fairness(record: ScheduleRecord, owner: Sequence[int], arrival: Sequence[float]) -> float:
    """Integrate the standard deviation of the active jobs' slots, per time from first to last arrival."""
    # (time, job, change of its slots, change of the number of active jobs)
    events = [(time, j, 1, 0) for time, j in zip(record.start.tolist(), owner, strict=True)]
    events += [(time, j, -1, 0) for time, j in zip(record.end.tolist(), owner, strict=True)]
    completion = [0.0] * len(arrival)
    for time, j, _, _ in events:
        completion[j] = max(completion[j], time)
    for j, time in enumerate(arrival):
        events += [(time, j, 0, 1), (completion[j], j, 0, -1)]
    running = [0] * len(arrival)
    active = used = squares = 0
    parts, before = [], min(arrival)
    for time, j, slots, jobs in sorted(events):
        if active and time > before:  # whole numbers under the root: exact
            parts.append(math.sqrt(active * squares - used * used) / active * (time - before))
        before = time
        squares += slots * (2 * running[j] + slots)
        running[j] += slots
        used, active = used + slots, active + jobs
    return math.fsum(parts) / (max(arrival) - min(arrival) or 1.0)


def _completion_time(record: ScheduleRecord, parameters: Any) -> float:
    """shi2017, one job: the end of its last task [s]."""
    return max(record.end.tolist())


def _average_completion_time(record: ScheduleRecord, parameters: Any) -> float:
    """shi2017, many jobs: the mean time from arrival to the end of the last task [s]."""
    owner, arrival = record.workload.tasks["job"][record.job], record.workload.jobs["arrival"].tolist()
    times = _flowtimes(owner, record.end, arrival)
    return math.fsum(times) / len(times)


def _flowtimes(owner: Any, end: Any, arrival: Sequence[float]) -> list[float]:
    """The time from each job's arrival to the end of its last row, rows by their jobs and ends."""
    last: dict[int, float] = {}
    for j, time in zip(owner.tolist(), end.tolist(), strict=True):
        last[j] = max(last.get(j, 0.0), time)
    return [last[j] - time for j, time in enumerate(arrival)]


OBJECTIVES: dict[str, Callable[[ScheduleRecord, Any], float]] = {
    "queue-delay": _mean_delay,
    "flowtime": _cost,
    "partial-value": _value,
    "geo": _geo,
    "single-job": _completion_time,
    "parallel-jct": _average_completion_time,
}
