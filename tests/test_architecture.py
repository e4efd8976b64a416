"""Who imports whom, which modules a problem has, what an import costs, and names."""

from __future__ import annotations

import importlib.util
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

import schedgym
from tests.interpreted import python
from tests.long import some
from tests.tables import entry

ROOT = Path(__file__).resolve().parents[1]


def load_architecture() -> ModuleType:
    """docs/architecture.py: what reads the imports and measures the package."""
    spec = importlib.util.spec_from_file_location("architecture", ROOT / "docs" / "architecture.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ARCHITECTURE = load_architecture()
MODULES: dict[str, Path] = ARCHITECTURE.MODULES

PARTS = entry(__file__, "PARTS")
#: all Python files and folders with Python files at the top, and the modules directly below schedgym
TOP = {"schedgym", "baselines", "agents", "benchmarks", "tests", "notebooks", "docs", "setup.py"}
PACKAGE = {"__init__", "_version", "__main__"} | {part for parts in ARCHITECTURE.LAYERS for part in parts}
#: problem -> the one that it is made of: the online scheduler launches single jobs
BUILDS_ON = {"parallel_jct": "single_job"}
#: named in full because everything else of the root package is below it
LAZY_ROOT = {"schedgym.evaluation", "schedgym.advice"}
#: modules of a problem that kernels are made of
COMPILED = (
    *("dynamics", "state", "observation", "rules", "orders", "rollouts", "columns"),
    *("metrics", "workload", "bounds"),
)


def ours(names: set[str]) -> set[str]:
    return {name for name in names if name.split(".")[0] == "schedgym"}


def test_imports_go_down() -> None:
    upward = [
        f"{name} imports {imported}"
        for name in MODULES
        for imported in ours(ARCHITECTURE.imports(name))
        if (name, imported) not in ARCHITECTURE.DISCOVERY
        and not (name == "schedgym" and imported in LAZY_ROOT)
        and imported != "schedgym.problems"  # the package of the problems itself is empty
        and ARCHITECTURE.layer(imported) > ARCHITECTURE.layer(name)
    ]
    assert not upward


def test_nobody_imports_in_a_cycle() -> None:
    graph = ARCHITECTURE.import_graph()
    assert ARCHITECTURE.cycles(graph) == []
    assert ARCHITECTURE.cycles(ARCHITECTURE.parts_graph(graph)) == []


def test_a_cycle_would_be_seen() -> None:
    graph = ARCHITECTURE.import_graph()
    graph.add_edge("schedgym.core.arrays", "schedgym.envs")
    found = [set(group) for group in ARCHITECTURE.cycles(ARCHITECTURE.parts_graph(graph))]
    assert len(found) == 1 and {"core", "envs"} <= found[0]


def test_functions_are_short_and_take_few_parameters() -> None:
    long = [
        f"{place}: {lines} lines, {given} parameters"
        for place, lines, given, compiled in ARCHITECTURE.functions()
        if not compiled and (lines > 80 or given > 8)
    ]
    assert not long


LONGEST, LONG_FILES = 900, entry(__file__, "LONG_FILES")


def test_files_are_short_or_say_why_not() -> None:
    lines = {str(path.relative_to(ROOT)): path.read_text().count("\n") for path in MODULES.values()}
    assert {name for name, count in lines.items() if count > LONGEST} == set(LONG_FILES)


def test_imports_that_never_happen() -> None:
    learning = {"torch", "stable_baselines3", "sb3_contrib", "tensorboard"}
    for name in MODULES:
        heads = {imported.split(".")[0] for imported in ARCHITECTURE.imports(name)}
        parts = name.split(".")
        if parts[1:2] != ["agents"]:
            assert not heads & learning, f"{name} imports {heads & learning}"
        if parts[1:2] == ["evaluation"]:  # it takes half a second to import, 7% of a small comparison
            assert "scipy.stats" not in ARCHITECTURE.imports(name), f"{name} imports scipy.stats"
        if parts[1:2] == ["core"] or parts[-1] in (*COMPILED, "simulator"):
            assert "gymnasium" not in heads, f"{name} imports gymnasium"
        for imported in ours(ARCHITECTURE.imports(name)):
            if parts[1:2] == ["baselines"]:
                assert imported.split(".")[-1] not in ("env", "envs", "simulator", "dynamics"), (
                    f"{name} imports {imported}: a policy acts from the observation alone"
                )
            if parts[1:2] == ["problems"] and imported.startswith("schedgym.problems."):
                allowed = (parts[2], BUILDS_ON.get(parts[2]))
                assert imported.split(".")[2] in allowed, f"{name} imports another problem: {imported}"
            if parts[1:2] == ["traces"]:
                assert not imported.startswith("schedgym.problems"), name


def test_kernels_reach_no_gymnasium_through_others() -> None:
    kernels = [
        name
        for name in MODULES
        if name.startswith("schedgym.core.")
        or (name.startswith("schedgym.problems.") and name.split(".")[-1] in COMPILED)
    ]
    for start in kernels:
        reached, left = set(), [start]
        while left:
            name = left.pop()
            if name in reached or name not in MODULES or (start, name) in ARCHITECTURE.DISCOVERY:
                continue
            reached.add(name)
            found = ARCHITECTURE.imports(name)
            if name != "schedgym.extras":  # which imports its error only to raise it
                assert not any(i.split(".")[0] == "gymnasium" for i in found), f"{start} reaches {name}"
            left += [i for i in ours(found) if (name, i) not in ARCHITECTURE.DISCOVERY and i != "schedgym"]


def test_every_problem_has_the_same_modules() -> None:
    folders = [path for path in (ROOT / "schedgym/problems").iterdir() if (path / "__init__.py").exists()]
    assert folders
    for folder in folders:
        for part in PARTS:
            assert (folder / f"{part}.py").exists(), f"{folder.name} has no {part}.py"
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


def test_agents_name_no_problem() -> None:
    """What they know of one stands in its folder, but for configurations, trained agents and the examples."""
    from schedgym.core.tokens import tokens_of

    for problem in _problems().values():
        ids = {id.partition("/")[2].rpartition("-")[0] for id in problem.ids}
        names = {problem.name, problem.package.rpartition(".")[2], *ids}
        entries = {name for own in tokens_of(problem.name).sets for name in (own.key, own.mask) if name}
        names |= {f'"{name}"' for name in entries - {"pairs"}}  # which is also the name of a kind of actions
        for path in sorted((ROOT / "agents").glob("*.py")):
            text = path.read_text(encoding="utf-8")
            for name in names:
                assert not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text), f"{path.name} names {name}"


def test_nothing_stands_beside_the_package() -> None:
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


LIGHT = entry(__file__, "LIGHT")


@pytest.mark.parametrize("code", some(LIGHT, of=3))
def test_imports_are_light(code: str) -> None:
    found = f"[name for name in sys.modules if name.startswith({tuple(LIGHT[code].split())})]"
    done = python("-c", f"{code}; import sys; print({found}, file=sys.stderr)")
    assert done.stderr == "[]\n" and ("--help" in code or done.stdout == "")


def test_no_part_outgrows_its_budget() -> None:
    """A budget is raised in a commit of its own; the table of docs/architecture.md has them all."""
    floors = ARCHITECTURE.floors()
    assert {"schedgym", "baselines", "agents", "benchmarks", "docs", "tests"} <= set(floors)
    assert {f"schedgym/{name}" for name in ("core", "problems", "evaluation", "papers")} <= set(floors)
    over = {
        name: f"{lines} lines, {budget} allowed" for name, (lines, budget) in floors.items() if lines > budget
    }
    assert not over


def public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


def test_public_names() -> None:
    """Names without an underscore are public; packages list those that are imported through them."""
    for name in filter(public, MODULES):
        module = importlib.import_module(name)
        names = getattr(module, "__all__", [])
        assert not names or MODULES[name].name == "__init__.py", f"{name} has an __all__"
        assert len(set(names)) == len(names)
        assert name == "schedgym" or not any(own.startswith("_") for own in names)
        for own in names:
            assert hasattr(module, own), f"{name}.__all__ names {own}, which does not exist"


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
    for folder in (*ARCHITECTURE.FOLDERS, "tests", "notebooks"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".json", ".yaml", ".md", ".ipynb") and path != Path(__file__):
                text = path.read_text(encoding="utf-8")
                assert not [p for p in patterns if p in text], f"{path.name} names a path of one machine"
