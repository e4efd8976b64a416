"""Played: the policies that a figure has run, and what was observed of them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from schedgym.evaluation.runner import Observed
from schedgym.evaluation.statistics import plain

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Played"]

F8 = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Played:
    """Policies that were run.

    Attributes:
        frame: of :func:`~schedgym.evaluation.runner.sweep`.
        observed: what the observer saw, for each setting, policy and episode.
    """

    frame: pd.DataFrame
    observed: Sequence[Observed]

    @property
    def policies(self) -> list[str]:
        """Labels, in order."""
        return list(dict.fromkeys(entry.policy for entry in self.observed))

    def values(self, policy: str, name: str | None = None, **setting: Any) -> list[Any]:
        """What was observed of a policy in the settings that agree with ``setting``, by episode.

        Args:
            policy: its label.
            name: of an entry of what the observer returned; None: all of it.
            setting: swept parameter = value.
        """
        return [
            entry.values if name is None else entry.values[name]
            for entry in self.observed
            if entry.policy == policy and all(entry.setting[key] == value for key, value in setting.items())
        ]

    def metric(self, policy: str, name: str, **setting: Any) -> F8:
        """A metric of a policy's episodes, in order, in the settings that agree with ``setting``.

        Args:
            policy: its label.
            name: of the metric.
            setting: swept parameter = value.
        """
        rows = self._rows[policy, name]
        for key, value in setting.items():
            rows = rows[[plain(own) == value for own in rows[key]]]
        return rows["value"].to_numpy(dtype=float)

    @functools.cached_property
    def _rows(self) -> dict[Any, pd.DataFrame]:
        return dict(iter(self.frame.sort_values("episode", kind="stable").groupby(["policy", "metric"])))

    def where(self, **setting: Any) -> Played:
        """The runs of some of the settings; their parameters are no longer swept."""
        keep = np.ones(len(self.frame), dtype=bool)
        for name, value in setting.items():
            keep &= np.array([plain(own) == value for own in self.frame[name]])
        frame = self.frame[keep].drop(columns=list(setting))
        frame.attrs = {
            **self.frame.attrs,
            "swept": [n for n in self.frame.attrs["swept"] if n not in setting],
        }
        observed = [
            dataclasses.replace(entry, setting={k: v for k, v in entry.setting.items() if k not in setting})
            for entry in self.observed
            if all(entry.setting[key] == value for key, value in setting.items())
        ]
        return Played(frame, observed)
