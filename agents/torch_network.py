"""The network of :mod:`schedgym.agents.network` as a torch module, and the draws of its actions.

Actions that the observation closes have probability 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.agents.network import cut_set, estimate, forward, prepare
from schedgym.agents.views import Layout
from schedgym.core.arrays import Floats32
from schedgym.errors import InvalidParameter
from schedgym.extras import require

torch: Any = require("torch", "agents")
_Module: Any = torch.nn.Module

Tensor = Any
Observation = dict[str, Tensor]


def find_device(name: str) -> Any:
    """Torch's device of a name; "auto": a GPU where there is one, else the CPU.

    Raises:
        InvalidParameter: for a device that is not there, or is neither a CPU nor a GPU of NVIDIA.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        found = torch.zeros(1, device=name).device
    except (RuntimeError, AssertionError) as error:  # torch compiled without CUDA fails an assertion
        raise InvalidParameter(f"device: {name!r} is not there: {str(error).splitlines()[0]}") from None
    if found.type not in ("cpu", "cuda"):  # others lack float64
        raise InvalidParameter(f"device: must be cpu, cuda or auto, got {name!r}")
    return found


class Random:
    """The random numbers of a training: on the CPU those of numpy, on a GPU those of torch, which stay there.

    Args:
        seed: of numpy's generator, by which that of torch is seeded.
        device: torch's device.
    """

    def __init__(self, seed: Sequence[int], device: Any) -> None:
        self.device, self.rng, self.generator = device, np.random.default_rng(seed), None
        if device.type != "cpu":
            self.generator = torch.Generator(device)
            self.generator.manual_seed(int(self.rng.integers(2**62)))

    def normal(self, *shape: int) -> Tensor:
        """Numbers of the normal distribution, float32."""
        if self.generator is None:
            return torch.from_numpy(self.rng.standard_normal(shape, dtype=np.float32))
        return torch.randn(shape, generator=self.generator, device=self.device)

    def gumbel(self, *shape: int) -> Tensor:
        """Numbers of Gumbel's distribution, float32: scores with it have their largest as softmax draws."""
        if self.generator is None:
            drawn = self.rng.standard_exponential(shape, dtype=np.float32)
            return torch.from_numpy(-np.log(drawn + 1e-30))
        drawn = torch.empty(shape, device=self.device).exponential_(generator=self.generator)
        return -(drawn + 1e-30).log()

    def permutation(self, count: int) -> Tensor:
        """The whole numbers below ``count`` in random order."""
        if self.generator is None:
            return torch.from_numpy(self.rng.permutation(count))
        return torch.randperm(count, generator=self.generator, device=self.device)

    def state(self) -> dict[str, Any]:
        """The state of the generator as JSON data, for :meth:`restore`."""
        if self.generator is None:
            return dict(self.rng.bit_generator.state)
        return {"torch": self.generator.get_state().numpy().tobytes().hex()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a :meth:`state`.

        Raises:
            InvalidParameter: if the state is of a training on another kind of device.
        """
        if ("torch" in state) != (self.generator is not None):
            raise InvalidParameter(f"checkpoint: of a training on another device than {self.device.type!r}")
        if self.generator is None:
            self.rng.bit_generator.state = state
        else:
            bytes_ = bytearray.fromhex(state["torch"])
            self.generator.set_state(torch.frombuffer(bytes_, dtype=torch.uint8))


class Network(_Module):  # type: ignore[misc]
    """The network of :mod:`schedgym.agents.network`, the critic too.

    Args:
        layout: layout of the environment's view.
        weights: name -> array, as :func:`schedgym.agents.network.initial` gives them.
    """

    def __init__(self, layout: Layout, weights: Mapping[str, npt.NDArray[Any]]) -> None:
        super().__init__()
        self.layout, self.cut = layout, cut_set(layout)
        self.cut_mask = "" if self.cut is None else str(self.cut.mask)
        for name, array in weights.items():
            self.register_parameter(name, torch.nn.Parameter(torch.tensor(array)))

    def scores(self, observation: Observation) -> Tensor:
        """Scores of a batch, [B, size]."""
        return forward(self.layout, self._parameters, observation, torch)

    def values(self, observation: Observation) -> Tensor:
        """Values of a batch, [B]."""
        return estimate(self.layout, self._parameters, observation, torch)

    def see(self, observation: Mapping[str, Any]) -> Observation:
        """A batch of buffers as input of the network: a copy, without last tokens that are empty everywhere.

        The buffers are arrays of numpy, or tensors on the network's device.
        """
        like = next(iter(self._parameters.values()))
        seen, count = {name: torch.as_tensor(array) for name, array in observation.items()}, None
        if self.cut is not None:
            there = observation[self.cut_mask].any(0)
            filled = np.flatnonzero(there) if isinstance(there, np.ndarray) else there.nonzero()
            count = int(filled[-1]) + 1 if len(filled) else 1
        return prepare(
            self.layout, {n: a.to(like.device) for n, a in self.first(seen, count).items()}, like, torch
        )

    def first(self, observation: Observation, count: int | None) -> Observation:
        """The observation with the first ``count`` tokens of the set that may be cut; None: all."""
        if self.cut is None or count is None:
            return observation
        keys = (self.cut.key, self.cut_mask)
        return {name: array[:, :count] if name in keys else array for name, array in observation.items()}

    def lengths(self, observation: Observation) -> Tensor:
        """Tokens of each row up to the last that is there, int64 [B]; 1 where none may be cut."""
        if self.cut is None:
            return torch.ones_like(observation["globals"][:, 0], dtype=torch.int64)
        mask = observation[self.cut_mask]
        return (mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)).amax(dim=1).clamp(min=1)

    def join(self, observations: list[Observation]) -> Observation:
        """Batches one below the other; shorter ones are filled up with tokens that are not there."""
        keys = () if self.cut is None else (self.cut.key, self.cut_mask)
        found = {}
        for name, first in observations[0].items():
            parts = [observation[name] for observation in observations]
            if name not in keys:
                found[name] = torch.cat(parts)
                continue
            longest = max(part.shape[1] for part in parts)
            joined = first.new_zeros((len(parts), len(first), longest, *first.shape[2:]))
            for part, place in zip(parts, joined, strict=True):
                place[:, : part.shape[1]] = part
            found[name] = joined.flatten(0, 1)
        return found

    def sample(self, scores: Tensor, noise: Tensor) -> Tensor:
        """Draw actions by their probabilities: softmax over the scores, or for a Box, normal noise on them.

        Args:
            scores: [B, size].
            noise: [B, size], of Gumbel's distribution, or for a Box of the normal one.

        Returns:
            int64 [B], the chosen scores; for a Box the scores with noise, float [B, size].
        """
        if self.layout.kind != "scores":
            return (scores + noise).argmax(dim=-1)
        return scores + noise * self._parameters["log_std"].exp()

    def judge(self, observation: Observation, scores: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """The logarithms of the probabilities of actions, [B], and the entropies, [B].

        Args:
            observation: a batch.
            scores: its scores, [B, size].
            actions: as :meth:`sample` gives them.
        """
        if self.layout.kind != "scores":
            logs = torch.log_softmax(scores, dim=-1)
            return logs.gather(-1, actions[:, None])[:, 0], -(logs.exp() * logs).sum(-1)
        log_std = self._parameters["log_std"]
        there = self.present(observation, scores)
        count = there.shape[-1]  # without the tokens that are cut off
        away = (actions[:, :count] - scores[:, :count]) / log_std.exp()
        each = -0.5 * away.square() - log_std - 0.5 * np.log(2.0 * np.pi)
        entropy = there.sum(-1) * (0.5 + 0.5 * np.log(2.0 * np.pi) + log_std)
        return torch.where(there, each, 0.0).sum(-1), entropy

    def present(self, observation: Observation, scores: Tensor) -> Tensor:
        """For a Box, which of the scores' tokens are there, bool [B, n]."""
        mask = self.layout.segments[0].tokens[0].mask
        return torch.ones_like(scores, dtype=bool) if mask is None else observation[mask] != 0

    def decide(self, observation: Mapping[str, npt.NDArray[Any]]) -> Any:
        """The most probable actions for a batch of live buffers, as the environments take them."""
        with torch.no_grad():
            scores = self.scores(self.see(observation)).cpu().numpy()
        return self.layout.decode(scores, observation)

    def get_weights(self) -> dict[str, Floats32]:
        """Name -> array of all weights: copies."""
        return {n: weight.detach().cpu().numpy().copy() for n, weight in self._parameters.items()}

    def set_weights(self, weights: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take weights over.

        Raises:
            InvalidParameter: if a name is unknown or missing, or a shape differs; nothing is changed then.
        """
        known = {name: tuple(weight.shape) for name, weight in self._parameters.items()}
        if known != {name: array.shape for name, array in weights.items()}:
            raise InvalidParameter("weights: have other names or shapes than those of this network")
        with torch.no_grad():
            for name, array in weights.items():
                self._parameters[name].copy_(torch.as_tensor(array))
