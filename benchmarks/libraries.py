"""What other libraries make of the environments: ``make test-libraries``.

Each script of docs/libraries uses one library and takes an environment id. Every script runs on every id, in
a process of its own; docs/how-to/libraries.md shows the scripts and what came of them.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path
from typing import Any

from schedgym.errors import RunAborted
from schedgym.evaluation.bench import chosen, finish

__all__ = ["SCRIPTS", "main"]

#: script of docs/libraries -> the library that it uses
SCRIPTS = {
    "sb3_ppo": "stable-baselines3",
    "torchrl_env": "torchrl",
    "skrl_env": "skrl",
    "tianshou_env": "tianshou",
    "minari_dataset": "minari",
}
FOLDER = Path(__file__).resolve().parents[1] / "docs" / "libraries"
LIMIT = 300  # s of a script, of which compiling takes the most


def try_script(script: str, id: str) -> str:
    """Run a script on an id; return what it says last, and raise RunAborted with that if it fails."""
    command = [sys.executable, "-W", "ignore", str(FOLDER / f"{script}.py"), id]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise RunAborted(f"{script} {id}: not done after {LIMIT} s") from None
    lines = (done.stderr if done.returncode else done.stdout).strip().splitlines() or ["nothing"]
    if done.returncode:
        raise RunAborted(f"{script} {id}: {lines[-1]}")
    return lines[-1]


def main(name: str | None = None, quick: bool = False, json: str | Path | None = None) -> dict[str, Any]:
    """Run all scripts, print what each says, and write JSON if a file is named.

    Args:
        name: an environment id or a problem; None: all of them.
        quick: the first id only.
        json: file for the results.

    Returns:
        {"libraries": rows}, a row per library, with its version and what it said of each id.

    Raises:
        UnknownName: for a name that is neither.
        RunAborted: after all have run, if one has failed, or a library is not installed.
    """
    ids = [id for _, id in chosen(name)][: 1 if quick else None]
    rows: list[dict[str, Any]] = []
    failed: list[str] = []
    for script, library in SCRIPTS.items():
        try:
            version = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            failed.append(f"{library}: not installed")
            continue
        row: dict[str, Any] = {"library": library, "version": version, "script": f"{script}.py"}
        row |= {"ids": {}, "failed": {}}
        for id in ids:
            try:
                row["ids"][id] = try_script(script, id)
            except RunAborted as error:
                row["failed"][id] = str(error)
                failed.append(str(error))
            print(f"{library} {version}, {id}: {row['ids'].get(id, row['failed'].get(id))}", flush=True)
        rows.append(row)
    result = finish("libraries", rows, json)
    if failed:
        raise RunAborted("; ".join(failed))
    return result
