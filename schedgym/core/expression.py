"""Arithmetic over named arrays, written as text: parsed, checked and computed here, never by ``eval``."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats, Integers
from schedgym.errors import InvalidParameter

SCORE = "score:"  # before the expression that names a policy, which acts in one of these views
SCORED_VIEWS = ("priority", "pick")

LONGEST = 500  # characters: so that a tree of any shape is walked without running out of stack

#: name of the syntax tree -> how many values it takes, and the operation
_OPERATORS: dict[str, tuple[int, Callable[..., Any]]] = {
    "Add": (2, operator.add),
    "Sub": (2, operator.sub),
    "Mult": (2, operator.mul),
    "Div": (2, operator.truediv),
    "Pow": (2, operator.pow),
    "USub": (1, operator.neg),
}
_FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "abs": (1, np.abs),
    "ceil": (1, np.ceil),
    "exp": (1, np.exp),
    "floor": (1, np.floor),
    "log": (1, np.log),
    "max": (2, np.maximum),
    "min": (2, np.minimum),
    "sqrt": (1, np.sqrt),
}
_OPERATIONS = _OPERATORS | _FUNCTIONS
#: code of each step of a program: a number, a name's value, then the operators and functions
CODES = {name: code for code, name in enumerate(("number", "name", *_OPERATIONS))}
_QUOTED = re.compile(r"`([^`]+)`")
# a comment, a text, the end of a line, and a number with a keyword right behind it: of some of these Python's
# parser warns on stderr
_FOREIGN = re.compile(r"[#'\"\\]")
_NUMBER = r"0x[\da-f_]*|0[bo][\d_]*|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:e[+-]?\d[\d_]*)?"
_GLUED = re.compile(rf"(?:(?<![\w.])|(?=\.))((?>{_NUMBER}))[^\W\d_]", re.IGNORECASE)


class Expression:
    """An arithmetic expression, e.g. ``0.02 * GeneratedTokens``.

    It has numbers, names, parentheses, ``+ - * / **`` and the functions abs, ceil, exp, floor, log (to
    base e), sqrt of one argument and min, max of two. A name with blanks or signs stands between backquotes.

    Args:
        text: the expression.

    Attributes:
        text: as given.
        names: the names in it, in the order of their first appearance.

    Raises:
        InvalidParameter: if the text is anything else.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        quoted: dict[str, str] = {}

        def replace(found: re.Match[str]) -> str:
            key = f"quoted_name_{len(quoted)}_"
            quoted[key] = found[1]
            return f" {key} "

        if len(text) > LONGEST:
            raise InvalidParameter(f"expression: longer than {LONGEST} characters")
        source = _QUOTED.sub(replace, text).strip()
        if found := _FOREIGN.search(source):
            raise InvalidParameter(
                f"expression {text!r}: {found[0]} stands only in a name between backquotes"
            )
        if found := _GLUED.search(source):
            raise InvalidParameter(f"expression {text!r}: a letter follows the number {found[1]}")
        try:
            tree = ast.parse(source, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise InvalidParameter(f"expression {text!r}: is no arithmetic expression") from None
        self._quoted = quoted
        #: of a machine with a stack, from which operations take what they need; the others have an operand
        self._steps: list[tuple[str, Any]] = []
        self._compile(tree)
        self.names = tuple(dict.fromkeys(operand for step, operand in self._steps if step == "name"))

    def _compile(self, node: Any) -> None:
        """Append the steps of a part of the syntax tree; InvalidParameter if it is not arithmetic."""
        step: str = type(getattr(node, "op", node)).__name__
        operand: Any = None
        parts: list[Any] = []
        if isinstance(node, ast.Name):
            step, operand = "name", self._quoted.get(node.id, node.id)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            step, operand = "number", _constant(node)
        elif isinstance(node, ast.BinOp) and step in _OPERATORS:
            parts = [node.left, node.right]
        elif isinstance(node, ast.UnaryOp) and step in ("UAdd", "USub"):
            parts = [node.operand]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            step, parts = node.func.id, node.args
            count, _ = _FUNCTIONS.get(step, (-1, None))
            if count != len(parts):
                known = ", ".join(f"{name} of {n}" for name, (n, _) in _FUNCTIONS.items())
                raise InvalidParameter(
                    f"expression {self.text!r}: {step} of {len(parts)} is unknown; known: {known}"
                )
        else:
            what = type(node).__name__
            raise InvalidParameter(f"expression {self.text!r}: {what} is not arithmetic of numbers and names")
        for part in parts:
            self._compile(part)
        if step != "UAdd":
            self._steps.append((step, operand))

    def __call__(self, values: Mapping[str, Floats]) -> Floats:
        """The value, element by element; what is undefined (1/0) is infinite or NaN.

        Args:
            values: name -> numbers, arrays of one shape.
        """
        stack: list[Any] = []
        with np.errstate(all="ignore"):
            for step, operand in self._steps:
                if step in _OPERATIONS:
                    count, operation = _OPERATIONS[step]
                    stack[-count:] = [operation(*stack[-count:])]
                else:
                    stack.append(values[operand] if step == "name" else operand)
        return np.asarray(stack.pop(), dtype=np.float64)

    def program(self) -> tuple[Integers, Floats]:
        """The expression as the steps of a machine with a stack, for kernels.

        Returns:
            the code of each step (:data:`CODES`), and its operand: the number, or the place of the name in
            :attr:`names`; 0 for operators and functions, which take their operands from the stack.
        """
        codes = [CODES[step] for step, _ in self._steps]
        place = self.names.index
        operands = [place(own) if step == "name" else own or 0.0 for step, own in self._steps]
        return np.array(codes, dtype=np.int64), np.array(operands, dtype=np.float64)


def _constant(node: Any) -> np.float64:
    """A float of numpy: a power of Python's integers could take for ever."""
    return np.float64(min(node.value, 1e308)) if isinstance(node.value, int) else np.float64(node.value)
