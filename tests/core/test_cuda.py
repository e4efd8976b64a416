"""Environments on a GPU, without one: on numba's simulator, and on a stand-in that compiles for the CPU."""

from __future__ import annotations

import contextlib
import copy
import importlib
import math
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled, ResetNeeded

from schedgym import envs, extras
from schedgym.core import cuda
from schedgym.core.arrays import members
from schedgym.errors import InvalidAction, InvalidParameter, UnknownName
from tests.core.host_gpu import Elsewhere, HostGPU
from tests.interpreted import python
from tests.long import long, thinned
from tests.test_all_problems import CASES, short

ID = "schedgym/QueueDelay-v0"
SMALL = {"tasks": 8, "servers": 3, "window": 4}
#: the views whose refusals are compared on numba's simulator
REFUSING = thinned(CASES, of=3)
MODES = ("NextStep", "SameStep")
#: what QueueDelay's test of an action writes down for the decision that follows
NOTED = {"position", "server"}


def host(array: Any) -> Any:
    """A numpy array of one in the GPU's memory."""
    return array.copy_to_host() if hasattr(array, "copy_to_host") else array


#: None: arrays are equal to the last bit; else the relative error of float64 and float32 numbers
ERRORS: dict[type, float] | None = None


def assert_same(found: Any, expected: Any, what: str) -> None:
    found = host(found)
    assert found.dtype == expected.dtype and found.shape == expected.shape, what
    error = ERRORS and ERRORS.get(expected.dtype.type)
    if error:
        np.testing.assert_allclose(found, expected, rtol=error, atol=error, err_msg=what)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=what)


def actions_of(env: Any, observation: dict[str, Any], rng: np.random.Generator) -> Any:
    """Random actions; half of them feasible ones, where there is a mask."""
    actions = env.action_space.sample()
    mask = observation.get("action_mask")
    if mask is not None and mask.ndim == 2 and hasattr(env.single_action_space, "n"):
        for i in range(env.num_envs):
            if mask[i].any() and rng.random() < 0.5:
                actions[i] = rng.choice(np.flatnonzero(mask[i]))
    return actions


def check_parity(
    id: str, steps: int, mode: str = "NextStep", num_envs: int = 3, most: int = 0, **parameters: Any
) -> int:
    """Compare environments on the GPU with those on the CPU step for step; return how many episodes ended.

    Two environments have the same seed; one is reset alone in the end. Before the first step both refuse an
    action, which changes nothing. There are at most ``most`` steps more if no episode has ended.
    """
    parameters = {"num_envs": num_envs, "autoreset_mode": mode, **parameters}
    there, here = gym.make_vec(id, device="cuda", **parameters), gym.make_vec(id, **parameters)
    rng = np.random.default_rng(0)
    here.action_space.seed(1)
    seeds = [5, 5, *range(8, 6 + num_envs)]
    observation, seen = here.reset(seed=seeds)[0], there.reset(seed=seeds)[0]
    for name, array in observation.items():
        np.testing.assert_array_equal(array[0], array[1], err_msg=f"of the same seed: {name}")
    check_refusal(there, here)
    step = ends = 0
    while step < steps or (not ends and step < steps + most):
        assert_same_entries(seen, observation, f"step {step}")
        actions = actions_of(here, observation, rng)
        observation, *results, infos = here.step(actions)
        before, (seen, *found, told) = seen, there.step(actions)
        check_handed_out(there, before, seen, found)
        for name, one, other in zip(("rewards", "terminated", "truncated"), found, results, strict=True):
            assert_same(one, other, f"step {step}: {name}")
        ends += int((results[1] | results[2]).sum())
        check_infos(told, infos, f"step {step}", num_envs)
        step += 1
    assert_same_arrays(there, here)
    for i in range(num_envs):
        for name in ("job", "server", "start", "end", "amount"):
            records = (env.unwrapped.record(i) for env in (there, here))
            assert_same(*(getattr(record, name) for record in records), f"record {i}: {name}")
    alone = {"seed": [None, 11, *[None] * (num_envs - 2)]}
    alone["options"] = {"reset_mask": np.arange(num_envs) == 1}
    assert_same_entries(there.reset(**alone)[0], here.reset(**alone)[0], "after a reset of one")
    return ends


def assert_same_entries(seen: dict[str, Any], observation: dict[str, Any], where: str) -> None:
    assert seen.keys() == observation.keys()
    for name in observation:
        assert_same(seen[name], observation[name], f"{where}: {name}")


def check_refusal(there: Any, here: Any) -> None:
    """All environments but the first are given what none takes: beyond the last choice, or not a number."""
    is_real = here.unwrapped.simulator.continuous
    actions = here.action_space.sample().astype(np.float64 if is_real else np.int64)
    actions[1:] = np.nan if is_real else actions[1:] + 1000
    said = []
    for env in (there, here):
        with pytest.raises(InvalidAction) as caught:
            env.step(actions)
        said.append(str(caught.value))
    assert said[0] == said[1] and said[0].startswith("actions[1]")


def check_handed_out(env: Any, before: dict[str, Any], seen: dict[str, Any], results: list[Any]) -> None:
    """What a step returns is in the GPU's memory; without ``copy`` it is the environment's own."""
    for array in (*seen.values(), *results):
        assert array.__cuda_ndarray__ and array.is_c_contiguous()
    for name, array in seen.items():
        own = env.unwrapped.simulator.observation[name]
        assert (array is own) is (before[name] is array) is (not env.unwrapped.copy), name


def check_strict(id: str, **parameters: Any) -> int:
    """Of 20 actions both refuse the same, which change nothing; return how many."""
    parameters = {"num_envs": 2, "strict": True, **parameters}
    there, here = gym.make_vec(id, device="cuda", **parameters), gym.make_vec(id, **parameters)
    rng = np.random.default_rng(0)
    here.action_space.seed(1)
    observation = here.reset(seed=5)[0]
    there.reset(seed=5)
    refused = 0
    for _ in range(20):
        actions = actions_of(here, observation, rng)
        try:
            observation = here.step(actions)[0]
        except InvalidAction as error:
            refused += 1
            with pytest.raises(InvalidAction, match=f"^{re.escape(str(error))}$"):
                there.step(actions)
        else:
            there.step(actions)
        assert_same_arrays(there, here)
    return refused


def assert_same_arrays(there: Any, here: Any) -> None:
    """All arrays of the environments are equal but for the action, and what a check of one has noted."""
    here, there = here.unwrapped.simulator, there.unwrapped.simulator
    batches = [member.name for member in members(here.environment) if not member.kind]
    for i in range(here.num_envs):
        one = there.fetch(i)
        for name in set(batches) - {"exchange"}:
            found, expected = (parts_of(simulator.bundle(name)) for simulator in (one, here))
            for part, array in expected.items():
                assert_same(found[part][0], array[i], f"environment {i}: {name}.{part}")


def parts_of(bundle: Any) -> dict[str, Any]:
    """The arrays of a bundle by name, and of records each field but for NOTED."""
    found = {}
    for name, array in bundle._asdict().items():
        fields = array.dtype.names or ()
        found |= {f"{name}.{field}": array[field] for field in fields if field not in NOTED}
        if not fields:
            found[name] = array
    return found


class Counted:
    """``numba.cuda`` that counts the bytes it gives, and says how many are free."""

    def __init__(self, module: Any, free: float = math.inf) -> None:
        self.module, self.free, self.taken = module, free, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    def current_context(self) -> Any:
        return SimpleNamespace(get_memory_info=lambda: (self.free, self.free))

    def device_array(self, shape: Any, dtype: Any) -> Any:
        made = self.module.device_array(shape, dtype)
        self.taken += made.nbytes
        return made

    def to_device(self, values: Any) -> Any:
        self.taken += values.nbytes
        return self.module.to_device(values)


def check_memory(id: str, **parameters: Any) -> None:
    """Environments on numba's simulator take the memory that is said before; where less is free, none."""
    parameters = {"num_envs": 100, "device": "cuda", **parameters}
    with pytest.MonkeyPatch.context() as patch:
        device = Counted(cuda._cuda)
        patch.setattr(cuda, "_cuda", device)
        env = gym.make_vec(id, **parameters).unwrapped
        env.reset(seed=1)
        needed = env.simulator.needs(100)
        assert 0.95 * needed < device.taken < needed, (device.taken, needed)
        device = Counted(device.module, free=needed - 1)
        patch.setattr(cuda, "_cuda", device)
        with pytest.raises(InvalidParameter, match=r"num_envs: 100 environments take \d+\.\d\d GiB"):
            gym.make_vec(id, **parameters)
        assert device.taken == 0


def check_infos(told: dict[str, Any], infos: dict[str, Any], where: str, num_envs: int) -> None:
    """Compare what two environments say beside observations and results."""
    last, own = infos.get("final_info", infos), told.get("final_info", told)
    assert_same(told["repaired"], infos["repaired"] | last["repaired"], f"{where}: repaired")
    assert infos.keys() == told.keys() | {"_repaired"}
    for name, values in last["metrics"].items():
        assert_same(own["metrics"][name], values, f"{where}: {name}")
    for i in np.flatnonzero(infos.get("_final_obs", [])):
        assert told["_final_obs"][i]
        for name, values in infos["final_obs"][i].items():
            assert_same(np.asarray(host(told["final_obs"][name])[i]), np.asarray(values), f"{where}: {name}")


# On numba's simulator -------------------------------------------------------------------------

TRAJECTORIES = """
import sys
from schedgym.core import cuda
from tests.core.test_cuda import MODES, check_parity
from tests.test_all_problems import CASES, short
cuda.BLOCK = 4
for number, case in enumerate(CASES):
    id, view = case.values
    if number % 2 == int(sys.argv[1]):
        assert check_parity(id, 12, MODES[number // 2 % 2], most=300, **short(id, **view)) > 0, case.id
        print(case.id, flush=True)
"""


def may_be_refused(view: dict[str, Any]) -> bool:
    """Whether the actions of a view are examined: of each in one form."""
    return view["observation"] == "features" and view.get("action_mask", True)


REFUSALS = """
from schedgym.core import cuda
from tests.core.test_cuda import REFUSING, check_memory, check_strict, may_be_refused
from tests.test_all_problems import short
cuda.BLOCK = 4
for case in REFUSING:
    id, view = case.values
    check_memory(id, **short(id, **view))
    if may_be_refused(view):
        print(id, view["view"], check_strict(id, **short(id, **view)))
"""


def simulate(program: str, *arguments: str) -> str:
    """Run a program where numba simulates a GPU; return what it prints."""
    variables = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}
    return python("-W", "ignore", "-c", program, *arguments, **variables).stdout


@long
@pytest.mark.parametrize("half", thinned(range(2), of=2))
def test_trajectories_on_the_simulator_are_those_of_the_cpu(half: int) -> None:
    found = simulate(TRAJECTORIES, str(half)).split()
    assert found == [case.id for case in CASES[half::2]]


@long
def test_strict_actions_and_memory_on_the_simulator() -> None:
    """Views refuse some actions, but for those in which every action is feasible."""
    found = [line.split() for line in simulate(REFUSALS).splitlines()]
    shown = [(id, view["view"]) for id, view in (case.values for case in REFUSING) if may_be_refused(view)]
    assert shown and [(id, view) for id, view, _ in found] == shown
    never = {"priority", "weights", "prices", "route", "rule", "fair-rule"}
    assert {view for _, view, refused in found if refused == "0"} == never & {view for _, view in shown}


GROWTH = """
from schedgym.core import cuda
from schedgym.problems.flowtime import simulator as flowtime
from schedgym.problems.geo import workload as geo
from schedgym.problems.partial_value import simulator as partial_value
from tests.core.test_cuda import check_parity
from tests.test_all_problems import short
cuda.BLOCK = 4
flowtime.RUNS_PER_JOB, partial_value.ROWS_PER_JOB = 0, 1
make_source, reserve, grown = geo.make_source, cuda.CudaSimulator._reserve, []
def small(parameters):
    source = make_source(parameters)
    source.sizes = {**source.sizes, "task": 1}
    return source
def count(self, name, length):
    grown.append(name)
    reserve(self, name, length)
geo.make_source, cuda.CudaSimulator._reserve = small, count
for name, view, observation in (
    ("GeoAssign", "pick", "dict"),
    ("PartialValue", "priority", "features"),
    ("FlowtimePacking", "pick", "dict"),
):
    id = f"schedgym/{name}-v0"
    check_parity(id, 40, **short(id, view=view, observation=observation))
    print(name, sorted(set(grown)), flush=True)
    grown.clear()
"""


@long
def test_arrays_grow_on_the_simulator() -> None:
    found = simulate(GROWTH).splitlines()
    assert found == ["GeoAssign ['task']", "PartialValue ['run']", "FlowtimePacking ['run']"]


# On the stand-in ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stand_in() -> Iterator[HostGPU]:
    """A GPU that is the CPU; kernels are compiled once for all tests."""
    found = HostGPU()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda, "_cuda", found)
        patch.setattr(cuda, "uncontracted", contextlib.nullcontext)
        patch.setattr(envs, "require", lambda module, extra: None)
        cuda.compiled.cache_clear()
        yield found
    cuda.compiled.cache_clear()


@pytest.fixture
def gpu(stand_in: HostGPU, monkeypatch: pytest.MonkeyPatch) -> HostGPU:
    """The stand-in, with four lanes: of more environments than that several share a lane, and work space."""
    monkeypatch.setattr(cuda, "BLOCK", 2)
    monkeypatch.setattr(cuda, "MOST_LANES", 4)
    return stand_in


def views_of(*wanted: tuple[str, str]) -> list[Any]:
    return [pytest.param(f"schedgym/{id}-v0", view, id=f"{id}-{view}") for id, view in wanted]


@long
@pytest.mark.parametrize(
    ("id", "view"),
    thinned(
        views_of(
            ("QueueDelay", "pick"),
            ("FlowtimePacking", "priority"),
            ("PartialValue", "priority"),
            ("GeoAssign", "pick"),
            ("SingleJob", "place"),
            ("SingleJob", "search"),
            ("ParallelJCT", "pick"),
        ),
        of=7,
    ),
)
@pytest.mark.parametrize("mode", thinned(MODES, of=2))
def test_compiled_trajectories_are_those_of_the_cpu(id: str, view: str, mode: str, gpu: HostGPU) -> None:
    fallback = {"fallback": "gsa"} if view == "search" else {}
    parameters = short(id, view=view, observation="features", **fallback)
    assert check_parity(id, 120, mode, num_envs=9, **parameters) > 0


def make(num_envs: int = 3, **parameters: Any) -> Any:
    return gym.make_vec(ID, num_envs=num_envs, device="cuda", **SMALL | parameters).unwrapped


@long
def test_without_copies_the_arrays_are_live(gpu: HostGPU) -> None:
    env = make(copy=False)
    observation, _ = env.reset(seed=1)
    first, rewards, *_ = env.step(np.zeros(3, dtype=np.int64))
    second, others, *_ = env.step(np.zeros(3, dtype=np.int64))
    assert rewards is others
    for name in observation:
        assert first[name] is second[name] is env.simulator.observation[name]


@long
def test_other_libraries_share_the_memory(gpu: HostGPU) -> None:
    """By ``__cuda_array_interface__``: an address, a shape, strides and a type, which torch and CuPy read."""
    env = make(copy=False)
    observation, _ = env.reset(seed=1)
    shared = {name: np.asarray(Elsewhere(a.__cuda_array_interface__, a)) for name, a in observation.items()}
    actions = np.full(3, env.single_action_space.n - 1)
    before = shared["clock"].copy()
    observation, rewards, *_ = env.step(Elsewhere(actions.__array_interface__, actions))
    assert (shared["clock"] > before).any()
    for name, array in observation.items():
        assert np.shares_memory(shared[name], array)
        assert_same(array, shared[name], name)
    kept = rewards.__cuda_array_interface__
    assert (kept["shape"], kept["typestr"], kept["data"][1]) == ((3,), "<f8", False)


@long
def test_malformed_actions(gpu: HostGPU) -> None:
    env = make()
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(3, dtype=np.int64))
    env.reset(seed=1)
    for actions, what in (
        (np.zeros(2, dtype=np.int64), "shape"),
        (np.zeros(3), "whole numbers"),
        (gpu.to_device(np.zeros(3)), "whole numbers"),
        (gpu.to_device(np.zeros(4, dtype=np.int64)), "shape"),
        (gpu.to_device(np.zeros(6, dtype=np.int64))[::2], "contiguous"),
    ):
        with pytest.raises(InvalidAction, match=what):
            env.step(actions)
    env.step(gpu.to_device(np.zeros(3, dtype=np.int32)))


@long
def test_seeds_and_partial_resets(gpu: HostGPU) -> None:
    here = gym.make_vec(ID, num_envs=3, autoreset_mode="Disabled", **SMALL).unwrapped
    there = make(autoreset_mode="Disabled")
    rng = np.random.default_rng(0)
    options: list[tuple[Any, Any]] = [
        ([4, 9, 2], None),
        (None, None),
        (7, {"episode": 3}),
        ([None, 8, None], {"reset_mask": np.array([False, True, True])}),
    ]
    for seed, given in options:
        found, expected = (env.reset(seed=seed, options=given)[0] for env in (there, here))
        for name, array in expected.items():
            assert_same(found[name], array, name)
        actions = actions_of(here, expected, rng)
        found, expected = (env.step(actions)[0] for env in (there, here))
        for name, array in expected.items():
            assert_same(found[name], array, name)
    while not here._ended.any():
        actions = actions_of(here, expected, rng)
        expected = here.step(actions)[0]
        there.step(actions)
    i = int(np.argmax(here._ended))
    for env in (here, there):
        with pytest.raises(ResetNeeded, match=f"environment {i} has ended"):
            env.step(actions)
    mask = here._ended.copy()
    for env in (here, there):
        env.reset(options={"reset_mask": mask})
    found, expected = (env.step(actions)[0] for env in (there, here))
    for name, array in expected.items():
        assert_same(found[name], array, name)


@long
def test_a_workload_for_all(gpu: HostGPU, tmp_path: Path) -> None:
    from schedgym import save_workload
    from schedgym.problems.queue_delay.workload import make_workload

    path = tmp_path / "toy.json"
    save_workload(make_workload([(0.0, 3.0, 0.5, 0.5), (1.0, 2.0, 0.9, 0.2)], [(1.0, 1.0)]), path)
    parameters = {"workload": str(path), "window": 2}
    assert check_parity(ID, 20, **parameters) > 0
    env = gym.make_vec(ID, num_envs=2, device="cuda", **parameters)
    with pytest.raises(InvalidParameter, match="cannot be given on a GPU"):
        env.reset(options={"workload": str(path)})


@long
def test_what_a_gpu_does_not_have(gpu: HostGPU) -> None:
    env = make(render_mode="ansi")
    env.reset(seed=1)
    assert len(env.render()) == 3
    with pytest.raises(InvalidParameter, match="threads"):
        make(threads=2)
    with pytest.raises(InvalidParameter, match="pickled"):
        copy.deepcopy(env)


# Without a GPU --------------------------------------------------------------------------------


def test_without_numba_cuda_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.import_module

    def find(name: str) -> Any:
        if name == "numba_cuda":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found(name)

    monkeypatch.setattr(importlib, "import_module", find)
    monkeypatch.setattr(envs, "require", extras.require)  # not the stand-in's
    with pytest.raises(DependencyNotInstalled, match=r'pip install "schedgym\[cuda\]"'):
        make()


def test_without_a_library_of_nvidia_the_error_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> bool:
        raise RuntimeError('Failure finding "libnvvm.so": No such file: libnvvm.so')

    monkeypatch.setattr(envs, "require", lambda module, extra: None)
    monkeypatch.setattr(cuda, "_cuda", SimpleNamespace(is_available=fail))
    with pytest.raises(
        DependencyNotInstalled, match=r'finding "libnvvm\.so"; run: pip install "schedgym\[cuda\]"'
    ):
        make()


def test_without_a_gpu_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envs, "require", lambda module, extra: None)
    monkeypatch.setattr(cuda, "_cuda", SimpleNamespace(is_available=lambda: False))
    with pytest.raises(InvalidParameter, match="no NVIDIA GPU"):
        make()


def test_other_devices_are_unknown() -> None:
    with pytest.raises(UnknownName, match="device 'gpu'"):
        gym.make_vec(ID, num_envs=2, device="gpu", **SMALL)
    env = gym.make_vec(ID, num_envs=2, device="cpu", **SMALL)
    assert type(env.unwrapped).__name__ == "QueueDelayVectorEnv"
