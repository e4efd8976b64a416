"""A policy as one expression: its program, its columns, and what it decides."""

import math
import os

import numpy as np
import pytest

import schedgym
from schedgym.core.expression import Expression
from schedgym.core.policy import get_policy_spec, make_policy
from schedgym.core.score_policy import score_rows
from schedgym.core.workload_files import save_workload
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.episodes import make_env

QUEUE, FLOW = "schedgym/QueueDelay-v0", "schedgym/FlowtimePacking-v0"
BUSY = {"servers": 2, "tasks": 60, "window": "all"}


def random_text(rng, depth=4):
    kind = rng.integers(0, 5 if depth else 2)
    if kind == 0:
        return f"{rng.uniform(0, 3):.3g}"
    if kind == 1:
        return str(rng.choice(["a", "b", "`c d`"]))
    parts = [random_text(rng, depth - 1) for _ in range(2)]
    if kind == 2:
        return f"{rng.choice(['abs', 'ceil', 'exp', 'floor', 'log', 'sqrt', '-'])}({parts[0]})"
    if kind == 3:
        return f"{rng.choice(['min', 'max'])}({parts[0]}, {parts[1]})"
    return f"({parts[0]} {rng.choice(['+', '-', '*', '/', '**'])} {parts[1]})"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # 1 / 0, where kernels are not compiled
def test_the_kernel_computes_what_the_expression_says():
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=6) for name in ("a", "b", "c d")}
    finite = 0
    for _ in range(300):
        expression = Expression(random_text(rng))
        expected = np.broadcast_to(expression(values), 6)
        columns = np.array([values[name] for name in expression.names]).reshape(-1, 6)
        program, scores = expression.program(), np.empty(6)
        present = np.array([1, 1, 0, 1, 1, 1], dtype=np.int8)
        best = score_rows(program, columns, np.empty(len(program[0])), present, scores)
        expected = np.where((present == 0) | np.isnan(expected), -math.inf, expected)
        np.testing.assert_allclose(scores, expected, rtol=1e-12)
        assert best == (0 if np.isneginf(scores).all() else scores.argmax())
        finite += bool(np.isfinite(expected[0]))
    assert finite > 150


def test_an_expression_is_the_heuristic_that_it_writes_down():
    """Shortest first in view pick is bf-exec; in view priority, by remaining work, it is srpt."""
    frame = schedgym.evaluate(QUEUE, ["score: -execution", "bf-exec"], 5, parameters=BUSY)
    delays = frame[frame.metric == "mean_delay"].pivot(index="episode", columns="policy", values="value")
    assert (delays["score: -execution"] == delays["bf-exec"]).all() and (delays["bf-exec"] > 0).all()
    assert schedgym.score(QUEUE, "-execution", episodes=5, parameters=BUSY) == delays["bf-exec"].mean()


def test_a_workload_file_that_was_written_anew_is_read_anew(tmp_path):
    path, env, found = tmp_path / "w.json", make_env(QUEUE, BUSY), []
    for seed in (0, 1):
        env.reset(seed=seed)
        save_workload(env.simulator.workload(0), path)
        os.utime(path, (seed, seed))
        found.append(schedgym.score(QUEUE, "-execution", episodes=1, parameters={"workload": str(path)}))
    assert found[0] != found[1]


def test_views_with_ranks():
    text = "score: -remaining"
    policy = make_policy(text, "flowtime")
    assert policy.acting_parameters(FLOW, {})["view"] == "priority"
    assert policy.acting_parameters(FLOW, {"view": "pick"})["action_mask"]
    given = {"jobs": 12}
    served = [schedgym.score(FLOW, sign + "remaining", episodes=3, parameters=given) for sign in "-+"]
    assert served[0] < served[1]
    by_pick = schedgym.score(FLOW, "-remaining", episodes=1, parameters={**given, "view": "pick"})
    assert math.isfinite(by_pick)


def test_the_score_of_an_id_is_not_that_of_another():
    given = {"jobs": 10}
    for id, metric in (("schedgym/GeoFair-v0", "fairness"), ("schedgym/GeoAssign-v0", "mean_response")):
        frame = schedgym.evaluate(id, "score: age", 2, parameters=given)
        mean = frame[frame.metric == metric].value.mean()
        assert schedgym.score(id, "age", episodes=2, parameters=given) == mean


def test_columns_of_a_score():
    for text in ("cpu", "demand_1", "clock", "waiting"):
        assert schedgym.score(QUEUE, text, episodes=1, parameters=BUSY) >= 0
    interface = make_env(QUEUE, {"view": "pick", "action_mask": True}).interface
    with pytest.raises(UnknownName, match="unknown column of a score 'executon'; did you mean 'execution'"):
        make_policy("score: -executon", "queue-delay").reset(interface, None)
    with pytest.raises(InvalidParameter, match="schedgym/SingleJob-v0 has no view priority or pick"):
        schedgym.score("schedgym/SingleJob-v0", "load", episodes=1)
    with pytest.raises(InvalidParameter, match="is not arithmetic"):
        schedgym.score(QUEUE, "[1].pop", episodes=1)
    with pytest.raises(InvalidParameter, match="episodes"):
        schedgym.score(QUEUE, "cpu", episodes=0)


def test_names_of_expressions():
    spec = get_policy_spec("score: -a / b", "queue-delay")
    assert spec.knows == () and get_policy_spec("score: -execution", "queue-delay").knows == ("execution",)
    assert (spec.name, spec.problem) == ("queue-delay/score: -a / b", "queue-delay")
    assert get_policy_spec(spec.name).name == spec.name
    assert make_policy(spec.name).expression.names == ("a", "b")
    with pytest.raises(InvalidParameter, match="is no arithmetic expression"):
        get_policy_spec("score: 1 +", "queue-delay")
    with pytest.raises(UnknownName):
        get_policy_spec("score: -a")
