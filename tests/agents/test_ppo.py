"""The PPO of this package: its formulas, and what it may play; test_training.py has what all trainings do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from schedgym.agents.config import Config, make_config
from schedgym.agents.network import estimate, forward
from schedgym.agents.training import learn, train
from schedgym.errors import InvalidParameter
from tests.lazy import Lazy
from tests.long import some
from tests.test_all_problems import small

torch = Lazy("torch")
ppo = Lazy("schedgym.agents.ppo", "torch")
torch_network = Lazy("schedgym.agents.torch_network", "torch")

QUEUE = "schedgym/QueueDelay-v0"
VALUE = "schedgym/PartialValue-v0"
#: a view of each kind: a choice, a pair, scores in the three ways in which they fill a Box
KINDS = [
    (QUEUE, "pick"),
    (QUEUE, "placement"),
    (VALUE, "priority"),
    ("schedgym/FlowtimePacking-v0", "priority"),
    ("schedgym/GeoFair-v0", "weights"),
    ("schedgym/SingleJob-v0", "search"),
]


def configuration(id: str = QUEUE, view: str = "pick", copies: int = 1, **changes: Any) -> Config:
    data: dict[str, Any] = {
        "id": id,
        "algorithm": "ppo",
        "view": view,
        "parameters": {"tasks": 30, "servers": 3, "window": 8} if id == QUEUE else small(id),
        "steps": 1024,
        "num_envs": 8,
        "checkpoint": 256,
        "network": {"width": 8},
        "ppo": {"batch_size": 64, "learning_rate": 2e-3, "n_epochs": 2, "copies": copies},
        "evaluation": {"every": 512, "episodes": 8},
    }
    data["ppo"] |= ({"n_steps": 16} if copies == 1 else {}) | changes.pop("ppo", {})
    return make_config({**data, **changes})


def playing(id: str, view: str, copies: int = 1, **changes: Any) -> Any:
    """A training whose scores matter: they are near zero at first."""
    training = ppo.PPOTraining(configuration(id, view, copies, **changes))
    training.start()
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weight in training.network.named_parameters():
            if "/out/" in name or "/value/1/" in name:
                weight.copy_(torch.randn_like(weight))
    return training


# Formulas --------------------------------------------------------------------------------------------------


def test_temporal_advantages_are_sums_of_temporal_differences() -> None:
    rng = np.random.default_rng(0)
    rewards, values, ends = rng.normal(size=(7, 3)), rng.normal(size=(8, 3)), rng.random((7, 3)) < 0.3
    assert ends.any() and not ends.all()
    given = (torch.from_numpy(array) for array in (rewards, values, ends.astype(float)))
    found = ppo.temporal_advantages(*given, 0.9, 0.8)
    for i in range(3):
        for t in range(7):
            total, weight = 0.0, 1.0
            for s in range(t, 7):
                after = 0.0 if ends[s, i] else values[s + 1, i]
                total += weight * (rewards[s, i] + 0.9 * after - values[s, i])
                if ends[s, i]:
                    break
                weight *= 0.9 * 0.8
            assert float(found[t, i]) == pytest.approx(total, abs=1e-12)


def test_shared_advantages_are_sums_minus_the_mean_of_the_copies() -> None:
    rewards = np.random.default_rng(0).normal(size=(5, 6))
    found = ppo.shared_advantages(torch.from_numpy(rewards), 3, 0.9)
    for i in range(6):
        group = range(3 * (i // 3), 3 * (i // 3) + 3)
        for t in range(5):
            sums = [sum(0.9 ** (s - t) * rewards[s, j] for s in range(t, 5)) for j in group]
            assert float(found[t, i]) == pytest.approx(sums[i % 3] - np.mean(sums), abs=1e-12)


def log_prob_and_entropy(layout: Any, scores: np.ndarray, log_std: float, there: Any, action: Any) -> Any:
    """Of one decision, in plain Python."""
    if layout.kind != "scores":
        top = max(scores)
        norm = top + math.log(sum(math.exp(score - top) for score in scores))
        logs = [score - norm for score in scores]
        return logs[int(action)], -sum(math.exp(log) * log for log in logs if log > -1e6)
    log_prob = entropy = 0.0
    for score, here, number in zip(scores, there, action, strict=True):
        if here:
            away = (number - score) / math.exp(log_std)
            log_prob += -0.5 * away**2 - log_std - 0.5 * math.log(2.0 * math.pi)
            entropy += 0.5 + 0.5 * math.log(2.0 * math.pi) + log_std
    return log_prob, entropy


@pytest.mark.parametrize(("id", "view"), KINDS)
@pytest.mark.parametrize("copies", some([1, 4]))
def test_the_loss_is_that_of_a_plain_loop(id: str, view: str, copies: int) -> None:
    """Over observations that are whole, by the network in numpy; learned in pieces that are cut."""
    training = playing(id, view, copies, ppo={"ent_coef": 0.1})
    network, layout, options = training.network, training.network.layout, training.options
    whole: list[dict[str, np.ndarray]] = []
    see = network.see
    network.see = lambda seen: whole.append({n: a.copy() for n, a in seen.items()}) or see(seen)  # type: ignore[method-assign,func-returns-value]
    played: list[np.ndarray] = []
    judge = training.judge
    training.judge = lambda seen, rows: played.append(rows["live"].numpy()) or judge(seen, rows)  # type: ignore[method-assign,func-returns-value]
    batch = training.play()
    weights = training.network.get_weights()
    with torch.no_grad():  # away from the weights that played
        for weight in training.network.parameters():
            weight.add_(0.05 * torch.randn_like(weight))
    moved = training.network.get_weights()
    count, live = len(batch.log_probs), played[0].ravel()
    flat = {name: np.concatenate([one[name] for one in whole])[: len(live)][live] for name in whole[0]}
    assert count == live.sum()
    mask = layout.segments[0].tokens[0].mask
    there = np.ones((count, layout.size)) if mask is None else flat[mask]
    before, after = (forward(layout, own, flat).astype(float) for own in (weights, moved))
    values = estimate(layout, moved, flat) if copies == 1 else None
    expected = divergence = 0.0
    for k in range(count):
        stds = [float(own["log_std"][0]) if layout.kind == "scores" else 0.0 for own in (weights, moved)]
        given = batch.actions[k].numpy()
        old, _ = log_prob_and_entropy(layout, before[k], stds[0], there[k], given)
        new, entropy = log_prob_and_entropy(layout, after[k], stds[1], there[k], given)
        assert float(batch.log_probs[k]) == pytest.approx(old, abs=2e-3)
        ratio, advantage = math.exp(new - float(batch.log_probs[k])), float(batch.advantages[k])
        expected -= min(ratio * advantage, min(max(ratio, 0.8), 1.2) * advantage)
        expected -= 0.1 * entropy
        if values is not None:
            expected += options.vf_coef * (values[k] - float(batch.targets[k])) ** 2
        divergence += ratio - 1.0 - (new - float(batch.log_probs[k]))
    pieces = [ppo.loss(network, piece, options) for piece in batch.pieces(network, torch.arange(count))]
    assert sum(float(total.detach()) for total, _ in pieces) == pytest.approx(expected, rel=2e-3, abs=2e-2)
    assert sum(float(more) for _, more in pieces) == pytest.approx(divergence, rel=2e-2, abs=2e-2)


# Playing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("id", "view"), KINDS)
@pytest.mark.parametrize("copies", some([1, 4]))
def test_no_closed_action_is_ever_played(id: str, view: str, copies: int) -> None:
    """With strict=True an infeasible action raises; a Box has none."""
    strict = {**configuration(id, view).parameters, "strict": True}
    training = playing(id, view, copies, parameters=strict)
    closed = 0
    for _ in range(3):
        batch = training.play()
        assert torch.isfinite(batch.log_probs).all() and (batch.log_probs > -1e6).all()
        given = batch.observation.get("action_mask")
        if given is None or training.network.layout.kind == "scores":
            continue
        mask = given.reshape(len(given), -1)
        index = batch.actions
        inside = index < mask.shape[1]  # of pairs, the last action closes the decision
        assert mask[inside].gather(1, index[inside][:, None]).all()
        closed += int((~mask).sum())
    assert closed or training.network.layout.kind == "scores", "no action was closed: that shows nothing"


def test_copies_play_one_workload() -> None:
    training = ppo.PPOTraining(configuration(VALUE, "priority", 4))
    training.start()
    simulator = training.environments.simulator
    jobs = simulator.observation["jobs"]
    assert (jobs[:4] == jobs[0]).all() and (jobs[4:] == jobs[4]).all() and (jobs[0] != jobs[4]).any()
    training.play()
    following = simulator.observation["jobs"]
    assert (following[:4] == following[0]).all() and simulator.episodes.tolist() == [2] * 8


def test_every_decision_of_whole_episodes_is_learned_from() -> None:
    """Environments whose episode has ended wait, and what they are shown then is left out."""
    training = playing("schedgym/SingleJob-v0", "search", 4)
    batch = training.play()
    assert (
        len(batch.log_probs) == training.steps == len(batch.advantages) == len(batch.observation["globals"])
    )
    assert float(batch.advantages.mean()) == pytest.approx(0.0, abs=1e-5)
    assert float(batch.advantages.square().mean()) == pytest.approx(1.0, abs=1e-4)


# Training --------------------------------------------------------------------------------------------------


def test_an_update_ends_early_where_the_policy_moves_too_far(monkeypatch) -> None:
    batches: list[int] = []
    original = ppo.loss
    monkeypatch.setattr(ppo, "loss", lambda *given: batches.append(1) or original(*given))
    counts = []
    for limit in (None, 1e-9):
        training = playing(VALUE, "priority", 4, ppo={"target_kl": limit, "n_epochs": 5})
        batch = training.play()
        batches.clear()
        training.improve(batch)
        counts.append(len(batches))
    assert counts[1] < counts[0]


def test_devices(tmp_path) -> None:
    assert torch_network.find_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    for name in ("cuda:99", "abacus", *([] if torch.cuda.is_available() else ["cuda"])):
        with pytest.raises(InvalidParameter, match=f"device: '{name}' is not there"):
            learn(configuration(), device=name)
    with pytest.raises(InvalidParameter, match="device: must be cpu, cuda or auto, got 'meta'"):
        learn(configuration(), device="meta")
    with pytest.raises(InvalidParameter, match="device: has no effect on algorithm 'sb3-ppo'"):
        train(configuration(algorithm="sb3-ppo"), tmp_path / "a.npz", device="cpu")
