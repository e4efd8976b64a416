"""The jobs of a trace on its machines: which fit, and whether a job may run across machines.

:func:`place` decides for everything that runs a trace on machines of its own.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from schedgym.core.workload import CAPACITY_TOLERANCE
from schedgym.errors import InvalidParameter
from schedgym.traces.base import RESOURCES, LeftOut, Trace, fitting
from schedgym.traces.feed import without

MOST_LEFT_OUT = 0.02  # of the work: beyond that, what is left says little of the log

#: what a model without a pool leaves out, and what one with a pool assumes
ON_SEVERAL = "jobs that run on several machines at once"
ACROSS = "a job may run across machines; fragmentation is not modelled"


@dataclasses.dataclass(frozen=True, eq=False)
class Placed:
    """The jobs that fit the machines.

    Attributes:
        trace: these jobs, and the machines, or the pool of them.
        pool: why the machines are one pool, "" if they are not.
        left_out: the jobs that fit no machine.
    """

    trace: Trace
    pool: str
    left_out: tuple[LeftOut, ...]

    @property
    def lines(self) -> list[str]:
        """A line each on the pool, on jobs that are left out, and on what limits nothing, if so."""
        lines = [f"machines: one pool, {self.pool} ({ACROSS})"] if self.pool else []
        lines += [
            f"left out: {one}; {work_text(self.trace, one.work, one.gpu_work)}" for one in self.left_out
        ]
        if self.trace.memory.any() and not self.trace.machine_memory.any():
            lines.append("memory: the machines' is not given, so that it limits nothing")
        if self.trace.gpu.any() and not self.trace.machine_gpu.any():
            lines.append("gpus: those of the machines are not given, so that they limit nothing")
        return lines


def place(trace: Trace, pool: bool | None = None) -> Placed:
    """Jobs on the machines of a trace, without those that fit none of them.

    Args:
        trace: with machines.
        pool: True if the machines are one pool of all that they have (with sites: one pool a site), False if
            every job runs on one machine, None if they are a pool where some job needs several.

    Raises:
        InvalidParameter: if the jobs that fit none are more than MOST_LEFT_OUT of the work.
    """
    why = "as asked for by --pool" if pool else "" if pool is False else _needs_several(trace)
    if why:
        trace = _pooled(trace)
    out = ~fitting(trace)
    if not out.any():
        return Placed(trace, why, ())
    most = {name: float(getattr(trace, f"machine_{name}").max()) for name in RESOURCES}
    sizes = np.max([getattr(trace, name) / most[name] for name in RESOURCES if most[name]], axis=0)
    largest = int(np.argmax(np.where(out, sizes, -1.0)))
    memory, gpu = (f"{size:.4g}" if size else "" for size in (trace.memory[largest], trace.gpu[largest]))
    cores = f"{trace.cores[largest]:g}" if trace.cores.any() else ""
    detail = f"the largest needs {size_text(trace, cores, memory, gpu)}"
    fitted, left_out = without(trace, out, "fits no machine", detail)
    amounts = {"work": trace.work if trace.cores.any() else trace.duration * trace.memory}
    if trace.gpu.any():
        amounts["GPU-hours"] = trace.gpu_work
    shares = {what: float(work[out].sum() / (work.sum() or 1.0)) for what, work in amounts.items()}
    what = max(shares, key=shares.__getitem__)
    share = shares[what]
    if share > MOST_LEFT_OUT or out.all():
        who = "no job of the log fits any" if out.all() else f"{out.sum()} of {len(out)} jobs fit none"
        who += " of them" if not why else " of them, though they are one pool"
        across = ", --pool if a job may run across them" if fitting(_pooled(trace))[out].any() else ""
        gone = work_text(trace, left_out[0].work, left_out[0].gpu_work)
        raise InvalidParameter(
            f"machines: {who}, {100 * share:.3g}% of the {what} ({gone}); "
            f"{detail}: give larger machines{across}, or the unit "
            "if it is another, as in --columns 'memory=COLUMN [MiB]'"
        )
    return Placed(fitted, why, tuple(left_out))


def _needs_several(trace: Trace) -> str:
    """Why jobs need several machines, "" if none does."""
    cores = trace.machine_cores
    if len(cores) < 2:
        return ""
    count = len(trace.arrival)
    if len(trace.nodes) and (several := trace.nodes > 1).any():
        return f"as {several.sum()} of {count} jobs ran on several nodes, one on {np.nanmax(trace.nodes):g}"
    for name in ("cores", "gpu"):
        demand, capacity = getattr(trace, name), getattr(trace, f"machine_{name}")
        most, total = ((1.0 + CAPACITY_TOLERANCE) * float(size) for size in (capacity.max(), capacity.sum()))
        larger = (demand > most) & (demand <= total)
        if larger.any():
            one = f"{demand[larger].max():g}"
            size = size_text(trace, one) if name == "cores" else f"{one} GPUs"
            return f"as {larger.sum()} of {count} jobs need more than any machine has, one {size}"
    return ""


def _pooled(trace: Trace) -> Trace:
    """The trace with the machines as one pool, or one of each site."""
    sites, own = np.unique(trace.machine_site, return_inverse=True)
    if not len(sites):
        own = np.zeros(len(trace.machine_cores), dtype=np.int64)
    names = (f"machine_{name}" for name in RESOURCES)
    pools: dict[str, Any] = {
        name: np.bincount(own, getattr(trace, name)).astype(np.float64) for name in names
    }
    return dataclasses.replace(trace, **pools, machine_site=sites)


def size_text(trace: Trace, cores: str, memory: str = "", gpu: str = "") -> str:
    """Sizes with their units, e.g. "8 cores, 32 GiB, 4 GPUs"; in other units "cpus 8, memory 3 [slots]"."""
    units = trace.unit.split(", ")
    if len(units) == 2:
        sizes = zip((cores, memory, gpu), (*units, "GPUs"), strict=True)
        return ", ".join(f"{size} {unit}" for size, unit in sizes if size)
    return f"cpus {cores}, memory {memory} [{trace.unit}]" if memory else f"cpus {cores} [{trace.unit}]"


def work_text(trace: Trace, work: float, gpu_work: float = 0.0) -> str:
    """Amounts of work with their units: core-seconds, and where GPUs were read GPU-hours."""
    hours = f"{gpu_work / 3600.0:.4g} GPU-hours"
    if trace.gpu.any() and not trace.cores.any():
        return hours
    text = f"{work:.4g} core-seconds" if trace.unit == "cores, GiB" else f"{work:.4g} cpus times seconds"
    return f"{text}, {hours}" if trace.gpu.any() else text
