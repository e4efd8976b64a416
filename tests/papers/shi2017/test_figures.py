"""The figures of shi2017: all are there, what is written agrees with what is drawn, numbers recomputed."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

from schedgym.core.policy import make_policy
from schedgym.evaluation.episodes import make_env, play
from schedgym.evaluation.runner import evaluate
from schedgym.papers import list_claims, list_figures
from schedgym.papers.judging import HOLDS, IN_PART, NOT_JUDGED, NOT_REPRODUCED, Effect, excess, larger
from schedgym.papers.shi2017 import runs
from schedgym.papers.shi2017.instances import OPEN
from tests.long import long

LIMITS, MAR, SIZING, TASKS = (OPEN[name] for name in ("LIMITS", "MAR", "SIZING", "TASKS"))

pytestmark = long


def test_remarks_name_the_defaults_after_those_of_the_run(outcomes) -> None:
    first, second, *_ = outcomes["shi2017/fig6"].remarks
    assert first.startswith("planners are compared on 5 jobs")
    assert second == f"drawn: {SIZING.default}, {MAR.default}; number of tasks: {TASKS.default}"


def points(outcome, title: str, label: str) -> dict:
    """x -> y of a series."""
    (panel,) = [panel for panel in outcome.panels if panel.title == title]
    (series,) = [series for series in panel.series if series.label == label]
    return dict(zip(series.x, series.y, strict=True))


def test_statements_on_a_figure_are_judged_where_it_is_drawn(outcomes) -> None:
    """All that are named after a panel; only ours is not."""
    drawn = {judged.name for outcome in outcomes.values() for judged in outcome.judged}
    named = {entry.name for entry in list_claims("shi2017") if re.match(r"figure-[456]", entry.short)}
    assert named - drawn == {"shi2017/figure-4a-equal-shares"}


@pytest.mark.parametrize("choice", list(SIZING.choices))
def test_one_job_against_other_runs(run, choice) -> None:
    """JCT and vCPU are those of runs of their own, by equal shares and by Eq. 16, without servers' limits."""
    (entry,) = list_figures("shi2017/fig4")
    outcome = entry.make(run.alone(entry.name, {SIZING.name: choice}))
    end = SIZING.choices[choice]
    names = {"TaPRA": "tapra", "TaPRA-fast": "tapra-fast", "Min-Min": f"min-min{end}", "GSA": f"gsa{end}"}
    size = {"tasks": 10, "arity": 4, "server_caps": False}
    frame = evaluate("single-job", names, 2, parameters=size, progress=False)
    for title, metric in (("(a) JCT", "jct"), ("(b) vCPU", "allocated")):
        for label in names:
            rows = frame[(frame["policy"] == label) & (frame["metric"] == metric)]
            assert points(outcome, title, label)[10] == pytest.approx(rows["value"].mean())
    lower = points(outcome, "(a) JCT", "lower bound")
    assert all(0 < lower[x] <= points(outcome, "(a) JCT", "TaPRA")[x] * (1 + 1e-9) for x in (5, 10))


def test_servers_of_fat_trees(outcomes) -> None:
    """Of 2 and 4 ports: 2 and 16 servers; the second point is the last of Fig. 4, as both have 10 tasks."""
    one, other = outcomes["shi2017/fig5"], outcomes["shi2017/fig4"]
    for title in ("(a) JCT", "(b) vCPU"):
        for label in ("TaPRA", "TaPRA-fast", "Min-Min"):
            found = points(one, title, label)
            assert list(found) == [2, 16] and found[16] == points(other, title, label)[10]
    (times,) = [panel for panel in one.panels if panel.title.startswith("(c)")]
    assert times.y_scale == "log" and all(y > 0 for series in times.series for y in series.y)


@pytest.mark.parametrize("choice", list(MAR.choices))
def test_many_jobs_against_other_runs(run, choice) -> None:
    (entry,) = list_figures("shi2017/fig6")
    own = run.alone(entry.name, {MAR.name: choice})
    outcome = entry.make(own)
    end = "-mar" if MAR.choices[choice] else ""
    averages = "(a) average JCT, {} jobs".format
    for drc, name in ((True, ""), (False, "\nNDRC")):
        for jobs, title, planner, names in (
            (5, averages(5), "TaPRA-fast", {"OnTaPRA": "ontapra", "LLF": "llf-mar"}),
            (12, f"{averages(12)}, TaPRA-fast", "TaPRA-fast", {"OnTaPRA": "ontapra", "SLF": f"slf{end}"}),
        ):
            parameters = {"jobs": jobs, "drc": drc, "max_time": runs.LONGEST}
            frame = evaluate("parallel-jct", names, 2, parameters=parameters, progress=False)
            for scheduler in names:
                rows = frame[(frame["policy"] == scheduler) & (frame["metric"] == "average_jct")]
                bars = points(outcome, title, planner)
                assert bars[scheduler + name] == pytest.approx(rows["value"].mean())
        times = [
            e.seconds
            for e in runs.play_planners(own).observed
            if e.policy == "SLF GSA" and e.setting["drc"] is drc
        ]
        # the mean of two values
        assert points(outcome, "(b) running time, 5 jobs", "GSA")[f"SLF{name}"] == pytest.approx(
            np.mean(times)
        )
    for played in (runs.play_planners(own), runs.play_schedulers(own)):
        assert not played.frame[played.frame["metric"] == "truncated"]["value"].any()


def test_readings_share_what_they_leave_alone(run) -> None:
    """Another way to size the rivals' tasks changes their plans, and not those of TaPRA."""
    ways = [runs.by_tasks(run.alone("", {SIZING.name: choice})) for choice in SIZING.choices]
    for label in ("TaPRA", "TaPRA-fast", "Min-Min", "GSA"):
        one, other = (way.metric("jct", 10)(label).tolist() for way in ways)
        assert (one == other) is label.startswith("TaPRA")
    taken = [way.seconds(10)("TaPRA").tolist() for way in ways]
    assert taken[0] == taken[1]  # of one run


def test_limits_of_the_servers_are_as_printed_by_default(run) -> None:
    """With a limit for each server no plan gives its tasks more than it has."""
    for choice, caps in LIMITS.choices.items():
        read = run.alone("", {LIMITS.name: choice})
        own = [sweep(read).played.parameters["server_caps"] for sweep in (runs.by_tasks, runs.by_servers)]
        assert own == [caps] * 2
    assert LIMITS.choices[LIMITS.default] is False
    default, named = (runs.by_tasks(run.alone("", own)) for own in ({}, {LIMITS.name: "limits as printed"}))
    assert default.metric("jct", 10)("TaPRA").tolist() == named.metric("jct", 10)("TaPRA").tolist()


def test_schedulers_that_share_equally() -> None:
    """A task has its server's, rack's, pod's or data centre's limit over the number of tasks there."""
    env = make_env("parallel-jct", {"jobs": 1, "arity": 4, "drc": False})
    for episode, planner in itertools.product(range(3), ("mm-ga", "gsa")):
        play(env, make_policy(f"parallel-jct/slf-{planner}-equal"), episode=episode)
        record = env.record()
        assert len(np.unique(record.job)) == len(record.job)  # one piece per task
        for server, amount in zip(record.server, record.amount.sum(axis=1), strict=True):
            shares = []
            for size, limit in ((1, 10.0), (2, 0.3 * 20.0), (4, 0.2 * 40.0), (16, 0.2 * 160.0)):
                shares.append(limit / np.sum(record.server // size == server // size))
            assert amount == pytest.approx(min(shares))


def test_intervals_of_medians() -> None:
    """Of ten values the second and the ninth: 1 - 2 (1 + 10) / 2^10 = 97.9%, and the third is too far in."""
    assert runs.median_interval(list(range(10, 0, -1))) == (2.0, 9.0)
    assert runs.median_interval([3, 1, 2, 6, 5, 4]) == (1.0, 6.0)
    assert all(math.isnan(end) for end in runs.median_interval([1, 2, 3, 4, 5]))
    count = 50
    low, high = runs.median_interval(np.arange(1, count + 1))
    for cut, covered in ((int(low), True), (int(low) + 1, False)):
        outside = 2 * sum(math.comb(count, k) for k in range(cut)) / 2**count
        assert (outside <= 0.05) is covered
    assert high == count + 1 - low


def test_stated_numbers() -> None:
    """Half of it is in part, twice as much is another number; an interval may contain it."""

    def verdict(percent: float, *found: float) -> str:
        return runs.as_stated(percent)(Effect("", *(share / 100 for share in found)))

    assert verdict(100, 101, 99, 103) == verdict(100, 95, 85, 105) == verdict(100, 199, 150, 210) == HOLDS
    assert verdict(100, 95, 90, 99) == verdict(100, 50, 40, 60) == IN_PART
    assert verdict(100, 49, 40, 60) == verdict(100, 200, 190, 210) == NOT_REPRODUCED
    assert verdict(100, 120, -10, 250) == verdict(5, -5, -6, -4) == NOT_REPRODUCED


def test_comparisons() -> None:
    """By the number that belongs to either label, of means as of times."""
    rng = np.random.default_rng(0)
    base = rng.uniform(1, 2, size=12)
    values = {"a x": 2.05 * base * rng.uniform(0.99, 1.01, size=12), "b x": base, "c x": 9 * base}

    def verdicts(stated, make=excess) -> list[str]:
        found = runs.against(values.__getitem__, ["a x", "c x"], ["b x"], stated, make)
        assert [entry.name for entry in found] == ["a x against b x", "c x against b x"]
        return [entry.verdict for entry in found]

    for make in (excess, runs.medians_of):
        assert verdicts({"a": 100, "c": 800}, make) == verdicts(None, make) == [HOLDS, HOLDS]
        assert verdicts({"a": 200, "c": 8900}, make) == [IN_PART, NOT_REPRODUCED]
        assert verdicts({"b": 100}, make) == verdicts(100, make) == [HOLDS, NOT_REPRODUCED]
        (less,) = runs.against(values.__getitem__, ["b x"], ["a x"], make=make)
        assert less.verdict == NOT_REPRODUCED
    few = runs.medians_of("", np.array([2.0, 3.0, 7.0]), np.ones(3))
    assert str(few) == "3 times"
    timed = [runs.found_by([few], larger(by), timed=True).verdict for by in (2.0, 3.0)]
    assert timed == [NOT_JUDGED] * 2  # whether a compiled program is as slow as the paper says, or not
    finding = runs.found_by(runs.at("home", [few]), larger(3.0), jobs=5)
    assert finding.verdict == IN_PART and finding.figures == {"at home": [2.0, None, None], "jobs": 5}


def test_many_places_are_judged_together(run) -> None:
    """By the mean over them, which none of them may contradict beyond what counts as the same."""
    base = np.linspace(1.0, 2.0, 12)

    def verdict(*excess: float) -> str:
        reads = [(f"{i}", {"a": base * (1 + share), "b": base}.__getitem__) for i, share in enumerate(excess)]
        found = runs.Compare(pairs=[(["a"], ["b"])], within=0.05).judge(run, reads, "")
        assert [*found.figures] == [f"a against b at {i}" for i in range(len(excess))]
        return found.verdict

    assert verdict(0.065, 0.016, 0.011) == IN_PART and verdict(0.04, 0.01, -0.04) == HOLDS
    assert verdict(0.2, 0.2, 0.01) == NOT_REPRODUCED
