"""Workloads of PartialValue: what the schema refuses, the generator, traces."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from schedgym.core.random import root_seed
from schedgym.core.workload_files import load_workload
from schedgym.errors import InvalidParameter, InvalidWorkload
from schedgym.problems.partial_value.problem import PartialValueParameters
from schedgym.problems.partial_value.rules import LAST_SLOT, LINEAR, LOG, POWER
from schedgym.problems.partial_value.workload import (
    SCHEMA,
    Jobs,
    Origin,
    Source,
    check_model,
    from_trace,
    generate,
    make_source,
    make_workload,
    tables,
)
from schedgym.traces import Trace, read_trace
from tests.parallel_jct.energy import GOLDEN, mixed
from tests.tables import declared, entry
from tests.test_all_workloads import changed
from tests.traces.logs import swf_log

ROOT = Path(__file__).resolve().parents[2]
DATA = os.environ.get("SCHEDGYM_DATA")
real = pytest.mark.skipif(not DATA, reason="SCHEDGYM_DATA names no folder with the public traces")

# Schema and files -----------------------------------------------------------------------------


def test_one_number_for_all_jobs() -> None:
    fixed = {"arrival": [1, 2], "deadline": [2, 3], "demand": [[1], [2]], "capacity": [5]}
    one = {"parallelism": 4, "tasks": 9, "utility": "power", "value": 2.0, "exponent": 0.5}
    each = {name: [value, value] for name, value in one.items()}
    codes = one | {"utility": np.array([POWER, POWER])}
    assert make_workload(**fixed, **one) == make_workload(**fixed, **each) == make_workload(**fixed, **codes)


def test_whole_tasks() -> None:
    sound = declared("partial-value")["sound"]["one"]
    workload, other = (
        SCHEMA.parse(changed(sound, {"jobs.parallelism": [1, 1, 4], "jobs.tasks": [2, 1, most]}))
        for most in (40, 0.5)
    )
    check_model(workload, "discrete")
    check_model(SCHEMA.parse(sound), "continuous")
    with pytest.raises(InvalidWorkload, match=r"^jobs.parallelism\[1\]: must be a whole number in the disc"):
        check_model(SCHEMA.parse(sound), "discrete")
    with pytest.raises(InvalidWorkload, match=r"^jobs.tasks\[2\]: must be a whole number .*, got 0.5$"):
        check_model(other, "discrete")


def test_the_example_suits_both_models() -> None:
    workload = load_workload(ROOT / "schedgym/problems/partial_value/example.json")
    check_model(workload, "discrete")
    assert set(workload.jobs["utility"].tolist()) == {LINEAR, POWER, LOG}
    assert len(workload.jobs["arrival"]) == 30 and len(workload.cluster["capacity"]) == 2


# The paper's generator ------------------------------------------------------------------------


def source_of(jobs: int | str, trace: Origin | None = None, **parameters: Any) -> Source:
    """The source of an environment with these parameters, of the paper's jobs or those of a made trace."""
    name = None if trace is None else "made"
    return Source(PartialValueParameters(jobs=jobs, trace=name, **parameters), trace)


class Stream:
    """A stream of the generator, in Python's whole numbers."""

    def __init__(self, seed: int, episode: int, name: int) -> None:
        root = int(root_seed(seed))
        self.state = mixed(mixed(mixed(root + GOLDEN) + episode) + GOLDEN * (name + 1))

    def uniform(self) -> float:
        self.state += GOLDEN
        return (mixed(self.state) >> 11) * 2.0**-53

    def exponential(self) -> float:
        return -math.log1p(-self.uniform())


@pytest.mark.parametrize("single", [False, True])
def test_the_generator_once_more(single: bool) -> None:
    largest: dict[str, Any] = {} if single else {"heterogeneity": 5.0}
    source = source_of(50, rate=3.0, windows=4.0, single=single, **largest)
    workload = generate(11, 2, source)
    arrivals, deadlines, values, demands = (Stream(11, 2, name) for name in range(4))
    clock = 0.0
    for j in range(50):
        clock += arrivals.exponential() / 3.0
        slot = 1 + math.floor(clock)
        assert workload.jobs["arrival"][j] == slot
        assert workload.jobs["deadline"][j] == slot + math.floor(4.0 * deadlines.exponential())
        assert workload.jobs["value"][j] == 1.0 + 4.0 * values.uniform()
        demand = [1.0] if single else [1.0, 1.0]
        if not single:
            heavy = int(demands.uniform() >= 0.5)
            demand[heavy] = 1.0 + 4.0 * demands.uniform()
        assert workload.jobs["demand"][j].tolist() == demand
    assert (workload.jobs["tasks"] == 100).all() and (workload.jobs["parallelism"] == 20).all()
    assert (workload.jobs["utility"] == POWER).all() and (workload.jobs["exponent"] == 0.5).all()
    assert workload.cluster["capacity"].tolist() == [100.0] * (1 if single else 2)


def test_jobs_share_the_heavy_demand_of_a_resource() -> None:
    """One amount of cpu and one of memory; which of them a job needs is as without sharing."""
    amounts = Stream(11, 2, 5)
    heavy = [1.0 + 4.0 * amounts.uniform() for _ in range(2)]
    own = generate(11, 2, source_of(50, heterogeneity=5.0)).jobs
    shared = generate(11, 2, source_of(50, heterogeneity=5.0, heavy="resource")).jobs
    assert_array_equal(shared["demand"], np.where(own["demand"] > 1.0, heavy, 1.0))
    assert {len(np.unique(column)) for column in shared["demand"].T} == {2}
    for name in set(own) - {"demand"}:
        assert_array_equal(shared[name], own[name], err_msg=name)


def test_the_last_slot_is_cut() -> None:
    """Half of the jobs are the first half of all."""
    half, whole = generate(3, 0, source_of(50)), generate(3, 0, source_of(100))
    for name, values in half.jobs.items():
        assert_array_equal(values, whole.jobs[name][:50])


def jobs_of(trace: Trace, **options: Any) -> Origin:
    return from_trace(trace, PartialValueParameters(trace="made", **options))


def trace_source(**changes: Any) -> Source:
    """Windows of ten jobs of a made trace."""
    rng = np.random.default_rng(0)
    made = Trace(
        "made",
        arrival=np.cumsum(rng.exponential(60, 45)),
        duration=rng.lognormal(5, 1.5, 45),
        cores=rng.integers(1, 9, 45) / 2,
        memory=rng.integers(1, 9, 45) * 1.0,
    )
    return source_of(10, trace=jobs_of(made), **changes)


def test_rare_arrivals_stay_within_the_last_slot() -> None:
    jobs = generate(0, 0, source_of(100, rate=1e-5, windows=1e7)).jobs
    assert jobs["arrival"][-1] > 1e6 and jobs["deadline"].max() <= LAST_SLOT


# Traces ---------------------------------------------------------------------------------------


def covered(own: Jobs) -> int:
    """Slots in which some job could be served."""
    slots = {t for a, d in zip(own.arrival, own.deadline, strict=True) for t in range(int(a), int(d) + 1)}
    return len(slots)


def small_trace(**changes: Any) -> Trace:
    arguments: dict[str, Any] = dict(entry(__file__, "small_trace"))
    arguments |= changes
    return Trace("made", **{n: np.array(v, dtype=float) for n, v in arguments.items()})


def test_tasks_of_a_trace_become_jobs() -> None:
    jobs = jobs_of(small_trace(), slot_seconds=300.0, slack=2.0, parallelism=20)
    assert not jobs.constants["whole"]
    source = source_of(3, trace=jobs, load=None)
    own = tables(generate(0, 0, source))
    assert own.arrival.tolist() == [1, 1, 2]  # 299 s later is the same slot, 300 s the next
    assert own.deadline.tolist() == [1, 4, 4]
    assert (own.parallelism == 20).all() and own.capacity.tolist() == [24, 96]


@given(
    duration=st.lists(st.floats(1e-3, 1e6), min_size=3, max_size=3),
    seconds=st.floats(1.0, 1e4),
    slack=st.floats(1.0, 10.0),
    parallelism=st.integers(1, 1000),
)
def test_every_job_of_a_trace_can_be_done_in_time(
    duration: list[float], seconds: float, slack: float, parallelism: int
) -> None:
    jobs = jobs_of(small_trace(duration=duration), slot_seconds=seconds, slack=slack, parallelism=parallelism)
    assert (jobs.tasks >= 1).all() and (jobs.tasks == np.floor(jobs.tasks)).all()
    assert (jobs.slots * parallelism >= jobs.tasks).all()
    work = jobs.tasks * jobs.demand[:, 0] * seconds
    true = np.array(duration) * [4, 1, 0.5]
    assert (work >= true * (1 - 1e-9)).all()
    assert (work <= true + np.array([4, 1, 0.5]) / parallelism * seconds * (1 + 1e-9)).all()


def test_the_load_sets_the_capacity() -> None:
    for wanted in (0.5, 1.5, 4.0, 40.0):
        source = trace_source(load=wanted)
        assert source.windows == 4 and source.resources == 2
        for episode in range(4):
            own = tables(generate(2, episode, source))
            work = own.tasks @ own.demand
            fair = work / (wanted * covered(own))
            assert own.capacity == pytest.approx(np.maximum(fair, own.demand.max(axis=0)))
            assert (own.share <= 1).all()


def test_a_resource_that_nobody_needs_has_room() -> None:
    made = small_trace(cores=[0, 0, 0])
    own = tables(generate(0, 0, source_of("all", trace=jobs_of(made))))
    assert own.capacity[0] == 1.0 and own.capacity[1] > 0


def test_what_traces_are_refused() -> None:
    jobs = jobs_of(small_trace())
    with pytest.raises(InvalidParameter, match="^jobs: a window of 4 is longer than the trace, which has 3"):
        source_of(4, trace=jobs)
    with pytest.raises(InvalidParameter, match="^load: 'none' takes the capacity of the trace's machines"):
        source_of(3, trace=jobs_of(small_trace(machine_cores=[], machine_memory=[])), load=None)
    with pytest.raises(InvalidParameter, match=r"^trace: a window of 3 jobs takes 3.33333e\+09 slots, and a"):
        source_of(3, trace=jobs_of(small_trace(arrival=[0, 1, 1e12])))


def parameters(**values: Any) -> PartialValueParameters:
    return PartialValueParameters(**({"view": "allocation"} | values))


def test_swf(tmp_path: Path) -> None:
    swf = str(swf_log(tmp_path))
    i = np.arange(30)
    given = parameters(trace=swf, jobs="all", slot_seconds=10.0, parallelism=4, slack=1.5, utility="log")
    own = tables(generate(0, 0, make_source(given)))
    assert_array_equal(own.arrival, 1 + 7 * i // 10)
    assert_array_equal(own.tasks, -(-4 * (5 + i % 30) // 10))
    assert_array_equal(own.deadline - own.arrival + 1, -(-3 * (5 + i % 30) // 20))
    assert_array_equal(own.demand[:, 0] * 4, 1 + i % 8)
    assert_array_equal(own.demand[:, 1] * 4, 1 + i % 8)  # 1 GiB per processor
    assert (own.parallelism == 4).all() and (own.utility == LOG).all()
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("cores,memory\n8,16\n8,32\n")
    machines = make_source(parameters(trace=swf, jobs=10, load=None, nodes=str(nodes)))
    assert generate(0, 0, machines).cluster["capacity"].tolist() == [16, 48]
    with pytest.raises(
        InvalidParameter, match="^nodes: has no effect with load 1.5, which sets the capacity"
    ):
        make_source(parameters(trace=swf, jobs=10, nodes=str(nodes)))


def test_swim(tmp_path: Path) -> None:
    """Jobs by their bytes: a task of one core and one slot per 1e9 bytes."""
    path = tmp_path / "jobs.tsv"
    sizes = [1, 0, 5 * 10**9, 45 * 10**9 + 1, 10**9]
    path.write_text("".join(f"job{i}\t{70 * i}\t70\t{n}\t0\t14347\n" for i, n in enumerate(sizes)))
    source = make_source(parameters(trace=str(path), jobs="all", slot_seconds=100.0, slack=2.5, load=1.5))
    own = tables(generate(0, 0, source))
    assert source.resources == 1 and own.demand.tolist() == [[1.0]] * 4
    assert own.tasks.tolist() == [1, 5, 46, 1]  # the job without input is left out
    assert own.arrival.tolist() == [1, 2, 3, 3]
    # 2.5 times 1, 1, 3, 1 slots
    assert own.deadline.tolist() == [3, 4, 10, 5]
    assert own.capacity.tolist() == [4.0]  # 53 / 15, whole
    with pytest.raises(InvalidParameter, match="^load: 'none' takes the capacity of the trace's machines"):
        make_source(parameters(trace=str(path), jobs="all", load=None))
    path.write_text("job0\t9\t9\t0\t0\t14347\n")
    with pytest.raises(InvalidWorkload, match="^swim: no job has a map task$"):
        make_source(parameters(trace=str(path), jobs="all"))


@real
def test_public_traces() -> None:
    assert DATA is not None
    pods = str(Path(DATA) / "openb_pod_list_default.csv")
    trace = read_trace(pods)
    assert isinstance(trace, Trace)
    own = tables(generate(0, 0, make_source(parameters(trace=pods, jobs="all"))))
    assert len(own.arrival) == len(trace.cores) > 8000
    work = own.tasks * own.demand[:, 0]
    assert (work * 300 >= trace.cores * trace.duration * (1 - 1e-9)).all()
    assert (own.share.max(axis=0) <= 1).all() and (own.deadline >= own.arrival).all()
    nodes = str(Path(DATA) / "openb_node_list_all_node.csv")
    machines = make_source(parameters(trace=pods, jobs=200, nodes=nodes, load=None))
    assert generate(0, 0, machines).cluster["capacity"][0] > 100_000
    jobs = str(Path(DATA) / "FB-2010_samples_24_times_1hr_0.tsv")
    own = tables(generate(0, 0, make_source(parameters(trace=jobs, jobs="all", slot_seconds=30.0))))
    assert len(own.arrival) == 24_024 and own.tasks.sum() == 1_102_281
