"""Workloads of SingleJob: the schema, and the paper's generator.

Loads are vCPU seconds at efficiency 1, capacities vCPU. On a server a task uses the energy
power * load / efficiency, whatever its vCPU. All of an instance is known from its start, with no future to
shuffle, and so there is no ``shuffle_future``.

Source: shi2017, section 6.1.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import SHARED, Bytes, Floats, Integers, Shown, sizes_of
from schedgym.core.jit import helper, record_dtype
from schedgym.core.kernels import draw_kernel
from schedgym.core.random import stream, uniform
from schedgym.core.source import constants_of, draw_alone
from schedgym.core.workload import Field, Schema, Workload
from schedgym.errors import InfeasibleInstance, InvalidWorkload
from schedgym.problems.single_job import topology
from schedgym.solvers.placement import ENERGY_SLACK, make_membership

if TYPE_CHECKING:
    from schedgym.problems.single_job.problem import SingleJobParameters

#: least and most load of a task, and most energy that a job may use or be allowed [vCPU s]
LEAST_LOAD = 1e-30
MOST_LOAD = 1e12
MOST_ENERGY = 1e18
#: least and most power of a task per vCPU
LEAST_POWER, MOST_POWER = 1e-9, 1e9
#: longest time that a placement may need [s], so that all times and vCPU are finite and more than 0
LONGEST = 1e30
#: most draws of an episode; if none admits a placement, the cap is the least energy of the last one
MOST_DRAWS = 100

#: what is drawn, as in the paper: most vCPU of a server, most load of a task [vCPU s], least efficiency
MOST_CPU_DRAWN, MOST_LOAD_DRAWN, LEAST_EFFICIENCY = 10.0, 3600.0, 0.1

CAPACITIES, LOADS, EFFICIENCIES, CAPS = range(4)  # random streams


# Schema ---------------------------------------------------------------------------------------


def _check(sections: dict[str, dict[str, npt.NDArray[Any]]], prefix: str) -> None:
    """Check that the tree fits its servers, that the cap can be met, and that times are finite."""
    jobs, cluster = sections["jobs"], sections["cluster"]
    topology.check_cluster(cluster, prefix, limited=True)
    with np.errstate(over="ignore"):
        least = float(np.cumsum(powers(jobs) * (jobs["load"] / jobs["efficiency"].max(axis=1)))[-1])
    cap = float(jobs["energy_cap"])
    if not least <= cap * (1.0 + ENERGY_SLACK):
        raise InfeasibleInstance(
            f"{prefix}jobs.energy_cap: {cap!r} vCPU s is below the least possible energy, {least!r} vCPU s"
        )
    with np.errstate(over="ignore", divide="ignore"):
        work = jobs["load"] / jobs["efficiency"].min(axis=1)
        most = float(np.sum(work))
        highest = max(most, float(np.sum(powers(jobs) * work)))
        check_most(np.array([highest]), MOST_ENERGY, f"{prefix}jobs: the largest possible energy", "vCPU s")
        matrix, limits = topology.cluster_groups(cluster).matrix, _limits(cluster)
        longest = float(np.divide(most, (limits / matrix.max(axis=1)).min()))
        check_most(np.array([longest]), LONGEST, f"{prefix}jobs: the longest possible time", "s")
    topology.check_reach(cluster, matrix, limits, topology.MOST_LIMIT, prefix)


def powers(tasks: Mapping[str, npt.NDArray[Any]]) -> Floats:
    """Return the power of each task per vCPU; [N]."""
    return tasks["power"] if "power" in tasks else np.ones(len(tasks["load"]))


def check_most(values: Floats, most: float, what: str, unit: str) -> None:
    """Raise InvalidWorkload for the first value above ``most``, or not finite; "{}" stands for its index."""
    beyond = ~(values <= most)
    if beyond.any():
        i = int(np.argmax(beyond))
        raise InvalidWorkload(f"{what.replace('{}', str(i))} must be <= {most:g} {unit}, got {values[i]:g}")


def _limits(cluster: Any) -> Floats:
    """Return B_k of each group [vCPU]; [R]."""
    groups = topology.cluster_groups(cluster)
    limits = topology.group_limits(groups.matrix, groups.share, cluster["cpu"])
    if "limit" in cluster:
        limits[groups.kind == topology.OTHER] = cluster["limit"]
    return limits


SCHEMA = Schema(
    problem="single-job",
    jobs=(
        Field("load", "vCPU s", ("task",), minimum=LEAST_LOAD, maximum=MOST_LOAD),
        Field("efficiency", "share of the load", ("task", "server"), exclusive=True, maximum=1.0),
        Field("energy_cap", "vCPU s", (), exclusive=True, maximum=MOST_ENERGY),  # of all tasks
        # the constant alpha of the paper's Eq. 7, which its experiments set to 1; default: 1
        Field("power", "per vCPU", ("task",), minimum=LEAST_POWER, maximum=MOST_POWER, optional=True),
    ),
    cluster=(*topology.CLUSTER, topology.LIMIT),
    check=_check,
)


#: makes a checked workload, of load, efficiency, energy cap and cpu in this order, and of others by name
make_workload = SCHEMA.make


#: number of rows that a workload has in its arrays, and 1 if it was drawn
SIZE = record_dtype(("tasks", np.int64), ("drawn", np.int64))


class Jobs(NamedTuple):
    """The workload of an episode, as kernels take it; rows behind its last task or group are zero.

    A matrix (one that is shown: of bytes if all weights are 0 or 1, else of floats) and the lists of a
    :class:`Membership` both say which server is in which group, and with what weight.
    """

    size: Annotated[Any, SIZE]
    load: Annotated[Floats, "task", Shown("of each task; 0 after the last [vCPU s]", MOST_LOAD)]
    efficiency: Annotated[Floats, "task", "server", Shown("e_ij of each task on each server")]
    capacity: Annotated[Floats, "server", Shown("of each server [vCPU]", topology.MOST_CPU)]
    limits: Annotated[Floats, "group", Shown("B_k; 0: no group [vCPU, by weight]", topology.MOST_LIMIT)]
    energy_cap: Annotated[Floats, 1, Shown("E_MAX [vCPU s]", MOST_ENERGY)]
    least_energy: Annotated[Floats, 1]  # every task on its most efficient server
    least_work: Annotated[Floats, 1]  # their equivalent loads there [vCPU s]
    power: Annotated[Floats, "task", Shown("a_i, of each task [per vCPU]", MOST_POWER)]
    groups: Annotated[
        Bytes,
        "shown_group",
        "server",
        Shown("1 for the servers of each group", shape=("group", "server")),
    ]
    weights: Annotated[
        Floats,
        "weighted_group",
        "server",
        Shown(
            "or A_jk, if a file has others", topology.MOST_WEIGHT, name="groups", shape=("group", "server")
        ),
    ]
    server_start: Annotated[Integers, "server+1"]
    server_group: Annotated[Integers, "pair"]
    server_weight: Annotated[Floats, "pair"]
    group_start: Annotated[Integers, "group+1"]
    group_server: Annotated[Integers, "pair"]
    group_weight: Annotated[Floats, "pair"]

    @property
    def matrix(self) -> npt.NDArray[Any]:
        """The weights of one environment's groups; [R, M]."""
        return self.weights if len(self.weights) else self.groups


def tables(workload: Workload) -> Jobs:
    """Convert a workload to the arrays that kernels take, for one environment."""
    jobs, cluster = workload.jobs, workload.cluster
    matrix = topology.cluster_groups(cluster).matrix
    whole = matrix.dtype == np.int8
    least, power = jobs["load"] / jobs["efficiency"].max(axis=1), powers(jobs)
    return Jobs(
        size=np.array((len(jobs["load"]), False), dtype=SIZE),
        load=jobs["load"],
        efficiency=jobs["efficiency"],
        capacity=cluster["cpu"],
        limits=_limits(cluster),
        energy_cap=np.array([jobs["energy_cap"]]),
        least_energy=np.cumsum(power * least)[-1:],  # from first to last, as the draw does
        least_work=np.cumsum(least)[-1:],
        power=power,
        groups=matrix if whole else np.zeros((0, matrix.shape[1]), dtype=np.int8),
        weights=np.zeros((0, matrix.shape[1])) if whole else matrix,
        **make_membership(matrix)._asdict(),
    )


# Generator ------------------------------------------------------------------------------------

#: the numbers that a draw needs
CONSTANTS = record_dtype(
    ("tasks", np.int64),
    ("energy_ratio", np.float64),
)


class Origin(NamedTuple):
    """The inputs of a draw besides seed and episode; the groups are the same in all episodes."""

    constants: Annotated[Any, CONSTANTS]
    share: Annotated[Floats, "group"]  # of the vCPU on a group's servers
    groups: Annotated[Bytes, "group", "server"]
    server_start: Annotated[Integers, "server+1"]
    server_group: Annotated[Integers, "pair"]
    server_weight: Annotated[Floats, "pair"]
    group_start: Annotated[Integers, "group+1"]
    group_server: Annotated[Integers, "pair"]
    group_weight: Annotated[Floats, "pair"]


class Drawing(NamedTuple):
    """The arrays of a draw: its source, and the workload that it writes."""

    source: Annotated[Origin, SHARED]
    jobs: Jobs


class Source:
    """The source of an environment's episodes: the paper's generator.

    Capacities are U(0, 10], loads U(0, 3600], efficiencies U[0.1, 1], the energy cap
    U[1, energy_ratio] times the sum of loads. A cap below the least possible energy would be drawn
    again: so it is uniform from that energy to energy_ratio times the sum of loads, and is drawn from that
    range. If the least energy is larger than that, the whole instance is drawn again, at most MOST_DRAWS
    times; the last draw, which only very small trees reach, gets its least energy as the cap.

    Args:
        parameters: of the environment.

    Attributes:
        parameters: as given.
        beta: shares of racks, pods, and the data centre; [3].
        groups: the constraint groups.
        arrays: the arrays that the compiled draw takes.
        sizes: length of each dimension of the drawn arrays.
    """

    def __init__(self, parameters: SingleJobParameters) -> None:
        self.parameters = parameters
        self.beta = (parameters.rack_share, parameters.pod_share, parameters.data_centre_share)
        self.groups = topology.fat_tree_groups(parameters.arity, *self.beta, parameters.server_caps)
        matrix, share, _ = self.groups
        constants = constants_of(CONSTANTS, parameters)
        self.arrays = Origin(constants, share, matrix, *make_membership(matrix))
        own = {"task": parameters.tasks, "shown_group": len(matrix), "weighted_group": 0}
        self.sizes = sizes_of(self.arrays) | own


def make_source(parameters: SingleJobParameters) -> Source:
    """Make the source that an environment's parameters name."""
    return Source(parameters)


def rebuild(source: Source, jobs: Jobs) -> Workload:
    """Convert an environment's :class:`Jobs`, drawn from ``source``, to a workload."""
    count = int(jobs.size["tasks"])
    return make_workload(
        jobs.load[:count],
        jobs.efficiency[:count],
        float(jobs.energy_cap[0]),
        jobs.capacity,
        arity=source.parameters.arity,
        beta=source.beta,
        server_caps=source.parameters.server_caps,
    )


def generate(seed: int, episode: int, source: Source) -> Workload:
    """The workload that an environment reset with ``seed`` meets in its ``episode`` (counted from 0)."""
    return rebuild(source, draw_alone(draw, Drawing, source, seed, episode))


@helper
def copy(values: Any, target: Any) -> None:
    """Copy numbers to the beginning of an array."""
    for x in range(values.shape[0]):
        target[x] = values[x]


@helper
def copy_groups(source: Origin, jobs: Jobs) -> None:
    """Copy the source's groups to the jobs, the matrix as far as it is shown."""
    for k in range(min(jobs.groups.shape[0], source.groups.shape[0])):
        copy(source.groups[k], jobs.groups[k])
    copy(source.server_start, jobs.server_start)
    copy(source.server_group, jobs.server_group)
    copy(source.server_weight, jobs.server_weight)
    copy(source.group_start, jobs.group_start)
    copy(source.group_server, jobs.group_server)
    copy(source.group_weight, jobs.group_weight)


@helper
def draw_one(env: Drawing, seed: np.uint64, episode: int) -> int:
    """Draw the workload of (seed, episode); repeated draws continue their streams."""
    source, jobs = env.source.constants, env.jobs
    if not jobs.size.drawn:  # the last workload, if any, had groups of its own
        copy_groups(env.source, jobs)
    jobs.size.drawn = True
    jobs.size.tasks = source.tasks
    servers = jobs.capacity.shape[0]
    capacities = stream(seed, episode, CAPACITIES)
    loads = stream(seed, episode, LOADS)
    efficiencies = stream(seed, episode, EFFICIENCIES)
    total = 0.0
    least = 0.0
    for _ in range(MOST_DRAWS):
        for j in range(servers):
            capacities, u = uniform(capacities)
            jobs.capacity[j] = MOST_CPU_DRAWN * (1.0 - u)
        total = 0.0
        least = 0.0
        for i in range(source.tasks):
            loads, u = uniform(loads)
            load = MOST_LOAD_DRAWN * (1.0 - u)
            jobs.load[i] = load
            jobs.power[i] = 1.0
            total += load
            best = 0.0
            for j in range(servers):
                efficiencies, u = uniform(efficiencies)
                own = LEAST_EFFICIENCY + (1.0 - LEAST_EFFICIENCY) * u
                jobs.efficiency[i, j] = own
                best = max(best, own)
            least += load / best
        if least <= source.energy_ratio * total:
            break
    _, u = uniform(stream(seed, episode, CAPS))
    jobs.least_energy[0] = least
    jobs.least_work[0] = least
    jobs.energy_cap[0] = least + u * max(source.energy_ratio * total - least, 0.0)
    for k in range(jobs.limits.shape[0]):
        held = 0.0
        for e in range(jobs.group_start[k], jobs.group_start[k + 1]):
            held += jobs.group_weight[e] * jobs.capacity[jobs.group_server[e]]
        jobs.limits[k] = env.source.share[k] * held
    return 0


draw = draw_kernel(__name__, Drawing, draw_one)
