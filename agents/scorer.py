"""Scorer: a small numpy network that scores tokens one by one, for gradient-free training and for shipping.

The score of a token with columns x (see :mod:`schedgym.agents.features`), in an environment with context c,

    score = skip . x  +  w . z  +  v . tanh(U z + A d + b),     z, d: x and c brought to mean 0, variance 1,

is the same function for every token, so permuted tokens have permuted scores. Scores that the whole
observation decides are skip . c + w . d + bias. ``skip`` is constant: with all parameters 0, at the start of
a training, the scorer is a heuristic. All parameters of a scorer are one flat vector.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.agents.features import CONTEXTS, Encoder, Rows
from schedgym.agents.views import Layout
from schedgym.core.problem import Parameters, parameter
from schedgym.errors import InvalidParameter, UnknownName

__all__ = ["Scorer", "ScorerOptions", "statistics_of"]

F4 = npt.NDArray[np.float32]
Observation = Mapping[str, npt.NDArray[Any]]

FLAT = 1e-6  # columns whose standard deviation is less are constants
LARGEST = 1e6  # absolute weight of the skip connection: more would drown the rest in float32
BIAS = "bias"


@dataclasses.dataclass(frozen=True)
class ScorerOptions(Parameters):
    """The form of a scorer.

    ``skip``: segment -> column -> constant weight ("bias": added). ``columns``: segment -> the columns that
    parameters weigh; a segment that is left out: all.
    """

    hidden: int = parameter(0, "hidden units; 0: a linear scorer", minimum=0, maximum=256)
    context: str = parameter("globals", "what depends on the whole observation", choices=CONTEXTS)
    skip: dict = dataclasses.field(default_factory=dict)  # type: ignore[type-arg]
    columns: dict = dataclasses.field(default_factory=dict)  # type: ignore[type-arg]

    def __post_init__(self) -> None:
        super().__post_init__()
        for segment, weights in self.skip.items():
            if not isinstance(segment, str) or not isinstance(weights, dict):
                raise InvalidParameter(f"skip: must map segments to columns, got {segment!r}: {weights!r}")
            for column, weight in weights.items():
                number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
                if not isinstance(column, str) or not number or not abs(weight) <= LARGEST:
                    what = f"must map columns to numbers of at most {LARGEST:g}"
                    raise InvalidParameter(f"skip: {segment}: {what}, got {column!r}: {weight!r}")
        for segment, names in self.columns.items():
            fits = isinstance(segment, str) and isinstance(names, list)
            if not fits or not all(isinstance(name, str) for name in names):
                raise InvalidParameter(
                    f"columns: must map segments to lists of names, got {segment!r}: {names!r}"
                )
            if len(set(names)) < len(names):
                raise InvalidParameter(f"columns: {segment}: a column is named twice in {names!r}")


@dataclasses.dataclass
class _Part:
    """The parameters of one segment, by their places in the flat vector."""

    skip: F4
    skip_bias: float
    used: npt.NDArray[np.int64]
    context_used: npt.NDArray[np.int64]
    places: dict[str, slice]
    shapes: dict[str, tuple[int, ...]]

    def get(self, theta: F4, name: str) -> F4 | None:
        place = self.places.get(name)
        return None if place is None else theta[place].reshape(self.shapes[name])


class Scorer:
    """Scores the tokens of a batch of observations, for one vector of parameters or several at once.

    Args:
        layout: layout of the environment.
        options: the form.
        statistics: means and standard deviations of the columns, as :func:`statistics_of` returns them. None:
            0 and 1.

    Attributes:
        size: length of the vector of parameters.

    Raises:
        UnknownName: for a segment or a column that does not exist.
    """

    def __init__(
        self,
        layout: Layout,
        options: ScorerOptions | None = None,
        statistics: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> None:
        self.layout, self.options = layout, options or ScorerOptions()
        self.encoder = Encoder(layout, self.options.context)
        with np.errstate(over="ignore"):
            own = {name: np.asarray(v, dtype=np.float32) for name, v in (statistics or {}).items()}
        self.statistics = own
        for name, values in own.items():
            if not np.isfinite(values).all():
                raise InvalidParameter(f"statistics: {name} must be finite")
        names = [segment.name for segment in layout.segments]
        for given in (self.options.skip, self.options.columns):
            for name in given:
                if name not in names:
                    raise UnknownName("segment", name, names)
        self._parts: list[_Part] = []
        self.size = 0
        for index, segment in enumerate(layout.segments):
            self._parts.append(self._part(index, segment.name, bool(segment.tokens)))

    def _part(self, index: int, name: str, tokens: bool) -> _Part:
        columns = self.encoder.columns[index] if tokens else self.encoder.context_columns
        skip = np.zeros(len(columns), dtype=np.float32)
        bias = 0.0
        for column, weight in self.options.skip.get(name, {}).items():
            if column == BIAS:
                bias = float(weight)
            else:
                skip[_find(columns, column)] = weight
        _, scale = self._scale(f"columns {index}" if tokens else "context", len(columns))
        chosen = self.options.columns.get(name)
        wanted = range(len(columns)) if chosen is None else [_find(columns, column) for column in chosen]
        used = np.array([i for i in wanted if scale[i] > FLAT], dtype=np.int64)
        _, context_scale = self._scale("context", len(self.encoder.context_columns))
        context_used = np.flatnonzero(context_scale > FLAT)
        count, hidden = self.layout.segments[index].count, self.options.hidden
        shapes: dict[str, tuple[int, ...]] = {}
        if tokens:
            shapes["w"] = (len(used),)
            # a constant changes nothing where all scores have it
            if len(self.layout.segments) > 1 or self.layout.transform == "clip":
                shapes["bias"] = (1,)
            if hidden:
                shapes |= {"U": (hidden, len(used)), "A": (hidden, len(context_used))}
                shapes |= {"b": (hidden,), "v": (hidden,)}
        else:
            shapes |= {"w": (count, len(used)), "bias": (count,)}
        places = {}
        for key, shape in shapes.items():
            length = int(np.prod(shape))
            places[key] = slice(self.size, self.size + length)
            self.size += length
        return _Part(skip, bias, used, context_used, places, shapes)

    @property
    def known_statistics(self) -> list[str]:
        """All names that :func:`statistics_of` may give."""
        parts = [f"columns {i}" for i, segment in enumerate(self.layout.segments) if segment.tokens]
        return [f"{name} {kind}" for name in (*parts, "context") for kind in ("mean", "scale")]

    def _scale(self, name: str, count: int) -> tuple[F4, F4]:
        if (f"{name} mean" in self.statistics) != (f"{name} scale" in self.statistics):
            raise InvalidParameter(f"statistics: {name} must have a mean and a scale")
        mean = self.statistics.get(f"{name} mean", np.zeros(count, dtype=np.float32))
        scale = self.statistics.get(f"{name} scale", np.ones(count, dtype=np.float32))
        if mean.shape != (count,) or scale.shape != (count,):
            raise InvalidParameter(f"statistics: {name} must have {count} columns, got {mean.shape}")
        return mean, scale

    @property
    def inputs(self) -> dict[str, list[str]]:
        """Names of the columns of each segment with tokens, and of "context"."""
        pairs = zip(self.layout.segments, self.encoder.columns, strict=True)
        found = {segment.name: list(names) for segment, names in pairs if segment.tokens}
        return found | {"context": list(self.encoder.context_columns)}

    def start(self, seed: int = 0) -> F4:
        """The parameters at the start of a training, with which the skip connection alone decides.

        First-layer weights are drawn, so that the hidden units differ; their output weights are 0.
        """
        theta = np.zeros(self.size, dtype=np.float32)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(b"scorer")))
        for part in self._parts:
            for name in ("U", "A"):
                if name in part.places and part.shapes[name][1]:
                    fan = len(part.used) + len(part.context_used)
                    values = rng.standard_normal(part.shapes[name]) / np.sqrt(fan)
                    theta[part.places[name]] = values.ravel()
        return theta

    def spread(self, bias_scale: float = 1.0) -> npt.NDArray[np.float64]:
        """Relative spread of the parameters in a search: ``bias_scale`` for those that tokens share."""
        spread = np.ones(self.size)
        for part, segment in zip(self._parts, self.layout.segments, strict=True):
            for name, place in part.places.items():
                if name == "bias" or not segment.tokens:
                    spread[place] = bias_scale
        return spread

    def columns(self, observation: Observation, wanted: npt.NDArray[np.bool_]) -> dict[str, F4]:
        """The scorer's input for a batch: "columns i" of segment i [F, rows], "context" [C, environments].

        Environments in which no score is wanted have no context.
        """
        rows = self._rows(observation, wanted)
        found = {f"columns {index}": own.x for index, own in enumerate(rows) if own is not None}
        return found | {"context": self.encoder.context(observation, rows)[:, wanted.any(axis=1)]}

    def _rows(self, observation: Observation, wanted: npt.NDArray[np.bool_]) -> list[Rows | None]:
        parts = enumerate(zip(self.layout.segments, self.layout.places, strict=True))
        return [
            self.encoder.rows(index, observation, wanted[:, here]) if segment.tokens else None
            for index, (segment, here) in parts
        ]

    def wanted(
        self, observation: Observation, live: npt.NDArray[np.bool_] | None = None
    ) -> npt.NDArray[np.bool_]:
        """True for the scores that matter, [B, size]: of several open actions, of tokens that are there.

        Args:
            observation: a batch of observations.
            live: True for the environments that matter, [B]; None: all.

        Raises:
            InvalidParameter: for observations without the mask of actions that the view has.
        """
        mask = self.layout.mask(observation)
        if self.layout.kind != "scores":
            if mask is None:
                raise InvalidParameter("observation: has no action_mask, which agents need")
            mask &= (mask.sum(axis=1) > 1)[:, np.newaxis]
        else:
            count = len(observation["globals"])
            mask = np.ones((count, self.layout.size), dtype=bool)
            for segment, here in zip(self.layout.segments, self.layout.places, strict=True):
                if len(segment.tokens) == 1 and segment.tokens[0].mask is not None:
                    mask[:, here] = np.asarray(observation[segment.tokens[0].mask]).astype(bool)
        if live is not None:
            mask &= live[:, np.newaxis]
        return mask

    def scores(self, theta: F4, observation: Observation, wanted: npt.NDArray[np.bool_] | None = None) -> F4:
        """Scores [B, size]; of tokens, those that are not wanted are 0.

        Args:
            theta: [size], or [P, size]: the first B / P environments are scored by the first row, and so on.
            observation: a batch of observations.
            wanted: result of :meth:`wanted`; None: it is called.
        """
        wanted = self.wanted(observation) if wanted is None else wanted
        table = np.atleast_2d(theta)
        count = len(wanted)
        share, rest = divmod(count, len(table))
        if rest:
            raise InvalidParameter(f"theta: {len(table)} rows do not divide {count} environments")
        result = np.zeros((count, self.layout.size), dtype=np.float32)
        found = self._rows(observation, wanted)
        context = self.encoder.context(observation, found)
        mean, scale = self._scale("context", len(context))
        scale = np.where(scale > FLAT, scale, 1.0).astype(np.float32)
        normal = (context - mean[:, np.newaxis]) / scale[:, np.newaxis]
        layout = self.layout
        for index, here in enumerate(layout.places):
            segment, part = layout.segments[index], self._parts[index]
            if segment.tokens:
                rows = found[index]
                if rows is not None and len(rows.env):
                    values = self._token_scores(index, part, table, share, rows, normal)
                    result[rows.env, here.start + rows.slot] = values
                continue
            for p, own in enumerate(table):
                envs = slice(p * share, (p + 1) * share)
                weight, bias = part.get(own, "w"), part.get(own, "bias")
                assert weight is not None and bias is not None
                value = weight @ normal[part.used, envs] + (bias + np.float32(part.skip_bias))[:, np.newaxis]
                result[envs, here] = (value + part.skip @ context[:, envs]).T
        return result

    def _token_scores(self, index: int, part: _Part, table: F4, share: int, rows: Rows, context: F4) -> F4:
        mean, scale = self._scale(f"columns {index}", len(rows.x))
        z = (rows.x[part.used] - mean[part.used, np.newaxis]) / scale[part.used, np.newaxis]
        result = part.skip @ rows.x + np.float32(part.skip_bias)
        ends = np.searchsorted(rows.env, np.arange(1, len(table) + 1) * share)
        begin = 0
        for p, (own, end) in enumerate(zip(table, ends.tolist(), strict=True)):
            if end == begin:
                continue
            here = slice(begin, end)
            weight = part.get(own, "w")
            assert weight is not None
            result[here] += weight @ z[:, here]
            bias = part.get(own, "bias")
            if bias is not None:
                result[here] += bias[0]
            first, output, shift = part.get(own, "U"), part.get(own, "v"), part.get(own, "b")
            if first is not None and output is not None and shift is not None:
                hidden = first @ z[:, here]
                envs = slice(p * share, (p + 1) * share)
                given = shift[:, np.newaxis] + np.zeros((1, share), dtype=np.float32)
                second = part.get(own, "A")
                if second is not None:
                    given = given + second @ context[part.context_used, envs]
                hidden += given[:, rows.env[here] - p * share]
                result[here] += output @ np.tanh(hidden)
            begin = end
        return result


def _find(columns: Sequence[str], name: str) -> int:
    if name not in columns:
        raise UnknownName("column", name, columns)
    return columns.index(name)


def statistics_of(seen: Sequence[Mapping[str, F4]]) -> dict[str, F4]:
    """Means and standard deviations of the columns, from what :meth:`Scorer.columns` gave of batches."""
    found: dict[str, F4] = {}
    for name in seen[0]:
        x = np.concatenate([batch[name] for batch in seen], axis=1).astype(np.float64)
        if x.shape[1]:
            found[f"{name} mean"] = x.mean(axis=1).astype(np.float32)
            found[f"{name} scale"] = x.std(axis=1).astype(np.float32)
    return found
