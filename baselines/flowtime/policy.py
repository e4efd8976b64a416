"""FlowtimePolicy: what all policies of flowtime share, whatever they decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.baselines.solvers.transport import TransportScratch, make_transport_scratch
from schedgym.core.policy import Interface
from schedgym.errors import InvalidParameter
from schedgym.problems.flowtime.schemes import FRESH, LOCALITY, PLACE, STICKY, Visible, locality_rows

__all__ = ["PACKINGS", "FlowtimePolicy"]

PACKINGS = ("fresh", "sticky")
NONE_1 = np.zeros(0, dtype=np.int64)
NONE_2 = np.zeros((0, 2), dtype=np.int64)
NO_LATENCY = np.zeros((0, 0))


class FlowtimePolicy:
    """Base of the flowtime policies.

    With a window smaller than the number of visible jobs a policy sees, and decides on, the first ones only:
    evaluate with ``window="all"``.

    Args:
        label: what to call it in an error.
        views: the action views that can express it.
        kinds: the kinds of jobs that it can schedule.
        packing: "fresh" or "sticky" (1D and MapReduce without latencies): whether the cores are packed anew
            in every slot, or around those in place; None: as the environment's parameter says.
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
        if interface.observation != "dict":
            raise InvalidParameter(f"{self.label} reads exact units: needs observation='dict'")
        if interface.view not in self.views:
            raise InvalidParameter(f"{self.label} cannot be expressed in view {interface.view!r}")
        if known["kind"] not in self.kinds:
            raise InvalidParameter(f"{self.label} is not defined for kind {known['kind']!r}")
        for name, value in self.needs(interface).items():
            if known[name] != value:
                raise InvalidParameter(
                    f"{self.label} in view {interface.view!r} needs {name}={value!r}, "
                    f"the environment has {known[name]!r}"
                )
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

    def needs(self, interface: Interface) -> dict[str, Any]:
        """The parameters of the environment that the policy needs in the view."""
        if interface.view in ("priority", "rule") and self.packing is not None:
            return {"packing": self.packing}
        return {}

    def prepare(self, observation: dict[str, Any], rows: int) -> Any:
        """The work space for up to ``rows`` jobs of this episode."""
        raise NotImplementedError

    def ready(self, observation: dict[str, Any], count: int) -> Any:
        """The work space, made or enlarged if ``count`` jobs need it."""
        if count > self.rows:
            self.rows = min(max(count, 2 * self.rows, 64), self.window)
            self.work = None
        if self.work is None:
            self.work = self.prepare(observation, self.rows)
        return self.work[0]

    def how(self, observation: dict[str, Any]) -> int:
        """How cores come to servers."""
        if self.kind == "2d":
            return PLACE
        if "latency" in observation:
            return LOCALITY
        return STICKY if self.sticky else FRESH

    def network(self, observation: dict[str, Any], rows: int) -> TransportScratch:
        """The work space of LOCALITY, with no rows where it is not needed."""
        count = 0
        if "latency" in observation:
            half = observation["task_remaining"].shape[2]
            count = int(locality_rows(rows, half, int(observation["server_cpu"].sum())))
        return make_transport_scratch(count, self.servers)

    def capacities(self, observation: dict[str, Any]) -> tuple[npt.NDArray[np.int64], ...]:
        """Cores and memory of the servers: both stay as they are in an episode."""
        cpu = np.array(observation["server_cpu"], dtype=np.int64)
        return cpu, np.array(observation.get("server_memory", np.zeros_like(cpu)), dtype=np.int64)

    def visible(self, seen: dict[str, Any]) -> Visible:
        """The visible jobs of an observation."""
        if self.kind == "mapreduce":
            tasks = seen["task_remaining"]
            latency = NO_LATENCY
            if "latency" in seen:
                latency = seen["latency"].reshape(self.window, -1)
            return Visible(
                NONE_1,
                NONE_1,
                seen["slots_left"],
                seen["remaining"],
                seen["volume"],
                seen["cap"],
                seen["held"],
                seen["phase"],
                seen["tasks"],
                seen["demand"],
                tasks.reshape(self.window, -1),
                latency,
            )
        return Visible(
            seen["demand"],
            seen["memory"] if self.kind == "2d" else NONE_1,
            seen["slots_left"],
            seen["remaining"],
            seen["volume"],
            seen["cap"],
            seen["held"],
            NONE_1,
            NONE_2,
            NONE_2,
            NONE_2,
            NO_LATENCY,
        )

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if "work" in state:  # the action is a view of an array that is kept
            state["work"] = None
            del state["action"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "work" in state:
            self.action = self.granted if self.view == "allocation" else self.scores[:, 0]
