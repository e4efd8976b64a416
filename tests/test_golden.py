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
import pytest

import schedgym
from schedgym.core.files import atomic_write
from schedgym.core.policy import get_policy_spec
from schedgym.core.problem import get_problem
from schedgym.testing import policy_parameters
from tests.playing import play
from tests.tables import table
from tests.test_all_problems import IDS

FOLDER = Path(__file__).parent / "golden"
UPDATE = "SCHEDGYM_UPDATE_GOLDEN"

SEEDS = (0, 1, 2)
#: file, id, parameters, policies
GOLDEN = table(__file__, "test_golden_digests")


def digest(id: str, policy: str, seed: int, parameters: dict[str, object]) -> dict[str, object]:
    problem = get_problem(id)
    agent = schedgym.make_policy(policy, problem.name)
    view = get_policy_spec(agent.name).acting_view(
        problem.ids[id].baseline_parameters["view"], [view.name for view in problem.views]
    )
    values = policy_parameters(agent.name, view, id) | parameters
    env = gym.make(id, disable_env_checker=True, **values).unwrapped
    played = play(env, agent, seed)
    objective = problem.objective_of(env.interface.parameters)
    return {objective: played.metrics[objective], "digest": played.record.digest()}


@pytest.mark.parametrize(("name", "id", "parameters", "policies"), GOLDEN, ids=[name for name, *_ in GOLDEN])
def test_golden_digests(name: str, id: str, parameters: dict[str, object], policies: list[str]) -> None:
    path = FOLDER / f"{name}.json"
    found = {
        f"{id} {policy} seed {seed}": digest(id, policy, seed, parameters)
        for policy in policies
        for seed in SEEDS
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
    assert {path.stem for path in FOLDER.glob("*.json")} == {name for name, *_ in GOLDEN}
    assert {id for _, id, *_ in GOLDEN} == set(IDS)
