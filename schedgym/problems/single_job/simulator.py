"""The simulator of SingleJob: arrays bound to the compiled kernels."""

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
from schedgym.problems.single_job import dynamics, metrics, views
from schedgym.problems.single_job.problem import METRICS, PROBLEM, SingleJobParameters
from schedgym.problems.single_job.workload import (
    SCHEMA,
    Source,
    Tables,
    draw_python,
    make_source,
    rebuild,
    tables,
)
from schedgym.solvers.placement import Membership, make_membership, make_scratch

__all__ = ["SingleJobSimulator", "make_simulator"]

DECODERS: dict[str, Callable[..., int]] = {
    "plan": dynamics.decode_plan,
    "place": dynamics.decode_place,
    "search": dynamics.decode_search,
}
MODES = {"plan": dynamics.PLAN, "place": dynamics.PLACE, "search": dynamics.SEARCH}
RECORDED = sum(metric.recorded for metric in METRICS)


class SingleJobSimulator(Simulator):
    """``num_envs`` jobs in one set of arrays; see :mod:`schedgym.problems.single_job.dynamics`.

    Attributes:
        tasks: room for tasks N.
        servers: M.
        groups: room for groups R.
        matrix: which servers each group holds, of the drawn jobs or the fixed one; int8 [R, M].
    """

    parameters: SingleJobParameters
    draws_in_place = True

    def __init__(self, parameters: SingleJobParameters, num_envs: int, id: str) -> None:
        super().__init__(PROBLEM, id, parameters, num_envs)
        given: Workload | None = None
        self.source: Source | None = None
        if parameters.workload is not None:
            given = load_workload(parameters.workload, SCHEMA)
            instance = tables(given)
            self.tasks, self.matrix = len(instance.load), instance.matrix
        else:
            self.source = make_source(parameters)
            self.tasks, self.matrix = self.source.tasks, self.source.groups.matrix
        self.groups, self.servers = self.matrix.shape
        config = np.zeros(1, dtype=dynamics.CONFIG)
        for name, value in {
            "mode": MODES[parameters.view],
            "terminal": parameters.reward == "terminal",
            "max_moves": parameters.max_moves,
            "features": parameters.observation == "features",
            "mask": parameters.action_mask,
            "strict": parameters.strict,
            "normalize": parameters.normalize,
        }.items():
            config[name] = value
        self.constants = dynamics.Constants(config=config)
        space = views.action_space(parameters.view, self.tasks, self.servers)
        self.continuous = not hasattr(space, "n")
        self.action_shape = tuple(space.shape or ())
        self.action_sizes = () if self.continuous else (int(getattr(space, "n")),)  # noqa: B009
        self.interface = Interface(
            id=id,
            problem=PROBLEM.name,
            view=parameters.view,
            observation=parameters.observation,
            parameters=dataclasses.asdict(parameters) | {"tasks": self.tasks},
            sizes={"tasks": self.tasks, "servers": self.servers, "groups": self.groups},
        )
        self.loaded: dict[int, Workload] = {}
        self.latest: tuple[Workload, Tables] | None = None
        self._allocate()
        self._set_lists(0, make_membership(self.matrix))
        if self.member is not None:
            self.member[:] = self.matrix
        self._bind()
        self.fixed = given

    def _allocate(self) -> None:
        b, n, m, r = self.num_envs, self.tasks, self.servers, self.groups
        parameters = self.parameters
        units = parameters.observation == "dict"
        plan = n if parameters.view == "plan" else 0
        pairs = n if parameters.view in views.PAIR_VIEWS and not units else 0
        entries = int(self.matrix.sum())

        def f8(*shape: int) -> npt.NDArray[np.float64]:
            return np.zeros((b, *shape))

        def i8(*shape: int) -> npt.NDArray[np.int64]:
            return np.zeros((b, *shape), dtype=np.int64)

        def i4(*shape: int) -> npt.NDArray[np.int32]:
            return np.zeros((b, *shape), dtype=np.int32)

        def i1(*shape: int) -> npt.NDArray[np.int8]:
            return np.zeros((b, *shape), dtype=np.int8)

        def f4(*shape: int) -> npt.NDArray[np.float32]:
            return np.zeros((b, *shape), dtype=np.float32)

        def lists(length: int) -> npt.NDArray[np.int64]:
            return np.zeros((1 + b, length), dtype=np.int64)

        self.jobs = dynamics.Jobs(
            tasks=i8(),
            load=f8(n),
            efficiency=f8(n, m),
            cpu=f8(m),
            limits=f8(r),
            energy_cap=f8(),
            least_energy=f8(),
            lists=i8(),
            server_start=lists(m + 1),
            server_group=lists(entries),
            group_start=lists(r + 1),
            group_server=lists(entries),
        )
        self.state = dynamics.State(
            scalars=np.zeros(b, dtype=dynamics.SCALARS),
            next_task=i8(),
            placement=i4(n),
            energy=f8(1),
            vcpu=f8(n),
            time=f8(n),
            draft=i4(plan),
            draft_vcpu=f8(plan),
            draft_fits=i8(),
            best=i4(n),
            least=f8(n),
            rest=f8(n + 1),
            inside=i8(r),
            group_load=f8(r),
            inverse=f8(0 if units else r),
            lifted=f8(0 if units else r),
            pull=f8(0 if units else m),
            narrow=f8(0 if units else m),
        )
        mask = views.mask_length(parameters, n, m)
        if parameters.view == "search":
            mask = n * m + 1  # legal moves are known by it
        features = dynamics.SERVER_FEATURES
        if parameters.view == "place":
            features += dynamics.PLACE_FEATURES
        self.buffers = dynamics.Observation(
            task_mask=i1(n),
            action_mask=i1(mask),
            job_tokens=f4(0 if units else n, dynamics.JOB_FEATURES),
            server_tokens=f4(0 if units else m, features),
            pair_tokens=f4(pairs, m * dynamics.PAIR_FEATURES),
            global_tokens=f4(dynamics.GLOBAL_FEATURES),
        )
        self.exchange = dynamics.Exchange(
            choices=i8(1),
            actions=f8(plan, 2),
            rows=i8(),
            reward=f8(),
            terminated=np.zeros(b, dtype=bool),
            truncated=np.zeros(b, dtype=bool),
            repaired=np.zeros(b, dtype=bool),
        )
        #: what observations show as ``groups``; int8 [B, R, M]
        self.member = i1(r, m) if units else None
        self.measured = np.zeros((b, len(self.metric_names)))

    def _bind(self) -> None:
        """See :meth:`Simulator._bind`."""
        jobs, state, buffers, exchange = self.jobs, self.state, self.buffers, self.exchange
        self.actions = exchange.actions if self.continuous else exchange.choices
        self.rows = exchange.rows
        self.reward, self.repaired = exchange.reward, exchange.repaired
        self.terminated, self.truncated = exchange.terminated, exchange.truncated
        self.table = pack(self.constants, jobs, state, buffers, exchange)
        self.kernels = DECODERS[self.parameters.view], dynamics.step
        self._bind_tools(lambda: (make_scratch(self.tasks, self.servers, self.groups),))
        self.scalars: tuple[str, ...] = ()
        if self.member is not None:
            self.observation = {
                "load": jobs.load,
                "efficiency": jobs.efficiency,
                "task_mask": buffers.task_mask,
                "capacity": jobs.cpu,
                "groups": self.member,
                "limits": jobs.limits,
                "energy_cap": jobs.energy_cap[:, np.newaxis],
                "energy": state.energy,
                "placement": state.placement,
            }
            if self.parameters.view == "place":
                self.scalars = ("next_task",)
                self.observation["next_task"] = state.next_task
        else:
            self.observation = {
                "jobs": buffers.job_tokens,
                "servers": buffers.server_tokens,
                "globals": buffers.global_tokens,
                "job_mask": buffers.task_mask,
            }
            if self.parameters.view in views.PAIR_VIEWS:
                shape = (self.num_envs, self.tasks, self.servers, dynamics.PAIR_FEATURES)
                self.observation["pairs"] = buffers.pair_tokens.reshape(shape)
        if views.mask_length(self.parameters, self.tasks, self.servers):
            self.observation["action_mask"] = buffers.action_mask

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"latest": None}

    def check_workload(self, workload: Workload) -> None:
        """See :meth:`Simulator.check_workload`."""
        if workload.problem != PROBLEM.name:
            raise InvalidWorkload(f"problem: must be {PROBLEM.name!r}, got {workload.problem!r}")
        tasks, servers = len(workload.jobs["load"]), len(workload.cluster["cpu"])
        if servers != self.servers:
            raise InvalidWorkload(
                f"cluster: the environment has {self.servers} servers, the workload {servers}"
            )
        if tasks > self.tasks:
            raise InvalidWorkload(f"jobs: {tasks} tasks exceed the room, which is for {self.tasks}")
        groups = len(self._tables(workload).limits)
        if groups > self.groups:
            raise InvalidWorkload(
                f"cluster: the environment has room for {self.groups} groups, the workload has {groups}"
            )

    def _tables(self, workload: Workload) -> Tables:
        """The workload's arrays; it is checked, and then loaded, often into many environments."""
        if self.latest is None or self.latest[0] is not workload:
            self.latest = (workload, tables(workload))
        return self.latest[1]

    def load(self, index: int, workload: Workload) -> None:
        """See :meth:`Simulator.load`; what the workload leaves of the room is zero."""
        if self.loaded.get(index) is workload:
            return  # no episode changes it
        instance, jobs = self._tables(workload), self.jobs
        tasks, groups = len(instance.load), len(instance.limits)
        jobs.tasks[index] = tasks
        for target, source in (
            (jobs.load[index], instance.load),
            (jobs.efficiency[index], instance.efficiency),
            (jobs.limits[index], instance.limits),
        ):
            target[: len(source)] = source
            target[len(source) :] = 0.0
        jobs.cpu[index] = instance.cpu
        jobs.energy_cap[index] = instance.energy_cap
        jobs.least_energy[index] = instance.least_energy
        matrix = np.zeros_like(self.matrix)
        matrix[:groups] = instance.matrix
        jobs.lists[index] = 0
        if not np.array_equal(matrix, self.matrix):
            self._reserve(int(matrix.sum()))
            self.jobs.lists[index] = 1 + index
            self._set_lists(1 + index, make_membership(matrix))
        if self.member is not None:
            self.member[index] = matrix
        self.loaded[index] = workload

    def _set_lists(self, row: int, membership: Membership) -> None:
        jobs = self.jobs
        for target, source in (
            (jobs.server_start, membership.server_start),
            (jobs.server_group, membership.server_group),
            (jobs.group_start, membership.group_start),
            (jobs.group_server, membership.group_server),
        ):
            target[row, : len(source)] = source

    def _reserve(self, entries: int) -> None:
        """Make room for that many pairs of a group and its server, keeping those that are there."""
        room = self.jobs.server_group.shape[1]
        if entries <= room:
            return
        grown = np.zeros((2, 1 + self.num_envs, max(entries, 2 * room)), dtype=np.int64)
        grown[0, :, :room] = self.jobs.server_group
        grown[1, :, :room] = self.jobs.group_server
        self.jobs = self.jobs._replace(server_group=grown[0], group_server=grown[1])
        self._bind()

    def draw(self, mask: npt.NDArray[np.bool_]) -> None:
        """See :meth:`Simulator.draw`."""
        source = self.source
        assert source is not None  # a simulator without one has a fixed workload
        draw_python(mask, self.seeds, self.episodes, source, self.jobs)
        for index in np.flatnonzero(mask).tolist() if self.loaded else ():
            if self.loaded.pop(index, None) is not None:
                self.jobs.lists[index] = 0
                if self.member is not None:
                    self.member[index] = self.matrix

    def measure(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """See :meth:`Simulator.measure`."""
        jobs, state, measured = self.jobs, self.state, self.measured
        start, group = jobs.server_start[:1], jobs.server_group[:1]
        if self.loaded:
            start, group = jobs.server_start[jobs.lists], jobs.server_group[jobs.lists]
        metrics.measure(
            mask,
            jobs.tasks,
            jobs.load,
            jobs.efficiency,
            jobs.cpu,
            start,
            group,
            jobs.limits,
            jobs.energy_cap,
            state.placement,
            state.vcpu,
            state.time,
            measured,
        )
        measured[:, RECORDED] = state.scalars["steps"]
        measured[:, RECORDED + 1] = state.scalars["repaired"]
        return measured

    def workload(self, index: int) -> Workload:
        """See :meth:`Simulator.workload`."""
        if index in self.loaded:
            return self.loaded[index]
        jobs = self.jobs
        assert self.source is not None  # else all workloads are loaded
        return rebuild(
            self.source,
            jobs.load[index],
            jobs.efficiency[index],
            jobs.cpu[index],
            float(jobs.energy_cap[index]),
        )

    def record(self, index: int) -> ScheduleRecord:
        """See :meth:`Simulator.record`: one row per task placed, by Eq. 16 if the plan is not whole yet."""
        state = self.state
        if self.parameters.view == "place":
            dynamics.settle(self.table, self.toolboxes[0], index)
        placed = np.flatnonzero(state.placement[index] >= 0)
        time = state.time[index, placed]
        return ScheduleRecord(
            workload=self.workload(index),
            job=placed,
            server=state.placement[index, placed].astype(np.int64),
            start=np.zeros(len(placed)),
            end=time,
            amount=state.vcpu[index, placed, np.newaxis],
            final_time=float(time.max(initial=0.0)),
            truncated=False,
        )


def make_simulator(parameters: SingleJobParameters, num_envs: int, id: str) -> SingleJobSimulator:
    """The simulator behind both faces; every problem has this function in this room."""
    return SingleJobSimulator(parameters, num_envs, id)
