"""Curves over time and values by size: against the model, as the metrics are, and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from schedgym.papers.xu2021 import curves, model
from schedgym.papers.xu2021.model import Instance, Job
from schedgym.problems.flowtime.workload import KINDS
from tests.flowtime.schedules import record_of, simulations
from tests.long import long

pytestmark = long


@pytest.mark.parametrize("kind", KINDS)
def test_curves_equal_the_model(kind: str) -> None:
    for x, (instance, outcome) in enumerate(simulations(100, 11, kind)):
        record = record_of(instance, outcome)
        k = (1.0, 2.0, 3.0, 1.5)[x % 4]
        close = {"rtol": 1e-9, "atol": 1e-9}
        np.testing.assert_allclose(
            curves.regret_curve(record, k), model.regret_curve(instance, outcome, k), **close
        )
        assert curves.unfinished_curve(record).tolist() == model.unfinished_curve(instance, outcome)
        assert curves.service_gaps(record).tolist() == model.service_gaps(instance, outcome)
        assert curves.used_curve(record).tolist() == [sum(used) for used in outcome.used]
        offered = [
            sum(model.volume(job) for job in instance.jobs if job.arrival < t)
            for t in range(1, outcome.slots + 1)
        ]
        assert curves.offered_curve(record).tolist() == offered


@pytest.mark.parametrize("k", [1.0, 2.0, 2.5])
def test_flowtime_curve_is_the_norm_of_the_ages(k: float) -> None:
    for instance, outcome in simulations(30, 13, "1d"):
        expected = []
        for t in range(1, outcome.slots + 1):
            ages = [
                (t if end is None else min(t, end)) - job.arrival
                for job, end in zip(instance.jobs, outcome.completion, strict=True)
                if job.arrival < t
            ]
            expected.append(sum(age**k for age in ages) ** (1 / k))
        curve = curves.flowtime_curve(record_of(instance, outcome), k)
        np.testing.assert_allclose(curve, expected, rtol=1e-9)


def test_sizes() -> None:
    # two jobs of 2 slots wait 0 and 3 slots, one of 1 slot waits 2, one has not arrived
    instance = Instance([Job(0, 2, 2), Job(0, 1, 2), Job(0, 2, 2), Job(9, 5, 1)], [2])
    outcome = model.replay(instance, [[[2 * (j == row)] for j in range(4)] for row in (0, 0, 1, 2, 2)], k=2)
    record = record_of(instance, outcome)
    sizes = curves.by_size(record.workload, curves.waiting(record))
    assert sizes.size.tolist() == [1, 2]
    assert sizes.jobs.tolist() == [1, 2]
    assert sizes.least.tolist() == [2.0, 0.0]
    assert sizes.mean.tolist() == [2.0, 1.5]
    assert sizes.greatest.tolist() == [2.0, 3.0]
    assert math.isnan(curves.waiting(record)[3])
    counted = curves.by_size(record.workload, [1, 2, 5, 7])
    assert counted.size.tolist() == [1, 2, 5]
    assert counted.greatest.tolist() == [2.0, 5.0, 7.0]
