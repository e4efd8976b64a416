"""PPO in one file, as CleanRL writes it: PyTorch and a native vector environment, nothing else.

``python -m schedgym.agents.examples.cleanrl_ppo --steps 200000``
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

import schedgym  # noqa: F401  (registers the ids)
from schedgym.core.arrays import Integers
from schedgym.errors import InvalidParameter
from schedgym.extras import require

torch: Any = require("torch", "agents")
nn: Any = torch.nn

ID = "schedgym/QueueDelay-v0"
#: strict: an infeasible action raises, so that the masks are seen to work
PARAMETERS: dict[str, Any] = {
    "view": "pick",
    "observation": "features",
    "tasks": 30,
    "servers": 3,
    "window": 8,
    "strict": True,
}

NUM_ENVS = 16
NUM_STEPS = 64  # of each environment between updates
EPOCHS = 4
MINIBATCHES = 4
LEARNING_RATE = 2e-3  # falls to 0
GAMMA = 1.0  # undiscounted, the rewards sum to the objective
GAE_LAMBDA = 0.95
CLIP = 0.2
ENTROPY, VALUE = 0.0, 0.5
MAX_GRAD_NORM = 0.5

Observation = dict[str, Any]


class Agent(nn.Module):  # type: ignore[misc]
    """Scores of the visible tasks and of closing the epoch, and the value, for any order of the tasks.

    Args:
        space: space of the observations of one environment.
        width: width of the hidden layers.
    """

    def __init__(self, space: gym.spaces.Dict, width: int = 32) -> None:
        super().__init__()
        tasks, servers, fixed = (space[name].shape[-1] for name in ("tasks", "servers", "globals"))  # type: ignore[index]

        def layers(inputs: int, outputs: int) -> Any:
            return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, outputs))

        self.task, self.server = layers(tasks, width), layers(servers, width)
        self.context = layers(2 * width + fixed, width)
        self.score, self.close, self.value = layers(2 * width, 1), layers(width, 1), layers(width, 1)

    def forward(self, observation: Observation) -> tuple[Any, Any]:
        """Logits [B, tasks + 1] and values [B] of a batch; actions that are closed have none."""
        task, there = self.task(observation["tasks"]), observation["task_mask"][..., None]
        pooled = (
            (task * there).sum(1) / there.sum(1).clamp(min=1),
            self.server(observation["servers"]).mean(1),
        )
        context = self.context(torch.cat([*pooled, observation["globals"]], dim=-1)).relu()
        beside = context[:, None].expand(-1, task.shape[1], -1)
        scores = self.score(torch.cat([task, beside], dim=-1))[..., 0]
        logits = torch.cat([scores, self.close(context)], dim=-1)
        return logits.masked_fill(observation["action_mask"] == 0, -1e8), self.value(context)[:, 0]

    def act(self, observation: dict[str, Any]) -> Integers:
        """The likeliest actions, [B]."""
        with torch.no_grad():
            return self(tensors(observation))[0].argmax(dim=-1).numpy()


def tensors(observation: dict[str, Any]) -> Observation:
    """A batch of observations for the network, float32 [B, ...]."""
    return {name: torch.as_tensor(array, dtype=torch.float32) for name, array in observation.items()}


def main(
    steps: int = 200_000, seed: int = 0, report: Callable[[str], Any] | None = print
) -> tuple[Agent, list[float]]:
    """Train an agent.

    Args:
        steps: environment steps, in all environments together.
        seed: seed of the environments (environment i has seed + i) and of the network.
        report: called with a line on the progress from time to time.

    Returns:
        the agent, and the mean delay [s] of each episode in the order in which they ended.

    Raises:
        InvalidParameter: if the steps do not make one update.
    """
    batch = NUM_ENVS * NUM_STEPS
    updates = steps // batch
    if updates < 1:
        raise InvalidParameter(f"steps: must be at least {batch}, got {steps}")
    torch.manual_seed(seed)
    envs = gym.make_vec(
        ID,
        num_envs=NUM_ENVS,
        vectorization_mode="vector_entry_point",
        autoreset_mode="SameStep",
        **PARAMETERS,
    )
    envs = gym.wrappers.vector.NormalizeReward(envs, gamma=GAMMA)
    agent = Agent(envs.single_observation_space)  # type: ignore[arg-type]
    optimizer = torch.optim.Adam(agent.parameters(), lr=LEARNING_RATE, eps=1e-5)
    observation = tensors(envs.reset(seed=seed)[0])
    delays: list[float] = []
    began = time.perf_counter()
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1.0 - update / updates)

        seen, actions, log_probs, values, rewards, ends = [], [], [], [], [], []
        for _ in range(NUM_STEPS):
            with torch.no_grad():
                logits, value = agent(observation)
            choice = torch.distributions.Categorical(logits=logits)
            action = choice.sample()
            seen.append(observation)
            actions.append(action)
            log_probs.append(choice.log_prob(action))
            values.append(value)
            following, reward, terminated, truncated, infos = envs.step(action.numpy())
            # the last reward of a truncated episode charges all that was left: every end is final
            done = terminated | truncated
            rewards.append(torch.as_tensor(reward, dtype=torch.float32))
            ends.append(torch.as_tensor(done, dtype=torch.float32))
            if done.any():
                delays += infos["final_info"]["metrics"]["mean_delay"][done].tolist()
            observation = tensors(following)  # where done, the first of the next episode

        with torch.no_grad():
            next_value = agent(observation)[1]
        advantage, advantages = torch.zeros(NUM_ENVS), []
        for value, reward, end in zip(values[::-1], rewards[::-1], ends[::-1], strict=True):
            delta = reward + GAMMA * next_value * (1.0 - end) - value
            advantage = delta + GAMMA * GAE_LAMBDA * (1.0 - end) * advantage
            advantages.append(advantage)
            next_value = value

        flat = {name: torch.cat([one[name] for one in seen]) for name in seen[0]}
        action, log_prob, value = torch.cat(actions), torch.cat(log_probs), torch.cat(values)
        advantage = torch.cat(advantages[::-1])
        target = advantage + value
        for _ in range(EPOCHS):
            for rows in torch.randperm(batch).split(batch // MINIBATCHES):
                logits, predicted = agent({name: array[rows] for name, array in flat.items()})
                choice = torch.distributions.Categorical(logits=logits)
                ratio = (choice.log_prob(action[rows]) - log_prob[rows]).exp()
                gain = (advantage[rows] - advantage[rows].mean()) / (advantage[rows].std() + 1e-8)
                policy_loss = -torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
                value_loss = (predicted - target[rows]).square().mean()
                loss = policy_loss + VALUE * value_loss - ENTROPY * choice.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), MAX_GRAD_NORM)
                optimizer.step()

        if report is not None and delays and (update + 1) % max(updates // 10, 1) == 0:
            done_steps, speed = (update + 1) * batch, (update + 1) * batch / (time.perf_counter() - began)
            recent = np.mean(delays[-100:])
            report(
                f"{done_steps} steps, {speed:.0f} a second, mean delay in the last episodes {recent:.3f} s"
            )
    envs.close()
    return agent, delays


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="PPO on a native vector environment.")
    parser.add_argument("--steps", type=int, default=200_000, help="environment steps")
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
