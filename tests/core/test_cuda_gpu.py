"""Environments on a real GPU; without one these tests are skipped."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

from tests.core import test_cuda
from tests.test_all_problems import CASES, short


def has_gpu() -> bool:
    """Return True if numba-cuda is installed and finds a GPU."""
    if importlib.util.find_spec("numba_cuda") is None:
        return False
    from numba import cuda

    return bool(cuda.is_available())


pytestmark = pytest.mark.skipif(not has_gpu(), reason="needs an NVIDIA GPU, and the extra cuda")


@pytest.mark.parametrize(("id", "view"), CASES)
def test_trajectories_are_those_of_the_cpu(
    id: str, view: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # workloads are drawn by logarithms and powers of another library
    monkeypatch.setattr(test_cuda, "ERRORS", {np.float64: 1e-12, np.float32: 1e-6})
    test_cuda.check_parity(id, 50, num_envs=100, **short(id, **view))


def test_torch_shares_the_memory() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this torch knows no GPU")
    env = test_cuda.make(num_envs=100, copy=False)
    observation, _ = env.reset(seed=1)
    shared = torch.as_tensor(observation["clock"], device="cuda")
    actions = torch.full((100,), int(env.single_action_space.n) - 1, device="cuda")
    env.step(actions)
    np.testing.assert_array_equal(shared.cpu().numpy(), observation["clock"].copy_to_host())
