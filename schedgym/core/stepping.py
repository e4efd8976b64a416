"""The only loops over environments: they call a problem's functions for each environment of a batch.

A problem writes, for ONE environment ``env`` (see :mod:`schedgym.core.arrays`):

- ``decode(env)``: return True if the agent's action is feasible; one function per action view. It may write
  what it finds out where ``decide`` reads it, but nothing else: an action may be refused after it;
- ``decide(env, feasible)``: turn the action into a decision, repaired if it was not feasible;
- ``begin(env)``: start an episode on the workload in ``env.jobs``;
- ``advance(env)``: carry out the decision, and let time pass until the next one is due;
- ``observe(env)``: write the observation;
- ``draw(env, seed, episode)``: draw the workload of an episode;
- ``measure(env)``: write the metrics of a finished episode.

The loops here call them for a batch: environments are skipped, act or begin by their ``command``, and an
action that must be refused is refused before anything changes. The module :mod:`schedgym.core.kernels` makes
a problem's kernels of these loops and the problem's functions.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.core.arrays import Floats, Integers
from schedgym.core.jit import helper, record_dtype

#: what an environment does in a call of a kernel. CHECK: say whether the action would be refused; RESUME: go
#: on after the log has grown
SKIP, ACT, BEGIN, CHECK, RESUME = range(5)

#: what a kernel returns that needs longer arrays before it can go on
SHORT = -(2**62)

#: how actions are taken: ``strict`` refuses infeasible ones
ACTION_RULES = record_dtype(("strict", np.int64))

#: what a step did
RESULT = record_dtype(
    ("reward", np.float64),
    ("rows", np.int64),  # leading rows of the next action that count, where actions are real numbers
    ("terminated", np.bool_),
    ("truncated", np.bool_),
    ("repaired", np.bool_),  # whether this step's action was infeasible
    ("short", np.bool_),  # whether the step waits for longer arrays; see RESUME
)


class ActionSpace(NamedTuple):
    """The rules and ranges of actions, the same for all environments."""

    rules: Annotated[Any, ACTION_RULES]
    counts: Annotated[Integers, "component"]  # how many choices each component of a discrete action has


class Exchange(NamedTuple):
    """The action and the result of a step; ``numbers`` has no elements where actions are discrete."""

    choices: Annotated[Integers, "choice"]  # a discrete action
    numbers: Annotated[Floats, "action_row", "action_column"]  # an action of real numbers
    result: Annotated[Any, RESULT]


@helper
def is_well_formed(env: Any) -> Any:
    """Return True if a discrete action is within its range, or the numbers of a continuous one are finite."""
    counts, choices, numbers = env.action_space.counts, env.exchange.choices, env.exchange.numbers
    for k in range(counts.shape[0]):
        if choices[k] < 0 or choices[k] >= counts[k]:
            return False
    if numbers.shape[0] > 0:
        for r in range(env.exchange.result.rows):
            for c in range(numbers.shape[1]):
                if not math.isfinite(numbers[r, c]):
                    return False
    return True


@helper
def always_feasible(env: Any) -> Any:
    """Return True: for views in which every well-formed action is feasible."""
    return True


@helper
def is_refused(env: Any, decode: Any) -> Any:
    """Return True if the action must be refused: malformed, or with strict actions infeasible."""
    return not is_well_formed(env) or (env.action_space.rules.strict != 0 and not decode(env))


@helper
def take(env: Any, decode: Any, decide: Any) -> None:
    """Turn an action that is not refused into a decision."""
    feasible = decode(env)
    env.exchange.result.repaired = not feasible
    decide(env, feasible)


@helper
def has_observed(env: Any, observe: Any) -> Any:
    """Write the observation after a step; return False if the step is not complete, as its log is short."""
    if env.exchange.result.short:
        return False
    observe(env)
    return True


@helper
def decide_each(access: Any, decode: Any, decide: Any, table: Any, tools: Any, command: Any) -> int:
    """Take the actions of the environments whose ``command`` [B] is ACT; with CHECK they are only checked.

    Returns 0, or -(b + 1) for the first environment whose action is malformed, or with strict actions
    infeasible; then nothing has changed.
    """
    for b in range(command.shape[0]):
        if command[b] == ACT or command[b] == CHECK:
            if is_refused(access(table, tools, b), decode):
                return -(b + 1)
    for b in range(command.shape[0]):
        if command[b] == ACT:
            take(access(table, tools, b), decode, decide)
    return 0


@helper
def advance_each(
    access: Any, begin: Any, advance: Any, observe: Any, table: Any, tools: Any, command: Any
) -> int:
    """Advance the environments, each by its ``command`` [B]: ACT by what was decided, BEGIN an episode.

    ``begin`` and ``advance`` set the reward and the ends of the result, which are zero before. ``advance``
    may set ``short`` instead, before it changes anything that it would change again: its log needs more rows.
    It is called again, with the command RESUME and ``short`` still set, when the log has them.

    Returns the number of environments whose episode ended; or SHORT if some are short.
    """
    ended = 0
    short = False
    for b in range(command.shape[0]):
        if command[b] == SKIP:
            continue
        env = access(table, tools, b)
        result = env.exchange.result
        if command[b] != RESUME:
            result.reward = 0.0
            result.terminated = False
            result.truncated = False
        if command[b] == BEGIN:
            result.repaired = False
            result.short = False
            begin(env)
        else:
            advance(env)
        if not has_observed(env, observe):
            short = True
            continue
        if result.terminated or result.truncated:
            ended += 1
    return SHORT if short else ended


@helper
def draw_each(access: Any, draw: Any, table: Any, tools: Any, mask: Any, seeds: Any, episodes: Any) -> int:
    """Draw the workloads of the environments that ``mask`` [B] names, from ``seeds`` and ``episodes`` [B].

    ``draw`` returns 0, or if the arrays are too short the length that they need; what it has written is then
    undefined. Returns the largest length that is needed.
    """
    needed = 0
    for b in range(mask.shape[0]):
        if mask[b]:
            needed = max(needed, draw(access(table, tools, b), seeds[b], episodes[b]))
    return needed


@helper
def measure_each(access: Any, measure: Any, table: Any, tools: Any, mask: Any) -> None:
    """Write the metrics of the finished episodes that ``mask`` [B] names."""
    for b in range(mask.shape[0]):
        if mask[b]:
            measure(access(table, tools, b))
