"""Workloads of SingleJob: the schema, the paper's generator, toy instances.

Loads are vCPU seconds at efficiency 1, capacities vCPU. On a server a task uses the energy load / efficiency,
whatever its vCPU. All of an instance is known from its start: nothing lies in the future, and so there is no
``shuffle_future``.

Source: paper 001, section 6.1.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.jit import helper, pure_kernel, record_dtype
from schedgym.core.random import stream, uniform
from schedgym.core.workload import Field, Schema, Workload
from schedgym.errors import InfeasibleInstance, InvalidWorkload
from schedgym.problems.single_job.topology import (
    CLUSTER,
    LIMIT,
    MOST_CPU,
    MOST_LIMIT,
    OTHER,
    check_cluster,
    cluster_groups,
    fat_tree_groups,
    group_limits,
    members,
)

if TYPE_CHECKING:
    from schedgym.problems.single_job.problem import SingleJobParameters

__all__ = [
    "ENERGY_SLACK",
    "LEAST_LOAD",
    "LONGEST",
    "MOST_CPU",
    "MOST_DRAWS",
    "MOST_ENERGY",
    "MOST_LIMIT",
    "MOST_LOAD",
    "SCHEMA",
    "TOYS",
    "Source",
    "Tables",
    "draw",
    "draw_python",
    "generate",
    "make_source",
    "make_workload",
    "rebuild",
    "tables",
    "toy",
]

Bits = npt.NDArray[np.int8]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: least and most load of a task, and most energy that a job may use or be allowed [vCPU s]
LEAST_LOAD = 1e-30
MOST_LOAD = 1e12
MOST_ENERGY = 1e18
#: longest time that a placement may need [s], so that all times and vCPU are finite and more than 0
LONGEST = 1e30
#: an energy is within its cap up to this, relative
ENERGY_SLACK = 1e-12
#: most draws of an episode; should none admit a placement, the last one's least energy is granted as its cap
MOST_DRAWS = 100

CAPACITIES, LOADS, EFFICIENCIES, CAPS = range(4)  # random streams


# Schema ---------------------------------------------------------------------------------------


def _check(sections: dict[str, dict[str, npt.NDArray[Any]]], prefix: str) -> None:
    """What must hold between fields: the tree fits its servers, the cap can be met, and times are finite."""
    jobs, cluster = sections["jobs"], sections["cluster"]
    check_cluster(cluster, prefix, limited=True)
    with np.errstate(over="ignore"):
        least = _least_energy(jobs["load"], jobs["efficiency"])
    cap = float(jobs["energy_cap"])
    if not least <= cap * (1.0 + ENERGY_SLACK):
        raise InfeasibleInstance(
            f"{prefix}jobs.energy_cap: {cap!r} vCPU s is below the least possible energy, {least!r} vCPU s"
        )
    with np.errstate(over="ignore", divide="ignore"):
        most = float(np.sum(jobs["load"] / jobs["efficiency"].min(axis=1)))
        if not most <= MOST_ENERGY:
            raise InvalidWorkload(
                f"{prefix}jobs: the largest possible energy must be <= {MOST_ENERGY:g} vCPU s, got {most:g}"
            )
        longest = float(np.divide(most, _limits(cluster).min()))
        if not longest <= LONGEST:
            raise InvalidWorkload(
                f"{prefix}jobs: the longest possible time must be <= {LONGEST:g} s, got {longest:g}"
            )


def _least_energy(load: Floats, efficiency: Floats) -> float:
    """Each task on its most efficient server, summed from the first task to the last [vCPU s]."""
    return float(np.cumsum(load / efficiency.max(axis=1))[-1])


def _limits(cluster: Any) -> Floats:
    """B_k of each group [vCPU]; [R]."""
    groups = cluster_groups(cluster)
    limits = group_limits(groups.matrix, groups.share, cluster["cpu"])
    if "limit" in cluster:
        limits[groups.kind == OTHER] = cluster["limit"]
    return limits


SCHEMA = Schema(
    problem="single-job",
    jobs=(
        Field("load", "vCPU s", ("task",), minimum=LEAST_LOAD, maximum=MOST_LOAD),
        Field("efficiency", "share of the load", ("task", "server"), exclusive=True, maximum=1.0),
        Field("energy_cap", "vCPU s", (), exclusive=True, maximum=MOST_ENERGY),
    ),
    cluster=(*CLUSTER, LIMIT),
    check=_check,
)


def make_workload(
    load: npt.ArrayLike,
    efficiency: npt.ArrayLike,
    energy_cap: float,
    cpu: npt.ArrayLike,
    *,
    arity: int | None = None,
    groups: npt.ArrayLike | None = None,
    beta: Any = None,
    limit: npt.ArrayLike | None = None,
    server_caps: bool | None = None,
) -> Workload:
    """A checked workload.

    Args:
        load: of each task [vCPU s]; [N].
        efficiency: of each task on each server, in (0, 1]; [N, M].
        energy_cap: most energy of all tasks [vCPU s].
        cpu: of each server [vCPU]; [M].
        arity: of a fat tree, or ``groups``.
        groups: whether a server is in a group, 0 or 1; [R, M].
        beta: shares of the vCPU of a group that the job may use. With ``arity`` of racks, pods, and the data
            centre (an object of these names, or a list; None: 0.3, 0.2, 0.2), with ``groups`` of each; [R].
        limit: with ``groups``, in the place of shares: the vCPU of each that the job may use; [R].
        server_caps: whether each server's own vCPU is a limit; None: it is.

    Raises:
        InvalidWorkload: naming the field and the first bad index.
        InfeasibleInstance: when the cap is below the least possible energy.
    """
    optional = {"arity": arity, "groups": groups, "beta": beta, "limit": limit, "server_caps": server_caps}
    return SCHEMA.parse(
        {
            "jobs": {"load": load, "efficiency": efficiency, "energy_cap": energy_cap},
            "cluster": {"cpu": cpu, **{name: value for name, value in optional.items() if value is not None}},
        }
    )


class Tables(NamedTuple):
    """A workload as arrays for kernels. N tasks, M servers, R groups."""

    load: Floats  # [N]
    efficiency: Floats  # [N, M]
    cpu: Floats  # [M]
    matrix: Bits  # [R, M]
    kind: Integers  # [R] see topology.Groups
    limits: Floats  # [R] B_k, all > 0 [vCPU]
    energy_cap: float
    least_energy: float


def tables(workload: Workload) -> Tables:
    """A checked workload as arrays for kernels."""
    jobs, cluster = workload.jobs, workload.cluster
    groups = cluster_groups(cluster)
    return Tables(
        load=jobs["load"],
        efficiency=jobs["efficiency"],
        cpu=cluster["cpu"],
        matrix=groups.matrix,
        kind=groups.kind,
        limits=_limits(cluster),
        energy_cap=float(jobs["energy_cap"]),
        least_energy=_least_energy(jobs["load"], jobs["efficiency"]),
    )


# Generator ------------------------------------------------------------------------------------

#: where episodes come from, for the compiled draw
SOURCE = record_dtype(
    ("tasks", np.int64),
    ("servers", np.int64),
    ("cpu_max", np.float64),  # [vCPU]
    ("load_max", np.float64),  # [vCPU s]
    ("efficiency_min", np.float64),
    ("energy_ratio", np.float64),
)


class Source:
    """Where an environment's episodes come from: the paper's generator.

    Capacities are U(0, cpu_max], loads U(0, load_max], efficiencies U[efficiency_min, 1], the energy cap
    U[1, energy_ratio] times the sum of loads. An energy cap below the least possible energy is drawn again:
    it is then uniform from that energy to energy_ratio times the sum of loads, and drawn so. Should the least
    energy be larger than that, all is drawn again, at most MOST_DRAWS times; of the last draw, which only
    very small trees see, the least energy is the cap.

    Attributes:
        tasks, servers: N, M.
        arity: of the fat tree.
        beta: shares of racks, pods, and the data centre; [3].
        server_caps: whether servers' own vCPU are limits.
        groups: the constraint groups, the same in all episodes.
        constants: SOURCE record [1].
        start, server: the servers of each group, see :func:`topology.members`.
    """

    def __init__(
        self,
        tasks: int,
        arity: int,
        *,
        cpu_max: float = 10.0,
        load_max: float = 3600.0,
        efficiency_min: float = 0.1,
        energy_ratio: float = 1.1,
        rack_share: float = 0.3,
        pod_share: float = 0.2,
        data_centre_share: float = 0.2,
        server_caps: bool = True,
    ) -> None:
        self.tasks, self.arity, self.server_caps = tasks, arity, server_caps
        self.beta = (rack_share, pod_share, data_centre_share)
        self.groups = fat_tree_groups(arity, *self.beta, server_caps)
        self.servers = self.groups.matrix.shape[1]
        self.start, self.server = members(self.groups.matrix)
        self.constants = np.zeros(1, dtype=SOURCE)
        self.constants[0] = (tasks, self.servers, cpu_max, load_max, efficiency_min, energy_ratio)


def make_source(parameters: SingleJobParameters) -> Source:
    """The source that an environment's parameters name."""
    return Source(
        parameters.tasks,
        parameters.arity,
        cpu_max=parameters.cpu_max,
        load_max=parameters.load_max,
        efficiency_min=parameters.efficiency_min,
        energy_ratio=parameters.energy_ratio,
        rack_share=parameters.rack_share,
        pod_share=parameters.pod_share,
        data_centre_share=parameters.data_centre_share,
        server_caps=parameters.server_caps,
    )


def rebuild(source: Source, load: Floats, efficiency: Floats, cpu: Floats, energy_cap: float) -> Workload:
    """The workload of one environment's drawn arrays, of which ``load`` and ``efficiency`` may be longer.

    Args:
        source: what they were drawn from.
        load: [N].
        efficiency: [N, M].
        cpu: [M].
        energy_cap: [vCPU s].
    """
    return make_workload(
        load[: source.tasks],
        efficiency[: source.tasks],
        energy_cap,
        cpu,
        arity=source.arity,
        beta=source.beta,
        server_caps=source.server_caps,
    )


class _Arrays(NamedTuple):
    """What a draw fills, for one environment or more."""

    tasks: Integers
    load: Floats
    efficiency: Floats
    cpu: Floats
    limits: Floats
    energy_cap: Floats
    least_energy: Floats


def generate(seed: int, episode: int, source: Source) -> Workload:
    """The workload that an environment reset with ``seed`` meets in its ``episode`` (counted from 0)."""
    from schedgym.core.random import root_seed

    n, m, r = source.tasks, source.servers, len(source.groups.share)
    arrays = _Arrays(
        tasks=np.zeros(1, dtype=np.int64),
        load=np.zeros((1, n)),
        efficiency=np.zeros((1, n, m)),
        cpu=np.zeros((1, m)),
        limits=np.zeros((1, r)),
        energy_cap=np.zeros(1),
        least_energy=np.zeros(1),
    )
    draw_python(np.ones(1, dtype=bool), np.array([root_seed(seed)]), np.array([episode]), source, arrays)
    return rebuild(source, arrays.load[0], arrays.efficiency[0], arrays.cpu[0], float(arrays.energy_cap[0]))


def draw_python(
    mask: npt.NDArray[np.bool_],
    seeds: npt.NDArray[np.uint64],
    episodes: Integers,
    source: Source,
    jobs: Any,
) -> None:
    """:func:`draw`, called from Python (uncompiled, its modular arithmetic would warn of overflow).

    Args:
        mask: which environments [B].
        seeds: root seeds [B].
        episodes: numbers of the episodes [B].
        source: where they come from.
        jobs: has the arrays that :func:`draw` writes as attributes.
    """
    with np.errstate(over="ignore"):
        draw(
            mask,
            seeds,
            episodes,
            source.constants,
            source.start,
            source.server,
            source.groups.share,
            jobs.tasks,
            jobs.load,
            jobs.efficiency,
            jobs.cpu,
            jobs.limits,
            jobs.energy_cap,
            jobs.least_energy,
        )


@helper
def draw_environment(
    seed: np.uint64,
    episode: int,
    constants: Any,
    start: Any,
    server: Any,
    share: Any,
    b: int,
    load: Any,
    efficiency: Any,
    cpu: Any,
    limits: Any,
    energy_cap: Any,
    least_energy: Any,
) -> None:
    """Draw one environment's workload; whatever is drawn again continues its stream."""
    n = constants[0].tasks
    m = constants[0].servers
    low = constants[0].efficiency_min
    ratio = constants[0].energy_ratio
    capacities = stream(seed, episode, CAPACITIES)
    loads = stream(seed, episode, LOADS)
    efficiencies = stream(seed, episode, EFFICIENCIES)
    total = 0.0
    least = 0.0
    for _ in range(MOST_DRAWS):
        for j in range(m):
            capacities, u = uniform(capacities)
            cpu[b, j] = constants[0].cpu_max * (1.0 - u)
        total = 0.0
        least = 0.0
        for i in range(n):
            loads, u = uniform(loads)
            value = constants[0].load_max * (1.0 - u)
            load[b, i] = value
            total += value
            best = 0.0
            for j in range(m):
                efficiencies, u = uniform(efficiencies)
                own = low + (1.0 - low) * u
                efficiency[b, i, j] = own
                best = max(best, own)
            least += value / best
        if least <= ratio * total:
            break
    _, u = uniform(stream(seed, episode, CAPS))
    least_energy[b] = least
    energy_cap[b] = least + u * max(ratio * total - least, 0.0)
    for k in range(share.shape[0]):
        held = 0.0
        for e in range(start[k], start[k + 1]):
            held += cpu[b, server[e]]
        limits[b, k] = share[k] * held


@pure_kernel
def draw(
    mask: npt.NDArray[np.bool_],
    seeds: npt.NDArray[np.uint64],
    episodes: Integers,
    constants: npt.NDArray[Any],
    start: Integers,
    server: Integers,
    share: Floats,
    tasks: Integers,
    load: Floats,
    efficiency: Floats,
    cpu: Floats,
    limits: Floats,
    energy_cap: Floats,
    least_energy: Floats,
) -> None:
    """Draw the workload of (seed, episode) for environments.

    Args:
        mask: which ones [B].
        seeds: root seeds [B].
        episodes: numbers of the episodes [B].
        constants: SOURCE [1].
        start: of the groups' lists of servers [R + 1].
        server: these lists [E].
        share: of the groups [R].
        tasks: written, [B], as are all that follow.
        load: [B, >= N]; what lies beyond N is left as it was.
        efficiency: [B, >= N, M].
        cpu: [B, M].
        limits: [B, R].
        energy_cap: [B].
        least_energy: [B].
    """
    for b in range(mask.shape[0]):
        if mask[b]:
            tasks[b] = constants[0].tasks
            draw_environment(
                seeds[b],
                episodes[b],
                constants,
                start,
                server,
                share,
                b,
                load,
                efficiency,
                cpu,
                limits,
                energy_cap,
                least_energy,
            )


# Toy instances --------------------------------------------------------------------------------

#: toy instances with the least completion time [s]: name -> (arguments of make_workload, optimum)
TOYS: dict[str, tuple[dict[str, Any], float]] = {
    # a group that holds both servers, one that holds the first: all on the second server
    "vector-1": (
        {
            "load": [6, 3],
            "efficiency": [[1, 1], [1, 1]],
            "energy_cap": 9,
            "cpu": [1, 3],
            "groups": [[1, 1], [1, 0]],
            "limit": [3, 1],
            "server_caps": False,
        },
        3.0,
    ),
    # Fig. 2 of the paper: two racks with 30 vCPU each
    "fig-2": (
        {
            "load": [100, 200, 400, 500],
            "efficiency": [[1, 1, 1]] * 4,
            "energy_cap": 1200,
            "cpu": [35, 10, 30],
            "groups": [[1, 1, 0], [0, 0, 1]],
            "limit": [30, 30],
        },
        20.0,
    ),
    # efficiencies differ: each task on its best server just about meets the cap
    "vector-3": (
        {
            "load": [8, 9],
            "efficiency": [[0.5, 1, 0.8], [0.9, 0.5, 0.5]],
            "energy_cap": 20,
            "cpu": [1, 1, 1],
            "groups": [[1, 1, 1]],
            "limit": [3],
        },
        10.0,
    ),
    # the large server wastes half of what it gets, and the cap lets only one task there
    "wasteful": (
        {
            "load": [6, 6],
            "efficiency": [[1, 0.5], [1, 0.5]],
            "energy_cap": 18,
            "cpu": [1, 10],
            "groups": [[1, 1]],
            "beta": [1],
        },
        6.0,
    ),
    # the racks of a fat tree: two tasks on two servers, 3 vCPU of 10 each
    "racks": (
        {
            "load": [30, 30],
            "efficiency": [[1, 1], [1, 1]],
            "energy_cap": 60,
            "cpu": [10, 10],
            "arity": 2,
            "beta": {"rack": 0.3, "pod": 1, "data_centre": 1},
        },
        10.0,
    ),
}


def toy(name: str) -> tuple[Workload, float]:
    """The toy instance ``name`` and its least completion time [s]."""
    arguments, optimum = TOYS[name]
    return make_workload(**arguments), optimum
