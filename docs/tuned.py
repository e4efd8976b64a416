"""Tune the baselines and write what was found: ``python docs/tuned.py`` makes baselines/tuned.json.

Every policy with open options runs at the default size of its id. Results stand in .cache/tuned.db, so that a
run that was cut off goes on. It takes some minutes on one core.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from schedgym.core.policy import PolicySpec, list_policies
from schedgym.core.problem import list_problems
from schedgym.evaluation import tune
from schedgym.evaluation.tuned import shipped_path

STORE = Path(__file__).parents[1] / ".cache" / "tuned.db"
#: parameters under which a policy has a meaning that the defaults do not give it
SETTINGS: dict[str, dict[str, Any]] = {
    "flowtime/ocorp+": {"alpha": 100.0},
    "flowtime/ocorp+m": {"kind": "2d"},
    "partial-value/m-greedy": {"model": "discrete"},
    "partial-value/deadline-aware": {"single": True},
}
EPISODES = {"schedgym/ParallelJCT-v0": 10}  # else 20
#: ids of which variants that name a planner run by default or not at all: one may take minutes for an episode
SLOW = ("schedgym/ParallelJCT-v0",)


def tunable() -> Iterator[tuple[str, PolicySpec]]:
    """Each id with its policies with open options: those it runs, and in a problem's first id all others."""
    for problem in list_problems().values():
        for number, id in enumerate(problem.ids):
            for spec in list_policies(problem.name):
                named = [own for own, v in problem.ids.items() if spec.name.partition("/")[2] in v.policies]
                if spec.open_options() and (id in named or (number == 0 and not named)):
                    yield id, spec


def runs() -> Iterator[tuple[str, PolicySpec]]:
    """Those of :func:`tunable` that are run here."""
    for id, spec in tunable():
        default = spec.name.partition("/")[2] in list_problems()[spec.problem].ids[id].policies
        if default or id not in SLOW or "planner" not in spec.fixed:
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
    entries = []
    for id, spec in runs():
        entries.append(found(id, spec))
        print(id, spec.name, entries[-1]["options"] or "the defaults", flush=True)
    text = json.dumps({"command": "python docs/tuned.py", "tuned": entries}, indent=1, allow_nan=False)
    shipped_path().write_text(text + "\n", encoding="utf-8")
