"""Tune the baselines and write what was found: ``python docs/tuned.py`` makes baselines/tuned.json.

Every policy with open options runs at the default size of its id, or, if some are named
(``python docs/tuned.py queue-delay/bf``), these: then the entries of the others stay. Results stand in
.cache/tuned.db, so that a run that was cut off goes on. It takes some minutes on one core.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from schedgym.core.policy import PolicySpec, list_policies
from schedgym.core.problem import list_problems
from schedgym.evaluation import tune
from schedgym.evaluation.tuned import read_tuned, shipped_path

STORE = Path(__file__).parents[1] / ".cache" / "tuned.db"
#: parameters under which a policy has a meaning that the defaults do not give it, and sizes at which other
#: options are best
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "flowtime/ocorp+": [{"alpha": 100.0}],
    "flowtime/ocorp+m": [{"kind": "2d"}],
    "partial-value/m-greedy": [{"model": "discrete"}],
    "partial-value/deadline-aware": [{"single": True}],
    **dict.fromkeys(
        [f"parallel-jct/{name}" for name in "fcfs-mar llf-mar ontapra ontapra-tapra slf-mar".split()],
        [{}, {"jobs": 540}],
    ),
}
EPISODES = {"schedgym/ParallelJCT-v0": 10}  # else 20
FEW = 5  # episodes of a setting that is larger than the defaults


def tunable() -> Iterator[tuple[str, PolicySpec, dict[str, Any]]]:
    """Each id, its policies with open options (its first id: also those no id runs), and settings."""
    for problem in list_problems().values():
        for number, id in enumerate(problem.ids):
            for spec in list_policies(problem.name):
                named = [own for own, v in problem.ids.items() if spec.name.partition("/")[2] in v.policies]
                if spec.open_options() and (id in named or (number == 0 and not named)):
                    yield from ((id, spec, parameters) for parameters in SETTINGS.get(spec.name, [{}]))


def found(id: str, spec: PolicySpec, parameters: dict[str, Any]) -> dict[str, Any]:
    """The entry of a policy in a setting."""
    episodes = FEW if "jobs" in parameters else EPISODES.get(id)
    result = tune(id, spec.name, episodes, parameters=parameters, store=STORE, n_jobs=1)
    words = ["schedgym", "tune", id, spec.name.partition("/")[2]]
    words += [] if episodes is None else ["--episodes", str(episodes)]
    words += [word for name, value in parameters.items() for word in ("--set", f"{name}={value}")]
    return result.entry() | {"command": shlex.join(words)}


if __name__ == "__main__":
    STORE.parent.mkdir(exist_ok=True)
    wanted = sys.argv[1:]
    known = {(e["id"], e["policy"], str(e["parameters"])): e for e in read_tuned()} if wanted else {}
    entries = []
    for id, spec, parameters in tunable():
        kept = known.get((id, spec.name, str(parameters))) if spec.name not in wanted else None
        entries.append(kept or found(id, spec, parameters))
        print(id, spec.name, parameters, entries[-1]["options"] or "the defaults", flush=True)
    text = json.dumps({"command": "python docs/tuned.py", "tuned": entries}, indent=1, allow_nan=False)
    shipped_path().write_text(text + "\n", encoding="utf-8")
