"""``schedgym board``: write instances, judge and enter schedules, and search for better ones."""

# annotations are evaluated: typer reads them
from pathlib import Path
from typing import Annotated

import typer

from schedgym.cli.board import board
from schedgym.cli.common import say

SuiteName = Annotated[str, typer.Argument(metavar="SUITE", help="The suite, such as QueueDelay-1.")]
Spent = Annotated[
    str,
    typer.Option(
        "--budget", metavar="BUDGET", help="Of the search in each instance: schedules, or CPU seconds as 20s."
    ),
]


@board.command("instances")
def instances(
    suite: SuiteName,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Write the files here.")],
    set: Annotated[str, typer.Option("--set", help="train, validation or test.")] = "test",
) -> None:
    """Write the instances of a set as workload files, for schedulers of any kind."""
    from schedgym.board.suites import load_suite
    from schedgym.core.workload_files import save_workload

    found = load_suite(suite).instances(set)
    output.mkdir(parents=True, exist_ok=True)
    for instance in found:
        save_workload(instance.workload(), output / f"{suite}-{set}-{instance.index}.json")
    say(f"wrote {len(found)} workload files to {output}")


@board.command("submit")
def submit(
    suite: SuiteName,
    schedules: Annotated[Path, typer.Argument(metavar="FILE.npz", help="Schedules of the set test.")],
    name: Annotated[str, typer.Option("--name", help="Name of the program or policy.")],
    by: Annotated[str, typer.Option("--by", help="Who enters it.")],
    command: Annotated[str, typer.Option("--command", help="The command that made the schedules.")],
) -> None:
    """Judge schedules, keep what beats the best known, and enter them if there is one of each instance.

    It runs in a checkout of the repository. The entry is a file of docs/board, to be committed with what else
    has changed.
    """
    from schedgym.board.entries import enter, load_schedules
    from schedgym.board.suites import load_suite

    found = load_suite(suite)
    entry, better = enter(found, load_schedules(schedules, found.instances("test")), name, by, command)
    say(f"valid; {better} better than the best known")
    if entry is not None:
        say(f"entered as {entry.name}; its mean is {sum(entry.values) / len(entry.values):.6g}")


@board.command("improve")
def improve(suite: SuiteName, budget: Spent = "10s") -> None:
    """Search for better schedules of the set test, from the shipped agent on."""
    from schedgym.board.entries import improve as search
    from schedgym.board.suites import load_suite
    from schedgym.evaluation.best_known import Budget

    say(f"{search(load_suite(suite), Budget.parse(budget))} better than the best known")


@board.command("fill")
def fill(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[SUITE]...", help="The suites. Default: all.")
    ] = None,
    budget: Spent = "1s",
) -> None:
    """Enter the default policies and the shipped agents anew, and search for better schedules."""
    from schedgym.board.entries import fill as enter_policies
    from schedgym.board.suites import load_suite, suites
    from schedgym.evaluation.best_known import Budget

    spent = Budget.parse(budget)
    for suite in [load_suite(name) for name in names or suites()]:
        entries = enter_policies(suite, spent)
        say(f"{suite.name}: {len(entries)} entries")
