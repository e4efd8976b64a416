"""The frame of reproduced figures: names, runs that are shared, verdicts, files, resumption, the command."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from unittest.mock import Mock

import numpy as np
import pandas
import pytest

from schedgym.cli import main as command
from schedgym.core.problem import Statement
from schedgym.errors import InvalidParameter, TraceFormatError, UnknownName
from schedgym.evaluation import episodes
from schedgym.evaluation.canvas import draw_panels, save_figure
from schedgym.evaluation.runner import evaluate
from schedgym.papers import (
    PAPERS,
    Judged,
    Outcome,
    Panel,
    Paper,
    Run,
    Series,
    figure,
    figures,
    list_figures,
    reproduce,
)
from schedgym.papers.judging import HOLDS, IN_PART, NOT_REPRODUCED, judge_better
from schedgym.papers.readings import NO_CLAIM
from tests.long import long

pytestmark = long

PAPER = Paper("nn2000", "a paper", "A paper", "Nobody", "Nowhere", ())
ID = "schedgym/QueueDelay-v0"
SMALL = {"tasks": 60}


def arrivals(env):
    record = env.record()
    times = record.workload.jobs["arrival"]
    return {"arrivals": times, "tasks": len(times)}


def shared(run: Run):
    return run.play(ID, ["bf-exec", "fcfs"], 3, {"servers": [2, 4]}, parameters=SMALL, observe=arrivals)


def made(run: Run) -> Outcome:
    played = shared(run)
    panel = Panel(
        "servers", "delay [s]", [*figures.lines(played, "servers"), figures.bound(played, "servers")]
    )
    statement = Statement("", "bf-exec", ("fcfs",), "mean_delay")
    return Outcome([panel], [judge_better(played, "bf-exec is better", statement)], "3 draws of 60 tasks")


@pytest.fixture
def three(empty):
    """Two figures that share a run, and a third without a claim."""
    figure(PAPER, "fig10", title="ten", source="Fig. 10")(made)
    figure(PAPER, "fig2", title="two", source="Fig. 2")(made)
    panel = Panel("x", "y", [Series("a", ["u", "v"], [1, 2])], kind="bars")
    figure(PAPER, "fig3", title="three", source="Fig. 3")(lambda run: Outcome([panel], [], "nothing"))


def _natural(name):
    head, tail = name.split("/")
    keys = [paper.key for paper in PAPERS]
    return keys.index(head), [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", tail)]


def test_every_paper_has_figures_and_names_are_in_order() -> None:
    names = [entry.name for entry in list_figures()]
    assert {name.partition("/")[0] for name in names} == {paper.key for paper in PAPERS}
    own = [name for name in names if name.startswith("noroozoliaee2014")]
    assert own == ["noroozoliaee2014/fig2", "noroozoliaee2014/fig3"]
    assert names == sorted(names, key=_natural)
    for entry in list_figures():
        assert entry.title and entry.source and "/" not in entry.stem


def test_figures_are_found_by_paper_and_by_name(three) -> None:
    assert [e.name for e in list_figures()] == ["nn2000/fig2", "nn2000/fig3", "nn2000/fig10"]
    two = list_figures("nn2000/fig3", "nn2000/fig10")
    assert [e.name for e in two] == ["nn2000/fig3", "nn2000/fig10"]
    assert len(list_figures("nn2000")) == 3
    with pytest.raises(UnknownName, match="unknown figure 'nn2000/fig22'; did you mean 'nn2000/fig2'"):
        list_figures("nn2000/fig22")
    with pytest.raises(UnknownName, match="unknown paper '00'"):
        list_figures("00")
    with pytest.raises(ValueError, match="registered already"):
        figure(PAPER, "fig2", title="another", source="")(made)


def test_runs_are_shared_and_counted(three, tmp_path, monkeypatch) -> None:
    ran = []
    original = episodes.run_episodes

    def strike(*given):
        for result in original(*given):
            ran.append(result)
            yield dataclasses.replace(result, cpu=1000.0)

    monkeypatch.setattr(episodes, "run_episodes", strike)
    two, three, ten = reproduce("nn2000", scale="tiny", folder=tmp_path, n_jobs=1)
    assert len(ran) == 2 * 3 * 3  # settings, episodes, policies with the bound
    # what it shares with the figure before counts as the time that it took there
    assert two["seconds"] < 1000.0 and three["seconds"] < 1000.0
    assert ten["seconds"] == pytest.approx(1000.0 * len(ran), abs=500.0)
    assert three["verdict"] == NO_CLAIM and three["claims"] == []


def test_an_interrupted_figure_resumes_with_the_episode(three, tmp_path, monkeypatch) -> None:
    ran = []
    original = episodes.run_episodes

    def interrupted(*given):
        for result in original(*given):
            if len(ran) == 7:
                raise KeyboardInterrupt
            ran.append(result)
            yield result

    arguments = {"scale": "tiny", "folder": tmp_path, "n_jobs": 1}
    with monkeypatch.context() as patched:
        patched.setattr(episodes, "run_episodes", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reproduce("nn2000/fig2", **arguments)
    again = []
    monkeypatch.setattr(episodes, "run_episodes", lambda *given: again.append(given[0]) or original(*given))
    (resumed,) = reproduce("nn2000/fig2", **arguments)
    assert (
        len(ran) + sum(unit.episodes for unit in again) == 2 * 3 * 3
    )  # settings, episodes, policies with the bound
    assert not (tmp_path / figures.EPISODES).exists()
    written = (tmp_path / "nn2000-fig2.csv").read_bytes()
    (whole,) = reproduce("nn2000/fig2", **arguments, again=True)
    assert (tmp_path / "nn2000-fig2.csv").read_bytes() == written and whole["claims"] == resumed["claims"]


def test_files_of_an_interrupted_run_are_not_taken_for_those_of_an_earlier_one(
    three, tmp_path, monkeypatch
) -> None:
    arguments = {"scale": "tiny", "folder": tmp_path, "n_jobs": 1}
    reproduce("nn2000/fig2", **arguments)
    written = (tmp_path / "nn2000-fig2.csv").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(figures, "make_manifest", Mock(side_effect=KeyboardInterrupt))  # before the JSON file
        with pytest.raises(KeyboardInterrupt):
            reproduce("nn2000/fig2", **arguments, seed=1)
    assert (tmp_path / "nn2000-fig2.csv").read_bytes() != written
    told = []
    reproduce("nn2000/fig2", **arguments, tell=lambda content, kept: told.append(kept))
    assert told == [False] and (tmp_path / "nn2000-fig2.csv").read_bytes() == written


def test_what_is_written(three, tmp_path) -> None:
    (content,) = reproduce("nn2000/fig2", scale="tiny", folder=tmp_path, n_jobs=1)
    names = [f"nn2000-fig2.{kind}" for kind in ("csv", "json", "png")]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert json.loads((tmp_path / "nn2000-fig2.json").read_text()) == content
    assert content["command"] == "schedgym reproduce nn2000/fig2 --scale tiny"
    (said,) = content["claims"]
    assert said["verdict"] in (HOLDS, IN_PART, NOT_REPRODUCED)
    assert content["verdict"] == f"1 statement: 1 {said['verdict']}"
    table = pandas.read_csv(tmp_path / "nn2000-fig2.csv")
    assert list(table.columns) == ["panel", "series", "x", "y", "low", "high"]
    own = evaluate(ID, ["bf-exec"], 3, parameters={**SMALL, "servers": 4})
    mean = own[own.metric == "mean_delay"].value.mean()
    row = table[(table.series == "bf-exec") & (table.x == 4)].iloc[0]
    assert row.y == pytest.approx(mean, rel=1e-5) and row.low <= row.y <= row.high
    assert table[table.series == "lower bound"].low.isna().all()


def test_what_is_there_is_kept(three, tmp_path, monkeypatch) -> None:
    told = []
    arguments = {"scale": "tiny", "folder": tmp_path, "n_jobs": 1}
    reproduce("nn2000/fig3", **arguments)

    def tell(content, kept):
        told.append((content["figure"], kept))

    reproduce("nn2000/fig3", "nn2000/fig2", **arguments, tell=tell)
    assert told == [("nn2000/fig2", False), ("nn2000/fig3", True)]
    (tmp_path / "nn2000-fig3.png").unlink()
    told.clear()
    for changes in ({}, {"again": True}, {"seed": 1}):
        reproduce("nn2000/fig3", **arguments, **changes, tell=lambda c, kept: told.append(kept))
    (tmp_path / "nn2000-fig3.json").write_text("[]")
    reproduce("nn2000/fig3", **arguments, tell=lambda c, kept: told.append(kept))
    monkeypatch.setattr(figures, "package_version", lambda: "other")
    reproduce("nn2000/fig3", **arguments, tell=lambda c, kept: told.append(kept))
    assert told == [False] * 5


@pytest.mark.parametrize(("scale", "told"), [("tiny", [0, 1, 1, 1]), ("paper", [0, 0, 1, 1])])
def test_a_figure_with_all_readings_is_one_with_the_default(three, tmp_path, scale, told) -> None:
    """At a small scale all are run anyway."""
    kept, commands = [], []
    for all_readings in (False, True, True, False):
        how = {"all_readings": all_readings, "tell": lambda _, was: kept.append(was)}
        (content,) = reproduce("nn2000/fig3", scale=scale, folder=tmp_path, **how)
        commands.append(content["command"].partition(scale)[2])
    assert kept == told
    assert commands == ([""] * 4 if scale == "tiny" else ["", *[" --all-readings"] * 3])


def test_seeds_and_processes(three, tmp_path) -> None:
    texts = []
    for folder, seed, n_jobs in (("a", 0, 1), ("b", 0, 2), ("c", 1, 1)):
        reproduce("nn2000/fig2", scale="tiny", folder=tmp_path / folder, seed=seed, n_jobs=n_jobs)
        texts.append((tmp_path / folder / "nn2000-fig2.csv").read_text())
    assert texts[0] == texts[1] != texts[2]


def test_bad_arguments(three, tmp_path) -> None:
    with pytest.raises(UnknownName, match="unknown scale 'huge'"):
        reproduce(scale="huge", folder=tmp_path / "none")
    with pytest.raises(InvalidParameter, match="seed: must be from 0"):
        reproduce(scale="tiny", folder=tmp_path / "none", seed=-1)
    assert not (tmp_path / "none").exists()
    with pytest.raises(InvalidParameter, match="a: y has 1 values, x 2"):
        Series("a", [1, 2], [1])
    with pytest.raises(UnknownName, match="unknown verdict 'yes'"):
        Judged("", "", "yes")
    with pytest.raises(UnknownName, match="kind of panel"):
        Panel("", "", [], kind="pie")


def test_observers_and_settings() -> None:
    played = shared(Run("tiny"))
    assert played.policies == ["bf-exec", "fcfs"]
    assert played.values("fcfs", "tasks", servers=2) == [60, 60, 60]
    assert len(played.values("fcfs")) == 6
    part = played.where(servers=2)
    assert len(part.values("fcfs")) == 3 and part.swept == ()
    assert "servers" not in part.frame and set(part.frame.policy) == {"bf-exec", "fcfs"}
    table = part.frame[part.frame.metric == "mean_delay"].set_index(["policy", "episode"]).value
    assert played.metric("fcfs", "mean_delay", servers=2).tolist() == table["fcfs"].tolist()
    assert played.metric("fcfs", "mean_delay", servers=4).tolist() != table["fcfs"].tolist()
    assert [len(series.x) for series in figures.lines(part, "policy")] == [1, 1]


def test_distributions() -> None:
    x = np.array([0.0, 1.0, 2.0, 5.0])
    series = figures.distribution("a", x, [np.array([2.0, 1.0]), np.array([1.0, 5.0])])
    assert series.y == [0.0, 0.5, 0.75, 1.0]
    assert series.low is not None and series.low[1] == series.high[1] == 0.5
    assert all(map(math.isnan, figures.distribution("a", x, [np.array([2.0, 1.0])]).low))
    weighted = figures.shares_up_to(np.array([2.0, 1.0]), np.array([1.0, 3.0]), x)
    assert weighted.tolist() == [0.0, 0.75, 1.0, 1.0]


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_all_kinds_of_panels_are_drawn(tmp_path, suffix) -> None:
    curves = [Series("a", range(50), np.arange(50.0)), Series("b", range(50), np.ones(50), bound=True)]
    panels = [
        Panel("x", "y", curves, title="(a)", kind="curves", y_scale="log"),
        Panel("x", "y", [Series("a", [1, 2], [3, 4], [2, 3], [4, 5])], x_scale="log"),
        Panel("x", "y", [Series(k, ["u", "v"], [1, 2], [0, 1], [2, 3]) for k in "ab"], kind="bars"),
    ]
    paths = [tmp_path / f"{name}.{suffix}" for name in ("picture", "again")]
    for path in paths:
        save_figure(draw_panels(panels, 11.5, 3.9, title="title", subtitle="subtitle"), path, small=True)
    content, again = (path.read_bytes() for path in paths)
    assert content == again and (content[:4] == b"\x89PNG" if suffix == "png" else b"<svg" in content)


def test_curves_that_coincide_are_named() -> None:
    """They are told by what the axis can show: differences of a hundredth of it."""
    x = np.arange(1.0, 101.0)
    rows = {"a": x, "b": x + 0.9, "c": x + 1.1, "d": 1.01 * x}
    series = [Series(label, x.tolist(), y.tolist()) for label, y in rows.items()]
    shown = Panel("x", "y", series, kind="curves")
    assert figures.coinciding(shown) == {"a": ["a", "b", "d"]}
    # on a logarithmic axis of two decades the small values are told apart, and 0 is not there
    assert figures.coinciding(dataclasses.replace(shown, y_scale="log")) == {"a": ["a", "d"]}
    gone = [Series("a", [1, 2], [0.0, 5.0]), Series("b", [1, 2], [1.0, 5.0])]
    assert figures.coinciding(Panel("x", "y", gone, kind="curves", y_scale="log")) == {"a": ["a", "b"]}
    assert figures.coinciding(dataclasses.replace(shown, kind="lines")) == {"a": ["a", "b", "d"]}
    assert figures.coinciding(dataclasses.replace(shown, kind="bars")) == {}
    told = list(figures._told([dataclasses.replace(shown, title="(a)")]))
    assert told == ["in '(a)' the curves of a, b and d coincide"]


def test_the_command(three, tmp_path, capsys) -> None:
    assert command(["reproduce", "nn2000/fig2", "--scale", "tiny", "-o", str(tmp_path), "--n-jobs", "1"]) == 0
    text = capsys.readouterr().out
    assert "nn2000/fig2 two" in text and "bf-exec is better" in text and "1 figures, scale tiny" in text
    assert command(["reproduce", "--list"]) == 0
    assert "nn2000/fig10" in capsys.readouterr().out
    assert command(["reproduce", "nn2000/fig9"]) == 2
    assert capsys.readouterr().err == "error: unknown figure 'nn2000/fig9'; did you mean 'nn2000/fig3'?\n"


def test_a_figure_that_cannot_be_made(three, tmp_path, capsys) -> None:
    def absent(run: Run) -> Outcome:
        raise TraceFormatError("trace.tsv", 0, "", "not there;\nfetch it")

    figure(PAPER, "fig1", title="one", source="Fig. 1")(absent)
    (tmp_path / "nn2000-fig1.csv").write_text("as it was")
    code = command(["reproduce", "nn2000", "--scale", "tiny", "-o", str(tmp_path), "--n-jobs", "1"])
    text = capsys.readouterr().out
    assert code == 1 and "nn2000/fig1 cannot be made: trace.tsv: not there; fetch it" in text
    assert "3 figures of 4, scale tiny" in text and (tmp_path / "nn2000-fig10.json").exists()
    assert (tmp_path / "nn2000-fig1.csv").read_text() == "as it was"
    assert not (tmp_path / "nn2000-fig1.json").exists()


@pytest.mark.parametrize("panels", [1, 2])
@pytest.mark.parametrize("labels", [2, 6, 11])
def test_legends_fit(tmp_path, panels, labels) -> None:
    """Their width depends on fonts and resolution, which an estimate once got wrong."""
    names = [f"alpha {10**k:,}" for k in range(labels)]
    panel = Panel("x", "y", [Series(name, [0, 1], [1, 2]) for name in names])
    figure = draw_panels([panel] * panels, 11.5, 3.9, title="title", subtitle="second line", dpi=110)
    figure.savefig(tmp_path / "a.png")
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.width
    assert all(box.y1 <= axes.get_tightbbox().y0 for axes in figure.axes)


@pytest.mark.parametrize("words", [60, 300])
def test_a_long_second_line_is_broken_before_it_is_cut(words) -> None:
    said = " ".join(f"word{k % 10}" for k in range(words))
    panels = [Panel("x", "y", [Series("a", [0, 1], [1, 2])])] * 2
    figure = draw_panels(panels, 11.5, 3.9, title="title", subtitle=said)
    line = figure.texts[1]
    assert line.get_text().count("\n") == 1 and line.get_window_extent().x1 <= figure.bbox.width
    shown = line.get_text().removesuffix("…").split()
    assert shown == said.split()[: len(shown)] and (len(shown) == words) == (words == 60)
