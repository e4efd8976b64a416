"""PartialValue's policies through the environment, against the model's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from schedgym.core.policy import make_policy
from schedgym.errors import InvalidParameter
from schedgym.papers.zheng2016 import model
from schedgym.problems.partial_value.metrics import validate
from tests.long import trials
from tests.partial_value.instances import make_job
from tests.partial_value.test_dynamics import draw, environment, state_of
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
def test_policies_equal_the_model(name: str, discrete: bool, tmp_path: Any) -> None:
    """Every allocation; where the optimum of a slot need not be unique, its value."""
    policy = make_policy(POLICIES[name], **({"skip": True} if name.endswith("-skip") else {}))
    for x in trials(60):
        rng = random.Random(f"policy {name} {discrete} {x}")
        kinds = rng.choice((model.KINDS, *((kind,) for kind in model.KINDS)))
        own = {"unit": rng.choice([2, 3, 4, 5]) if name == "deadline-aware" else None, "kinds": kinds}
        own |= {"resources": rng.choice((1, 2, 3)), "max_jobs": rng.choice((2, 6, 10))}
        if name == "deadline-aware":  # which serves the most valuable tasks where there are not too many
            own["max_jobs"] = 12
        instance = draw(rng, discrete=discrete, adversarial=x % 2 == 1, **own)

        def note(observation: dict[str, Any], action: Any, instance: model.Instance = instance) -> None:
            state, rows = state_of(instance, observation)
            assert rows.tolist() == model.active(instance, state.slot, state.served)
            for r, job in enumerate(rows.tolist()):
                cap = model.slot_cap(state, job)
                assert observation["cap"][r] == pytest.approx(cap, rel=1e-12)
                before, after = state.served[job], state.served[job] + min(1.0, cap)
                gain = model.utility(instance.jobs[job], after) - model.utility(instance.jobs[job], before)
                assert observation["marginal"][r] == pytest.approx(gain, rel=1e-9, abs=1e-12)

        env = environment(instance, tmp_path, view="allocation")
        measured, rewards, record = play(env, policy, note=note)
        expected = model.simulate(instance, name)
        validate(record, whole=discrete)
        assert measured["repaired"] == 0
        if name == "deadline-aware":  # the view rule has it, too, and rounds half a capacity by itself
            by_rule = play(environment(instance, tmp_path, view="rule"), policy)
            assert by_rule.record.digest() == record.digest()
        rows = np.zeros((model.horizon(instance), len(instance.jobs)))
        rows[record.start.astype(int), record.job] = record.amount[:, 0]
        if name == "local-optimal" or (name == "concave" and model.LINEAR in kinds):
            gaps = model.slot_gaps(instance, rows.tolist())
            assert max(gaps, default=0.0) <= 1e-7 * max(1.0, measured["value"])
            continue
        assert measured["value"] == pytest.approx(expected.value, rel=1e-7)
        if name != "concave":
            close = 0.0 if discrete else 1e-7
            found = rows[: len(expected.allocation)]
            np.testing.assert_allclose(found, expected.allocation, rtol=0.0, atol=close, err_msg=f"{x}")
            assert len(rewards) == max(len(expected.allocation), 1)
            np.testing.assert_allclose(rewards[: len(expected.reward)], expected.reward, rtol=1e-6, atol=1e-7)
            theirs = model.metrics(instance, expected)
            assert (measured["never_served"], measured["expired"]) == (theirs.never_served, theirs.expired)
            used = np.mean(theirs.utilisation)
            assert measured["utilization"] == pytest.approx(used, rel=1e-6, abs=1e-9)


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
