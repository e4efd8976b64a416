"""What was compiled ahead of time is not compiled again."""

from pathlib import Path

import pytest

from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.warmup import warm_up
from tests.interpreted import python
from tests.long import long, weekly

USE = """
import gymnasium as gym, schedgym
from schedgym.testing import all_views
for view in all_views("queue-delay"):
    gym.make("schedgym/QueueDelay-v0", disable_env_checker=True, **view).reset(seed=0)
for resources in (("cpu", "memory"), ("cpu", "memory", "gpu")):
    parameters = {"tasks": 20, "resources": resources}
    schedgym.evaluate("QueueDelay-v0", ["bf-exec", "fcfs"], 1, parameters=parameters)
"""


@long
@weekly
def test_what_was_compiled_ahead_of_time_is_not_compiled_again(tmp_path: Path) -> None:
    def compiled(*arguments: str) -> tuple[list[str], str]:
        done = python(*arguments, NUMBA_CACHE_DIR=str(tmp_path))
        return sorted(str(path) for path in tmp_path.rglob("*.nbc")), done.stdout

    kernels, told = compiled("-m", "schedgym", "warmup", "QueueDelay-v0")
    assert len(kernels) >= 6 and told.startswith("schedgym/QueueDelay-v0: compiled")
    assert compiled("-c", USE)[0] == kernels


def test_ids_are_checked_before_anything_is_compiled() -> None:
    with pytest.raises(UnknownName, match="did you mean"):
        next(warm_up("QueueDelay-v0", "QueueDelai-v0"))
    with pytest.raises(InvalidParameter, match="ambiguous"):
        next(warm_up("geo"))
