"""The commands ``schedgym claims`` and ``schedgym reproduce``: run the experiments, print the results."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from schedgym.core.files import atomic_write
from schedgym.evaluation.manifest import make_manifest
from schedgym.evaluation.statements import CORRECTED, HOLDS, IN_PART, NOT_REPRODUCED, REFUTED
from schedgym.evaluation.wording import make_console, make_table
from schedgym.extras import require
from schedgym.papers.claims import Result, check_claims, show
from schedgym.papers.figures import reproduce
from schedgym.papers.judging import NOT_JUDGED, NOT_TOLD
from schedgym.papers.paper import Paper
from schedgym.papers.readings import OTHERWISE, count_verdicts, kind_of
from schedgym.papers.registry import list_claims, list_figures
from schedgym.papers.verdicts import HEADS, count_row, statements

COLOURS: dict[str, str] = {
    HOLDS: "green",
    OTHERWISE: "yellow",
    CORRECTED: "yellow",
    IN_PART: "yellow",
    REFUTED: "red",
    NOT_REPRODUCED: "magenta",
    NOT_TOLD: "dim",
    NOT_JUDGED: "dim",
}


def print_claims(
    names: Sequence[str] = (), scale: str = "small", seed: int = 0, path: str | Path | None = None
) -> int:
    """Check claims, print a table and the counterexamples, and write JSON if a file is named.

    Args:
        names: papers or claims; all claims if none is given.
        scale: "small" or "paper".
        seed: seed of all random numbers.
        path: JSON file for the results.

    Returns:
        0 if every verdict found is the recorded one, else 1.
    """
    console = make_console()
    began = time.perf_counter()
    with console.status("") as status:

        def tell(done: int, total: int, name: str) -> None:
            status.update(require("rich.text").Text(f"{done}/{total} {name}"))

        results = check_claims(*names, scale=scale, seed=seed, progress=tell)
    if path is not None:
        content = {
            "claims": [result.to_dict() for result in results],
            "manifest": make_manifest(seeds=[seed], scale=scale, names=list(names)),
        }
        with atomic_write(path) as stream:
            stream.write(json.dumps(content, indent=1, allow_nan=False) + "\n")
    papers = list(dict.fromkeys(result.claim.paper for result in results))
    found = {result.claim.name: result.verdicts for result in results}
    for paper in papers:
        _print_paper(console, paper, [result for result in results if result.claim.paper == paper], found)
    whole = [paper for paper in papers if all(claim.name in found for claim in list_claims(paper.key))]
    _print_counts(console, whole, found)
    differing = [result for result in results if not result.as_recorded]
    for result in differing:
        for reading, (recorded, verdict) in result.differing.items():
            under = f" under {reading}" if reading else ""
            text = f"{result.claim.name}{under}: recorded {recorded}, found {verdict}"
            console.print(text, style="bold red", soft_wrap=True)
    ours = sum(result.claim.ours for result in results)
    counted = f"{len(results) - ours} claims" + (f" and {ours} besides that no paper makes" if ours else "")
    console.print(
        f"{counted}, scale {scale}, seed {seed}, {time.perf_counter() - began:.1f} s; "
        + (f"{len(differing)} not as recorded" if differing else "all verdicts as recorded")
    )
    if path is not None:
        console.print(f"wrote {path}", soft_wrap=True)
    return 1 if differing else 0


def _print_counts(console: Any, papers: Sequence[Paper], found: Mapping[str, Mapping[str, str]]) -> None:
    """Print the table of how many statements of whole papers hold, with what the figures show of them."""
    if not papers:
        return
    title = "The papers' statements: the claims of this run, and what the committed figures show"
    right = {heading: {"justify": "right"} for heading in HEADS[1:]}
    console.print(make_table(title, HEADS, [count_row(paper, found) for paper in papers], **right))


def _print_paper(
    console: Any, paper: Paper, results: Sequence[Result], found: Mapping[str, Mapping[str, str]]
) -> None:
    """Print the claims of a paper, their count by verdict, what it does not state itself, and instances."""
    titles = {False: f"{paper.key}: {paper.title}", True: f"{paper.key}: statements that it does not make"}
    stated = {said.name: said.verdict for said in statements(paper, found)}
    for ours, title in titles.items():
        if own := [result for result in results if result.claim.ours == ours]:
            _print_verdicts(console, title, own, stated)
            if not ours:
                console.print(count_verdicts(result.verdict for result in own), soft_wrap=True)
    for kind in ("counterexample", "witness"):
        shown = [(r, getattr(r.finding, kind)) for r in results if getattr(r.finding, kind) is not None]
        if shown:
            console.print("Counterexamples" if kind == "counterexample" else "Witnesses", style="bold")
        for result, instance in shown:
            console.print(result.claim.short, style="bold", end="")
            console.print(f": {result.claim.text}", soft_wrap=True)
            console.print("  " + show(instance), soft_wrap=True)
    console.print()


def _print_verdicts(console: Any, title: str, results: Sequence[Result], stated: Mapping[str, str]) -> None:
    """Print claims with the verdicts of the run and, where it is another one, that with their figures."""
    columns: dict[str, dict[str, Any]] = {"claim": {"no_wrap": True}, "source": {}, "verdict": {}}
    columns |= {"evidence": {"ratio": 1}, "s": {"justify": "right"}}
    rows = []
    for result in results:
        verdict = result.verdict
        colour = COLOURS[kind_of(verdict)]
        mark = "" if result.as_recorded else f" (recorded: {result.claim.verdict})"
        if (whole := stated.get(result.claim.name, verdict)) != verdict:
            mark += f"; with its figures: {whole}"
        told = require("rich.text").Text(verdict + mark, colour)
        seconds = f"{result.seconds:.1f}"
        rows.append((result.claim.short, result.claim.source, told, result.finding.evidence, seconds))
    console.print(make_table(title, [*columns], rows, **columns))


def print_figures(
    names: Sequence[str] = (),
    scale: str = "small",
    folder: str | Path = "reproduced",
    seed: int = 0,
    n_jobs: int = -1,
    again: bool = False,
    show: bool = False,
    all_readings: bool = False,
) -> int:
    """Make figures, and print each claim beside what was measured.

    Args:
        names: papers or figures; all figures if none is given.
        scale: "small", "paper" or "tiny".
        folder: folder of the files.
        seed: seed of the workloads.
        n_jobs: number of processes.
        again: True to make figures again whose files exist.
        show: True to list the figures instead of making them.
        all_readings: True to run all readings at the papers' sizes, too, but for those that would take hours.

    Returns:
        0, or 1 if a figure could not be made.
    """
    console = make_console()
    if show:
        rows = [(entry.name, entry.source, entry.title) for entry in list_figures(*names)]
        console.print(make_table("", ("figure", "source", "shows"), rows))
        return 0

    def tell(content: dict[str, Any], kept: bool) -> None:
        if "error" in content:
            text = f"{content['figure']} cannot be made: {content['error']}"
            console.print(text, style="bold red", soft_wrap=True)
            return
        note = "kept from an earlier run" if kept else f"{content['seconds']:.1f} s"
        console.print(content["figure"], style="bold", end="")
        console.print(f" {content['title']} ({note})")
        console.print(f"  {content['sizes']}", soft_wrap=True)
        for judged in content["claims"]:
            verdict = judged["verdict"]
            console.print(f"  {verdict}", style=COLOURS[kind_of(verdict)], end="")
            console.print(f": {judged['claim']}", soft_wrap=True)
            console.print(f"    {judged['measured']}", soft_wrap=True)
        for remark in content["remarks"]:
            console.print(f"  {remark}", soft_wrap=True, style="dim")

    contents = reproduce(
        *names,
        scale=scale,
        folder=folder,
        seed=seed,
        n_jobs=n_jobs,
        again=again,
        all_readings=all_readings,
        tell=tell,
    )
    made = [content for content in contents if "error" not in content]
    counts = count_verdicts(judged["verdict"] for content in made for judged in content["claims"])
    figures = f"{len(made)} figures" + (f" of {len(contents)}" if len(made) < len(contents) else "")
    console.print(f"{figures}, scale {scale}, seed {seed}, {counts}; in {folder}/")
    return int(len(made) < len(contents))
