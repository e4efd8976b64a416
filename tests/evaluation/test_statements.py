"""Verdicts on the papers' statements follow from the frame alone."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from schedgym.core import problem as problems
from schedgym.core.problem import Statement, list_problems
from schedgym.evaluation.statements import examine
from tests.evaluations import evaluation_of

TENTH = Statement("here", "bf-exec", ("fcfs",), "mean_delay", 0.1)


def results(values, statements, swept=None, **more):
    """Mean delays, policy -> one value per episode, of a problem whose paper states something of them."""
    rows = [
        {"policy": policy, "episode": e, "seed": 0, "metric": "mean_delay", "value": value}
        for policy, row in values.items()
        for e, value in enumerate(row)
    ]
    table = pd.DataFrame(rows)
    if swept:
        table = pd.concat([table.assign(servers=s) for s in swept])
        table = table[["servers", *(c for c in table.columns if c != "servers")]]
    made = evaluation_of(table, swept=("servers",) if swept else (), **more)
    return dataclasses.replace(made, problem=dataclasses.replace(made.problem, statements=statements))


def test_verdicts():
    rng = np.random.default_rng(0)
    base = rng.uniform(90, 110, 40)
    values = {
        "bf-exec": base,
        "much-worse": base * 1.5 + rng.normal(size=40),
        "half-as-bad": base * 1.14 + rng.normal(size=40),
        "the-same": base + rng.normal(scale=5, size=40),
        "better": base * 0.9,
    }
    stated = Statement("here", "bf-exec", tuple(values)[1:], "mean_delay", 0.2)
    found = {item.rival: item for item in examine(results(values, [stated]))}
    assert {rival: item.verdict for rival, item in found.items()} == {
        "much-worse": "holds",
        "half-as-bad": "in part",
        "the-same": "not reproduced",
        "better": "not reproduced",
    }
    item = found["much-worse"]
    assert item.gain == pytest.approx(1 / 3, abs=0.01) and item.low < item.gain < item.high
    assert found["better"].gain == pytest.approx(-1 / 9, abs=1e-9)


def test_each_setting_has_its_verdict_and_absent_policies_none():
    stated = [
        *(
            Statement("here", "bf-exec", ("fcfs", "absent"), "mean_delay"),
            Statement("", "absent", ("fcfs",), ""),
        )
    ]
    found = examine(results({"bf-exec": [1.0, 1.1], "fcfs": [2.0, 2.1]}, stated, [10, 20]))
    assert [(item.rival, item.setting, item.verdict) for item in found] == [
        ("fcfs", {"servers": 10}, "holds"),
        ("fcfs", {"servers": 20}, "holds"),
    ]


def test_one_episode_has_no_interval():
    (item,) = examine(results({"bf-exec": [1.0], "fcfs": [2.0]}, [TENTH]))
    assert item.verdict == "one episode: no interval, no verdict"
    assert np.isnan(item.low) and item.gain == 0.5


def test_a_ratio_to_a_mean_of_0_is_none():
    (item,) = examine(results({"bf-exec": [1.0, 0.0], "fcfs": [0.0, 0.0]}, [TENTH]))
    assert item.verdict == "the other mean may be 0: no ratio, no verdict" and np.isnan(item.gain)


def test_the_paper_says_nothing_of_other_workloads_than_its_own():
    own = results(
        {"bf-exec": [1.0, 1.1], "fcfs": [2.0, 2.1]}, [TENTH], parameters={"trace": None, "servers": 8}
    )
    assert examine(own)
    for more in ({"parameters": {"trace": "jobs.swf"}}, {"swept": ("workload",)}):
        assert not examine(dataclasses.replace(own, **more))


@pytest.mark.parametrize("name", sorted(list_problems()))
def test_statements_name_what_exists(name):
    problem = problems.get_problem(name)
    from schedgym.core.policy import get_policy_spec

    for statement in problem.statements:
        assert problem.metric(statement.metric).better in ("min", "max")
        for policy in (statement.policy, *statement.rivals):
            get_policy_spec(policy, name)
        assert statement.source and statement.policy not in statement.rivals and 0 <= statement.by < 1
