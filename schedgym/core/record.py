"""ScheduleRecord: who ran where, from when to when, with how much."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.workload import Workload

__all__ = ["ScheduleRecord"]


@dataclasses.dataclass(frozen=True, eq=False)
class ScheduleRecord:
    """What happened in one episode: the only input of metrics, validators, golden tests and pictures.

    A row is a piece of work: one job on one server over an interval with constant amounts.

    Attributes:
        workload: the instance that was scheduled.
        job: index of the job (task) in the workload; int64 [rows].
        server: index of the server (site); int64 [rows].
        start: begin of the interval, in the problem's unit of time; float64 [rows].
        end: end of the interval; float64 [rows].
        amount: what the piece holds of each resource meanwhile; float64 [rows, resources].
        final_time: the instant at which the episode ended, in the problem's unit of time.
        truncated: whether the episode ended with work left.
    """

    workload: Workload
    job: npt.NDArray[np.int64]
    server: npt.NDArray[np.int64]
    start: npt.NDArray[np.float64]
    end: npt.NDArray[np.float64]
    amount: npt.NDArray[np.float64]
    final_time: float
    truncated: bool

    def digest(self) -> str:
        """SHA-256 over the rows and the end: equal digests are equal schedules, bit for bit."""
        sha = hashlib.sha256()
        for name in ("job", "server", "start", "end", "amount"):
            array: npt.NDArray[Any] = np.ascontiguousarray(getattr(self, name))
            sha.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            sha.update(array.tobytes())
        sha.update(repr((float(self.final_time), bool(self.truncated))).encode())
        return sha.hexdigest()
