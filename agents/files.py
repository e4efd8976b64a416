"""Agent files: arrays of weights and a JSON text that describes them, under one SHA-256.

A file is a numpy archive (.npz) with the arrays, the text, and the checksum of both. Nothing in it is ever
executed or unpickled. It names the environment id and the action view of the agent, and does not load for
another.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import importlib.resources
import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from schedgym.core.files import atomic_write, check_output, read_archive
from schedgym.core.problem import get_problem
from schedgym.core.random import VALIDATION_SEED
from schedgym.errors import InvalidFile, InvalidParameter, SchedgymError, UnknownName

if TYPE_CHECKING:
    from schedgym.agents.config import Config

FORMAT = 1
LARGEST = 2**27  # bytes of a file that is read, and of what is in it: the largest networks take 100 MiB
KINDS = "fiub"  # of numbers: arrays of anything else are refused
#: whose versions a file tells
PACKAGES = ("schedgym", "numpy", "numba", "gymnasium", "cma", "torch", "stable-baselines3", "sb3-contrib")
TEXT, CHECKSUM, PREFIX = "metadata", "sha256", "weights/"
CHECKPOINT = ".checkpoint"
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
    """The content of an agent file.

    Attributes:
        weights: name -> array.
        metadata: ``id``, ``problem``, ``view``, ``observation``, ``parameters`` (of the environment),
            ``network`` (form and sizes), ``config`` (of the training), ``versions``, ``command``,
            ``training`` (seeds, seconds, curve, ...), ``files`` (path -> SHA-256 of those that the
            environment read; not in older files).
        sha256: checksum of both.
        name: name of the file, without its suffix.

    Raises:
        InvalidAgentFile: if something is missing in ``metadata``, or a weight is not a finite number.
    """

    weights: dict[str, npt.NDArray[Any]]
    metadata: dict[str, Any]
    sha256: str
    name: str = "agent"

    def __post_init__(self) -> None:
        for name, kind in REQUIRED.items():
            if not isinstance(self.metadata.get(name), kind):
                what = "is missing" if name not in self.metadata else f"must be a {kind.__name__}"
                raise InvalidAgentFile(f"{self.name}: metadata: {name} {what}")
        if not isinstance(self.training_seed, int | None):
            raise InvalidAgentFile(f"{self.name}: metadata: training.seed must be a whole number")
        for name, array in self.weights.items():
            if array.dtype.kind not in KINDS:
                raise InvalidAgentFile(f"{self.name}: weights: {name} must be numbers, not {array.dtype}")
            if not np.isfinite(array).all():
                at = np.argwhere(~np.isfinite(array))[0].tolist()
                raise InvalidAgentFile(f"{self.name}: weights: {name}{at} is not finite")

    @property
    def id(self) -> str:
        """The environment id that it is for."""
        return str(self.metadata["id"])

    @property
    def training_seed(self) -> int | None:
        """The seed of its training, if it tells one."""
        return cast("int | None", self.metadata["training"].get("seed"))

    @property
    def view(self) -> str:
        """The action view that it acts in."""
        return str(self.metadata["view"])

    @property
    def environment(self) -> dict[str, Any]:
        """Keyword arguments of the environment in which it acts."""
        return {**self.metadata["parameters"], "view": self.view, "observation": self.metadata["observation"]}

    def check(
        self,
        id: str | None = None,
        view: str | None = None,
        observation: str | None = None,
        problem: str | None = None,
    ) -> None:
        """Raise InvalidParameter if it is for another environment, view, kind of observation or problem."""
        wanted = {"environment": id, "view": view, "observation": observation, "problem": problem}
        own = {name: self.metadata[name] for name in ("view", "observation", "problem")}
        own["environment"] = self.id
        for what, name in wanted.items():
            if name is not None and name != own[what]:
                raise InvalidParameter(
                    f"{self.name}: this agent is for {what} {own[what]!r}, not for {name!r}"
                )


def versions() -> dict[str, str]:
    """Versions of the libraries that a training depends on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _digest(weights: Arrays, text: bytes) -> bytes:
    checksum = hashlib.sha256(text)
    for name in sorted(weights):
        array = np.ascontiguousarray(weights[name])
        checksum.update(json.dumps([name, array.dtype.str, list(array.shape)]).encode())
        checksum.update(array.tobytes())
    return checksum.hexdigest().encode()


def describe(
    config: Config, network: Mapping[str, Any], result: Any, command: str, **training: Any
) -> dict[str, Any]:
    """The metadata of an agent file.

    Args:
        config: configuration of the training.
        network: form and sizes.
        result: of a search, or of a training with gradients; None: it has not ended.
        command: command that repeats it, unless it was begun with other limits.
        training: facts about it that only one of the two has.
    """
    data = config.to_dict()
    told = {"seed": config.seed, "validation_seed": VALIDATION_SEED, **training}
    if result is not None:
        told |= {"begun": result.begun, "seconds": result.seconds, "best": dataclasses.asdict(result.best)}
        told["curve"] = [dataclasses.asdict(point) for point in result.curve]
    return {
        "id": config.id,
        "problem": get_problem(config.id).name,
        "view": config.view,
        "observation": "features",
        "parameters": data["parameters"],
        "network": dict(network),
        "config": data,
        "versions": versions(),
        "command": command,
        "training": told,
    }


def write_atomically(path: str | Path, arrays: Arrays) -> None:
    """Write a numpy archive so that the file is the old one or the new one, whatever happens meanwhile."""
    with atomic_write(path, "wb") as stream:
        np.savez_compressed(stream, **dict(arrays))  # type: ignore[arg-type]


def checkpoint_path(path: str | Path) -> Path:
    """The checkpoint file of the training that will write the agent file ``path``; it stands beside it.

    Raises:
        InvalidParameter: if ``path`` cannot become an agent file; checked before the training, not after it.
    """
    path = Path(path)
    if path.suffix == CHECKPOINT:
        raise InvalidParameter(f"{path.name}: {CHECKPOINT} is the suffix of checkpoints, not of agent files")
    check_output(path)
    return path.with_suffix(CHECKPOINT)


def strip(arrays: Arrays, prefix: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays whose names begin with ``prefix``, without it."""
    return {n.removeprefix(prefix): array for n, array in arrays.items() if n.startswith(prefix)}


def save_agent(path: str | Path, weights: Arrays, metadata: Mapping[str, Any]) -> str:
    """Write an agent file.

    Args:
        path: path of the file; its folder must exist.
        weights: name -> array of numbers.
        metadata: see :class:`Agent`; JSON data.

    Returns:
        the SHA-256.

    Raises:
        InvalidAgentFile: if something is missing in ``metadata``, or a weight is not a finite number.
        InvalidParameter: if ``metadata`` is not JSON data.
    """
    Agent(dict(weights), dict(metadata), "", Path(path).stem)
    try:
        text = json.dumps({"format": FORMAT, **metadata}, sort_keys=True, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InvalidParameter(f"metadata: not JSON data: {error}") from None
    checksum = _digest(weights, text)
    arrays: dict[str, npt.NDArray[Any]] = {f"{PREFIX}{name}": array for name, array in weights.items()}
    arrays[TEXT] = np.frombuffer(text, dtype=np.uint8)
    arrays[CHECKSUM] = np.frombuffer(checksum, dtype=np.uint8)
    write_atomically(path, arrays)
    return checksum.decode()


def agent_paths(source: str | Path) -> list[str]:
    """The agent files that a name means: all of a folder, else the file of this name.

    "pretrained" is the word for the shipped agent, also where a folder is called so (``./pretrained``).

    Raises:
        InvalidParameter: for a folder without agent files, or an empty name.
    """
    if str(source) == "":
        raise InvalidParameter("agents: the name of a file is empty")
    if str(source) == "pretrained" or not Path(source).is_dir():
        return [str(source)]
    found = [str(path) for path in Path(source).glob("*.npz")]
    if not found:
        raise InvalidParameter(f"{source}: the folder has no agent files (.npz)")
    return sorted(found, key=lambda name: (len(name), name))  # training 2 before training 10


def load_agent(path: str | Path, id: str | None = None, view: str | None = None) -> Agent:
    """Read an agent file.

    Args:
        path: path of the file.
        id: the environment id that the agent is to act in; None: its own.
        view: the action view that it is to act in; None: its own.

    Raises:
        FileNotFoundError: if there is none.
        InvalidAgentFile: if it is not an agent file, or not as it was written.
        InvalidParameter: if the agent is for another environment id or another view.
    """
    path = Path(path)
    try:
        arrays = read_archive(path, LARGEST)
    except InvalidFile as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise InvalidAgentFile(f"{path.name}: not an agent file, or a damaged one: {reason}") from None
    weights = strip(arrays, PREFIX)
    strange = sorted({TEXT, CHECKSUM} ^ {name for name in arrays if not name.startswith(PREFIX)})
    if strange:
        what = "no" if strange[0] in (TEXT, CHECKSUM) else "an unknown"
        raise InvalidAgentFile(f"{path.name}: not an agent file: it has {what} entry {strange[0]!r}")
    text, written = (arrays[name].tobytes() for name in (TEXT, CHECKSUM))
    if _digest(weights, text) != written:
        raise InvalidAgentFile(f"{path.name}: was changed since it was written: its SHA-256 does not fit")
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidAgentFile(f"{path.name}: its metadata is not JSON") from None
    if not isinstance(metadata, dict) or metadata.pop("format", None) != FORMAT:
        raise InvalidAgentFile(f"{path.name}: of another format than {FORMAT}")
    agent = Agent(weights, metadata, written.decode(), path.stem)
    agent.check(id, view)
    return agent


def list_pretrained() -> dict[str, Path]:
    """Environment id -> file of the agent that is shipped for it."""
    folder = Path(str(importlib.resources.files("schedgym.agents"))) / "pretrained"
    return {f"schedgym/{path.stem}": path for path in sorted(folder.glob("*.npz"))}


def load_pretrained(id: str) -> Agent:
    """The agent that is shipped for an environment id.

    Raises:
        UnknownName: if there is none.
    """
    known = list_pretrained()
    if id not in known:
        raise UnknownName("pretrained agent", id, known)
    return load_agent(known[id], id=id)
