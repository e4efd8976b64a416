"""The pictures show the state: bars as long as the load, the marked server and task, the counts."""

import re

import gymnasium as gym
import numpy as np
import pytest

from schedgym.drawing import palette
from schedgym.drawing.scene import GRID, MARK
from schedgym.problems.queue_delay.workload import make_workload

ID = "schedgym/QueueDelay-v0"
# server 0 takes task 0 at 0; task 1 fits nowhere and waits; task 2 arrives at 2
WORKLOAD = make_workload([(0, 100, 0.5, 0.25), (1, 7, 0.9, 0.9), (2, 90, 0.1, 0.1)], [(1, 1), (0.5, 0.5)])


def make(mode, **parameters):
    env = gym.make(
        ID, render_mode=mode, disable_env_checker=True, tasks=3, servers=2, view="placement", **parameters
    )
    env.reset(options={"workload": WORKLOAD})
    window = env.unwrapped.interface.sizes["window"]
    env.step((0, 0))
    env.step((window, 0))  # close task 0's epoch
    env.step((window, 0))  # close task 1's: it waits; now task 2 arrives
    return env


def test_ansi_says_it_all():
    text = make("ansi").render()
    lines = text.splitlines()
    assert lines[0] == "clock 2.0 s  arrival"
    assert lines[1] == "1 tasks running, 2 waiting, 0 of 3 done"
    assert (
        lines[2]
        == " server   0  [aaaaaaaaaaaa............] 0.5/1 busy  [aaaaaa..................] 0.25/1 busy"
    )
    assert lines[3] == f" server   1  [{'.' * 24}] 0/0.5 busy  [{'.' * 24}] 0/0.5 busy"
    assert re.match(r" - task +1  cpu 0.900 memory 0.900  runs 7.0 s  1.0 s old", lines[4])
    assert re.match(r"\*- task +2  cpu 0.100 memory 0.100  runs 90.0 s  0.0 s old", lines[5])


def test_a_completion_marks_its_server():
    env = make("ansi")
    env.step((env.unwrapped.interface.sizes["window"], 0))  # nothing happens until server 0 is released
    lines = env.render().splitlines()
    assert lines[0] == "clock 100.0 s  completion at server 0"
    assert lines[2].startswith("*server   0") and lines[3].startswith(" server   1")


def test_the_image_has_bars_of_the_right_length_and_one_size():
    pytest.importorskip("PIL")
    env = make("rgb_array")
    image = env.render()
    assert image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3
    bars = image[100:148, :490]
    blue, grid = (int((bars == colour).all(axis=2).sum(axis=1).max()) for colour in (palette(1)[0], GRID))
    # task 0 has half of the first server's cpu, and a quarter of its memory below
    assert abs(blue - grid * 2 / 3) <= 2 * 2
    assert (image[100:, 490:] == MARK).all(axis=2).any()  # the dot beside the arriving task
    env.step((env.unwrapped.interface.sizes["window"], 0))
    later = env.render()
    assert later.shape == image.shape and (later != image).any()


def test_many_servers_and_tasks_are_summed_up():
    tasks = [(0, 5, 0.9, 0.9)] * 60
    workload = make_workload(tasks, [(1, 1)] * 20)
    env = gym.make(ID, render_mode="ansi", disable_env_checker=True, tasks=60, servers=20)
    env.reset(options={"workload": workload})
    for _ in range(59):
        env.step(32)
    text = env.render()
    assert "and 4 more servers" in text and "and 42 more tasks" in text
    vector = gym.make_vec(ID, num_envs=2, render_mode="ansi", tasks=5, servers=2)
    vector.reset(seed=0)
    frames = vector.render()
    assert len(frames) == 2 and all(frame.startswith("clock") for frame in frames)
