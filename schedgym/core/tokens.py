"""The description of a problem's tokens for agents, which its module ``columns`` exports as ``TOKENS``.

With ``observation="features"`` an observation is sets of tokens (float32, a job or a server each), numbers
about the whole ("globals") and masks. An agent gives scores: to each token of a set, to each pair of tokens
of two sets, or a fixed number of scores that the whole observation decides. A :class:`ScoredView` says which
scores an action view takes, and how they make the action:

* kind ``choice``: the action is the index of the largest open score.
* kind ``pairs``: the same, and the index names a pair of tokens; the last one closes the decision.
* kind ``scores``: the action is a Box, one number per score, within ``bounds``.

A scorer also wants columns in which heuristics are sums: tokens hold sizes x as x / (x + c), of which the
columns have log(x / c). The module :mod:`schedgym.core.scorer` says how a problem writes them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from schedgym.core.problem import get_problem
from schedgym.errors import InvalidParameter


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


@dataclasses.dataclass(frozen=True)
class ColumnSet:
    """Columns of tokens or of pairs of tokens.

    Attributes:
        code: number by which the problem's kernels know them.
        token: names of the columns that ``token_columns`` writes, which are the first ones.
        pair: names of those that ``pair_columns`` writes.
    """

    code: int
    token: tuple[str, ...]
    pair: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, in their order."""
        return self.token + self.pair


@dataclasses.dataclass(frozen=True)
class Scores:
    """Consecutive scores of an agent.

    Attributes:
        name: the subject of the decision.
        tokens: keys of the sets that are scored: one set, token by token, or two sets, pair by pair (the
            first varies slowest); empty for scores that the whole observation decides.
        columns: name of the columns that a scorer sees of the tokens, in :attr:`Tokens.columns`; "": there
            are none, so that only networks can act.
        count: number of scores where there are no tokens; None: one for each action.
    """

    name: str
    tokens: tuple[str, ...] = ()
    columns: str = ""
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
        columns: the sets of columns that scorers see, by name.
        numbers: where rows are not jobs by their numbers in the workload, the simulator's array (bundle and
            field) that has the job of each row, int64, where the window shows all jobs.
        acting: parameters of the environment that belong to the agent and keep its values unless an
            evaluation sets them: what is visible, when the agent is asked for a decision, and how its view
            turns actions into decisions. All others define the problem.
        trained: parameters that an agent must have been trained with, as its tokens depend on them; the
            columns of scorers must not, so that a scorer without a context plays with any.
        exact: entry of the observation -> the parameter that has the names of its columns.
    """

    sets: tuple[TokenSet, ...]
    globals: tuple[str, ...]
    views: Mapping[str, ScoredView]
    columns: Mapping[str, ColumnSet] = dataclasses.field(default_factory=dict)
    numbers: str = ""
    acting: tuple[str, ...] = ()
    trained: tuple[str, ...] = ()
    exact: Mapping[str, str] = dataclasses.field(default_factory=dict)


def tokens_of(problem: str) -> Tokens:
    """The tokens of a problem.

    Args:
        problem: its name, or an environment id.

    Raises:
        UnknownName: if there is no such problem.
        InvalidParameter: if it has no module ``columns``.
    """
    found = get_problem(problem)
    try:
        tokens: Tokens = found.module("columns").TOKENS
    except ModuleNotFoundError as error:
        if error.name != f"{found.package}.columns":
            raise
        raise InvalidParameter(f"{found.name}: has no module columns.py, which agents need") from None
    return tokens


def effective_parameters(id: str, values: Mapping[str, Any], given: Collection[str] = ()) -> dict[str, Any]:
    """Return an agent's parameters without those of :attr:`Tokens.acting` that have no effect in a problem.

    Args:
        id: environment id.
        values: the parameters of the agent and of the problem in which it is to act, with the agent's view.
        given: names of those that somebody asks for in that problem.

    Returns:
        ``values`` without those parameters, unless they are in ``given``: these its environment refuses.

    Raises:
        UnknownName, InvalidParameter: for a parameter that does not exist or is out of range.
    """
    problem, acting = get_problem(id), tokens_of(id).acting
    usual = problem.build(id, {name: value for name, value in values.items() if name not in acting})
    idle = [name for name in acting if name not in given and usual.without_effect(name)]
    return {name: value for name, value in values.items() if name not in idle}
