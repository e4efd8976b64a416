"""Everything again and again for an hour: the memory, the open files and the threads must stay as they are.

    python -m tests.soak 60 soak.csv

plays for 60 minutes, prints the memory after each round and writes it to a file, if one is named. A round has
every id in every view: an environment made anew, one that lives through the whole run, a batch of
environments with two threads, given workloads, copies, pickles and refused actions; the default policies and
the shipped agent of every id; and a results store that is made, read, verified and removed. It ends with
status 1 if, after the first fifth of the time and two rounds at least, the memory grows by more than LIMIT.
"""

from __future__ import annotations

import copy
import ctypes
import gc
import itertools
import os
import pickle
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from schedgym.agents.agent_policy import make_agent
from schedgym.agents.files import list_pretrained
from schedgym.core.problem import get_problem
from schedgym.errors import InvalidAction
from schedgym.evaluation import evaluate
from schedgym.evaluation.store import ResultsStore
from schedgym.evaluation.sweeps import make_spec, run_sweep
from schedgym.testing import sample_action
from tests.test_all_problems import CASES, IDS, short, small

LIMIT = 0.2  # MiB a minute: 12 MiB an hour
WARM_UP = 0.2  # of the time
ROUNDS = 2  # in which everything is compiled and read once
FEWEST = 5  # rounds that a slope is taken of
STEPS = 60

Row = tuple[float, float, int, int]  # minutes, MiB, open files, threads


def resident() -> float:
    """The memory of this process [MiB] without what it has freed, which would hide what is lost."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # compiling alone leaves hundreds of MiB free
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def play_one(env: Any, seed: int | None) -> None:
    """Some steps, over the ends of episodes, with a copy, a pickle and a refused action between them."""
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    for step in range(STEPS):
        action = sample_action(env.action_space, observation, rng)
        if step == STEPS // 2:
            copy.deepcopy(env).step(action)
            pickle.loads(pickle.dumps(env)).step(action)
            env.unwrapped.record()
            try:
                env.step(None)
            except InvalidAction:
                pass
            else:
                raise AssertionError("a malformed action is accepted")
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            workload = env.unwrapped.record().workload
            observation, _ = env.reset(options={"workload": workload} if step % 2 else None)


def play_batch(envs: Any, seed: int) -> None:
    """Some steps of a batch, in which environments are reset as they end."""
    rng, space = np.random.default_rng(seed), envs.single_action_space
    shown, _ = envs.reset(seed=seed)
    for _ in range(STEPS):
        rows = [{name: array[i] for name, array in shown.items()} for i in range(envs.num_envs)]
        actions = np.array([sample_action(space, row, rng) for row in rows], dtype=space.dtype)
        shown, *_ = envs.step(actions)


def keep_results(folder: Path, seed: int) -> None:
    """A store of a small sweep: written in two goes, read, verified."""
    id = IDS[seed % len(IDS)]
    policies = [get_problem(id).ids[id].reference]
    experiment = {"id": id, "parameters": small(id), "policies": policies}
    for episodes in (4, 8):
        spec = {
            "name": "soak",
            "seeds": [seed],
            "episodes": episodes,
            "chunk": 2,
            "experiments": [experiment],
        }
        run_sweep(make_spec(spec), folder / "r.db", n_jobs=1, progress=False)
    with ResultsStore(folder / "r.db") as store:
        units, damaged = store.verify()
        assert units >= 4 and not damaged and len(store.frame())


def play_round(number: int, living: dict[int, Any]) -> None:
    """Everything once; ``living`` holds the environments that live on, by their case."""
    for index, case in enumerate(CASES):
        id, view = case.values
        if index not in living:
            living[index] = gym.make(id, disable_env_checker=True, **short(id, **view))
        play_one(living[index], None if number else 0)
        play_one(gym.make(id, **short(id, **view)), number)
        mode = ("NextStep", "SameStep")[number % 2]
        play_batch(gym.make_vec(id, num_envs=4, threads=2, autoreset_mode=mode, **short(id, **view)), number)
    for id in IDS:
        evaluate(id, None, 2, seed=number, parameters=small(id), progress=False)
        if id in list_pretrained():
            agent = {"agent": make_agent("pretrained", id)}
            evaluate(id, agent, 2, seed=number, parameters=small(id), progress=False)
    with tempfile.TemporaryDirectory() as folder:
        keep_results(Path(folder), number)


def slope(rows: list[Row]) -> float:
    """The median of the slopes between all pairs of rounds [MiB a minute]: single jumps do not count."""
    pairs = itertools.combinations(rows, 2)
    return float(np.median([(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairs]))


def soak(minutes: float, path: Path | None) -> int:
    """Play for so long, print the memory, and return 1 if it has grown, else 0."""
    rows: list[Row] = []
    living: dict[int, Any] = {}
    began = time.monotonic()
    for number in itertools.count():
        play_round(number, living)
        passed = (time.monotonic() - began) / 60
        rows.append((passed, resident(), len(os.listdir("/proc/self/fd")), threading.active_count()))
        print("round {}: {:.1f} min, {:.1f} MiB, {} files, {} threads".format(number, *rows[-1]), flush=True)
        if path is not None:
            lines = ["{:.3f},{:.2f},{},{}\n".format(*row) for row in rows]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("minutes,mebibytes,files,threads\n" + "".join(lines))
        counted = [row for row in rows[ROUNDS:] if row[0] >= WARM_UP * minutes]
        if passed >= minutes and len(counted) >= FEWEST:
            break
    found, grown = slope(counted), [b - a for a, b in zip(counted[0][2:], counted[-1][2:], strict=True)]
    print(f"{len(counted)} rounds: {found:+.3f} MiB/min, files {grown[0]:+d}, threads {grown[1]:+d}")
    return int(found > LIMIT or max(grown) > 0)


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(soak(float(given[0]) if given else 60.0, Path(given[1]) if len(given) > 1 else None))
