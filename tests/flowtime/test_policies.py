"""The policies in the environment: the model's schedules, equal ones in every view, refused options."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import schedgym
from schedgym.baselines.flowtime.pricing import simplest_fraction
from schedgym.core.jit import pure_kernel
from schedgym.core.policy import list_policies
from schedgym.errors import InvalidParameter, InvalidWorkload
from schedgym.papers.xu2021 import model
from schedgym.papers.xu2021.model import Instance, Job
from schedgym.problems.flowtime.metrics import fates
from schedgym.problems.flowtime.problem import PROBLEM
from schedgym.problems.flowtime.rules import RULES
from schedgym.problems.flowtime.workload import slots_needed
from tests.flowtime.instances import random_instance
from tests.flowtime.test_dynamics import ID, instances, make
from tests.long import some, thinned
from tests.playing import play


def schedule(env: Any) -> list[Any]:
    record = env.record()
    return [getattr(record, name).tolist() for name in ("job", "server", "start", "end", "amount")]


def allocations(env: Any, instance: Instance) -> list[model.Matrix]:
    """Cores [slot][job][server] of the episode that has ended."""
    record = env.record()
    u = np.zeros((int(record.final_time), len(instance.jobs), len(instance.cpu)), dtype=int)
    for job, server, start, end, amount in zip(*schedule(env), strict=True):
        u[int(start) : int(end), job, server] = amount[0] if isinstance(amount, list) else amount
    rows: list[model.Matrix] = u.tolist()
    return rows


def check_equal(env: Any, instance: Instance, outcome: model.Outcome) -> None:
    assert allocations(env, instance) == outcome.allocations
    assert fates(env.record())["completion"] == outcome.completion


#: gamma of the environment: an episode of small instances is cut off after some hundred slots
SHORT = {"view": "allocation", "strict": True, "gamma": 60.0}


@pytest.mark.parametrize("kind", ["1d", "2d", "mapreduce"])
def test_policies_take_no_more_slots_than_their_limit_counts(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No policy that leaves no usable core idle has more steps than the number that a workload may have."""
    found: list[float] = []

    def noted(*given: Any) -> Any:
        found.append(float(slots_needed(*given)))
        return found[-1]

    monkeypatch.setattr("schedgym.problems.flowtime.workload.slots_needed", noted)
    tight = 0
    for instance in instances(kind, 60, 5):
        for name in ("ocorp", *RULES):
            env = make(tmp_path, instance, kind, view="allocation", gamma=1e6)
            steps: list[int] = []
            play(env, schedgym.make_policy(name, "flowtime"), note=lambda *_, steps=steps: steps.append(1))
            assert len(steps) <= found[-1]
            tight += len(steps) > 0.9 * found[-1]
    assert tight


# Against the model ---------------------------------------------------------------------------

PRICES: list[dict[str, Any]] = [
    {},
    {"gamma": 30.0, "literal": True},
    {"lambda0": 0.0},
    {"lambda0": 0.0, "gamma": 30.0},
    {"lambda0": 0.0, "gamma": "seen"},
    {"lambda0": 0.0, "gamma": "eq27"},
    {"lambda0": 0.0, "gamma": 25.0, "literal": True},
    {"lambda0": "p", "gamma": "seen"},
    {"lambda0": "w"},
    {"lambda0": "w", "literal": True, "gamma": "seen"},
    {"lambda0": 7.0, "gamma": 90},
]
OPTIONS: list[tuple[str, str, dict[str, Any]]] = [
    *((kind, rule, {}) for kind in ("1d", "2d", "mapreduce") for rule in RULES),
    *((kind, "ocorp", options) for kind in ("1d", "2d", "mapreduce") for options in PRICES),
    *(
        ("1d", "ocorp+", {"level": level, **options})
        for level in ("server", "job")
        for options in (
            {"alpha": 1.0},
            {"alpha": 0.3, "gamma": "seen", "lambda0": 0.0},
            {"alpha": 40.0, "lambda0": "w"},
            {"alpha": 2.0, "literal": True, "gamma": 25.0, "lambda0": 0.0},
            {"alpha": 0.0, "gamma": 30.0, "lambda0": 0.0},
            {"alpha": 1.0, "gamma": "eq27", "lambda0": 0.0},
        )
    ),
    *(
        ("2d", "ocorp+m", options)
        for options in (
            {},
            {"lambda0": 0.0},
            {"gamma": "seen", "lambda0": "p"},
            {"backfill": False, "lambda0": 0.0},
            {"literal": True, "gamma": 25.0, "lambda0": 0.0},
            {"literal": True, "backfill": False, "gamma": "seen", "lambda0": 0.0},
            {"gamma": "eq27", "lambda0": "w"},
            {"alpha": 1.0},
            {"alpha": 0.3, "gamma": "seen", "lambda0": 0.0},
            {"alpha": 40.0, "lambda0": "w"},
            {"alpha": 2.0, "literal": True, "gamma": 25.0, "lambda0": 0.0},
            {"alpha": 5.0, "backfill": False, "gamma": 30.0, "lambda0": 0.0},
        )
    ),
]


@pytest.mark.parametrize("packing", some(["fresh", "sticky"]))
@pytest.mark.parametrize(("kind", "name", "options"), some(thinned(OPTIONS, of=2), of=3, late=4))
def test_schedules_are_the_models(
    kind: str, name: str, options: dict[str, Any], packing: str, tmp_path: Any
) -> None:
    """Every allocation of the run, with declared demands that are wrong in a third of the instances."""
    policy = schedgym.make_policy(f"flowtime/{name}", **options)
    for x, given in enumerate(instances(kind, 12, 1)):
        mode, instance, extra = None, given, dict(SHORT)
        if kind != "mapreduce" and x % 3 == 2:
            mode = model.MODES[x // 3 % 3]
            instance = model.declare(given, random.Random(x), 0.5)
            extra["estimation"] = mode
        if options.get("gamma") == "eq27":
            extra["clairvoyant"] = True
        env = make(tmp_path, instance, kind, packing=packing, **extra)
        assert play(env, policy).metrics["repaired"] == 0
        limit = int(env.record().final_time)
        outcome = model.simulate(instance, name, packing=packing, mode=mode, limit=limit, **options)
        check_equal(env, instance, outcome)


@pytest.mark.parametrize("norm", some([1.5, 1.0, 3.0]))
@pytest.mark.parametrize(("kind", "name"), [("1d", "ocorp"), ("mapreduce", "ocorp"), ("2d", "ocorp+m")])
def test_other_norms(kind: str, name: str, norm: float, tmp_path: Any) -> None:
    options: dict[str, Any] = {"gamma": "seen", "lambda0": 0.0}
    policy = schedgym.make_policy(f"flowtime/{name}", **options)
    for instance in instances(kind, 15, 2):
        env = make(tmp_path, instance, kind, norm=norm, **SHORT)
        play(env, policy)
        limit = int(env.record().final_time)
        check_equal(env, instance, model.simulate(instance, name, k=norm, limit=limit, **options))


@pytest.mark.parametrize(("kind", "name"), [("1d", "ocorp+"), ("2d", "ocorp+m")])
def test_the_environments_alpha_is_the_default(kind: str, name: str, tmp_path: Any) -> None:
    for instance in instances(kind, 15, 3):
        env = make(tmp_path, instance, kind, alpha=3.0, **SHORT)
        play(env, schedgym.make_policy(f"flowtime/{name}", gamma=50.0, lambda0=0.0))
        limit = int(env.record().final_time)
        outcome = model.simulate(instance, name, alpha=3.0, gamma=50.0, lambda0=0.0, limit=limit)
        check_equal(env, instance, outcome)


def test_memory_with_a_switching_cost_keeps_jobs_in_place(tmp_path: Any) -> None:
    """In sum over some workloads fewer cores change place the larger alpha is."""
    changed = dict.fromkeys((0.0, 3.0, 1e3), 0.0)
    for instance in instances("2d", 30, 12):
        for alpha in changed:
            env = make(tmp_path, instance, "2d", **SHORT)
            policy = schedgym.make_policy("flowtime/ocorp+m", alpha=alpha, lambda0=0.0)
            changed[alpha] += play(env, policy).metrics["switching_cost"]
    assert changed[0.0] > changed[3.0] > changed[1e3] > 0.0


def test_the_transient_algorithm(tmp_path: Any) -> None:
    rng = random.Random(4)
    policy = schedgym.make_policy("flowtime/svf-transient")
    for _ in range(30):
        instance = random_instance(rng, at_once=True)
        env = make(tmp_path, instance, "1d", **SHORT)
        play(env, policy)
        limit = int(env.record().final_time)
        check_equal(env, instance, model.simulate(instance, "svf-transient", limit=limit))
    env = make(tmp_path, Instance([Job(0, 9, 1), Job(3, 1, 1)], [2]), "1d", **SHORT)
    with pytest.raises(InvalidWorkload, match="needs jobs that arrive at 0, job 1 arrives at 3"):
        play(env, policy)


# Prices ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", some(["1d", "2d", "mapreduce"]))
def test_prices_are_the_models(kind: str, tmp_path: Any) -> None:
    """Equal to the last bit, with wrong declarations, too."""
    for x, given in enumerate(instances(kind, 24, 6)):
        for options in (
            {},
            {"gamma": 40.0, "lambda0": 0.0},
            {"gamma": "seen", "lambda0": "p"},
            {"lambda0": "w", "literal": True},
        ):
            mode, instance, extra = None, given, dict(SHORT)
            if kind != "mapreduce" and x % 2:
                mode = model.MODES[x // 2 % 3]
                instance = model.declare(given, random.Random(x), 0.5)
                extra["estimation"] = mode
            env = make(tmp_path, instance, kind, **extra)
            policy = schedgym.make_policy("flowtime/ocorp", **options)
            seen: list[tuple[int, dict[tuple[int, int], float]]] = []

            def note(observation: Any, action: Any, policy: Any = policy, seen: Any = seen) -> None:
                learned = policy.learned
                n = int(learned.state[0])
                keys = zip(learned.job[:n].tolist(), learned.phase[:n].tolist(), strict=True)
                prices = dict(zip(keys, learned.price[:n].tolist(), strict=True))
                seen.append((int(observation["slot"][0]), prices))

            play(env, policy, note=note)
            limit = int(env.record().final_time)
            outcome = model.simulate(instance, "ocorp", mode=mode, limit=limit, **options)
            for slot, prices in seen:
                before = outcome.lambdas[slot - 2] if slot > 1 else {}
                for key, price in prices.items():
                    if key in before:
                        assert price == before[key]


@pure_kernel
def nearest(x: float, error: float) -> float:
    return simplest_fraction(x, error)


def test_service_is_recovered_from_rounded_slots() -> None:
    rng = random.Random(7)
    inexact = 0
    for _ in range(20000):
        d = rng.randint(1, 500)
        p = rng.choice([3, 50, 3300])
        left = rng.randint(1, p * d)
        used = rng.randint(0, min(d, left))
        before, after = left / d, (left - used) / d
        assert nearest(before - after, 1e-15 * (1.0 + before)) == used / d
        inexact += before - after != used / d
    assert inexact > 5000


# Other views ----------------------------------------------------------------------------------

VIEWS: list[tuple[str, dict[str, Any], str]] = [
    *((rule, {}, view) for rule in ("srpt", "srvf", "svf", "srf", "fifo") for view in ("priority", "rule")),
    *((rule, {}, "rule") for rule in ("tetris", "drf")),
    ("random", {}, "priority"),
    *(("ocorp", options, "priority") for options in PRICES),
]


@pytest.mark.parametrize("packing", some(["fresh", "sticky"]))
@pytest.mark.parametrize("kind", ["1d", "2d", "mapreduce"])
@pytest.mark.parametrize(("name", "options", "view"), some(thinned(VIEWS, of=2), of=3, late=4))
def test_other_views_contain_the_policies(
    name: str, options: dict[str, Any], view: str, kind: str, packing: str, tmp_path: Any
) -> None:
    policy = schedgym.make_policy(f"flowtime/{name}", **options)
    parameters = dict(SHORT) | {"packing": packing, "clairvoyant": options.get("gamma") == "eq27"}
    for x, given in enumerate(instances(kind, 12, 8)):
        instance, extra = given, dict(parameters)
        if kind != "mapreduce" and x % 2:
            instance = model.declare(given, random.Random(x), 0.5)
            extra["estimation"] = model.MODES[x // 2 % 3]
        env = make(tmp_path, instance, kind, **extra)
        expected = play(env, policy, 3).metrics, schedule(env)
        env = make(tmp_path, instance, kind, **(extra | {"view": view}))
        assert (play(env, policy, 3).metrics, schedule(env)) == expected


# All of them ----------------------------------------------------------------------------------

EVERY = [spec.name for spec in list_policies("flowtime")]
KIND = {"flowtime/ocorp+m": "2d"}


@pytest.mark.parametrize("name", EVERY)
def test_more_jobs_than_there_was_room_for(name: str) -> None:
    """The work space grows in the middle of an episode, and what was learned stays."""
    parameters: dict[str, Any] = {"jobs": 200, "horizon": 40, "servers": "8+4+2", "gamma": 400.0}
    if name == "flowtime/svf-transient":
        parameters["horizon"] = 1
    env = gym.make(
        ID,
        view="allocation",
        window="all",
        strict=True,
        disable_env_checker=True,
        kind=KIND.get(name, "1d"),
        **parameters,
    ).unwrapped
    active: list[int] = []
    policy, large = schedgym.make_policy(name), schedgym.make_policy(name)
    observation, _ = env.reset(seed=1)
    for each in (policy, large):
        each.reset(env.interface, np.random.default_rng(0))
    large.rows = 200  # room for all from the start
    for _ in range(150):
        active.append(int(observation["active"][0]))
        action = policy(observation)
        assert (action == large(observation)).all()
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            break
    assert (active[0] < 64 or parameters["horizon"] == 1) and 64 < max(active)


def test_memory_in_units_that_are_too_small(tmp_path: Any) -> None:
    jobs = [Job(0, 1, 1, 10**6) for _ in range(200)]
    env = make(tmp_path, Instance(jobs, [400], [10**6]), "2d", **SHORT)
    with pytest.raises(InvalidParameter, match="give memory in larger units"):
        play(env, schedgym.make_policy("flowtime/ocorp+m"))


@pytest.mark.parametrize(
    ("name", "options"),
    [("srpt", {}), ("svf", {}), ("ocorp", {}), ("ocorp+", {"alpha": 1.0}), ("ocorp+m", {})],
)
def test_the_run_of_the_paper_finishes(name: str, options: dict[str, Any]) -> None:
    """6487 jobs on five servers, observations zero-copy; ``schedgym bench`` says how fast."""
    preset = "kw-2d" if name == "ocorp+m" else "kw"
    env = gym.make(
        ID, disable_env_checker=True, view="allocation", window="all", action_mask=False, copy=False,
        **PROBLEM.presets[preset],
    ).unwrapped  # fmt: skip
    policy = schedgym.make_policy(f"flowtime/{name}", **options)
    assert play(env, policy).metrics["finished"] == 6487
