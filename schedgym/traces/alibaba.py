"""The Alibaba GPU cluster trace of 2023 (github.com/alibaba/clusterdata, folder cluster-trace-gpu-v2023).

Weng et al., Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent,
USENIX ATC 2023. One CSV file of pods (a pod is a task here) and one of nodes, each with a header:

    name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
    sn,cpu_milli,memory_mib,gpu,model

The columns of GPUs are ignored: the problems here schedule processors and memory.
"""

from __future__ import annotations

import math
from pathlib import Path

from schedgym.traces.base import (
    NO_EXECUTION,
    Column,
    Format,
    Rows,
    Table,
    Trace,
    check_limit,
    read_machines,
    refuse_empty,
)

__all__ = ["FORMAT", "read_alibaba"]

MILLI = 1000.0  # per core
MIB_PER_GIB = 1024.0

PODS = (
    Column("cpu_milli", "1/1000 core"),
    Column("memory_mib", "MiB"),
    Column("creation_time", "s"),
    Column("deletion_time", "s"),
    Column("scheduled_time", "s", optional=True),  # empty for pods that never ran
)
# a machine of no size would make every share of it undefined
NODES = (
    Column("cpu_milli", "1/1000 core", exclusive=True),
    Column("memory_mib", "MiB", exclusive=True),
)


def read_alibaba(
    path: str | Path,
    nodes: str | Path | None = None,
    *,
    on_error: str = "raise",
    limit: int | None = None,
) -> Trace:
    """Read a list of pods, and a list of nodes, of the Alibaba GPU cluster trace 2023.

    Arrival is ``creation_time``; duration is ``deletion_time - scheduled_time``, or
    ``deletion_time - creation_time`` for a pod that was never scheduled. Pods whose duration is not
    positive are left out and counted under "execution <= 0". Every phase counts, also Failed and Pending.
    Columns are found by their names in the header; those of GPUs, and unknown ones, are ignored.

    Arguments and errors are those of :func:`~schedgym.traces.read_trace`; both lists are ``.csv`` or
    ``.csv.gz``.
    """
    check_limit(limit)
    pods = Table(path, PODS, on_error=on_error)
    kept = Rows("arrival", "duration", "cores", "memory")
    for cpu_milli, memory_mib, created, deleted, scheduled in pods:
        execution = deleted - (created if math.isnan(scheduled) else scheduled)
        if execution <= 0:
            pods.dropped[NO_EXECUTION] += 1
            continue
        kept.add(created, execution, cpu_milli / MILLI, memory_mib / MIB_PER_GIB)
        if len(kept) == limit:
            break
    refuse_empty(pods.path, "task", kept, pods.dropped)
    machines, dropped = read_machines(nodes, NODES, on_error, (MILLI, MIB_PER_GIB))
    return Trace(
        "alibaba",
        **kept.arrays(),
        **machines,
        dropped={**pods.dropped, **dropped},
        files=(pods.path,) if nodes is None else (pods.path, Path(nodes)),
    )


def _recognises(line: str) -> bool:
    # two names are enough: a header that lacks a third is better refused by name than as unknown
    names = {name.strip() for name in line.split(",")}
    return len(names & {column.name for column in PODS}) >= 2


FORMAT = Format(
    "alibaba",
    "Alibaba GPU cluster trace 2023, lists of pods and nodes (github.com/alibaba/clusterdata)",
    _recognises,
    read_alibaba,
)
