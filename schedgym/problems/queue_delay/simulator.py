"""The simulator of QueueDelay: the sizes of its arrays, and its records."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from schedgym.core.record import ScheduleRecord
from schedgym.core.simulator import Simulator
from schedgym.core.workload import Workload
from schedgym.problems.queue_delay.problem import ORDERS, PROBLEM, QueueDelayParameters
from schedgym.problems.queue_delay.rules import ARRIVING_ONLY, FIRST, SCAN_RELEASED

__all__ = ["QueueDelaySimulator", "make_simulator"]


class QueueDelaySimulator(Simulator):
    """``num_envs`` queues in one set of arrays; see :mod:`schedgym.problems.queue_delay.dynamics`."""

    parameters: QueueDelayParameters

    def __init__(self, parameters: QueueDelayParameters, num_envs: int, id: str) -> None:
        super().__init__(PROBLEM, id, parameters, num_envs)
        if self.fixed is not None:
            tasks, servers = len(self.fixed.jobs["arrival"]), len(self.fixed.cluster["cpu"])
        else:
            tasks, servers = self.source.sizes["task"], self.source.sizes["server"]
        self.window = tasks if parameters.window == "all" else int(parameters.window)
        self.servers = servers
        #: True if ``Queue`` holds the quantities of all waiting tasks, not only of the visible ones
        self.whole_queue = parameters.window == "all" or parameters.view in ("route", "rule")
        self._set_up(
            sizes={"task": tasks, "server": servers, "window": self.window},
            config={"all_servers": parameters.scope == "all"},
            known={"tasks": tasks, "servers": servers},
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
        servers, tasks = len(workload.cluster["cpu"]), len(workload.jobs["arrival"])
        self._check_size("servers", self.servers, servers)
        self._check_window(tasks, "tasks")

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
