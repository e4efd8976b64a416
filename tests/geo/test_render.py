"""The pictures show the state: slots by job, the open site, the counts."""

import re

import gymnasium as gym
import numpy as np
import pytest

from schedgym.drawing import palette
from schedgym.drawing.scene import GRID
from schedgym.problems.geo.workload import make_workload

# at 0, job 0 with three tasks on site 0 or 1; at 1, job 1 with two tasks on site 1
WORKLOAD = make_workload([0, 1], [0, 0, 0, 1, 1], [9.0] * 5, [[0, 1]] * 3 + [[1, 0]] * 2, [2, 4])


def make(mode, **parameters):
    env = gym.make(
        "schedgym/GeoAssign-v0",
        render_mode=mode,
        disable_env_checker=True,
        jobs=2,
        sites=2,
        **parameters or {"view": "priority", "placement": "associated"},
    )
    env.reset(options={"workload": WORKLOAD})
    return env


def test_ansi_says_it_all():
    env = make("ansi")
    env.step(np.zeros(32, dtype=np.float32))  # job 0 takes both slots of site 0; job 1 arrives
    lines = env.render().splitlines()
    assert lines[0] == "clock 1.00 s  arrival"
    assert lines[1] == "2 jobs active, 2 tasks running, 3 waiting, 0 of 2 jobs done"
    assert lines[2] == " site   0  [aa] 2/2 busy  3 could run here"
    assert lines[3] == " site   1  [....] 0/4 busy  3 could run here"
    assert re.fullmatch(r" a job +0  +2 tasks running  +1 waiting  +1.0 s old", lines[4])
    assert re.fullmatch(r" - job +1  +0 tasks running  +2 waiting  +0.0 s old", lines[5])


def test_the_offered_slot_is_marked():
    env = make("ansi", view="pick")
    lines = env.render().splitlines()
    assert lines[0] == "clock 0.00 s  a slot of site 0 is free"
    assert lines[2].startswith("*site   0") and lines[3].startswith(" site   1")


def test_the_image_has_the_jobs_colours():
    pytest.importorskip("PIL")
    env = make("rgb_array")
    first = env.render()
    env.step(np.zeros(32, dtype=np.float32))
    image = env.render()
    assert image.dtype == np.uint8 and image.shape == first.shape and image.shape[2] == 3
    bars = slice(100, 148), slice(0, 490)
    blue, idle = (
        (shown[bars] == colour).all(axis=2) for shown, colour in ((image, palette(1)[0]), (first, GRID))
    )
    # both slots of site 0 are busy; its bar is half as long as that of site 1
    assert abs(int(blue.sum(axis=1).max()) - int(idle.sum(axis=1).max()) / 2) <= 2
    assert not (first == palette(1)[0]).all(axis=2).any()
    assert (image[170:, :490] == palette(1)[0]).all(axis=2).any()  # the load until now


def test_the_end_is_drawn():
    for mode in ("ansi", "rgb_array"):
        if mode == "rgb_array":
            pytest.importorskip("PIL")
        env = make(mode)
        while not env.step(np.zeros(32, dtype=np.float32))[2]:
            pass
        picture = env.render()
        assert "the episode has ended" in picture if mode == "ansi" else picture.ndim == 3
