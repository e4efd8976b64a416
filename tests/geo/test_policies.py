"""The policies in the environments: the model's schedules, and compiled rollouts."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import schedgym
from schedgym.baselines.geo import policy as geo_policy
from schedgym.baselines.geo.assignment import PLACEMENTS
from schedgym.evaluation import episodes
from schedgym.evaluation.episodes import make_env
from schedgym.papers.guan2022 import model
from schedgym.problems.geo.orders import ASSIGN_RULES
from schedgym.problems.geo.rules import FAIR_RULES
from tests.geo.test_dynamics import (
    ASSIGN,
    FAIR,
    Replay,
    check_equal,
    instances,
    job_numbers,
    make,
)
from tests.interpreted import results_of
from tests.long import long, some, thinned, trials
from tests.playing import play
from tests.tables import table
from tests.traces.logs import SWIM_ROWS, write

ASSIGNMENT = {"view": "assignment", "strict": True}
SHARES = {"view": "shares", "strict": True}


def starts(env: Any) -> list[Any]:
    record = env.record()
    return [record.start.tolist(), record.server.tolist()]


# Assignment -----------------------------------------------------------------------------------

OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *((rule, {}) for rule in ASSIGN_RULES),
    *((rule, {"fine": False}) for rule in ("btawj-fcfs", "btawj-swag", "btaaj-fcfs", "btaaj-swag", "scta")),
    *table(__file__, "OPTIONS"),
]


@pytest.mark.parametrize(("rule", "options"), some(OPTIONS, of=2, late=3))
def test_assignments_are_the_models(rule: str, options: dict[str, Any], tmp_path: Any) -> None:
    policy = schedgym.make_policy(f"geo/{rule}", **options)
    for instance in instances(40, 1):
        env = make(ASSIGN, tmp_path, instance, **ASSIGNMENT)
        assert play(env, policy).metrics["repaired"] == 0
        check_equal(env, model.simulate_assign(instance, rule, **options))


def test_srpt_picks_by_what_remains_when_it_is_asked(tmp_path: Any) -> None:
    """Not always what view assignment knows at the event before: as declared."""
    equal = 0
    for instance in instances(40, 4):
        env = make(ASSIGN, tmp_path, instance, view="pick", dispatch_sites="associated", strict=True)
        play(env, schedgym.make_policy("geo/srpt"))
        found = starts(env)
        env = make(ASSIGN, tmp_path, instance, **ASSIGNMENT)
        play(env, schedgym.make_policy("geo/srpt", placement="associated"))
        equal += found == starts(env)
    assert len(trials(40)) // 2 <= equal


# Shares ---------------------------------------------------------------------------------------


def aggregates(shares: Any) -> Any:
    return np.maximum(shares, 0.0).sum(axis=(1, 2))


def check_decision(instance: model.Instance, view: model.View, rule: str, shares: model.Shares) -> None:
    """The model's aggregates at a decision; all shares for imf."""
    if rule == "imf":
        exact = model.fair_policy(instance, view, rule)
        for key in {*exact, *shares}:
            assert abs(float(exact.get(key, 0)) - float(shares.get(key, 0))) < 1e-9
        return
    base = rule.removeprefix("opt-")
    problem = model.decision_problem(instance, view.active, view.unfinished, base)
    for i, total in zip(view.active, model.max_min(problem), strict=True):
        own = sum(float(x) for (a, _, _), x in shares.items() if a == i)
        assert abs(own - float(total)) < 1e-9


@pytest.mark.parametrize("aggressive", some([True, False]))
@pytest.mark.parametrize("rule", FAIR_RULES)
def test_shares_are_the_models(rule: str, aggressive: bool, tmp_path: Any) -> None:
    policy = schedgym.make_policy(f"geo/{rule}")
    sites = "all" if rule.endswith("gamf") else "associated"
    for instance in instances(12, 5):
        env = make(FAIR, tmp_path, instance, aggressive=aggressive, **SHARES)
        replay = Replay()

        def note(
            observation: Any, action: Any, env: Any = env, replay: Replay = replay, instance: Any = instance
        ) -> None:
            jobs = job_numbers(env, observation)
            shares = {
                (i, k, j): max(float(action[r, k, a]), 0.0)
                for r, i in enumerate(jobs)
                for k, group in enumerate(instance.groups)
                for a, j in enumerate(group)
            }
            replay.note(observation, jobs, shares)

        metrics = play(env, policy, note=note).metrics

        def share(view: model.View, replay: Replay = replay, instance: Any = instance) -> Any:
            shares = replay.share(view)
            if shares:
                check_decision(instance, view, rule, shares)
            return shares

        check_equal(env, model.simulate_fair(instance, share, aggressive=aggressive, sites=sites))
        assert replay.asked == list(replay.plans)
        assert metrics["repaired"] == 0
        if "sig" in rule or rule == "imf":
            assert metrics["sharing_violations"] == 0


@pytest.mark.parametrize("sharing", some(["associated", "all"], keep=0))
def test_weights_share_as_the_model_does(sharing: str, tmp_path: Any) -> None:
    """One of no weight counts as the least: it gets what the others leave."""
    rng = np.random.default_rng(5)
    decisions = 0
    for instance in instances(40, 6):
        env = make(FAIR, tmp_path, instance, view="weights", dispatch_sites=sharing, strict=True)
        observation, _ = env.reset()
        done = False
        while not done:
            n = int(observation["active"][0])
            weights = rng.integers(0, 9, n) if decisions % 5 else np.zeros(n, dtype=int)
            tasks = (observation["waiting"] + observation["running"].sum(axis=2))[:n].tolist()
            seen = dict(enumerate(tasks))
            action = np.zeros(env.action_space.shape, env.action_space.dtype)
            action[:n] = weights / 8
            base = "gamf" if sharing == "all" else "amf"
            problem = model.decision_problem(instance, range(n), seen, base)
            least = Fraction(max(int(weights.max()), 1), 10**9)
            expected = model.max_min(problem, [max(Fraction(int(weight)), least) for weight in weights])
            simulator = env.simulator
            simulator.actions[0, : len(action)] = action
            simulator.kernels[0](simulator.table, simulator.toolboxes[0], np.ones(1, np.int8))
            shares = np.maximum(simulator.state.share[0, :n], 0.0).sum(axis=1)
            np.testing.assert_allclose(shares, list(map(float, expected)), rtol=0.0, atol=1e-7)
            observation, _, done, _, _ = env.step(action)
            decisions += 1
    assert decisions > 100


def unfinished_seconds(env: Any, instance: model.Instance, observation: dict[str, Any]) -> Any:
    """The durations of the tasks that have not ended, by row and group, from the schedule so far."""
    record, clock = env.record(), float(observation["clock"][0])
    ended = set(record.job[record.end <= clock].tolist())
    rows = {i: r for r, i in enumerate(job_numbers(env, observation))}
    table = np.zeros((len(rows), len(instance.groups)))
    numbered = ((i, task) for i, job in enumerate(instance.jobs) for task in job.tasks)
    for number, (i, (duration, sites)) in enumerate(numbered):
        if i in rows and number not in ended:
            table[rows[i], instance.groups.index(sites)] += float(duration)
    return table


@pytest.mark.parametrize("window", some([2, "all"]))
@pytest.mark.parametrize("rule", ["opt-amf", "opt-sig-amf", "opt-gamf", "opt-sig-gamf"])
def test_known_durations_decide_who_gets_what(rule: str, window: int | str, tmp_path: Any) -> None:
    """The observed seconds are those of the schedule; the first job finishes as early as the model's."""
    policy = schedgym.make_policy(f"geo/{rule}", known_durations=True)
    blind = schedgym.make_policy(f"geo/{rule}")
    base, apart, changed = rule.removeprefix("opt-"), rule.endswith("gamf"), 0
    for instance in instances(12, 8):
        env = make(FAIR, tmp_path, instance, clairvoyant=True, **SHARES | {"window": window})
        blind.reset(env.interface, np.random.default_rng(0))

        def note(observation: Any, action: Any, env: Any = env, instance: Any = instance) -> None:
            nonlocal changed
            own = unfinished_seconds(env, instance, observation)[: len(observation["seconds"])]
            n = len(own)
            assert np.allclose(observation["seconds"][:n], own, rtol=1e-12, atol=0.0)
            assert not observation["seconds"][n:].any()
            changed += bool(np.abs(blind(observation) - action).max() > 1e-6)
            if window != "all":
                return
            tasks = (observation["waiting"] + observation["running"].sum(axis=2))[:n].tolist()
            seen = model.decision_problem(instance, range(n), dict(enumerate(tasks)), base)
            first = min(range(n), key=lambda i: (sum(tasks[i]), i))
            if not apart:
                places = np.array([group[0] for group in instance.groups])
                own = np.array([[row[places == j].sum() for j in range(len(instance.slots))] for row in own])
                action = np.maximum(action, 0.0)[:n, :, 0]
                got = [action[first, places == j].sum() for j in range(len(instance.slots))]
            else:
                got = action[first].sum(axis=1)
            exact = [[Fraction(float(x)) for x in row] for row in own]
            best = model.optimise(seen, model.max_min(seen), [first], exact)[0][0]
            assert min(x / w for x, w in zip(got, own[first], strict=True) if w) == pytest.approx(float(best))

        assert play(env, policy, note=note).metrics["repaired"] == 0
        expected = starts(env)
        if window == "all":
            env = make(FAIR, tmp_path, instance, view="fair-rule", clairvoyant=True)
            play(env, policy)
            assert starts(env) == expected
    assert changed > 0 or rule == "opt-sig-amf"  # whose floors leave these few jobs no choice


# All of them ----------------------------------------------------------------------------------


#: few sites and long tasks, so that the backlog is long and most of an order is not needed
BACKLOG = {"jobs": 60, "sites": 4, "slots": 3, "choices": 2, "zipf": 1.0, "utilization": 0.9}
ROLLED: list[tuple[str, str, str, dict[str, Any], dict[str, Any]]] = [
    *((ASSIGN, "assignment", rule, options, {}) for rule, options in OPTIONS),
    *((ASSIGN, "rule", rule, {}, {"placement": place}) for rule in ASSIGN_RULES for place in PLACEMENTS),
    *((FAIR, view, rule, {}, {}) for rule in FAIR_RULES for view in ("shares", "fair-rule")),
    (FAIR, "shares", "opt-gamf", {"known_durations": True}, {"clairvoyant": True}),
    (FAIR, "shares", "opt-gamf", {}, {"clairvoyant": True}),
    (FAIR, "fair-rule", "opt-amf", {"known_durations": True}, {"clairvoyant": True}),
]


@long
@pytest.mark.parametrize(("id", "view", "rule", "options", "parameters"), thinned(ROLLED, of=9))
def test_compiled_rollouts_play_what_the_policy_decides(
    id: str,
    view: str,
    rule: str,
    options: dict[str, Any],
    parameters: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(geo_policy, "MANY_JOBS", 1)
    env = make_env(id, {**BACKLOG, **parameters, "view": view, "window": "all"})
    policy = schedgym.make_policy(f"geo/{rule}", **options)
    for episode in range(3):
        total = 0.0
        for step in episodes.steps(env, policy, seed=3, episode=episode):
            total += step.reward
        stepped = step.info["metrics"], total, starts(env)
        assert getattr(policy, "compiled_rollout", None) is not None
        outcome = episodes.play(env, policy, seed=3, episode=episode)
        assert stepped == (outcome.metrics, outcome.total, starts(env))


def test_policies_with_and_without_compiled_rollouts(tmp_path: Path) -> None:
    few, many = geo_policy.MANY_JOBS - 1, geo_policy.MANY_JOBS
    path = tmp_path / "jobs.tsv"
    write(path, SWIM_ROWS)
    for name, jobs, window, given, compiled in (
        ("geo/ata", many, 3, {}, False),
        ("geo/random", many, "all", {}, False),
        ("geo/ata", few, "all", {}, False),
        ("geo/ata", many, "all", {}, True),
        ("geo/ata", 1, "all", {"trace": str(path)}, True),
    ):
        env = make_env(ASSIGN, {"view": "assignment", "jobs": jobs, "window": window, **given})
        policy = schedgym.make_policy(name)
        policy.reset(env.interface, np.random.default_rng(0))
        assert (policy.compiled_rollout is not None) is compiled


COUNTED = """
import importlib, json, sys
from schedgym.core.policy import make_policy
from schedgym.evaluation.episodes import make_env, play

module, function, id, policy = sys.argv[1:]
module = importlib.import_module(module)
real = getattr(module, function)
calls = 0

def counted(*arguments):
    global calls
    calls += 1
    return real(*arguments)

setattr(module, function, counted)
crowd = {"jobs": 60, "sites": 4, "slots": 1, "utilization": 20.0, "durations": "per-job"}
play(make_env(id, crowd), make_policy(policy), label=policy)
print(json.dumps(calls))
"""


@pytest.mark.parametrize(
    ("module", "function", "id", "policy", "most"),
    [
        # all 60 jobs in each of the 60 places of the order, at every decision: 30,000 estimates
        ("schedgym.problems.geo.orders", "_estimate", ASSIGN, "geo/ata", 5_000),
        # groups of jobs that pass nothing on are looked at 70,000 times too often
        ("schedgym.solvers.max_min", "_visit_sites", FAIR, "geo/opt-gamf", 35_000),
    ],
)
def test_work_for_many_active_jobs_is_bounded(
    module: str, function: str, id: str, policy: str, most: int
) -> None:
    calls = results_of(COUNTED, module, function, id, policy, NUMBA_DISABLE_JIT="1")
    assert 0 < calls < most
