"""The network of trained agents, its weights and its forward pass, one code for numpy and torch.

Every token (job, task, server, site, resource) is encoded by the shared encoder of its kind; the encodings
are pooled (mean and maximum over those that are there) and make, with the globals, a context; with a second
round the tokens are encoded again in that context. Then each :class:`~schedgym.agents.views.Segment` scores
its tokens, or pairs of them, by a head that sees the token, its features, and the context. So permuted tokens
have permuted scores, and tokens that are not there change nothing. Features x are seen as x and as their
log-odds: the environments show a size s as s / (s + c), of which these are log(s / c), so that ratios and
products of sizes, of which the heuristics are made, are sums.

Weights are a flat mapping of names to arrays, which is all that an agent file holds of them. Names that begin
with ``critic/`` belong to the value function that training needs; ``log_std`` is the spread of exploration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from schedgym.agents.views import Layout, Segment
from schedgym.core.arrays import Floats32
from schedgym.core.tokens import TokenSet, tokens_of
from schedgym.errors import InvalidParameter

#: score of what cannot be chosen: its probability is exactly 0 in float32
NEVER = -1e8
EDGE = 1e-5  # log-odds are cut off here ...
LOG_SCALE = 0.25  # ... and brought into [-3, 3]


def _layer(name: str, inputs: int, outputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}/weight": (inputs, outputs), f"{name}/bias": (outputs,)}


def _encoder(layout: Layout, width: int, rounds: int) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    keys = [sequence.key for sequence in layout.context]
    pooled = 2 * width * len(keys) + 2 * layout.features["globals"]
    for key in keys:
        found |= _layer(f"encode/{key}/0", 2 * layout.features[key], width)
        found |= _layer(f"encode/{key}/1", width, width)
    for i in range(rounds):
        for name in (f"again{i}/{key}" for key in keys if i):
            found[f"{name}/token"] = found[f"{name}/context"] = (width, width)
            found[f"{name}/bias"] = (width,)
        found |= _layer(f"context{i}", pooled + width * (i > 0), width)
    return found


def shapes(layout: Layout, width: int = 32, rounds: int = 1) -> dict[str, tuple[int, ...]]:
    """Name -> shape of the weights of an agent, without its critic.

    Args:
        layout: layout of the environment's view.
        width: width of every hidden layer.
        rounds: 1, or 2 to encode the tokens again in their context.

    Raises:
        InvalidParameter: if width or rounds is out of range.
    """
    if not 1 <= width <= 1024:
        raise InvalidParameter(f"width: must be from 1 to 1024, got {width!r}")
    if rounds not in (1, 2):
        raise InvalidParameter(f"rounds: must be 1 or 2, got {rounds!r}")
    found = _encoder(layout, width, rounds)
    for segment in layout.segments:
        name = f"score/{segment.name}"
        found[f"{name}/context"], found[f"{name}/bias"] = (width, width), (width,)
        found |= _layer(f"{name}/out", width, 1 if segment.tokens else segment.count)
        for part, key in _parts(layout, segment):
            encoded = any(key == own.key for own in layout.context)
            features = 2 * layout.features[key] + (width if encoded else 0)
            found[f"{name}/{part}"] = (features, width)
            if len(segment.tokens) == 2:
                found[f"{name}/{part}/product"] = (features, width)
    if layout.kind == "scores":
        found["log_std"] = (1,)
    return found


def critic_shapes(layout: Layout, width: int = 32) -> dict[str, tuple[int, ...]]:
    """Name -> shape of the weights of the value function: an encoder of its own, one round."""
    found = _encoder(layout, width, 1)
    found |= _layer("value/0", width, width) | _layer("value/1", width, 1)
    return {f"critic/{name}": shape for name, shape in found.items()}


def _parts(layout: Layout, segment: Segment) -> list[tuple[str, str]]:
    """(name of the weight, key of the tokens) of the tokens that a head sees beside the context."""
    axes = segment.tokens[0].axes if segment.tokens else None
    if axes is None:
        return list(zip(("token", "other"), (own.key for own in segment.tokens), strict=False))
    found = [("token", segment.tokens[0].key)]
    for name, key in zip(("row", "column"), axes, strict=True):
        if key is not None and key in layout.features:
            found.append((name, key))
    return found


def initial(
    layout: Layout, rng: np.random.Generator, width: int = 32, rounds: int = 1, log_std: float = 0.0
) -> dict[str, Floats32]:
    """Initial weights, the critic's too: He's normal ones, with scores and values near zero."""
    weights: dict[str, Floats32] = {}
    for name, shape in (shapes(layout, width, rounds) | critic_shapes(layout, width)).items():
        if name == "log_std":
            array = np.full(shape, log_std)
        elif len(shape) == 1:
            array = np.zeros(shape)
        else:
            array = rng.normal(0.0, math.sqrt(2.0 / shape[0]), shape)
            if "/out/" in name or name == "critic/value/1/weight":
                array *= 0.01
            elif name.endswith("/product"):
                array *= 0.1
        weights[name] = array.astype(np.float32)
    return weights


def absent_score(layout: Layout) -> float:
    """The score of a token that is not there: never chosen; in a Box its number is not read."""
    return NEVER if layout.kind != "scores" or layout.transform == "weight" else 0.0


def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    out = (x.reshape(-1, x.shape[-1]) @ weight).reshape(*x.shape[:-1], weight.shape[-1])
    return out if bias is None else out + bias


def _relu(x: Any) -> Any:
    """The positive part of an array of numpy or torch, of which only the latter has it as a method."""
    return np.maximum(x, 0.0) if isinstance(x, np.ndarray) else x.relu()


def _features(layout: Layout, observation: Mapping[str, Any], key: str, like: Any, ops: Any) -> Any:
    x = ops.asarray(observation[key], dtype=like.dtype)
    if x.shape[-1] == 2 * layout.features[key]:
        return x  # prepared
    share = ops.clip(x, EDGE, 1.0 - EDGE)
    return ops.concatenate([x, ops.log(share / (1.0 - share)) * LOG_SCALE], axis=-1)


def prepare(layout: Layout, observation: Mapping[str, Any], like: Any, ops: Any = np) -> dict[str, Any]:
    """Compute the inputs of :func:`forward` and :func:`estimate` from a batch of observations, once for both.

    Args:
        layout: layout of the environment's view.
        observation: name -> array [B, ...], with ``observation="features"``.
        like: an array of the type of the weights.
        ops: the module numpy, or torch: the arrays are its own.

    Returns:
        name -> array: features with their log-odds, and masks as bool. They share no memory with the
        observation.
    """
    found = {key: _features(layout, observation, key, like, ops) for key in layout.features}
    masks = {sequence.mask for sequence in layout.context if sequence.mask is not None} | {"action_mask"}
    return found | {mask: observation[mask] != 0 for mask in sorted(masks) if mask in observation}


def cut_set(layout: Layout) -> TokenSet | None:
    """The set of tokens of which :func:`forward` and :func:`estimate` may be given the first ones only.

    The others must not be there. It is a set with a mask that is no axis of a set of pairs, nor the second
    set of a segment; None: there is none.
    """
    axes = {
        key for own in tokens_of(layout.problem).sets if own.key in layout.features for key in own.axes or ()
    }
    seconds = {own.key for segment in layout.segments for own in segment.tokens[1:]}
    return next((s for s in layout.context if s.mask is not None and s.key not in axes | seconds), None)


def _mask(observation: Mapping[str, Any], sequence: TokenSet) -> Any:
    return None if sequence.mask is None else observation[sequence.mask] != 0


def _encode(layout: Layout, weights: Any, observation: Mapping[str, Any], ops: Any, prefix: str = "") -> Any:
    """The encoded tokens by key [B, n, width], and the context [B, width]."""

    def layer(x: Any, name: str) -> Any:
        return _relu(_linear(x, weights[f"{prefix}{name}/weight"], weights[f"{prefix}{name}/bias"]))

    like = weights[f"{prefix}context0/weight"]
    fixed = _features(layout, observation, "globals", like, ops)
    tokens, masks = {}, {}
    for sequence in layout.context:
        mask, key = _mask(observation, sequence), sequence.key
        masks[key] = None if mask is None else ops.asarray(mask, dtype=like.dtype)[..., None]
        x = layer(_features(layout, observation, key, like, ops), f"encode/{key}/0")
        tokens[key] = layer(x, f"encode/{key}/1")
    context: Any = None
    for i in range(1 if f"{prefix}context1/weight" not in weights else 2):
        parts = []
        for key, mask in masks.items():
            x = tokens[key]
            if i:
                name = f"{prefix}again{i}/{key}"
                more = _linear(context, weights[f"{name}/context"], weights[f"{name}/bias"])[..., None, :]
                x = tokens[key] = x + _relu(_linear(x, weights[f"{name}/token"]) + more)
            # encodings are not negative, so that zeros do not change the maximum
            kept = x if mask is None else x * mask
            count = x.shape[-2] if mask is None else mask.sum(-2) + (mask.sum(-2) == 0)
            parts += [kept.sum(-2) / count, ops.amax(kept, axis=-2)]
        parts += [fixed] if context is None else [fixed, context]
        context = layer(ops.concatenate(parts, axis=-1), f"context{i}")
    return tokens, context


def forward(layout: Layout, weights: Mapping[str, Any], observation: Mapping[str, Any], ops: Any = np) -> Any:
    """The scores of a batch of observations.

    Args:
        layout: layout of the environment's view.
        weights: name -> array, as :func:`initial` gives them.
        observation: name -> array [B, ...], with ``observation="features"``; or as :func:`prepare` gives it,
            the tokens of :func:`cut_set` cut off behind the last that is there.
        ops: the module numpy, or torch: the arrays are its own.

    Returns:
        [B, size]; :data:`NEVER` for closed actions, and :func:`absent_score` for tokens that are not there.
    """
    tokens, context = _encode(layout, weights, observation, ops)

    def seen(key: str) -> Any:
        raw = _features(layout, observation, key, context, ops)
        return ops.concatenate([tokens[key], raw], axis=-1) if key in tokens else raw

    parts = []
    for segment in layout.segments:
        name, inputs = f"score/{segment.name}", _parts(layout, segment)
        hidden = _linear(context, weights[f"{name}/context"], weights[f"{name}/bias"])
        mapped = {part: _linear(seen(key), weights[f"{name}/{part}"]) for part, key in inputs}
        product: Any = 0.0
        if not segment.tokens:
            pass
        elif len(segment.tokens) == 2:
            hidden = hidden[:, None, None] + mapped["token"][:, :, None] + mapped["other"][:, None]
            first, second = (_linear(seen(key), weights[f"{name}/{part}/product"]) for part, key in inputs)
            width = first.shape[-1]
            product = first @ second.swapaxes(-1, -2) / width**0.5
            product = product.reshape(len(context), -1)
        elif segment.tokens[0].axes is not None:
            hidden = hidden[:, None, None] + mapped["token"]
            if "row" in mapped:
                hidden = hidden + mapped["row"][:, :, None]
            if "column" in mapped:
                hidden = hidden + mapped["column"][:, None]
        else:
            hidden = hidden[:, None] + mapped["token"]
        out = _linear(_relu(hidden), weights[f"{name}/out/weight"], weights[f"{name}/out/bias"])
        out = _hide(layout, segment, out.reshape(len(context), -1) + product, observation, ops)
        if out.shape[-1] < segment.count:
            absent = out[:, :1] * 0.0 + absent_score(layout)
            absent = ops.broadcast_to(absent, (len(context), segment.count - out.shape[-1]))
            out = ops.concatenate([out, absent], axis=-1)
        parts.append(out)
    scores = ops.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
    given = observation.get("action_mask") if layout.kind != "scores" else None
    if given is None:
        return scores
    if layout.kind == "choice":
        return ops.where(given != 0, scores, NEVER)
    pairs = ops.where(given.reshape(-1, layout.size - 1) != 0, scores[:, :-1], NEVER)
    return ops.concatenate([pairs, scores[:, -1:]], axis=-1)


def _hide(layout: Layout, segment: Segment, scores: Any, observation: Mapping[str, Any], ops: Any) -> Any:
    """The scores [B, count] of a segment, without those of tokens that are not there."""
    masks = [_mask(observation, sequence) for sequence in segment.tokens]
    if all(mask is None for mask in masks):
        return scores
    if len(masks) == 1:
        return ops.where(masks[0], scores, absent_score(layout))
    rows, columns = (observation[sequence.key].shape[1] for sequence in segment.tokens)
    scores = scores.reshape(-1, rows, columns)
    for mask, place in zip(masks, ((slice(None), slice(None), None), (slice(None), None)), strict=True):
        if mask is not None:
            scores = ops.where(mask[place], scores, NEVER)
    return scores.reshape(-1, rows * columns)


def estimate(
    layout: Layout, weights: Mapping[str, Any], observation: Mapping[str, Any], ops: Any = np
) -> Any:
    """The critic's values [B] of a batch of observations."""
    _, context = _encode(layout, weights, observation, ops, "critic/")
    hidden = _relu(_linear(context, weights["critic/value/0/weight"], weights["critic/value/0/bias"]))
    return _linear(hidden, weights["critic/value/1/weight"], weights["critic/value/1/bias"])[..., 0]
