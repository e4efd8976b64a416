"""The policies in the environment: the model's schedules, the model's prices, refused workloads."""

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
from schedgym.errors import InvalidParameter, InvalidWorkload
from schedgym.papers.xu2021 import model
from schedgym.papers.xu2021.model import Instance, Job
from schedgym.problems.flowtime.metrics import fates
from schedgym.problems.flowtime.problem import PROBLEM
from schedgym.problems.flowtime.rules import RULES
from schedgym.problems.flowtime.workload import slots_needed
from tests.flowtime.instances import random_instance
from tests.flowtime.test_dynamics import ID, instances, make
from tests.long import some
from tests.playing import play
from tests.tables import table


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


@pytest.mark.parametrize("kind", some(["2d", "1d", "mapreduce"], late=2))
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

RULED: list[tuple[str, str, dict[str, Any]]] = [
    (kind, rule, {}) for kind in ("2d", "1d", "mapreduce") for rule in (*RULES, "fair")
]
PRICED: list[tuple[str, str, dict[str, Any]]] = [
    *((kind, "ocorp", given) for kind in ("1d", "2d", "mapreduce") for given in table(__file__, "prices")),
    *(
        ("1d", "ocorp+", {"level": level, **given})
        for level in ("server", "job")
        for given in table(__file__, "switching")
    ),
    *(("2d", "ocorp+m", given) for given in table(__file__, "memory")),
]
IN_OTHERS = table(__file__, "others")


@pytest.mark.parametrize(
    ("kind", "name", "options", "parameters"),
    [
        *some([(*case, {}) for case in RULED], keep=len(RULES) + 1, late=3),
        *some([(*case, {}) for case in PRICED], of=8, late=6),
        *some(IN_OTHERS, of=3, late=3),
    ],
)
def test_schedules_are_the_models(
    kind: str, name: str, options: dict[str, Any], parameters: dict[str, Any], tmp_path: Any
) -> None:
    """Every allocation, packed anew or not by turns, and each price to the last bit.

    A third of the instances are declared wrongly.
    """
    policy = schedgym.make_policy(f"flowtime/{name}", **options)
    of_model = {"norm": "k", "alpha": "alpha"}
    asked = {of_model[key]: value for key, value in parameters.items()} | options
    larger = [random_instance(random.Random(4), kind, large=True)] if (kind, name, options) in RULED else []
    for x, given in enumerate([*instances(kind, 24, 1), *larger]):
        mode, instance, extra, packing = None, given, SHORT | parameters, ("fresh", "sticky")[x % 2]
        if kind != "mapreduce" and x % 3 == 2:
            mode = model.MODES[x // 3 % 3]
            instance = model.declare(given, random.Random(x), 0.5)
            extra["estimation"] = mode
        if options.get("gamma") == "eq27":
            extra["clairvoyant"] = True
        env = make(tmp_path, instance, kind, packing=packing, **extra)
        seen: list[tuple[int, dict[tuple[int, int], float]]] = []

        def note(observation: Any, action: Any, seen: Any = seen) -> None:
            if name == "ocorp":
                learned, n = policy.learned, int(policy.learned.state[0])
                keys = zip(learned.job[:n].tolist(), learned.phase[:n].tolist(), strict=True)
                prices = dict(zip(keys, learned.price[:n].tolist(), strict=True))
                seen.append((int(observation["slot"][0]), prices))

        assert play(env, policy, note=note).metrics["repaired"] == 0
        limit = int(env.record().final_time)
        outcome = model.simulate(instance, name, packing=packing, mode=mode, limit=limit, **asked)
        check_equal(env, instance, outcome)
        for slot, prices in seen:
            before = outcome.lambdas[slot - 2] if slot > 1 else {}
            known = prices.keys() & before
            assert {key: prices[key] for key in known} == {key: before[key] for key in known}


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
