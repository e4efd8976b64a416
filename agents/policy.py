"""AgentPolicy: a trained agent as a policy, which evaluations run like any other.

It acts in its own view on observations of tokens; ``policy.environment`` says with which
parameters it was trained. :func:`evaluate_agents` runs agents and baselines on the same episodes, each in
the environment that it acts in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from schedgym.agents.files import Agent, InvalidAgentFile, load_agent, load_pretrained
from schedgym.agents.linear import Scorer, ScorerOptions
from schedgym.agents.views import Layout, layout_of
from schedgym.core.policy import Interface
from schedgym.errors import InvalidParameter, SchedgymError
from schedgym.evaluation import require
from schedgym.evaluation.runner import evaluate, resolve_id

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ACTING", "OWN", "AgentPolicy", "evaluate_agents", "make_agent"]

Observation = Mapping[str, npt.NDArray[Any]]

#: parameters that are an agent's way to see and to act, whatever an evaluation says ...
OWN = ("view", "observation")
#: ... and those that may be, unless an evaluation says otherwise; all others say what the problem is
ACTING = (
    *("window", "running_window", "rule", "scope", "order", "placement", "dispatch_sites", "packing"),
    *("rounds", "max_moves", "single_task", "aggressive", "work_conserving"),
)


class AgentPolicy:
    """A trained agent as a policy; deterministic.

    Args:
        agent: of an agent file.
        name: None: the file's.

    Attributes:
        environment: keyword arguments of the environment that it was trained in.

    Raises:
        InvalidAgentFile: if its network is of a form that is not known.
    """

    def __init__(self, agent: Agent, name: str | None = None) -> None:
        self.agent, self.name = agent, name or agent.name
        self.environment = agent.environment
        self.form = str(agent.metadata["network"].get("form"))
        if self.form not in ("scorer", "tokens"):
            raise InvalidAgentFile(f"{agent.name}: unknown form of network {self.form!r}")
        self._layout: Layout | None = None
        self._scorer: Scorer | None = None

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`.

        Raises:
            InvalidParameter: in another environment id or view, or without tokens.
        """
        agent = self.agent
        for what, wanted, given in (
            ("environment", agent.id, interface.id),
            ("view", agent.view, interface.view),
            ("observation", agent.metadata["observation"], interface.observation),
        ):
            if wanted != given:
                raise InvalidParameter(f"{self.name}: this agent is for {what} {wanted!r}, not for {given!r}")
        self._layout = self._scorer = None

    def _prepare(self, observation: Observation) -> Layout:
        """The layout, at the first decision of an episode: its sizes are those of the environment."""
        layout = layout_of(self.agent.metadata["problem"], self.agent.view, observation)
        if self.form == "scorer":
            given = {n: v for n, v in self.agent.metadata["network"].items() if n != "form"}
            prefix = "statistics/"
            statistics = {
                name.removeprefix(prefix): array
                for name, array in self.agent.weights.items()
                if name.startswith(prefix)
            }
            try:
                scorer = Scorer(layout, ScorerOptions.build(**given), statistics)
            except SchedgymError as error:
                raise InvalidAgentFile(f"{self.name}: does not fit this version: {error}") from None
            if self.agent.weights["theta"].shape != (scorer.size,):
                raise InvalidAgentFile(f"{self.name}: does not fit this version or these sizes")
            self._scorer = scorer
        return layout

    def scores(self, observation: Observation) -> npt.NDArray[np.float32]:
        """The scores behind its decision on one observation, [size]."""
        if self._layout is None:
            self._layout = self._prepare(observation)
        batch = {name: np.asarray(value)[np.newaxis] for name, value in observation.items()}
        if self._scorer is not None:
            return self._scorer.scores(self.agent.weights["theta"], batch)[0]
        from schedgym.agents import tokens

        return np.asarray(tokens.forward(self._layout, self.agent.weights, batch)[0], dtype=np.float32)

    def __call__(self, observation: Observation) -> Any:
        """The action for one observation."""
        scores = self.scores(observation)
        assert self._layout is not None
        action = self._layout.decode(scores, observation)
        return int(action) if self._layout.kind == "choice" else action


def make_agent(source: str | Path | Agent, id: str) -> AgentPolicy:
    """The policy of an agent.

    Args:
        source: "pretrained", the path of an agent file, or what it holds.
        id: the environment id in which it is to act.

    Raises:
        InvalidParameter: if it is for another id.
        InvalidAgentFile, UnknownName, FileNotFoundError: if there is no such agent.
    """
    if isinstance(source, Agent):
        agent = source
        if agent.id != id:
            raise InvalidParameter(
                f"{agent.name}: this agent is for environment {agent.id!r}, not for {id!r}"
            )
        return AgentPolicy(agent)
    if str(source) == "pretrained":
        return AgentPolicy(load_pretrained(id), "pretrained")
    return AgentPolicy(load_agent(source, id=id))


def evaluate_agents(
    env_id: str,
    agents: Mapping[str, AgentPolicy],
    policies: Any = None,
    episodes: int | None = None,
    seed: int = 0,
    *,
    parameters: Mapping[str, Any] | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Run agents and policies on the same episodes, each in the environment that it acts in.

    Args:
        env_id: environment id, or the problem's name.
        agents: label -> agent.
        policies: as for :func:`~schedgym.evaluation.runner.evaluate`.
        episodes: the same.
        seed: the same; training takes seeds from 2^40.
        parameters: of the environment, for all. Of those that an agent was trained with, only OWN and
            ACTING are its own.
        options: further arguments of ``evaluate``.

    Returns:
        the frame of ``evaluate``, agents last.

    Raises:
        InvalidParameter: for a label that is a policy's, too, and what ``evaluate`` raises.
    """
    pandas = require("pandas")
    _, id = resolve_id(env_id)
    given = dict(parameters or {})
    frame = evaluate(id, policies, episodes, seed, parameters=given, **options)
    taken = set(frame["policy"])
    count = int(frame.attrs["episodes"]) if options.get("workloads") is None else episodes
    parts, views = [frame], dict(frame.attrs.get("views", {}))
    for label, agent in agents.items():
        if label in taken:
            raise InvalidParameter(f"agents: {label!r} is the name of a policy, too")
        own = agent.environment
        acting = {name: value for name, value in own.items() if name in ACTING}
        acting |= {**given, "action_mask": True, **{name: own[name] for name in OWN}}
        rest = {name: value for name, value in options.items() if name != "options"}
        parts.append(evaluate(id, {label: agent}, count, seed, parameters=acting, **rest))
        views[label] = agent.agent.view
    whole = pandas.concat(parts, ignore_index=True)
    whole.attrs = {**frame.attrs, "views": views}
    return whole
