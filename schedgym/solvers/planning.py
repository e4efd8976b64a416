"""Planner: the planners of single jobs by name, with the work space they need.

The kernels are in ``placement``, the linear program of TaPRA in ``relaxation``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Floats
from schedgym.errors import InvalidParameter
from schedgym.solvers.placement import (
    GENERATIONS,
    MEMBERS,
    Job,
    Membership,
    evaluate_plan,
    make_membership,
    make_population,
    make_scratch,
    plan_finish_from,
    plan_genetic,
    plan_min_min,
    plan_tapra_fast,
)
from schedgym.solvers.relaxation import relax

Places = npt.NDArray[np.int32]

PLANNERS = ("tapra", "tapra-fast", "min-min", "mm-ga", "gsa")
RIVALS = ("min-min", "mm-ga", "gsa")
ALLOCATIONS = ("optra", "equal-share")
TIE = 1e-9  # between fractions of a task
WORD = 2**64


class Plan(NamedTuple):
    """The servers and the vCPU of a job's tasks.

    Attributes:
        placement: [tasks] server of each task.
        vcpu: [tasks] vCPU of each task.
        jct: completion time [s].
        energy: energy, power * vCPU seconds.
    """

    placement: Places
    vcpu: Floats
    jct: float
    energy: float


def largest_parts(fractions: Floats) -> Places:
    """[tasks] the server with the largest part of each task, ties (up to rounding) the lowest."""
    return (fractions >= fractions.max(axis=1, keepdims=True) - TIE).argmax(axis=1).astype(np.int32)


class Planner:
    """A planner of single jobs.

    Args:
        name: one of :data:`PLANNERS`.
        allocation: how planners other than TaPRA evaluate candidates and allocate the plan: "optra" (Eq. 16),
            or "equal-share", which splits every limit equally among the tasks in the group.
        size: size of the population of mm-ga and gsa.
        generations: number of generations of mm-ga and gsa.

    Attributes:
        power: [rows] power of the tasks per vCPU (alpha), which the caller sets; None: 1.

    Raises:
        InvalidParameter: a name that is unknown, or a number that is out of range.
    """

    def __init__(
        self, name: str, allocation: str = "optra", *, size: int = MEMBERS, generations: int = GENERATIONS
    ) -> None:
        if name not in PLANNERS:
            raise InvalidParameter(f"planner: must be one of {', '.join(PLANNERS)}, got {name!r}")
        if allocation not in ALLOCATIONS:
            raise InvalidParameter(f"allocation: must be 'optra' or 'equal-share', got {allocation!r}")
        if allocation != "optra" and name not in RIVALS:
            raise InvalidParameter(f"allocation: {name} is built on 'optra', got {allocation!r}")
        for option, value, least in (("size", size, 2), ("generations", generations, 0)):
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InvalidParameter(f"{option}: must be a whole number >= {least}, got {value!r}")
        self.name, self.allocation = name, allocation
        self.equal = allocation == "equal-share"
        self.genetic = name in ("mm-ga", "gsa")
        self.size, self.generations = size, generations
        self.prepared = False
        self.power: Floats | None = None
        self.unit: Floats = np.ones(0)

    def prepare(self, groups: npt.ArrayLike, tasks: int) -> None:
        """Make work space for up to ``tasks`` tasks and weights ``groups`` [R, M]; keep it if it fits."""
        if self.prepared and tasks == len(self.placement) and np.array_equal(self.groups, groups):
            return
        self.prepared = True
        self.groups: npt.NDArray[Any] = np.array(groups)
        self.membership: Membership = make_membership(self.groups)
        self.scratch = make_scratch(tasks, self.groups.shape[1], len(self.groups))
        self.placement: Places = np.zeros(tasks, dtype=np.int32)
        self.vcpu: Floats = np.zeros(tasks)
        if self.genetic:
            self.population = make_population(self.size, tasks)

    def __call__(
        self,
        first: int,
        tasks: int,
        load: Floats,
        efficiency: Floats,
        limits: Floats,
        energy_cap: float,
        seed: int = 0,
    ) -> float:
        """Plan a job into ``placement`` and ``vcpu`` [tasks].

        Args:
            first: row of the job's first task.
            tasks: number of tasks of the job.
            load: [rows] vCPU seconds.
            efficiency: [rows, M].
            limits: [R] B_k, in vCPU times weight.
            energy_cap: E_MAX, in the unit of power * vCPU seconds.
            seed: seed of the genetic planners.

        Returns:
            The completion time [s]; inf if there is no plan.
        """
        if len(self.unit) < len(load):
            self.unit = np.ones(len(load))
        power = self.unit if self.power is None else self.power
        job = Job(first, tasks, load, efficiency, self.membership, limits, energy_cap, power)
        out = (self.placement, self.vcpu, self.scratch)
        if self.name == "tapra-fast":
            return plan_tapra_fast(job, *out)
        if self.name == "tapra":
            rows = slice(first, first + tasks)
            relaxed = relax(load[rows], efficiency[rows], self.groups, limits, energy_cap, power[rows])
            if relaxed.bound == math.inf:
                return math.inf
            self.placement[:tasks] = largest_parts(relaxed.fractions)
            return plan_finish_from(job, *out)
        if self.name == "min-min":
            return plan_min_min(job, self.equal, *out)
        return plan_genetic(
            job,
            self.equal,
            self.name == "gsa",
            self.size,
            self.generations,
            np.uint64(seed % WORD),
            self.population,
            *out,
        )


def plan(
    load: npt.ArrayLike,
    efficiency: npt.ArrayLike,
    groups: npt.ArrayLike,
    limits: npt.ArrayLike,
    energy_cap: float,
    planner: str | Planner = "tapra-fast",
    *,
    seed: int = 0,
    power: npt.ArrayLike | None = None,
) -> Plan | None:
    """Plan one job.

    Args:
        load: [tasks] vCPU seconds, more than 0.
        efficiency: [tasks, servers] in (0, 1].
        groups: [groups, servers] A_jk, what a vCPU on a server counts in a group; 0: it is not in the group.
        limits: [groups] B_k, in vCPU times A_jk, at least 0.
        energy_cap: E_MAX, in the unit of power * vCPU seconds.
        planner: one of :data:`PLANNERS`, which sizes tasks by Eq. 16, or a planner.
        seed: seed of mm-ga and gsa.
        power: [tasks] power per vCPU (alpha), more than 0; None: 1.

    Returns:
        The plan; None if the planner finds none within the energy cap with a finite completion time.

    Raises:
        InvalidParameter: an unknown planner, a weight below 0, or a server in no group.
    """
    chosen = planner if isinstance(planner, Planner) else Planner(planner)
    amount, factor, bounds = (
        np.ascontiguousarray(array, dtype=np.float64) for array in (load, efficiency, limits)
    )
    alpha = np.ones(amount.size) if power is None else np.ascontiguousarray(power, dtype=np.float64)
    chosen.prepare(groups, amount.size)
    chosen.power = alpha
    jct = chosen(0, amount.size, amount, factor, bounds, float(energy_cap), seed)
    if jct == math.inf:
        return None
    job = Job(0, amount.size, amount, factor, chosen.membership, bounds, float(energy_cap), alpha)
    _, energy = evaluate_plan(job, chosen.equal, chosen.placement, chosen.vcpu, chosen.scratch)
    return Plan(chosen.placement, chosen.vcpu, float(jct), float(energy))
