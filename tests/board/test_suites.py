"""Suites: frozen recipes, instances known by their arrays, and sets that only an organiser can make."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import pytest

from schedgym.board import suites
from schedgym.board.suites import FOLDER, Instance, digest_of, load_suite
from schedgym.core.problem import list_problems
from schedgym.documents import parse_yaml
from schedgym.errors import InvalidParameter, InvalidWorkload, UnknownName
from schedgym.evaluation.episodes import make_env
from tests.long import long

NAMES = suites.suites()
#: a suite never changes: what is changed gets a new number
FROZEN: dict[str, str] = parse_yaml(Path(__file__).with_name("frozen.yaml").read_text(), "frozen.yaml")


def test_suites_are_frozen() -> None:
    found = {name: hashlib.sha256((FOLDER / f"{name}.yaml").read_bytes()).hexdigest() for name in NAMES}
    assert found == FROZEN


def test_each_id_has_a_suite_of_three_sets() -> None:
    ids = {id for problem in list_problems().values() for id in problem.ids}
    assert {load_suite(name).id for name in NAMES} == ids
    for suite in map(load_suite, NAMES):
        assert list(suite.digests) == ["train", "validation", "test"]
        assert list(suite.sizes) == ["small", "paper", "loaded"]
        digests = [digest for own in suite.digests.values() for digest in own]
        assert len(digests) == len(set(digests)) == 150
        assert suite.reference == suite.problem.ids[suite.id].reference


def instances_of(name: str) -> list[Instance]:
    return [one for set in load_suite(name).digests for one in load_suite(name).instances(set)]


@pytest.mark.parametrize("every", [17, pytest.param(1, marks=long)])
@pytest.mark.parametrize("name", NAMES)
def test_instances_are_what_they_were(name: str, every: int) -> None:
    for instance in instances_of(name)[::every]:
        assert digest_of(instance.workload()) == instance.digest, instance.name


def test_the_environment_meets_the_instance() -> None:
    instance = load_suite("QueueDelay-1").instances("test")[7]
    assert (instance.name, instance.size) == ("QueueDelay-1/test/7", "small")
    env = make_env(instance.id, instance.parameters)
    env.reset(seed=instance.seed)
    assert digest_of(env.simulator.workload(0)) == instance.digest


def test_another_instance_is_refused() -> None:
    instance = load_suite("QueueDelay-1").instances("train")[0]
    with pytest.raises(InvalidWorkload, match="QueueDelay-1/train/0: .* makes another instance") as caught:
        dataclasses.replace(instance, seed=instance.seed + 1).workload()
    assert "\n" not in str(caught.value)


def test_a_secret_set_follows_from_its_phrase() -> None:
    suite = load_suite("PartialValue-1")
    mine, again, others = (suite.instances("secret", phrase) for phrase in ("a", "a", "b"))
    assert mine == again and len(mine) == 50
    seeds = {one.seed for set in (mine, others, instances_of(suite.name)) for one in set}
    assert len(seeds) == 250
    assert digest_of(mine[3].workload()) == digest_of(again[3].workload())
    assert digest_of(mine[3].workload()) != digest_of(others[3].workload())


def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(UnknownName, match="QueueDelay-1"):
        load_suite("QueueDelay-2")
    suite = load_suite("QueueDelay-1")
    with pytest.raises(UnknownName, match="'tests'.*test"):
        suite.instances("tests")
    for set, phrase in (("secret", None), ("secret", ""), ("test", "a")):
        with pytest.raises(InvalidParameter, match="needs a phrase, no other takes one"):
            suite.instances(set, phrase)
