"""Every registered policy in every view that it declares: the public check."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import schedgym
from schedgym.core import policy as registry
from schedgym.core.policy import get_policy_spec, list_policies, register_policy
from schedgym.core.problem import get_problem, list_problems
from schedgym.core.record import ScheduleRecord
from schedgym.core.workload import SECTIONS, Workload
from schedgym.core.workload_files import save_workload
from schedgym.errors import InvalidParameter
from schedgym.problems.flowtime.workload import make_workload as flowtime_workload
from schedgym.testing import check_policy, policy_parameters
from tests.interpreted import check_interpreted, results_of
from tests.long import some, weekly
from tests.playing import play
from tests.rounding import Rounding
from tests.tables import declared
from tests.test_all_problems import SIZES, busy, known, small

# make test has every eighth policy in its first view
CASES = [
    case
    for number, spec in enumerate(list_policies())
    for case in some(((spec.name, view) for view in spec.views), keep=number % 8 == 0, late=9)
]


def sizes(name: str, **parameters: object) -> dict[str, object]:
    """Small, but with a queue: more tasks than fit at once."""
    id = next(iter(get_problem(name.partition("/")[0]).ids))
    given = busy(id)
    for window in ("window", "running_window"):  # the baselines'
        given.pop(window, None)
    if get_policy_spec(name).needs.get("single"):
        given.pop("heterogeneity", None)  # of several resources
    if name == "partial-value/local-optimal":
        given["jobs"] = 8  # integer programs
    return known(id, given | parameters)


#: policies that need jobs of a special kind, as a workload file
SPECIAL = {
    "flowtime/svf-transient": lambda: flowtime_workload(
        [0] * 9, [3, 1, 2, 5, 1, 1, 4, 2, 2], [2, 1] * 4 + [3], [4, 1]
    )
}


@pytest.fixture
def given(tmp_path):
    """Parameters under which a policy is checked."""

    def parameters(name: str, **more: object) -> dict[str, object]:
        if name not in SPECIAL:
            return sizes(name, **more)
        path = tmp_path / "workload.json"
        save_workload(SPECIAL[name](), path)
        return {"workload": str(path), **more}

    return parameters


@pytest.mark.parametrize(("name", "view"), CASES)
def test_check_policy(name: str, view: str, given) -> None:
    check_policy(name, **policy_parameters(name, view) | given(name))


@pytest.mark.parametrize("name", some([spec.name for spec in list_policies()], of=9, late=8))
def test_check_policy_with_a_small_window(name: str, given) -> None:
    spec = registry.get_policy_spec(name)
    problem = get_problem(spec.problem)
    views = [view.name for view in problem.views]
    fullest = next(v for v in problem.ids.values()).baseline_parameters["view"]
    view = spec.acting_view(fullest, views)
    check_policy(name, episodes=2, seed=20, **policy_parameters(name, view) | given(name, window=3))


@pytest.mark.parametrize("name", some([spec.name for spec in list_policies()], of=9, late=8))
def test_one_array_serves_all_decisions_and_says_nothing_of_rows_behind(name: str, given) -> None:
    spec = registry.get_policy_spec(name)
    values = policy_parameters(name, spec.views[0]) | given(name)
    env = gym.make(next(iter(get_problem(spec.problem).ids)), disable_env_checker=True, **values)
    served = set()

    def note(observation, action) -> None:
        if isinstance(action, np.ndarray):
            served.add(action.ctypes.data)
            assert "active" not in observation or not action[int(observation["active"][0]) :].any()

    play(env.unwrapped, make(name), note=note)
    assert len(served) <= 1


#: views in which a policy decides at other instants, or by other numbers, but with these options
APART = {
    ("geo/fcfs", "pick"): {"placement": "associated"},
    ("geo/srpt", "pick"): None,
    ("partial-value/concave", "prices"): None,
}


@pytest.mark.parametrize("name", [s.name for s in list_policies() if s.name.endswith(("/random", "/gsa"))])
def test_what_is_random_comes_from_the_generator(name: str) -> None:
    """Two policies given one generator decide alike: see :func:`~schedgym.testing.check_policy`."""
    values = policy_parameters(name, get_policy_spec(name).views[0]) | sizes(name)
    assert len({played(name, generator, **values).digest() for generator in range(4)}) > 1


#: policy, its options in its first view and in the others, and parameters
IN_VIEWS = [
    *some([(spec.name, {}, {}, {}) for spec in list_policies() if len(spec.views) > 1], of=3, late=3),
    *some(
        [
            (f"{problem}/{name}", *row)
            for problem in list_problems()
            for names, *row in declared(problem, "policies").get("views", ())
            for name in names
        ],
        of=6,
        late=4,
    ),
]


@pytest.mark.parametrize(("name", "options", "others", "parameters"), IN_VIEWS)
def test_every_view_plays_the_same_schedules(name: str, options, others, parameters, given) -> None:
    """On workloads with many ties."""
    spec, found = registry.get_policy_spec(name), set()
    problem = get_problem(spec.problem)
    for view in spec.views:
        if (name, view) in APART and APART[name, view] != options:
            continue
        own = {key: value for key, value in parameters.items() if problem.parameters.acts_in(key, view)}
        values = policy_parameters(name, view) | given(name) | own | {"view": view}
        env = gym.make(next(iter(problem.ids)), disable_env_checker=True, **values).unwrapped
        policy, played = make(name, **(options if view == spec.views[0] else others)), []
        for seed in range(3):
            env.reset(seed=seed)
            workload = tied(env.record().workload, problem.name)
            played.append(play(env, policy, seed, workload=workload))
            assert not played[-1].metrics["repaired"], view
        found.add(tuple(episode.record.digest() for episode in played))
    assert len(found) == 1


#: policies with work space for the jobs that are active; some take integer programs, or all jobs at once
CROWDED = [
    spec.name
    for spec in list_policies()
    if "crowd" in declared(spec.problem, "policies")
    and spec.name not in {*SPECIAL, "partial-value/local-optimal"}
]


@pytest.mark.parametrize("name", some(CROWDED, of=3, late=3))
def test_more_jobs_than_there_was_room_for(name: str) -> None:
    """The work space grows in the middle of an episode, and what was learned stays."""
    spec, active = get_policy_spec(name), []
    crowd = {"window": "all", **declared(spec.problem, "policies")["crowd"]}
    values = policy_parameters(name, spec.views[0]) | crowd
    env = gym.make(next(iter(get_problem(spec.problem).ids)), disable_env_checker=True, **values).unwrapped
    policy, large = make(name), make(name)
    large.reset(env.interface, np.random.default_rng(1))
    large.rows = 200  # room for all from the start

    def note(observation, action) -> None:
        active.append(int(observation["active"][0]))
        np.testing.assert_array_equal(large(observation), action)

    play(env, policy, 1, note)
    assert active[0] < 64 < max(active)


@pytest.mark.parametrize("problem", sorted(list_problems()))
def test_what_is_refused(problem: str) -> None:
    """By ``tests/<problem>/policies.yaml``: options, and environments that say less than a policy needs."""
    given = declared(problem, "policies")
    for name, options, message in given["malformed"]:
        with pytest.raises(InvalidParameter, match=message):
            schedgym.make_policy(f"{problem}/{name}", **options)
    for name, options, parameters, message in given["unfit"]:
        own = {"id": next(iter(get_problem(problem).ids)), **parameters}
        id = own.pop("id")
        fullest = {"view": get_problem(problem).ids[id].baseline_parameters["view"]}
        env = gym.make(id, disable_env_checker=True, **small(id, **{**fullest, **own}))
        policy = schedgym.make_policy(f"{problem}/{name}", **options)
        with pytest.raises(InvalidParameter, match=message):
            policy.reset(env.unwrapped.interface, np.random.default_rng(0))


def changed(workload: Workload, fields: Sequence[str], change: Callable[[Any], Any]) -> Workload:
    """A workload in which some fields, given as "section.field", are replaced."""
    parts = {
        section: {
            name: change(values) if f"{section}.{name}" in fields else values
            for name, values in getattr(workload, section).items()
        }
        for section in SECTIONS
    }
    return dataclasses.replace(workload, **parts)


def in_parts(values: Any, of: int = 8, scale: float = 1.0) -> Any:
    """Values times a scale, rounded to eighths or other parts: many are equal. Whole numbers stay.

    Sums of eighths are exact, and those of tenths are not.
    """
    if np.asarray(values).dtype.kind == "i":
        return values
    return np.maximum(np.round(np.multiply(values, scale * of)), 1) / of


def played(name: str, generator: int = 0, **values: object) -> ScheduleRecord:
    """The schedule of an episode of a problem's first id."""
    id = next(iter(get_problem(name.partition("/")[0]).ids))
    env, policy, done = gym.make(id, disable_env_checker=True, **values), make(name), False
    observation, _ = env.reset(seed=0)
    policy.reset(env.unwrapped.interface, np.random.default_rng(generator))
    while not done:
        observation, _, terminated, truncated, _ = env.step(policy(observation))
        done = terminated or truncated
    return env.unwrapped.record()


@pytest.mark.parametrize("name", some([spec.name for spec in list_policies()], of=3, late=3))
def test_units_change_no_schedule(name: str, tmp_path) -> None:
    """By ``tests/<problem>/policies.yaml``: ties, of which there are many, do not hang on rounding."""
    if name in SPECIAL:
        pytest.skip("needs jobs of a special kind")
    problem, _, short = name.partition("/")
    parameters = get_problem(problem).parameters
    values = sizes(name) | policy_parameters(name, get_policy_spec(name).views[0])
    fixed = {key: value for key, value in values.items() if key not in parameters.idle["workload"]}
    drawn = played(name, **values).workload
    for factor, fields, times, timed, but in declared(problem, "policies")["units"]:
        if short in but:
            continue
        rough = changed(drawn, fields, in_parts)
        other = {key: times * values.get(key, getattr(parameters(), key)) for key in timed}
        found = []
        for scale, given in ((1.0, {}), (factor, other)):
            path = tmp_path / "workload.npz"
            save_workload(changed(rough, fields, lambda x, by=scale: x * by), path)
            found.append(played(name, workload=str(path), **fixed | given))
        for column in ("job", "server"):
            np.testing.assert_array_equal(getattr(found[0], column), getattr(found[1], column))
        np.testing.assert_allclose(found[0].start * times, found[1].start, rtol=1e-9)


def tied(drawn: Workload, problem: str) -> Workload:
    """A workload of few different times and sizes, in tenths; the times are 2 in the mean."""
    for _, fields, times, *_ in declared(problem, "policies")["units"]:
        section, _, name = fields[-1].partition(".")
        scale = 1.0 if times == 1 else 2.0 / np.mean(getattr(drawn, section)[name])
        drawn = changed(drawn, fields, functools.partial(in_parts, of=10, scale=scale))
    return drawn


def hanging_on_rounding(problem: str, rounding: Rounding, path: str) -> list[str]:
    """The policies whose schedules other arithmetic changes, with what it changes; a program of a test."""
    parameters, found = get_problem(problem).parameters, []
    for spec in list_policies(problem):
        if spec.name in SPECIAL or "-ga" in spec.name or "gsa" in spec.name:
            continue  # a genetic search takes minutes as plain Python
        values = sizes(spec.name) | policy_parameters(spec.name, spec.views[0])
        fixed = {key: value for key, value in values.items() if key not in parameters.idle["workload"]}
        rounding.salt = 0
        save_workload(tied(played(spec.name, **values).workload, problem), path)
        usual = played(spec.name, workload=path, **fixed)
        for rounding.salt in (1, 2):
            other = played(spec.name, workload=path, **fixed)
            for column in ("job", "server", "start", "end", "amount"):
                pair = getattr(usual, column), getattr(other, column)
                if pair[0].shape != pair[1].shape or not np.allclose(*pair, rtol=1e-9, atol=1e-9):
                    found.append(f"{spec.name}: {column}, rounded by {rounding.salt}")
    assert rounding.changes > 0
    return found


#: the problem whose policies are played the soonest as plain Python
QUICKEST = "single-job"
ROUNDED = """
import json, sys
from tests.rounding import round_otherwise
rounding = round_otherwise()
from tests.test_all_policies import hanging_on_rounding
print(json.dumps(hanging_on_rounding(sys.argv[1], rounding, sys.argv[2])))
"""


@pytest.mark.parametrize("problem", some(sorted(list_problems(), key=QUICKEST.__ne__), late=5))
def test_no_schedule_hangs_on_rounding(problem: str, tmp_path) -> None:
    """Last digits that come out otherwise, in every computed key, change no decision."""
    assert results_of(ROUNDED, problem, str(tmp_path / "workload.npz"), NUMBA_DISABLE_JIT="1") == []


@pytest.mark.parametrize("name", [spec.name for spec in list_policies()])
def test_a_policy_is_documented(name: str) -> None:
    spec = registry.get_policy_spec(name)
    assert spec.source and spec.help.endswith(".")
    problem = get_problem(spec.problem)
    assert spec.views and set(spec.views) <= {view.name for view in problem.views}
    fullest = {variant.baseline_parameters["view"] for variant in problem.ids.values()}
    assert fullest & set(spec.views)
    assert make(name).name == name
    summary, about, *_ = inspect.getdoc(spec.factory).split("\n\n")
    assert "\n" not in summary and "$" not in summary
    assert len(re.findall(r"[.!?](?=\s|$)", about)) >= 2, "two sentences on what it does, and when to use it"
    assert not re.match(r"1\. |Args:|Complexity:|(In|At) every ", about)


def digests(problem: str) -> dict[str, str]:
    """The schedules of some decisions of each policy, by its name and the problem's other parameters."""
    found = {}
    for spec in list_policies(problem):
        if spec.name in SPECIAL or "-ga" in spec.name or "gsa" in spec.name:
            continue  # a genetic search takes minutes as plain Python
        for other in [{}, *SIZES[problem]["OTHER"]]:
            values = policy_parameters(spec.name, spec.views[0]) | sizes(spec.name, **other)
            policy = make(spec.name)
            try:
                env = gym.make(next(iter(get_problem(problem).ids)), disable_env_checker=True, **values)
                policy.reset(env.unwrapped.interface, np.random.default_rng(0))
            except schedgym.InvalidParameter:
                continue  # the policy, or its view, does not go with them
            observation, _ = env.reset(seed=0)
            for _ in range(30):
                observation, _, terminated, truncated, _ = env.step(policy(observation))
                if terminated or truncated:
                    break
            found[f"{spec.name} {other}"] = env.unwrapped.record().digest()
    return found


@weekly
@pytest.mark.parametrize("problem", sorted(list_problems()))
def test_compiled_and_interpreted_agree(problem: str) -> None:
    program = f"import json; from {__name__} import digests; print(json.dumps(digests({problem!r})))"
    check_interpreted(program)
    assert len(digests(problem)) > 10


def make(name: str, **options: object):
    return schedgym.make_policy(name, **options)


# The check itself must fail on what is wrong --------------------------------------------------


class Sound:
    """Starts the first task that fits, on the first server: right."""

    def reset(self, interface, rng) -> None:
        self.window, self.rng = interface.sizes["window"], rng

    def __call__(self, observation):
        for slot in self.order(observation, int(observation["task_mask"].sum())):
            for server in range(len(observation["remaining"])):
                if (observation["demand"][slot] <= observation["remaining"][server]).all():
                    return slot, server
        return self.window, 0

    def order(self, observation, count: int):
        return range(count)


class Scribbling(Sound):
    def __call__(self, observation):
        action = super().__call__(observation)
        observation["waiting"][:] = 0.0
        return action


class Infeasible(Sound):
    def __call__(self, observation):
        return 0, 0


class OutOfRange(Sound):
    def __call__(self, observation):
        slot, server = super().__call__(observation)
        return slot, server - 1 if slot == self.window else server


class Dicing(Sound):
    def __call__(self, observation):
        action = super().__call__(observation)
        return action if np.random.default_rng().random() < 0.5 else (self.window, 0)


class Remembering(Sound):
    episodes = 0

    def reset(self, interface, rng) -> None:
        super().reset(interface, rng)
        self.episodes += 1

    def __call__(self, observation):
        return super().__call__(observation) if self.episodes < 2 else (self.window, 0)


class Sharing(Sound):
    calls = [0]

    def __call__(self, observation):
        self.calls[0] += 1
        return super().__call__(observation) if self.calls[0] % 2 else (self.window, 0)


class Unpicklable(Sound):
    def reset(self, interface, rng) -> None:
        super().reset(interface, rng)
        self.function = lambda: None


class Peeking(Sound):
    """Reads the execution times, which it does not declare to know."""

    def order(self, observation, count: int):
        return np.argsort(observation["execution"][:count], kind="stable").tolist()


def check(factory, monkeypatch, **parameters: object) -> None:
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    register_policy("queue-delay/under-test", source="test", views=("placement",))(factory)
    check_policy("queue-delay/under-test", episodes=2, **{"tasks": 90, "servers": 3} | parameters)


def test_check_policy_accepts_a_sound_one(monkeypatch) -> None:
    check(Sound, monkeypatch)


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (Scribbling, "changes the observation"),
        (Infeasible, "infeasible"),
        (OutOfRange, "is not in"),
        (Dicing, "interleaved"),
        (Remembering, "remembers"),
        (Sharing, "interleaved"),
        (Peeking, "does not declare to know"),
    ],
)
def test_check_policy_finds_faults(factory, message: str, monkeypatch) -> None:
    with pytest.raises(AssertionError, match=message):
        check(factory, monkeypatch)


def test_check_policy_finds_what_cannot_be_pickled(monkeypatch) -> None:
    with pytest.raises((AttributeError, AssertionError, TypeError), match="[Cc]an't pickle|pickle"):
        check(Unpicklable, monkeypatch)


def test_policy_parameters_finds_a_view_that_is_declared_in_vain(monkeypatch) -> None:
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))

    @register_policy("queue-delay/refusing", source="test", views=("placement", "route"))
    class Refusing(Sound):
        def reset(self, interface, rng) -> None:
            if interface.view != "placement":
                raise schedgym.InvalidParameter("not here")

    with pytest.raises(AssertionError, match="under no parameters: not here"):
        policy_parameters("queue-delay/refusing", "route")
