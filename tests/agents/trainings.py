"""Small trainings of every kind, and the one way in which tests run them."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgym.agents.config import Config, make_config
from tests.tables import declared

#: kind -> its configuration
KINDS: dict[str, dict[str, Any]] = declared("agents", "trainings")


def configuration(kind: str, **changes: Any) -> Config:
    """The configuration of a kind with other entries; None leaves one out."""
    data = {**KINDS[kind], **changes}
    return make_config({name: value for name, value in data.items() if value is not None})


def unlike(first: Any, second: Any) -> list[str]:
    """Names of the weights in which two results differ."""
    assert first.weights.keys() == second.weights.keys()
    return [name for name, array in first.weights.items() if not np.array_equal(array, second.weights[name])]


def curve(result: Any) -> list[dict[str, Any]]:
    """The validations of a result, without the time that they took."""
    return [{n: v for n, v in vars(point).items() if n != "seconds"} for point in result.curve]
