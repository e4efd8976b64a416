"""Checks that every problem and every policy must pass, for pytest or a plain script.

    from schedgym.testing import all_views, check_policy, check_problem, check_vector_parity

    check_problem("schedgym/QueueDelay-v0", view="pick", tasks=20)
    check_vector_parity("schedgym/QueueDelay-v0", view="pick", tasks=20)
    check_policy("queue-delay/bf-exec", tasks=20)

Each raises an AssertionError that says what was expected and what was found.

The checks use a problem's descriptor, its modules ``metrics`` and ``workload``, and these conventions:

- a mask of feasible actions stands in the observation as ``action_mask``: of the shape of the choices, or one
  shorter along the first axis, when the last index of the first component means "none", always feasible;
- of an action from a Box only the leading rows count of which the simulator says how many (``rows``);
- the observation in exact units has a ``clock``, or where time is slots, the ``slot`` to be decided;
- ``workload.shuffle_future(workload, time, rng)``, where a problem has it, changes the arrivals after
  ``time``; nothing before ``time`` may depend on them.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import itertools
import math
import pickle
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import batch_space

import schedgym  # noqa: F401  (registers the ids)
from schedgym.core.policy import PolicySpec, get_policy_spec, list_policies, make_policy
from schedgym.core.problem import Problem, get_problem
from schedgym.core.record import ScheduleRecord
from schedgym.core.simulator import Simulator
from schedgym.core.workload import Workload
from schedgym.errors import InvalidAction, InvalidParameter, InvalidSchedule, UnknownName

#: warnings of gymnasium's check_env that an environment may cause, as regular expressions: of one-dimensional
#: actions in the units of the problem (tasks, scores, logarithms of prices). No other is needed: bounds are
#: finite, spaces start at 0, and render_fps is set.
ALLOWED_WARNINGS: tuple[str, ...] = (r"For Box action spaces, we recommend using a symmetric and normalized",)

#: an episode longer than this is taken to be endless
MOST_STEPS = 200_000

Choose = Callable[[Any], Any]


# Comparing ------------------------------------------------------------------------------------


def difference(first: Any, second: Any, where: str = "") -> str:
    """Find where two nested values differ: keys, types of arrays, shapes, and values, bit for bit.

    Args:
        first: dicts, sequences, arrays, numbers, in any nesting.
        second: the value that it is compared with; NaN equals NaN.
        where: prefix of the answer.

    Returns:
        "" if they are equal, else one line that names the first place at which they differ.
    """
    if type(first) is type(second) is np.ndarray and _same_bytes(first, second):
        return ""
    if isinstance(first, Mapping) or isinstance(second, Mapping):
        if not (isinstance(first, Mapping) and isinstance(second, Mapping)):
            return f"{where}: {type(first).__name__} and {type(second).__name__}"
        if set(first) != set(second):
            return f"{where}: keys {sorted(map(str, first))} and {sorted(map(str, second))}"
        parts: Any = ((first[key], second[key], f"{where}[{key!r}]") for key in first)
    elif isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        if len(first) != len(second):
            return f"{where}: {len(first)} and {len(second)} elements"
        parts = ((a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(first, second, strict=True)))
    else:
        a, b = np.asarray(first), np.asarray(second)
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"{where}: {a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
        if a.dtype.kind != "O":
            equal = (a == b) | ((a != a) & (b != b))  # NaN equals NaN
            if equal.all():
                return ""
            at = tuple(int(i) for i in np.argwhere(~equal)[0])
            return f"{where}{list(at) if at else ''}: {a[at]!r} and {b[at]!r}"
        if a.ndim == 0:
            return "" if first is second or first == second else f"{where}: {first!r} and {second!r}"
        parts = ((x, y, f"{where}[{i}]") for i, (x, y) in enumerate(zip(a.flat, b.flat, strict=True)))
    return next((found for x, y, place in parts if (found := difference(x, y, place))), "")


def _same_bytes(first: np.ndarray, second: np.ndarray) -> bool:
    """Return True if two arrays are equal for certain: seen at once, unlike where they differ."""
    alike = first.dtype == second.dtype and first.shape == second.shape
    return alike and not first.dtype.hasobject and first.tobytes() == second.tobytes()


def _same(first: Any, second: Any, what: str) -> None:
    found = difference(first, second)
    assert not found, f"{what}: differ at {found}"


@contextlib.contextmanager
def _refused(error: type[Exception], what: str, *values: Any) -> Iterator[None]:
    """Check that the block raises ``error``; ``what``, and ``values`` after it, are named if it does not."""
    try:
        yield
    except error:
        return
    except Exception as other:
        raise AssertionError(
            f"{_named(what, values)} must raise {error.__name__}, raises {type(other).__name__}: {other}"
        ) from other
    raise AssertionError(f"{_named(what, values)} must raise {error.__name__}, is accepted")


def _named(what: str, values: tuple[Any, ...]) -> str:
    return " ".join((what, *map(repr, values)))


def _copied(observation: Any) -> Any:
    """A copy that shares nothing with an observation, as ``copy.deepcopy`` makes it, but sooner."""
    if isinstance(observation, Mapping):
        return {name: _copied(value) for name, value in observation.items()}
    if isinstance(observation, np.ndarray) and not observation.dtype.hasobject:
        return observation.copy()
    return copy.deepcopy(observation)


@contextlib.contextmanager
def _accepted(what: str) -> Iterator[None]:
    """Check that the actions of the block are accepted; ``what`` is the message if they are not."""
    try:
        yield
    except (InvalidAction, InvalidSchedule) as error:
        raise AssertionError(f"{what}: {error}") from error


def _same_run(first: _Run, second: _Run, what: str) -> None:
    for name in ("observations", "rewards", "ends"):
        _same(getattr(first, name), getattr(second, name), f"{what}: {name}")
    _same(first.info, second.info, f"{what}: info")
    assert first.record.digest() == second.record.digest(), f"{what}: the schedules differ"


# Actions --------------------------------------------------------------------------------------


def _by_mask(space: spaces.Space[Any], observation: Any, wanted: bool) -> list[Any] | None:
    """The actions that the observation's mask allows, or else those that it forbids.

    None if there is no mask, or the space is continuous.
    """
    mask = observation.get("action_mask") if isinstance(observation, Mapping) else None
    if mask is None:
        return None
    places = np.argwhere((mask != 0) == wanted).tolist()
    if isinstance(space, spaces.Discrete):
        assert mask.shape == (space.n,), f"action_mask: shape {mask.shape} for {space}"
        return [int(space.start) + place for (place,) in places]
    if isinstance(space, spaces.MultiDiscrete):
        sizes = tuple(int(n) for n in space.nvec)
        shorter = (sizes[0] - 1, *sizes[1:])
        assert mask.shape in (sizes, shorter), f"action_mask: shape {mask.shape} for {space}"
        actions = [tuple(place) for place in places]
        if wanted and mask.shape == shorter:  # "none" is feasible, whatever stands behind it
            actions.append((sizes[0] - 1, *(0 for _ in sizes[1:])))
        return actions
    return None


def sample_action(space: spaces.Space[Any], observation: Any, rng: np.random.Generator) -> Any:
    """A random action: feasible if the observation carries a mask, else anything from the space."""
    feasible = _by_mask(space, observation, wanted=True)
    if feasible is not None:
        assert feasible, "action_mask: no action is feasible"
        return feasible[int(rng.integers(len(feasible)))]
    space.seed(int(rng.integers(2**31)))
    action = space.sample()
    return int(action) if isinstance(space, spaces.Discrete) else action


def infeasible_action(space: spaces.Space[Any], observation: Any, rng: np.random.Generator) -> Any:
    """A random well-formed action that the observation's mask forbids; None if there is none."""
    forbidden = _by_mask(space, observation, wanted=False)
    return forbidden[int(rng.integers(len(forbidden)))] if forbidden else None


def malformed_actions(space: spaces.Space[Any]) -> list[Any]:
    """Actions that no environment with this action space may accept: wrong types, shapes, ranges, NaN."""
    bad: list[Any] = [None, "", "0", "action", [], {}, object(), math.nan, math.inf, 1j]
    if isinstance(space, spaces.Discrete):
        low, high = int(space.start) - 1, int(space.start + space.n)
        bad += [low, high, np.int64(low), np.uint64(high), 2**63, 2**70, -(2**70)]
        bad += [0.0, np.float32(0), np.array(0.0), True, np.bool_(False), np.timedelta64(0, "s")]
        bad += [[0], [0, 0], np.array([0]), np.zeros((1, 1), dtype=np.int64)]
    elif isinstance(space, spaces.MultiDiscrete):
        zeros = [0 for _ in space.nvec]
        bad += [0, np.int64(0), [*zeros, 0], zeros[1:], [zeros], np.zeros(space.shape)]
        bad += [[math.nan, *zeros[1:]], [None, *zeros[1:]], ["0", *zeros[1:]], [[0], *zeros[1:]]]
        bad += [np.zeros(space.shape, dtype=bool), np.array(zeros)[:, None]]
        for k, size in enumerate(space.nvec):
            for value in (-1, int(size), 2**63, 2**70):
                bad.append([*zeros[:k], value, *zeros[k + 1 :]])
    elif isinstance(space, spaces.Box):
        middle = np.zeros(space.shape, dtype=space.dtype)
        bad += [middle[None], middle[..., None], middle[:-1], middle.ravel()[1:], middle.tolist() + [[]]]
        bad += [middle.astype(kind) for kind in (bool, complex, object, str, "S", "M8[s]")]
        bad += [0, 0.0, True, np.full(space.shape, None), np.full(space.shape, "action")]
        for number in (math.nan, math.inf, -math.inf):
            bad += [np.full(space.shape, number), np.full(space.shape, number, dtype=np.float32)]
            for place in {(0,) * middle.ndim, (0, *(n - 1 for n in middle.shape[1:]))}:
                wrong = middle.astype(float)
                wrong[place] = number
                bad += [wrong, wrong.tolist()]
    return bad


def _not_finite(action: Any, rows: int, place: tuple[int, ...] = ()) -> list[Any]:
    """The action (of the environment at ``place`` of a batch) with NaN, infinity in a row that counts."""
    bad = []
    for row, column, value in ((0, 0, math.nan), (rows - 1, -1, math.inf)) if rows else ():
        wrong = np.array(action, dtype=np.float64)
        wrong[(*place, row, *(column for _ in range(wrong.ndim - len(place) - 1)))] = value
        bad.append(wrong)
    return bad


# Playing --------------------------------------------------------------------------------------


@dataclasses.dataclass
class _Run:
    """One episode: n actions, n rewards, n (terminated, truncated), n + 1 observations.

    ``rows`` says of each action how many leading rows counted (None: it is no array of real numbers); the
    others are zeros in ``actions``.
    """

    observations: list[Any]
    rows: list[int | None]
    actions: list[Any]
    rewards: list[float]
    ends: list[tuple[bool, bool]]
    info: dict[str, Any]
    record: ScheduleRecord


def _scripted(actions: list[Any]) -> Choose:
    left = iter(actions)
    return lambda observation: next(left)


def _random(env: gym.Env[Any, Any], seed: int) -> Choose:
    rng = np.random.default_rng(seed)
    space = copy.deepcopy(env.action_space)
    return lambda observation: sample_action(space, observation, rng)


def _record(env: gym.Env[Any, Any]) -> ScheduleRecord:
    return env.unwrapped.record()  # type: ignore[attr-defined]


def _simulator(env: gym.Env[Any, Any]) -> Simulator:
    return env.unwrapped.simulator  # type: ignore[attr-defined]


def _rows(env: gym.Env[Any, Any]) -> int | None:
    """The number of leading rows of the next action that count; None if it is no array of real numbers."""
    simulator = _simulator(env)
    return int(simulator.rows[0]) if simulator.continuous else None


def _settled(action: Any, rows: int | None) -> Any:
    """A copy of an action (policies fill one array again and again), zeros in the rows that do not count."""
    if rows is None:
        return copy.deepcopy(action)
    settled = np.array(action)
    settled[rows:] = 0
    return settled


def _finish(env: gym.Env[Any, Any], observation: Any, choose: Choose, most: int = MOST_STEPS) -> _Run:
    """Play on from ``observation`` to the end of the episode."""
    run = _Run([_copied(observation)], [], [], [], [], {}, None)  # type: ignore[arg-type]
    while True:
        assert len(run.actions) < most, f"the episode has not ended after {most} steps"
        action = choose(observation)
        run.rows.append(_rows(env))
        run.actions.append(_settled(action, run.rows[-1]))
        observation, reward, terminated, truncated, info = env.step(action)
        assert info.keys() == {"metrics", "repaired"}, f"info: its keys are {sorted(info)}"
        run.observations.append(_copied(observation))
        run.rewards.append(float(reward))
        run.ends.append((terminated, truncated))
        if terminated or truncated:
            run.info = info
            run.record = _record(env)
            return run


def _play(env: gym.Env[Any, Any], choose: Choose, **reset: Any) -> _Run:
    return _finish(env, env.reset(**reset)[0], choose)


class _Case:
    """One parametrisation of an id."""

    def __init__(self, id: str, seed: int, parameters: Mapping[str, Any]) -> None:
        self.id, self.seed, self.parameters = id, seed, dict(parameters)
        self.problem: Problem = get_problem(id)
        if id not in self.problem.ids:
            raise UnknownName("environment id", id, self.problem.ids)
        self.known = {field.name for field in dataclasses.fields(self.problem.parameters)}
        self.objective = self.problem.objective_of(self.problem.build(id, self.parameters))

    def make(self, **overrides: Any) -> gym.Env[Any, Any]:
        """An environment without Gymnasium's passive checker, which hides what the environment raises."""
        return gym.make(self.id, disable_env_checker=True, **{**self.parameters, **overrides})

    def twin(self, **overrides: Any) -> gym.Env[Any, Any]:
        """Make an environment as :meth:`make` does, without overrides that the problem does not know."""
        return self.make(**{name: v for name, v in overrides.items() if name in self.known})

    @property
    def fixed_workload(self) -> bool:
        """True if several episodes may have the same jobs: those of a file, or of a window of a trace."""
        return any(self.parameters.get(name) is not None for name in ("workload", "trace"))

    def clocks(self, workload: Workload, actions: list[Any]) -> list[float]:
        """The clock of each observation when ``actions`` are played on ``workload``."""
        env = self.twin(observation="dict")
        run = _play(env, _scripted(actions), options={"workload": workload})
        name = "slot" if "slot" in run.observations[0] else "clock"
        assert name in run.observations[0], "the observation in exact units has neither clock nor slot"
        return [float(np.asarray(o[name]).reshape(-1)[0]) for o in run.observations]


def all_views(problem: Problem | str) -> Iterator[dict[str, Any]]:
    """Every action view x kind of observation x with and without a mask of feasible actions, if any.

    Args:
        problem: a problem, its name, or an environment id.

    Yields:
        keyword arguments for ``gym.make``.
    """
    if isinstance(problem, str):
        problem = get_problem(problem)
    fields = {field.name: field for field in dataclasses.fields(problem.parameters)}
    for view in problem.views:
        axes: dict[str, tuple[Any, ...]] = {"view": (view.name,)}
        if "observation" in fields:
            axes["observation"] = tuple(fields["observation"].metadata["choices"])
        if "action_mask" in fields and view.masked:
            axes["action_mask"] = (True, False)
        for values in itertools.product(*axes.values()):
            yield dict(zip(axes, values, strict=True))


# A problem ------------------------------------------------------------------------------------


def check_problem(id: str, *, episodes: int = 3, seed: int = 0, **parameters: Any) -> None:
    """Check an environment with given parameters.

    The following is checked:

    - Gymnasium's own check passes without a warning;
    - observations are within their space, and later steps do not change them;
    - rewards sum to the objective, metrics are complete, and the schedule is valid;
    - episodes can be repeated, also by interleaved, pickled and copied environments;
    - seeds, numbers of episodes and given workloads determine episodes;
    - infeasible actions are repaired, and with ``strict`` refused; malformed actions are always refused;
    - rows of actions that do not count are ignored;
    - observations with ``copy=False`` are the same, and do not depend on later arrivals;
    - the specification of the environment can be written as JSON.

    Args:
        id: environment id.
        episodes: number of episodes to play where one is not enough.
        seed: seed of the first environment.
        parameters: keyword arguments of the environment; keep the instances small, and no two draws alike.

    Raises:
        AssertionError: saying which aspect fails and how.
    """
    case = _Case(id, seed, parameters)
    case.parameters.pop("strict", None)  # both values are checked; unmasked random actions need the default
    _check_api(case)
    runs = [_check_episode(case, seed + i) for i in range(episodes)]
    _check_determinism(case, runs)
    _check_seeding(case, episodes)
    _check_given_workload(case, runs[0])
    _check_infeasible(case)
    _check_uncopied(case, runs[0])
    _check_end(case, runs[0])
    _check_blind(case, runs[0])
    _check_specification(case, runs[0])
    _check_rows(case, runs[0])
    _check_malformed(case, runs[0])


def _check_api(case: _Case) -> None:
    """Gymnasium's check_env, every warning an error but for the allowed ones."""
    env = gym.make(case.id, **case.parameters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env.unwrapped)
    for warning in caught:
        message = re.sub(r"\x1b\[[0-9;]*m", "", str(warning.message))
        allowed = any(re.search(pattern, message) for pattern in ALLOWED_WARNINGS)
        assert allowed, f"check_env warns: {message}"


def _check_episode(case: _Case, seed: int) -> _Run:
    """One episode by masked random actions: spaces, rewards, metrics, the record, copies."""
    env = case.make()
    space = env.observation_space
    handed: list[tuple[Any, Any]] = []
    random = _random(env, seed)

    def choose(observation: Any) -> Any:
        assert space.contains(observation), f"observation outside its space: {observation}"
        handed.append((observation, _copied(observation)))
        return random(observation)

    run = _play(env, choose, seed=seed)
    assert space.contains(run.observations[-1]), "the last observation is outside its space"
    for i, (now, then) in enumerate(handed):
        _same(now, then, f"observation {i}, handed out as a copy, has changed since")
    for i, reward in enumerate(run.rewards):
        assert math.isfinite(reward), f"reward {i} is {reward}"
    assert not any(a or b for a, b in run.ends[:-1]) and run.ends[-1].count(True) == 1, (
        "an episode ends once, terminated or truncated"
    )
    _check_metrics(case, run)
    _check_reward(case, run, seed)
    return run


def _check_metrics(case: _Case, run: _Run) -> None:
    metrics = run.info["metrics"]
    assert isinstance(metrics, dict), "the last info has no dict of metrics"
    made: Any = case.make().unwrapped
    declared = case.problem.metrics_of(made.interface.parameters)
    names = [metric.name for metric in declared]
    assert sorted(metrics) == sorted(names), (
        f"metrics: {sorted(metrics)}, the problem declares {sorted(names)}"
    )
    for name, value in metrics.items():
        assert type(value) is float and math.isfinite(value), f"metric {name}: {value!r}"
    judge = case.problem.module("metrics")
    computed = judge.metrics(run.record)
    recorded = [metric.name for metric in declared if metric.recorded]
    assert sorted(computed) == sorted(recorded), (
        f"metrics() gives {sorted(computed)}, the problem declares as recorded {sorted(recorded)}"
    )
    for name, value in computed.items():
        assert value == metrics[name], f"metric {name}: info {metrics[name]!r}, record {value!r}"
    with _accepted("the schedule is invalid"):
        judge.validate(run.record)
    assert run.record.truncated == run.ends[-1][1], "record.truncated is not the episode's"


def _check_reward(case: _Case, run: _Run, seed: int) -> None:
    """Rewards sum to the objective; with ``normalize`` they are those rewards times one constant."""
    objective = case.problem.metric(case.objective)
    wanted = -objective.sign * run.info["metrics"][objective.name]
    rewards = np.array(run.rewards)
    if case.parameters.get("normalize"):
        plain = _play(case.make(normalize=False), _scripted(run.actions), seed=seed)
        whole = np.array(plain.rewards)
        moved = np.flatnonzero(whole)
        factor = rewards[moved[0]] / whole[moved[0]] if len(moved) else 1.0
        assert factor > 0.0, f"normalize changes the sign of rewards: factor {factor}"
        np.testing.assert_allclose(rewards, whole * factor, rtol=1e-12, atol=0.0)
        rewards = whole
    total = float(np.sum(rewards))
    assert math.isclose(total, wanted, rel_tol=1e-9, abs_tol=1e-9), (
        f"rewards sum to {total!r}, {objective.name} says {wanted!r}"
    )


def _interleaved(runs: list[_Run]) -> Iterator[tuple[int, int]]:
    """(step, number of the run), in the order in which episodes side by side take their steps."""
    for step in range(max(len(run.actions) for run in runs)):
        yield from ((step, i) for i, run in enumerate(runs) if step < len(run.actions))


def _check_determinism(case: _Case, runs: list[_Run]) -> None:
    """Interleaved instances, pickled and deep-copied ones, all repeat what an instance does alone."""
    envs = [case.make() for _ in runs]
    for i, env in enumerate(envs):
        env.reset(seed=case.seed + i)
    for step, i in _interleaved(runs):
        observation, reward, *ends, _ = envs[i].step(runs[i].actions[step])
        _same(observation, runs[i].observations[step + 1], f"interleaved, step {step}")
        assert reward == runs[i].rewards[step], f"interleaved, step {step}: the reward differs"
        assert tuple(ends) == runs[i].ends[step], f"interleaved, step {step}: another end"
    run = runs[0]
    half = len(run.actions) // 2
    env = case.make()
    observation, _ = env.reset(seed=case.seed)
    for action in run.actions[:half]:
        observation = env.step(action)[0]
    twins = {
        "pickled": pickle.loads(pickle.dumps(env)),
        "deep-copied": copy.deepcopy(env),
        "the original of copies": env,
    }
    again: dict[str, _Run] = {}
    for what, twin in twins.items():
        rest = _finish(twin, observation, _scripted(run.actions[half:]))
        _same(rest.observations, run.observations[half:], f"{what} in mid-episode: observations")
        _same(rest.rewards, run.rewards[half:], f"{what} in mid-episode: rewards")
        assert rest.record.digest() == run.record.digest(), f"{what} in mid-episode: schedule"
        again[what] = _play(twin, _random(twin, case.seed))
    for what, following in again.items():
        _same_run(following, again["the original of copies"], f"{what}: the following episode")


def _check_seeding(case: _Case, episodes: int) -> None:
    """(seed, number of the episode) decides an episode."""
    episodes = max(episodes, 2)
    env, other = case.make(), case.make()

    def workload(**reset: Any) -> Workload:
        env.reset(**reset)
        return _record(env).workload

    drawn = [workload(seed=case.seed)] + [workload() for _ in range(episodes - 1)]
    again = [workload(seed=case.seed)] + [workload() for _ in range(episodes - 1)]
    assert drawn == again, "reset(seed=s), reset(), ... does not repeat the episodes of the seed"
    for e in reversed(range(episodes)):
        jump = workload(seed=case.seed, options={"episode": e})
        assert jump == drawn[e], f"options={{'episode': {e}}} is not the episode that resets lead to"
    other.reset(seed=case.seed)
    _same(
        other.reset(options={"episode": episodes - 1})[0],
        env.reset(seed=case.seed, options={"episode": episodes - 1})[0],
        "options={'episode': e} without a seed",
    )
    if not case.fixed_workload:
        distinct = [*drawn, workload(seed=case.seed + 1)]
        for i, first in enumerate(distinct):
            assert all(first != second for second in distinct[:i]), "two episodes are equal"
        case_a, case_b = case.make(), case.make()
        case_a.reset(), case_b.reset()
        assert _record(case_a).workload != _record(case_b).workload, (
            "two environments that were never seeded draw the same episode"
        )
    for options, error in (
        ({"episodes": 1}, UnknownName),
        ({"episode": -1}, InvalidParameter),
        ({"episode": 0.5}, InvalidParameter),
        ({"workload": 3}, InvalidParameter),
    ):
        with _refused(error, f"reset(options={options})"):
            env.reset(options=options)


def _check_given_workload(case: _Case, run: _Run) -> None:
    """A given workload serves one episode, or with ``repeat`` all that follow."""
    env = case.make()
    given = run.record.workload
    first = _play(env, _scripted(run.actions), seed=case.seed + 99, options={"workload": given})
    _same_run(first, run, "the same workload, given in reset")
    env.reset()
    if not case.fixed_workload:
        assert _record(env).workload != given, "a workload given once serves a second episode"
    env.reset(options={"workload": given, "repeat": True})
    for _ in range(2):
        _same_run(_play(env, _scripted(run.actions)), run, "a workload given with repeat")


def _check_infeasible(case: _Case) -> None:
    """Infeasible actions are repaired and counted; with ``strict`` refused, and nothing changes."""
    guide = _masked(case)
    rng = np.random.default_rng(case.seed)
    env = case.twin(strict=False)
    space = copy.deepcopy(env.action_space)
    seen = None if guide is None else guide.reset(seed=case.seed)[0]
    env.reset(seed=case.seed)
    count = 0
    terminated = truncated = False
    while not (terminated or truncated):
        bad = infeasible_action(space, seen, rng) if rng.random() < 0.5 else None
        action = sample_action(space, seen, rng) if bad is None else bad
        if guide is not None:
            seen = guide.step(action)[0]
        with _accepted(f"{action!r}, from the action space, is refused"):
            observation, _, terminated, truncated, info = env.step(action)
        assert env.observation_space.contains(observation), "after a repair: outside the space"
        repaired = info["repaired"]
        assert guide is None or repaired == (bad is not None), (
            f"{action!r}: info['repaired'] is {repaired}, the mask says {bad is None}"
        )
        count += repaired
    if any(metric.name == "repaired" for metric in case.problem.metrics):
        counted = info["metrics"]["repaired"]
        assert counted == count, f"{count} actions were repaired, the metric says {counted}"
    case.problem.module("metrics").validate(_record(env))
    if "strict" in case.known:
        _check_strict(case, space, rng)


def _check_strict(case: _Case, space: spaces.Space[Any], rng: np.random.Generator) -> None:
    """``strict`` accepts what needs no repair and refuses the rest; a feasible action goes on from there."""
    strict, plain = case.make(strict=True), case.make(strict=False)
    strict.reset(seed=case.seed)
    plain.reset(seed=case.seed)
    guide = _guide(case)
    seen: Any = None
    if guide is not None:
        choose, shown = guide
        seen, _ = shown.reset(seed=case.seed)
    while True:
        forbidden = infeasible_action(space, seen, rng)
        action = sample_action(space, None, rng) if forbidden is None else forbidden
        before = _record(strict).digest()
        try:
            there = strict.step(action)
        except InvalidAction:
            assert _record(strict).digest() == before, "strict=True: a refused action changes the schedule"
            # that what a mask forbids is repaired has been checked
            repaired = forbidden is not None or copy.deepcopy(plain).step(action)[4]["repaired"]
            assert repaired, f"strict=True refuses {action!r}, which needs no repair"
            if guide is None:
                return  # nobody knows an action that is feasible
            action = choose(seen)
            with _accepted(f"strict=True refuses {action!r}, which is feasible"):
                there = strict.step(action)
        here = plain.step(action)
        _same(there, here, "strict=True, after a refused action")
        assert not here[4]["repaired"], f"strict=True accepts {action!r}, which was repaired"
        if guide is not None:
            seen = shown.step(action)[0]
        if here[2] or here[3]:
            break
    assert _record(strict).digest() == _record(plain).digest(), "strict=True: another schedule"


def _masked(case: _Case) -> Any:
    """The case's environment with a mask in its observations; None if its view has none."""
    env: Any = case.twin(action_mask=True)
    return env if "action_mask" in env.observation_space.spaces else None


def _guide(case: _Case) -> tuple[Choose, gym.Env[Any, Any]] | None:
    """What chooses feasible actions in the case's view, and the environment whose observations it reads.

    It goes by the mask, or else is a registered policy.
    """
    masked = _masked(case)
    if masked is not None:
        return _random(masked, case.seed), masked
    exact = {"observation": "dict"} if "observation" in case.known else {}
    env = case.make(**exact)
    interface = env.unwrapped.interface  # type: ignore[attr-defined]
    for spec in list_policies(case.problem.name):
        if interface.view in spec.views:
            policy = make_policy(spec.name)
            try:
                policy.reset(interface, np.random.default_rng(case.seed))
            except InvalidParameter:
                continue
            return policy, env
    return None


def _check_rows(case: _Case, run: _Run) -> None:
    """Rows of a Box action that do not count are ignored, whatever they are; whole numbers are numbers."""
    env = case.make()
    simulator = _simulator(env)
    if not simulator.continuous:
        return
    env.reset(seed=case.seed)
    for step, (action, rows) in enumerate(zip(run.actions, run.rows, strict=True)):
        assert rows is not None and rows == simulator.rows[0] and rows <= len(action), (
            f"step {step}: {simulator.rows[0]} rows count, before it were {rows}"
        )
        filled = np.array(action, dtype=np.float64)
        filled[rows:] = (math.nan, math.inf, -math.inf, np.finfo(np.float64).max)[step % 4]
        observation, reward, *_ = env.step(filled)
        _same(observation, run.observations[step + 1], f"step {step}: rows that do not count do")
        assert reward == run.rewards[step], f"step {step}: rows that do not count change the reward"
    env.reset(seed=case.seed)
    other = case.make()
    other.reset(seed=case.seed)
    whole = np.ones(env.action_space.shape or (), dtype=np.int64)
    _same(env.step(whole), other.step(whole.astype(float)), "an action of whole numbers")


def _check_malformed(case: _Case, run: _Run) -> None:
    """Malformed actions raise InvalidAction and change nothing."""
    env = case.make()
    env.reset(seed=case.seed)
    bad = malformed_actions(env.action_space)
    for step, (action, rows) in enumerate(zip(run.actions, run.rows, strict=True)):
        unfit = _not_finite(action, rows) if rows is not None else []
        for value in (bad if step < 3 else bad[step % len(bad) :][:1]) + unfit:
            with _refused(InvalidAction, "action", value):
                env.step(value)
        observation, reward, *_ = env.step(action)
        _same(observation, run.observations[step + 1], f"step {step}, after malformed actions")
        assert reward == run.rewards[step], f"step {step}, after malformed actions: another reward"
    assert _record(env).digest() == run.record.digest(), "malformed actions change the schedule"


def _check_uncopied(case: _Case, run: _Run) -> None:
    """``copy=False`` shows the same values."""
    env = case.make(copy=False)
    for what in ("copy=False", "copy=False, second episode"):
        _same_run(_play(env, _scripted(run.actions), seed=case.seed), run, what)


def _check_end(case: _Case, run: _Run) -> None:
    """Steps before the first reset and after the end raise ResetNeeded."""
    env = case.make()
    for when in ("before the first reset", "after the end"):
        for _ in range(2):
            with _refused(ResetNeeded, f"step {when}"):
                env.unwrapped.step(run.actions[0])
        if when == "after the end":
            assert _record(env).digest() == run.record.digest(), f"step {when} changes the schedule"
        _same_run(_play(env, _scripted(run.actions), seed=case.seed), run, f"episode after step {when}")


def _futures(case: _Case, run: _Run) -> Iterator[tuple[Workload, int]]:
    """Workloads that equal the run's up to some time, and the number of observations up to that time."""
    shuffle = getattr(case.problem.module("workload"), "shuffle_future", None)
    if shuffle is None:
        return
    workload = run.record.workload
    clocks = case.clocks(workload, run.actions)
    rng = np.random.default_rng(case.seed)
    for share in (0.0, 0.1, 0.25, 0.5):
        time = clocks[int(share * (len(clocks) - 1))]
        other = shuffle(workload, time, rng)
        if other != workload:
            yield other, sum(clock <= time for clock in clocks)


def _check_blind(case: _Case, run: _Run) -> None:
    """Observations up to a time do not depend on what arrives after it."""
    env = case.make()
    for other, count in _futures(case, run):
        observation, _ = env.reset(options={"workload": other})
        for step in range(count):
            _same(
                observation,
                run.observations[step],
                f"observation {step} depends on tasks that have not arrived",
            )
            if step + 1 < count:
                observation = env.step(run.actions[step])[0]


def _check_specification(case: _Case, run: _Run) -> None:
    """The environment can be rebuilt from its specification as JSON."""
    env = gym.make(case.id, **case.parameters)
    assert env.spec is not None
    text = env.spec.to_json()
    again = gym.make(gym.envs.registration.EnvSpec.from_json(text))
    assert again.observation_space == env.observation_space, "JSON: another observation space"
    assert again.action_space == env.action_space, "JSON: another action space"
    _same_run(_play(again, _scripted(run.actions), seed=case.seed), run, "rebuilt from JSON")


# Its vector environment -----------------------------------------------------------------------


def check_vector_parity(
    id: str,
    *,
    num_envs: int = 5,
    steps: int = 150,
    seed: int = 0,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    threads: int = 1,
    **parameters: Any,
) -> None:
    """Check the native vector environment, step for step, against single environments in SyncVectorEnv.

    A second one with ``copy=False`` is checked, too, with several threads if ``threads`` is 1, else with one.

    Args:
        id: environment id.
        num_envs: number of environments.
        steps: number of steps; some episodes must end within them.
        seed: seed of environment 0.
        autoreset_mode: NEXT_STEP, SAME_STEP, or DISABLED (reset by ``reset_mask``).
        threads: number of threads of the native vector environment.
        parameters: keyword arguments of the environment; keep the instances small.

    Raises:
        AssertionError: naming the step and the first difference.
    """
    mode = AutoresetMode(autoreset_mode)
    case = _Case(id, seed, parameters)
    spread: list[int | None] = [seed + 7 * i * i for i in range(num_envs)]
    for seeds in (seed, spread):
        _compare_vectors(case, num_envs, steps, seeds, mode, threads)


def _native(case: _Case, num_envs: int, mode: AutoresetMode, **overrides: Any) -> Any:
    return gym.make_vec(
        case.id,
        num_envs=num_envs,
        vectorization_mode="vector_entry_point",
        autoreset_mode=mode,
        **{**case.parameters, **overrides},
    )


def _actions(case: _Case, space: spaces.Space[Any], observations: Any, rng: np.random.Generator) -> Any:
    """A batch of random actions: mostly feasible, one in ten anything (unless the case is strict)."""
    rows = []
    for i in range(len(next(iter(observations.values())))):
        row = {name: array[i] for name, array in observations.items()}
        if rng.random() < 0.1 and not case.parameters.get("strict"):
            row.pop("action_mask", None)
        rows.append(sample_action(space, row, rng))
    return np.array(rows, dtype=space.dtype)


def _compare_vectors(
    case: _Case, num_envs: int, steps: int, seeds: int | list[int | None], mode: AutoresetMode, threads: int
) -> None:
    native = _native(case, num_envs, mode, threads=threads)
    shared = _native(case, num_envs, mode, copy=False, threads=2 if threads == 1 else 1)
    sync = SyncVectorEnv([functools.partial(case.make) for _ in range(num_envs)], autoreset_mode=mode)
    assert native.metadata["autoreset_mode"] is mode, "metadata['autoreset_mode'] is not the mode"
    assert native.num_envs == num_envs
    for name in ("observation_space", "action_space"):
        single, batched = getattr(native, f"single_{name}"), getattr(native, name)
        assert single == getattr(sync, f"single_{name}"), f"single_{name} differs"
        assert batched == getattr(sync, name) == batch_space(single, num_envs), f"{name} differs"
    rng, space = np.random.default_rng(case.seed), copy.deepcopy(native.single_action_space)
    observations, infos = native.reset(seed=seeds)
    _same((observations, infos), sync.reset(seed=seeds), "reset")
    _same(shared.reset(seed=seeds), (observations, infos), "reset with copy=False")
    ended = 0
    done = np.zeros(num_envs, dtype=bool)
    for step in range(steps):
        assert native.observation_space.contains(observations), f"step {step}: outside the space"
        actions = _actions(case, space, observations, rng)
        ignored = done if mode is AutoresetMode.NEXT_STEP else np.zeros_like(done)
        actions[ignored] = -1 if actions.dtype.kind == "i" else math.nan
        if step % 10 == 0:
            _refuse_batches(native, actions, ignored, step)
        kept = _copied(observations)
        result = native.step(actions)
        _same(observations, kept, f"observations before step {step}, handed out as copies, changed")
        names = ("observations", "rewards", "terminations", "truncations", "infos")
        for what, mine, theirs in zip(names, result, sync.step(actions), strict=True):
            _same(mine, theirs, f"{mode.value}, step {step}: {what} against SyncVectorEnv")
            same_type = what == "observations" or type(mine) is type(theirs)
            assert same_type, f"{what}: {type(mine)}, {type(theirs)}"
        _same(shared.step(actions), result, f"{mode.value}, step {step}: copy=False")
        observations = result[0]
        done = result[2] | result[3]
        ended += int(done.sum())
        if mode is AutoresetMode.DISABLED and done.any():
            with _refused(ResetNeeded, "DISABLED: a step after an end"):
                native.step(actions)
            mask = done | (rng.random(num_envs) < 0.1)
            again = [int(rng.integers(1000)) if rng.random() < 0.3 else None for _ in mask]
            _same(
                native.reset(seed=again, options={"reset_mask": mask.copy()}),
                sync.reset(seed=again, options={"reset_mask": mask.copy()}),
                f"DISABLED, step {step}: reset with a mask",
            )
            observations, _ = shared.reset(seed=again, options={"reset_mask": mask.copy()})
            observations = _copied(observations)
        elif step == steps // 2:  # a reset between steps goes on to the next episodes
            observations, infos = native.reset()
            _same((observations, infos), sync.reset(), f"{mode.value}: reset() in between")
            shared.reset()
            done = np.zeros_like(done)
    assert ended > num_envs, f"only {ended} episodes ended: give check_vector_parity more steps"
    sync.close()


def _refuse_batches(native: Any, actions: Any, ignored: Any, step: int) -> None:
    """Malformed batches raise InvalidAction; that they change nothing is seen at the next step.

    With NEXT_STEP, the action of an environment that is reset in this step is ignored, whatever it is.
    """
    bad = [actions[:-1], actions[:, None], None, "actions", []]
    bad += [actions.astype(kind) for kind in (bool, complex, object, str)]
    acting = np.flatnonzero(~ignored)
    simulator = native.unwrapped.simulator
    if simulator.continuous:
        for i in acting[[0, -1]].tolist() if len(acting) else ():
            bad += _not_finite(actions, int(simulator.rows[i]), (i,))
    else:
        bad.append(actions.astype(float))
        last = np.iinfo(actions.dtype).max
        for place, k, value in ((-1, -1, last), (0, 0, -1), (0, -1, last)) if len(acting) else ():
            wrong = actions.copy()
            wrong.reshape(native.num_envs, -1)[acting[place], k] = value
            bad.append(wrong)
    for value in bad:
        with _refused(InvalidAction, f"step {step}: batch", value):
            native.step(value)


# A policy -------------------------------------------------------------------------------------


def policy_parameters(name: str, view: str, id: str | None = None) -> dict[str, Any]:
    """Parameter values under which a registered policy accepts an action view.

    The function tries the id's baseline parameters with the values that the policy declares to need, then
    combinations of the choices that the problem's parameters offer, those with the fewest changes first.

    Args:
        name: "problem/policy".
        view: an action view.
        id: environment id; None takes the first that compares this policy by default, else the first.

    Raises:
        AssertionError: if the policy refuses them all, with its last reason.
    """
    spec = get_policy_spec(name)
    problem = get_problem(spec.problem)
    id = id or _id_of(spec)
    needs = {name: v[0] if isinstance(v, tuple) else v for name, v in spec.needs.items()}
    base = {**problem.ids[id].baseline_parameters, **needs, "view": view}
    interface = gym.make(id, disable_env_checker=True, **base).unwrapped.interface  # type: ignore[attr-defined]
    kinds = problem.parameters.kinds()
    axes = {
        field.name: tuple(field.metadata["choices"])
        for field in dataclasses.fields(problem.parameters)
        if field.metadata.get("choices")
        and kinds[field.name] is str  # of a number, choices are words beside it
        and field.name not in ("view", "observation")
    }
    policy = make_policy(name)
    reason = ""
    now = interface.parameters
    combinations = (dict(zip(axes, v, strict=True)) for v in itertools.product(*axes.values()))
    changes = ({name: v for name, v in c.items() if v != now[name]} for c in combinations)
    for choice in sorted(changes, key=len):
        values = {**now, **choice}
        try:
            policy.reset(dataclasses.replace(interface, parameters=values), np.random.default_rng(0))
        except InvalidParameter as error:
            reason = str(error)
            continue
        return {**base, **choice}
    raise AssertionError(f"{name} declares view {view!r} but accepts it under no parameters: {reason}")


def check_policy(
    name: str, *, id: str | None = None, episodes: int = 3, seed: int = 0, **parameters: Any
) -> None:
    """Check a registered policy in one parametrisation of its problem's environment.

    The following is checked:

    - its actions are in the action space and feasible, and its schedule is valid;
    - its actions depend on the observation, its options and its random numbers only: they are the same in a
      second instance, in interleaved instances, after pickling within an episode, in the second episode of
      an instance, and on observations that are not copied;
    - they do not depend on later arrivals, unless the policy declares that it knows the ``future``;
    - they do not depend on observations that other policies of the problem declare to know, but not this one;
    - the policy does not change observations.

    Args:
        name: "problem/policy".
        id: environment id; None takes the first that compares this policy by default, else the first.
        episodes: number of episodes.
        seed: seed of the first episode.
        parameters: keyword arguments of the environment, which replace the id's baseline parameters; if they
            do not choose a view, and the policy cannot act in that of the baselines, it acts in the first of
            its own.

    Raises:
        AssertionError: saying what fails.
    """
    spec = get_policy_spec(name)
    problem = get_problem(spec.problem)
    id = id or _id_of(spec)
    base = dict(problem.ids[id].baseline_parameters)
    if "view" in base:
        base["view"] = spec.acting_view(base["view"], [view.name for view in problem.views])
    case = _Case(id, seed, {**base, **parameters})
    if "strict" in case.known:
        case.parameters["strict"] = True
    runs = [_check_policy_episode(case, spec, seed + i) for i in range(episodes)]
    _check_policy_instances(case, spec, runs)
    _check_policy_future(case, spec, runs)
    _check_policy_knowledge(case, spec, runs[0])


def _id_of(spec: PolicySpec) -> str:
    """The first id that compares a policy by default, else the first of its problem."""
    ids, short = get_problem(spec.problem).ids, spec.name.partition("/")[2]
    return next((id for id, variant in ids.items() if short in variant.policies), next(iter(ids)))


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 1])


def _start(case: _Case, spec: PolicySpec, env: gym.Env[Any, Any], seed: int) -> Any:
    policy = make_policy(spec.name)
    policy.reset(env.unwrapped.interface, _rng(seed))  # type: ignore[attr-defined]
    return policy


def _check_policy_episode(case: _Case, spec: PolicySpec, seed: int) -> _Run:
    env = case.make()
    policy = _start(case, spec, env, seed)
    space = env.action_space

    def choose(observation: Any) -> Any:
        before = _copied(observation)
        action = policy(observation)
        _same(observation, before, f"{spec.name} changes the observation")
        assert space.contains(np.asarray(action)), f"{spec.name}: {action!r} is not in {space}"
        return action

    with _accepted(f"{spec.name} plays an infeasible action"):
        run = _play(env, choose, seed=seed)
    with _accepted(spec.name):
        case.problem.module("metrics").validate(run.record)
    return run


def _same_action(action: Any, run: _Run, step: int, what: str) -> None:
    _same(_settled(action, run.rows[step]), run.actions[step], what)


def _check_policy_instances(case: _Case, spec: PolicySpec, runs: list[_Run]) -> None:
    """Interleaved, pickled, used again, on observations that are not copied: always the same actions."""
    envs = [case.make(copy=False) for _ in runs]
    policies = [_start(case, spec, env, case.seed + i) for i, env in enumerate(envs)]
    seen = [env.reset(seed=case.seed + i)[0] for i, env in enumerate(envs)]
    for step, i in _interleaved(runs):
        if step == len(runs[i].actions) // 2:
            policies[i] = pickle.loads(pickle.dumps(policies[i]))
        action = policies[i](seen[i])
        _same_action(action, runs[i], step, f"{spec.name}, interleaved and pickled, step {step}")
        seen[i] = envs[i].step(action)[0]
    env = envs[0]
    for i in (*range(len(runs)), 0):
        policies[0].reset(env.unwrapped.interface, _rng(case.seed + i))  # type: ignore[attr-defined]
        run = _play(env, policies[0], seed=case.seed + i)
        _same(run.actions, runs[i].actions, f"{spec.name}: an instance remembers its last episode")


def _check_policy_future(case: _Case, spec: PolicySpec, runs: list[_Run]) -> None:
    if "future" in spec.knows:
        return
    env = case.make()
    for i, run in enumerate(runs):
        for other, count in _futures(case, run):
            policy = _start(case, spec, env, case.seed + i)
            observation, _ = env.reset(options={"workload": other})
            for step in range(min(count, len(run.actions))):
                action = policy(observation)
                what = f"{spec.name}: action {step} depends on tasks that have not arrived"
                _same_action(action, run, step, what)
                if step + 1 < count:
                    observation = env.step(action)[0]


def _check_policy_knowledge(case: _Case, spec: PolicySpec, run: _Run) -> None:
    """A policy does not use what it does not declare to know, while another policy of the problem does."""
    declared = {name for other in list_policies(spec.problem) for name in other.knows}
    hidden = sorted(declared - set(spec.knows))
    env = case.make()
    policy = _start(case, spec, env, case.seed)
    for step, observation in enumerate(run.observations[:-1]):
        veiled = dict(observation)
        for name in hidden:
            if name in veiled:
                veiled[name] = np.zeros_like(veiled[name])
        what = f"{spec.name} does not declare to know {hidden}, but its action {step} depends on them"
        _same_action(policy(veiled), run, step, what)
