"""Bootstrap intervals against scipy's, coverage, degenerate inputs, and the tables made of them."""

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from schedgym.core.problem import Metric
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.comparison import Comparison
from schedgym.evaluation.statistics import (
    Estimate,
    bootstrap_interval,
    estimate,
    improvements,
    interquartile_mean,
    judge_interval,
    performance_profile,
    performance_ratios,
    stratified_interval,
    two_level_interval,
)
from tests.evaluations import evaluation_of
from tests.tables import table


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
    assert bootstrap_interval(3 * base, over=base) == pytest.approx((3.0, 3.0))
    assert all(math.isnan(x) for x in bootstrap_interval(base, over=[0, 0, 0, 1]))


def frame(**policies):
    """Rows of mean_delay by policy, with a bound of 1 in every episode."""
    rows = [
        {"policy": policy, "episode": e, "seed": 0, "metric": metric, "value": value}
        for policy, delays in policies.items()
        for e, delay in enumerate(delays)
        for metric, value in (("mean_delay", float(delay)), ("bound", 1.0))
    ]
    return pd.DataFrame(rows)


def results(**policies):
    return evaluation_of(frame(**policies))


def test_summaries():
    table = results(a=[2, 4, 6], b=[3, 3, 3]).summary().set_index("policy")
    assert table.loc["a", "mean"] == 4 and table.loc["a", "ratio"] == 4
    assert table.loc["a", "low"] < 4 < table.loc["a", "high"]
    assert (table.loc["b", "low"], table.loc["b", "high"]) == (3, 3)
    assert list(table["episodes"]) == [3, 3]
    with pytest.raises(UnknownName, match="metric"):
        results(a=[1, 2]).summary("utilization_cpu")


def test_differences_are_paired():
    spread = np.array([10.0, 100.0, 1000.0, 50.0, 500.0, 5.0])
    made = results(ref=spread, worse=spread + 2, mixed=spread + [1, -1, 0, 0, 0, 0])
    table = made.differences("ref").set_index("policy")
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
    assert evaluation_of(made).differences("ref", "utilization_cpu")["won"].tolist() == [1.0]


def test_a_reference_of_zero_has_no_relative_difference():
    row = results(ref=[0, 0], b=[1, 3]).differences("ref").iloc[0]
    assert row["difference"] == 2 and math.isnan(row["relative"]) and math.isnan(row["relative_low"])


def test_unpaired_frames_are_refused():
    made = frame(ref=[1, 2, 3], b=[1, 2, 3])
    made = evaluation_of(made[~((made["policy"] == "b") & (made["episode"] == 2))])
    with pytest.raises(InvalidParameter, match="nothing to pair"):
        made.differences("ref")
    with pytest.raises(UnknownName, match="reference"):
        made.differences("bf")


def test_settings_are_kept_apart():
    parts = []
    for servers, scale in ((10, 1.0), (20, 5.0)):
        part = frame(ref=[1 * scale, 2 * scale], b=[2 * scale, 4 * scale])
        part.insert(0, "servers", servers)
        parts.append(part)
    made = evaluation_of(pd.concat(parts), swept=("servers",))
    summary = made.summary().set_index(["servers", "policy"])
    assert summary.loc[(20, "b"), "mean"] == 15
    differences = made.differences("ref").set_index("servers")
    assert differences["relative"].tolist() == [1.0, 1.0]
    assert differences["difference"].tolist() == [1.5, 7.5]


# aggregates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 101])
def test_the_interquartile_mean_is_scipys_and_by_hand(count):
    values = np.random.default_rng(count).lognormal(size=count)
    cut = count // 4
    middle = sorted(values)[cut : count - cut]
    assert interquartile_mean(values) == pytest.approx(sum(middle) / len(middle), rel=1e-14)
    assert interquartile_mean(values) == scipy.stats.trim_mean(values, 0.25)


def test_the_interquartile_mean_leaves_out_what_is_extreme():
    assert interquartile_mean([1, 2, 3, 1e9]) == 2.5
    assert interquartile_mean([0, 2, 4, math.inf]) == 3
    assert interquartile_mean([1, 2, math.inf, math.inf]) == math.inf
    assert math.isnan(interquartile_mean([1, 2, 3, math.nan]))
    assert math.isnan(interquartile_mean([]))
    table = np.arange(12.0).reshape(3, 4)
    assert interquartile_mean(table, axis=1).tolist() == [1.5, 5.5, 9.5]
    table[1, 2] = math.nan
    assert np.isnan(interquartile_mean(table, axis=1)).tolist() == [False, True, False]
    table[1, 2] = 6.0
    assert interquartile_mean(table) == 5.5


def exact(outcomes, confidence):
    """Quantiles of equally likely outcomes, and the slack that two neighbours leave a sample's quantile."""
    ordered = np.sort(outcomes)
    shares = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    low, high = np.quantile(ordered, shares - 0.01) - 1e-9, np.quantile(ordered, shares + 0.01) + 1e-9
    return low, high


@pytest.mark.parametrize("statistic", [interquartile_mean, np.mean])
def test_the_stratified_bootstrap_against_every_sample_there_is(statistic):
    strata = [[1.0, 4.0, 9.0], [20.0, 50.0], [7.0]]
    draws = [itertools.product(stratum, repeat=len(stratum)) for stratum in strata]
    outcomes = [statistic(np.concatenate(sample)) for sample in itertools.product(*draws)]
    assert len(outcomes) == 27 * 4
    low, high = exact(outcomes, 0.8)
    interval = stratified_interval(strata, statistic, 0.8, resamples=20_000)
    assert (low <= interval).all() and (interval <= high).all()


def test_the_two_level_bootstrap_against_every_sample_there_is():
    table = np.array([[1.0, 5.0, 2.0], [4.0, 9.0, 7.0], [0.0, 3.0, 1.0]])
    base = np.array([1.0, 3.0, 2.0])
    means, ratios, middles = [], [], []
    for seeds in itertools.product(range(3), repeat=3):
        for episodes in itertools.product(range(3), repeat=3):
            sample = table[list(seeds)][:, list(episodes)]
            means.append(sample.mean())
            ratios.append(sample.mean() / base[list(episodes)].mean())
            middles.append(np.median(sample.mean(axis=1)))
    for outcomes, interval in (
        (means, two_level_interval(table, confidence=0.8, resamples=40_000)),
        (ratios, two_level_interval(table, base, confidence=0.8, resamples=40_000)),
        (means, stratified_interval([table], np.mean, 0.8, resamples=40_000)),
        (middles, two_level_interval(table, confidence=0.8, resamples=40_000, statistic=np.median)),
    ):
        low, high = exact(outcomes, 0.8)
        assert (low <= interval).all() and (interval <= high).all()


def test_one_stratum_is_scipys_percentile_bootstrap():
    values = np.random.default_rng(3).lognormal(size=40)
    ours = stratified_interval([values], interquartile_mean, resamples=20_000)
    theirs = scipy.stats.bootstrap(
        (values,),
        lambda x, axis: scipy.stats.trim_mean(x, 0.25, axis=axis),
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.05 * (theirs.high - theirs.low))


def test_an_interval_is_judged_by_what_is_better():
    for low, high, less, more in table(__file__, "test_an_interval_is_judged_by_what_is_better"):
        assert (judge_interval(low, high), judge_interval(low, high, "max")) == (less, more)


def test_degenerate_aggregates():
    nothing = [[[1.0]], [], [[1.0], [2.0]], [[1.0, math.nan]], [np.ones((1, 9))]]
    for strata in nothing:
        assert all(math.isnan(x) for x in stratified_interval(strata))
    assert stratified_interval([[3.0, 3.0], [3.0]]) == (3.0, 3.0)
    assert all(math.isnan(x) for x in stratified_interval([[1.0, math.inf, math.inf]], np.mean))
    assert all(math.isnan(x) for x in two_level_interval([[1.0], [2.0], [4.0]]))  # one episode
    assert all(math.isnan(x) for x in two_level_interval([[1.0, 2.0], [3.0, 4.0]], [0.0, 1.0]))
    assert all(math.isnan(x) for x in two_level_interval([[1.0, math.nan], [3.0, 4.0]]))
    values = np.arange(9.0)
    assert stratified_interval([values]) == stratified_interval([list(values)])
    for bad in ({"confidence": 1.0}, {"resamples": 0}):
        for call in (stratified_interval, two_level_interval):
            with pytest.raises(InvalidParameter):
                call([[1.0, 2.0], [2.0, 3.0]], **bad)
    with pytest.raises(InvalidParameter, match="table"):
        two_level_interval([1.0, 2.0])
    with pytest.raises(InvalidParameter, match="over"):
        two_level_interval([[1.0, 2.0], [2.0, 3.0]], [1.0])
    with pytest.raises(InvalidParameter, match="strata"):
        stratified_interval([np.ones((2, 2, 2))])


def test_ratios_to_the_best_of_each_episode():
    table = np.array([[2.0, 1.0, 4.0], [0.0, 0.0, 3.0], [5.0, math.nan, 5.0]])
    expected = [[2, 1, 4], [1, 1, math.inf], [1, math.nan, 1]]
    assert np.array_equal(performance_ratios(table), expected, equal_nan=True)
    expected = [[2, 4, 1], [math.inf, math.inf, 1], [1, math.nan, 1]]
    assert np.array_equal(performance_ratios(table, "max"), expected, equal_nan=True)
    assert performance_ratios(np.zeros((2, 2)), "max").tolist() == [[1, 1], [1, 1]]
    assert performance_ratios(np.empty((0, 3))).shape == (0, 3)
    with pytest.raises(InvalidParameter, match="from 0"):
        performance_ratios(np.array([[-1.0, 2.0]]))
    with pytest.raises(InvalidParameter, match="better"):
        performance_ratios(table, "low")


def test_profiles_are_shares_by_hand():
    rng = np.random.default_rng(7)
    strata = [1 + rng.exponential(size=9), 1 + rng.exponential(size=(3, 4)), [math.inf]]
    thresholds = np.array([0.9, 1.0, 1.5, 2.0, 8.0, 1e9])
    share, low, high = performance_profile(strata, thresholds)
    everything = np.concatenate([np.ravel(stratum) for stratum in strata])
    by_hand = [sum(x <= t for x in everything) / len(everything) for t in thresholds]
    assert share == pytest.approx(by_hand)
    assert (low <= share).all() and (share <= high).all()
    assert (low >= 0).all() and (high <= 1).all() and (np.diff(low) >= 0).all()
    assert low[3] < share[3] < high[3]


@pytest.mark.parametrize("thresholds", [[1.8], np.linspace(1.0, 2.6, 61)])
def test_the_band_of_a_profile_is_the_bootstrap_of_a_share(thresholds):
    """Also with more thresholds than values, which takes another way."""
    rng = np.random.default_rng(8)
    ratios, table = 1 + rng.exponential(size=40), 1 + rng.exponential(size=(6, 1)) + rng.random(size=(6, 20))
    _, low, high = performance_profile([ratios, table], thresholds, 0.9, resamples=20_000)
    middle = len(thresholds) // 2
    met = [(values <= thresholds[middle]).astype(float) for values in (ratios, table)]
    expected = stratified_interval(met, np.mean, 0.9, resamples=20_000)
    assert (low[middle], high[middle]) == pytest.approx(expected, abs=0.013)
    assert (np.diff(low) >= 0).all() and (np.diff(high) >= 0).all()


def test_profiles_without_a_band():
    share, low, high = performance_profile([[1.0], [3.0]], [1.0, 2.0, 3.0])
    assert share.tolist() == [0.5, 0.5, 1.0] and np.isnan(low).all() and np.isnan(high).all()
    with pytest.raises(InvalidParameter, match="at least one"):
        performance_profile([[]], [1.0])


# trainings against baselines -------------------------------------------------------------------------


def test_estimates_of_trainings_resample_both_levels_those_of_one_its_episodes():
    table = np.random.default_rng(7).lognormal(size=(9, 12))
    base = np.arange(1.0, 13.0)
    middle = estimate(table, statistic=interquartile_mean)
    assert middle.value == interquartile_mean(table.mean(axis=1))
    assert (middle.low, middle.high) == two_level_interval(table, statistic=interquartile_mean)
    share = estimate(table, base)
    assert share.value == pytest.approx(table.mean() / base.mean(), rel=1e-14)
    assert (share.low, share.high) == two_level_interval(table, base)
    one = table[:1]
    assert estimate(one) == Estimate(one.mean(), *bootstrap_interval(one[0]))
    assert estimate(one, base) == Estimate(one.mean() / base.mean(), *bootstrap_interval(one[0], over=base))
    assert math.isnan(estimate(np.empty((3, 0))).value) and math.isnan(estimate(one, 0 * base).value)


@pytest.mark.parametrize("better", ["min", "max"])
def test_the_probability_of_improvement_is_mann_whitneys_in_each_episode(better):
    """Values are few, so that many are equal."""
    rng = np.random.default_rng(8)
    table, rival = rng.integers(0, 4, size=(6, 50)).astype(float), rng.integers(0, 4, size=50).astype(float)
    first, second = ("rival", "own") if better == "min" else ("own", "rival")
    expected = []
    for episode in range(50):
        own = {"own": table[:, episode], "rival": rival[[episode]]}
        greater = scipy.stats.mannwhitneyu(own[first], own[second], method="asymptotic").statistic
        expected.append(greater / 6)
    assert improvements(table, rival, 1.0 if better == "min" else -1.0).mean(axis=0) == pytest.approx(
        expected
    )


def test_trainings_are_compared_with_the_best_baseline():
    table = np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 9.0]])
    rivals = {"far": np.array([9.0, 9.0]), "near": np.array([2.0, 4.0])}

    def improvement(table, rivals, better="min"):
        tables = {label: row[np.newaxis] for label, row in rivals.items()}
        return Comparison(Metric("m", "", "", better), tables | {"own": table}).improvement(
            ["own"], [*rivals]
        )

    found = improvement(table, rivals)
    assert (found.rival, found.rival_mean) == ("near", 3.0)
    assert found.value.value == interquartile_mean([2.0, 2.0, 6.0])
    assert found.difference.value == interquartile_mean([-1.0, -1.0, 3.0])
    assert found.relative.value == pytest.approx(interquartile_mean([-1 / 3, -1 / 3, 1.0]))
    assert found.probability.value == pytest.approx((1 + 1 + 0.5 + 1 + 0 + 0) / 6)
    assert (found.probability.low, found.probability.high) == two_level_interval(
        improvements(table, rivals["near"])
    )
    more = improvement(table, rivals, "max")
    assert more.rival == "far" and more.probability.value == pytest.approx(0.5 / 6)
    negative = improvement(-table, {"near": -rivals["near"]}, "max")
    assert negative.relative.value == pytest.approx(-found.relative.value), "a share of the rival's size"
    nothing = improvement(table, {"zero": np.zeros(2)})
    assert math.isnan(nothing.relative.value) and nothing.difference == nothing.value
