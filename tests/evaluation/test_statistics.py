"""Bootstrap intervals against scipy's, coverage, degenerate inputs, and the tables made of them."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.statistics import (
    bootstrap_interval,
    paired_differences,
    ratio_interval,
    summarize,
)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("count", [8, 20, 200])
def test_the_interval_is_scipys(count):
    values = np.random.default_rng(count).lognormal(size=count)
    ours = bootstrap_interval(values, resamples=40_000)
    rng = np.random.default_rng(0)
    reference = scipy.stats.bootstrap((values,), np.mean, n_resamples=40_000, method="BCa", rng=rng)
    theirs = reference.confidence_interval
    width = theirs.high - theirs.low
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.05 * width)


def test_the_interval_covers_the_mean_of_skewed_values():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(300):
        low, high = bootstrap_interval(rng.exponential(size=40), resamples=1000, rng=rng)
        covered += low <= 1.0 <= high
    assert 0.89 <= covered / 300 <= 0.98


def test_degenerate_values():
    assert all(math.isnan(x) for x in bootstrap_interval([3.0]))
    assert all(math.isnan(x) for x in bootstrap_interval([]))
    assert all(math.isnan(x) for x in bootstrap_interval([1.0, math.nan]))
    assert bootstrap_interval([2.5] * 7) == (2.5, 2.5)
    assert bootstrap_interval([0.0, 0.0]) == (0.0, 0.0)
    low, high = bootstrap_interval([1.0, 2.0])
    assert 1.0 <= low < high <= 2.0
    low, high = bootstrap_interval([1e12, 1e12 + 1, 1e12 + 2])
    assert 1e12 <= low <= high <= 1e12 + 2


def test_intervals_are_repeatable_and_widen_with_the_confidence():
    values = np.arange(12.0)
    assert bootstrap_interval(values) == bootstrap_interval(list(values))
    narrow, wide = bootstrap_interval(values, 0.5), bootstrap_interval(values, 0.99)
    assert wide[0] < narrow[0] < values.mean() < narrow[1] < wide[1]


@pytest.mark.parametrize("arguments", [{"confidence": 1.0}, {"confidence": 0.0}, {"resamples": 0}])
def test_bad_arguments(arguments):
    with pytest.raises(InvalidParameter):
        bootstrap_interval([1.0, 2.0], **arguments)


def test_ratios():
    base = np.array([1.0, 2.0, 3.0, 4.0])
    assert ratio_interval(3 * base, base) == pytest.approx((3.0, 3.0))
    assert all(math.isnan(x) for x in ratio_interval(base, [0, 0, 0, 1]))


def frame(**policies):
    """A frame of mean_delay by policy, with a bound of 1 in every episode."""
    rows = [
        {"policy": policy, "episode": e, "seed": 0, "metric": metric, "value": value}
        for policy, delays in policies.items()
        for e, delay in enumerate(delays)
        for metric, value in (("mean_delay", float(delay)), ("bound", 1.0))
    ]
    made = pd.DataFrame(rows)
    made.attrs = {"objective": "mean_delay", "problem": "queue-delay"}
    return made


def test_summaries():
    table = summarize(frame(a=[2, 4, 6], b=[3, 3, 3])).set_index("policy")
    assert table.loc["a", "mean"] == 4 and table.loc["a", "ratio"] == 4
    assert table.loc["a", "low"] < 4 < table.loc["a", "high"]
    assert (table.loc["b", "low"], table.loc["b", "high"]) == (3, 3)
    assert list(table["episodes"]) == [3, 3]
    with pytest.raises(UnknownName, match="metric"):
        summarize(frame(a=[1, 2]), "makespan")


def test_differences_are_paired():
    spread = np.array([10.0, 100.0, 1000.0, 50.0, 500.0, 5.0])
    table = paired_differences(frame(ref=spread, worse=spread + 2, mixed=spread + [1, -1, 0, 0, 0, 0]), "ref")
    table = table.set_index("policy")
    assert list(table.index) == ["worse", "mixed"]
    worse, mixed = table.loc["worse"], table.loc["mixed"]
    assert (worse["difference"], worse["low"], worse["high"]) == pytest.approx((2, 2, 2))
    assert worse["relative"] == pytest.approx(2 / spread.mean())
    assert 0 < worse["relative_low"] <= worse["relative"] <= worse["relative_high"]
    assert worse["won"] == 0 and worse["tied"] == 0
    assert mixed["won"] == pytest.approx(1 / 6) and mixed["tied"] == pytest.approx(4 / 6)
    assert mixed["low"] < 0 < mixed["high"]


def test_more_is_better_for_some_metrics():
    made = frame(ref=[0.5, 0.5], more=[0.6, 0.7])
    made["metric"] = made["metric"].replace("mean_delay", "utilization_cpu")
    assert paired_differences(made, "ref", "utilization_cpu")["won"].tolist() == [1.0]


def test_a_reference_of_zero_has_no_relative_difference():
    row = paired_differences(frame(ref=[0, 0], b=[1, 3]), "ref").iloc[0]
    assert row["difference"] == 2 and math.isnan(row["relative"]) and math.isnan(row["relative_low"])


def test_unpaired_frames_are_refused():
    made = frame(ref=[1, 2, 3], b=[1, 2, 3])
    made = made[~((made["policy"] == "b") & (made["episode"] == 2))]
    made.attrs = {"objective": "mean_delay"}
    with pytest.raises(InvalidParameter, match="nothing to pair"):
        paired_differences(made, "ref")
    with pytest.raises(UnknownName, match="reference"):
        paired_differences(made, "bf")
    with pytest.raises(InvalidParameter, match="objective"):
        made.attrs = {}
        summarize(made)


def test_settings_are_kept_apart():
    parts = []
    for servers, scale in ((10, 1.0), (20, 5.0)):
        part = frame(ref=[1 * scale, 2 * scale], b=[2 * scale, 4 * scale])
        part.insert(0, "servers", servers)
        parts.append(part)
    made = pd.concat(parts)
    made.attrs = parts[0].attrs
    summary = summarize(made).set_index(["servers", "policy"])
    assert summary.loc[(20, "b"), "mean"] == 15
    differences = paired_differences(made, "ref").set_index("servers")
    assert differences["relative"].tolist() == [1.0, 1.0]
    assert differences["difference"].tolist() == [1.5, 7.5]
