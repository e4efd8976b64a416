"""Statistics of paired runs: bootstrap intervals, aggregates, profiles.

Episodes are the units that are resampled: the policies of one episode met the same workload, so their
differences are taken within the episode first. Intervals of means are bias-corrected and accelerated (BCa;
Efron 1987), because delays are skewed.

Where agents are trained, the training seed is the unit: more episodes of one agent say nothing of the next
training. A table [training seeds, episodes] is resampled on both levels. Aggregates over settings are
interquartile means and performance profiles, resampled within each setting (stratified; Agarwal et al. 2021,
"Deep RL at the edge of the statistical precipice"); their intervals are percentiles.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.core.problem import sign_of
from schedgym.errors import InvalidParameter

Values = Sequence[float] | Floats

BATCH = 4_000_000  # numbers drawn at once
FEW = 8  # episodes; bootstrap intervals of fewer are noticeably too narrow
NONE = (float("nan"), float("nan"))  # where there is no interval


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number and its interval; nan where there is none."""

    value: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")

    def __iter__(self) -> Iterator[float]:
        return iter((self.value, self.low, self.high))

    @property
    def differs(self) -> bool:
        """True if the interval excludes 0."""
        return self.low > 0 or self.high < 0

    def row(self, name: str, before: str = "") -> dict[str, float]:
        """The value under a name, and the ends of the interval, with ``before`` in front of their names."""
        return {name: self.value, f"{before}low": self.low, f"{before}high": self.high}


def judge_interval(low: float, high: float, better: str = "min") -> str:
    """Judge the interval of a difference to a rival: "better", "worse", "not different" or "no interval".

    Args:
        low: lower end of the interval; nan: there is none.
        high: upper end.
        better: "min" or "max".
    """
    if not low <= high:
        return "no interval"
    if low <= 0 <= high:
        return "not different"
    return "better" if sign_of(better) * low < 0 else "worse"


def bootstrap_interval(
    values: Values,
    confidence: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | None = None,
    over: Values | None = None,
) -> tuple[float, float]:
    """Confidence interval of the mean, or of a ratio of two means, by the BCa bootstrap.

    Args:
        values: one number per episode.
        confidence: between 0 and 1.
        resamples: number of bootstrap samples.
        rng: None: a generator with a fixed seed, so that equal values give equal intervals.
        over: numbers for the same episodes, which are resampled together; if given, the interval is of the
            ratio of the means.

    Returns:
        (low, high) in the unit of the values; (nan, nan) for fewer than two values, a value that is not
        finite, or where the mean of ``over`` may be 0; zero width if all are equal.

    Raises:
        InvalidParameter: for a confidence or a number of resamples out of range.
    """
    table = np.column_stack([values] if over is None else [values, over]).astype(float)

    def statistic(means: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return means[..., 0] if over is None else means[..., 0] / means[..., 1]

    _check_bootstrap(confidence, resamples)
    count = len(table)
    if count < 2 or not np.isfinite(table).all():
        return NONE
    estimate = float(statistic(table.mean(axis=0)))
    # resampled ratios of proportional columns differ by rounding only, as do means of equal values
    left_out = statistic((table.sum(axis=0) - table) / (count - 1))
    if not np.isfinite(estimate) or not np.isfinite(left_out).all():
        return NONE
    if np.ptp(left_out) <= 1e-13 * abs(estimate):
        return estimate, estimate
    rng = rng or np.random.default_rng(0)
    drawn = np.empty(resamples)
    for part, size in _batches(resamples, count):
        drawn[part] = statistic(table[rng.integers(count, size=(size, count))].mean(axis=1))
    if not np.isfinite(drawn).all():
        return NONE
    from scipy.special import ndtr, ndtri

    below = (np.count_nonzero(drawn < estimate) + np.count_nonzero(drawn <= estimate)) / 2
    share = min(max(below / resamples, 0.5 / resamples), 1 - 0.5 / resamples)
    bias = float(ndtri(share))
    deviations = left_out.mean() - left_out
    acceleration = float((deviations**3).sum() / (6.0 * (deviations**2).sum() ** 1.5))
    z = ndtri(np.array([(1 - confidence) / 2, (1 + confidence) / 2])) + bias
    shares = ndtr(bias + z / (1.0 - acceleration * z))
    low, high = np.quantile(drawn, shares).tolist()
    return low, high


def interquartile_mean(values: Values, axis: int | None = None) -> Any:
    """Mean of the middle half: a quarter of the values, rounded down, is left out at each end.

    Args:
        values: numbers, of any shape.
        axis: to average over; None: all.

    Returns:
        a float, or an array without that axis, in the unit of the values. Infinite values count as extreme:
        they matter only if more than a quarter are; nan if there is a nan, or nothing.
    """
    # scipy.stats.trim_mean, whose import takes half a second
    array = np.asarray(values, dtype=float)
    if axis is None:
        array, axis = array.ravel(), 0
    count = array.shape[axis]
    if array.size == 0:
        return float("nan")
    cut = count // 4
    middle = np.partition(array, (cut, count - cut - 1), axis).take(range(cut, count - cut), axis)
    # a nan is sorted to the end, and left out there
    with np.errstate(invalid="ignore"):
        result = np.where(np.isnan(array).any(axis), np.nan, middle.mean(axis))
    return float(result) if np.ndim(result) == 0 else np.asarray(result)


def stratified_interval(
    strata: Sequence[Values],
    statistic: Callable[..., Any] = interquartile_mean,
    confidence: float = 0.95,
    resamples: int = 2000,
) -> tuple[float, float]:
    """Percentile bootstrap interval of a statistic of all values, resampled within each stratum.

    Args:
        strata: one per setting: its episodes' numbers, or a table [training seeds, episodes] of agents that
            met the same episodes, which is resampled on both levels.
        statistic: a function of an array and ``axis``, e.g. ``numpy.mean``.
        confidence: between 0 and 1.
        resamples: number of bootstrap samples.

    Returns:
        (low, high) in the unit of the values; (nan, nan) where no stratum has two units (episodes; training
        seeds of a table), where a value is nan, or where an end is not finite.

    Raises:
        InvalidParameter: for a confidence or a number of resamples out of range, or strata of another shape.
    """
    _check_bootstrap(confidence, resamples)
    arrays = _strata(strata)
    if max(map(len, arrays), default=0) < 2 or any(np.isnan(array).any() for array in arrays):
        return NONE
    rng = np.random.default_rng(0)
    drawn = np.empty(resamples)
    for part, size in _batches(resamples, sum(array.size for array in arrays)):
        sample = np.concatenate([_resample(array, size, rng) for array in arrays], axis=1)
        drawn[part] = statistic(sample, axis=-1)
    return _percentiles(drawn, confidence)


def _strata(strata: Sequence[Values]) -> list[Floats]:
    arrays = [np.asarray(stratum, dtype=float) for stratum in strata]
    if any(array.ndim not in (1, 2) for array in arrays):
        raise InvalidParameter("strata: each is a list, or a table of training seeds and episodes")
    return [array for array in arrays if array.size]


def _check_bootstrap(confidence: float, resamples: int) -> None:
    if not 0.0 < confidence < 1.0:
        raise InvalidParameter(f"confidence: must lie between 0 and 1, got {confidence!r}")
    if resamples < 1:
        raise InvalidParameter(f"resamples: must be at least 1, got {resamples!r}")


def _batches(resamples: int, numbers: int) -> Iterator[tuple[slice, int]]:
    """Split resamples of so many numbers each into slices that fit in memory; yield each with its size."""
    rows = max(1, BATCH // numbers)
    for first in range(0, resamples, rows):
        size = min(rows, resamples - first)
        yield slice(first, first + size), size


def _resample(array: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Bootstrap samples [size, values] of a stratum; of a table, rows and columns are drawn."""
    if array.ndim == 1:
        return np.asarray(array[rng.integers(len(array), size=(size, len(array)))])
    seeds, episodes = array.shape
    rows = rng.integers(seeds, size=(size, seeds, 1))
    columns = rng.integers(episodes, size=(size, 1, episodes))
    return np.asarray(array[rows, columns].reshape(size, -1))


def _multiplicities(units: int, size: int, rng: np.random.Generator) -> Floats:
    """Draw the number of times that each unit is in each bootstrap sample, [size, units]."""
    return np.asarray(rng.multinomial(units, np.full(units, 1 / units), size=size), dtype=float)


def _percentiles(drawn: Floats, confidence: float) -> tuple[float, float]:
    if np.isnan(drawn).any():
        return NONE
    with np.errstate(invalid="ignore"):
        low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    return (low, high) if np.isfinite([low, high]).all() else NONE


def two_level_interval(
    table: Sequence[Sequence[float]] | Floats,
    over: Values | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | None = None,
    statistic: Callable[..., Any] = np.mean,
) -> tuple[float, float]:
    """Interval for agents that were trained with several seeds and met the same episodes.

    Training seeds and episodes are drawn with replacement, independently (Owen 2007, "The pigeonhole
    bootstrap"): the interval is for the result of another training on other episodes. It is a percentile
    interval; with fewer than about ten seeds it is too narrow, as any bootstrap of so few values.

    Args:
        table: one number per training seed and episode, [seeds, episodes].
        over: numbers of the same episodes, [episodes]; if given, the interval is of the ratio of the means.
        confidence: between 0 and 1.
        resamples: number of bootstrap samples.
        rng: None: a generator with a fixed seed.
        statistic: statistic of the training seeds' means over the episodes: a function of an array and
            ``axis``, e.g. :func:`interquartile_mean`.

    Returns:
        (low, high); (nan, nan) for a single training seed, however many episodes it met, for a single
        episode, for a value that is not finite, or where the mean of ``over`` may be 0.

    Raises:
        InvalidParameter: for arguments out of range, or of another shape.
    """
    _check_bootstrap(confidence, resamples)
    values = np.asarray(table, dtype=float)
    if values.ndim != 2:
        raise InvalidParameter(f"table: must be [training seeds, episodes], got {values.ndim} dimensions")
    seeds, episodes = values.shape
    base = np.ones(episodes) if over is None else np.asarray(over, dtype=float)
    if base.shape != (episodes,):
        raise InvalidParameter(f"over: must have one number per episode: {episodes}, got {base.shape}")
    finite = np.isfinite(values).all() and np.isfinite(base).all()
    if seeds < 2 or episodes < 2 or not finite:
        return NONE
    rng = rng or np.random.default_rng(0)
    drawn = np.empty(resamples)
    for part, size in _batches(resamples, seeds + episodes):
        by_episode = _multiplicities(episodes, size, rng) / episodes
        means = by_episode @ values.T
        if over is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                means = means / (by_episode @ base)[:, np.newaxis]
        rows = rng.integers(seeds, size=(size, seeds))
        drawn[part] = statistic(np.take_along_axis(means, rows, axis=1), axis=1)
    return _percentiles(drawn, confidence) if np.isfinite(drawn).all() else NONE


def estimate(
    table: Values,
    over: Values | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    statistic: Callable[..., Any] = np.mean,
) -> Estimate:
    """A statistic of the trainings' means over the episodes, with its interval.

    Args:
        table: one number per training and episode, [trainings, episodes]; or per episode.
        over: numbers of the same episodes, [episodes]; if given, each mean is divided by theirs.
        confidence: between 0 and 1.
        resamples: number of bootstrap samples.
        statistic: as for :func:`two_level_interval`.

    Returns:
        an estimate whose interval is of :func:`two_level_interval`; with one training over the episodes
        alone, of :func:`bootstrap_interval`; nan for an empty table.
    """
    table = np.atleast_2d(np.asarray(table, dtype=float))
    if not table.size:
        return Estimate()
    means = table.mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(means if over is None else means / np.mean(over), axis=0))
    if not np.isfinite(value):
        return Estimate(value) if over is None else Estimate()
    if len(table) > 1:
        return Estimate(value, *two_level_interval(table, over, confidence, resamples, statistic=statistic))
    return Estimate(value, *bootstrap_interval(table[0], confidence, resamples, over=over))


def estimate_difference(
    own: Values, other: Values | float, *, relative: bool = False, **how: Any
) -> Estimate:
    """A statistic of the differences to another's numbers of the same episodes, with its interval.

    Args:
        own: one number per episode, or per training and episode, [trainings, episodes].
        other: a number per episode, or one for all of them. Episodes in which a number is nan are left out.
        relative: True for the share of the other's absolute mean; nan where that is 0.
        how: the other arguments of :func:`estimate`, which makes it.
    """
    table = np.atleast_2d(np.asarray(own, dtype=float))
    rival = np.broadcast_to(np.asarray(other, dtype=float), table.shape[1:])
    both = ~(np.isnan(table).any(axis=0) | np.isnan(rival))
    table, rival = table[:, both], rival[both]
    if not relative or not both.any():
        return estimate(table - rival, **how)
    mean = rival.mean()
    return estimate(table - rival, np.sign(mean) * rival, **how) if mean else Estimate()


def improvements(table: Floats, rival: Floats, sign: float = 1.0) -> Floats:
    """Compare values with a rival's of the same episodes; the mean is the probability of improvement.

    This is the Mann-Whitney statistic within each episode, averaged over the episodes (Agarwal et al. 2021,
    who average over tasks).

    Args:
        table: one number per training and episode, [trainings, episodes].
        rival: numbers of the same episodes, [episodes].
        sign: 1 where less is better, else -1.

    Returns:
        an array shaped as ``table``: 1 where it is better, 1/2 where equal, 0 where worse.
    """
    return (1.0 + np.sign(sign * (np.asarray(rival) - table))) / 2.0


def performance_ratios(table: Floats, better: str = "min") -> Floats:
    """The factor by which each policy is worse than the best one of the episode (Dolan and Moré 2002).

    Args:
        table: values >= 0 of a metric, [episodes, policies]; nan: not run.
        better: "min" or "max".

    Returns:
        an array of the same shape: the value over the episode's least (of "max": the episode's largest over
        the value). At least 1; 1 for 0 where 0 is the best, infinite for others beside it; nan stays.

    Raises:
        InvalidParameter: for a negative value or another ``better``.
    """
    values = np.asarray(table, dtype=float)
    if better not in ("min", "max"):
        raise InvalidParameter(f"better: must be 'min' or 'max', got {better!r}")
    if (values < 0).any():
        raise InvalidParameter("table: ratios need values from 0")
    if values.size == 0:
        return values.copy()
    sign = sign_of(better)
    best = sign * np.fmin.reduce(sign * values, axis=1, keepdims=True)
    above, below = (values, best) if sign > 0 else (best, values)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = above / np.broadcast_to(below, values.shape)
    return np.where(values == best, 1.0, ratios)


def performance_profile(
    strata: Sequence[Values],
    thresholds: Values,
    confidence: float = 0.95,
    resamples: int = 1000,
) -> tuple[Floats, Floats, Floats]:
    """Share of a policy's episodes whose ratio is at most a threshold, with a pointwise band.

    Args:
        strata: ratios of :func:`performance_ratios` of one policy, as for :func:`stratified_interval`.
        thresholds: increasing, [thresholds].
        confidence: confidence level of the band.
        resamples: number of bootstrap samples.

    Returns:
        (share, low, high), each [thresholds], between 0 and 1; the band is nan where
        :func:`stratified_interval` has none.

    Raises:
        InvalidParameter: as :func:`stratified_interval`, and without any value.
    """
    _check_bootstrap(confidence, resamples)
    arrays = _strata(strata)
    total = sum(array.size for array in arrays)
    if not total:
        raise InvalidParameter("strata: a profile needs at least one value")
    levels = np.asarray(thresholds, dtype=float)
    reached = [array[..., np.newaxis] <= levels for array in arrays]
    counts = np.sum([r.sum(axis=tuple(range(r.ndim - 1))) for r in reached], axis=0)
    share = counts / total
    if max(map(len, arrays)) < 2 or any(np.isnan(array).any() for array in arrays):
        return share, np.full(share.shape, np.nan), np.full(share.shape, np.nan)
    rng = np.random.default_rng(0)
    drawn = np.zeros((resamples, len(levels)))
    for array, met in zip(arrays, reached, strict=True):
        hits = met.astype(float)
        for part, size in _batches(resamples, max(array.shape) * max(len(levels), 1)):
            weights = _multiplicities(array.shape[-1], size, rng)
            if array.ndim == 1:
                drawn[part] += weights @ hits
            else:
                by_seed = _multiplicities(array.shape[0], size, rng)
                drawn[part] += np.einsum("rs,re,set->rt", by_seed, weights, hits, optimize=True)
    low, high = np.quantile(drawn / total, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return share, low, high
