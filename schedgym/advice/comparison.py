"""The policies on a log, at a multiple of its load, and whether any job waits there."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from schedgym.advice.logs import Run
from schedgym.core.problem import Metric
from schedgym.evaluation.comparison import Comparison
from schedgym.extras import require
from schedgym.traces.base import Trace
from schedgym.traces.feed import WAIT, Outcome

if TYPE_CHECKING:
    import pandas as pd

NEGLIGIBLE = 1e-3  # of the median duration: a shorter mean wait is none
RELATIVE = 0.01  # a smaller difference is none


@dataclasses.dataclass(frozen=True, eq=False)
class LoadComparison:
    """The policies on the log, at a multiple of its load.

    Attributes:
        factor: number by which the times between arrivals were divided.
        reference: the policy that differences refer to.
        run: outcomes of the tasks.
        knows: policy -> what it must know beyond sizes, e.g. "execution".
    """

    factor: float
    reference: str
    run: Run
    knows: Mapping[str, str]
    outcome: Outcome = WAIT

    def table(self) -> pd.DataFrame:
        """A row per policy, the best first.

        Columns: policy; mean (of the windows' mean outcomes, e.g. waits [s]) with low and high (95%
        interval); p95 and longest outcome of a job, p5 and least where more is better; difference (to the
        reference's mean) with difference_low and difference_high, paired by window; relative (the same over
        the reference's mean) with relative_low and relative_high, nan where that mean may be 0; bound (best
        mean that any policy could reach); knows; seconds (that the policy took to decide). The intervals of
        differences are those of :meth:`against`.
        """
        less = self.outcome.better == "min"
        tail, worst = ("p95", "longest") if less else ("p5", "least")
        rows: list[dict[str, Any]] = []
        for policy, waits in self.run.outcomes.items():
            own = self.means.against(policy, self.reference)
            rows.append(
                {
                    "policy": policy,
                    **self.means.mean(policy).row("mean"),
                    tail: float(np.quantile(waits, 0.95 if less else 0.05)),
                    worst: float(waits.max() if less else waits.min()),
                    **own.difference.row("difference", "difference_"),
                    **own.relative.row("relative", "relative_"),
                    "bound": self.run.bound,
                    "knows": self.knows[policy],
                    "seconds": self.run.seconds[policy],
                }
            )
        sign = self.outcome.sign
        rows.sort(key=lambda row: (sign * row["mean"], row["policy"] != self.reference))
        frame: pd.DataFrame = require("pandas").DataFrame(rows)
        return frame

    @functools.cached_property
    def means(self) -> Comparison:
        """The windows' mean outcomes of the policies.

        Intervals of the differences of all policies to one of them are widened so that together they hold
        with 95% (Bonferroni): the best policy is chosen in the same windows in which it is tested.
        """
        metric = Metric(self.outcome.name, "", "", self.outcome.better)
        tables = {policy: self.run.means(policy)[np.newaxis] for policy in self.run.outcomes}
        return Comparison(metric, tables, together=max(len(tables) - 1, 1))

    def against(self, policy: str, other: str) -> tuple[float, float, float]:
        """Difference of mean outcomes, policy minus other, with its interval, paired by window."""
        own = self.means.against(policy, other).difference
        return own.value, own.low, own.high

    @property
    def differ(self) -> bool:
        """True if a policy differs significantly from the reference, by more than 1% (:meth:`against`)."""
        least = RELATIVE * float(self.run.means(self.reference).mean())
        found = (self.means.against(policy, self.reference).difference for policy in self.run.outcomes)
        return any(own.differs and abs(own.value) > least for own in found)


def is_idle(trace: Trace, comparison: LoadComparison) -> bool:
    """Return True if jobs hardly wait under the reference; they may wait under other policies."""
    return comparison.reference not in waiting(trace, comparison)


def waiting(trace: Trace, comparison: LoadComparison) -> set[str]:
    """The policies under which what jobs lose by sharing the cluster is not negligible."""
    run, sign = comparison.run, comparison.outcome.sign
    least = NEGLIGIBLE * (float(np.median(trace.duration)) if comparison.outcome.timed else run.alone)
    return {
        policy for policy in run.outcomes if not sign * (float(run.means(policy).mean()) - run.alone) < least
    }
