"""``schedgym new``: what it writes works, as a package that entry points announce, and inside a checkout."""

import importlib.util
import keyword
import os
import tomllib
from pathlib import Path

import pytest

from schedgym import cli
from tests.commands import refused
from tests.interpreted import python
from tests.long import long
from tests.tables import table

ROOT = Path(__file__).resolve().parents[1]
KINDS = {"problem": "tiny-shop", "policy": "small-fry", "trace": "our-log"}


def install(folder, name):
    """Announce a package by its entry points, as pip does, without building it."""
    project = tomllib.loads((folder / name / "pyproject.toml").read_text())["project"]
    info = folder / name / f"{name.replace('-', '_')}-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    groups = project["entry-points"].items()
    points = "".join(
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in own.items()) for group, own in groups
    )
    (info / "entry_points.txt").write_text(points)


@long
@pytest.mark.parametrize("kind", KINDS)
def test_a_package_of_its_own_passes_its_test(kind, tmp_path, monkeypatch):
    """The command line finds the problem, policy or format by its entry point, and its own test passes."""
    monkeypatch.chdir(tmp_path)
    name = KINDS[kind]
    assert cli.main(["new", kind, name]) == 0
    install(tmp_path, name)
    given = {"folder": tmp_path, "PYTHONPATH": f"{tmp_path / name}{os.pathsep}{ROOT}"}
    assert (
        " passed" in python("-m", "pytest", "-q", "-p", "no:cacheprovider", f"{name}/tests", **given).stdout
    )
    shown = {"problem": ["describe", "schedgym/TinyShop-v0"], "policy": ["describe", "queue-delay/small-fry"]}
    listed = python("-m", "schedgym", *shown.get(kind, ["trace", "list"]), **given).stdout
    assert name in listed or "TinyShop-v0" in listed


def test_a_new_problem_describes_its_tokens(tmp_path, monkeypatch):
    """By the annotations of their columns; a column without one has its name, as it is."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new", "problem", "tiny-shop"]) == 0
    columns = tmp_path / "tiny-shop/tiny_shop/columns.py"
    code = "from tiny_shop.env import TinyShopEnv; print(TinyShopEnv.__doc__)"
    given = {"folder": tmp_path / "tiny-shop", "PYTHONPATH": str(ROOT)}
    text = python("-c", code, **given).stdout
    assert "| `next` | `Discrete(N)` | the job that runs next |" in text
    assert "`jobs` (job, 2): processing / (processing + 60); weight / (weight + 1)." in text
    columns.write_text(columns.read_text().replace('Annotated[float, "weight / (weight + 1)"]', "float"))
    assert "(processing + 60); weight." in python("-c", code, **given).stdout


@pytest.mark.parametrize("kind", KINDS)
def test_in_a_checkout_the_files_go_to_their_places(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for folder in ("schedgym/problems", "baselines"):
        Path(folder).mkdir(parents=True)
    assert cli.main(["new", kind, KINDS[kind]]) == 0
    written = {path.as_posix() for path in Path().rglob("*") if path.is_file()}
    assert all((ROOT / path).parents[1].is_dir() for path in written)
    places = {
        "problem": {"schedgym/problems/tiny_shop/problem.py", "baselines/tiny_shop/orders.py"},
        "policy": {"baselines/queue_delay/small_fry.py", "tests/queue_delay/test_small_fry.py"},
        "trace": {"schedgym/traces/formats/our-log.yaml", "tests/traces/test_our_log.py"},
    }
    assert written >= places[kind]
    text = "".join(Path(path).read_text() for path in written)
    assert (
        "one_machine" not in text
        and "OneMachine" not in text
        and "smallest" not in text.replace("the smallest", "")
    )
    assert "exists already" in refused(capsys, "new", kind, KINDS[kind])


@pytest.mark.parametrize(("arguments", "message"), table(__file__, "test_bad_names"))
def test_bad_names(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, "new", *arguments)


def test_a_keyword_names_no_module_of_a_checkout_either(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for folder in ("schedgym/problems", "baselines"):
        Path(folder).mkdir(parents=True)
    assert "name: class is a keyword of Python" in refused(capsys, "new", "policy", "class")
    assert not list(tmp_path.rglob("*.py"))


def test_soft_keywords_name_modules(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [name for name in keyword.softkwlist if name.isalpha()]  # "_" is none that is taken
    for name in names:
        assert cli.main(["new", "policy", name]) == 0
    for path in tmp_path.rglob("*.py"):
        compile(path.read_text(), path, "exec")
    imports = (f"from {name}.policy import {name.capitalize()}" for name in names)
    python("-c", "\n".join((f"import sys; sys.path += {names}", *imports)), folder=tmp_path)


def test_the_templates_are_the_code_of_the_pages():
    spec = importlib.util.spec_from_file_location("templates", ROOT / "docs/templates.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.templates()
    assert len(found) > 12
    for path, content in found.items():
        assert path.read_text(encoding="utf-8") == content, f"{path}: run docs/templates.py"
