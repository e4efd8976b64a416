"""The compiled dynamics against the plain-Python model: equal starts and sites, bit for bit."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import schedgym  # noqa: F401  (registers the ids)
from schedgym.errors import InvalidAction
from schedgym.papers.guan2022 import model
from schedgym.problems.geo.metrics import validate
from schedgym.problems.geo.rules import SHARING_TOLERANCE
from schedgym.problems.geo.workload import make_workload, tables
from tests.geo.instances import random_instance, workload_of
from tests.long import some, trials
from tests.playing import environment_of, play, play_both

ASSIGN, FAIR = "schedgym/GeoAssign-v0", "schedgym/GeoFair-v0"


def numbered(instance: model.Instance) -> model.Instance:
    """The instance with float times and its groups numbered as the environment numbers them."""
    lists = tables(workload_of(instance)).sites
    groups = [tuple(int(j) for j in row if j >= 0) for row in lists]
    jobs = [
        model.Job(float(job.arrival), tuple((float(d), sites) for d, sites in job.tasks))
        for job in instance.jobs
    ]
    return model.Instance(instance.slots, jobs, groups)


def instances(count: int, seed: int) -> list[model.Instance]:
    rng = random.Random(seed)
    return [numbered(random_instance(rng, adversarial=x % 3 > 0)) for x in trials(count)]


def make(id: str, tmp_path: Any, instance: model.Instance, **parameters: Any) -> Any:
    values = {"window": "all", "action_mask": False, **parameters}
    return environment_of(id, workload_of(instance), tmp_path, **values)


def check_equal(env: Any, outcome: model.Outcome) -> None:
    """The recorded schedule is the model's."""
    record = env.record()
    validate(record)
    start = [x for row in outcome.start for x in row]
    assert record.job.tolist() == list(range(len(start)))
    assert record.start.tolist() == start
    assert record.server.tolist() == [x for row in outcome.site for x in row]
    assert record.end.tolist() == [x for row in outcome.end for x in row]


def job_numbers(env: Any, observation: dict[str, Any]) -> list[int]:
    """The job of each active row, which no observation tells."""
    return [int(job) for job in env.simulator.state.job[0, : int(observation["active"][0])]]


def check_seen(seen: dict[str, Any], view: model.View) -> None:
    """An observation of the past against what the model shows at that instant."""
    jobs = seen["jobs"]
    assert jobs == view.active
    n = len(jobs)
    assert seen["waiting"][:n].tolist() == [view.waiting[i] for i in jobs]
    unfinished = seen["waiting"] + seen["running"].sum(axis=2)
    assert unfinished[:n].tolist() == [view.unfinished[i] for i in jobs]
    assert seen["remaining"][:n].tolist() == [sum(view.unfinished[i]) for i in jobs]
    assert [i for r, i in enumerate(jobs) if seen["new"][r]] == view.new
    for name in ("waiting", "running", "remaining", "arrival", "age", "new", "job_mask"):
        assert not seen[name][n:].any(), name


class Replay:
    """A rule for the model: what was decided at each instant, which must have looked the same."""

    def __init__(self) -> None:
        self.plans: dict[float, Any] = {}
        self.seen: dict[float, dict[str, Any]] = {}
        self.asked: list[float] = []

    def note(self, observation: dict[str, Any], jobs: list[int], plan: Any) -> None:
        clock = float(observation["clock"][0])
        self.plans[clock] = plan
        self.seen[clock] = {"jobs": jobs, **observation}

    def __call__(self, view: model.View) -> Any:
        self.asked.append(view.clock)
        check_seen(self.seen[view.clock], view)
        return self.plans[view.clock]

    def assign(self, view: model.View) -> Any:
        if any(any(row) for row in view.waiting.values()):
            return self(view)
        return view.active, {i: {} for i in view.active}

    def share(self, view: model.View) -> Any:
        return self(view) if any(any(row) for row in view.waiting.values()) else {}


@pytest.mark.parametrize("seed", range(4))
def test_random_assignments_run_as_the_model_says(seed: int, tmp_path: Any) -> None:
    rng = np.random.default_rng(seed)
    for instance in instances(60, seed):
        env = make(ASSIGN, tmp_path, instance, view="assignment", strict=True)
        observation, _ = env.reset()
        replay = Replay()
        done = False
        while not done:
            jobs = job_numbers(env, observation)
            action = np.zeros(env.action_space.shape)
            scores = rng.integers(-2, 3, len(jobs)) / 2  # ties go by arrival
            counts: dict[int, model.Counts] = {}
            for r, i in enumerate(jobs):
                counts[i] = {}
                for k, group in enumerate(instance.groups):
                    left = int(observation["waiting"][r, k])
                    split = rng.multinomial(left, np.ones(len(group)) / len(group))
                    base = 1 + k * observation["sites"].shape[1]
                    action[r, base : base + len(group)] = split
                    counts[i].update({(k, j): int(x) for j, x in zip(group, split, strict=True)})
            action[: len(jobs), 0] = scores
            order = [jobs[r] for r in np.argsort(-scores, kind="stable")]
            replay.note(observation, jobs, (order, counts))
            observation, _, done, _, info = env.step(action)
        outcome = model.simulate_assign(instance, replay.assign)
        assert replay.asked == list(replay.plans)
        check_equal(env, outcome)
        expected = model.metrics_assign(instance, outcome)
        assert info["metrics"]["mean_response"] == pytest.approx(float(expected["mean_response"]), rel=1e-9)


def violations(instance: model.Instance, unfinished: Any, shares: Any) -> int:
    """Jobs with less than they could use alone of an equal part of every site, at entries open to them."""
    part = [Fraction(u, len(shares)) for u in instance.slots]
    count = 0
    for tasks, own in zip(unfinished.tolist(), shares, strict=True):
        open_sites = [
            tuple(j for j, share in zip(group, row, strict=False) if share >= 0)
            for group, row in zip(instance.groups, own, strict=True)
        ]
        demand = [d if sites else 0 for d, sites in zip(tasks, open_sites, strict=True)]
        most = model.rank_function(model.Problem([demand], part, open_sites), [0])
        count += Fraction(float(np.maximum(own, 0.0).sum())) < most - Fraction(SHARING_TOLERANCE)
    return count


@pytest.mark.parametrize("seed", some(range(4)))
@pytest.mark.parametrize(
    "options", [{}, {"aggressive": True}, {"work_conserving": False}, {"sites": "associated"}]
)
def test_random_shares_run_as_the_model_says(seed: int, options: dict[str, Any], tmp_path: Any) -> None:
    rng = np.random.default_rng(seed)
    associated = options.get("sites") == "associated"
    parameters = {name: value for name, value in options.items() if name != "sites"}
    for instance in instances(40, seed + 100):
        env = make(FAIR, tmp_path, instance, view="shares", strict=True, **parameters)
        observation, _ = env.reset()
        replay = Replay()
        done, violated = False, 0
        while not done:
            jobs = job_numbers(env, observation)
            n = len(jobs)
            at = [observation["sites"] == j for j in range(len(instance.slots))]
            action = rng.choice([0.0, 0.25, 0.5, 1.0, rng.random()], env.action_space.shape)
            if options.get("work_conserving") is False:
                action += 0.01  # without any share the episode would never end
            unfinished = observation["waiting"] + observation["running"].sum(axis=2)
            action[n:] = 0.0
            for k, group in enumerate(instance.groups):
                action[:, k, 1 if associated else len(group) :] = 0.0
                scale = unfinished[:n, k] / np.maximum(action[:n, k].sum(axis=1), 1e-9)
                action[:n, k] *= np.minimum(1.0, scale)[:, None] * 0.999
            for here, slots in zip(at, instance.slots, strict=True):
                total = np.where(here, action, 0.0).sum()
                if total > slots:
                    action[np.broadcast_to(here, action.shape)] *= 0.999 * slots / total
            shares = {
                (i, k, j): float(action[r, k, a])
                for r, i in enumerate(jobs)
                for k, group in enumerate(instance.groups)
                for a, j in enumerate(group)
            }
            replay.note(observation, jobs, shares)
            if associated:
                action[:, :, 1:] = -1.0
            violated += violations(instance, unfinished[:n], action[:n])
            observation, _, done, _, info = env.step(action)
        outcome = model.simulate_fair(
            instance,
            replay.share,
            aggressive=bool(options.get("aggressive")),
            work_conserving=options.get("work_conserving", True),
            sites=options.get("sites", "all"),
        )
        assert replay.asked == list(replay.plans)
        check_equal(env, outcome)
        expected = model.metrics_fair(instance, outcome)
        for name in ("fairness_integral", "mean_std"):
            assert info["metrics"][name] == pytest.approx(float(expected[name]), rel=1e-9, abs=1e-12)
        assert info["metrics"]["sharing_violations"] == violated


@pytest.mark.parametrize("policy", ["imf", "amf", "sig-amf", "opt-amf", "gamf", "sig-gamf", "opt-gamf"])
def test_rounding_of_shares_changes_no_episode(policy: str) -> None:
    rng = np.random.default_rng(3)
    parameters = {"jobs": 60, "durations": "per-job", "view": "shares", "window": "all"}
    env = gym.make(FAIR, disable_env_checker=True, **parameters).unwrapped
    for seed in trials(6):
        starts = []
        for size in (0.0, 1e-13, 1e-12):
            player = schedgym.make_policy(f"geo/{policy}")
            player.reset(env.interface, np.random.default_rng(0))
            observation, _ = env.reset(seed=seed)
            done = False
            while not done:
                action = player(observation) * (1.0 + size * rng.uniform(-1.0, 1.0, env.action_space.shape))
                observation, _, done, _, _ = env.step(action)
            starts.append(env.record().start)
        for other in starts[1:]:
            np.testing.assert_array_equal(starts[0], other)


def group_for(waiting: Any, observation: dict[str, Any], dispatch_sites: str) -> int:
    """The group of a job that takes the open slot: most waiting tasks for each free slot of its sites."""
    j, free = int(observation["open_site"]), observation["free"]
    lists = [row[row >= 0].tolist() for row in observation["sites"]]
    able = [k for k, sites in enumerate(lists) if waiting[k] > 0 and j in sites]
    if dispatch_sites == "associated":
        return next(k for k in able if lists[k][0] == j)
    return max(able, key=lambda k: Fraction(int(waiting[k]), int(free[lists[k]].sum())))


def check_no_site_is_freer(observation: dict[str, Any]) -> None:
    """Sites that come before the open one, by their share of free slots, have no slot that a job can use."""
    j, count = int(observation["open_site"]), int(observation["job_mask"].sum())
    share = [Fraction(int(f), int(u)) for f, u in zip(observation["free"], observation["slots"], strict=True)]
    for k, row in enumerate(observation["sites"]):
        if observation["waiting"][:count, k].any():
            assert min((-share[site], site) for site in row[row >= 0]) >= (-share[j], j)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dispatch_sites", ["all", "associated"])
def test_picks_obey_the_mask_and_run_to_the_end(seed: int, dispatch_sites: str, tmp_path: Any) -> None:
    rng = np.random.default_rng(seed)
    for instance in instances(40, seed + 30):
        parameters = {"window": 3, "action_mask": True, "dispatch_sites": dispatch_sites, "strict": True}
        env = make(FAIR, tmp_path, instance, view="pick", **parameters)
        observation, _ = env.reset()
        done = False
        while not done:
            j = int(observation["open_site"])
            n = int(observation["job_mask"].sum())
            assert observation["free"][j] > 0
            if dispatch_sites == "all":
                check_no_site_is_freer(observation)
            for r in range(3):
                waits = [
                    observation["waiting"][r, k] > 0
                    for k, row in enumerate(observation["sites"])
                    if (row[0] == j if dispatch_sites == "associated" else j in row)
                ]
                assert bool(observation["action_mask"][r]) == (r < n and any(waits))
            for r in np.flatnonzero(observation["action_mask"] == 0):
                with pytest.raises(InvalidAction):
                    env.step(int(r))
            choice = int(rng.choice(np.flatnonzero(observation["action_mask"])))
            group = group_for(observation["waiting"][choice], observation, dispatch_sites)
            sites = observation["sites"][group].tolist()
            started_before = set(env.record().job.tolist())
            observation, _, done, _, _ = env.step(choice)
            record = env.record()
            lists = record.workload.tasks["sites"]
            started = [
                (lists[task].tolist(), server)
                for task, server in zip(record.job, record.server, strict=True)
                if task not in started_before
            ]
            assert (sites, j) in started
        validate(record)
        if dispatch_sites == "associated":
            assert (record.server == record.workload.tasks["sites"][record.job, 0]).all()
        assert observation["open_site"] == len(instance.slots)


def scaled(count: Any) -> Any:
    return np.asarray(count) / (np.asarray(count) + 8.0)


def scaled_time(time: Any) -> Any:
    return np.asarray(time) / (np.asarray(time) + 10.0)


def check_tokens(one: dict[str, Any], two: dict[str, Any], view: str) -> None:
    """Tokens against the same state in exact units."""
    sites, slots = one["sites"], one["slots"]
    w, n = len(one["age"]), int(one["job_mask"].sum())
    site = int(one["open_site"]) if view == "pick" else len(slots)
    at = [np.where(sites == j, one["running"], 0).sum(axis=(1, 2)) for j in range(len(slots))]
    here = [k for k, row in enumerate(sites) if site in row]
    columns = [
        scaled(one["remaining"]),
        scaled(one["waiting"].sum(axis=1)),
        scaled(one["running"].sum(axis=(1, 2))),
        scaled_time(one["age"]),
        one["new"],
        scaled(one["waiting"][:, here].sum(axis=1)),
        scaled(at[site]) if site < len(at) else np.zeros(w),
        scaled(one["ended"]),
        scaled_time(one["duration"]),
        scaled_time(one["elapsed"]),
        *scaled(one["waiting"]).T,
        *scaled(at),
    ]
    if view == "priority":
        columns += [
            scaled(np.where(sites == j, one["assigned"], 0).sum(axis=(1, 2))) for j in range(len(slots))
        ]
    expected = np.stack(columns, axis=1)
    expected[n:] = 0.0
    np.testing.assert_allclose(two["jobs"], expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(two["sites"][:, 0], scaled(slots), rtol=1e-6)
    np.testing.assert_allclose(two["sites"][:, 1], one["free"] / slots, rtol=1e-6)
    assert two["sites"][:, 4].tolist() == [float(j == site) for j in range(len(slots))]
    clock = one["clock"][0]
    whole = [*one["event"], scaled(one["active"][0]), scaled(one["backlog"][0])]
    np.testing.assert_allclose(two["globals"][:5], whole, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(two["globals"][6], clock / (clock + 600.0), rtol=1e-6)
    np.testing.assert_allclose(two["globals"][7], scaled_time(one["typical"][0]), rtol=1e-6)
    assert two["job_mask"].tolist() == one["job_mask"].tolist()
    if int(one["backlog"][0]) == 0:  # else hidden jobs count too
        able = [one["waiting"][:, [j in row for row in sites]].sum() for j in range(len(slots))]
        np.testing.assert_allclose(two["sites"][:, 2], scaled(able), rtol=1e-6)
        np.testing.assert_allclose(two["globals"][5], scaled(one["waiting"].sum()), rtol=1e-6)


@pytest.mark.parametrize("view", ["priority", "weights", "pick", "shares"])
def test_features_are_the_exact_units_scaled(view: str) -> None:
    parameters = {"view": view, "jobs": 30, "sites": 4, "slots": 2, "max_tasks": 20, "window": 5}
    exact, tokens = (
        gym.make(ASSIGN, disable_env_checker=True, observation=kind, **parameters).unwrapped
        for kind in ("dict", "features")
    )
    play_both(exact, tokens, lambda one, two, step: check_tokens(one, two, view))


def run_durations(record: Any, clock: float) -> tuple[list[list[float]], float]:
    """What active jobs have run: [ended, their mean, mean time of the others]; and what is typical."""
    jobs, tasks = record.workload.jobs["arrival"], record.workload.tasks
    active, completed = [], []
    for i in range(int((jobs <= clock).sum())):
        mine = tasks["job"][record.job] == i
        over = record.end[mine] <= clock
        ended = (record.end - record.start)[mine][over]
        elapsed = clock - record.start[mine][~over]
        if len(ended) == (tasks["job"] == i).sum():
            completed.append(ended.mean())
        else:
            mean, run = (values.mean() if len(values) else 0.0 for values in (ended, elapsed))
            active.append([len(ended), mean, run])
    return active, float(np.exp(np.log(completed).mean())) if completed else 0.0


@pytest.mark.parametrize("view", ["priority", "weights", "pick"])
@pytest.mark.parametrize("durations", ["pareto", "per-job"])
def test_observations_say_what_tasks_have_run(view: str, durations: str) -> None:
    parameters = {"view": view, "jobs": 25, "sites": 3, "slots": 2, "max_tasks": 12, "window": 5}
    parameters |= {"durations": durations, "utilization": 2.0}
    env = gym.make(ASSIGN, disable_env_checker=True, **parameters).unwrapped
    env.action_space.seed(0)
    seen = []

    def act(observation: dict[str, Any]) -> Any:
        active, typical = run_durations(env.record(), observation["clock"][0])
        shown = np.array([*active, *np.zeros((5, 3))])[:5]
        for place, name in enumerate(("ended", "duration", "elapsed")):
            np.testing.assert_allclose(observation[name], shown[:, place], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(observation["typical"], typical, rtol=1e-9)
        seen.append(len(active) > 5 and (shown > 0.0).any(axis=0).all())
        return env.action_space.sample()

    for seed in range(2):
        play(env, act, seed)
    assert sum(seen) > 5


@pytest.mark.parametrize("id", [ASSIGN, FAIR])
@pytest.mark.parametrize("observation", ["dict", "features"])
def test_observations_tell_neither_later_jobs_nor_durations_before_their_end(
    id: str, observation: str
) -> None:
    parameters = {"view": "pick", "jobs": 25, "sites": 3, "slots": 2, "max_tasks": 12, "window": 5}
    parameters |= {"observation": observation, "durations": "per-job"}
    env = gym.make(id, disable_env_checker=True, copy=True, **parameters).unwrapped
    rng = np.random.default_rng(0)
    seen, picks, clocks = [env.reset(seed=0)[0]], [], [float(env.simulator.state.scalars["clock"][0])]
    done = False
    while not done:
        picks.append(int(rng.choice(np.flatnonzero(seen[-1]["action_mask"]))))
        latest, _, done, _, _ = env.step(picks[-1])
        seen.append(latest)
        clocks.append(float(env.simulator.state.scalars["clock"][0]))
    record = env.record()
    jobs, tasks, slots = record.workload.jobs, record.workload.tasks, record.workload.cluster["slots"]
    for step in (0, len(picks) // 4, len(picks) // 2):
        time = clocks[step]
        end = np.full(len(tasks["job"]), np.inf)
        end[record.job] = record.end
        # jobs that come later are left out, and tasks that run or wait last three times as long
        kept = jobs["arrival"][tasks["job"]] <= time
        duration = np.where(end > time, 3.0, 1.0) * tasks["duration"]
        other = make_workload(
            *(jobs["arrival"][jobs["arrival"] <= time], tasks["job"][kept], duration[kept]),
            *(tasks["sites"][kept], slots),
        )
        assert len(other.jobs["arrival"]) < len(jobs["arrival"])
        latest, _ = env.reset(options={"workload": other})
        for number in range(step + 1):
            for name, array in seen[number].items():
                np.testing.assert_array_equal(latest[name], array, err_msg=f"{name}, {number} of {step}")
            if number < step:
                latest = env.step(picks[number])[0]


def repair_counts(counts: Sequence[int], waiting: int) -> list[int]:
    """Counts at the sites of one group, in its order: surplus cut from the last, missing to the first."""
    fixed = [max(count, 0) for count in counts]
    for x in reversed(range(len(fixed))):
        fixed[x] -= min(fixed[x], max(sum(fixed) - waiting, 0))
    fixed[0] += max(waiting - sum(fixed), 0)
    return fixed


def repair_shares(
    shares: Mapping[tuple[int, int, int], Fraction],
    unfinished: Mapping[tuple[int, int], int],
    slots: Sequence[int],
) -> dict[tuple[int, int, int], Fraction]:
    """Scaled down to d_ik per (job, group), then to u_j per site."""
    group_sum: Counter[tuple[int, int]] = Counter()
    for (i, k, _), share in shares.items():
        group_sum[i, k] += share
    fixed = {}
    for (i, k, j), share in shares.items():
        limit = unfinished.get((i, k), 0)
        fixed[i, k, j] = share * limit / group_sum[i, k] if group_sum[i, k] > limit else share
    site_sum: Counter[int] = Counter()
    for (_, _, j), share in fixed.items():
        site_sum[j] += share
    return {
        key: share * slots[key[2]] / site_sum[key[2]] if site_sum[key[2]] > slots[key[2]] else share
        for key, share in fixed.items()
    }


def test_repair_of_counts_and_shares() -> None:
    parameters = {"jobs": 6, "sites": 3, "slots": 2, "choices": 2, "max_tasks": 8, "window": "all"}
    env = gym.make(ASSIGN, disable_env_checker=True, view="assignment", **parameters).unwrapped
    simulator = env.simulator
    observation, _ = env.reset(seed=0)
    rng = np.random.default_rng(0)
    done = False
    while not done:
        n = int(observation["active"][0])
        action = rng.integers(-1, 4, env.action_space.shape).astype(float)
        waiting = observation["waiting"]
        expected = [
            [
                repair_counts([int(x) for x in action[r, 1 + 2 * k : 3 + 2 * k]], int(waiting[r, k]))
                for k in range(3)
            ]
            for r in range(n)
        ]
        simulator.actions[0, :n] = action[:n]
        simulator.kernels[0](simulator.table, simulator.toolboxes[0], np.ones(1, np.int8))
        assert simulator.state.assigned[0, :n].reshape(n, 3, 2).tolist() == expected
        observation, _, done, _, info = env.step(action)
    assert info["metrics"]["repaired"] > 0
    env = gym.make(FAIR, disable_env_checker=True, view="shares", **parameters).unwrapped
    simulator = env.simulator
    observation, _ = env.reset(seed=0)
    done = False
    while not done:
        n = int(observation["active"][0])
        action = rng.choice([0.0, 0.5, 1.0, 4.0, 0.1], env.action_space.shape)
        simulator.actions[0, :n] = action[:n]
        simulator.kernels[0](simulator.table, simulator.toolboxes[0], np.ones(1, np.int8))
        unfinished = observation["waiting"] + observation["running"].sum(axis=2)
        sites = observation["sites"]
        keys = [(r, k, a) for r in range(n) for k in range(3) for a in range(2)]
        repaired = repair_shares(
            {(r, k, int(sites[k, a])): Fraction(action[r, k, a]) for r, k, a in keys},
            {(r, k): int(unfinished[r, k]) for r in range(n) for k in range(3)},
            observation["slots"].tolist(),
        )
        for r, k, a in keys:
            wanted = float(repaired[r, k, int(sites[k, a])])
            assert simulator.state.share[0, r, 2 * k + a] == pytest.approx(wanted, rel=1e-9, abs=1e-12)
        observation, _, done, _, _ = env.step(action)


def test_a_group_whose_sites_are_all_closed_has_its_associated_site_opened() -> None:
    parameters = {"jobs": 6, "sites": 3, "slots": 2, "choices": 2, "max_tasks": 8}
    env = gym.make(FAIR, disable_env_checker=True, view="shares", **parameters).unwrapped
    metrics, rewards, record = play(env, lambda observation: np.full(env.action_space.shape, -1.0))
    assert metrics["repaired"] == len(rewards)
    assert (record.server == record.workload.tasks["sites"][record.job, 0]).all()
