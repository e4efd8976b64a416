"""What the tests of every paper's claims share."""

from __future__ import annotations

import pickle

import pytest
from filelock import FileLock

from schedgym.papers import check_claims, list_claims
from schedgym.papers.claims import Result
from tests.papers.recorded import takes_minutes


@pytest.fixture(scope="module")
def results(request, tmp_path_factory, worker_id):
    """The results on the small scale of the claims of the test module's PAPER, by PAPER/NAME.

    They take minutes, so the first process that needs them writes them for the others.
    """
    paper = request.module.PAPER
    folder = tmp_path_factory.getbasetemp()
    path = (folder if worker_id == "master" else folder.parent) / f"{paper}.pickle"
    with FileLock(f"{path}.lock"):
        if not path.exists():
            names = [entry.name for entry in list_claims(paper)]
            late = [name for name in names if takes_minutes(name)]
            checked = check_claims(*sorted(set(names) - set(late)))
            if late:
                checked += check_claims(*late, scale="tiny")
            found = {result.claim.name: (result.findings, result.seconds) for result in checked}
            path.write_bytes(pickle.dumps(found))
    kept = pickle.loads(path.read_bytes())
    return {claim.name: Result(claim, *kept[claim.name]) for claim in list_claims(paper)}
