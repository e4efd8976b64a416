"""Candidates that cheat: what they try is refused, or has no effect."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import textwrap

import pytest

from schedgym.board import walls
from schedgym.board.entries import known
from schedgym.board.judge import judge
from schedgym.board.suites import digest_of, load_suite, suites
from schedgym.board.walls import Limits, play
from schedgym.core.record import ScheduleRecord
from schedgym.core.score_policy import ScorePolicy
from schedgym.errors import InvalidParameter, InvalidSchedule
from schedgym.evaluation.episodes import make_env
from schedgym.evaluation.episodes import play as play_here
from schedgym.evaluation.plan import acting_parameters
from tests.long import long, some
from tests.tables import entry, table

SUITE = load_suite("QueueDelay-1")
INSTANCES = SUITE.instances("train")[:3]
HONEST = "score: -execution"

CHEAT, REFUSED, VAIN, FATAL = (entry(__file__, name) for name in ("CHEAT", "REFUSED", "VAIN", "FATAL"))


def write(path, ways):
    """The file of a candidate that cheats in these ways."""
    text = CHEAT.replace("\nclass", f"\nPARENT, WALLS = {os.getpid()}, {walls.__file__!r}\n\nclass")
    for number, code in enumerate(ways):
        body = textwrap.indent(code, "    ")
        text += f"\ndef way_{number}(self, observation):\n{body}\n"
    text += f"\nWAYS = [{', '.join(f'way_{number}' for number in range(len(ways)))}]\n"
    path.write_text(text)
    return f"{path}:Cheat"


def schedules(run):
    return [own if isinstance(own, str) else own.digest() for _, own in sorted(run.played.items())]


@pytest.fixture(scope="module")
def honest():
    """The schedules of the honest candidate, played here."""
    policy = ScorePolicy(HONEST)
    found = []
    for instance in INSTANCES:
        env = make_env(
            instance.id, acting_parameters(instance.problem, instance.id, instance.parameters, policy)
        )
        play_here(env, policy, workload=instance.workload())
        found.append(env.record().digest())
    return found


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    """What each way of REFUSED has come to: all are tried side by side, in one process."""
    os.environ["SCHEDGYM_SECRET"] = "the phrase"
    ways = [way["code"] for way in REFUSED.values()]
    file = tmp_path_factory.mktemp("candidates") / "cheat.py"
    run = play(write(file, ways), [INSTANCES[0]] * len(ways))
    assert run.missing == []
    assert file.exists()
    return dict(zip(REFUSED, (run.played[k] for k in range(len(ways))), strict=True))


@pytest.mark.parametrize("way", REFUSED)
def test_it_is_refused(way, refusals):
    assert REFUSED[way]["error"] in refusals[way]


def test_it_has_no_effect(tmp_path, honest, capfd, monkeypatch):
    before = dict(os.environ)
    run = play(write(tmp_path / "cheat.py", VAIN.values()), [INSTANCES[0]] * len(VAIN))
    assert schedules(run) == [honest[0]] * len(VAIN)
    assert capfd.readouterr() == ("", "")
    assert dict(os.environ) == before
    assert judge(INSTANCES[0], run.played[0]) > 0


@pytest.mark.parametrize("candidate", some([HONEST, "bf-exec"]))
def test_who_is_honest_plays_as_in_process(candidate, honest, monkeypatch):
    made = []  # here, where no decision has a limit
    monkeypatch.setattr(walls, "make_candidate", lambda *given: made.append(given), raising=False)
    run = play(candidate, INSTANCES)
    assert schedules(run) == honest  # the shortest task first, on the server where it fits best
    assert run.decisions > 300 and run.seconds > 0 and run.missing == made == []


@pytest.mark.parametrize(
    ("name", "candidate"),
    [("QueueDelay-1", HONEST), *some(((name, "pretrained") for name in suites()), of=4, late=2)],
)
def test_kernels_are_made_while_their_cache_can_be_found(name, candidate, monkeypatch):
    """Else each process would compile them again: it may not look for folders that can be written to."""
    code = entry(__file__, "kernels")
    start = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda command, **more: start([*command[:2], "-c", code], **more)
    )
    (played,) = play(candidate, load_suite(name).instances("train")[:1]).played.values()
    assert isinstance(played, ScheduleRecord), played


@long
def test_an_action_may_be_longer_than_what_a_pipe_holds():
    instance = load_suite("FlowtimePacking-1").instances("train")[0]
    wide = dataclasses.replace(instance, parameters={**instance.parameters, "window": 9000})
    (schedule,) = play("ocorp", [wide]).played.values()
    assert not isinstance(schedule, str) and judge(wide, schedule) == known(instance).reference


@pytest.mark.parametrize("way", some(FATAL))
def test_what_ends_its_process_is_refused_and_the_others_are_played(way, tmp_path, monkeypatch):
    monkeypatch.setattr(walls, "MOST_STOPS", 1)  # the next process would begin with the same way
    other = dataclasses.replace(INSTANCES[1], parameters={**INSTANCES[1].parameters, "window": 64})
    guard = "if self.honest._window != 64:\n" + textwrap.indent(FATAL[way]["code"], "    ")
    run = play(write(tmp_path / "cheat.py", [guard]), [INSTANCES[0], other])
    assert FATAL[way]["error"] in run.played[0]
    assert judge(INSTANCES[1], run.played[1]) > 0


@long
def test_a_process_that_ends_takes_one_instance_with_it(tmp_path, honest):
    """The candidate of the second environment ends the process: then the first and the third are alone."""
    code = "import ctypes\nif self.steps > 5 and Cheat.made == 3: ctypes.string_at(0)"
    run = play(write(tmp_path / "cheat.py", ["return None", code]), INSTANCES)
    assert schedules(run) == [honest[0], "its process ended: SIGSEGV", honest[2]]


@pytest.mark.parametrize(
    ("code", "refusal"),
    [
        ("import time; time.sleep(10**6)", "gave no answer within 1 s"),
        ("while True: pass", "took more than 1 s of CPU time"),
    ],
)
def test_who_takes_too_long_is_refused(code, refusal, tmp_path):
    limits = Limits(decision=1.0, clock=1.0 if "sleep" in code else 10**6)
    run = play(write(tmp_path / "cheat.py", [code]), INSTANCES[:1], limits)
    assert run.played[0] == refusal


@pytest.mark.parametrize("limits", [{"decision": 0.0}, {"clock": float("nan")}, {"memory": -1}])
def test_a_limit_that_limits_nothing_is_refused(limits):
    with pytest.raises(InvalidParameter, match=f"limits: {next(iter(limits))} must be a number above 0"):
        Limits(**limits)


@long
def test_a_flood_of_answers_is_no_action(tmp_path):
    """What a candidate writes into the pipe of answers says that it has decided, and is its own loss."""
    code = entry(__file__, "flood")
    run = play(write(tmp_path / "cheat.py", [code]), INSTANCES[:2])
    assert run.played == {0: "gave no action", 1: "gave no action"}


def test_actions_of_another_instance_make_a_schedule_of_this_one(tmp_path, honest):
    """Replayed decisions are decisions: the schedule is judged by the instance in which they were made."""
    code = """
        Cheat.log = getattr(Cheat, "log", [])
        Cheat.log.append(self.honest(observation))
        """
    replay = "return Cheat.log[min(self.steps, len(Cheat.log)) - 1]"
    run = play(write(tmp_path / "cheat.py", [code, replay]), INSTANCES[:2])
    assert schedules(run)[0] == honest[0]
    assert digest_of(run.played[1].workload) == INSTANCES[1].digest
    with pytest.raises(InvalidSchedule):
        judge(INSTANCES[1], run.played[0])


@long
def test_a_public_instance_can_be_made_again_and_a_secret_one_cannot(tmp_path):
    """Whoever has read the recipe of a public set can make it: only a secret set is one that nobody knows."""
    code = entry(__file__, "public")
    for instance in (INSTANCES[0], SUITE.instances("secret", "a phrase")[0]):
        names = {"NAME": repr(instance.name.encode()), "PARAMETERS": repr(dict(instance.parameters))}
        own = code
        for name, value in names.items():
            own = own.replace(name, value)
        true = instance.workload().jobs["execution"].sum()
        run = play(write(tmp_path / "cheat.py", [own]), [instance])
        known = run.played[0] == f"ValueError: {true}"
        assert known == (instance.set == "train"), run.played[0]


@pytest.mark.parametrize(("text", "reason"), some(table(__file__, "test_what_is_no_candidate"), of=4))
def test_what_is_no_candidate(text, reason, tmp_path):
    file = tmp_path / "cheat.py"
    file.write_text(text)
    if reason is None:  # a function that answers another shape than its view has
        assert "must have shape (2,)" in play(f"{file}:Cheat", INSTANCES[:1]).played[0]
        return
    with pytest.raises(InvalidParameter) as raised:
        play(text if text.startswith("score:") else f"{file}:Cheat", INSTANCES[:1])
    assert reason in str(raised.value)
