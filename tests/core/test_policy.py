"""The registry of policies."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import schedgym
from schedgym.baselines.queue_delay.scheme import SchemePolicy
from schedgym.core import policy as registry
from schedgym.core.policy import (
    Interface,
    Policy,
    PolicySpec,
    get_policy_spec,
    list_policies,
    make_policy,
    register_policy,
    resolve_policy_name,
)
from schedgym.errors import InvalidParameter, UnknownName
from tests.tables import table


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Each test registers into a copy."""
    list_policies()
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))


def test_names_are_resolved() -> None:
    assert resolve_policy_name("queue-delay/bf-exec") == "queue-delay/bf-exec"
    assert resolve_policy_name("bf-exec", "queue-delay") == "queue-delay/bf-exec"
    assert make_policy("bf-exec", "queue-delay").name == "queue-delay/bf-exec"
    assert schedgym.make_policy is make_policy
    spec = get_policy_spec("ffd-nb", "queue-delay")
    assert (spec.problem, spec.fixed) == ("queue-delay", {"size": "nb"})
    assert spec.options() == {"blocking": False, "bypass": False, "weights": (1.0, 1.0), "p": 2.0}
    assert isinstance(make_policy("queue-delay/fcfs"), Policy)


@pytest.mark.parametrize(
    ("name", "problem", "message"), table(__file__, "test_unknown_names_are_answered_with_the_nearest")
)
def test_unknown_names_are_answered_with_the_nearest(name, problem, message) -> None:
    with pytest.raises(UnknownName) as caught:
        make_policy(name, problem)
    assert message in str(caught.value)
    assert isinstance(caught.value, LookupError)


def test_options_are_checked() -> None:
    assert make_policy("queue-delay/ffd-nb", blocking=True).blocking
    with pytest.raises(UnknownName, match="option of queue-delay/ffd-nb 'bloking'; did you mean 'blocking'"):
        make_policy("queue-delay/ffd-nb", bloking=True)
    with pytest.raises(UnknownName, match="option of queue-delay/fcfs 'blocking'; none is known"):
        make_policy("queue-delay/fcfs", blocking=True)
    with pytest.raises(InvalidParameter, match="option size is fixed to 'nb'"):
        make_policy("queue-delay/ffd-nb", size="dp")
    for options in (
        {"blocking": 1},
        {"blocking": "yes"},
        {"weights": (1.0, -1.0)},
        {"weights": (1.0, float("nan"))},
    ):
        with pytest.raises(InvalidParameter, match=next(iter(options))):
            make_policy("queue-delay/ffd-sum", **options)
    with pytest.raises(InvalidParameter, match="bfd-nb has no blocking variant"):
        SchemePolicy("bfd-nb", blocking=True)
    assert make_policy("queue-delay/bfd-nb", p=3).p == 3.0
    for p in (1, 0.5, float("nan"), "3", True):
        with pytest.raises(InvalidParameter, match="p: must be a number above 1"):
            make_policy("queue-delay/ffd-nb", p=p)
    for name in ("ffd-dp", "bfd-sum", "ff", "rf-all"):
        with pytest.raises(InvalidParameter, match=f"p: {name} compares no norms"):
            make_policy(name, "queue-delay", p=3.0)


def interface(view: str = "placement", observation: str = "dict", **parameters: object) -> Interface:
    values = schedgym.get_problem("queue-delay").parameters.build(view=view, **parameters).__dict__
    return Interface(
        "schedgym/QueueDelay-v0", "queue-delay", view, observation, values, {"window": 4, "servers": 2}
    )


@pytest.mark.parametrize(
    ("name", "given", "message"), table(__file__, "test_a_view_that_cannot_carry_a_policy_is_refused")
)
def test_a_view_that_cannot_carry_a_policy_is_refused(name, given, message) -> None:
    policy = make_policy(name, "queue-delay")
    with pytest.raises(InvalidParameter, match=message):
        policy.reset(interface(**given), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("name", "options", "refused"),
    table(__file__, "test_options_that_a_view_cannot_carry_are_refused"),
)
def test_options_that_a_view_cannot_carry_are_refused(name, options, refused) -> None:
    """The environment's own rules and orders know no weights, and the L2 norm only."""
    policy = make_policy(name, "queue-delay", **options)
    assert set(policy.carrying_views()) == {"placement", "pick", "route", "rule"} - set(refused)
    for view in refused:
        with pytest.raises(InvalidParameter, match=f"cannot be expressed in view '{view}'"):
            policy.reset(interface(view), np.random.default_rng(0))
    policy.reset(interface("placement"), np.random.default_rng(0))


def test_registering() -> None:
    @register_policy("queue-delay/mine", source="me", deviations="none", knows=("execution",))
    class Mine:
        """Does nothing.

        At all.
        """

        def __init__(self, patience: int = 3) -> None:
            self.patience = patience

    spec = get_policy_spec("queue-delay/mine")
    assert (spec.help, spec.source, spec.knows) == ("Does nothing.", "me", ("execution",))
    assert spec.options() == {"patience": 3}
    assert make_policy("queue-delay/mine", patience=5).patience == 5
    assert spec in list_policies("queue-delay") and spec in list_policies()
    register_policy("queue-delay/mine", source="me")(Mine)  # a reload of the module is no conflict
    with pytest.raises(ValueError, match="registered already by .*Mine"):
        register_policy("queue-delay/mine", source="you")(dict)
    for name in ("mine", "a/b/c", ""):
        with pytest.raises(ValueError, match="'problem/policy'"):
            register_policy(name, source="me")(Mine)


def test_a_policy_acts_in_the_preferred_view_or_in_its_own_first_one() -> None:
    def view(*views: str, known: tuple[str, ...] = ("pick", "rule")) -> str:
        return PolicySpec("queue-delay/x", dict, "", views=views).acting_view("placement", known)

    assert view("rule", "placement") == "placement"
    assert view("gone", "rule", "pick") == "rule"
    assert view("gone") == view() == "placement"


def test_listing_is_by_name_and_by_problem() -> None:
    names = [spec.name for spec in list_policies()]
    assert names == sorted(names) and len(names) >= 21
    assert list_policies("schedgym/QueueDelay-v0") == list_policies("queue-delay")
    with pytest.raises(UnknownName, match="unknown problem 'queue_delay'; did you mean 'queue-delay'"):
        list_policies("queue_delay")


def test_packages_add_policies_by_an_entry_point(tmp_path, monkeypatch) -> None:
    (tmp_path / "third_party_policies.py").write_text(
        "from schedgym.core.policy import register_policy\n\n\n"
        "@register_policy('queue-delay/third-party', source='elsewhere')\n"
        "class ThirdParty:\n"
        "    '''From another package.'''\n\n"
        "    def __init__(self):\n"
        "        self.here = True\n"
    )
    folder = tmp_path / "third_party-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[schedgym.policies]\nanything = third_party_policies\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    registry._discover.cache_clear()
    assert make_policy("third-party", "queue-delay").here
    assert get_policy_spec("queue-delay/third-party").help == "From another package."
    assert len(list_policies("queue-delay")) >= 22
