"""Draw the layers of the package from its imports, and measure it: ``python docs/architecture.py``.

Writes docs/pictures/layers.svg and the table of docs/architecture.md. The tests hold the rules.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import networkx
from matplotlib import pyplot

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "layers"

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "pictures" / "layers.svg"

#: top-level folder -> dotted name of the package
FOLDERS = {"schedgym": "schedgym", "baselines": "schedgym.baselines", "agents": "schedgym.agents"}

#: part -> what it holds, by layers from the bottom up; a module imports modules of its own layer and of those
#: below. A problem's ``env`` is in the layer of the environments; the root package registers ids, users and
#: upper layers import it
LAYERS: tuple[dict[str, str], ...] = (
    {"errors": "one line, what and where", "extras": "optional dependencies, packages that add to this one"},
    {"core": "arrays, kernels, the loop over environments"},
    {
        "solvers": "exact compiled algorithms",
        "traces": "readers of public logs",
        "drawing": "pictures",
        "spaces": "spaces of observations",
        "docstrings": "what declarations say, as text",
        "documents": "YAML, read safely",
    },
    {"problems": "a folder each: workload, dynamics, rules, bounds"},
    {"envs": "the environment and the vector environment", "playing": "an episode, step by step"},
    {"baselines": "the papers' algorithms, as policies"},
    {"agents": "networks, training, shipped agents"},
    {"evaluation": "runs, statistics, sweeps, plots, reports", "testing": "checks for problems and policies"},
    {
        "advice": "a log in, a verdict out",
        "papers": "a folder each: model, claims, figures",
        "board": "frozen instances, the judge, best known schedules",
    },
    {"cli": "the command line", "examples": "of agents, and of searches: use all of it"},
)
SAME = {"_version": "errors", "__main__": "cli"}
#: packages are found by these calls at run time: not an import of a higher layer's code
DISCOVERY = {
    ("schedgym.core.problem", "schedgym.problems"),
    ("schedgym.core.policy", "schedgym.baselines"),
}


def modules() -> Iterator[tuple[str, Path]]:
    """Dotted name and file of every module of the project."""
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            yield ".".join((package, *(part for part in parts if part != "__init__"))), path


MODULES = dict(modules())


@functools.cache
def imports(name: str) -> set[str]:
    """Every module that a module imports, anywhere in it, also for type checking; submodules resolved."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
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


def place(name: str) -> str:
    """The part of the package that a module belongs to; "" for the root package."""
    parts = name.split(".")
    if len(parts) == 1:
        return ""
    if parts[1] == "problems" and parts[-1] == "env":
        return "envs"
    if parts[1:3] == ["agents", "examples"]:
        return "examples"
    return SAME.get(parts[1], parts[1])


def layer(name: str) -> int:
    """Return the number of the layer that a module is in, from the bottom."""
    part = place(name) or "envs"
    for number, parts in enumerate(LAYERS):
        if part in parts:
            return number
    raise AssertionError(f"{name} is in no layer of the package")


def import_graph() -> networkx.DiGraph[str]:
    """The imports between the project's own modules."""
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    for name in MODULES:
        for imported in sorted(imports(name)):
            if imported in MODULES and imported != name and (name, imported) not in DISCOVERY:
                graph.add_edge(name, imported)
    return graph


def parts_graph(graph: networkx.DiGraph[str]) -> networkx.DiGraph[str]:
    """The same between the parts of the package, with the number of imports as ``count``."""
    counts = Counter((place(a), place(b)) for a, b in graph.edges if place(a) != place(b))
    result: networkx.DiGraph[str] = networkx.DiGraph()
    result.add_edges_from((a, b, {"count": count}) for (a, b), count in counts.items() if a and b)
    return result


def cycles(graph: networkx.DiGraph[str]) -> list[list[str]]:
    """Modules, or parts, that import each other, directly or not."""
    return [sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1]


def draw(path: Path) -> None:
    """Draw the layers, a row for each part: its purpose, and the number of its imports of each other part."""
    graph = parts_graph(import_graph())
    parts = {part: what for parts in LAYERS for part, what in parts.items()}
    columns = {part: column for column, part in enumerate(parts)}
    figure, axes = pyplot.subplots(figsize=(11.5, 6))
    for number, layer_parts in enumerate(LAYERS):
        first = min(columns[part] for part in layer_parts)
        shade = "#eef3fa" if number % 2 else "#dfe8f4"
        axes.axhspan(first - 0.5, first + len(layer_parts) - 0.5, color=shade, linewidth=0)
    for row, (part, what) in enumerate(parts.items()):
        axes.text(-23.7, row, part, weight="bold", va="center", fontsize=9)
        axes.text(-19.8, row, what, va="center", fontsize=9)
        axes.text(row, row, part, color="#4a6fa5", rotation=35, fontsize=8, va="bottom", ha="left")
        for imported, data in graph[part].items() if part in graph else ():
            column = columns[imported]
            axes.scatter(column, row, s=220, color="#4a6fa5", linewidths=0)
            axes.text(column, row, data["count"], color="white", fontsize=6.5, va="center", ha="center")
    axes.set(xlim=(-24, len(parts) + 1), ylim=(-0.5, len(parts) + 0.5))
    axes.axis("off")
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    pyplot.close(figure)


def functions() -> Iterator[tuple[str, int, int, bool]]:
    """Place, lines without the docstring, parameters of each function, and whether it is compiled."""
    for path in MODULES.values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                doc = ast.get_docstring(node, clean=False)
                lines = (node.end_lineno or 0) - node.lineno - (len(doc.splitlines()) if doc else 0)
                given = node.args
                count = len(given.args) + len(given.kwonlyargs) + len(given.posonlyargs)
                compiled = any(re.search("kernel|helper", ast.unparse(d)) for d in node.decorator_list)
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", lines, count, compiled


def floors() -> dict[str, tuple[int, int]]:
    """Folder -> its lines of Python now, and its budget, from the table of docs/architecture.md.

    What has a row of its own does not count for a folder around it.
    """
    rows = re.findall(
        r"^\| `([^`]+)` \| [\d,]+ \| ([\d,]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    folders = {ROOT / name for name, _ in rows}
    found = {}
    for name, budget in rows:
        inside = {other for other in folders if ROOT / name in other.parents}
        paths = [path for path in (ROOT / name).rglob("*.py") if not inside & set(path.parents)]
        count = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
        found[name] = count, int(budget.replace(",", ""))
    return found


def main() -> None:
    """Draw the picture, and write the lines of today into the table."""
    draw(PICTURE)
    text = PAGE.read_text(encoding="utf-8")
    for name, (lines, _) in floors().items():
        text = re.sub(rf"^(\| `{name}` \|)[^|]*\|", rf"\1 {lines:,} |", text, flags=re.MULTILINE)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
