"""The house: who imports whom, which rooms a problem has, what an import costs, names and docstrings."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import schedgym

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("problem", "workload", "dynamics", "views", "metrics", "bounds", "render", "env")

#: top-level folder -> dotted name of the package
FOLDERS = {"schedgym": "schedgym", "baselines": "schedgym.baselines", "agents": "schedgym.agents"}

#: all Python files and folders with Python files at the top, and the modules directly below schedgym
TOP = {"schedgym", "baselines", "agents", "tests", "notebooks", "docs", "setup.py"}
PACKAGE = {
    "__init__",
    "__main__",
    "_version",
    "errors",
    "envs",
    "drawing",
    "cli",
    "core",
    "problems",
    "solvers",
    "traces",
    "evaluation",
    "reproduce",
    "claims",
    "testing",
}


def modules() -> Iterator[tuple[str, Path]]:
    """Dotted name and file of every module of the project."""
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            name = ".".join((package, *(part for part in parts if part != "__init__")))
            yield name, path


MODULES = dict(modules())


def imports(name: str) -> set[str]:
    """Every module that a module imports, anywhere in it, also for type checking; submodules resolved."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import"
            source = node.module or ""
            for alias in node.names:
                full = f"{source}.{alias.name}"
                found.add(full if full in MODULES else source)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "import_module"
            and isinstance(node.args[0], ast.Constant)
        ):
            found.add(node.args[0].value)
    return found


def layer(name: str) -> int:
    """Which floor of the house a module is on; imports go down or stay (DESIGN, section 1)."""
    parts = name.split(".")
    if name == "schedgym":
        return 4  # registers ids: users and upper floors import it
    if parts[1] in ("errors", "_version"):
        return 0
    if parts[1] == "core":
        return 1
    if parts[1] == "solvers":
        return 2
    if parts[1] == "envs" or (parts[1] == "problems" and parts[-1] == "env"):
        return 4
    if parts[1] in ("traces", "problems", "drawing"):
        return 3
    if parts[1] in ("baselines", "agents", "evaluation", "testing"):
        return 5
    if parts[1] in ("reproduce", "claims", "cli", "__main__"):
        return 6
    raise AssertionError(f"{name} is on no floor of the house")


def ours(names: set[str]) -> set[str]:
    return {name for name in names if name.split(".")[0] == "schedgym"}


#: problem -> the one that it is made of: the online scheduler launches single jobs
BUILDS_ON = {"parallel_jct": "single_job"}

#: packages are found by these calls at run time: not an import of a higher floor's code
DISCOVERY = {
    ("schedgym.core.problem", "schedgym.problems"),
    ("schedgym.core.policy", "schedgym.baselines"),
}
#: named in full because everything else of the root package is below it
LAZY_ROOT = {"schedgym.evaluation"}


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_go_down(name: str) -> None:
    for imported in ours(imports(name)):
        if (name, imported) in DISCOVERY or (name == "schedgym" and imported in LAZY_ROOT):
            continue
        if imported.startswith("schedgym.problems") and imported.count(".") == 1:
            continue  # the package of the problems itself is empty
        assert layer(imported) <= layer(name), f"{name} imports {imported}"


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_that_never_happen(name: str) -> None:
    heads = {imported.split(".")[0] for imported in imports(name)}
    parts = name.split(".")
    if parts[1:2] != ["agents"]:
        learning = {"torch", "stable_baselines3", "sb3_contrib", "tensorboard"}
        assert not heads & learning, f"{name} imports {heads & learning}"
    blind = parts[1:2] == ["core"] or parts[-1] in (
        "dynamics",
        "rules",
        "simulator",
        "metrics",
        "workload",
        "bounds",
    )
    if blind:
        assert "gymnasium" not in heads, f"{name} imports gymnasium"
    if parts[1:2] == ["baselines"]:
        for imported in ours(imports(name)):
            assert imported != "schedgym.envs", name
            assert imported.split(".")[-1] not in ("env", "simulator", "dynamics"), (
                f"{name} imports {imported}: a policy acts from the observation alone"
            )
            assert layer(imported) <= 3 or imported.startswith("schedgym.baselines"), (
                f"{name} imports {imported}"
            )
    if parts[1:2] == ["problems"] and len(parts) > 2:
        for imported in ours(imports(name)):
            if imported.startswith("schedgym.problems."):
                allowed = (parts[2], BUILDS_ON.get(parts[2]))
                assert imported.split(".")[2] in allowed, f"{name} imports another problem: {imported}"
    if parts[1:2] == ["traces"]:
        assert not any(i.startswith("schedgym.problems") for i in ours(imports(name))), name


def test_kernels_reach_no_gymnasium_through_others() -> None:
    kernels = [
        name
        for name in MODULES
        if name.startswith("schedgym.core.")
        or (
            name.startswith("schedgym.problems.")
            and name.split(".")[-1] in ("dynamics", "rules", "metrics", "workload", "bounds")
        )
    ]
    for start in kernels:
        reached, left = set(), [start]
        while left:
            name = left.pop()
            if name in reached or name not in MODULES or (start, name) in DISCOVERY:
                continue
            reached.add(name)
            found = imports(name)
            assert not any(i.split(".")[0] == "gymnasium" for i in found), f"{start} reaches {name}"
            left += [i for i in ours(found) if (name, i) not in DISCOVERY and i != "schedgym"]


def test_every_problem_has_the_same_rooms() -> None:
    folders = [path for path in (ROOT / "schedgym/problems").iterdir() if (path / "__init__.py").exists()]
    assert folders
    for folder in folders:
        for room in ROOMS:
            assert (folder / f"{room}.py").exists(), f"{folder.name} has no {room}.py"
    assert {problem.package.rpartition(".")[2] for problem in _problems().values()} == {
        folder.name for folder in folders
    }


def _problems():
    from schedgym.core.problem import list_problems

    return list_problems()


def test_every_problem_has_policies_in_a_folder_of_its_name() -> None:
    for problem in _problems().values():
        folder = problem.package.rpartition(".")[2]
        assert (ROOT / "baselines" / folder / "__init__.py").exists()
        for spec in schedgym.list_policies(problem.name):
            if spec.factory.__module__.startswith("schedgym."):
                assert spec.factory.__module__.startswith(f"schedgym.baselines.{folder}.")


def test_nothing_stands_beside_the_house() -> None:
    def holds_python(path: Path) -> bool:
        return path.suffix == ".py" or (path.is_dir() and any(path.rglob("*.py")))

    built = {"build", "dist", "venv", "env"}
    top = {
        path.name
        for path in ROOT.iterdir()
        if not path.name.startswith(".") and path.name not in built and holds_python(path)
    }
    assert top <= TOP, f"not in the design: {sorted(top - TOP)}"
    inside = {path.stem for path in (ROOT / "schedgym").iterdir() if holds_python(path)}
    assert inside - {"__pycache__"} <= PACKAGE, f"not in the design: {sorted(inside - PACKAGE)}"


def test_importing_schedgym_is_light() -> None:
    heavy = ("torch", "numba", "pandas", "matplotlib", "scipy", "networkx", "joblib", "rich", "typer")
    code = f"import sys, schedgym; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout.strip() == "[]"
    assert result.stderr == ""


def test_the_descriptors_are_light() -> None:
    code = (
        "import sys, schedgym; schedgym.get_problem('queue-delay').parameters.build(); "
        "print('numba' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout.strip() == "False"


def public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


@pytest.mark.parametrize("name", [name for name in sorted(MODULES) if public(name)])
def test_public_names(name: str) -> None:
    """Each module lists its public names; they exist."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    if all(isinstance(node, ast.Expr) for node in tree.body):
        return  # a package with nothing but its docstring
    module = importlib.import_module(name)
    assert hasattr(module, "__all__"), f"{name} has no __all__"
    assert len(set(module.__all__)) == len(module.__all__)
    for entry in module.__all__:
        assert hasattr(module, entry), f"{name}.__all__ names {entry}, which does not exist"
    if name != "schedgym":
        # ruff sorts them: constants, then classes, then functions
        assert all(not entry.startswith("_") for entry in module.__all__)


@pytest.mark.parametrize("name", [name for name in sorted(MODULES) if public(name)])
def test_public_docstrings(name: str) -> None:
    """Each module, each public class and function in it, and each public method has a docstring."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{name} has no docstring"

    def visit(nodes: list[ast.stmt], where: str) -> None:
        for node in nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                if node.name.startswith("_"):
                    continue
                assert ast.get_docstring(node), f"{where}.{node.name} has no docstring"
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{where}.{node.name}")

    visit(tree.body, name)


def test_every_module_is_found_and_imports() -> None:
    """The three folders are one package, whichever way it is installed."""
    found = {"schedgym"}
    for package in ("schedgym", "schedgym.baselines", "schedgym.agents"):
        module = importlib.import_module(package)
        found.add(package)
        found |= {m.name for m in pkgutil.walk_packages(module.__path__, f"{package}.")}
    assert found == set(MODULES)


def test_no_file_names_a_path_of_one_machine() -> None:
    """Absolute paths of homes and work places have no business in a repository."""
    patterns = ("/home/", "/root/", "/Users/", "/work" + "/")
    for folder in (*FOLDERS, "tests", "notebooks"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".json", ".yaml", ".md", ".ipynb") and path != Path(__file__):
                text = path.read_text(encoding="utf-8")
                assert not [p for p in patterns if p in text], f"{path.name} names a path of one machine"
