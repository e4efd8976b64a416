"""``schedgym advise``: which policy serves a cluster best, by its own log."""

# annotations are evaluated: typer reads them
import dataclasses
import time
from pathlib import Path
from typing import Any

from schedgym.cli.common import (
    command,
    pairs,
    policy_names,
    say,
    write_json,
)
from schedgym.core.files import check_output
from schedgym.core.problem import get_problem
from schedgym.evaluation.wording import make_console, make_table
from schedgym.extras import require


@dataclasses.dataclass(frozen=True)
class Asked:
    """The arguments of ``schedgym advise``.

    Attributes:
        log: The log of jobs: CSV, TSV, Parquet, or a trace of a known format.
        machines: A table of machines, a row each.
        servers: Number of equal machines, in place of --machines.
        cpus: Cores of each of the --servers.
        memory: GiB of each of the --servers; left out: memory limits nothing.
        gpus: GPUs of each of the --servers; left out: GPUs limit nothing.
        columns (QUANTITY=COLUMN,..): Columns, or arithmetic over them, of submit, duration or end, start,
            cpus, memory, gpus, deadline, value, preemptible, tasks, nodes, job, site; a unit stands behind in
            brackets: 'submit=ts [ms],duration=0.02*tokens'. Others are found by name.
        where (COLUMN=VALUE|VALUE): Leave out rows with another value in this column; may be given repeatedly.
        empty (TEXT): A text that stands for an empty field, beside NaN, None, <none>, - and the like; may be
            given repeatedly.
        format: A trace format, or a YAML file that declares one. Default: by the columns.
        policies (A,B): Run these policies, too: names, FILE.py:NAME (runs the file).
        problem (NAME): What to ask: queue-delay, flowtime, partial-value, geo. Default: by the columns.
        preemptible: All jobs may be interrupted, as no column says.
        agent: Run the pretrained agent, too.
        report (FILE.html): Write all of it to one page.
    """

    log: Path
    _: dataclasses.KW_ONLY
    machines: Path | None = None
    servers: int | None = None
    cpus: float | None = None
    memory: float | None = None
    gpus: float | None = None
    columns: str | None = None
    where: list[str] | None = None
    empty: list[str] | None = None
    format: str | None = None
    on_error: str = "raise"
    policies: str | None = None
    problem: str | None = None
    preemptible: bool = False
    pool: bool | None = None
    agent: bool = True
    seed: int = 0
    n_jobs: int = -1
    json: Path | None = None
    report: Path | None = None


@command("advise", Asked)
def advise(asked: Asked) -> None:
    """Say which policy serves a cluster best, by how much and how sure, by its own log at its own load."""
    began = time.monotonic()
    check_output(asked.report, (".html",))
    if asked.report is not None:
        require("jinja2", "report")
    from schedgym.advice.verdict import ORDER
    from schedgym.advice.verdict import advise as run

    given = {name: value for name, value in vars(asked).items() if value is not None}
    for name in ("log", "json", "report"):
        given.pop(name, None)
    if asked.policies is not None:  # a file's are known to every problem that the log may turn out to feed
        for name in ORDER if asked.problem is None else (asked.problem,):
            given["policies"] = policy_names(asked.policies, get_problem(name))
    if asked.where is not None:
        given["where"] = {name: text.split("|") for name, text in pairs(asked.where, "--where").items()}
    found = run(asked.log, **given)
    if asked.json is not None:
        from schedgym.evaluation.manifest import make_manifest

        write_json({**found.content(), "manifest": make_manifest(seeds=[asked.seed])}, asked.json)
    if asked.report is not None:
        from schedgym.advice.page import write_page

        write_page(found, asked.report, asked.log.name)
    _print(found)
    say(f"{time.monotonic() - began:.0f} s")
    if written := [str(path) for path in (asked.json, asked.report) if path is not None]:
        say(f"wrote {', '.join(written)}")


def _print(found: Any) -> None:
    """Print what was read, the tables, the verdict, and what to bear in mind."""
    from schedgym.advice.page import conclusions, sheets

    console = make_console()
    for line in found.read:
        say(line)
    say("")
    for sheet in sheets(found):
        console.print(make_table(*sheet))
    for line in conclusions(found):
        say(line)
        if line == found.verdict:
            say("")
