"""``schedgym board``: play candidates on frozen instances, enter schedules, and write files for searchers."""

# annotations are evaluated: typer reads them
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from schedgym.cli.common import (
    application,
    command,
    fill_template,
    say,
    write_json,
    write_new,
)
from schedgym.core.files import check_output, read_text
from schedgym.errors import RunAborted
from schedgym.evaluation.wording import estimate_text, four_digits, make_console, make_table, metric_text

CLOCK = 10  # times its limit of CPU time that a decision may take
#: view in which a searched program may act -> entry of the observation that says which choices there are
MASKS = {"priority": "job_mask", "pick": "action_mask", "place": "action_mask"}

board = typer.Typer(
    help="Play candidates on frozen instances, whose best known schedules are kept.", rich_markup_mode=None
)
application.add_typer(board, name="board")


@dataclasses.dataclass(frozen=True)
class Asked:
    """The arguments of ``schedgym board run``.

    Attributes:
        candidate: score: EXPRESSION, FILE.py:NAME, an agent file, "pretrained", or the name of a policy.
        suite (NAME): The suite, such as QueueDelay-1.
        set (NAME): train, validation, test or secret.
        phrase_file: The file with the phrase of the secret set.
        decision_seconds (SECONDS): The CPU time that a decision may take; on the clock ten times as much.
        episode_seconds (SECONDS): The CPU time that the decisions of an episode may take on average.
        memory (MIB): The address space of the candidate's process.
        schedules (FILE): Write the schedules to this file, for `schedgym board submit`.
    """

    candidate: str
    _: dataclasses.KW_ONLY
    suite: str
    set: str = "test"
    phrase_file: Path | None = None
    decision_seconds: float = 60.0
    episode_seconds: float = 60.0
    memory: int = 4096
    schedules: Path | None = None
    json: Path | None = None


@command("run", Asked, of=board)
def run(asked: Asked) -> None:
    """Score a candidate on a set of a suite: 0 is the paper's own algorithm, 1 the best known schedule.

    The candidate decides in a process of its own, which sees observations and nothing else, is limited in
    time, memory and files, and has no network. An instance in which it crashes, takes too long, or gives no
    action, scores as the paper's algorithm; the exit code is 1 if that happened in every one.
    """
    from schedgym.board import scores
    from schedgym.board.entries import save_schedules
    from schedgym.board.walls import Limits

    check_output(asked.schedules)
    phrase = None if asked.phrase_file is None else read_text(asked.phrase_file, 4096).strip()
    seconds = asked.decision_seconds
    limits = Limits(seconds, CLOCK * seconds, asked.episode_seconds, asked.memory * 2**20)
    report = scores.run(asked.candidate, asked.suite, asked.set, phrase, limits)
    write_json(report.content(), asked.json)
    valid = {own.instance.index: own.schedule for own in report.results if own.schedule is not None}
    if asked.schedules is not None and valid:
        save_schedules(asked.schedules, valid)
    for text in report.missing:
        say(f"not restricted on this system: {text}", stderr=True)
    metric = report.results[0].instance.objective
    title = f"{asked.candidate} on {asked.suite}/{asked.set}"
    headings = ("size", "instances", "score", metric_text(metric, mean=True), "ratio to bound", "refused")
    sizes = {**report.sizes, "all": report.results}
    rows = [(size, *_row(own)) for size, own in sizes.items()]
    right = {heading: {"justify": "right"} for heading in headings[1:]}
    make_console().print(make_table(title, headings, rows, **right))
    for result in report.refused:
        say(f"refused: {result.instance.name}: {result.refusal}", stderr=True)
    micros = 1e6 * report.seconds / max(report.decisions, 1)
    say(f"{report.decisions:,} decisions, {four_digits(micros)} us of CPU time each")
    if len(report.refused) == len(report.results):
        raise RunAborted(f"every instance was refused: {report.refused[0].refusal}")


def _row(results: Sequence[Any]) -> list[str]:
    """The cells of the results of one size."""
    from schedgym.board.scores import estimate_score, ratio_to_bound

    return [
        str(len(results)),
        estimate_text(estimate_score(results)),
        four_digits(sum(result.value for result in results) / len(results)),
        four_digits(ratio_to_bound(results)),
        str(sum(bool(result.refusal) for result in results)),
    ]


@command("evaluator", of=board)
def evaluator(suite: str, *, output: Path, set: str = "train") -> None:
    """Write a scorer and a starting program for OpenEvolve, ShinkaEvolve and SkyDiscover.

    evaluator.py has the function evaluate(program_path), and is a script for ShinkaEvolve; initial.py is the
    program, of which the block between EVOLVE-BLOCK-START and EVOLVE-BLOCK-END is to be searched.

    Options:
        output (FOLDER): Write the files here.
        set: The set on which programs are scored.
    """
    from schedgym.board.suites import load_suite
    from schedgym.core.problem import get_problem
    from schedgym.docstrings import observation_table

    found = load_suite(suite)
    found.instances(set)  # refuses a set that does not exist, or needs a phrase
    problem = get_problem(found.id)
    view = next(view for view in MASKS if view in [view.name for view in problem.views])
    words = {"SUITE": suite, "SET": set, "ACTS": view, "MARKED": MASKS[view]}
    words["ENTRIES"] = observation_table(problem)
    write_new(
        {output / name: fill_template(f"board/{name}", words) for name in ("evaluator.py", "initial.py")}
    )


@command("instances", of=board)
def instances(suite: str, *, output: Path, set: str = "test") -> None:
    """Write the instances of a set as workload files, for schedulers of any kind.

    Options:
        output (FOLDER): Write the files here.
        set: train, validation or test.
    """
    from schedgym.board.suites import load_suite
    from schedgym.core.workload_files import save_workload

    found = load_suite(suite).instances(set)
    output.mkdir(parents=True, exist_ok=True)
    for instance in found:
        save_workload(instance.workload(), output / f"{suite}-{set}-{instance.index}.json")
    say(f"wrote {len(found)} workload files to {output}")


@command("submit", of=board)
def submit(suite: str, schedules: Path, *, name: str, by: str, command: str) -> None:
    """Judge schedules, keep what beats the best known, and enter them if there is one of each instance.

    It runs in a checkout of the repository. The entry is a file of docs/board, to be committed with what else
    has changed.

    Options:
        schedules (FILE.npz): Schedules of the set test.
        name: Name of the program or policy.
        by: Who enters it.
        command: The command that made the schedules.
    """
    from schedgym.board.entries import enter, load_schedules
    from schedgym.board.suites import load_suite

    found = load_suite(suite)
    entry, better = enter(found, load_schedules(schedules, found.instances("test")), name, by, command)
    say(f"valid; {better} better than the best known")
    if entry is not None:
        say(f"entered as {entry.name}; its mean is {sum(entry.values) / len(entry.values):.6g}")


@command("improve", of=board)
def improve(suite: str, *, budget: str = "10s") -> None:
    """Search for better schedules of the set test, from the shipped agent on."""
    from schedgym.board.entries import improve as search
    from schedgym.board.suites import load_suite
    from schedgym.evaluation.best_known import Budget

    say(f"{search(load_suite(suite), Budget.parse(budget))} better than the best known")


@command("fill", of=board)
def fill(names: list[str] | None = None, *, budget: str = "1s") -> None:
    """Enter the default policies and the shipped agents anew, and search for better schedules.

    Options:
        names ([SUITE]...): The suites. Default: all.
    """
    from schedgym.board.entries import fill as enter_policies
    from schedgym.board.suites import load_suite, suites
    from schedgym.evaluation.best_known import Budget

    spent = Budget.parse(budget)
    for suite in [load_suite(name) for name in names or suites()]:
        entries = enter_policies(suite, spent)
        say(f"{suite.name}: {len(entries)} entries")
