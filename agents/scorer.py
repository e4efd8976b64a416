"""Scorer: a small function that scores tokens one by one, for gradient-free training and for shipping.

The score of a token with columns x, in an environment with context c,

    score = skip . x  +  w . z  +  v . tanh(U z + A d + b),     z, d: x and c brought to mean 0, variance 1,

is the same function for every token, so permuted tokens have permuted scores. Scores that the whole
observation decides are skip . c + w . d + bias. ``skip`` is constant: with all parameters 0, at the start of
a training, the scorer is a heuristic. All parameters of a scorer are one flat vector.

The scores are computed by the problem's compiled kernels (:mod:`schedgym.core.scorer`), which take weights
of x and c themselves: :meth:`Scorer.weights`. In most views they also play whole episodes; see
:attr:`Scorer.plays`. Columns undo the scalings of float32 tokens, with their rounding, and do not read exact
units: a scorer sees what any agent sees, and the weights that are shipped keep their scores to the last bit.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.agents.views import Layout, Segment
from schedgym.core.arrays import Flags, Floats, Floats32, Integers
from schedgym.core.problem import Parameters, parameter
from schedgym.core.rollouts import scoring_of, tabled_scoring
from schedgym.core.scorer import CONTEXTS, FORM, KINDS, SEGMENT, TRANSFORMS, Form, Given
from schedgym.core.tokens import tokens_of
from schedgym.errors import InvalidParameter, UnknownName

Observation = Mapping[str, npt.NDArray[Any]]

FLAT = 1e-6  # columns whose standard deviation is less are constants
LARGEST = 1e6  # absolute weight of the skip connection: more would drown the rest
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

    skip: Floats32
    skip_bias: float
    used: Integers
    context_used: Integers
    places: dict[str, slice]
    shapes: dict[str, tuple[int, ...]]

    def get(self, theta: Floats, name: str) -> Floats:
        """These parameters in each row of ``theta``, [P, *shape]; 0 where there are none."""
        if name not in self.places:
            return np.zeros((len(theta), 1))
        return theta[:, self.places[name]].reshape((len(theta), *self.shapes[name]))


class Scorer:
    """Scores the tokens of a batch of observations, for one vector of parameters or several at once.

    Args:
        layout: layout of the environment.
        options: the form.
        statistics: means and standard deviations of the columns, as :func:`statistics_of` returns them. None:
            0 and 1.

    Attributes:
        size: length of the vector of parameters.
        columns: names of the columns of each segment with tokens; () for the others.
        context_columns: names of the columns that depend on the whole observation.
        form: the form that the problem's kernels take.
        masks: keys of the observation's masks of scores, and of tokens; "" for none.
        plays: True if a kernel of the problem plays whole episodes in this view; otherwise the scorer is
            asked for each action.

    Raises:
        UnknownName: for a segment or a column that does not exist.
        InvalidParameter: for a problem or a view without columns, or a context of other numbers than those
            that the problem names.
    """

    def __init__(
        self,
        layout: Layout,
        options: ScorerOptions | None = None,
        statistics: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> None:
        self.layout, self.options = layout, options or ScorerOptions()
        self.plays = layout.view in self._kernels.played
        self.columns = tuple(self._columns(segment) for segment in layout.segments)
        self.context_columns = self._context_columns()
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
        self.masks = self._masks()
        self.form = self._form()

    @property
    def _kernels(self) -> Any:
        """The problem's kernels; no attribute, as kernels cannot be pickled."""
        return scoring_of(self.layout.problem)

    def _columns(self, segment: Segment) -> tuple[str, ...]:
        """The names of the columns of a segment's tokens."""
        if not segment.tokens:
            return ()
        if not segment.columns:
            raise InvalidParameter(f"view {self.layout.view}: {segment.name} has no columns, as scorers need")
        names: tuple[str, ...] = tokens_of(self.layout.problem).columns[segment.columns].names
        return names

    def _context_columns(self) -> tuple[str, ...]:
        """The names of the columns of the context."""
        if self.options.context == "none":
            return ()
        names = list(tokens_of(self.layout.problem).globals)
        if (count := self.layout.features["globals"]) != len(names):
            raise InvalidParameter(
                f"context: is made of {len(names)} numbers, the environment has {count}: of other resources, "
                "for which there are only scorers with context 'none'"
            )
        if self.options.context == "pooled":
            pairs = zip(self.layout.segments, self.columns, strict=True)
            names += [f"mean {segment.name} {name}" for segment, own in pairs for name in own]
        return tuple(names)

    def _masks(self) -> tuple[str, str]:
        """See :attr:`masks`."""
        layout = self.layout
        masks = [mask for segment in layout.segments if (mask := self._token_mask(segment))]
        present = masks[0] if masks else ""
        if any(mask != present for mask in masks):
            raise InvalidParameter(f"view {layout.view}: scorers know one mask of tokens, not {masks}")
        return present if layout.kind == "scores" else "action_mask", present

    def _token_mask(self, segment: Segment) -> str | None:
        """The key of the mask of the tokens that the rows of a segment are."""
        if not segment.tokens:
            return None
        first = segment.tokens[0]
        if first.axes is None:
            return first.mask
        return next((own.mask for own in self.layout.context if own.key == first.axes[0]), None)

    def _form(self) -> Form:
        """See :attr:`form`; the weights of a segment follow those of the one before."""
        layout, context = self.layout, len(self.context_columns)
        whole, segments = np.zeros((), dtype=FORM), np.zeros(len(layout.segments), dtype=SEGMENT)
        whole["kind"], whole["context"] = KINDS.index(layout.kind), CONTEXTS.index(self.options.context)
        whole["transform"] = TRANSFORMS.index(layout.transform) if self.plays else 0
        whole["width"], whole["scale"] = layout.shape[1] if layout.shape else 0, layout.scale
        if layout.low is not None and layout.high is not None:
            whole["low"], whole["high"] = layout.low[0], layout.high[0]
        weight, pooled = 0, len(tokens_of(layout.problem).globals)
        for own, segment, names, here in zip(
            segments, layout.segments, self.columns, layout.places, strict=True
        ):
            own["code"], own["rows"], own["width"], own["score"] = -1, segment.count, 1, here.start
            own["weight"] = weight
            if not segment.tokens:
                weight += segment.count * (1 + context)
                continue
            chosen, hidden = tokens_of(self.layout.problem).columns[segment.columns], self.options.hidden
            own["code"], own["leading"], own["columns"] = chosen.code, len(chosen.token), len(names)
            own["rows"], own["width"] = segment.count // max(segment.width, 1), segment.width
            own["masked"], own["hidden"] = bool(self._token_mask(segment)), hidden
            own["input"] = pooled
            pooled += len(names)
            weight += 1 + len(names) + hidden * (2 + len(names) + context)
        return Form(whole, segments)

    def _part(self, index: int, name: str, tokens: bool) -> _Part:
        columns = self.columns[index] if tokens else self.context_columns
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
        _, context_scale = self._scale("context", len(self.context_columns))
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

    def _scale(self, name: str, count: int) -> tuple[Floats32, Floats32]:
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
        pairs = zip(self.layout.segments, self.columns, strict=True)
        found = {segment.name: list(names) for segment, names in pairs if segment.tokens}
        return found | {"context": list(self.context_columns)}

    def start(self, seed: int = 0) -> Floats32:
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

    def spread(self, bias_scale: float = 1.0) -> Floats:
        """Relative spread of the parameters in a search: ``bias_scale`` for those that tokens share."""
        spread = np.ones(self.size)
        for part, segment in zip(self._parts, self.layout.segments, strict=True):
            for name, place in part.places.items():
                if name == "bias" or not segment.tokens:
                    spread[place] = bias_scale
        return spread

    def inspect(self, observation: Observation, wanted: Flags) -> dict[str, Floats32]:
        """The scorer's input for a batch: "columns i" of segment i [F, rows], "context" [C, environments].

        Args:
            observation: a batch of observations.
            wanted: result of :meth:`wanted`. Environments in which no score is wanted have no context.
        """
        layout, seen = self.layout, np.asarray(observation["globals"], dtype=np.float32)
        table, tools = self._tabled(np.zeros((len(wanted), 0)), observation, wanted)
        found: dict[str, Floats32] = {}
        context = [seen.T] if self.options.context != "none" else []
        for index, (segment, here) in enumerate(zip(layout.segments, layout.places, strict=True)):
            if not segment.tokens:
                continue
            env, slot = np.nonzero(wanted[:, here])
            own, names = tokens_of(self.layout.problem).columns[segment.columns], self.columns[index]
            rows = np.empty((len(env), len(names)))
            places = (env, slot // max(segment.width, 1), slot % max(segment.width, 1))
            self._kernels.columns(table, tools, (own.code, bool(own.pair), *places, rows))
            found[f"columns {index}"] = rows.T.astype(np.float32)
            if self.options.context == "pooled":
                means = np.zeros((len(wanted), len(names)))
                np.add.at(means, env, rows)
                count = np.bincount(env, minlength=len(wanted))
                context.append((means.T / np.maximum(count, 1)).astype(np.float32))
        whole = np.concatenate(context) if context else np.empty((0, len(wanted)), dtype=np.float32)
        return found | {"context": whole[:, wanted.any(axis=1)]}

    def _tabled(self, weights: Floats, observation: Observation, open: Any, scores: Any = None) -> Any:
        """The arguments of the problem's kernels, which read what the layout says is there."""
        count, present, layout = len(weights), self.masks[1], self.layout
        for key, features in layout.features.items():
            if observation[key].shape[-1] != features:
                raise InvalidParameter(f"observation: {key} has not {features} features, as in the layout")
        for segment in layout.segments:
            shapes = [observation[own.key].shape[1:-1] for own in segment.tokens]
            if segment.tokens and math.prod(n for shape in shapes for n in shape) != segment.count:
                raise InvalidParameter(f"observation: {segment.name} has not {segment.count} scores")
        given = Given(
            weights,
            np.ascontiguousarray(open, dtype=np.int8),
            np.ascontiguousarray(observation[present] if present else np.zeros((count, 0)), dtype=np.int8),
            np.zeros((count, 0)) if scores is None else scores,
            np.zeros((count, 0), dtype=np.int64),
            np.zeros((count, 0)),
        )
        return tabled_scoring(self._kernels.acting, self.form, given, observation)

    def wanted(self, observation: Observation, live: Flags | None = None) -> Flags:
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

    def weights(self, theta: Floats32, count: int) -> Floats:
        """The weights of x and c that the problem's kernels take, for each of ``count`` environments.

        Args:
            theta: [size], or [P, size]: the first count / P environments get those of the first row, and so
                on.
            count: number of environments.

        Raises:
            InvalidParameter: if the rows do not divide the environments.
        """
        table = np.atleast_2d(theta).astype(np.float64)
        share, rest = divmod(count, len(table))
        if rest:
            raise InvalidParameter(f"theta: {len(table)} rows do not divide {count} environments")
        parts = []
        for index, (segment, part) in enumerate(zip(self.layout.segments, self._parts, strict=True)):
            parts += self._token_weights(index, table) if segment.tokens else self._whole_weights(part, table)
        return np.repeat(np.concatenate(parts, axis=1), share, axis=0)

    def _divided(self, name: str, used: Integers, w: Floats, count: int) -> tuple[Floats, Floats]:
        """Weights w [..., used] of normal columns as weights [..., count] of the columns, and a constant."""
        mean, scale = (array.astype(np.float64)[used] for array in self._scale(name, count))
        found = np.zeros((*w.shape[:-1], count))
        found[..., used] = w / scale
        return found, -(w / scale * mean).sum(axis=-1)

    def _token_weights(self, index: int, table: Floats) -> list[Floats]:
        """The weights of a segment with tokens, in the order of the kernels."""
        part, columns, inputs = self._parts[index], len(self.columns[index]), len(self.context_columns)
        name = f"columns {index}"
        k, constant = self._divided(name, part.used, part.get(table, "w"), columns)
        constant = constant + part.skip_bias + part.get(table, "bias")[:, 0]
        parts = [constant[:, np.newaxis], k + part.skip.astype(np.float64)]
        if self.options.hidden:
            u, first = self._divided(name, part.used, part.get(table, "U"), columns)
            a, second = self._divided("context", part.context_used, part.get(table, "A"), inputs)
            g = (part.get(table, "b") + first + second)[..., np.newaxis]
            units = np.concatenate([g, u, a, part.get(table, "v")[..., np.newaxis]], axis=-1)
            parts.append(units.reshape(len(table), -1))
        return parts

    def _whole_weights(self, part: _Part, table: Floats) -> list[Floats]:
        """The weights of a segment without tokens, in the order of the kernels."""
        k, constant = self._divided("context", part.used, part.get(table, "w"), len(self.context_columns))
        constant = constant + part.skip_bias + part.get(table, "bias")
        found = np.concatenate([constant[..., np.newaxis], k + part.skip.astype(np.float64)], axis=-1)
        return [found.reshape(len(table), -1)]

    def scores(self, theta: Floats32, observation: Observation, wanted: Flags | None = None) -> Floats:
        """Scores [B, size]; those that are not wanted are 0.

        Args:
            theta: [size], or [P, size]; see :meth:`weights`.
            observation: a batch of observations.
            wanted: result of :meth:`wanted`; None: it is called.
        """
        wanted = self.wanted(observation) if wanted is None else wanted
        result = np.zeros(wanted.shape)
        self._kernels.score(
            *self._tabled(self.weights(theta, len(wanted)), observation, wanted, result), len(result)
        )
        return result


def _find(columns: Sequence[str], name: str) -> int:
    if name not in columns:
        raise UnknownName("column", name, columns)
    return columns.index(name)


def statistics_of(seen: Sequence[Mapping[str, Floats32]]) -> dict[str, Floats32]:
    """Means and standard deviations of the columns, from what :meth:`Scorer.inspect` gave of batches."""
    found: dict[str, Floats32] = {}
    for name in seen[0]:
        x = np.concatenate([batch[name] for batch in seen], axis=1).astype(np.float64)
        if x.shape[1]:
            found[f"{name} mean"] = x.mean(axis=1).astype(np.float32)
            found[f"{name} scale"] = x.std(axis=1).astype(np.float32)
    return found
