"""FlowtimePolicy: the base of all flowtime policies."""

from __future__ import annotations

import operator
from typing import Annotated, Any, NamedTuple

import numpy as np

from schedgym.core.arrays import SHARED, allocate
from schedgym.core.jit import COMPILED, helper
from schedgym.core.policy import Interface
from schedgym.core.tables import accessor, pack
from schedgym.errors import InvalidParameter
from schedgym.problems.flowtime.rules import FRESH, LOCALITY, PLACE, STICKY, Rows, Servers, locality_rows
from schedgym.solvers.transport import TransportScratch, make_transport_scratch

PACKINGS = ("fresh", "sticky")
NOTHING = allocate(Rows, dict.fromkeys(("row", "server", "phase", "phase_task", "phase_task_server"), 0))
#: names in an observation of MapReduce jobs that differ from those of the fields
PHASED = {"phase_demand": "demand", "phase_processing": "processing"}
COMMON = ("slots_left", "remaining", "volume", "cap", "held", "job", "arrival", "age")


class Seen(NamedTuple):
    """The visible jobs, as kernels read them."""

    rows: Annotated[Rows, SHARED]


access = accessor(Seen)


@helper
def seen_rows(seen: Any) -> Any:
    """Return the visible jobs of a packed :class:`Seen`, for kernels."""
    return access(seen, seen, 0).rows


@helper
def clear_rest(n: int, decision: Any) -> None:
    """Clear the rows behind the first n that the last action set, in ``granted`` or ``scores``."""
    for r in range(n, decision.shown[0]):
        for i in range(decision.granted.shape[1] if decision.granted.shape[0] > 0 else 0):
            decision.granted[r, i] = 0
        if decision.scores.shape[0] > 0:
            decision.scores[r, 0] = 0.0
    decision.shown[0] = n


def _alike(a: Any, b: Any) -> bool:
    """Return True if two arrays have the same shape, type and layout."""
    return bool(a.shape == b.shape and a.dtype == b.dtype and a.flags.c_contiguous)


class FlowtimePolicy:
    """Base of the flowtime policies.

    With a window smaller than the number of visible jobs, a policy sees and serves only the first ones:
    evaluate with ``window="all"``.

    Args:
        label: name of the policy in errors.
        views: the action views that can express it.
        kinds: the kinds of jobs that it can schedule.
        packing: "fresh" packs the cores anew in every slot, "sticky" (1D and MapReduce without latencies)
            packs them around those in place; None: as the environment's parameter says.
    """

    def __init__(
        self, label: str, views: tuple[str, ...], kinds: tuple[str, ...], packing: str | None = None
    ) -> None:
        if packing not in (None, *PACKINGS):
            raise InvalidParameter(f"packing: must be 'fresh' or 'sticky', got {packing!r}")
        self.label, self.views, self.kinds, self.packing = label, views, kinds, packing

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`; InvalidParameter if the view cannot carry the policy."""
        known = interface.parameters
        interface.check(self.label, self.views)
        if known["kind"] not in self.kinds:
            raise InvalidParameter(f"{self.label} is not defined for kind {known['kind']!r}")
        interface.check_needs(f"{self.label} in view {interface.view!r}", self.needs(interface))
        self.rng = rng
        self.view, self.kind = interface.view, known["kind"]
        self.estimation = known["estimation"]
        self.window, self.servers = interface.sizes["window"], interface.sizes["servers"]
        self.sticky = (self.packing or known["packing"]) == "sticky"
        shape = (self.window if self.view == "allocation" else 0, self.servers)
        self.granted = np.zeros(shape, dtype=np.int64)
        self.scores = np.zeros((self.window if self.view == "priority" else 0, 1), dtype=np.float32)
        self.action: Any = self.granted if self.view == "allocation" else self.scores[:, 0]
        self.shown = np.zeros(1, dtype=np.int64)
        self.work: Any = None
        self.rows = 0
        fields = [*COMMON, "demand", "processing"]
        if self.kind == "2d":
            fields.append("memory")
        elif self.kind == "mapreduce":
            fields = [*COMMON, *PHASED, "phase", "tasks", "task_remaining"]
        self.choose(fields)

    def choose(self, fields: list[str]) -> None:
        """Set the fields that the policy sees, and their names in an observation."""
        self.fields = fields
        self.names = [PHASED.get(field, field) for field in fields]
        self.places = [Rows._fields.index(field) for field in fields]
        self.seen: Any = None

    def needs(self, interface: Interface) -> dict[str, Any]:
        """Return the parameters of the environment that the policy needs in the view."""
        if interface.view in ("priority", "rule") and self.packing is not None:
            return {"packing": self.packing}
        return {}

    def prepare(self, observation: dict[str, Any], rows: int) -> Any:
        """Make the work space for up to ``rows`` jobs of this episode."""
        raise NotImplementedError

    def ready(self, observation: dict[str, Any], count: int) -> Any:
        """Return the work space, made or enlarged if ``count`` jobs need it."""
        if count > self.rows:
            self.rows = min(max(count, 2 * self.rows, 64), self.window)
            self.work = None
        if self.work is None:
            self.work = self.prepare(observation, self.rows)
            if "latency" in observation and "latency" not in self.fields:
                self.choose([*self.fields, "latency"])
        return self.work[0]

    def how(self, observation: dict[str, Any]) -> int:
        """Return the code of the method that places cores on servers."""
        if self.kind == "2d":
            return PLACE
        if "latency" in observation:
            return LOCALITY
        return STICKY if self.sticky else FRESH

    def network(self, observation: dict[str, Any], rows: int) -> TransportScratch:
        """Make the work space of LOCALITY, with no rows where it is not needed."""
        count = 0
        if "latency" in observation:
            half = observation["task_remaining"].shape[2]
            count = int(locality_rows(rows, half, int(observation["server_cpu"].sum())))
        return make_transport_scratch(count, self.servers)

    def capacities(self, observation: dict[str, Any]) -> Servers:
        """Return the cores and memory of the servers, which do not change in an episode."""
        cpu = np.array(observation["server_cpu"], dtype=np.int64)
        return Servers(cpu, np.array(observation.get("server_memory", np.zeros_like(cpu)), dtype=np.int64))

    def visible(self, observation: dict[str, Any]) -> Rows:
        """Return the visible jobs of an observation."""
        arrays = zip(self.fields, self.arrays(observation), strict=True)
        seen = {field: array.reshape(self.window, -1) if array.ndim > 2 else array for field, array in arrays}
        return NOTHING._replace(**seen)

    def arrays(self, observation: dict[str, Any]) -> list[Any]:
        """Return the arrays of an observation that the policy reads, in the order of ``fields``."""
        return [observation[name] for name in self.names]

    def look(self, observation: dict[str, Any]) -> Any:
        """Return the visible jobs of an observation, packed for a kernel; zero-copy arrays are packed once.

        After packing, read-only arrays have the same type for a kernel as writable ones.
        """
        arrays = self.arrays(observation)
        seen = self.seen
        if seen is not None:
            table, before = seen
            if all(map(operator.is_, arrays, before)):
                return table
            if COMPILED and all(map(_alike, arrays, before)):
                for place, array in zip(self.places, arrays, strict=True):
                    table[place, 0] = array.ctypes.data
                self.seen = table, arrays
                return table
        self.seen = pack(Seen(self.visible(observation))), arrays
        return self.seen[0]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if "work" in state:  # the action is a view of an array that is kept
            state["work"] = state["seen"] = None
            del state["action"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "work" in state:
            self.action = self.granted if self.view == "allocation" else self.scores[:, 0]
