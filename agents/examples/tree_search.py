"""Tree search at each decision (PUCT) on saved and restored environments, the shipped agent at its leaves.

``python -m schedgym.agents.examples.tree_search --id schedgym/SingleJob-v0 --simulations 10 100 1000``

A simulation restores the environment, follows the tree, adds a node to it, and lets the agent play the
episode to its end in compiled code. A clairvoyant search restores the jobs that have not arrived yet, too,
which no scheduler can know; else each simulation has others, drawn from the generator, and only then is the
result one of a policy.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import numpy as np

from schedgym.agents.agent_policy import AgentPolicy, make_agent
from schedgym.core.files import atomic_write
from schedgym.core.problem import get_problem
from schedgym.envs import SchedulingEnv

#: small instances, of which a search of 1,000 simulations a decision takes about a minute an episode
PARAMETERS: dict[str, dict[str, Any]] = {
    "schedgym/QueueDelay-v0": {"tasks": 14, "servers": 1, "window": 8, "arrival_rate": 1.0},
    "schedgym/SingleJob-v0": {"tasks": 6, "arity": 4},
}
AGENT_PRIOR = 0.5  # of the agent's action; all other feasible ones share the rest

Action = tuple[int, ...]  # the components of an action


def feasible_actions(observation: Any) -> list[Action]:
    """The actions that the mask allows; where it has a row a task, starting none is one more."""
    mask = observation["action_mask"]
    found: list[Action] = [tuple(row) for row in np.argwhere(mask).tolist()]
    return [*found, (len(mask), 0)] if mask.ndim > 1 else found


def components(action: Any) -> Action:
    """The components of an action of the environment's."""
    return tuple(int(value) for value in np.ravel(action))


@dataclasses.dataclass
class Node:
    """What simulations have found out about a sequence of actions."""

    prior: float = 1.0
    visits: int = 0
    total: float = 0.0  # of the rewards of the episodes that went through it
    children: dict[Action, Node] = dataclasses.field(default_factory=dict)

    def expand(self, feasible: Sequence[Action], preferred: Action) -> None:
        """Add a child for each feasible action that has none: in another future others may be feasible."""
        for action in feasible:
            if action not in self.children:
                share = (1.0 - AGENT_PRIOR) / max(len(feasible) - 1, 1)
                self.children[action] = Node(AGENT_PRIOR if action == preferred else share)

    def choose(self, feasible: Sequence[Action], exploration: float, low: float, high: float) -> Action:
        """The feasible action with the best sum of mean (from 0 to 1) and bonus for what is rarely tried."""
        width = max(high - low, 1e-12)

        def value(action: Action) -> float:
            child = self.children[action]
            mean = (child.total / child.visits - low) / width if child.visits else 0.5
            return mean + exploration * child.prior * math.sqrt(self.visits + 1) / (1 + child.visits)

        return max(feasible, key=value)


class TreeSearch:
    """Chooses actions of one environment by searching in it.

    Args:
        env: an environment whose observations have the mask of its actions; its state is left as it was.
        agent: an agent that plays compiled in its view.
        simulations: number of simulations of each decision.
        clairvoyant: True lets it know the jobs that have not arrived yet.
        exploration: weight of the bonus for actions that were rarely tried.
        seed: of the futures that are drawn.
    """

    def __init__(
        self,
        env: SchedulingEnv,
        agent: AgentPolicy,
        simulations: int,
        clairvoyant: bool = False,
        exploration: float = 0.5,
        seed: int = 0,
    ) -> None:
        self.env, self.agent, self.simulations = env, agent, simulations
        self.clairvoyant, self.exploration = clairvoyant, exploration
        self.rng = np.random.default_rng(seed)

    def __call__(self, observation: Any) -> Any:
        """The action that most simulations have taken; among equals the one with the best mean."""
        state, root = self.env.save(), Node()
        self.low, self.high = math.inf, -math.inf  # of the sums of rewards from here on
        if len(feasible_actions(observation)) == 1:
            return self.agent(observation)
        for _ in range(self.simulations):
            future = None if self.clairvoyant else int(self.rng.integers(2**62))
            self._simulate(root, self.env.restore(state, resample=future))
        self.env.restore(state)
        children = root.children
        return self._action(
            max(children, key=lambda action: (children[action].visits, children[action].total))
        )

    def _action(self, action: Action) -> Any:
        return np.array(action) if len(action) > 1 else action[0]

    def _simulate(self, root: Node, observation: Any) -> None:
        node, path, total, ended = root, [root], 0.0, False
        while not ended:
            feasible = feasible_actions(observation)
            is_new = not node.children
            if any(action not in node.children for action in feasible):
                node.expand(feasible, components(self.agent(observation)))
            if is_new and node is not root:  # the agent plays on
                total += self.env.finish(self.agent.compiled_rollout)[0]  # type: ignore[arg-type]
                break
            action = node.choose(feasible, self.exploration, self.low, self.high)
            node = node.children[action]
            path.append(node)
            observation, reward, terminated, truncated, _ = self.env.step(self._action(action))
            total, ended = total + reward, terminated or truncated
        self.low, self.high = min(self.low, total), max(self.high, total)
        for node in path:
            node.visits, node.total = node.visits + 1, node.total + total


def play(id: str, simulations: int, seed: int, episode: int, clairvoyant: bool, **parameters: Any) -> float:
    """The objective of an episode by tree search, or with 0 simulations by the agent alone."""
    agent = make_agent("pretrained", id)
    acting = agent.acting_parameters(id, {**PARAMETERS.get(id, {}), **parameters})
    env = cast(SchedulingEnv, gym.make(id, disable_env_checker=True, copy=False, **acting).unwrapped)
    observation, _ = env.reset(seed=seed, options={"episode": episode})
    agent.reset(env.interface, np.random.default_rng(seed))
    choose: Any = TreeSearch(env, agent, simulations, clairvoyant) if simulations else agent
    ended = False
    while not ended:
        observation, _, terminated, truncated, info = env.step(choose(observation))
        ended = terminated or truncated
    problem = get_problem(id)
    return float(info["metrics"][problem.objective_of(env.simulator.parameters)])


def main(arguments: Sequence[str] | None = None) -> dict[str, list[float]]:
    """Print and return the objectives of episodes by the agent and by each search."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--id", default="schedgym/QueueDelay-v0", choices=sorted(PARAMETERS))
    parser.add_argument("--simulations", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--episodes", type=int, default=3)
    parser.add_argument("--seed", type=int, default=424242)
    parser.add_argument("--json", metavar="FILE", help="write the objectives to this file, too")
    given = parser.parse_args(arguments)
    found: dict[str, list[float]] = {}
    for count in (0, *given.simulations):
        for clairvoyant in (False, True)[: 1 + bool(count)]:
            began = time.process_time()
            name = (
                f"{count} simulations, {'clairvoyant' if clairvoyant else 'resampled'}" if count else "agent"
            )
            found[name] = [
                play(given.id, count, given.seed, episode, clairvoyant) for episode in range(given.episodes)
            ]
            ratio = np.mean(found[name]) / np.mean(found["agent"])
            print(
                f"{name:>30}: mean {np.mean(found[name]):.6g}, {ratio:.4f} of the agent's, "
                f"{(time.process_time() - began) / given.episodes:.1f} s of CPU an episode"
            )
    if given.json is not None:
        told = {"id": given.id, "parameters": PARAMETERS[given.id], "seed": given.seed, "objectives": found}
        with atomic_write(Path(given.json)) as stream:
            stream.write(json.dumps(told, indent=1) + "\n")
    return found


if __name__ == "__main__":
    main()
