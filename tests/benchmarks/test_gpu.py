"""The benchmark of a GPU, on numba's simulator of one; without any it says so in a line."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import gpu
from benchmarks.__main__ import main
from schedgym.agents.config import Config
from schedgym.errors import InvalidParameter
from schedgym.evaluation.bench import Report
from tests.core.test_cuda import simulate
from tests.lazy import Lazy, needs
from tests.long import long, weekly
from tests.tables import entry, table

torch = Lazy("torch")
pytestmark = needs("torch", "yaml")

PROGRAM = """
import dataclasses, sys
from schedgym.core import cuda
from benchmarks import gpu
from tests.agents.test_environments import QUEUE, VALUE, tiny
cuda.BLOCK = 2
parameters = {"tasks": 6, "servers": 2, "window": 4, "view": "pick", "observation": "features"}
case = gpu.Benchmark(name="small", id=QUEUE, parameters=parameters, num_envs=3)
gpu.cases = lambda problem, id: [case]
gpu.configurations = lambda id: {"ppo": tiny(QUEUE, "pick", 1)}
gpu.MANY = {"num_envs": 5, "n_steps": 4, "batch_size": 10}
gpu.SECONDS = gpu.TRAINING_SECONDS = 0.01
gpu.EPISODES = 2
check = cuda.CudaSimulator._check_free
def small(self, needed):
    if self.num_envs > 4 and self.num_envs != 5:
        raise gpu.InvalidParameter(f"num_envs: {self.num_envs} environments take 9 GiB")
    check(self, needed)
cuda.CudaSimulator._check_free = small
gpu.main(QUEUE, json=sys.argv[1], sizes=(2, 4, 8))
"""


@long
@weekly
def test_the_table_of_a_gpu(tmp_path: Path) -> None:
    path = tmp_path / "gpu.json"
    shown = simulate(PROGRAM, str(path))
    rows = json.loads(path.read_text())["gpu"]
    assert [row["what"] for row in rows] == entry(__file__, "measured")
    rates = [row for row in rows if row.get("unit") == "steps/s"]
    assert len(rates) == 6 and all(row["value"] > 0 and len(row["runs"]) == 3 for row in rates)
    assert rows[4] == entry(__file__, "left_out")
    assert "bandwidth" not in rows[1] and rows[2]["bandwidth"].count("%") == 2 and rows[2]["ratio"] > 0
    assert rows[5]["divergence"] == round(rows[5]["value"] / rows[3]["value"], 2) > 0
    assert "8 environments: left out: num_envs: 8 environments take 9 GiB" in shown


@long
def test_a_training_that_lacks_memory_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.agents.test_environments import QUEUE, tiny

    def train(config: Config, device: str, seconds: float, own: Any) -> gpu.TrainingRate:
        if device == "cuda":
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried 9 GiB.\nSee the manual")
        return gpu.TrainingRate(2.0, 1.0)

    monkeypatch.setattr(gpu, "find_cuda", lambda: SimpleNamespace(SIMULATED=True))
    monkeypatch.setattr(gpu, "_train_for", train)
    report = Report()
    report.begin("here")
    gpu._measure_trainings(tiny(QUEUE, "pick", 1), report, 2, 1.0)
    assert [row["what"].rpartition(", ")[2] for row in report.rows] == [
        "trained steps per second",
        "mean_delay after 1 s",
        "left out",
    ]
    reason = "num_envs: a training with 16384: CUDA out of memory. Tried 9 GiB."
    assert report.rows[-1]["reason"] == reason and f"left out: {reason}\n" in capsys.readouterr().out


def test_without_a_gpu_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    message = "device: no NVIDIA GPU, or no driver of one, was found"

    def refuse() -> None:
        raise InvalidParameter(message)

    monkeypatch.setattr(gpu, "find_cuda", refuse)
    assert main(["gpu"]) != 0
    said = capsys.readouterr()
    assert message in said.err and said.err.count("\n") == 1 and not said.out


def test_what_is_no_measurement_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in table(__file__, "test_what_is_no_measurement_is_refused"):
        with pytest.raises(SystemExit):
            main(arguments)
        assert message in capsys.readouterr().err
