"""What an agent loses by a trace or a generator that is no part of its training.

``python -m benchmarks transfer ID --json docs/transfer/ID.json`` trains once for each domain of ``CASES`` by
the shipped configuration: without the domain if the configuration has it, as it has generators, else with it,
as it has no traces. This agent and the shipped one then play what no training has seen of the domain, which
of a trace are its last windows, and so do the id's policies with tuned options.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from benchmarks.search import SEED, play
from schedgym.agents.agent_policy import AgentPolicy
from schedgym.agents.config import config_for, load_config
from schedgym.agents.domains import DomainOptions, episodes_of_part
from schedgym.agents.files import Agent, load_pretrained
from schedgym.agents.training import learn, metadata_of
from schedgym.core.problem import get_problem
from schedgym.evaluation.bench import chosen, finish
from schedgym.evaluation.episodes import make_env
from schedgym.evaluation.plan import resolve_policies
from schedgym.evaluation.tuned import SHIPPED
from schedgym.traces.fetch import fetch

EPISODES, QUICK_EPISODES = 40, 2
#: parameters whose value is a data set of ``schedgym trace fetch``
FILES = ("trace", "nodes")
FACEBOOK = {"trace": "facebook-2010"}
AZURE = {"trace": "azure-llm-code", "trace_format": "azure-llm"}
ALIBABA = {"trace": "alibaba-2023-pods", "nodes": "alibaba-2023-nodes"}
#: as in the sweep of QueueDelay's card: the trace's own load is below 1%, at which nothing waits
BUSY = {"servers": 8, "tasks": 500, "load": 0.9, "resources": ("cpu", "memory", "gpu")}
#: id -> its domains: names of the shipped configuration's, or parameters of traces
CASES: dict[str, list[str | dict[str, Any]]] = {
    "schedgym/PartialValue-v0": [FACEBOOK, AZURE, "linear", "discrete"],
    "schedgym/FlowtimePacking-v0": [ALIBABA, AZURE, "2d", "mapreduce"],
    "schedgym/GeoFair-v0": [FACEBOOK],
    "schedgym/GeoAssign-v0": [FACEBOOK],
    "schedgym/QueueDelay-v0": [{**ALIBABA, **BUSY}, "even", "gpu"],
}


def main(id: str | None = None, quick: bool = False, json_file: str | None = None) -> None:
    """Train and measure, print a line a policy, and write the objectives of all episodes as JSON.

    Args:
        id: an id or a problem; None: all that have cases.
        quick: two generations and two episodes.
        json_file: where the results go.
    """
    found: list[dict[str, Any]] = []
    for _, own in chosen(id):
        for case in CASES.get(own, []):
            found.append({"id": own, "domain": case, "seed": SEED, "rows": _measure(own, case, quick)})
            finish("transfer", found, json_file)  # what is measured stays if the rest is cut off


def _measure(id: str, case: str | dict[str, Any], quick: bool) -> list[dict[str, Any]]:
    """The rows of the two agents, called "with" and "without", and of the baselines."""
    config = load_config(config_for(id))
    domains = {**config.domains}
    if isinstance(case, str):
        given = dict(domains[case].parameters)
        # of the validation, too, which chooses among the weights that are tried
        domains = {name: own for name, own in domains.items() if own.parameters != given}
    else:
        given = {name: str(fetch(text)) if name in FILES else text for name, text in case.items()}
        domains["trace"] = DomainOptions.build(parameters=given)
    search = dataclasses.replace(config.search, generations=2) if quick else config.search
    config = dataclasses.replace(config, domains=domains, search=search)
    result = learn(config)
    trained = AgentPolicy(Agent(result.weights, metadata_of(config, result, ""), ""))
    shipped = AgentPolicy(load_pretrained(id))
    policies: dict[str, Any] = {"with": shipped, "without": trained}
    if not isinstance(case, str):
        policies = {"with": trained, "without": shipped}
    policies |= resolve_policies(get_problem(id), id, None, {}, given, [{}], SHIPPED).acting
    count = QUICK_EPISODES if quick else EPISODES
    numbers = list(range(count))
    if not isinstance(case, str):
        simulator = make_env(id, given).simulator
        windows = episodes_of_part(simulator, "test", SEED, np.arange(count)).tolist()
        numbers = list(dict.fromkeys(windows))  # there may be fewer of them
    rows = []
    for label, policy in policies.items():
        rows.append(play(id, given, label, policy, numbers))
        print(f"{id} {case} {label}: mean {np.mean(rows[-1]['objectives']):.6g}", flush=True)
    return rows
