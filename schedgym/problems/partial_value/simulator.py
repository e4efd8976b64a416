"""The simulator of PartialValue: sizes of its arrays, and what of them is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.record import ScheduleRecord
from schedgym.core.simulator import Simulator
from schedgym.core.workload import Workload
from schedgym.errors import InvalidWorkload
from schedgym.problems.partial_value import dynamics, metrics, views, workload
from schedgym.problems.partial_value.problem import PROBLEM, PartialValueParameters
from schedgym.problems.partial_value.rules import RULES

__all__ = ["PartialValueSimulator", "make_simulator"]

DECIDE = {
    "allocation": dynamics.decide_allocation,
    "prices": dynamics.decide_prices,
    "priority": dynamics.decide_priority,
    "rule": dynamics.decide_rule,
}
ROWS_PER_JOB = 8  # of the log that an episode takes at first; it grows


class PartialValueSimulator(Simulator):
    """``num_envs`` clusters in one set of arrays; see :mod:`schedgym.problems.partial_value.dynamics`."""

    parameters: PartialValueParameters
    environment = dynamics.Environment
    drawing = workload.Drawing
    episode = metrics.Episode
    draw_kernel = staticmethod(workload.draw)
    measure_kernel = staticmethod(metrics.measure)
    log = "run"

    def __init__(self, parameters: PartialValueParameters, num_envs: int, id: str) -> None:
        super().__init__(PROBLEM, id, parameters, num_envs)
        if self.fixed is not None:
            workload.check_model(self.fixed, parameters.model)
            jobs, self.resources = self.fixed.jobs["demand"].shape
        else:
            jobs, self.resources = self.source.jobs, self.source.resources
        self.window = jobs if parameters.window == "all" else int(parameters.window)
        self.names = tuple(views.observation_entries(parameters, self.window, self.resources))
        self.kernels = DECIDE[parameters.view], dynamics.step
        units = parameters.observation == "dict"
        zero_copy = parameters.window == "all" and units
        self._set_up(
            views.action_space(parameters, self.window, self.resources),
            sizes={
                "job": jobs,
                "resource": self.resources,
                "run": ROWS_PER_JOB * jobs,
                "slot": self.window,
                "own_slot": self.window if units and not zero_copy else 0,
                "token_slot": 0 if units else self.window,
                "job_feature": dynamics.JOB_FEATURES + self.resources,
                "mask": len(RULES) if "action_mask" in self.names else 0,
            },
            config={
                "discrete": parameters.model == "discrete",
                "hidden": parameters.deadlines == "hidden",
                "single_task": parameters.single_task,
                "prices": parameters.view == "prices",
                "window": self.window,
                "features": not units,
                "zero_copy": zero_copy,
                "normalize": parameters.normalize,
            },
            known={"jobs": jobs},
            visible={"window": self.window, "resources": self.resources},
        )

    def _initialise(self) -> None:
        arrays = self.arrays
        if arrays.constants.config["zero_copy"]:
            self.arrays = arrays._replace(visible_rows=arrays.rows, visible_details=arrays.details)

    def _observation(self) -> dict[str, npt.NDArray[Any]]:
        arrays = self.arrays
        buffers = {"capacity": arrays.jobs.capacity}
        for bundle in (arrays.visible_rows, arrays.visible_details, arrays.observation):
            buffers |= bundle._asdict()
        return {name: buffers[name] for name in self.names}

    def _check(self, given: Workload) -> None:
        workload.check_model(given, self.parameters.model)
        jobs, resources = given.jobs["demand"].shape
        if resources != self.resources:
            raise InvalidWorkload(f"cluster: {resources} resources, the environment has {self.resources}")
        if self.parameters.window == "all" and jobs > self.window:
            raise InvalidWorkload(f"jobs: {jobs} jobs exceed the window, which was sized for {self.window}")

    def _drawn_workload(self, index: int) -> Workload:
        return workload.rebuild(workload.Jobs(*(array[index] for array in self.jobs)))

    def record(self, index: int) -> ScheduleRecord:
        """See :meth:`Simulator.record`: one row per slot and job that was served in it."""
        log, count = self.arrays.log, int(self.state.scalars["logged"][index])
        slot = log.slot[index, :count].astype(np.float64)
        return ScheduleRecord(
            workload=self.workload(index),
            job=log.job[index, :count].astype(np.int64),
            server=np.zeros(count, dtype=np.int64),
            start=slot - 1.0,
            end=slot,
            amount=log.amount[index, :count, np.newaxis].copy(),
            final_time=float(self.arrays.schedule.totals["slots"][index]),
            truncated=False,
        )


def make_simulator(parameters: PartialValueParameters, num_envs: int, id: str) -> PartialValueSimulator:
    """The simulator behind both environments; every problem has this function in this module."""
    return PartialValueSimulator(parameters, num_envs, id)
