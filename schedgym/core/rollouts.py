"""Rollouts: scorers on the arrays of observations, and whole episodes in compiled code.

The kernels of scorers are those of :mod:`schedgym.core.scorer`, those of a problem's own rules in its module
``rollouts``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from schedgym.core.arrays import Flags, Floats, Integers, declarations, members
from schedgym.core.problem import get_problem
from schedgym.core.scorer import CONTEXTS, PAUSED, UNDEFINED, Form, Given
from schedgym.core.simulator import Simulator
from schedgym.core.stepping import ACT, SHORT, SKIP
from schedgym.core.tables import MADE_HERE, tabled
from schedgym.core.tokens import tokens_of
from schedgym.errors import InvalidParameter

MOST_DECISIONS = 100_000  # of a call of a kernel: some tenths of a second, in which nothing is interrupted
MOST_RULED = 1000  # of a call by a rule, whose decisions may take milliseconds


def scoring_of(problem: str) -> Any:
    """The kernels of a problem's scorers, a :class:`~schedgym.core.kernels.Scoring`.

    Raises:
        InvalidParameter: if it has none.
    """
    found = get_problem(problem)
    scoring = getattr(found.module("dynamics"), "SCORING", None)
    if scoring is None:
        raise InvalidParameter(f"{found.name}: has no SCORING in dynamics.py, which scorers need")
    return scoring


def tabled_scoring(
    acting: type[Any], form: Form, given: Given, observation: Mapping[str, Any], exchange: Any = MADE_HERE
) -> tuple[Any, Any]:
    """The bundles of a scorer and their work space, packed, as the problem's kernels take them.

    Args:
        acting: the bundles of the problem's scorers.
        form: form of the scorer.
        given: weights, masks, and the array for scores, for each environment.
        observation: a batch of observations; arrays that have the right type already are not copied.
        exchange: bundle that takes actions; the entries of the observation must then be the live buffers.

    Raises:
        InvalidParameter: if the rows of an entry have another length than those that the columns are made of.
        TypeError: if an entry would have to be copied to be live.
    """
    bundle = next(member.bundle for member in members(acting) if member.name == "seen")
    count = len(given.weights)
    entries = []
    for declared in declarations(bundle):
        if declared.name not in observation:
            entries.append(np.zeros((count, *(0 for _ in declared.dimensions)), dtype=declared.dtype))
            continue
        array = np.asarray(observation[declared.name])
        read = declared.dimensions[-1]
        if isinstance(read, int) and array.shape[-1] != read:
            raise InvalidParameter(
                f"{declared.name}: the columns that scorers see are made of {read} numbers a row, the "
                f"environment has {array.shape[-1]}"
            )
        inner = (math.prod(array.shape[1:-1]), array.shape[-1])[-len(declared.dimensions) :]
        entries.append(np.ascontiguousarray(array.reshape((count, *inner)), dtype=declared.dtype))
        live = array.size == 0 or np.may_share_memory(array, entries[-1])
        if exchange is not MADE_HERE and not live:
            raise TypeError(
                f"{declared.name}: must be a contiguous {declared.dtype} array, not {array.dtype}"
            )
    segments = form.segments
    sizes = {
        **{name: array.shape[1] for name, array in zip(bundle._fields, entries, strict=True)},
        "segment": len(segments),
        "column": int(segments["columns"].max()),
        "hidden": int(segments["hidden"].max()),
        "input": _inputs(form, observation),
    }
    return tabled(acting(form, bundle(*entries), given, exchange, MADE_HERE, MADE_HERE), sizes)


def _inputs(form: Form, observation: Mapping[str, Any]) -> int:
    """The length of the context."""
    context = CONTEXTS[int(form.whole["context"])]
    count = 0 if context == "none" else int(np.shape(observation["globals"])[-1])
    if context == "pooled":
        segments = form.segments
        count += int(segments["columns"][segments["code"] >= 0].sum())
    return count


def play_out(
    simulator: Simulator,
    form: Form,
    masks: tuple[str, str],
    weights: Any,
    live: Flags,
    offsets: Any = None,
) -> tuple[Floats, Integers]:
    """Let scorers play the episodes that have begun to their ends, compiled.

    Args:
        simulator: simulator of B environments in a view in which the problem's scorers play compiled.
        form: form of the scorers.
        masks: keys of the observation: mask of the scores that count, and of the tokens that are there; ""
            for none.
        weights: of each environment's scorer; float64 [B, weights].
        live: True for the environments that play, [B].
        offsets: numbers that are added to the scores of each job, whatever its row, in the first segment;
            float64 [B, jobs x pairs of a job]. The window must show all jobs. None: nothing is added.

    Returns:
        the sums of their rewards, and the numbers of their decisions, [B].

    Raises:
        InvalidAction: if an environment refuses an action.
        InvalidParameter: if a score is not a number.
    """
    scoring, count = scoring_of(simulator.problem.name), simulator.num_envs
    kernel = scoring.play_kernel(simulator)
    command = np.where(live, np.int8(ACT), np.int8(SKIP))
    rewards, decisions = np.zeros(count), np.zeros(count, dtype=np.int64)
    found = SHORT
    while found in (SHORT, PAUSED):  # the arrays may have grown
        shown = simulator.observation
        none = np.zeros((count, 0), dtype=np.int8)
        open_, present = (shown[key].reshape(count, -1) if key else none for key in masks)
        given = Given(weights, open_, present, np.zeros((count, 0)), *_offsets(simulator, offsets))
        acting = tabled_scoring(scoring.acting, form, given, shown, simulator.arrays.exchange)
        tables = (simulator.table, simulator.toolboxes[0], *acting)
        found = kernel(tables, (command, rewards, decisions, MOST_DECISIONS))
        if found == SHORT:
            short = simulator.arrays.exchange.result["short"] & (command == ACT)
            simulator.resume(np.where(short, np.int8(ACT), np.int8(SKIP)))
            rewards[short] += simulator.reward[short]
            decisions[short] += 1
    if found == UNDEFINED:
        raise InvalidParameter("weights: scores are no numbers")
    if found < 0:
        raise simulator.refusal(-found - 1, f"actions[{-found - 1}]")
    return rewards, decisions


def _offsets(simulator: Simulator, offsets: Any) -> tuple[Any, Any]:
    """The jobs of all rows, and what is added to their scores, as :class:`Given` has them."""
    count = simulator.num_envs
    numbers = np.zeros((count, 0), dtype=np.int64)
    if offsets is None:
        return numbers, np.zeros((count, 0))
    path = tokens_of(simulator.problem.name).numbers
    return operator.attrgetter(path)(simulator.arrays) if path else numbers, offsets


def play_by_rule(simulator: Simulator, rule: Any) -> float:
    """Let one of the problem's rules play the episode that has begun to its end, compiled.

    Args:
        simulator: simulator of one environment in a view that ``PLAY`` of the problem's module ``rollouts``
            has: action view -> kernel (table, work space, rule, sum so far, most decisions) -> the new sum.
        rule: as that kernel takes it.

    Returns:
        the sum of the rewards.
    """
    kernel = simulator.problem.module("rollouts").PLAY[simulator.interface.view]
    total = 0.0
    while not simulator.terminated[0]:
        total = kernel(simulator.table, simulator.toolboxes[0], rule, total, MOST_RULED)
    return total
