"""``schedgym advise``: which policy serves a cluster best, by its own log."""

# annotations are evaluated: typer reads them
import dataclasses
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from schedgym.cli.common import (
    Json,
    Processes,
    Seed,
    application,
    check_output,
    make_table,
    pairs,
    policy_names,
    say,
    takes,
    write_json,
)
from schedgym.core.problem import get_problem
from schedgym.evaluation.wording import interval_text, make_console, percent_text, time_text

__all__ = ["Asked", "advise"]


@dataclasses.dataclass(frozen=True)
class Asked:
    """The arguments of ``schedgym advise``."""

    log: Annotated[
        Path, typer.Argument(help="The log of jobs: CSV, TSV, Parquet, or a trace of a known format.")
    ]
    machines: Annotated[
        Path | None, typer.Option("--machines", metavar="FILE", help="A table of machines, a row each.")
    ] = None
    servers: Annotated[
        int | None, typer.Option("--servers", help="Number of equal machines, in place of --machines.")
    ] = None
    cpus: Annotated[float | None, typer.Option("--cpus", help="Cores of each of the --servers.")] = None
    memory: Annotated[
        float | None,
        typer.Option("--memory", help="GiB of each of the --servers; left out: memory limits nothing."),
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="QUANTITY=COLUMN,..",
            help="Columns, or arithmetic over them, of submit, duration or end, start, cpus, memory; a unit "
            "stands behind in brackets: 'submit=ts [ms],duration=0.02*tokens'. Others are found by name.",
        ),
    ] = None
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="COLUMN=VALUE|VALUE",
            help="Leave out rows with another value in this column; may be given repeatedly.",
        ),
    ] = None
    format: Annotated[
        str | None,
        typer.Option(
            "--format", help="A trace format, or a YAML file that declares one. Default: by the columns."
        ),
    ] = None
    on_error: Annotated[
        str,
        typer.Option(
            "--on-error", metavar="raise|skip", help="Stop at a malformed row, or leave such rows out."
        ),
    ] = "raise"
    policies: Annotated[
        str | None,
        typer.Option(
            "--policies", metavar="A,B", help="Run these policies, too: names, FILE.py:NAME (runs the file)."
        ),
    ] = None
    agent: Annotated[bool, typer.Option("--agent/--no-agent", help="Run the pretrained agent, too.")] = True
    seed: Seed = 0
    n_jobs: Processes = -1
    json: Json = None


@application.command("advise")
@takes(Asked)
def advise(asked: Asked) -> None:
    """Say which policy serves a cluster best, by how much and how sure, by its own log at its own load."""
    began = time.monotonic()
    check_output(asked.json)
    from schedgym.evaluation.advice import advise as run

    where = {name: text.split("|") for name, text in pairs(asked.where, "--where").items()}
    given = {
        name: getattr(asked, name)
        for name in ("machines", "servers", "cpus", "memory", "columns", "format")
        if getattr(asked, name) is not None
    }
    found = run(
        asked.log,
        **given,
        where=where or None,
        on_error=asked.on_error,
        policies=() if asked.policies is None else policy_names(asked.policies, get_problem("queue-delay")),
        agent=asked.agent,
        seed=asked.seed,
        n_jobs=asked.n_jobs,
    )
    _print(found)
    say(f"{time.monotonic() - began:.0f} s")
    if asked.json is not None:
        from schedgym.evaluation.manifest import make_manifest

        write_json({**found.content(), "manifest": make_manifest(seeds=[asked.seed])}, asked.json)
        say(f"wrote {asked.json}")


def _print(found: Any) -> None:
    """Print what was read, the tables, the verdict, and what to bear in mind."""
    console = make_console()
    for line in found.read:
        say(line)
    say("")
    console.print(_comparison(found.comparison, "The log at its own load"))
    if found.ramp:
        last = found.ramp[-1]
        console.print(_ramp((found.comparison, *found.ramp)))
        if last.differ:
            console.print(_comparison(last, f"The log at {last.factor:g} times its load"))
    if found.replay is not None:
        console.print(_record(found.replay))
        console.print(_hours(found.replay))
        say(found.replay.verdict)
    say("")
    say(found.verdict)
    say("")
    say("Times are means over the windows; *: the interval excludes 0.")
    for line in found.notes:
        say(line)
    needs = "; ".join(f"{name} {why}" for name, why in found.others.items())
    say(f"The log feeds {found.problem}; of the other problems, {needs}.")


def _comparison(comparison: Any, title: str) -> Any:
    reference = comparison.reference
    bounded = comparison.run.bound is not None
    headings = ["policy", "mean wait", "95% interval", f"vs {reference}", "95% interval of it", "[%]"]
    headings += ["p95", "longest", "must know", "policy time [s]"]
    rows: list[list[str] | None] = []
    for row in comparison.table().to_dict("records"):
        low, high = row["difference_low"], row["difference_high"]
        same = row["policy"] == reference
        mark = " *" if low > 0 or high < 0 else ""
        rows.append(
            [
                row["policy"],
                time_text(row["mean"]),
                interval_text(row["low"], row["high"], time_text),
                "reference" if same else _signed(row["difference"]) + mark,
                "" if same else interval_text(low, high, _signed),
                "" if same else percent_text(100 * row["relative"]),
                time_text(row["p95"]),
                time_text(row["longest"]),
                row["knows"] or "-",
                f"{row['seconds']:.2g}",
            ]
        )
    if bounded:
        rows += [None, ["bound: no policy has less", time_text(comparison.run.bound), *[""] * 8]]
    return make_table(title, headings, rows)


def _signed(seconds: float) -> str:
    return ("+" if seconds > 0 else "") + time_text(seconds)


def _ramp(comparisons: Any) -> Any:
    policies = list(comparisons[-1].run.outcomes)
    rows = [
        [f"{one.factor:g}x", *(time_text(float(one.run.means(policy).mean())) for policy in policies)]
        for one in comparisons
    ]
    return make_table("Mean wait at multiples of the log's load", ["load", *policies], rows)


def _record(replay: Any) -> Any:
    headings = ["replay under", "jobs", "recorded median", "p90", "replayed median", "p90 of it"]
    headings += ["median error", "p90 error", "mean error"]
    names = ["recorded median", "recorded p90", "predicted median", "predicted p90"]
    names += ["median |error|", "p90 |error|", "mean error"]
    rows = []
    for row in replay.table().to_dict("records"):
        rows.append([row["policy"], str(row["jobs"]), *(time_text(row[name]) for name in names)])
    return make_table("Waits in the replay, and as the log has recorded them", headings, rows)


def _hours(replay: Any) -> Any:
    frame = replay.by_hour()
    times = [name for name in frame.columns if name not in ("hour", "jobs")]
    rows = [
        [f"{row['hour']:02d}", str(row["jobs"]), *(time_text(row[name]) for name in times)]
        for row in frame.to_dict("records")
    ]
    clock = "hour of the day (UTC)" if replay.dated else "hour of the day, by the log's clock"
    return make_table(f"The same by {clock}", ["hour", "jobs", *times], rows)
