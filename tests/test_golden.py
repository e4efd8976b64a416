"""Digests of whole schedules per (id, seed, policy): they change only with the version of the id.

To write them anew after such a change:

    SCHEDGYM_UPDATE_GOLDEN=1 python -m pytest tests/test_golden.py

and look at the difference before you commit it. The workloads are drawn through the C library's exp, log
and cos; a platform whose library rounds them differently draws others.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import schedgym
from schedgym.core.files import atomic_write
from schedgym.core.policy import get_policy_spec
from schedgym.core.problem import get_problem
from schedgym.testing import policy_parameters
from tests.test_all_problems import IDS

FOLDER = Path(__file__).parent / "golden"
UPDATE = "SCHEDGYM_UPDATE_GOLDEN"

#: file -> (id, parameters, policies, seeds)
GOLDEN = {
    "queue_delay": (
        "schedgym/QueueDelay-v0",
        {"tasks": 60, "servers": 4},
        ("bf-exec", "ffd-nb", "fcfs", "dot-exec", "ff", "easy-backfill"),
        (0, 1, 2),
    ),
    "geo_assign": (
        "schedgym/GeoAssign-v0",
        {"jobs": 25, "sites": 4, "slots": 2, "max_tasks": 12, "utilization": 0.9},
        ("ata", "ata-greedy", "scta", "swag", "btaaj-swag", "fcfs", "amf"),
        (0, 1, 2),
    ),
    "geo_fair": (
        "schedgym/GeoFair-v0",
        {"jobs": 25, "sites": 4, "slots": 2, "max_tasks": 12, "utilization": 0.9},
        ("amf", "gamf", "sig-amf", "sig-gamf", "opt-gamf", "imf", "srpt"),
        (0, 1, 2),
    ),
    "single_job": (
        "schedgym/SingleJob-v0",
        {"tasks": 20, "arity": 4},
        ("tapra-fast", "min-min", "mm-ga", "gsa", "min-min-equal"),  # an LP has many optima: no tapra
        (0, 1, 2),
    ),
    "parallel_jct": (
        "schedgym/ParallelJCT-v0",
        {"jobs": 20, "arity": 4, "rate": 0.5},
        ("ontapra", "slf", "fcfs", "llf", "fcfs-mar", "slf-min-min"),
        (0, 1, 2),
    ),
    "partial_value": (
        "schedgym/PartialValue-v0",
        {"jobs": 40},
        ("concave", "s-greedy", "equal-opp", "edf", "fifo"),
        (0, 1, 2),
    ),
    "partial_value_discrete": (
        "schedgym/PartialValue-v0",
        {"jobs": 40, "model": "discrete"},
        ("m-greedy", "primal-dual", "s-greedy", "equal-opp"),
        (0, 1, 2),
    ),
    "partial_value_single": (
        "schedgym/PartialValue-v0",
        {"jobs": 40, "single": True},
        ("deadline-aware", "m-greedy"),
        (0, 1, 2),
    ),
    "flowtime": (
        "schedgym/FlowtimePacking-v0",
        {"jobs": 80, "servers": "8+4+2"},
        ("ocorp", "ocorp+", "srpt", "svf", "fifo", "tetris", "drf"),
        (0, 1, 2),
    ),
    "flowtime_2d": (
        "schedgym/FlowtimePacking-v0",
        {"jobs": 80, "servers": "8+4+2", "kind": "2d"},
        ("ocorp+m", "ocorp", "srpt", "tetris", "drf"),
        (0, 1, 2),
    ),
}


def digest(id: str, policy: str, seed: int, parameters: dict[str, object]) -> dict[str, object]:
    problem = get_problem(id)
    agent = schedgym.make_policy(policy, problem.name)
    view = get_policy_spec(agent.name).acting_view(
        problem.ids[id].baseline_parameters["view"], [view.name for view in problem.views]
    )
    values = policy_parameters(agent.name, view, id) | parameters
    env = gym.make(id, disable_env_checker=True, **values)
    observation, _ = env.reset(seed=seed)
    agent.reset(env.unwrapped.interface, np.random.default_rng(seed))
    done = False
    while not done:
        observation, _, terminated, truncated, info = env.step(agent(observation))
        done = terminated or truncated
    objective = problem.objective_of(env.unwrapped.interface.parameters)
    return {
        objective: info["metrics"][objective],
        "digest": env.unwrapped.record().digest(),
    }


@pytest.mark.parametrize("name", list(GOLDEN))
def test_golden_digests(name: str) -> None:
    id, parameters, policies, seeds = GOLDEN[name]
    path = FOLDER / f"{name}.json"
    found = {
        f"{id} {policy} seed {seed}": digest(id, policy, seed, parameters)
        for policy in policies
        for seed in seeds
    }
    if os.environ.get(UPDATE):
        with atomic_write(path) as stream:
            json.dump({"parameters": parameters, "digests": found}, stream, indent=1)
            stream.write("\n")
    golden = json.loads(path.read_text(encoding="utf-8"))
    assert golden["parameters"] == parameters
    assert sorted(golden["digests"]) == sorted(found)
    for key, value in found.items():
        assert value == golden["digests"][key], key
    assert len({value["digest"] for value in found.values()}) > len(policies)


def test_no_golden_file_is_forgotten() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(GOLDEN)
    assert {id for id, *_ in GOLDEN.values()} == set(IDS)
