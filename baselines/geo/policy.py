"""GeoPolicy: the base of all geo policies."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from schedgym.core.policy import Interface
from schedgym.core.rollouts import play_by_rule
from schedgym.errors import InvalidParameter
from schedgym.problems.geo.orders import Cluster
from schedgym.problems.geo.rules import work_sizes
from schedgym.solvers.balance import make_site_lists

#: of fewer, an episode takes less time than to compile a kernel that plays it, but for
#: traces, whose jobs may have thousands of tasks
MANY_JOBS = 1000


class GeoPolicy:
    """Base of the geo policies.

    With a window smaller than the number of active jobs, a policy sees and serves only the first ones:
    evaluate with ``window="all"``.

    Args:
        rule: name of the algorithm.
        views: the action views that can express it.
    """

    def __init__(self, rule: str, views: tuple[str, ...]) -> None:
        self.rule, self.views = rule, views

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`; InvalidParameter if the view cannot carry the policy."""
        interface.check(self.rule, self.views)
        for option, value in self.beyond(interface).items():
            raise InvalidParameter(
                f"{self.rule} with {option}={value!r} cannot be expressed in view {interface.view!r}"
            )
        interface.check_needs(f"{self.rule} in view {interface.view!r}", self.needs(interface))
        self.rng = rng
        self.view = interface.view
        self.window, self.sites = interface.sizes["window"], interface.sizes["sites"]
        self.groups, self.choices = interface.sizes["groups"], interface.sizes["choices"]
        self.work: tuple[Any, Any] | None = None
        self.rows = 0
        ruled = self.ruled(interface)
        jobs, trace, window = (interface.parameters[name] for name in ("jobs", "trace", "window"))
        whole = interface.view in ("rule", "fair-rule") or window == "all"
        self.compiled_rollout: Callable[[Any], float] | None = None
        if whole and ruled is not None and (trace is not None or (jobs or 0) >= MANY_JOBS):
            self.compiled_rollout = functools.partial(play_by_rule, rule=ruled)

    def ruled(self, interface: Interface) -> Any:
        """Return the policy as :data:`schedgym.problems.geo.rollouts.PLAY` takes it; None: it cannot."""
        return None

    def beyond(self, interface: Interface) -> dict[str, Any]:
        """Return the options, with their values, that the view cannot express."""
        return {}

    def needs(self, interface: Interface) -> dict[str, Any]:
        """Return the parameters of the environment that the policy needs in the view."""
        return {}

    def prepare(self, observation: dict[str, Any], rows: int) -> tuple[Any, Any]:
        """Make the packed arrays for decisions on up to ``rows`` jobs of this episode."""
        raise NotImplementedError

    def ready(self, observation: dict[str, Any], count: int) -> tuple[Any, Any]:
        """Return the result of :meth:`prepare`, made or enlarged if ``count`` jobs need it."""
        if count > self.rows:
            self.rows = min(max(count, 2 * self.rows, 64), self.window)
            self.work = None
        if self.work is None:
            self.work = self.prepare(observation, self.rows)
        return self.work

    def cluster(self, observation: dict[str, Any]) -> Cluster:
        """Return the groups' sites and the sites' slots, which do not change in an episode."""
        slots = np.array(observation["slots"], dtype=np.int64)
        return Cluster(slots, *make_site_lists(observation["sites"], len(slots)))

    def sizes(self, rows: int) -> dict[str, int]:
        """Return the lengths of the dimensions for decisions on up to ``rows`` jobs."""
        work = work_sizes(rows, self.groups, self.choices, self.sites)
        return work | {"entry": self.groups * self.choices}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | ({"work": None} if "work" in self.__dict__ else {})
