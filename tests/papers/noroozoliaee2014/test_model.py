"""Checks of the QueueDelay oracle itself: test vectors, hand examples, identities, bounds."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

import numpy as np
import pytest

from tests.long import long
from tests.queue_delay import oracle

Task = tuple[float, float, float, float]
Server = tuple[float, float]
UNIT: list[Server] = [(1.0, 1.0)]

FIXED = [name for name in oracle.SCHEMES if name not in oracle.RANDOM_SCHEMES]
RUNS = [
    *((name, False) for name in oracle.SCHEMES),
    *((name, True) for name in oracle.BLOCKING_SCHEMES),
]
# On completions these offer the released server to every waiting task.
SCANNING = [name for name in oracle.SCHEMES if name.startswith(("ffd", "bfd"))] + [
    "bf-exec",
    "dot-exec",
]


def starts(tasks: list[Task], servers: list[Server], scheme: str, **options: object) -> list:
    return oracle.simulate(tasks, servers, scheme, **options).start  # type: ignore[arg-type]


def run(
    tasks: list[Task], servers: list[Server], scheme: str, blocking: bool = False, seed: int = 0
) -> oracle.Outcome:
    choose = random.Random(seed).choice if scheme in oracle.RANDOM_SCHEMES else None
    return oracle.simulate(tasks, servers, scheme, blocking=blocking, choose_random=choose)


def instances(count: int, seed: int) -> Iterator[tuple[list[Task], list[Server]]]:
    """Three in four adversarial, the others without ties."""
    rng = random.Random(seed)
    for n in range(count):
        yield oracle.random_instance(rng, adversarial=n % 4 != 3)


# Test vectors of the specification -----------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "server"),
    [("bf", 1), ("bf-exec", 1), ("bfd-nb", 1), ("bfd-dp", 1)]
    + [("wf", 0), ("wf-all", 0), ("ffd-dp", 1), ("dot-exec", 1), ("ff", 0)],
)
def test_v1_server_choice(scheme: str, server: int) -> None:
    """The first two tasks leave (.35, .60) and (.70, .10)."""
    tasks = [(0.0, 9.0, 0.65, 0.4), (0.0, 9.0, 0.3, 0.9), (1.0, 1.0, 0.3, 0.1)]
    outcome = oracle.simulate(tasks, UNIT * 2, scheme)
    assert outcome.server == [0, 1, server]


def test_v2() -> None:
    tasks = [
        (0.0, 100.0, 0.5, 0.5),
        (0.0, 10.0, 0.5, 0.5),
        (1.0, 1.0, 0.6, 0.2),
        (2.0, 2.0, 0.2, 0.6),
        (3.0, 3.0, 0.3, 0.3),
        (4.0, 4.0, 0.7, 0.7),
        (5.0, 5.0, 0.3, 0.1),
    ]
    assert starts(tasks, UNIT, "bf-exec") == [0, 0, 100, 100, 10, 102, 13]


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [("bf-exec", [0, 10, 2, 5]), ("ff", [0, 10, 2, 10]), ("fcfs", [0, 10, 20, 20])],
)
def test_v4(scheme: str, expected: list[float]) -> None:
    tasks = [
        (0.0, 10.0, 0.6, 0.6),
        (1.0, 10.0, 0.8, 0.8),
        (2.0, 3.0, 0.3, 0.3),
        (3.0, 3.0, 0.2, 0.1),
    ]
    assert starts(tasks, UNIT, scheme) == expected


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("ffd-nb", [0, 0, 5, 7, 11]),
        ("ffd-dp", [0, 0, 9, 5, 11]),
        ("bf-exec", [0, 0, 6, 8, 5]),
    ],
)
def test_v5(scheme: str, expected: list[float]) -> None:
    tasks = [
        (0.0, 50.0, 0.0, 0.6),
        (0.0, 5.0, 1.0, 0.4),
        (1.0, 2.0, 0.5, 0.4),
        (2.0, 4.0, 0.61, 0.15),
        (3.0, 1.0, 0.4, 0.2),
    ]
    assert starts(tasks, UNIT, scheme) == expected


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [("ff", [0, 0, 10, None]), ("ff-all", [0, 0, 10, 10]), ("bf-exec", [0, 0, 10, 4])],
)
def test_v6(scheme: str, expected: list[float | None]) -> None:
    tasks = [
        (0.0, 4.0, 0.9, 0.2),
        (0.0, 10.0, 0.2, 0.9),
        (1.0, 3.0, 0.3, 0.9),
        (2.0, 3.0, 0.9, 0.3),
    ]
    servers = [(1.0, 0.5), (0.5, 1.0)]
    outcome = oracle.simulate(tasks, servers, scheme)
    assert outcome.start == expected
    if scheme != "ff":
        assert outcome.stranded == []
        return
    assert outcome.stranded == [3]
    assert outcome.server == [0, 1, 1, -1]
    assert outcome.end_of_events == 13.0
    assert oracle.delays(tasks, outcome) == [0.0, 0.0, 9.0, 11.0]
    measured = oracle.metrics(tasks, servers, outcome)
    assert measured["makespan"] == 16.0
    assert measured["beta"] == 12.0 / 16.0  # from 1 until the virtual start at 13
    assert measured["mean_queued"] == 20.0 / 16.0
    assert measured["mean_running"] == 20.0 / 16.0
    used_cpu = 4.0 * 0.9 + 10.0 * 0.2 + 3.0 * 0.3
    assert measured["utilization_cpu"] == pytest.approx(used_cpu / (1.5 * 16.0))
    assert measured["utilization_cpu_to_last_arrival"] == pytest.approx(1.1 / 1.5)
    assert measured["utilization_cpu_backlog"] == pytest.approx((used_cpu - 1.1) / (1.5 * 12.0))
    assert measured["stranded"] == 1.0


def test_v7() -> None:
    tasks = [
        (0.0, 5.0, 1.0, 1.0),
        (1.0, 3.0, 0.5, 0.5),
        (5.0, 1.0, 0.5, 0.5),
        (5.0, 1.0, 0.5, 0.5),
    ]
    assert starts(tasks, UNIT, "bf-exec") == [0, 5, 5, 6]


# Hand examples for what the vectors leave open ---------------------------------------------


def test_completion_epochs_go_by_server_index() -> None:
    tasks = [(0.0, 5.0, 1.0, 1.0), (0.0, 5.0, 1.0, 1.0)] + [
        (1.0, execution, 0.5, 0.5) for execution in (2.0, 1.0, 3.0)
    ]
    outcome = oracle.simulate(tasks, UNIT * 2, "bf-exec")
    assert outcome.start == [0, 0, 5, 5, 5]
    assert outcome.server == [0, 1, 0, 0, 1]


def test_all_completions_are_released_before_the_first_epoch() -> None:
    tasks = [(0.0, 5.0, 0.5, 1.0), (0.0, 5.0, 1.0, 0.5), (1.0, 1.0, 1.0, 0.1), (1.0, 1.0, 0.5, 1.0)]
    outcome = oracle.simulate(tasks, [(0.5, 1.0), (1.0, 0.5)], "fcfs")
    assert outcome.start == [0, 0, 5, 5]
    assert outcome.server == [0, 1, 1, 0]


def test_absorbed_execution_time_completes_in_a_new_round() -> None:
    """1e16 + 0.5 == 1e16: the later tasks of the instant arrive before that completion."""
    at = 1e16
    tasks = [(at, 0.5, 1.0, 1.0), (at, 8.0, 1.0, 1.0), (at, 0.5, 1.0, 1.0)]
    assert starts(tasks, UNIT, "bf-exec") == [at, at, at]
    assert starts(tasks, UNIT, "ff") == [at, at, at + 8.0]
    tasks[2] = (at, 4.0, 1.0, 1.0)
    assert starts(tasks, UNIT, "bf-exec") == [at, at + 4.0, at]


def test_blocking() -> None:
    tasks = [
        (0.0, 10.0, 0.5, 0.5),
        (1.0, 5.0, 0.6, 0.6),
        (2.0, 3.0, 0.3, 0.3),
        (3.0, 3.0, 0.1, 0.1),
    ]
    for scheme in oracle.BLOCKING_SCHEMES:
        assert starts(tasks, UNIT, scheme) == [0, 10, 2, 3]
        assert starts(tasks, UNIT, scheme, blocking=True) == [0, 10, 10, 10]


def test_blocking_head_is_the_largest_and_goes_anywhere() -> None:
    tasks = [
        (0.0, 4.0, 0.9, 0.9),
        (0.0, 6.0, 0.9, 0.9),
        (1.0, 1.0, 0.3, 0.3),
        (2.0, 5.0, 0.8, 0.8),
        (4.0, 1.0, 0.9, 0.9),
    ]
    outcome = oracle.simulate(tasks, UNIT * 2, "ffd-nb", blocking=True)
    assert outcome.start == [0, 0, 7, 4, 6]
    assert outcome.server == [0, 1, 1, 0, 1]


def test_a_head_by_dot_products_is_the_largest_on_any_server() -> None:
    """At 3 the larger dot product is that of task 2 on server 0 (.285), although it does not fit there."""
    tasks = [
        (0.0, 10.0, 0.9, 0.1),
        (1.0, 5.0, 0.2, 0.95),
        (2.0, 3.0, 0.15, 0.3),
        (3.0, 3.0, 0.05, 0.2),
    ]
    outcome = oracle.simulate(tasks, UNIT * 2, "ffd-dp", blocking=True)
    assert outcome.start == [0, 1, 6, 6]
    assert outcome.server == [0, 1, 1, 0]  # at 6 task 3 has .185 on server 0 and .1825 on server 1
    assert starts(tasks, UNIT * 2, "ffd-dp") == [0, 1, 6, 3]


@pytest.mark.parametrize("scheme", ["bfd-nb", "bf", "bf-all"])
def test_other_norms_measure_what_is_left(scheme: str) -> None:
    """What is left is (.8, .1) or (.6, .55)."""
    tasks, servers = [(0.0, 1.0, 0.2, 0.2)], [(1.0, 0.3), (0.8, 0.75)]
    assert oracle.simulate(tasks, servers, scheme).server == [0]
    assert oracle.simulate(tasks, servers, scheme, norm=max).server == [1]


def test_bfd_measures_what_is_left_in_its_own_metric() -> None:
    """What is left is (.8, .1) or (.3, .3)."""
    tasks = [(0.0, 1.0, 0.2, 0.2)]
    servers = [(1.0, 0.3), (0.5, 0.5)]
    chosen = {name: oracle.simulate(tasks, servers, name).server[0] for name in FIXED}
    assert chosen["bfd-product"] == 0
    assert chosen["bfd-sum"] == chosen["bfd-avgsum"] == 1
    assert chosen["bfd-nb"] == chosen["bfd-dp"] == chosen["bf"] == chosen["bf-exec"] == 1
    assert oracle.simulate(tasks, servers, "bfd-sum", weights=(0.1, 1.0)).server == [0]


def test_avgsum_weighs_by_what_was_submitted_so_far() -> None:
    servers = [(1.0, 0.3), (0.5, 0.5)]
    tasks = [(0.0, 1.0, 0.0, 0.3), (0.0, 1.0, 0.0, 0.3), (5.0, 1.0, 0.2, 0.2)]
    assert oracle.simulate(tasks, servers, "bfd-avgsum").server[2] == 0
    tasks.append((6.0, 1.0, 0.2, 0.0))  # of the future, must not matter
    assert oracle.simulate(tasks, servers, "bfd-avgsum").server[2] == 0


def test_avgsum_orders_the_scan_by_the_means_of_the_decision() -> None:
    tasks = [
        (0.0, 10.0, 1.0, 1.0),
        (1.0, 5.0, 0.6, 0.5),
        (2.0, 5.0, 0.5, 0.58),
        (3.0, 1.0, 0.0, 1.0),
    ]
    assert starts(tasks, UNIT, "ffd-avgsum") == [0, 16, 11, 10]
    assert starts(tasks, UNIT, "ffd-sum") == [0, 10, 15, 20]


def test_random_fit_asks_for_every_placement_with_the_fitting_servers() -> None:
    asked: list[list[int]] = []

    def last(fitting: list[int]) -> int:
        asked.append(fitting)
        return fitting[-1]

    tasks = [(0.0, 5.0, 0.6, 0.6), (0.0, 9.0, 0.6, 0.6), (1.0, 1.0, 1.0, 1.0)]
    outcome = oracle.simulate(tasks, UNIT * 2, "rf-all", choose_random=last)
    assert asked == [[0, 1], [0], [1]]
    assert outcome.server == [1, 0, 1]
    asked.clear()
    outcome = oracle.simulate(tasks, UNIT * 2, "rf", choose_random=last)
    assert asked == [[0, 1], [0]]
    assert outcome.server == [1, 0, 1]


def test_bad_input() -> None:
    tasks = [(0.0, 1.0, 0.5, 0.5)]
    for scheme in oracle.SCHEMES:
        if scheme not in oracle.BLOCKING_SCHEMES:
            with pytest.raises(ValueError):
                oracle.simulate(tasks, UNIT, scheme, blocking=True, choose_random=lambda fitting: fitting[0])
        if scheme not in oracle.NORM_SCHEMES:
            with pytest.raises(ValueError):
                oracle.simulate(tasks, UNIT, scheme, norm=max, choose_random=lambda fitting: fitting[0])
    for scheme in (*oracle.RANDOM_SCHEMES, "best"):
        with pytest.raises(ValueError):
            oracle.simulate(tasks, UNIT, scheme)
    for bad in ([(0.0, 1.0, 1.1, 0.5)], [(0.0, 0.0, 0.5, 0.5)], [(1.0, 1.0, 0.5, 0.5), *tasks]):
        with pytest.raises(ValueError):
            oracle.simulate(bad, UNIT, "ff")


def test_a_full_server_takes_what_only_rounding_keeps_out() -> None:
    """0.3 - (0.1 + 0.1) < 0.1 in floating point; three run at once, and k_high says so."""
    tasks = [(0.0, 1.0, 0.1, 0.1)] * 3
    assert starts(tasks, [(0.3, 0.3)], "ff") == [0, 0, 0]
    assert oracle.k_high(tasks, [(0.3, 0.3)]) == 3.0
    assert oracle.lower_bound(tasks, [(0.3, 0.3)]) == pytest.approx(0.0)


# Properties on random instances --------------------------------------------------------------


def test_random_instances_are_as_promised() -> None:
    ties = 0
    for tasks, servers in instances(300, seed=1):
        assert 3 <= len(tasks) <= 14
        assert 1 <= len(servers) <= 4
        arrivals = [task[0] for task in tasks]
        assert arrivals == sorted(arrivals)
        assert all(task[1] > 0.0 and task[2] + task[3] > 0.0 for task in tasks)
        ties += len(set(arrivals)) < len(arrivals)
    assert ties > 150


@pytest.mark.parametrize(("scheme", "blocking"), RUNS)
def test_schedules_are_feasible_and_do_not_idle(scheme: str, blocking: bool) -> None:
    for tasks, servers in instances(100, seed=2):
        outcome = run(tasks, servers, scheme, blocking)
        assert all(
            start is None or start >= task[0] for start, task in zip(outcome.start, tasks, strict=True)
        )
        assert outcome.stranded == [i for i, start in enumerate(outcome.start) if start is None]
        assert outcome.stranded == [i for i, j in enumerate(outcome.server) if j < 0]
        if scheme not in oracle.LITERAL_SCHEMES:
            assert not outcome.stranded
        finish = [
            math.inf if start is None else start + task[1]
            for start, task in zip(outcome.start, tasks, strict=True)
        ]
        known = [start for start in outcome.start if start is not None]
        events = sorted({task[0] for task in tasks} | set(known) | set(finish) - {math.inf})
        assert events[-1] == outcome.end_of_events
        for now in events:  # the state just after each instant
            room = []
            for j, (cpu, memory) in enumerate(servers):
                on_j = [
                    task
                    for i, task in enumerate(tasks)
                    if outcome.server[i] == j and outcome.start[i] <= now < finish[i]
                ]
                room.append((cpu - sum(t[2] for t in on_j), memory - sum(t[3] for t in on_j)))
            assert all(min(left) >= -1.1e-9 for left in room)
            fits = [
                any(t[2] <= cpu + 0.9e-9 and t[3] <= memory + 0.9e-9 for cpu, memory in room)
                for i, t in enumerate(tasks)
                if t[0] <= now and (outcome.start[i] is None or outcome.start[i] > now)
            ]
            if scheme in SCANNING and not blocking:
                assert not any(fits)
            elif scheme not in oracle.LITERAL_SCHEMES:
                assert not fits or not all(fits)


def test_fcfs_starts_in_submission_order() -> None:
    for tasks, servers in instances(200, seed=3):
        begun = starts(tasks, servers, "fcfs")
        assert begun == sorted(begun)


def test_one_server_makes_literal_and_repaired_schemes_agree() -> None:
    for tasks, servers in instances(300, seed=4):
        alone = servers[:1]
        fitting = [t for t in tasks if t[2] <= alone[0][0] and t[3] <= alone[0][1]]
        if not fitting:
            continue
        first = run(fitting, alone, "ff")
        for scheme in (*oracle.LITERAL_SCHEMES, *oracle.REPAIRED_SCHEMES):
            assert run(fitting, alone, scheme) == first
        assert run(fitting, alone, "bf-exec") == run(fitting, alone, "dot-exec")
        for size in oracle.SIZES:
            assert run(fitting, alone, f"ffd-{size}") == run(fitting, alone, f"bfd-{size}")


def test_literal_schemes_strand_tasks() -> None:
    stranding = [
        any(run(tasks, servers, scheme).stranded for scheme in oracle.LITERAL_SCHEMES)
        for tasks, servers in instances(300, seed=5)
        if len(servers) > 1
    ]
    assert sum(stranding) > 10
    assert not all(stranding)


@pytest.mark.parametrize(("scheme", "blocking"), RUNS)
def test_metrics_satisfy_the_identities(scheme: str, blocking: bool) -> None:
    for tasks, servers in instances(100, seed=6):
        outcome = run(tasks, servers, scheme, blocking)
        measured = oracle.metrics(tasks, servers, outcome)
        waits = oracle.delays(tasks, outcome)
        assert min(waits) >= 0.0
        assert measured["mean_delay"] == pytest.approx(np.mean(waits))
        assert measured["median_delay"] == pytest.approx(np.median(waits))
        assert measured["p95_delay"] == pytest.approx(np.percentile(waits, 95))
        assert measured["max_delay"] == max(waits)
        rate = len(tasks) / measured["makespan"]
        execution = sum(task[1] for task in tasks) / len(tasks)
        assert measured["mean_queued"] == pytest.approx(rate * measured["mean_delay"])
        assert measured["mean_running"] == pytest.approx(rate * execution)
        served = [task for task, j in zip(tasks, outcome.server, strict=True) if j >= 0]
        for r, name in enumerate(("cpu", "memory")):
            work = sum(task[1] * task[2 + r] for task in served)
            capacity = sum(server[r] for server in servers)
            assert measured[f"utilization_{name}"] == pytest.approx(work / (capacity * measured["makespan"]))
            for window in ("", "_to_last_arrival", "_backlog"):
                assert 0.0 <= measured[f"utilization_{name}{window}"] <= 1.0 + 1e-7
        assert 0.0 <= measured["beta"] <= 1.0
        assert (measured["beta"] > 0.0) == (measured["mean_delay"] > 0.0)
        if measured["beta"] == 0.0:
            assert measured["utilization_cpu_backlog"] == 0.0
        if tasks[0][0] == tasks[-1][0]:
            assert measured["utilization_cpu_to_last_arrival"] == 0.0
        if not outcome.stranded:
            assert measured["makespan"] == pytest.approx(outcome.end_of_events - tasks[0][0])


# Bounds --------------------------------------------------------------------------------------


def test_lower_bound_by_hand() -> None:
    batch = [(7.0, execution, 1.0, 1.0) for execution in (3.0, 1.0, 2.0)]
    assert oracle.batch_bound(batch, UNIT) == pytest.approx(4.0 / 3.0)
    assert oracle.pooled_bound(batch, UNIT, 0) == pytest.approx(4.0 / 3.0)
    assert oracle.lower_bound(batch, UNIT) == pytest.approx(4.0 / 3.0)
    # A volume of 1 interrupts one of 4 after 1 s: mean busy times 2.9 and 1.5.
    online = [(0.0, 4.0, 1.0, 0.0), (1.0, 1.0, 1.0, 0.0)]
    busy = oracle.mean_busy_times([0.0, 1.0], [4.0, 1.0], 1.0)
    assert busy == pytest.approx([(0.5 + 3.0 * 3.5) / 4.0, 1.5])
    assert oracle.pooled_bound(online, UNIT, 0) == pytest.approx((2.75 + 1.5) / 2 - 1.25 - 0.5)
    assert oracle.lower_bound(online, UNIT) == pytest.approx(0.375)


def test_lower_bound_is_below_every_scheme() -> None:
    positive = 0
    for tasks, servers in instances(300, seed=7):
        bound = oracle.lower_bound(tasks, servers)
        positive += bound > 1e-6
        best = math.inf
        for scheme, blocking in RUNS:
            outcome = run(tasks, servers, scheme, blocking)
            waits = oracle.delays(tasks, outcome)
            best = min(best, sum(waits) / len(waits))
        assert bound <= best + 1e-6
    assert positive > 100


@long
def test_corrected_theorems_hold_and_printed_ones_fail() -> None:
    failed = {"printed_upper": 0, "printed_lower": 0}
    failed_response = dict(failed)
    for tasks, servers in instances(300, seed=8):
        for scheme, blocking in RUNS:
            outcome = run(tasks, servers, scheme, blocking)
            delay = oracle.metrics(tasks, servers, outcome)["mean_delay"]
            bounds = oracle.theorem_bounds(tasks, servers, outcome)
            assert delay >= bounds["corrected_lower"] - 1e-6
            assert delay <= bounds["corrected_upper"] + 1e-6
            again = oracle.theorem_bounds(tasks, servers, outcome, printed_mu="response")
            for counts, printed in ((failed, bounds), (failed_response, again)):
                counts["printed_upper"] += delay > printed["printed_upper"] + 1e-6
                counts["printed_lower"] += delay < printed["printed_lower"] - 1e-6
    runs = 300 * len(RUNS)
    assert failed["printed_upper"] > runs / 2
    assert failed["printed_lower"] > 0
    assert failed_response["printed_upper"] > runs / 10
    assert failed_response["printed_lower"] > 0


def test_bounds_without_demand() -> None:
    tasks = [(0.0, 1.0, 0.0, 0.0), (0.0, 2.0, 0.0, 0.0)]
    outcome = oracle.simulate(tasks, UNIT, "bf-exec")
    bounds = oracle.theorem_bounds(tasks, UNIT, outcome)
    assert bounds["corrected_lower"] == bounds["printed_upper"] == -math.inf
    assert bounds["corrected_upper"] == 1.5
    assert oracle.lower_bound(tasks, UNIT) == 0.0


def earliest(placed: list[tuple[float, Task]], task: Task, server: Server) -> float:
    """The first instant at which the task can run through on the server beside the placed."""
    for at in sorted({task[0]} | {start + other[1] for start, other in placed}):
        if at < task[0]:
            continue
        checked = [at] + [start for start, _ in placed if at < start < at + task[1]]
        used = [[other for start, other in placed if start <= now < start + other[1]] for now in checked]
        if all(
            sum(other[2 + r] for other in beside) + task[2 + r] <= server[r] + 2e-9
            for beside in used
            for r in (0, 1)
        ):
            return at
    raise AssertionError("fits at no time")


def optimum(tasks: list[Task], servers: list[Server]) -> float:
    """Least mean delay: every assignment, every order of insertion at the earliest instant."""
    best = math.inf
    choices = [
        [j for j, (c, m) in enumerate(servers) if t[2] <= c + 1e-9 and t[3] <= m + 1e-9] for t in tasks
    ]
    for assignment in itertools.product(*choices):
        for order in itertools.permutations(range(len(tasks))):
            placed: list[list[tuple[float, Task]]] = [[] for _ in servers]
            total = 0.0
            for i in order:
                j = assignment[i]
                at = earliest(placed[j], tasks[i], servers[j])
                placed[j].append((at, tasks[i]))
                total += at - tasks[i][0]
            best = min(best, total / len(tasks))
    return best


def test_optimum_lies_between_lower_bound_and_every_scheme() -> None:
    """Inserting in some order at the earliest instants yields an optimal schedule."""
    rng = random.Random(9)
    reached = above_bound = worthwhile = 0
    for n in range(60):
        tasks, servers = oracle.random_instance(rng, adversarial=n % 4 != 3)
        servers = servers[:2]
        tasks = [
            (0.0 if n % 3 == 0 else t[0], *t[1:])
            for t in tasks
            if any(t[2] <= c and t[3] <= m for c, m in servers)
        ][:4]
        if len(tasks) < 3:
            continue
        best = optimum(tasks, servers)
        bound = oracle.lower_bound(tasks, servers)
        assert bound <= best + 1e-6
        means = []
        for scheme, blocking in RUNS:
            outcome = run(tasks, servers, scheme, blocking)
            waits = oracle.delays(tasks, outcome)
            means.append(sum(waits) / len(waits))
        assert best <= min(means) + 1e-9
        worthwhile += best > 0.0
        reached += best > 0.0 and min(means) <= best + 1e-9
        above_bound += best > bound + 1e-6
    assert worthwhile > 15
    assert reached > 10
    assert above_bound > 5
