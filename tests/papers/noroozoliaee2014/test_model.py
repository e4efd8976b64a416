"""The model of noroozoliaee2014: vectors of the specification, hand examples, identities, brute force."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path

import numpy as np
import pytest

from schedgym.documents import read_yaml
from schedgym.papers.noroozoliaee2014 import model
from schedgym.papers.noroozoliaee2014.instances import (
    clusters,
    draw,
    instances,
    random_schedule,
    read_instance,
    show_instance,
)
from schedgym.papers.noroozoliaee2014.model import Instance, Schedule, Task, feasible
from tests.queue_delay.instances import make_instance, random_instances

UNIT = [(1.0, 1.0)]


def simulate(tasks, servers, scheme, **options) -> Schedule:
    return model.simulate(make_instance(tasks, servers), scheme, **options)


def starts(tasks, servers, scheme, **options) -> list[float | None]:
    return list(simulate(tasks, servers, scheme, **options).start)


def run(instance: Instance, scheme: str, seed: int = 0) -> Schedule:
    return model.simulate(instance, scheme, choose=random.Random(seed).choice)


# Test vectors of the specification -----------------------------------------------------------


VECTORS = read_yaml(Path(__file__).with_name("vectors.yaml"))


def vector(name: str) -> Instance:
    """The instance of a vector."""
    tasks, servers = (
        [tuple(map(float, row)) for row in VECTORS[name].get(part, [[1, 1]])] for part in ("tasks", "servers")
    )
    return make_instance(tasks, servers)


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name: str) -> None:
    for part in ("start", "server"):
        for scheme, expected in VECTORS[name].get(part, {}).items():
            assert list(getattr(model.simulate(vector(name), scheme), part)) == expected, scheme


def test_a_front_blocks_whatever_measures_sizes() -> None:
    schemes = {f"ffd-{size}{end}" for size in model.SIZES for end in ("", "-blocking")}
    assert schemes == VECTORS["blocking"]["start"].keys()


def test_v6_by_hand() -> None:
    instance = vector("v6")
    outcome = model.simulate(instance, "ff")
    assert outcome.end == 13.0
    assert model.delays(instance, outcome) == [0.0, 0.0, 9.0, 11.0]
    measured = model.metrics(instance, outcome)
    assert measured["makespan"] == 16.0
    assert measured["beta"] == 12.0 / 16.0  # from 1 until the virtual start at 13
    assert measured["mean_queued"] == 20.0 / 16.0
    assert measured["mean_running"] == 20.0 / 16.0
    used_cpu = 4.0 * 0.9 + 10.0 * 0.2 + 3.0 * 0.3
    assert measured["utilization_cpu"] == pytest.approx(used_cpu / (1.5 * 16.0))
    assert measured["utilization_cpu_to_last_arrival"] == pytest.approx(1.1 / 1.5)
    assert measured["utilization_cpu_backlog"] == pytest.approx((used_cpu - 1.1) / (1.5 * 12.0))
    assert measured["stranded"] == 1.0


# Hand examples for what the vectors leave open ---------------------------------------------


@pytest.mark.parametrize("scheme", ["bfd-nb", "bf", "bf-all"])
def test_other_norms_measure_what_is_left(scheme: str) -> None:
    """What is left is (.8, .1) or (.6, .55)."""
    tasks, servers = [(0.0, 1.0, 0.2, 0.2)], [(1.0, 0.3), (0.8, 0.75)]
    assert simulate(tasks, servers, scheme).server == (0,)
    assert simulate(tasks, servers, scheme, norm=max).server == (1,)


def test_weights_are_those_of_the_sums() -> None:
    """What is left is (.8, .1) or (.3, .3)."""
    tasks, servers = [(0.0, 1.0, 0.2, 0.2)], [(1.0, 0.3), (0.5, 0.5)]
    assert simulate(tasks, servers, "bfd-sum", weights=(0.1, 1.0)).server == (0,)


def test_avgsum_weighs_by_what_was_submitted_so_far() -> None:
    servers = [(1.0, 0.3), (0.5, 0.5)]
    tasks = [(0.0, 1.0, 0.0, 0.3), (0.0, 1.0, 0.0, 0.3), (5.0, 1.0, 0.2, 0.2)]
    assert simulate(tasks, servers, "bfd-avgsum").server[2] == 0
    tasks.append((6.0, 1.0, 0.2, 0.0))  # of the future, must not matter
    assert simulate(tasks, servers, "bfd-avgsum").server[2] == 0


def test_random_fit_asks_for_every_placement_with_the_fitting_servers() -> None:
    asked: list[list[int]] = []

    def last(fitting: list[int]) -> int:
        asked.append(fitting)
        return fitting[-1]

    tasks = [(0.0, 5.0, 0.6, 0.6), (0.0, 9.0, 0.6, 0.6), (1.0, 1.0, 1.0, 1.0)]
    outcome = simulate(tasks, UNIT * 2, "rf-all", choose=last)
    assert asked == [[0, 1], [0], [1]]
    assert list(outcome.server) == [1, 0, 1]
    asked.clear()
    outcome = simulate(tasks, UNIT * 2, "rf", choose=last)
    assert asked == [[0, 1], [0]]
    assert list(outcome.server) == [1, 0, 1]


def test_a_full_server_takes_what_only_rounding_keeps_out() -> None:
    """0.3 - (0.1 + 0.1) < 0.1 in floating point; three run at once, and k_high says so."""
    instance = make_instance([(0.0, 1.0, 0.1, 0.1)] * 3, [(0.3, 0.3)])
    assert model.simulate(instance, "ff").start == (0, 0, 0)
    assert model.at_once(instance, model.least_demands(instance)) == 3
    assert model.workload_bound(instance) == pytest.approx(0.0)


# Properties on random instances --------------------------------------------------------------


def test_random_instances_are_as_promised() -> None:
    ties = 0
    for tasks, servers in random_instances(300, seed=1):
        assert 3 <= len(tasks) <= 14
        assert 1 <= len(servers) <= 4
        arrivals = [task.arrival for task in tasks]
        assert arrivals == sorted(arrivals)
        assert all(task.execution > 0.0 and task.cpu + task.memory > 0.0 for task in tasks)
        ties += len(set(arrivals)) < len(arrivals)
    assert ties > 150


# Bounds --------------------------------------------------------------------------------------


def test_lower_bound_by_hand() -> None:
    batch = make_instance([(7.0, execution, 1.0, 1.0) for execution in (3.0, 1.0, 2.0)], UNIT)
    assert model.batch_bound(batch) == pytest.approx(4.0 / 3.0)
    assert model.pooled_bound(batch, 0) == pytest.approx(4.0 / 3.0)
    assert model.workload_bound(batch) == pytest.approx(4.0 / 3.0)
    # A volume of 1 interrupts one of 4 after 1 s: mean busy times 2.9 and 1.5.
    online = make_instance([(0.0, 4.0, 1.0, 0.0), (1.0, 1.0, 1.0, 0.0)], UNIT)
    busy = model.mean_busy_times([0.0, 1.0], [4.0, 1.0], 1.0)
    assert busy == pytest.approx([(0.5 + 3.0 * 3.5) / 4.0, 1.5])
    assert model.pooled_bound(online, 0) == pytest.approx((2.75 + 1.5) / 2 - 1.25 - 0.5)
    assert model.workload_bound(online) == pytest.approx(0.375)


def test_bounds_without_demand() -> None:
    instance = make_instance([(0.0, 1.0, 0.0, 0.0), (0.0, 2.0, 0.0, 0.0)], UNIT)
    found = model.measure(instance, model.simulate(instance, "bf-exec"))
    assert model.bound(instance, found, model.LOWER) == -math.inf
    assert model.bound(instance, found, model.PRINTED_UPPER) == -math.inf
    assert model.bound(instance, found, model.UPPER) == 1.5
    assert model.workload_bound(instance) == 0.0


def drawn(count: int, seed: int = 3, **sizes: int):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield draw(rng, **sizes)


def test_numbers_of_tasks_by_counting_them_in_every_unit_of_time() -> None:
    """In exact numbers; the pieces of what :func:`model.measure` sums over the intervals between events."""
    for instance in drawn(150):
        for name in ("bf-exec", "fcfs"):
            schedule = model.simulate(instance, name)
            spans = [
                (task.arrival, start, start + task.execution)
                for task, start in zip(instance.tasks, schedule.start, strict=True)
            ]
            times = range(spans[0][0], max(end for _, _, end in spans))
            queued = [sum(arrival <= t < start for arrival, start, _ in spans) for t in times]
            running = [sum(start <= t < end for _, start, end in spans) for t in times]
            found = model.measure(instance, schedule)
            assert found.queued * len(times) == sum(queued) and found.running * len(times) == sum(running)
            assert found.beta * len(times) == sum(map(bool, queued))
            assert found.gap * len(spans) == len(times) and found.most == max(running)
            waits = [there for there, waiting in zip(running, queued, strict=True) if waiting]
            assert found.least == min(waits, default=None)


def test_the_optimum_is_that_of_all_starts_on_all_servers() -> None:
    improved = 0
    for instance in drawn(60, tasks=3, servers=2, longest=3):
        best, schedule = model.optimum(instance)
        assert feasible(instance, schedule) and sum(model.delays(instance, schedule)) == best
        late = sum(task.execution for task in instance.tasks)
        least = math.inf
        for waits in itertools.product(range(late), repeat=len(instance.tasks)):
            if sum(waits) < least:
                start = tuple(task.arrival + w for task, w in zip(instance.tasks, waits, strict=True))
                for server in itertools.product(range(len(instance.servers)), repeat=len(start)):
                    if feasible(instance, Schedule(start, server)):
                        least = sum(waits)
                        break
        assert best == least
        improved += best < sum(model.delays(instance, model.simulate(instance, "bf-exec")))
        assert model.workload_bound(instance) <= best
    assert improved > 0


# What claims draw and show -------------------------------------------------------------------


def test_feasible_refuses() -> None:
    instance = Instance((Task(0, 2, 1, 1), Task(1, 1, 2, 1)), ((2, 2), (1, 2)))
    assert feasible(instance, Schedule((0, 2), (0, 0)))
    assert feasible(instance, Schedule((0, 1), (1, 0)))
    for start, server in (
        ((0, 1), (0, 0)),
        ((0, 0), (1, 0)),
        ((0, 1), (1, 1)),
        ((0, None), (1, 0)),
        ((0, 1), (1, 2)),
    ):
        assert not feasible(instance, Schedule(start, server))


def test_random_schedules_are_feasible_and_idle() -> None:
    rng = np.random.default_rng(0)
    late = 0
    for instance in drawn(100):
        schedule = random_schedule(rng, instance)
        assert feasible(instance, schedule)
        late += model.measure(instance, schedule).delay > 0
    assert late > 50


def test_instances_are_shown_and_given() -> None:
    for instance in itertools.chain(drawn(50), instances(2, 2, 1, 2, 2)):
        shown = show_instance(instance)
        back = read_instance(shown)
        assert show_instance(back) == shown and instance.unit % back.unit == 0
        factor = instance.unit // back.unit
        assert instance.tasks == tuple(
            Task(task.arrival, task.execution, *(factor * own for own in task.demand)) for task in back.tasks
        )
        assert instance.servers == tuple((c * factor, m * factor) for c, m in back.servers)
    assert len(clusters(2, 2)) == 9 and clusters(1, 3) == [((3, 3),)]
