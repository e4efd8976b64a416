"""The bounds against the plain-Python oracle and against schedules."""

import random

import numpy as np
import pytest

import schedgym
from schedgym.problems.queue_delay import bounds
from schedgym.problems.queue_delay.workload import make_workload
from tests.queue_delay import oracle
from tests.queue_delay.test_rules import make, run

SCHEMES = ("bf-exec", "ffd-nb", "ffd-dp", "fcfs", "ff", "wf-all", "dot-exec")
QUEUEING_ONLY_WHAT_FITS_NOWHERE = ("bf-exec", "ffd-nb", "ffd-dp", "dot-exec")


def instances(count, seed):
    source = random.Random(seed)
    for i in range(count):
        yield oracle.random_instance(source, adversarial=i % 2 == 0)


def test_lower_bound_equals_the_oracle():
    for tasks, servers in instances(300, 1):
        workload = make_workload(tasks, servers)
        assert bounds.lower_bound(workload) == pytest.approx(
            oracle.lower_bound(tasks, servers), rel=1e-6, abs=1e-6
        )


@pytest.mark.parametrize("arrival", [0.0, 7.5])
def test_batch_bound_is_exact_for_identical_tasks(arrival):
    # 3 tasks at once, SPT order: starts 0, 0, 0, 1, 2, 3, 5
    tasks = [(arrival, e, 0.3, 0.3) for e in (1, 2, 3, 4, 5, 6, 7)]
    workload = make_workload(tasks, [(1, 1)])
    assert bounds.batch_bound(workload) == pytest.approx((1 + 2 + 3 + 5) / 7)
    assert bounds.lower_bound(workload) >= bounds.batch_bound(workload)


def test_corrected_theorems_hold_and_printed_ones_fail():
    broken = {"printed_upper": 0, "printed_lower": 0}
    for k, (tasks, servers) in enumerate(instances(200, 2)):
        workload = make_workload(tasks, servers)
        least = bounds.lower_bound(workload)
        for scheme in SCHEMES:
            policy = schedgym.make_policy(scheme, "queue-delay")
            record, total, info = run(make(workload), policy, workload, np.random.default_rng(k))
            delay = info["metrics"]["mean_delay"]
            theorem = bounds.theorem_bounds(record)
            assert least <= delay + 1e-9 * max(1.0, delay)
            assert theorem.corrected_lower <= delay + 1e-9 * max(1.0, delay)
            if scheme in QUEUEING_ONLY_WHAT_FITS_NOWHERE:
                assert delay <= theorem.corrected_upper + 1e-9 * max(1.0, delay)
            expected = oracle.theorem_bounds(tasks, servers, oracle.simulate(tasks, servers, scheme))
            for name in ("printed_upper", "printed_lower", "corrected_upper", "corrected_lower"):
                assert getattr(theorem, name) == pytest.approx(expected[name], rel=1e-9, abs=1e-9)
            broken["printed_upper"] += delay > theorem.printed_upper + 1e-6
            broken["printed_lower"] += delay < theorem.printed_lower - 1e-6
    assert broken["printed_upper"] > 0 and broken["printed_lower"] > 0
