"""Workloads of GeoAssign and GeoFair: the schema, tables for kernels, the generator, traces."""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from schedgym.core.workload import Workload
from schedgym.errors import InvalidWorkload
from schedgym.problems.geo import problem
from schedgym.problems.geo.workload import (
    DURATIONS,
    LONGEST,
    PARETO_LEAST,
    PARETO_SHAPE,
    SINGLE,
    SIZE_MU,
    SIZE_SIGMA,
    Source,
    from_trace,
    generate,
    group_numbers,
    make_source,
    make_workload,
    rank_distribution,
    rebuild,
    tables,
)
from schedgym.traces import read_trace
from tests.geo.instances import rows_of
from tests.tables import entry
from tests.traces.logs import SWIM_ROWS, write

DATA = os.environ.get("SCHEDGYM_DATA")
real = pytest.mark.skipif(not DATA, reason="SCHEDGYM_DATA names no folder with the public traces")


# Schema ---------------------------------------------------------------------------------------

SOUND: dict[str, Any] = entry(__file__, "SOUND")


LEAST = PARETO_LEAST * 2.0  # s


def test_a_sound_workload() -> None:
    workload = make_workload(**SOUND)
    assert workload.tasks["sites"].tolist() == [[0, -1, -1], [2, 1, -1], [0, 1, 2]]
    assert workload.cluster["slots"].dtype == np.int64
    assert make_workload(**(SOUND | {"sites": workload.tasks["sites"]})) == workload
    assert DURATIONS == problem.DURATIONS
    with pytest.raises(InvalidWorkload, match=r"^tasks.sites\[2\]: task has no available site$"):
        make_workload(**(SOUND | {"sites": np.array([[0], [0], [-1]])}))


def test_groups_numbered_by_the_environment() -> None:
    windows = source_of(5, 4, 1, 2).lists["sites"]
    assert windows.tolist() == [[0, 1], [1, 2], [2, 3], [3, 0]]
    workload = make_workload([0, 0], [0, 0, 1], [1, 2, 3], [[3, 0], [1, 2], [3, 0]], [1] * 4)
    assert tables(workload).sites.tolist() == [[1, 2], [3, 0]]
    assert tables(workload).group.tolist() == [0, 1, 1]
    table = tables(workload, windows)
    assert_array_equal(table.sites, windows)
    assert table.group.tolist() == [1, 3, 3] and table.size["groups"] == 4
    spare = np.concatenate([windows, np.full((2, 2), -1)])
    assert tables(workload, spare).size["groups"] == 4 and rebuild(tables(workload, spare)) == workload
    assert table.duration.tolist() == [2, 1, 3] and table.task_index.tolist() == [1, 0, 2]
    assert group_numbers(workload, windows).tolist() == [3, 1, 3]
    assert group_numbers(workload, windows[::-1]).tolist() == [0, 2, 0]
    wide = np.pad(windows, ((0, 0), (0, 2)), constant_values=-1)
    assert group_numbers(workload, wide).tolist() == [3, 1, 3]
    for lists in ([[3], [1, 2], [3, 0]], [[0, 3], [1, 2], [3, 0]], [[3, 0, 1], [1, 2], [3, 0]]):
        other = make_workload([0, 0], [0, 0, 1], [1, 2, 3], lists, [1] * 4)
        assert group_numbers(other, windows) is None
        with pytest.raises(InvalidWorkload, match="none of the environment's groups"):
            tables(other, windows)


def test_lists_too_long_for_one_machine_word() -> None:
    rng = np.random.default_rng(0)
    lists = [rng.permutation(1000)[: rng.integers(1, 40)].tolist() for _ in range(30)]
    lists += [[*lists[0][:-1], (lists[0][-1] + 1) % 1000]] if len(set(lists[0])) > 1 else []
    picks = rng.integers(0, len(lists), 300)
    workload = make_workload([0], np.zeros(300), np.ones(300), [lists[x] for x in picks], np.ones(1000))
    table = tables(workload)
    rows = rows_of(workload)
    assert [tuple(s for s in row if s >= 0) for row in table.sites.tolist()] == sorted(set(rows))
    everything = np.full((len(lists), 40), -1)
    for k, row in enumerate(lists):
        everything[k, : len(row)] = row
    assert [tuple(lists[k]) for k in group_numbers(workload, everything)] == rows


# Generator ------------------------------------------------------------------------------------


def sizes(workload: Workload) -> np.ndarray:
    return np.bincount(workload.tasks["job"])


def total_work(workload: Workload) -> float:
    return float(workload.tasks["duration"].sum())


def source_of(
    jobs: int | str,
    sites: int,
    slots: int,
    choices: int = 2,
    trace: tuple[np.ndarray, np.ndarray] | None = None,
    **options: Any,
) -> Source:
    shape = {"jobs": jobs, "sites": sites, "slots": slots, "choices": choices}
    named = None if trace is None else "given here"
    return Source(problem.GeoParameters(**shape, trace=named, **options), trace)


def one_job(tasks: int, sites: int, **options: Any) -> Source:
    return source_of(1, sites, 1, trace=(np.zeros(1), np.array([tasks])), **options)


@pytest.mark.parametrize("choices", [1, 2, 5])
def test_available_sites_are_windows_from_the_associated_one(choices: int) -> None:
    w = generate(0, 0, source_of(200, 5, 2, choices))
    assert {tuple(row) for row in w.tasks["sites"].tolist()} == {
        tuple((s + a) % 5 for a in range(choices)) for s in range(5)
    }


@pytest.mark.parametrize("zipf", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("sites", [1, 3, 10])
def test_tasks_are_associated_with_probabilities_of_zipf(sites: int, zipf: float) -> None:
    n = 100_000
    w = generate(1, 0, one_job(n, sites, choices=1, zipf=zipf, durations="constant"))
    shares = np.bincount(w.tasks["sites"][:, 0], minlength=sites) / n
    weights = np.arange(1, sites + 1) ** -zipf
    expected = weights / weights.sum()
    assert_array_equal(np.abs(np.sort(shares)[::-1] - expected) < 5 * np.sqrt(expected / n) + 1e-12, True)


def test_the_first_site_of_a_job_is_any_with_equal_chance() -> None:
    n, sites = 20_000, 5
    trace = (np.arange(n, dtype=float), np.ones(n, dtype=int))
    w = generate(0, 0, source_of("all", sites, 1, zipf=50.0, trace=trace))
    shares = np.bincount(w.tasks["sites"][:, 0], minlength=sites) / n
    assert np.abs(shares - 1 / sites).max() < 5 * np.sqrt(0.2 * 0.8 / n)
    pairs = Counter(itertools.pairwise(w.tasks["sites"][:, 0].tolist()))
    assert len(pairs) == sites**2 and max(pairs.values()) < 1.25 * n / sites**2


@pytest.mark.parametrize("zipf", [0.0, 1.0, 2.5, 1e9])
@pytest.mark.parametrize("count", [1, 2, 7, 64, 1000])
def test_the_guide_leads_to_the_rank(count: int, zipf: float) -> None:
    levels, guide = rank_distribution(count, zipf)
    assert levels[-1] == 1.0 and (np.diff(levels) >= 0).all()
    parts = len(guide)
    drawn = np.random.default_rng(0).random(2000)
    edges = np.concatenate([np.arange(parts) / parts, levels[:-1][levels[:-1] < 1.0]])
    u = np.concatenate([drawn, edges, np.nextafter(edges[edges > 0], 0), [1 - 2**-53]])
    expected = np.searchsorted(levels, u, side="right")
    start = guide[(u * parts).astype(int)]
    assert (start <= expected).all()
    assert (expected - start)[: len(drawn)].mean() < 1.0


def test_numbers_of_tasks() -> None:
    n = 100_000
    drawn = sizes(generate(0, 0, source_of(n, 1, 1, 1, max_tasks=10**4, durations="constant")))
    rest = 1 - SINGLE

    def up_to(x: int) -> float:  # probability of at most x tasks
        z = (math.log(x) - SIZE_MU) / SIZE_SIGMA
        return SINGLE + rest * 0.5 * math.erfc(-z / math.sqrt(2))

    for x in (1, 2, 5, 20, 100, 1000):
        p = up_to(x)
        assert (drawn <= x).mean() == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / n) + 1e-12)
    assert drawn.max() == 10**4
    cut = sizes(generate(0, 0, source_of(n, 1, 1, 1, max_tasks=30, durations="constant")))
    assert_array_equal(cut, np.minimum(drawn, 30))
    assert (sizes(generate(0, 0, source_of(100, 1, 1, 1, max_tasks=1))) == 1).all()


def truncated_mean(cap: float) -> float:
    """Mean of min(X, cap), X Pareto."""
    a, x = PARETO_SHAPE, LEAST
    return x + x**a * (x ** (1 - a) - cap ** (1 - a)) / (a - 1)


@pytest.mark.parametrize("cap", [1.0, 10.0, 100.0])
def test_pareto_durations(cap: float) -> None:
    assert pytest.approx(0.4114, abs=5e-5) == LEAST
    assert LEAST * PARETO_SHAPE / (PARETO_SHAPE - 1) == pytest.approx(2.0)
    n = 400_000
    source = functools.partial(one_job, n, 3)
    capped = generate(2, 0, source(duration_cap=cap)).tasks["duration"]
    assert capped.min() >= LEAST and capped.max() == cap
    assert capped.mean() == pytest.approx(truncated_mean(cap), abs=5 * capped.std() / math.sqrt(n))
    free = generate(2, 0, source()).tasks["duration"]
    assert_array_equal(np.minimum(free, cap), capped)
    for p in (0.5, 0.9, 0.999):
        level = LEAST * (1 - p) ** (-1 / PARETO_SHAPE)
        assert (free <= level).mean() == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / n))
    assert free.max() < LONGEST


def test_other_durations() -> None:
    constant = generate(0, 0, source_of(50, 4, 2, durations="constant"))
    assert set(constant.tasks["duration"].tolist()) == {2.0}
    assert set(
        generate(0, 0, source_of(50, 4, 2, durations="constant", duration_cap=0.5)).tasks["duration"]
    ) == {0.5}
    w = generate(0, 0, source_of(2000, 4, 2, durations="per-job"))
    job, duration = w.tasks["job"], w.tasks["duration"]
    first = duration[np.searchsorted(job, np.arange(2000))]
    assert_array_equal(duration, first[job])
    assert np.median(first) == pytest.approx(LEAST * 2 ** (1 / PARETO_SHAPE), rel=0.05)
    assert len(set(first.tolist())) == 2000


@pytest.mark.parametrize("durations", DURATIONS)
def test_a_longer_mean_scales_every_duration(durations: str) -> None:
    short = generate(0, 0, source_of(50, 4, 2, durations=durations))
    long = generate(0, 0, source_of(50, 4, 2, durations=durations, mean_duration=1374.7))
    assert_allclose(long.tasks["duration"], short.tasks["duration"] * (1374.7 / 2.0), rtol=1e-12)
    assert_array_equal(long.tasks["sites"], short.tasks["sites"])


def test_the_google_preset_has_the_thesis_number_of_tasks() -> None:
    parameters = problem.GeoParameters.build(**problem.PROBLEM.presets["google"])
    counts = [len(generate(seed, 0, make_source(parameters)).tasks["job"]) for seed in range(20)]
    assert np.mean(counts) == pytest.approx(48_504, rel=0.02)


@pytest.mark.parametrize("utilization", [0.4, 1.0])
@pytest.mark.parametrize("trace", [False, True])
def test_arrivals_are_scaled_to_the_utilization(utilization: float, trace: bool) -> None:
    arrival = np.cumsum(np.random.default_rng(0).exponential(size=300))
    jobs = (arrival, np.arange(300) % 7 + 1) if trace else None
    for seed in range(5):
        w = generate(seed, 0, source_of(100, 6, 3, utilization=utilization, trace=jobs))
        span = w.jobs["arrival"][-1] - w.jobs["arrival"][0]
        assert total_work(w) / (18 * span) == pytest.approx(utilization, rel=1e-12)
        plain = generate(seed, 0, source_of(100, 6, 3, utilization=0.7, trace=jobs))
        assert np.allclose(w.jobs["arrival"] / span, plain.jobs["arrival"] / plain.jobs["arrival"][-1])
        assert w.tasks.keys() == plain.tasks.keys()
        assert all(np.array_equal(w.tasks[name], plain.tasks[name]) for name in w.tasks)


def test_arrivals_are_poisson() -> None:
    w = generate(0, 0, source_of(100_000, 1, 1, 1, max_tasks=1))
    gaps = np.diff(w.jobs["arrival"])
    assert w.jobs["arrival"][0] == 0 and (gaps > 0).all()
    gaps /= gaps.mean()
    assert (gaps > 1).mean() == pytest.approx(math.exp(-1), abs=0.01)


def test_without_a_span_arrivals_stay() -> None:
    assert generate(0, 0, source_of(1, 3, 1)).jobs["arrival"].tolist() == [0.0]
    trace = (np.full(4, 7.0), np.ones(4, dtype=int))
    assert generate(0, 0, source_of("all", 3, 1, trace=trace)).jobs["arrival"].tolist() == [0.0] * 4


def durations_by_job(w: Workload) -> list[list[float]]:
    job, duration = w.tasks["job"], w.tasks["duration"]
    return [sorted(duration[job == i].tolist()) for i in range(len(w.jobs["arrival"]))]


def sites_by_job(w: Workload) -> list[list[int]]:
    job, sites = w.tasks["job"], w.tasks["sites"][:, 0]
    return [sorted(sites[job == i].tolist()) for i in range(len(w.jobs["arrival"]))]


def test_streams_are_apart() -> None:
    make = functools.partial(source_of, 60, 6, 3)
    base = generate(5, 1, make())
    for name, value in (("zipf", 2.0), ("choices", 4)):
        other = generate(5, 1, make(**{name: value}))
        assert_array_equal(other.jobs["arrival"], base.jobs["arrival"])
        assert durations_by_job(other) == durations_by_job(base)
        assert not np.array_equal(other.tasks["sites"], base.tasks["sites"])
    assert sites_by_job(generate(5, 1, make(choices=4))) == sites_by_job(base)
    for value in ("constant", "per-job"):
        other = generate(5, 1, make(durations=value))
        assert_array_equal(other.tasks["sites"], base.tasks["sites"])
        assert not np.array_equal(other.tasks["duration"], base.tasks["duration"])
    more_sites = generate(5, 1, source_of(60, 9, 3))
    assert durations_by_job(more_sites) == durations_by_job(base)
    cut = generate(5, 1, make(max_tasks=40))
    for i, (mine, theirs) in enumerate(zip(durations_by_job(cut), durations_by_job(base), strict=True)):
        assert (mine == theirs) == (len(theirs) <= 40), i
        assert (sites_by_job(cut)[i] == sites_by_job(base)[i]) == (len(theirs) <= 40), i
    longer = generate(5, 1, source_of(90, 6, 3))
    assert durations_by_job(longer)[:60] == durations_by_job(base)
    assert sites_by_job(longer)[:60] == sites_by_job(base)
    assert np.allclose(
        longer.jobs["arrival"][:60] / longer.jobs["arrival"][59],
        base.jobs["arrival"] / base.jobs["arrival"][59],
    )


def test_a_task_keeps_its_duration_when_the_skew_changes() -> None:
    """The x-th task of a job has the x-th duration: with all tasks at one site in the order drawn."""
    spread = generate(0, 0, one_job(50, 4, zipf=0.0))
    packed = generate(0, 0, one_job(50, 4, zipf=1e9))
    assert len(set(packed.tasks["sites"][:, 0].tolist())) == 1
    order = packed.tasks["duration"].tolist()
    for site in range(4):
        own = spread.tasks["duration"][spread.tasks["sites"][:, 0] == site].tolist()
        places = [order.index(duration) for duration in own]
        assert places == sorted(places)


def test_jobs_of_an_episode_share_no_draws() -> None:
    w = generate(0, 0, source_of(3000, 2, 1, max_tasks=3))
    assert len(set(w.tasks["duration"].tolist())) == len(w.tasks["duration"])


# The draw into batch arrays -----------------------------------------------------------------------


def test_the_first_guess_holds_every_window_of_a_trace() -> None:
    counts = np.random.default_rng(0).integers(1, 40, 100)
    source = source_of(10, 6, 1, trace=(np.arange(100.0), counts))
    for episode in range(10):
        assert len(tables(generate(0, episode, source)).duration) <= source.sizes["task"]
    assert source.sizes["task"] == counts.reshape(10, 10).sum(axis=1).max()


# Traces -----------------------------------------------------------------------------------------


def test_sources_from_parameters(tmp_path: Path) -> None:
    path = tmp_path / "jobs.tsv"
    write(path, SWIM_ROWS)
    parameters = problem.GeoParameters(trace=str(path), jobs="all", sites=3, slots=2, zipf=0.5)
    source = make_source(parameters)
    assert source.jobs == 4 and source.windows == 1
    assert source.arrays.arrival.tolist() == [9, 18, 18, 25.5]
    assert source.arrays.tasks.tolist() == [1, 3, 4, 1]
    w = generate(0, 0, source)
    assert sizes(w).tolist() == [1, 3, 4, 1]
    assert np.allclose(w.jobs["arrival"] / w.jobs["arrival"][-1], [0, 9 / 16.5, 9 / 16.5, 1])


def test_a_trace_without_a_map_task_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.tsv"
    path.write_text(SWIM_ROWS[3] + "\n")
    with pytest.raises(InvalidWorkload, match="swim: no job has a map task"):
        from_trace(read_trace(path))


@real
def test_facebook_2010_is_the_thesis_s_workload() -> None:
    assert DATA is not None
    path = str(Path(DATA) / "FB-2010_samples_24_times_1hr_0.tsv")
    source = make_source(problem.GeoParameters(trace=path, jobs="all", sites=10, slots=20))
    assert source.jobs == 24_024 and int(source.arrays.tasks.sum()) == 1_102_281
    assert (source.arrays.tasks == 1).mean() == pytest.approx(SINGLE, abs=5e-4)
    logs = np.log(source.arrays.tasks[source.arrays.tasks > 1])
    assert (logs.mean(), logs.std()) == pytest.approx((SIZE_MU, SIZE_SIGMA), abs=5e-4)
    w = generate(0, 0, source)
    assert len(w.tasks["job"]) == 1_102_281
    assert_array_equal(sizes(w), source.arrays.tasks)
    span = w.jobs["arrival"][-1]
    assert total_work(w) / (200 * span) == pytest.approx(0.6, rel=1e-9)
    table = tables(w, source.lists["sites"])
    assert_array_equal(table.task_index, np.arange(1_102_281))
    assert len(table.duration) <= source.sizes["task"]
    windows = make_source(problem.GeoParameters(trace=path, jobs=200))
    assert windows.windows == 120
    assert len(generate(0, 3, windows).jobs["arrival"]) == 200
