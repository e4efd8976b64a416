"""The state of a training, in memory and in its checkpoint, for every algorithm.

A checkpoint is a numpy archive of arrays and one JSON text: nothing in it is executed or unpickled.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from schedgym.agents.config import Config
from schedgym.agents.files import strip, versions, write_atomically
from schedgym.core.files import read_archive
from schedgym.errors import InvalidParameter

FORMAT = 3  # of checkpoints
LARGEST = 2**32  # bytes of one: with the arrays of all environments
#: settings that say when to stop: a training may be made longer than its checkpoint's, not shorter
LIMITS = ("steps", "search.generations", "search.patience")
TEXT, BEST = "text", "best/"

Arrays = dict[str, npt.NDArray[Any]]
P = TypeVar("P")


class TrainingRecord(Generic[P]):
    """The validations of a training, the best weights, and where its checkpoint is.

    Args:
        config: configuration of the training.
        checkpoint: file; None: there is none.
        point: class of the validations, a dataclass of numbers.

    Attributes:
        contents: of the files that the configuration names, when the training began.
        begun: limits that were others when it began: a longer training of one command may end elsewhere.
        curve: the validations.
        best_index: index of the validation whose weights are kept.
        best: these weights.
    """

    def __init__(self, config: Config, checkpoint: str | Path | None, point: type[P]) -> None:
        self.config, self.point, self.contents = config, point, config.contents()
        self.path = None if checkpoint is None else Path(checkpoint)
        self.begun: dict[str, Any] = {}
        self.curve: list[P] = []
        self.best_index = 0
        self.best: Arrays = {}
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the training began, without the time between a checkpoint and its resumption."""
        return time.perf_counter() - self._began

    def add(self, point: P, better: bool, weights: Callable[[], Arrays]) -> None:
        """Add a validation; its weights are kept if it is better, or the first."""
        self.curve.append(point)
        if better or not self.best:
            self.best_index, self.best = len(self.curve) - 1, weights()

    def save(self, arrays: Mapping[str, npt.NDArray[Any]], **more: Any) -> None:
        """Write the checkpoint, if there is to be one.

        Args:
            arrays: arrays of the algorithm's state.
            more: the rest of its state, as JSON data.

        Raises:
            InvalidParameter: if it is larger than what :meth:`load` reads.
        """
        if self.path is None:
            return
        if (size := sum(array.nbytes for array in arrays.values())) > LARGEST:
            most = f"{LARGEST / 2**30:.0f} GiB"
            raise InvalidParameter(f"num_envs: a checkpoint takes {size / 2**30:.1f} GiB, more than {most}")
        text = {
            "settings": {"format": FORMAT, **self.config.to_dict(), "files": self.contents},
            "versions": versions(),
            "curve": [dataclasses.astuple(point) for point in self.curve],  # type: ignore[call-overload]
            "best": self.best_index,
            "seconds": self.seconds,
            "begun": self.begun,
            **more,
        }
        best = {f"{BEST}{name}": array for name, array in self.best.items()}
        written = {TEXT: np.frombuffer(json.dumps(text).encode(), dtype=np.uint8)}
        write_atomically(self.path, {**arrays, **best, **written})

    def load(self, needed: Iterable[str] = ()) -> tuple[Arrays, dict[str, Any]] | None:
        """Take over the checkpoint; the arrays and the data that :meth:`save` was given, or None without one.

        Args:
            needed: names of arrays and data that it must hold.

        Raises:
            InvalidParameter: if it is of another configuration, content of a file or version, or none.
        """
        if self.path is None or not self.path.exists():
            return None
        try:
            arrays = read_archive(self.path, LARGEST)
            text = json.loads(arrays[TEXT].tobytes())
            settings = _flat(text["settings"])
            written_as = settings.pop("format")
            curve = [self.point(*row) for row in text["curve"]]
            best = int(text["best"])
            began = time.perf_counter() - float(text["seconds"])
            self.begun = dict(text.get("begun", {}))  # no checkpoint of an older release has it
            missing = [name for name in needed if name not in arrays and name not in text]
            if missing and written_as == FORMAT:
                raise KeyError(missing[0])
        except Exception as error:  # of zipfile, numpy, json: all say that it is damaged
            what = "search" if self.config.algorithm == "cma" else "training"
            raise InvalidParameter(f"{self.path.name}: not a checkpoint of a {what}: {error!r}") from None
        if written_as != FORMAT:
            raise InvalidParameter(
                f"{self.path.name}: a checkpoint of another version (its format is {written_as!r}, not "
                f"{FORMAT}): remove it and train anew"
            )
        self._compare(settings)
        self.curve, self.best_index, self._began = curve, best, began
        self.best = strip(arrays, BEST)
        return arrays, text

    def _compare(self, theirs: Mapping[str, Any]) -> None:
        mine = _flat({**self.config.to_dict(), "files": self.contents})
        for name in sorted({*theirs, *mine} - {"checkpoint"}):  # which only says when to save
            there, here = theirs.get(name), mine.get(name)
            if name in LIMITS and isinstance(there, int) and here is not None and there < here:
                self.begun.setdefault(name, there)
            elif there != here:
                assert self.path is not None
                raise InvalidParameter(
                    f"{self.path.name}: the checkpoint of another configuration: {name} is {there!r} there, "
                    f"and {here!r} here"
                )


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten settings: a field of a section is named "section.field"."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        section = isinstance(value, dict)
        found |= {f"{name}.{field}": own for field, own in value.items()} if section else {name: value}
    return found
