"""The policies in the environment: the model's plans, equal ones in every view, refused options."""

from __future__ import annotations

from pathlib import Path

import pytest

import schedgym
from schedgym.core.policy import list_policies
from schedgym.papers.shi2017.model import one_job
from tests.parallel_jct import linear_programs, random_jobs
from tests.playing import play
from tests.single_job.test_dynamics import instances, make, of

NAMES = [spec.name.partition("/")[2] for spec in list_policies("single-job")]
EQUAL = [name for name in NAMES if name.endswith("-equal")]
PLAN = {"view": "plan", "strict": True, "action_mask": False}


@pytest.mark.parametrize("dyadic", [True, False])
def test_plans_are_the_models(dyadic: bool, tmp_path: Path) -> None:
    policies = {name: schedgym.make_policy(f"single-job/{name}") for name in NAMES}
    for one in instances(25, 3, dyadic):
        env = of(one, tmp_path, **PLAN)
        for name, evaluate in (
            ("tapra-fast", one_job.optra),
            ("min-min", one_job.optra),
            ("min-min-equal", one_job.equal_share),
        ):
            if name == "tapra-fast":
                plan = one_job.tapra_fast(one)
            else:
                plan = one_job.min_min(one, evaluate)
            assert plan is not None
            measured = play(env, policies[name]).metrics
            record = env.record()
            assert tuple(record.server.tolist()) == plan.placement
            expected = evaluate(one, plan.placement)
            assert record.amount[:, 0].tolist() == pytest.approx(expected.vcpus, rel=1e-12)
            assert measured["jct"] == pytest.approx(expected.jct, rel=1e-12)
            if dyadic:
                assert measured["jct"] == expected.jct
        for name in ("tapra", "mm-ga", "gsa", "mm-ga-equal", "gsa-equal", "random", "most-efficient"):
            measured = play(env, policies[name]).metrics
            placement = tuple(env.record().server.tolist())
            best = one_job.equal_share if name in EQUAL else one_job.optra
            assert measured["jct"] == pytest.approx(best(one, placement).jct, rel=1e-12)
            assert one.affords(one.energy(placement))
            assert measured["jct"] >= linear_programs.lower_bound(one) * (1 - 1e-6)
            if name == "most-efficient":
                assert placement == one_job.most_efficient(one)


@pytest.mark.parametrize("name", EQUAL)
def test_equal_shares_are_sent_and_kept(name: str) -> None:
    env = make(tasks=20, arity=4, **PLAN)
    policy = schedgym.make_policy(f"single-job/{name}")
    other = schedgym.make_policy(f"single-job/{name.removesuffix('-equal')}", allocation="equal-share")
    for seed in range(3):
        measured = play(env, policy, seed).metrics
        assert measured["jct"] == pytest.approx(measured["equal_share_jct"], rel=1e-12)
        digest = env.record().digest()
        assert play(env, other, seed).metrics == measured
        assert env.record().digest() == digest
        assert play(env, schedgym.make_policy("single-job/tapra-fast"), seed).metrics["jct"] < measured["jct"]


@pytest.mark.parametrize("view", ["plan", "place", "search"])
def test_workloads_may_have_fewer_tasks_and_other_groups(view: str, tmp_path: Path) -> None:
    """The policy takes the groups from the observation, anew in every episode, with room to spare."""
    small = list(instances(30, 5, True, tree=False))
    one = next(i for i in instances(200, 6, True) if i.tasks == 5 and i.servers == 5 and len(i.groups) > 6)
    env = of(one, tmp_path, view=view, strict=True, **({"max_moves": 1000} if view == "search" else {}))
    policy = schedgym.make_policy("single-job/tapra-fast")
    played = 0
    for other in small:
        if other.servers == 5 and len(other.groups) <= len(one.groups):
            plan = one_job.tapra_fast(other)
            assert plan is not None
            play(env, policy, workload=random_jobs.job_workload(other))
            assert tuple(env.record().server.tolist()) == plan.placement
            played += 1
    assert played > 3
