"""The memory of episodes that were run before.

A remembered result is known by what it depends on. In a file each result is a line, its key and then JSON. A
line is written as soon as its job has ended, so a run that is cut off loses the jobs that it was at.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import importlib
import inspect
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from schedgym.evaluation.episodes import Job, Result
from schedgym.evaluation.plan import content_of, depends_on, foreign_code
from schedgym.extras import require

__all__ = ["Memory"]

ARRAY, TUPLE = "array", "named tuple"  # the names under which they are written


class Memory:
    """Results of episodes by what they depend on.

    Args:
        path: file that is read and added to; its folder must exist. What observers return must then be made
            of dicts, lists, named tuples of this package, numbers, texts and arrays. None: results are kept
            in this process only.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._ran: dict[str, float] = {}  # CPU seconds of what was run since the last mark
        self._recalled: dict[str, float] = {}  # and of what was run before
        self._results: dict[str, Result] = {}
        self._lines: dict[str, tuple[int, int]] = {}  # key -> begin and length of its line
        self._keys: dict[tuple[int, str | None, int], str] = {}  # of the results that are missing
        if self.path is not None and self.path.exists():
            self._index(self.path)

    def _index(self, path: Path) -> None:
        """Find the lines of a file, and cut off the rest of a line that was not written to its end."""
        begin = 0
        with path.open("rb+") as stream:
            for line in stream:
                if not line.endswith(b"\n"):
                    stream.truncate(begin)
                    return
                self._lines[line.partition(b" ")[0].decode()] = begin, len(line)
                begin += len(line)

    def mark(self) -> None:
        """Begin to count anew what is :attr:`ran` and :attr:`saved`."""
        self._ran.clear()
        self._recalled.clear()

    @property
    def ran(self) -> float:
        """CPU seconds that those episodes took that have been run since the mark."""
        return sum(self._ran.values())

    @property
    def saved(self) -> float:
        """CPU seconds that those episodes once took that have been recalled since the mark, and not run."""
        return sum(self._recalled.values())

    def recall(self, jobs: Iterable[Job]) -> tuple[list[Result], list[Job]]:
        """Return the results that are known, and the jobs with the episodes that must be run."""
        known: list[Result] = []
        left: list[Job] = []
        self._keys.clear()
        for job in jobs:
            rest = []
            digest = _digest(job)  # before it is run, as policies change while they act
            for episode in job.episodes:
                workload = content_of(job.files[episode]) if job.files else ""
                key = hashlib.sha256(f"{digest} {workload} {job.seed} {episode}".encode()).hexdigest()
                found = self._find(key)
                if found is None:
                    rest.append(episode)
                    self._keys[job.setting, job.label, episode] = key
                    continue
                known.append(dataclasses.replace(found, setting=job.setting))  # numbered by the run
                if key not in self._ran:
                    self._recalled[key] = found.cpu
            if rest:
                left.append(dataclasses.replace(job, episodes=tuple(rest)))
        return known, left

    def keep(self, results: Iterable[Result]) -> Iterator[Result]:
        """Hand on the results of the jobs left by the last :meth:`recall`, keeping each as it comes."""
        for result in results:
            key = self._keys.pop((result.setting, result.label, result.episode))
            self._ran[key] = result.cpu
            if self.path is None:
                self._results[key] = result
            else:
                line = f"{key} {json.dumps(_encode(dataclasses.asdict(result)))}\n".encode()
                with self.path.open("ab") as stream:
                    self._lines[key] = stream.tell(), len(line)
                    stream.write(line)
            yield result

    def _find(self, key: str) -> Result | None:
        if self.path is None or key not in self._lines:
            return self._results.get(key)
        begin, length = self._lines[key]
        with self.path.open("rb") as stream:
            stream.seek(begin)
            line = stream.read(length)
        return Result(**_decode(json.loads(line.partition(b" ")[2])))


def _digest(job: Job) -> str:
    """Digest of all that a job's results depend on, but its workload files, seed and episodes."""
    seen = None
    if job.observe is not None:
        source = content_of(str(inspect.getsourcefile(job.observe)))
        seen = [job.observe.__module__, job.observe.__qualname__, source]
    policy = require("joblib").hash(job.policy)
    source = None if job.policy is None else foreign_code(type(job.policy))
    return depends_on(job.id, job.parameters, label=job.label, policy=policy, source=source, seen=seen)


def _encode(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        content = base64.b64encode(zlib.compress(value.tobytes())).decode()
        return {ARRAY: [value.dtype.str, value.shape, content]}
    if isinstance(value, Mapping):
        return {name: _encode(item) for name, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {TUPLE: [type(value).__module__, type(value).__name__], **_encode(value._asdict())}
    if isinstance(value, list):
        return [_encode(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        if ARRAY in value:
            kind, shape, content = value[ARRAY]
            return np.frombuffer(zlib.decompress(base64.b64decode(content)), kind).reshape(shape).copy()
        fields = {name: _decode(item) for name, item in value.items() if name != TUPLE}
        return _named_tuple(*value[TUPLE])(**fields) if TUPLE in value else fields
    return [_decode(item) for item in value] if isinstance(value, list) else value


def _named_tuple(module: str, name: str) -> Any:
    """Return a class of named tuples of this package; no other class, whatever a file says."""
    found = getattr(importlib.import_module(module), name) if module.startswith("schedgym.") else None
    if not (isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields")):
        raise ValueError(f"{module}.{name} is not a named tuple of schedgym")
    return found
