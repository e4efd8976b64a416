"""A candidate in a process of its own, ``python -I -m schedgym.board.candidate``.

:mod:`schedgym.board.walls` starts it. Orders come from standard input: two lines of JSON, then for each step
a mark for each environment. Answers go to standard output: lines of JSON, then an empty one a step.
Observations lie in a file that is open for reading only. Actions go to another file: a mark for each
environment, then a row of bytes for each, the action or the text of an error. The process restricts itself
before it loads a stranger's code, and before it answers, and never holds an environment.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import mmap
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.board.sandbox import confine, limit
from schedgym.core.policy import Interface, Policy, list_policies, make_policy
from schedgym.core.policy_files import names_policy_file, typed_policy
from schedgym.core.problem import get_problem
from schedgym.errors import InvalidAction, one_line
from schedgym.evaluation.plan import acting_parameters

ANSWER = 240  # bytes of the action, or of the text of an error, at least
PACKAGES = ("schedgym", "schedgym.baselines", "schedgym.agents")  # which stand apart in a checkout
DECIDED, FAILED = 1, 2  # marks of an environment in the file of actions; 0: not decided yet

Arrays = Mapping[str, npt.NDArray[Any]]


class Expected(NamedTuple):
    """The actions that an environment takes: their shape, and whether they are real numbers."""

    shape: tuple[int, ...]
    real: bool

    @property
    def dtype(self) -> npt.DTypeLike:
        """The type in which an action is handed over."""
        return np.float64 if self.real else np.int64

    @property
    def length(self) -> int:
        """Length of a row in the file of actions."""
        return max(ANSWER, 8 * int(np.prod(self.shape)))


class PolicyBatch:
    """The candidate's policies, one for each environment of a batch, beside the arrays that they see.

    Args:
        policies: after their reset.
        arrays: observations of all environments, [B, ...], which are overwritten from step to step.
        scalars: names of the entries that are numbers.
        expected: the actions that the environments take.
    """

    def __init__(
        self, policies: list[Policy], arrays: Arrays, scalars: Iterable[str], expected: Expected
    ) -> None:
        self.policies, self.expected = policies, expected
        self._scalars = [(name, arrays[name]) for name in scalars]
        self._rows = [{name: array[i, ...] for name, array in arrays.items()} for i in range(len(policies))]

    def decide(self, index: int) -> bytes:
        """The action of one environment's policy for what it sees now, as bytes."""
        observation = self._rows[index].copy()
        for name, array in self._scalars:
            observation[name] = array[index]
        action = np.asarray(self.policies[index](observation))
        if action.dtype.kind not in ("fiu" if self.expected.real else "iu"):
            kind = "real" if self.expected.real else "whole"
            raise InvalidAction(f"must be {kind} numbers, got {action.dtype}")
        if action.shape != self.expected.shape:
            raise InvalidAction(f"must have shape {self.expected.shape}, got {action.shape}")
        return action.astype(self.expected.dtype).tobytes()


def make_candidate(text: str, id: str) -> Policy:
    """A new policy of a candidate: ``score: EXPRESSION``, FILE.py:NAME, an agent file, or a policy's name."""
    if text == "pretrained" or text.endswith(".npz"):
        from schedgym.agents.agent_policy import make_agent

        return make_agent(text, id)
    problem = get_problem(id).name
    made: Policy = make_policy(typed_policy(text, problem), problem)
    return made


def make_batch(text: str, order: Mapping[str, Any], observations: int) -> PolicyBatch:
    """The policies of a batch, as an order describes it.

    Args:
        text: the candidate.
        order: its "layout" has the type, the shape in one environment, and the offset [bytes] of each array.
        observations: descriptor of the file of arrays, open for reading, so that nobody writes to them.
    """
    interface, count = order["interface"], order["count"]
    values = interface["parameters"].items()  # of JSON, which knows no tuples
    parameters = {name: tuple(own) if isinstance(own, list) else own for name, own in values}
    policies = [make_candidate(text, interface["id"]) for _ in range(count)]
    for place, policy in enumerate(policies):
        policy.reset(Interface(**{**interface, "parameters": parameters}), np.random.default_rng(place))
    memory = mmap.mmap(observations, 0, access=mmap.ACCESS_READ)
    arrays = {
        name: np.frombuffer(memory, dtype, count * int(np.prod(shape)), offset).reshape(count, *shape)
        for name, (dtype, shape, offset) in order["layout"].items()
    }
    return PolicyBatch(policies, arrays, order["scalars"], Expected(tuple(order["shape"]), order["real"]))


def serve(orders: Any, answers: int, start: Mapping[str, Any], restrict: Callable[[], list[str]]) -> None:
    """Load the candidate, then answer until nothing is asked any more.

    What is no stranger's code decides once before the process is restricted: what it compiles is kept.
    """
    text, id, seen = start["candidate"], start["id"], start["observations"]
    strange = names_policy_file(text)
    try:
        missing = restrict() if strange else []
        _say(answers, missing=missing)
        acting = acting_parameters(get_problem(id), id, start["parameters"], make_candidate(text, id))
        _say(answers, acting=acting)
        order = json.loads(orders.readline())
        if not strange:
            with contextlib.suppress(Exception):  # it is told when it is asked
                make_batch(text, {**order, "count": 1}, seen).decide(0)
            missing = restrict()
        batch = make_batch(text, order, seen)
        _say(answers, missing=missing)
    except BaseException as error:
        _say(answers, error=_told(error))
        return
    length, count = batch.expected.length, len(batch.policies)
    actions = mmap.mmap(start["actions"], count * (1 + length))
    while marks := orders.read(count):  # of those that decide
        for index in np.flatnonzero(np.frombuffer(marks, np.uint8)).tolist():
            try:
                answer, mark = batch.decide(index), DECIDED
            except BaseException as error:
                answer, mark = _told(error).encode()[:ANSWER].ljust(ANSWER, b"\0"), FAILED
            begin = count + index * length
            actions[begin : begin + len(answer)] = answer
            actions[index] = mark
        os.write(answers, b"\n")


def _told(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}")[:ANSWER]


def _say(answers: int, **answer: Any) -> None:
    os.write(answers, json.dumps(answer).encode() + b"\n")


def main() -> None:
    """Restrict this process, and play."""
    with os.fdopen(os.dup(0), "rb") as orders:
        answers = os.dup(1)
        start = json.loads(orders.readline())
        list_policies()  # imports kernels, whose cache is found while folders can be written to
        importlib.import_module("schedgym.core.score_policy")  # those of expressions
        get_problem(start["id"]).module("dynamics")  # and of agents, too
        folders = (folder for name in PACKAGES for folder in importlib.import_module(name).__path__)
        readable = [Path(path) for path in (*folders, *start["readable"])]
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):  # what a candidate prints goes nowhere
            os.dup2(nothing, descriptor)

        def restrict() -> list[str]:
            missing = limit(start["memory"], start["files"], start["seconds"])
            return missing + confine(readable, Path(__file__).parent)

        serve(orders, answers, start, restrict)


if __name__ == "__main__":
    main()
