"""Environments on a GPU, without one: on numba's simulator, and on a stand-in that compiles for the CPU."""

from __future__ import annotations

import contextlib
import copy
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled, ResetNeeded
from gymnasium.vector import AutoresetMode

import schedgym.extras
from schedgym import envs
from schedgym.core import cuda
from schedgym.errors import InvalidAction, InvalidParameter, UnknownName
from tests.core.host_gpu import HostGPU
from tests.long import some
from tests.test_all_problems import CASES, short

ID = "schedgym/QueueDelay-v0"
SMALL = {"tasks": 8, "servers": 3, "window": 4}
MODES = ("NextStep", "SameStep")


def host(array: Any) -> Any:
    """A numpy array of one in the GPU's memory."""
    return array.copy_to_host() if hasattr(array, "copy_to_host") else array


def assert_same(found: Any, expected: Any, what: str) -> None:
    found = host(found)
    assert found.dtype == expected.dtype and found.shape == expected.shape, what
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


def check_parity(id: str, steps: int, mode: str = "NextStep", num_envs: int = 3, **parameters: Any) -> int:
    """Compare an environment on the GPU with that on the CPU, step for step; return how many episodes ended."""
    make: Callable[..., Any] = lambda **others: gym.make_vec(
        id, num_envs=num_envs, autoreset_mode=mode, **others, **parameters
    )
    there, here = make(device="cuda"), make()
    rng = np.random.default_rng(0)
    here.action_space.seed(1)
    observation = here.reset(seed=5)[0]
    seen, ends = there.reset(seed=5)[0], 0
    for step in range(steps):
        assert seen.keys() == observation.keys()
        for name in observation:
            assert_same(seen[name], observation[name], f"step {step}: {name}")
        actions = actions_of(here, observation, rng)
        observation, *results, infos = here.step(actions)
        seen, *found, told = there.step(actions)
        for name, one, other in zip(("rewards", "terminated", "truncated"), found, results, strict=True):
            assert_same(one, other, f"step {step}: {name}")
        ends += int((results[1] | results[2]).sum())
        check_infos(told, infos, f"step {step}", num_envs)
    for i in range(num_envs):
        for name in ("job", "server", "start", "end", "amount"):
            own = getattr(there.unwrapped.record(i), name)
            np.testing.assert_array_equal(own, getattr(here.unwrapped.record(i), name))
    return ends


def check_infos(told: dict[str, Any], infos: dict[str, Any], where: str, num_envs: int) -> None:
    """Compare what two environments say beside observations and results."""
    last, own = infos.get("final_info", infos), told.get("final_info", told)
    repaired = np.zeros(num_envs, dtype=bool)
    for part in (infos, last):
        repaired |= part.get("repaired", repaired)
    assert_same(told["repaired"], repaired, f"{where}: repaired")
    assert ("metrics" in own) == ("metrics" in last)
    for name, values in last.get("metrics", {}).items():
        np.testing.assert_array_equal(own["metrics"][name], values, err_msg=f"{where}: {name}")
    assert ("final_obs" in told) == ("final_obs" in infos)
    for i in np.flatnonzero(infos.get("_final_obs", [])):
        assert told["_final_obs"][i]
        for name, values in infos["final_obs"][i].items():
            np.testing.assert_array_equal(host(told["final_obs"][name])[i], values, err_msg=where)


# On numba's simulator -------------------------------------------------------------------------

SIMULATION = """
import sys
from schedgym.core import cuda
from tests.core.test_cuda import check_parity
from tests.test_all_problems import CASES, short
cuda.BLOCK = 4
ends = 0
for number in map(int, sys.argv[1:]):
    id, view = CASES[number].values
    ends += check_parity(id, 12, ("NextStep", "SameStep")[number % 2], **short(id, **view))
print(ends)
"""


def simulate(program: str, *arguments: str) -> str:
    """Run a program where numba simulates a GPU; return what it prints."""
    variables = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        env=variables,
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("first", some(range(6)))
def test_trajectories_on_the_simulator_are_those_of_the_cpu(first: int) -> None:
    assert int(simulate(SIMULATION, *map(str, range(first, len(CASES), 6)))) > 0


# On the stand-in ------------------------------------------------------------------------------


@contextlib.contextmanager
def stand_in(monkeypatch: pytest.MonkeyPatch, free: int = 2**40) -> Iterator[HostGPU]:
    """Let environments run on a GPU that is the CPU."""
    gpu = HostGPU(free)
    monkeypatch.setattr(cuda, "_cuda", gpu)
    monkeypatch.setattr(cuda, "uncontracted", contextlib.nullcontext)
    monkeypatch.setattr(envs, "require", lambda module, extra: None)
    cuda.compiled.cache_clear()
    yield gpu
    cuda.compiled.cache_clear()


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[HostGPU]:
    with stand_in(monkeypatch) as found:
        yield found


def views_of(*wanted: tuple[str, str]) -> list[Any]:
    return [pytest.param(f"schedgym/{id}-v0", view, id=f"{id}-{view}") for id, view in wanted]


@pytest.mark.parametrize(
    ("id", "view"),
    some(
        views_of(
            ("QueueDelay", "pick"),
            ("FlowtimePacking", "priority"),
            ("PartialValue", "priority"),
            ("GeoAssign", "pick"),
            ("SingleJob", "place"),
            ("ParallelJCT", "pick"),
        )
    ),
)
@pytest.mark.parametrize("mode", MODES)
def test_compiled_trajectories_are_those_of_the_cpu(
    id: str, view: str, mode: str, gpu: HostGPU, monkeypatch: pytest.MonkeyPatch
) -> None:
    # more environments than lanes: they take turns, and share work space
    monkeypatch.setattr(cuda, "BLOCK", 2)
    monkeypatch.setattr(cuda, "MOST_LANES", 4)
    parameters = short(id, view=view, observation="features")
    assert check_parity(id, 120, mode, num_envs=9, **parameters) > 0


def make(num_envs: int = 3, **parameters: Any) -> Any:
    return gym.make_vec(ID, num_envs=num_envs, device="cuda", **SMALL | parameters).unwrapped


def test_arrays_grow(gpu: HostGPU) -> None:
    # a log of one row, which every step finds short, and arrays for one task, which every draw finds short
    assert gpu.allocated == 0


def test_memory_is_counted_before_it_is_taken(gpu: HostGPU, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make(num_envs=1000)
    env.reset(seed=1)
    env.step(np.zeros(1000, dtype=np.int64))
    taken = gpu.allocated
    with stand_in(monkeypatch, free=1) as other, pytest.raises(InvalidParameter, match="1000 environments take"):
        make(num_envs=1000)
    assert other.allocated == 0
    needed = env.simulator.needs(1000)
    # what is handed out is copied at the reset and at the step, and counted once
    assert needed < taken < 1.6 * needed


def test_without_copies_the_arrays_are_live(gpu: HostGPU) -> None:
    env = make(copy=False)
    observation, _ = env.reset(seed=1)
    first, rewards, *_ = env.step(np.zeros(3, dtype=np.int64))
    second, others, *_ = env.step(np.zeros(3, dtype=np.int64))
    assert rewards is others
    for name in observation:
        assert first[name] is second[name] is env.simulator.observation[name]


def test_a_refused_action_changes_nothing(gpu: HostGPU) -> None:
    env = make(strict=True, copy=False)
    observation, _ = env.reset(seed=1)
    before = {name: host(array) for name, array in observation.items()}
    state = env.simulator.fetch(0).state.scalars[:1].copy()
    slots = env.single_action_space.n - 1
    empty = np.array([slots, slots - 1, slots])  # the last slot of the window has no task yet
    with pytest.raises(InvalidAction, match=r"actions\[1\]: .* is infeasible"):
        env.step(empty)
    with pytest.raises(InvalidAction, match=r"actions\[2\]: must be from 0 to"):
        env.step(np.array([slots, slots, slots + 1]))
    for name, array in env.simulator.observation.items():
        np.testing.assert_array_equal(host(array), before[name])
    np.testing.assert_array_equal(env.simulator.fetch(0).state.scalars[:1], state)
    env.step(np.full(3, slots))


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
    def find(name: str) -> Any:
        assert name == "numba_cuda"
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(schedgym.extras.importlib, "import_module", find)
    with pytest.raises(DependencyNotInstalled, match=r'pip install "schedgym\[cuda\]"'):
        make()


def test_without_a_gpu_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envs, "require", lambda module, extra: None)
    monkeypatch.setattr(cuda._cuda, "is_available", lambda: False)
    with pytest.raises(InvalidParameter, match="no NVIDIA GPU"):
        make()


def test_other_devices_are_unknown() -> None:
    with pytest.raises(UnknownName, match="device 'gpu'"):
        gym.make_vec(ID, num_envs=2, device="gpu", **SMALL)
    assert gym.make_vec(ID, num_envs=2, device="cpu", **SMALL).unwrapped.autoreset_mode is AutoresetMode.NEXT_STEP


def test_nothing_of_it_is_imported_otherwise() -> None:
    program = (
        "import sys, gymnasium as gym, schedgym\n"
        f"gym.make_vec({ID!r}, num_envs=2).reset(seed=1)\n"
        "assert not [name for name in sys.modules if 'cuda' in name], sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
