"""Whatever is done with a batch of environments, in any order: it goes on as a fresh one does.

What must not matter is left out of the fresh one: pickling, copying, the number of threads, refused actions,
and looking at the schedule.
"""

from __future__ import annotations

import copy
import functools
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from schedgym.core.workload import Workload
from schedgym.errors import InvalidAction
from schedgym.testing import difference, sample_action
from tests.long import some, thinned
from tests.test_all_problems import CASES, short, small

COUNT = 3  # environments
SEEDS = st.integers(0, 2**32)
MASKS = st.lists(st.booleans(), min_size=COUNT, max_size=COUNT).filter(any)


@functools.cache
def workloads(id: str) -> list[Workload]:
    """Workloads as the environment draws them, and longer ones, for which the arrays grow."""
    sizes = (
        [short(id)] * 2 if id == "schedgym/SingleJob-v0" else [short(id), small(id)]
    )  # its tasks are fixed
    found = []
    for seed, parameters in enumerate(sizes * 2):
        env: Any = gym.make(id, disable_env_checker=True, **parameters).unwrapped
        env.reset(seed=seed)
        found.append(env.simulator.workload(0))
    return found


class Histories(RuleBasedStateMachine):
    """A batch of environments, and what was done with it."""

    def __init__(self, id: str, view: dict[str, Any]) -> None:
        super().__init__()
        self.id, self.view = id, view

    def make(self) -> Any:
        mode = self.mode
        return gym.make_vec(self.id, num_envs=COUNT, autoreset_mode=mode, **short(self.id, **self.view))

    def do(self, name: str, *given: Any, **more: Any) -> None:
        """Call a method of the environments; ``given`` and ``more`` may be changed by nobody."""
        kept = copy.deepcopy((given, more))
        result = getattr(self.env, name)(*given, **more)
        assert not difference(given, kept[0])
        self.history.append((name, *kept, copy.deepcopy(result)))
        self.shown = result[0]
        if name == "step":
            self.ended = result[2] | result[3]
        else:
            self.ended = self.ended & ~(more.get("options") or {}).get(
                "reset_mask", np.ones(COUNT, dtype=bool)
            )

    @initialize(mode=st.sampled_from(AutoresetMode), seed=SEEDS)
    def begin(self, mode: AutoresetMode, seed: int) -> None:
        self.mode, self.history = mode, []
        self.env, self.ended = self.make(), np.zeros(COUNT, dtype=bool)
        self.do("reset", seed=seed)

    @rule(seed=st.none() | SEEDS | st.lists(st.none() | SEEDS, min_size=COUNT, max_size=COUNT))
    def reset(self, seed: Any) -> None:
        self.do("reset", seed=seed)

    @rule(mask=MASKS)
    def reset_some(self, mask: list[bool]) -> None:
        self.do("reset", options={"reset_mask": np.array(mask)})

    @rule(which=st.lists(st.integers(0, 3), min_size=COUNT, max_size=COUNT), repeat=st.booleans(), mask=MASKS)
    def reset_to_workloads(self, which: list[int], repeat: bool, mask: list[bool]) -> None:
        given = [workloads(self.id)[i] for i in which]
        self.do("reset", options={"workload": given, "repeat": repeat, "reset_mask": np.array(mask)})

    @rule(number=st.integers(0, 5))
    def reset_to_episode(self, number: int) -> None:
        self.do("reset", options={"workload": None, "episode": number})

    @rule(seed=SEEDS, count=st.integers(1, 40))
    def step(self, seed: int, count: int) -> None:
        rng = np.random.default_rng(seed)
        space = self.env.single_action_space
        for _ in range(count):
            rows = [{name: array[i] for name, array in self.shown.items()} for i in range(COUNT)]
            actions = np.array([sample_action(space, row, rng) for row in rows], dtype=space.dtype)
            if self.mode is AutoresetMode.DISABLED and self.ended.any():
                with pytest.raises(ResetNeeded):
                    self.env.step(actions)
                self.do("reset", options={"reset_mask": self.ended.copy()})
            else:
                self.do("step", actions)

    @rule()
    def pickle(self) -> None:
        self.env = pickle.loads(pickle.dumps(self.env))

    @rule(go_on_with_the_copy=st.booleans(), seed=SEEDS)
    def copy(self, go_on_with_the_copy: bool, seed: int) -> None:
        """What is done with the one changes nothing of the other."""
        other = copy.deepcopy(self.env)
        if go_on_with_the_copy:
            self.env, other = other, self.env
        other.reset(seed=seed, options={"workload": workloads(self.id)[3], "repeat": True})
        other.step(np.array([sample_action(other.single_action_space, {}, other.np_random)] * COUNT))

    @rule(count=st.integers(1, 4))
    def threads(self, count: int) -> None:
        self.env.unwrapped.simulator.use_threads(count)

    @precondition(lambda self: not self.ended.any())
    @rule()
    def refused(self) -> None:
        shape = self.env.action_space.shape
        with pytest.raises(InvalidAction):
            self.env.step(np.zeros((shape[0] + 1, *shape[1:]), dtype=self.env.action_space.dtype))
        if shape == (COUNT,):
            with pytest.raises(InvalidAction):
                self.env.step(np.full(shape, -1))

    @rule(index=st.integers(0, COUNT - 1))
    def look(self, index: int) -> None:
        record = self.env.unwrapped.record(index)
        assert record.digest() == self.env.unwrapped.record(index).digest()
        self.env.unwrapped.simulator.workload(index)

    def teardown(self) -> None:
        if not hasattr(self, "env"):
            return
        fresh = self.make()
        for number, (name, given, more, result) in enumerate(self.history):
            found = difference(getattr(fresh, name)(*given, **more), result)
            assert not found, f"{number}, {name}: {found}"
        for i in range(COUNT):
            mine, theirs = self.env.unwrapped.record(i), fresh.unwrapped.record(i)
            assert mine.workload == theirs.workload and mine.digest() == theirs.digest()


@pytest.mark.parametrize(("id", "view"), some(thinned(CASES, of=2), of=10, late=3))
def test_histories(id: str, view: dict[str, Any]) -> None:
    check = settings(max_examples=8, stateful_step_count=10, phases=[Phase.generate])
    run_state_machine_as_test(lambda: Histories(id, view), settings=check)
