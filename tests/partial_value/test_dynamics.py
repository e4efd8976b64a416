"""PartialValue's dynamics against the plain-Python model, view against view, and by hand."""

from __future__ import annotations

import random
import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import schedgym  # noqa: F401
from schedgym.errors import InvalidAction, InvalidParameter, InvalidWorkload
from schedgym.papers.zheng2016 import model
from schedgym.problems.partial_value.dynamics import DYNAMICS
from schedgym.problems.partial_value.metrics import validate
from schedgym.problems.partial_value.rules import RULES
from tests.long import some
from tests.partial_value.instances import make_job, random_instance, workload_of
from tests.playing import environment_of, play

ID = "schedgym/PartialValue-v0"


def draw(rng: random.Random, **options: Any) -> model.Instance:
    instance = random_instance(rng, **options)
    return instance._replace(jobs=tuple(sorted(instance.jobs, key=lambda job: job.arrival)))


def environment(instance: model.Instance, folder: Any, **parameters: Any) -> Any:
    given = {"window": "all", "model": "discrete" if instance.discrete else "continuous", **parameters}
    return environment_of(ID, workload_of(instance), folder, **given)


def state_of(instance: model.Instance, observation: dict[str, Any]) -> tuple[model.State, np.ndarray]:
    """The model's state, with what was served taken from the observation; and the jobs of its rows."""
    rows = observation["job"][observation["job_mask"] == 1]
    served = [job.tasks for job in instance.jobs]  # jobs that are not shown count as done, or are not active
    for r, job in enumerate(rows.tolist()):
        served[job] = float(observation["served"][r])
    return model.State(instance, int(observation["slot"][0]), tuple(served)), rows


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("unit", [None, 3])
def test_view_rule_has_the_rules_of_the_model(discrete: bool, unit: int | None, tmp_path: Any) -> None:
    instance = draw(random.Random(0), discrete=discrete, unit=unit)
    observation, _ = environment(instance, tmp_path, view="rule", window=2).reset(seed=0)
    expected = set(model.policies(instance)) & set(RULES)
    # deadline-aware is for tasks of one unit
    expected -= {"deadline-aware"} if discrete and unit is None else set()
    assert {RULES[i] for i in np.flatnonzero(observation["action_mask"])} == expected


@pytest.mark.parametrize("seed", some(range(10), 4, late=4))
def test_scores_of_the_program_reproduce_algorithm_1(seed: int, tmp_path: Any) -> None:
    instance = draw(random.Random(seed), discrete=False, max_jobs=8, adversarial=bool(seed % 2))
    by_rule = play(environment(instance, tmp_path, view="rule"), lambda o: RULES.index("concave"))
    program = environment(instance, tmp_path, view="priority", serving="program")
    by_score = play(program, lambda o: np.zeros(len(o["job"])))
    assert by_rule.record.digest() == by_score.record.digest()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("discrete", [False, True])
def test_repairs_equal_the_model(discrete: bool, seed: int, tmp_path: Any) -> None:
    rng = random.Random(seed)
    instance = draw(rng, discrete=discrete, max_jobs=6, adversarial=bool(seed % 2))
    env = environment(instance, tmp_path, view="allocation")
    strict = environment(instance, tmp_path, view="allocation", strict=True)
    observation, _ = env.reset(seed=0)
    strict.reset(seed=0)
    done, repaired = False, 0
    while not done:
        state, rows = state_of(instance, observation)
        raw = np.array([rng.choice([0.0, 0.5, 1.0, 2.0, 5.0, -1.0]) for _ in observation["job"]])
        if discrete:
            raw = np.round(raw)
        clipped = [0.0] * len(instance.jobs)
        for r, job in enumerate(rows.tolist()):
            clipped[job] = min(max(float(raw[r]), 0.0), model.slot_cap(state, job))
        fits = model.fits(instance, clipped) and all(
            -1e-9 <= raw[r] <= model.slot_cap(state, job) + 1e-9 for r, job in enumerate(rows.tolist())
        )
        x = clipped if fits else model.repair(state, clipped)
        action = raw.astype(env.action_space.dtype)
        if not fits:
            with pytest.raises(InvalidAction):
                strict.step(action)
        before = env.simulator.arrays.schedule.served[0, : len(x)].copy()
        observation, _, done, _, info = env.step(action)
        got = env.simulator.arrays.schedule.served[0, : len(x)] - before
        np.testing.assert_allclose(got, x, rtol=1e-9, atol=1e-9)
        assert bool(info.get("repaired", False)) == (not fits)
        repaired += not fits
        for r, job in enumerate(rows.tolist()):
            action[r] = x[job]
        strict.step(action)
    assert info["metrics"]["repaired"] == repaired
    validate(env.record())


def test_hidden_jobs_and_hidden_deadlines() -> None:
    env = gym.make(ID, window=3, deadlines="hidden", view="allocation", disable_env_checker=True).unwrapped
    observation, _ = env.reset(seed=0)
    assert "deadline" not in observation
    assert observation["backlog"][0] == observation["active"][0] - 3
    play(env, lambda o: o["cap"])
    record = env.record()
    assert len(np.unique(record.job[record.start == 0.0])) <= 3, "jobs beyond the window get nothing"
    tokens = gym.make(ID, window=3, observation="features", disable_env_checker=True).unwrapped
    whole = gym.make(ID, window="all", view="allocation", disable_env_checker=True).unwrapped
    needs = whole.reset(seed=0)[0]
    rows = needs["job_mask"] == 1
    wanted = (needs["demand"] / needs["capacity"] * needs["cap"][:, None])[rows]
    found = tokens.reset(seed=0)[0]["resources"]
    np.testing.assert_allclose(found[:, 0], wanted.sum(axis=0) / (wanted.sum(axis=0) + 1.0), rtol=1e-5)
    np.testing.assert_allclose(found[:, 1], wanted[:3].sum(axis=0) / wanted.sum(axis=0), rtol=1e-5)
    rules = gym.make(ID, deadlines="hidden", view="rule", disable_env_checker=True).unwrapped
    mask = rules.reset(seed=0)[0]["action_mask"]
    assert not mask[RULES.index("edf")] and mask[RULES.index("fifo")]
    _, _, _, _, info = rules.step(RULES.index("edf"))
    assert info["repaired"]


def test_the_end_of_an_episode(tmp_path: Any) -> None:
    """After the last deadline, or as soon as nothing can be served any more; empty slots are steps."""
    job = make_job
    late = model.Instance((job(1, 2, 1, 1, (1.0,)), job(5, 9, 1, 1, (1.0,))), (1.0,))
    env = environment(late, tmp_path, view="priority")
    _, rewards, record = play(env, lambda o: np.zeros(2))
    assert rewards == [1.0, 0.0, 0.0, 0.0, 1.0] and record.final_time == 5.0
    starved = model.Instance((job(1, 3, 1, 5, (1.0,)),), (1.0,))
    env = environment(starved, tmp_path, view="allocation")
    _, rewards, record = play(env, lambda o: np.zeros(1))
    assert rewards == [0.0, 0.0, 0.0] and record.final_time == 3.0


def test_an_episode_has_no_more_steps_than_its_workload_may_have_slots(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a policy does; the limits are of files, of given workloads, and of windows of traces."""
    monkeypatch.setattr("schedgym.core.workload.MOST_SLOTS", 8)
    monkeypatch.setattr("schedgym.core.workload.MOST_SLOTS_PER_JOB", 1)
    monkeypatch.setattr("schedgym.problems.partial_value.workload.MOST_TASKS_PER_SLOT", 3)
    jobs = make_job(1, 2, 1, 1, (0.25,)), make_job(2, 10, 4, 9, (0.25,))
    instance = model.Instance(jobs, (1.0,))
    late = instance._replace(jobs=(instance.jobs[0], instance.jobs[1]._replace(deadline=11)))
    env = environment(instance, tmp_path, view="allocation")
    _, rewards, record = play(env, lambda o: np.zeros(len(o["cap"])))
    assert rewards == [0.0] * 10 and record.final_time == 10.0
    refused = r"jobs\.deadline\[1\]: 2 jobs may take 10 slots, got 11$"
    with pytest.raises(InvalidWorkload, match=f"^{re.escape(str(tmp_path))}.*: {refused}"):
        environment(late, tmp_path, view="allocation")
    with pytest.raises(InvalidWorkload, match=f"^{refused}"):
        env.reset(options={"workload": workload_of(late)})
    # 2 slots with 1 task, and 9 slots with 4 tasks
    with pytest.raises(InvalidWorkload, match=r"jobs\.tasks\[1\]: 2 jobs may have 30 whole.* these have 38"):
        environment(instance, tmp_path, model="discrete")
    few = instance._replace(jobs=(instance.jobs[0], instance.jobs[1]._replace(demand=(0.34,))))
    environment(few, tmp_path, model="discrete")


def test_normalized_rewards_sum_to_the_share_of_the_value() -> None:
    env = gym.make(ID, normalize=True, disable_env_checker=True).unwrapped
    metrics, rewards, _ = play(env, lambda observation: np.zeros(env.action_space.shape), 4)
    assert sum(rewards) == pytest.approx(metrics["value_share"], rel=1e-9)


def test_workloads_and_parameters_that_do_not_fit(tmp_path: Any) -> None:
    half = model.Instance((make_job(1, 2, 0.5, 1, (1.0, 1.0)),), (1.0, 1.0))
    with pytest.raises(InvalidWorkload, match=r"jobs\.parallelism\[0\]"):
        environment(half, tmp_path, model="discrete")
    with pytest.raises(InvalidParameter, match="prices"):
        gym.make(ID, view="prices", model="discrete")


@pytest.mark.parametrize("serving", ["order", "program"])
def test_algorithm_1_is_compiled_only_where_it_serves(serving: str) -> None:
    env: Any = gym.make(ID, serving=serving, disable_env_checker=True).unwrapped
    general = DYNAMICS.decide[DYNAMICS.general("priority")]
    assert (env.simulator.kernels[0] is general) == (serving == "program")
