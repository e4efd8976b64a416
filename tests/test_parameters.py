"""Every parameter that is accepted changes something; one without effect is refused by its name."""

from __future__ import annotations

import dataclasses
import pickle
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from schedgym.core.problem import Parameters, get_problem
from schedgym.core.tokens import tokens_of
from schedgym.core.workload_files import save_workload
from schedgym.errors import InvalidParameter, InvalidWorkload
from schedgym.problems.queue_delay.problem import SERVER_RULES
from schedgym.testing import sample_action
from tests.long import some
from tests.tables import table
from tests.test_all_problems import IDS, busy, known, small

#: what names files; how an agent sees and acts; limits, which change something only where they are met
OTHERS = {"workload", "trace", "nodes", "trace_format", "view", "observation", "action_mask", "strict"} | {
    "gamma",
    "max_time",
    "max_moves",
}

#: values that matter in short episodes
LEAST: dict[str, list[Any]] = {"max_moves": [1], "most_demand": [1]}
#: without what some of them matter to nobody
BESIDE: dict[str, dict[str, Any]] = {"rule": {"scope": "all"}}
#: what random actions do not show: shares that are 0, one misfit that is worth more than all that fit
#: (tests/partial_value/test_rules.py), how baselines pack (tests/flowtime/test_policies.py), and jobs of so
#: many tasks that planners place them differently
SELDOM = {"work_conserving": "shares", "single_task": "priority", "packing": "allocation", "planner": "pick"}

#: of view pick of queue-delay, where several servers are open; those but the default
RULES = [name for name in SERVER_RULES if name != "best"]


def trajectory(id: str, parameters: dict[str, Any]) -> bytes:
    """All that an episode shows: the workload, every observation and reward, the schedule and the metrics.

    The actions are drawn.
    """
    env: Any = gym.make(id, disable_env_checker=True, **parameters).unwrapped
    rng = np.random.default_rng(3)
    observation, _ = env.reset(seed=3)
    workload = env.simulator.workload(0)
    sections = [getattr(workload, name) for name in ("jobs", "cluster", "tasks", "parameters")]
    seen = [pickle.dumps([{name: array.tobytes() for name, array in own.items()} for own in sections])]
    done = False
    while not done:
        seen += [name.encode() + array.tobytes() for name, array in observation.items()]
        observation, reward, terminated, truncated, info = env.step(
            sample_action(env.action_space, observation, rng)
        )
        seen.append(repr(reward).encode())
        done = terminated or truncated
    return b"".join([*seen, repr(info["metrics"]).encode(), env.record().digest().encode()])


def values(field: dataclasses.Field[Any], kind: Any, own: Any) -> list[Any]:
    """Other values than the one that a parameter has."""
    rules = field.metadata
    if kind in (bool, bool | None):
        return [not own]
    left_out = ("all",) if field.name.endswith("window") else ()  # which may be as many as there are
    found: list[Any] = [choice for choice in rules["choices"] or () if choice not in (own, *left_out)]
    if isinstance(own, (int, float)) and not isinstance(own, bool):
        low, high = rules["minimum"], rules["maximum"]
        around = (own + 1, own - 1, own * 2) if isinstance(own, int) else (own * 1.5, own * 0.5, own + 1.5)
        found += [v for v in around if (low is None or v > low) and (high is None or v < high)]
        if not found and isinstance(own, float):  # 0 of at most 1
            found.append(own + 0.5)
    elif own is None and kind == (int | None):
        found.append(7)
    elif own is None and kind == (float | None):
        found.append(1.5)
    return found


@pytest.mark.parametrize("id", some(IDS, of=3))
def test_every_parameter_that_is_accepted_changes_something(id: str) -> None:
    problem = get_problem(id)
    given = busy(id)
    complete = vars(problem.build(id, given))
    usual = trajectory(id, given)
    assert trajectory(id, given) == usual
    acting = tokens_of(problem.name).acting
    changed, refused = set(), set()
    for field in dataclasses.fields(problem.parameters):
        if field.name in OTHERS or field.name in acting:
            continue
        others = values(field, problem.parameters.kinds()[field.name], complete[field.name])
        for value in LEAST.get(field.name, others):
            base = given
            try:
                problem.build(id, {**given, field.name: value})
            except InvalidParameter as error:
                named = str(error).partition(":")[0]
                if named == field.name:
                    refused.add(named)
                    continue
                base = {name: own for name, own in given.items() if name != named}  # it makes another idle
            after = trajectory(id, {**base, field.name: value})
            before = usual if base is given else trajectory(id, base)
            assert after != before, f"{field.name}={value!r} has no effect"
            changed.add(field.name)
    assert len(changed) > 4
    left = {f.name for f in dataclasses.fields(problem.parameters)} - changed - refused - OTHERS - set(acting)
    assert left <= {"servers", "resources"}, left  # a text, and names (tests/queue_delay/test_resources.py)


@pytest.mark.parametrize("id", IDS)
def test_every_parameter_beside_a_workload_changes_something_or_is_refused(id: str, tmp_path: Path) -> None:
    """Of those that say how a workload is drawn, none is left to be accepted for nothing."""
    problem = get_problem(id)
    env: Any = gym.make(id, disable_env_checker=True, **busy(id)).unwrapped
    env.reset(seed=3)
    save_workload(env.simulator.workload(0), tmp_path / "workload.json")
    given = known(id, {"workload": str(tmp_path / "workload.json"), "window": 4})
    complete, before = vars(problem.build(id, given)), trajectory(id, given)
    refused, changed = [], []
    for field in dataclasses.fields(problem.parameters):
        if field.name in OTHERS or field.name in tokens_of(problem.name).acting:
            continue
        for value in values(field, problem.parameters.kinds()[field.name], complete[field.name]):
            try:
                after = trajectory(id, {**given, field.name: value})
            except (InvalidParameter, InvalidWorkload) as error:
                assert field.name in str(error)
                refused.append(field.name)
                continue
            assert after != before, f"{field.name}={value!r} has no effect on a workload"
            changed.append(field.name)
    assert refused and changed


@pytest.mark.parametrize("id", some(IDS, of=3))
def test_what_has_an_effect_in_some_views_names_them(id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parameter of the agent names every view in which it changes something, or none if it does in all.

    Tried without the refusal that follows from what it names.
    """
    monkeypatch.setattr(Parameters, "without_effect", lambda self, name: "")
    problem = get_problem(id)
    views, wrong = [view.name for view in problem.views], {}
    for name in tokens_of(problem.name).acting:
        field = problem.parameters.__dataclass_fields__[name]
        named = set(field.metadata["views"])
        own = vars(problem.build(id, busy(id)))[name]
        found = {SELDOM[name]} & set(views) if name in SELDOM else set()
        for view in views:
            for value in [*LEAST.get(name, []), *values(field, problem.parameters.kinds()[name], own)]:
                if differs(id, {"view": view, **BESIDE.get(name, {})}, {name: value}):
                    found.add(view)
                    break
        if found != (named or set(views)):
            wrong[name] = f"has an effect in {sorted(found)}, and names {sorted(named) or 'none'}"
    assert not wrong


@pytest.mark.parametrize("id", IDS)
def test_what_has_an_effect_in_some_views_is_refused_in_the_others(id: str) -> None:
    problem = get_problem(id)
    for field in dataclasses.fields(problem.parameters):
        views = field.metadata["views"]
        assert set(views) <= {view.name for view in problem.views}
        if views:
            assert re.match(r"views? [a-z, -]+: ", field.metadata["help"])
        value, *_ = values(field, problem.parameters.kinds()[field.name], field.default) if views else [None]
        for view in (view.name for view in problem.views if views and view.name not in views):
            with pytest.raises(InvalidParameter, match=f"^{field.name}: has no effect in view '{view}'"):
                problem.build(id, {"view": view, field.name: value})


def differs(id: str, given: dict[str, Any], more: dict[str, Any]) -> bool:
    """Return True if ``more`` changes something, on few jobs or on many."""
    return any(
        trajectory(id, sized(id, **given)) != trajectory(id, sized(id, **{**given, **more}))
        for sized in (small, busy)
    )


@pytest.mark.parametrize(
    ("id", "given", "more"),
    [
        ("schedgym/ParallelJCT-v0", {}, {"max_time": 5.0}),
        ("schedgym/ParallelJCT-v0", {"view": "search"}, {"max_moves": 1}),
        ("schedgym/ParallelJCT-v0", {"reading": "x70", "most_tasks": 20}, {"planner": "list-scheduling"}),
        ("schedgym/SingleJob-v0", {"view": "search"}, {"max_moves": 1}),
        *[("schedgym/QueueDelay-v0", {"view": "pick", "scope": "all"}, {"rule": rule}) for rule in RULES],
    ],
)
def test_what_counts_only_at_times_changes_something(id: str, given: dict, more: dict) -> None:
    assert differs(id, given, more)


@pytest.mark.parametrize(
    ("id", "given", "named"), table(__file__, "test_parameters_without_effect_are_refused")
)
def test_parameters_without_effect_are_refused(id: str, given: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidParameter, match=named):
        get_problem(id).build(id, given)
