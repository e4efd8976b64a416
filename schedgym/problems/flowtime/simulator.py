"""The simulator of FlowtimePacking: arrays bound to the compiled kernels."""

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
from schedgym.errors import InvalidParameter, InvalidWorkload
from schedgym.problems.flowtime import dynamics, metrics, rules, views
from schedgym.problems.flowtime.problem import ESTIMATIONS, PROBLEM, FlowtimeParameters
from schedgym.problems.flowtime.workload import (
    SCHEMA,
    Source,
    Tables,
    draw_python,
    kind_of,
    make_source,
    rebuild,
    tables,
)
from schedgym.solvers.transport import make_transport_scratch

__all__ = ["FlowtimeSimulator", "make_simulator"]

DECODERS: dict[str, Callable[..., int]] = {
    "allocation": dynamics.decode_allocation,
    "priority": dynamics.decode_priority,
    "pick": dynamics.decode_pick,
    "rule": dynamics.decode_rule,
}
RUNS_PER_JOB = 8  # room that the log of an episode takes at first; it grows
#: rows of jobs by name in the observation -> field of Rows; those of length 0 are left out
NAMES = {
    **{name: name for name in ("job", "arrival", "age", "slots_left", "remaining", "volume", "cap")},
    **{
        name: name for name in ("held", "last", "processing", "demand", "memory", "granted", "tasks", "phase")
    },
    "phase_processing": "processing",
    "phase_demand": "demand",
    "task_remaining": "task_remaining",
    "latency": "latency",
}


class FlowtimeSimulator(Simulator):
    """``num_envs`` clusters in one set of arrays; see :mod:`schedgym.problems.flowtime.dynamics`."""

    parameters: FlowtimeParameters
    draws_in_place = True

    def __init__(self, parameters: FlowtimeParameters, num_envs: int, id: str) -> None:
        super().__init__(PROBLEM, id, parameters, num_envs)
        given: Workload | None = None
        self.source: Source | None = None
        if parameters.workload is not None:
            given = load_workload(parameters.workload, SCHEMA)
            if kind_of(given) != parameters.kind:
                raise InvalidParameter(
                    f"kind: the workload's jobs are of kind {kind_of(given)!r}, got {parameters.kind!r}"
                )
            instance = tables(given)
            jobs, room = len(instance.arrival), int(instance.first_task[-1])
            self.server_cpu = instance.server_cpu
            self.most_tasks, self.latency = int(instance.tasks.max()), len(instance.latency) > 0
        else:
            self.source = make_source(parameters)
            jobs, room = self.source.jobs, self.source.room
            self.server_cpu = self.source.server_cpu
            self.most_tasks, self.latency = self.source.phase_tasks, self.source.has_latency
        self.servers = len(self.server_cpu)
        self.window = jobs if parameters.window == "all" else int(parameters.window)
        how = rules.STICKY if parameters.packing == "sticky" else rules.FRESH
        if parameters.kind == "2d":
            how = rules.PLACE
        elif self.latency:
            how = rules.LOCALITY
        config = np.zeros(1, dtype=dynamics.CONFIG)
        for name, value in {
            "window": self.window,
            "pick": parameters.view == "pick",
            "memory": parameters.kind == "2d",
            "phases": parameters.kind == "mapreduce",
            "estimation": ESTIMATIONS.index(parameters.estimation),
            "norm": parameters.norm,
            "alpha": parameters.alpha,
            "gamma": parameters.gamma,
            "normalize": parameters.normalize,
            "how": how,
            "clairvoyant": parameters.clairvoyant,
            "features": parameters.observation == "features",
            "mask": parameters.action_mask,
            "lent": parameters.window == "all" and parameters.observation == "dict",
            "strict": parameters.strict,
        }.items():
            config[name] = value
        self.constants = dynamics.Constants(config=config)
        space = views.action_space(parameters.view, self.window, self.servers)
        self.continuous = not hasattr(space, "n")
        self.action_shape = tuple(space.shape or ())
        self.action_sizes = () if self.continuous else (int(getattr(space, "n")),)  # noqa: B009
        self.interface = Interface(
            id=id,
            problem=PROBLEM.name,
            view=parameters.view,
            observation=parameters.observation,
            parameters=dataclasses.asdict(parameters) | {"jobs": jobs},
            sizes={"window": self.window, "servers": self.servers, "tasks": self.most_tasks},
        )
        self.loaded: dict[int, Workload] = {}
        self._allocate(jobs, room)
        self._bind()
        self.fixed = given

    def _rows(self, length: int) -> dynamics.Rows:
        b, m = self.num_envs, self.servers
        plain = length if self.parameters.kind != "mapreduce" else 0
        phased = length - plain

        def i8(*shape: int) -> npt.NDArray[np.int64]:
            return np.zeros((b, *shape), dtype=np.int64)

        return dynamics.Rows(
            job=i8(length),
            arrival=i8(length),
            age=i8(length),
            processing=i8(plain),
            demand=i8(plain),
            memory=i8(length if self.parameters.kind == "2d" else 0),
            slots_left=np.zeros((b, length)),
            remaining=np.zeros((b, length)),
            volume=i8(length),
            cap=i8(length),
            held=i8(length, m),
            last=np.zeros((b, length, m), dtype=np.int8),
            granted=i8(length, m),
            tasks=i8(phased, 2),
            phase_processing=i8(phased, 2),
            phase_demand=i8(phased, 2),
            phase=i8(length),
            task_remaining=i8(phased, 2 * self.most_tasks),
            latency=np.zeros((b, phased, 2 * self.most_tasks * m if self.latency else 0)),
        )

    def _log(self, length: int) -> dynamics.Log:
        b = self.num_envs
        return dynamics.Log(
            job=np.zeros((b, length), dtype=np.int32),
            server=np.zeros((b, length), dtype=np.int32),
            start=np.zeros((b, length), dtype=np.int64),
            end=np.zeros((b, length), dtype=np.int64),
            cores=np.zeros((b, length), dtype=np.int64),
        )

    def _allocate(self, jobs: int, tasks: int) -> None:
        b, m, w = self.num_envs, self.servers, self.window
        self.capacity = (jobs, tasks)

        def i8(*shape: int) -> npt.NDArray[np.int64]:
            return np.zeros((b, *shape), dtype=np.int64)

        def i1(*shape: int) -> npt.NDArray[np.int8]:
            return np.zeros((b, *shape), dtype=np.int8)

        self.jobs = dynamics.Jobs(
            arrival=i8(jobs),
            tasks=i8(jobs, 2),
            processing=i8(jobs, 2),
            cpu=i8(jobs, 2),
            memory=i8(jobs),
            declared_cpu=i8(jobs),
            declared_memory=i8(jobs),
            first_task=np.zeros((b, jobs + 1), dtype=np.int32),
            latency=np.zeros((b, tasks if self.latency else 0, m)),
            server_cpu=np.ones((b, m), dtype=np.int64),
            server_memory=i8(m),
        )
        self.jobs.server_cpu[:] = self.server_cpu
        self.row_arrays = self._rows(jobs)
        self.state = dynamics.State(
            scalars=np.zeros(b, dtype=dynamics.SCALARS),
            left=i8(jobs),
            task_left=i8(tasks),
            before=i8(jobs),
            run=np.full((b, jobs, m), -1, dtype=np.int32),
            free=i8(m),
            free_memory=i8(m),
            completion=i8(jobs),
            scores=np.zeros((b, jobs)),
        )
        self.log = self._log(RUNS_PER_JOB * jobs + 2 * int(self.server_cpu.sum()))
        units = self.parameters.observation == "dict"
        self.buffers = dynamics.Observation(
            slot=i8(1),
            eq27=np.zeros((b, 1)),
            active=i8(1),
            backlog=i8(1),
            job_mask=i1(w),
            action_mask=i1(views.mask_length(self.parameters, w)),
            job_tokens=np.zeros((b, 0 if units else w, dynamics.JOB_FEATURES + m), np.float32),
            server_tokens=np.zeros((b, 0 if units else m, dynamics.SERVER_FEATURES), np.float32),
            global_tokens=np.zeros((b, dynamics.GLOBAL_FEATURES), np.float32),
        )
        if self.parameters.view == "rule":
            self.buffers.action_mask[:] = 1
        elif self.parameters.view == "pick" and self.parameters.action_mask:
            self.buffers.action_mask[:, -1] = 1  # closing the slot is always feasible
        self.shown = self._rows(w if units and not self.constants.config["lent"][0] else 0)
        numbers = int(np.prod(self.action_shape[1:])) if self.continuous else 0
        self.exchange = dynamics.Exchange(
            choices=i8(1),
            actions=np.zeros((b, w if self.continuous else 0, numbers)),
            rows=np.zeros(b, dtype=np.int64),
            reward=np.zeros(b),
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
        exchange, buffers, b = self.exchange, self.buffers, self.num_envs
        if self.continuous:
            self.actions = exchange.actions.reshape((b, *self.action_shape))
        else:
            self.actions = exchange.choices
        self.rows = exchange.rows
        self.reward, self.repaired = exchange.reward, exchange.repaired
        self.terminated, self.truncated = exchange.terminated, exchange.truncated
        self.table = pack(*self._bundles())
        rows = 0
        if self.latency:
            most = rules.locality_rows(self.capacity[0], self.most_tasks, int(self.server_cpu.sum()))
            rows = int(most)
        self.kernels = DECODERS[self.parameters.view], dynamics.step
        self._bind_tools(
            lambda: (
                rules.make_scratch(self.capacity[0], self.servers),
                make_transport_scratch(rows, self.servers),
            )
        )
        self.scalars: tuple[str, ...] = ()
        if self.parameters.observation == "features":
            self.observation = {
                "jobs": buffers.job_tokens,
                "servers": buffers.server_tokens,
                "globals": buffers.global_tokens,
                "job_mask": buffers.job_mask,
            }
        else:
            self.observation = {"slot": buffers.slot, "server_cpu": self.jobs.server_cpu}
            shown = self.row_arrays if self.constants.config["lent"][0] else self.shown
            kind, pick = self.parameters.kind, self.parameters.view == "pick"
            for field, name in NAMES.items():
                array = getattr(shown, field)
                if array.shape[1] == 0 or array.shape[-1] == 0 or (field == "granted" and not pick):
                    continue
                if field == "phase" and kind != "mapreduce":
                    continue
                if field == "task_remaining":
                    array = array.reshape((b, -1, 2, self.most_tasks))
                elif field == "latency":
                    array = array.reshape((b, -1, 2, self.most_tasks, self.servers))
                self.observation[name] = array
            self.observation["job_mask"] = buffers.job_mask
            self.observation["active"], self.observation["backlog"] = buffers.active, buffers.backlog
            if kind == "2d":
                self.observation["server_memory"] = self.jobs.server_memory
            if self.parameters.clairvoyant:
                self.observation["eq27"] = buffers.eq27
            if pick:
                self.observation["free"] = self.state.free
                if kind == "2d":
                    self.observation["free_memory"] = self.state.free_memory
        if buffers.action_mask.shape[1]:
            self.observation["action_mask"] = buffers.action_mask

    def check_workload(self, workload: Workload) -> None:
        """See :meth:`Simulator.check_workload`."""
        if workload.problem != PROBLEM.name:
            raise InvalidWorkload(f"problem: must be {PROBLEM.name!r}, got {workload.problem!r}")
        kind, instance = kind_of(workload), tables(workload)
        if kind != self.parameters.kind:
            raise InvalidWorkload(
                f"jobs: the environment is of kind {self.parameters.kind!r}, the workload {kind!r}"
            )
        if len(instance.server_cpu) != self.servers:
            raise InvalidWorkload(
                f"cluster: {len(instance.server_cpu)} servers, the environment has {self.servers}"
            )
        if self.parameters.window == "all" and len(instance.arrival) > self.window:
            raise InvalidWorkload(
                f"jobs: {len(instance.arrival)} jobs exceed the window, which was sized for {self.window}"
            )
        if instance.tasks.max() > self.most_tasks:
            raise InvalidWorkload(
                f"jobs: a phase has {instance.tasks.max()} tasks, the environment at most {self.most_tasks}"
            )
        if len(instance.latency) and not self.latency:
            raise InvalidWorkload("tasks.latency: the environment was made without latencies")

    def load(self, index: int, workload: Workload) -> None:
        """See :meth:`Simulator.load`; the arrays grow if the workload is longer than any before."""
        instance: Tables = tables(workload)
        self._reserve(len(instance.arrival), int(instance.first_task[-1]))
        for name in dynamics.Jobs._fields:
            values, target = getattr(instance, name), getattr(self.jobs, name)[index]
            if name == "latency":
                target[:] = 0.0
            target[: len(values)] = values
        self.state.scalars["jobs"][index] = len(instance.arrival)
        self.loaded[index] = workload

    def _reserve(self, jobs: int, tasks: int) -> None:
        """Make room for that many jobs and tasks in every environment, keeping what runs."""
        wanted = (jobs, tasks)
        if all(need <= room for need, room in zip(wanted, self.capacity, strict=True)):
            return
        before = self._bundles()
        self._allocate(*(max(pair) for pair in zip(wanted, self.capacity, strict=True)))
        self._keep(before)

    def _grow_log(self) -> None:
        before = self._bundles()
        self.log = self._log(2 * self.log.job.shape[1])
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
        draw_python(mask, self.seeds, self.episodes, source, self.jobs)
        for index in np.flatnonzero(mask).tolist() if self.loaded else ():
            self.loaded.pop(index, None)
        self.state.scalars["jobs"][mask] = source.jobs

    def _reserve_log(self) -> None:
        cores = int(self.state.scalars["cores"].max())
        if self.state.scalars["logged"].max() + cores > self.log.job.shape[1]:
            self._grow_log()

    def measure(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """See :meth:`Simulator.measure`."""
        scalars, jobs, log = self.state.scalars, self.jobs, self.log
        metrics.measure(
            mask,
            np.ascontiguousarray(scalars["jobs"]),
            jobs.arrival,
            jobs.tasks,
            jobs.processing,
            jobs.cpu,
            jobs.server_cpu,
            np.ascontiguousarray(scalars["logged"]),
            log.job,
            log.server,
            log.start,
            log.end,
            log.cores,
            np.ascontiguousarray(scalars["last_slot"]),
            self.parameters.kind == "mapreduce",
            self.parameters.norm,
            self.parameters.alpha,
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
        assert self.source is not None
        return rebuild(Tables(**fields, kind=self.parameters.kind), declared=self.source.declared)

    def record(self, index: int) -> ScheduleRecord:
        """See :meth:`Simulator.record`: one row per job, server, and run of slots with the same cores."""
        scalars, log = self.state.scalars[index], self.log
        count = int(scalars["logged"])
        job = log.job[index, :count].astype(np.int64)
        amount = log.cores[index, :count, np.newaxis].astype(np.float64)
        if self.parameters.kind == "2d":
            memory = self.jobs.declared_memory[index, job].astype(np.float64)
            amount = np.column_stack([amount, memory])
        return ScheduleRecord(
            workload=self.workload(index),
            job=job,
            server=log.server[index, :count].astype(np.int64),
            start=log.start[index, :count].astype(np.float64),
            end=log.end[index, :count].astype(np.float64),
            amount=amount,
            final_time=float(scalars["last_slot"]),
            truncated=bool(scalars["truncated"]),
        )


def make_simulator(parameters: FlowtimeParameters, num_envs: int, id: str) -> FlowtimeSimulator:
    """The simulator behind both faces; every problem has this function in this room."""
    return FlowtimeSimulator(parameters, num_envs, id)
