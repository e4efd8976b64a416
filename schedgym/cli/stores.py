"""``schedgym sweep``, ``report``, ``export`` and ``store``: fill, show, export and check stores."""

import dataclasses
from pathlib import Path

import typer

from schedgym.cli.common import application, command, say
from schedgym.core.files import check_output

stores = typer.Typer(help="Look after results stores.", rich_markup_mode=None)
application.add_typer(stores, name="store")


@dataclasses.dataclass
class Sweep:
    """The arguments of a sweep.

    Attributes:
        spec: The specification of the sweep (YAML).
        output: The results store. Default: FILE with .db.
        engine (local|ray): Run in processes of this machine (local) or on a Ray cluster (ray).
        unit_timeout (SECONDS): The longest that the episodes of one unit may take; longer ones have failed.
        retry_failed: Run units that have failed before again.
    """

    spec: Path
    _: dataclasses.KW_ONLY
    output: Path | None = None
    engine: str = "local"
    n_jobs: int = -1
    unit_timeout: float | None = None
    retry_failed: bool = False


@command("sweep", Sweep)
def sweep(asked: Sweep) -> int:
    """Run the policies, parameters and seeds of a specification, and store each result as it ends.

    Results that the store holds are not run again, so that a sweep that was cut off can be continued. The
    exit code is 1 if units have failed, or if the store or the Ray cluster was lost.
    """
    from schedgym.evaluation.sweeps import load_spec, run_sweep

    how = vars(asked).copy()
    path, output = how.pop("spec"), how.pop("output")
    spec, store = load_spec(path), output or path.with_suffix(".db")
    check_output(store)
    result = run_sweep(spec, store, **how)
    known = f", {result.skipped:,} were there" if result.skipped else ""
    say(f"{result.done:,} units in {result.seconds:.1f} s{known}; {store}")
    for unit in result.failed:
        last = unit["error"].strip().splitlines()[-1]
        who = unit["policy"] or "bounds"
        say(f"failed: {unit['id']} {who}, seed {unit['seed']}, {unit['setting']}: {last}")
    if result.failed:
        say(f"{len(result.failed)} units failed; --retry-failed runs them again")
    return 1 if result.failed else 0


@dataclasses.dataclass
class Report:
    """The arguments of a report.

    Attributes:
        output: The HTML file. Default: STORE with .html.
        policy: Draw the schedule of this policy. Default: the best and the reference.
        episode: Draw the schedule of this episode. Default: the first.
        seed: The seed of that episode. Default: the first.
        trust: Open files that the store names (workloads, traces, agents) to draw schedules.
        title: The title. Default: the store's name.
        confidence: The confidence level of all intervals.
    """

    store: Path
    _: dataclasses.KW_ONLY
    output: Path | None = None
    policy: str | None = None
    episode: int | None = None
    seed: int | None = None
    trust: bool = False
    title: str | None = None
    confidence: float = 0.95
    code: str | None = None


@command("report", Report)
def report(asked: Report) -> None:
    """Write a report on a store: one HTML file with leaderboards, plots, a schedule and the manifest.

    The file needs no network.
    """
    given = vars(asked).copy()
    store = given.pop("store")
    path = given.pop("output") or store.with_suffix(".html")
    from schedgym.evaluation.report import write_report

    remarks = write_report(store, path, **given)
    for remark in remarks:
        say(remark, stderr=True)
    say(f"wrote {path} ({path.stat().st_size / 2**20:.1f} MiB)")


@command("export")
def export(
    store: Path, *, output: Path, table: str = "episodes", id: str | None = None, code: str | None = None
) -> None:
    """Write the results of a store as a table.

    Options:
        output: The file to write (.csv or .parquet).
        table (episodes|leaderboard): One row for each value of each episode, or one for each policy.
        id: Export only this environment id, e.g. QueueDelay-v0.
    """
    from schedgym.evaluation.export import export as write

    rows = write(store, output, table=table, id=id, code=code)
    say(f"wrote {output} ({rows:,} rows)")


@command("verify", of=stores)
def verify(store: Path) -> int:
    """Check that a store is undamaged: its file, and the checksum of each unit.

    The exit code is 1 if something is wrong.
    """
    from schedgym.evaluation.store import ResultsStore

    with ResultsStore(store) as opened:
        units, faults = opened.verify()
    for fault in faults:
        say(f"{store}: {fault}")
    say(f"{store}: {units:,} units, {len(faults):,} faults")
    return 1 if faults else 0
