"""Saving and restoring environments, against copies by ``deepcopy`` and against episodes played anew."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from schedgym.core import snapshots
from schedgym.core.workload_files import save_workload
from schedgym.errors import InvalidParameter
from schedgym.testing import difference, sample_action
from tests.long import some
from tests.test_all_problems import CASES, IDS, small

ID = "schedgym/QueueDelay-v0"


def step(envs: list[Any], observation: Any, rng: np.random.Generator) -> tuple[Any, bool]:
    """Take one action in all environments, which must say the same; return observation and end."""
    action = sample_action(envs[0].action_space, observation, rng)
    first, *others = (env.step(action) for env in envs)
    for other in others:
        assert not (found := difference(first, other)), found
    return first[0], first[2] or first[3]


@pytest.mark.parametrize(("id", "view"), some(CASES, of=3))
def test_a_restored_environment_goes_on_like_a_deepcopy(id: str, view: dict[str, object]) -> None:
    """Any order of steps, ends, resets, saves and restores, also into another environment."""
    rng = np.random.default_rng(1)
    env, other = (gym.make(id, **small(id, **view)).unwrapped for _ in range(2))
    observation, _ = env.reset(seed=3)
    other.reset(seed=99)
    over, saved, restored = False, [(env.save(), copy.deepcopy(env))], 0
    twin = copy.deepcopy(env)
    for _ in range(60):
        what = rng.random()
        if what < 0.1:
            saved.append((env.save(), copy.deepcopy(env)))
        elif what < 0.25:
            state, kept = saved[rng.integers(len(saved))]
            env = other if rng.random() < 0.3 else env
            observation, twin = env.restore(state), copy.deepcopy(kept)
            over, restored = not env._running, restored + 1
            assert env.record().digest() == twin.record().digest()
        elif over or what < 0.3:
            (observation, info), again = env.reset(), twin.reset()
            assert not (found := difference((observation, info), again)), found
            over = False
        else:
            observation, over = step([env, twin], observation, rng)
    assert restored > 2


def with_another_future(env: Any, state: Any, seed: int | None) -> Any:
    """Restore a state with jobs that are drawn by a seed, or with none that arrive; return what is shown."""
    if seed is not None:
        return env.restore(state, resample=seed)
    env.restore(state)
    snapshots.resample(env.simulator, 0, None)
    return env.restore(env.save())


@pytest.mark.parametrize("seed", [11, None])
@pytest.mark.parametrize("id", IDS)
def test_what_has_not_arrived_is_drawn_anew_or_never_comes(id: str, seed: int | None) -> None:
    """The state is that of an episode with these jobs from its beginning, and both go on alike."""
    rng, parameters, changed = np.random.default_rng(2), small(id), 0
    if "jobs" in parameters:
        parameters["jobs"] = 12
    env, other = (gym.make(id, **parameters).unwrapped for _ in range(2))
    for steps in (1, 6, 12):
        observation, _ = env.reset(seed=5)
        actions = []
        for _ in range(steps):
            actions.append(copy.deepcopy(sample_action(env.action_space, observation, rng)))
            observation, _, terminated, truncated, _ = env.step(actions[-1])
            if terminated or truncated:
                break
        state, before = env.save(), env.record().workload
        shown = with_another_future(env, state, seed)
        assert not difference(shown, observation), "what the agent sees has changed"
        workload = env.record().workload
        if id != "schedgym/SingleJob-v0":
            (time, arrived), arrival = env.simulator.now(0), workload.jobs["arrival"]
            assert (arrival[:arrived] <= time).all() and (arrival[arrived:] > time).all()
            kinds = [
                (jobs["arrival"] == np.floor(jobs["arrival"])).all() for jobs in (before.jobs, workload.jobs)
            ]
            assert kinds[0] == kinds[1], "slots stay whole"
            assert (len(arrival) == arrived) == (seed is None or len(before.jobs["arrival"]) == arrived)
        assert with_another_future(env, state, seed) is not shown and env.record().workload == workload
        changed += workload != before
        other.reset(seed=0, options={"workload": workload})
        for action in actions:
            replayed = other.step(action)
        assert not (found := difference(replayed[0], observation)), found
        over = replayed[2] or replayed[3]
        while not over:
            observation, over = step([env, other], observation, rng)
        assert env.record().digest() == other.record().digest()
        env.restore(state)
        assert env.record().workload == before
    assert changed or id == "schedgym/SingleJob-v0"


@pytest.mark.parametrize("id", ["schedgym/FlowtimePacking-v0", "schedgym/PartialValue-v0"])
def test_the_next_slot_may_bring_a_job_that_is_drawn_anew(id: str) -> None:
    env = gym.make(id).unwrapped
    env.reset(seed=3)
    env.step(env.action_space.sample())
    state, found = env.save(), set()
    for seed in range(20):
        env.restore(state, resample=seed)
        time, arrived = env.simulator.now(0)
        found.add(env.record().workload.jobs["arrival"][arrived] - time)
    assert min(found) == 1


def test_arrays_that_have_grown_take_an_earlier_state() -> None:
    env = gym.make(ID, tasks=3, servers=1, window="all", observation="dict").unwrapped
    small_env = gym.make("schedgym/FlowtimePacking-v0", jobs=3).unwrapped
    small_env.reset(seed=1)
    state, twin = small_env.save(), copy.deepcopy(small_env)
    small_env.simulator.reserve(run=5000, job=50)
    observation, rng = small_env.restore(state), np.random.default_rng(0)
    over = False
    while not over:
        observation, over = step([small_env, twin], observation, rng)
    assert small_env.record().digest() == twin.record().digest()
    env.reset(seed=0)
    assert not difference(env.restore(env.save()), env.reset(seed=0)[0])


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_an_environment_of_a_batch_is_copied(mode: str) -> None:
    envs = gym.make_vec(ID, num_envs=3, autoreset_mode=mode, max_episode_steps=9, tasks=8, servers=2)
    observations, _ = envs.reset(seed=4)
    for count in range(60):
        if count % 7 == 5:
            observations = envs.copy_from(2, 0)
        actions = observations["action_mask"].argmax(axis=1)
        observations, rewards, terminated, truncated, _ = envs.step(actions)
        if count >= 5:
            assert rewards[2] == rewards[0]
            assert (terminated[2], truncated[2]) == (terminated[0], truncated[0])
            assert all((array[2] == array[0]).all() for array in observations.values())
    with pytest.raises(InvalidParameter, match="copy_from: must be from 0 to 2, got 3"):
        envs.copy_from(3, 0)


def test_without_a_generator_nothing_is_drawn_anew(tmp_path: Any) -> None:
    env = gym.make(ID, tasks=4, servers=1).unwrapped
    env.reset(seed=0)
    save_workload(env.record().workload, tmp_path / "four.json")
    env = gym.make(ID, workload=str(tmp_path / "four.json")).unwrapped
    for ask in (env.save, env.record, env.metrics, env.action_masks):
        with pytest.raises(ResetNeeded, match=f"call reset before {ask.__name__}"):
            ask()
    env.reset(seed=0)
    state = env.save()
    env.step(0)
    before = env.record().digest()
    other = gym.make(ID, tasks=5, servers=1).unwrapped
    other.reset(seed=0)
    for given, resample, match in (
        (state, 1, "made with a workload, and has no generator"),
        (state, -1, "seed: must be a whole number from 0, got -1"),
        (other.save(), None, "another id or other parameters"),
    ):
        with pytest.raises(InvalidParameter, match=match):
            env.restore(given, resample=resample)
        assert env.record().digest() == before


def test_a_time_limit_counts_on_after_a_restore() -> None:
    env: Any = gym.make(ID, max_episode_steps=6)
    observation, _ = env.reset(seed=0)
    rng, state, ends = np.random.default_rng(0), env.unwrapped.save(), []
    for number in range(6):
        if number == 4:
            observation = env.unwrapped.restore(state)
        observation, _, _, truncated, info = env.step(sample_action(env.action_space, observation, rng))
        ends.append((truncated, bool(np.isfinite(list(info["metrics"].values())).all())))
    assert ends == [(False, False)] * 5 + [(True, True)]
