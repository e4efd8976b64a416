"""The simulator of GeoAssign and GeoFair: arrays bound to the compiled kernels."""

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
from schedgym.core.workload import Workload
from schedgym.core.workload_files import load_workload
from schedgym.errors import InvalidWorkload
from schedgym.problems.geo import dynamics, metrics, views
from schedgym.problems.geo.problem import METRICS, PROBLEM, GeoParameters
from schedgym.problems.geo.rules import make_assign_scratch, make_fair_network, make_fair_scratch
from schedgym.problems.geo.workload import (
    SCHEMA,
    Source,
    Tables,
    draw_python,
    group_numbers,
    make_source,
    rebuild,
    tables,
)
from schedgym.solvers.balance import SiteLists, make_placement_scratch

__all__ = ["GeoSimulator", "make_simulator"]

DECODERS: dict[str, Callable[..., int]] = {
    "assignment": dynamics.decode_assignment,
    "shares": dynamics.decode_shares,
    "priority": dynamics.decode_priority,
    "weights": dynamics.decode_weights,
    "pick": dynamics.decode_pick,
    "rule": dynamics.decode_rule,
    "fair-rule": dynamics.decode_fair_rule,
}
RECORDED = sum(metric.recorded for metric in METRICS)
RESPONSE, FAIRNESS = ([metric.name for metric in METRICS].index(n) for n in ("mean_response", "fairness"))


class GeoSimulator(Simulator):
    """``num_envs`` clusters in one set of arrays; see :mod:`schedgym.problems.geo.dynamics`."""

    parameters: GeoParameters

    def __init__(self, parameters: GeoParameters, num_envs: int, id: str) -> None:
        super().__init__(PROBLEM, id, parameters, num_envs)
        given: Workload | None = None
        self.source: Source | None = None
        if parameters.workload is not None:
            given = load_workload(parameters.workload, SCHEMA)
            instance = tables(given)
            self.sites, lists = len(instance.slots), instance.sites
            sizes = (len(instance.arrival), len(instance.part_group), len(instance.duration))
        else:
            self.source = make_source(parameters)
            self.sites, lists = parameters.sites, self.source.lists.sites
            sizes = (self.source.jobs, *self.source.room)
        self.groups, self.choices = lists.shape
        jobs = sizes[0]
        self.window = jobs if parameters.window == "all" else int(parameters.window)
        self.mode = dynamics.SLOT
        if parameters.view in views.ORDER_VIEWS:
            self.mode = dynamics.ORDER
        elif parameters.view in views.RATIO_VIEWS:
            self.mode = dynamics.RATIO
        weights = {"response": 0.0, "fairness": 1.0, "weighted": parameters.fairness_weight}
        share = weights[parameters.objective]
        config = np.zeros(1, dtype=dynamics.CONFIG)
        for name, value in {
            "mode": self.mode,
            "window": self.window,
            "associated": parameters.dispatch_sites == "associated",
            "aggressive": parameters.aggressive,
            "work_conserving": parameters.work_conserving,
            "features": parameters.observation == "features",
            "mask": parameters.action_mask,
            "lent": parameters.window == "all" and parameters.observation == "dict",
            "strict": parameters.strict,
            "greedy": parameters.placement == "greedy",
            "response_weight": 1.0 - share,
            "fairness_weight": share,
            "normalize": parameters.normalize,
        }.items():
            config[name] = value
        self.constants = dynamics.Constants(config=config)
        space = views.action_space(parameters.view, self.window, self.groups, self.choices)
        self.continuous = not hasattr(space, "n")
        self.action_shape = tuple(space.shape or ())
        self.action_sizes = () if self.continuous else (int(getattr(space, "n")),)  # noqa: B009
        self.interface = Interface(
            id=id,
            problem=PROBLEM.name,
            view=parameters.view,
            observation=parameters.observation,
            parameters=dataclasses.asdict(parameters) | {"jobs": jobs, "sites": self.sites},
            sizes={
                "window": self.window,
                "sites": self.sites,
                "groups": self.groups,
                "choices": self.choices,
            },
        )
        self.loaded: dict[int, tuple[Workload, npt.NDArray[np.int64]]] = {}
        self.latest: tuple[Workload, Tables] | None = None
        self._allocate(*sizes)
        self._bind()
        if self.source is not None:
            self._set_lists(slice(None), self.source.slots, self.source.lists)
        self.fixed = given

    def _allocate(self, jobs: int, parts: int, tasks: int) -> None:
        b, m, k, w = self.num_envs, self.sites, self.groups, self.window
        e = k * self.choices
        self.capacity = (jobs, parts, tasks)

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
            part_start=i4(jobs + 1),
            part_group=i4(parts),
            part_first=i4(parts + 1),
            task_start=i4(jobs + 1),
            duration=f8(tasks),
            slots=np.ones((b, m), dtype=np.int64),
            sites=i8(k, self.choices),
            ascending=i8(k, self.choices),
            site_start=i8(m + 1),
            entries=i8(e),
            entry_groups=i8(e),
        )
        in_order, in_ratio = self.mode == dynamics.ORDER, self.mode == dynamics.RATIO
        self.state = dynamics.State(
            scalars=np.zeros(b, dtype=dynamics.SCALARS),
            job=i4(jobs),
            row=i4(jobs),
            arrival=f8(jobs),
            remaining=i4(jobs),
            waits=i4(jobs),
            occupied=i4(jobs),
            new=i1(jobs),
            stale=np.ones((b, jobs), dtype=np.int8),
            changed=i1(jobs),
            part=i4(jobs, k),
            unfinished=i4(jobs, k),
            waiting=i4(jobs, k),
            running=i4(jobs, e),
            assigned=i4(jobs if in_order else 0, e),
            share=f8(jobs if in_ratio else 0, e),
            order=i8(jobs),
            scratch=i8(jobs),
            cursor=i4(m),
            free=i8(m),
            runnable=i8(m),
            freed=i1(m),
            started=i4(parts),
            start=np.full((b, tasks), np.nan),
            place=i4(tasks),
            site=i4(tasks),
            owner=i4(tasks),
            heap_time=f8(tasks),
            heap_task=i4(tasks),
        )
        units = self.parameters.observation == "dict"
        shown = w if units else 0
        own = 0 if self.constants.config["lent"][0] else shown
        features = dynamics.JOB_FEATURES + k + m * (2 if in_order else 1)
        self.buffers = dynamics.Observation(
            clock=f8(1),
            event=i1(3),
            arrival=f8(own),
            age=f8(shown),
            remaining=i4(own),
            waiting=i4(own, k),
            running=i4(own, e),
            assigned=i4(own if in_order else 0, e),
            new=i1(own),
            job_mask=i1(w),
            group_mask=i1(k if units else 0),
            active=i8(1),
            backlog=i8(1),
            open_site=np.full(b, m, dtype=np.int64),
            action_mask=i1(views.mask_length(self.parameters, w)),
            job_tokens=np.zeros((b, 0 if units else w, features), np.float32),
            site_tokens=np.zeros((b, 0 if units else m, dynamics.SITE_FEATURES), np.float32),
            global_tokens=np.zeros((b, dynamics.GLOBAL_FEATURES), np.float32),
        )
        if self.parameters.view != "pick":
            self.buffers.action_mask[:] = 1  # every algorithm may always be named
        numbers = int(np.prod(self.action_shape[1:])) if self.continuous else 0
        self.exchange = dynamics.Exchange(
            choices=i8(1),
            actions=f8(w if self.continuous else 0, numbers),
            rows=np.zeros(b, dtype=np.int64),
            reward=f8(),
            terminated=np.zeros(b, dtype=bool),
            truncated=np.zeros(b, dtype=bool),
            repaired=np.zeros(b, dtype=bool),
        )
        self.measured = np.zeros((b, len(self.metric_names)))

    def _bind(self) -> None:
        """See :meth:`Simulator._bind`."""
        state, exchange = self.state, self.exchange
        if self.constants.config["lent"][0]:
            names = ("arrival", "remaining", "waiting", "running", "assigned", "new")
            self.buffers = self.buffers._replace(**{name: getattr(state, name) for name in names})
        buffers = self.buffers
        b = self.num_envs
        if self.continuous:
            self.actions = exchange.actions.reshape((b, *self.action_shape))
        else:
            self.actions = exchange.choices
        self.rows = exchange.rows
        self.reward, self.repaired = exchange.reward, exchange.repaired
        self.terminated, self.truncated = exchange.terminated, exchange.truncated
        self.table = pack(self.constants, self.jobs, state, buffers, exchange)
        shape = (self.capacity[0], self.groups, self.choices, self.sites)
        needed = (1, 1, 1, 1) if self.parameters.view == "shares" else shape

        def make_tools() -> tuple[Any, ...]:
            room = make_placement_scratch(self.groups, self.sites)
            if self.mode == dynamics.ORDER:
                return room, make_assign_scratch(*shape)
            if self.mode == dynamics.RATIO:
                return room, make_fair_scratch(*shape), make_fair_network(*needed)
            return (room,)

        self.kernels = DECODERS[self.parameters.view], dynamics.step
        self._bind_tools(make_tools)
        if self.parameters.observation == "dict":
            per_site = (b, -1, self.groups, self.choices)
            self.scalars: tuple[str, ...] = ()
            self.observation = {
                "clock": buffers.clock,
                "event": buffers.event,
                "slots": self.jobs.slots,
                "free": state.free,
                "sites": self.jobs.sites,
                "group_mask": buffers.group_mask,
                "arrival": buffers.arrival,
                "age": buffers.age,
                "remaining": buffers.remaining,
                "waiting": buffers.waiting,
                "running": buffers.running.reshape(per_site),
                "new": buffers.new,
                "job_mask": buffers.job_mask,
                "active": buffers.active,
                "backlog": buffers.backlog,
            }
            if self.mode == dynamics.ORDER:
                self.observation["assigned"] = buffers.assigned.reshape(per_site)
            if self.mode == dynamics.SLOT:
                self.scalars = ("open_site",)
                self.observation["open_site"] = buffers.open_site
        else:
            self.scalars = ()
            self.observation = {
                "jobs": buffers.job_tokens,
                "sites": buffers.site_tokens,
                "globals": buffers.global_tokens,
                "job_mask": buffers.job_mask,
            }
        if buffers.action_mask.shape[1]:
            self.observation["action_mask"] = buffers.action_mask

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__() | {"latest": None}
        if self.constants.config["lent"][0]:
            names = ("arrival", "remaining", "waiting", "running", "assigned", "new")
            none = {name: getattr(self.buffers, name)[:, :0].copy() for name in names}
            state["buffers"] = self.buffers._replace(**none)
        return state

    def check_workload(self, workload: Workload) -> None:
        """See :meth:`Simulator.check_workload`."""
        if workload.problem != PROBLEM.name:
            raise InvalidWorkload(f"problem: must be {PROBLEM.name!r}, got {workload.problem!r}")
        jobs, sites = len(workload.jobs["arrival"]), len(workload.cluster["slots"])
        if sites != self.sites:
            raise InvalidWorkload(f"cluster: the environment has {self.sites} sites, the workload {sites}")
        if self.parameters.window == "all" and jobs > self.window:
            raise InvalidWorkload(f"jobs: {jobs} jobs exceed the window, which was sized for {self.window}")
        groups, choices = self._tables(workload).sites.shape
        if choices > self.choices:
            raise InvalidWorkload(
                f"tasks.sites: a task has {choices} sites, the environment at most {self.choices}"
            )
        if groups > self.groups:
            raise InvalidWorkload(
                f"tasks.sites: {groups} different lists of sites, the environment has {self.groups} groups"
            )

    def _tables(self, workload: Workload) -> Tables:
        """The workload's arrays, its groups numbered as the generator numbers them if it knows them all."""
        if self.latest is None or self.latest[0] is not workload:  # it is checked, and then loaded
            known = None if self.source is None else self.source.lists.sites
            covered = known is not None and group_numbers(workload, known) is not None
            self.latest = (workload, tables(workload, known if covered else None))
        return self.latest[1]

    def load(self, index: int, workload: Workload) -> None:
        """See :meth:`Simulator.load`; the arrays grow if the workload is longer than any before."""
        instance = self._tables(workload)
        self._reserve(len(instance.arrival), len(instance.part_group), len(instance.duration))
        lists = SiteLists(instance.sites, instance.ascending, instance.site_start, instance.entries)
        self._set_lists(index, instance.slots, lists)
        for name in ("arrival", "part_start", "part_group", "part_first", "task_start", "duration"):
            values = getattr(instance, name)
            getattr(self.jobs, name)[index, : len(values)] = values
        self.loaded[index] = (workload, instance.task_index)
        self.state.scalars["jobs"][index] = len(instance.arrival)

    def _set_lists(self, index: Any, slots: npt.NDArray[np.int64], lists: SiteLists) -> None:
        """Set slots and site lists, which may be fewer and shorter than there is room for."""
        jobs = self.jobs
        groups, choices = lists.sites.shape
        jobs.slots[index] = slots
        for target, source in ((jobs.sites, lists.sites), (jobs.ascending, lists.ascending)):
            target[index] = -1
            target[index, :groups, :choices] = source
        jobs.site_start[index] = lists.start
        group, choice = np.divmod(lists.entries[: lists.start[-1]], choices)
        jobs.entries[index, : len(group)] = group * self.choices + choice
        jobs.entry_groups[index, : len(group)] = group
        self.state.scalars["groups"][index] = groups

    def _reserve(self, jobs: int, parts: int, tasks: int) -> None:
        """Make room for that many jobs, parts and tasks in every environment, keeping what runs."""
        wanted = (jobs, parts, tasks)
        if all(need <= room for need, room in zip(wanted, self.capacity, strict=True)):
            return
        grown = [
            room if need <= room else max(need, 2 * room)
            for need, room in zip(wanted, self.capacity, strict=True)
        ]
        before = (self.jobs, self.state, self.buffers, self.exchange)
        self._allocate(*grown)
        for old, new in zip(before, (self.jobs, self.state, self.buffers, self.exchange), strict=True):
            for source, target in zip(old, new, strict=True):
                if target.size:  # the lent ones are bound again
                    target[tuple(slice(length) for length in source.shape)] = source
        self._bind()

    def draw(self, mask: npt.NDArray[np.bool_]) -> None:
        """See :meth:`Simulator.draw`."""
        source = self.source
        assert source is not None  # a simulator without one has a fixed workload
        while True:
            jobs = self.jobs
            parts, tasks = draw_python(
                mask,
                self.seeds,
                self.episodes,
                source,
                jobs.arrival,
                jobs.part_start,
                jobs.part_group,
                jobs.part_first,
                jobs.task_start,
                jobs.duration,
            )
            if parts <= self.capacity[1] and tasks <= self.capacity[2]:
                break
            self._reserve(self.capacity[0], parts, tasks)
        for index in np.flatnonzero(mask).tolist() if self.loaded else ():
            if self.loaded.pop(index, None) is not None:
                self._set_lists(index, source.slots, source.lists)
        self.state.scalars["jobs"][mask] = source.jobs

    def measure(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """See :meth:`Simulator.measure`."""
        scalars, jobs, measured = self.state.scalars, self.jobs, self.measured
        metrics.measure(
            mask,
            np.ascontiguousarray(scalars["jobs"]),
            jobs.arrival,
            jobs.task_start,
            jobs.duration,
            jobs.slots,
            self.state.start,
            measured,
        )
        weight = self.parameters.fairness_weight
        measured[:, RECORDED] = (1.0 - weight) * measured[:, RESPONSE] + weight * measured[:, FAIRNESS]
        for k, name in enumerate(("recomputations", "violations", "repaired")):
            measured[:, RECORDED + 1 + k] = scalars[name]
        return measured

    def workload(self, index: int) -> Workload:
        """See :meth:`Simulator.workload`."""
        if index in self.loaded:
            return self.loaded[index][0]
        jobs, count = self.jobs, int(self.state.scalars["jobs"][index])
        return rebuild(
            jobs.arrival[index, :count],
            jobs.part_start[index],
            jobs.part_group[index],
            jobs.part_first[index],
            jobs.duration[index],
            jobs.sites[index],
            jobs.slots[index],
        )

    def record(self, index: int) -> ScheduleRecord:
        """See :meth:`Simulator.record`: one row per task that has started, in the workload's order."""
        scalars, jobs, state = self.state.scalars[index], self.jobs, self.state
        tasks = int(jobs.task_start[index, scalars["jobs"]])
        start = state.start[index, :tasks]
        order = np.arange(tasks)
        if index in self.loaded:
            order = np.argsort(self.loaded[index][1])
        ran = order[~np.isnan(start[order])]
        job = ran if index not in self.loaded else self.loaded[index][1][ran]
        return ScheduleRecord(
            workload=self.workload(index),
            job=job,
            server=state.site[index, ran].astype(np.int64),
            start=start[ran],
            end=start[ran] + jobs.duration[index, ran],
            amount=np.ones((len(ran), 1)),
            final_time=float(scalars["clock"]),
            truncated=False,
        )


def make_simulator(parameters: GeoParameters, num_envs: int, id: str) -> GeoSimulator:
    """The simulator behind both faces; every problem has this function in this room."""
    return GeoSimulator(parameters, num_envs, id)
