"""Workload files: one JSON object, or for large ones a compressed archive of arrays (npz)."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.core.files import atomic_write, read_archive, read_text
from schedgym.core.problem import list_problems
from schedgym.core.workload import PAD, SECTIONS, Schema, Workload, shown
from schedgym.errors import InvalidFile, InvalidWorkload, suggest

LARGEST_TEXT = 2**27  # bytes of a .json file that is read; it takes some ten times as much memory
LARGEST = 2**30  # bytes of a .npz file, and of the arrays in it
NPY_HEADER = 128  # bytes before each of them


def load_workload(path: str | Path, schema: Schema | None = None) -> Workload:
    """Read and validate a workload file.

    ``tasks`` may stand beside ``jobs`` or inside it.

    Args:
        path: a ``.json`` or ``.npz`` file as written by :func:`save_workload`.
        schema: schema of the problem that is expected; None takes it from the file's ``problem``.

    Raises:
        InvalidWorkload: naming the file, the field and the first bad index, or if the file is larger than
            LARGEST_TEXT or LARGEST bytes, or is a pipe or a device.
        FileNotFoundError: when there is no such file.
    """
    path = Path(path)
    readers = {".json": _read_json, ".npz": _read_npz}
    if path.suffix not in readers:
        raise InvalidWorkload(f"{path}: a workload file ends in .json or .npz")
    try:
        content = readers[path.suffix](path)
    except InvalidFile as error:
        raise InvalidWorkload(str(error)) from None
    if not isinstance(content, dict):
        raise InvalidWorkload(f"{path}: must be an object with problem, jobs, cluster, parameters")
    problem = content.get("problem")
    if schema is None and isinstance(problem, str):
        known_problems = list_problems()
        if problem not in known_problems:
            what = f"unknown problem {shown(problem)!r}{suggest(problem, known_problems)}"
            raise InvalidWorkload(f"{path}: problem: {what}")
        schema = known_problems[problem].schema
    with_tasks = schema is None or bool(schema.tasks)
    known = ("problem", *(section for section in SECTIONS if section != "tasks" or with_tasks))
    for key in content:
        if key not in known:
            raise InvalidWorkload(f"{path}: {shown(key)}: unknown field{suggest(key, known)}")
    if schema is None or not isinstance(problem, str):
        raise InvalidWorkload(f"{path}: problem: missing, or not a string")
    if problem != schema.problem:
        raise InvalidWorkload(f"{path}: problem: must be {schema.problem!r}, got {problem!r}")
    jobs = content.get("jobs")
    if with_tasks and isinstance(jobs, dict) and "tasks" in jobs:
        if "tasks" in content:
            raise InvalidWorkload(f"{path}: tasks: given twice, beside jobs and inside it")
        content["jobs"] = {name: value for name, value in jobs.items() if name != "tasks"}
        content["tasks"] = jobs["tasks"]
    return schema.parse({s: content.get(s, {}) for s in SECTIONS}, prefix=f"{path}: ")


def save_workload(workload: Workload, path: str | Path) -> None:
    """Write a workload as ``.json`` or ``.npz`` (for large ones); loading gives back equal arrays.

    Raises:
        InvalidWorkload: for another suffix, or if the file would be larger than what is read.
    """
    path, sections = Path(path), {s: getattr(workload, s) for s in SECTIONS if s != "tasks" or workload.tasks}
    most = {".json": LARGEST_TEXT, ".npz": LARGEST}.get(path.suffix)
    if most is None:
        raise InvalidWorkload(f"{path}: a workload file ends in .json or .npz")
    arrays = {f"{s}/{name}": array for s, fields in sections.items() for name, array in fields.items()}
    arrays["problem"] = np.array(workload.problem)
    with atomic_write(path, "wb") as stream:
        if path.suffix == ".npz":
            np.savez_compressed(stream, **arrays)
        else:
            content: dict[str, Any] = {"problem": workload.problem}
            for section, fields in sections.items():
                own = {name: _listed(workload, f"{section}.{name}", array) for name, array in fields.items()}
                content[section] = own
            stream.write(json.dumps(content, allow_nan=False).encode())
        unpacked = sum(array.nbytes + NPY_HEADER for array in arrays.values()) if path.suffix == ".npz" else 0
        if (size := max(unpacked, stream.tell())) > most:
            raise InvalidWorkload(f"{path}: would have {size} bytes, and no more than {most} are read")


def _listed(workload: Workload, name: str, array: npt.NDArray[Any]) -> Any:
    """The array called "section.field" as JSON has it."""
    if name in workload.ragged:
        return [row[row != PAD].tolist() for row in array]
    if name in workload.choices:
        return np.asarray(np.array(workload.choices[name], dtype=object)[array], dtype=object).tolist()
    return array.tolist()


def _read_json(path: Path) -> object:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = dict(pairs)
        if len(names) < len(pairs):
            twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
            raise InvalidWorkload(f"{path}: {shown(twice)}: given twice")
        return names

    try:
        return json.loads(read_text(path, LARGEST_TEXT), object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise InvalidWorkload(f"{path}: line {error.lineno} column {error.colno}: {error.msg}") from None
    except UnicodeDecodeError as error:
        raise InvalidWorkload(f"{path}: byte {error.start}: not UTF-8 text") from None
    except (RecursionError, ValueError) as error:
        if isinstance(error, (InvalidFile, InvalidWorkload)):
            raise
        raise InvalidWorkload(f"{path}: {error}") from None


def _read_npz(path: Path) -> object:
    content: dict[str, Any] = {}
    for key, array in read_archive(path, LARGEST).items():
        section, _, name = key.partition("/")
        if array.dtype.kind == "U":  # of such text Python can make no strings
            codes = np.frombuffer(array.tobytes(), np.dtype("u4").newbyteorder(array.dtype.byteorder))
            if (codes > sys.maxunicode).any():
                what = "not a readable numpy archive: text with characters that do not exist"
                raise InvalidWorkload(f"{path}: {what}")
        if name:
            content.setdefault(section, {})[name] = array
        else:
            content[key] = str(array) if key == "problem" else array
    return content
