"""The frame of all claims: what a claim is, how claims are found, checked and shown.

A package per paper registers its claims with :func:`claim`, in the order of the paper; every module of this
package is found and imported, so that a new paper is a new folder, or a new file. A verdict comes from a run,
never from a table: the one that is stored beside a claim is only what an earlier run found, kept so that a
change is noticed.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import json as json_module
import pkgutil
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schedgym.core.files import atomic_write
from schedgym.errors import InvalidParameter, SchedgymError, UnknownName
from schedgym.evaluation.papers import PAPERS, Paper, get_paper
from schedgym.evaluation.wording import make_console
from schedgym.extras import require

__all__ = [
    "CORRECTED",
    "HOLDS",
    "MISSED",
    "REFUTED",
    "SCALES",
    "Claim",
    "Finding",
    "Instance",
    "Result",
    "Run",
    "Verdict",
    "check_claims",
    "claim",
    "import_in_order",
    "list_claims",
    "main",
    "show",
]

SCALES = ("small", "paper")

Instance = Mapping[str, Any]
Check = Callable[["Run"], "Finding"]
Confirm = Callable[[Instance], bool]


class Verdict(enum.StrEnum):
    """What a run says about a claim."""

    HOLDS = "holds"
    CORRECTED = "holds with a correction"
    REFUTED = "refuted"
    NOT_REPRODUCED = "not reproduced"


HOLDS, CORRECTED, REFUTED = Verdict.HOLDS, Verdict.CORRECTED, Verdict.REFUTED
MISSED = Verdict.NOT_REPRODUCED


@dataclasses.dataclass(frozen=True)
class Run:
    """How a claim is checked.

    Attributes:
        scale: "small" (seconds) or "paper" (minutes).
        rng: random numbers of this claim alone, whatever else is checked.
        seed: of the whole check, so that claims about the same runs can share them.
    """

    scale: str
    rng: np.random.Generator
    seed: int

    @property
    def small(self) -> bool:
        """Whether the run must be short."""
        return self.scale == "small"


@dataclasses.dataclass(frozen=True)
class Finding:
    """What one run found.

    Attributes:
        verdict: of this run.
        evidence: one line: what was searched or measured.
        counterexample: the instance against the claim as printed: numbers, texts and lists of them, exact
            fractions as texts ("5/2"). Required of "refuted" and "holds with a correction".
        witness: the instance that proves a claim of existence.
        figures: what was counted or measured, by name.
    """

    verdict: Verdict
    evidence: str
    counterexample: Instance | None = None
    witness: Instance | None = None
    figures: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Claim:
    """A theorem or claim of a paper as an executable check.

    Attributes:
        name: "paper/claim".
        paper: where it is from.
        text: what is claimed, in one line.
        source: theorem, section, figure or page.
        recorded: the verdict that a run is expected to find.
        check: does the work.
        confirm: recomputes an instance (counterexample or witness) exactly, by other means than the search,
            and says whether it shows what it is meant to show.
    """

    name: str
    paper: Paper
    text: str
    source: str
    recorded: Verdict
    check: Check
    confirm: Confirm | None = None


@dataclasses.dataclass(frozen=True)
class Result:
    """A claim, what the run found, and the seconds it took."""

    claim: Claim
    finding: Finding
    seconds: float

    @property
    def as_recorded(self) -> bool:
        """Whether the run found the recorded verdict."""
        return self.finding.verdict is self.claim.recorded

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-serialisable."""
        return {
            "claim": self.claim.name,
            "text": self.claim.text,
            "source": self.claim.source,
            "recorded": str(self.claim.recorded),
            "found": str(self.finding.verdict),
            "evidence": self.finding.evidence,
            "counterexample": self.finding.counterexample,
            "witness": self.finding.witness,
            "figures": dict(self.finding.figures),
            "seconds": round(self.seconds, 3),
        }


_CLAIMS: dict[str, Claim] = {}


def claim(
    paper: Paper, name: str, *, text: str, source: str, recorded: Verdict, confirm: Confirm | None = None
) -> Callable[[Check], Check]:
    """Decorator of a check: registers the claim ``paper.name/name``.

    Raises:
        ValueError: if the name is taken by another check.
    """

    def enter(check: Check) -> Check:
        full = f"{paper.name}/{name}"
        known = _CLAIMS.get(full)
        if known is not None and known.text != text:
            raise ValueError(f"claim {full!r} is registered already")
        _CLAIMS[full] = Claim(full, paper, text, source, recorded, check, confirm)
        return check

    return enter


def import_in_order(package: str, modules: Sequence[str]) -> None:
    """Import the modules of a paper's package in the order in which its claims are listed.

    Whichever module is asked for first: Python imports the package before it.
    """
    for module in modules:
        importlib.import_module(f"{package}.{module}")


@functools.cache
def _discover() -> None:
    package = importlib.import_module("schedgym.claims")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


def list_claims(paper: str | None = None) -> list[Claim]:
    """All claims in the order of the papers, of one paper, or a single one.

    Args:
        paper: a paper's number or name, or a claim's name; None for all.

    Raises:
        UnknownName: no paper and no claim has this name.
    """
    _discover()
    head, slash, tail = (paper or "").partition("/")
    if slash and head in (numbers := {entry.number: entry.name for entry in PAPERS}):
        paper = f"{numbers[head]}/{tail}"
    if paper in _CLAIMS:
        return [_CLAIMS[paper]]
    if paper is not None and "/" in paper:
        raise UnknownName("claim", paper, _CLAIMS)
    papers = sorted({entry.paper for entry in _CLAIMS.values()}, key=lambda entry: entry.number)
    chosen = papers if paper is None else [get_paper(paper, papers)]
    return [entry for one in chosen for entry in _CLAIMS.values() if entry.paper == one]


def check_claims(
    paper: str | None = None,
    scale: str = "small",
    seed: int = 0,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Result]:
    """Check claims: a verdict for each, from this run.

    Args:
        paper: a paper's number or name, or a claim's name; None for all.
        scale: "small" (seconds a paper) or "paper" (minutes).
        seed: of everything random.
        progress: called with (claims done, claims in all, name of the next; "" at the end).

    Returns:
        A result for each claim, in the order of the paper.

    Raises:
        UnknownName: no such paper, claim or scale.
        InvalidParameter: a negative seed.
        SchedgymError: a finding contradicts itself: its instance is missing or does not show what it should.
    """
    if scale not in SCALES:
        raise UnknownName("scale", scale, SCALES)
    if seed < 0:
        raise InvalidParameter(f"seed: must be at least 0, got {seed}")
    claims = list_claims(paper)
    results = []
    for done, entry in enumerate(claims):
        if progress is not None:
            progress(done, len(claims), entry.name)
        began = time.perf_counter()
        run = Run(scale, np.random.default_rng([seed, zlib.crc32(entry.name.encode())]), seed)
        finding = entry.check(run)
        _examine(entry, finding)
        results.append(Result(entry, finding, time.perf_counter() - began))
    if progress is not None:
        progress(len(claims), len(claims), "")
    return results


def _examine(entry: Claim, finding: Finding) -> None:
    """A verdict against the printed claim has an instance, and every instance is confirmed."""
    against = finding.verdict in (Verdict.REFUTED, Verdict.CORRECTED)
    if against and finding.counterexample is None:
        raise SchedgymError(f"{entry.name}: {finding.verdict}, and no counterexample")
    if not against and finding.counterexample is not None:
        raise SchedgymError(f"{entry.name}: {finding.verdict}, and a counterexample")
    for instance in (finding.counterexample, finding.witness):
        if instance is not None and (entry.confirm is None or not entry.confirm(instance)):
            raise SchedgymError(f"{entry.name}: {dict(instance)} is not confirmed")


def show(instance: Instance) -> str:
    """An instance as "name value, name value"; lists in brackets."""
    return ", ".join(f"{name.replace('_', ' ')} {_brief(value)}" for name, value in instance.items())


def _brief(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_brief(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_brief(item) for item in value) + "]"
    return str(value)


def main(
    paper: str | None = None, scale: str = "small", seed: int = 0, json: str | Path | None = None
) -> int:
    """Check claims, print a table and the counterexamples, and write JSON if a file is named.

    Args:
        paper: a paper's number or name, or a claim's name; None for all.
        scale: "small" or "paper".
        seed: of everything random.
        json: file for the results.

    Returns:
        0 if every verdict found is the recorded one, else 1.
    """
    console = make_console()
    escape = require("rich.markup").escape
    began = time.perf_counter()
    with console.status("") as status:

        def tell(done: int, total: int, name: str) -> None:
            status.update(escape(f"{done}/{total} {name}"))

        results = check_claims(paper, scale, seed, tell)
    papers = {result.claim.paper for result in results}
    for entry in sorted(papers, key=lambda found: found.number):
        _print_paper(console, entry, [result for result in results if result.claim.paper == entry])
    differing = [result for result in results if not result.as_recorded]
    for result in differing:
        text = f"{result.claim.name}: recorded {result.claim.recorded!s}, found {result.finding.verdict!s}"
        console.print(escape(text), style="bold red", soft_wrap=True)
    seconds = time.perf_counter() - began
    console.print(
        f"{len(results)} claims, scale {scale}, seed {seed}, {seconds:.1f} s; "
        + (f"{len(differing)} not as recorded" if differing else "all verdicts as recorded")
    )
    if json is not None:
        from schedgym.evaluation.manifest import make_manifest

        content = {
            "claims": [result.to_dict() for result in results],
            "manifest": make_manifest(seeds=[seed], scale=scale, paper=paper),
        }
        with atomic_write(json) as stream:
            stream.write(json_module.dumps(content, indent=1, allow_nan=False) + "\n")
        console.print(escape(f"wrote {json}"), soft_wrap=True)
    return 1 if differing else 0


def _print_paper(console: Any, paper: Paper, results: Sequence[Result]) -> None:
    escape = require("rich.markup").escape
    table = require("rich.table").Table(
        title=escape(f"{paper.number} {paper.name}: {paper.title}"),
        title_justify="left",
        title_style="bold",
        box=require("rich.box").SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("claim", no_wrap=True)
    table.add_column("source")
    table.add_column("verdict")
    table.add_column("evidence", ratio=1)
    table.add_column("s", justify="right")
    styles = {Verdict.HOLDS: "green", Verdict.CORRECTED: "yellow", Verdict.REFUTED: "red"}
    for result in results:
        verdict = result.finding.verdict
        colour = styles.get(verdict, "magenta")
        mark = "" if result.as_recorded else f" (recorded: {result.claim.recorded!s})"
        table.add_row(
            escape(result.claim.name.partition("/")[2]),
            escape(result.claim.source),
            f"[{colour}]{escape(str(verdict) + mark)}[/{colour}]",
            escape(result.finding.evidence),
            f"{result.seconds:.1f}",
        )
    console.print(table)
    for kind in ("counterexample", "witness"):
        shown = [(r, getattr(r.finding, kind)) for r in results if getattr(r.finding, kind) is not None]
        if shown:
            console.print(f"{'Counterexamples' if kind == 'counterexample' else 'Witnesses'}", style="bold")
        for result, instance in shown:
            console.print(f"[bold]{escape(result.claim.name.partition('/')[2])}[/bold]: ", end="")
            console.print(escape(result.claim.text), soft_wrap=True)
            console.print("  " + escape(show(instance)), soft_wrap=True)
    console.print()
