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

from schedgym.agents import simulation
from schedgym.agents.torch_network import find_device
from schedgym.agents.views import Layout
from schedgym.core.problem import get_problem
from schedgym.envs import make_cuda_simulator
from schedgym.errors import InvalidParameter
from schedgym.extras import require

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
    """

    def __init__(self, simulator: Any, device: Any, whole: bool) -> None:
        self.simulator, self.device, self.whole = simulator, device, whole
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
            chosen: as for :meth:`Layout.take`, [B, ...].

        Returns:
            rewards, float64, 0 where an environment waits; which episodes ended; and which environments
            played: [B] each, on torch's device.

        Raises:
            InvalidAction: if an environment refuses its action; then nothing has changed.
        """
        live = self.live
        ended = self._advance(self._take(layout, chosen))
        reward, end = self._results()
        if self.running < len(live):
            reward, end = torch.where(live, reward, 0.0), end & live
        if ended and self.whole:
            self.live, self.running = live & ~end, self.running - ended
        elif ended:
            self._begin(end)
        return reward, end, live

    @property
    @abstractmethod
    def observation(self) -> Mapping[str, Any]:
        """Name -> live array of numpy, or tensor on a GPU, [B, ...]."""

    @abstractmethod
    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The state of every environment between two updates, as arrays: copies."""

    @abstractmethod
    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Bring every environment to a :meth:`state`; InvalidParameter if it does not fit."""

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
    def _begin(self, done: Tensor) -> None:
        """Start the next episode of the environments whose episode has ended."""


class _OnCPU(Environments):
    """On the CPU; torch may compute elsewhere."""

    @property
    def observation(self) -> Mapping[str, Any]:
        return dict(self.simulator.observation)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        return simulation.state_of(self.simulator)

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        simulation.restore_state(self.simulator, state)

    def _take(self, layout: Layout, chosen: Tensor) -> Any:
        return layout.take(chosen.cpu().numpy(), self.observation)

    def _advance(self, actions: Any) -> int:
        return simulation.advance(self.simulator, actions, self.live.cpu().numpy())

    def _results(self) -> tuple[Tensor, Tensor]:
        simulator = self.simulator
        told = simulator.reward.copy(), simulator.terminated | simulator.truncated
        reward, over = (torch.from_numpy(array).to(self.device) for array in told)
        return reward, over

    def _begin(self, done: Tensor) -> None:
        self.simulator.begin(done.cpu().numpy())


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

    def state(self) -> dict[str, npt.NDArray[Any]]:
        simulator, template = self.simulator, self.simulator.template
        places = {"seeds": simulator.seeds.copy(), "episodes": simulator.episodes.copy()}
        places["sizes"] = np.array(list(template.sizes.values()))
        return places | {
            name: simulator.memory[id(array)].rows(0, simulator.num_envs)
            for name, array in simulation.arrays_of(template).items()
        }

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        simulator, template = self.simulator, self.simulator.template
        simulator.seeds[:] = state["seeds"]
        simulator.episodes[:] = state["episodes"] - 1  # which counts up when an episode begins
        self.begin()
        for name, length in zip(template.sizes, state["sizes"].tolist(), strict=True):
            if length > template.sizes[name]:
                simulator._reserve(name, length)
        for name, array in simulation.arrays_of(template).items():
            memory = simulator.memory[id(array)]
            rows = memory.rows(0, simulator.num_envs)
            simulation.overwrite(rows, state, name)
            if rows.size:
                bytes_ = torch.frombuffer(bytearray(rows.tobytes()), dtype=torch.uint8)
                as_tensor(memory.bytes)[: rows.nbytes].copy_(bytes_)

    def _take(self, layout: Layout, chosen: Tensor) -> Any:
        return layout.take(chosen, self.observation, torch).contiguous()

    def _advance(self, actions: Tensor) -> int:
        simulator = self.simulator
        given = simulator.taken(actions if actions.is_cuda else actions.numpy())
        ended: int = simulator.step(given, hold=self.whole)
        if ended < 0:
            raise simulator.refusal(-ended - 1, f"actions[{-ended - 1}]")
        return ended

    def _results(self) -> tuple[Tensor, Tensor]:
        return self._reward.clone(), self._terminated | self._truncated

    def _begin(self, done: Tensor) -> None:
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
        device: name of torch's device, or "auto", see :func:`~schedgym.agents.torch_network.find_device`;
            with "cuda" the environments are there, too.
        whole: see :class:`Environments`.

    Raises:
        InvalidParameter: for a device that is not there, or a GPU that is not the first, or whose memory is
            too small.
        gymnasium.error.DependencyNotInstalled: for a GPU without the extra ``cuda``.
    """
    found, on_gpu = find_devices(device)
    if not on_gpu:
        return _OnCPU(simulation.make_simulator(id, parameters, num_envs), found, whole)
    features = {**parameters, "observation": "features"}
    return _OnGPU(make_cuda_simulator(get_problem(id), id, num_envs, features), found, whole)
