"""Pictures of schedules: rows, colours, loads against capacities, units; and moving pictures."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import types

import gymnasium as gym
import numpy as np
import pytest

import schedgym
from schedgym.core.policy import make_policy
from schedgym.core.problem import list_problems
from schedgym.drawing import loads_of, palette
from schedgym.errors import InvalidParameter
from schedgym.evaluation import gantt
from schedgym.evaluation.canvas import DARK, INK, PAPER, new_figure, svg_text
from schedgym.evaluation.episodes import make_env, play
from schedgym.evaluation.gantt import make_chart, plot_schedule
from schedgym.evaluation.plan import acting_parameters
from schedgym.playing import steps

FLOW = "schedgym/FlowtimePacking-v0"
TINY = {"queue-delay": {"tasks": 40, "servers": 4}, "flowtime": {"jobs": 20}, "geo": {"jobs": 10}}


@functools.cache
def played(name, **more):
    """An environment after an episode, which no test changes."""
    problem = list_problems()[name]
    id, variant = next(iter(problem.ids.items()))
    parameters = {**problem.presets.get("small", {}), **TINY.get(name, {}), **more}
    policy = make_policy(variant.reference, name)
    env = make_env(id, acting_parameters(problem, id, parameters, policy))
    play(env, policy, seed=0)
    return env


@pytest.mark.parametrize("name", sorted(list_problems()))
def test_a_schedule_is_drawn_in_one_call(name, tmp_path):
    env = played(name)
    record = env.record()
    chart = make_chart(record)
    # two bars of different jobs that touch or overlap in time have different colours
    for a, b in itertools.combinations(range(min(len(chart.order), 150)), 2):
        i, j = chart.order[a], chart.order[b]
        meet = record.start[i] <= record.end[j] and record.start[j] <= record.end[i]
        if meet and chart.owner[i] != chart.owner[j]:
            assert chart.colours[a] != chart.colours[b]
    figure = schedgym.plot_schedule(env, policy="the policy")
    loads = loads_of(record)
    axes = figure.axes
    assert len(axes) == 1 + min(len(loads), 3)
    assert figure.texts[0].get_text() == f"the policy · {name}"
    assert len(axes[0].collections[0].get_paths()) == len(chart.order)
    assert axes[-1].get_xlabel() in {f"time [{unit}]" for unit in ("slots", "s", "min", "h", "d")}
    figure.savefig(tmp_path / "g.png")
    assert (tmp_path / "g.png").stat().st_size > 5000
    labels = [text for text in axes[0].get_yticklabels() if text.get_text()]
    boxes = [text.get_window_extent() for text in labels]
    assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))


@pytest.mark.parametrize("name", sorted(list_problems()))
def test_no_load_exceeds_its_capacity(name):
    record = played(name).record()
    for load in loads_of(record):
        assert load.amount.shape == record.job.shape and load.capacity > 0
        for now in np.unique(record.start)[:200]:
            runs = (record.start <= now) & (record.end > now)
            assert load.amount[runs].sum() <= load.capacity * (1 + 1e-9)


def test_jobs_with_deadlines_have_rows_of_their_own():
    chart = make_chart(played("partial-value").record())
    assert chart.by_job and chart.windows and chart.names[0].startswith("job ")
    assert "from arrival to deadline" in chart.text


def test_colours_agree_between_frames_and_the_chart():
    """What a frame in mid-episode shows in a colour has the same one in the chart of the whole schedule."""
    env = played.__wrapped__("flowtime")
    chart = make_chart(env.record())
    final = dict(zip(chart.owner[chart.order].tolist(), chart.colours, strict=True))
    scene, seen = env.problem.module("render")._scene, 0
    for step in steps(env, make_policy("flowtime/ocorp")):
        for job, number in scene(env.simulator, 0).colours().items():
            if number >= 0 and not step.ended:
                assert palette(number + 1)[-1] == final[job]
                seen += 1
    assert seen > 50


def test_a_fat_tree_is_drawn_by_its_racks():
    record = played("parallel-jct", arity=6, jobs=4).record()
    by_rack, by_server = make_chart(record), make_chart(record, most_rows=60)
    assert set(by_rack.names) <= {f"rack {i // 3}.{i % 3}" for i in range(18)}
    assert by_server.names[0].startswith("server ") and len(by_server.names) > len(by_rack.names)


def test_units_and_spans(monkeypatch):
    env = played("queue-delay")
    record = env.record()
    last = float(record.end.max())
    assert last > 600  # or this test shows nothing
    low, high = plot_schedule(env, span=(0.0, 600.0)).axes[0].get_xlim()
    assert (low, high) == (0.0, 10.0)  # minutes
    # a few long tasks do not squeeze the others
    end = record.end.copy()
    end[-1] = 100 * last
    figure = plot_schedule(dataclasses.replace(record, end=end))
    assert np.isclose(figure.axes[0].get_xlim()[1] * 60, np.quantile(end, 0.95) * 1.1)
    assert "; the last ends at " in figure.texts[1].get_text()
    assert plot_schedule(env, title="").texts == []
    assert plot_schedule(env, width=4).get_figwidth() == 4
    monkeypatch.setattr(env, "caption", "fifo")
    assert plot_schedule(env).texts[0].get_text() == "fifo · queue-delay"


def test_what_cannot_be_drawn_is_refused():
    env = gym.make(FLOW, jobs=5)
    env.reset(seed=0)
    with pytest.raises(InvalidParameter, match="no work has begun"):
        plot_schedule(env)
    with pytest.raises(InvalidParameter, match="got dict"):
        plot_schedule({})
    with pytest.raises(InvalidParameter, match="begin before"):
        plot_schedule(played("flowtime"), span=(5, 5))


def test_an_episode_becomes_a_gif(tmp_path):
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / "e.gif"
    record = schedgym.record_episode(FLOW, "ocorp", path, seconds=3, rate=4, parameters={"jobs": 20})
    with image.open(path) as film:
        assert film.n_frames <= 12 and film.size[0] == 960
        film.seek(film.n_frames - 1)
        last = np.asarray(film.convert("RGB"))
    film = make_env(FLOW, {"jobs": 20})
    play(film, make_policy("flowtime/ocorp"), label="ocorp")
    assert film.record().digest() == record.digest()
    bar = last[65, 20:940]  # all jobs are done
    assert (np.abs(bar.astype(int) - 110).max(axis=1) < 20).all()


def test_an_episode_becomes_a_video(tmp_path):
    pytest.importorskip("moviepy")
    schedgym.record_episode(FLOW, make_policy("flowtime/srvf"), tmp_path / "e.mp4", seconds=1)
    assert (tmp_path / "e.mp4").read_bytes()[4:8] == b"ftyp"


def test_moving_pictures_refuse_nonsense(tmp_path):
    for name, value in (("seconds", 0), ("rate", -1)):
        with pytest.raises(InvalidParameter, match=f"{name}: must be positive"):
            schedgym.record_episode(FLOW, "ocorp", tmp_path / "e.gif", **{name: value})
    with pytest.raises(InvalidParameter, match="must end in"):
        schedgym.record_episode(FLOW, "ocorp", tmp_path / "e.png")
    for policy, text in ((len, "methods reset"), ("queue-delay/ff", "not one of flowtime")):
        with pytest.raises(InvalidParameter, match=text):
            schedgym.record_episode(FLOW, policy, tmp_path / "e.gif")
    assert not list(tmp_path.iterdir())


def test_a_problem_without_servers_has_rows_of_jobs(monkeypatch):
    record = played("flowtime").record()
    schema = dataclasses.replace(list_problems()["flowtime"].schema, cluster=())
    monkeypatch.setattr(gantt, "get_problem", lambda name: types.SimpleNamespace(schema=schema))
    chart = make_chart(record)
    assert chart.by_job and len(chart.names) == 20


def test_a_late_span_has_its_own_pieces(monkeypatch):
    record = played("flowtime").record()
    monkeypatch.setattr(gantt, "MOST_PIECES", 10)
    late = 0.8 * record.end.max()
    chart = make_chart(record, span=(late, record.end.max()))
    assert len(chart.order) and (record.end[chart.order] > late).all()


def test_work_that_runs_ends_at_the_clock():
    env = make_env("schedgym/QueueDelay-v0", {"tasks": 40, "servers": 4, "view": "pick", "action_mask": True})
    observation, _ = env.reset(seed=0)
    for _ in range(30):
        observation, *_ = env.step(np.flatnonzero(observation["action_mask"])[0])
    record = env.record()
    assert record.end.max() > record.final_time
    edges = plot_schedule(env).axes[0].collections[0].get_paths()
    assert max(path.vertices[:, 0].max() for path in edges) <= record.final_time


def test_an_svg_is_dark_on_a_dark_screen_but_for_letters_on_bars():
    figure = new_figure(2, 1)
    axes = figure.subplots()
    axes.set_facecolor(PAPER)
    axes.text(0.5, 0.5, "7", color="#ffffff")
    axes.text(0.2, 0.5, "ink", color=INK)
    axes.plot([0, 1], [0, 1], color=INK)
    text = svg_text(figure)
    head, _, body = text.partition("</style>")
    assert head.count("@media (prefers-color-scheme: dark)") == 1 and "<svg" in head
    for light, dark in DARK.items():
        assert f'[style*="stroke: {light}"] {{ stroke: {dark} !important }}' in head
    assert f'\n[style*="fill: {INK}"] {{ fill: {DARK[INK]} !important }}' in head
    # the background is a path, letters are not: white ones stay
    assert f'path[style*="fill: {PAPER}"]' in head and f'\n[style*="fill: {PAPER}"]' not in head
    assert all(f'<g style="fill: {colour}"' in body for colour in (PAPER, INK)) and f"stroke: {INK}" in body


def test_a_load_is_drawn_of_what_runs_in_the_span():
    env = make_env("schedgym/QueueDelay-v0", {"tasks": 60})
    play(env, make_policy("queue-delay/fcfs"), seed=0)
    record = env.record()
    middle, end = np.quantile(record.start, [0.4, 0.6])
    figure = plot_schedule(record, span=(middle, end))
    inside = (record.end > middle) & (record.start < end)
    line = figure.axes[1].lines[0]
    size = {"s": 1.0, "min": 60.0, "h": 3600.0}[figure.axes[-1].get_xlabel()[6:-1]]
    times, load = np.asarray(line.get_xdata()) * size, np.asarray(line.get_ydata())
    assert times[0] == pytest.approx(middle) and times[-1] <= end * (1 + 1e-12)
    assert len(times) <= 2 * inside.sum()
    now = (record.start <= middle) & (record.end > middle)
    assert load[0] == pytest.approx(record.amount[now, 0].sum())
    assert "share of the largest server" in figure.texts[1].get_text()


def test_a_span_in_which_nothing_runs_is_drawn():
    record = played("queue-delay").record()
    last = float(record.end.max())
    figure = plot_schedule(record, span=(last + 100.0, last + 200.0))
    assert all(np.isfinite(axes.get_ylim()).all() for axes in figure.axes)
