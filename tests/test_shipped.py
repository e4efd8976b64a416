"""The kernels of a wheel: nothing is compiled where they fit, and every digest is that of kernels made here.

``.ci/checks`` makes the wheel of all ids, for some ten minutes; tests/test_kernels.py that of one kernel.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import llvmlite.binding
import pytest

from schedgym.core import kernel_cache
from tests.long import long, weekly
from tests.test_all_problems import IDS
from tests.test_packaging import FOLDERS, copy_sources, install

#: as in the Makefile; kernels with bounds checks are no part of a wheel
LEVEL = {"SCHEDGYM_SHIP_KERNELS": "1", "NUMBA_CPU_NAME": kernel_cache.LEVEL, "NUMBA_CPU_FEATURES": ""}
FITS = all(llvmlite.binding.get_host_cpu_features().get(name) for name in kernel_cache.FEATURES)
CHECKS = ("NUMBA_BOUNDSCHECK", "SCHEDGYM_GUARD")

#: prints, for each id, a digest of an episode in each view and of the results of its policies and its agent
PLAY = """
import hashlib, json, sys
import numpy as np
import schedgym
from schedgym.agents.files import list_pretrained
from schedgym.agents.agent_policy import make_agent
from schedgym.core.problem import get_problem
from schedgym.evaluation.episodes import make_env
from schedgym.evaluation.runner import evaluate
from schedgym.testing import all_views, sample_action

def episode(id, view):
    env = make_env(id, {**get_problem(id).presets["small"], **view})
    rng, sha = np.random.default_rng(0), hashlib.sha256()
    observation, _ = env.reset(seed=5)
    for _ in range(300):
        for name in sorted(observation):
            sha.update(np.ascontiguousarray(observation[name]).tobytes())
        action = sample_action(env.action_space, observation, rng)
        observation, reward, terminated, truncated, info = env.step(action)
        sha.update(np.float64(reward).tobytes())
        if terminated or truncated:
            sha.update(repr(info["metrics"]).encode())
            break
    return env.record().digest() + sha.hexdigest()

def results(id, policies):
    frame = evaluate(id, policies, 1, seed=3, parameters=get_problem(id).presets["small"], progress=False)
    frame = frame[frame["metric"] != "policy_seconds"]
    return frame.drop(columns=[name for name in frame if "seconds" in name]).to_csv(index=False)

found = {}
for id in sys.argv[1:]:
    found[id] = {str(view): episode(id, view) for view in all_views(id)}
    found[id]["policies"] = results(id, None)
    if id in list_pretrained():
        found[id]["agent"] = results(id, {"agent": make_agent("pretrained", id)})
print(json.dumps([schedgym.__file__, found]))
"""


def python(arguments: list[str], folder: Path, **variables: str) -> str:
    """What Python prints, run in a folder, without the bounds checks that .ci/checks asks for."""
    environment = {name: value for name, value in os.environ.items() if name not in CHECKS} | variables
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@long
@weekly
@pytest.mark.skipif(not FITS, reason=f"this processor is not of {kernel_cache.LEVEL}")
def test_the_kernels_of_a_wheel_serve_everywhere_and_change_no_digest(tmp_path: Path) -> None:
    first, source, site = (tmp_path / name for name in ("first", "source", "site"))
    copy_sources(source, "kernels")
    for folder, inside in FOLDERS.items():  # and once more as it is laid out when installed
        shutil.copytree(source / folder, first / inside)
    python(["-m", "schedgym", "warmup", *IDS], first, PYTHONPATH=str(first), **LEVEL)
    shutil.move(first / "schedgym" / "kernels", source / "schedgym" / "kernels")
    install(source, site)
    cache = tmp_path / "cache"
    given = {"PYTHONPATH": str(site), "NUMBA_CACHE_DIR": str(cache)}
    place, shipped = json.loads(python(["-c", PLAY, *IDS], tmp_path, **given))
    assert Path(place).is_relative_to(site)
    assert not list(cache.rglob("*.nbc")), "compiled, though the wheel brings kernels"
    assert list((site / "schedgym" / "kernels").rglob("*.nbc"))
    place, made_here = json.loads(python(["-c", PLAY, *IDS], tmp_path))
    assert not Path(place).is_relative_to(tmp_path)
    assert shipped == made_here and set(shipped) == set(IDS)
    assert all(len(set(found.values())) > 3 for found in shipped.values())
