"""The pictures show the plan: servers' vCPU by task, times, what is placed."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from schedgym.drawing import palette
from schedgym.drawing.scene import GRID
from schedgym.problems.single_job.workload import make_workload

# both racks allow 6 vCPU, the first server has only 2
WORKLOAD = make_workload(
    [12, 12, 6, 6],
    [[1, 0.5, 0.5, 0.5]] * 4,
    72,
    [2, 10, 10, 8],
    groups=[[1, 1, 0, 0], [0, 0, 1, 1]],
    limit=[6, 6],
)


def make(mode: str, **parameters: Any) -> Any:
    env = gym.make(
        "schedgym/SingleJob-v0",
        render_mode=mode,
        disable_env_checker=True,
        **{"tasks": 4, "arity": 2, **parameters},
    )
    return env


@pytest.fixture
def given(tmp_path: Any) -> str:
    from schedgym.core.workload_files import save_workload

    path = tmp_path / "workload.json"
    save_workload(WORKLOAD, path)
    return str(path)


def test_ansi_says_it_all(given: str) -> None:
    env = gym.make("schedgym/SingleJob-v0", render_mode="ansi", disable_env_checker=True, workload=given)
    env.reset()
    lines = env.render().splitlines()
    assert lines[:2] == [
        "clock 0.0 s  task 0 is to be placed",
        "0 of 4 tasks on 0 of 4 servers, 0 vCPU, 0.0% of the energy cap",
    ]
    assert lines[2] == " server   0  [..] 0/2 busy" and lines[5] == " server   3  [........] 0/8 busy"
    assert lines[6].split() == ["a", "task", "0", "load", "12", "vCPU", "s", "not", "placed"]
    env.step(0)  # 12 vCPU s on 2 vCPU: 6 s
    env.step(2)  # 24 vCPU s on 6 vCPU: 4 s
    lines = env.render().splitlines()
    assert lines[:2] == [
        "clock 6.0 s  task 2 is to be placed",
        "2 of 4 tasks on 2 of 4 servers, 8 vCPU, 50.0% of the energy cap",
    ]
    # servers in use stand first
    assert lines[2] == " server   0  [aa] 2/2 busy  until 6.0 s"
    assert lines[3] == " server   2  [bbbbbb....] 6/10 busy  until 4.0 s"
    assert lines[4] == " server   1  [..........] 0/10 busy"
    assert lines[6].split() == ["a", "task", "0", "server", "0", "2", "vCPU", "6.0", "s"]
    assert lines[7].split() == ["b", "task", "1", "server", "2", "6", "vCPU", "4.0", "s"]
    env.step(2)
    env.step(0)
    lines = env.render().splitlines()
    assert lines[0] == "clock 9.0 s  the episode has ended"
    assert lines[2] == " server   0  [aa] 2/2 busy  until 9.0 s"


def test_the_views_say_where_they_are() -> None:
    env = make("ansi", view="search", tasks=6, arity=4)
    observation, _ = env.reset(seed=0)
    assert env.render().splitlines()[0].endswith("  0 moves")
    env.step(int(observation["action_mask"].argmax()))
    assert env.render().splitlines()[0].endswith("  1 moves")
    env = make("ansi", view="plan")
    env.reset(seed=0)
    assert env.render().splitlines()[0] == "clock 0.0 s  nothing is placed"
    env.step(np.zeros((4, 2)))
    assert env.render().splitlines()[0].endswith("the episode has ended")


def test_the_image_has_the_tasks_colours(given: str) -> None:
    pytest.importorskip("PIL")
    env = gym.make("schedgym/SingleJob-v0", render_mode="rgb_array", disable_env_checker=True, workload=given)
    env.reset()
    first = env.render()
    env.step(0)
    env.step(2)
    image = env.render()
    assert image.dtype == np.uint8 and image.shape == first.shape and image.shape[2] == 3

    def width(picture: Any, colour: Any) -> int:
        return int((picture[100:] == colour).all(axis=2)[:, :490].sum(axis=1).max())

    blue, orange = palette(2)
    whole = width(first, GRID)  # a server with 10 vCPU
    assert abs(width(image, blue) - 0.2 * whole) <= 2 and abs(width(image, orange) - 0.6 * whole) <= 2
    assert width(first, blue) == width(first, orange) == 0
    # at the right 100 pixels are the job's time: 6 s, and of task 1 4 s
    lengths = [
        int((image[100:, 552:658] == colour).all(axis=2).sum(axis=1).max()) for colour in (blue, orange)
    ]
    assert abs(lengths[0] - 100) <= 2 and abs(lengths[1] - 100 * 4 / 6) <= 2
