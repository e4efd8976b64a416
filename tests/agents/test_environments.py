"""Trainings whose environments are on a GPU: that of numba's simulator, and a real one where there is one."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from schedgym.agents.training import learn
from schedgym.errors import InvalidParameter
from tests.agents.test_ppo import QUEUE, VALUE, configuration
from tests.core.test_cuda import simulate
from tests.core.test_cuda_gpu import has_gpu
from tests.lazy import Lazy
from tests.long import long, thinned

torch = Lazy("torch")
environments = Lazy("schedgym.agents.environments", "torch")
ppo = Lazy("schedgym.agents.ppo", "torch")
torch_network = Lazy("schedgym.agents.torch_network", "torch")

FLOWTIME, FAIR = "schedgym/FlowtimePacking-v0", "schedgym/GeoFair-v0"
#: with a critic and with copies, of each kind of views: a choice, a pair, scores
WAYS = [
    (QUEUE, "pick", 1),
    (QUEUE, "placement", 4),
    (VALUE, "priority", 4),
    (FLOWTIME, "priority", 1),
    (FAIR, "weights", 4),
]


def tiny(id: str, view: str, copies: int) -> Any:
    parameters = {
        QUEUE: {"tasks": 6, "servers": 2, "window": 4},
        VALUE: {"jobs": 5, "rate": 10.0, "window": 4},
        FLOWTIME: {"jobs": 4, "window": 4},
        FAIR: {"jobs": 4, "sites": 3, "window": 4},
    }[id]
    options = {"batch_size": 16, **({"n_steps": 12} if copies == 1 else {})}
    return configuration(id, view, copies, parameters=parameters, num_envs=4, ppo=options)


def trained(training: Any) -> dict[str, np.ndarray]:
    """The weights, and what else an update leaves, but for actions that have been taken."""
    training.update()
    return {n: array for n, array in training.state()[0].items() if "/exchange/" not in n}


def check_training(id: str, view: str, copies: int) -> None:
    """Two updates on the GPU do what they do on the CPU, also if the second goes on from a checkpoint."""
    config = tiny(id, view, copies)
    here, there, again = (ppo.PPOTraining(config, device) for device in ("cpu", "cuda", "cuda"))
    assert type(here.environments) is not type(there.environments)
    here.start()
    there.start()
    for update in range(2):
        expected, found = trained(here), trained(there)
        if update == 0:
            again.restore(*there.state())
        assert expected.keys() == found.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array, err_msg=f"{update}: {name}")
        assert here.state()[1] == there.state()[1]
    for name, array in trained(again).items():
        np.testing.assert_array_equal(array, expected[name], err_msg=f"after a restart: {name}")


TRAINING = """
import sys
from schedgym.agents.gradient import one_thread
from schedgym.core import cuda
from tests.agents.test_environments import WAYS, check_training
cuda.BLOCK = 4
with one_thread():  # as all trainings
    check_training(*WAYS[int(sys.argv[1])])
print("equal")
"""


@long
@pytest.mark.parametrize("number", thinned(range(len(WAYS)), of=5))
def test_trainings_on_the_simulator_are_those_of_the_cpu(number: int) -> None:
    assert simulate(TRAINING, str(number)).split() == ["equal"]


@pytest.fixture
def gpu() -> None:
    if not has_gpu() or not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("id", "view", "copies"), WAYS)
def test_trainings_on_a_gpu_are_those_of_the_cpu(
    id: str, view: str, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the same random numbers; sums of float32 numbers have another order there."""
    config = tiny(id, view, copies)
    here, there = (ppo.PPOTraining(config, device) for device in ("cpu", "cuda"))
    for name in ("normal", "gumbel", "permutation"):
        drawn = getattr(torch_network.Random([config.seed, 1], torch.device("cpu")), name)
        monkeypatch.setattr(there.random, name, lambda *shape, draw=drawn: draw(*shape).to(there.device))
        drawn = getattr(torch_network.Random([config.seed, 1], torch.device("cpu")), name)
        monkeypatch.setattr(here.random, name, drawn)
    here.start()
    there.start()
    expected, found = here.play(), there.play()
    assert found.actions.is_cuda and found.advantages.is_cuda
    for name in ("actions", "log_probs", "advantages", "lengths"):
        given, own = (getattr(batch, name).cpu().numpy() for batch in (found, expected))
        np.testing.assert_allclose(given, own, rtol=1e-3, atol=1e-4, err_msg=name)
    here.improve(expected)
    there.improve(found)
    moved = there.network.get_weights()
    for name, array in here.network.get_weights().items():
        np.testing.assert_allclose(moved[name], array, rtol=1e-2, atol=1e-3, err_msg=name)


@pytest.mark.usefixtures("gpu")
def test_a_training_learns_on_a_gpu() -> None:
    parameters = {"jobs": 20, "rate": 10.0, "window": 16}
    config = configuration(
        VALUE,
        "priority",
        8,
        parameters=parameters,
        steps=100_000,
        num_envs=512,
        network={"width": 16, "log_std": -0.5},
        ppo={"batch_size": 1024, "learning_rate": 5e-3, "n_epochs": 4, "gamma": 0.9},
        evaluation={"every": 10**6, "episodes": 64, "keep": "last"},
    )
    result = learn(config, device="cuda")
    assert result.curve[-1].objective > 1.02 * result.curve[0].objective


# What goes with it -----------------------------------------------------------------------------


def test_only_the_first_gpu_that_is_visible_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "find_device", lambda name: torch.device(name))
    with pytest.raises(InvalidParameter, match="CUDA_VISIBLE_DEVICES"):
        environments.make_environments(QUEUE, {}, 2, "cuda:1")


def test_a_gpus_random_numbers_go_on_from_a_checkpoint() -> None:
    """torch's generator, here that of the CPU: those of a GPU differ in the numbers only."""
    random, other = (torch_network.Random([seed], torch.device("cpu")) for seed in (1, 2))
    before = random.state()
    for own in (random, other):
        own.generator = torch.Generator().manual_seed(int(own.rng.integers(100)))
    with pytest.raises(InvalidParameter, match="checkpoint: of a training on another device"):
        random.restore(before)
    random.normal(5)
    state = random.state()
    draws = {"normal": (100_000,), "gumbel": (100_000,), "permutation": (50,)}
    first = {name: getattr(random, name)(*shape) for name, shape in draws.items()}
    other.restore(state)
    for name, shape in draws.items():
        assert torch.equal(getattr(other, name)(*shape), first[name])
    assert sorted(first["permutation"].tolist()) == list(range(50))
    for name, mean, spread in (("normal", 0.0, 1.0), ("gumbel", 0.5772, np.pi / 6**0.5)):
        assert float(first[name].mean()) == pytest.approx(mean, abs=0.02)
        assert float(first[name].std()) == pytest.approx(spread, abs=0.02)
    with pytest.raises(InvalidParameter, match="checkpoint: of a training on another device"):
        torch_network.Random([1], torch.device("cpu")).restore(state)


@long
def test_environments_of_whole_episodes_wait_for_each_other() -> None:
    config = dataclasses.replace(tiny(VALUE, "priority", 4), seed=3)
    training = ppo.PPOTraining(config)
    training.start()
    own, layout = training.environments, training.network.layout
    playing = [own.running]
    while own.running:
        with torch.no_grad():
            chosen, _ = training.act(training.network.see(own.observation))
        reward, end, live = own.step(layout, chosen)
        assert not end[~live].any() and not reward[~live].any()
        assert own.running == int(own.live.sum()) == int(live.sum()) - int(end.sum())
        playing.append(own.running)
    own.begin()
    assert playing[0] == own.running == 4 and len(set(playing)) > 2, "all ended together: that shows nothing"
