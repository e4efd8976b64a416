"""SearchPolicy: an agent that searches at decisions, in copies of the environment in which nothing arrives.

``search:pretrained`` names it wherever ``pretrained`` names the agent. ``search-64:FILE.npz`` tries 64
samples, by the agent of a file; ``search:pretrained:bf-exec`` tries what the baseline does, too;
``rollout:pretrained:bf-exec:dot-exec`` tries agent and baselines, and no samples.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from schedgym.agents.agent_policy import AgentPolicy, Observation, make_agent
from schedgym.agents.files import Agent
from schedgym.agents.simulation import advance
from schedgym.core.policy import Interface, make_policy
from schedgym.core.problem import get_problem
from schedgym.core.rollouts import play_out
from schedgym.core.simulator import Simulator
from schedgym.core.snapshots import Model
from schedgym.errors import InvalidParameter

SAMPLES = 16
FUTURES = 8
#: smallest and largest standard deviation of what samples add to scores; where no job comes after those that
#: are known, schedules pay that are far from the agent's, and are worse when others come
SPREADS = (0.01, 0.3)

_NAMED = re.compile(r"(?:search(?:-(?P<samples>\d{1,5}))?|(?P<rollout>rollout)):(?P<names>.+)")


class SearchPolicy(AgentPolicy):
    """An agent that follows the best of several plans for the jobs that have arrived.

    When jobs have arrived since the last search, it plays each plan to the end in copies of the environment
    that are as it is at present, and in which nothing arrives, and follows the best until others arrive. A
    plan is what the agent adds to the scores of each job: nothing, what the last search chose, or that and a
    normal random number for each job, with another standard deviation in each sample; or it is a baseline.

    Args:
        agent: content of an agent file.
        name: None: the file's.
        samples: number of random plans of a search.
        baselines: policies that act in the agent's view on exact units, and keep nothing in mind between
            decisions.
        futures: number of futures that a search draws from the generator; a plan is worth the mean over them.
            0: nothing more arrives in the copies.
        clairvoyant: True lets it know all jobs to come: a bound on what a search may find, and no policy.

    Attributes:
        plans: "known" or "clairvoyant": that evaluations :meth:`bind` it to a model, and to which.
    """

    def __init__(
        self,
        agent: Agent,
        name: str | None = None,
        samples: int = SAMPLES,
        baselines: Sequence[Any] = (),
        futures: int = 0,
        clairvoyant: bool = False,
    ) -> None:
        super().__init__(agent, name)
        self.samples, self.baselines, self.futures = samples, tuple(baselines), futures
        self.plans = "clairvoyant" if clairvoyant else "known"
        self._model: Model | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the model, which belongs to the environment that it acts in."""
        return {**self.__dict__, "_model": None}

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`.

        Raises:
            InvalidParameter: as an agent, and where it does not play compiled, where observations do not show
                all jobs, or hide something of them, and for a baseline that cannot act there.
        """
        super().reset(interface, rng)
        if not self._plays:
            raise InvalidParameter(f"{self.name}: the agent plays no whole episodes in view {interface.view}")
        if interface.parameters.get("window", "all") != "all":
            raise InvalidParameter(f"{self.name}: needs window='all', to know all jobs that have arrived")
        hidden = get_problem(interface.problem).hidden
        if hidden is not None and self.plans == "known" and (what := hidden(interface.parameters)):
            raise InvalidParameter(f"{self.name}: cannot try what follows: observations hide {what}")
        if self.futures and any(interface.parameters.get(name) for name in ("trace", "workload")):
            raise InvalidParameter(f"{self.name}: draws futures, and needs a generator of jobs")
        exact = {**interface.parameters, "observation": "dict"}
        self._exact = dataclasses.replace(interface, observation="dict", parameters=exact)
        for baseline in self.baselines:
            baseline.reset(self._exact, rng)
        self._rng, self._model, self._arrived = rng, None, 0
        self._followed: Any = None  # the baseline that is the plan, if one is

    @property
    def compiled_rollout(self) -> None:
        """None: it decides anew when jobs arrive."""
        return None

    def bind(self, model: Model) -> None:
        """Take the model of the environment in which an episode has begun."""
        self._model = model
        if self.baselines:
            model.show_exact()

    def __call__(self, observation: Observation) -> Any:
        """The action for one observation.

        Raises:
            InvalidParameter: if nobody has bound it to a model since the episode began.
        """
        if self._model is None:
            raise InvalidParameter(f"{self.name}: plans, and must be bound to a model of the environment")
        if self._layout is None:
            self._layout = self._prepare(observation)
            first = self._layout.segments[0]
            self._offsets = np.zeros((first.count // first.width, first.width))
        if self._model.arrived != self._arrived:
            self._search(self._model)
            self._arrived = self._model.arrived
        if self._followed is None:
            action = super().__call__(observation)
        else:
            action = self._followed(self._model.observation)
        self._model.follow(action)
        return action

    def scores(self, observation: Observation) -> Any:
        """The scores behind its decision on one observation, with what the plan adds to them, [size]."""
        scores = np.array(super().scores(observation))
        assert self._layout is not None and self._model is not None
        numbers, count = self._model.numbers, len(self._offsets)
        # rows without a job have no number that counts
        added = self._offsets if numbers is None else self._offsets[numbers[:count] % count]
        scores[self._layout.places[0]] += added.ravel()
        return scores

    def _search(self, model: Model) -> None:
        """Choose the plan; of equals the first, which are that so far and the agent's."""
        scorer, kept = self._scorer, self._offsets
        assert scorer is not None
        plans = np.zeros((1, *kept.shape))
        if self.samples:
            spreads = np.geomspace(*SPREADS, self.samples)[:, np.newaxis, np.newaxis]
            tried = kept + spreads * self._rng.standard_normal((self.samples, *kept.shape))
            plans = np.concatenate([kept[np.newaxis], plans, tried])
        count = len(plans)
        weights, live = scorer.weights(self.agent.weights["theta"], count), np.ones(count, dtype=bool)
        totals = np.zeros(count + len(self.baselines))
        for seed in self._rng.integers(2**62, size=self.futures).tolist() or [None]:
            copies = model.copies(count, seed)
            offsets = plans.reshape(count, -1)
            totals[:count] += play_out(copies, scorer.form, scorer.masks, weights, live, offsets)[0]
            totals[count:] += [self._try(own, model.copies(1, seed, exact=True)) for own in self.baselines]
        best = int(np.argmax(totals))
        self._followed = None
        if best < count:
            self._offsets = plans[best]
        else:
            self._followed = self.baselines[best - count]
            self._followed.reset(self._exact, self._rng)

    def _try(self, baseline: Any, copy: Simulator) -> float:
        """The sum of the rewards if a baseline decides to the end in a copy of the environment."""
        baseline.reset(self._exact, self._rng)
        if (rollout := getattr(baseline, "compiled_rollout", None)) is not None:
            return float(rollout(copy))
        live, total = np.ones(1, dtype=bool), 0.0
        while not (copy.terminated[0] or copy.truncated[0]):
            action = baseline({name: array[0] for name, array in copy.observation.items()})
            advance(copy, action, live)
            total += float(copy.reward[0])
        return total


def is_contender(name: str) -> bool:
    """Return True for what :func:`make_contender` takes, and not a folder or the name of a baseline."""
    return name == "pretrained" or name.endswith(".npz") or _NAMED.fullmatch(name) is not None


def make_contender(source: str, id: str) -> AgentPolicy:
    """The policy of an agent, or of a search by one; see the module for what names them.

    Raises:
        InvalidParameter, InvalidAgentFile, FileNotFoundError: as :func:`make_agent`.
        UnknownName: for a policy that does not exist.
    """
    named = _NAMED.fullmatch(source)
    if named is None:
        return make_agent(source, id)
    name, *others = named["names"].split(":")
    samples, futures = (0, FUTURES) if named["rollout"] else (int(named["samples"] or SAMPLES), 0)
    baselines = [make_policy(other, get_problem(id).name) for other in others]
    return SearchPolicy(make_agent(name, id).agent, source, samples, baselines, futures)
