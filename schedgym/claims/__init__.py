"""The papers' theorems and claims as executable checks, each with a verdict from a run.

One package per paper; ``schedgym claims`` runs them. See :mod:`schedgym.claims.frame`.
"""

from schedgym.claims.frame import (
    Claim,
    Finding,
    Result,
    Run,
    Verdict,
    check_claims,
    claim,
    list_claims,
    main,
)

__all__ = [
    "Claim",
    "Finding",
    "Result",
    "Run",
    "Verdict",
    "check_claims",
    "claim",
    "list_claims",
    "main",
]
