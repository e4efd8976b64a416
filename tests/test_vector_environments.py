"""The native vector environment against SyncVectorEnv, and what is its own."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import threading
import time
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from schedgym.core.problem import get_problem
from schedgym.core.threads import Workers
from schedgym.core.workload import Workload
from schedgym.errors import ConcurrentUse, InvalidAction, InvalidParameter, InvalidWorkload, UnknownName
from schedgym.problems.queue_delay.workload import make_workload
from schedgym.testing import (
    check_vector_parity,
    difference,
    infeasible_action,
    sample_action,
)
from tests.long import WEEKLY, some, thinned
from tests.test_all_problems import CASES, IDS, short, small
from tests.test_all_records import schedules_of
from tests.test_histories import workloads

ID = "schedgym/QueueDelay-v0"
SMALL = {"tasks": 8, "servers": 3, "window": 4}
MODES = tuple(AutoresetMode)
#: so that each has its turn without a test more
THREADS = dict(zip(MODES, (3, 1, 2), strict=True))
#: for several episodes; a random pick closes many slots early
STEPS = {"flowtime": 400, "parallel-jct": 200}


def steps(id: str) -> int:
    return STEPS.get(get_problem(id).name, 120)


def every_mode(cases: list[Any]) -> list[Any]:
    """Return each case in one mode, by turns, in .ci/checks in every mode; make test has a sixth of them."""
    given = [
        pytest.param(
            *getattr(case, "values", case),
            mode,
            id=f"{getattr(case, 'id', None) or i}-{mode.value}",
            marks=getattr(case, "marks", ()),
        )
        for i, case in enumerate(cases)
        for mode in thinned((*MODES[i % 3 :], *MODES[: i % 3]), of=3)
    ]
    return some(given, of=36 if WEEKLY else 12, late=4)


@pytest.mark.parametrize(("id", "view", "mode"), every_mode(CASES))
def test_parity(id: str, view: dict[str, object], mode: AutoresetMode) -> None:
    parameters = short(id, **view)
    check_vector_parity(id, steps=steps(id), autoreset_mode=mode, threads=THREADS[mode], **parameters)


OTHER = (
    {"window": "all"},
    {"strict": True},
    {"normalize": True},
    {"window": "all", "observation": "features"},
)


@pytest.mark.parametrize(("id", "extra", "mode"), every_mode([(id, extra) for extra in OTHER for id in IDS]))
def test_parity_with_other_parameters(id: str, extra: dict[str, object], mode: AutoresetMode) -> None:
    parameters = short(id, **extra)
    check_vector_parity(
        id, steps=steps(id), seed=11, autoreset_mode=mode.value, threads=THREADS[mode], **parameters
    )


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_parity_of_one_environment(mode: AutoresetMode) -> None:
    check_vector_parity(ID, num_envs=1, autoreset_mode=mode, threads=THREADS[mode], **SMALL)


def make(num_envs: int = 3, mode: AutoresetMode | str = "NextStep", **parameters: object):
    return gym.make_vec(
        ID,
        num_envs=num_envs,
        vectorization_mode="vector_entry_point",
        autoreset_mode=mode,
        **SMALL | parameters,
    )


def close(env) -> np.ndarray:
    """The batch of actions that close all epochs (view pick)."""
    return np.full(env.num_envs, env.single_action_space.n - 1)


def test_make_vec_takes_the_native_face_by_default() -> None:
    env = gym.make_vec(ID, num_envs=2, **SMALL)
    assert type(env.unwrapped).__name__ == "QueueDelayVectorEnv"
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert env.spec.id == ID


def test_check_vector_parity_finds_faults(monkeypatch) -> None:
    from schedgym.envs import SchedulingVectorEnv

    original = SchedulingVectorEnv.step

    def step(self, actions):
        observations, rewards, *rest = original(self, actions)
        return (observations, rewards.astype(np.float32), *rest)

    monkeypatch.setattr(SchedulingVectorEnv, "step", step)
    with pytest.raises(AssertionError, match="rewards against SyncVectorEnv"):
        check_vector_parity(ID, **SMALL)
    monkeypatch.undo()
    with pytest.raises(AssertionError, match="more steps"):
        check_vector_parity(ID, steps=3, **SMALL)


def test_arguments_are_checked() -> None:
    for num_envs in (0, -1, 2.0, None):
        with pytest.raises(InvalidParameter, match="num_envs"):
            make(num_envs)
    for threads in (0, 1.0, True, "2", None):
        with pytest.raises(InvalidParameter, match="threads: must be at least 1, got"):
            make(threads=threads)
    with pytest.raises(UnknownName, match="did you mean 'SameStep'"):
        make(mode="SameSteps")
    with pytest.raises(UnknownName, match="unknown device 3; known: cpu, cuda"):
        make(device=3)
    env = make()
    for ask in (lambda: env.step(close(env)), lambda: env.record(0)):
        with pytest.raises(ResetNeeded, match="call reset before"):
            ask()
    with pytest.raises(InvalidParameter, match="3 elements, got 2"):
        env.reset(seed=[1, 2])
    with pytest.raises(UnknownName, match="did you mean 'reset_mask'"):
        env.reset(options={"reset_masks": np.ones(3, dtype=bool)})
    with pytest.raises(ResetNeeded, match="first reset"):
        env.reset(options={"reset_mask": np.array([True, False, False])})
    env.reset(seed=0)
    for mask in ([True] * 3, np.ones(3), np.ones(4, dtype=bool), np.zeros(3, dtype=bool)):
        with pytest.raises(InvalidParameter, match="reset_mask"):
            env.reset(options={"reset_mask": mask})


def test_environments_without_a_seed_differ() -> None:
    one, other = make(4), make(4)
    first, second = one.reset()[0], other.reset()[0]
    demands = np.concatenate([first["demand"][:, 0, 0], second["demand"][:, 0, 0]])
    assert len(set(demands.tolist())) == 8


def test_seeds_of_a_list_may_be_none() -> None:
    env, same = make(), make()
    first = env.reset(seed=[5, 6, 7])[0]
    second = env.reset(seed=[5, None, None])[0]
    assert not difference(first["demand"][0], second["demand"][0])
    assert difference(first["demand"][1], second["demand"][1])
    same.reset(seed=6)
    assert not difference(same.reset()[0]["demand"][0], second["demand"][1])


def instance(execution: float):
    return make_workload([(0, execution, 0.5, 0.5)] * 5, [(1, 1), (0.5, 0.5), (1, 0.5)])


def test_given_workloads() -> None:
    env = make(3, "SameStep")
    three = [instance(float(i + 1)) for i in range(3)]
    observations, _ = env.reset(seed=0, options={"workload": three})
    assert observations["execution"][:, 0].tolist() == [1.0, 2.0, 3.0]
    observations, _ = env.reset(options={"workload": three[2], "repeat": True})
    assert observations["execution"][:, 0].tolist() == [3.0] * 3
    assert [env.unwrapped.record(i).workload == three[2] for i in range(3)] == [True] * 3
    for _ in range(10):
        observations, *_ = env.step(close(env))
        assert observations["execution"][:, 0].tolist() == [3.0] * 3
    with pytest.raises(InvalidParameter, match="3 elements, got 2"):
        env.reset(options={"workload": three[:2]})
    longer = make_workload([(0, 1, 0.5, 0.5)], [(1, 1)])
    before = env.unwrapped.record(0).workload
    with pytest.raises(InvalidWorkload, match="1 servers, the environment has 3"):
        env.reset(options={"workload": [three[0], three[1], longer]})
    assert env.unwrapped.record(0).workload == before


def test_a_workload_given_once_serves_one_episode() -> None:
    native = make(2, "SameStep")
    sync = SyncVectorEnv([lambda: gym.make(ID, **SMALL)] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    options = {"workload": instance(2.0)}
    for env in (native, sync):
        env.reset(seed=3, options=dict(options))
    for _ in range(30):
        assert not difference(native.step(close(native)), sync.step(close(native)))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_longer_workload_keeps_the_others_running_while_it_comes(threads: int) -> None:
    """SMALL has eight tasks: the arrays grow in a step in which the other environments act."""
    longer = make_workload([(i * 0.5, 3, 0.5, 0.5) for i in range(40)], [(1, 1), (0.5, 0.5), (1, 0.5)])
    env, reference = make(5, threads=threads), make(5)
    for each in (env, reference):
        each.reset(seed=0)
    env.unwrapped.simulator.give(1, longer, False)
    others, came = np.array([0, 2, 3, 4]), False
    for _ in range(60):
        mine, theirs = env.step(close(env)), reference.step(close(env))
        for name in mine[0]:
            assert not difference(mine[0][name][others], theirs[0][name][others]), name
        came = came or env.unwrapped.record(1).workload == longer
    assert came


def with_another(id: str, view: dict[str, object]) -> list[tuple[dict[str, object], Workload]]:
    """Parameters, and a workload of another size; those of a problem whose environments fix it."""
    if others := getattr(schedules_of(get_problem(id).name), "others", None):
        return [(small(id, **view), workload) for workload in others()]
    shorter, longer, *_ = workloads(id)
    return [(short(id, **view), longer), (small(id, **view), shorter)]


@pytest.mark.parametrize(("id", "view"), some(CASES, of=8, late=3))
def test_one_of_many_with_a_workload_of_its_own(id: str, view: dict[str, object]) -> None:
    """Given in the midst of an episode; each plays as an environment alone, and nothing is left behind."""
    for parameters, workload in with_another(id, view):
        env, fresh = (gym.make_vec(id, num_envs=3, autoreset_mode="Disabled", **parameters) for _ in range(2))
        alone = [gym.make(id, disable_env_checker=True, **parameters).unwrapped for _ in range(3)]
        rng, over, space = np.random.default_rng(0), np.zeros(3, dtype=bool), env.single_action_space
        shown, _ = env.reset(seed=5)
        for i, one in enumerate(alone):
            one.reset(seed=5 + i)
        for step in range(100):
            if step == 3 or over.any():
                again, own = over | ((step == 3) & (np.arange(3) == 1)), {}
                if step == 3:
                    own["workload"] = workload
                    alone[1] = gym.make(id, disable_env_checker=True, **parameters).unwrapped
                seeds = [10 * step + i if again[i] else None for i in range(3)]
                shown, _ = env.reset(seed=seeds, options={"reset_mask": again, **own})
                for i in np.flatnonzero(again):
                    seen, _ = alone[i].reset(seed=seeds[i], options=own)
                    assert not (found := difference({name: a[i] for name, a in shown.items()}, seen)), found
            rows = [{name: array[i] for name, array in shown.items()} for i in range(3)]
            actions = np.array([sample_action(space, row, rng) for row in rows], dtype=space.dtype)
            shown, rewards, terminated, truncated, _ = env.step(actions)
            over = terminated | truncated
            for i, one in enumerate(alone):
                seen, reward, *ends, _ = one.step(actions[i])
                assert not (found := difference({name: a[i] for name, a in shown.items()}, seen)), found
                assert (rewards[i], terminated[i], truncated[i]) == (reward, *ends), (step, i)
                if over[i]:
                    get_problem(id).module("metrics").validate(env.unwrapped.record(i))
                    assert env.unwrapped.record(i).digest() == one.record().digest()
        assert not (found := difference(env.reset(seed=9), fresh.reset(seed=9))), found
        for _ in range(4):
            actions = np.array([sample_action(space, row, rng) for row in rows], dtype=space.dtype)
            mine = env.step(actions)
            assert not (found := difference(mine, fresh.step(actions))), found
            if (mine[2] | mine[3]).any():
                break


def first_fitting(observations) -> np.ndarray:
    """The first task that fits, else closing; environment 1 places nothing, so that it ends first."""
    actions = observations["action_mask"].argmax(axis=1)
    actions[1] = observations["action_mask"].shape[1] - 1
    return actions


def infeasible_batch(env, observations, done: np.ndarray) -> np.ndarray | None:
    """Feasible actions, but for one environment whose episode goes on; None if it has no other."""
    actions = first_fitting(observations)
    for i in np.flatnonzero(~done):
        row = {name: array[i] for name, array in observations.items()}
        bad = infeasible_action(env.single_action_space, row, np.random.default_rng(0))
        if bad is not None:
            actions[i] = bad
            return actions
    return None


def play_to_an_end(env, seed: int):
    """Play until the first episode ends."""
    observations, _ = env.reset(seed=seed)
    while True:
        observations, _, terminations, truncations, _ = env.step(first_fitting(observations))
        done = terminations | truncations
        if done.any():
            assert done.tolist() == [False, True, False]
            return observations, done


@pytest.mark.parametrize("threads", [1, 3])
def test_strict_names_the_environment_and_changes_nothing(threads: int) -> None:
    env, reference = make(3, strict=True, threads=threads), make(3, strict=True)
    observations, _ = env.reset(seed=2)
    reference.reset(seed=2)
    done = np.zeros(3, dtype=bool)
    refused = 0
    for _ in range(60):
        bad = infeasible_batch(env, observations, done)
        if bad is not None:
            refused += 1
            i = int(np.flatnonzero(bad != first_fitting(observations))[0])
            with pytest.raises(InvalidAction, match=rf"actions\[{i}\]: {bad[i]} is infeasible"):
                env.step(bad)
        actions = first_fitting(observations)
        result = env.step(actions)
        assert not difference(result, reference.step(actions))
        observations, done = result[0], result[2] | result[3]
    assert refused > 30


@pytest.mark.parametrize("then", ["step", "reset", "seed"])
def test_a_refused_step_while_another_environment_awaits_its_reset(then: str) -> None:
    """NEXT_STEP: the refusal must not draw the next episode twice, nor leave a stale one behind."""
    env, reference = make(3, strict=True, threads=2), make(3, strict=True)
    observations, done = play_to_an_end(env, 4)
    play_to_an_end(reference, 4)
    with pytest.raises(InvalidAction):
        env.step(infeasible_batch(env, observations, done))
    if then != "step":
        result = env.reset(seed=9 if then == "seed" else None)
        assert not difference(result, reference.reset(seed=9 if then == "seed" else None))
        observations = result[0]
    for step in range(100):  # over several ends of episodes
        actions = first_fitting(observations)
        result = env.step(actions)
        assert not difference(result, reference.step(actions)), step
        observations = result[0]


def test_threads_of_a_forked_process() -> None:
    """They do not outlive a fork: the child must not wait for those of its parent."""
    context = multiprocessing.get_context("fork")
    env = make(4, threads=2)
    env.reset(seed=0)
    env.step(close(env))

    def play() -> None:
        for _ in range(5):
            env.step(close(env))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: the parent has threads
        child = context.Process(target=play)
        child.start()
    child.join(60)
    assert child.exitcode == 0
    play()


@pytest.mark.parametrize("where", ["here", "there", "meanwhile"])
def test_what_a_thread_raises_is_raised_when_all_are_at_rest(where: str) -> None:
    workers = Workers(8, 3)
    here = threading.get_ident()
    together = threading.Barrier(3, timeout=60)
    met: set[int] = set()
    busy: set[int] = set()

    def fail() -> None:
        raise KeyError("what went wrong")

    def meet(thread: int) -> None:
        if thread not in met:
            met.add(thread)
            together.wait()  # all three have begun

    def advance(command: np.ndarray, thread: int) -> int:
        busy.add(thread)
        try:
            meet(thread)
            if where != "meanwhile" and (threading.get_ident() == here) == (where == "here"):
                fail()
            time.sleep(0.05)
        finally:
            busy.discard(thread)
        return 1

    def meanwhile() -> None:
        if where == "meanwhile":
            meet(0)
            fail()

    with pytest.raises(KeyError, match="what went wrong"):
        workers.run(advance, np.ones(8, dtype=np.int8), meanwhile)
    assert met == {0, 1, 2} and not busy
    assert workers.run(lambda command, thread: int(command.sum()), np.ones(8, dtype=np.int8)) == 8


def test_threads_end_with_their_environment() -> None:
    before = set(threading.enumerate())
    env = make(4, threads=3)
    env.reset(seed=0)
    env.step(close(env))
    own = set(threading.enumerate()) - before
    assert 1 <= len(own) <= 2  # who is idle takes what comes next
    del env
    gc.collect()
    for thread in own:
        thread.join(60)
        assert not thread.is_alive()


def test_workers_do_every_block_once() -> None:
    workers = Workers(11, 3)
    done = np.zeros(11, dtype=int)

    def advance(command: np.ndarray, thread: int) -> int:
        done[command == 1] += 1
        return int(np.count_nonzero(command))

    begun = []
    for _ in range(20):
        assert workers.run(advance, np.ones(11, dtype=np.int8), lambda: begun.append(1)) == 11
    assert (done == 20).all() and len(begun) == 20
    command = np.zeros(11, dtype=np.int8)
    assert workers.run(advance, command) == 0  # nothing of the command before is left
    assert workers.run(lambda own, thread: -5 if own[3] else 1, np.ones(11, dtype=np.int8)) == -5


@pytest.mark.parametrize("kind", ["one", "vector", "threads"])
@pytest.mark.parametrize("id", IDS)
def test_a_second_thread_is_refused_and_changes_nothing(id: str, kind: str) -> None:
    """While a thread is in step: another one's step and reset; the episode goes on as without them."""
    parameters = {} if kind == "one" else {"num_envs": 4, "threads": 2 if kind == "threads" else 1}
    make = gym.make if kind == "one" else gym.make_vec

    def play(env: Any, disturb: bool) -> list[Any]:
        env.reset(seed=3)
        env.action_space.seed(0)
        actions = [env.action_space.sample() for _ in range(3)]
        step, found, refused = env.unwrapped.simulator.step, [], []

        def step_and_wait(*arguments: Any) -> int:
            other = threading.Thread(target=call_all)
            other.start()
            other.join(60)
            assert not other.is_alive(), "the second thread waits"
            return step(*arguments)

        def call_all() -> None:
            for call in (lambda: env.step(actions[-1]), lambda: env.reset(seed=9), lambda: env.reset()):
                with pytest.raises(ConcurrentUse, match="another thread is in step or reset"):
                    call()
                refused.append(call)

        if disturb:
            env.unwrapped.simulator.step = step_and_wait
        for action in actions:
            observation, reward, *_ = env.step(action)
            found += [*(np.array(observation[name]).tolist() for name in sorted(observation)), str(reward)]
        assert len(refused) == (9 if disturb else 0)
        if disturb:
            env.unwrapped.simulator.step = step
            env.reset(seed=9)
            pickle.loads(pickle.dumps(env.unwrapped)).reset()
        return found

    assert play(make(id, **parameters), True) == play(make(id, **parameters), False)


def test_two_threads_that_step_one_environment_come_to_an_end() -> None:
    """They would loop for ever in the kernel."""
    env = gym.make_vec(ID, num_envs=512)
    env.reset(seed=0)
    action = env.action_space.sample()
    counts: list[int] = []

    def step_often() -> None:
        refused = 0
        for _ in range(200):
            try:
                env.step(action)
            except ConcurrentUse:
                refused += 1
        counts.append(refused)

    threads = [threading.Thread(target=step_often) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counts) == 2
    env.step(action)


@pytest.mark.parametrize(
    "mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP], ids=lambda mode: mode.value
)
@pytest.mark.parametrize("id", IDS)
def test_a_time_limit_is_that_of_the_wrapper(id: str, mode: AutoresetMode) -> None:
    """Observations, ends and infos, with the metrics reached so far, of episodes cut after 3 steps."""
    limited = {**short(id), "max_episode_steps": 3}
    native = gym.make_vec(id, num_envs=3, autoreset_mode=mode, **limited)
    single = {"autoreset_mode": mode}
    wrapped = gym.make_vec(id, num_envs=3, vectorization_mode="sync", vector_kwargs=single, **limited)
    first = native.reset(seed=5)
    assert not (found := difference(first, wrapped.reset(seed=5))), found
    observation, cut = first[0], 0
    rng = np.random.default_rng(0)
    for _ in range(12):
        rows = [{name: array[i] for name, array in observation.items()} for i in range(3)]
        actions = np.array([sample_action(native.single_action_space, row, rng) for row in rows])
        mine, theirs = native.step(actions), wrapped.step(actions)
        assert not (found := difference(mine, theirs)), found
        observation, cut = mine[0], cut + int(mine[3].sum())
    assert cut >= 6
    with pytest.raises(InvalidParameter, match="max_episode_steps: must be at least 1, got 0"):
        gym.make_vec(id, num_envs=1, **{**limited, "max_episode_steps": 0})


@pytest.mark.parametrize("make_env", [gym.make, gym.make_vec], ids=["scalar", "vector"])
def test_an_unexpected_keyword_is_a_type_error(make_env: Any) -> None:
    """TorchRL tries ``frameskip`` and waits for it."""
    with pytest.raises(InvalidParameter, match="copy: must be True or False, got 'x'"):
        make_env(ID, copy="x")
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'frameskip'") as caught:
        make_env(ID, frameskip=1)
    assert isinstance(caught.value, UnknownName)
    near = pytest.raises(TypeError, make_env, ID, veiw="pick").value
    assert "did you mean 'view'" in str(pickle.loads(pickle.dumps(near)))
