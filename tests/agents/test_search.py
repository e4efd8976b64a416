"""The gradient-free training: plays what evaluations play, repeats itself, outlives being killed, learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schedgym.agents import search as module
from schedgym.agents.agent_policy import AgentPolicy
from schedgym.agents.config import Config, make_config
from schedgym.agents.files import load_agent, write_atomically
from schedgym.agents.search import (
    TRAINING_SEEDS,
    Rollouts,
    search,
)
from schedgym.agents.training import train
from schedgym.core.problem import get_problem
from schedgym.core.random import VALIDATION_SEED
from schedgym.errors import InvalidParameter
from schedgym.evaluation.episodes import make_env, play
from tests.agents.cases import CASES, agent_of, compiled, fitted, vector
from tests.agents.trainings import KINDS
from tests.agents.trainings import configuration as make_training
from tests.lazy import needs
from tests.long import long, weekly
from tests.test_all_problems import small

pytestmark = needs("cma")
SMALL = KINDS["cma"]["search"]
ID = KINDS["cma"]["id"]


def configuration(changes: dict[str, Any] | None = None, **more: Any) -> Config:
    return make_training("cma", search=SMALL | (changes or {}), **more)


@pytest.fixture(scope="module")
def uninterrupted() -> module.SearchResult:
    """A training that nothing disturbed."""
    return search(configuration())


@pytest.mark.parametrize(("id", "view"), compiled(CASES))
def test_it_plays_the_episodes_that_an_evaluation_plays(id: str, view: str) -> None:
    """Candidates side by side do what each would do alone, episode by episode, in users' environments."""
    env, layout = vector(id, view)
    scorer, _ = fitted(env, layout, hidden=2)
    rng = np.random.default_rng(0)
    thetas = rng.normal(size=(3, scorer.size)).astype(np.float32)
    # an agent that nobody has trained may close slot after slot: such episodes are cut off early
    own = small(id, **({"gamma": 20.0} if get_problem(id).name == "flowtime" else {}))
    rollouts = Rollouts(id, {**own, "view": view, "observation": "features"}, 6)
    values = rollouts.play(scorer, thetas, 11, 4)
    assert values.shape == (3, 2)
    for theta, row in zip(thetas, values, strict=True):
        policy = AgentPolicy(agent_of(id, view, scorer, theta, own, hidden=2))
        single = make_env(id, policy.acting_parameters(id, own))
        for episode, value in zip((4, 5), row, strict=True):
            outcome = play(single, policy, seed=11, episode=episode)
            assert outcome.metrics[rollouts.objective] == pytest.approx(value, rel=1e-6), (id, view, episode)
    np.testing.assert_array_equal(rollouts.play(scorer, thetas, 11, 4), values)
    assert not np.array_equal(rollouts.play(scorer, thetas, 11, 6), values) or not values.any()


def test_fitness() -> None:
    start, values = np.array([2.0, 4.0]), np.array([[1.0, 4.0], [2.0, 8.0]])
    for kind, expected in (("ratio", [-0.25, 0.5]), ("difference", [-1 / 6, 4 / 6])):
        np.testing.assert_allclose(module._fitness(kind, 1.0, values, start), expected)
        np.testing.assert_allclose(module._fitness(kind, -1.0, values, start), -np.array(expected))
    np.testing.assert_allclose(module._fitness("ratio", 1.0, np.array([[3.0]]), np.array([0.0])), [3.0])


def test_the_global_generator_is_not_used() -> None:
    np.random.seed(4321)  # noqa: NPY002
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    search(configuration())
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002


def test_what_a_training_tells(uninterrupted: module.SearchResult) -> None:
    curve = uninterrupted.curve
    assert [point.generation for point in curve] == [0, 2, 4, 6]
    assert curve[0].change == 0.0
    assert uninterrupted.best == min(curve, key=lambda point: point.change)
    assert uninterrupted.stopped == "generations"
    assert uninterrupted.decisions > 6 * 7 * 4
    # the weights are those of the best point: played again, they come to the same
    config = configuration()
    validation = Rollouts(ID, config.environment, 12)
    weights = uninterrupted.weights
    statistics = {n.removeprefix("statistics/"): a for n, a in weights.items() if n != "theta"}
    scorer = module.Scorer(validation.layout, config.scorer, statistics)
    values = validation.play(scorer, weights["theta"][np.newaxis], VALIDATION_SEED, 0)
    assert values.mean() == uninterrupted.best.objective


def test_it_learns() -> None:
    """From an order by age alone it finds that short jobs go first."""
    columns = {"job": ["log work left", "age"]}
    scorer = {"hidden": 0, "columns": columns, "skip": {"job": {"age": 1.0}}}
    result = search(configuration({"generations": 12, "population": 8, "sigma": 0.5}, scorer=scorer))
    assert result.best.change < -0.1
    assert result.best.generation > 0
    assert result.weights["theta"][0] < 0  # less work left, higher score


def test_a_start_that_nothing_beats_stays() -> None:
    result = search(configuration({"generations": 0}))
    assert result.best.generation == 0 and result.decisions > 0
    scorer = module.Scorer(
        Rollouts(ID, configuration().environment, 1).layout, configuration().scorer,
        {n.removeprefix("statistics/"): a for n, a in result.weights.items() if n != "theta"},
    )  # fmt: skip
    np.testing.assert_array_equal(result.weights["theta"], scorer.start(0))
    patient = search(configuration({"generations": 50, "patience": 1, "validate_every": 1, "sigma": 1e-9}))
    assert patient.stopped == "patience" and len(patient.curve) < 50


def test_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training, validation and evaluation never meet; every generation has episodes of its own."""
    played: list[tuple[int, int, int]] = []
    original = Rollouts.play

    def spy(self: Rollouts, scorer: Any, thetas: Any, seed: int, first: int, watch: Any = None) -> Any:
        played.append((seed, first, self.num_envs // len(thetas)))
        return original(self, scorer, thetas, seed, first, watch)

    monkeypatch.setattr(Rollouts, "play", spy)
    search(configuration(seed=5))
    training = [first for seed, first, count in played if seed == TRAINING_SEEDS + 5 and count == 4]
    assert training == [4 * generation for generation in range(1, 7)]
    assert {seed for seed, *_ in played} == {TRAINING_SEEDS + 5, VALIDATION_SEED}
    assert TRAINING_SEEDS + 2**32 < VALIDATION_SEED


def test_candidates_are_compared_with_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the same episodes of the same generation, and the strategy is told of each in its order."""
    games: list[tuple[Any, Any]] = []
    compared: list[tuple[Any, Any, Any]] = []
    play, fitness = Rollouts.play, module._fitness

    def spy(self: Rollouts, scorer: Any, thetas: Any, *rest: Any) -> Any:
        values = play(self, scorer, thetas, *rest)
        games.append((thetas, values))
        return values

    def spy_fitness(kind: str, sign: float, values: Any, start: Any) -> Any:
        found = fitness(kind, sign, values, start)
        compared.append((values, start, found))
        return found

    monkeypatch.setattr(Rollouts, "play", spy)
    monkeypatch.setattr(module, "_fitness", spy_fitness)
    config = configuration()
    search(config)
    side_by_side = [(thetas, values) for thetas, values in games if len(thetas) > 1]
    told = [own for own in compared if own[0].ndim == 2]
    assert len(side_by_side) == len(told) == 6
    start = games[1][0][0]  # which plays the first validation
    for (thetas, values), (against, reference, found) in zip(side_by_side, told, strict=True):
        np.testing.assert_array_equal(thetas[0], start)
        np.testing.assert_array_equal(reference, values[0])
        np.testing.assert_array_equal(against, values[1:])
        assert found.shape == (6,)


@long
@weekly
def test_prices_of_resources() -> None:
    """Partial-value's other view: one score per resource, the logarithm of its price."""
    config = make_config(
        {
            "id": "schedgym/PartialValue-v0",
            "algorithm": "cma",
            "view": "prices",
            "parameters": {"jobs": 20, "rate": 4.0, "window": "all"},
            "scorer": {"skip": {"resource": {"bias": 0.5}}},
            "search": {**SMALL, "population": 8, "episodes": 8, "generations": 16},
        }
    )
    result = search(config)
    assert result.inputs["resource"][0] == "log load"
    assert result.best.change < -0.03 and result.best.objective > 1.03 * result.curve[0].objective


def test_a_search_that_is_not_repeated_as_it_was_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.checkpoint"
    search(configuration({"generations": 2}), path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    write_atomically(path, {**arrays, "fitness": arrays["fitness"][:, ::-1]})
    with pytest.raises(InvalidParameter, match="a.checkpoint: the search is not repeated as it was"):
        search(configuration(), path, resume=True)


def test_what_a_search_adds_to_the_agent_file(tmp_path: Path) -> None:
    train(configuration(seed=9), tmp_path / "agent.npz")
    metadata = load_agent(tmp_path / "agent.npz").metadata
    assert metadata["training"]["environment_seed"] == TRAINING_SEEDS + 9
    assert {"python", "numpy", "numba", "cma"} <= set(metadata["versions"])
    assert metadata["network"]["inputs"]["job"][0] == "log work left"
