"""SJS-Relax-LP: the linear relaxation of placing one job, solved by HiGHS and certified by its dual.

    minimise T   subject to   sum_j f_ij = 1 for each task i,
                              sum_j A_jk sum_i Leq_ij f_ij <= B_k T for each group k,
                              sum_ij alpha_i Leq_ij f_ij <= E_MAX,   f >= 0

with alpha_i the power of task i per vCPU (f_ij = l_ij / load_i in the paper's symbols). Its optimum is a
lower bound on the job's completion time.

Only a few of the tasks x servers columns matter: those of a task's most efficient servers, as the energy
cap is tight. So the program is solved over these, and columns are added as long as one of them would lower T
at the present prices. For any prices y_k >= 0 of the groups with sum y_k = 1, and w >= 0 of energy,

    T >= sum_i min_j Leq_ij (alpha_i w + sum_k y_k A_jk / B_k) - w E_MAX

with the minimum over all servers: that is the proof of the bound, whatever the solver did.

Source: shi2017, section 4 (SJS-Relax-LP, named SJS-Divisible in its Algorithm 1).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Floats
from schedgym.errors import InvalidParameter, SchedgymError
from schedgym.solvers.placement import ENERGY_SLACK

FIRST_COLUMNS = 8  # of each task at the start
TOLERANCE = 1e-9  # between the bound and its proof, relatively
ROUNDING = 1e-12  # by which a proof is lowered, for the rounding of its own sums
LARGEST = 1e14  # of the program's numbers
SOLVER = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


class Relaxation(NamedTuple):
    """Optimum of the relaxation.

    Attributes:
        bound: T [s]; inf if no solution keeps the energy cap.
        fractions: [tasks, servers] of an optimal solution, zeros if there is none.
        certified: a proven lower bound [s], equal to ``bound`` up to rounding.
    """

    bound: float
    fractions: Floats
    certified: float


def relax(
    load: npt.ArrayLike,
    efficiency: npt.ArrayLike,
    groups: npt.ArrayLike,
    limits: npt.ArrayLike,
    energy_cap: float,
    power: npt.ArrayLike | None = None,
) -> Relaxation:
    """Solve SJS-Relax-LP.

    Args:
        load: [tasks] vCPU seconds, more than 0.
        efficiency: [tasks, servers] in (0, 1].
        groups: [groups, servers] A_jk, what a vCPU on a server counts in a group; 0: it is not in the group.
        limits: [groups] B_k, in vCPU times A_jk, at least 0.
        energy_cap: E_MAX, in the unit of power * vCPU seconds; may be infinite.
        power: [tasks] power per vCPU (alpha), more than 0; None: 1.

    Raises:
        InvalidParameter: shapes that do not fit.
        SchedgymError: HiGHS has failed.
    """
    amount, factor, bounds = (np.asarray(a, dtype=np.float64) for a in (load, efficiency, limits))
    alpha = np.ones(amount.shape) if power is None else np.asarray(power, dtype=np.float64)
    matrix = np.asarray(groups, dtype=np.float64)
    fits = factor.ndim == 2 and amount.shape == alpha.shape == factor.shape[:1]
    if not fits or matrix.shape != (bounds.size, factor.shape[1]):
        raise InvalidParameter(
            f"relaxation: the shapes of load {amount.shape}, power {alpha.shape}, efficiency {factor.shape}, "
            f"groups {matrix.shape} and limits {bounds.shape} do not fit"
        )
    tasks, servers = factor.shape
    # rows are divided by their largest weight, so that the solver finds numbers of one size
    heaviest = matrix.max(axis=1, initial=0.0)
    heaviest[heaviest == 0.0] = 1.0
    matrix, bounds = matrix / heaviest[:, None], bounds / heaviest
    usable = np.flatnonzero(~matrix[bounds <= 0].any(axis=0))
    energy_limit = energy_cap * (1.0 + ENERGY_SLACK)
    leq = amount[:, None] / factor[:, usable]
    if not usable.size or float((alpha * leq.min(axis=1)).sum()) > energy_limit:
        return Relaxation(math.inf, np.zeros((tasks, servers)), math.inf)
    rows = _binding_rows(matrix[:, usable], bounds)
    program = _Program(leq, alpha, matrix[rows][:, usable], bounds[rows], energy_limit)
    bound, part, certified = program.solve()
    fractions = np.zeros((tasks, servers))
    fractions[:, usable] = part
    return Relaxation(bound, fractions, certified)


def relax_bound(
    load: npt.ArrayLike,
    efficiency: npt.ArrayLike,
    groups: npt.ArrayLike,
    limits: npt.ArrayLike,
    energy_cap: float,
    power: npt.ArrayLike | None = None,
) -> float:
    """A proven lower bound on the completion time [s]; inf if no plan keeps the energy cap."""
    return relax(load, efficiency, groups, limits, energy_cap, power).certified


def _binding_rows(matrix: Floats, bounds: Floats) -> npt.NDArray[np.intp]:
    """The groups with members, without single servers that a larger group limits at least as much."""
    size = np.count_nonzero(matrix, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(matrix > 0.0, bounds[:, None] / matrix, math.inf)  # on a server, by a group
    wider = most[size > 1].min(axis=0, initial=math.inf)
    alone = size == 1
    keep = size > 0
    keep[alone] = most[alone].min(axis=1, initial=math.inf) < wider[matrix[alone].argmax(axis=1)]
    return np.flatnonzero(keep)


class _Program:
    """The program over the columns chosen so far.

    Args:
        leq: [tasks, servers].
        power: [tasks].
        matrix: [groups, servers] weights.
        bounds: [groups], more than 0.
        energy_limit: largest energy, in the unit of power * vCPU seconds.
    """

    def __init__(
        self, leq: Floats, power: Floats, matrix: Floats, bounds: Floats, energy_limit: float
    ) -> None:
        self.leq, self.power, self.energy_limit = leq, power, energy_limit
        self.weights, self.bounds = matrix, bounds
        self.tasks, self.servers = leq.shape
        self.groups = bounds.size
        self.scale = float(leq.min(axis=1).sum()) / float(bounds.sum())  # of T, a guess at its size
        self.matrix = matrix / bounds[:, None]  # [groups, servers] A_jk / B_k
        self.chosen = np.zeros(leq.shape, dtype=np.bool_)
        self.choose(leq, FIRST_COLUMNS)
        # of every server the task that it suits best: else, among many servers, those without a column have
        # price 0, and columns come in by a few at a time
        best = (leq / leq.min(axis=1, keepdims=True)).argmin(axis=0)
        self.chosen[best, np.arange(self.servers)] = True

    def choose(self, cost: Floats, most: int) -> bool:
        """Add each task's cheapest columns with a finite cost; return True if there were any."""
        if most < self.servers:
            cheapest = np.argpartition(cost, most, axis=1)[:, :most]
            picked = np.zeros(cost.shape, dtype=np.bool_)
            np.put_along_axis(picked, cheapest, True, axis=1)
            picked &= np.isfinite(cost)
        else:
            picked = np.isfinite(cost)
        self.chosen |= picked
        return bool(picked.any())

    def solve(self) -> tuple[float, Floats, float]:
        """The optimum, the fractions and the proven bound."""
        most = FIRST_COLUMNS
        while True:
            task, server = np.nonzero(self.chosen)
            result = self.solve_chosen(task, server)
            bound = float(result.fun) * self.scale
            # prices: of a group per unit of T, of energy per unit
            prices = np.maximum(-result.ineqlin.marginals, 0.0)
            group_price = prices[: self.groups]
            total = float(group_price.sum())
            energy_price = 0.0
            if self.energy_limit < math.inf:
                energy_price = float(prices[self.groups]) / self.energy_limit * self.scale / total
            cost = self.leq * (energy_price * self.power[:, None] + (group_price / total) @ self.matrix)
            proven = float(cost.min(axis=1).sum())
            if energy_price > 0.0:
                proven -= energy_price * self.energy_limit
            size = proven + 2.0 * energy_price * self.energy_limit if energy_price > 0.0 else proven
            if bound - proven <= TOLERANCE * bound:
                break
            present = np.where(self.chosen, cost, math.inf).min(axis=1, keepdims=True)
            cheaper = ~self.chosen & (cost < present * (1.0 - ROUNDING))
            if not self.choose(np.where(cheaper, cost, math.inf), most):
                break
            most *= 2
        fractions = np.zeros(self.leq.shape)
        fractions[task, server] = result.x[:-1]
        return bound, fractions, min(bound, proven) - ROUNDING * size

    def solve_chosen(self, task: npt.NDArray[np.intp], server: npt.NDArray[np.intp]) -> Any:
        """Return HiGHS's result; its variables are the columns (task, server), then T / scale."""
        from scipy.optimize import linprog
        from scipy.sparse import csc_matrix

        columns = task.size
        leq = self.leq[task, server]
        # each column: its server's groups, then energy; T: every group
        column, group = np.nonzero(self.matrix.T[server])
        rows = [group, np.arange(self.groups)]
        places = [column, np.full(self.groups, columns)]
        parts = self.weights[group, server[column]] * leq[column] / (self.bounds[group] * self.scale)
        amounts = [parts, np.full(self.groups, -1.0)]
        right = np.zeros(self.groups)
        if self.energy_limit < math.inf:
            rows.append(np.full(columns, self.groups))
            places.append(np.arange(columns))
            amounts.append(self.power[task] * leq / self.energy_limit)
            right = np.append(right, 1.0)
        # HiGHS refuses larger numbers; smaller ones only loosen the program, and the proof does without them
        values = np.minimum(np.concatenate(amounts), LARGEST)
        entries = (values, (np.concatenate(rows), np.concatenate(places)))
        upper = csc_matrix(entries, shape=(right.size, columns + 1))
        whole = csc_matrix((np.ones(columns), (task, np.arange(columns))), shape=(self.tasks, columns + 1))
        cost = np.zeros(columns + 1)
        cost[-1] = 1.0
        program = {"A_ub": upper, "b_ub": right, "A_eq": whole, "b_eq": np.ones(self.tasks)}
        # presolving takes longer than it saves; a cap that leaves one solution may be met only within HiGHS's
        # own tolerances, which the proof of the bound does not depend on
        for options in ({**SOLVER, "presolve": False}, SOLVER, {}):
            result = linprog(cost, **program, method="highs-ds", options=options)
            if result.status == 0:
                return result
        raise SchedgymError(f"relaxation: {result.message}")
