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
    capacities: Any = (1.0, 1.0),
    rule: str = "ffd",
    size: str = "norm",
    *,
    weights: Any = None,
    p: float = 2.0,
    rng: np.random.Generator | None = None,
) -> Packing:
    """Pack items into bins, opening a bin only when an item fits no open one.

    Args:
        demands: [items, resources], each at least 0.
        capacities: one bin's [resources], of which there are as many as needed; or a list of bins
            [bins, resources], opened in this order.
        rule: "ff", "bf", "wf", "rf": items in the given order into the first, the best (least size of what
            is left), the worst or a random open bin that fits; "ffd", "bfd": the same after sorting the
            items by decreasing size; "bin-centric": fill one bin after another, each time with the item
            of the largest dot product with what is free (size "dot"), or the least norm of free minus
            demand (size "norm").
        size: "norm" (L_p), "product", "sum", "avgsum" (weights: the mean demands), or "dot" (bin-centric).
        weights: of the resources in the size "sum"; ones by default.
        p: of the size "norm", above 1, infinity included; the L2 norm by default.
        rng: for the rule "rf".

    Returns:
        the packing; ties go to the earlier item and the lower bin.

    Raises:
        InvalidParameter, UnknownName: for bad arguments.
        InfeasibleInstance: when an item fits no empty bin, or the given bins are used up.

    Source:
        noroozoliaee2014, section III-A; the bin-centric greedy rules are those of Panigrahy, Talwar,
        Uyeda, Wieder, "Heuristics for vector bin packing" (2011).
    """
    items, bins, endless = _check(demands, capacities, rule, size, p, rng)
    if size == "sum" and weights is not None:
        scale = np.asarray(weights, dtype=float)
        if scale.shape != (items.shape[1],) or not (np.isfinite(scale) & (scale >= 0)).all():
            raise InvalidParameter(f"weights: must be {items.shape[1]} numbers >= 0")
    else:
        scale = items.mean(axis=0) if size == "avgsum" else np.ones(items.shape[1])

    def measure(vectors: Floats) -> Any:
        if size == "product":
            return vectors.prod(axis=-1)
        if size in ("sum", "avgsum"):
            return (vectors * scale).sum(axis=-1)
        return (vectors * vectors).sum(axis=-1) if p == 2.0 else np.linalg.norm(vectors, p, axis=-1)

    free: list[Floats] = []
    chosen = np.full(len(items), -1, dtype=np.int64)

    def open_bin() -> bool:
        if not endless and len(free) == len(bins):
            return False
        free.append(bins[0 if endless else len(free)].copy())
        return True

    if rule == "bin-centric":
        left = list(range(len(items)))
        while left:
            if not open_bin():
                raise InfeasibleInstance(f"item [{left[0]}] and {len(left) - 1} more fit in no bin left")
            while True:
                candidates = [i for i in left if (items[i] <= free[-1] + TOLERANCE).all()]
                if not candidates:
                    break
                if size == "dot":
                    scores = [-float(items[i] @ free[-1]) for i in candidates]
                else:
                    scores = [float(measure(free[-1] - items[i])) for i in candidates]
                item = candidates[int(np.argmin(scores))]
                free[-1] -= items[item]
                chosen[item] = len(free) - 1
                left.remove(item)
        return _finish(chosen, free)

    order = np.arange(len(items))
    if rule in ("ffd", "bfd"):
        order = np.argsort(-measure(items), kind="stable")
    for i in order:
        while True:
            spaces = np.array(free).reshape(-1, items.shape[1])
            fitting = np.flatnonzero((items[i] <= spaces + TOLERANCE).all(axis=1))
            if len(fitting):
                break
            if not open_bin():
                raise InfeasibleInstance(f"item [{i}] fits in no bin left")
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
        free[j] -= items[i]
        chosen[i] = j
    return _finish(chosen, free)


def _check(
    demands: Any, capacities: Any, rule: str, size: str, p: float, rng: np.random.Generator | None
) -> tuple[Floats, Floats, bool]:
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
    sizes = np.asarray(capacities, dtype=float)
    endless = sizes.ndim == 1
    bins = np.atleast_2d(sizes)
    if bins.ndim != 2 or bins.shape[1] != items.shape[1] or not np.isfinite(bins).all():
        raise InvalidParameter(f"capacities: must be rows of {items.shape[1]} finite numbers")
    alone = np.any(np.all(items[:, None, :] <= bins[None] + TOLERANCE, axis=2), axis=1)
    if not alone.all():
        raise InfeasibleInstance(f"item [{int(np.argmin(alone))}] fits no empty bin")
    return items, bins, endless


def _finish(chosen: Integers, free: list[Floats]) -> Packing:
    """Number the bins that hold something, in the order in which they were opened."""
    used, renumbered = np.unique(chosen, return_inverse=True)
    return Packing(renumbered.astype(np.int64), len(used), np.array([free[j] for j in used]))
