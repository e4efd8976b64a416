"""The pictures show the state: what is served by whom, the open decision, the counts, the end.

``tests/<problem>/pictures.yaml`` has a workload, what is done, and the picture in letters after it; and how
long the bars of each job's colour are in the image.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import yaml

from schedgym.core.problem import list_problems
from schedgym.core.workload_files import save_workload
from schedgym.drawing import palette
from schedgym.drawing.scene import GRID, MARK
from schedgym.problems.partial_value.render import _parts

GIVEN = {
    path.parent.name.replace("_", "-"): yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted(Path(__file__).parent.glob("*/pictures.yaml"))
}
CASES = [(name, case) for name, given in GIVEN.items() for case in given["pictures"]]
#: where in an image the bars of the first rows are, the times of tasks on the right, and the load until now
PLACES = {
    "bars": (slice(100, 148), slice(0, 490)),
    "times": (slice(100, None), slice(552, 658)),
    "history": (slice(170, None), slice(0, 490)),
}


def played(folder: Path, name: str, mode: str, case: dict[str, Any], done: int | None = None) -> Any:
    """An environment after the first actions of a case: numbers, or the first entries of a row of them."""
    problem, given = list_problems()[name], GIVEN[name]
    save_workload(problem.module("workload").make_workload(**given["workload"]), folder / "workload.json")
    parameters = {**case["parameters"], "workload": str(folder / "workload.json")}
    env: Any = gym.make(next(iter(problem.ids)), render_mode=mode, disable_env_checker=True, **parameters)
    env.reset()
    for action in case["actions"][:done]:
        row = np.zeros(env.action_space.shape, dtype=env.action_space.dtype)
        row.ravel()[: np.size(action)] = action
        env.step(row)
    return env


@pytest.mark.parametrize(("name", "case"), CASES)
def test_letters_say_it_all(name: str, case: dict[str, Any], tmp_path: Path) -> None:
    assert played(tmp_path, name, "ansi", case).render().splitlines() == case["lines"]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_images_have_the_jobs_colours(name: str, case: dict[str, Any], tmp_path: Path) -> None:
    """Bars are shares of the first picture's longest, which has no job's colour; times are of 100 pixels."""
    pytest.importorskip("PIL")
    first, image = (played(tmp_path, name, "rgb_array", case, done).render() for done in (0, None))
    assert image.dtype == np.uint8 and image.shape == first.shape and image.ndim == 3 and image.shape[2] == 3
    assert (image != first).any() == bool(case["actions"])
    assert (image == MARK).all(axis=2).any() or not any(line.startswith("*") for line in case["lines"])

    def length(picture: Any, place: str, colour: Any) -> int:
        return int((picture[PLACES[place]] == colour).all(axis=2).sum(axis=1).max())

    for place, whole in (("bars", length(first, "bars", GRID)), ("times", 100), ("history", None)):
        for colour, share in zip(palette(2), case.get(place, []), strict=False):
            assert not (first == colour).all(axis=2).any()
            if whole is None:
                assert length(image, place, colour)
            else:
                assert abs(length(image, place, colour) - share * whole) <= 2


def test_what_is_too_much_is_summed_up() -> None:
    rows = {"tasks": [(0, 5, 0.9, 0.9)] * 60, "servers": [(1, 1)] * 20}
    env: Any = gym.make("schedgym/QueueDelay-v0", render_mode="ansi", tasks=60, servers=20)
    env.reset(options={"workload": list_problems()["queue-delay"].module("workload").make_workload(**rows)})
    for _ in range(59):
        env.step(32)
    assert "and 4 more servers" in env.render() and "and 42 more tasks" in env.render()
    vector = gym.make_vec("schedgym/QueueDelay-v0", num_envs=2, render_mode="ansi", tasks=5, servers=2)
    vector.reset(seed=0)
    frames: Any = vector.render()
    assert len(frames) == 2 and all(frame.startswith("clock") for frame in frames)


def test_percents_of_a_resource_are_its_loads() -> None:
    """Real capacities, more jobs than lines, loads that are no whole percents."""
    env: Any = gym.make(
        "schedgym/PartialValue-v0",
        render_mode="ansi",
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
        for percents, load in re.findall(r"(\d+)/100 busy  ([\d.]+) of 7.3", text):
            assert abs(int(percents) - float(load) / 7.3 * 100) < 1
        assert "more jobs" in text
    rng = np.random.default_rng(0)
    for _ in range(100):
        loads = rng.dirichlet(np.full(rng.integers(1, 40), 0.3)) * rng.choice([0.5, 1.0])
        parts = _parts(loads)
        assert min(parts) >= 0 and sum(parts) == round(float(loads.sum()) * 100)
        assert np.abs(np.array(parts) - loads * 100).max() <= 1
    assert _parts(np.array([])) == []
