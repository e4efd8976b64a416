"""What the tests of every paper's claims share."""

from __future__ import annotations

import pytest

from schedgym.papers import check_claims


@pytest.fixture(scope="module")
def results(request):
    """The results on the small scale of the claims of the test module's PAPER, by PAPER/NAME."""
    return {result.claim.name: result for result in check_claims(request.module.PAPER)}
