"""Arithmetic that rounds otherwise, for tests in processes of their own whose kernels run as plain Python.

Another processor, compiler or order of summation gives other last digits. Here the result of every operation
in rules, dynamics, policies and solvers that is not exact may be changed by a share of it. What is exact
stays, and the same operation on the same numbers has the same result, so that equal jobs stay equal.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
from fractions import Fraction
from importlib.machinery import SourceFileLoader
from typing import Any

LAST_BITS = 2.0**-51
#: what decides, and by which share results are changed there at most: only in the last two bits where solvers
#: stop when no more than these can change, and where times add up over many tasks
PARTS = {"/solvers/": LAST_BITS, "/dynamics.py": LAST_BITS}
PARTS |= dict.fromkeys(["/rules.py", "/orders.py", "baselines/"], 1e-13)
OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv"}
FUNCTIONS = ("sqrt", "exp", "expm1", "log", "log1p")


class Rounding:
    """Arithmetic as ever (``salt`` 0), or with other results, which each salt changes otherwise."""

    def __init__(self) -> None:
        self.salt, self.changes = 0, 0

    def operate(self, name: str, error: float, x: Any, y: Any) -> Any:
        """x and y joined by an operator of the module of that name; "iadd" changes an array in place."""
        result = getattr(operator, name)(x, y)
        if not self.salt or not isinstance(result, float) or not all(map(math.isfinite, (x, y, result))):
            return result
        plain = name.removeprefix("i")
        exact = getattr(operator, plain)(Fraction(float(x)), Fraction(float(y))) == Fraction(float(result))
        return result if exact else self._change(error, result)

    def call(self, name: str, error: float, x: Any) -> Any:
        """A function of ``math``, whose whole values count as exact."""
        result = getattr(math, name)(x)
        return result if not self.salt or result.is_integer() else self._change(error, result)

    def _change(self, error: float, result: Any) -> Any:
        self.changes += 1
        share = hash((self.salt, abs(float(result)))) % 2001 / 1000.0 - 1.0
        return type(result)(result * (1.0 + error * share))


class _Rewriting(ast.NodeTransformer):
    """Put the operations of :class:`Rounding` in the place of those of Python."""

    def __init__(self, error: float) -> None:
        self.error = error

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = OPERATORS.get(type(node.op))
        return node if name is None else self._call("operate", name, node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        name = OPERATORS.get(type(node.op))
        if name is None:
            return node
        before = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.Assign([node.target], self._call("operate", f"i{name}", before, node.value))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        module, _, name = ast.unparse(node.func).rpartition(".")
        return self._call("call", name, *node.args) if module == "math" and name in FUNCTIONS else node

    def _call(self, method: str, name: str, *given: ast.expr) -> ast.expr:
        function = ast.Attribute(ast.Name("_rounding", ast.Load()), method, ast.Load())
        return ast.Call(function, [ast.Constant(name), ast.Constant(self.error), *given], [])


def round_otherwise() -> Rounding:
    """Let the modules of ``PARTS`` that are imported from now on use the arithmetic that is returned."""
    rounding, usual = Rounding(), SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        errors = [
            error for part, error in PARTS.items() if part in loader.path and "/tests/" not in loader.path
        ]
        if not errors:
            return usual(loader, name)
        tree = _Rewriting(errors[0]).visit(ast.parse(loader.get_data(loader.path)))
        return compile(ast.fix_missing_locations(tree), loader.path, "exec", dont_inherit=True)

    builtins._rounding = rounding  # type: ignore[attr-defined]
    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    return rounding
