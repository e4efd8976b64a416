"""Speed of environments and of PPO on a GPU: the measurements of ``python -m benchmarks gpu``.

Environments. Of each id the first vector environment that its benchmarks list is measured at growing numbers
of environments, with features, masks and copies, and on one CPU core in the same table. A rate counts the
time inside ``step``, until the GPU has done all of it; actions, fixed scores or the first feasible choice,
are made where the observations are. Runs are short: ``episodes`` says how many ended in them, and that many
new ones began, whose cost is in the rate.

Share of the memory's bandwidth: bytes that a step moves, over what a copy of a large array moves in the same
time. A step moves at least what it hands out (written by the kernels, read and written by the copy), the
results and the actions; and at most that, and every array of an environment read and written once. Both
shares are given: how much of an array a step touches depends on what happens in it.

Divergence: threads of a warp that take different branches wait for each other. Where all environments have
the same seed and actions, none does; ``divergence`` says how many times as fast they are then.

PPO. The shipped configuration trains on one CPU core; on the GPU it has more environments and larger batches.
A trained step is a decision that was played and learned from; the seconds are those of a clock on the wall,
after an update that compiles. The objective is that of the agent at the end, on the validation's episodes.
"""

from __future__ import annotations

import dataclasses
import gc
import math
import statistics
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from benchmarks.cases import cases
from benchmarks.training import configurations
from schedgym.agents.config import Config
from schedgym.core.random import VALIDATION_SEED
from schedgym.envs import find_cuda
from schedgym.errors import InvalidParameter
from schedgym.evaluation.bench import Benchmark, Report, chosen, finish, first_feasible
from schedgym.extras import require

SIZES = (1 << 10, 1 << 14, 1 << 16, 1 << 18)  # environments on the GPU
SECONDS, TRAINING_SECONDS = 1.0, 60.0  # of a run, and of a training
QUICK = 10  # a quick run is shorter by this factor
REPETITIONS = 3
WARM_UP = 3  # steps
COPIED = 1 << 30  # bytes of the large array
EPISODES = 128  # of the validation
#: what PPO has on the GPU in the place of the configuration's own; whole episodes take more memory
MANY = {"num_envs": 1 << 14, "n_steps": 32, "batch_size": 1 << 16}
MANY_WHOLE = {"num_envs": 1 << 12, "batch_size": 1 << 15}


class Measured(NamedTuple):
    """The steps per second of environments, the episodes that ended, and the bytes that one's step moves."""

    rate: float
    episodes: int
    least: int
    most: int


class TrainingRate(NamedTuple):
    """The trained steps per second of a training, and the objective of its agent."""

    rate: float
    objective: float


class _Torch:
    """The functions of torch that are used: on the GPU, or if numba simulates one, on the CPU."""

    def __init__(self) -> None:
        self.torch: Any = require("torch", "agents")
        self.has_gpu = not find_cuda().SIMULATED

    @property
    def name(self) -> str:
        """The GPU's name."""
        return str(self.torch.cuda.get_device_name()) if self.has_gpu else "numba's simulator"

    def wait(self) -> None:
        """Wait until the GPU has done what it was told."""
        if self.has_gpu:
            self.torch.cuda.synchronize()

    def free(self) -> None:
        """Give back the GPU's memory that nobody uses any more."""
        gc.collect()
        if self.has_gpu:
            self.torch.cuda.empty_cache()


def copy_rate(size: int = COPIED) -> float:
    """Bytes per second that are read and written where an array of ``size`` bytes on the GPU is copied."""
    own = _Torch()
    device = "cuda" if own.has_gpu else "cpu"
    first, second = (own.torch.zeros(size, dtype=own.torch.uint8, device=device) for _ in range(2))
    second.copy_(first)
    own.wait()
    begin, count = perf_counter(), 20
    for _ in range(count):
        second.copy_(first)
    own.wait()
    return 2.0 * size * count / (perf_counter() - begin)


def _actor(env: Any, own: _Torch, alike: bool) -> Callable[[Any], Any]:
    """The function observation -> actions; both are on the GPU if the environments are."""
    space, on_gpu = env.single_action_space, hasattr(env.simulator, "template")
    as_tensor: Any = require("schedgym.agents.environments", "agents").as_tensor
    if isinstance(space, spaces.Box):
        low, high = np.maximum(space.low, -0.9), np.minimum(space.high, 0.9)
        fixed = np.random.default_rng(0).uniform(low, high, (env.num_envs, *space.shape))
        if alike:
            fixed[:] = fixed[0]
        given = own.torch.from_numpy(fixed).to("cuda") if on_gpu and own.has_gpu else fixed
        return lambda observation: given

    def act(observation: Any) -> Any:
        actions = first_feasible({"action_mask": as_tensor(observation["action_mask"])})
        return actions if actions.is_cuda else actions.numpy()

    return act


def environment_rate(
    case: Benchmark, num_envs: int, device: str, seconds: float, alike: bool = False
) -> Iterator[Measured]:
    """Measure a vector environment again and again.

    Args:
        case: benchmark of a vector environment.
        num_envs: number of environments, in the place of the benchmark's.
        device: "cpu" or "cuda".
        seconds: of a measurement; it takes at least one step.
        alike: all environments have the same seed, and actions.

    Raises:
        InvalidParameter: if there is no GPU, or its memory is too small.
    """
    own = _Torch()
    env: Any = gym.make_vec(
        case.id, num_envs=num_envs, autoreset_mode=case.autoreset, device=device, **case.parameters
    ).unwrapped
    act = _actor(env, own, alike)
    observation, _ = env.reset(seed=[0] * num_envs if alike else 0)
    handed = sum(array.nbytes for array in observation.values()) // num_envs
    other = 2 * 8 * max(math.prod(env.single_action_space.shape), 1) + 2 * 12  # actions and results
    held = 0
    if device == "cuda":
        held = sum(array.row for array in env.simulator.memory.values() if array.count)
    while True:
        spent, count, episodes = 0.0, -WARM_UP, 0
        while spent < seconds or count < 1:
            actions = act(observation)
            own.wait()
            begin = perf_counter()
            observation, _, terminated, truncated, _ = env.step(actions)
            own.wait()
            if count >= 0:
                spent += perf_counter() - begin
                on_cpu = device == "cpu"
                episodes += int(np.sum(terminated | truncated) if on_cpu else env.simulator.waiting)
            count += 1
        yield Measured(count * num_envs / spent, episodes, 3 * handed + other, 3 * handed + other + 2 * held)


def train_for(config: Config, device: str, seconds: float) -> TrainingRate:
    """Train for about so many seconds by the clock, after two updates, by which it is known how many fit.

    Raises:
        InvalidParameter: if the memory of the GPU is too small.
    """
    own = _Torch()
    try:
        return _train_for(config, device, seconds, own)
    except own.torch.cuda.OutOfMemoryError as error:
        reason = str(error).partition("\n")[0]
        raise InvalidParameter(f"num_envs: a training with {config.num_envs}: {reason}") from None


def _train_for(config: Config, device: str, seconds: float, own: _Torch) -> TrainingRate:
    ppo: Any = require("schedgym.agents.ppo", "agents")
    one_thread, held_out = (
        getattr(require(f"schedgym.agents.{module}", "agents"), name)
        for module, name in (("gradient", "one_thread"), ("simulation", "held_out"))
    )
    with one_thread():
        training = ppo.PPOTraining(dataclasses.replace(config, steps=10**12), device)
        training.start()
        training.update()
        own.wait()
        before, begin = training.steps, perf_counter()
        training.update()
        own.wait()
        done = training.steps - before
        updates = max(round(seconds / (perf_counter() - begin)), 1)
        # the learning rate falls over the steps
        training.config = dataclasses.replace(config, steps=training.steps + updates * done)
        before, begin = training.steps, perf_counter()
        for _ in range(updates):
            training.update()
        own.wait()
        rate = (training.steps - before) / (perf_counter() - begin)
        decide = training.network.decide
        rows = held_out(config.id, decide, EPISODES, VALIDATION_SEED, parameters=config.environment)
    return TrainingRate(rate, float(np.mean([row[config.metric.name] for row in rows])))


def _on_gpu(config: Config) -> Config:
    """The configuration of a training on a GPU: more environments, and larger batches."""
    changes: dict[str, Any] = dict(MANY if config.ppo.copies == 1 else MANY_WHOLE)
    num_envs = changes.pop("num_envs")
    return dataclasses.replace(config, num_envs=num_envs, ppo=dataclasses.replace(config.ppo, **changes))


def main(
    name: str | None = None,
    quick: bool = False,
    json: str | Path | None = None,
    training: bool = False,
    sizes: tuple[int, ...] = SIZES,
) -> dict[str, Any]:
    """Measure, print a table, and write JSON if a file is named.

    Args:
        name: an environment id or a problem; None: all of them.
        quick: a tenth of the time, one repetition.
        json: file for the results.
        training: only trainings.
        sizes: numbers of environments on the GPU.

    Raises:
        UnknownName: for a name that is neither.
        InvalidParameter: if there is no GPU.
        gymnasium.error.DependencyNotInstalled: without the extras ``agents`` and ``cuda``.
    """
    own, repetitions, share = _Torch(), 1 if quick else REPETITIONS, 1.0 / QUICK if quick else 1.0
    if own.has_gpu:
        require("schedgym.agents.torch_network", "agents").find_device("cuda")
    print(f"{own.name}; experimental; one CPU core beside it; medians of {repetitions} runs")
    report, result = Report(), dict[str, Any]()
    report.begin("GPU")
    rate = copy_rate(COPIED if own.has_gpu else COPIED >> 10) / 1e9
    limit = report.add("copy of a large array, read and written", [rate], "GB/s", "-", device=own.name)
    for problem, id in chosen(name):
        report.begin(id)
        vectors = [case for case in cases(problem, id) if case.num_envs]
        if vectors and not training:
            _measure_environments(vectors[0], report, sizes, repetitions, (share * SECONDS, limit * 1e9))
        _measure_trainings(configurations(id)["ppo"], report, repetitions, share * TRAINING_SECONDS)
        result = finish("gpu", report.rows, json)  # each time: a run that is cut off leaves what it found
    return result


def _measure_environments(
    case: Benchmark,
    report: Report,
    sizes: tuple[int, ...],
    repetitions: int,
    limits: tuple[float, float],
) -> None:
    """Add the rows of a benchmark; ``limits`` are the seconds of a run, and the GPU's bytes per second."""
    seconds, bandwidth = limits
    base, rates = 0.0, dict[int, float]()  # of the CPU, and of each number of environments on the GPU
    middle = sizes[len(sizes) // 2]
    on_gpu = [*(("cuda", size, False) for size in sizes), ("cuda", middle, True)]
    for device, num_envs, alike in [("cpu", case.num_envs, False), *on_gpu]:
        if alike and num_envs not in rates:  # left out
            continue
        try:
            runs = list(islice(environment_rate(case, num_envs, device, seconds, alike), repetitions))
        except InvalidParameter as error:
            _leave_out(report, num_envs, error)
            continue
        finally:
            _Torch().free()
        rate = statistics.median(run.rate for run in runs)
        more: dict[str, Any] = {"num_envs": num_envs, "episodes": runs[0].episodes}
        where, target = "GPU", ">= 50 x"
        if device == "cpu":
            base, where, target = rate, "one CPU core", "-"
        elif alike:
            where, target = "alike, GPU", "-"
            more["divergence"] = round(rate / rates[num_envs], 2)
        else:
            rates[num_envs] = rate
            shares = (f"{100.0 * rate * moved / bandwidth:.3g}%" for moved in runs[0][2:])
            more |= {"ratio": round(rate / base, 2), "bandwidth": " to ".join(shares)}
        what = f"{case.parameters.get('view', '')}, features, {num_envs:,} environments, {where}"
        report.add(what, [run.rate for run in runs], "steps/s", target, **more)


def _leave_out(report: Report, num_envs: int, error: InvalidParameter) -> None:
    """Say that a number of environments is not measured, for lack of memory; other errors are raised."""
    reason = str(error)
    if not reason.startswith("num_envs"):
        raise error
    print(f"{num_envs:,} environments: left out: {reason}", flush=True)
    report.rows.append({"id": report.id, "what": "left out", "num_envs": num_envs, "reason": reason})


def _measure_trainings(config: Config, report: Report, repetitions: int, seconds: float) -> None:
    """Add the rows of PPO on one CPU core, and on the GPU."""
    base = 0.0
    for device, own in (("cpu", config), ("cuda", _on_gpu(config))):
        runs = []
        try:
            for repetition in range(repetitions):
                runs.append(train_for(dataclasses.replace(own, seed=own.seed + repetition), device, seconds))
                _Torch().free()
        except InvalidParameter as error:
            _leave_out(report, own.num_envs, error)
            continue
        finally:
            _Torch().free()
        rate = statistics.median(run.rate for run in runs)
        base = base or rate
        what = f"ppo {config.view}, {own.num_envs:,} environments, " + (
            "one CPU core" if device == "cpu" else "GPU"
        )
        more = {"num_envs": own.num_envs, "ratio": round(rate / base, 2)}
        target = "-" if device == "cpu" else ">= 1e6"
        report.add(f"{what}, trained steps per second", [run.rate for run in runs], "steps/s", target, **more)
        metric = f"{config.metric.name} after {seconds:.0f} s"
        report.add(f"{what}, {metric}", [run.objective for run in runs], "", "-")
