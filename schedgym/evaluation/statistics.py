"""Statistics of paired runs: bootstrap intervals, summaries, differences to a reference.

Episodes are the units that are resampled: the policies of one episode met the same workload, so their
differences are taken within the episode first. Intervals are bias-corrected and accelerated (BCa; Efron
1987), because delays are skewed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from schedgym.core.problem import get_problem
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation import require

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "bootstrap_interval",
    "episode_table",
    "paired_differences",
    "plain",
    "ratio_interval",
    "setting_columns",
    "split_settings",
    "summarize",
]

F8 = npt.NDArray[np.float64]

COLUMNS = ("policy", "episode", "seed", "metric", "value")
BATCH = 4_000_000  # numbers drawn at once


def bootstrap_interval(
    values: Sequence[float] | F8,
    confidence: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | None = None,
) -> tuple[float, float]:
    """Confidence interval of the mean by the BCa bootstrap.

    Args:
        values: one number per episode.
        confidence: between 0 and 1.
        resamples: number of bootstrap samples.
        rng: None: a generator with a fixed seed, so that equal values give equal intervals.

    Returns:
        (low, high) in the unit of the values; (nan, nan) for fewer than two values or a value that is not
        finite, zero width if all are equal.

    Raises:
        InvalidParameter: for a confidence or a number of resamples out of range.
    """
    table = np.asarray(values, dtype=float).reshape(-1, 1)
    return _interval(table, lambda means: means[..., 0], confidence, resamples, rng)


def ratio_interval(
    numerator: Sequence[float] | F8,
    denominator: Sequence[float] | F8,
    confidence: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | None = None,
) -> tuple[float, float]:
    """Confidence interval of a ratio of two means of paired values, resampled together.

    Args:
        numerator: one number per episode.
        denominator: of the same episodes.
        confidence: between 0 and 1.
        resamples: number of bootstrap samples.
        rng: as for :func:`bootstrap_interval`.

    Returns:
        (low, high); (nan, nan) where :func:`bootstrap_interval` gives it or a denominator may be 0.
    """
    table = np.column_stack([numerator, denominator]).astype(float)

    def ratio(means: F8) -> F8:
        with np.errstate(divide="ignore", invalid="ignore"):
            return means[..., 0] / means[..., 1]

    return _interval(table, ratio, confidence, resamples, rng)


def _interval(
    table: F8,
    statistic: Callable[[F8], F8],
    confidence: float,
    resamples: int,
    rng: np.random.Generator | None,
) -> tuple[float, float]:
    """BCa interval of a function of the column means of ``table`` [episodes, columns]."""
    if not 0.0 < confidence < 1.0:
        raise InvalidParameter(f"confidence: must lie between 0 and 1, got {confidence!r}")
    if resamples < 1:
        raise InvalidParameter(f"resamples: must be at least 1, got {resamples!r}")
    count = len(table)
    if count < 2 or not np.isfinite(table).all():
        return float("nan"), float("nan")
    estimate = float(statistic(table.mean(axis=0)))
    # resampled ratios of proportional columns differ by rounding only, as do means of equal values
    left_out = statistic((table.sum(axis=0) - table) / (count - 1))
    if not np.isfinite(estimate) or not np.isfinite(left_out).all():
        return float("nan"), float("nan")
    if np.ptp(left_out) <= 1e-13 * abs(estimate):
        return estimate, estimate
    rng = rng or np.random.default_rng(0)
    drawn = np.empty(resamples)
    rows = max(1, BATCH // count)
    for first in range(0, resamples, rows):
        size = min(rows, resamples - first)
        chosen = rng.integers(count, size=(size, count))
        drawn[first : first + size] = statistic(table[chosen].mean(axis=1))
    if not np.isfinite(drawn).all():
        return float("nan"), float("nan")
    from scipy.special import ndtr, ndtri

    below = (np.count_nonzero(drawn < estimate) + np.count_nonzero(drawn <= estimate)) / 2
    share = min(max(below / resamples, 0.5 / resamples), 1 - 0.5 / resamples)
    bias = float(ndtri(share))
    deviations = left_out.mean() - left_out
    acceleration = float((deviations**3).sum() / (6.0 * (deviations**2).sum() ** 1.5))
    z = ndtri(np.array([(1 - confidence) / 2, (1 + confidence) / 2])) + bias
    shares = ndtr(bias + z / (1.0 - acceleration * z))
    low, high = np.quantile(drawn, shares)
    return float(low), float(high)


def setting_columns(frame: pd.DataFrame) -> list[str]:
    """The columns of a frame that name its settings: the swept parameters."""
    return [str(name) for name in frame.columns if name not in COLUMNS]


def split_settings(frame: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """(swept parameter -> value, rows) for each setting, in order of first appearance."""
    names = setting_columns(frame)
    if not names:
        yield {}, frame
        return
    for key, part in frame.groupby(names, sort=False, dropna=False):
        values = [plain(value) for value in (key if isinstance(key, tuple) else (key,))]
        yield dict(zip(names, values, strict=True)), part


def plain(value: Any) -> Any:
    """A swept value as it was given: pandas turns None into nan, and numbers into numpy's."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value


def episode_table(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Values of one metric in one setting: a row per episode, a column per policy in order of appearance.

    Raises:
        UnknownName: when the frame has no such metric.
    """
    rows = frame[frame["metric"] == metric]
    if rows.empty:
        raise UnknownName("metric", metric, [str(name) for name in frame["metric"].unique()])
    table = rows.pivot(index="episode", columns="policy", values="value")
    return table[list(dict.fromkeys(rows["policy"]))]


def objective_of(frame: pd.DataFrame, metric: str | None) -> str:
    """``metric``, or the objective that the frame carries in its attrs."""
    if metric is not None:
        return metric
    if "objective" not in frame.attrs:
        raise InvalidParameter("metric: the frame does not say its objective; name a metric")
    return str(frame.attrs["objective"])


def lower_is_better(frame: pd.DataFrame, metric: str) -> bool:
    """Whether less of a metric is better; True where the frame does not know its problem."""
    if "problem" not in frame.attrs or metric in ("bound", "gap", "truncated"):
        return True
    return get_problem(frame.attrs["problem"]).metric(metric).better != "max"


def summarize(frame: pd.DataFrame, metric: str | None = None, confidence: float = 0.95) -> pd.DataFrame:
    """Mean and interval of a metric per setting and policy.

    Args:
        frame: of :func:`~schedgym.evaluation.runner.evaluate` or ``sweep``.
        metric: None: the objective.
        confidence: of the intervals.

    Returns:
        a frame with the swept parameters and the columns policy, episodes, mean, low, high (the metric's
        unit), bound (mean over the episodes), ratio (of the means of the metric and the bound; nan without a
        positive bound, or for a metric other than the objective).
    """
    pandas = require("pandas")
    metric = objective_of(frame, metric)
    rows = []
    for setting, part in split_settings(frame):
        table = episode_table(part, metric)
        bounds = None
        if metric == frame.attrs.get("objective") and (part["metric"] == "bound").any():
            bounds = episode_table(part, "bound")
        for policy in table.columns:
            values = table[policy].to_numpy()
            low, high = bootstrap_interval(values, confidence)
            bound = float(bounds[policy].mean()) if bounds is not None else float("nan")
            ratio = float(values.mean()) / bound if bound > 0 else float("nan")
            rows.append(
                {
                    **setting,
                    "policy": policy,
                    "episodes": len(values),
                    "mean": float(values.mean()),
                    "low": low,
                    "high": high,
                    "bound": bound,
                    "ratio": ratio,
                }
            )
    return cast("pd.DataFrame", pandas.DataFrame(rows))


def paired_differences(
    frame: pd.DataFrame, reference: str, metric: str | None = None, confidence: float = 0.95
) -> pd.DataFrame:
    """Each policy minus a reference, episode by episode.

    Args:
        frame: of :func:`~schedgym.evaluation.runner.evaluate` or ``sweep``.
        reference: label of the policy to compare with.
        metric: None: the objective.
        confidence: of the intervals.

    Returns:
        a frame with the swept parameters and the columns policy, episodes, difference, low, high (mean
        difference in the metric's unit), relative, relative_low, relative_high (mean difference over the
        reference's mean), won, tied (shares of the episodes in which the policy is better than, or equal to,
        the reference). The reference itself has no row. Values may be nan: see :func:`bootstrap_interval`.

    Raises:
        UnknownName: when the reference was not run, or the frame has no such metric.
        InvalidParameter: when the policies did not run the same episodes.
    """
    pandas = require("pandas")
    metric = objective_of(frame, metric)
    sign = 1.0 if lower_is_better(frame, metric) else -1.0
    columns = "policy episodes difference low high relative relative_low relative_high won tied"
    rows = []
    for setting, part in split_settings(frame):
        table = episode_table(part, metric)
        if reference not in table.columns:
            raise UnknownName("reference policy", reference, [str(name) for name in table.columns])
        if table.isna().any(axis=None):
            raise InvalidParameter(f"{metric}: not every policy ran every episode, nothing to pair")
        base = table[reference].to_numpy()
        for policy in table.columns:
            if policy == reference:
                continue
            values = table[policy].to_numpy()
            difference = values - base
            low, high = bootstrap_interval(difference, confidence)
            relative = relative_low = relative_high = float("nan")
            if base.mean() != 0:
                relative = float(difference.mean() / abs(base.mean()))
                relative_low, relative_high = ratio_interval(
                    difference, np.sign(base.mean()) * base, confidence
                )
            rows.append(
                {
                    **setting,
                    "policy": policy,
                    "episodes": len(values),
                    "difference": float(difference.mean()),
                    "low": low,
                    "high": high,
                    "relative": relative,
                    "relative_low": relative_low,
                    "relative_high": relative_high,
                    "won": float((sign * difference < 0).mean()),
                    "tied": float((difference == 0).mean()),
                }
            )
    return cast("pd.DataFrame", pandas.DataFrame(rows, columns=[*setting_columns(frame), *columns.split()]))
