"""Pictures of any scene: sizes, texts that stay in their columns, the load until now, the window."""

from __future__ import annotations

import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled

import schedgym  # noqa: F401  # registers the ids
from schedgym.drawing import Bar, Line, Past, Scene, draw_image, draw_text, palette, short_number, short_time
from schedgym.drawing.scene import _highest, _last, _layers

ID = "schedgym/FlowtimePacking-v0"


def make_past(now=10.0, share=0.5):
    job = np.array([0, 1])
    start, end = np.array([0.0, 4.0]), np.array([8.0, 20.0])
    return Past(job, start, end, np.full(2, share), start, np.array([8.0, np.inf]), now, "s", "cpu")


def make_scene(**more):
    bars = [Bar(4, [(0, 1), (1, 2)], "a note", True), Bar(2, [], label="rack 1.2")]
    lines = [Line(0, 3.0, 1.0, "some  text"), Line(1, 2.0, 9.0, "other  " + "long text " * 20, marked=True)]
    given = {"clock": "10 s", "event": "arrival", "counts": "two", "done": 0.5, "bar": "server", "rows": 4}
    return Scene(**{**given, "bars": bars, "lines": lines, **more})


def test_texts_are_cut_at_the_edge_of_their_column():
    pytest.importorskip("PIL")
    image = draw_image(make_scene(event="e" * 300, counts="c" * 300), "caption " * 30)
    assert image.shape[1] == 960 and image.dtype == np.uint8
    assert (image[:, -15:] == 255).all()  # the margin is empty


def test_the_caption_is_drawn():
    pytest.importorskip("PIL")
    plain, named = draw_image(make_scene()), draw_image(make_scene(), "bf-exec")
    changed = np.argwhere((plain != named).any(axis=2))
    assert changed[:, 0].max() < 40 and changed[:, 1].min() > 480
    assert draw_text(make_scene(), "bf-exec").splitlines()[0] == "bf-exec"


def test_many_bars_and_lines_are_summed_up():
    bars = [Bar(1, [])] * 20
    lines = [Line(i, 0.0, 1.0, "") for i in range(30)]
    text = draw_text(make_scene(bars=bars, lines=lines))
    assert " ... and 4 more servers" in text and " ... and 12 more jobs" in text
    pytest.importorskip("PIL")
    assert draw_image(make_scene(bars=bars, lines=lines, rows=30)).shape[0] > 500


def test_the_load_until_now_stacks_the_jobs():
    picture = _layers(make_past(), 10.0, 200, 100)
    first, second = (np.array(colour) for colour in palette(2))
    column = picture[:, 30]  # at 1.5 of 10 s: job 0 holds half
    assert (column == first).all(axis=1).sum() == 50
    column = picture[:, 100]  # at 5 s: both
    assert (column == first).all(axis=1).sum() == (column == second).all(axis=1).sum() == 50
    column = picture[:, 180]  # at 9 s: job 0 has ended
    assert (column == second).all(axis=1).sum() == 50 and not (column == first).all(axis=1).any()


def test_the_axes_of_the_load():
    assert [_last(make_past(now)) for now in (0.9, 1.0, 3.0, 11.0, 41.0)] == [1.0, 1.0, 5.0, 20.0, 50.0]
    assert _highest(make_past(share=0.5)) == 1.0 and _highest(make_past(share=0.004)) == 0.01


def test_a_job_launched_now_has_a_colour_of_its_own():
    begin = np.array([0.0, np.nan, np.nan])
    past = Past(
        np.array([0]), np.zeros(1), np.ones(1), np.ones(1), begin, np.array([np.inf] * 3), 1.0, "s", "x"
    )
    scene = make_scene(past=past, lines=[Line(2, 0.0, 1.0, "waits")])
    assert scene.colours() == {0: 0, 1: 1, 2: -1}
    assert "- job     2  waits" in draw_text(scene)


def test_short_texts():
    assert short_number(7.885e-11, 100) == "0" and short_number(7.885e-11) == "7.885e-11"
    numbers = [short_number(value, 100) for value in (0.000188, -1e-9, 0.31, 36.4812, 99.96)]
    assert numbers == ["0", "0", "0.3", "36.5", "100"]
    assert (short_number(0.0123, 0.5), short_number(2.893, 8), short_number(7, 0)) == ("0.0123", "2.893", "7")
    assert (short_number(1234, 1500), short_number(12345.4, 24024), short_number(24024)) == (
        "1234",
        "12345",
        "24024",
    )
    assert (short_number(2.5e6), short_number(1234.56)) == ("2.5e+06", "1235")
    assert short_time(59.94) == "59.9 s" and short_time(600) == "10.0 min"


def test_the_window_shows_every_step(monkeypatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gym.make(ID, render_mode="human", jobs=5, disable_env_checker=True).unwrapped
    env.metadata = {**env.metadata, "render_fps": 1000}
    env.caption = "mine"
    observation, _ = env.reset(seed=0)
    before = pygame.surfarray.array3d(pygame.display.get_surface())
    assert pygame.display.get_caption()[0] == ID
    for _ in range(3):
        env.step(env.action_space.sample())
    assert env.render() is None
    after = pygame.surfarray.array3d(pygame.display.get_surface())
    assert before.shape == after.shape and (before != after).any()
    pickle.loads(pickle.dumps(env))  # the window stays behind
    env.close()
    assert not pygame.display.get_init()
    env.close()


def test_a_window_needs_pygame(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pygame", None)
    env = gym.make(ID, render_mode="human", jobs=5, disable_env_checker=True)
    with pytest.raises(DependencyNotInstalled, match=r'pip install "schedgym\[render\]"'):
        env.reset(seed=0)


def test_gymnasium_records_a_video(tmp_path):
    pytest.importorskip("moviepy")
    env = gym.make(ID, render_mode="rgb_array", jobs=3, disable_env_checker=True)
    env = gym.wrappers.RecordVideo(env, str(tmp_path), episode_trigger=lambda episode: True)
    env.reset(seed=0)
    done = False
    while not done:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        done = terminated or truncated
    env.close()
    assert [path.suffix for path in tmp_path.iterdir() if path.stat().st_size > 1000] == [".mp4"]


def test_axes_end_at_what_is_there():
    start = np.arange(4.0)
    back_to_back = Past(np.arange(4), start, start + 1, np.full(4, 0.15), start, start + 1, 4.0, "s", "cpu")
    assert _highest(back_to_back) == 0.2
    assert _last(make_past(now=0.0)) == 1.0
