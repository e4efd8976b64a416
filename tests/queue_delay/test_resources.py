"""QueueDelay with other resources than cpu and memory: three of them, in .ci/checks also one and four."""

from __future__ import annotations

import dataclasses
import math
import random
import types
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import schedgym
from schedgym.agents.agent_policy import AgentPolicy, make_agent
from schedgym.agents.files import load_pretrained
from schedgym.agents.scorer import Scorer, ScorerOptions
from schedgym.agents.views import layout_of
from schedgym.core.policy import make_policy
from schedgym.errors import InvalidParameter, InvalidSchedule
from schedgym.evaluation.episodes import make_env
from schedgym.papers.noroozoliaee2014 import model
from schedgym.problems.queue_delay import bounds
from schedgym.problems.queue_delay.columns import TASK
from schedgym.problems.queue_delay.metrics import fates, validate
from schedgym.problems.queue_delay.problem import PROBLEM, RESOURCES, QueueDelayParameters
from schedgym.problems.queue_delay.workload import Source, generate, make_workload, shares_of
from schedgym.testing import sample_action
from tests.long import of_trials, some, thinned, trials
from tests.playing import play
from tests.queue_delay.instances import random_instance, with_resources
from tests.queue_delay.test_properties import (
    count_submitted,
    expected_mask,
    features_of,
    submitted_features,
)
from tests.queue_delay.test_rules import ENDINGS, VARIANTS, make
from tests.tables import table

ID = "schedgym/QueueDelay-v0"
#: for each number of resources everything is compiled once more
COUNTS = thinned([3, 1, 4], of=3)
GPUS = RESOURCES[:3]
#: entry of an observation -> which of its parts have a number for each resource
BY_RESOURCE = {"tasks": (0,), "servers": (0, 1), "globals": (1,)}


def instances(count: int, resources: int) -> Any:
    rng = random.Random(f"{resources} resources")
    for k in range(count):
        yield with_resources(random_instance(rng, adversarial=k % 3 != 2), resources, rng)


@pytest.mark.parametrize("resources", some([2, *COUNTS]))
def test_starts_equal_the_model_under_every_scheme(resources: int) -> None:
    """Bit for bit; every scheme meets a quarter of the instances."""
    names, zero, promised = RESOURCES[:resources], 0, 0
    for k, instance in enumerate(instances(len(trials(800 if resources == 2 else 300)), resources)):
        workload = make_workload(*instance)
        assert tuple(workload.cluster) == names
        zero += not np.column_stack(list(workload.cluster.values())).all()
        for name, ending in [*VARIANTS[k % 4 :: 4], ("bf-exec", ""), ("fcfs", ""), ("easy-backfill", "")]:
            policy = schedgym.make_policy(name, "queue-delay", **ENDINGS[ending])
            played = play(make(workload, resources=names), policy, workload=workload)
            expected, found = model.simulate(instance, name + ending), fates(played.record)
            assert found["start"] == list(expected.start), name + ending
            assert found["server"] == list(expected.server), name + ending
            measured = model.metrics(instance, expected, names)
            assert played.metrics == pytest.approx(measured | {"repaired": 0.0}, rel=1e-9, abs=1e-9)
            for i, time in expected.reserved.items():  # durations are known: a promise is kept to the second
                assert found["start"][i] == pytest.approx(time, rel=1e-12)
                promised += 1
    assert (zero > 5 or resources < 3) and promised > of_trials(100)


@pytest.mark.parametrize("resources", [2, *COUNTS])
def test_no_schedule_is_better_than_the_bound(resources: int) -> None:
    """By brute force; each resource counts, and at times the last one alone decides."""
    own = 0
    for instance in instances(len(trials(150)), resources):
        few = model.Instance(instance.tasks[:4], instance.servers[:2])
        if not all(any(model._fits(task, server) for server in few.servers) for task in few.tasks):
            continue
        workload = make_workload(*few)
        least, best = bounds.lower_bound(workload), model.optimum(few)[0] / len(few.tasks)
        assert float(model.workload_bound(few)) - 1e-6 <= least <= best + 1e-6
        if resources > 1:
            fewer = make_workload([task[:-1] for task in few.tasks], [server[:-1] for server in few.servers])
            own += least > bounds.lower_bound(fewer) + 1e-6
    assert own > 0 or resources == 1


@pytest.mark.parametrize("view", ["placement", "pick", "route", "rule"])
@pytest.mark.parametrize("names", thinned([list(GPUS), ["gpu"], list(RESOURCES)], of=3))
def test_every_view_and_observation(view: str, names: list[str]) -> None:
    """Gymnasium's checker, and both kinds of observations against the documentation."""
    resources, given = len(names), {"resources": names, "tasks": 25, "servers": 3, "window": 5, "view": view}
    check_env(gym.make(ID, **given).unwrapped, skip_render_check=True)
    check_env(gym.make(ID, observation="features", **given).unwrapped, skip_render_check=True)
    env, tokens = gym.make(ID, **given).unwrapped, gym.make(ID, observation="features", **given).unwrapped
    (shown, _), (seen, _) = env.reset(seed=5), tokens.reset(seed=5)
    workload, rng, done, shows = env.record().workload, np.random.default_rng(1), False, []
    while not done:
        shows.append((shown, seen))
        assert view == "route" or (expected_mask(view, shown, "released") == shown["action_mask"]).all()
        action = sample_action(env.action_space, shown, rng)
        shown, reward, terminated, truncated, info = env.step(action)
        seen, same, *_ = tokens.step(action)
        assert reward == same
        done = terminated or truncated
    for (exact, found), count in zip(shows, count_submitted(view, [e for e, _ in shows]), strict=True):
        told = submitted_features(workload, count, float(exact["clock"][0]))
        for name, value in features_of(exact, told).items():
            np.testing.assert_allclose(found[name], value, rtol=2e-7, atol=2e-7, err_msg=name)
    assert [f"utilization_{name}" in info["metrics"] for name in names] == [True] * resources
    validate(env.record())


def test_the_validator_sees_the_last_resource() -> None:
    tasks = [(0, 4, 0.1, 0.1, 0.75), (0, 4, 0.1, 0.1, 0.5)]
    workload = make_workload(tasks, [(1, 1, 1), (1, 1, 1)])
    record = play(make(workload, resources=GPUS), make_policy("queue-delay/ff"), workload=workload).record
    assert fates(record)["server"] == [0, 1]
    less = record.amount.copy()
    less[1, 2] = 0.25
    broken = {
        "over its capacity at 0 s: uses .*1.25]": {"server": np.zeros(2, dtype=np.int64)},
        "does not hold its own demand": {"amount": less},
        r"amount: must have the shape \[2, 3\]": {"amount": less[:, :2]},
    }
    for message, changes in broken.items():
        with pytest.raises(InvalidSchedule, match=message):
            validate(dataclasses.replace(record, **changes))


def test_a_resource_that_a_server_has_none_of_makes_no_ties() -> None:
    """By products, the largest of the tasks that wait goes first, also where nothing of one resource is."""
    tasks = [(0, 5, 1.0, 1.0, 0.0), (1, 9, 0.5, 0.5, 0.0), (2, 9, 0.75, 0.75, 0.0)]
    workload = make_workload(tasks, [(1, 1, 0)])
    policies = [make_policy(f"queue-delay/{rule}-product") for rule in ("ffd", "bfd")]
    record = play(make(workload, resources=GPUS), policies[0], workload=workload).record
    assert fates(record)["start"] == [0, 14, 5]
    idle = make_workload([(0, 5, 0.5, 0.5, 0)], [(1, 1, 0), (0.6, 0.6, 0)])
    record = play(make(idle, resources=GPUS), policies[1], workload=idle).record
    assert fates(record)["server"] == [1], "the least product of what is left"


def test_devices_are_drawn_as_documented() -> None:
    def drawn(**given: Any) -> Any:
        return generate(3, 0, Source(QueueDelayParameters(tasks=20_000, servers=2_000, **given)))

    plain, given = drawn(), drawn(resources=GPUS, device_share=0.87)
    for name in ("arrival", "execution", "cpu", "memory"):
        np.testing.assert_array_equal(plain.jobs[name], given.jobs[name])
    gpu = given.jobs["gpu"]
    assert (gpu > 0).mean() == pytest.approx(0.87, abs=0.01)
    for units in (1, 2, 4, 8):
        assert (gpu == units / 8).mean() == pytest.approx(0.87 / 4, abs=0.01)
    assert given.cluster["gpu"][0] == 1.0 and given.cluster["gpu"].mean() == pytest.approx(0.5, abs=0.05)
    preset = PROBLEM.presets["gpu-cluster"]
    own = {name: preset[name] for name in ("resources", "device_share", "device_part_share")}
    parts = 8 * drawn(**own).jobs["gpu"]
    assert (parts > 0).mean() == pytest.approx(0.87, abs=0.01)
    assert ((parts > 0) & (parts < 1)).mean() == pytest.approx(0.38, abs=0.01)
    assert parts[(parts > 0) & (parts < 1)].mean() == pytest.approx(0.5, abs=0.01)
    assert (parts == 8).mean() == pytest.approx(0.87 * 0.56 / 4, abs=0.01)
    small = 8 * drawn(resources=GPUS, device_part_share=1.0).jobs["gpu"]
    assert (small <= 1).all() and (small > 0).mean() == pytest.approx(0.5, abs=0.01)
    alone = drawn(resources=("memory", "licence"), device_share=1.0)
    np.testing.assert_array_equal(alone.jobs["memory"], plain.jobs["memory"])
    assert (alone.jobs["licence"] > 0).all() and not set(alone.cluster) & {"cpu"}


@pytest.mark.parametrize(("names", "message"), table(__file__, "test_names_that_cannot_be"))
def test_names_that_cannot_be(names: list[str], message: str) -> None:
    with pytest.raises(InvalidParameter, match=f"resources: .*{message}"):
        gym.make(ID, resources=tuple(names))


def test_weights_are_those_of_the_resources() -> None:
    three = make_workload([(0, 1, 0.5, 0.5, 1)], [(1, 1, 1)])
    with pytest.raises(InvalidParameter, match="weights: must be 3 numbers"):
        policy = schedgym.make_policy("ffd-sum", "queue-delay", weights=(1.0, 2.0))
        play(make(three, resources=GPUS), policy, workload=three)


def test_a_workload_file_has_its_own_resources(tmp_path: Any) -> None:
    workload = make_workload([(0, 1, 0.5, 1), (0, 1, 1, 0)], [(1, 1)], ("cpu", "licence"))
    for name in ("w.json", "w.npz"):
        schedgym.save_workload(workload, tmp_path / name)
        env = gym.make(ID, workload=str(tmp_path / name)).unwrapped
        env.reset(seed=0)
        assert env.record().workload == workload
        assert env.interface.parameters["resources"] == ("cpu", "licence")
        assert "utilization_licence_backlog" in env.metrics()
    with pytest.raises(InvalidParameter, match="resources: has no effect on a workload"):
        gym.make(ID, workload=str(tmp_path / "w.json"), resources=GPUS)


@settings(max_examples=len(trials(60)), deadline=None)
@given(seed=st.integers(0, 2**32), data=st.data())
@pytest.mark.parametrize("view", ["placement", "pick", "route"])
def test_columns_know_no_order_of_the_resources(view: str, seed: int, data: Any) -> None:
    rng, resources = np.random.default_rng(seed), data.draw(st.sampled_from([2, *COUNTS]))
    order = data.draw(st.permutations(range(resources)))
    capacity = rng.integers(0, 5, (3, resources)) / 4.0
    free = capacity * rng.choice([0.0, 0.5, 1.0], capacity.shape)
    released = rng.permutation([rng.integers(2), 0, 0])
    demand, about = rng.random((6, resources)), rng.random(9) * 0.99
    about[:2] = (1, 0) if view == "route" else (1 - released.max(), released.max())
    mean_demand = rng.random(resources)
    own = rng.random((6, len(TASK))) * 0.99
    rows = {"tasks": (demand, own), "servers": (capacity, free, released[:, np.newaxis])}
    rows["globals"] = (about[:4], mean_demand, about[4:])
    shape = {"placement": (6, 3), "pick": (7,), "route": (4,)}[view]
    seen = []
    for places in (list(range(resources)), list(order)):
        one = {
            name: np.concatenate(
                [part[..., places] if k in BY_RESOURCE[name] else part for k, part in enumerate(parts)],
                axis=-1,
            ).astype(np.float32)
            for name, parts in rows.items()
        }
        one |= {"task_mask": np.ones(6, np.int8), "action_mask": np.ones(shape, np.int8)}
        scorer = Scorer(layout_of("queue-delay", view, one), ScorerOptions(context="none"))
        batch = {name: value[np.newaxis] for name, value in one.items()}
        seen.append(scorer.inspect(batch, scorer.wanted(batch))["columns 0"])
    assert seen[0].shape[1] == math.prod(shape) - (view != "placement")
    np.testing.assert_allclose(seen[1], seen[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("resources", COUNTS)
def test_the_shipped_agent_plays_any_number_of_resources(resources: int) -> None:
    """Its episodes are valid, the same step by step as compiled, and better than first come, first served."""
    names = RESOURCES[:resources]
    agent = make_agent("pretrained", ID)
    given = {"resources": names, "tasks": 80, "servers": 4, "strict": True}
    env: Any = make_env(ID, agent.acting_parameters(ID, given))
    env.reset(seed=1)
    workload = env.record().workload
    played = play(env, agent, workload=workload)
    total = sum(played.rewards)
    assert len(played.record.job) == 80
    env.reset(options={"workload": workload})
    assert agent.compiled_rollout is not None
    assert agent.compiled_rollout(env.simulator) == pytest.approx(total, rel=1e-12)
    fcfs = schedgym.make_policy("fcfs", "queue-delay")
    assert total > sum(play(make(workload, resources=names), fcfs, workload=workload).rewards)


def test_agents_whose_tokens_are_those_of_the_resources_refuse_others() -> None:
    """Scorers with a context, as its numbers are those of the resources."""
    agent = load_pretrained(ID)
    network = {**agent.metadata["network"], "context": "globals"}
    policy = AgentPolicy(dataclasses.replace(agent, metadata={**agent.metadata, "network": network}))
    env: Any = gym.make(ID, **policy.acting_parameters(ID, {"resources": GPUS, "tasks": 5})).unwrapped
    with pytest.raises(InvalidParameter, match=r"was trained with resources \('cpu', 'memory'\), not"):
        policy.reset(env.interface, np.random.default_rng(0))
    observation, _ = env.reset(seed=1)
    with pytest.raises(InvalidParameter, match="context: is made of 11 numbers, the environment has 12"):
        Scorer(layout_of("queue-delay", "placement", observation))


def test_a_trace_gives_its_gpus() -> None:
    """Left out where no task asks for one, unless somebody names them."""
    numbers = {"cores": [4.0, 1.0], "memory": [8.0, 2.0], "gpu": [0.5, 4.0]}
    machines = {"machine_cores": [8.0, 4.0], "machine_memory": [0.0, 0.0], "machine_gpu": [0.0, 4.0]}
    arrays = {name: np.array(values) for name, values in {**numbers, **machines}.items()}
    trace: Any = types.SimpleNamespace(name="mine", **arrays)
    demands, capacities = shares_of(trace)
    assert {name: own.tolist() for name, own in demands.items()} == {
        "cpu": [0.5, 0.125],
        "memory": [0.0, 0.0],  # that of machines is not known
        "gpu": [0.125, 1.0],
    }
    assert capacities.tolist() == [[1.0, 1.0, 0.0], [0.5, 1.0, 1.0]]
    assert list(shares_of(trace, ("cpu", "memory"))[0]) == ["cpu", "memory"]
    trace.gpu = np.zeros(2)
    assert list(shares_of(trace)[0]) == ["cpu", "memory"] and list(shares_of(trace, GPUS)[0]) == list(GPUS)
    trace.machine_gpu = np.zeros(2)
    for names in (GPUS, ("cpu", "disk")):
        with pytest.raises(InvalidParameter, match=f"no machine of the mine trace has '{names[-1]}'"):
            shares_of(trace, names)


def test_the_use_of_any_resource_has_a_metric() -> None:
    problem = schedgym.get_problem("queue-delay")
    found = problem.metric("utilization_my_gpu_to_last_arrival")
    assert found.help == "used share of my_gpu, averaged over first to last arrival" and found.better == "max"
    names = [metric.name for metric in problem.metrics_of({"resources": GPUS})]
    assert [problem.metric(name).name for name in names] == names
    assert names[5:8] == [f"utilization_{name}" for name in GPUS]
