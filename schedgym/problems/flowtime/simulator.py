"""The simulator of FlowtimePacking: the sizes of its arrays, and its records."""

from __future__ import annotations

import numpy as np

from schedgym.core.arrays import Integers, sizes_of
from schedgym.core.record import ScheduleRecord
from schedgym.core.simulator import Simulator
from schedgym.core.workload import Workload
from schedgym.errors import InvalidParameter, InvalidWorkload
from schedgym.problems.flowtime import metrics, rules, workload
from schedgym.problems.flowtime.columns import JOB_FEATURES
from schedgym.problems.flowtime.problem import PROBLEM, FlowtimeParameters

RUNS_PER_JOB = 8  # of the schedule, for which there are rows at first


class FlowtimeSimulator(Simulator):
    """``num_envs`` clusters in one set of arrays; see :mod:`schedgym.problems.flowtime.dynamics`."""

    parameters: FlowtimeParameters
    log = "run"

    def __init__(self, parameters: FlowtimeParameters, num_envs: int, id: str) -> None:
        super().__init__(PROBLEM, id, parameters, num_envs)
        lengths, self.server_cpu, self.most_tasks = self._lengths()
        jobs, self.servers = lengths["job"], len(self.server_cpu)
        self.latency = lengths["latency_row"] > 0
        self.window = jobs if parameters.window == "all" else int(parameters.window)
        phased = parameters.kind == "mapreduce"
        how = rules.STICKY if parameters.packing == "sticky" else rules.FRESH
        if parameters.kind == "2d":
            how = rules.PLACE
        elif self.latency:
            how = rules.LOCALITY
        phase_tasks = 2 * self.most_tasks if phased else 0
        self._set_up(
            sizes=lengths
            | {
                "window": self.window,
                "memory_row": 0,
                "net_row": self._net_rows(jobs),
                "phase": 2 if phased else 0,
                "phase_task": phase_tasks,
                "phase_task_server": phase_tasks * self.servers if self.latency else 0,
                "most_tasks": self.most_tasks,
                "run": RUNS_PER_JOB * jobs + 2 * min(int(self.server_cpu.sum()), jobs * self.servers),
                "job_feature": JOB_FEATURES + self.servers,
            },
            config={
                "pick": parameters.view == "pick",
                "phases": phased,
                "how": how,
            },
            known={"jobs": jobs},
            visible={"window": self.window, "servers": self.servers, "tasks": self.most_tasks},
        )

    def _lengths(self) -> tuple[dict[str, int], Integers, int]:
        """Return the lengths of the workload's dimensions, the servers' cores, and a phase's most tasks."""
        if self.fixed is None:
            return self.source.sizes, self.source.server_cpu, self.source.phase_tasks
        kind, given = workload.kind_of(self.fixed), workload.tables(self.fixed)
        if kind != self.parameters.kind:
            raise InvalidParameter(
                f"kind: the workload's jobs are of kind {kind!r}, got {self.parameters.kind!r}"
            )
        if self.parameters.estimation != "none" and not {*workload.NOISE_FIELDS} & {*self.fixed.jobs}:
            raise InvalidParameter("estimation: has no effect on a workload without declared demands")
        lengths = sizes_of(given) | {"task": int(given.first_task[-1])}
        return lengths, given.server_cpu, int(given.tasks.max())

    def _net_rows(self, jobs: int) -> int:
        """Return the number of rows of the network that packs by latency."""
        cores = int(self.server_cpu.sum())
        return rules.locality_rows(jobs, self.most_tasks, cores) if self.latency else 0

    def now(self, index: int) -> tuple[float, int]:
        """See :meth:`Simulator.now`; what comes in the slot to be decided has not arrived yet."""
        slot, arrived = super().now(index)
        return slot - 1, arrived

    def _initialise(self) -> None:
        arrays, parameters = self.arrays, self.parameters
        arrays.objective.weights[()] = parameters.norm, parameters.alpha
        arrays.jobs.server_cpu[:] = self.server_cpu
        if parameters.view == "rule":
            arrays.observation.action_mask[:] = 1
        elif parameters.view == "pick" and parameters.action_mask:
            arrays.observation.action_mask[:, -1] = 1  # closing the slot is always feasible
        if self.zero_copy:
            self.arrays = arrays._replace(shown=arrays.rows)

    def _check_length(self, given: Workload, prefix: str = "") -> None:
        workload.check_length(given, prefix)

    def _check(self, workload: Workload) -> None:
        own, jobs = self.instance(workload), len(workload.jobs["arrival"])
        if own.kind != self.parameters.kind:
            raise InvalidWorkload(
                f"jobs: the environment is of kind {self.parameters.kind!r}, the workload {own.kind!r}"
            )
        self._check_size("servers", self.servers, len(own.server_cpu))
        self._check_window(jobs)
        if own.tasks.max() > self.most_tasks:
            raise InvalidWorkload(
                f"jobs: a phase has {own.tasks.max()} tasks, the environment at most {self.most_tasks}"
            )
        if "latency" in workload.tasks and not self.latency:
            raise InvalidWorkload("tasks.latency: the environment was made without latencies")

    def _instance(self, given: Workload) -> workload.Jobs:
        """See :meth:`Simulator._instance`; without latencies they are zero where the environment has some."""
        jobs = workload.tables(given)
        if self.latency and len(jobs.latency) == 0:
            jobs = jobs._replace(latency=np.zeros((jobs.first_task[-1], len(jobs.server_cpu))))
        return jobs

    def load(self, index: int, workload: Workload) -> None:
        """See :meth:`Simulator.load`."""
        jobs = self.instance(workload)
        self.reserve(task=int(jobs.first_task[-1]), net_row=self._net_rows(len(jobs.arrival)))
        super().load(index, workload)

    def record(self, index: int) -> ScheduleRecord:
        """See :meth:`Simulator.record`: one row per job, server, and run of slots with the same cores."""
        schedule = metrics.Schedule(*(array[index] for array in self.arrays.schedule))
        count = int(schedule.extent["rows"])
        job = schedule.job[:count].astype(np.int64)
        amount = [schedule.cores[:count]]
        if self.parameters.kind == "2d":
            amount.append(self.jobs.declared_memory[index, job])
        return ScheduleRecord(
            workload=self.workload(index),
            job=job,
            server=schedule.server[:count].astype(np.int64),
            start=schedule.start[:count].astype(np.float64),
            end=schedule.end[:count].astype(np.float64),
            amount=np.column_stack(amount).astype(np.float64),
            final_time=float(schedule.extent["slot"]),
            truncated=bool(self.truncated[index]),
        )


make_simulator = FlowtimeSimulator
