"""What other libraries make of the environments: ``make test-libraries``.

Each script of docs/libraries uses one library and takes an environment id. Every script runs on every id, in
a process of its own, by the Python that has the library; docs/how-to/libraries.md shows the scripts and what
came of them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from schedgym.errors import RunAborted
from schedgym.evaluation.bench import chosen, finish

#: script of docs/libraries -> the library that it uses
SCRIPTS = {
    "sb3_ppo": "stable-baselines3",
    "torchrl_env": "torchrl",
    "skrl_env": "skrl",
    "tianshou_env": "tianshou",
    "minari_dataset": "minari",
    "rllib_env": "ray",
}
ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "libraries"
#: libraries that need other versions than the rest -> their Python; the others have the one that runs this
PYTHONS = {"ray": str(ROOT / ".cache/rllib/bin/python")}
LIMIT = 300  # s of a script, of which compiling takes the most


def last_line(library: str, *arguments: str) -> str:
    """Run the Python of a library; return what it says last, and raise RunAborted with that if it fails."""
    command = [PYTHONS.get(library, sys.executable), "-W", "ignore", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise RunAborted(f"not done after {LIMIT} s") from None
    except FileNotFoundError as error:
        raise RunAborted(str(error)) from None
    lines = (done.stderr if done.returncode else done.stdout).strip().splitlines() or ["nothing"]
    if done.returncode:
        raise RunAborted(lines[-1])
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
            version = last_line(
                library, "-c", f"from importlib import metadata; print(metadata.version({library!r}))"
            )
        except RunAborted as error:
            failed.append(f"{library}: {error}")
            continue
        row: dict[str, Any] = {"library": library, "version": version, "script": f"{script}.py"}
        row |= {"ids": {}, "failed": {}}
        for id in ids:
            try:
                row["ids"][id] = last_line(library, str(FOLDER / f"{script}.py"), id)
            except RunAborted as error:
                row["failed"][id] = str(error)
                failed.append(f"{script} {id}: {error}")
            print(f"{library} {version}, {id}: {row['ids'].get(id, row['failed'].get(id))}", flush=True)
        rows.append(row)
    result = finish("libraries", rows, json)
    if failed:
        raise RunAborted("; ".join(failed))
    return result
