"""Malformed actions by the thousand: each is refused, and episodes go on as if it had never been tried.

``SCHEDGYM_FUZZ=20000`` (``.ci/checks``) tries 100,000 in all instead of 1,250, over every id, view and kind
of observation; half of them on one environment, half on a batch that two threads advance.
"""

from __future__ import annotations

import os
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from schedgym.errors import InvalidAction
from schedgym.testing import difference, malformed_actions, sample_action
from tests.test_all_problems import CASES, short

COUNT = 5 * int(os.environ.get("SCHEDGYM_FUZZ", "250"))
EACH = -(-COUNT // (2 * len(CASES)))  # for one environment, and for a batch
STEPS = 25
BATCH = 3
KINDS = ("?", "c16", "O", "U8", "S8", "M8[s]", "m8[s]", "V8")  # no numbers in order
WHOLE = ("i1", "u1", "i2", "u4", "i8", "u8")
REAL = ("f2", "f4", "f8", "longdouble")


def out_of_range(size: int, rng: np.random.Generator) -> int:
    """A whole number that is not below ``size`` and from 0; some need more than 64 bits."""
    far = int(rng.integers(1, 2**62)) >> int(rng.integers(62))
    return (-1 - far, size + far, 2**32 * (1 + far % 9), 2**63 + far, 2**64 * (1 + far % 9))[rng.integers(5)]


def wrong_form(valid: np.ndarray[Any, Any], rng: np.random.Generator) -> Any:
    """The values of an action in a shape or a type that is not the space's."""
    if rng.random() < 0.4:
        return np.zeros(valid.shape, dtype=KINDS[rng.integers(len(KINDS))])
    shape = list(valid.shape)
    for _ in range(rng.integers(1, 3)):
        at = int(rng.integers(len(shape) + 1))
        if at < len(shape) and rng.random() < 0.7:
            shape[at] = int(rng.integers(0, 2 * shape[at] + 2))
        else:
            shape.insert(at, int(rng.integers(0, 3)))
    array = np.zeros(shape if shape != list(valid.shape) else [*shape, 1], dtype=valid.dtype)
    return array.tolist() if rng.random() < 0.3 and array.size else array


def wrong_number(valid: np.ndarray[Any, Any], simulator: Any, rng: np.random.Generator) -> Any:
    """An action of which one number that counts is not finite, or out of range."""
    batch = simulator.num_envs > 1
    b = int(rng.integers(simulator.num_envs))
    if simulator.continuous:
        rows = int(simulator.rows[b])
        if rows == 0:
            return None
        wrong = valid.astype(REAL[rng.integers(len(REAL))])
        place = [int(rng.integers(rows)), *(int(rng.integers(n)) for n in simulator.action_shape[1:])]
        wrong[(b, *place) if batch else tuple(place)] = (np.nan, np.inf, -np.inf)[rng.integers(3)]
    else:
        sizes = simulator.action_sizes
        k = int(rng.integers(len(sizes)))
        flat = valid.reshape(-1).tolist()
        flat[b * len(sizes) + k] = out_of_range(int(sizes[k]), rng)
        wrong = np.array(flat).reshape(valid.shape)  # of objects, where 64 bits do not suffice
        if valid.ndim == 0 and rng.random() < 0.5:
            return flat[0]
        for kind in rng.permutation(WHOLE):  # in a small type, if it fits
            if wrong.dtype.kind in "iu" and (wrong.astype(kind) == wrong).all() and rng.random() < 0.5:
                return wrong.astype(kind)
    return wrong.tolist() if rng.random() < 0.2 else wrong


def malformed(listed: list[Any], valid: Any, simulator: Any, rng: np.random.Generator) -> Any:
    """A malformed action, by one of three ways to make one."""
    what, valid = rng.random(), np.asarray(valid)
    if listed and what < 0.3:
        return listed[rng.integers(len(listed))]
    wrong = wrong_number(valid, simulator, rng) if what < 0.7 else None
    return wrong_form(valid, rng) if wrong is None else wrong


def refuse(env: Any, listed: list[Any], valid: Any, count: int, rng: np.random.Generator) -> None:
    """Try ``count`` malformed actions."""
    for _ in range(count):
        wrong = malformed(listed, valid, env.unwrapped.simulator, rng)
        with pytest.raises(InvalidAction) as caught:
            env.step(wrong)
            pytest.fail(f"accepted: {wrong!r}")
        assert len(str(caught.value).splitlines()) == 1 and len(str(caught.value)) < 500, str(caught.value)


@pytest.mark.filterwarnings(
    "ignore:overflow encountered:RuntimeWarning"
)  # numpy's own, of a large longdouble
@pytest.mark.parametrize(("id", "view"), CASES)
def test_malformed_actions_are_refused_and_change_nothing(id: str, view: dict[str, Any]) -> None:
    env, twin = (gym.make(id, disable_env_checker=True, **short(id, **view)) for _ in range(2))
    rng, listed = np.random.default_rng(0), malformed_actions(env.action_space)
    shown = env.reset(seed=0)[0]
    assert not difference(shown, twin.reset(seed=0)[0])
    left, step = EACH, 0
    while left:
        valid = sample_action(env.action_space, shown, rng)
        most = min(-(-EACH // STEPS), left)
        refuse(env, listed, valid, most, rng)
        left, step = left - most, step + 1
        mine, theirs = env.step(valid), twin.step(valid)
        assert not difference(mine, theirs), f"step {step}"
        shown = mine[0]
        if mine[2] or mine[3]:
            assert env.unwrapped.record().digest() == twin.unwrapped.record().digest()
            shown = env.reset()[0]
            assert not difference(shown, twin.reset()[0])


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize(("id", "view"), CASES)
def test_malformed_actions_of_a_batch_are_refused_and_change_nothing(id: str, view: dict[str, Any]) -> None:
    env, twin = (
        gym.make_vec(id, num_envs=BATCH, threads=threads, autoreset_mode="SameStep", **short(id, **view))
        for threads in (2, 1)
    )
    rng, space = np.random.default_rng(1), env.single_action_space
    shown = env.reset(seed=0)[0]
    assert not difference(shown, twin.reset(seed=0)[0])
    left, step = EACH, 0
    while left:
        rows = [{name: array[i] for name, array in shown.items()} for i in range(BATCH)]
        valid = np.array([sample_action(space, row, rng) for row in rows], dtype=space.dtype)
        most = min(-(-EACH // STEPS), left)
        refuse(env, [], valid, most, rng)
        left, step = left - most, step + 1
        mine = env.step(valid)
        assert not difference(mine, twin.step(valid)), f"step {step}"
        shown = mine[0]
    for i in range(BATCH):
        assert env.unwrapped.record(i).digest() == twin.unwrapped.record(i).digest()
