"""PartialValue's policies through the environment, against the model's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from schedgym.core.policy import make_policy
from schedgym.errors import InvalidParameter
from schedgym.papers.zheng2016 import model
from tests.long import some
from tests.partial_value.instances import make_job
from tests.partial_value.test_dynamics import draw, environment
from tests.playing import play

POLICIES = {
    name: ("partial-value/" + name.removesuffix("-skip")) for name in model.DISCRETE | model.CONTINUOUS
}


CASES = [
    (name, discrete)
    for discrete, names in ((False, model.CONTINUOUS), (True, model.DISCRETE))
    for name in sorted(names)
]


@pytest.mark.parametrize(("name", "discrete"), CASES)
@pytest.mark.parametrize("seed", some(range(10), 3, late=4))
def test_policies_equal_the_model(name: str, discrete: bool, seed: int, tmp_path: Any) -> None:
    rng = random.Random(f"policy {name} {discrete} {seed}")
    unit = rng.choice([2, 3, 4, 5]) if name == "deadline-aware" else None
    instance = draw(rng, discrete=discrete, unit=unit, adversarial=bool(seed % 2), max_jobs=8)
    options = {"skip": True} if name.endswith("-skip") else {}
    policy = make_policy(POLICIES[name], **options)
    measured, _, record = play(environment(instance, tmp_path, view="allocation"), policy)
    expected = model.simulate(instance, name)
    assert measured["repaired"] == 0
    linear = any(job.kind == model.LINEAR for job in instance.jobs)
    if name == "local-optimal" or (name == "concave" and linear):
        rows = np.zeros((model.horizon(instance), len(instance.jobs)))
        rows[record.start.astype(int), record.job] = record.amount[:, 0]
        gaps = model.slot_gaps(instance, rows.tolist())  # optima need not be unique: their values are
        assert max(gaps, default=0.0) <= 1e-7 * max(1.0, measured["value"])
        return
    assert measured["value"] == pytest.approx(expected.value, rel=1e-7)


def test_local_optimal_values_tasks_by_what_was_served(tmp_path: Any) -> None:
    """A second task adds less than a first one of a job that is worth a little less."""
    job = make_job
    first = job(1, 2, 1, 4, (1.0,), 1.0, model.POWER)
    instance = model.Instance((first, first._replace(values=(0.9,))), (1.0,), discrete=True)
    env = environment(instance, tmp_path, view="allocation")
    measured, _, record = play(env, make_policy("partial-value/local-optimal"))
    assert record.job.tolist() == [0, 1]
    assert measured["value"] == pytest.approx(1.9)


def test_deadline_aware_needs_tasks_of_one_unit(tmp_path: Any) -> None:
    two = model.Instance((make_job(1, 2, 1, 1, (2.0,)),), (4.0,), discrete=True)
    env = environment(two, tmp_path, view="allocation")
    policy = make_policy("partial-value/deadline-aware")
    policy.reset(env.interface, np.random.default_rng(0))
    with pytest.raises(InvalidParameter, match="one unit of it per task"):
        policy(env.reset(seed=0)[0])
