"""Scores become actions: the layouts fit the environments, and only open actions are chosen."""

from __future__ import annotations

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from schedgym.agents.views import Layout, Segment, layout_of, make_layout
from schedgym.core.problem import list_problems
from schedgym.core.tokens import TokenSet, tokens_of
from schedgym.errors import InvalidParameter, UnknownName
from tests.agents.cases import CASES, observations, vector

ID = "schedgym/QueueDelay-v0"

numbers = st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, 1.0])  # of which some are equal


def layout(kind: str, count: int, **more: object) -> Layout:
    tokens = TokenSet("jobs", "job_mask")
    return Layout("p", "v", kind, (Segment("job", (tokens,), count),), (tokens,), {}, count, **more)


def first_of_the_largest(scores: np.ndarray, mask: np.ndarray) -> int:
    best = -1
    for i, (score, is_open) in enumerate(zip(scores, mask, strict=True)):
        if is_open and (best < 0 or score > scores[best]):
            best = i
    return best


def test_views_are_those_of_the_problems() -> None:
    for problem in list_problems().values():
        assert set(tokens_of(problem.name).views) <= {view.name for view in problem.views}
        assert set(tokens_of(problem.name).acting) <= set(problem.parameters.__dataclass_fields__)


@pytest.mark.parametrize(("id", "view"), CASES)
def test_layouts_fit_the_environments(id: str, view: str) -> None:
    env, layout = vector(id, view)
    space = env.single_action_space
    assert layout.size == sum(segment.count for segment in layout.segments)
    for observation in observations(env, layout, 5):
        one = {name: array[0] for name, array in observation.items()}
        again = layout_of(env.interface.problem, view, one)
        for name in ("kind", "segments", "context", "features", "size", "transform", "shape"):
            assert getattr(again, name) == getattr(layout, name), name
        for segment in layout.segments:
            counts = [np.prod(one[sequence.key].shape[:-1]) for sequence in segment.tokens]
            assert not counts or segment.count == np.prod(counts)
        for sequence in layout.context:
            assert layout.features[sequence.key] == one[sequence.key].shape[-1]
            assert one[sequence.key].ndim == 2
            assert sequence.mask is None or one[sequence.mask].shape == one[sequence.key].shape[:1]
    tokens = tokens_of(id)
    shown = {own.key for own in tokens.sets} & one.keys()
    assert set(layout.features) == shown | {"globals"}
    assert len(tokens.globals) == layout.features["globals"] == len(one["globals"])
    known = {"action_mask", *(own.mask for own in tokens.sets)}
    assert set(one) == shown | {"globals"} | (known & one.keys()), "an entry that no agent sees"
    if layout.kind == "scores":
        assert isinstance(space, spaces.Box)
        np.testing.assert_array_equal(layout.low, space.low)
        np.testing.assert_array_equal(layout.high, space.high)
    elif layout.kind == "pairs":
        assert isinstance(space, spaces.MultiDiscrete)
        assert tuple(space.nvec) == (layout.shape[0] + 1, layout.shape[1])
    else:
        assert isinstance(space, spaces.Discrete)
        assert space.n == layout.size


@settings(max_examples=100)
@given(st.data(), st.integers(1, 6), st.integers(1, 9))
def test_the_first_of_the_largest_open_scores_is_chosen(data: st.DataObject, batch: int, size: int) -> None:
    scores = data.draw(arrays(np.float32, (batch, size), elements=numbers))
    mask = data.draw(arrays(np.int8, (batch, size), elements=st.integers(0, 1)))
    mask[np.arange(batch), data.draw(st.integers(0, size - 1))] = 1
    chosen = layout("choice", size).decode(scores, {"action_mask": mask})
    assert chosen.tolist() == [first_of_the_largest(s, m) for s, m in zip(scores, mask, strict=True)]
    for i in range(batch):  # one by one it is the same
        assert layout("choice", size).decode(scores[i], {"action_mask": mask[i]}) == chosen[i]


@settings(max_examples=100)
@given(st.data(), array_shapes(min_dims=3, max_dims=3, max_side=5))
def test_pairs_and_the_end_of_an_epoch(data: st.DataObject, shape: tuple[int, int, int]) -> None:
    batch, rows, columns = shape
    size = rows * columns + 1
    own = layout("pairs", size, shape=(rows, columns))
    scores = data.draw(arrays(np.float32, (batch, size), elements=numbers))
    mask = data.draw(arrays(np.int8, shape, elements=st.integers(0, 1)))
    chosen = own.decode(scores, {"action_mask": mask})
    assert chosen.shape == (batch, 2)
    for s, m, (row, column) in zip(scores, mask, chosen.tolist(), strict=True):
        best = first_of_the_largest(s, np.append(m.ravel(), 1))
        assert (row, column) == ((rows, 0) if best == size - 1 else divmod(best, columns))
        assert row == rows or m[row, column]
    flat = own.mask({"action_mask": mask})
    flat[...] = False  # a new array: the observation's own is as it was
    assert own.mask({"action_mask": mask})[:, -1].all()


@settings(max_examples=100)
@given(st.data(), st.integers(1, 8), st.sampled_from(["squash", "clip", "weight"]))
def test_scores_fill_a_box_in_their_order(data: st.DataObject, size: int, transform: str) -> None:
    low, high = (-10.0, 10.0) if transform == "clip" else (0.0 if transform == "weight" else -1.0, 1.0)
    bounds = {"low": np.full(size, low, np.float32), "high": np.full(size, high, np.float32)}
    own = layout("scores", size, transform=transform, **bounds)
    scores = data.draw(arrays(np.float32, size, elements=st.floats(-50, 50, width=32)))
    there = data.draw(arrays(np.int8, size, elements=st.integers(0, 1)))
    action = own.decode(scores, {"job_mask": there})
    assert action.dtype == np.float32
    assert (action >= low).all() and (action <= high).all()
    seen = np.flatnonzero(there)
    order = np.argsort(scores[seen], kind="stable")
    assert (np.diff(action[seen][order]) >= 0).all()
    if transform == "weight":
        assert (action[there == 0] == 0).all()
        assert not len(seen) or action.max() == 1
    elif transform == "squash":
        assert (np.abs(action) < 1).all()
    else:
        np.testing.assert_array_equal(action, np.minimum(np.maximum(scores, low), high))
        scaled = dataclasses.replace(own, scale=8.0).decode(scores, {"job_mask": there})
        np.testing.assert_array_equal(scaled, np.clip(scores.astype(np.float64) / 8, low, high))


def test_what_has_no_layout() -> None:
    with pytest.raises(UnknownName, match="view of single-job for agents that score 'plan'"):
        env = gym.make("schedgym/SingleJob-v0", view="plan", observation="features")
        make_layout("single-job", "plan", env.observation_space, env.action_space)
    env = gym.make(ID, view="pick")
    with pytest.raises(InvalidParameter, match="need observation='features'"):
        make_layout("queue-delay", "pick", env.observation_space, env.action_space)
    env = gym.make(ID, view="pick", observation="features")
    with pytest.raises(InvalidParameter, match="33 actions, but 9 scores"):
        make_layout("queue-delay", "route", env.observation_space, env.action_space)
    observation, _ = env.reset(seed=0)
    with pytest.raises(UnknownName, match="'picks'; did you mean 'pick'"):
        layout_of("queue-delay", "picks", observation)
