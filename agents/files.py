"""Agent files: arrays of weights and a JSON text that says what they are, under one SHA-256.

A file is a numpy archive (.npz) with the arrays, the text, and the checksum of both. Nothing in it is ever
executed or unpickled. It says which environment id and which action view the agent is for, and does not load
in another.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import importlib.resources
import json
import os
import platform
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgym.errors import InvalidParameter, SchedgymError, UnknownName

__all__ = [
    "Agent",
    "InvalidAgentFile",
    "list_pretrained",
    "load_agent",
    "load_pretrained",
    "save_agent",
    "versions",
    "write_atomically",
]

FORMAT = 1
LARGEST = 64 * 2**20  # bytes of a file that is read, and of what is in it
KINDS = "fiub"  # of numbers: arrays of anything else are refused
#: whose versions a file tells
PACKAGES = ("schedgym", "numpy", "numba", "gymnasium", "cma", "torch", "stable-baselines3", "sb3-contrib")
TEXT, CHECKSUM, PREFIX = "metadata", "sha256", "weights/"
#: what the text must hold: name -> type
REQUIRED: dict[str, type] = {
    "id": str,
    "problem": str,
    "view": str,
    "observation": str,
    "parameters": dict,
    "network": dict,
    "config": dict,
    "versions": dict,
    "command": str,
    "training": dict,
}

Arrays = Mapping[str, npt.NDArray[Any]]


class InvalidAgentFile(SchedgymError, ValueError):
    """A file is not an agent's, is damaged, or was changed since it was written."""


@dataclasses.dataclass(frozen=True)
class Agent:
    """What an agent file holds.

    Attributes:
        weights: name -> array.
        metadata: ``id``, ``problem``, ``view``, ``observation``, ``parameters`` (of the environment),
            ``network`` (form and sizes), ``config`` (of the training), ``versions``, ``command``,
            ``training`` (seeds, seconds, curve, ...).
        sha256: checksum of both.
        name: of the file, without its suffix.
    """

    weights: dict[str, npt.NDArray[Any]]
    metadata: dict[str, Any]
    sha256: str
    name: str = "agent"

    @property
    def id(self) -> str:
        """The environment id that it is for."""
        return str(self.metadata["id"])

    @property
    def view(self) -> str:
        """The action view that it acts in."""
        return str(self.metadata["view"])

    @property
    def environment(self) -> dict[str, Any]:
        """Keyword arguments of the environment in which it acts."""
        return {**self.metadata["parameters"], "view": self.view, "observation": self.metadata["observation"]}


def versions() -> dict[str, str]:
    """Versions of what a training depends on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _digest(weights: Arrays, text: str) -> str:
    checksum = hashlib.sha256(text.encode())
    for name in sorted(weights):
        array = np.ascontiguousarray(weights[name])
        checksum.update(json.dumps([name, array.dtype.str, list(array.shape)]).encode())
        checksum.update(array.tobytes())
    return checksum.hexdigest()


def write_atomically(path: str | Path, arrays: Arrays) -> None:
    """Write a numpy archive so that the file is the old one or the new one, whatever happens meanwhile."""
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            np.savez_compressed(stream, **dict(arrays))  # type: ignore[arg-type]
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def save_agent(path: str | Path, weights: Arrays, metadata: Mapping[str, Any]) -> str:
    """Write an agent file.

    Args:
        path: of the file; its folder must exist.
        weights: name -> array of numbers.
        metadata: see :class:`Agent`; JSON data.

    Returns:
        the SHA-256.

    Raises:
        InvalidParameter: if something is missing in ``metadata`` or cannot be written.
    """
    for name, kind in REQUIRED.items():
        if not isinstance(metadata.get(name), kind):
            raise InvalidParameter(f"metadata: {name} must be a {kind.__name__}, got {metadata.get(name)!r}")
    for name, array in weights.items():
        if array.dtype.kind not in KINDS or not np.isfinite(array).all():
            raise InvalidParameter(f"weights: {name} must be finite numbers")
    try:
        text = json.dumps({"format": FORMAT, **metadata}, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(f"metadata: not JSON data: {error}") from None
    checksum = _digest(weights, text)
    arrays: dict[str, npt.NDArray[Any]] = {f"{PREFIX}{name}": array for name, array in weights.items()}
    arrays[TEXT] = np.frombuffer(text.encode(), dtype=np.uint8)
    arrays[CHECKSUM] = np.frombuffer(checksum.encode(), dtype=np.uint8)
    write_atomically(path, arrays)
    return checksum


def _read(path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise InvalidAgentFile(f"{path.name}: {size} bytes are more than an agent file's {LARGEST}")
        with zipfile.ZipFile(path) as archive:
            inside = sum(entry.file_size for entry in archive.infolist())
            if inside > LARGEST:
                raise InvalidAgentFile(f"{path.name}: holds {inside} bytes, more than {LARGEST}")
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError, OSError, RuntimeError) as error:
        if isinstance(error, (FileNotFoundError, IsADirectoryError, PermissionError, InvalidAgentFile)):
            raise
        raise InvalidAgentFile(f"{path.name}: not an agent file, or a damaged one") from None


def load_agent(path: str | Path, id: str | None = None, view: str | None = None) -> Agent:
    """Read an agent file.

    Args:
        path: of the file.
        id: the environment id that the agent is to act in; None: its own.
        view: the action view that it is to act in; None: its own.

    Raises:
        FileNotFoundError: if there is none.
        InvalidAgentFile: if it is not an agent file, or not as it was written.
        InvalidParameter: if the agent is for another environment id or another view.
    """
    path = Path(path)
    arrays = _read(path)
    if not {TEXT, CHECKSUM} <= arrays.keys():
        raise InvalidAgentFile(f"{path.name}: not an agent file: it has no {TEXT} or no {CHECKSUM}")
    weights = {name.removeprefix(PREFIX): a for name, a in arrays.items() if name.startswith(PREFIX)}
    try:
        text = arrays[TEXT].tobytes().decode()
        written = arrays[CHECKSUM].tobytes().decode()
    except UnicodeDecodeError:
        raise InvalidAgentFile(f"{path.name}: damaged: its text is not UTF-8") from None
    if any(array.dtype.kind not in KINDS for array in weights.values()) or _digest(weights, text) != written:
        raise InvalidAgentFile(f"{path.name}: was changed since it was written: its SHA-256 does not fit")
    try:
        metadata = json.loads(text)
    except json.JSONDecodeError:
        raise InvalidAgentFile(f"{path.name}: damaged: its text is not JSON") from None
    if not isinstance(metadata, dict) or metadata.pop("format", None) != FORMAT:
        raise InvalidAgentFile(f"{path.name}: of another format than {FORMAT}")
    for name, kind in REQUIRED.items():
        if not isinstance(metadata.get(name), kind):
            raise InvalidAgentFile(f"{path.name}: its {name} is missing")
    for what, wanted, own in (("environment", id, metadata["id"]), ("view", view, metadata["view"])):
        if wanted is not None and wanted != own:
            raise InvalidParameter(f"{path.name}: this agent is for {what} {own!r}, not for {wanted!r}")
    return Agent(weights, metadata, written, path.stem)


def _pretrained() -> Path:
    return Path(str(importlib.resources.files("schedgym.agents"))) / "pretrained"


def list_pretrained() -> dict[str, Path]:
    """Environment id -> file of the agent that is shipped for it."""
    return {f"schedgym/{path.stem}": path for path in sorted(_pretrained().glob("*.npz"))}


def load_pretrained(id: str) -> Agent:
    """The agent that is shipped for an environment id.

    Raises:
        UnknownName: if there is none.
    """
    known = list_pretrained()
    if id not in known:
        raise UnknownName("pretrained agent", id, known)
    return load_agent(known[id], id=id)
