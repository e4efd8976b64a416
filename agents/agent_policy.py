"""AgentPolicy: a trained agent as a policy, which evaluations run like any other.

It acts in its own view on observations of tokens; ``policy.environment`` says with which parameters it was
trained. :func:`schedgym.evaluate` asks it for those that it acts under.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.agents.files import Agent, InvalidAgentFile, agent_paths, load_agent, load_pretrained, strip
from schedgym.agents.network import forward, shapes
from schedgym.agents.options import NetworkOptions
from schedgym.agents.scorer import Scorer, ScorerOptions
from schedgym.agents.views import Layout, layout_of
from schedgym.core.policy import Interface
from schedgym.core.problem import get_problem
from schedgym.core.rollouts import play_out, scoring_of
from schedgym.core.simulator import Simulator
from schedgym.core.tokens import effective_parameters, tokens_of
from schedgym.errors import InvalidParameter, SchedgymError, UnknownName

Observation = Mapping[str, npt.NDArray[Any]]

STATISTICS = "statistics/"

#: parameters that are an agent's way to see and to act, whatever an evaluation says
OWN = ("view", "observation")


class AgentPolicy:
    """A trained agent as a policy; deterministic.

    Args:
        agent: content of an agent file.
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
        self._plays = False
        self._layout: Layout | None = None
        self._scorer: Scorer | None = None

    def acting_parameters(self, id: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters under which it acts where ``given`` are those of an evaluation of ``id``.

        The parameters in OWN are always the agent's own; those that are no part of the problem
        (:attr:`~schedgym.core.tokens.Tokens.acting`) are as in its training where ``given`` leaves them out,
        except those that have no effect beside ``given``: it may act in problems where they mean nothing.

        Raises:
            InvalidParameter: for another id.
            InvalidAgentFile: if this version refuses the parameters of its training.
        """
        self.agent.check(id)
        try:
            problem = get_problem(self.agent.id)
            if self.agent.id not in problem.ids:
                raise UnknownName("environment id", self.agent.id, problem.ids)
            self.agent.check(problem=problem.name)
            trained = vars(problem.build(self.agent.id, self.environment))
        except SchedgymError as error:
            raise InvalidAgentFile(f"{self.name}: does not fit this version: {error}") from None
        acting = {name: trained[name] for name in tokens_of(problem.name).acting}
        own = {name: trained[name] for name in OWN} | {"action_mask": True}
        own = {name: value for name, value in own.items() if name in trained}
        asked = given if given.get("view") == own["view"] else ()  # else meant for others, too
        return effective_parameters(id, acting | dict(given) | own, asked)

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`.

        Raises:
            InvalidParameter: in another environment id, problem or view, without tokens, or with tokens that
                mean something else than in its training.
        """
        self.agent.check(interface.id, interface.view, interface.observation, interface.problem)
        trained = vars(get_problem(self.agent.id).build(self.agent.id, self.environment))
        # the columns of scorers depend on none of these parameters, the numbers of a context do
        by_columns = self.form == "scorer" and self.agent.metadata["network"].get("context") == "none"
        for name in () if by_columns else tokens_of(interface.problem).trained:
            own, given = trained[name], interface.parameters[name]
            if own != given:
                raise InvalidParameter(f"{self.name}: was trained with {name} {own}, not {given}")
        if not interface.parameters.get("action_mask", True):
            raise InvalidParameter(f"{self.name}: agents need action_mask=True")
        self._layout = self._scorer = None
        scorer = self.form == "scorer"
        self._plays = scorer and interface.view in scoring_of(interface.problem).played

    @property
    def compiled_rollout(self) -> Callable[[Simulator], float] | None:
        """See :class:`schedgym.core.policy.Policy`; None for networks, and in views that are not compiled."""
        return self._rollout if self._plays else None

    def _rollout(self, simulator: Simulator) -> float:
        """See :attr:`compiled_rollout`."""
        self._layout = self._prepare({name: array[0] for name, array in simulator.observation.items()})
        scorer = self._scorer
        assert scorer is not None
        weights = scorer.weights(self.agent.weights["theta"], 1)
        live = np.ones(1, dtype=bool)
        try:
            total, _ = play_out(simulator, scorer.form, scorer.masks, weights, live)
        except InvalidParameter:
            raise InvalidAgentFile(f"{self.name}: its scores are no numbers") from None
        return float(total[0])

    def _prepare(self, observation: Observation) -> Layout:
        """The layout, at the first decision of an episode: its sizes are those of the environment."""
        agent = self.agent
        layout = layout_of(agent.metadata["problem"], agent.view, observation)
        network = {name: value for name, value in agent.metadata["network"].items() if name != "form"}
        try:
            if self.form == "tokens":
                options = NetworkOptions.build(**network)
                known = shapes(layout, options.width, options.rounds)
                if known != {name: array.shape for name, array in agent.weights.items() if name in known}:
                    raise InvalidParameter("its weights have other names or shapes")
                return layout
            inputs = network.pop("inputs", None)
            scorer = Scorer(layout, ScorerOptions.build(**network), strip(agent.weights, STATISTICS))
            names = {"theta", *(f"{STATISTICS}{name}" for name in scorer.known_statistics)}
            if strange := sorted(agent.weights.keys() - names):
                raise InvalidParameter(f"it has unknown weights {strange[0]!r}")
            theta = agent.weights.get("theta")
            if inputs not in (None, scorer.inputs) or theta is None or theta.shape != (scorer.size,):
                raise InvalidParameter("it sees other columns")
        except SchedgymError as error:
            raise InvalidAgentFile(f"{self.name}: does not fit this version: {error}") from None
        self._scorer = scorer
        return layout

    def scores(self, observation: Observation) -> npt.NDArray[np.floating[Any]]:
        """The scores behind its decision on one observation, [size]."""
        if self._layout is None:
            self._layout = self._prepare(observation)
        batch = {name: np.asarray(value)[np.newaxis] for name, value in observation.items()}
        with np.errstate(over="ignore", invalid="ignore"):  # of absurd weights
            if self._scorer is not None:
                scores = self._scorer.scores(self.agent.weights["theta"], batch)[0]
            else:
                scores = np.asarray(forward(self._layout, self.agent.weights, batch)[0], np.float32)
        if np.isnan(scores).any():
            raise InvalidAgentFile(f"{self.name}: its scores are no numbers")
        return scores

    def __call__(self, observation: Observation) -> Any:
        """The action for one observation."""
        scores = self.scores(observation)
        assert self._layout is not None
        action = self._layout.decode(scores, observation)
        return int(action) if self._layout.kind == "choice" else action


def make_agent(source: str | Path | Agent, id: str) -> AgentPolicy:
    """The policy of an agent.

    Args:
        source: "pretrained", the path of an agent file, or the content of one.
        id: the environment id in which it is to act.

    Raises:
        InvalidParameter: if it is for another id.
        InvalidAgentFile, UnknownName, FileNotFoundError: if there is no such agent.
    """
    if isinstance(source, Agent):
        source.check(id)
        return AgentPolicy(source)
    if str(source) == "pretrained":
        return AgentPolicy(load_pretrained(id), "pretrained")
    return AgentPolicy(load_agent(source, id=id))


def agents_of(
    sources: str | Iterable[str], id: str, make: Callable[[str, str], AgentPolicy] = make_agent
) -> Iterator[AgentPolicy]:
    """The policies that ``make`` makes for an id of all agents that these texts name, folders among them."""
    for source in [sources] if isinstance(sources, str) else sources:
        for path in agent_paths(source):
            yield make(path, id)
