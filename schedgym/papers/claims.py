"""Check the papers' claims: each gets a verdict from this run; instances are written as texts."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from schedgym.evaluation.statements import Verdict
from schedgym.evaluation.store import ResultsStore
from schedgym.papers.judging import Finding, Shown, confirm_finding
from schedgym.papers.readings import sum_up
from schedgym.papers.registry import Claim, list_claims
from schedgym.papers.run import Run


@dataclasses.dataclass(frozen=True)
class Result:
    """A claim, what the run found under each reading, and the seconds it took.

    Attributes:
        claim: the claim.
        findings: name of the reading ("" if there is only one) -> finding; the first is that of the defaults.
        seconds: for all readings.
    """

    claim: Claim
    findings: Mapping[str, Finding]
    seconds: float

    @property
    def finding(self) -> Finding:
        """The finding under the default reading."""
        return next(iter(self.findings.values()))

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict by the words of the reading."""
        return {reading: finding.verdict for reading, finding in self.findings.items()}

    @property
    def verdict(self) -> str:
        """The verdicts under all readings in one: :func:`~schedgym.papers.readings.sum_up`."""
        return sum_up(self.verdicts)

    @property
    def differing(self) -> dict[str, tuple[Verdict, Verdict]]:
        """Reading -> recorded verdict and the one found, where they differ."""
        pairs = {name: (self.claim.recorded[name], own.verdict) for name, own in self.findings.items()}
        return {name: pair for name, pair in pairs.items() if pair[0] is not pair[1]}

    @property
    def as_recorded(self) -> bool:
        """True if the recorded verdict was found under every reading."""
        return not self.differing

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as a dict that is JSON-serialisable."""
        finding = self.finding
        return {
            "claim": self.claim.name,
            "ours": self.claim.ours,
            "text": self.claim.text,
            "source": self.claim.source,
            "recorded": {name: str(verdict) for name, verdict in self.claim.recorded.items()},
            "verdict": self.verdict,
            "found": str(finding.verdict),
            "evidence": finding.evidence,
            "counterexample": finding.counterexample,
            "witness": finding.witness,
            "figures": dict(finding.figures),
            "readings": {
                name: {"found": str(own.verdict), "evidence": own.evidence, "figures": dict(own.figures)}
                for name, own in self.findings.items()
                if name
            },
            "seconds": round(self.seconds, 3),
        }


def check_claims(
    *names: str, scale: str = "small", seed: int = 0, progress: Callable[[int, int, str], None] | None = None
) -> list[Result]:
    """Check claims: a verdict for each, from this run, under each reading that matters to it.

    Args:
        names: papers or claims; all claims if none is given.
        scale: "small" (seconds a paper) or "paper" (minutes).
        seed: seed of all random numbers.
        progress: called with (claims done, claims in all, name of the next claim, "" at the end).

    Returns:
        A result for each claim, in the order of the paper.

    Raises:
        UnknownName: no such paper, claim or scale.
        InvalidParameter: a seed out of range.
        SchedgymError: a finding contradicts itself: its instance is missing or does not show what it should.
    """
    run = Run(scale, seed, progress=False)
    claims = list_claims(*names)
    results = []
    with (
        tempfile.TemporaryDirectory(prefix="schedgym-") as folder,
        ResultsStore(Path(folder) / "episodes.db", "w") as run.store,
    ):
        for done, entry in enumerate(claims):
            if progress is not None:
                progress(done, len(claims), entry.name)
            began = time.perf_counter()
            findings = {}
            for words, reading in entry.readings.items():
                findings[words] = entry.check(run.alone(entry.stream, reading))
                confirm_finding(entry.name, findings[words], entry.confirm)
            results.append(Result(entry, findings, time.perf_counter() - began))
    if progress is not None:
        progress(len(claims), len(claims), "")
    return results


def show(instance: Shown) -> str:
    """Write an instance as "name value, name value", with lists in brackets."""
    return ", ".join(f"{name.replace('_', ' ')} {_brief(value)}" for name, value in instance.items())


def _brief(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_brief(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_brief(item) for item in value) + "]"
    return str(value)
