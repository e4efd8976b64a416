"""Policies of stable-baselines3 that score tokens: :mod:`~schedgym.agents.tokens` as torch modules.

``TokenPolicy`` is for ``PPO``, ``MaskableTokenPolicy`` for ``MaskablePPO`` of sb3-contrib. Both close by
themselves the actions that the observation's ``action_mask`` rules out, sampled or not. Where an action is a
pair they sample both tokens together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from schedgym.agents import tokens
from schedgym.agents.views import Layout, make_layout
from schedgym.errors import InvalidParameter
from schedgym.extras import require

__all__ = ["MaskableTokenPolicy", "TokenExtractor", "TokenPolicy"]

torch: Any = require("torch", "agents")
_Module: Any = torch.nn.Module
_Extractor: Any = require("stable_baselines3.common.torch_layers", "agents").BaseFeaturesExtractor
_ActorCritic: Any = require("stable_baselines3.common.policies", "agents").ActorCriticPolicy
_MaskableActorCritic: Any = require(
    "sb3_contrib.common.maskable.policies", "agents"
).MaskableActorCriticPolicy
_Distribution: Any = require("sb3_contrib.common.maskable.distributions", "agents").MaskableDistribution

Tensor = Any
F4 = npt.NDArray[np.float32]


class TokenExtractor(_Extractor):  # type: ignore[misc]
    """The whole network of the actor, or of the critic, in the place of a features extractor.

    Args:
        observation_space: observation space of one environment.
        layout: layout of its view.
        weights: name -> array, of both parts.
        critic: True for the critic's part, False for the actor's.

    The actor gives scores [B, size], for a Box followed by flags [B, size] that are 1 for scores of a token
    that is there, else 0; the critic gives values [B, 1].
    """

    def __init__(
        self, observation_space: spaces.Dict, layout: Layout, weights: Mapping[str, F4], critic: bool
    ) -> None:
        size = layout.size * (2 if layout.kind == "scores" else 1)
        super().__init__(observation_space, features_dim=1 if critic else size)
        self.layout, self.critic = layout, critic
        for name, array in weights.items():
            if name.startswith("critic/") is critic:
                self.register_parameter(name, torch.nn.Parameter(torch.tensor(array)))

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        """Scores or values of a batch."""
        layout, weights = self.layout, self._parameters
        if self.critic:
            return tokens.estimate(layout, weights, observation, torch)[:, None]
        scores = tokens.forward(layout, weights, observation, torch)
        if layout.kind != "scores":
            return scores
        mask = layout.segments[0].tokens[0].mask
        there = torch.ones_like(scores) if mask is None else observation[mask].to(scores.dtype)
        return torch.cat([scores, there], dim=-1)


class _Base(_Distribution):  # type: ignore[misc]
    """The methods that stable-baselines3 requires of a distribution and a policy of tokens never calls."""

    def proba_distribution_net(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def actions_from_params(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def log_prob_from_params(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


class _Choice(_Base):
    """One of the scores, by softmax."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout

    def proba_distribution(self, scores: Tensor) -> _Choice:
        self.scores = scores
        self.logits = torch.log_softmax(scores, dim=-1)
        return self

    def apply_masking(self, masks: Any) -> None:
        if masks is not None:
            masks = torch.as_tensor(masks, device=self.scores.device).reshape(len(self.scores), -1) != 0
            self.proba_distribution(torch.where(self._open(masks), self.scores, tokens.NEVER))

    def _open(self, masks: Tensor) -> Tensor:
        return masks

    def _index(self, actions: Tensor) -> Tensor:
        return actions.long().reshape(-1)

    def _actions(self, index: Tensor) -> Tensor:
        return index

    def log_prob(self, actions: Tensor) -> Tensor:
        return self.logits.gather(-1, self._index(actions)[:, None])[:, 0]

    def entropy(self) -> Tensor:
        return -(self.logits.exp() * self.logits).sum(-1)

    def sample(self) -> Tensor:
        return self._actions(torch.multinomial(self.logits.exp(), 1)[:, 0])

    def mode(self) -> Tensor:
        return self._actions(self.scores.argmax(dim=-1))


class _Pairs(_Choice):
    """One of the pairs (i, j), or (rows, 0) to close, by softmax over all of them."""

    def _open(self, masks: Tensor) -> Tensor:
        rows, columns = self.layout.shape  # type: ignore[misc]
        pairs = masks[:, :rows, None] & masks[:, None, rows + 1 :]
        return torch.cat([pairs.reshape(-1, rows * columns), masks[:, rows : rows + 1]], dim=-1)

    def _index(self, actions: Tensor) -> Tensor:
        columns = self.layout.shape[1]  # type: ignore[index]
        return (actions[:, 0].long() * columns + actions[:, 1].long()).clamp(max=self.layout.size - 1)

    def _actions(self, index: Tensor) -> Tensor:
        columns = self.layout.shape[1]  # type: ignore[index]
        return torch.stack([index // columns, index % columns], dim=-1)


class _Scores(_Base):
    """Scores with normal noise of one spread for all; only tokens that are there count."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.absent = tokens.absent_score(layout)

    def proba_distribution(self, latent: Tensor, log_std: Tensor) -> _Scores:
        self.mean, self.there = latent.chunk(2, dim=-1)
        self.distribution = torch.distributions.Normal(self.mean, log_std.exp(), validate_args=False)
        return self

    def apply_masking(self, masks: Any) -> None:
        pass

    def log_prob(self, actions: Tensor) -> Tensor:
        actions = torch.where(self.there != 0, actions, self.mean.detach())
        return (self.distribution.log_prob(actions) * self.there).sum(-1)

    def entropy(self) -> Tensor:
        return (self.distribution.entropy() * self.there).sum(-1)

    def sample(self) -> Tensor:
        return torch.where(self.there != 0, self.distribution.sample(), self.absent)

    def mode(self) -> Tensor:
        return self.mean


class _Parts(_Module):  # type: ignore[misc]
    """Stands in the place of the layers between features and heads, of which there are none."""

    def forward_actor(self, features: Tensor) -> Tensor:
        return features

    def forward_critic(self, features: Tensor) -> Tensor:
        return features


class _TokenPolicy:
    """The common part of both policies; it comes before the class of stable-baselines3 among the bases.

    Args:
        observation_space: observation space of one environment, with ``observation="features"``.
        action_space: action space of one environment.
        lr_schedule: progress that remains (1 to 0) -> learning rate.
        problem: name of the problem.
        view: name of the view.
        optimizer_kwargs: further arguments of Adam.
        use_sde: must be False.
        form: as for :func:`schedgym.agents.tokens.initial`: ``width`` of every hidden layer (32), ``rounds``
            (1 or 2), ``log_std``, the logarithm of the spread of exploration to begin with (0; views with a
            Box only).

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
        layout = make_layout(problem, view, observation_space, action_space)
        rng = np.random.default_rng(int(torch.randint(2**62, ())))  # follows the seed of the training
        weights = tokens.initial(layout, rng, **form)
        self._made = [TokenExtractor(observation_space, layout, weights, critic) for critic in (False, True)]
        super().__init__(  # type: ignore[call-arg]
            observation_space,
            action_space,
            lr_schedule,
            net_arch=[],
            ortho_init=False,
            features_extractor_class=TokenExtractor,
            share_features_extractor=False,
            normalize_images=False,
            optimizer_kwargs=optimizer_kwargs,
        )
        # a Box: what is sampled and stored are scores, and unscale_action makes actions of them
        self._squash_output = layout.kind == "scores"

    def make_features_extractor(self) -> TokenExtractor:
        """The networks of the actor and then of the critic, as stable-baselines3 asks for them in turn."""
        return self._made.pop(0)

    def _build(self, lr_schedule: Any) -> None:
        self.mlp_extractor = _Parts()
        self.action_net = self.value_net = torch.nn.Identity()
        kinds = {"choice": _Choice, "pairs": _Pairs, "scores": _Scores}
        self.action_dist = kinds[self.layout.kind](self.layout)
        self.optimizer = self.optimizer_class(  # type: ignore[attr-defined]
            self.parameters(),  # type: ignore[attr-defined]
            lr=lr_schedule(1),
            **self.optimizer_kwargs,  # type: ignore[attr-defined]
        )

    @property
    def layout(self) -> Layout:
        """The layout of the scores: what each of them belongs to."""
        return self.pi_features_extractor.layout  # type: ignore[attr-defined]

    @property
    def log_std(self) -> Tensor:
        """Logarithm of the spread of exploration, [1]; AttributeError where actions are discrete."""
        weights = self.pi_features_extractor._parameters  # type: ignore[attr-defined]
        if "log_std" not in weights:
            raise AttributeError("log_std")
        return weights["log_std"]

    def _get_action_dist_from_latent(self, latent_pi: Tensor) -> Any:
        if self.layout.kind == "scores":
            return self.action_dist.proba_distribution(latent_pi, self.log_std)
        return self.action_dist.proba_distribution(latent_pi)

    def unscale_action(self, scaled_action: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The Box action that scores [..., size] make."""
        masks = {s.mask: np.ones_like(scaled_action, bool) for s in self.layout.context if s.mask}
        return self.layout.decode(scaled_action, masks)

    def named_weights(self) -> list[tuple[str, Tensor]]:
        """(name, parameter) of all weights, the critic's last."""
        parts = (self.pi_features_extractor, self.vf_features_extractor)  # type: ignore[attr-defined]
        return [named for part in parts for named in part._parameters.items()]

    def scores(self, observation: Mapping[str, Tensor]) -> Tensor:
        """The actor's scores of a batch, [B, size]."""
        return self.pi_features_extractor(observation)[:, : self.layout.size]  # type: ignore[attr-defined]

    def values(self, observation: Mapping[str, Tensor]) -> Tensor:
        """The critic's values of a batch, [B]."""
        return self.vf_features_extractor(observation)[:, 0]  # type: ignore[attr-defined]

    def get_weights(self) -> dict[str, F4]:
        """Name -> array of all weights, the critic's too: copies."""
        return {name: w.detach().cpu().numpy().copy() for name, w in self.named_weights()}

    def set_weights(self, weights: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take weights over; those of the critic may be missing.

        Raises:
            InvalidParameter: if a name is unknown or missing, or a shape differs; nothing is changed then.
        """
        known = dict(self.named_weights())
        for name, array in weights.items():
            if name not in known:
                raise InvalidParameter(f"weights: {name} does not belong to this network")
            if tuple(array.shape) != tuple(known[name].shape):
                raise InvalidParameter(
                    f"weights: {name} must have shape {tuple(known[name].shape)}, got {tuple(array.shape)}"
                )
        for name in known:
            if name not in weights and not name.startswith("critic/"):
                raise InvalidParameter(f"weights: {name} is missing")
        with torch.no_grad():
            for name, array in weights.items():
                known[name].copy_(torch.as_tensor(array))

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return dict(
            observation_space=self.observation_space,  # type: ignore[attr-defined]
            action_space=self.action_space,  # type: ignore[attr-defined]
            lr_schedule=self._dummy_schedule,  # type: ignore[attr-defined]
            **self._given,
        )


class TokenPolicy(_TokenPolicy, _ActorCritic):  # type: ignore[misc]
    """The policy of ``PPO``: arguments as ``policy_kwargs`` are those of :class:`_TokenPolicy`.

    ``PPO(TokenPolicy, env, policy_kwargs={"problem": NAME, "view": "pick"})``
    """


class MaskableTokenPolicy(_TokenPolicy, _MaskableActorCritic):  # type: ignore[misc]
    """The policy of ``MaskablePPO``, for views with discrete actions; arguments as for :class:`TokenPolicy`.

    Given ``action_masks`` close actions beside those that the observation closes.
    """
