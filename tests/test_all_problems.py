"""Every registered id in every view: the public checks, and the checker of stable-baselines3."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import yaml
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import schedgym
from schedgym.core.problem import Problem, get_problem, list_problems
from schedgym.core.workload_files import save_workload
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.testing import all_views, check_problem, sample_action
from tests.long import WEEKLY, long, some, thinned
from tests.tables import table


def sizes(problem: Problem) -> dict[str, Any]:
    """The instances on which a problem is checked, as ``tests/<problem>/sizes.yaml`` says.

    SMALL: few jobs, which wait; SHORT and BUSY: what makes these instances shorter, or more crowded; OTHER:
    parameters of which every view must stand the check. Of a problem whose tests say nothing they follow from
    its descriptor: the first preset, and one by one all other choices of its parameters.
    """
    path = Path(__file__).parent / problem.package.rpartition(".")[2] / "sizes.yaml"
    if path.exists():
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    other = [
        {field.name: choice}
        for field in dataclasses.fields(problem.parameters)
        for choice in field.metadata.get("choices") or ()
        if field.name not in ("view", "observation") and choice != field.default
    ]
    return {"SMALL": next(iter(problem.presets.values())), "SHORT": {}, "BUSY": {}, "OTHER": other}


SIZES = {problem.name: sizes(problem) for problem in list_problems().values()}


#: views whose actions are one row of numbers in the problem's units, where Gymnasium recommends [-1, 1]: the
#: resources of each job, and logarithms of prices. They are the paper's decisions as they are; an agent that
#: needs a normalised space learns in another view, or wraps the environment in RescaleAction.
OWN_UNITS = {("partial-value", "allocation"), ("partial-value", "prices")}


def expected_warnings(env: Any) -> list[str]:
    """What stable-baselines3 says of spaces that are meant so.

    Its combined extractor flattens boxes of two and more dimensions, its check takes three for an image, and
    its algorithms scale actions by themselves.
    """
    found = []
    for key, space in env.observation_space.spaces.items():
        if isinstance(space, spaces.Box) and len(space.shape) == 3:
            found.append(
                rf"^It seems that your observation {key} is an image but its `dtype` is \({space.dtype}\)"
            )
            bounds = "upper and lower bounds are not in"
            found.append(rf"^It seems that your observation space {key} is an image but the {bounds}")
            found.append(r"^The minimal resolution for an image is 36x36")
        elif isinstance(space, spaces.Box) and len(space.shape) != 1:
            shape = r"has an unconventional shape \(neither an image, nor a 1D vector\)"
            found.append(rf"^Your observation {key} {shape}")
    action = env.action_space
    if isinstance(action, spaces.Box):
        if (action.low != -1).any() or (action.high != 1).any():
            found.append(r"^We recommend you to use a symmetric and normalized Box action space")
        if action.dtype != np.float32:
            found.append(rf"^Your action space has dtype {action.dtype}, we recommend using np.float32")
    return found


IDS = [id for problem in list_problems().values() for id in problem.ids]


def cases_of(id: str) -> list[Any]:
    """Every view in every combination; make test has those of the default view, and one of each other.

    Of the rest make test-all has every sixth.
    """
    default = {**vars(get_problem(id).build(id, {})), **get_problem(id).ids[id].parameters}["view"]
    found, met = [], {default}
    for number, view in enumerate(all_views(id)):
        again = view["view"] != default and view["view"] in met
        if again and number % 6 and not WEEKLY:
            continue
        name = "-".join([id.partition("/")[2], *map(str, view.values())])
        found.append(pytest.param(id, view, id=name, marks=[long] if again else []))
        met.add(view["view"])
    return found


CASES = [case for id in IDS for case in cases_of(id)]


def known(id: str, parameters: dict[str, object]) -> dict[str, object]:
    """``parameters`` without a window where the problem has none: everything is visible there."""
    names = get_problem(id).parameters.__dataclass_fields__
    return {name: value for name, value in parameters.items() if name != "window" or name in names}


def small(id: str, **parameters: object) -> dict[str, object]:
    return known(id, SIZES[get_problem(id).name]["SMALL"] | parameters)


def short(id: str, **parameters: object) -> dict[str, object]:
    return known(id, small(id) | SIZES[get_problem(id).name]["SHORT"] | parameters)


def busy(id: str, **parameters: object) -> dict[str, object]:
    return known(id, small(id) | SIZES[get_problem(id).name]["BUSY"] | parameters)


@pytest.mark.parametrize(("id", "view"), some(CASES, of=7, late=5))
def test_check_problem(id: str, view: dict[str, object]) -> None:
    check_problem(id, **small(id, **view))


@pytest.mark.parametrize(("id", "view"), some(thinned(CASES, of=2), of=9, late=3))
def test_check_problem_with_the_whole_queue_visible(id: str, view: dict[str, object]) -> None:
    check_problem(id, episodes=2, seed=40, **small(id, window="all", **view))


@pytest.mark.parametrize(
    ("id", "extra"),
    some([(id, extra) for id in IDS for extra in SIZES[get_problem(id).name]["OTHER"]], of=50, late=8),
)
def test_check_problem_with_other_parameters(id: str, extra: dict[str, object]) -> None:
    """In every view that takes them: some have an effect in some views only, and whole tasks no price."""
    checked, problem = 0, get_problem(id)
    for view in problem.views:
        given = small(id, view=view.name, **extra)
        try:
            problem.build(id, given)
        except InvalidParameter as error:
            assert "has no effect in view" in str(error) or view.name == "prices"
            continue
        check_problem(id, episodes=2, seed=7, **given)
        checked += 1
    assert checked


@pytest.mark.parametrize(("id", "suffix"), some(itertools.product(IDS, (".json", ".npz")), of=3, late=3))
def test_check_problem_with_a_workload_file(id: str, suffix: str, tmp_path) -> None:
    env = gym.make(id, **small(id))
    env.reset(seed=3)
    path = tmp_path / f"workload{suffix}"
    save_workload(env.unwrapped.record().workload, path)
    check_problem(id, episodes=2, **known(id, {"workload": str(path), "window": "all"}))


@pytest.mark.parametrize("tasks", [3, 8])
def test_check_problem_with_the_few_windows_of_a_trace(tasks: int, tmp_path) -> None:
    rows = [f"{i + 1} {10 * i} 0 {20 + i} {1 + i % 4} -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1\n" for i in range(8)]
    (tmp_path / "log.swf").write_text("".join(["; Version: 2.2\n; MaxNodes: 4\n; MaxProcs: 32\n", *rows]))
    given = {"trace": str(tmp_path / "log.swf"), "resources": ("cpu",), "servers": 2}
    check_problem("schedgym/QueueDelay-v0", episodes=2, tasks=tasks, **given)


@pytest.mark.parametrize(("id", "view"), CASES)
def test_gymnasium_has_nothing_to_say(id: str, view: dict[str, object]) -> None:
    """No warning of its check, nor of the checker in ``gym.make``, but of the views in OWN_UNITS."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(gym.make(id, **small(id, **view)).unwrapped, skip_render_check=True)
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == ((get_problem(id).name, view["view"]) in OWN_UNITS), messages
    assert all("we recommend using a symmetric and normalized" in message for message in messages)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env, rng = gym.make(id, **small(id, **view)), np.random.default_rng(0)
        observation, _ = env.reset(seed=0)
        for _ in range(3):
            action = sample_action(env.action_space, observation, rng)
            observation, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                observation, _ = env.reset()


@pytest.mark.parametrize("id", IDS)
def test_gymnasium_has_nothing_to_say_of_the_default_environment(id: str) -> None:
    """As it is made without any parameter; no agent needs to scale its actions."""
    problem, variant = get_problem(id), get_problem(id).ids[id]
    default = {**vars(problem.build(id, {})), **variant.parameters}["view"]
    assert (problem.name, default) not in OWN_UNITS
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(id).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("id", some(IDS))
def test_gymnasium_has_nothing_to_say_of_any_render_mode(id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    made = gym.make(id, render_mode="rgb_array", **small(id)).unwrapped
    assert set(made.metadata["render_modes"]) == {"ansi", "rgb_array", "human"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(made)


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("mode", AutoresetMode)
def test_gymnasium_has_nothing_to_say_of_any_autoreset_mode(id: str, mode: AutoresetMode) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        envs, rng = gym.make_vec(id, num_envs=2, autoreset_mode=mode, **short(id)), np.random.default_rng(0)
        shown, _ = envs.reset(seed=0)
        ends = 0
        for _ in range(60):
            assert envs.observation_space.contains(shown)
            rows = [{name: array[i] for name, array in shown.items()} for i in range(2)]
            actions = [sample_action(envs.single_action_space, row, rng) for row in rows]
            shown, _, terminated, truncated, _ = envs.step(np.array(actions, envs.single_action_space.dtype))
            ends += int((ended := terminated | truncated).sum())
            if mode is AutoresetMode.DISABLED and ended.any():
                shown, _ = envs.reset(options={"reset_mask": ended})
        envs.close()
    assert ends


@pytest.mark.parametrize(("id", "view"), CASES)
def test_stable_baselines3_accepts(id: str, view: dict[str, object]) -> None:
    from stable_baselines3.common import env_checker

    env = gym.make(id, **small(id, **view)).unwrapped
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        env_checker.check_env(env, warn=True, skip_render_check=True)
    allowed, messages = expected_warnings(env), [str(warning.message) for warning in caught]
    for message in messages:
        assert any(re.match(pattern, message) for pattern in allowed), message
    for pattern in allowed:
        assert any(re.match(pattern, message) for message in messages), pattern


@pytest.mark.parametrize("id", IDS)
def test_the_docstring_is_the_page(id: str) -> None:
    env_class = type(gym.make(id, **small(id)).unwrapped)
    page = inspect.getdoc(env_class)
    summary, about, *_ = page.partition("\n\n## ")[0].split("\n\n")
    assert "\n" not in summary and "$" not in summary
    assert len(re.findall(r"[.!?](?=\s|$)", about)) >= 2, "two sentences on what it is, and when to use it"
    sections = re.findall(r"^## (.+)$", page, flags=re.MULTILINE)
    for section in table(__file__, "test_the_docstring_is_the_page"):
        assert section in sections
    version = id.rpartition("-")[2]
    assert f"* {version}:" in page
    examples = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, f"{env_class.__name__}.__doc__", "exec"), {})


@pytest.mark.parametrize("id", IDS)
def test_the_descriptor_is_consistent(id: str) -> None:
    problem = get_problem(id)
    variant = problem.ids[id]
    names = [metric.name for metric in problem.metrics]
    assert len(set(names)) == len(names)
    assert set(variant.table) <= set(names) and len(set(variant.table)) == len(variant.table)
    for objective in (problem.objective, *problem.objectives.values()):
        assert objective in names and problem.metric(objective).better in ("min", "max")
    if problem.objectives:
        choices = problem.parameters.__dataclass_fields__["objective"].metadata["choices"]
        assert set(choices) == set(problem.objectives)
    assert all(metric.better in ("min", "max", "") for metric in problem.metrics)
    registered = {spec.name.partition("/")[2] for spec in schedgym.list_policies(problem.name)}
    assert variant.reference in variant.policies
    assert set(variant.policies) <= registered
    env = gym.make(id, **variant.baseline_parameters).unwrapped
    assert env.interface.id == env.spec.id == id
    expected = {**variant.parameters, **variant.baseline_parameters}
    assert expected.items() <= env.interface.parameters.items()
    for name, values in problem.presets.items():
        if name == "trace":  # for one that the user names
            problem.build(id, {**values, "trace": "trace.csv"})
            continue
        env = gym.make(id, **values)
        assert env.observation_space.contains(env.reset(seed=0)[0])


@pytest.mark.parametrize("id", IDS)
def test_the_class_alone_has_the_parameters_of_its_id(id: str) -> None:
    made = gym.make(id, **small(id)).unwrapped
    assert type(made)(**small(id)).interface == made.interface
    assert get_problem(id).ids[id].parameters.items() <= made.interface.parameters.items()
    vector = gym.make_vec(id, num_envs=1, vectorization_mode="vector_entry_point", **small(id)).unwrapped
    assert vector.interface == made.interface and vector.env_class is type(made)


@pytest.mark.parametrize("id", IDS)
def test_views_say_their_space_and_whether_they_can_carry_a_mask(id: str) -> None:
    for view in get_problem(id).views:
        env = gym.make(id, **small(id, view=view.name))
        assert ("action_mask" in env.observation_space.spaces) == view.masked
        assert view.space.partition("(")[0] == type(env.action_space).__name__


@pytest.mark.parametrize("id", IDS)
def test_ids_resolve_through_the_module_prefix(id: str) -> None:
    assert gym.make(f"schedgym:{id}", **small(id)).spec.id == id
    before = dict(gym.registry)
    schedgym._register()
    assert gym.registry == before


@pytest.mark.filterwarnings("ignore:.*render_mode='rgb'.*:UserWarning")  # gymnasium's own, before ours
@pytest.mark.parametrize("id", IDS)
def test_wrong_names_are_answered_with_the_nearest(id: str) -> None:
    with pytest.raises(UnknownName, match="did you mean 'view'"):
        gym.make(id, veiw="pick")
    view = get_problem(id).views[0].name
    with pytest.raises(UnknownName, match=f"did you mean '{view}'"):
        gym.make(id, view=view[:-1])
    with pytest.raises(UnknownName, match="did you mean 'rgb_array'"):
        gym.make(id, render_mode="rgb")
    with pytest.raises(UnknownName, match="did you mean 'workload'"):
        gym.make(id, **small(id)).reset(options={"workloads": None})
    with pytest.raises(InvalidParameter):
        gym.make(id, view=3)


# The checks themselves must fail on what is wrong --------------------------------------------


def broken(method):
    """A patch of SchedulingEnv.step that spoils its result; ``method`` gets the env and the result."""
    from schedgym.envs import SchedulingEnv

    original = SchedulingEnv.step

    def step(self, action):
        return method(self, original(self, action))

    return step


def double_rewards(env, result):
    return (result[0], 2.0 * result[1], *result[2:])


def drop_a_metric(env, result):
    result[4]["metrics"].popitem()
    return result


def nan_metric(env, result):
    if np.isfinite(result[4]["metrics"]["mean_delay"]):
        result[4]["metrics"]["mean_delay"] = np.nan
    return result


def lend_always(env, result):
    env.copy = False
    return result


def leave_the_space(env, result):
    name = next(iter(result[0]))
    return ({**result[0], name: -np.ones_like(result[0][name])}, *result[1:])


def look_ahead(env, result):
    following = env.record().workload.jobs["cpu"][-1]
    return ({**result[0], "mean_demand": np.array([following, 0.0])}, *result[1:])


def roll_dice(env, result):
    return (result[0], result[1] - np.random.default_rng().random(), *result[2:])


def both_ends(env, result):
    return (*result[:2], result[2] or result[3], result[2] or result[3], result[4])


def hide_repairs(env, result):
    result[4]["repaired"] = False
    return result


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (double_rewards, "rewards sum to"),
        (drop_a_metric, "metrics:"),
        (nan_metric, "metric"),
        (lend_always, "share"),
        (leave_the_space, "space|less than"),
        (look_ahead, "depends on tasks that have not arrived"),
        (roll_dice, "reward|[Dd]eterministic"),
        (both_ends, "terminated or truncated"),
        (hide_repairs, "repaired"),
    ],
)
def test_check_problem_finds_faults(fault, message: str, monkeypatch) -> None:
    monkeypatch.setattr("schedgym.envs.SchedulingEnv.step", broken(fault))
    with pytest.raises((AssertionError, UserWarning), match=message):
        check_problem("schedgym/QueueDelay-v0", **small("schedgym/QueueDelay-v0"))


def test_check_problem_finds_shared_observations_without_gymnasium(monkeypatch) -> None:
    monkeypatch.setattr("schedgym.envs.SchedulingEnv.step", broken(lend_always))
    monkeypatch.setattr("schedgym.testing._check_api", lambda case: None)
    with pytest.raises(AssertionError, match="handed out as a copy"):
        check_problem("schedgym/QueueDelay-v0", **small("schedgym/QueueDelay-v0"))
