"""How scores become actions: for each problem and view, which tokens an agent scores, and in what order.

An agent of any kind (a small numpy scorer, a torch network) maps an observation with
``observation="features"`` to a flat vector of scores, [size]. A :class:`Layout` says what each of them
belongs to: *segments*, one after the other, each with one score per token (a job, a server, a pair of them)
or with a fixed number of scores that depend on the whole observation only (close the epoch; which rule).

* kind ``choice``: the action is the index of the largest open score.
* kind ``pairs``: the same, and the index names a pair (task, server); the last one closes the epoch.
* kind ``scores``: the action is a Box, one number per score, from ``low`` to ``high``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from schedgym.errors import InvalidParameter, UnknownName

__all__ = ["VIEWS", "Layout", "Segment", "Sequence", "layout_of", "make_layout"]

F4 = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class Sequence:
    """A set of tokens in an observation: what a permutation leaves the same but for its order.

    Attributes:
        key: of the observation; [n, F], or of pairs [n, m, F].
        mask: key of the mask that says which tokens are there; None: all are.
    """

    key: str
    mask: str | None = None


@dataclasses.dataclass(frozen=True)
class Segment:
    """Consecutive scores.

    Attributes:
        name: what they decide on.
        tokens: what they score, one by one: one set of tokens, or two for each pair of their tokens (the
            first varies slowest); empty for scores that the whole observation decides.
        count: number of scores: that of the tokens, or of the pairs.
    """

    name: str
    tokens: tuple[Sequence, ...]
    count: int


@dataclasses.dataclass(frozen=True)
class _View:
    """One row of the table.

    Attributes:
        kind: see the module.
        segments: (name, keys of the tokens); without keys the segment has ``count`` scores.
        count: None: one for each action.
        transform, bounds: of kind scores; see :class:`Layout`.
    """

    kind: str
    segments: tuple[tuple[str, tuple[str, ...]], ...]
    count: int | None = 1
    transform: str = ""
    bounds: tuple[float, float] | None = None


_CLOSE: tuple[str, tuple[str, ...]] = ("close", ())
_RULE = _View("choice", (("rule", ()),), count=None)
_SCORES = _View("scores", (("job", ("jobs",)),), transform="squash", bounds=(-1.0, 1.0))

#: (problem, view) -> what its scores belong to. Views whose action is a whole plan (placement of every task,
#: cores of every job on every server) are not for scorers.
VIEWS: dict[tuple[str, str], _View] = {
    ("queue-delay", "placement"): _View("pairs", (("place", ("tasks", "servers")), _CLOSE)),
    ("queue-delay", "pick"): _View("choice", (("task", ("tasks",)), _CLOSE)),
    ("queue-delay", "route"): _View("choice", (("server", ("servers",)), ("queue", ()))),
    ("queue-delay", "rule"): _RULE,
    ("flowtime", "priority"): _SCORES,
    ("flowtime", "pick"): _View("choice", (("job", ("jobs",)), _CLOSE)),
    ("flowtime", "rule"): _RULE,
    ("geo", "priority"): _SCORES,
    ("geo", "weights"): _View("scores", (("job", ("jobs",)),), transform="weight", bounds=(0.0, 1.0)),
    ("geo", "pick"): _View("choice", (("job", ("jobs",)),)),
    ("geo", "rule"): _RULE,
    ("geo", "fair-rule"): _RULE,
    ("partial-value", "priority"): _View(
        "scores", (("job", ("jobs",)),), transform="clip", bounds=(-10.0, 10.0)
    ),
    ("partial-value", "prices"): _View(
        "scores", (("resource", ("resources",)),), transform="clip", bounds=(-50.0, 50.0)
    ),
    ("partial-value", "rule"): _RULE,
    ("single-job", "place"): _View("choice", (("server", ("servers",)),)),
    ("single-job", "search"): _View("choice", (("move", ("pairs",)), ("stop", ()))),
    ("parallel-jct", "pick"): _View("choice", (("job", ("jobs",)), ("end", ()))),
    ("parallel-jct", "place"): _View("choice", (("job", ("jobs",)), ("end", ()), ("server", ("servers",)))),
    ("parallel-jct", "search"): _View(
        "choice", (("job", ("jobs",)), ("end", ()), ("move", ("moves",)), ("launch", ()))
    ),
}

#: sets of tokens of each problem that come with a mask of those which are there
_MASKS = {"tasks": "task_mask", "jobs": "job_mask"}
#: sets of single tokens, in the order in which they are pooled into the context
_SINGLES = ("jobs", "tasks", "servers", "sites", "resources")
_PAIRS = ("pairs", "moves")


@dataclasses.dataclass(frozen=True)
class Layout:
    """What each of the scores of an agent belongs to, and the action that they make.

    Attributes:
        problem, view: names.
        kind: "choice", "pairs" or "scores" (see the module).
        segments: in the order of the scores.
        context: the sets of single tokens to be pooled; ``globals`` always goes with them.
        features: key -> number of features of its tokens, of ``globals`` too.
        size: number of scores.
        low, high: of kind scores: bounds of the Box, [size]; else None.
        transform: of kind scores, how a deterministic agent's scores fill the Box: "squash", monotone onto
            (low, high); "clip"; "weight", exp(score - largest score).
        shape: of kind pairs: (tasks, servers).
    """

    problem: str
    view: str
    kind: str
    segments: tuple[Segment, ...]
    context: tuple[Sequence, ...]
    features: Mapping[str, int]
    size: int
    low: F4 | None = None
    high: F4 | None = None
    transform: str = ""
    shape: tuple[int, int] | None = None

    def mask(self, observation: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.bool_] | None:
        """Which scores may become the action; None where the observation has no mask of actions.

        Args:
            observation: of one environment, or a batch: leading axes are kept.

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
            observation: that they were computed from; for its masks.

        Returns:
            as the environment takes them: choice int64 [...]; pairs int64 [..., 2]; scores float [..., size].
        """
        if self.kind == "scores":
            return self._fill(scores, observation)
        mask = self.mask(observation)
        chosen = np.argmax(scores if mask is None else np.where(mask, scores, -np.inf), axis=-1)
        return chosen if self.kind == "choice" else self.split(chosen)

    def split(self, index: Any) -> npt.NDArray[np.int64]:
        """Of kind pairs: flat index [...] -> (task, server) [..., 2]; the last index is (tasks, 0): close."""
        assert self.shape is not None
        index = np.asarray(index)
        return np.stack([index // self.shape[1], index % self.shape[1]], axis=-1)

    def _fill(self, scores: npt.NDArray[Any], observation: Mapping[str, npt.NDArray[Any]]) -> F4:
        assert self.low is not None and self.high is not None
        if self.transform == "clip":
            return np.clip(scores, self.low, self.high)
        if self.transform == "squash":
            return np.clip(scores / (1.0 + np.abs(scores)), self.low, self.high)
        mask = self.segments[0].tokens[0].mask
        if mask is not None:
            scores = np.where(np.asarray(observation[mask]).astype(bool), scores, -np.inf)
        top = scores.max(axis=-1, keepdims=True)
        return np.exp(scores - np.where(np.isfinite(top), top, 0.0))


def _layout(problem: str, view: str, shapes: Mapping[str, tuple[int, ...]], actions: int) -> Layout:
    row = VIEWS[problem, view]
    segments = []
    for name, keys in row.segments:
        tokens = tuple(Sequence(key, _MASKS.get(key)) for key in keys)
        count = math.prod(math.prod(shapes[key][:-1]) for key in keys)
        if not keys:
            count = actions if row.count is None else row.count
        segments.append(Segment(name, tokens, count))
    size = sum(segment.count for segment in segments)
    features = {name: shapes[name][-1] for name in (*_SINGLES, *_PAIRS, "globals") if name in shapes}
    low = high = None
    if row.bounds is not None:
        low, high = (np.full(size, bound, dtype=np.float32) for bound in row.bounds)
    shape = None
    if row.kind == "pairs":
        first, second = row.segments[0][1]
        shape = (shapes[first][0], shapes[second][0])
    return Layout(
        problem=problem,
        view=view,
        kind=row.kind,
        segments=tuple(segments),
        context=tuple(Sequence(key, _MASKS.get(key)) for key in _SINGLES if key in features),
        features=features,
        size=size,
        low=low,
        high=high,
        transform=row.transform,
        shape=shape,
    )


def _check(problem: str, view: str, shapes: Mapping[str, Any]) -> None:
    if (problem, view) not in VIEWS:
        known = [known for name, known in VIEWS if name == problem]
        raise UnknownName(f"view of {problem} for agents that score", view, known)
    if "globals" not in shapes:
        raise InvalidParameter("observation: agents need observation='features'")


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
    _check(problem, view, shapes)
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
    _check(problem, view, shapes)
    return _layout(problem, view, shapes, math.prod(shapes.get("action_mask", (0,))))
