"""The simulator of ParallelJCT: the sizes of its arrays, and its records."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import sizes_of
from schedgym.core.record import ScheduleRecord
from schedgym.core.simulator import Simulator
from schedgym.core.workload import Workload
from schedgym.errors import InvalidWorkload
from schedgym.problems.parallel_jct import metrics, workload
from schedgym.problems.parallel_jct.problem import PROBLEM, ParallelJCTParameters
from schedgym.problems.parallel_jct.workload import has_powers
from schedgym.problems.single_job.topology import cluster_groups
from schedgym.solvers.placement import make_membership

PIECES_PER_TASK = 4  # rows of the log that an episode takes at first; it grows


class ParallelJCTSimulator(Simulator):
    """``num_envs`` data centres in one set of arrays; see :mod:`schedgym.problems.parallel_jct.dynamics`.

    Attributes:
        matrix: weights of the servers in groups, the same in all environments; [R, M].
        powered: True if observations show the tasks' power, which else is 1.
    """

    parameters: ParallelJCTParameters
    grows_by_draw = "task"
    log = "log"

    def __init__(self, parameters: ParallelJCTParameters, num_envs: int, id: str) -> None:
        super().__init__(PROBLEM, id, parameters, num_envs)
        if self.fixed is not None:
            instance = workload.tables(self.fixed)
            sizes, most_tasks = sizes_of(instance), instance.most_tasks
            self.matrix = cluster_groups(self.fixed.cluster).matrix
            most = sizes["task"]
        else:
            sizes, self.matrix = self.source.sizes, self.source.groups.matrix
            most_tasks = self.source.most_tasks
            most = sizes["task"] if parameters.trace is not None else sizes["job"] * most_tasks
        self.powered = self.fixed is not None and has_powers(self.fixed)
        window = sizes["job"] if parameters.window == "all" else int(parameters.window)
        visible = {
            "window": window,
            "running": most if parameters.running_window == "all" else int(parameters.running_window),
            "rows": most if parameters.window == "all" else window * most_tasks,
            "servers": sizes["server"],
            "groups": sizes["group"],
            "tasks": most_tasks,
        }
        moves = most_tasks * sizes["server"] if parameters.view == "search" else 0
        self._set_up(
            sizes=sizes
            | {
                "pair": int(np.count_nonzero(self.matrix)),
                "planned": most_tasks,
                "move": moves,
                "log": PIECES_PER_TASK * sizes["task"],
                "window": window,
                "task_row": visible["rows"],
                "running_row": visible["running"],
            },
            config={"running_window": visible["running"], "most_tasks": most_tasks},
            known={"jobs": sizes["job"]},
            visible=visible,
        )

    def _initialise(self) -> None:
        for target, values in zip(self.arrays.membership, make_membership(self.matrix), strict=True):
            target[:] = values

    def _observation(self) -> dict[str, npt.NDArray[Any]]:
        shown = super()._observation()
        if "groups" in shown and self.matrix.dtype != np.int8:
            # weights other than 0 and 1, the same in all environments
            shown["groups"] = np.repeat(self.matrix[np.newaxis], self.num_envs, axis=0)
        return shown

    def _check(self, workload: Workload) -> None:
        instance, visible = self.instance(workload), self.interface.sizes
        sizes = sizes_of(instance)
        self._check_size("servers", visible["servers"], sizes["server"])
        if not np.array_equal(cluster_groups(workload.cluster).matrix, self.matrix):
            raise InvalidWorkload("cluster: the environment has other groups of servers")
        if self.parameters.window == "all" and sizes["job"] > visible["window"]:
            raise InvalidWorkload(
                f"jobs: {sizes['job']} jobs exceed the window, which was sized for {visible['window']}"
            )
        if instance.most_tasks > visible["tasks"]:
            raise InvalidWorkload(
                f"tasks: a job has {instance.most_tasks} tasks, the environment at most {visible['tasks']}"
            )
        for name, most in (("window", visible["rows"]), ("running_window", visible["running"])):
            if getattr(self.parameters, name) == "all" and sizes["task"] > most:
                raise InvalidWorkload(f"tasks: {sizes['task']} tasks, {name} 'all' was sized for {most}")

        if self.parameters.observation == "dict" and not self.powered and has_powers(workload):
            raise InvalidWorkload(
                "tasks.power: the environment shows none; "
                "to see it, make the environment with a workload file that has it"
            )

    def _drawn_workload(self, index: int) -> Workload:
        return workload.rebuild(self.source, self.jobs_of(index))

    def record(self, index: int) -> ScheduleRecord:
        """See :meth:`Simulator.record`: one row per piece of a task with constant vCPU, by (start, task)."""
        scalars = self.state.scalars[index]
        rows = int(self.arrays.log.size["rows"][index])
        log = metrics.Log(*(array[index, :rows] if array.ndim > 1 else array for array in self.arrays.log))
        order = np.lexsort((log.task, log.start))
        return ScheduleRecord(
            workload=self.workload(index),
            job=log.task[order].astype(np.int64),
            server=log.server[order].astype(np.int64),
            start=log.start[order],
            end=log.end[order],
            amount=np.column_stack((log.base[order], log.extra[order])),
            final_time=float(scalars["clock"]),
            truncated=bool(scalars["truncated"]),
        )


make_simulator = ParallelJCTSimulator
