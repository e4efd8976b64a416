"""How claims are judged: comparisons of hand-made draws, every rule at its edges, and the wording."""

from __future__ import annotations

import math

import numpy as np
import pytest

from schedgym.core.problem import Statement
from schedgym.errors import UnknownName
from schedgym.evaluation.statistics import bootstrap_interval
from schedgym.papers import Run, judging
from schedgym.papers.judging import HOLDS, IN_PART, NOT_REPRODUCED, NOT_TOLD, POINTS, Effect
from tests.tables import table

nan = math.nan


def test_verdicts_of_several() -> None:
    assert judging.verdict_of([HOLDS, HOLDS]) == HOLDS
    assert judging.verdict_of([HOLDS, NOT_REPRODUCED]) == judging.verdict_of([IN_PART]) == IN_PART
    assert judging.verdict_of([HOLDS, IN_PART, NOT_REPRODUCED, NOT_REPRODUCED]) == IN_PART
    assert judging.verdict_of([HOLDS, NOT_REPRODUCED, NOT_REPRODUCED]) == NOT_REPRODUCED  # in less than half
    assert judging.verdict_of([NOT_REPRODUCED]) == NOT_REPRODUCED
    assert judging.verdict_of([HOLDS, NOT_TOLD, NOT_REPRODUCED, NOT_REPRODUCED]) == NOT_TOLD
    assert judging.verdict_of([HOLDS, NOT_TOLD]) == IN_PART and judging.verdict_of([NOT_TOLD]) == NOT_TOLD
    with pytest.raises(ValueError, match="without a case"):
        judging.verdict_of([])
    with pytest.raises(UnknownName, match="unknown verdict 'yes'"):
        judging.Judged("", "", "yes")


def test_comparisons_of_means() -> None:
    own, other = np.array([1.0, 4.0, 2.5]), np.array([2.0, 2.0, 1.0])
    found = judging.excess("a", own, other)
    low, high = bootstrap_interval(own, over=other)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, low - 1.0, high - 1.0))
    assert judging.excess("a", own, 1.5).value == pytest.approx(2.5 / 1.5 - 1.0)
    left = judging.excess("a", [1.0, nan, 3.0], [2.0, 1.0, 4.0])
    assert left.value == pytest.approx(4.0 / 6.0 - 1.0)
    alone = judging.excess("a", [3.0], [2.0])
    assert alone.value == 0.5 and math.isnan(alone.low)
    shares = judging.average("a", own - other)
    assert (shares.value, shares.low, shares.high) == pytest.approx(
        (2.5 / 3, *bootstrap_interval(own - other))
    )
    assert [entry.name for entry in judging.against("a", own, {"b": own, "c": other})] == [
        "a against b",
        "a against c",
    ]


@pytest.mark.parametrize("values", [([nan], [1.0]), ([1.0], [0.0])])
def test_nothing_to_compare_reproduces_nothing(values) -> None:
    found = judging.excess("a", *values)
    any_size = judging.between(-math.inf, math.inf)
    for rule in (judging.larger(), judging.lower(), judging.level(1.0), judging.at_most(1.0), any_size):
        said = judging.judge_claim("claim", [found], rule)
        assert said.verdict == NOT_REPRODUCED and said.measured == "a none to compare"


@pytest.mark.parametrize(("value", "low", "high", "verdict"), table(__file__, "test_what_is_level"))
def test_what_is_level(value, low, high, verdict) -> None:
    assert judging.level(0.1)(Effect("", value, low, high)) == verdict
    assert judging.between(-math.inf, 0.1)(Effect("", value, low, high)) == (
        HOLDS if value < 0.0 or high <= 0.1 else verdict
    )


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"), table(__file__, "test_what_is_larger_or_lower_by_a_share")
)
def test_what_is_larger_or_lower_by_a_share(value, low, high, verdict) -> None:
    found = Effect("", value, low, high)
    assert judging.larger(0.5, most=2.0)(found) == verdict
    assert judging.lower(0.5)(found) == judging.larger(0.5)(-found) == NOT_REPRODUCED
    assert judging.lower(0.5)(-found) == judging.larger(0.5)(found) == (HOLDS if value == 2.0 else verdict)
    assert judging.larger()(found) == (HOLDS if low != 0.0 else NOT_TOLD)  # too wide to show a small one


@pytest.mark.parametrize(("steps", "up", "down"), table(__file__, "test_what_grows_along_the_places"))
def test_what_grows_along_the_places(steps, up, down) -> None:
    rng = np.random.default_rng(0)
    values = np.array(steps)[:, np.newaxis] * rng.uniform(1.0, 9.0, size=10)  # draws differ more than places
    noisy = values * rng.uniform(0.99, 1.01, size=values.shape)
    for drawn in (values, noisy, noisy[:, :1]):
        assert judging.grows("a", drawn).verdict == up
        assert judging.grows("a", drawn, falls=True).verdict == down
    back = (judging.grows("a", values[[0, 2, 0]], falls=falls) for falls in (False, True))
    assert all(change.verdict == NOT_REPRODUCED for change in back)
    assert judging.grows("a", values).value == pytest.approx(steps[-1] / steps[0] - 1.0)
    assert judging.grows("a", values, POINTS).value == pytest.approx((values[-1] - values[0]).mean())


def test_numbers_are_told_in_percent_points_or_as_factors() -> None:
    assert str(Effect("", 0.128, 0.1, 1.2)) == "+12.8% (+10.0 to +120.0)"
    assert str(Effect("", 1.0, -0.0004, 12.0, "at 4 servers")) == "2 times (1 to 13) at 4 servers"
    assert str(Effect("", 1500.4)) == "1,501 times"
    assert str(-Effect("", 0.02, 0.0004, 0.03, unit=POINTS)) == "-2.0 points (-3.0 to 0.0)"


def test_few_comparisons_are_told_one_by_one_and_many_as_ranges() -> None:
    def said(names, count: int) -> str:
        found = [Effect(name, i / 100, place=f"at {i}") for i in range(count) for name in names]
        return judging.judge_claim("", found, judging.larger(0.02), what="delay", more="more").measured

    assert said("ab", 2) == "delay: a 0.0% at 0, +1.0% at 1; b 0.0% at 0, +1.0% at 1; more"
    one = "0.0% to +3.0%, as claimed in 2 of 4 cases, in part in 1"
    ranges = f"a {one}; b {one}"
    assert said("ab", 4) == f"delay: {ranges}; more"
    counted = "as claimed in 7 of 21 cases, in part in 7"
    assert said("abcdefg", 3) == f"delay: from a 0.0% at 0 to a +2.0% at 2, {counted}; more"
    same = judging.judge_claim("", [Effect("a", 0.1)] * 7, judging.level(0.1))
    assert same.verdict == HOLDS and same.measured == "a +10.0%, as claimed in 7 of 7 cases"


@pytest.mark.parametrize(
    ("rule", "stated", "value", "low", "high", "verdict"), table(__file__, "test_rules_at_their_edges")
)
def test_rules_at_their_edges(rule, stated, value, low, high, verdict) -> None:
    assert getattr(judging, rule)(*stated)(Effect("", value, low, high)) == verdict


def test_many_settings_are_judged_together() -> None:
    """By the mean over them, which none of them may contradict; each draw is in all settings."""
    rng = np.random.default_rng(0)
    other = rng.uniform(50.0, 150.0, size=(6, 8))
    own = other * rng.normal(0.95, 0.06, size=other.shape)  # significant in all together, not in each

    def judged(own: np.ndarray, other: np.ndarray) -> Effect:
        pairs = {f"at {i}": pair for i, pair in enumerate(zip(own, other, strict=True))}
        whole, cases = judging.excess_overall("a", pairs)
        return judging.pool(whole, cases, judging.lower(), judging.larger())

    found = judged(own, other)
    assert found.verdict == HOLDS and any(case.verdict != HOLDS for case in found.cases)
    assert found.value == pytest.approx(np.mean([case.value for case in found.cases]))
    scales = np.arange(1.0, 7.0)[:, np.newaxis]  # settings count equally, whatever their size
    assert judged(own * scales, other * scales).value == pytest.approx(found.value)
    own[0] = 1.02 * other[0]
    found = judged(own, other)
    assert found.verdict == IN_PART and found.contrary == 1 and "contrary in 1)" in str(found)
    own[:3] = 4.0 * other[:3]  # the mean is contrary, three of six settings are not
    own[3:] = 0.9 * other[3:]
    assert judged(own, other).verdict == IN_PART
    assert not judged(own[:1], other[:1]).cases  # one setting alone
    assert judged(np.full((2, 3), nan), other[:2, :3]).verdict == NOT_REPRODUCED


def test_what_grows_generally_grows_in_nine_of_ten_steps() -> None:
    draws = np.linspace(1.0, 1.2, 5)
    rising = np.arange(1.0, 12.0)[:, np.newaxis] * draws
    back = rising.copy()
    back[4] = 2.0 * draws  # one of ten steps
    found = judging.grows("a", [rising, back], generally=True, place="over 2 settings")
    assert found.verdict == HOLDS and found.place == "over 2 settings (19 of 20 steps so)"
    assert judging.grows("a", [rising, back]).verdict == IN_PART
    back[7] = 3.0 * draws
    assert judging.grows("a", back, generally=True).verdict == IN_PART
    assert judging.grows("a", back[::-1], generally=True).verdict == NOT_REPRODUCED
    assert judging.grows("a", -back, POINTS, generally=True, falls=True).verdict == IN_PART


def test_statements_are_read_in_all_settings() -> None:
    """The change of the metric against each rival, whichever way is better."""
    played = Run("tiny").play(
        "schedgym/QueueDelay-v0", ["bf-exec", "fcfs"], 3, {"servers": [2, 4]}, parameters={"tasks": 60}
    )
    for metric in ("mean_delay", "utilization_cpu_backlog"):
        rows = played.differences("fcfs", metric)
        found = judging.judge_better(played, "claim", Statement("", "bf-exec", ("fcfs",), metric))
        least, most = sorted(100 * rows.relative)
        assert f" overall ({least:+.1f}% to {most:+.1f}%, as claimed in " in found.measured
        assert found.measured.startswith(f"{metric.replace('_', ' ')}: bf-exec against fcfs ")
    much = judging.judge_better(played, "claim", Statement("", "bf-exec", ("fcfs",), "mean_delay", 0.999))
    assert much.verdict != HOLDS  # far more than there is
    with pytest.raises(UnknownName, match="unknown policy 'ff'"):
        judging.judge_better(played, "claim", Statement("", "bf-exec", ("ff",), "mean_delay"))
