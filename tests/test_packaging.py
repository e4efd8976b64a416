"""The wheel: built from the tracked sources, installed alone, every module imported."""

import shutil
from pathlib import Path

import pytest

from tests.interpreted import python
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


def copy_sources(source: Path, *ignored: str) -> None:
    """What a wheel is made of, as the checkout stands now."""
    for folder in FOLDERS:
        ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", *ignored)
        shutil.copytree(ROOT / folder, source / folder, ignore=ignore)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)


def install(source: Path, site: Path) -> None:
    """Build a wheel, and install it into ``site``."""
    pip = ["-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist", "."]
    python(*pip, *build, folder=source)
    (wheel,) = (source / "dist").glob("schedgym-*.whl")
    python(*pip, "install", "--no-deps", "--target", str(site), str(wheel))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the installed wheel, and nothing else of this checkout."""
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    copy_sources(source)
    install(source, site)
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
    given = {"folder": tmp_path, "PYTHONPATH": str(site), "NUMBA_CACHE_DIR": str(tmp_path)}
    imported = python("-c", IMPORT_ALL, str(site), **given).stdout.split()
    assert "schedgym.baselines.queue_delay.bf_exec" in imported
    assert "schedgym.agents" in imported
    assert len(imported) > 30
