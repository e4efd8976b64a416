"""The figures of shi2017: all are there, what is written agrees with what is drawn, numbers recomputed."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pandas
import pytest

from schedgym.core.policy import make_policy
from schedgym.evaluation.runner import evaluate, make_env, play
from schedgym.papers import Run, list_figures, make_figure
from schedgym.papers.judging import HOLDS, IN_PART, NOT_REPRODUCED
from schedgym.papers.shi2017 import figures
from schedgym.papers.shi2017.figures import median_interval
from tests.long import long

pytestmark = long

NAMES = ["shi2017/fig4", "shi2017/fig5", "shi2017/fig6"]


@pytest.fixture(scope="module")
def run() -> Run:
    """Shared by all tests, so that every experiment is run once."""
    return Run("tiny", progress=False)


@pytest.fixture(scope="module")
def outcomes(run):
    return {entry.name: entry.make(run) for entry in list_figures("shi2017")}


def points(outcome, title: str, label: str) -> dict:
    """x -> y of a series."""
    (panel,) = [panel for panel in outcome.panels if panel.title == title]
    (series,) = [series for series in panel.series if series.label == label]
    return dict(zip(series.x, series.y, strict=True))


def test_all_figures_are_registered() -> None:
    assert [entry.name for entry in list_figures("shi2017")] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_files_agree_with_the_panels(name, run, outcomes, tmp_path) -> None:
    (entry,) = list_figures(name)
    outcome = outcomes[name]
    content = make_figure(entry, run, tmp_path)
    assert (tmp_path / content["files"]["png"]).stat().st_size > 10_000
    assert json.loads((tmp_path / f"{entry.stem}.json").read_text()) == content
    assert content["sizes"] == outcome.sizes and "draws of" in content["sizes"]
    assert len(content["claims"]) == len(outcome.judged) > 10
    assert len({judged["claim"] for judged in content["claims"]}) == len(outcome.judged)
    assert len(content["remarks"]) >= 5
    table = pandas.read_csv(tmp_path / content["files"]["csv"])
    drawn = [
        (panel.title, series.label, str(x), y)
        for panel in outcome.panels
        for series in panel.series
        for x, y in zip(series.x, series.y, strict=True)
    ]
    written = list(zip(table["panel"], table["series"], table["x"].astype(str), table["y"], strict=True))
    assert [row[:3] for row in written] == [row[:3] for row in drawn]
    assert [row[3] for row in written] == pytest.approx([row[3] for row in drawn], rel=1e-5)


def test_one_job_against_other_runs(outcomes) -> None:
    """JCT and vCPU are those of runs of their own, by Eq. 16 and by equal shares."""
    outcome = outcomes["shi2017/fig4"]
    for way, suffix in (("Eq. 16 for all", ""), ("equal shares for the rivals", "-equal")):
        names = {"TaPRA": "tapra", "TaPRA-fast": "tapra-fast", "Min-Min": f"min-min{suffix}"}
        frame = evaluate("single-job", names, 2, parameters={"tasks": 10, "arity": 4}, progress=False)
        for letter, metric in (("a", "jct"), ("b", "allocated")):
            for label in names:
                rows = frame[(frame["policy"] == label) & (frame["metric"] == metric)]
                assert points(outcome, f"({letter}) {way}", label)[10] == pytest.approx(rows["value"].mean())
        lower = points(outcome, f"(a) {way}", "lower bound")
        assert all(0 < lower[x] <= points(outcome, f"(a) {way}", "TaPRA")[x] * (1 + 1e-9) for x in (5, 10))


def test_servers_of_fat_trees(outcomes) -> None:
    """Of 2 and 4 ports: 2 and 16 servers; the second point is the last of Fig. 4, as both have 10 tasks."""
    one, other = outcomes["shi2017/fig5"], outcomes["shi2017/fig4"]
    for title in ("(a) Eq. 16 for all", "(b) equal shares for the rivals"):
        for label in ("TaPRA", "TaPRA-fast", "Min-Min"):
            found = points(one, title, label)
            assert list(found) == [2, 16] and found[16] == points(other, title, label)[10]
    times = [panel for panel in one.panels if panel.title.startswith("(c)")]
    assert [panel.y_scale for panel in times] == ["log", "log"]
    assert all(y > 0 for panel in times for series in panel.series for y in series.y)


def test_many_jobs_against_other_runs(run, outcomes) -> None:
    outcome = outcomes["shi2017/fig6"]
    for drc, name in ((True, "DRC"), (False, "NDRC")):
        for jobs, title, names in (
            (5, f"(a) {name}, 5 jobs", {"OnTaPRA": "ontapra", "LLF": "llf-mar"}),
            (12, f"(a) {name}, 12 jobs, TaPRA-fast", {"OnTaPRA": "ontapra", "LLF": "llf-mar"}),
            (12, f"(a) {name}, 12 jobs, TaPRA-fast", {"FCFS": "fcfs", "SLF": "slf"}),
        ):
            own = {"jobs": jobs, "drc": drc, "max_time": figures.LONGEST}
            frame = evaluate("parallel-jct", names, 2, parameters=own, progress=False)
            label = "TaPRA-fast, MAR test in OnTaPRA only" if "FCFS" in names else "TaPRA-fast"
            for scheduler in names:
                rows = frame[(frame["policy"] == scheduler) & (frame["metric"] == "average_jct")]
                assert points(outcome, title, label)[scheduler] == pytest.approx(rows["value"].mean())
        seconds = [
            e.seconds
            for e in figures._by_planner(run).observed
            if e.policy == "SLF GSA" and e.setting["drc"] is drc
        ]
        # the mean of two values
        assert points(outcome, f"(b) {name}, 5 jobs", "GSA")["SLF"] == pytest.approx(np.mean(seconds))
    frame = figures._by_planner(run).frame
    assert not frame[frame["metric"] == "truncated"]["value"].any()


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
    assert median_interval(list(range(10, 0, -1))) == (2.0, 9.0)
    assert median_interval([3, 1, 2, 6, 5, 4]) == (1.0, 6.0)
    assert all(math.isnan(end) for end in median_interval([1, 2, 3, 4, 5]))
    count = 50
    low, high = median_interval(np.arange(1, count + 1))
    for cut, covered in ((int(low), True), (int(low) + 1, False)):
        outside = 2 * sum(math.comb(count, k) for k in range(cut)) / 2**count
        assert (outside <= 0.05) is covered
    assert high == count + 1 - low


def test_verdicts() -> None:
    """Larger by the factor stated, by name of either, and not far more, of means as of times."""
    rng = np.random.default_rng(0)
    base = rng.uniform(1, 2, size=12)
    values = {"a": 2.05 * base * rng.uniform(0.99, 1.01, size=12), "b": base, f"c{figures.EQUAL}": 9 * base}

    def verdicts(stated, make=figures.compare) -> list[str]:
        found = figures._against(values.__getitem__, ["a", f"c{figures.EQUAL}"], ["b"], stated, make)
        assert [entry.name for entry in found] == ["a against b", "c against b"]
        return [entry.verdict for entry in found]

    for make in (figures.compare, figures._medians_of):
        assert verdicts({"a": 2.0, "c": 9.0}, make) == verdicts(figures.ANY, make) == [HOLDS, HOLDS]
        assert verdicts({"a": 3.0, "c": 90.0}, make) == [IN_PART, NOT_REPRODUCED]
        (less,) = figures._against(values.__getitem__, ["b"], ["a"], make=make)
        assert less.verdict == NOT_REPRODUCED
        assert verdicts({"b": 2.0}, make) == [HOLDS, IN_PART]
    few = figures._medians_of("", np.array([2.0, 3.0, 7.0]), np.ones(3))
    assert str(few) == "3 times"
