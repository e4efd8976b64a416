"""Every scheme through the environment against the plain-Python oracle: equal starts, bit for bit."""

import random

import gymnasium as gym
import numpy as np
import pytest

import schedgym
from schedgym.problems.queue_delay.metrics import fates, metrics, validate
from schedgym.problems.queue_delay.rules import SCHEMES
from schedgym.problems.queue_delay.workload import make_workload
from tests.queue_delay import oracle


def run(env, policy, workload, rng=None):
    """Play one episode; returns (record, sum of rewards, final info)."""
    observation, info = env.reset(options={"workload": workload})
    policy.reset(env.unwrapped.interface, rng or np.random.default_rng(0))
    total, done = 0.0, False
    while not done:
        observation, reward, terminated, truncated, info = env.step(policy(observation))
        total += reward
        done = terminated or truncated
    return env.unwrapped.record(), total, info


def make(workload, **parameters):
    given = {"view": "placement", "window": "all", "action_mask": False} | parameters
    return gym.make(
        "schedgym/QueueDelay-v0",
        disable_env_checker=True,
        tasks=len(workload.jobs["arrival"]),
        servers=len(workload.cluster["cpu"]),
        copy=False,
        **given,
    )


BLOCKING = ("ffd-nb", "ffd-product", "ffd-sum", "ffd-avgsum")
VARIANTS = [(name, {}) for name in SCHEMES if not name.startswith("rf")] + [
    (name, {"blocking": True}) for name in BLOCKING
]


@pytest.mark.parametrize(("name", "options"), VARIANTS)
@pytest.mark.parametrize("adversarial", [True, False])
def test_starts_equal_the_oracle(name, options, adversarial):
    source = random.Random(f"{name}{options}{adversarial}")
    policy = schedgym.make_policy(name, "queue-delay", **options)
    for _ in range(60):
        tasks, servers = oracle.random_instance(source, adversarial=adversarial)
        workload = make_workload(tasks, servers)
        record, total, info = run(make(workload), policy, workload)
        expected = oracle.simulate(tasks, servers, name, **options)
        assert fates(record)["start"] == expected.start
        assert fates(record)["server"] == expected.server
        validate(record)
        reference = oracle.metrics(tasks, servers, expected)
        for metric, value in metrics(record).items():
            if metric != "repaired":
                assert value == pytest.approx(reference[metric], rel=1e-9, abs=1e-9), metric
        assert total == pytest.approx(-reference["mean_delay"], rel=1e-12, abs=1e-9)
        assert info["metrics"]["repaired"] == 0
        assert len(record.workload.jobs["arrival"]) - len(record.job) == len(expected.stranded)
