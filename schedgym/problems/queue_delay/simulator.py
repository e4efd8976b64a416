"""The simulator of QueueDelay: arrays bound to the compiled kernels."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import pack
from schedgym.core.policy import Interface
from schedgym.core.record import ScheduleRecord
from schedgym.core.simulator import Simulator
from schedgym.core.workload import Workload, load_workload
from schedgym.errors import InvalidWorkload
from schedgym.problems.queue_delay import dynamics, metrics, views
from schedgym.problems.queue_delay.problem import (
    ORDERS,
    PROBLEM,
    SERVER_RULES,
    VIEWS,
    QueueDelayParameters,
)
from schedgym.problems.queue_delay.rules import ARRIVING_ONLY, FIRST, SCAN_RELEASED
from schedgym.problems.queue_delay.workload import SCHEMA, draw_python, make_source, make_workload

__all__ = ["QueueDelaySimulator", "make_simulator"]


class QueueDelaySimulator(Simulator):
    """``num_envs`` queues in one set of arrays; see :mod:`schedgym.problems.queue_delay.dynamics`."""

    parameters: QueueDelayParameters
    draws_in_place = True

    def __init__(self, parameters: QueueDelayParameters, num_envs: int, id: str) -> None:
        super().__init__(PROBLEM, id, parameters, num_envs)
        given: Workload | None = None
        tasks, servers = parameters.tasks, parameters.servers
        if parameters.workload is not None:
            given = load_workload(parameters.workload, SCHEMA)
            tasks, servers = len(given.jobs["arrival"]), len(given.cluster["cpu"])
        else:
            self.source = make_source(parameters)
        self.window = tasks if parameters.window == "all" else int(parameters.window)
        self.servers = servers
        self.whole_queue = parameters.window == "all" or parameters.view in ("route", "rule")
        view = [v.name for v in VIEWS].index(parameters.view)
        self.config = np.zeros(1, dtype=dynamics.CONFIG)
        for name, value in {
            "action_view": view,
            "window": self.window,
            "rule": SERVER_RULES.index(parameters.rule),
            "order": ORDERS.index(parameters.order),
            "all_servers": parameters.scope == "all",
            "features": parameters.observation == "features",
            "mask": parameters.action_mask,
            "lent": parameters.window == "all" and parameters.observation == "dict",
            "strict": parameters.strict,
        }.items():
            self.config[name] = value
        space = views.action_space(parameters.view, self.window, servers)
        self.action_sizes = tuple(space.nvec.tolist()) if hasattr(space, "nvec") else (int(space.n),)
        self.action_shape = tuple(space.shape or ())
        route = (ARRIVING_ONLY, FIRST, SCAN_RELEASED, ORDERS.index(parameters.order))
        self.constants = dynamics.Constants(
            config=self.config,
            weights=np.ones(2),
            route=np.array(route, dtype=np.int64),
            choices=np.array(self.action_sizes, dtype=np.int64),
        )
        self.interface = Interface(
            id=id,
            problem=PROBLEM.name,
            view=parameters.view,
            observation=parameters.observation,
            parameters=dataclasses.asdict(parameters) | {"tasks": tasks, "servers": servers},
            sizes={"window": self.window, "servers": servers},
        )
        self._allocate(tasks)
        self._bind()
        self.fixed = given

    def _allocate(self, tasks: int) -> None:
        b, m, k = self.num_envs, self.servers, tasks
        self.tasks = k
        depth = k if self.whole_queue else self.window
        self.jobs = dynamics.Jobs(np.zeros((b, k, 4)), np.zeros((b, m, 2)))
        self.state = dynamics.State(
            scalars=np.zeros(b, dtype=dynamics.SCALARS),
            remaining=np.zeros((b, m, 2)),
            used=np.zeros((b, m, 2)),
            released=np.zeros((b, m), dtype=bool),
            queue_task=np.zeros((b, k), dtype=np.int32),
            queue_arrival=np.zeros((b, depth)),
            queue_execution=np.zeros((b, depth)),
            queue_demand=np.zeros((b, depth, 2)),
            queue_open=np.zeros((b, depth), dtype=np.int8),
            log_execution=np.zeros((b, k), dtype=np.float32),
            start=np.full((b, k), np.nan),
            server=np.full((b, k), -1, dtype=np.int64),
            heap_time=np.zeros((b, k)),
            heap_task=np.zeros((b, k), dtype=np.int32),
            next_running=np.zeros((b, k), dtype=np.int32),
            previous_running=np.zeros((b, k), dtype=np.int32),
            first_running=np.full((b, m), -1, dtype=np.int32),
            last_running=np.full((b, m), -1, dtype=np.int32),
        )
        units = self.parameters.observation == "dict"
        w = self.window
        own = 0 if self.config["lent"][0] or not units else w
        mask: tuple[int, ...] = (0,)
        if self.parameters.action_mask:
            mask = views.mask_shape(self.parameters.view, w, m)
        self.buffers = dynamics.Observation(
            arrival=np.zeros((b, own)),
            execution=np.zeros((b, own)),
            demand=np.zeros((b, own, 2)),
            waiting=np.zeros((b, w if units else 0)),
            task_mask=np.zeros((b, w), dtype=np.int8),
            action_mask=np.zeros((b, int(np.prod(mask))), dtype=np.int8),
            clock=np.zeros((b, 1)),
            mean_demand=np.zeros((b, 2)),
            backlog=np.zeros((b, 1), dtype=np.int64),
            epoch=np.full(b, 2, dtype=np.int64),
            arriving=np.zeros(b, dtype=np.int64),
            released=np.zeros(b, dtype=np.int64),
            task_tokens=np.zeros((b, 0 if units else w, dynamics.TASK_FEATURES), np.float32),
            server_tokens=np.zeros((b, 0 if units else m, dynamics.SERVER_FEATURES), np.float32),
            global_tokens=np.zeros((b, dynamics.GLOBAL_FEATURES), np.float32),
        )
        if self.parameters.view == "rule":
            self.buffers.action_mask[:] = 1
        elif self.parameters.view != "placement" and self.parameters.action_mask:
            self.buffers.action_mask[:, -1] = 1  # closing (route: queueing) is always feasible
        self.exchange = dynamics.Exchange(
            actions=np.zeros((b, 2), dtype=np.int64),
            decisions=np.zeros((b, 2), dtype=np.int64),
            reward=np.zeros(b),
            terminated=np.zeros(b, dtype=bool),
            truncated=np.zeros(b, dtype=bool),
            repaired=np.zeros(b, dtype=bool),
        )
        self.measured = np.zeros((b, len(self.metric_names)))

    def _bind(self) -> None:
        """See :meth:`Simulator._bind`."""
        if self.config["lent"][0]:
            state = self.state
            self.buffers = self.buffers._replace(
                arrival=state.queue_arrival,
                execution=state.queue_execution,
                demand=state.queue_demand,
            )
        buffers = self.buffers
        exchange = self.exchange
        self.actions, self.reward = exchange.actions, exchange.reward
        self.terminated, self.truncated = exchange.terminated, exchange.truncated
        self.repaired = exchange.repaired
        self.table = pack(self.constants, self.jobs, self.state, buffers, exchange)
        self.kernels = (dynamics.step,)
        self._bind_tools(tuple)
        if self.parameters.observation == "dict":
            self.scalars = ("epoch", "arriving", "released")
            names = ["clock", *self.scalars, "arrival", "execution", "demand", "waiting"]
            names += ["task_mask", "mean_demand", "backlog"]
            self.observation = {name: getattr(buffers, name) for name in names}
            self.observation["capacity"] = self.jobs.capacity
            self.observation["remaining"] = self.state.remaining
        else:
            self.scalars = ()
            self.observation = {
                "tasks": buffers.task_tokens,
                "servers": buffers.server_tokens,
                "globals": buffers.global_tokens,
                "task_mask": buffers.task_mask,
            }
        if self.parameters.action_mask:
            shape = views.mask_shape(self.parameters.view, self.window, self.servers)
            mask = buffers.action_mask.reshape((self.num_envs, *shape))
            self.observation["action_mask"] = mask

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        del state["config"]  # it is constants.config
        if self.config["lent"][0]:
            empty = np.zeros((self.num_envs, 0))
            state["buffers"] = self.buffers._replace(
                arrival=empty, execution=empty, demand=np.zeros((self.num_envs, 0, 2))
            )
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.config = state["constants"].config
        super().__setstate__(state)

    def check_workload(self, workload: Workload) -> None:
        """See :meth:`Simulator.check_workload`."""
        if workload.problem != PROBLEM.name:
            raise InvalidWorkload(f"problem: must be {PROBLEM.name!r}, got {workload.problem!r}")
        servers, tasks = len(workload.cluster["cpu"]), len(workload.jobs["arrival"])
        if servers != self.servers:
            raise InvalidWorkload(
                f"cluster: the environment has {self.servers} servers, the workload {servers}"
            )
        if self.parameters.window == "all" and tasks > self.window:
            raise InvalidWorkload(f"jobs: {tasks} tasks exceed the window, which was sized for {self.window}")

    def load(self, index: int, workload: Workload) -> None:
        """See :meth:`Simulator.load`; the arrays grow if the workload is longer than any before."""
        tasks, capacity = metrics.table(workload)
        count = tasks.shape[1]
        if count > self.tasks:
            self._grow(count)
        self.jobs.tasks[index, :count] = tasks[0]
        self.jobs.capacity[index] = capacity[0]
        self._set_count(index, count)

    def _grow(self, count: int) -> None:
        """Make room for ``count`` tasks in every environment, keeping what runs."""
        before = (self.jobs, self.state, self.buffers, self.exchange)
        self._allocate(count)
        for old, new in zip(before, (self.jobs, self.state, self.buffers, self.exchange), strict=True):
            for source, target in zip(old, new, strict=True):
                target[tuple(slice(length) for length in source.shape)] = source
        self._bind()

    def _set_count(self, index: Any, count: int) -> None:
        scalars = self.state.scalars
        scalars["tasks"][index] = count
        scalars["reward_scale"][index] = 1.0 / count
        if self.parameters.normalize:
            executions = self.jobs.tasks[index, :count, 1]
            scalars["reward_scale"][index] = 1.0 / executions.sum(axis=-1)

    def draw(self, mask: npt.NDArray[np.bool_]) -> None:
        """See :meth:`Simulator.draw`."""
        source = self.source
        draw_python(mask, self.seeds, self.episodes, source, self.jobs.tasks, self.jobs.capacity)
        self._set_count(mask, source.tasks)

    def measure(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """See :meth:`Simulator.measure`."""
        scalars = self.state.scalars
        metrics.measure(
            mask,
            np.ascontiguousarray(scalars["tasks"]),
            self.jobs.tasks,
            self.jobs.capacity,
            self.state.start,
            np.ascontiguousarray(scalars["clock"]),
            self.measured,
        )
        self.measured[:, -1] = scalars["repaired"]
        return self.measured

    def workload(self, index: int) -> Workload:
        """See :meth:`Simulator.workload`."""
        count = int(self.state.scalars["tasks"][index])
        return make_workload(self.jobs.tasks[index, :count], self.jobs.capacity[index])

    def record(self, index: int) -> ScheduleRecord:
        """See :meth:`Simulator.record`: one row per task that has started, in order of submission."""
        count = int(self.state.scalars["tasks"][index])
        start = self.state.start[index, :count]
        job = np.flatnonzero(~np.isnan(start))
        tasks = self.jobs.tasks[index, job]
        return ScheduleRecord(
            workload=self.workload(index),
            job=job,
            server=self.state.server[index, job],
            start=start[job],
            end=start[job] + tasks[:, 1],
            amount=tasks[:, 2:].copy(),
            final_time=float(self.state.scalars["clock"][index]),
            truncated=bool(self.state.scalars["truncated"][index]),
        )


def make_simulator(parameters: QueueDelayParameters, num_envs: int, id: str) -> QueueDelaySimulator:
    """The simulator behind both faces; every problem has this function in this room."""
    return QueueDelaySimulator(parameters, num_envs, id)
