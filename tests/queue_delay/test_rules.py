"""Schemes through the environment: those that draw, and in other norms; the others in test_resources.py."""

import math
import random

import gymnasium as gym
import numpy as np
import pytest

import schedgym
from schedgym.papers.noroozoliaee2014 import model
from schedgym.problems.queue_delay.metrics import fates
from schedgym.problems.queue_delay.rules import SCHEMES
from schedgym.problems.queue_delay.workload import make_workload
from tests.long import some
from tests.playing import play
from tests.queue_delay.instances import random_instance


def make(workload, **parameters):
    given = {"view": "placement", "window": "all", "action_mask": False} | parameters
    return gym.make(
        "schedgym/QueueDelay-v0",
        disable_env_checker=True,
        tasks=len(workload.jobs["arrival"]),
        servers=len(workload.cluster["cpu"]),
        copy=False,
        **given,
    ).unwrapped


#: options -> how the model's name of a scheme ends
ENDINGS = {"": {}, "-blocking": {"blocking": True}, "-bypass": {"blocking": True, "bypass": True}}
VARIANTS = [(name, "") for name in SCHEMES if not name.startswith("rf")]
VARIANTS += [(f"ffd-{size}", ending) for size in model.SIZES for ending in ("-blocking", "-bypass")]
NORMED = [(name, "") for name in ("ffd-nb", "bfd-nb", "bf", "wf", "bf-all", "wf-all")] + [
    ("ffd-nb", "-blocking")
]


@pytest.mark.parametrize("name", ["rf", "rf-all"])
def test_random_fit_chooses_all_servers_alike(name):
    tasks = [(float(i), 0.5, 0.1, 0.1) for i in range(300)]
    workload = make_workload(tasks, [(1.0, 1.0)] * 3)
    record = play(make(workload), schedgym.make_policy(name, "queue-delay"), workload=workload).record
    assert np.bincount(record.server, minlength=3).min() > 70


def factored(p):
    """The L_p norm in the order of operations of the policies, so that ties are the same."""

    def norm(x, y):
        large, small = max(abs(x), abs(y)), min(abs(x), abs(y))
        return large * (1.0 + (small / large) ** p) ** (1.0 / p) if large else 0.0

    return norm


def literal(p):
    """Noroozoliaee2014, section III-A3: the p-th root of the sum of p-th powers."""
    return lambda x, y: float(np.linalg.norm([x, y], p))


@pytest.mark.parametrize(("name", "ending"), some(NORMED, of=6, late=3))
@pytest.mark.parametrize(("adversarial", "norm"), [(True, factored), (False, literal)])
def test_starts_equal_the_model_in_other_norms(name, ending, adversarial, norm):
    """On instances without ties also by the formula as the paper writes it."""
    source = random.Random(f"{name}{bool(ending)}{adversarial}")
    differs = 0
    for p in (1.1, 3.0, 7, math.inf):
        policy = schedgym.make_policy(name, "queue-delay", p=p, **ENDINGS[ending])
        for _ in range(30):
            instance = random_instance(source, adversarial=adversarial)
            workload = make_workload(*instance)
            record = play(make(workload), policy, workload=workload).record
            expected = model.simulate(instance, name + ending, norm=norm(p))
            assert fates(record)["start"] == list(expected.start)
            assert fates(record)["server"] == list(expected.server)
            differs += expected != model.simulate(instance, name + ending)
    assert differs > 0
