"""Trainings over several domains: what is played, what is compared, and what a configuration may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schedgym.agents.config import Config, make_config
from schedgym.agents.domains import PARTS, best_baseline, windows_of_part
from schedgym.agents.files import load_agent
from schedgym.agents.training import train
from schedgym.core.policy import make_policy
from schedgym.core.problem import get_problem
from schedgym.core.random import VALIDATION_SEED
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.episodes import make_env, play
from tests.evaluation.test_cli import NODES, pods
from tests.lazy import Lazy, needs
from tests.tables import table

pytestmark = needs("cma")
module = Lazy("schedgym.agents.search", "cma")

ID = "schedgym/FlowtimePacking-v0"
DOMAINS: dict[str, Any] = {
    "few": {"parameters": {"jobs": 6}},
    "many": {"parameters": {"jobs": 14, "servers": "3+3"}, "weight": 3.0},
    "other": {"parameters": {"jobs": 10}, "use": "validation"},
}
SEARCH = {"population": 4, "episodes": 3, "generations": 2, "validate_every": 1, "validation_episodes": 5}


def configuration(domains: Any = DOMAINS, **search_options: Any) -> Config:
    return make_config(
        {
            "id": ID,
            "algorithm": "cma",
            "view": "priority",
            "parameters": {"jobs": 12, "servers": "4+2+2", "window": "all"},
            "scorer": {"columns": {"job": ["log work left", "age"]}, "skip": {"job": {"age": 1.0}}},
            "search": {**SEARCH, "fitness": "log", **search_options},
            "domains": domains,
        }
    )


def test_domains_are_parameters_over_those_of_the_configuration() -> None:
    config = configuration()
    trained, validated = config.domains_of("training"), config.domains_of("validation")
    assert [(own.name, own.weight, own.environment["jobs"]) for own in trained] == [
        ("few", 1.0, 6),
        ("many", 3.0, 14),
    ]
    assert [own.environment["servers"] for own in trained] == ["4+2+2", "3+3"]
    assert [own.name for own in validated] == ["other"]
    assert all(own.environment["view"] == "priority" and own.split for own in (*trained, *validated))
    assert make_config(config.to_dict()) == config
    both = configuration({"few": {}, "many": {"parameters": {"jobs": 14}}})
    assert both.domains_of("validation") == both.domains_of("training")
    (alone,) = configuration({}).domains_of("training")
    assert alone.environment == configuration({}).environment and not alone.split
    assert "domains" not in configuration({}).to_dict()


@pytest.mark.parametrize(("changes", "message"), table(__file__, "test_what_is_wrong_is_named"))
def test_what_is_wrong_is_named(changes: dict[str, Any], message: str) -> None:
    data = {"id": ID, "algorithm": "cma", "view": "priority", **changes}
    with pytest.raises((InvalidParameter, UnknownName), match=message) as caught:
        make_config(data)
    assert "\n" not in str(caught.value)


def test_what_has_no_effect_in_a_domain_is_left_out() -> None:
    id = "schedgym/PartialValue-v0"
    data: dict[str, Any] = {"id": id, "algorithm": "cma", "view": "priority"}
    data |= {"parameters": {"serving": "program"}, "domains": {"cut": {}, "whole": {}}}
    data["domains"]["whole"]["parameters"] = {"model": "discrete"}
    cut, whole = make_config(data).domains_of("training")
    assert cut.environment["serving"] == "program" and "serving" not in whole.environment
    data["domains"]["whole"]["parameters"]["serving"] = "program"
    with pytest.raises(InvalidParameter, match="domains.whole.parameters.serving: has no effect without"):
        make_config(data)


def test_gradients_have_no_domains() -> None:
    with pytest.raises(InvalidParameter, match="domains: has no effect on algorithm 'ppo'"):
        make_config({"id": ID, "algorithm": "ppo", "view": "priority", "domains": DOMAINS})


def test_logarithms_of_ratios() -> None:
    start, values = np.array([2.0, 6.0]), np.array([[1.0, 12.0], [2.0, 6.0]])
    floor = 0.01 * 4.0
    expected = np.log((values + floor) / (start + floor)).mean(axis=1)
    np.testing.assert_allclose(module._fitness("log", 1.0, values, start), expected)
    np.testing.assert_allclose(module._fitness("log", -1.0, values, start), -expected)
    # an episode whose objective is almost 0 does not decide alone, and zeros have a logarithm
    near = module._fitness("log", 1.0, np.array([[1e-9, 10.0]]), np.array([1e-12, 10.0]))
    assert abs(near[0]) < 1e-6
    np.testing.assert_allclose(module._fitness("log", 1.0, np.array([[0.0]]), np.array([0.0])), [0.0])


def test_the_fitness_is_the_weighted_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates play in the domains of the training only, the mean of the search in those of validation."""
    games: list[tuple[int, int, Any]] = []
    told: list[Any] = []
    original, strategy = module.Rollouts.play, module._strategy

    def spy(self: module.Rollouts, scorer: Any, thetas: Any, *rest: Any) -> Any:
        values = original(self, scorer, thetas, *rest)
        games.append((self.simulator.parameters.jobs, len(thetas), values))  # type: ignore[attr-defined]
        return values

    def spied(*arguments: Any) -> Any:
        made = strategy(*arguments)
        tell = made.tell
        made.tell = lambda candidates, fitness: (told.append(fitness), tell(candidates, fitness))
        return made

    monkeypatch.setattr(module.Rollouts, "play", spy)
    monkeypatch.setattr(module, "_strategy", spied)
    result = module.search(configuration())
    training = [game for game in games if game[1] > 1]
    assert [jobs for jobs, *_ in training] == [6, 14, 6, 14]
    for fitness, (_, _, few), (_, _, many) in zip(told, training[::2], training[1::2], strict=True):
        own = [module._fitness("log", 1.0, values[1:], values[0]) for values in (few, many)]
        np.testing.assert_allclose(fitness, (own[0] + 3.0 * own[1]) / 4.0, rtol=1e-12)
    assert [jobs for jobs, count, _ in games if count == 1] == [6, 14, 10, 10, 10]  # columns; validations
    assert [len(point.domains) for point in result.curve] == [1, 1, 1]
    assert all(point.change == pytest.approx(point.domains[0]) for point in result.curve)


def test_a_domain_may_say_how_many_episodes_are_played_there(monkeypatch: pytest.MonkeyPatch) -> None:
    games: list[tuple[int, int, tuple[int, ...]]] = []
    original = module.Rollouts.play

    def spy(self: module.Rollouts, scorer: Any, thetas: Any, seed: int, first: int, *rest: Any) -> Any:
        values = original(self, scorer, thetas, seed, first, *rest)
        games.append((self.simulator.parameters.jobs, first, values.shape))  # type: ignore[attr-defined]
        return values

    monkeypatch.setattr(module.Rollouts, "play", spy)
    few = {**DOMAINS["few"], "episodes": 2}
    module.search(configuration({**DOMAINS, "few": few, "other": {**DOMAINS["other"], "episodes": 7}}))
    assert [game for game in games if game[2][0] > 1] == [
        *((6, 2, (5, 2)), (14, 3, (5, 3))),
        *((6, 4, (5, 2)), (14, 6, (5, 3))),
    ]
    assert [game for game in games if game[2][0] == 1] == [
        *((6, 0, (1, 2)), (14, 0, (1, 5))),  # columns
        *((10, 0, (1, 7)),) * 3,
    ]


def test_it_is_compared_with_the_best_baseline(tmp_path: Path) -> None:
    config = configuration(baselines=["srvf", "drf"])
    result = train(config, tmp_path / "agent.npz")
    environment = config.domains_of("validation")[0].environment
    name, values = best_baseline(ID, ["srvf", "drf"], environment, VALIDATION_SEED, np.arange(5))
    means = {}
    for own in ("srvf", "drf"):
        env = make_env(ID, {"jobs": 10, "servers": "4+2+2"})
        policy = make_policy(own, "flowtime")
        played = [play(env, policy, seed=VALIDATION_SEED, episode=episode) for episode in range(5)]
        means[own] = np.mean([outcome.metrics[get_problem(ID).objective] for outcome in played])
    assert name == min(means, key=lambda own: means[own])
    assert values.mean() == pytest.approx(means[name])
    start = result.curve[0]
    assert start.change != 0.0  # the oldest first is not as good as the baseline, or better
    rollouts = module.Rollouts(ID, environment, 5)
    weights = load_agent(tmp_path / "agent.npz").weights
    statistics = {n.removeprefix("statistics/"): a for n, a in weights.items() if n != "theta"}
    scorer = module.Scorer(rollouts.layout, config.scorer, statistics)
    played = rollouts.play(scorer, scorer.start(0)[np.newaxis], VALIDATION_SEED, 0)[0]
    assert start.change == pytest.approx(float(module._fitness("log", 1.0, played, values)))


def test_a_search_over_domains_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "a.checkpoint"
    module.search(configuration(generations=1), path)
    again, whole = module.search(configuration(), path, resume=True), module.search(configuration())
    assert all(np.array_equal(again.weights[name], whole.weights[name]) for name in whole.weights)
    assert [point.domains for point in again.curve] == [point.domains for point in whole.curve]
    with pytest.raises(InvalidParameter, match="another configuration: domains.few"):
        module.search(configuration({**DOMAINS, "few": {"weight": 2.0}}), path, resume=True)


def test_parts_of_a_trace_never_meet() -> None:
    for windows in (5, 6, 7, 13, 100):
        own = [windows_of_part(windows, part) for part in PARTS]
        assert [number for part in own for number in part] == list(range(windows))
        assert all(len(part) for part in own)
    with pytest.raises(InvalidParameter, match="it needs 5 or more, this one has 4"):
        windows_of_part(4, "training")


def test_episodes_of_a_trace_are_windows_of_one_part(tmp_path: Path) -> None:
    """Whatever the seed: in order of time the first windows train, the next validate, the last do neither."""
    rows = [(4000 * (i * i % 7 + 1), 4096, 10 * i, 10 * i + 50 + i) for i in range(80)]
    (tmp_path / "t.csv").write_text(pods(rows))
    (tmp_path / "n.csv").write_text(NODES)
    files = {"trace": str(tmp_path / "t.csv"), "nodes": str(tmp_path / "n.csv")}
    given = {**files, "servers": 2, "tasks": 8, "load": 20.0, "view": "pick"}
    played = 0
    for part, expected in (("training", range(6)), ("validation", range(6, 8)), ("test", range(8, 10))):
        rollouts = module.Rollouts("schedgym/QueueDelay-v0", given, 1, part)
        simulator = rollouts.simulator
        for seed in (0, 3, VALIDATION_SEED):
            for i, episode in enumerate(rollouts.episodes(seed, np.arange(12)).tolist()):
                simulator.seed(0, seed)
                simulator.episodes[0] = episode
                simulator.begin(np.ones(1, dtype=bool))
                first = 8 * expected[i % len(expected)]
                np.testing.assert_allclose(
                    simulator.jobs.execution[0, :8], 50.0 + np.arange(first, first + 8)
                )
                played += 1
    assert played == 3 * 3 * 12


def test_drawn_episodes_are_not_split() -> None:
    rollouts = module.Rollouts(ID, {"jobs": 4, "view": "priority"}, 1, "validation")
    np.testing.assert_array_equal(rollouts.episodes(5, np.arange(3, 9)), np.arange(3, 9))
