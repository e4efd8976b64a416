"""Best known schedules: optimal on toy instances, between bound and policies, repeatable, within budget."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from schedgym import cli
from schedgym.agents.files import load_pretrained
from schedgym.core.problem import get_problem, list_problems
from schedgym.core.rollouts import play_out
from schedgym.errors import InvalidParameter
from schedgym.evaluation import best_known
from schedgym.evaluation.best_known import BEST_KNOWN, BestKnown, Budget, distances, take_best
from schedgym.evaluation.episodes import make_env, play
from schedgym.evaluation.plan import default_policies
from schedgym.evaluation.runner import compare
from schedgym.problems.toys import load_toys
from tests.agents.cases import COMPILED_SLOWLY
from tests.long import all_but, long, some
from tests.tables import entry

FLOWTIME, QUEUE = "schedgym/FlowtimePacking-v0", "schedgym/QueueDelay-v0"
IDS = [id for problem in list_problems().values() for id in problem.ids]
SMALL, UNSAID = entry(__file__, "SMALL"), entry(__file__, "UNSAID")
#: schedules that a search tries for the optimum of a toy, where 400 are too few to outweigh the agent
TRIES = {(QUEUE, "keep-free"): 4000}


def search_of(id: str, evaluations: int) -> BestKnown:
    return BestKnown(load_pretrained(id), Budget(evaluations=evaluations))


def toys() -> list[Any]:
    """Every second toy in ``make test``, of the ids that compile soon."""
    found = []
    for problem in list_problems().values():
        id = next(iter(problem.ids))
        late = [long] if id in COMPILED_SLOWLY else []
        found += [pytest.param(id, name, marks=late) for name in load_toys(problem.name)]
    return some(found, of=4, late=2)


@pytest.mark.parametrize(("id", "name"), toys())
def test_the_optimum_of_a_toy_is_found(id: str, name: str) -> None:
    """The optima are those of brute force; see test_toys_have_the_optimum_that_they_claim of each problem."""
    workload, optimum, _, environment = load_toys(id)[name]
    given = dict(environment)
    if given.get("model") == "discrete":
        given |= {"view": "priority", "single_task": False}
    policies = {BEST_KNOWN: search_of(id, TRIES.get((id, name), 400))}
    evaluation = compare(id, policies, workloads=[workload], parameters=given)
    metric = evaluation.objective
    (found,) = evaluation.metric(BEST_KNOWN, metric.name)
    if name in UNSAID.get(id, ()):
        assert metric.sign * found > metric.sign * optimum
    else:
        assert found == pytest.approx(optimum, rel=1e-9)


@pytest.mark.parametrize("id", all_but(IDS, COMPILED_SLOWLY))
def test_it_is_between_bound_and_policies(id: str) -> None:
    """Evaluations check the rewards, the bound, and with the validator the schedule of every episode."""
    agent = "pretrained"
    problem = get_problem(id)
    names = {name: name for name in default_policies(problem, id, [SMALL[id]])[:3]}
    acting = {**names, agent: BestKnown(load_pretrained(id), Budget(evaluations=1))}
    acting = {**acting, BEST_KNOWN: search_of(id, 60)}
    found = compare(id, acting, episodes=2, seed=424242, parameters=SMALL[id], progress=False)
    del acting[BEST_KNOWN]
    metric = found.objective
    before, after = (
        {label: metric.sign * own.metric(label, metric.name) for label in own.policies}
        for own in (found, take_best(found))
    )
    assert (before[BEST_KNOWN] <= before[agent]).all(), "the search begins at the agent"
    assert after.pop(BEST_KNOWN).tolist() == np.min(list(before.values()), axis=0).tolist()
    assert all(after[label].tolist() == before[label].tolist() for label in acting)
    if (found.frame["metric"] == "gap").any():
        assert (take_best(found).metric(BEST_KNOWN, "gap") >= -1e-6).all()
    [(setting, policy, distance)] = distances(take_best(found))
    assert setting == {} and policy in acting and metric.sign * distance >= -1e-12


def played(id: str, evaluations: int, seed: int = 424242) -> tuple[float, str]:
    search = search_of(id, evaluations)
    env = make_env(id, search.acting_parameters(id, SMALL[id]))
    outcome = play(env, search, seed=seed, label=BEST_KNOWN)
    return outcome.metrics[env.problem.objective_of(env.simulator.parameters)], env.record().digest()


def test_it_is_repeatable_and_longer_searches_are_no_worse() -> None:
    first, digest = played(QUEUE, 300)
    assert played(QUEUE, 300) == (first, digest)
    assert played(QUEUE, 1)[0] > first, "the agent's schedule has room"
    assert played(QUEUE, 150)[0] >= first


def test_keys_go_with_jobs_not_with_rows() -> None:
    """With the scores of all jobs equal, jobs are served by their keys alone, in every slot."""
    search = search_of(FLOWTIME, 1)
    given = {"jobs": 12, "servers": "1", "horizon": 2}
    env = make_env(FLOWTIME, search.acting_parameters(FLOWTIME, given))
    play(env, search, seed=1)
    simulator, scorer = env.simulator, search._scorer
    assert scorer is not None
    keys = np.random.default_rng(0).permutation(12).astype(np.float64)
    simulator.begin_again(np.ones(1, dtype=bool))
    weights = np.zeros_like(scorer.weights(search.agent.weights["theta"], 1))
    play_out(simulator, scorer.form, scorer.masks, weights, np.ones(1, dtype=bool), keys[np.newaxis])
    record = env.record()
    workload = record.workload
    completion = np.array([record.end[record.job == job].max() for job in range(12)])
    for slot in np.unique(record.start):
        active = (workload.jobs["arrival"] <= slot) & (completion > slot)
        ran = record.job[(record.start <= slot) & (record.end > slot)]
        assert keys[ran].max() == keys[active].max()


def test_the_budget_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    run = best_known._Climb.run

    def counted(self: Any, budget: Budget) -> None:
        run(self, budget)
        counts.append(self.evaluations)

    monkeypatch.setattr(best_known._Climb, "run", counted)
    played(QUEUE, 37)
    assert counts == [37]
    clock = iter(np.arange(1000.0))
    monkeypatch.setattr(best_known, "time", SimpleNamespace(process_time=lambda: next(clock)))
    search = BestKnown(load_pretrained(QUEUE), Budget.parse("5s"))
    play(make_env(QUEUE, search.acting_parameters(QUEUE, SMALL[QUEUE])), search)
    assert counts == [37, 1 + 4]


@pytest.mark.parametrize("text", ["0", "-3", "1.5", "s", "0s", "five"])
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="^budget: must be a number"):
        Budget.parse(text)
    assert str(Budget.parse("20s")) == "20 CPU seconds" and str(Budget.parse("50")) == "50 evaluations"


def test_the_table_shows_it_beside_the_policies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    command = ["compare", QUEUE, "--policies", "bf-exec,fcfs", "--episodes", "2", "--tasks", "40"]
    command += ["--servers", "3", "--plot", "none", "--best-known", "50", "--json", str(out)]
    assert cli.main(command) == 0
    assert "best-known: no policy, but the best schedule known" in capsys.readouterr().out
    report = json.loads(out.read_text())
    assert report["best_known"] == {BEST_KNOWN: {"evaluations": 50, "seconds": None}}
    means = {row["policy"]: row["mean"] for row in report["summary"]}
    assert report["summary"][0]["bound"] <= means[BEST_KNOWN] <= min(means["bf-exec"], means["fcfs"])
