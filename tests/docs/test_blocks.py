"""Every code block of the README and of the hand-written pages runs; see :mod:`tests.docs.blocks`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import COMMANDS, ROOT, commands, elsewhere, needs_trace, read_blocks
from tests.long import long, some
from tests.tables import table

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LIMIT = 600.0  # s that a document may take: a minute at most, but for cold kernels on a busy machine


def cases():
    """Each document with blocks, and once more with the commands that need a public trace."""
    for document in DOCUMENTS:
        blocks = read_blocks(document)
        lines = [line for block in blocks if block.language in COMMANDS for _, line in commands(block)]
        name = document.relative_to(ROOT).as_posix()
        if blocks:
            yield pytest.param(document, False, id=name, marks=long)
        if any(needs_trace(line) for line in lines):
            without = "SCHEDGYM_DATA" not in os.environ
            skip = pytest.mark.skipif(without, reason="needs the traces (SCHEDGYM_DATA)")
            yield pytest.param(document, True, id=f"{name}, traces", marks=(skip, long))


@pytest.mark.parametrize(("document", "traces"), list(cases()))
def test_the_blocks_run(document, traces, tmp_path):
    """In a process of their own: what a document registers and imports must not reach other tests."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.docs.blocks", str(document), *(["--traces"] if traces else [])],
        cwd=tmp_path,
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg", "MINARI_DATASETS_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)


def test_the_readme_and_pages_are_found():
    names = {document.name for document in DOCUMENTS}
    assert {"README.md", "index.md", "agents.md", "policy.md", "problem.md"} <= names
    assert not any("reproduced" in document.parts for document in DOCUMENTS)


def test_the_tutorials_problem_is_one_folder_and_its_policies_another():
    """The page on adding a problem edits nothing that is there, and has every module of a problem."""
    blocks = read_blocks(ROOT / "docs/how-to/problem.md")
    titles = {block.title for block in blocks if block.title and block.language == "python"}
    folders = ("schedgym/problems/one_machine/", "baselines/one_machine/")
    assert all(title.startswith(folders) for title in titles), titles
    shipped = {path.name for path in (ROOT / "schedgym/problems/queue_delay").glob("*.py")}
    assert {Path(title).name for title in titles} >= shipped - {"log.py", "rules.py"}
    assert any("schedgym train schedgym/OneMachine-v0" in block.text for block in blocks)


def run(tmp_path, text, *more):
    """The runner on a document of its own."""
    (tmp_path / "work").mkdir()
    document = tmp_path / "page.md"
    document.write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "tests.docs.blocks", str(document), *more],
        cwd=tmp_path / "work",
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(("text", "reason"), some(table(__file__, "test_a_block_that_fails_is_named"), of=4))
def test_a_block_that_fails_is_named(tmp_path, text, reason):
    done = run(tmp_path, text)
    assert done.returncode != 0
    assert reason in done.stderr


def test_traces_run_apart(tmp_path):
    text = '```bash\nschedgym lost\nschedgym trace inspect "$(schedgym trace fetch nothing)"\n```'
    done = run(tmp_path, text, "--traces")
    assert "page.md:3: schedgym trace inspect" in done.stderr
    assert "schedgym lost" not in done.stdout + done.stderr


def test_what_runs_elsewhere_is_named():
    assert elsewhere("make test") == "Makefile"
    assert elsewhere("make everything") is None
    assert elsewhere("schedgym list") is None
