"""The wheel: built from the tracked sources, installed alone, every module imported."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.long import long

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"schedgym": "schedgym", "baselines": "schedgym/baselines", "agents": "schedgym/agents"}

IMPORT_ALL = """
import importlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
import schedgym
assert pathlib.Path(schedgym.__file__).is_relative_to(root), schedgym.__file__
for path in sorted((root / "schedgym").rglob("*.py")):
    parts = path.relative_to(root).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    if not name.endswith("__main__"):
        module = importlib.import_module(name)
        assert pathlib.Path(module.__file__).is_relative_to(root), module.__file__
        print(name)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the installed wheel, and nothing else of this checkout."""
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, source / folder, ignore=ignore)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    quiet = {"capture_output": True, "text": True, "check": True}
    subprocess.run(
        [
            *pip,
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            "--wheel-dir",
            str(source / "dist"),
            str(source),
        ],
        **quiet,
    )
    (wheel,) = (source / "dist").glob("schedgym-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(site), str(wheel)], **quiet)
    return site


@long
def test_the_wheel_holds_every_source_file(site):
    for folder, inside in FOLDERS.items():
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert (site / inside / path.relative_to(ROOT / folder)).exists(), path
    top = {p.name for p in site.iterdir() if not p.name.endswith(".dist-info")} - {"bin"}
    assert top == {"schedgym"}


@long
def test_every_module_imports_from_the_wheel(site, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, str(site)],
        env=os.environ | {"PYTHONPATH": str(site), "NUMBA_CACHE_DIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    imported = done.stdout.split()
    assert "schedgym.baselines.queue_delay.bf_exec" in imported
    assert "schedgym.agents" in imported
    assert len(imported) > 30
