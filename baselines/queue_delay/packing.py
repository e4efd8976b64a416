"""Offline vector bin packing: all tasks are known, and as few servers as possible hold them.

This is a function, not a policy: all tasks are there at once, and none ends. The paper's online schemes are
derived from it, and it says how many servers a set of tasks needs at the same time.

Source: noroozoliaee2014, section III-A.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from schedgym.core.arrays import Floats, Integers
from schedgym.errors import InfeasibleInstance, InvalidParameter, UnknownName

TOLERANCE = 1e-9
PACKING_RULES = ("ff", "bf", "wf", "rf", "ffd", "bfd", "bin-centric")
SIZES = ("norm", "product", "sum", "avgsum", "dot")


@dataclasses.dataclass(frozen=True)
class Packing:
    """The bins of a set of items.

    Attributes:
        bin: the bin of each item, int64 [items]; bins are numbered in the order in which they are opened.
        bins: number of bins that hold something.
        free: free capacity of each of them [bins, resources].
    """

    bin: Integers
    bins: int
    free: Floats


def pack(
    demands: Any,
    rule: str = "ffd",
    size: str = "norm",
    *,
    p: float = 2.0,
    rng: np.random.Generator | None = None,
) -> Packing:
    """Pack items into bins with 1 of each resource, opening a bin only when an item fits no open one.

    Args:
        demands: [items, resources], each at least 0.
        rule: "ff", "bf", "wf", "rf": items in the given order into the first, the best (least size of what
            is left), the worst or a random open bin that fits; "ffd", "bfd": the same after sorting the
            items by decreasing size; "bin-centric": fill one bin after another, each time with the item
            of the largest dot product with what is free (size "dot"), or the least norm of free minus
            demand (size "norm").
        size: "norm" (L_p), "product", "sum", "avgsum" (the sum weighted with the mean demands), or "dot"
            (bin-centric).
        p: of the size "norm", above 1, infinity included; the L2 norm by default.
        rng: for the rule "rf".

    Returns:
        the packing; ties go to the earlier item and the lower bin.

    Raises:
        InvalidParameter, UnknownName: for bad arguments.
        InfeasibleInstance: when an item fits no empty bin.

    Source:
        noroozoliaee2014, section III-A; the bin-centric greedy rules are those of Panigrahy, Talwar,
        Uyeda, Wieder, "Heuristics for vector bin packing" (2011).
    """
    items = _check(demands, rule, size, p, rng)
    empty = np.ones(items.shape[1])
    scale = items.mean(axis=0) if size == "avgsum" else empty

    def measure(vectors: Floats) -> Any:
        if size == "product":
            return vectors.prod(axis=-1)
        if size in ("sum", "avgsum"):
            return (vectors * scale).sum(axis=-1)
        return (vectors * vectors).sum(axis=-1) if p == 2.0 else np.linalg.norm(vectors, p, axis=-1)

    free: list[Floats] = []
    chosen = np.full(len(items), -1, dtype=np.int64)
    if rule == "bin-centric":
        left = list(range(len(items)))
        while left:
            free.append(empty.copy())
            while candidates := [i for i in left if (items[i] <= free[-1] + TOLERANCE).all()]:
                if size == "dot":
                    scores = [-float(items[i] @ free[-1]) for i in candidates]
                else:
                    scores = [float(measure(free[-1] - items[i])) for i in candidates]
                item = candidates[int(np.argmin(scores))]
                free[-1] -= items[item]
                chosen[item] = len(free) - 1
                left.remove(item)
        return Packing(chosen, len(free), np.array(free))

    order = np.arange(len(items))
    if rule in ("ffd", "bfd"):
        order = np.argsort(-measure(items), kind="stable")
    for i in order:
        spaces = np.array([*free, empty])  # the last is a new bin, for what fits in no other
        fitting = np.flatnonzero((items[i] <= spaces + TOLERANCE).all(axis=1))
        if len(fitting) > 1:
            fitting = fitting[:-1]
        left_over = measure(spaces[fitting] - items[i])
        if rule in ("bf", "bfd"):
            j = fitting[int(np.argmin(left_over))]
        elif rule == "wf":
            j = fitting[int(np.argmax(left_over))]
        elif rule == "rf":
            assert rng is not None
            j = fitting[int(rng.integers(len(fitting)))]
        else:
            j = fitting[0]
        if j == len(free):
            free.append(empty.copy())
        free[j] -= items[i]
        chosen[i] = j
    return Packing(chosen, len(free), np.array(free))


def _check(demands: Any, rule: str, size: str, p: float, rng: np.random.Generator | None) -> Floats:
    if rule not in PACKING_RULES:
        raise UnknownName("packing rule", rule, PACKING_RULES)
    if size not in SIZES:
        raise UnknownName("size", size, SIZES)
    if rule == "bin-centric" and size not in ("dot", "norm"):
        raise InvalidParameter("size: the bin-centric rule knows 'dot' and 'norm'")
    if rule != "bin-centric" and size == "dot":
        raise InvalidParameter("size: 'dot' depends on the bin: only for the bin-centric rule")
    if not p > 1.0:
        raise InvalidParameter(f"p: must be a number above 1, got {p!r}")
    if p != 2.0 and size != "norm":
        raise InvalidParameter(f"p: only for the size 'norm', not {size!r}")
    if rule == "rf" and rng is None:
        raise InvalidParameter("rng: the random rule needs one")
    items = np.asarray(demands, dtype=float)
    if items.ndim != 2 or not np.isfinite(items).all() or (items < 0).any():
        raise InvalidParameter("demands: must be rows of finite numbers >= 0")
    alone = (items <= 1.0 + TOLERANCE).all(axis=1)
    if not alone.all():
        raise InfeasibleInstance(f"item [{int(np.argmin(alone))}] fits no empty bin")
    return items
