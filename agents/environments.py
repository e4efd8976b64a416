"""The environments of a training, on the CPU or on a GPU, with results as tensors of torch.

On a GPU the environments are those of ``gym.make_vec(..., device="cuda")`` (see :mod:`schedgym.core.cuda`);
tensors share the memory of their arrays, and actions are taken from where torch writes them. Seeds, episodes
and the order of events are the same on both.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.agents.modules import find_device
from schedgym.agents.rollout import History, advance, make_simulator
from schedgym.agents.views import Layout
from schedgym.core.problem import get_problem
from schedgym.envs import make_cuda_simulator
from schedgym.errors import InvalidParameter
from schedgym.extras import require

__all__ = ["Environments", "as_tensor", "find_devices", "make_environments"]

torch: Any = require("torch", "agents")

Tensor = Any


def as_tensor(array: Any) -> Tensor:
    """A tensor that shares the memory of an array: of numpy, on a GPU, or of numba's simulator of one."""
    if hasattr(array, "__cuda_array_interface__"):
        return torch.as_tensor(array, device="cuda")
    return torch.from_numpy(getattr(array, "_ary", array))


class Environments(ABC):
    """``num_envs`` environments.

    Args:
        simulator: a Simulator or CudaSimulator, with ``observation="features"``.
        device: torch's device.
        whole: environments whose episode ends wait for :meth:`begin`; else they begin the next one at once.

    Attributes:
        live: True for the environments that play, bool [B].
        running: number of these.
        history: actions from which the state of the environments is restored.
    """

    def __init__(self, simulator: Any, device: Any, whole: bool) -> None:
        self.simulator, self.device, self.whole = simulator, device, whole
        self.history = History(simulator)
        self.running = simulator.num_envs
        self.live = torch.ones(self.running, dtype=torch.bool, device=device)

    def seed(self, seeds: Iterable[int]) -> None:
        """Let the next episode of each environment be episode 0 of its seed."""
        for i, seed in enumerate(seeds):
            self.simulator.seed(i, seed)

    def begin(self) -> None:
        """Start the next episode of every environment."""
        self.simulator.begin(np.ones(self.simulator.num_envs, dtype=bool))
        self.live, self.running = torch.ones_like(self.live), self.simulator.num_envs

    def step(self, layout: Layout, chosen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Carry out actions in the environments that play.

        Args:
            layout: layout of the environments' view.
            chosen: as for :meth:`Layout.take`, [B, ...]; kept, and not to be changed.

        Returns:
            rewards, float64, 0 where an environment waits; which episodes ended; and which environments
            played: [B] each, on torch's device.

        Raises:
            InvalidAction: if an environment refuses its action; then nothing has changed.
        """
        live = self.live
        actions = self._take(layout, chosen)
        ended = self._advance(actions)
        reward, end = self._results()
        if self.running < len(live):
            reward, end = torch.where(live, reward, 0.0), end & live
        if not self.whole:
            self.history.add(actions)
        if ended and self.whole:
            self.live, self.running = live & ~end, self.running - ended
        elif ended:
            done = end.cpu().numpy()
            self._begin(done)
            self.history.end(done)
        return reward, end, live

    @property
    @abstractmethod
    def observation(self) -> Mapping[str, Any]:
        """Name -> live array of numpy, or tensor on a GPU, [B, ...]."""

    @abstractmethod
    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Bring every environment to the state of a :attr:`history`."""

    @abstractmethod
    def _take(self, layout: Layout, chosen: Tensor) -> Any:
        """The actions as the simulator takes them."""

    @abstractmethod
    def _advance(self, actions: Any) -> int:
        """Advance the environments that play; return how many episodes ended."""

    @abstractmethod
    def _results(self) -> tuple[Tensor, Tensor]:
        """The rewards of the last step, and whether the episode is over, [B]: copies."""

    @abstractmethod
    def _begin(self, done: npt.NDArray[np.bool_]) -> None:
        """Start the next episode of the environments whose episode has ended."""


class _OnCPU(Environments):
    """On the CPU; torch may compute elsewhere."""

    @property
    def observation(self) -> Mapping[str, Any]:
        return dict(self.simulator.observation)

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        self.history.restore(state)

    def _take(self, layout: Layout, chosen: Tensor) -> Any:
        return layout.take(chosen.cpu().numpy(), self.observation)

    def _advance(self, actions: Any) -> int:
        return advance(self.simulator, actions, self.live.cpu().numpy())

    def _results(self) -> tuple[Tensor, Tensor]:
        simulator = self.simulator
        told = simulator.reward.copy(), simulator.terminated | simulator.truncated
        reward, over = (torch.from_numpy(array).to(self.device) for array in told)
        return reward, over

    def _begin(self, done: npt.NDArray[np.bool_]) -> None:
        self.simulator.begin(done)


class _OnGPU(Environments):
    """On a GPU, as is torch; where numba simulates a GPU, torch computes on the CPU."""

    def __init__(self, simulator: Any, device: Any, whole: bool) -> None:
        super().__init__(simulator, device, whole)
        self._shown: Any = None
        self._tensors: dict[str, Tensor] = {}
        results = simulator.results
        told = (results.reward, results.terminated, results.truncated, results.ended)
        self._reward, self._terminated, self._truncated, self._ended = map(as_tensor, told)

    @property
    def observation(self) -> Mapping[str, Any]:
        shown = self.simulator.observation
        if shown is not self._shown:  # at first, and where arrays have grown
            self._shown, self._tensors = shown, {name: as_tensor(array) for name, array in shown.items()}
        return self._tensors

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        self.history.restore(state, self._replay)
        self._ended.fill_(False)
        self.simulator.waiting = 0

    def _replay(self, actions: npt.NDArray[Any], live: npt.NDArray[np.bool_]) -> int:
        """Let some environments take their actions; for the others' sake their episodes count as over."""
        waits = torch.from_numpy(~live).to(self.device)
        self._ended.copy_(waits)
        self.simulator.waiting = int(np.count_nonzero(~live))
        return self._play(torch.from_numpy(actions).to(self.device), hold=True)

    def _take(self, layout: Layout, chosen: Tensor) -> Any:
        return layout.take(chosen, self.observation, torch).contiguous()

    def _advance(self, actions: Any) -> int:
        return self._play(actions, hold=self.whole)

    def _play(self, actions: Tensor, hold: bool) -> int:
        simulator = self.simulator
        ended: int = simulator.step(simulator.taken(actions if actions.is_cuda else actions.numpy()), hold)
        if ended < 0:
            raise simulator.refusal(-ended - 1, f"actions[{-ended - 1}]")
        return ended

    def _results(self) -> tuple[Tensor, Tensor]:
        return self._reward.clone(), self._terminated | self._truncated

    def _begin(self, done: npt.NDArray[np.bool_]) -> None:
        self.simulator.begin_ended()


def find_devices(name: str) -> tuple[Any, bool]:
    """Torch's device of a name, and whether environments are on a GPU; numba's simulated GPU is on the CPU.

    Raises:
        InvalidParameter: for a device that is not there, or a GPU that is not the first.
    """
    simulated = name == "cuda" and os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
    found = find_device("cpu" if simulated else name)
    if found.type == "cuda" and found.index:
        raise InvalidParameter(
            f"device: environments run on the first GPU that is visible, not {name!r}: name it in "
            "CUDA_VISIBLE_DEVICES"
        )
    return found, simulated or found.type == "cuda"


def make_environments(
    id: str, parameters: Mapping[str, Any], num_envs: int, device: str = "cpu", whole: bool = False
) -> Environments:
    """The environments of a training, with ``observation="features"``.

    Args:
        id: environment id.
        parameters: parameters of the environment.
        num_envs: number of environments.
        device: name of torch's device, or "auto": see :func:`~schedgym.agents.modules.find_device`. With
            "cuda" the environments are there, too.
        whole: see :class:`Environments`.

    Raises:
        InvalidParameter: for a device that is not there, or a GPU that is not the first, or whose memory is
            too small.
        gymnasium.error.DependencyNotInstalled: for a GPU without the extra ``cuda``.
    """
    found, on_gpu = find_devices(device)
    if not on_gpu:
        return _OnCPU(make_simulator(id, parameters, num_envs), found, whole)
    features = {**parameters, "observation": "features"}
    return _OnGPU(make_cuda_simulator(get_problem(id), id, num_envs, features), found, whole)
