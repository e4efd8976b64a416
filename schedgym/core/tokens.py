"""The description of a problem's tokens for agents, which its module ``tokens`` exports as ``TOKENS``.

With ``observation="features"`` an observation is sets of tokens (float32, a job or a server each), numbers
about the whole ("globals") and masks. An agent gives scores: to each token of a set, to each pair of tokens
of two sets, or a fixed number of scores that the whole observation decides. A :class:`ScoredView` says which
scores an action view takes, and how they make the action:

* kind ``choice``: the action is the index of the largest open score.
* kind ``pairs``: the same, and the index names a pair of tokens; the last one closes the decision.
* kind ``scores``: the action is a Box, one number per score, within ``bounds``.

A small scorer also wants columns in which heuristics are sums: tokens hold sizes x as x / (x + c), of which
:func:`log_odds` are log(x / c). The functions in :attr:`Scores.columns` make them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.problem import get_problem
from schedgym.errors import InvalidParameter

__all__ = [
    "EDGE",
    "RULE_VIEW",
    "Columns",
    "ScoredView",
    "Scores",
    "TokenRows",
    "TokenSet",
    "Tokens",
    "log_odds",
    "tokens_of",
    "unscaled",
]

F4 = npt.NDArray[np.float32]
I8 = npt.NDArray[np.int64]
Observation = Mapping[str, npt.NDArray[Any]]
#: (name, values [T]) of each column of T tokens
Columns = list[tuple[str, F4]]

EDGE = np.float32(1e-5)  # log-odds are cut off here


@dataclasses.dataclass(frozen=True)
class TokenSet:
    """Tokens of one entry of an observation, [n, F], or of pairs [n, m, F].

    Attributes:
        key: key of the entry.
        mask: key of the mask that says which tokens are there; None: all are.
        axes: for pairs, the keys of the sets of the rows and of the columns; None in the first place: the
            set of the rows is not shown.
    """

    key: str
    mask: str | None = None
    axes: tuple[str | None, str] | None = None


class TokenRows:
    """Single tokens out of a batch of observations, one after the other: T rows.

    Args:
        observation: a batch of observations, [B, ...].
        sets: the set of the tokens, or the two sets of whose pairs they are.
        env: environment of each row, int64 [T].
        slot: its place among the tokens or pairs, int64 [T].

    Attributes:
        observation, env: the arguments.
        places: key -> index of each row's token in that entry.
    """

    def __init__(self, observation: Observation, sets: tuple[TokenSet, ...], env: I8, slot: I8) -> None:
        self.observation, self.env = observation, env
        first = sets[0]
        self.places: dict[str, tuple[I8, ...]] = {first.key: (env, slot)}
        if first.axes is not None:
            row, column = first.axes
            width = observation[first.key].shape[2]
            self.places = {first.key: (env, slot // width, slot % width), column: (env, slot % width)}
            if row is not None:
                self.places[row] = (env, slot // width)
        elif len(sets) == 2:
            other = sets[1].key
            width = observation[other].shape[1]
            self.places = {first.key: (env, slot // width), other: (env, slot % width)}

    def __getitem__(self, key: str) -> F4:
        """The rows' own tokens in this entry, [F, T]; ``globals``: those of their environments."""
        index: Any = self.env if key == "globals" else self.places[key]
        return np.asarray(self.observation[key][index].T)

    def plain(self) -> Columns:
        """The features of the tokens as they are."""
        return [(f"{key} {i}", column) for key in self.places for i, column in enumerate(self[key])]


@dataclasses.dataclass(frozen=True)
class Scores:
    """Consecutive scores of an agent.

    Attributes:
        name: the subject of the decision.
        tokens: keys of the sets that are scored: one set, token by token, or two sets, pair by pair (the
            first varies slowest); empty for scores that the whole observation decides.
        columns: makes the columns that a small scorer sees of the tokens; None: their features as they are.
        count: number of scores where there are no tokens; None: one for each action.
    """

    name: str
    tokens: tuple[str, ...] = ()
    columns: Callable[[TokenRows], Columns] = TokenRows.plain
    count: int | None = 1


@dataclasses.dataclass(frozen=True)
class ScoredView:
    """The meaning of an agent's scores in one action view.

    Attributes:
        kind: "choice", "pairs" or "scores"; see the module.
        segments: the segments, in the order of the scores.
        transform: for kind scores, how a deterministic agent's scores fill the Box: "squash", monotone onto
            the bounds; "clip"; "weight", exp(score - largest score).
        bounds: for kind scores, the bounds of the Box.
        scale: for transform "clip", what an agent's scores are divided by first.
    """

    kind: str
    segments: tuple[Scores, ...]
    transform: str = ""
    bounds: tuple[float, float] | None = None
    scale: float = 1.0


#: a view whose action names one of the problem's own rules
RULE_VIEW = ScoredView("choice", (Scores("rule", count=None),))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tokens:
    """The description of a problem for agents: its tokens, and the scores of its action views.

    Attributes:
        sets: the sets of tokens, in the order in which networks pool them; which of them an observation has
            may depend on the view.
        globals: names of the features in the entry ``globals``.
        views: action view -> meaning of the scores; views whose action is a whole plan are not among them.
        acting: parameters of the environment that belong to the agent and keep its values unless an
            evaluation sets them: what is visible, when the agent is asked for a decision, and how its view
            turns actions into decisions. All others define the problem.
        exact: further names of columns of jobs in exact units -> entry of the observation, and its column.
    """

    sets: tuple[TokenSet, ...]
    globals: tuple[str, ...]
    views: Mapping[str, ScoredView]
    acting: tuple[str, ...] = ()
    exact: Mapping[str, tuple[str, int]] = dataclasses.field(default_factory=dict)


def tokens_of(problem: str) -> Tokens:
    """The tokens of a problem.

    Args:
        problem: its name, or an environment id.

    Raises:
        UnknownName: if there is no such problem.
        InvalidParameter: if it has no module ``tokens``.
    """
    found = get_problem(problem)
    try:
        tokens: Tokens = found.module("tokens").TOKENS
    except ModuleNotFoundError as error:
        if error.name != f"{found.package}.tokens":
            raise
        raise InvalidParameter(f"{found.name}: has no module tokens.py, which agents need") from None
    return tokens


def log_odds(share: F4) -> F4:
    """log(x / c) of x / (x + c)."""
    share = np.clip(share, EDGE, np.float32(1.0) - EDGE)
    return np.log(share / (np.float32(1.0) - share))


def unscaled(share: F4, scale: float) -> F4:
    """The number n of n / (n + scale)."""
    return np.float32(scale) * share / (np.float32(1.0 + 1e-6) - share)
