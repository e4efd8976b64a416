"""Spaces of observations, and the tables that describe them, derived from the marks of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from schedgym.core.arrays import Declaration, Member, Shown, declarations, members
from schedgym.core.problem import Problem

#: parts of the names of dimensions that say in which observations an array has elements
KINDS = ("unit_", "own_", "token_")


def observation_space(simulator: Any) -> spaces.Dict:
    """Return the observation space of one environment: of each entry of ``simulator.observation`` its space.

    Single numbers are Discrete; all others are a Box of the array's shape and type, with the limits that
    :class:`~schedgym.core.arrays.Shown` declares, and those of bytes, which are flags, are 0 and 1. There is
    no MultiBinary, as several libraries do not read those of more than one dimension, or any.
    """
    entries: dict[str, spaces.Space[Any]] = {}
    for name, buffer in simulator.observation.items():
        mark, shape, dtype = simulator.shown[name], buffer.shape[1:], buffer.dtype
        least, most = (limit(simulator) if callable(limit) else limit for limit in (mark.least, mark.most))
        if mark.single:
            entries[name] = spaces.Discrete(int(most) + 1)
        elif dtype == np.int8:
            entries[name] = spaces.Box(0, 1, shape, np.int8)
        else:
            low, high = (np.broadcast_to(bound, shape).astype(dtype) for bound in (least, most))
            entries[name] = spaces.Box(low, high, shape, dtype.type)
    return spaces.Dict(entries)


def observation_table(problem: Problem) -> str:
    """Return the entries of a problem's observations in exact units as a Markdown table."""
    rows = {}
    for member in members(problem.module("dynamics").Environment):
        for declared in declarations(member.bundle):
            mark, name = declared.mark(Shown), declared.name
            if mark is not None and mark.meaning:
                # an array that stands in two bundles has one row, as in the last of them
                rows[name] = f"| `{mark.name or name}` | {_shape(declared, mark, member)} | {mark.meaning}"
                given = [
                    (one, values) for one, values in mark.conditions if one in problem.parameters.kinds()
                ]
                when = (f"`{one}={' or '.join(values) or True}`" for one, values in given)
                rows[name] += f"{'; with ' if given else ''}{' and '.join(when)} |"
    return "\n".join(["| key | shape | meaning |", "|---|---|---|", *rows.values()])


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
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"
