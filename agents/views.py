"""The layout of an environment's scores, which turns scores into actions, from the description of its tokens.

An agent of any kind (a small numpy scorer, a torch network) maps an observation with
``observation="features"`` to a flat vector of scores, [size]. A :class:`Layout` says what each of them
belongs to: *segments*, one after the other, each with one score per token (a job, a server, a pair of them)
or with a fixed number of scores that depend on the whole observation only. The kinds of views, and how they
make actions of scores, are those of :mod:`schedgym.core.tokens`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from schedgym.core.arrays import Flags, Floats32
from schedgym.core.tokens import TokenSet, tokens_of
from schedgym.errors import InvalidParameter, UnknownName


@dataclasses.dataclass(frozen=True)
class Segment:
    """Consecutive scores.

    Attributes:
        name: the subject of the decision.
        tokens: the sets that are scored: one set, token by token, or two sets, pair by pair (the first
            varies slowest); empty for scores that the whole observation decides.
        count: number of scores: that of the tokens, or of the pairs.
        width: number of pairs of each token of the first set, which are consecutive; 1 for single tokens.
        columns: name of the columns that a scorer sees of the tokens; "": there are none.
    """

    name: str
    tokens: tuple[TokenSet, ...]
    count: int
    width: int = 1
    columns: str = ""


@dataclasses.dataclass(frozen=True)
class Layout:
    """The meaning of each score of an agent, and the action that the scores make.

    Attributes:
        problem, view: names.
        kind: "choice", "pairs" or "scores".
        segments: the segments, in the order of the scores.
        context: the sets of single tokens to be pooled; ``globals`` always goes with them.
        features: key -> number of features of its tokens, of ``globals`` too.
        size: number of scores.
        low, high: for kind scores, the bounds of the Box, [size]; else None.
        transform: for kind scores, how a deterministic agent's scores fill the Box.
        scale: for transform "clip", what the scores are divided by first.
        shape: for kind pairs, (rows, columns).
    """

    problem: str
    view: str
    kind: str
    segments: tuple[Segment, ...]
    context: tuple[TokenSet, ...]
    features: Mapping[str, int]
    size: int
    low: Floats32 | None = None
    high: Floats32 | None = None
    transform: str = ""
    shape: tuple[int, int] | None = None
    scale: float = 1.0

    @property
    def places(self) -> list[slice]:
        """The slice of the scores of each segment."""
        ends = np.cumsum([segment.count for segment in self.segments]).tolist()
        return [slice(end - segment.count, end) for end, segment in zip(ends, self.segments, strict=True)]

    def mask(self, observation: Mapping[str, npt.NDArray[Any]]) -> Flags | None:
        """True for the scores that may become the action; None if the observation has no mask of actions.

        Args:
            observation: one observation, or a batch: leading axes are kept.

        Returns:
            bool [..., size], a new array.
        """
        given = observation.get("action_mask")
        if given is None or self.kind == "scores":
            return None
        if self.kind == "choice":
            return np.asarray(given).astype(bool)
        lead = np.asarray(given).shape[:-2]
        mask = np.ones((*lead, self.size), dtype=bool)
        mask[..., :-1] = np.asarray(given).reshape(*lead, self.size - 1)
        return mask

    def decode(self, scores: npt.NDArray[Any], observation: Mapping[str, npt.NDArray[Any]]) -> Any:
        """The deterministic action: the first of the largest open scores, or the scores brought into the Box.

        Args:
            scores: [..., size].
            observation: the observation that they were computed from, for its masks.

        Returns:
            as the environment takes them: choice int64 [...]; pairs int64 [..., 2]; scores float [..., size].
        """
        if self.kind == "scores":
            return self.take(scores, observation)
        mask = self.mask(observation)
        return self.take(
            np.argmax(scores if mask is None else np.where(mask, scores, -np.inf), axis=-1), observation
        )

    def take(self, chosen: Any, observation: Mapping[str, Any], ops: Any = np) -> Any:
        """The action as the environment takes it.

        Args:
            chosen: index of the chosen score [...], or for kind scores, the scores [..., size].
            observation: the observation that they were computed from, for its masks.
            ops: the module numpy, or torch: the arrays are its own.
        """
        if self.kind == "choice":
            return chosen
        return self.split(chosen, ops) if self.kind == "pairs" else self._fill(chosen, observation, ops)

    def split(self, index: Any, ops: Any = np) -> Any:
        """For kind pairs, flat index [...] -> (row, column) [..., 2]; the last is (rows, 0), which closes."""
        assert self.shape is not None
        index = ops.asarray(index)
        return ops.stack([index // self.shape[1], index % self.shape[1]], axis=-1)

    def _fill(self, scores: Any, observation: Mapping[str, Any], ops: Any) -> Any:
        assert self.low is not None and self.high is not None
        low, high = float(self.low[0]), float(self.high[0])  # those of all scores
        if self.transform == "clip":
            # in float64: multiplied again in the environment, it is the score once more
            scaled = scores if self.scale == 1.0 else ops.asarray(scores, dtype=ops.float64) / self.scale
            return ops.clip(scaled, low, high)
        if self.transform == "squash":
            return ops.clip(scores / (1.0 + ops.abs(scores)), low, high)
        mask = self.segments[0].tokens[0].mask
        if mask is not None:
            scores = ops.where(ops.asarray(observation[mask]) != 0, scores, -np.inf)
        top = ops.amax(scores, axis=-1)[..., None]
        return ops.exp(scores - ops.where(ops.isfinite(top), top, 0.0))


def _layout(problem: str, view: str, shapes: Mapping[str, tuple[int, ...]], actions: int) -> Layout:
    tokens = tokens_of(problem)
    if view not in tokens.views:
        raise UnknownName(f"view of {problem} for agents that score", view, tokens.views)
    if "globals" not in shapes:
        raise InvalidParameter("observation: agents need observation='features'")
    scored, sets = tokens.views[view], {own.key: own for own in tokens.sets}
    segments = []
    for own in scored.segments:
        lengths = [length for key in own.tokens for length in shapes[key][:-1]]
        count, width = math.prod(lengths), math.prod(lengths[1:])
        if not own.tokens:
            count = actions if own.count is None else own.count
        chosen = tuple(sets[key] for key in own.tokens)
        segments.append(Segment(own.name, chosen, count, width, own.columns))
    size = sum(segment.count for segment in segments)
    low = high = shape = None
    if scored.bounds is not None:
        low, high = (np.full(size, bound, dtype=np.float32) for bound in scored.bounds)
    if scored.kind == "pairs":
        first, second = scored.segments[0].tokens
        shape = (shapes[first][0], shapes[second][0])
    return Layout(
        problem=problem,
        view=view,
        kind=scored.kind,
        segments=tuple(segments),
        context=tuple(own for own in tokens.sets if own.axes is None and own.key in shapes),
        features={key: shapes[key][-1] for key in (*sets, "globals") if key in shapes},
        size=size,
        low=low,
        high=high,
        transform=scored.transform,
        shape=shape,
        scale=scored.scale,
    )


def make_layout(
    problem: str,
    view: str,
    observation_space: spaces.Space[Any],
    action_space: spaces.Space[Any],
) -> Layout:
    """The layout of one environment, from its own spaces (of a vector environment the ``single_`` ones).

    Raises:
        UnknownName: for a view that scores cannot decide.
        InvalidParameter: for observations other than "features".
    """
    entries = observation_space.spaces if isinstance(observation_space, spaces.Dict) else {}
    shapes = {name: tuple(space.shape or ()) for name, space in entries.items()}
    if isinstance(action_space, spaces.Box):
        actions = math.prod(action_space.shape)
    elif isinstance(action_space, spaces.MultiDiscrete):
        actions = int(action_space.nvec[0] - 1) * int(action_space.nvec[1]) + 1
    else:
        actions = int(getattr(action_space, "n", 0))
    layout = _layout(problem, view, shapes, actions)
    if actions != layout.size:
        raise InvalidParameter(f"view {view}: {actions} actions, but {layout.size} scores")
    return layout


def layout_of(problem: str, view: str, observation: Mapping[str, Any]) -> Layout:
    """The layout of the environment that gave this observation (of one environment, not a batch).

    Raises:
        UnknownName, InvalidParameter: as :func:`make_layout`.
    """
    shapes = {name: np.shape(value) for name, value in observation.items()}
    return _layout(problem, view, shapes, math.prod(shapes.get("action_mask", (0,))))
