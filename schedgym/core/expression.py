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

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
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
#: code of each step of a program: a number, a name's value, then the operators and functions
CODES = {
    name: code for code, name in enumerate(("number", "name", "Add", "Sub", "Mult", "Div", "Pow", "USub"))
}
CODES |= {name: len(CODES) + i for i, name in enumerate(_FUNCTIONS)}
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
            self._tree = ast.parse(source, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise InvalidParameter(f"expression {text!r}: is no arithmetic expression") from None
        self._quoted = quoted
        names: dict[str, None] = {}
        self._check(self._tree, names)
        self.names = tuple(names)

    def _check(self, node: ast.AST, names: dict[str, None]) -> None:
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            self._check(node.left, names)
            self._check(node.right, names)
        elif isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
            self._check(node.operand, names)
        elif isinstance(node, ast.Name):
            names[self._quoted.get(node.id, node.id)] = None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            count, _ = _FUNCTIONS.get(node.func.id, (-1, None))
            if count != len(node.args):
                known = ", ".join(f"{name} of {n}" for name, (n, _) in _FUNCTIONS.items())
                raise InvalidParameter(
                    f"expression {self.text!r}: {node.func.id} of {len(node.args)} is unknown; known: {known}"
                )
            for argument in node.args:
                self._check(argument, names)
        elif not (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
            what = type(node).__name__
            raise InvalidParameter(f"expression {self.text!r}: {what} is not arithmetic of numbers and names")

    def __call__(self, values: Mapping[str, Floats]) -> Floats:
        """The value, element by element; what is undefined (1/0) is infinite or NaN.

        Args:
            values: name -> numbers, arrays of one shape.
        """
        with np.errstate(all="ignore"):
            return np.asarray(self._value(self._tree, values), dtype=np.float64)

    def _value(self, node: Any, values: Mapping[str, Floats]) -> Any:
        if isinstance(node, ast.BinOp):
            return _BINARY[type(node.op)](self._value(node.left, values), self._value(node.right, values))
        if isinstance(node, ast.UnaryOp):
            return _UNARY[type(node.op)](self._value(node.operand, values))
        if isinstance(node, ast.Call):
            arguments = [self._value(argument, values) for argument in node.args]
            return _FUNCTIONS[node.func.id][1](*arguments)  # type: ignore[attr-defined]
        if isinstance(node, ast.Name):
            return values[self._quoted.get(node.id, node.id)]
        return _constant(node)

    def program(self) -> tuple[Integers, Floats]:
        """The expression as the steps of a machine with a stack, for kernels.

        Returns:
            the code of each step (:data:`CODES`), and its operand: the number, or the place of the name in
            :attr:`names`; 0 for operators and functions, which take their operands from the stack.
        """
        steps: list[tuple[int, float]] = []
        self._compile(self._tree, steps)
        codes, operands = zip(*steps, strict=True)
        return np.array(codes, dtype=np.int64), np.array(operands, dtype=np.float64)

    def _compile(self, node: Any, steps: list[tuple[int, float]]) -> None:
        if isinstance(node, ast.Constant):
            steps.append((CODES["number"], float(_constant(node))))
        elif isinstance(node, ast.Name):
            steps.append((CODES["name"], float(self.names.index(self._quoted.get(node.id, node.id)))))
        elif isinstance(node, ast.UnaryOp):
            self._compile(node.operand, steps)
            if isinstance(node.op, ast.USub):
                steps.append((CODES["USub"], 0.0))
        else:
            call = isinstance(node, ast.Call)
            for part in node.args if call else (node.left, node.right):
                self._compile(part, steps)
            steps.append((CODES[node.func.id if call else type(node.op).__name__], 0.0))


def _constant(node: Any) -> np.float64:
    """A float of numpy: a power of Python's integers could take for ever."""
    return np.float64(min(node.value, 1e308)) if isinstance(node.value, int) else np.float64(node.value)
