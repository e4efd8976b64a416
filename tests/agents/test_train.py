"""Training: it repeats itself, outlives being killed, is saved without code, and learns."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schedgym.errors import InvalidParameter

pytest.importorskip("stable_baselines3", reason="needs the extra agents")
pytest.importorskip("sb3_contrib", reason="needs the extra agents")
pytest.importorskip("yaml", reason="needs the extra agents")
import torch

from schedgym.agents import record, tokens
from schedgym.agents import train as module
from schedgym.agents.config import Config, make_config
from schedgym.agents.files import load_agent
from schedgym.agents.imitate import demonstrate
from schedgym.agents.rollout import held_out
from schedgym.agents.train import learn, load_torch_policy
from schedgym.agents.training import train
from schedgym.agents.vecenv import make_vec_env
from schedgym.agents.views import make_layout
from schedgym.core.random import VALIDATION_SEED
from tests.long import long, some
from tests.tables import table

ID = "schedgym/QueueDelay-v0"
FLOWTIME, GEO_FAIR = "schedgym/FlowtimePacking-v0", "schedgym/GeoFair-v0"
ENVIRONMENT = {"tasks": 30, "servers": 3, "window": 8}
TINY = {"n_steps": 32, "batch_size": 64, "learning_rate": 2e-3, "n_epochs": 2}


def configuration(**changes: Any) -> Config:
    data = {
        "id": ID,
        "algorithm": "sb3-ppo",
        "view": "pick",
        "parameters": ENVIRONMENT,
        "steps": 2048,
        "num_envs": 8,
        "checkpoint": 512,
        "network": {"width": 8},
        "ppo": TINY,
        "evaluation": {"every": 1024, "episodes": 16},
        "imitation": {"policy": "fcfs", "episodes": 6, "epochs": 2, "batch_size": 64},
    }
    data["parameters"] = {**ENVIRONMENT, "scope": "all", "rule": "first"}  # where fcfs lives
    return make_config({name: value for name, value in {**data, **changes}.items() if value is not None})


def unlike(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> list[str]:
    """Names of the weights that differ."""
    assert first.keys() == second.keys()
    return [name for name in first if not np.array_equal(first[name], second[name])]


@pytest.fixture(scope="module")
def uninterrupted():
    """A training that nothing disturbed."""
    return learn(configuration())


@long
def test_one_seed_twice_gives_equal_weights(uninterrupted) -> None:
    again = learn(configuration())
    assert not unlike(uninterrupted.weights, again.weights)
    assert [p.objective for p in again.curve] == [p.objective for p in uninterrupted.curve]
    assert again.returns == uninterrupted.returns
    other = learn(configuration(seed=1))
    assert unlike(uninterrupted.weights, other.weights)


def test_what_a_training_tells(uninterrupted) -> None:
    assert [p.steps for p in uninterrupted.curve] == [0, 1024, 2048]
    assert uninterrupted.steps == 2048
    assert uninterrupted.best.objective == min(p.objective for p in uninterrupted.curve)
    assert uninterrupted.cloning.decisions > 50 and len(uninterrupted.cloning.losses) == 2
    mean, variance, count = uninterrupted.returns
    assert mean < 0.0 < variance and count > 2048


def test_the_kept_weights_are_those_of_the_best_validation(uninterrupted) -> None:
    config = configuration()
    env = make_vec_env(ID, 1, **config.environment)
    layout = make_layout("queue-delay", "pick", env.observation_space, env.action_space)
    rows = held_out(
        ID,
        lambda seen: layout.decode(tokens.forward(layout, uninterrupted.weights, seen), seen),
        16,
        VALIDATION_SEED,
        parameters=config.environment,
    )
    score = np.mean([row["mean_delay"] for row in rows])
    assert score == pytest.approx(uninterrupted.best.objective, rel=1e-3)
    last = learn(configuration(evaluation={"every": 1024, "episodes": 16, "keep": "last"}))
    assert last.best == last.curve[-1]


def checkpoints(monkeypatch) -> list[int]:
    """The steps at which checkpoints are written from now on."""
    written: list[int] = []
    original = record.write_atomically

    def write(path, arrays) -> None:
        written.append(json.loads(arrays["text"].tobytes().decode())["steps"])
        original(path, arrays)

    monkeypatch.setattr(record, "write_atomically", write)
    return written


@long
@pytest.mark.parametrize(
    ("interval", "expected"), table(__file__, "test_no_more_than_an_interval_can_be_lost")
)
def test_no_more_than_an_interval_can_be_lost(interval, expected, monkeypatch, tmp_path) -> None:
    written = checkpoints(monkeypatch)
    learn(configuration(checkpoint=interval, imitation=None), tmp_path / "a.checkpoint")
    assert written == expected


@long
def test_a_training_goes_on_as_if_it_had_not_stopped(uninterrupted, monkeypatch, tmp_path) -> None:
    """Stopped after each of its checkpoints in turn, it ends with the same weights."""
    original = record.write_atomically
    path = tmp_path / "a.checkpoint"
    for steps in (0, 512, 1024, 2048):
        path.unlink(missing_ok=True)

        def write(path, arrays, steps=steps) -> None:
            original(path, arrays)
            if json.loads(arrays["text"].tobytes().decode())["steps"] == steps:
                raise KeyboardInterrupt

        monkeypatch.setattr(record, "write_atomically", write)
        with pytest.raises(KeyboardInterrupt):
            learn(configuration(), path)
        monkeypatch.setattr(record, "write_atomically", original)
        np.random.seed(steps)  # noqa: NPY002  (what happened meanwhile does not matter)
        torch.manual_seed(steps)
        result = learn(configuration(), path, resume=True)
        assert not unlike(result.weights, uninterrupted.weights), steps
        assert [(p.steps, p.objective) for p in result.curve] == [
            (p.steps, p.objective) for p in uninterrupted.curve
        ]
        assert result.returns == uninterrupted.returns
        assert result.cloning == uninterrupted.cloning


CHILD = """
import json, sys
from schedgym.agents.config import make_config
from schedgym.agents.training import train
train(make_config(json.loads(sys.argv[1])), sys.argv[2], resume=True)
"""


def steps_of(checkpoint: Path) -> int:
    if not checkpoint.exists():
        return -1
    with np.load(checkpoint, allow_pickle=False) as archive:
        return json.loads(archive["text"].tobytes().decode())["steps"]


@long
def test_a_killed_run_resumes_from_its_last_checkpoint(uninterrupted, tmp_path) -> None:
    config, path = configuration(), tmp_path / "agent.npz"
    checkpoint = tmp_path / "agent.checkpoint"
    code = [sys.executable, "-c", CHILD, json.dumps(config.to_dict()), str(path)]
    reached = 0
    for wanted in (512, 1024):
        child = subprocess.Popen(code, stderr=subprocess.PIPE, env=os.environ | {"OMP_NUM_THREADS": "1"})
        deadline = time.monotonic() + 300
        while steps_of(checkpoint) < wanted and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)
        error = child.communicate()[1].decode()
        assert child.returncode == -signal.SIGKILL, error
        assert not path.exists()
        assert steps_of(checkpoint) >= max(wanted, reached), "it did not go on from where it was"
        reached = steps_of(checkpoint)
    seen: list[int] = []
    result = train(config, path, resume=True, report=lambda point: seen.append(point.steps))
    assert all(steps >= reached for steps in seen), "it began again"
    assert not unlike(result.weights, uninterrupted.weights)
    assert path.exists() and not checkpoint.exists()


def test_checkpoints_of_other_trainings_are_refused(tmp_path) -> None:
    path = tmp_path / "a.checkpoint"
    small = configuration(steps=256, imitation=None)
    learn(small, path)
    with pytest.raises(InvalidParameter, match="another configuration: seed is 0 there, and 3 here"):
        learn(dataclasses.replace(small, seed=3), path, resume=True)
    with pytest.raises(InvalidParameter, match="steps is 256 there, and 100 here"):
        learn(dataclasses.replace(small, steps=100), path, resume=True)
    longer = learn(dataclasses.replace(small, steps=512, checkpoint=1000), path, resume=True)
    assert longer.steps == 512 and [p.steps for p in longer.curve] == [0, 256, 512]
    again = learn(dataclasses.replace(small, steps=512), path, resume=True)  # there is nothing left to do
    assert not unlike(again.weights, longer.weights)
    assert learn(small, path, resume=False).steps == 256
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(InvalidParameter, match="not a checkpoint"):
        learn(small, path, resume=True)
    np.savez(tmp_path / "b.npz", text=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InvalidParameter, match="not a checkpoint"):
        learn(small, tmp_path / "b.npz", resume=True)


@long
def test_a_longer_training_begins_as_a_shorter_one(tmp_path) -> None:
    """With a constant learning rate, a training made longer is the longer training."""
    constant = {**TINY, "final_learning_rate": TINY["learning_rate"]}
    last = {"every": 1024, "episodes": 4, "keep": "last"}  # the shorter one has a validation of its own
    whole, part = (
        configuration(steps=steps, imitation=None, ppo=constant, evaluation=last) for steps in (1536, 768)
    )
    learn(part, tmp_path / "a")
    result, expected = learn(whole, tmp_path / "a", resume=True), learn(whole)
    assert not unlike(result.weights, expected.weights) and result.returns == expected.returns


@long
@pytest.mark.parametrize(
    ("algorithm", "id", "view", "parameters"),
    [
        ("sb3-maskable-ppo", ID, "placement", ENVIRONMENT),
        ("sb3-ppo", FLOWTIME, "priority", {"jobs": 6, "servers": "4+2", "window": 5}),
    ],
)
def test_other_views_go_on_where_they_were(algorithm, id, view, parameters, tmp_path) -> None:
    constant = {**TINY, "final_learning_rate": TINY["learning_rate"]}
    part = configuration(
        algorithm=algorithm,
        id=id,
        view=view,
        parameters=parameters,
        imitation=None,
        steps=768,
        ppo=constant,
        evaluation={"every": 1024, "episodes": 4, "keep": "last"},
    )
    whole = dataclasses.replace(part, steps=1024)
    learn(part, tmp_path / "a")
    assert not unlike(learn(whole, tmp_path / "a", resume=True).weights, learn(whole).weights)


def test_what_cannot_be_trained_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="batch_size"):
        learn(configuration(ppo={**TINY, "batch_size": 1000}))
    boxes = {"id": "schedgym/FlowtimePacking-v0", "view": "priority", "parameters": {"jobs": 6}}
    with pytest.raises(InvalidParameter, match="discrete"):
        learn(configuration(algorithm="sb3-maskable-ppo", imitation=None, **boxes))
    with pytest.raises(InvalidParameter, match="algorithm"):
        learn(make_config({"id": ID, "algorithm": "cma", "view": "pick"}))


def test_the_agent_file(tmp_path, uninterrupted) -> None:
    path = tmp_path / "agent.npz"
    result = train(configuration(), path, command="schedgym train ...")
    agent = load_agent(path, id=ID, view="pick")
    assert path.stat().st_size < 100_000
    assert not unlike(agent.weights, uninterrupted.weights)
    told = agent.metadata
    assert told["command"] == "schedgym train ..." and told["network"]["form"] == "tokens"
    assert make_config(told["config"]) == configuration()
    training = told["training"]
    assert [p["steps"] for p in training["curve"]] == [0, 1024, 2048]
    assert training["returns"] == dict(zip(("mean", "variance", "count"), result.returns, strict=True))
    assert training["imitation"]["decisions"] > 0 and training["best"]["objective"] > 0.0
    with pytest.raises(InvalidParameter, match="for environment"):
        load_agent(path, id="schedgym/GeoFair-v0")


@pytest.mark.parametrize(
    ("algorithm", "id", "view", "parameters"),
    some(table(__file__, "test_save_and_load_give_equal_actions")),
)
def test_save_and_load_give_equal_actions(algorithm, id, view, parameters, monkeypatch, tmp_path) -> None:
    config = configuration(
        algorithm=algorithm, id=id, view=view, parameters=parameters, imitation=None, steps=512
    )
    path = tmp_path / "agent.npz"
    models = []
    original = module._model
    monkeypatch.setattr(module, "_model", lambda *given: models.append(original(*given)) or models[-1])
    train(config, path)
    policy = models[0][0].policy
    policy.set_weights(load_agent(path).weights)
    loaded = load_torch_policy(load_agent(path))
    env = make_vec_env(id, 6, 5, **config.environment)
    observation = env.reset()
    for _ in range(30):
        mine, theirs = (p.predict(observation, deterministic=True)[0] for p in (policy, loaded))
        assert np.array_equal(mine, theirs)
        observation, *_ = env.step(mine)


def test_an_agent_of_another_form_is_not_for_torch(tmp_path) -> None:
    path = tmp_path / "agent.npz"
    train(configuration(steps=256, imitation=None), path)
    agent = load_agent(path)
    other = dataclasses.replace(agent, metadata=agent.metadata | {"network": {"form": "scorer"}})
    with pytest.raises(InvalidParameter, match="scorer"):
        load_torch_policy(other)
    changed = dataclasses.replace(agent, weights=agent.weights | {"more": np.zeros(1)})
    with pytest.raises(InvalidParameter, match="more does not belong"):
        load_torch_policy(changed)


def test_tensorboard_shows_the_validations(tmp_path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    learn(configuration(steps=1024, imitation=None), tmp_path / "a", log_dir=tmp_path / "logs")
    learn(configuration(steps=2048, imitation=None), tmp_path / "a", resume=True, log_dir=tmp_path / "logs")
    (folder,) = (tmp_path / "logs").iterdir()  # a resumed training goes on in its folder
    events = accumulator.EventAccumulator(str(folder)).Reload()
    tags = {"validation/mean_delay", "rollout/ep_rew_mean", "train/value_loss"}
    assert tags <= set(events.Tags()["scalars"])
    assert [event.step for event in events.Scalars("validation/mean_delay")] == [0, 1024, 2048]


@long
@pytest.mark.parametrize("algorithm", ["sb3-maskable-ppo", "sb3-ppo"])
def test_a_smoke_training_improves_on_its_start(algorithm: str) -> None:
    config = configuration(
        algorithm=algorithm,
        seed=1,
        parameters=ENVIRONMENT,
        imitation=None,
        steps=6144,
        network={"width": 16},
        ppo={**TINY, "n_steps": 64, "n_epochs": 4},
        evaluation={"every": 2048, "episodes": 64},
    )
    result = learn(config)
    assert result.curve[-1].objective < 0.8 * result.curve[0].objective
    home = {**ENVIRONMENT, "view": "pick", "scope": "all", "rule": "first"}
    fcfs = demonstrate(ID, "fcfs", 64, VALIDATION_SEED, parameters=home)
    assert result.best.objective < np.mean([row["mean_delay"] for row in fcfs.metrics])


def test_returns_as_they_are() -> None:
    result = learn(configuration(steps=256, imitation=None, ppo={**TINY, "normalize_returns": False}))
    assert result.returns == ()
