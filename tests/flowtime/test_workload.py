"""Workloads of FlowtimePacking: the schema, tables for kernels, the generator, traces."""

from __future__ import annotations

import functools
import math
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from schedgym.core.workload import Workload
from schedgym.errors import InvalidParameter, InvalidWorkload
from schedgym.papers.xu2021 import model
from schedgym.problems.flowtime import problem
from schedgym.problems.flowtime.problem import PROBLEM, FlowtimeParameters
from schedgym.problems.flowtime.workload import (
    KINDS,
    LAST_SLOT,
    MEMORY_MEDIAN,
    MEMORY_SIGMA,
    REDUCE_SHARE,
    SCHEMA,
    Jobs,
    Source,
    TraceJobs,
    eq27,
    generate,
    horizon_of,
    kind_of,
    make_mapreduce,
    make_source,
    make_workload,
    max_slots,
    mean_work,
    tables,
)
from schedgym.problems.queue_delay import workload as queue_delay
from schedgym.problems.queue_delay.problem import QueueDelayParameters
from schedgym.traces import read_trace
from schedgym.traces.base import Trace
from tests.flowtime.instances import instance_of, random_instance, workload_of
from tests.tables import declared
from tests.traces.logs import swf_log

DATA = os.environ.get("SCHEDGYM_DATA")
real = pytest.mark.skipif(not DATA, reason="SCHEDGYM_DATA names no folder with the public traces")

SERVERS = (16, 8, 8, 4, 4, 4, 2, 2)
ID = "schedgym/FlowtimePacking-v0"
KW_SERVERS = (64, 32, 16, 16, 16)


def source_of(
    kind: str,
    jobs: int | str,
    servers: tuple[int, ...],
    *,
    trace: TraceJobs | None = None,
    variance: float | None = None,
    **options: Any,
) -> Source:
    """A source by the parameters of an environment, with a trace of its own."""
    if variance is not None:
        options |= {"estimation": "waste", "variance": variance}
    if trace is not None:
        options["trace"] = "made"
    names = "+".join(map(str, servers))
    return Source(FlowtimeParameters(kind=kind, jobs=jobs, servers=names, **options), trace)


kw = functools.partial(source_of, jobs=6487, servers=KW_SERVERS, horizon=3600)
small = functools.partial(source_of, jobs=60, servers=SERVERS)


# Schema ---------------------------------------------------------------------------------------


def test_sound_workloads() -> None:
    given = declared("flowtime")["sound"]
    one, two, phases, with_latency = map(SCHEMA.parse, given.values())
    assert [kind_of(w) for w in (one, two, phases)] == list(KINDS) == list(problem.KINDS)
    assert make_workload([0, 1, 1], [2, 3, 4], [1, 2, 9], [4, 2]) == one
    assert (
        make_workload([0, 1, 1], [2, 3, 4], [1, 2, 9], [4, 2], memory=[1, 0, 8], server_memory=[3, 8]) == two
    )
    arguments = ([0, 1], [(2, 0), (1, 2)], [(3, 0), (4, 1)], [(1, 0), (2, 3)], [4, 2])
    assert make_mapreduce(*arguments) == phases
    latency = given["latency"]["tasks"]["latency"]
    assert make_mapreduce(*arguments, latency=latency) == with_latency != phases
    assert all(array.dtype == np.int64 for array in phases.jobs.values())
    with pytest.raises(InvalidWorkload, match=r"tasks: must be pairs \(map, reduce\), got shape \(2,\)"):
        make_mapreduce([0, 1], [1, 2], [(3, 0), (4, 1)], [(1, 0), (2, 3)], [4, 2])
    with pytest.raises(InvalidWorkload, match=r"jobs.map_tasks\[0\]: must be >= 1"):
        make_mapreduce([0], [(-1, 0)], [(3, 0)], [(1, 0)], [4, 2], latency=[[1, 1]])
    with pytest.raises(InvalidWorkload, match="per task: 5 as in tasks.job, got 4"):
        make_mapreduce(*arguments, latency=latency[:4])


@st.composite
def instances(draw: st.DrawFn) -> model.Instance:
    rng = random.Random(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(KINDS))
    instance = random_instance(rng, kind, tiny=draw(st.booleans()))
    if kind != "mapreduce" and draw(st.booleans()):
        instance = model.declare(instance, rng, 0.5)
    return instance


# Kernels' arrays and Eq. 27 ------------------------------------------------------------------------------


@given(instance=instances(), gamma=st.sampled_from([1.0, 7.3, 4000.0]))
def test_the_end_of_an_episode(instance: model.Instance, gamma: float) -> None:
    model.check(instance)
    table = tables(workload_of(instance))
    assert eq27(table) == float(model.eq27(instance))
    assert eq27(table, declared=True) == float(model.eq27(instance, declared=True))
    assert max_slots(table, gamma) == model.max_slots(instance, gamma)


def test_the_largest_workload_has_an_exact_end() -> None:
    table = tables(make_workload([LAST_SLOT], [LAST_SLOT], [1], [1], memory=[10**6], server_memory=[10**6]))
    assert eq27(table) == 4 * 10**12 and max_slots(table) == 12 * 10**12


# Generator ------------------------------------------------------------------------------------


def work(w: Workload) -> np.ndarray:
    if "map_tasks" not in w.jobs:
        return w.jobs["processing"] * w.jobs["cpu"]
    return sum(
        math.prod(w.jobs[f"{z}_{name}"] for name in ("tasks", "processing", "cpu")) for z in ("map", "reduce")
    )


def length(w: Workload) -> np.ndarray:
    if "map_tasks" not in w.jobs:
        return w.jobs["processing"]
    return w.jobs["map_processing"] + w.jobs["reduce_processing"]


def load(w: Workload, horizon: int) -> float:
    return float(work(w).sum()) / (float(w.cluster["cpu"].sum()) * horizon)


def close(share: float, expected: float, n: int) -> bool:
    return abs(share - expected) <= 5 * math.sqrt(expected * (1 - expected) / n)


def test_kw_is_the_specification_s_workload() -> None:
    source = kw("1d")
    assert source.horizon == 3600 and source.sizes["task"] == 6487
    drawn = [generate(seed, 0, source) for seed in range(40)]
    loads = [load(w, 3600) for w in drawn]
    assert np.mean(loads) == pytest.approx(0.95, rel=0.02) and 0.01 < np.std(loads) < 0.06
    arrival, processing, cpu = (
        np.concatenate([w.jobs[name] for w in drawn]) for name in ("arrival", "processing", "cpu")
    )
    n = len(arrival)
    assert arrival.min() == 0 and (arrival + processing <= 3600).all()
    assert processing.max() <= 3300 and set(cpu.tolist()) == {1, 2, 4, 8, 16}
    for cores, weight in zip((4, 8, 16), (0.15, 0.3, 0.4), strict=True):
        assert close((cpu == cores).mean(), 0.98 * weight, n)
        assert processing[cpu == cores].max() == 100
    assert close((cpu == 1).mean(), 0.02 * 0.7 + 0.98 * 0.05, n)
    assert close((cpu == 2).mean(), 0.02 * 0.3 + 0.98 * 0.1, n)
    # 100 itself belongs to both classes; beyond it jobs are long
    for x in (150, 400, 1000, 3000):
        ratio = 100 / 3300
        tail = ((100 / (x + 0.5)) ** 0.8 - ratio**0.8) / (1 - ratio**0.8)
        assert close((processing > x).mean(), 0.02 * tail, n)
    for x in (1, 2, 3, 5, 10, 30, 80):
        tail = 0.5 * math.erfc(math.log((x + 0.5) / 3) / 1.3 / math.sqrt(2))
        assert close((processing > x).mean(), 0.02 + 0.98 * tail, n)
    short = arrival[processing <= 3]
    shares = np.histogram(short, bins=6, range=(0, 3600))[0] / len(short)
    assert all(close(share, 1 / 6, len(short)) for share in shares)
    # a long job's arrival is uniform over the slots that are left to it
    lengthy = processing > 500
    places = (arrival[lengthy] + 0.5) / (3600 - processing[lengthy] + 1)
    assert places.mean() == pytest.approx(0.5, abs=5 / math.sqrt(12 * lengthy.sum()))


@pytest.mark.parametrize(
    ("preset", "expected"),
    [("paper", 0.95), ("kw", 0.95), ("kw-107", 1.07), ("kw-86", 0.855), ("kw-70", 0.7125)],
)
def test_load_presets_have_the_same_jobs(preset: str, expected: float) -> None:
    source = make_source(PROBLEM.build("schedgym/FlowtimePacking-v0", PROBLEM.presets[preset]))
    drawn = [generate(seed, 0, source) for seed in range(20)]
    assert np.mean([load(w, 3600) for w in drawn]) == pytest.approx(expected, rel=0.025)
    base = generate(3, 0, kw("1d"))
    assert drawn[3].jobs.keys() == base.jobs.keys()
    assert all(np.array_equal(drawn[3].jobs[name], base.jobs[name]) for name in base.jobs)


def test_narrow_jobs_are_the_same_but_for_their_demands() -> None:
    source = make_source(PROBLEM.build("schedgym/FlowtimePacking-v0", PROBLEM.presets["kw-narrow"]))
    own, base = generate(3, 0, source).jobs, generate(3, 0, kw("1d")).jobs
    assert own.keys() == base.keys() and (own["cpu"] == np.minimum(base["cpu"], 4)).all()
    assert all(np.array_equal(own[name], base[name]) for name in base if name != "cpu")
    loads = [load(generate(seed, 0, source), 3600) for seed in range(20)]
    assert np.mean(loads) == pytest.approx(1.0, rel=0.03)
    given = {"jobs": 60, "servers": "4+4", "load": 0.9, "most_demand": 2}
    scaled = make_source(FlowtimeParameters(**given))
    assert scaled.horizon == horizon_of(60, 8, 0.9, 2) > horizon_of(60, 8, 0.9, 1)
    with pytest.raises(InvalidParameter, match="most_demand: must be"):
        FlowtimeParameters(most_demand=17)


@pytest.mark.parametrize("wanted", [0.5, 0.95, 1.5])
@pytest.mark.parametrize(("jobs", "servers"), [(60, SERVERS), (400, (4, 4)), (30, (1,))])
def test_the_horizon_follows_from_the_load(jobs: int, servers: tuple[int, ...], wanted: float) -> None:
    source = source_of("1d", jobs, servers, load=wanted)
    cores = sum(servers)
    assert jobs * mean_work(source.horizon, cores) >= wanted * cores * source.horizon
    assert jobs * mean_work(source.horizon + 1, cores) < wanted * cores * (source.horizon + 1)
    drawn = [generate(seed, 0, source) for seed in range(400)]
    loads = [load(w, source.horizon) for w in drawn]
    assert np.mean(loads) == pytest.approx(wanted, abs=5 * np.std(loads) / 20 + 0.01 * wanted)
    for w in drawn:
        assert (w.jobs["arrival"] + w.jobs["processing"] <= source.horizon).all()
        assert w.jobs["cpu"].max() <= cores


def test_scales_of_the_generator() -> None:
    fixed = make_source(FlowtimeParameters(jobs=30, horizon=500))
    assert fixed.horizon == 500 and not fixed.arrays.constants["declared"] and fixed.kind == "1d"
    assert abs(horizon_of(6487, 144, 0.95, 16) - 3600) < 10
    assert horizon_of(1, 1000, 0.95, 16) == 12
    lone = generate(0, 0, source_of("1d", 1, (1000,)))
    assert lone.jobs["processing"][0] <= 11
    shortest = generate(0, 0, source_of("1d", 50, (4,), horizon=1))
    assert set(shortest.jobs["processing"].tolist()) == {1} and set(shortest.jobs["arrival"].tolist()) == {0}
    wide = generate(0, 0, source_of("1d", 20_000, (4,), horizon=36_000))
    assert 20_000 < wide.jobs["processing"].max() <= 33_000 and wide.jobs["cpu"].max() == 4
    tight = np.concatenate([generate(s, 0, small("1d", horizon=72)).jobs["processing"] for s in range(300)])
    assert tight.max() == 66 and set(range(22, 67)) <= set(tight.tolist())


def fates(source: Source, seed: int = 5, episode: int = 1) -> Jobs:
    return tables(generate(seed, episode, source))


def test_jobs_keep_their_draws() -> None:
    """Another horizon moves jobs, and more jobs join; each keeps its own size, memory and declarations."""

    def bag(source: Source) -> Counter[tuple[int, ...]]:
        t = fates(source)
        short = t.processing[:, 0] <= 20
        columns = (t.processing[:, 0], t.cpu[:, 0], t.memory, t.declared_cpu, t.declared_memory)
        return Counter(zip(*(column[short].tolist() for column in columns), strict=True))

    base = bag(small("2d", horizon=3600, variance=0.5))
    assert bag(small("2d", horizon=5000, variance=0.5)) == base
    assert base < bag(source_of("2d", 90, SERVERS, horizon=3600, variance=0.5))
    slots = fates(small("1d", horizon=3600)).arrival.tolist()
    assert not Counter(slots) - Counter(fates(source_of("1d", 90, SERVERS, horizon=3600)).arrival.tolist())
    assert fates(small("1d", horizon=4000)).arrival.tolist() != slots


def test_memory_that_fits_is_the_same_in_larger_servers() -> None:
    small_memory = fates(small("2d", horizon=90))
    larger = fates(source_of("2d", 60, (64, 32), horizon=90, memory_per_core=9.0))
    fits = small_memory.memory < small_memory.server_memory.max()
    assert fits.any() and np.array_equal(larger.memory[fits], small_memory.memory[fits])


def test_memory_is_correlated_with_cores() -> None:
    source = source_of("2d", 20_000, (10_000, 16), horizon=10**6)
    w = generate(0, 0, source)
    assert w.cluster["memory"].tolist() == [40_000, 64]
    ratio = w.jobs["memory"] / (MEMORY_MEDIAN * w.jobs["cpu"])
    wide = ratio[w.jobs["cpu"] == 16]
    assert np.median(wide) == pytest.approx(1, abs=0.03)
    assert np.log(wide).std() == pytest.approx(MEMORY_SIGMA, rel=0.03)
    assert w.jobs["memory"].min() == 1
    assert np.corrcoef(w.jobs["cpu"], w.jobs["memory"])[0, 1] > 0.6
    tight = generate(0, 0, source_of("2d", 20_000, (16, 4), horizon=10**6, memory_per_core=0.7))
    assert tight.cluster["memory"].tolist() == [11, 2]
    assert tight.jobs["memory"].max() == 11
    assert generate(0, 0, source_of("2d", 5, (1, 1), memory_per_core=0.1)).cluster["memory"].tolist() == [
        1,
        1,
    ]


@pytest.mark.parametrize("variance", [0.0, 0.2, 1.0])
def test_declarations(variance: float) -> None:
    w = generate(0, 0, kw("2d", variance=variance))
    jobs = w.jobs
    assert jobs["declared_cpu"].min() >= 1 and jobs["declared_memory"].min() >= 1
    assert jobs["declared_memory"].max() <= 256
    if variance == 0:
        assert_array_equal(jobs["declared_cpu"], jobs["cpu"])
        assert_array_equal(jobs["declared_memory"], jobs["memory"])
        return
    sigma = math.sqrt(variance)
    wide = jobs["cpu"] == 16
    said, n = jobs["declared_cpu"][wide], int(wide.sum())
    for bound in (1, 8, 16, 20, 30):  # ceil(16 (1 + X)) <= bound
        expected = 0.5 * math.erfc(-(bound / 16 - 1) / sigma / math.sqrt(2))
        assert close((said <= bound).mean(), expected, n)
    held = jobs["declared_memory"] / jobs["memory"]
    free = wide & (jobs["declared_memory"] > 1) & (jobs["declared_memory"] < 256)
    noise = np.column_stack([jobs["declared_cpu"] / jobs["cpu"], held])[free & (jobs["declared_cpu"] > 1)]
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.06  # X and X' are independent
    half = generate(0, 0, kw("2d", variance=variance / 4)).jobs
    wider = np.abs(jobs["declared_cpu"] - jobs["cpu"]) >= np.abs(half["declared_cpu"] - jobs["cpu"]) - 1
    assert wider.all()  # the same noise, half as strong
    assert "declared_memory" not in generate(0, 0, kw("1d", variance=variance)).jobs


def test_mapreduce_jobs_are_cut_plain_jobs() -> None:
    plain, w = generate(2, 0, kw("1d")), generate(2, 0, kw("mapreduce"))
    jobs = w.jobs
    assert_array_equal(jobs["arrival"], plain.jobs["arrival"])
    assert_array_equal(length(w), length(plain))
    assert_array_equal(work(w), work(plain))
    reduces = jobs["reduce_tasks"] > 0
    single = plain.jobs["processing"] == 1
    assert not reduces[single].any()
    assert close(reduces[~single].mean(), REDUCE_SHARE, int((~single).sum()))
    cores = plain.jobs["cpu"]
    assert_array_equal(jobs["map_tasks"] * jobs["map_cpu"], cores)
    assert_array_equal((jobs["reduce_tasks"] * jobs["reduce_cpu"])[reduces], cores[reduces])
    assert set(jobs["map_cpu"].tolist()) == {1, 2, 4} == set(jobs["reduce_cpu"][reduces].tolist())
    assert (jobs["reduce_cpu"] >= jobs["map_cpu"])[reduces].all()
    assert (jobs["reduce_processing"] == 0)[~reduces].all() and (jobs["reduce_cpu"] == 0)[~reduces].all()
    lengthy = reduces & (length(w) >= 30)
    share = (jobs["map_processing"] / length(w))[lengthy]
    assert 0.28 < share.min() < 0.4 and 0.7 < share.max() < 0.82
    source = kw("mapreduce")
    assert tables(w).tasks.max() == 16 == source.phase_tasks
    assert 6487 < tables(w).first_task[-1] <= source.sizes["task"]
    odd = generate(0, 0, source_of("mapreduce", 300, (7, 6)))
    assert (odd.jobs["map_tasks"] * odd.jobs["map_cpu"]).max() == 13 and tables(odd).tasks.max() == 13


def test_latencies() -> None:
    source = small("mapreduce", latency=True)
    table = fates(source)
    assert source.sizes["latency_row"] > 0 == small("mapreduce").sizes["latency_row"]
    assert len(table.latency) == table.first_task[-1]
    assert set(table.latency.ravel().tolist()) == {0, 1, 2, 3, 4, 5}
    for j in range(60):
        maps = table.latency[table.first_task[j] : table.first_task[j] + table.tasks[j, 0]]
        reduces = table.latency[table.first_task[j] + table.tasks[j, 0] : table.first_task[j + 1]]
        near = (maps == 0).sum(axis=1)
        assert near.min() >= 1 and near.max() <= 3 and (reduces > 0).all()
    assert len({tuple(row) for row in table.latency.tolist()}) > 0.9 * len(table.latency)
    model.check(instance_of(generate(0, 0, source)))


# Traces -----------------------------------------------------------------------------------------


def made_trace(count: int = 25) -> TraceJobs:
    rng = np.random.default_rng(0)
    arrival = np.cumsum(rng.integers(0, 90, count)).astype(float)
    return TraceJobs(arrival, np.arange(1, count + 1), rng.integers(1, 9, count), rng.integers(0, 9, count))


@pytest.mark.parametrize("wanted", [0.4, 1.2])
def test_arrivals_of_a_trace_are_scaled_to_the_load(wanted: float) -> None:
    source = source_of("1d", 12, SERVERS, trace=made_trace(), load=wanted)
    plain = source_of("1d", 12, SERVERS, trace=made_trace(), load=None, slot_seconds=1e-6)
    for episode in range(2):
        w, exact = generate(1, episode, source), generate(1, episode, plain)
        horizon = work(w).sum() / (wanted * 48)
        assert w.jobs["arrival"][0] == 0 and abs(w.jobs["arrival"][-1] - horizon) <= 1
        places = exact.jobs["arrival"] / exact.jobs["arrival"][-1]
        assert (np.abs(w.jobs["arrival"] - places * horizon) <= 1).all()
    noisy = source_of("1d", 12, SERVERS, trace=made_trace(), load=wanted, variance=0.5)
    other = generate(1, 0, noisy)
    assert_array_equal(other.jobs["arrival"], generate(1, 0, source).jobs["arrival"])
    assert not np.array_equal(other.jobs["declared_cpu"], other.jobs["cpu"])


def test_jobs_of_a_trace_that_arrive_together_stay_together() -> None:
    trace = TraceJobs(np.full(3, 50.0), *(np.array([1, 2, 3]) for _ in range(3)))
    assert generate(0, 0, source_of("1d", 3, (4,), trace=trace)).jobs["arrival"].tolist() == [0, 0, 0]


def test_windows_that_cannot_be() -> None:
    trace = made_trace()
    heavy = trace._replace(processing=np.full(25, 10**12), cpu=np.full(25, 2))
    with pytest.raises(
        InvalidParameter, match=r"a window of 5 jobs has 1e\+13 core-slots of work, more than"
    ):
        source_of("1d", 5, SERVERS, trace=heavy)
    long = trace._replace(processing=np.full(25, 10**5), cpu=np.full(25, 1))
    with pytest.raises(
        InvalidParameter, match="needs up to 500000 slots, and a trace of 25 jobs may take 125000"
    ):
        source_of("1d", 5, (1,), trace=long)
    with pytest.raises(InvalidParameter, match=r"a window of 25 jobs takes 1.\d*e\+15 slots to arrive"):
        source_of("1d", 25, SERVERS, trace=trace, load=None, slot_seconds=1e-12)


def queue(**values: Any) -> Workload:
    """What QueueDelay makes of a trace."""
    return queue_delay.generate(0, 0, queue_delay.make_source(QueueDelayParameters(**values)))


def test_swf_feeds_this_problem_and_queue_delay(tmp_path: Path) -> None:
    log = swf_log(tmp_path)
    i = np.arange(30)
    parameters = FlowtimeParameters(trace=str(log), jobs="all", kind="2d", servers="16+4", load=None)
    w = generate(0, 0, make_source(parameters))
    assert_array_equal(w.jobs["arrival"], 7 * i // 10)
    assert_array_equal(w.jobs["processing"], -(-(5 + i % 30) // 10))
    assert_array_equal(w.jobs["cpu"], 1 + i % 8)
    assert_array_equal(w.jobs["memory"], 1 + i % 8)
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("cores,memory\n8,16\n8,32\n")
    scaled = generate(0, 0, make_source(FlowtimeParameters(**(vars(parameters) | {"nodes": str(nodes)}))))
    assert_array_equal(scaled.jobs["cpu"], 2 * w.jobs["cpu"])
    assert_array_equal(scaled.jobs["memory"], 2 * w.jobs["memory"])  # 64 GB in the server of 16 cores
    other = queue(trace=str(log), nodes=str(nodes), tasks=30, servers=2)
    assert_array_equal(other.jobs["arrival"], 7.0 * i)
    assert_array_equal(other.jobs["cpu"] * 8, 1 + i % 8)
    with pytest.raises(InvalidWorkload, match=r"swf: task \[4\] takes 5 GB, but the largest server has 4"):
        make_source(FlowtimeParameters(**(vars(parameters) | {"memory_per_core": 0.25})))


@real
def test_alibaba_feeds_this_problem() -> None:
    assert DATA is not None
    pods = str(Path(DATA) / "openb_pod_list_default.csv")
    nodes = str(Path(DATA) / "openb_node_list_all_node.csv")
    parameters = FlowtimeParameters(
        trace=pods, jobs="all", kind="2d", servers="128+64+64", memory_per_core=8.0, slot_seconds=300.0
    )
    source = make_source(parameters)
    trace = read_trace(pods)
    assert isinstance(trace, Trace)
    w = generate(0, 0, source)
    assert len(w.jobs["cpu"]) == len(trace.cores) > 8000
    assert_array_equal(w.jobs["cpu"], np.ceil(trace.cores))
    assert_array_equal(w.jobs["memory"], np.ceil(trace.memory))
    assert_array_equal(w.jobs["processing"], np.maximum(np.ceil(trace.duration / 300), 1))
    assert load(w, int(w.jobs["arrival"][-1])) == pytest.approx(0.95, rel=1e-3)
    assert w.jobs["memory"].max() <= 1024
    scaled = FlowtimeParameters(trace=pods, nodes=nodes, jobs=100, servers="64+32+16+16+16")
    window = generate(0, 0, make_source(scaled))
    assert window.jobs["cpu"].max() <= 64 and len(window.jobs["cpu"]) == 100
    with pytest.raises(InvalidWorkload, match="GB, but the largest server has 256"):
        make_source(FlowtimeParameters(trace=pods, jobs="all", kind="2d", servers="64+32"))


def test_latency_reaches_the_environment() -> None:
    parameters = {"kind": "mapreduce", "jobs": 12, "servers": "8+4+2", "load": 2.0}
    for view in ("allocation", "pick"):
        env = gym.make(ID, latency=True, window="all", view=view, disable_env_checker=True, **parameters)
        plain = gym.make(ID, window="all", view=view, disable_env_checker=True, **parameters)
        seen, _ = env.reset(seed=3)
        without, _ = plain.reset(seed=3)
        drawn = generate(3, 0, make_source(FlowtimeParameters(latency=True, **parameters)))
        assert set(seen) - set(without) == {"latency"} and np.ptp(seen["latency"]) == 5
        rows, first = tables(drawn).latency, tables(drawn).first_task
        for r, job in enumerate(seen["job"][: seen["active"][0]]):
            maps, reduces = seen["tasks"][r]
            assert_array_equal(seen["latency"][r, 0, :maps], rows[first[job] : first[job] + maps])
            assert_array_equal(seen["latency"][r, 1, :reduces], rows[first[job] + maps : first[job + 1]])
