"""The same episodes whatever the number of threads, processes, and the seed of Python's hashes."""

from __future__ import annotations

from tests.interpreted import results_of
from tests.long import long, thinned

SCRIPT = """
import hashlib, json
import gymnasium as gym
import numpy as np
from schedgym.evaluation import evaluate
from schedgym.testing import sample_action
from tests.long import thinned
from tests.test_all_problems import IDS, small

def digest(id, threads):
    envs = gym.make_vec(id, num_envs=4, threads=threads, **small(id))
    rng, found = np.random.default_rng(0), hashlib.sha256()
    shown, _ = envs.reset(seed=0)
    for _ in range(60):
        rows = [{name: array[i] for name, array in shown.items()} for i in range(4)]
        actions = [sample_action(envs.single_action_space, row, rng) for row in rows]
        shown, *result, _ = envs.step(np.array(actions, dtype=envs.single_action_space.dtype))
        for array in (*(shown[name] for name in sorted(shown)), *result):
            found.update(array.tobytes())
    return found.hexdigest()

found, NUMBERS = {}, thinned((1, 2, 4), of=2)
for id in thinned(IDS, of=len(IDS)):
    found[id] = [digest(id, threads) for threads in NUMBERS], []
    for n_jobs in NUMBERS:
        frame = evaluate(id, None, 2, parameters=small(id), n_jobs=n_jobs, progress=False)
        frame = frame[frame["metric"] != "policy_seconds"]
        text = frame.drop(columns=[name for name in frame if "seconds" in name]).to_csv(index=False)
        found[id][1].append(hashlib.sha256(text.encode()).hexdigest())
print(json.dumps(found))
"""


@long
def test_digests_of_threads_processes_and_hash_seeds() -> None:
    first, *others = (results_of(SCRIPT, PYTHONHASHSEED=seed) for seed in thinned(("0", "1", "12345"), of=2))
    assert others and all(other == first for other in others)
    assert len({tuple(threads) for threads, _ in first.values()}) == len(first)
    for id, (threads, processes) in first.items():
        assert len(threads) > 1 and len(set(threads)) == 1, f"{id}: threads"
        assert len(processes) > 1 and len(set(processes)) == 1, f"{id}: processes"
