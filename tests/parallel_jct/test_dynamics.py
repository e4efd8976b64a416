"""ParallelJCT's dynamics against the exact model, view against view, and by hand."""

from __future__ import annotations

import random
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import schedgym
from schedgym.core.arrays import regrow
from schedgym.errors import InvalidAction, InvalidWorkload
from schedgym.papers.shi2017.model import one_job
from schedgym.problems.parallel_jct.metrics import validate
from schedgym.problems.parallel_jct.workload import make_workload
from schedgym.solvers.placement import WORK_SHARE
from tests.parallel_jct import random_jobs
from tests.parallel_jct.energy import energy_draw
from tests.parallel_jct.schedules import workload_of
from tests.playing import environment_of, play, play_both

ID = "schedgym/ParallelJCT-v0"
ALL = {"window": "all", "running_window": "all"}


def instance(observation: dict[str, Any], row: int) -> one_job.SingleJob:
    """What the model's planners take, from the observation alone."""
    first, count = int(observation["first_task"][row]), int(observation["tasks"][row])
    rows = slice(first, first + count)
    return one_job.SingleJob(
        tuple(observation["load"][rows].tolist()),
        tuple(tuple(row) for row in observation["efficiency"][rows].tolist()),
        random_jobs.groups_from_matrix(observation["groups"].tolist()),
        tuple(observation["limits"].tolist()),
        float(observation["energy_cap"][row]),
        tuple(observation["power"][rows].tolist()) if "power" in observation else (),
        random_jobs.weights_from_matrix(observation["groups"].tolist()),
    )


def caps_seen(rounds: str, acts: Any, seed: int) -> dict[tuple[int, float], float]:
    """Energy caps by (job, instant) of an agent that, where it acts, launches every other job."""
    env = small("pick", rounds=rounds, tick=7.0, jobs=10, load_max=300.0)
    seen: dict[tuple[int, float], float] = {}

    def act(observation: dict[str, Any]) -> int:
        choice = env.interface.sizes["window"]
        if acts(observation):
            clock = float(observation["clock"][0])
            for r in np.flatnonzero(observation["job_mask"]).tolist():
                job = int(observation["job"][r])
                seen[job, round(clock, 6)] = float(observation["energy_cap"][r])
                if observation["action_mask"][r] and (job + int(clock / 7.0)) % 2 == 0:
                    choice = min(choice, r)
        return choice

    play(env, act, seed)
    return seen


@pytest.mark.parametrize("kind", ["ticks", "events"])
def test_rounds_that_nobody_takes_part_in_change_no_draw(kind: str) -> None:
    """The same planning sequence finds the same caps, with the rounds of the other kind or without."""
    checked = repeated = 0
    for seed in range(8):
        acts = (lambda o: bool(o["event"][2])) if kind == "ticks" else (lambda o: bool(o["event"][:2].any()))
        alone, among = (caps_seen(rounds, acts, seed) for rounds in (kind, "all"))
        assert among == pytest.approx(alone, rel=1e-12)
        checked += len(alone)
        repeated += len(alone) - len({job for job, _ in alone})
    assert checked > 100 and repeated > 50


def small(view: str, **parameters: Any) -> Any:
    given = {"jobs": 8, "arity": 4, "load_max": 200.0, "most_tasks": 6, "reading": "shape-half", **parameters}
    return gym.make(ID, view=view, disable_env_checker=True, **given).unwrapped


@pytest.mark.parametrize("seed", range(6))
def test_the_views_say_the_same_plan(seed: int) -> None:
    """The job that arrived first, planned by TaPRA-fast: by picking, by placing, by moves."""
    picked = small("pick")
    expected = play(picked, lambda o: int(o["action_mask"].argmax()), seed).record

    def planned(observation: dict[str, Any]) -> one_job.Plan | None:
        for r in np.flatnonzero(observation["job_mask"]).tolist():
            if not observation["failed"][r]:
                return r, one_job.tapra_fast(instance(observation, r))
        raise AssertionError("a round without a candidate")

    placing = small("place")
    window = placing.interface.sizes["window"]
    memory: dict[str, Any] = {}

    def by_place(observation: dict[str, Any]) -> int:
        if observation["open_job"] == window:
            r, plan = planned(observation)
            assert plan is not None
            memory["placement"] = plan.placement
            return r
        choice = window + 1 + memory["placement"][int(observation["next_task"])]
        assert observation["action_mask"][choice]
        return choice

    assert play(placing, by_place, seed).record.digest() == expected.digest()

    searching = small("search")
    servers = searching.interface.sizes["servers"]

    def by_moves(observation: dict[str, Any]) -> int:
        row = int(observation["open_job"])
        if row == window:
            return planned(observation)[0]
        own = instance(observation, row)
        placement = tuple(observation["placement"][: own.tasks].tolist())
        path = one_job.local_search(own, placement)
        if len(path) == 1:
            return len(observation["action_mask"]) - 1
        after = path[1]
        task = next(i for i in range(own.tasks) if after[i] != placement[i])
        choice = window + 1 + task * servers + after[task]
        assert observation["action_mask"][choice]
        return choice

    assert play(searching, by_moves, seed).record.digest() == expected.digest()


@pytest.mark.parametrize("seed", range(3))
def test_view_pick_plans_by_list_scheduling_where_the_planner_says_so(seed: int) -> None:
    large = {"jobs": 4, "reading": "x70", "most_tasks": 10}
    whole = small("plan", **large)

    def as_plan(observation: dict[str, Any]) -> Any:
        action = np.zeros(whole.action_space.shape)
        row = next(
            r for r in np.flatnonzero(observation["job_mask"]).tolist() if not observation["failed"][r]
        )
        own = instance(observation, row)
        seen = observation["running"][0]
        work = np.zeros(len(observation["capacity"]))
        np.add.at(work, observation["run_server"][:seen], observation["run_remaining"][:seen])
        plan = one_job.list_scheduling(own, observation["capacity"].tolist(), work.tolist(), WORK_SHARE)
        start = one_job.most_efficient(own) if plan is None else plan.placement
        action[0, 0] = row
        action[1 : 1 + len(start), 0] = start
        return action

    def first(observation: dict[str, Any]) -> int:
        return int(observation["action_mask"].argmax())

    expected = play(whole, as_plan, seed).record.digest()
    assert play(small("pick", planner="list-scheduling", **large), first, seed).record.digest() == expected
    assert play(small("pick", **large), first, seed).record.digest() != expected


@pytest.mark.parametrize("drc", [True, False])
def test_features_of_the_jobs_that_have_arrived(drc: bool) -> None:
    """Geometric mean and deviation of their loads, and the load that they have offered; and of DRC."""
    env = small("pick", observation="features", jobs=12, rate=0.1, drc=drc)
    env.reset(seed=1)
    jobs = env.simulator.workload(0)
    load = np.bincount(jobs.tasks["job"], jobs.tasks["load"]) / jobs.cluster["cpu"].sum()
    arrival, seen = jobs.jobs["arrival"], set()

    def act(observation: dict[str, Any]) -> int:
        clock = float(env.simulator.state.scalars["clock"][0])
        there = load[arrival <= clock]
        if not len(there) or env.simulator.state.scalars["arrived"][0] != len(there):
            raise AssertionError("a round before the first arrival, or a job that has not been counted")
        mean, deviation, offered = (float(value) for value in observation["globals"][11:14])
        assert mean / (1.0 - mean) * 100.0 == pytest.approx(np.exp(np.log(there).mean()), rel=1e-5)
        assert deviation / (1.0 - deviation) == pytest.approx(np.log(there).std(), rel=1e-4, abs=1e-4)
        assert offered == pytest.approx(there.sum() / (there.sum() + clock - arrival[0]), rel=1e-6)
        assert observation["globals"][14] == drc
        seen.add(len(there))
        return int(observation["action_mask"].argmax())

    play(env, act, 1)
    assert len(seen) > 5


@pytest.mark.parametrize("seed", range(4))
def test_masks_equal_the_model(seed: int) -> None:
    """View search: exactly the model's moves. View place: its servers, but for dead ends."""
    rng = np.random.default_rng(seed)
    for view in ("place", "search"):
        env = small(view, load_max=2000.0, rate=2.0)
        window, servers = env.interface.sizes["window"], env.interface.sizes["servers"]
        checked = 0

        def act(observation: dict[str, Any], view: str = view, window: int = window) -> int:
            nonlocal checked
            mask = observation["action_mask"]
            row = int(observation["open_job"])
            if row < window:
                own = instance(observation, row)
                placement = tuple(observation["placement"][: own.tasks].tolist())
                assert not mask[: window + 1].any()
                if view == "place":
                    task = int(observation["next_task"])
                    legal = one_job.place_mask(own, placement, task)
                    mine = mask[window + 1 :].astype(bool)
                    assert mine.any() and not (mine & ~np.array(legal)).any()
                    if min(own.limits) > 0:
                        np.testing.assert_array_equal(mine, legal)
                    checked += 1
                elif checked < 20:
                    legal = np.array(one_job.search_mask(own, placement)).ravel()
                    np.testing.assert_array_equal(mask[window + 1 :][: len(legal)], legal)
                    assert mask[-1] == 1
                    checked += 1
                energy = own.energy(placement)
                assert observation["energy"][0] == pytest.approx(energy, rel=1e-12)
            return int(rng.choice(np.flatnonzero(mask)))

        assert play(env, act, seed).metrics["repaired"] == 0 < checked
        assert servers == 16


def test_explicit_vcpu() -> None:
    """Half of Eq. 16's vCPU without DRC: every launch takes twice as long; more than a limit is repaired."""
    env = small("plan", drc=False, jobs=1)
    observation, _ = env.reset(seed=3)
    own = instance(observation, 0)
    plan = one_job.tapra_fast(own)
    assert plan is not None
    action = np.zeros(env.action_space.shape)
    action[1 : 1 + own.tasks, 0] = plan.placement
    for factor, repaired in ((0.5, False), (1.0, False), (1.01, True)):
        env.reset(seed=3)
        action[1 : 1 + own.tasks, 1] = factor * np.array(plan.evaluation.vcpus)
        _, _, terminated, _, info = env.step(action)
        assert terminated
        assert bool(info.get("repaired", False)) == repaired
        record = env.record()
        validate(record)
        length = record.end.max() - record.start.min()
        assert length == pytest.approx(plan.evaluation.jct / min(factor, 1.0), rel=1e-9)
    strict = small("plan", drc=False, jobs=1, strict=True)
    strict.reset(seed=3)
    with pytest.raises(InvalidAction):
        strict.step(action)
    action[1 : 1 + own.tasks, 1] = 0.0
    assert strict.step(action)[2]


def test_repairs_of_plans() -> None:
    """Servers out of range, energy above the cap, rows that are no job."""
    env = small("plan", jobs=2, rate=100.0)
    window = env.interface.sizes["window"]
    observation, _ = env.reset(seed=1)
    own = instance(observation, 0)
    action = np.zeros(env.action_space.shape)
    worst = [int(np.argmin(row)) for row in own.efficiency]
    action[1 : 1 + own.tasks, 0] = worst
    assert not own.affords(own.energy(tuple(worst)))
    _, _, _, _, info = env.step(action)
    assert info["repaired"]
    reduced = one_job.rec(own, tuple(worst))
    assert reduced is not None
    running = env.simulator.state.running
    rows = running["job"][0, : own.tasks] == observation["job"][0]
    assert rows.all()
    assert tuple(running["server"][0, : own.tasks].tolist()) == reduced
    env.reset(seed=1)
    for row in (-1.0, 0.5, 5.0, window + 1.0):
        action[0, 0] = row
        before = float(env.simulator.state.scalars["clock"][0])
        _, _, _, _, info = env.step(action)
        assert info["repaired"]
        assert env.simulator.state.scalars["clock"][0] > before, "the round has ended"
    with pytest.raises(InvalidAction):
        env.step(np.full(action.shape, np.nan))


def test_energy_caps_are_drawn_anew_in_each_round() -> None:
    env = small("pick", jobs=3)
    observation, _ = env.reset(seed=5)
    caps = []
    for _ in range(5):
        caps.append(float(observation["energy_cap"][0] / observation["total_load"][0]))
        observation = env.step(env.interface.sizes["window"])[0]
    seed = int(env.simulator.jobs.energy_seed[0, 0])
    assert len(set(caps)) == 5
    drawn = [1.0 + 0.1 * energy_draw(seed, 0, number) for number in range(40)]
    places = [next(i for i, x in enumerate(drawn) if cap == pytest.approx(x, rel=1e-12)) for cap in caps]
    assert places == sorted(places)


def test_rounds_at_events_and_ticks() -> None:
    """Ticks: at multiples of the tick. Events: never at a tick that is no event. All: both."""
    for rounds in ("ticks", "events", "all"):
        env = small("pick", rounds=rounds, tick=7.0)
        kinds = set()
        rng = np.random.default_rng(0)

        def act(observation: dict[str, Any], rounds: str = rounds, kinds: Any = kinds, rng: Any = rng) -> int:
            if observation["waiting"][0]:
                event = tuple(observation["event"].tolist())
                kinds.add(event)
                assert any(event)
                assert bool(event[2]) == (float(observation["clock"][0]) % 7.0 == 0.0) or rounds == "events"
                assert 0.0 < observation["time_to_tick"][0] <= 7.0 or rounds == "events"
            return int(rng.choice(np.flatnonzero(observation["action_mask"])))

        play(env, act, 2)
        if rounds == "ticks":
            assert all(kind[2] for kind in kinds)
        elif rounds == "events":
            assert all(kind[0] or kind[1] for kind in kinds) and not any(kind[2] for kind in kinds)
        else:
            assert any(not kind[2] for kind in kinds) and any(kind[2] for kind in kinds)


def test_truncation_charges_what_is_left() -> None:
    env = small("pick", max_time=50.0, tick=10.0)
    env.reset(seed=0)
    total, done = 0.0, False
    rounds = []
    while not done:  # launch nothing
        observation, reward, terminated, truncated, info = env.step(env.interface.sizes["window"])
        total += reward
        done = terminated or truncated
        rounds += [] if done else [float(observation["clock"][0])]
    assert rounds and max(rounds) < 50.0, "a round at the very end"
    arrival = env.simulator.jobs.arrival[0, :8]
    assert truncated and not terminated
    assert total == pytest.approx(-np.maximum(50.0 - arrival, 0.0).mean(), rel=1e-12)
    assert info["metrics"]["launched"] == 0.0


def test_a_truncation_before_any_decision_ends_the_episode() -> None:
    env = small("pick", max_time=0.001)
    observation, _ = env.reset(seed=0)
    assert observation["action_mask"][-1] == 1
    _, _, terminated, truncated, _ = env.step(env.interface.sizes["window"])
    assert truncated and not terminated


def test_the_log_grows_within_a_step() -> None:
    """Thousands of pieces between two decisions: the same schedule as with room for all."""
    digests = []
    for rows in (1, 10**5):
        env = small("plan", jobs=30, rate=50.0, rounds="ticks", tick=1000.0)
        simulator = env.simulator
        simulator.sizes["log"] = rows
        simulator.arrays = regrow(simulator.arrays, simulator.sizes, 1)
        simulator._bind()
        policy = schedgym.make_policy("parallel-jct/slf")
        digests.append(play(env, policy, 4).record.digest())
    assert digests[0] == digests[1]


def test_a_small_window_moves_on() -> None:
    """With one visible job the tasks of each arrive in the observation as the one before is launched."""
    env = small("plan", window=1, rate=50.0)
    seen: list[int] = []

    def act(observation: dict[str, Any]) -> Any:
        own = instance(observation, 0)
        job = int(observation["job"][0])
        first = int(env.simulator.jobs.first_task[0, job])
        np.testing.assert_array_equal(own.load, env.simulator.jobs.load[0, first : first + own.tasks])
        np.testing.assert_array_equal(
            own.efficiency, env.simulator.jobs.efficiency[0, first : first + own.tasks]
        )
        seen.append(job)
        plan = one_job.tapra_fast(own)
        action = np.zeros(env.action_space.shape)
        if plan is None:
            action[0, 0] = 1
        else:
            action[1 : 1 + own.tasks, 0] = plan.placement
        return action

    play(env, act, 7)
    assert list(dict.fromkeys(seen)) == list(range(8))


def both(seed: int = 0) -> Any:
    """A workload with weights and power."""
    drawn = random_jobs.random_workload(random.Random(seed), 6, 4, weighted=True, power=True)
    return workload_of(drawn, seed)


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("view", ["pick", "place", "search"])
def test_weights_and_power_are_seen_where_the_file_has_them(view: str, number: int, tmp_path: Any) -> None:
    """And their dynamics do not depend on what is seen."""
    workload = both(number)
    exact = environment_of(ID, workload, tmp_path, view=view, **ALL)
    tokens = environment_of(ID, workload, tmp_path, view=view, observation="features", **ALL)
    power, load = workload.tasks["power"], workload.tasks["load"]
    shown = workload.cluster["groups"].tolist()
    least = load / workload.tasks["efficiency"].max(axis=1)
    checked = []

    def check(seen: dict[str, Any], features: Any, step: int) -> None:
        assert exact.observation_space.contains(seen)
        assert seen["groups"][-len(shown) :].tolist() == shown
        for r in np.flatnonzero(seen["job_mask"]).tolist():
            own = workload.tasks["job"] == seen["job"][r]
            rows = slice(int(seen["first_task"][r]), int(seen["first_task"][r] + seen["tasks"][r]))
            assert seen["power"][rows].tolist() == power[own].tolist()
            assert seen["least_work"][r] == pytest.approx(least[own].sum(), rel=1e-14)
            assert seen["least_energy"][r] == pytest.approx((power * least)[own].sum(), rel=1e-14)
            checked.append(r)

    play_both(exact, tokens, check)
    assert checked


def test_powers_are_refused_where_none_are_seen() -> None:
    """Shown are none where the environment draws none; features do not tell them."""
    env = small("pick")
    alone = small("pick", jobs=1)
    alone.reset(seed=0)
    plain = alone.record().workload
    powers = np.full(len(plain.tasks["job"]), 2.0)
    given = plain.jobs | plain.tasks | {"cpu": plain.cluster["cpu"], "arity": 4, "power": powers}
    heavy = make_workload(**given)
    with pytest.raises(InvalidWorkload, match="tasks.power: the environment shows none"):
        env.reset(options={"workload": heavy})
    small("pick", observation="features").reset(options={"workload": heavy})
    assert "power" not in env.observation_space.spaces and "least_work" not in env.observation_space.spaces
