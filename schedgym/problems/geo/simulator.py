"""The simulator of GeoAssign and GeoFair: the sizes of its arrays, and its records."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Flags, Floats, sizes_of
from schedgym.core.record import ScheduleRecord
from schedgym.core.simulator import Simulator
from schedgym.core.workload import Workload
from schedgym.errors import InvalidWorkload
from schedgym.problems.geo import dynamics, metrics, views, workload
from schedgym.problems.geo.columns import JOB_FEATURES
from schedgym.problems.geo.problem import PROBLEM, GeoParameters
from schedgym.problems.geo.rules import work_sizes

#: fields that the observation and the state's rows have in common
JOB_ROWS = ("arrival", "remaining", "waiting", "running", "assigned", "seconds", "new")
COST, RESPONSE, FAIRNESS = (
    [metric.name for metric in PROBLEM.metrics].index(name)
    for name in ("weighted_cost", "mean_response", "fairness")
)


class GeoSimulator(Simulator):
    """``num_envs`` clusters in one set of arrays; see :mod:`schedgym.problems.geo.dynamics`."""

    parameters: GeoParameters
    grows_by_draw = "task"

    def __init__(self, parameters: GeoParameters, num_envs: int, id: str) -> None:
        super().__init__(PROBLEM, id, parameters, num_envs)
        if self.fixed is not None:
            sizes = sizes_of(workload.tables(self.fixed))
        else:
            sizes = dict(self.source.sizes)
        jobs, self.sites = sizes["job"], sizes["site"]
        self.groups, self.choices = sizes["group"], sizes["choice"]
        self.window = jobs if parameters.window == "all" else int(parameters.window)
        self.mode = dynamics.SLOT
        if parameters.view in views.ORDER_VIEWS:
            self.mode = dynamics.ORDER
        elif parameters.view in views.RATIO_VIEWS:
            self.mode = dynamics.RATIO
        in_order = self.mode == dynamics.ORDER
        weights = {"response": 0.0, "fairness": 1.0, "weighted": parameters.fairness_weight}
        share = weights[parameters.objective]
        self._set_up(
            sizes=sizes
            | {
                "window": self.window,
                "ordered_window": self.window if in_order else 0,
                "timed_window": self.window if parameters.clairvoyant else 0,
                "feature": JOB_FEATURES + self.groups + self.sites * (2 if in_order else 1),
            },
            config={
                "mode": self.mode,
                "associated": parameters.dispatch_sites == "associated",
                "greedy": parameters.placement == "greedy",
                "response_weight": 1.0 - share,
                "fairness_weight": share,
            },
            known={"jobs": jobs, "sites": self.sites},
            visible={
                "window": self.window,
                "sites": self.sites,
                "groups": self.groups,
                "choices": self.choices,
            },
        )

    def _derived_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        work = work_sizes(sizes["job"], self.groups, self.choices, self.sites)
        work["timed_row"] = sizes["job"] if self.parameters.clairvoyant else 0
        return work | {"piece": metrics.most_pieces(sizes)}

    def _initialise(self) -> None:
        arrays = self.arrays
        arrays.observation.open_site[:] = self.sites
        if self.parameters.view != "pick":
            arrays.observation.action_mask[:] = 1  # every algorithm is always feasible
        if self.source is not None:
            self.source.set_lists(arrays.jobs, slice(None))
        if self.zero_copy:
            rows = {name: getattr(arrays.state, name) for name in JOB_ROWS}
            self.arrays = arrays._replace(observation=arrays.observation._replace(**rows))

    def _check(self, workload: Workload) -> None:
        jobs, sites = len(workload.jobs["arrival"]), len(workload.cluster["slots"])
        self._check_size("sites", self.sites, sites)
        self._check_window(jobs)
        self.instance(workload)

    def _instance(self, given: Workload) -> workload.Jobs:
        """Convert a workload to arrays; groups are numbered as by the generator if it has them all."""
        if self.source is not None:
            with contextlib.suppress(InvalidWorkload):
                return workload.tables(given, self.source.lists["sites"])
        own = workload.group_lists(given)
        groups, choices = own.shape
        if choices > self.choices:
            raise InvalidWorkload(
                f"tasks.sites: a task has {choices} sites, the environment at most {self.choices}"
            )
        if groups > self.groups:
            raise InvalidWorkload(
                f"tasks.sites: {groups} different lists of sites, the environment has {self.groups} groups"
            )
        lists = np.full((self.groups, self.choices), -1)
        lists[:groups, :choices] = own
        return workload.tables(given, lists)

    def draw(self, mask: Flags) -> None:
        """See :meth:`Simulator.draw`; a given workload may have replaced the lists of sites."""
        for index in self.loaded:
            if mask[index]:
                self.source.set_lists(self.jobs, index)
        super().draw(mask)

    def metric_values(self, written: npt.NDArray[Any], scalars: Any) -> Floats:
        """See :meth:`Simulator.metric_values`."""
        values, weight = super().metric_values(written, scalars), self.parameters.fairness_weight
        values[:, COST] = (1.0 - weight) * values[:, RESPONSE] + weight * values[:, FAIRNESS]
        return values

    def record(self, index: int) -> ScheduleRecord:
        """See :meth:`Simulator.record`: one row per task that has started, in the workload's order."""
        jobs = self.jobs_of(index)
        schedule = self.arrays.schedule
        order = np.argsort(jobs.task_index[: jobs.size["tasks"]])
        ran = order[~np.isnan(schedule.start[index, order])]
        start = schedule.start[index, ran]
        return ScheduleRecord(
            workload=self.workload(index),
            job=jobs.task_index[ran].astype(np.int64),
            server=jobs.sites[jobs.group[ran], schedule.choice[index, ran]],
            start=start,
            end=start + jobs.duration[ran],
            amount=np.ones((len(ran), 1)),
            final_time=float(self.state.scalars["clock"][index]),
            truncated=False,
        )


make_simulator = GeoSimulator
