"""The simulator of PartialValue: arrays bound to the compiled kernels."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import pack
from schedgym.core.policy import Interface
from schedgym.core.record import ScheduleRecord
from schedgym.core.simulator import Simulator
from schedgym.core.workload import Workload, load_workload
from schedgym.errors import InvalidWorkload
from schedgym.problems.partial_value import dynamics, metrics, views
from schedgym.problems.partial_value.problem import PROBLEM, PartialValueParameters
from schedgym.problems.partial_value.rules import make_scratch
from schedgym.problems.partial_value.workload import (
    SCHEMA,
    Source,
    Tables,
    check_model,
    draw_python,
    make_source,
    rebuild,
    tables,
)
from schedgym.solvers.dual_prices import make_dual_scratch

__all__ = ["PartialValueSimulator", "make_simulator"]

DECODERS: dict[str, Callable[..., int]] = {
    "allocation": dynamics.decode_allocation,
    "prices": dynamics.decode_prices_view,
    "priority": dynamics.decode_priority,
    "rule": dynamics.decode_rule,
}
ROWS_PER_JOB = 8  # of the log that an episode takes at first; it grows
#: what an observation tells of each visible job
NAMES = (
    *("job", "arrival", "deadline", "parallelism", "tasks", "served", "cap", "marginal"),
    *("value", "exponent", "utility", "demand"),
)


class PartialValueSimulator(Simulator):
    """``num_envs`` clusters in one set of arrays; see :mod:`schedgym.problems.partial_value.dynamics`."""

    parameters: PartialValueParameters
    draws_in_place = True

    def __init__(self, parameters: PartialValueParameters, num_envs: int, id: str) -> None:
        super().__init__(PROBLEM, id, parameters, num_envs)
        given: Workload | None = None
        self.source: Source | None = None
        if parameters.workload is not None:
            given = load_workload(parameters.workload, SCHEMA)
            check_model(given, parameters.model)
            jobs, self.resources = given.jobs["demand"].shape
        else:
            self.source = make_source(parameters)
            jobs, self.resources = self.source.jobs, self.source.resources
        self.window = jobs if parameters.window == "all" else int(parameters.window)
        config = np.zeros(1, dtype=dynamics.CONFIG)
        for name, value in {
            "discrete": parameters.model == "discrete",
            "hidden": parameters.deadlines == "hidden",
            "single_task": parameters.single_task,
            "rule": parameters.view == "rule",
            "prices": parameters.view == "prices",
            "window": self.window,
            "features": parameters.observation == "features",
            "mask": parameters.action_mask,
            "lent": parameters.window == "all" and parameters.observation == "dict",
            "strict": parameters.strict,
            "normalize": parameters.normalize,
        }.items():
            config[name] = value
        self.constants = dynamics.Constants(config=config)
        space = views.action_space(parameters, self.window, self.resources)
        self.continuous = not hasattr(space, "n")
        self.action_shape = tuple(space.shape or ())
        self.action_sizes = () if self.continuous else (int(getattr(space, "n")),)  # noqa: B009
        self.interface = Interface(
            id=id,
            problem=PROBLEM.name,
            view=parameters.view,
            observation=parameters.observation,
            parameters=dataclasses.asdict(parameters) | {"jobs": jobs},
            sizes={"window": self.window, "resources": self.resources},
        )
        self.loaded: dict[int, Workload] = {}
        self._allocate(jobs)
        self._bind()
        self.fixed = given

    def _rows(self, length: int) -> dynamics.Rows:
        b, m = self.num_envs, self.resources
        arrays: dict[str, npt.NDArray[Any]] = {name: np.zeros((b, length)) for name in NAMES}
        arrays |= {name: np.zeros((b, length), dtype=np.int64) for name in ("job", "utility")}
        arrays["share"] = np.zeros((b, length, m))
        shown = length if self.parameters.observation == "dict" else 0
        arrays |= {name: np.zeros((b, shown)) for name in ("parallelism", "tasks", "marginal")}
        arrays["demand"] = np.zeros((b, shown, m))
        return dynamics.Rows(**arrays)

    def _log(self, length: int) -> dynamics.Log:
        b = self.num_envs
        return dynamics.Log(
            job=np.zeros((b, length), dtype=np.int32),
            slot=np.zeros((b, length), dtype=np.int32),
            amount=np.zeros((b, length)),
        )

    def _allocate(self, jobs: int) -> None:
        b, m, w = self.num_envs, self.resources, self.window
        self.capacity = jobs

        def f8(*shape: int) -> npt.NDArray[np.float64]:
            return np.zeros((b, *shape))

        self.jobs = dynamics.Jobs(
            arrival=f8(jobs),
            deadline=f8(jobs),
            parallelism=f8(jobs),
            tasks=f8(jobs),
            value=f8(jobs),
            exponent=f8(jobs),
            utility=np.zeros((b, jobs), dtype=np.int64),
            demand=f8(jobs, m),
            share=f8(jobs, m),
            capacity=np.ones((b, m)),
        )
        self.row_arrays = self._rows(jobs)
        units = self.parameters.observation == "dict"
        self.state = dynamics.State(
            scalars=np.zeros(b, dtype=dynamics.SCALARS),
            served=f8(jobs),
            x=f8(jobs),
            scores=f8(jobs),
            load=f8(m),
            now=f8(m),
            prices=f8(m),
            tokens=np.zeros((b, 0 if units else jobs, dynamics.JOB_FEATURES + m), np.float32),
        )
        self.log = self._log(ROWS_PER_JOB * jobs)
        self.buffers = dynamics.Observation(
            slot=np.zeros((b, 1), dtype=np.int64),
            active=np.zeros((b, 1), dtype=np.int64),
            backlog=np.zeros((b, 1), dtype=np.int64),
            job_mask=np.zeros((b, w), dtype=np.int8),
            action_mask=np.zeros((b, views.mask_length(self.parameters)), dtype=np.int8),
            job_tokens=np.zeros((b, 0 if units else w, dynamics.JOB_FEATURES + m), np.float32),
            resource_tokens=np.zeros((b, m, dynamics.RESOURCE_FEATURES), np.float32),
            global_tokens=np.zeros((b, dynamics.GLOBAL_FEATURES), np.float32),
        )
        self.shown = self._rows(w if units and not self.constants.config["lent"][0] else 0)
        self.exchange = dynamics.Exchange(
            choices=np.zeros((b, 1), dtype=np.int64),
            actions=f8(int(np.prod(self.action_shape)) if self.continuous else 0),
            rows=np.zeros(b, dtype=np.int64),
            reward=f8(),
            terminated=np.zeros(b, dtype=bool),
            truncated=np.zeros(b, dtype=bool),
            repaired=np.zeros(b, dtype=bool),
        )
        self.measured = np.zeros((b, len(self.metric_names)))

    def _bundles(self) -> tuple[Any, ...]:
        return (
            self.constants,
            self.jobs,
            self.row_arrays,
            self.state,
            self.log,
            self.buffers,
            self.shown,
            self.exchange,
        )

    def _bind(self) -> None:
        """See :meth:`Simulator._bind`."""
        exchange, buffers = self.exchange, self.buffers
        self.actions = exchange.actions if self.continuous else exchange.choices
        self.rows = exchange.rows
        self.reward, self.repaired = exchange.reward, exchange.repaired
        self.terminated, self.truncated = exchange.terminated, exchange.truncated
        self.table = pack(*self._bundles())
        self.kernels = DECODERS[self.parameters.view], dynamics.step
        self._bind_tools(
            lambda: (
                make_scratch(self.capacity, self.resources),
                make_dual_scratch(self.capacity, self.resources),
            )
        )
        self.scalars: tuple[str, ...] = ()
        if self.parameters.observation == "features":
            self.observation = {
                "jobs": buffers.job_tokens,
                "resources": buffers.resource_tokens,
                "globals": buffers.global_tokens,
                "job_mask": buffers.job_mask,
            }
        else:
            shown = self.row_arrays if self.constants.config["lent"][0] else self.shown
            self.observation = {"slot": buffers.slot, "capacity": self.jobs.capacity}
            self.observation |= {name: getattr(shown, name) for name in NAMES}
            self.observation["job_mask"] = buffers.job_mask
            self.observation["active"], self.observation["backlog"] = buffers.active, buffers.backlog
            if self.parameters.deadlines == "hidden":
                del self.observation["deadline"]
        if buffers.action_mask.shape[1]:
            self.observation["action_mask"] = buffers.action_mask

    def check_workload(self, workload: Workload) -> None:
        """See :meth:`Simulator.check_workload`."""
        if workload.problem != PROBLEM.name:
            raise InvalidWorkload(f"problem: must be {PROBLEM.name!r}, got {workload.problem!r}")
        check_model(workload, self.parameters.model)
        jobs, resources = workload.jobs["demand"].shape
        if resources != self.resources:
            raise InvalidWorkload(f"cluster: {resources} resources, the environment has {self.resources}")
        if self.parameters.window == "all" and jobs > self.window:
            raise InvalidWorkload(f"jobs: {jobs} jobs exceed the window, which was sized for {self.window}")

    def load(self, index: int, workload: Workload) -> None:
        """See :meth:`Simulator.load`; the arrays grow if the workload is longer than any before."""
        instance = tables(workload)
        count = len(instance.arrival)
        if count > self.capacity:
            before = self._bundles()
            self._allocate(max(count, self.capacity + self.capacity // 2))
            self._keep(before)
        for name in dynamics.Jobs._fields:
            values = getattr(instance, name)
            getattr(self.jobs, name)[index, : len(values)] = values
        self.state.scalars["jobs"][index] = count
        self.loaded[index] = workload

    def _keep(self, before: tuple[Any, ...]) -> None:
        """Copy the old arrays into the new ones."""
        for old, new in zip(before, self._bundles(), strict=True):
            for source, target in zip(old, new, strict=True):
                if source is not target:
                    both = tuple(slice(min(n)) for n in zip(source.shape, target.shape, strict=True))
                    target[both] = source[both]
        self._bind()

    def draw(self, mask: npt.NDArray[np.bool_]) -> None:
        """See :meth:`Simulator.draw`."""
        source = self.source
        assert source is not None  # a simulator without one has a fixed workload
        draw_python(mask, self.seeds, self.episodes, source, self.jobs)
        for index in np.flatnonzero(mask).tolist() if self.loaded else ():
            self.loaded.pop(index, None)
        self.state.scalars["jobs"][mask] = source.jobs

    def _reserve_log(self) -> None:
        if dynamics.rows_to_log(self.state.scalars) > self.log.job.shape[1]:
            before = self._bundles()
            self.log = self._log(2 * self.log.job.shape[1])
            self._keep(before)

    def measure(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """See :meth:`Simulator.measure`."""
        scalars, jobs, state = self.state.scalars, self.jobs, self.state
        metrics.measure(
            mask,
            np.ascontiguousarray(scalars["jobs"]),
            state.served,
            jobs.tasks,
            jobs.utility,
            jobs.value,
            jobs.exponent,
            state.load,
            np.ascontiguousarray(scalars["full"]),
            np.ascontiguousarray(scalars["slots"]),
            np.ascontiguousarray(scalars["horizon"]),
            self.measured,
        )
        self.measured[:, -1] = scalars["repaired"]
        return self.measured

    def workload(self, index: int) -> Workload:
        """See :meth:`Simulator.workload`."""
        if index in self.loaded:
            return self.loaded[index]
        count = int(self.state.scalars["jobs"][index])
        fields = {name: getattr(self.jobs, name)[index] for name in dynamics.Jobs._fields}
        fields["arrival"] = fields["arrival"][:count]
        return rebuild(Tables(**fields))

    def record(self, index: int) -> ScheduleRecord:
        """See :meth:`Simulator.record`: one row per slot and job that was served in it."""
        scalars, log = self.state.scalars[index], self.log
        count = int(scalars["logged"])
        slot = log.slot[index, :count].astype(np.float64)
        return ScheduleRecord(
            workload=self.workload(index),
            job=log.job[index, :count].astype(np.int64),
            server=np.zeros(count, dtype=np.int64),
            start=slot - 1.0,
            end=slot,
            amount=log.amount[index, :count, np.newaxis].copy(),
            final_time=float(scalars["slots"]),
            truncated=False,
        )


def make_simulator(parameters: PartialValueParameters, num_envs: int, id: str) -> PartialValueSimulator:
    """The simulator behind both faces; every problem has this function in this room."""
    return PartialValueSimulator(parameters, num_envs, id)
