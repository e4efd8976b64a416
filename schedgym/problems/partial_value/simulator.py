"""The simulator of PartialValue: the sizes of its arrays, and its records."""

from __future__ import annotations

import numpy as np

from schedgym.core.record import ScheduleRecord
from schedgym.core.simulator import Simulator
from schedgym.core.workload import Workload
from schedgym.problems.partial_value import workload
from schedgym.problems.partial_value.columns import JOB_FEATURES
from schedgym.problems.partial_value.problem import PROBLEM, PartialValueParameters

ROWS_PER_JOB = 8  # of the log that an episode takes at first; it grows


class PartialValueSimulator(Simulator):
    """``num_envs`` clusters in one set of arrays; see :mod:`schedgym.problems.partial_value.dynamics`."""

    parameters: PartialValueParameters
    log = "run"

    def __init__(self, parameters: PartialValueParameters, num_envs: int, id: str) -> None:
        super().__init__(PROBLEM, id, parameters, num_envs)
        if self.fixed is not None:
            workload.check_model(self.fixed, parameters.model)
            jobs, self.resources = self.fixed.jobs["demand"].shape
        else:
            jobs, self.resources = self.source.jobs, self.source.resources
        self.window = jobs if parameters.window == "all" else int(parameters.window)
        self._set_up(
            sizes={
                "job": jobs,
                "resource": self.resources,
                "run": ROWS_PER_JOB * jobs,
                "window": self.window,
                "job_feature": JOB_FEATURES + self.resources,
            },
            config={
                "discrete": parameters.model == "discrete",
                "hidden": parameters.deadlines == "hidden",
                "prices": parameters.view == "prices",
            },
            known={"jobs": jobs},
            visible={"window": self.window, "resources": self.resources},
        )

    def _initialise(self) -> None:
        if self.zero_copy:
            arrays = self.arrays
            self.arrays = arrays._replace(visible_rows=arrays.rows, visible_details=arrays.details)

    def _check_length(self, given: Workload, prefix: str = "") -> None:
        workload.check_length(given, self.parameters.model, prefix)

    def _check(self, given: Workload) -> None:
        workload.check_model(given, self.parameters.model)
        jobs, resources = given.jobs["demand"].shape
        self._check_size("resources", self.resources, resources)
        self._check_window(jobs)

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


make_simulator = PartialValueSimulator
