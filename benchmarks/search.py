"""Search at decisions: ``python -m benchmarks search ID --json docs/search/ID.json``.

In each case of ``CASES`` the shipped agent, baselines, searches by the agent and rollouts play the same
episodes, which nobody trained on. A search is measured as a policy, which knows what has arrived, where the
observations show all that its copies have, and with a copy of the future, too: clairvoyant, and no policy.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from schedgym.agents.files import load_pretrained
from schedgym.agents.search_policy import SearchPolicy, make_contender
from schedgym.core.policy import make_policy
from schedgym.core.problem import get_problem
from schedgym.evaluation.bench import chosen, finish
from schedgym.evaluation.episodes import make_env
from schedgym.evaluation.plan import acting_parameters
from schedgym.playing import steps

SEED = 424242
EPISODES = 8
SAMPLES = (4, 16, 64)
#: id -> parameters, baselines that act in their own view, and those that the rollouts try
CASES: dict[str, list[tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]]] = {
    "schedgym/QueueDelay-v0": [
        ({"tasks": 100, "servers": 4}, ("dot-exec", "bf-exec"), ("dot-exec",)),
        ({"tasks": 100}, ("dot-exec", "bf-exec"), ("dot-exec",)),
        ({}, ("dot-exec", "bf-exec"), ()),
    ],
    "schedgym/PartialValue-v0": [({}, ("concave",), ())],
    "schedgym/FlowtimePacking-v0": [({"jobs": 40}, ("srvf", "tetris"), ("srvf",))],
    "schedgym/ParallelJCT-v0": [({"jobs": 20}, ("ontapra",), ())],
    "schedgym/GeoAssign-v0": [
        ({"durations": "constant"}, ("ata-greedy",), ()),
        ({}, ("ata-greedy",), ()),
    ],
    "schedgym/GeoFair-v0": [
        ({"durations": "constant"}, ("amf",), ("srpt",)),
        ({}, ("amf",), ()),
    ],
    "schedgym/SingleJob-v0": [({}, ("gsa",), ("tapra-fast",))],
}


def policies_of(id: str, given: dict[str, Any], baselines: Any, tried: Any, samples: Any) -> dict[str, Any]:
    """Label -> policy, for all that play a case."""
    problem = get_problem(id)
    found = {"pretrained": make_contender("pretrained", id)}
    found |= {name: make_policy(name, problem.name) for name in baselines}
    hidden = problem.hidden is not None and problem.hidden(vars(problem.build(id, given)))
    named = [] if hidden else [f"search-{count}:pretrained" for count in samples]
    named += [":".join(("rollout:pretrained", *tried))] * bool(tried)
    found |= {name: make_contender(name, id) for name in named}
    for count in samples:
        label = f"clairvoyant-{count}:pretrained"
        found[label] = SearchPolicy(load_pretrained(id), label, count, clairvoyant=True)
    return found


def play(id: str, given: dict[str, Any], label: str, policy: Any, episodes: Iterable[int]) -> dict[str, Any]:
    """The objectives of a policy's episodes, and the median over them of CPU milliseconds a decision."""
    problem = get_problem(id)
    env = make_env(id, acting_parameters(problem, id, given, policy))
    objective, values, spent = problem.objective_of(env.simulator.parameters), [], []
    for episode in episodes:
        began = time.process_time()
        for decisions, step in enumerate(steps(env, policy, seed=SEED, episode=episode, label=label)):
            if step.ended:
                values.append(step.info["metrics"][objective])
                spent.append(1000 * (time.process_time() - began) / decisions)
    return {"policy": label, "objectives": values, "milliseconds": float(np.median(spent))}


def main(id: str | None = None, quick: bool = False, json_file: str | None = None) -> None:
    """Measure, print a line a policy, and write the objectives of all episodes as JSON.

    Args:
        id: an id or a problem; None: all.
        quick: two episodes and four samples.
        json_file: where the results go.
    """
    found = []
    samples, episodes = (SAMPLES[:1], 2) if quick else (SAMPLES, EPISODES)
    for _, own in chosen(id):
        for given, baselines, tried in CASES[own]:
            rows: list[dict[str, Any]] = []
            found.append({"id": own, "parameters": given, "seed": SEED, "rows": rows})
            for label, policy in policies_of(own, given, baselines, tried, samples).items():
                rows.append(play(own, given, label, policy, range(episodes)))
                mean, cost = np.mean(rows[-1]["objectives"]), rows[-1]["milliseconds"]
                print(f"{own} {given} {label}: mean {mean:.6g}, {cost:.3g} ms of CPU a decision", flush=True)
                finish("search", found, json_file)  # what is measured stays if the rest is cut off
