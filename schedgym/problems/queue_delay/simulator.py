"""The simulator of QueueDelay: the sizes of its arrays, and its records."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from schedgym.core.arrays import sizes_of
from schedgym.core.record import ScheduleRecord
from schedgym.core.simulator import Simulator
from schedgym.core.workload import Workload
from schedgym.errors import InvalidWorkload
from schedgym.problems.queue_delay.columns import GLOBAL, SERVER, SUBMITTED, TASK
from schedgym.problems.queue_delay.problem import ORDERS, PROBLEM, QueueDelayParameters
from schedgym.problems.queue_delay.rules import ARRIVING_ONLY, FIRST, SCAN_RELEASED
from schedgym.problems.queue_delay.workload import rebuild, tables


class QueueDelaySimulator(Simulator):
    """``num_envs`` queues in one set of arrays; see :mod:`schedgym.problems.queue_delay.dynamics`."""

    parameters: QueueDelayParameters

    def __init__(self, parameters: QueueDelayParameters, num_envs: int, id: str) -> None:
        super().__init__(PROBLEM, id, parameters, num_envs)
        sizes = sizes_of(tables(self.fixed)) if self.fixed is not None else self.source.sizes
        tasks, servers, resources = sizes["task"], sizes["server"], sizes["static_resource"]
        self.window = tasks if parameters.window == "all" else int(parameters.window)
        self.servers = servers
        self.resources = parameters.resources if self.fixed is None else tuple(self.fixed.cluster)
        #: True if ``Queue`` holds the quantities of all waiting tasks, not only of the visible ones
        self.whole_queue = parameters.window == "all" or parameters.view in ("route", "rule")
        self._set_up(
            sizes={
                "task": tasks,
                "server": servers,
                "window": self.window,
                "static_resource": resources,
                "task_column": resources + len(TASK),
                "server_column": 2 * resources + len(SERVER),
                "global_column": len(GLOBAL) + resources + len(SUBMITTED),
            },
            config={"all_servers": parameters.scope == "all"},
            known={"tasks": tasks, "servers": servers, "resources": self.resources},
            visible={"window": self.window, "servers": servers},
        )

    def _derived_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"leading": sizes["task"] if self.whole_queue else self.window}

    def _initialise(self) -> None:
        arrays, parameters = self.arrays, self.parameters
        arrays.constants.route[:] = (ARRIVING_ONLY, FIRST, SCAN_RELEASED, ORDERS.index(parameters.order))
        if parameters.view == "rule":
            arrays.observation.action_mask[:] = 1
        elif parameters.view != "placement" and parameters.action_mask:
            arrays.observation.action_mask[:, -1] = 1  # closing (route: queueing) is always feasible
        if self.zero_copy:
            self.arrays = arrays._replace(shown=arrays.queue)

    def _check(self, workload: Workload) -> None:
        if tuple(workload.cluster) != self.resources:
            own, given = (", ".join(names) for names in (self.resources, workload.cluster))
            raise InvalidWorkload(f"cluster: has the resources {given}, the environment has {own}")
        self._check_size("servers", self.servers, len(next(iter(workload.cluster.values()))))
        self._check_window(len(workload.jobs["arrival"]), "tasks")

    def _drawn_workload(self, index: int) -> Workload:
        return rebuild(self.jobs_of(index), self.resources)

    def record(self, index: int) -> ScheduleRecord:
        """See :meth:`Simulator.record`: one row per task that has started, in order of submission."""
        jobs, schedule = self.jobs, self.arrays.schedule
        start = schedule.start[index, : jobs.size["tasks"][index]]
        job = np.flatnonzero(~np.isnan(start))
        return ScheduleRecord(
            workload=self.workload(index),
            job=job,
            server=schedule.server[index, job],
            start=start[job],
            end=start[job] + jobs.execution[index, job],
            amount=jobs.demand[index, job].copy(),
            final_time=float(self.state.scalars["clock"][index]),
            truncated=bool(self.truncated[index]),
        )


make_simulator = QueueDelaySimulator
