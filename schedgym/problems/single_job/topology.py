"""Constraint groups: which servers share a limit, those of a fat tree or given as a matrix of weights.

A row k of weights A_jk >= 0 limits what a job may use: the sum over servers j of A_jk times its vCPU there is
at most B_k (Eq. 4 of shi2017), an absolute limit, or a share of the same sum over the available vCPU. A
server with weight 0 is not in the group. In a fat tree the weights are 0 and 1, and the groups are the racks,
the pods and the data centre; each server is a group of its own, too, unless this is turned off.

A fat tree of switches with k ports has k pods of k / 2 racks of k / 2 servers. A pod has an edge switch for
each rack and k / 2 aggregation switches, and (k / 2)^2 core switches connect the pods. So a rack is the
servers that edge switches connect, and a pod those that edge and aggregation switches connect.

Source of fat trees: Al-Fares, Loukissas, Vahdat 2008.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgym.core.arrays import Floats, Integers
from schedgym.core.workload import Field, Workload, refuse
from schedgym.errors import InvalidParameter, InvalidWorkload

Weights = npt.NDArray[Any]  # int8 where all are 0 or 1, else float64

#: kinds of groups: the level above the servers, or OTHER for a row of a given matrix
SERVER, RACK, POD, DATA_CENTRE = range(4)
OTHER = -1
LEVELS = ("rack", "pod", "data_centre")
#: shares of the available vCPU of a rack, a pod and the data centre (section 6.1.1 of the paper)
BETA = (0.3, 0.2, 0.2)

#: most vCPU of a server, and of an absolute limit
MOST_CPU = 1e9
MOST_LIMIT = 1e15
#: most pairs of a server and a group of a switch or a single server, which no file lists one by one
MOST_PAIRS = 2**24
#: least and most weight of a server in a group, so that all times are finite
LEAST_WEIGHT, MOST_WEIGHT = 1e-9, 1e9


class Groups(NamedTuple):
    """Constraint groups. R groups, M servers.

    Rows: the single servers (unless turned off), then the racks, the pods, the data centre; or those of a
    given matrix.
    """

    matrix: Weights  # [R, M] A_jk, what a vCPU on a server counts in a group; 0: it is not in the group
    share: Floats  # [R] of the vCPU available on a group's servers, by weight; nan: the limit is absolute
    kind: Integers  # [R] SERVER, RACK, POD, DATA_CENTRE or OTHER


# Groups ---------------------------------------------------------------------------------------


def _groups(matrix: Weights, share: npt.ArrayLike, kind: Sequence[int], server_caps: bool) -> Groups:
    """Check the groups, and put those of the single servers in front."""
    bad = _empty(matrix, server_caps)
    if bad:
        raise InvalidParameter(f"groups: {bad}")
    count = matrix.shape[1] if server_caps else 0
    return Groups(
        np.concatenate([np.eye(matrix.shape[1], dtype=matrix.dtype)[:count], matrix]),
        np.concatenate([np.ones(count), np.asarray(share, dtype=np.float64)]),
        np.concatenate([np.full(count, SERVER, dtype=np.int64), np.asarray(kind, dtype=np.int64)]),
    )


def _empty(matrix: npt.NDArray[Any], server_caps: bool) -> str:
    """Return what is wrong with a matrix (a group without servers, a server without group), or ""."""
    empty = ~matrix.any(axis=1)
    if empty.any():
        return f"group [{int(np.argmax(empty))}] has no server"
    alone = ~matrix.any(axis=0)
    if alone.any() and not server_caps:
        return f"server [{int(np.argmax(alone))}] is in no group"
    return ""


@functools.lru_cache(maxsize=4)
def _fat_tree_rows(arity: int, server_caps: bool) -> tuple[Weights, Integers]:
    """Return weights and kinds of the groups; the servers are numbered pod by pod, rack by rack."""
    if arity < 2 or arity % 2:
        raise InvalidParameter(f"arity: must be even and positive, got {arity}")
    half = arity // 2
    rack = np.arange(arity * half * half) // half  # of each server
    in_rack = rack == np.arange(arity * half)[:, None]
    in_pod = rack // half == np.arange(arity)[:, None]
    matrix = np.concatenate([in_rack, in_pod, np.ones((1, rack.size), dtype=np.bool_)]).astype(np.int8)
    kind = [RACK] * len(in_rack) + [POD] * len(in_pod) + [DATA_CENTRE]
    groups = _groups(matrix, np.ones(len(kind)), kind, server_caps)
    groups.matrix.flags.writeable = groups.kind.flags.writeable = False
    return groups.matrix, groups.kind


def fat_tree_groups(
    arity: int,
    rack: float = BETA[0],
    pod: float = BETA[1],
    data_centre: float = BETA[2],
    server_caps: bool = True,
) -> Groups:
    """Return the constraint groups of a fat tree; R = arity^2/2 + arity + 1, plus the number of servers.

    Args:
        arity: of the tree, even.
        rack: share of the vCPU available in a rack that a job may use.
        pod: the same of a pod.
        data_centre: the same of all servers.
        server_caps: True if each server's own vCPU is a limit (the paper's list lacks them).

    Raises:
        InvalidParameter: when the arity is not even and positive.
    """
    matrix, kind = _fat_tree_rows(arity, server_caps)
    return Groups(matrix, np.array([1.0, rack, pod, data_centre])[kind], kind)


# Limits ---------------------------------------------------------------------------------------


def group_limits(matrix: Weights, share: Floats, capacity: Floats) -> Floats:
    """Return B_k, the share of the vCPU on each group's servers, by weight, added from first to last; [R]."""
    sums = [np.cumsum(row[row != 0] * capacity[row != 0])[-1] for row in matrix]
    return share * np.array(sums)


def server_limits(matrix: Weights, limits: Floats) -> Floats:
    """Return the most vCPU that a job can have on each server, by each of its groups alone; [M]."""
    most = np.full(matrix.shape, np.inf)
    np.divide(limits[:, None], matrix, out=most, where=matrix != 0)
    return most.min(axis=0)


# The cluster of a workload file ---------------------------------------------------------------

#: fields of the cluster, of which exactly one of arity (of a fat tree) and groups is given
CLUSTER = (
    Field("cpu", "vCPU", ("server",), exclusive=True, maximum=MOST_CPU),
    Field("arity", "ports", (), kind="int", minimum=2, optional=True),
    # what a vCPU on a server counts in a group, from 1e-9 (1 if all count the same); 0: it is not in it
    Field("groups", "weight", ("group", "server"), maximum=MOST_WEIGHT, optional=True),
    # of the available vCPU of a group that a job may use: for each level of the fat tree (an object of their
    # names, or a list; default: 0.3, 0.2, 0.2), or for each group
    Field("beta", "share", ("limited group",), exclusive=True, maximum=1.0, optional=True, keys=LEVELS),
    # whether each server's own vCPU is a limit, too (default: true)
    Field("server_caps", "", (), kind="bool", optional=True),
)
#: absolute limits B_k instead of shares: vCPU of each group that the job may use, each counted by the weight
#: of its server; for problems whose capacities do not change
LIMIT = Field("limit", "vCPU", ("group",), exclusive=True, maximum=MOST_LIMIT, optional=True)


def check_cluster(cluster: Mapping[str, npt.NDArray[Any]], prefix: str, *, limited: bool = False) -> None:
    """Raise InvalidWorkload unless the fields of a parsed cluster agree.

    Args:
        cluster: field -> array.
        prefix: of the message.
        limited: True if groups may have absolute limits instead of shares.
    """
    where = f"{prefix}cluster"
    servers, caps = len(cluster["cpu"]), bool(cluster.get("server_caps", True))
    if ("arity" in cluster) == ("groups" in cluster):
        raise InvalidWorkload(f"{where}: must have arity or groups, and not both")
    beta = cluster.get("beta")
    if "arity" in cluster:
        arity = int(cluster["arity"])
        if arity % 2:
            raise InvalidWorkload(f"{where}.arity: must be even, got {arity}")
        if servers != arity**3 // 4:
            raise InvalidWorkload(
                f"{where}.cpu: a fat tree of arity {arity} has {arity**3 // 4} servers, got {servers}"
            )
        if "limit" in cluster:
            raise InvalidWorkload(f"{where}.limit: belongs to groups, a fat tree has beta")
        if beta is not None and len(beta) != len(LEVELS):
            raise InvalidWorkload(f"{where}.beta: must be {', '.join(LEVELS)}, got {len(beta)} values")
        _check_pairs(servers, arity**2 // 2 + arity + 1, caps, where)
        return
    _check_pairs(servers, 0, caps, where)
    matrix = cluster["groups"]
    light = (matrix > 0) & (matrix < LEAST_WEIGHT)
    refuse(matrix, light, f"{where}.groups", f"must be 0 or >= {LEAST_WEIGHT:g} (weight)")
    if limited and ("limit" in cluster) == (beta is not None):
        raise InvalidWorkload(f"{where}: groups must have beta or limit, and not both")
    if not limited and beta is None:
        raise InvalidWorkload(f"{where}.beta: missing")
    if beta is not None and len(beta) != len(matrix):
        raise InvalidWorkload(
            f"{where}.beta: must have one value per group: {len(matrix)} as in cluster.groups, "
            f"got {len(beta)}"
        )
    bad = _empty(matrix, caps)
    if bad:
        raise InvalidWorkload(f"{where}.groups: {bad}")


def _check_pairs(servers: int, switches: int, caps: bool, where: str) -> None:
    """Raise InvalidWorkload for too large a matrix of the groups of the switches and, with caps, servers."""
    groups = switches + servers * caps
    if groups * servers > MOST_PAIRS:
        raise InvalidWorkload(
            f"{where}.cpu: {servers} servers in {groups} groups are {groups * servers} pairs, more than "
            f"{MOST_PAIRS}"
        )


def check_reach(
    cluster: Mapping[str, npt.NDArray[Any]], matrix: Weights, limits: Floats, most: float, prefix: str
) -> None:
    """Raise InvalidWorkload if a given group's limit, or the vCPU that a server's groups allow, are too many.

    Args:
        cluster: field -> array.
        matrix: of the cluster's groups, :attr:`Groups.matrix`.
        limits: [R] B_k.
        most: largest B_k, and most vCPU that a job may have on a server.
        prefix: of the message.
    """
    if "groups" in cluster:
        given, own = limits[len(limits) - len(cluster["groups"]) :], server_limits(matrix, limits)
        what = f"must limit a job to <= {most:g}"
        refuse(given, given > most, f"{prefix}cluster.groups", f"{what} (vCPU, by weight)")
        refuse(own, own > most, f"{prefix}cluster.cpu", f"its groups {what} (vCPU)")


def has_weights(workload: Workload) -> bool:
    """Return True if a workload's groups have weights other than 0 and 1."""
    return "groups" in workload.cluster and not _are_plain(workload.cluster["groups"])


def _are_plain(matrix: Weights) -> bool:
    return bool(((matrix == 0) | (matrix == 1)).all())


def cluster_groups(cluster: Mapping[str, npt.NDArray[Any]]) -> Groups:
    """Return the constraint groups of a checked cluster; a group with an absolute limit has share nan."""
    server_caps = bool(cluster.get("server_caps", True))
    beta = cluster.get("beta")
    if "arity" in cluster:
        rack, pod, data_centre = BETA if beta is None else beta.tolist()
        return fat_tree_groups(int(cluster["arity"]), rack, pod, data_centre, server_caps)
    matrix = cluster["groups"]
    matrix = matrix.astype(np.int8 if _are_plain(matrix) else np.float64)
    share = np.full(len(matrix), np.nan) if beta is None else beta
    return _groups(matrix, share, [OTHER] * len(matrix), server_caps)
