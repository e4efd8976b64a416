"""The simulator of ParallelJCT: arrays bound to the compiled kernels."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import pack
from schedgym.core.policy import Interface
from schedgym.core.record import ScheduleRecord
from schedgym.core.simulator import SHORT, SKIP, Simulator
from schedgym.core.workload import Workload, load_workload
from schedgym.errors import InvalidWorkload
from schedgym.problems.parallel_jct import dynamics, metrics, views
from schedgym.problems.parallel_jct.problem import METRICS, PROBLEM, ROUNDS, VIEWS, ParallelJCTParameters
from schedgym.problems.parallel_jct.workload import (
    SCHEMA,
    Source,
    Tables,
    draw_python,
    make_source,
    rebuild,
    tables,
)
from schedgym.solvers.placement import make_membership, make_scratch

__all__ = ["ParallelJCTSimulator", "make_simulator"]

DECODERS: dict[str, Callable[..., int]] = {
    "plan": dynamics.decode_plan,
    "pick": dynamics.decode_pick,
    "place": dynamics.decode_place,
    "search": dynamics.decode_search,
}
RECORDED = sum(metric.recorded for metric in METRICS)
PIECES_PER_TASK = 4  # rows of the log that an episode takes at first; it grows
#: what an observation tells in exact units: of the instant, waiting jobs and their tasks, running tasks, and
#: the job being planned
INSTANT = ("clock", "event", "time_to_tick")
WAITING = (
    *("job", "arrival", "age", "tasks", "first_task", "total_load", "least_energy", "energy_cap"),
    *("failed", "job_mask", "waiting", "backlog", "load", "efficiency"),
)
RUNNING = ("running", "run_job", "run_server", "run_leq", "run_remaining", "run_base", "run_extra")
PLANNED = ("open_job", "next_task", "placement", "energy")


class ParallelJCTSimulator(Simulator):
    """``num_envs`` data centres in one set of arrays; see :mod:`schedgym.problems.parallel_jct.dynamics`."""

    parameters: ParallelJCTParameters

    def __init__(self, parameters: ParallelJCTParameters, num_envs: int, id: str) -> None:
        super().__init__(PROBLEM, id, parameters, num_envs)
        given: Workload | None = None
        self.source: Source | None = None
        if parameters.workload is not None:
            given = load_workload(parameters.workload, SCHEMA)
            instance = tables(given)
            jobs, room = len(instance.arrival), len(instance.load)
            self.matrix, most = instance.matrix, room
            self.share, self.most_tasks = instance.share, instance.most_tasks
        else:
            self.source = make_source(parameters)
            jobs, room = self.source.jobs, self.source.room
            self.matrix, self.share = self.source.groups.matrix, self.source.groups.share
            self.most_tasks = self.source.most_tasks
            most = room if parameters.trace is not None else jobs * self.most_tasks
        self.groups, self.servers = self.matrix.shape
        self.window = jobs if parameters.window == "all" else int(parameters.window)
        self.task_rows = most if parameters.window == "all" else self.window * self.most_tasks
        running = parameters.running_window
        self.running_window = most if running == "all" else int(running)
        config = np.zeros(1, dtype=dynamics.CONFIG)
        for name, value in {
            "mode": [view.name for view in VIEWS].index(parameters.view),
            "rounds": ROUNDS.index(parameters.rounds),
            "drc": parameters.drc,
            "tick": parameters.tick,
            "max_time": parameters.max_time,
            "max_moves": parameters.max_moves,
            "window": self.window,
            "running_window": self.running_window,
            "most_tasks": self.most_tasks,
            "features": parameters.observation == "features",
            "mask": parameters.action_mask,
            "strict": parameters.strict,
            "normalize": parameters.normalize,
        }.items():
            config[name] = value
        self.constants = dynamics.Constants(config=config)
        self.membership = make_membership(self.matrix)
        space = views.action_space(parameters.view, self.window, self.servers, self.most_tasks)
        self.continuous = not hasattr(space, "n")
        self.action_shape = tuple(space.shape or ())
        self.action_sizes = () if self.continuous else (int(getattr(space, "n")),)  # noqa: B009
        self.interface = Interface(
            id=id,
            problem=PROBLEM.name,
            view=parameters.view,
            observation=parameters.observation,
            parameters=dataclasses.asdict(parameters) | {"jobs": jobs},
            sizes={
                "window": self.window,
                "running": self.running_window,
                "rows": self.task_rows,
                "servers": self.servers,
                "groups": self.groups,
                "tasks": self.most_tasks,
            },
        )
        self.loaded: dict[int, Workload] = {}
        self.latest: tuple[Workload, Tables] | None = None
        self._allocate(jobs, room)
        self._bind()
        self.fixed = given

    def _log(self, length: int) -> dynamics.Log:
        b = self.num_envs
        return dynamics.Log(
            task=np.zeros((b, length), dtype=np.int32),
            server=np.zeros((b, length), dtype=np.int32),
            start=np.zeros((b, length)),
            end=np.zeros((b, length)),
            base=np.zeros((b, length)),
            extra=np.zeros((b, length)),
        )

    def _allocate(self, jobs: int, tasks: int) -> None:
        b, m, r, w = self.num_envs, self.servers, self.groups, self.window
        self.capacity = (jobs, tasks)
        view = self.parameters.view

        def i4(*shape: int) -> npt.NDArray[np.int32]:
            return np.zeros((b, *shape), dtype=np.int32)

        def i8(*shape: int) -> npt.NDArray[np.int64]:
            return np.zeros((b, *shape), dtype=np.int64)

        def f8(*shape: int) -> npt.NDArray[np.float64]:
            return np.zeros((b, *shape))

        def i1(*shape: int) -> npt.NDArray[np.int8]:
            return np.zeros((b, *shape), dtype=np.int8)

        self.jobs = dynamics.Jobs(
            arrival=f8(jobs),
            first_task=i8(jobs + 1),
            total_load=f8(jobs),
            least_energy=f8(jobs),
            energy_cap_ratio=np.full((b, jobs), np.nan),
            energy_seed=i8(),
            load=f8(tasks),
            efficiency=f8(tasks, m),
            cpu=np.ones((b, m)),
            share=np.tile(self.share, (b, 1)),
        )
        self.state = dynamics.State(
            scalars=np.zeros(b, dtype=dynamics.SCALARS),
            queue=i4(jobs),
            first_row=i4(jobs),
            failed=i1(jobs),
            round=i4(jobs),
            cap=f8(jobs),
            granted=np.zeros((b, jobs), dtype=bool),
            unfinished=i4(jobs),
            launch=f8(jobs),
            completion=f8(jobs),
            energy=f8(jobs),
            task=i4(tasks),
            job=i8(tasks),
            server=i8(tasks),
            leq=f8(tasks),
            remaining=f8(tasks),
            base=f8(tasks),
            extra=f8(tasks),
            end=f8(tasks),
            run=i4(tasks),
            reserved=f8(m),
            weight=f8(m),
            available=f8(m),
            limits=f8(r),
            alive=i1(m),
            placement=i4(self.most_tasks),
            vcpu=f8(self.most_tasks),
            least=f8(self.most_tasks),
            rest=f8(self.most_tasks + 1),
            placed=i8(r),
            group_load=f8(r),
        )
        self.log = self._log(PIECES_PER_TASK * tasks)
        units = self.parameters.observation == "dict"
        shown, rows = (w, self.task_rows) if units else (0, 0)
        running = self.running_window if units else 0
        moves = self.most_tasks * m if view == "search" and not units else 0
        self.buffers = dynamics.Observation(
            clock=f8(1),
            event=i1(3),
            time_to_tick=f8(1),
            job=i8(shown),
            arrival=f8(shown),
            age=f8(shown),
            tasks=i8(shown),
            first_task=i8(shown),
            total_load=f8(shown),
            least_energy=f8(shown),
            energy_cap=f8(shown),
            failed=i1(shown),
            job_mask=i1(w),
            waiting=i8(1),
            backlog=i8(1),
            load=f8(rows),
            efficiency=f8(rows, m),
            running=i8(1),
            run_job=i8(running),
            run_server=i8(running),
            run_leq=f8(running),
            run_remaining=f8(running),
            run_base=f8(running),
            run_extra=f8(running),
            open_job=np.full(b, w, dtype=np.int64),
            next_task=np.full(b, self.most_tasks, dtype=np.int64),
            placement=np.full((b, self.most_tasks), -1, dtype=np.int32),
            energy=f8(1),
            action_mask=i1(views.mask_length(self.parameters, w, m, self.most_tasks)),
            job_tokens=np.zeros((b, 0 if units else w, dynamics.JOB_FEATURES), np.float32),
            server_tokens=np.zeros((b, 0 if units else m, dynamics.SERVER_FEATURES), np.float32),
            global_tokens=np.zeros((b, dynamics.GLOBAL_FEATURES), np.float32),
            move_tokens=np.zeros((b, moves, dynamics.MOVE_FEATURES), np.float32),
        )
        self.exchange = dynamics.Exchange(
            choices=i8(1),
            actions=f8(1 + self.most_tasks if self.continuous else 0, 2),
            rows=np.zeros(b, dtype=np.int64),
            reward=f8(),
            terminated=np.zeros(b, dtype=bool),
            truncated=np.zeros(b, dtype=bool),
            repaired=np.zeros(b, dtype=bool),
        )
        self.measured = np.zeros((b, len(self.metric_names)))

    def _bundles(self) -> tuple[Any, ...]:
        return (self.constants, self.jobs, self.state, self.log, self.buffers, self.exchange)

    def _bind(self) -> None:
        """See :meth:`Simulator._bind`."""
        exchange, buffers, b = self.exchange, self.buffers, self.num_envs
        self.actions = exchange.actions if self.continuous else exchange.choices
        self.rows = exchange.rows
        self.reward, self.repaired = exchange.reward, exchange.repaired
        self.terminated, self.truncated = exchange.terminated, exchange.truncated
        self.table = pack(*self._bundles())
        self.kernels = DECODERS[self.parameters.view], dynamics.step
        self._bind_tools(lambda: (self.membership, make_scratch(self.most_tasks, self.servers, self.groups)))
        self.scalars: tuple[str, ...] = ()
        if self.parameters.observation == "features":
            self.observation = {
                "jobs": buffers.job_tokens,
                "servers": buffers.server_tokens,
                "globals": buffers.global_tokens,
                "job_mask": buffers.job_mask,
            }
            if self.parameters.view == "search":
                self.observation["moves"] = buffers.move_tokens.reshape((b, -1, self.servers, 3))
        else:
            self.observation = {name: getattr(buffers, name) for name in INSTANT}
            self.observation["capacity"] = self.jobs.cpu
            self.observation["available"] = self.state.available
            self.observation["groups"] = np.tile(self.matrix, (b, 1, 1))
            self.observation["limits"] = self.state.limits
            self.observation |= {name: getattr(buffers, name) for name in (*WAITING, *RUNNING)}
            if self.parameters.view in views.TASK_VIEWS:
                self.observation |= {name: getattr(buffers, name) for name in PLANNED}
                self.scalars = ("open_job", "next_task")
        if buffers.action_mask.shape[1]:
            self.observation["action_mask"] = buffers.action_mask

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"latest": None}

    def _tables(self, workload: Workload) -> Tables:
        if self.latest is None or self.latest[0] is not workload:  # it is checked, and then loaded
            self.latest = (workload, tables(workload))
        return self.latest[1]

    def check_workload(self, workload: Workload) -> None:
        """See :meth:`Simulator.check_workload`."""
        if workload.problem != PROBLEM.name:
            raise InvalidWorkload(f"problem: must be {PROBLEM.name!r}, got {workload.problem!r}")
        instance = self._tables(workload)
        jobs, servers = len(instance.arrival), len(instance.cpu)
        if servers != self.servers:
            raise InvalidWorkload(f"cluster: {servers} servers, the environment has {self.servers}")
        if not np.array_equal(instance.matrix, self.matrix):
            raise InvalidWorkload("cluster: the environment has other groups of servers")
        if self.parameters.window == "all" and jobs > self.window:
            raise InvalidWorkload(f"jobs: {jobs} jobs exceed the window, which was sized for {self.window}")
        if instance.most_tasks > self.most_tasks:
            raise InvalidWorkload(
                f"tasks: a job has {instance.most_tasks} tasks, the environment at most {self.most_tasks}"
            )
        for name, room in (("window", self.task_rows), ("running_window", self.running_window)):
            if getattr(self.parameters, name) == "all" and len(instance.load) > room:
                raise InvalidWorkload(f"tasks: {len(instance.load)} tasks, {name} 'all' was sized for {room}")

    def load(self, index: int, workload: Workload) -> None:
        """See :meth:`Simulator.load`; the arrays grow if the workload is longer than any before."""
        instance = self._tables(workload)
        self._reserve(len(instance.arrival), len(instance.load))
        for name in dynamics.Jobs._fields:
            values, target = getattr(instance, name), getattr(self.jobs, name)
            if target.ndim == 1:
                target[index] = values
            else:
                target[index, : len(values)] = values
        self.state.scalars["jobs"][index] = len(instance.arrival)
        self.loaded[index] = workload

    def _reserve(self, jobs: int, tasks: int) -> None:
        """Make room for that many jobs and tasks in every environment, keeping what runs."""
        wanted = (jobs, tasks)
        if all(need <= room for need, room in zip(wanted, self.capacity, strict=True)):
            return
        grown = [
            room if need <= room else max(need, room + room // 2)
            for need, room in zip(wanted, self.capacity, strict=True)
        ]
        before = self._bundles()
        self._allocate(*grown)
        self._keep(before)

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
        while True:
            tasks = draw_python(mask, self.seeds, self.episodes, source, self.jobs)
            if tasks <= self.capacity[1]:
                break
            self._reserve(self.capacity[0], tasks)
        for index in np.flatnonzero(mask).tolist() if self.loaded else ():
            if self.loaded.pop(index, None) is not None:
                self.jobs.share[index] = self.share
        self.state.scalars["jobs"][mask] = source.jobs

    def _resume(self, command: npt.NDArray[np.int8]) -> int:
        acted, ended = command != SKIP, SHORT
        while ended == SHORT:
            before = self._bundles()
            self.log = self._log(2 * self.log.task.shape[1])
            self._keep(before)
            resume = np.where(self.state.scalars["short"] & acted, dynamics.RESUME, SKIP).astype(np.int8)
            ended = dynamics.step(self.table, self.toolboxes[0], resume)
        return int(np.count_nonzero(acted & (self.terminated | self.truncated)))

    def _work(self, index: int) -> npt.NDArray[np.float64]:
        """vCPU-seconds done by each job of an episode that was cut off: all of its tasks that completed."""
        scalars, state, log = self.state.scalars[index], self.state, self.log
        count = int(scalars["logged"])
        task, length = log.task[index, :count], log.end[index, :count] - log.start[index, :count]
        jobs = int(scalars["jobs"])
        first = self.jobs.first_task[index, : jobs + 1]
        done = np.zeros(first[-1])
        np.add.at(done, task, (log.base[index, :count] + log.extra[index, :count]) * length)
        server = np.zeros(first[-1], dtype=np.int64)
        server[task] = log.server[index, :count]
        ran = np.zeros(first[-1], dtype=bool)
        ran[task] = True
        running = np.zeros(first[-1], dtype=bool)
        running[state.task[index, : scalars["running"]]] = True
        rows = np.arange(first[-1])
        whole = self.jobs.load[index, rows] / self.jobs.efficiency[index, rows, server]
        done = np.where(ran & ~running, whole, done)
        work = np.zeros(self.capacity[0])
        np.add.at(work, np.repeat(np.arange(jobs), np.diff(first)), done)
        return work

    def measure(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """See :meth:`Simulator.measure`."""
        scalars, jobs, state, measured = self.state.scalars, self.jobs, self.state, self.measured
        work = np.zeros_like(state.energy)
        for index in np.flatnonzero(mask & (scalars["truncated"] == 1)).tolist():
            work[index] = self._work(index)
        metrics.measure(
            mask,
            np.ascontiguousarray(scalars["jobs"]),
            jobs.arrival,
            jobs.total_load,
            state.granted,
            state.launch,
            state.completion,
            state.energy,
            work,
            jobs.cpu,
            np.ascontiguousarray(scalars["clock"]),
            measured,
        )
        for k, name in enumerate(("failures", "rounds", "repaired")):
            measured[:, RECORDED + k] = scalars[name]
        return measured

    def workload(self, index: int) -> Workload:
        """See :meth:`Simulator.workload`."""
        if index in self.loaded:
            return self.loaded[index]
        assert self.source is not None
        jobs, count = self.jobs, int(self.state.scalars["jobs"][index])
        return rebuild(
            self.source,
            jobs.arrival[index, :count],
            jobs.first_task[index, : count + 1],
            jobs.load[index],
            jobs.efficiency[index],
            int(jobs.energy_seed[index]),
        )

    def record(self, index: int) -> ScheduleRecord:
        """See :meth:`Simulator.record`: one row per piece of a task with constant vCPU, by (start, task)."""
        scalars, log = self.state.scalars[index], self.log
        count = int(scalars["logged"])
        order = np.lexsort((log.task[index, :count], log.start[index, :count]))
        columns = (log.base[index, :count][order], log.extra[index, :count][order])
        return ScheduleRecord(
            workload=self.workload(index),
            job=log.task[index, :count][order].astype(np.int64),
            server=log.server[index, :count][order].astype(np.int64),
            start=log.start[index, :count][order],
            end=log.end[index, :count][order],
            amount=np.column_stack(columns),
            final_time=float(scalars["clock"]),
            truncated=bool(scalars["truncated"]),
        )


def make_simulator(parameters: ParallelJCTParameters, num_envs: int, id: str) -> ParallelJCTSimulator:
    """The simulator behind both faces; every problem has this function in this room."""
    return ParallelJCTSimulator(parameters, num_envs, id)
