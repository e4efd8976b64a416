"""The simulator of SingleJob: the sizes of its arrays, and its records."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import sizes_of
from schedgym.core.record import ScheduleRecord
from schedgym.core.simulator import Simulator
from schedgym.core.workload import Workload
from schedgym.errors import InvalidWorkload
from schedgym.problems.single_job import dynamics, views, workload
from schedgym.problems.single_job.columns import PAIR_FEATURES, NextToken, ServerToken
from schedgym.problems.single_job.problem import PROBLEM, SingleJobParameters
from schedgym.problems.single_job.topology import has_weights
from schedgym.solvers.placement import MEMBERS


class SingleJobSimulator(Simulator):
    """``num_envs`` jobs in one set of arrays; see :mod:`schedgym.problems.single_job.dynamics`.

    Attributes:
        tasks: most tasks N.
        servers: M.
        groups: most groups R.
        weighted: True if observations show the groups' weights, and not only which servers are in a group.
    """

    parameters: SingleJobParameters

    def __init__(self, parameters: SingleJobParameters, num_envs: int, id: str) -> None:
        super().__init__(PROBLEM, id, parameters, num_envs)
        self.weighted = self.fixed is not None and has_weights(self.fixed)
        sizes = self.source.sizes if self.fixed is None else sizes_of(self.instance(self.fixed))
        tasks, servers, groups = (sizes[name] for name in ("task", "server", "group"))
        self.tasks, self.servers, self.groups = tasks, servers, groups
        view, units = parameters.view, parameters.observation == "dict"
        self._set_up(
            sizes={
                **sizes,
                "shown_group": groups if units and not self.weighted else 0,
                "weighted_group": groups if units and self.weighted else 0,
                "server_column": len(ServerToken._fields + (NextToken._fields if view == "place" else ())),
                "pair_task": tasks if view in views.PAIR_VIEWS else 0,
                "pair_column": servers * PAIR_FEATURES,
                "member": MEMBERS if parameters.fallback == "gsa" else 0,
                # view search needs the mask even if it is not shown
                **({"mask": tasks * servers + 1} if view == "search" else {}),
            },
            config={"terminal": parameters.reward == "terminal"},
            known={"tasks": tasks},
            visible={"tasks": tasks, "servers": servers, "groups": groups},
        )

    def _observation(self) -> dict[str, npt.NDArray[Any]]:
        shown = super()._observation()
        if self.parameters.observation == "features":
            self.shown["job_mask"], shown["job_mask"] = self.shown.pop("task_mask"), shown.pop("task_mask")
        return shown

    def _check(self, workload: Workload) -> None:
        tasks, servers = len(workload.jobs["load"]), len(workload.cluster["cpu"])
        self._check_size("servers", self.servers, servers)
        if tasks > self.tasks:
            raise InvalidWorkload(f"jobs: the environment holds {self.tasks} tasks, the workload has {tasks}")
        groups = len(self.instance(workload).limits)
        if groups > self.groups:
            raise InvalidWorkload(
                f"cluster: the environment holds {self.groups} groups, the workload has {groups}"
            )

        if self.parameters.observation == "dict" and not self.weighted and has_weights(workload):
            raise InvalidWorkload(
                "cluster.groups: the environment shows weights of 0 and 1 only; "
                "to see others, make the environment with a workload file that has them"
            )

    def _instance(self, workload: Workload) -> Any:
        instance = super()._instance(workload)
        return instance._replace(weights=instance.matrix.astype(np.float64)) if self.weighted else instance

    def load(self, index: int, workload: Workload) -> None:
        """See :meth:`Simulator.load`; the arrays are zero behind the workload."""
        if self.loaded.get(index) is not workload:  # episodes do not change it
            for array in self.jobs:
                array[index] = 0
            super().load(index, workload)

    def _drawn_workload(self, index: int) -> Workload:
        return workload.rebuild(self.source, self.jobs_of(index))

    def record(self, index: int) -> ScheduleRecord:
        """See :meth:`Simulator.record`: one row per placed task, by Eq. 16 if the plan is incomplete."""
        if self.parameters.view == "place" and not self.state.scalars["finished"][index]:
            dynamics.settle(self.table, self.toolboxes[0], index)
        schedule = self.arrays.schedule
        placed = np.flatnonzero(schedule.placement[index] >= 0)
        time = schedule.time[index, placed]
        return ScheduleRecord(
            workload=self.workload(index),
            job=placed,
            server=schedule.placement[index, placed].astype(np.int64),
            start=np.zeros(len(placed)),
            end=time,
            amount=schedule.vcpu[index, placed, np.newaxis],
            final_time=float(time.max(initial=0.0)),
            truncated=False,
        )


make_simulator = SingleJobSimulator
