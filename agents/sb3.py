"""The way in for stable-baselines3: environments, the network as a policy for PPO, and models in evaluations.

``make_vec_env`` makes native vector environments, whose steps equal those of a ``DummyVecEnv`` of scalar
environments wrapped in ``Monitor``, at the speed of the compiled kernels. ``TokenPolicy`` is the network of
:mod:`schedgym.agents.network` as a policy for ``PPO``. ``ModelPolicy`` lets a trained model act in
evaluations.
"""

from __future__ import annotations

import functools
import inspect
import math
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import schedgym  # noqa: F401  (registers the ids)
from schedgym.agents.agent_policy import OWN
from schedgym.agents.network import initial, prepare
from schedgym.agents.simulation import restore_state, state_of
from schedgym.agents.torch_network import Network
from schedgym.agents.views import make_layout
from schedgym.core.arrays import Flags, Floats32
from schedgym.core.policy import Interface
from schedgym.core.problem import get_problem
from schedgym.core.tokens import effective_parameters, tokens_of
from schedgym.envs import CudaVectorEnv, SchedulingVectorEnv
from schedgym.errors import InvalidParameter
from schedgym.extras import require

torch: Any = require("torch", "agents")
_VecEnv: Any = require("stable_baselines3.common.vec_env", "agents").VecEnv
_BasePolicy: Any = require("stable_baselines3.common.policies", "agents").BasePolicy

Tensor = Any


def action_masks(space: spaces.Space[Any], observation: dict[str, Any], num_envs: int) -> Flags:
    """The masks of a batch of observations in the form of sb3-contrib; all true where there are none.

    Args:
        space: space of the actions of one environment: Discrete or MultiDiscrete.
        observation: name -> array [n, ...].
        num_envs: n.

    Returns:
        bool [n, choices], a new array. Of a MultiDiscrete space (W + 1 rows, the last of which closes the
        decision, then M columns) the masks of the components stand side by side. A choice is open if some
        feasible pair has it, so that an open row and an open column need not go together; row W is always
        open, and all columns are when no pair is feasible.

    Raises:
        InvalidParameter: for a Box.
    """
    mask = observation.get("action_mask")
    if isinstance(space, spaces.Discrete):
        if mask is None:
            return np.ones((num_envs, int(space.n)), dtype=bool)
        return mask.astype(bool)
    if not isinstance(space, spaces.MultiDiscrete):
        raise InvalidParameter(f"action_masks: needs a view with discrete actions, this one has {space}")
    if mask is None:
        return np.ones((num_envs, int(space.nvec.sum())), dtype=bool)
    pairs = mask.astype(bool)
    closing = np.ones((num_envs, 1), dtype=bool)
    servers = pairs.any(axis=1)
    servers |= ~servers.any(axis=1, keepdims=True)
    return np.concatenate([pairs.any(axis=2), closing, servers], axis=1)


class SB3VecEnv(_VecEnv):  # type: ignore[misc]
    """A native vector environment behind the interface of stable-baselines3.

    Episodes are reset in the step that ends them. ``infos[i]`` always has ``TimeLimit.truncated``,
    ``repaired`` and ``metrics``, infinite before the end of an episode; then also ``terminal_observation``
    and ``episode`` as ``Monitor`` gives it: ``r`` (sum of the rewards), ``l`` (steps), ``t`` (seconds since
    the environment was made). Observations are copies, rewards float32.

    Where the observation has a mask, an infeasible action of a policy that has not asked for it gives a
    warning, once.

    Args:
        env: made with ``autoreset_mode="SameStep"`` and copies of observations.

    Attributes:
        truncations: True if ``TimeLimit.truncated`` marks truncations, so that algorithms add the value of
            the last observation to the reward. Here rewards of a truncated episode sum to the whole
            objective, too: set it to False to have every end treated as a termination.

    Raises:
        InvalidParameter: for another mode, a device, or observations that are not copies.
    """

    def __init__(self, env: SchedulingVectorEnv) -> None:
        if env.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise InvalidParameter(
                f"autoreset_mode: stable-baselines3 needs 'SameStep', got {env.autoreset_mode.value!r}"
            )
        if isinstance(env, CudaVectorEnv):
            raise InvalidParameter("device: stable-baselines3 takes arrays of numpy: leave it out")
        if not env.copy:
            raise InvalidParameter("copy: stable-baselines3 keeps observations, which needs copies")
        self.env = env
        self.truncations = True
        self._actions: Any = None
        self._began = time.time()
        self._returns = np.zeros(env.num_envs)
        self._lengths = np.zeros(env.num_envs, dtype=np.int64)
        self._unaware = "action_mask" in getattr(env.single_observation_space, "spaces", {})
        self._masked = not isinstance(env.single_action_space, spaces.Box)
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self.metadata = env.metadata

    def reset(self) -> dict[str, npt.NDArray[Any]]:
        """Start an episode in every environment, by the seeds and options that were set for this call.

        Environment i begins with episode 0 of its seed, or goes on to the next episode if none was set.
        """
        env, seeds, options = self.env, self._seeds, self._options
        if all(own is options[0] or own == options[0] for own in options):
            observation, _ = env.reset(seed=seeds, options=dict(options[0]))
        else:
            observation, _ = env.reset(seed=seeds)
            for i in (i for i, own in enumerate(options) if own):
                if seeds[i] is None:  # the reset of all took the episode that is now asked for
                    env.simulator.episodes[i] -= 1
                mask = np.arange(self.num_envs) == i
                observation, _ = env.reset(seed=seeds, options={**options[i], "reset_mask": mask})
        self._reset_seeds()
        self._reset_options()
        self.reset_infos: list[dict[str, Any]] = [self._info(False) for _ in range(self.num_envs)]
        self._returns[:] = 0.0
        self._lengths[:] = 0
        return observation

    def get_state(self) -> dict[str, npt.NDArray[Any]]:
        """The state of every environment as arrays; workloads given as options are not part of it."""
        so_far = {"returns": self._returns.copy(), "lengths": self._lengths.copy()}
        return {**state_of(self.env.simulator), **so_far}

    def set_state(self, state: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Bring every environment to its state in :meth:`get_state`; return the observations.

        Raises:
            InvalidParameter: for the state of other environments.
        """
        self.reset()
        restore_state(self.env.simulator, state)
        self._returns[:], self._lengths[:] = state["returns"], state["lengths"]
        return {name: buffer.copy() for name, buffer in self.env.simulator.observation.items()}

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Set the actions of the next :meth:`step_wait`, [n, ...]."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[dict[str, npt.NDArray[Any]], Floats32, Flags, list[dict[str, Any]]]:
        """Carry out one decision in every environment.

        Returns:
            observations [n, ...], rewards float32 [n], dones bool [n], infos. Where done, the observation is
            the first of the next episode.

        Raises:
            InvalidAction: for a malformed action, or with ``strict=True`` an infeasible one.
        """
        observation, rewards, terminated, truncated, extra = self.env.step(self._actions)
        self._returns += rewards
        self._lengths += 1
        repaired = extra["repaired"]
        if "final_obs" in extra:
            repaired = repaired | extra["final_info"]["repaired"]
        if self._unaware and repaired.any():
            self._warn()
        infos = [{**self._info(own), "TimeLimit.truncated": False} for own in repaired.tolist()]
        if "final_obs" in extra:
            self._finish(terminated, truncated, extra, infos)
        return observation, rewards.astype(np.float32), terminated | truncated, infos

    def _info(self, repaired: bool) -> dict[str, Any]:
        """What a single environment says before the end of an episode."""
        return {"metrics": dict.fromkeys(self.env.simulator.metric_names, math.inf), "repaired": repaired}

    def _warn(self) -> None:
        """After an infeasible action, warn once if there is a mask that nobody has asked for."""
        if self._masked:
            warnings.warn(
                f"{self.env.env_class.id}: an action that action_mask closes was played, and repaired: the "
                "policy does not see the mask; train MaskablePPO, or a TokenPolicy: both close such actions",
                stacklevel=4,
            )
        self._unaware = False

    def _finish(
        self,
        terminated: Flags,
        truncated: Flags,
        extra: dict[str, Any],
        infos: list[dict[str, Any]],
    ) -> None:
        """Add the entries of an episode's end to the infos of finished episodes."""
        done, last = extra["_final_obs"], extra["final_info"]
        names = self.env.simulator.metric_names
        rows = zip(*(last["metrics"][name][done].tolist() for name in names), strict=True)
        seconds = round(time.time() - self._began, 6)
        for i, row in zip(np.flatnonzero(done).tolist(), rows, strict=True):
            info = infos[i]
            info["metrics"] = dict(zip(names, row, strict=True))
            info["TimeLimit.truncated"] = bool(self.truncations and truncated[i] and not terminated[i])
            info["terminal_observation"] = extra["final_obs"][i]
            total, steps = round(self._returns.item(i), 6), self._lengths.item(i)
            info["episode"] = {"r": total, "l": steps, "t": seconds}
        self._returns[done] = 0.0
        self._lengths[done] = 0

    def action_masks(self) -> Flags:
        """The masks of the current observations, bool [n, choices]; see :func:`action_masks`."""
        self._unaware = False
        return action_masks(self.action_space, self.env.simulator.observation, self.num_envs)

    def _mask(self, index: int) -> Flags:
        return self.action_masks()[index]

    def close(self) -> None:
        """Close the vector environment."""
        self.env.close()

    def has_attr(self, attr_name: str) -> bool:
        """Return True if every environment has the attribute; ``action_masks`` where actions are discrete."""
        if attr_name == "action_masks":
            return self._masked
        return hasattr(self.env, attr_name)

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """The attribute of each environment: that of the vector environment, except for ``action_masks``."""
        chosen = self._chosen(indices)
        if attr_name == "action_masks" and self._masked:
            return [functools.partial(self._mask, i) for i in chosen]
        name = f"single_{attr_name}" if attr_name in ("observation_space", "action_space") else attr_name
        if attr_name == "action_masks" or not hasattr(self.env, name):
            raise AttributeError(f"{type(self.env).__name__} has no attribute {attr_name!r}")
        return [getattr(self.env, name) for _ in chosen]

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Set an attribute of the vector; InvalidParameter if ``indices`` leave an environment out."""
        if sorted(self._chosen(indices)) != list(range(self.num_envs)):
            raise InvalidParameter(f"set_attr: {attr_name} is shared: set it for all environments")
        setattr(self.env, attr_name, value)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: int | Iterable[int] | None = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call ``action_masks()``, ``record()`` or ``render()`` of each environment.

        Raises:
            AttributeError: for another method: environments of a vector are not stepped one by one.
        """
        chosen = self._chosen(indices)
        if method_name == "action_masks" and self._masked:
            masks = self.action_masks(*method_args, **method_kwargs)
            return [masks[i] for i in chosen]
        if method_name == "record":
            return [self.env.record(i, *method_args, **method_kwargs) for i in chosen]
        if method_name == "render":
            pictures = self.env.render(*method_args, **method_kwargs) or (None,) * self.num_envs
            return [pictures[i] for i in chosen]
        raise AttributeError(f"{type(self.env).__name__} has no method {method_name!r} of one environment")

    def env_is_wrapped(
        self, wrapper_class: type[Any], indices: int | Iterable[int] | None = None
    ) -> list[bool]:
        """Return True for each environment if the wrapper is ``Monitor``, as the infos are those of it."""
        monitor = require("stable_baselines3.common.monitor", "agents").Monitor
        return [wrapper_class is monitor for _ in self._chosen(indices)]

    def get_images(self) -> Sequence[Any]:
        """A picture of each environment, uint8 [height, width, 3]; None without ``"rgb_array"``."""
        if self.render_mode != "rgb_array":
            return [None] * self.num_envs
        return list(self.env.render() or ())

    def _chosen(self, indices: int | Iterable[int] | None) -> list[int]:
        return [range(self.num_envs)[i] for i in self._get_indices(indices)]


def make_vec_env(id: str, num_envs: int = 1, seed: int | None = None, **parameters: Any) -> SB3VecEnv:
    """``num_envs`` environments for stable-baselines3.

    Args:
        id: environment id.
        num_envs: number of environments.
        seed: environment i begins with episode 0 of seed + i; None: of a random one.
        parameters: parameters of the environment, and ``render_mode`` and ``threads``.

    Raises:
        UnknownName, InvalidParameter: for a parameter that does not exist or is out of range.
    """
    env = gym.make_vec(
        id,
        num_envs=num_envs,
        vectorization_mode="vector_entry_point",
        autoreset_mode="SameStep",
        **parameters,
    )
    made = SB3VecEnv(env.unwrapped)  # type: ignore[arg-type]
    if seed is not None:
        made.seed(seed)
    return made


class TokenPolicy(_BasePolicy):  # type: ignore[misc]
    """The network of agents as a policy for ``PPO`` of stable-baselines3.

    ``PPO(TokenPolicy, env, policy_kwargs={"problem": NAME, "view": "pick"})``. It closes by itself the
    actions that the observation's ``action_mask`` rules out, sampled or not; where an action is a pair it
    samples both tokens together.

    Args:
        observation_space: observation space of one environment, with ``observation="features"``.
        action_space: action space of one environment.
        lr_schedule: progress that remains (1 to 0) -> learning rate.
        problem: name of the problem.
        view: name of the view.
        optimizer_kwargs: further arguments of Adam.
        use_sde: must be False.
        form: ``width`` of every hidden layer (32), ``rounds`` (1 or 2), ``log_std``, the logarithm of the
            spread of exploration to begin with (0; views with a Box only).

    Attributes:
        network: the network, the critic too.
        layout: layout of the scores: what each of them belongs to.

    Raises:
        UnknownName: for a view that scores cannot decide.
        InvalidParameter: for observations other than "features", or arguments out of range.
    """

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Space[Any],
        lr_schedule: Any,
        *,
        problem: str,
        view: str,
        optimizer_kwargs: dict[str, Any] | None = None,
        use_sde: bool = False,
        **form: Any,
    ) -> None:
        if use_sde:
            raise InvalidParameter("use_sde: is not for policies that score tokens")
        self._given = {"problem": problem, "view": view, **form}
        self.layout = layout = make_layout(problem, view, observation_space, action_space)
        # of a Box what is sampled and stored are scores, and unscale_action makes actions of them
        super().__init__(
            observation_space,
            action_space,
            optimizer_kwargs={"eps": 1e-5, **(optimizer_kwargs or {})},
            squash_output=layout.kind == "scores",
        )
        rng = np.random.default_rng(int(torch.randint(2**62, ())))  # follows the seed of the training
        self.network = Network(layout, initial(layout, rng, **form))
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)

    @property
    def log_std(self) -> Tensor:
        """Logarithm of the spread of exploration, [1]; AttributeError where actions are discrete."""
        return self.network.log_std

    def forward(
        self, observation: dict[str, Tensor], deterministic: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions, values [B, 1], and the logarithms of the actions' probabilities [B], of a batch."""
        seen = self._see(observation)
        scores = self.network.scores(seen)
        chosen = self._choose(seen, scores, deterministic)
        log_probs, _ = self.network.judge(seen, scores, chosen)
        return self._action(chosen), self.network.values(seen)[:, None], log_probs

    def evaluate_actions(
        self, observation: dict[str, Tensor], actions: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Values [B, 1], the logarithms of the actions' probabilities [B], and entropies [B], of a batch."""
        seen = self._see(observation)
        if self.layout.kind == "choice":
            actions = actions.long().reshape(-1)
        elif self.layout.shape is not None:
            index = actions[:, 0].long() * self.layout.shape[1] + actions[:, 1].long()
            actions = index.clamp(max=self.layout.size - 1)
        return self.network.values(seen)[:, None], *self.network.judge(
            seen, self.network.scores(seen), actions
        )

    def predict_values(self, observation: dict[str, Tensor]) -> Tensor:
        """The critic's values of a batch, [B, 1]."""
        return self.network.values(self._see(observation))[:, None]

    def _predict(self, observation: dict[str, Tensor], deterministic: bool = False) -> Tensor:
        seen = self._see(observation)
        return self._action(self._choose(seen, self.network.scores(seen), deterministic))

    def _see(self, observation: dict[str, Tensor]) -> dict[str, Tensor]:
        """The input of the network."""
        return prepare(self.layout, observation, next(self.network.parameters()), torch)

    def _choose(self, seen: dict[str, Tensor], scores: Tensor, deterministic: bool) -> Tensor:
        """The index of a score [B], or for a Box the scores to be made an action of [B, size]."""
        if self.layout.kind != "scores":
            if deterministic:
                return scores.argmax(dim=-1)
            return torch.multinomial(torch.log_softmax(scores, dim=-1).exp(), 1)[:, 0]
        if deterministic:
            return scores
        noisy = self.network.sample(scores, torch.randn_like(scores))
        return torch.where(self.network.present(seen, scores), noisy, scores)

    def _action(self, chosen: Tensor) -> Tensor:
        return self.layout.split(chosen, torch) if self.layout.kind == "pairs" else chosen

    def unscale_action(self, scaled_action: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The Box action that scores [..., size] make."""
        masks = {s.mask: np.ones_like(scaled_action, bool) for s in self.layout.context if s.mask}
        return np.asarray(self.layout.decode(scaled_action, masks))

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return dict(
            observation_space=self.observation_space,
            action_space=self.action_space,
            lr_schedule=self._dummy_schedule,
            **self._given,
        )


class ModelPolicy:
    """A model of stable-baselines3 or sb3-contrib as a policy, e.g. for ``schedgym.evaluate``; deterministic.

    It sees and acts as in its training; sizes and workloads are those of the evaluation.

    Args:
        model: a trained model; recurrent models are not supported.
        id: environment id that it was trained in.
        parameters: parameters of the environment that it was trained in, as for :func:`make_vec_env`.

    Raises:
        UnknownName, InvalidParameter: for a parameter that does not exist or is out of range.
    """

    def __init__(self, model: Any, id: str, **parameters: Any) -> None:
        trained = vars(get_problem(id).build(id, parameters))
        names = (*OWN, *tokens_of(id).acting)
        self.model, self.id = model, id
        self._acting = {name: trained[name] for name in names}
        if "action_mask" in trained:
            self._acting["action_mask"] = True
        self._masked = "action_masks" in inspect.signature(model.predict).parameters

    def acting_parameters(self, id: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters under which it acts where ``given`` are those of an evaluation of ``id``.

        Raises:
            InvalidParameter: for another id.
        """
        if id != self.id:
            raise InvalidParameter(f"the model was trained in {self.id}, not in {id}")
        return effective_parameters(id, {**given, **self._acting})

    def reset(self, interface: Interface, rng: np.random.Generator) -> None:
        """See :class:`schedgym.core.policy.Policy`."""

    def __call__(self, observation: dict[str, Any]) -> Any:
        """The action for one observation."""
        space, more = self.model.action_space, {}
        if self._masked:
            batch = {name: np.asarray(value)[np.newaxis] for name, value in observation.items()}
            more["action_masks"] = action_masks(space, batch, 1)
        action, _ = self.model.predict(observation, deterministic=True, **more)
        return int(action) if isinstance(space, spaces.Discrete) else action
