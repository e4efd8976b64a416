"""Actions of real numbers in scalar and vector environments, on a problem of its own."""

from __future__ import annotations

import dataclasses
import math
import types
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from schedgym.core import policy as registry
from schedgym.core.policy import Interface, list_policies, register_policy
from schedgym.core.problem import Metric, Parameters, Problem, Variant, View, list_problems, parameter
from schedgym.core.record import ScheduleRecord
from schedgym.core.simulator import Simulator
from schedgym.core.stepping import ACT, BEGIN, CHECK
from schedgym.core.workload import Field, Schema, Workload
from schedgym.envs import SchedulingEnv, SchedulingVectorEnv
from schedgym.errors import InvalidAction, InvalidWorkload
from schedgym.testing import check_policy, check_problem, check_vector_parity, malformed_actions

ID, OTHER_ID = "tests/Cake-v0", "tests/SmallCake-v0"
COLUMNS = 2
SCHEMA = Schema("cake", (Field("arrival", "slots", ("job",)), Field("size", "slots", ("job",))), ())


@dataclasses.dataclass(frozen=True)
class CakeParameters(Parameters):
    jobs: int = parameter(5, "jobs", minimum=1)
    window: int = parameter(3, "visible jobs", minimum=1)
    view: str = parameter("shares", "action view", choices=("shares",))
    strict: bool = parameter(False, "refuse more than the whole")


class CakeProblem(Problem):
    """Its rooms are attributes of this module."""

    def module(self, name):
        return ROOMS[name]


class CakeSimulator(Simulator):
    """In each slot job i gets the sum of its row; what is left goes to the first job."""

    continuous = True
    scalars = ()
    action_sizes = ()

    def __init__(self, parameters: CakeParameters, num_envs: int, id: str) -> None:
        super().__init__(CAKE, id, parameters, num_envs)
        n, b, w = parameters.jobs, num_envs, parameters.window
        self.action_shape = (w, COLUMNS)
        self.actions = np.zeros((b, w, COLUMNS))
        self.rows = np.zeros(b, dtype=np.int64)
        self.arrival, self.size, self.left = np.zeros((b, n)), np.zeros((b, n)), np.zeros((b, n))
        self.end, self.clock = np.zeros((b, n)), np.zeros(b)
        self.reward, self.repairs = np.zeros(b), np.zeros(b)
        self.terminated, self.truncated, self.repaired = (np.zeros(b, dtype=bool) for _ in range(3))
        self.observation = {"clock": np.zeros((b, 1)), "left": np.zeros((b, w))}
        self.interface = Interface(
            id, "cake", "shares", "dict", dataclasses.asdict(parameters), {"window": w}
        )
        self._bind()

    def _bind(self) -> None:
        self.table, self.kernels = None, (self.advance,)
        self.toolboxes = [()] * self.threads

    def __getstate__(self):  # what simulators of kernels derive are this one's own arrays
        return {name: value for name, value in self.__dict__.items() if name != "kernels"}

    def _observation(self):
        return self.observation

    def _drawn_workload(self, index: int) -> Workload:
        return self.workload(index)

    def _check(self, workload: Workload) -> None:
        if len(workload.jobs["arrival"]) != self.parameters.jobs:
            raise InvalidWorkload("jobs: another number")

    def load(self, index: int, workload: Workload) -> None:
        self.arrival[index], self.size[index] = workload.jobs["arrival"], workload.jobs["size"]

    def draw(self, mask) -> None:
        for i in np.flatnonzero(mask).tolist():
            rng = np.random.default_rng([int(self.seeds[i]), int(self.episodes[i])])
            self.arrival[i] = np.sort(rng.integers(0, 4, self.parameters.jobs))
            self.size[i] = rng.uniform(0.2, 1.5, self.parameters.jobs)

    def _active(self, i: int):
        return np.flatnonzero((self.arrival[i] <= self.clock[i]) & (self.left[i] > 0))

    def _observe(self, i: int) -> None:
        shown = self._active(i)[: self.parameters.window]
        self.rows[i] = len(shown)
        self.observation["clock"][i] = self.clock[i]
        self.observation["left"][i] = 0.0
        self.observation["left"][i, : len(shown)] = self.left[i, shown]

    def _skip_idle(self, i: int) -> None:
        if len(self._active(i)) == 0:
            self.clock[i] = self.arrival[i][self.left[i] > 0].min()

    def advance(self, table, tools, command) -> int:
        self.touched = self.actions.copy()
        for i in np.flatnonzero((command == ACT) | (command == CHECK)):
            given = self.actions[i, : self.rows[i]]
            if not np.isfinite(given).all() or (self.parameters.strict and given.sum() > 1.0):
                return -(int(i) + 1)
        ended = 0
        for i in np.flatnonzero((command == ACT) | (command == BEGIN)):
            self.reward[i], self.repaired[i], self.terminated[i] = 0.0, False, False
            if command[i] == BEGIN:
                self.left[i], self.clock[i], self.repairs[i] = self.size[i], 0.0, 0
                self._skip_idle(i)
            else:
                active = self._active(i)
                shares = self.actions[i, : self.rows[i]].sum(axis=1)
                total = shares.sum()
                if total > 1.0:
                    self.repaired[i], shares = True, shares / total
                    self.repairs[i] += 1
                self.left[i, active[: len(shares)]] -= shares
                self.left[i, active[0]] -= max(1.0 - total, 0.0)
                self.clock[i] += 1.0
                self.reward[i] = -len(active) / self.parameters.jobs
                self.end[i, active[self.left[i, active] <= 1e-9]] = self.clock[i]
                self.left[i][self.left[i] <= 1e-9] = 0.0
                if (self.left[i] == 0.0).all():
                    self.terminated[i], ended = True, ended + 1
                else:
                    self._skip_idle(i)
            self._observe(i)
        return ended

    def measure(self, mask):
        return np.column_stack([(self.end - self.arrival).mean(axis=1), self.repairs])

    def workload(self, index: int) -> Workload:
        jobs = {"arrival": self.arrival[index].copy(), "size": self.size[index].copy()}
        return Workload("cake", jobs, {})

    def record(self, index: int) -> ScheduleRecord:
        job = np.flatnonzero(self.left[index] == 0.0)
        return ScheduleRecord(
            workload=self.workload(index),
            job=job,
            server=np.zeros_like(job),
            start=self.arrival[index, job],
            end=self.end[index, job],
            amount=np.ones((len(job), 1)),
            final_time=float(self.clock[index]),
            truncated=False,
        )


def make_spaces(simulator: CakeSimulator):
    window = simulator.parameters.window
    observation = {"clock": spaces.Box(0.0, 1e3, (1,), np.float64)}
    observation["left"] = spaces.Box(0.0, 2.0, (window,), np.float64)
    return spaces.Dict(observation), spaces.Box(0.0, 1.0, (window, COLUMNS), np.float32)


ROOMS = {
    "simulator": types.SimpleNamespace(make_simulator=CakeSimulator),
    "views": types.SimpleNamespace(make_spaces=make_spaces),
    "workload": types.SimpleNamespace(SCHEMA=SCHEMA, make_source=lambda parameters: None),
    "metrics": types.SimpleNamespace(
        metrics=lambda record: {"flow": float((record.end - record.workload.jobs["arrival"]).mean())},
        validate=lambda record: None,
    ),
    "render": types.SimpleNamespace(
        render_ansi=lambda simulator, i: "a cake",
        render_rgb_array=lambda simulator, i: np.zeros((2, 2, 3), dtype=np.uint8),
    ),
}


def variant(**parameters: object) -> Variant:
    baseline = {"view": "shares"}
    return Variant(
        title="A cake",
        parameters=parameters,
        table=(),
        policies=(),
        reference="",
        baseline_parameters=baseline,
    )


CAKE = CakeProblem(
    name="cake",
    title="A cake",
    source="",
    ids={ID: variant(), OTHER_ID: variant(jobs=2)},
    parameters=CakeParameters,
    views=(View("shares", "", masked=False),),
    objective="flow",
    metrics=(Metric("flow", "slots", "", "min"), Metric("repaired", "", "", "min", recorded=False)),
    presets={},
    package="",
)


class CakeEnv(SchedulingEnv):
    problem: ClassVar[Problem] = CAKE
    id: ClassVar[str] = ID


class CakeVectorEnv(SchedulingVectorEnv):
    problem: ClassVar[Problem] = CAKE
    env_class: ClassVar[type[SchedulingEnv]] = CakeEnv


class SmallCakeEnv(SchedulingEnv):
    problem: ClassVar[Problem] = CAKE
    id: ClassVar[str] = OTHER_ID


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(list_problems(), "cake", CAKE)
    monkeypatch.setattr(gym.envs.registration, "registry", dict(gym.registry))
    for id, name in ((ID, "Cake"), (OTHER_ID, "SmallCake")):
        vector = f"{__name__}:CakeVectorEnv" if name == "Cake" else None
        gym.register(id, f"{__name__}:{name}Env", vector_entry_point=vector)


@pytest.mark.parametrize("parameters", [{}, {"window": 1}, {"jobs": 9, "window": 20}], ids=str)
def test_the_checks_know_real_numbers(parameters: dict[str, int]) -> None:
    check_problem(ID, **parameters)


class Last:
    """All to the last visible job; rows that do not count keep what they had."""

    def reset(self, interface, rng) -> None:
        self.action = np.zeros((interface.sizes["window"], COLUMNS), dtype=np.float32)

    def __call__(self, observation):
        count = int((observation["left"] > 0).sum())
        self.action[:count] = 0.0
        self.action[count - 1, 1] = 1.0
        return self.action


@pytest.fixture
def policy(monkeypatch):
    list_policies()
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    register_policy("cake/last", source="", views=("shares",))(Last)
    return "cake/last"


def test_a_policy_may_fill_one_array_again_and_again(policy) -> None:
    check_policy(policy, jobs=8)
    check_problem(ID)


def hide_repairs(step):
    def wrong(self, command):
        ended = step(self, command)
        self.repaired[:] = False
        return ended

    return wrong


def take_anything(step):
    def wrong(self, command):
        self.actions[:] = np.nan_to_num(self.actions, posinf=1.0)
        return step(self, command)

    return wrong


def never_strict(step):
    def wrong(self, command):
        object.__setattr__(self.parameters, "strict", False)
        return step(self, command)

    return wrong


def too_strict(step):
    def wrong(self, command):
        if self.parameters.strict and command[0] == ACT and self.actions[0, : self.rows[0]].sum() < 1.0:
            return -1
        return step(self, command)

    return wrong


def refuse_late(step):
    def wrong(self, command):
        if self.parameters.strict:
            self.left[0, 0] = 0.0
        return step(self, command)

    return wrong


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (hide_repairs, "actions were repaired, the metric says"),
        (take_anything, "must raise InvalidAction, is accepted"),
        (never_strict, "(?s)strict=True accepts .*which was repaired"),
        (too_strict, "which needs no repair"),
        (refuse_late, "a refused action changes the schedule"),
    ],
)
def test_the_checks_find_faults(fault, message: str, policy, monkeypatch) -> None:
    monkeypatch.setattr(CakeSimulator, "step", fault(CakeSimulator.step))
    with pytest.raises(AssertionError, match=message):
        check_problem(ID, window=1)


@pytest.mark.parametrize("mode", AutoresetMode, ids=lambda mode: mode.value)
def test_the_faces_agree(mode: AutoresetMode) -> None:
    check_vector_parity(ID, steps=60, autoreset_mode=mode, jobs=3)


def test_each_class_reports_its_own_id() -> None:
    assert gym.make(ID).unwrapped.interface.id == CakeVectorEnv(2).interface.id == ID
    small = gym.make(OTHER_ID).unwrapped
    assert (small.interface.id, small.interface.parameters["jobs"]) == (OTHER_ID, 2)
    assert SmallCakeEnv(jobs=3).interface.parameters["jobs"] == 3


def begun(**parameters: object) -> CakeEnv:
    env = CakeEnv(**parameters)
    jobs = {
        "arrival": np.zeros(env.simulator.parameters.jobs),
        "size": np.ones(env.simulator.parameters.jobs),
    }
    env.reset(seed=0, options={"workload": Workload("cake", jobs, {})})
    return env


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((0, 1), math.nan, "action[0, 1]: must be finite, got nan"),
        ((1, 0), math.inf, "action[1, 0]: must be finite, got inf"),
        ((1, 1), -math.inf, "action[1, 1]: must be finite, got -inf"),
    ],
)
def test_the_first_number_that_is_not_finite_is_named(place, value, message) -> None:
    env = begun(jobs=2)
    action = np.zeros((3, COLUMNS))
    action[place] = value
    action[2] = math.nan  # does not count
    with pytest.raises(InvalidAction) as caught:
        env.step(action)
    assert str(caught.value) == message
    vector = CakeVectorEnv(3, jobs=2)
    jobs = {"arrival": np.zeros(2), "size": np.ones(2)}
    vector.reset(seed=0, options={"workload": Workload("cake", jobs, {})})
    with pytest.raises(InvalidAction) as caught:
        vector.step(np.stack([np.zeros_like(action), action, action]))
    assert str(caught.value) == message.replace("action", "actions[1]")


@pytest.mark.parametrize("number", [*malformed_actions(spaces.Box(0, 1, (3, 2)))], ids=lambda _: "")
def test_what_is_malformed_is_refused_in_one_line(number: object) -> None:
    with pytest.raises(InvalidAction) as caught:
        begun().step(number)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 120


@pytest.mark.parametrize("kind", ["i1", "u8", "f2", "f4", "f8", "g"])
def test_any_kind_of_real_numbers_will_do(kind: str) -> None:
    one, other = begun(), begun()
    action = np.zeros((3, COLUMNS), dtype=kind)
    action[1] = 1
    first = one.step(action)
    second = other.step(action.tolist())
    assert first[1] == second[1] and (first[0]["left"] == second[0]["left"]).all()


def test_strict_says_that_nothing_is_wrong_with_the_numbers() -> None:
    with pytest.raises(InvalidAction, match=r"^action: infeasible \(strict=True\)$"):
        begun(strict=True).step(np.ones((3, COLUMNS)))


def test_only_rows_that_count_are_touched() -> None:
    env = begun(jobs=2, window=50)
    env.simulator.actions[:] = 7.0
    env.step(np.ones((50, COLUMNS)))
    assert (env.simulator.touched[0, :2] == 1.0).all() and (env.simulator.touched[0, 2:] == 7.0).all()
    vector = CakeVectorEnv(2, jobs=3, window=50)
    several = [np.zeros(3), np.array([0.0, 9.0, 9.0])]
    workloads = [Workload("cake", {"arrival": a, "size": np.ones(3)}, {}) for a in several]
    vector.reset(seed=0, options={"workload": workloads})
    vector.simulator.actions[:] = 7.0
    vector.step(np.ones((2, 50, COLUMNS)))
    assert (vector.simulator.touched[:, :3] == 1.0).all() and (vector.simulator.touched[:, 3:] == 7.0).all()
