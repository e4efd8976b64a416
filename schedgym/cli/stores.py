"""``schedgym sweep``, ``report`` and ``export``: results stores filled, shown and written as tables."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from schedgym.cli.common import application, check_output, say

__all__ = ["export", "report", "sweep"]

Store = Annotated[Path, typer.Argument(metavar="STORE", help="Of `schedgym sweep`.")]
Code = Annotated[
    str | None, typer.Option("--code", metavar="VERSION", help="Of the results; default: the newest.")
]


@application.command("sweep")
def sweep(
    spec: Annotated[Path, typer.Argument(metavar="FILE", help="What is run (YAML).")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The store; default: FILE with .db."),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="local|ray", help="Processes here, or a Ray cluster.")
    ] = "local",
    n_jobs: Annotated[int, typer.Option("--n-jobs", help="Processes; -1: one per core.")] = -1,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run again what has failed before.")
    ] = False,
) -> int:
    """Run all that a specification names, and store each result as it ends.

    What the store holds is not run again: a sweep that was cut off goes on. The exit code is 1 if units
    have failed.
    """
    from schedgym.evaluation.sweeps import load_spec, run_sweep

    wanted = load_spec(spec)
    store = output or spec.with_suffix(".db")
    check_output(store)
    result = run_sweep(wanted, store, engine=engine, n_jobs=n_jobs, retry_failed=retry_failed)
    known = f", {result.skipped:,} were there" if result.skipped else ""
    say(f"{result.done:,} units in {result.seconds:.1f} s{known}; {store}")
    for unit in result.failed:
        last = unit["error"].strip().splitlines()[-1]
        who = unit["policy"] or "bounds"
        say(f"failed: {unit['id']} {who}, seed {unit['seed']}, {unit['setting']}: {last}")
    if result.failed:
        say(f"{len(result.failed)} units failed; --retry-failed runs them again")
    return 1 if result.failed else 0


@application.command("report")
def report(
    store: Store,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default: STORE with .html.")
    ] = None,
    policy: Annotated[str | None, typer.Option("--policy", help="Whose schedule is drawn.")] = None,
    episode: Annotated[int | None, typer.Option("--episode", help="That is drawn.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of that episode.")] = None,
    title: Annotated[str | None, typer.Option("--title", help="Default: the store's name.")] = None,
    confidence: Annotated[float, typer.Option("--confidence", help="Of all intervals.")] = 0.95,
    code: Code = None,
) -> None:
    """Write one HTML file that needs no network: leaderboards, plots, a schedule, the manifest."""
    path = output or store.with_suffix(".html")
    check_output(path)
    from schedgym.evaluation.report import write_report

    remarks = write_report(
        store,
        path,
        policy=policy,
        episode=episode,
        seed=seed,
        title=title,
        confidence=confidence,
        code=code,
    )
    for remark in remarks:
        print(remark, file=sys.stderr)
    print(f"wrote {path} ({path.stat().st_size / 2**20:.1f} MiB)")


@application.command("export")
def export(
    store: Store,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="A .csv or .parquet file.")],
    table: Annotated[
        str,
        typer.Option("--table", metavar="episodes|leaderboard", help="A row per value, or per policy."),
    ] = "episodes",
    id: Annotated[str | None, typer.Option("--id", help="Only this environment id.")] = None,
    code: Code = None,
) -> None:
    """Write what a store holds as a table."""
    check_output(output)
    from schedgym.evaluation.export import export as write

    rows = write(store, output, table=table, id=id, code=code)
    print(f"wrote {output} ({rows:,} rows)")
