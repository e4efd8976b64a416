"""Scoring, compiled: an agent's scores of the tokens of an observation, and whole episodes by them.

A scorer (:mod:`schedgym.agents.scorer`) gives a token, or a pair of tokens, with the columns x the score

    k0 + k . x + v . tanh(g + U x + A c),

and a score that the whole observation decides is k0 + k . c, where c is the context: nothing, ``globals``, or
also the means of the columns over the tokens that are scored. The last terms are there for hidden units only.
The weights of an environment are one vector: for each segment k0, k and then g, U, A, v of each hidden unit.

A problem's module ``columns`` says what the columns are. It has

- ``Seen``: the entries of an observation with ``observation="features"`` that columns are made of, by name;
- ``Memo``: work space; a dimension named as an entry of ``Seen`` is as long as that entry has tokens;
- ``prepare(seen, memo, code)``: compute what the columns of all tokens share; the code is that of the first
  segment that has columns;
- ``token_columns(seen, memo, code, i, x)`` and ``pair_columns(seen, memo, code, i, j, x)``: write the columns
  of token i, and those of the pair (i, j).

The problem's module ``dynamics`` has ``SCORING``, the kernels that are made of them
(:class:`schedgym.core.kernels.Scoring`), and the views in which they play whole episodes. In others a scorer
acts step by step.

Whatever acts by a scorer calls these functions, which read nothing but the observation; so all of them give
the same scores to the last bit.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.core.arrays import Bytes, Floats, Integers
from schedgym.core.jit import helper, record_dtype
from schedgym.core.stepping import ACT, SHORT, SKIP, has_observed, is_refused, take

EDGE = 1e-5  # log-odds are cut off here
BLOCK = 64  # tokens that are not there are passed over by so many
UNDEFINED = SHORT + 1  # what a kernel returns where a score is not a number
PAUSED = SHORT + 2  # and where it has made as many decisions as it may, so that a user can interrupt it

#: what an action is, how numbers fill a Box, and what the context is, in the order of their codes
KINDS = ("choice", "pairs", "scores")
TRANSFORMS = ("", "squash", "clip")
CONTEXTS = ("none", "globals", "pooled")
CHOICE, PAIRS, NUMBERS = range(3)
NO_TRANSFORM, SQUASH, CLIP = range(3)
NONE, GLOBALS, POOLED = range(3)

FORM = record_dtype(
    ("kind", np.int64),
    ("width", np.int64),  # of kind pairs, how many pairs a row has
    ("transform", np.int64),
    ("context", np.int64),
    ("scale", np.float64),  # of transform clip, what scores are divided by first
    ("low", np.float64),  # of kind scores, the bounds of the Box
    ("high", np.float64),
)
SEGMENT = record_dtype(
    ("code", np.int64),  # of its columns; -1: the whole observation decides its scores
    ("rows", np.int64),  # tokens; in segments without any, scores
    ("width", np.int64),  # pairs in a row
    ("masked", np.int64),  # whether ``Given.present`` says which rows are there
    ("leading", np.int64),  # the columns that depend on the first token of a pair alone
    ("columns", np.int64),
    ("hidden", np.int64),
    ("weight", np.int64),  # place of its first weight
    ("score", np.int64),  # place of its first score
    ("input", np.int64),  # place of the means of its columns in the context
)


class Form(NamedTuple):
    """The form of a scorer, the same for all environments."""

    whole: Annotated[Any, FORM]
    segments: Annotated[Any, SEGMENT, "segment"]


class Given(NamedTuple):
    """The scorer of an environment, and what may be scored there."""

    weights: Annotated[Floats, "weight"]
    open: Annotated[Bytes, "open"]  # 0 for scores that do not count; those beyond its end do
    present: Annotated[Bytes, "present"]  # the mask of the tokens that are there
    scores: Annotated[Floats, "score"]  # takes the scores; with no elements an action is made of them
    numbers: Annotated[Integers, "numbered"]  # the job of each row of the first segment; none: its own number
    offsets: Annotated[Floats, "offset"]  # added to the scores of a job's row; none: nothing is added


#: the scores' best so far
BEST = record_dtype(("score", np.float64), ("slot", np.int64), ("undefined", np.int64))


class Work(NamedTuple):
    """Work space of a scorer."""

    best: Annotated[Any, BEST]
    x: Annotated[Floats, "column"]
    context: Annotated[Floats, "input"]
    shift: Annotated[Floats, "hidden"]  # g + A c of each hidden unit
    pooled: Annotated[Floats, "segment"]  # rows that were added to the context


@helper
def log_odds(share: float) -> float:
    """Return log(x / c) of x / (x + c)."""
    share = min(max(share, EDGE), 1.0 - EDGE)
    return math.log(share / (1.0 - share))


@helper
def unscaled(share: float, scale: float) -> float:
    """Return the number n of n / (n + scale)."""
    return scale * share / (1.0 + 1e-6 - share)


@helper
def no_pairs(seen: Any, memo: Any, code: int, i: int, j: int, x: Any) -> None:
    """Do nothing: ``pair_columns`` of problems in which no pairs are scored."""


@helper
def weighted(weights: Any, place: int, x: Any, first: int, last: int, total: float) -> float:
    """Return ``total`` and the weighted sum of x from ``first`` to before ``last``."""
    for k in range(first, last):
        total += weights[place + k] * x[k]
    return total


@helper
def shift_hidden(own: Any, segment: Any) -> None:
    """Compute what the context adds to each hidden unit of a segment."""
    weights, context, shift = own.given.weights, own.work.context, own.work.shift
    columns, inputs = segment.columns, own.work.context.shape[0]
    for h in range(segment.hidden):
        place = segment.weight + 1 + columns + h * (2 + columns + inputs)
        shift[h] = weighted(weights, place + 1 + columns, context, 0, inputs, weights[place])


@helper
def add_hidden(own: Any, segment: Any, total: float) -> float:
    """Return ``total`` and what the hidden units of a segment add to the score of the columns x."""
    weights, x, shift = own.given.weights, own.work.x, own.work.shift
    columns, inputs = segment.columns, own.work.context.shape[0]
    for h in range(segment.hidden):
        place = segment.weight + 1 + columns + h * (2 + columns + inputs)
        inner = weighted(weights, place + 1, x, 0, columns, shift[h])
        total += weights[place + 1 + columns + inputs] * math.tanh(inner)
    return total


@helper
def pool(own: Any, s: int) -> None:
    """Add the columns x of a row of segment s to the context."""
    segment, work = own.form.segments[s], own.work
    for k in range(segment.columns):
        work.context[segment.input + k] += work.x[k]
    work.pooled[s] += 1.0


@helper
def set_score(own: Any, slot: int, value: float) -> None:
    """Take one score: keep it, make a number of the action of it, or compare it with the best so far."""
    whole, best = own.form.whole, own.work.best
    if value != value:
        best.undefined = 1
    if own.given.scores.shape[0] > 0:
        own.given.scores[slot] = value
    elif whole.kind == NUMBERS:
        if whole.transform == SQUASH:
            value = value / (1.0 + abs(value))
        elif whole.scale != 1.0:
            value = value / whole.scale
        own.exchange.numbers[slot, 0] = min(max(value, whole.low), whole.high)
    elif best.slot < 0 or value > best.score:
        best.score = value
        best.slot = slot


@helper
def next_set(mask: Any, i: int, end: int) -> int:
    """Return the first place from i to before ``end`` whose element is not 0; ``end`` if there is none.

    Places beyond the end of the mask count as if they were not 0.
    """
    last = min(end, mask.shape[0])
    while i + BLOCK <= last:
        found = 0
        for k in range(i, i + BLOCK):
            found |= mask[k]
        if found != 0:
            break
        i += BLOCK
    while i < last and mask[i] == 0:
        i += 1
    return i


@helper
def count_rows(own: Any, segment: Any) -> int:
    """Return the number of rows up to the last token that is there."""
    rows = segment.rows
    if segment.masked:
        mask = own.given.present
        while rows >= BLOCK and next_set(mask, rows - BLOCK, rows) == rows:
            rows -= BLOCK
        while rows > 0 and mask[rows - 1] == 0:
            rows -= 1
    return rows


@helper
def offset_of(given: Any, i: int, k: int, width: int) -> float:
    """Return what is added to score k of row i."""
    number = given.numbers[i] if given.numbers.shape[0] > 0 else i
    return given.offsets[number * width + k]


@helper
def score_tokens(own: Any, s: int, pooling: Any, token_columns: Any, pair_columns: Any) -> None:
    """Score the tokens or pairs of segment s; ``pooling``: add their columns to the context instead."""
    segment, weights, x = own.form.segments[s], own.given.weights, own.work.x
    code, leading, columns = segment.code, segment.leading, segment.columns
    place, width = segment.weight + 1, segment.width
    if not pooling:
        shift_hidden(own, segment)
    end = segment.score + count_rows(own, segment) * width
    slot = next_set(own.given.open, segment.score, end)
    first = segment.score - width  # of the scores of token i
    i = -1
    base = 0.0
    while slot < end:
        if slot >= first + width:
            i = (slot - segment.score) // width
            first = segment.score + i * width
            token_columns(own.seen, own.memo, code, i, x)
            base = weighted(weights, place, x, 0, leading, weights[place - 1])
        if leading < columns:
            pair_columns(own.seen, own.memo, code, i, slot - first, x)
        if pooling:
            pool(own, s)
        else:
            value = weighted(weights, place, x, leading, columns, base)
            value = add_hidden(own, segment, value)
            if s == 0 and own.given.offsets.shape[0] > 0:
                value += offset_of(own.given, i, slot - first, width)
            set_score(own, slot, value)
        slot = next_set(own.given.open, slot + 1, end)


@helper
def begin_context(own: Any) -> None:
    """Write the context as it is before anything is pooled."""
    work, whole = own.work, own.seen.globals
    for k in range(work.context.shape[0]):
        work.context[k] = whole[k] if k < whole.shape[0] else 0.0
    for s in range(work.pooled.shape[0]):
        work.pooled[s] = 0.0


@helper
def end_context(own: Any) -> None:
    """Divide the sums of columns in the context by the numbers of rows."""
    work = own.work
    for s in range(work.pooled.shape[0]):
        segment = own.form.segments[s]
        if segment.code >= 0 and work.pooled[s] > 0.0:
            for k in range(segment.columns):
                work.context[segment.input + k] /= work.pooled[s]


@helper
def score_whole(own: Any, segment: Any) -> None:
    """Give the scores of a segment without tokens, which the context decides."""
    weights, context, end = own.given.weights, own.work.context, segment.score + segment.rows
    inputs = context.shape[0]
    slot = next_set(own.given.open, segment.score, end)
    while slot < end:
        place = segment.weight + (slot - segment.score) * (1 + inputs)
        set_score(own, slot, weighted(weights, place + 1, context, 0, inputs, weights[place]))
        slot = next_set(own.given.open, slot + 1, end)


@helper
def consider(own: Any, prepare: Any, token_columns: Any, pair_columns: Any) -> None:
    """Score everything that counts in one environment."""
    segments, best = own.form.segments, own.work.best
    best.slot = -1
    best.undefined = 0
    code = -1
    for s in range(segments.shape[0] - 1, -1, -1):
        if segments[s].code >= 0:
            code = segments[s].code
    if code >= 0:
        prepare(own.seen, own.memo, code)
    begin_context(own)
    for turn in range(0 if own.form.whole.context == POOLED else 1, 2):
        for s in range(segments.shape[0]):
            segment = segments[s]
            if segment.code >= 0:
                score_tokens(own, s, turn == 0, token_columns, pair_columns)
            elif turn == 1:
                score_whole(own, segment)
        if turn == 0:
            end_context(own)


@helper
def act(own: Any, prepare: Any, token_columns: Any, pair_columns: Any) -> Any:
    """Write the action of one environment: the first of the largest scores, or a number for each score.

    Returns False if a score is not a number.
    """
    exchange, whole = own.exchange, own.form.whole
    if whole.kind == NUMBERS:
        for r in range(exchange.result.rows):
            exchange.numbers[r, 0] = 0.0
    consider(own, prepare, token_columns, pair_columns)
    slot = max(own.work.best.slot, 0)
    if whole.kind == CHOICE:
        exchange.choices[0] = slot
    elif whole.kind == PAIRS:
        exchange.choices[0] = slot // whole.width
        exchange.choices[1] = slot % whole.width
    return own.work.best.undefined == 0


@helper
def score_each(
    regard: Any, prepare: Any, token_columns: Any, pair_columns: Any, table: Any, tools: Any, count: int
) -> None:
    """Write the scores of the first ``count`` environments into ``Given.scores``."""
    for b in range(count):
        consider(regard(table, tools, b), prepare, token_columns, pair_columns)


@helper
def columns_each(
    regard: Any, prepare: Any, token_columns: Any, pair_columns: Any, table: Any, tools: Any, rows: Any
) -> None:
    """Write the columns of tokens.

    ``rows``: the code of the columns, whether they are of pairs, and arrays of as many elements as there are
    tokens: environment (ascending), first token, second token; and the columns [tokens, columns].
    """
    code, paired, env, first, second, found = rows
    for t in range(env.shape[0]):
        own = regard(table, tools, env[t])
        if t == 0 or env[t] != env[t - 1]:
            prepare(own.seen, own.memo, code)
        token_columns(own.seen, own.memo, code, first[t], own.work.x)
        if paired:
            pair_columns(own.seen, own.memo, code, first[t], second[t], own.work.x)
        for k in range(found.shape[1]):
            found[t, k] = own.work.x[k]


@helper
def play_each(
    access: Any,
    decode: Any,
    decide: Any,
    advance: Any,
    observe: Any,
    choose: Any,
    tables: Any,
    played: Any,
) -> int:
    """Play the episodes of the environments whose ``command`` is ACT to their ends, one after the other.

    Args:
        access: accessor of the environment; see :mod:`schedgym.core.stepping`, also for the next four.
        decode: of the action view.
        decide: of the action view.
        advance: of the problem.
        observe: of the problem.
        choose: (table and work space of a scorer, b) -> the result of :func:`act` for environment b.
        tables: (table, tools) of the environments, and those of the scorer.
        played: command [B]; the sums of rewards [B] and the numbers of decisions [B], which are added to; and
            after how many decisions to pause.

    Returns 0; SHORT if a log must grow before the step that it waits for is resumed; -(b + 1) for an
    environment that refuses its action; UNDEFINED if a score is not a number; PAUSED to be called again.
    """
    table, tools, acting, work = tables
    command, rewards, decisions, left = played
    for b in range(command.shape[0]):
        if command[b] != ACT:
            continue
        env = access(table, tools, b)
        result = env.exchange.result
        while not (result.terminated or result.truncated):
            if left == 0:
                return PAUSED
            left -= 1
            if not choose(acting, work, b):
                return UNDEFINED
            if is_refused(env, decode):
                return -(b + 1)
            take(env, decode, decide)
            result.reward = 0.0
            advance(env)
            if not has_observed(env, observe):
                return SHORT
            rewards[b] += result.reward
            decisions[b] += 1
        command[b] = SKIP
    return 0
