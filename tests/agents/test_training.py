"""What is asked of every training: it repeats itself, outlives being killed, and is saved without code."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schedgym.agents import checkpoint as checkpoints
from schedgym.agents.agent_policy import AgentPolicy
from schedgym.agents.config import make_config
from schedgym.agents.files import load_agent, write_atomically
from schedgym.agents.simulation import held_out
from schedgym.agents.training import learn, metadata_of, train
from schedgym.core.random import VALIDATION_SEED
from schedgym.errors import InvalidParameter
from tests.agents.trainings import KINDS, configuration, curve, unlike
from tests.lazy import Lazy, needs
from tests.long import long, some, thinned
from tests.tables import table

pytestmark = needs("cma", "stable_baselines3", "tensorboard")
torch = Lazy("torch")
gradient = Lazy("schedgym.agents.gradient", "torch")
search = Lazy("schedgym.agents.search", "cma")

ALGORITHMS = ("cma", "ppo", "sb3-ppo")
GRADIENT = [kind for kind in KINDS if kind != "cma"]


@pytest.fixture(scope="module")
def uninterrupted() -> Any:
    """Kind -> the result of a training that nothing disturbed."""
    known: dict[str, Any] = {}

    def find(kind: str) -> Any:
        if kind not in known:
            known[kind] = learn(configuration(kind))
        return known[kind]

    return find


def reached(path: Path) -> int:
    """Steps, or generations, before a checkpoint; -1 where there is none."""
    if not path.exists():
        return -1
    with np.load(path, allow_pickle=False) as archive:
        text = json.loads(archive["text"].tobytes())
        return len(archive["fitness"]) if "fitness" in archive else int(text["steps"])


@pytest.mark.parametrize("kind", [*some(ALGORITHMS), *some(["copies", "scores"], keep=0)])
def test_another_seed_gives_other_weights(kind: str, uninterrupted: Any) -> None:
    """That the same seed gives the same ones, test_the_agent_file asks of every kind."""
    assert unlike(uninterrupted(kind), learn(configuration(kind, seed=1)))


@pytest.mark.parametrize("kind", some(GRADIENT))
def test_what_a_training_tells(kind: str, uninterrupted: Any) -> None:
    result, config = uninterrupted(kind), configuration(kind)
    points = curve(result)
    assert all(point["steps"] >= wanted for point, wanted in zip(points, (0, 512, 1024), strict=True))
    assert points[0]["steps"] == 0 and result.steps == points[-1]["steps"] >= 1024
    best = min if config.metric.sign > 0 else max
    assert result.best.objective == best(point["objective"] for point in points)
    assert (result.cloning is None) is (config.imitation is None)
    if result.cloning is not None:
        epochs = config.imitation.epochs  # type: ignore[union-attr]
        assert result.cloning.decisions > 50 and len(result.cloning.losses) == epochs
    if config.ppo.copies == 1:
        mean, variance, count = result.returns
        assert mean != 0.0 < variance and count >= 1024
    else:
        assert result.returns == ()


def note_checkpoints(monkeypatch: pytest.MonkeyPatch, stop: bool = False) -> list[int]:
    """How far the training is at each checkpoint, after which it may be stopped."""
    written: list[int] = []

    def write(path: Path, arrays: Any) -> None:
        write_atomically(path, arrays)
        written.append(reached(path))
        if stop:
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoints, "write_atomically", write)
    return written


@pytest.mark.parametrize("kind", some(KINDS, keep=3))
def test_a_training_goes_on_as_if_it_had_not_stopped(
    kind: str, uninterrupted: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Stopped after each of its checkpoints, in the middle of episodes, it ends with equal weights."""
    config, path = configuration(kind), tmp_path / "a.checkpoint"
    expected = uninterrupted(kind)
    written = note_checkpoints(monkeypatch, stop=True)
    for stops in range(20):
        try:
            result = learn(config, path, resume=True)
            break
        except KeyboardInterrupt:
            if kind != "cma":
                np.random.seed(stops)  # noqa: NPY002  (what happened meanwhile does not matter)
                torch.manual_seed(stops)
    assert stops >= 3 and written == sorted(set(written)), "it did not go on from where it was"
    assert not unlike(result, expected) and curve(result) == curve(expected)
    for name in ("returns", "cloning", "steps"):
        assert getattr(result, name, None) == getattr(expected, name, None), name


@long
@pytest.mark.parametrize("kind", ["ppo", "sb3-ppo"])
@pytest.mark.parametrize(
    ("interval", "expected"), table(__file__, "test_no_more_than_an_interval_can_be_lost")
)
def test_no_more_than_an_interval_can_be_lost(
    kind: str, interval: int, expected: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    written = note_checkpoints(monkeypatch)
    learn(configuration(kind, steps=2048, checkpoint=interval, imitation=None), tmp_path / "a.checkpoint")
    assert written == expected


KILLED = """
import json, os, signal, sys
from schedgym.agents import checkpoint, training
from schedgym.agents.config import make_config

write, written = checkpoint.write_atomically, []

def count(*given):
    if len(written) == 2:  # what has been played since the second checkpoint is lost
        os.kill(os.getpid(), signal.SIGKILL)
    written.append(write(*given))

checkpoint.write_atomically = count
training.train(make_config(json.loads(sys.argv[1])), sys.argv[2], resume=True)
"""


@long
@pytest.mark.parametrize("kind", thinned(ALGORITHMS, of=2))
def test_a_killed_training_goes_on_from_its_last_checkpoint(
    kind: str, uninterrupted: Any, tmp_path: Path
) -> None:
    config, path = configuration(kind), tmp_path / "agent.npz"
    checkpoint = path.with_suffix(".checkpoint")
    code = [sys.executable, "-c", KILLED, json.dumps(config.to_dict()), str(path)]
    run = subprocess.run(
        code, cwd=tmp_path, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True
    )
    assert run.returncode == -signal.SIGKILL, run.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["agent.checkpoint"]
    before, seen = reached(checkpoint), []
    assert before > 0
    result = train(config, path, resume=True, report=seen.append)
    assert all(getattr(point, "steps", None) or point.generation >= before for point in seen)
    assert len(seen) < len(result.curve), "it began again"
    assert not unlike(result, uninterrupted(kind)) and curve(result) == curve(uninterrupted(kind))
    assert [file.name for file in tmp_path.iterdir()] == ["agent.npz"]
    agent = load_agent(path, config.id, config.view)
    assert all(np.array_equal(agent.weights[name], array) for name, array in result.weights.items())


@pytest.fixture(params=some(ALGORITHMS, keep=2))
def checkpoint(request: Any, tmp_path: Path) -> tuple[str, Path]:
    """A kind of training, and a checkpoint of it."""
    kind: str = request.param
    changes = {"search": {**KINDS["cma"]["search"], "generations": 2}} if kind == "cma" else {"steps": 256}
    learn(configuration(kind, **changes), tmp_path / "a.checkpoint")
    return kind, tmp_path / "a.checkpoint"


def test_checkpoints_of_other_configurations_are_refused(checkpoint: tuple[str, Path]) -> None:
    kind, path = checkpoint
    before = path.read_bytes()
    jobs = {"tasks": 31} if kind != "cma" else {"jobs": 13}
    shorter: list[tuple[dict[str, Any], str]] = [({"steps": 100}, "steps is 256 there, and 100 here")]
    if kind == "cma":
        given = {**KINDS[kind]["search"], "generations": 2}
        shorter = [
            ({"search": {**given, name: 1}}, f"search.{name} is {there} there, and 1 here")
            for name, there in (("generations", 2), ("patience", 20))
        ]
    for changes, message in (
        ({"seed": 3}, "seed is 0 there, and 3 here"),
        ({"parameters": KINDS[kind]["parameters"] | jobs}, "parameters.*, and (13|31) here"),
        *shorter,
    ):
        with pytest.raises(InvalidParameter, match=f"a.checkpoint: .* another configuration: {message}"):
            learn(configuration(kind, **changes), path, resume=True)
    assert path.read_bytes() == before


def test_a_training_may_be_made_longer(checkpoint: tuple[str, Path], tmp_path: Path) -> None:
    """It goes on from the end of a shorter one, and says so; to begin anew, it is not resumed."""
    kind, path = checkpoint
    more = {"search": {**KINDS["cma"]["search"], "patience": 27}} if kind == "cma" else {"steps": 512}
    config = configuration(kind, **more)
    longer = learn(config, path, resume=True)
    assert len(longer.curve) > 2
    again = learn(config, path, resume=True)  # there is nothing left to do
    assert not unlike(again, longer) and curve(again) == curve(longer)
    begun = {"search.generations": 2, "search.patience": 20} if kind == "cma" else {"steps": 256}
    for result in (longer, again):  # one command begins with another learning rate, or validates less often
        assert metadata_of(config, result, "")["training"]["begun"] == begun
    anew = learn(config, path)
    assert len(anew.curve) == (4 if kind == "cma" else 2) and anew.begun == {}


@long
@pytest.mark.parametrize("kind", thinned(GRADIENT, of=3))
def test_a_longer_training_begins_as_a_shorter_one(kind: str, tmp_path: Path) -> None:
    """With a constant learning rate, a training made longer is the longer training."""
    options = {**KINDS[kind]["ppo"], "final_learning_rate": KINDS[kind]["ppo"]["learning_rate"]}
    # the shorter one has a validation of its own
    last = {"every": 512, "episodes": 4, "keep": "last"}
    whole, part = (
        configuration(kind, steps=steps, imitation=None, ppo=options, evaluation=last)
        for steps in (1536, 768)
    )
    learn(part, tmp_path / "a")
    result, expected = learn(whole, tmp_path / "a", resume=True), learn(whole)
    assert not unlike(result, expected) and result.returns == expected.returns


class Mischief:
    """What executes something where it is unpickled."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("mischief",)


@long
def test_damaged_checkpoints(
    checkpoint: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused in one line; nothing in a file is ever executed, and what an older version wrote is named."""
    monkeypatch.chdir(tmp_path)
    kind, path = checkpoint
    config = configuration(kind)
    whole = path.read_bytes()
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    rng = np.random.default_rng(0)
    point = (search if kind == "cma" else gradient).Point
    record = checkpoints.TrainingRecord(config, path, point)
    refused = 0
    for i in range(200):
        data = bytearray(whole[: int(rng.integers(len(whole)))] if i % 2 else whole)
        if i % 2 == 0:
            data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
        try:
            record.load()
        except InvalidParameter as error:
            assert str(error).startswith("a.checkpoint: ") and "\n" not in str(error)
            refused += 1
    assert refused > 120
    for name in {name.partition("/")[0]: name for name in arrays}.values():  # one of each sort
        if name.startswith("statistics/"):
            continue  # which need not be there: of columns that nothing has
        write_atomically(path, {key: array for key, array in arrays.items() if key != name})
        with pytest.raises(InvalidParameter):
            learn(config, path, resume=True)
    for stranger in (b"nothing of the kind", pickle.dumps(Mischief())):
        path.write_bytes(stranger)
        with pytest.raises(InvalidParameter, match="not a checkpoint"):
            learn(config, path, resume=True)
    with path.open("wb") as stream:
        np.savez(stream, text=np.array([Mischief()], dtype=object))
    with pytest.raises(InvalidParameter, match="not a checkpoint"):
        learn(config, path, resume=True)
    assert not (tmp_path / "mischief").exists()
    text = json.loads(arrays["text"].tobytes())
    text["settings"]["format"] = 2
    write_atomically(path, {**arrays, "text": np.frombuffer(json.dumps(text).encode(), np.uint8)})
    with pytest.raises(InvalidParameter, match="a.checkpoint: a checkpoint of another version.*train anew"):
        learn(config, path, resume=True)


@pytest.mark.parametrize("kind", some(KINDS, keep=2))
def test_the_agent_file(kind: str, uninterrupted: Any, tmp_path: Path) -> None:
    """It says how it was made, and acts as the best of the validations did."""
    config, path = configuration(kind), tmp_path / "agent.npz"
    seen: list[Any] = []
    result = train(config, path, command="schedgym train it", report=seen.append)
    assert [file.name for file in tmp_path.iterdir()] == ["agent.npz"] and seen == list(result.curve)
    agent = load_agent(path, config.id, config.view)
    assert path.stat().st_size < 100_000
    assert not unlike(agent, uninterrupted(kind)) and curve(result) == curve(uninterrupted(kind))
    told = agent.metadata
    assert make_config(told["config"]) == config and told["command"] == "schedgym train it"
    assert told["parameters"] == config.parameters
    training = told["training"]
    assert training["seed"] == config.seed and training["validation_seed"] == VALIDATION_SEED
    assert training["curve"] == [dataclasses.asdict(point) for point in result.curve]
    assert training["best"] == dataclasses.asdict(result.best)
    assert (training.get("imitation") is None) is (config.imitation is None)
    policy = AgentPolicy(agent)

    def decide(observation: Any) -> Any:
        rows = [{n: array[i] for n, array in observation.items()} for i in range(len(observation["globals"]))]
        return np.array([policy(row) for row in rows])

    count = config.search.validation_episodes if kind == "cma" else config.evaluation.episodes
    rows = held_out(config.id, decide, count, VALIDATION_SEED, parameters=config.environment)
    played = np.mean([row[config.metric.name] for row in rows])
    assert played == pytest.approx(result.best.objective, rel=1e-3)


@pytest.mark.parametrize("kind", ["ppo", "sb3-ppo"])
def test_the_last_weights_can_be_kept(kind: str) -> None:
    last = learn(configuration(kind, evaluation={"every": 512, "episodes": 8, "keep": "last"}))
    assert last.best == last.curve[-1]


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_tensorboard_shows_the_validations(kind: str, tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    logs = tmp_path / "logs"
    part = {"search": {**KINDS["cma"]["search"], "generations": 2}} if kind == "cma" else {"steps": 512}
    learn(configuration(kind, **part), tmp_path / "a", log_dir=logs)
    learn(configuration(kind), tmp_path / "a", resume=True, log_dir=logs)
    (folder,) = {path.parent for path in logs.rglob("events*")}  # it goes on in its folder
    events = accumulator.EventAccumulator(str(folder)).Reload()
    name = configuration(kind).metric.name
    tags = {"validation/change", "search/sigma"} if kind == "cma" else {"rollout/reward", "train/loss"}
    assert tags <= set(events.Tags()["scalars"])
    steps = [0, 2, 4, 6] if kind == "cma" else [0, 512, 1024]
    assert [event.step for event in events.Scalars(f"validation/{name}")] == steps


@pytest.mark.parametrize(
    ("kind", "changes", "message"), table(__file__, "test_what_cannot_be_trained_is_refused")
)
def test_what_cannot_be_trained_is_refused(
    kind: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidParameter, match=message):
        train(configuration(kind, imitation=None, **changes), tmp_path / "agent.npz")
    with pytest.raises(InvalidParameter, match="there is no folder"):
        train(configuration(kind), tmp_path / "no" / "agent.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["ppo", "sb3-ppo"])
def test_returns_may_stay_as_they_are(kind: str) -> None:
    options = {**KINDS["ppo"]["ppo"], "normalize_returns": False}
    assert learn(configuration(kind, steps=256, imitation=None, ppo=options)).returns == ()


@long
@pytest.mark.parametrize("kind", ["copies", "ppo", "sb3-ppo"])
def test_it_learns(kind: str) -> None:
    """PartialValue with 20 jobs: more than the order of a random network, and than the value of s-greedy."""
    options = {"batch_size": 256, "learning_rate": 5e-3, "n_epochs": 4, "gamma": 0.9}
    config = configuration(
        kind,
        id="schedgym/PartialValue-v0",
        view="priority",
        parameters={"jobs": 20, "rate": 10.0, "window": 16},
        steps=20_000,
        num_envs=64,
        imitation=None,
        network={"width": 16, "log_std": -0.5},
        ppo=options | ({"copies": 8} if kind == "copies" else {"n_steps": 16}),
        evaluation={"every": 10**6, "episodes": 64, "keep": "last"},
    )
    result = learn(config)
    assert result.curve[-1].objective > 1.02 * result.curve[0].objective
