"""Check the papers' claims: each gets a verdict from this run; instances are written as texts."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from schedgym.papers.judging import Finding, Shown, confirm_finding
from schedgym.papers.registry import Claim, list_claims
from schedgym.papers.run import Run

__all__ = ["Result", "check_claims", "show"]


@dataclasses.dataclass(frozen=True)
class Result:
    """A claim, what the run found, and the seconds it took."""

    claim: Claim
    finding: Finding
    seconds: float

    @property
    def as_recorded(self) -> bool:
        """True if the run found the recorded verdict."""
        return self.finding.verdict is self.claim.recorded

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as a dict that is JSON-serialisable."""
        return {
            "claim": self.claim.name,
            "ours": self.claim.ours,
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


def check_claims(
    *names: str,
    scale: str = "small",
    seed: int = 0,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Result]:
    """Check claims: a verdict for each, from this run.

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
    for done, entry in enumerate(claims):
        if progress is not None:
            progress(done, len(claims), entry.name)
        began = time.perf_counter()
        finding = entry.check(run.alone(entry.stream))
        confirm_finding(entry.name, finding, entry.confirm)
        results.append(Result(entry, finding, time.perf_counter() - began))
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
