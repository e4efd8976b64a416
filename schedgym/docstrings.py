"""What the docstrings of environments say of observations, tokens and views, by their declarations."""

from __future__ import annotations

import textwrap
import typing
from collections.abc import Iterator

from schedgym.core.arrays import Declaration, Member, Shown, declarations, members
from schedgym.core.columns import Columns
from schedgym.core.problem import Problem

#: parts of the names of dimensions that say in which observations an array has elements
KINDS = ("unit_", "own_", "token_")
TOKENS = "_tokens"  # end of the names of their arrays
WIDTH = 106  # of a line of the list of tokens


def observation_table(problem: Problem) -> str:
    """Return the entries of a problem's observations in exact units as a Markdown table."""
    rows = {}
    for declared, mark, member in _entries(problem):
        name = declared.name
        if mark.meaning:
            # an array that stands in two bundles has one row, as in the last of them
            rows[name] = f"| `{mark.name or name}` | {_shape(declared, mark, member)} | {mark.meaning}"
            given = [(one, values) for one, values in mark.conditions if one in problem.parameters.kinds()]
            when = (f"`{one}={' or '.join(values) or True}`" for one, values in given)
            rows[name] += f"{'; with ' if given else ''}{' and '.join(when)} |"
    return "\n".join(["| key | shape | meaning |", "|---|---|---|", *rows.values()])


def token_list(problem: Problem) -> str:
    """Return the entries of a problem's observations as tokens, and their columns, as a Markdown list."""
    entries = []
    for declared, mark, member in _entries(problem):
        if declared.name.endswith(TOKENS):
            columns: list[str] = []
            for part in _parts(declared):
                if isinstance(part, str):
                    columns.append(part.partition(": ")[2])
                else:
                    hints = typing.get_type_hints(part, include_extras=True).items()
                    columns += [getattr(hint, "__metadata__", (name,))[0] for name, hint in hints]
            name, shape = declared.name.removesuffix(TOKENS), _shape(declared, mark, member)
            text = f"- `{name}s` {shape}{': ' if columns else ''}{'; '.join(columns)}."
            entries.append(textwrap.fill(text, WIDTH, subsequent_indent="  "))
    return "\n".join(entries)


def view_table(problem: Problem) -> str:
    """Return a problem's action views and their spaces as a Markdown table."""
    rows = (f"| `{view.name}` | `{view.space}` | {view.help} |" for view in problem.views)
    return "\n".join(["| view | space | meaning |", "|---|---|---|", *rows])


#: places of an environment's docstring, and what fills them
PLACES = {"{observations}": observation_table, "{tokens}": token_list, "{views}": view_table}


def _entries(problem: Problem) -> Iterator[tuple[Declaration, Shown, Member]]:
    """Every array of an environment, with the mark by which observations show it."""
    for member in members(problem.module("dynamics").Environment):
        for declared in declarations(member.bundle):
            yield declared, declared.mark(Shown) or Shown(), member


def _parts(declared: Declaration) -> tuple[typing.Any, ...]:
    """What stands in a row of tokens; nothing for other arrays."""
    row = declared.mark(Columns)
    return row.parts if row else tuple(mark for mark in declared.marks if hasattr(mark, "_fields"))


def _shape(declared: Declaration, mark: Shown, member: Member) -> str:
    """The shape of an entry, with the names of dimensions for their lengths."""
    if mark.single:
        return "Discrete"
    if declared.name == "action_mask":
        return "(actions,)"
    names = []
    for dimension in mark.shape or declared.dimensions:
        name = str(member.renamed.get(str(dimension), dimension))
        for kind in KINDS:
            name = name.removeprefix(kind)
        names.append(name.replace("_", " "))
    if parts := _parts(declared):
        lengths = (part.partition(":")[0] if isinstance(part, str) else len(part._fields) for part in parts)
        names[-1] = " + ".join(map(str, lengths))
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"
