"""Workloads of ParallelJCT: energy caps, the generator, traces."""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import stats

from schedgym.core.workload import Workload
from schedgym.errors import InvalidWorkload
from schedgym.papers.shi2017.model import one_job, online
from schedgym.problems.parallel_jct.problem import PROBLEM, READINGS, ParallelJCTParameters
from schedgym.problems.parallel_jct.workload import (
    DEFAULT_MOST_TASKS,
    SCHEMA,
    WEIBULL,
    Source,
    TraceJobs,
    cap_of_round,
    energy_draw,
    from_trace,
    generate,
    is_granted,
    make_source,
    size_moments,
    tables,
)
from schedgym.traces import read_trace
from schedgym.traces.base import JobTrace, Trace
from tests.parallel_jct import energy
from tests.tables import table
from tests.traces.logs import SWIM_ROWS, write

DATA = os.environ.get("SCHEDGYM_DATA")
real = pytest.mark.skipif(not DATA, reason="SCHEDGYM_DATA names no folder with the public traces")
seeds = st.integers(0, 2**32)


# Energy caps ------------------------------------------------------------------------------------


@numba.njit
def compiled_draws(seed: int, job: int, rounds: int, first: int = 0) -> Any:
    draws = np.empty(rounds)
    for i in range(rounds):
        draws[i] = energy_draw(seed, job, first + i)
    return draws


class Caps(NamedTuple):
    """What of Jobs decides the caps."""

    ideal_energy: Any
    least_energy: Any
    energy_cap_ratio: Any
    energy_seed: Any


@numba.njit
def compiled(jobs: Caps, job: int, number: int) -> Any:
    return cap_of_round(jobs, job, number), is_granted(jobs, job)


def compiled_cap(total: float, least: float, ratio: float, seed: int, job: int, number: int) -> Any:
    columns = (np.full(job + 1, value) for value in (total, least, ratio))
    return compiled(Caps(*columns, np.array([seed])), job, number)


@given(seed=st.integers(0, 2**53), job=st.integers(0, 10**6), rounds=st.integers(1, 20))
def test_the_draws_of_caps_are_a_function(seed: int, job: int, rounds: int) -> None:
    with np.errstate(over="ignore"):
        draws = compiled_draws(seed, job, 2 * rounds, -rounds)
    assert draws.tolist() == [energy.energy_draw(seed, job, i) for i in range(-rounds, rounds)]
    assert (draws >= 0).all() and (draws < 1).all()


def test_the_draws_of_caps_look_random() -> None:
    with np.errstate(over="ignore"):
        table = np.array([[compiled_draws(seed, job, 40, -20) for job in range(25)] for seed in range(10)])
    assert stats.kstest(table.ravel(), "uniform").pvalue > 1e-3
    assert len(np.unique(table)) == table.size
    flat = table.reshape(-1, 40)
    for shift in (1, 2, 5):
        assert abs(np.corrcoef(flat[:, :-shift].ravel(), flat[:, shift:].ravel())[0, 1]) < 0.05
    assert abs(np.corrcoef(table[:, :-1].ravel(), table[:, 1:].ravel())[0, 1]) < 0.05
    assert abs(np.corrcoef(table[:-1].ravel(), table[1:].ravel())[0, 1]) < 0.05


@given(
    load=st.floats(0.5, 1e6),
    factor=st.floats(1.0, 1.3),
    ratio=st.sampled_from([math.nan, 0.5, 1.0, 1.25]),
    seed=st.integers(0, 2**53),
    job=st.integers(0, 100),
    number=st.integers(-100, 100),
)
def test_the_cap_of_a_round(
    load: float, factor: float, ratio: float, seed: int, job: int, number: int
) -> None:
    """Against the model, which draws by the same function."""
    least = factor * load
    with np.errstate(over="ignore"):
        cap, granted = compiled_cap(load, least, ratio, seed, job, number)
    assert (cap, granted) == energy.cap_of_round(load, least, ratio, seed, job, number)
    # one task whose efficiency makes that least energy, as nearly as can be
    workload = online.Workload(
        (online.Job(0.0, (load,), ((load / least,),)),),
        (1.0,),
        (one_job.Limit("server", (0,), 1),),
        None if math.isnan(ratio) else ratio,
    )
    least = workload.jobs[0].least_energy
    with np.errstate(over="ignore"):
        cap, granted = compiled_cap(load, least, ratio, seed, job, number)
    state = online.Simulation(workload, draw=lambda _, i: energy.energy_draw(seed, job, i))
    if number >= 0:
        state.clock = 10 * number
    else:
        state.clock, state.between[0] = 5, -number
    assert float(state.energy_cap(0)) == cap
    assert bool(state.outcome.granted) == granted
    assert cap >= least if granted else cap <= max(1.1, ratio) * load * (1 + 1e-12)


# Generator --------------------------------------------------------------------------------------


def source_of(jobs: int | str, arity: int, trace: TraceJobs | None = None, **options: Any) -> Source:
    given = {} if trace is None else {"trace": "given"}
    return Source(ParallelJCTParameters(jobs=jobs, arity=arity, **given, **options), trace)


def sizes(workload: Workload) -> np.ndarray:
    return np.bincount(workload.tasks["job"])


def near(share: float, p: float, count: int) -> None:
    assert share == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / count) + 1e-12)


@pytest.mark.parametrize("reading", READINGS)
def test_the_readings_of_the_number_of_tasks(reading: str) -> None:
    factor, scale, shape = WEIBULL[reading]
    most = DEFAULT_MOST_TASKS[reading]
    count = 20_000
    source = source_of(count, 2, reading=reading)
    assert source.most_tasks == most
    drawn = sizes(generate(0, 0, source))
    assert drawn.min() >= 1 and drawn.max() <= most
    weibull = stats.weibull_min(shape, scale=factor * scale)
    for k in (1, 2, 3, 5, 10, 30, 50, 69):
        near((drawn <= k).mean(), float(weibull.cdf(k)), count)
    mean, deviation = size_moments(reading, source.most_tasks)
    assert drawn.mean() == pytest.approx(mean, abs=5 * deviation / math.sqrt(count))
    assert drawn.std() == pytest.approx(deviation, rel=0.1)
    # the same moments from scipy: sums over the tail
    tail = weibull.sf(np.arange(most))
    assert mean == pytest.approx(tail.sum(), rel=1e-12)
    # the specification's numbers
    expected = {"x70": 30.0, "scale-half": 1.25, "shape-half": 2.29}[reading]
    assert mean == pytest.approx(expected, rel=0.02)
    if reading == "x70":
        near((drawn == 70).mean(), float(weibull.sf(69)), count)
        assert float(weibull.sf(70)) == pytest.approx(0.175, abs=5e-4)
    else:
        assert float(weibull.sf(most)) < 1.4e-7


@pytest.mark.parametrize("reading", READINGS)
def test_jobs_may_be_cut(reading: str) -> None:
    free = generate(3, 1, source_of(200, 2, reading=reading))
    for most in (1, 2, 10):
        cut = generate(3, 1, source_of(200, 2, reading=reading, most_tasks=most))
        assert_array_equal(sizes(cut), np.minimum(sizes(free), most))


def test_the_paper_s_distributions() -> None:
    w = generate(0, 0, source_of(540, 6))
    assert_array_equal(w.cluster["cpu"], np.full(54, 10.0))
    load, efficiency = w.tasks["load"], w.tasks["efficiency"]
    assert load.min() > 0 and load.max() <= 1000 and efficiency.min() >= 0.1 and efficiency.max() <= 1
    assert stats.kstest(load, "uniform", (0, 1000)).pvalue > 1e-3
    assert stats.kstest(efficiency.ravel()[:100_000], "uniform", (0.1, 0.9)).pvalue > 1e-3
    gaps = np.diff(w.jobs["arrival"], prepend=0.0)  # the first job does not come at once either
    assert stats.kstest(gaps, "expon", (0, 1 / 0.15)).pvalue > 1e-3
    firsts = [generate(seed, 0, source_of(1, 2)).jobs["arrival"][0] for seed in range(200)]
    assert stats.kstest(firsts, "expon", (0, 1 / 0.15)).pvalue > 1e-3
    # an hour of 540 jobs on 540 vCPU with efficiencies near 1: 441% load
    offered = load.sum() / (540 * 3600)
    assert offered == pytest.approx(4.41 * 0.96, rel=0.12)


def test_other_ranges() -> None:
    source = source_of(300, 4, rate=2.0, load_max=30.0, cpu=4.5, reading="shape-half")
    w = generate(1, 0, source)
    assert stats.kstest(np.diff(w.jobs["arrival"], prepend=0.0), "expon", (0, 0.5)).pvalue > 1e-3
    assert stats.kstest(w.tasks["load"], "uniform", (0, 30)).pvalue > 1e-3
    assert set(w.cluster["cpu"].tolist()) == {4.5}


def test_the_energy_seed_has_53_bits() -> None:
    source = source_of(1, 2, reading="scale-half")
    drawn = [int(generate(seed, 0, source).parameters["energy_seed"]) for seed in range(300)]
    assert len(set(drawn)) == 300 and 0 <= min(drawn) and max(drawn) < 2**53
    assert stats.kstest(np.array(drawn) / 2.0**53, "uniform").pvalue > 1e-3
    assert np.array(drawn).max() > 2**52 and any(number % 2 for number in drawn)


def test_fewer_tasks_leave_those_that_remain_as_they_were() -> None:
    base = generate(5, 1, source_of(60, 4))
    cut = generate(5, 1, source_of(60, 4, most_tasks=5))
    first, own = tables(base).first_task, tables(cut).first_task
    for a, b, size in zip(first[:-1], own[:-1], sizes(cut), strict=True):
        for name in ("load", "efficiency"):
            assert_array_equal(cut.tasks[name][b : b + size], base.tasks[name][a : a + size])
    assert len(np.unique(base.tasks["load"])) == len(base.tasks["job"])


@pytest.mark.parametrize("reading", READINGS)
def test_the_first_guess_of_room_holds_most_episodes(reading: str) -> None:
    source = source_of(60, 2, reading=reading)
    counts = [len(generate(seed, 0, source).tasks["job"]) for seed in range(300)]
    assert sum(count > source.sizes["task"] for count in counts) <= 3
    assert source.sizes["task"] < 1.6 * max(counts)
    assert source_of(3, 2, reading="x70").sizes["task"] <= 210


# Traces -----------------------------------------------------------------------------------------


def made(counts: list[int], loads: bool = True) -> TraceJobs:
    first = np.concatenate([[0], np.cumsum(counts)])
    load = np.arange(1.0, first[-1] + 1) if loads else np.zeros(0)
    return TraceJobs(np.arange(len(counts)) * 2.5 + 7.0, first, load, {})


def google(job: list[int], arrival: list[float], duration: list[float]) -> Trace:
    size = np.full(len(job), 0.5)
    return Trace("google2011", np.array(arrival), np.array(duration), size, size, job=np.array(job))


def test_jobs_of_a_trace_of_tasks() -> None:
    trace = google([7, 5, 7, 9, 5, 7], [3.0, 3.0, 4.0, 1.0, 8.0, 9.0], [10.0, 20.0, 30.0, 40.0, 50.0, 60.0])
    jobs = from_trace(trace)
    assert jobs.arrival.tolist() == [1.0, 3.0, 3.0]  # 9; 7 before 5, as in the file
    assert jobs.first_task.tolist() == [0, 1, 4, 6]
    assert jobs.load.tolist() == [40.0, 10.0, 30.0, 60.0, 20.0, 50.0]
    assert jobs.dropped == {}
    fewer = from_trace(trace, 2)
    assert fewer.arrival.tolist() == [1.0, 3.0] and fewer.load.tolist() == [40.0, 20.0, 50.0]
    assert fewer.first_task.tolist() == [0, 1, 3] and fewer.dropped == {"more than 2 tasks": 1}
    with pytest.raises(InvalidWorkload, match="^google2011: no job is left: 3 with more than 0 tasks$"):
        from_trace(trace, 0)
    source = source_of("all", 2, trace=fewer)
    assert source.trace.dropped == {"more than 2 tasks": 1} and source.most_tasks == 2


@given(
    data=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=20),
    most=st.integers(1, 9),
)
def test_jobs_of_a_trace_lose_no_task(data: list[tuple[int, int]], most: int) -> None:
    job, arrival = [a for a, _ in data], [float(b) for _, b in data]
    duration = [float(i + 1) for i in range(len(data))]  # tells the tasks apart
    expected = {}
    for number in set(job):
        own = sorted((arrival[i], i) for i in range(len(data)) if job[i] == number)
        expected[number] = (own[0], [float(i + 1) for _, i in own])
    kept = sorted(value for value in expected.values() if len(value[1]) <= most)
    if not kept:
        with pytest.raises(InvalidWorkload, match="no job is left"):
            from_trace(google(job, arrival, duration), most)
        return
    jobs = from_trace(google(job, arrival, duration), most)
    assert jobs.arrival.tolist() == [first[0] for first, _ in kept]
    loads = [jobs.load[a:b].tolist() for a, b in itertools.pairwise(jobs.first_task)]
    assert loads == [own for _, own in kept]
    assert sum(jobs.dropped.values()) == len(expected) - len(kept)


def event(time: int, job: int, task: int, kind: int) -> str:
    return f"{time * 1_000_000},,{job},{task},{'' if kind == 0 else 42},{kind},u,2,9,0.25,0.125,0.0001,0"


def test_a_file_of_the_google_trace(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    rows = table(__file__, "test_a_file_of_the_google_trace")
    path.write_text("".join(f"{event(*row)}\n" for row in rows))
    trace = read_trace(path)
    assert isinstance(trace, Trace)
    assert trace.job.tolist() == [6251812952, 6251812952, 3418309]
    jobs = from_trace(trace)
    assert jobs.arrival.tolist() == [600.0, 605.0] and jobs.first_task.tolist() == [0, 2, 3]
    assert jobs.load.tolist() == [10.0, 4.0, 14.0]
    parameters = ParallelJCTParameters(trace=str(path), jobs="all", arity=2, cpu=4.0)
    w = generate(0, 0, make_source(parameters))
    assert w.jobs["arrival"].tolist() == [0.0, 5.0] and w.tasks["load"].tolist() == [10.0, 4.0, 14.0]
    assert w.tasks["job"].tolist() == [0, 0, 1] and w.cluster["cpu"].tolist() == [4.0, 4.0]


def test_a_file_of_swim(tmp_path: Path) -> None:
    path = tmp_path / "jobs.tsv"
    write(path, SWIM_ROWS)
    trace = read_trace(path)
    assert isinstance(trace, JobTrace)
    jobs = from_trace(trace)
    assert jobs.arrival.tolist() == [9.0, 18.0, 18.0, 25.5]
    assert np.diff(jobs.first_task).tolist() == [1, 3, 4, 1] and jobs.load.size == 0
    assert jobs.dropped == {"no map task": 1}
    few = from_trace(trace, 3)
    assert np.diff(few.first_task).tolist() == [1, 3, 1]
    assert few.dropped == {"no map task": 1, "more than 3 tasks": 1}
    source = make_source(ParallelJCTParameters(trace=str(path), jobs=2, arity=2, most_tasks=3))
    assert (source.windows, source.jobs, source.most_tasks) == (1, 2, 3)
    w = generate(0, 0, source)
    assert sizes(w).tolist() == [1, 3] and w.jobs["arrival"].tolist() == [0.0, 9.0]
    assert (w.tasks["load"] > 0).all() and (w.tasks["load"] <= 1000).all()
    path.write_text(SWIM_ROWS[3] + "\n")
    with pytest.raises(InvalidWorkload, match="^swim: no job is left: 1 with no map task$"):
        from_trace(read_trace(path))


def test_times_beyond_the_limits_are_refused() -> None:
    with pytest.raises(InvalidWorkload, match=r"a task lasts 1e\+13 s, but the most are 1e\+12"):
        from_trace(google([1, 1], [0.0, 0.0], [1.0, 1e13]))
    with pytest.raises(InvalidWorkload, match=r"arrivals must lie within 1e\+12 s"):
        from_trace(google([1, 2], [0.0, 1e13], [1.0, 1.0]))


@real
def test_facebook_2010() -> None:
    assert DATA is not None
    path = str(Path(DATA) / "FB-2010_samples_24_times_1hr_0.tsv")
    source = make_source(ParallelJCTParameters(trace=path, jobs=100, most_tasks=70))
    counts = np.diff(source.trace.first_task)
    assert source.trace.dropped["no map task"] == 418
    assert len(counts) + source.trace.dropped["more than 70 tasks"] == 24_024
    assert counts.max() <= 70 and source.windows == len(counts) // 100
    w = generate(0, 3, source)
    assert len(w.jobs["arrival"]) == 100 and len(w.tasks["job"]) <= source.sizes["task"]
    free = from_trace(read_trace(path))
    assert len(free.arrival) == 24_024 and free.first_task[-1] == 1_102_281


# Sources ----------------------------------------------------------------------------------------


def test_sources_from_parameters() -> None:
    shares = {"rack_share": 0.9, "pod_share": 0.8, "data_centre_share": 0.7}
    source = make_source(ParallelJCTParameters(jobs=9, arity=4, server_caps=False, **shares))
    workload = generate(1, 1, source)
    assert workload.cluster["beta"].tolist() == [0.9, 0.8, 0.7] and not workload.cluster["server_caps"]
    assert_array_equal(source.groups.share, [0.9] * 8 + [0.8] * 4 + [0.7])
    default = make_source(ParallelJCTParameters())
    assert (default.jobs, default.servers, default.most_tasks) == (60, 54, 70)
    assert PROBLEM.schema is SCHEMA and set(WEIBULL) == set(READINGS) == set(DEFAULT_MOST_TASKS)
