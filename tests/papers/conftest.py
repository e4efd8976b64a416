"""What the tests of every paper's claims share."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from schedgym.evaluation.store import ResultsStore
from schedgym.papers import Claim, Outcome, Run, check_claims, list_claims, list_figures, registry
from schedgym.papers.claims import Result
from tests.papers.recorded import is_tiny


class Results(dict[str, Result]):
    """The result of each claim by its name, on the small scale where that does not take long.

    The claims of a module share runs, so the first process that needs one of them checks them all, and writes
    what it finds for the others.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __missing__(self, name: str) -> Result:
        (own,) = list_claims(name)
        module = own.check.__module__
        claims = [claim for claim in list_claims(own.paper.key) if claim.check.__module__ == module]
        path = self.folder / f"{module}.pickle"
        with FileLock(f"{path}.lock"):
            if not path.exists():
                path.write_bytes(pickle.dumps(found_by_name(claims)))
        kept = pickle.loads(path.read_bytes())
        self.update({claim.name: Result(claim, *kept[claim.name]) for claim in claims})
        return self[name]


def found_by_name(claims: list[Claim]) -> dict:
    """Findings and seconds of claims by their names."""
    tiny = [claim.name for claim in claims if is_tiny(claim)]
    small = [claim.name for claim in claims if claim.name not in tiny]
    checked = [*(check_claims(*small) if small else ()), *(check_claims(*tiny, scale="tiny") if tiny else ())]
    return {result.claim.name: (result.findings, result.seconds) for result in checked}


@pytest.fixture
def empty(monkeypatch) -> None:
    """An empty registry, and nothing to discover."""
    monkeypatch.setattr(registry, "_ENTRIES", {})
    monkeypatch.setattr(registry, "_discover", lambda: None)


@pytest.fixture(scope="session")
def results(tmp_path_factory, worker_id) -> Results:
    folder = tmp_path_factory.getbasetemp()
    return Results(folder if worker_id == "master" else folder.parent)


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory) -> Iterator[Callable[[str], Run]]:
    """A run on the tiny scale for each paper, so that its experiments are run once."""
    with ResultsStore(tmp_path_factory.mktemp("run") / "episodes.db", "w") as store:
        yield functools.cache(lambda paper: Run("tiny", n_jobs=1, progress=False, store=store))


@pytest.fixture(scope="module")
def run(request, tiny_run) -> Run:
    """The run of the paper in whose folder the tests are."""
    return tiny_run(request.path.parent.name)


@pytest.fixture(scope="module")
def outcomes(run, request) -> dict[str, Outcome]:
    """Its figures by their names."""
    return {entry.name: entry.make(run) for entry in list_figures(request.path.parent.name)}
