"""The pictures show the state: loads by job, served shares, deadlines, values, the counts."""

import re

import gymnasium as gym
import numpy as np
import pytest

from schedgym.drawing import palette
from schedgym.drawing.scene import GRID
from schedgym.problems.partial_value.render import _parts
from schedgym.problems.partial_value.workload import make_workload

# two resources of 10 and 4; job 0 is gone after slot 2, job 1 is complete after slot 1, job 2 arrives at 2
WORKLOAD = make_workload(
    arrival=[1, 1, 2],
    deadline=[2, 3, 4.5],
    parallelism=[4, 2, 3],
    tasks=[10, 2, 8],
    demand=[[2.0, 0.0], [1.0, 1.0], [1.0, 0.5]],
    utility=["linear", "power", "log"],
    value=[2.0, 3.0, 1.25],
    capacity=[10.0, 4.0],
    exponent=0.5,
)


def make(mode, **parameters):
    env = gym.make(
        "schedgym/PartialValue-v0",
        render_mode=mode,
        disable_env_checker=True,
        **{"view": "allocation", "window": 4, **parameters},
    )
    env.reset(options={"workload": WORKLOAD})
    return env


def serve(env, *tasks):
    action = np.zeros(env.action_space.shape, dtype=env.action_space.dtype)
    action[: len(tasks)] = tasks
    return env.step(action)


def test_ansi_says_it_all():
    env = make("ansi")
    lines = env.render().splitlines()
    assert lines[0] == "clock slot 1  loads of the slot before"
    assert lines[1] == "2 jobs active, 2 visible, 0 of 3 done, value 0"
    assert lines[2] == " resource   0  [........................] 0/100 busy  0 of 10"
    serve(env, 4, 2)
    lines = env.render().splitlines()
    assert lines[0] == "clock slot 2  loads of the slot before"
    value = 4 * 2 + 3 * np.sqrt(2)
    assert lines[1] == f"2 jobs active, 2 visible, 1 of 3 done, value {value:.5g}"
    # 24 cells: 80% of job 0 (19.2), then 20% of job 1; 50% of job 1
    assert lines[2] == " resource   0  [aaaaaaaaaaaaaaaaaaaabbbb] 100/100 busy  10 of 10"
    assert lines[3] == " resource   1  [bbbbbbbbbbbb............] 50/100 busy  2 of 4"
    assert re.fullmatch(r" a job +0  served 4 of 10 tasks \(40%\)  until slot 2  value 2", lines[4])
    assert re.fullmatch(r" - job +2  served 0 of 8 tasks \(0%\)  until slot 4.5  value 1.25", lines[5])
    assert len(lines) == 6


def test_jobs_beyond_the_window_are_counted():
    env = make("ansi", window=1)
    lines = env.render().splitlines()
    assert lines[1].startswith("2 jobs active, 1 visible") and len(lines) == 5
    assert "job     0" in lines[4]


def test_parts_add_up():
    rng = np.random.default_rng(0)
    for _ in range(100):
        loads = rng.dirichlet(np.full(rng.integers(1, 40), 0.3)) * rng.choice([0.5, 1.0])
        parts = _parts(loads)
        assert min(parts) >= 0 and sum(parts) == round(float(loads.sum()) * 100)
        assert np.abs(np.array(parts) - loads * 100).max() <= 1
    assert _parts(np.array([])) == []


def test_the_image_has_the_jobs_colours():
    pytest.importorskip("PIL")
    env = make("rgb_array")
    first = env.render()
    serve(env, 4, 2)
    image = env.render()
    assert image.dtype == np.uint8 and image.shape == first.shape and image.shape[2] == 3
    whole = int((first[100:148, :490] == GRID).all(axis=2).sum(axis=1).max())
    for job, share in ((0, 0.8), (1, 0.5)):  # job 1 has 20% of the one resource, 50% of the other
        found = (image == palette(2)[job]).all(axis=2)[100:148, :490]
        assert abs(int(found.sum(axis=1).max()) - share * whole) <= 2
        assert not (first == palette(2)[job]).all(axis=2).any()


def test_the_end_is_drawn():
    for mode in ("ansi", "rgb_array"):
        if mode == "rgb_array":
            pytest.importorskip("PIL")
        env = make(mode)
        while not serve(env, 1)[2]:
            pass
        picture = env.render()
        if mode == "ansi":
            lines = picture.splitlines()
            assert lines[0] == "clock slot 4  the episode has ended"
            assert lines[1].startswith("0 jobs active, 0 visible, 0 of 3 done")
            assert len(lines) == 4
        else:
            assert picture.ndim == 3


def test_any_workload_is_drawn():
    """Real capacities, more jobs than lines, loads that are no whole percents."""
    env = gym.make(
        "schedgym/PartialValue-v0",
        render_mode="ansi",
        disable_env_checker=True,
        view="priority",
        jobs=60,
        rate=30.0,
        windows=10.0,
        window=40,
        capacity=7.3,
    )
    env.reset(seed=0)
    for _ in range(4):
        env.step(np.zeros(40))
        text = env.render()
        for loads in re.findall(r"(\d+)/100 busy  ([\d.]+) of 7.3", text):
            assert abs(int(loads[0]) - float(loads[1]) / 7.3 * 100) < 1
        assert "more jobs" in text
