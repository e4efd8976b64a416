"""The thesis's linear programs for max-min fair shares, solved by HiGHS.

The shipped solvers (``shares``) give the same aggregates by flows, exactly, and thousands of times faster.
The printed algorithms are wrong in places; these functions implement their intention, or with
``literal=True`` the printed text. Their arguments are those of ``shares``.

Source: guan2022, Algorithms 5 (AMF), 6, 7 (GAMF) and 8; sharing incentives by (4.3), (4.4) and (5.24).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, hstack, vstack

from schedgym.core.arrays import Floats, Integers
from schedgym.errors import InfeasibleInstance, SchedgymError

TOLERANCE = 1e-7  # of comparisons of aggregates, in slots
SOLVER = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
GROWTH = 1e-6  # what counts as more: above the solver's rounding over all jobs, below 1 / J^2 slots
# by which a fixed aggregate may be missed, since fixed numbers carry the solver's rounding
GIVE = 1e-9
GIVE_FROZEN = 1e-8  # where whole allocations are fixed


class _Programs:
    """The rows that all programs share, over one variable per (job, group with tasks, available site)."""

    def __init__(
        self, demand: npt.ArrayLike, sites: npt.ArrayLike, slots: npt.ArrayLike, floors: npt.ArrayLike | None
    ) -> None:
        self.slots, self.lists, self.demand = np.asarray(slots), np.asarray(sites), np.asarray(demand)
        self.jobs = self.demand.shape[0]
        given = self.lists >= 0
        self.job, self.kind, self.slot = np.nonzero((self.demand > 0)[:, :, None] & given[None])
        self.count = self.job.size
        pairs, group = np.unique(self.job * self.lists.shape[0] + self.kind, return_inverse=True)
        self.of_job = self._sums(self.job, self.jobs)
        self.of_group = self._sums(group, pairs.size)
        self.of_site = self._sums(self.lists[self.kind, self.slot], self.slots.size)
        self.group_job, self.group_kind = np.divmod(pairs, self.lists.shape[0])
        self.group_demand = self.demand[self.group_job, self.group_kind].astype(np.float64)
        self.single = bool((given.sum(axis=1) <= 1).all())
        self.least = np.zeros(self.jobs)  # aggregates
        self.lower = np.zeros(self.count)  # variables
        if floors is not None:
            array = np.asarray(floors, dtype=np.float64)
            if array.ndim == 1:
                self.least = array
            else:
                self.lower = np.minimum(array, self.demand)[self.job, self.kind]

    def _sums(self, row: Integers, rows: int) -> Any:
        return csr_matrix((np.ones(self.count), (row, np.arange(self.count))), shape=(rows, self.count))

    def maximise(
        self,
        objective: Floats,
        rows: list[tuple[Any, Floats]],
        lower: Floats | None = None,
        upper: Floats | None = None,
    ) -> Floats | None:
        """The variables with the largest objective under rows <= bounds, capacities and demands.

        ``lower`` is the bound of the programs by default. Variables beyond those of the allocation (T or y)
        are at least 0. Returns None if the program is infeasible.
        """
        if objective.size == 0:  # HiGHS wants a variable
            return None if any((limit < -GIVE).any() for _, limit in rows) else objective
        extra = objective.size - self.count
        blocks, bounds = [], []
        for matrix, limit in (
            *rows,
            (self.of_site, self.slots.astype(np.float64)),
            (self.of_group, self.group_demand),
        ):
            padded = csr_matrix(matrix)
            padded.resize(matrix.shape[0], objective.size)
            blocks.append(padded)
            bounds.append(limit)
        lowest = self.lower if lower is None else lower
        highest = np.full(self.count, np.inf) if upper is None else upper
        solve: Any = linprog  # its stubs do not know sparse matrices
        result = solve(
            -objective,
            A_ub=vstack(blocks, format="csr"),
            b_ub=np.concatenate(bounds),
            bounds=np.column_stack(
                [np.concatenate([lowest, np.zeros(extra)]), np.concatenate([highest, np.full(extra, np.inf)])]
            ),
            method="highs",
            options=SOLVER,
        )
        if result.status == 2:
            return None
        if result.status != 0:
            raise SchedgymError(f"HiGHS: {result.message}")
        return np.asarray(result.x, dtype=np.float64)

    def fixed(self, jobs: list[int], aggregates: Floats, give: float = GIVE) -> list[tuple[Any, Floats]]:
        """Return the rows that fix the aggregates of these jobs."""
        matrix = self.of_job[jobs]
        values = aggregates[jobs]
        return [(matrix, values + give), (-matrix, give - values)]

    def allocation(self, variables: Floats) -> Floats:
        """The variables as a matrix [J, K, A]."""
        result = np.zeros((*self.demand.shape, self.lists.shape[1]))
        result[self.job, self.kind, self.slot] = variables[: self.count]
        return result


def linear_max_min(
    demand: npt.ArrayLike,
    sites: npt.ArrayLike,
    slots: npt.ArrayLike,
    *,
    floors: npt.ArrayLike | None = None,
    literal: bool = False,
) -> tuple[Floats, Floats]:
    """Max-min fair aggregates by a linear program per level and per candidate: Algorithms 5 and 7.

    Each round maximises the least aggregate T of the undecided jobs, and decides those that have T and
    cannot get more.

    Args:
        demand: D [J, K].
        sites: [K, A].
        slots: u [M].
        floors: least aggregates [J], or least allocations [J, K] for groups with a single site.
        literal: the printed algorithms. A candidate is tried with all other undecided jobs at T exactly;
            for groups with several sites also lines 12 and 15 of Algorithm 7 as they stand, and (5.2)
            without a_ijk >= 0. Their result depends on which of the optimal allocations the solver
            returns; here it is one with the most for the earliest jobs.

    Returns:
        Aggregates A [J] and an allocation a [J, K, A] in slots, within :data:`TOLERANCE`.

    Raises:
        InfeasibleInstance: no allocation reaches the floors, or the printed algorithm never ends.

    Source: guan2022, Algorithm 5 (groups with one site) and Algorithm 7. Deviations: a candidate is tried
    with the others at T or more, and its own sum maximised (line 13, line 16: floors can lie above T);
    demands are summed over groups (Algorithm 7, line 12), and a free site counts where the job has an
    unfinished group (line 15).
    """
    programs = _Programs(demand, sites, slots, floors)
    jobs = programs.jobs
    count = programs.count
    aggregates = np.zeros(jobs)
    total = programs.demand.sum(axis=1).astype(np.float64)
    several = (programs.lists >= 0).sum(axis=1)
    if literal and not programs.single:
        total = (programs.demand * several).sum(axis=1).astype(np.float64)
        programs.lower = np.full(count, -np.inf)
    undecided = list(range(jobs))
    floor_rows = [(-programs.of_job, GIVE - programs.least)]
    variables = np.zeros(count)
    while undecided:
        decided = [i for i in range(jobs) if i not in undecided]
        matrix = programs.of_job[undecided]
        level_rows = [(hstack([-matrix, csr_matrix(np.ones((len(undecided), 1)))]), np.zeros(len(undecided)))]
        found = None
        for give in (GIVE, 10 * GIVE, 100 * GIVE):
            rows = level_rows + programs.fixed(decided, aggregates, give) + floor_rows
            found = programs.maximise(np.append(np.zeros(count), 1.0), rows)
            if found is not None or not decided:
                break
        if found is None:
            raise InfeasibleInstance("floors: no allocation reaches them all")
        variables = found[:count]
        level = float(found[count])
        if literal:
            rows = [(-matrix, np.full(len(undecided), GIVE - level))]
            early = programs.of_job.T @ np.arange(jobs, 0, -1.0)
            favoured = programs.maximise(early, rows + programs.fixed(decided, aggregates) + floor_rows)
            variables = variables if favoured is None else favoured
        sums = programs.of_job @ variables
        free = programs.slots - programs.of_site @ variables > TOLERANCE
        unmet = programs.group_demand - programs.of_group @ variables > TOLERANCE
        before = len(undecided)
        for job in list(undecided):
            if sums[job] > level + GROWTH:
                continue
            if total[job] > level + GROWTH:
                open_groups = programs.group_kind[unmet & (programs.group_job == job)]
                if literal and not programs.single:
                    growing = bool(free.any()) and open_groups.size > 0
                else:
                    within = programs.lists[open_groups]
                    growing = bool((free[within] & (within >= 0)).any())
                if growing:
                    continue
                others = [i for i in undecided if i != job]
                if literal:
                    rows = programs.fixed(others, np.full(jobs, level))
                else:
                    rows = [(-programs.of_job[others], np.full(len(others), GIVE - level))]
                decided = [i for i in range(jobs) if i not in undecided]
                own = np.asarray(programs.of_job[[job]].toarray()).ravel()
                best = programs.maximise(own, rows + programs.fixed(decided, aggregates) + floor_rows)
                if best is not None and own @ best > level + GROWTH:
                    continue
            aggregates[job] = level
            undecided.remove(job)
        if len(undecided) == before:
            raise InfeasibleInstance("the algorithm decides no further job")
    return aggregates, programs.allocation(variables)


def linear_completion_shares(
    demand: npt.ArrayLike,
    sites: npt.ArrayLike,
    slots: npt.ArrayLike,
    aggregates: npt.ArrayLike,
    *,
    floors: npt.ArrayLike | None = None,
    order: npt.ArrayLike | None = None,
    seconds: npt.ArrayLike | None = None,
    literal: bool = False,
) -> tuple[Floats, Floats]:
    """An allocation with given aggregates that lets jobs finish early: Algorithms 6 and 8.

    Job by job: maximise y_l, the least share of a demand among the job's groups, then freeze the job.

    Args:
        demand: D [J, K].
        sites: [K, A].
        slots: u [M].
        aggregates: A [J] in slots, as of :func:`linear_max_min`.
        floors: least allocations [J, K] for groups with a single site.
        order: the jobs, first served first; by increasing number of tasks if None, ties by index.
        seconds: w [J, K] sum of the durations of each group's tasks, if they are known: y_l is then the
            least share / w.
        literal: without a_ijk >= 0, as printed in Algorithm 8.

    Returns:
        The allocation a [J, K, A] in slots, and y [J] (inf for a job without tasks). Only the y of the
        first job is unique.

    Raises:
        InfeasibleInstance: no allocation has these aggregates.

    Source: guan2022, Algorithm 6 (groups with one site) and Algorithm 8; ``seconds``: the footnote of
    section 4.5.2. Deviations: a_ijk >= 0.
    """
    programs = _Programs(demand, sites, slots, floors)
    jobs = programs.jobs
    count = programs.count
    goals = np.asarray(aggregates, dtype=np.float64)
    turns = np.argsort(programs.demand.sum(axis=1), kind="stable") if order is None else np.asarray(order)
    if literal and not programs.single:
        programs.lower = np.full(count, -np.inf)
    wanted = programs.group_demand
    if seconds is not None:
        wanted = np.asarray(seconds, dtype=np.float64)[programs.group_job, programs.group_kind]
    lower = programs.lower.copy()
    upper = np.full(count, np.inf)
    rate = np.full(jobs, np.inf)
    found = np.zeros(count)
    left = list(range(jobs))
    for job in turns.tolist():
        groups = np.flatnonzero(programs.group_job == job)
        if groups.size:
            rows = [
                (
                    hstack([-programs.of_group[groups], csr_matrix(wanted[groups][:, None])]),
                    np.zeros(groups.size),
                )
            ]
            best = programs.maximise(
                np.append(np.zeros(count), 1.0), rows + programs.fixed(left, goals, GIVE_FROZEN), lower, upper
            )
            if best is None:
                raise InfeasibleInstance("aggregates: no allocation has them")
            found = best[:count]
            rate[job] = best[count]
            own = programs.job == job
            lower[own] = found[own]
            upper[own] = found[own]
        left.remove(job)
    return programs.allocation(found), rate
