"""A policy as one expression: the score of a job, e.g. ``score: -execution / (cpu + memory)``.

The names are those of the observation's entries in exact units: entries with a number for each visible job
(``execution``, ``waiting``, ``remaining``), or one number for all (``clock``); an entry with several for each
job has names with a number behind, ``demand_0``, ``demand_1``, and a problem may give these names of their
own (``cpu``, ``memory``). Jobs are served by score, the highest first; of equal ones, the first visible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.expression import CODES, SCORE, SCORED_VIEWS, Expression
from schedgym.core.jit import helper, pure_kernel
from schedgym.core.problem import get_problem
from schedgym.core.tokens import tokens_of
from schedgym.errors import InvalidParameter, UnknownName

Observation = Mapping[str, npt.NDArray[Any]]

NUMBER, NAME = CODES["number"], CODES["name"]
ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER, NEGATIVE = (
    CODES[name] for name in ("Add", "Sub", "Mult", "Div", "Pow", "USub")
)
ABS, CEIL, EXP, FLOOR = (CODES[name] for name in ("abs", "ceil", "exp", "floor"))
LOG, MAX, MIN, SQRT = (CODES[name] for name in ("log", "max", "min", "sqrt"))


@helper
def of_one(code: int, x: float) -> float:
    """Return an operator or function of one argument."""
    if code == NEGATIVE:
        return -x
    if code == ABS:
        return abs(x)
    if code == CEIL:
        return np.ceil(x)
    if code == FLOOR:
        return np.floor(x)
    if code == EXP:
        return np.exp(x)
    return np.log(x) if code == LOG else np.sqrt(x)


@helper
def of_two(code: int, x: float, y: float) -> float:
    """Return an operator or function of two arguments."""
    if code == ADD:
        return x + y
    if code == SUBTRACT:
        return x - y
    if code == MULTIPLY:
        return x * y
    if code == DIVIDE:
        return x / y
    if code == POWER:
        return x**y
    if code == MAX:
        return x if x > y or x != x else y
    return x if x < y or x != x else y


@helper
def value_of(codes: Any, operands: Any, columns: Any, stack: Any, row: int) -> float:
    """Return the value of a program (:meth:`Expression.program`) for one row of the columns [name, row]."""
    top = -1
    for k in range(codes.shape[0]):
        code = codes[k]
        if code == NUMBER:
            top += 1
            stack[top] = operands[k]
        elif code == NAME:
            top += 1
            stack[top] = columns[int(operands[k]), row]
        elif code <= POWER or code == MAX or code == MIN:
            top -= 1
            stack[top] = of_two(code, stack[top], stack[top + 1])
        else:
            stack[top] = of_one(code, stack[top])
    return stack[0]


@pure_kernel
def score_rows(program: Any, columns: Any, stack: Any, present: Any, scores: Any) -> int:
    """Write the scores of the rows that are present, and return the first of the highest, -1 without any.

    What is not a number is the lowest score; that of rows that are absent is, too.
    """
    codes, operands = program
    best = -1
    for i in range(scores.shape[0]):
        value = -np.inf
        if present[i]:
            value = value_of(codes, operands, columns, stack, i)
            if value != value:
                value = -np.inf
            if best < 0 or value > scores[best]:
                best = i
        scores[i] = value
    return best


class ScorePolicy:
    """Serve the jobs by the score that an expression gives them, the highest first.

    In view ``priority`` the scores go to the environment by their ranks; in view ``pick`` the job with the
    highest score of those that may be picked is next, and where there is none the decision is closed.

    Args:
        text: ``score: EXPRESSION``, an :class:`~schedgym.core.expression.Expression`.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.expression = Expression(text.removeprefix(SCORE).strip())
        self._program = self.expression.program()
        self._stack = np.empty(len(self._program[0]))

    def acting_parameters(self, id: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters with a view that takes scores, unless ``given`` has a view."""
        known = [view.name for view in get_problem(id).views]
        view = given.get("view", next((view for view in SCORED_VIEWS if view in known), None))
        if view is None:
            raise InvalidParameter(f"{self.text!r}: {id} has no view {' or '.join(SCORED_VIEWS)}")
        return {**given, "view": view, **({"action_mask": True} if view == "pick" else {})}

    def reset(self, interface: Any, rng: np.random.Generator) -> None:
        """Begin an episode; InvalidParameter in a view without scores, UnknownName for what is no column.

        Args:
            interface: an :class:`~schedgym.core.policy.Interface`, whose module names this one.
            rng: not used.
        """
        interface.check(repr(self.text), SCORED_VIEWS)
        self._window, self._picks = interface.sizes["window"], interface.view == "pick"
        if self._picks:
            interface.check_needs(repr(self.text), {"action_mask": True})
        masks = ("action_mask",) if self._picks else ("job_mask", "task_mask")
        self._present = next(key for key in masks if key in interface.entries)
        known = self._known_columns(interface)
        for name in self.expression.names:
            if name not in known:
                raise UnknownName("column of a score", name, known)
        self._sources = [known[name] for name in self.expression.names]
        self._columns = np.empty((len(self._sources), self._window))
        self._scores = np.empty(self._window)

    def _known_columns(self, interface: Any) -> dict[str, tuple[str, int | None]]:
        """Name -> entry of the observation, and its column."""
        known: dict[str, tuple[str, int | None]] = {}
        for key, shape in interface.entries.items():
            if key.endswith("mask"):
                continue
            if tuple(shape) in ((), (1,), (self._window,)):
                known[key] = key, None
            elif len(shape) == 2 and shape[0] == self._window:
                known |= {f"{key}_{k}": (key, k) for k in range(shape[1])}
        for key, parameter in tokens_of(interface.problem).exact.items():
            known |= {name: (key, k) for k, name in enumerate(interface.parameters[parameter])}
        return known

    def __call__(self, observation: Observation) -> Any:
        """The next job, or the ranks of all jobs in [-1, 1] (0 for slots without a job)."""
        for row, (key, column) in zip(self._columns, self._sources, strict=True):
            entry = observation[key]
            row[:] = entry if column is None else entry[:, column]
        present = observation[self._present]
        best = score_rows(self._program, self._columns, self._stack, present, self._scores)
        if self._picks:
            return best if best >= 0 else self._window
        order = np.argsort(-self._scores, kind="stable")
        ranks = np.empty(self._window)
        ranks[order] = np.linspace(1.0, -1.0, self._window)
        return ranks
