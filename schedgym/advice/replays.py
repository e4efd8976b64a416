"""Compare the waits that the replay of a log predicts with those that the log has recorded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from schedgym.advice.logs import cut, run
from schedgym.core.arrays import Floats, Integers
from schedgym.core.problem import get_problem
from schedgym.documents import check_whole
from schedgym.errors import InvalidParameter
from schedgym.evaluation.engines import make_engine
from schedgym.evaluation.wording import time_text
from schedgym.extras import require
from schedgym.traces.base import Trace
from schedgym.traces.feed import ARRAYS, select
from schedgym.traces.machines import place

if TYPE_CHECKING:
    import pandas as pd


#: other resources, where GPUs are no part of a model, and where they are
NO_GPUS = ("GPUs and other resources than cpus and memory",)
ONLY_COUNTED = (
    "types of GPUs, fragmentation among the GPUs of a node, and limits of sharing one",
    "other resources than cpus, memory and GPUs",
)
#: what else decides of waits in a cluster, and is no part of any problem's model
LEFT_OUT = (
    "priorities, quotas, partitions and placement constraints",
    "failures, maintenance, and the time that the scheduler itself takes",
    "jobs that are not in the log",
)
HOUR, DAY = 3600.0, 86400.0
MOST_EARLY = 0.05  # recorded starts before the submission: with more, they are something else
FACTOR = 2.0  # a mean wait that is not off by more is called credible


@dataclasses.dataclass(frozen=True, eq=False)
class Replay:
    """Waits that a replay predicts, and those that were recorded, of the same jobs.

    Attributes:
        recorded: recorded start minus submission [s], [jobs].
        predicted: policy -> wait under it [s], [jobs].
        hour: of the day of each submission, 0 to 23, by the log's clock; [jobs].
        dated: True if the log's clock is a date and time, so that ``hour`` is known.
    """

    recorded: Floats
    predicted: Mapping[str, Floats]
    hour: Integers
    dated: bool

    def table(self) -> pd.DataFrame:
        """A row per policy: mean, median and 90th percentile of recorded and predicted waits and errors [s].

        An error is the predicted wait minus the recorded one; median and 90th percentile are of its size.
        """
        rows = []
        for policy, waits in self.predicted.items():
            error = waits - self.recorded
            rows.append(
                {
                    "policy": policy,
                    "jobs": len(waits),
                    **_quantiles("recorded", self.recorded),
                    **_quantiles("predicted", waits),
                    "mean error": float(error.mean()),
                    "median |error|": float(np.median(np.abs(error))),
                    "p90 |error|": float(np.quantile(np.abs(error), 0.9)),
                }
            )
        frame: pd.DataFrame = require("pandas").DataFrame(rows)
        return frame

    def by_hour(self) -> pd.DataFrame:
        """A row per hour of the day in which jobs were submitted: mean and median waits, median error [s]."""
        rows = []
        for hour in np.unique(self.hour).tolist():
            here = self.hour == hour
            row: dict[str, Any] = {"hour": hour, "jobs": int(here.sum())}
            row |= {"recorded mean": float(self.recorded[here].mean())}
            for policy, waits in self.predicted.items():
                row[f"{policy} mean"] = float(waits[here].mean())
                row[f"{policy} median |error|"] = float(np.median(np.abs(waits - self.recorded)[here]))
            rows.append(row)
        frame: pd.DataFrame = require("pandas").DataFrame(rows)
        return frame

    @property
    def nearest(self) -> str:
        """The policy whose mean wait is nearest to the recorded one."""
        mean = float(self.recorded.mean())
        return min(self.predicted, key=lambda policy: abs(float(self.predicted[policy].mean()) - mean))

    @property
    def credible(self) -> bool:
        """True if the mean wait that is nearest to the recorded one is within a factor of 2 of it."""
        mean, found = float(self.recorded.mean()), float(self.predicted[self.nearest].mean())
        return bool(mean <= FACTOR * found and found <= FACTOR * mean)

    @property
    def verdict(self) -> str:
        """One sentence on how well the replay explains the recorded waits."""
        name = self.nearest
        mean, found = float(self.recorded.mean()), float(self.predicted[name].mean())
        text = (
            f"The log's jobs waited {time_text(mean)} on average, and in the replay under {name} "
            f"{time_text(found)}: "
        )
        if self.credible:
            return text + "the model explains the waits to a factor of 2."
        if found < mean:
            return text + "most of the waiting has causes that the model does not have."
        return text + "the cluster did better than the model; check the machines and the columns."


def _quantiles(name: str, waits: Floats) -> dict[str, float]:
    return {
        f"{name} mean": float(waits.mean()),
        f"{name} median": float(np.median(waits)),
        f"{name} p90": float(np.quantile(waits, 0.9)),
    }


def compare_with_record(trace: Trace, predicted: Mapping[str, Floats]) -> Replay | None:
    """The replay of those tasks of a trace whose start is recorded, after their submission.

    None without any, and if more than MOST_EARLY of the recorded starts lie before the submission.

    Args:
        trace: in seconds.
        predicted: policy -> wait of each of its tasks [s].
    """
    if not len(trace.start):
        return None
    known = trace.start >= trace.arrival  # not where there is none, or one that cannot be
    if (trace.start < trace.arrival).sum() > MOST_EARLY * np.isfinite(trace.start).sum():
        return None
    for waits in predicted.values():
        known &= np.isfinite(waits)
    if not known.any():
        return None
    begin = datetime.fromisoformat(trace.origin or "1970-01-01").replace(tzinfo=UTC).timestamp()
    return Replay(
        recorded=(trace.start - trace.arrival)[known],
        predicted={policy: waits[known] for policy, waits in predicted.items()},
        hour=((begin + trace.arrival[known]) % DAY // HOUR).astype(np.int64),
        dated=bool(trace.origin),
    )


def replay(trace: Trace, problem: str = "queue-delay", n_jobs: int = 1, seed: int = 0) -> Replay:
    """Replay a trace with recorded starts under first come first served and EASY backfilling.

    Args:
        trace: with machines, as :func:`~schedgym.traces.machines.place` takes them, and recorded starts.
        problem: name of a problem that logs feed.
        n_jobs: processes; -1 means one per core.
        seed: of the sample of a long log, and of random policies.

    Raises:
        InvalidParameter: without recorded starts or machines, or when too much of the work fits none of them.
    """
    check_whole(seed, "seed", 0)
    if not len(trace.machine_cores):
        raise InvalidParameter(f"machines: the {trace.name} trace tells none")
    found = get_problem(problem)
    log = found.module("log")
    feed = log.feed(place(trace).trace)
    parts = cut(feed.trace, seed, feed.most, feed.part)
    policies = {name: name for name in log.REPLAYED}
    predicted = run(found, parts, policies, seed=seed, engine=make_engine("local", n_jobs)).outcomes
    result = compare_with_record(own_tasks(parts), predicted)
    if result is None:
        raise InvalidParameter(
            f"start: the {trace.name} trace has no recorded starts, or too many before submissions"
        )
    return result


def own_tasks(parts: Any) -> Trace:
    """The tasks of a log's parts that were not running already, in the order of their outcomes."""
    own = [select(part.trace, slice(part.carried, None)) for part in parts]
    arrays: Any = {name: np.concatenate([getattr(trace, name) for trace in own]) for name in ARRAYS}
    return dataclasses.replace(own[0], **arrays)
