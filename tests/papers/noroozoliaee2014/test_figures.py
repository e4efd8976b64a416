"""The figures of noroozoliaee2014: series, values against runs of their own, the level that it names."""

from __future__ import annotations

import pandas
import pytest

from schedgym.evaluation.runner import evaluate
from schedgym.papers import Run, list_figures, make_figure
from schedgym.papers.judging import HOLDS, NOT_REPRODUCED
from schedgym.papers.noroozoliaee2014.figures import _busy
from schedgym.papers.run import Played
from tests.long import long

pytestmark = long

ID = "schedgym/QueueDelay-v0"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    run = Run("tiny")
    return {
        e.name: (make_figure(e, run, folder), folder / f"{e.stem}.csv")
        for e in list_figures("noroozoliaee2014")
    }


def test_all_figures_are_there(made) -> None:
    assert list(made) == ["noroozoliaee2014/fig2", "noroozoliaee2014/fig3"]
    for content, path in made.values():
        assert content["claims"] and content["sizes"] == "2 draws of 60 tasks"
        assert set(pandas.read_csv(path).series) >= {"BF-EXEC", "FFD-DP", "FFD-NB", "FCFS"}


@pytest.mark.parametrize(
    ("name", "panel", "metric", "factor"),
    [
        ("noroozoliaee2014/fig2", "(a) memory", "utilization_memory_backlog", 100.0),
        ("noroozoliaee2014/fig2", "(b) CPU", "utilization_cpu_backlog", 100.0),
        ("noroozoliaee2014/fig3", "1", "mean_delay", 1.0),
    ],
)
def test_points_are_means_of_runs(made, name, panel, metric, factor) -> None:
    table = pandas.read_csv(made[name][1], dtype={"panel": str})
    for servers in (2, 4):
        frame = evaluate(ID, ["ffd-nb"], 2, parameters={"tasks": 60, "servers": servers})
        mean = frame[frame.metric == metric].value.mean() * factor
        point = table[(table.panel == panel) & (table.series == "FFD-NB") & (table.x == servers)]
        assert point.y.item() == pytest.approx(mean, rel=1e-5)
    if name == "noroozoliaee2014/fig3":
        bounds = frame[frame.metric == "bound"].value.mean()
        point = table[(table.series == "lower bound") & (table.x == 4)]
        assert point.y.item() == pytest.approx(bounds, rel=1e-5)


def test_claims_are_those_of_the_paper(made) -> None:
    said = [claim["claim"] for content, _ in made.values() for claim in content["claims"]]
    assert len(said) == 6 and sum("lower mean delay" in text for text in said) == 3


@pytest.mark.parametrize(("level", "verdict"), [(0.86, HOLDS), (0.845, HOLDS), (0.83, NOT_REPRODUCED)])
def test_the_level_that_the_paper_names(level, verdict) -> None:
    rows = [
        {"servers": servers, "policy": "bf-exec", "episode": e, "seed": 0, "metric": metric, "value": level}
        for servers in (10, 20)
        for e in range(2)
        for metric in ("utilization_cpu_backlog", "utilization_memory_backlog")
    ]
    frame = pandas.DataFrame(rows)
    frame.attrs = {"problem": "queue-delay", "id": ID, "objective": "mean_delay"}
    assert _busy(Played(frame, [])).verdict == verdict
