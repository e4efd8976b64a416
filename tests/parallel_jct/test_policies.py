"""The policies in the environment: the model's runs, the full loop's decisions, equal ones in every view."""

from __future__ import annotations

import functools
import math
import random
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import schedgym
from schedgym.baselines.parallel_jct import policy as launching
from schedgym.core.policy import list_policies
from schedgym.papers.shi2017.model import one_job, online
from schedgym.solvers.planning import Planner
from tests.parallel_jct import random_jobs
from tests.parallel_jct.energy import energy_draw
from tests.parallel_jct.schedules import workload_of
from tests.parallel_jct.test_dynamics import ALL, ID, instance
from tests.playing import environment_of, play

PLAN = {"view": "plan", "strict": True, "action_mask": False, **ALL}
BUSY = {"jobs": 14, "arity": 4, "most_tasks": 12, "rate": 0.5, "load_max": 300.0}
PLANNERS = ("tapra", "mm-ga", "gsa", "min-min")


def make(**parameters: Any) -> Any:
    return gym.make(ID, disable_env_checker=True, **parameters).unwrapped


def test_names_say_what_is_fixed() -> None:
    """NAME-PLANNER-equal: what a name says after its order is fixed; ontapra and -mar ask for free vCPU."""
    for spec in list_policies("parallel-jct"):
        name, *said = spec.name.partition("/")[2].split("-")
        policy, fixed = schedgym.make_policy(spec.name), dict(spec.fixed)
        assert policy.mar == (name == "ontapra" or said == ["mar"])
        assert set(spec.views) == set(policy.views) and set(spec.needs["rounds"]) == set(policy.rounds)
        assert fixed.pop("mar", False) == (said == ["mar"])
        assert (fixed.pop("allocation", "") == "equal-share") == (said[-1:] == ["equal"])
        assert fixed.pop("order", name) == name
        assert fixed.pop("planner", "") == "-".join(word for word in said if word not in ("equal", "mar"))
        assert not fixed


# Whole runs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", online.SCHEDULERS)
def test_whole_runs_are_the_models(scheduler: str, tmp_path: Path) -> None:
    launched = shared = 0
    for seed in range(16):
        rng = random.Random(77 * seed + len(scheduler))
        flags = {"dyadic": seed % 2 == 0, "fixed_ratio": seed % 4 >= 2}
        flags |= {"weighted": seed % 3 == 0, "power": seed % 5 < 2}
        plain = random_jobs.random_workload(rng, 7, 4, **flags)
        mar, most = bool(rng.getrandbits(1)), rng.choice([0.3, 0.6])
        drc, tick, max_time = seed % 7 < 4, (5.0, 10.0)[seed // 2 % 2], (1e5, 1e5, 60.0)[seed % 3]
        planner, _, way = rng.choice(["tapra-fast", "tapra-fast", "min-min", "min-min/equal"]).partition("/")
        equal = bool(way) and scheduler != "ontapra"
        own: dict[str, Any] = {"planner": planner, "mar": mar, "max_percent": most}
        outcome = online.Simulation(
            plain,
            scheduler,
            functools.partial(one_job.min_min, evaluate=one_job.equal_share)
            if equal
            else one_job.PLANNERS[planner],
            mar=mar,
            drc=drc,
            delta_t=tick,
            max_time=max_time,
            max_percent=most,
            draw=lambda job, number, seed=seed: energy_draw(seed, job, number),
        ).run()
        if equal:
            own["allocation"] = "equal-share"
            shared += 1
        policy = schedgym.make_policy(f"parallel-jct/{scheduler}", **own)
        rounds = "events" if scheduler == "fcfs" else "ticks"
        first = np.cumsum([0, *(len(job.load) for job in plain.jobs)])
        servers = {
            first[launch.job] + i: server
            for launch in outcome.launches
            for i, server in enumerate(launch.plan.placement)
        }
        given = {**PLAN, "drc": drc, "tick": tick, "max_time": max_time}
        cases = [{**given, "rounds": rounds}, {**given, "rounds": "all"}]
        if planner == "tapra-fast":
            cases.append({**given, "rounds": rounds, "view": "pick"})
        for parameters in cases:
            env = environment_of(ID, workload_of(plain, seed), tmp_path, **parameters)
            measured = play(env, policy).metrics
            schedule, record = env.simulator.arrays.schedule, env.record()
            assert dict(zip(record.job.tolist(), record.server.tolist(), strict=True)) == servers
            used = (record.amount.sum(axis=1) * (record.end - record.start)).sum()
            assert used == pytest.approx(sum(outcome.consumed), rel=1e-8)
            assert measured["granted"] == len(outcome.granted & {launch.job for launch in outcome.launches})
            for job in range(len(plain.jobs)):
                for theirs, mine in (
                    (outcome.launch, schedule.launch),
                    (outcome.finish, schedule.completion),
                ):
                    expected = math.nan if theirs[job] is None else theirs[job]
                    assert mine[0, job] == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)
                assert schedule.energy[0, job] == pytest.approx(outcome.committed[job], rel=1e-9)
            assert measured["average_jct"] == pytest.approx(outcome.average_jct, rel=1e-9)
        launched += len(outcome.launches)
    assert launched > 40 and (shared > 0 or scheduler == "ontapra")


def test_of_equal_completion_times_the_first_job_is_launched(tmp_path: Path) -> None:
    """OnTaPRA looks first at the second job, whose work could be done sooner if it were even."""
    row = (1.0, 1.0)
    jobs = (online.Job(0.0, (8.0,), (row,)), online.Job(0.0, (8.0, 4.0), (row, row)))
    plain = online.Workload(jobs, (4.0, 4.0), one_job.fat_tree(2, 1, 1, 1), 2.0)
    assert online.Simulation(plain, "ontapra", draw=lambda *_: 0.0).run().launches[0][0] == 0
    env = environment_of(ID, workload_of(plain, 0), tmp_path, **PLAN)
    play(env, schedgym.make_policy("parallel-jct/ontapra"))
    assert env.record().job[0] == 0


def test_the_mar_test_fails_at_its_threshold(tmp_path: Path) -> None:
    plain = online.Workload((online.Job(0.0, (8.0,), ((1.0, 1.0),)),), (4.0, 4.0), one_job.fat_tree(2), 2.0)
    env = environment_of(ID, workload_of(plain, 0), tmp_path, **PLAN, max_time=30.0)
    for most, launched in ((1.0, 0.0), (0.99, 1.0)):
        assert (
            play(env, schedgym.make_policy("parallel-jct/ontapra", max_percent=most)).metrics["launched"]
            == launched
        )


@pytest.mark.parametrize("planner", PLANNERS[1:])
@pytest.mark.parametrize("order", ["fcfs", "slf", "llf"])
def test_equal_shares_are_sent_and_kept(order: str, planner: str) -> None:
    """Every launch is the planner's, with the vCPU of equal shares, the same whatever rounds there are."""
    policy = schedgym.make_policy(f"parallel-jct/{order}-{planner}-equal")
    own = Planner(planner, "equal-share")
    differ = 0

    def note(observation: dict[str, Any], action: Any) -> None:
        nonlocal differ
        row = int(action[0, 0])
        if row == policy.window:
            return
        one = instance(observation, row)
        key = (policy.seed, policy.round, policy.iteration - 1, int(observation["job"][row]))
        own.prepare(observation["groups"], env.interface.sizes["tasks"])
        own(
            int(observation["first_task"][row]),
            one.tasks,
            *(observation[name] for name in ("load", "efficiency", "limits")),
            float(observation["energy_cap"][row]),
            int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0]) if own.genetic else 0,
        )
        placement = tuple(action[1 : 1 + one.tasks, 0].astype(int).tolist())
        assert placement == tuple(own.placement[: one.tasks].tolist())
        if planner == "min-min":
            assert placement == one_job.min_min(one, one_job.equal_share).placement
        shares = one_job.equal_share(one, placement).vcpus
        assert action[1 : 1 + one.tasks, 1].tolist() == pytest.approx(shares, rel=1e-12)
        assert not action[1 + one.tasks :].any()
        differ += shares != pytest.approx(one_job.optra(one, placement).vcpus, rel=1e-6)

    metrics = []
    for rounds in ("events" if order == "fcfs" else "ticks", "all"):
        env = make(**{**PLAN, **BUSY, "jobs": 6, "most_tasks": 5, "rounds": rounds})
        metrics.append(play(env, policy, 4, note).metrics)
    for name in ("average_jct", "finished", "energy"):
        assert metrics[1][name] == pytest.approx(metrics[0][name], rel=1e-9)
    assert differ > 4


# The full loop --------------------------------------------------------------------------------


class Full:
    """Algorithm 4 as printed: every waiting job is planned in every iteration."""

    def __init__(self, planner: str) -> None:
        self.planner = Planner(planner)
        self.clock = -1.0
        self.out: set[int] = set()
        self.iteration = self.planned = self.deep = self.failed_late = 0

    def choose(self, observation: dict[str, Any], seed: Any) -> tuple[int, list[int]]:
        """Row and placement; -1 if there is none."""
        if observation["clock"][0] != self.clock:
            self.clock = float(observation["clock"][0])
            self.out.clear()
            self.iteration = 0
        best, row, placement = math.inf, -1, []
        for r in np.flatnonzero(observation["job_mask"]).tolist():
            job = int(observation["job"][r])
            if observation["failed"][r] or job in self.out:
                continue
            tasks = int(observation["tasks"][r])
            jct = self.planner(
                int(observation["first_task"][r]),
                tasks,
                observation["load"],
                observation["efficiency"],
                observation["limits"],
                float(observation["energy_cap"][r]),
                seed(self.iteration, job),
            )
            self.planned += 1
            if jct == math.inf:
                self.out.add(job)
                self.failed_late += self.iteration > 0
            elif jct < best:
                best, row, placement = jct, r, self.planner.placement[:tasks].tolist()
        self.deep += self.iteration > 1 and row >= 0
        self.iteration += 1
        return row, placement


@pytest.mark.parametrize(("planner", "window"), [("tapra-fast", "all"), ("tapra-fast", 5), ("tapra", "all")])
def test_ontapra_decides_as_the_full_loop(planner: str, window: Any) -> None:
    """Jobs are skipped by their bounds, and caught up with when it matters whether they would have failed."""
    full = Full(planner)
    env = make(
        **{**PLAN, **BUSY, "rounds": "ticks", "window": window, "jobs": 40 if planner == "tapra-fast" else 16}
    )
    policy = schedgym.make_policy("parallel-jct/ontapra", planner=planner, max_percent=0.05)

    def seed(iteration: int, job: int) -> int:
        return 0

    def note(observation: dict[str, Any], action: Any) -> None:
        if not policy.acts(observation) or not observation["waiting"][0]:
            assert action[0, 0] == policy.window
            return
        row, placement = full.choose(observation, seed)
        assert action[0, 0] == (row if row >= 0 else policy.window)
        assert action[1 : 1 + len(placement), 0].tolist() == placement
        assert not action[1 + len(placement) :].any()

    for episode in range(4):
        observation, _ = env.reset(seed=episode)
        full.planner.prepare(observation["groups"], env.interface.sizes["tasks"])
        full.clock = -1.0
        play(env, policy, episode, note)
    assert full.deep > 5
    assert full.failed_late > 0


def test_a_job_that_has_failed_stays_out_even_if_it_could_be_planned_now(tmp_path: Path) -> None:
    """At 10 s the second job goes first, so that the others need not be planned; but they would have failed.

    Their tasks are most efficient on a server that is taken. The first of them would go to the fast server 1,
    after which there is no energy left for the other. Once the second job has taken server 1, both could go
    to server 2.
    """
    lambdas = ((1.0, 0.1, 0.1), (0.1, 1.0, 0.1), (1.0, 0.5, 0.8))
    jobs = (
        online.Job(0.0, (300.0,), lambdas[:1]),
        online.Job(1.0, (5.0,), lambdas[1:2]),
        online.Job(1.0, (10.0, 10.0), lambdas[2:] * 2),
        online.Job(1.0, (11.0, 11.0), lambdas[2:] * 2),
    )
    servers = tuple(one_job.Limit("server", (j,), 1.0) for j in range(3))
    plain = online.Workload(jobs, (10.0, 10.0, 5.0), servers, 1.5)
    expected = [0.0, 10.0, 30.0, 40.0]
    assert online.Simulation(plain, mar=False).run().launch == expected
    for view in ("plan", "pick"):
        env = environment_of(ID, workload_of(plain, 0), tmp_path, **{**PLAN, "rounds": "all", "view": view})
        policy = schedgym.make_policy("parallel-jct/ontapra", mar=False)
        play(env, policy)
        assert env.simulator.arrays.schedule.launch[0].tolist() == expected


def test_most_jobs_are_never_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rounds end early; with the genetic planner too, whose plans do not depend on which others are."""
    counts = {}
    digests = set()
    for slack in (1e-9, math.inf):
        monkeypatch.setattr(launching, "SLACK", slack)
        for planner in ("tapra", "gsa"):
            env = make(**{**PLAN, **BUSY, "rounds": "ticks", "jobs": 30, "rate": 5.0})
            policy = schedgym.make_policy("parallel-jct/ontapra", planner=planner, max_percent=0.6)
            policy.planner.generations = 2
            planned = 0
            plan = policy.plan

            def counted(*arguments: Any, plan: Any = plan, **options: Any) -> float:
                nonlocal planned
                planned += 1
                return plan(*arguments, **options)

            policy.plan = counted
            play(env, policy, 3)
            counts[planner, slack] = planned
            digests.add((planner, env.record().digest()))
    assert len(digests) == 2
    for planner in ("tapra", "gsa"):
        assert counts[planner, 1e-9] < counts[planner, math.inf]
