"""The networks: equivariance, masks, one form for numpy and torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from schedgym.agents.files import LARGEST
from schedgym.agents.network import NEVER, critic_shapes, estimate, forward, initial, shapes
from schedgym.agents.options import NetworkOptions
from schedgym.errors import InvalidParameter
from tests.agents import cases
from tests.lazy import Lazy
from tests.long import some

torch = Lazy("torch")
torch_network = Lazy("schedgym.agents.torch_network", "torch")

ID = "schedgym/QueueDelay-v0"


def make(id: str, view: str, rounds: int = 1, **extra: object) -> tuple[Any, Any, Any]:
    """An environment, its layout, and a network whose scores matter: they are near zero at first."""
    env, layout = cases.vector(id, view, num_envs=6, **extra)
    made = torch_network.Network(layout, initial(layout, np.random.default_rng(4), rounds=rounds))
    torch.manual_seed(4)
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if "/out/" in name or "/value/1/" in name:
                weight.copy_(torch.randn_like(weight))
    return env, layout, made


def scores_of(made: Any, observation: Any) -> np.ndarray:
    with torch.no_grad():
        return made.scores(tensors(made, observation)).numpy()


def values_of(made: Any, observation: Any) -> np.ndarray:
    with torch.no_grad():
        return made.values(tensors(made, observation)).numpy()


def tensors(made: Any, observation: Any) -> dict[str, Any]:
    like = next(made.parameters())
    return {name: torch.as_tensor(array).to(like.dtype) for name, array in observation.items()}


@pytest.mark.parametrize(("id", "view"), some(cases.VIEWS, of=3))
@pytest.mark.parametrize("rounds", some([1, 2]))
def test_permuted_tokens_have_permuted_scores(id: str, view: str, rounds: int) -> None:
    env, layout, made = make(id, view, rounds)
    made.double()  # where only an error of the form can exceed 1e-9
    rng = np.random.default_rng(1)
    spread = 0.0
    for observation in cases.observations(env, layout, 12):
        permuted, order = cases.permute(layout, observation, rng)
        scores = scores_of(made, observation)
        assert np.abs(scores_of(made, permuted) - scores[:, order]).max() < 1e-9
        assert np.abs(values_of(made, permuted) - values_of(made, observation)).max() < 1e-9
        chosen = scores[scores > NEVER]
        spread = max(spread, float(chosen.std()))
    assert spread > 1e-3, "scores that are all equal show nothing"


@pytest.mark.parametrize(("id", "view"), cases.VIEWS)
def test_tokens_that_are_not_there_change_nothing(id: str, view: str) -> None:
    env, layout, made = make(id, view)
    made.double()
    rng = np.random.default_rng(2)
    absent = 0
    for observation in cases.observations(env, layout, 12):
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
        assert np.abs(scores_of(made, filled) - scores_of(made, observation)).max() < 1e-9
        assert np.abs(values_of(made, filled) - values_of(made, observation)).max() < 1e-9
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
    env, layout, made = make(ID, view)
    _, wide, _ = make(ID, view, window=9)
    weights = {name: array.astype(np.float64) for name, array in made.get_weights().items()}
    for observation in cases.observations(env, layout, 5):
        scores = forward(layout, weights, observation)
        spread = forward(wide, weights, wider(observation, layout, 5))
        assert np.allclose(spread[spread > NEVER], scores[scores > NEVER], rtol=0, atol=1e-9)
        assert np.allclose(
            estimate(layout, weights, observation),
            estimate(wide, weights, wider(observation, layout, 5)),
            rtol=0,
            atol=1e-9,
        )


@pytest.mark.parametrize(("id", "view"), cases.VIEWS)
def test_numpy_and_torch_agree(id: str, view: str) -> None:
    """Also over observations without the tokens that nobody has, of which a training learns."""
    env, layout, made = make(id, view)
    weights = made.get_weights()
    assert all(array.dtype == np.float32 for array in weights.values())
    cut = 0
    for observation in cases.observations(env, layout, 12):
        scores, values = forward(layout, weights, observation), estimate(layout, weights, observation)
        assert scores.dtype == np.float32
        np.testing.assert_allclose(scores, scores_of(made, observation), rtol=2e-4, atol=2e-4)
        np.testing.assert_allclose(values, values_of(made, observation), rtol=2e-4, atol=2e-4)
        seen = made.see(observation)
        if made.cut is not None:
            cut += observation[made.cut.key].shape[1] - seen[made.cut.key].shape[1]
        with torch.no_grad():
            np.testing.assert_allclose(made.scores(seen).numpy(), scores, rtol=2e-4, atol=2e-4)
            np.testing.assert_allclose(made.values(seen).numpy(), values, rtol=2e-4, atol=2e-4)
    assert cut or layout.problem != "partial-value", "nothing was cut: that shows nothing"


@pytest.mark.parametrize(("id", "view"), cases.DISCRETE)
def test_absent_tokens_are_closed_without_a_mask_of_actions(id: str, view: str) -> None:
    env, layout, made = make(id, view, action_mask=False)
    assert "action_mask" not in env.single_observation_space.spaces
    for observation in cases.observations(env, layout, 4):
        scores = scores_of(made, observation)
        start = 0
        for segment in layout.segments:
            if len(segment.tokens) == 1 and segment.tokens[0].mask is not None:
                there = observation[segment.tokens[0].mask] != 0
                closed = scores[:, start : start + segment.count] == NEVER
                assert (closed == ~there).all()
            start += segment.count


@pytest.mark.parametrize(("id", "view"), cases.VIEWS)
def test_weights_are_small_and_come_back(id: str, view: str) -> None:
    _, layout, made = make(id, view)
    _, _, other = make(id, view)
    weights = made.get_weights()
    expected = shapes(layout) | critic_shapes(layout)
    assert {name: array.shape for name, array in weights.items()} == expected
    assert sum(array.nbytes for array in weights.values()) < 250_000
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1.0)
    other.set_weights(weights)
    for name, array in other.get_weights().items():
        assert np.array_equal(array, weights[name])


def test_weights_that_do_not_fit_are_refused() -> None:
    _, _, made = make(ID, "pick")
    weights = made.get_weights()
    fewer = {name: array + 1.0 for name, array in weights.items() if name != "context0/bias"}
    strange = {"nothing": np.zeros(1)}
    for other in (fewer, weights | strange, weights | {"context0/bias": np.zeros(3)}):
        with pytest.raises(InvalidParameter, match="have other names or shapes than those of this network"):
            made.set_weights(other)
    for name, array in made.get_weights().items():
        assert np.array_equal(array, weights[name])


@pytest.mark.parametrize(("id", "view"), cases.VIEWS)
def test_gradients_reach_every_weight(id: str, view: str) -> None:
    env, layout, made = make(id, view)
    for observation in cases.observations(env, layout, 4):
        seen = made.see(observation)
        scores = made.scores(seen)
        actions = made.sample(scores.detach(), torch.randn_like(scores)).detach()
        log_probs, entropy = made.judge(seen, scores, actions)
        weighed = (log_probs * torch.arange(len(log_probs))).sum()
        (made.values(seen).sum() + weighed + entropy.sum()).backward()
    for name, parameter in made.named_parameters():
        # of a layer of which no unit is ever active in so few observations no gradient is seen
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name


def test_an_agent_file_holds_the_widest_network() -> None:
    """More than 64 MiB, beyond which such an agent was written and could not be read."""
    _, layout = cases.vector(ID, "pick", num_envs=6)
    widest = NetworkOptions(width=1024, rounds=2)
    made = shapes(layout, widest.width, widest.rounds) | critic_shapes(layout, widest.width)
    size = sum(4 * int(np.prod(shape)) for shape in made.values())
    assert 2**26 < size < 0.9 * LARGEST
