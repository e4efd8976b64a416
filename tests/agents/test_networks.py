"""The networks: equivariance, masks, one form for numpy and torch."""

from __future__ import annotations

import numpy as np
import pytest

from schedgym.core.problem import get_problem
from schedgym.core.tokens import tokens_of
from schedgym.errors import InvalidParameter, UnknownName
from tests.agents import cases
from tests.test_all_problems import small

pytest.importorskip("stable_baselines3", reason="needs the extra agents")
pytest.importorskip("sb3_contrib", reason="needs the extra agents")
import torch
from stable_baselines3 import PPO

from schedgym.agents import tokens
from schedgym.agents.networks import MaskableTokenPolicy, TokenPolicy
from schedgym.agents.vecenv import make_vec_env
from schedgym.agents.views import make_layout
from tests.long import some

#: of each problem the first id: those of one problem have the same views
CASES = [
    (id, view)
    for id, view in cases.CASES
    if id == next(own for own, _ in cases.CASES if get_problem(own) is get_problem(id))
]
DISCRETE = [(id, view) for id, view in CASES if tokens_of(id).views[view].kind != "scores"]
ID = "schedgym/QueueDelay-v0"


def make(id: str, view: str, num_envs: int = 6, **extra: object):
    env = make_vec_env(id, num_envs, 3, **small(id, view=view, observation="features", **extra))
    interface = env.env.interface
    return env, make_layout(interface.problem, view, env.observation_space, env.action_space)


def make_policy(env, layout, kind=TokenPolicy, **extra: object):
    torch.manual_seed(4)
    policy = kind(
        env.observation_space,
        env.action_space,
        lambda _: 1e-3,
        problem=layout.problem,
        view=layout.view,
        **extra,
    )
    with torch.no_grad():  # scores are near zero at first: make them matter
        for name, parameter in policy.named_parameters():
            if "/out/" in name or "/value/1/" in name:
                parameter.copy_(torch.randn_like(parameter))
    return policy


def observations(env, layout, count: int = 12):
    """Batches of observations of random play: features, [B, ...]."""
    return cases.observations(env.env, layout, count)


def scores_of(policy, observation) -> np.ndarray:
    with torch.no_grad():
        latent = policy.extract_features(policy.obs_to_tensor(observation)[0])[0]
    return latent[:, : policy.layout.size].numpy()


def flat(layout, actions) -> np.ndarray:
    """The index of the score that an action is."""
    if layout.kind == "choice":
        return actions
    return np.minimum(actions[:, 0] * layout.shape[1] + actions[:, 1], layout.size - 1)


def values_of(policy, observation) -> np.ndarray:
    with torch.no_grad():
        return policy.predict_values(policy.obs_to_tensor(observation)[0]).numpy()


def exact(policy):
    """In double precision, where only an error of the form can exceed 1e-9."""
    return policy.double()


@pytest.mark.parametrize(("id", "view"), CASES)
@pytest.mark.parametrize("rounds", some([1, 2]))
def test_permuted_tokens_have_permuted_scores(id: str, view: str, rounds: int) -> None:
    env, layout = make(id, view)
    policy = exact(make_policy(env, layout, rounds=rounds))
    rng = np.random.default_rng(1)
    spread = 0.0
    for observation in observations(env, layout):
        permuted, order = cases.permute(layout, observation, rng)
        scores = scores_of(policy, observation)
        assert np.abs(scores_of(policy, permuted) - scores[:, order]).max() < 1e-9
        assert np.abs(values_of(policy, permuted) - values_of(policy, observation)).max() < 1e-9
        chosen = scores[scores > tokens.NEVER]
        spread = max(spread, float(chosen.std()))
    assert spread > 1e-3, "scores that are all equal show nothing"


def test_the_check_of_equivariance_finds_a_fault(monkeypatch) -> None:
    env, layout = make(ID, "pick")
    policy = exact(make_policy(env, layout))
    linear = tokens._linear

    def faulty(x, weight, bias=None):
        out = linear(x, weight, bias)
        return out + torch.arange(out.shape[1])[:, None] if out.ndim == 3 else out

    monkeypatch.setattr(tokens, "_linear", faulty)
    rng = np.random.default_rng(1)
    worst = 0.0
    for observation in observations(env, layout, 3):
        permuted, order = cases.permute(layout, observation, rng)
        scores = scores_of(policy, observation)
        worst = max(worst, np.abs(scores_of(policy, permuted) - scores[:, order]).max())
    assert worst > 0.1


@pytest.mark.parametrize(("id", "view"), CASES)
def test_tokens_that_are_not_there_change_nothing(id: str, view: str) -> None:
    env, layout = make(id, view)
    policy = exact(make_policy(env, layout))
    rng = np.random.default_rng(2)
    absent = 0
    for observation in observations(env, layout):
        if layout.problem == "single-job":  # whose jobs are as long as the window: the last task goes
            observation["job_mask"][:, -1] = 0
            if view == "search":
                servers = observation["servers"].shape[1]
                observation["action_mask"][:, -1 - servers : -1] = 0
        filled = dict(observation)
        for sequence in layout.context:
            if sequence.mask is not None:
                gone = observation[sequence.mask] == 0
                absent += int(gone.sum())
                filled[sequence.key] = observation[sequence.key].copy()
                filled[sequence.key][gone] = rng.normal(size=(int(gone.sum()), filled[sequence.key].shape[2]))
        assert np.abs(scores_of(policy, filled) - scores_of(policy, observation)).max() < 1e-9
        assert np.abs(values_of(policy, filled) - values_of(policy, observation)).max() < 1e-9
    assert absent > 0 or all(sequence.mask is None for sequence in layout.context)


def wider(observation: dict, layout, more: int) -> dict:
    """The observation in a window that is wider by ``more`` empty rows (QueueDelay)."""
    given = dict(observation)
    for name in ("tasks", "task_mask"):
        rows = np.zeros((len(given[name]), more, *given[name].shape[2:]), given[name].dtype)
        given[name] = np.concatenate([given[name], rows], axis=1)
    mask = given["action_mask"]
    window = observation["tasks"].shape[1]
    rows = np.zeros((len(mask), more, *mask.shape[2:]), mask.dtype)
    given["action_mask"] = np.concatenate([mask[:, :window], rows, mask[:, window:]], axis=1)
    return given


@pytest.mark.parametrize("view", ["pick", "placement"])
def test_the_same_weights_serve_another_window(view: str) -> None:
    env, layout = make(ID, view)
    policy = make_policy(env, layout)
    _, wide = make(ID, view, window=9)
    weights = {name: w.astype(np.float64) for name, w in policy.get_weights().items()}
    for observation in observations(env, layout, 5):
        scores = tokens.forward(layout, weights, observation)
        spread = tokens.forward(wide, weights, wider(observation, layout, 5))
        assert np.allclose(spread[spread > tokens.NEVER], scores[scores > tokens.NEVER], rtol=0, atol=1e-9)
        assert np.allclose(
            tokens.estimate(layout, weights, observation),
            tokens.estimate(wide, weights, wider(observation, layout, 5)),
            rtol=0,
            atol=1e-9,
        )


@pytest.mark.parametrize(("id", "view"), CASES)
def test_numpy_and_torch_agree(id: str, view: str) -> None:
    env, layout = make(id, view)
    policy = make_policy(env, layout)
    weights = policy.get_weights()
    assert all(array.dtype == np.float32 for array in weights.values())
    for observation in observations(env, layout):
        scores = tokens.forward(layout, weights, observation)
        assert scores.dtype == np.float32
        np.testing.assert_allclose(scores, scores_of(policy, observation), rtol=2e-4, atol=2e-4)
        values = tokens.estimate(layout, weights, observation)
        np.testing.assert_allclose(values, values_of(policy, observation)[:, 0], rtol=2e-4, atol=2e-4)
        mine, theirs = layout.decode(scores, observation), policy.predict(observation, deterministic=True)[0]
        if layout.kind == "scores":
            there = observation[layout.segments[0].tokens[0].mask or "globals"] != 0
            rows = there if there.shape == mine.shape else np.ones_like(mine, dtype=bool)
            np.testing.assert_allclose(mine[rows], theirs[rows], rtol=1e-3, atol=1e-3)
        else:
            best, other = (scores[np.arange(len(mine)), flat(layout, a)] for a in (mine, theirs))
            np.testing.assert_allclose(best, other, rtol=2e-4, atol=2e-4)  # tokens may be alike


@pytest.mark.parametrize(("id", "view"), DISCRETE)
@pytest.mark.parametrize("kind", [TokenPolicy, MaskableTokenPolicy], ids=["ppo", "maskable"])
def test_masks_are_never_violated(id: str, view: str, kind: type) -> None:
    env, layout = make(id, view, strict=True)  # an infeasible action raises
    policy = make_policy(env, layout, kind)
    for deterministic in (True, False):
        observation = env.reset()
        for step in range(40):
            extra = {"action_masks": env.action_masks()} if kind is MaskableTokenPolicy and step % 2 else {}
            actions, _ = policy.predict(observation, deterministic=deterministic, **extra)
            observation, _, _, infos = env.step(actions)
            assert not any(info["repaired"] for info in infos)


@pytest.mark.parametrize("view", ["pick", "placement", "route", "rule"])
def test_sampled_actions_are_open_and_follow_their_probabilities(view: str) -> None:
    env, layout = make(ID, view, num_envs=1)
    policy = make_policy(env, layout)
    observation = next(iter(observations(env, layout, 1)))
    many = {name: np.repeat(array, 5000, axis=0) for name, array in observation.items()}
    with torch.no_grad():
        actions, _, log_prob = policy.forward(policy.obs_to_tensor(many)[0])
        distribution = policy.get_distribution(policy.obs_to_tensor(observation)[0])
    actions, log_prob = actions.numpy(), log_prob.numpy()
    index = flat(layout, actions)
    open_ = layout.mask(observation)[0]
    assert open_[index].all()
    probabilities = distribution.logits.exp().numpy()[0]
    assert probabilities[~open_].sum() == 0.0
    np.testing.assert_allclose(np.bincount(index, minlength=layout.size) / 5000, probabilities, atol=0.03)
    np.testing.assert_allclose(log_prob, np.log(probabilities[index]), rtol=1e-4, atol=1e-5)
    kept = probabilities[probabilities > 0]
    assert distribution.entropy().item() == pytest.approx(-(kept * np.log(kept)).sum(), rel=1e-4)


@pytest.mark.parametrize(("id", "view"), DISCRETE)
def test_absent_tokens_are_closed_without_a_mask_of_actions(id: str, view: str) -> None:
    env, layout = make(id, view, action_mask=False)
    assert "action_mask" not in env.observation_space.spaces
    policy = make_policy(env, layout)
    for observation in observations(env, layout, 4):
        scores = scores_of(policy, observation)
        start = 0
        for segment in layout.segments:
            if len(segment.tokens) == 1 and segment.tokens[0].mask is not None:
                there = observation[segment.tokens[0].mask] != 0
                closed = scores[:, start : start + segment.count] == tokens.NEVER
                assert (closed == ~there).all()
            start += segment.count


@pytest.mark.parametrize("id", sorted({id for id, _ in DISCRETE}))
def test_given_masks_close_further_actions(id: str) -> None:
    view = next(v for i, v in DISCRETE if i == id)
    env, layout = make(id, view)
    policy = make_policy(env, layout, MaskableTokenPolicy)
    observation = env.reset()
    masks = env.action_masks()
    masks[:, :-1] &= np.arange(masks.shape[1] - 1) % 2 == 0
    masks |= ~masks.any(axis=1, keepdims=True)
    for deterministic in (True, False):
        actions, _ = policy.predict(observation, deterministic=deterministic, action_masks=masks)
        if layout.kind == "choice":
            assert masks[np.arange(len(actions)), actions].all()


def test_given_masks_of_pairs() -> None:
    env, layout = make(ID, "placement")
    policy = make_policy(env, layout, MaskableTokenPolicy)
    tasks, servers = layout.shape
    for observation in observations(env, layout, 6):
        masks = env.action_masks()
        masks[:, 0] = False
        masks[:, tasks + 1] = False
        for _ in range(20):
            actions, _ = policy.predict(observation, action_masks=masks)
            for (task, server), pairs in zip(actions, observation["action_mask"], strict=True):
                assert task == tasks or (task > 0 and server > 0 and pairs[task, server])
        masks[:, tasks] = False
        masks[:, 0] = True


@pytest.mark.parametrize(("id", "view"), [case for case in CASES if case not in DISCRETE])
def test_boxes(id: str, view: str) -> None:
    """Only tokens that are there have a probability; actions are in the Box; scores survive it."""
    env, layout = make(id, view)
    policy = make_policy(env, layout, log_std=-0.5)
    assert policy.log_std.shape == (1,)
    for observation in observations(env, layout, 6):
        tensors = policy.obs_to_tensor(observation)[0]
        with torch.no_grad():
            sampled, values, log_prob = policy.forward(tensors)
            again, log_prob_again, entropy = policy.evaluate_actions(tensors, sampled)
        assert torch.equal(values, again) and torch.allclose(log_prob, log_prob_again)
        mask = layout.segments[0].tokens[0].mask
        there = np.ones((env.num_envs, layout.size)) if mask is None else observation[mask] != 0
        count = there.sum(axis=1)
        each = 0.5 + 0.5 * np.log(2 * np.pi) - 0.5
        np.testing.assert_allclose(entropy.numpy(), count * each, rtol=1e-5)
        mean = scores_of(policy, observation)
        wanted = -0.5 * ((sampled.numpy() - mean) / np.exp(-0.5)) ** 2 + 0.5 - 0.5 * np.log(2 * np.pi)
        np.testing.assert_allclose(
            log_prob.numpy(), np.where(there, wanted, 0.0).sum(axis=1), rtol=1e-4, atol=1e-4
        )
        action = policy.unscale_action(sampled.numpy())
        assert action.shape == (env.num_envs, layout.size)
        for i, row in enumerate(action):
            assert (env.action_space.low <= row).all() and (row <= env.action_space.high).all()
            kept = np.flatnonzero(there[i])
            if layout.transform != "clip":
                order = np.argsort(sampled.numpy()[i, kept])
                assert (np.diff(row[kept][order]) >= 0).all()
            if layout.transform == "weight" and len(kept):
                assert row[kept].max() == 1.0
        predicted, _ = policy.predict(observation, deterministic=True)
        expected = layout.decode(mean, observation)
        assert np.array_equal(predicted[there != 0], expected[there != 0])


def test_arguments_are_checked() -> None:
    env, layout = make(ID, "pick")
    with pytest.raises(UnknownName, match="did you mean 'pick'"):
        TokenPolicy(
            env.observation_space, env.action_space, lambda _: 1e-3, problem="queue-delay", view="picks"
        )
    for name, value in (("width", 0), ("rounds", 3), ("use_sde", True)):
        with pytest.raises(InvalidParameter, match=name):
            make_policy(env, layout, **{name: value})
    plain = make_vec_env(ID, 1, 0)
    with pytest.raises(InvalidParameter, match="features"):
        TokenPolicy(
            plain.observation_space, plain.action_space, lambda _: 1e-3, problem="queue-delay", view="pick"
        )


@pytest.mark.parametrize(("id", "view"), CASES)
def test_weights_are_small_and_come_back(id: str, view: str) -> None:
    env, layout = make(id, view)
    policy, other = make_policy(env, layout), make_policy(env, layout)
    weights = policy.get_weights()
    expected = tokens.shapes(layout) | tokens.critic_shapes(layout)
    assert {name: array.shape for name, array in weights.items()} == expected
    assert sum(array.nbytes for array in weights.values()) < 250_000
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1.0)
    other.set_weights(weights)
    for name, array in other.get_weights().items():
        assert np.array_equal(array, weights[name])
    actor = {name: array for name, array in weights.items() if not name.startswith("critic/")}
    other.set_weights(actor)


def test_weights_that_do_not_fit_are_refused() -> None:
    env, layout = make(ID, "pick")
    policy = make_policy(env, layout)
    weights = policy.get_weights()
    with pytest.raises(InvalidParameter, match="nothing does not belong"):
        policy.set_weights(weights | {"nothing": np.zeros(1)})
    with pytest.raises(InvalidParameter, match="context0/bias must have shape"):
        policy.set_weights(weights | {"context0/bias": np.zeros(3)})
    weights.pop("context0/bias")
    weights["context0/weight"] = weights["context0/weight"] + 1.0
    with pytest.raises(InvalidParameter, match="context0/bias is missing"):
        policy.set_weights(weights)
    assert not np.array_equal(policy.get_weights()["context0/weight"], weights["context0/weight"])


def test_the_first_weights_follow_the_seed_and_scores_begin_near_zero() -> None:
    env, layout = make(ID, "pick")

    def first(seed: int) -> dict[str, np.ndarray]:
        model = PPO(
            TokenPolicy,
            env,
            n_steps=16,
            batch_size=16,
            seed=seed,
            device="cpu",
            policy_kwargs={"problem": "queue-delay", "view": "pick"},
        )
        scores = scores_of(model.policy, env.reset())
        assert np.abs(scores[scores > tokens.NEVER]).max() < 0.2
        return model.policy.get_weights()

    one, same, other = first(1), first(1), first(2)
    assert all(np.array_equal(one[name], same[name]) for name in one)
    assert any(not np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(("id", "view"), CASES)
def test_gradients_reach_every_weight(id: str, view: str) -> None:
    env, layout = make(id, view)
    policy = make_policy(env, layout)
    for observation in observations(env, layout, 4):
        tensors = policy.obs_to_tensor(observation)[0]
        actions, _, _ = policy.forward(tensors)
        values, log_prob, entropy = policy.evaluate_actions(tensors, actions.detach())
        (values.sum() + (log_prob * torch.arange(len(log_prob))).sum() + entropy.sum()).backward()
    for name, parameter in policy.named_parameters():
        # of a layer of which no unit is ever active in so few observations no gradient is seen
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
