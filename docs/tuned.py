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
#: parameters under which a policy has a meaning that the defaults do not give it
SETTINGS: dict[str, dict[str, Any]] = {
    "flowtime/ocorp+": {"alpha": 100.0},
    "flowtime/ocorp+m": {"kind": "2d"},
    "partial-value/m-greedy": {"model": "discrete"},
    "partial-value/deadline-aware": {"single": True},
}
EPISODES = {"schedgym/ParallelJCT-v0": 10}  # else 20


def tunable() -> Iterator[tuple[str, PolicySpec]]:
    """Each id with its policies with open options: those it runs, and in a problem's first id all others."""
    for problem in list_problems().values():
        for number, id in enumerate(problem.ids):
            for spec in list_policies(problem.name):
                named = [own for own, v in problem.ids.items() if spec.name.partition("/")[2] in v.policies]
                if spec.open_options() and (id in named or (number == 0 and not named)):
                    yield id, spec


def found(id: str, spec: PolicySpec) -> dict[str, Any]:
    """The entry of a policy."""
    parameters, episodes = SETTINGS.get(spec.name, {}), EPISODES.get(id)
    result = tune(id, spec.name, episodes, parameters=parameters, store=STORE, n_jobs=1)
    words = ["schedgym", "tune", id, spec.name.partition("/")[2]]
    words += [] if episodes is None else ["--episodes", str(episodes)]
    words += [word for name, value in parameters.items() for word in ("--set", f"{name}={value}")]
    return result.entry() | {"command": shlex.join(words)}


if __name__ == "__main__":
    STORE.parent.mkdir(exist_ok=True)
    wanted = sys.argv[1:]
    known = {(entry["id"], entry["policy"]): entry for entry in read_tuned()} if wanted else {}
    entries = []
    for id, spec in tunable():
        kept = known.get((id, spec.name)) if spec.name not in wanted else None
        entries.append(kept or found(id, spec))
        print(id, spec.name, entries[-1]["options"] or "the defaults", flush=True)
    text = json.dumps({"command": "python docs/tuned.py", "tuned": entries}, indent=1, allow_nan=False)
    shipped_path().write_text(text + "\n", encoding="utf-8")
