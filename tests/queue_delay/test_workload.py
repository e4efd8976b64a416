"""The generator, trace windows, and workloads given to environments."""

import gymnasium as gym
import numpy as np
import pytest

from schedgym.errors import InvalidWorkload
from schedgym.problems.queue_delay.problem import QueueDelayParameters
from schedgym.problems.queue_delay.workload import GOOGLE_2011_MACHINES, Source, generate, make_workload

ID = "schedgym/QueueDelay-v0"


def source_of(tasks, servers, trace=None, **options):
    return Source(QueueDelayParameters(tasks=tasks, servers=servers, **options), trace)


def test_machine_mix_is_the_published_one():
    assert GOOGLE_2011_MACHINES[:, 2].sum() == 12583
    w = generate(0, 0, source_of(2, 20000))
    sizes = np.column_stack([w.cluster["cpu"], w.cluster["memory"]])
    for cpu, memory, count in GOOGLE_2011_MACHINES[:5]:
        share = ((sizes == (cpu, memory)).all(axis=1)).mean()
        assert share == pytest.approx(count / 12583, abs=4 * np.sqrt(count / 12583 / 20000))


def test_tasks_have_the_documented_distribution():
    w = generate(1, 0, source_of(200_000, 5))
    jobs = w.jobs
    n = len(jobs["arrival"])
    assert np.diff(jobs["arrival"]).mean() == pytest.approx(0.1, rel=0.02)
    logs = np.log(jobs["execution"])
    assert np.exp(np.median(logs)) == pytest.approx(300, rel=0.02)
    inner = (jobs["execution"] > 1) & (jobs["execution"] < 86400)
    assert logs[inner].std() == pytest.approx(1.5, rel=0.02)
    assert jobs["execution"].min() >= 1 and jobs["execution"].max() == 86400
    assert np.median(jobs["cpu"]) == pytest.approx(0.025, rel=0.02)
    assert np.median(jobs["memory"]) == pytest.approx(0.019, rel=0.02)
    assert jobs["cpu"].max() <= 0.5 and jobs["memory"].max() == 0.24
    assert min(jobs["cpu"].min(), jobs["memory"].min()) == 0.001
    free = (jobs["cpu"] < 0.5) & (jobs["memory"] < 0.24) & (jobs["cpu"] > 0.001) & (jobs["memory"] > 0.001)
    assert free.mean() > 0.95
    correlation = np.corrcoef(np.log(jobs["cpu"]), np.log(jobs["memory"]))[0, 1]
    assert correlation == pytest.approx(0.45, abs=0.03)
    light = np.log(generate(1, 0, source_of(n, 5, execution_sigma=0.5)).jobs["execution"])
    assert light.std() == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("seed", range(40))
def test_every_task_fits_the_first_server_even_alone(seed):
    w = generate(seed, 0, source_of(300, 1))
    assert (w.jobs["cpu"] <= w.cluster["cpu"][0]).all()
    assert (w.jobs["memory"] <= w.cluster["memory"][0]).all()


@pytest.mark.parametrize("resources", [("cpu", "memory"), ("cpu", "memory", "gpu")])
@pytest.mark.parametrize("load", [0.3, 0.9, 1.0])
def test_load_is_that_of_the_busiest_resource(load, resources):
    w = generate(5, 0, source_of(500, 6, load=load, resources=resources))
    span = w.jobs["arrival"][-1] - w.jobs["arrival"][0]
    loads = [(w.jobs["execution"] * w.jobs[r]).sum() / (w.cluster[r].sum() * span) for r in w.cluster]
    assert max(loads) == pytest.approx(load) and len(loads) == len(resources)
    assert max(loads) == loads[-1] or len(resources) == 2  # few servers have GPUs


def test_environments_meet_what_generate_says():
    env = gym.make(ID, tasks=30, servers=4).unwrapped
    source = source_of(30, 4)
    env.reset(seed=11)
    assert env.record().workload == generate(11, 0, source)
    env.reset()
    assert env.record().workload == generate(11, 1, source)
    env.reset(options={"episode": 7})
    assert env.record().workload == generate(11, 7, source)
    envs = gym.make_vec(ID, num_envs=3, tasks=30, servers=4)
    envs.reset(seed=11)
    assert envs.record(2).workload == generate(13, 0, source)


def table(count=25, nodes=12):
    rng = np.random.default_rng(0)
    tasks = np.column_stack(
        [np.cumsum(rng.integers(1, 9, count)), rng.integers(1, 50, count), rng.random((count, 2)) * 0.5]
    ).astype(float)
    machines = np.concatenate([[(1.0, 1.0)], 0.5 + 0.5 * rng.random((nodes - 1, 2))])
    return tasks, machines


def test_nodes_are_drawn_without_replacement_and_nest():
    tasks, machines = table()
    for seed in range(30):
        w = generate(seed, 0, source_of(10, 12, (tasks, machines)))
        pairs = list(zip(w.cluster["cpu"], w.cluster["memory"], strict=True))
        assert pairs[0] == (1.0, 1.0)
        assert sorted(pairs) == sorted(map(tuple, machines))
        few = generate(seed, 0, source_of(10, 5, (tasks, machines)))
        assert list(zip(few.cluster["cpu"], few.cluster["memory"], strict=True)) == pairs[:5]
    second = [generate(s, 0, source_of(10, 2, (tasks, machines))).cluster["cpu"][1] for s in range(400)]
    assert len(set(second)) == 11  # each of the others comes second sometimes


ROWS = [(0, 5, 0.5, 0.5), (1, 3, 0.2, 0.9)]


@pytest.mark.parametrize(
    ("tasks", "servers", "match"),
    [
        ([(0, 1, 0.5)], [(1, 1)], "rows of 4 numbers"),
        (ROWS, [1, 1], "rows of 1 to 4 numbers"),
        ([*ROWS, (1, 1)], [(1, 1)], "^tasks, servers: must be rows of numbers, of one length each"),
        ([("0", "5", "0.5", "0.5")], [(1, 1)], "^jobs.arrival: must be a number"),
        (np.ones((1, 4), dtype="m8[s]"), [(1, 1)], "^jobs.arrival: must be a number"),
        (ROWS, [(True, True)], "^cluster.cpu: must be a number"),
    ],
)
def test_what_are_no_rows_of_numbers_is_refused(tasks, servers, match):
    with pytest.raises(InvalidWorkload, match=match):
        make_workload(tasks, servers)
