"""The input of a small scorer: named columns made from the tokens of an observation.

A problem's module ``tokens`` says which columns its tokens have (:mod:`schedgym.core.tokens`). Columns of a
token depend on the token, on tokens that it is paired with, and on sums over all tokens, so a permutation of
the tokens permutes their columns.

Only tokens whose score matters are encoded: *rows*, those that are open and in an environment with a choice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.agents.views import Layout, Segment
from schedgym.core.tokens import TokenRows, tokens_of
from schedgym.errors import UnknownName

__all__ = ["CONTEXTS", "Encoder", "Rows"]

F4 = npt.NDArray[np.float32]
I8 = npt.NDArray[np.int64]
Observation = Mapping[str, npt.NDArray[Any]]

#: what depends on the whole observation: nothing, ``globals``, or also the means of the rows' columns
CONTEXTS = ("none", "globals", "pooled")


@dataclasses.dataclass(frozen=True)
class Rows:
    """Tokens of one segment, in a batch of environments.

    Attributes:
        env: environment of each row, ascending; int64 [T].
        slot: its place in the segment; int64 [T].
        x: columns; float32 [F, T].
    """

    env: I8
    slot: I8
    x: F4


class Encoder:
    """Makes columns of one layout.

    Args:
        layout: layout of the environment.
        context: one of CONTEXTS.

    Attributes:
        columns: names of the columns of each segment with tokens; () for the others.
        context_columns: names of the columns that depend on the whole observation.
    """

    def __init__(self, layout: Layout, context: str = "pooled") -> None:
        if context not in CONTEXTS:
            raise UnknownName("context", context, CONTEXTS)
        self.layout, self.mode = layout, context
        self.columns = tuple(
            tuple(name for name, _ in segment.columns(self._example(segment))) if segment.tokens else ()
            for segment in layout.segments
        )
        names: list[str] = []
        if context != "none":
            names = list(tokens_of(layout.problem).globals)
        if context == "pooled":
            pairs = zip(layout.segments, self.columns, strict=True)
            names += [f"mean {segment.name} {name}" for segment, own in pairs for name in own]
        self.context_columns = tuple(names)

    def _example(self, segment: Segment) -> TokenRows:
        """One row of made-up tokens, for the names of its columns."""
        axes = {own.key: 2 for own in segment.tokens if own.axes is not None}
        observation = {
            key: np.full((*(1,) * (1 + axes.get(key, key != "globals")), count), 0.5, dtype=np.float32)
            for key, count in self.layout.features.items()
        }
        zero = np.zeros(1, dtype=np.int64)
        return TokenRows(observation, segment.tokens, zero, zero)

    def rows(self, index: int, observation: Observation, wanted: npt.NDArray[np.bool_]) -> Rows:
        """The wanted tokens of segment ``index``.

        Args:
            index: number of a segment with tokens.
            observation: a batch of observations, [B, ...].
            wanted: [B, count].
        """
        env, slot = np.nonzero(wanted)
        segment = self.layout.segments[index]
        x = np.empty((len(self.columns[index]), len(env)), dtype=np.float32)
        if len(env):
            rows = TokenRows(observation, segment.tokens, env, slot)
            for i, (_, column) in enumerate(segment.columns(rows)):
                x[i] = column
        return Rows(env, slot, x)

    def context(self, observation: Observation, rows: Sequence[Rows | None]) -> F4:
        """The columns that depend on the whole observation, [C, B].

        Args:
            observation: a batch of observations.
            rows: rows of each segment, None for one without tokens; their means are 0 where there are none.
        """
        whole = observation["globals"]
        count = len(whole)
        if self.mode == "none":
            return np.empty((0, count), dtype=np.float32)
        parts = [whole.T]
        for own in rows if self.mode == "pooled" else ():
            if own is None:
                continue
            means = np.zeros((len(own.x), count), dtype=np.float32)
            if len(own.env):
                envs, starts, counts = np.unique(own.env, return_index=True, return_counts=True)
                means[:, envs] = np.add.reduceat(own.x, starts, axis=1) / counts.astype(np.float32)
            parts.append(means)
        return np.concatenate(parts).astype(np.float32)
