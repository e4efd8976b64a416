"""Writes the generated pages of the site: environments, policies, errata, figures, benchmarks, API.

The plugin gen-files runs it during ``mkdocs build``. The pages are templates in ``docs/pages``; what they
show comes from the registries, the docstrings, an episode played now, and the committed results in ``docs/``
(claims.json, benchmarks.json, growth.json, reproduced/). Nothing is written to the checkout.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import importlib
import inspect
import io
import itertools
import json
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import griffe
import gymnasium
import mkdocs_gen_files
import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))

import tables  # noqa: E402
from rendering import plain, render, short, slug  # noqa: E402
from roles import ROLE, link_roles  # noqa: E402

from schedgym.agents.files import list_pretrained  # noqa: E402
from schedgym.core.policy import PolicySpec, list_policies, make_policy  # noqa: E402
from schedgym.core.problem import Problem, list_problems  # noqa: E402
from schedgym.core.record import ScheduleRecord  # noqa: E402
from schedgym.core.workload import Field  # noqa: E402
from schedgym.documents import read_yaml  # noqa: E402
from schedgym.evaluation.episodes import make_env  # noqa: E402
from schedgym.evaluation.gantt import plot_schedule  # noqa: E402
from schedgym.evaluation.plan import acting_parameters  # noqa: E402
from schedgym.evaluation.wording import describe_range, describe_space, four_digits  # noqa: E402
from schedgym.papers import PAPERS, Paper, list_claims, list_figures, show, verdicts  # noqa: E402
from schedgym.playing import Step, steps  # noqa: E402
from schedgym.traces import formats  # noqa: E402
from schedgym.traces.guess import WORDS  # noqa: E402

MOST_BYTES = 150_000  # of a picture
#: class -> name of the id, which is that of its page
ENVIRONMENTS = {
    f"{short(id).rpartition('-v')[0]}Env": short(id)
    for problem in list_problems().values()
    for id in problem.ids
}

#: code and formulas, or, as a group, a symbol with an index in plain text, such as c_j
SYMBOL = re.compile(r"(?s)```.*?```|`[^`]*`|\$[^$]*\$|\b((?:[A-Za-z]|Leq|lambda|load)_(?:[a-z]{1,3}|\d))\b")


def docstring(item: Any, scope: str = "") -> str:
    """Return a docstring with symbols as formulas, and roles as links, for environments to their pages."""
    text = SYMBOL.sub(lambda match: f"${match[1]}$" if match[1] else match[0], inspect.getdoc(item) or "")
    for match in ROLE.finditer(text):
        id = ENVIRONMENTS.get(match[2].rpartition(".")[2])
        if id is not None:
            text = text.replace(match[0], f"[`{match[2]}`]({id}.md)")
    return link_roles(text, scope)


def write(name: str, text: str) -> str:
    """Write a page, or extend a hand-written one, and return its name."""
    written = (DOCS / name).exists()
    with mkdocs_gen_files.open(name, "a" if written else "w") as page:
        page.write(("\n\n" if written else "") + text)
    return name


def make(name: str, template: str, **context: Any) -> str:
    """Write a page by a template of docs/pages, and return its name."""
    helpers = (field_range, functions_of, policy_link, docstring, describe_range, kind_of, four_digits)
    helpers += (show, met, describe_space, home)
    return write(name, render(template, **{one.__name__: one for one in helpers}, **context))


def read(name: str) -> Any:
    """A committed result."""
    return json.loads((DOCS / name).read_text(encoding="utf-8"))


# pictures ------------------------------------------------------------------------------------------


def save_picture(name: str, image: Image.Image) -> str:
    """Write a PNG with a palette, which keeps text sharp and the file small; returns its name."""
    stream = io.BytesIO()
    image.convert("RGB").quantize(128, method=Image.Quantize.MAXCOVERAGE).save(stream, "PNG", optimize=True)
    if stream.tell() > MOST_BYTES:
        raise RuntimeError(f"{name}: {stream.tell()} bytes, more than {MOST_BYTES}")
    with mkdocs_gen_files.open(name, "wb") as file:
        file.write(stream.getvalue())
    return name


def played(problem: Problem, id: str) -> tuple[Image.Image, str, ScheduleRecord, str]:
    """An episode of the small preset by the reference policy: a frame, what it shows, and the schedule."""
    name = f"{problem.name}/{problem.ids[id].reference}"
    policy = make_policy(name)
    env = make_env(id, acting_parameters(problem, id, problem.presets["small"], name))
    render = problem.module("render").render_rgb_array

    def begin() -> Iterator[Step]:
        return steps(env, policy, seed=1, label=name)

    count = sum(1 for _ in begin()) - 1
    record = env.record()
    if count > 1:
        for _ in itertools.islice(begin(), count // 2 + 1):  # the begin, and half of the steps
            pass
    moment = "The middle" if count > 1 else "The end"  # of a single decision
    return cropped(render(env.simulator, 0)), moment, record, name


def cropped(frame: Any) -> Image.Image:
    """A frame without the empty rows below: space for jobs that are not there."""
    last = int(np.flatnonzero((frame != frame[-1]).any(axis=(1, 2))).max())
    return Image.fromarray(frame[: min(len(frame), last + 12)])


def schedule_picture(record: ScheduleRecord, policy: str) -> Image.Image:
    """Draw which job ran where and when."""
    figure = plot_schedule(record, policy=policy.partition("/")[2], most_rows=24)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=100)
    return Image.open(stream)


# environments --------------------------------------------------------------------------------------


def environments() -> list[str]:
    """A page per id, and the index."""
    ids = {id: (problem, paper_of(id)) for problem in list_problems().values() for id in problem.ids}
    pages = [environment(problem, id, paper) for id, (problem, paper) in ids.items()]
    return [make("environments/index.md", "environments.md", ids=ids), *pages]


def paper_of(id: str) -> Paper:
    """The paper that an environment comes from."""
    return next(paper for paper in PAPERS if id in paper.problems)


def environment(problem: Problem, id: str, paper: Paper) -> str:
    """The page of an id, and its pictures."""
    env_class = type(gymnasium.make(id, disable_env_checker=True).unwrapped)
    head, _, body = docstring(env_class, env_class.__module__).partition("\n## ")
    image, moment, record, policy = played(problem, id)
    save_picture(f"environments/{slug(short(id))}.png", image)
    save_picture(f"environments/{slug(short(id))}-schedule.png", schedule_picture(record, policy))
    workload = problem.module("workload")
    return make(
        f"environments/{short(id)}.md",
        "environment.md",
        **{"problem": problem, "id": id, "variant": problem.ids[id], "paper": paper},
        **{"head": head, "body": body, "moment": moment, "policy": policy},
        fields=dataclasses.fields(problem.parameters),
        kinds=problem.parameters.kinds(),
        spaces={view.name: spaces(problem, id, view.name) for view in problem.views},
        schema=workload.SCHEMA,
        folder=Path(workload.__file__).parent.relative_to(ROOT),
        bounds=problem.module("bounds"),
        shipped=id in list_pretrained(),
    )


def spaces(problem: Problem, id: str, view: str) -> dict[str, Any]:
    """The space of a view's actions, and of both kinds of observations each array's."""
    found: dict[str, Any] = {"observations": {}}
    for kind in ("dict", "features"):
        chosen = {**problem.presets["small"], "view": view, "observation": kind}
        env = gymnasium.make(id, disable_env_checker=True, **chosen)
        found["action"] = env.action_space
        found["observations"][kind] = env.observation_space.spaces
    return found


def field_range(field: Field) -> tuple[str, str]:
    """The values that a field may have, and what else holds of them."""
    if field.choices or field.kind == "bool":
        allowed = ", ".join(field.choices or ("true", "false"))
    else:
        allowed = f"{'more than' if field.exclusive else 'at least'} {field.minimum:g}"
        if np.isfinite(field.maximum):
            allowed += f", at most {field.maximum:g}"
    notes = {
        "whole numbers": field.kind == "int" and not field.choices,
        "not decreasing": field.ascending,
        "lists of different lengths": field.ragged,
        f"or an object with the names {', '.join(field.keys)}": field.keys,
        "may be missing": field.optional,
    }
    return allowed, "; ".join(note for note, holds in notes.items() if holds)


def functions_of(module: Any) -> list[tuple[str, str]]:
    """Name and first line of the docstring of a module's public functions."""
    found = [one for one in map(vars(module).get, public_names(module)) if inspect.isfunction(one)]
    return [(one.__name__, link_roles((inspect.getdoc(one) or "").partition("\n")[0])) for one in found]


# policies ------------------------------------------------------------------------------------------


def policy_page(name: str) -> str:
    """The page of a registered policy, below docs."""
    return f"policies/{name.partition('/')[0]}/{slug(short(name))}.md"


def policy_link(name: str) -> str:
    """A link to the page of a policy, from a page of a section."""
    return f"[`{short(name)}`](../{policy_page(name)})"


def policies() -> list[Any]:
    """A page per policy, by problem, and the index."""
    problems = [(problem, list_policies(problem.name)) for problem in list_problems().values()]
    nav = [
        {problem.name: [{spec.name: policy(problem, spec)} for spec in specs]} for problem, specs in problems
    ]
    return [make("policies/index.md", "policies.md", problems=problems), *nav]


def policy(problem: Problem, spec: PolicySpec) -> str:
    """The page of a policy."""
    text, meanings, complexity = "", {}, ""
    doc = griffe.Docstring(docstring(spec.factory, spec.factory.__module__))
    for section in doc.parse("google", warnings=False):
        if section.kind is griffe.DocstringSectionKind.parameters:
            meanings = {entry.name: entry.description for entry in section.value}
        elif section.kind is griffe.DocstringSectionKind.text:
            text += section.value + "\n\n"
    if found := re.search(r"^Complexity: (.*?)(\n\n|\Z)", text, flags=re.DOTALL | re.MULTILINE):
        complexity, text = found[1].replace("\n", " "), text.replace(found[0], "\n\n")
    unmet = ", ".join(spec.unmet(collections.defaultdict(lambda: None)))
    signature = inspect.signature(spec.factory).parameters
    return make(
        policy_page(spec.name),
        "policy.md",
        **{"spec": spec, "text": text, "complexity": complexity, "meanings": meanings},
        kinds={name: kind_of(parameter.annotation) for name, parameter in signature.items()},
        ids=[short(id) for id, variant in problem.ids.items() if short(spec.name) in variant.policies],
        unmet=plain(unmet).replace("'", ""),
    )


def kind_of(kind: Any) -> str:
    """An annotation as text."""
    if kind is inspect.Parameter.empty:
        return ""
    return kind if isinstance(kind, str) else inspect.formatannotation(kind)


# errata --------------------------------------------------------------------------------------------


def errata() -> list[Any]:
    """A page per paper of its claims, and the summary."""
    evidence = {entry["claim"]: entry for entry in read("claims.json")["claims"]}
    pages = []
    for paper in PAPERS:
        claims, statements = list_claims(paper.key), verdicts.statements(paper)
        entries = [*claims, *list_figures(paper.key)]
        page = make(
            f"errata/{paper.key}.md",
            "errata.md",
            **{"paper": paper, "evidence": evidence, "statements": statements},
            points=list(dict.fromkeys(point for entry in entries for point in entry.under)),
            stated={said.name: said for said in statements},
            own=[claim for claim in claims if not claim.ours],
            ours=[claim for claim in claims if claim.ours],
        )
        pages.append({f"{paper.key}: {paper.topic}": page})
    return [write("errata/index.md", tables.verdicts() + "\n"), *pages]


# figures -------------------------------------------------------------------------------------------


def figures() -> list[Any]:
    """A page per paper of its figures that have been reproduced, and the table of all figures."""
    rows, pages = [], []
    for paper in PAPERS:
        found = [
            (one, *(tables.committed(one, scale) for scale in tables.FOLDERS))
            for one in list_figures(paper.key)
        ]
        rows += [(paper, *row) for row in found]
        done = [(*row, changed(*row[1:])) for row in found if row[1]]
        if done:
            page = make(f"figures/{paper.key}.md", "figures.md", paper=paper, figures=done)
            pages.append({f"{paper.key}: {paper.topic}": page})
    return [make("figures/index.md", "all-figures.md", rows=rows), *pages]


def changed(small: Mapping[str, Any], large: Mapping[str, Any]) -> list[tuple[Any, str, str]]:
    """The statements with another verdict at the paper's scale: each, the verdict, that before."""
    words = large.get("reading", "")
    before = {said["claim"]: said["readings"].get(words, said)["verdict"] for said in small["claims"]}
    found = [
        (said, said["readings"].get(words, said)["verdict"], before.get(said["claim"], "not asked"))
        for said in large.get("claims", ())
    ]
    return [row for row in found if row[1] != row[2]]


# benchmarks ----------------------------------------------------------------------------------------


def benchmarks() -> None:
    """The tables below the hand-written page: speed, and growth where it was measured."""
    growth = read("growth.json") if (DOCS / "growth.json").exists() else None
    make("benchmarks.md", "benchmarks.md", speed=read("benchmarks.json"), growth=growth)


def met(row: Mapping[str, Any]) -> str:
    """A word that says if a run met the target of a benchmark; "" where there is none."""
    if row["target"] == "-":
        return ""
    sign, aim, *relative = row["target"].split()
    value = float(row["ratio"]) if relative else row["value"]  # to CartPole
    return "met" if (value >= float(aim) if sign == ">=" else value <= float(aim)) else "missed"


# API -----------------------------------------------------------------------------------------------

#: module -> what its page is called; a name is documented on the first page that exports it
API = {
    "schedgym.core.problem": "Problems",
    "schedgym.core.policy": "Policies",
    "schedgym.core.workload": "Workloads",
    "schedgym.core.workload_files": "Workload files",
    "schedgym.core.source": "Sources",
    "schedgym.core.future": "Changed futures",
    "schedgym.core.arrays": "Arrays",
    "schedgym.core.stepping": "Steps",
    "schedgym.core.tables": "Tables",
    "schedgym.core.simulator": "Simulators",
    "schedgym.core.tokens": "Tokens",
    "schedgym.envs": "Environments",
    "schedgym.advice": "Advice",
    "schedgym.evaluation": "Evaluation",
    "schedgym.testing": "Testing",
    "schedgym.traces": "Traces",
    "schedgym.agents": "Agents",
    "schedgym.papers": "Papers",
    "schedgym": "Others",
}
SEPARATE = ("schedgym.agents", "schedgym.traces")  # packages whose modules are public one by one


def api() -> list[Any]:
    """A page per public module, and the index with what the package itself exports."""
    taken: set[int] = set()
    nav, pages = [], []
    for public, title in API.items():
        found = importlib.import_module(public)
        modules = [found]
        if public in SEPARATE:
            names = [module.name for module in pkgutil.iter_modules(found.__path__) if not module.ispkg]
            modules += [importlib.import_module(f"{public}.{name}") for name in names]
        members = {
            one.__name__: [n for n in public_names(one) if is_new(getattr(one, n), taken)] for one in modules
        }
        page = make(f"api/{public.replace('.', '-')}.md", "api.md", title=title, modules=members)
        nav.append({title: page})
        pages.append((title, Path(page).name, public, docstring(found).partition("\n")[0]))
    package = importlib.import_module("schedgym")
    exported = {name: getattr(package, name) for name in package.__all__ if not name.startswith("__")}
    return [make("api/index.md", "api-index.md", pages=pages, exported=exported), *nav]


def libraries() -> None:
    """The page on other libraries: their scripts, and what came of them."""
    scripts = {path.name: path.read_text(encoding="utf-8") for path in sorted((DOCS / "libraries").iterdir())}
    tried = read("libraries.json") if (DOCS / "libraries.json").exists() else None
    make("how-to/libraries.md", "libraries.md", scripts=scripts, tried=tried)


def reads() -> None:
    """The page on what is read: the formats, their examples, and the names that columns may have."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "examples").iterdir()}
    own = {"examples": read_yaml(DOCS / "examples.yaml"), "words": read_yaml(WORDS)}
    make("how-to/reads.md", "reads.md", texts=texts, formats=formats().values(), **own)


def public_names(module: Any) -> list[str]:
    """What a module lists, else its own types and functions without an underscore."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    names: list[str] = []
    for node in ast.parse(inspect.getsource(module)).body:
        defined = (
            [node] if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else getattr(node, "targets", [])
        )
        names += [getattr(one, "name", getattr(one, "id", "_")) for one in defined]
    return [name for name in names if not (name.startswith("_") or name.isupper())]


def home(item: Any) -> str:
    """Dotted name of where a class or function is defined."""
    return f"{item.__module__}.{item.__qualname__}"


def is_new(item: Any, taken: set[int]) -> bool:
    """Return True if an item is no class or function, or one that has not been documented before."""
    if not (inspect.isclass(item) or inspect.isroutine(item)):
        return True
    new = id(item) not in taken
    taken.add(id(item))
    return new


def notebooks() -> list[str]:
    """The notebooks as they are committed, outputs included."""
    pages = []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        with mkdocs_gen_files.open(f"notebooks/{path.name}", "wb") as file:
            file.write(path.read_bytes())
        pages.append(f"notebooks/{path.name}")
    return pages


def expand(nav: list[Any], folders: Mapping[str, list[Any]]) -> list[Any]:
    """The navigation with each folder replaced by its pages."""
    found = []
    for entry in nav:
        ((title, target),) = entry.items()
        if isinstance(target, list):
            target = expand(target, folders)
        found.append({title: folders.get(target, target) if isinstance(target, str) else target})
    return found


def main() -> None:
    """Write all pages, and enter them in the navigation."""
    benchmarks()
    reads()
    libraries()
    config = mkdocs_gen_files.config
    config.nav = expand(
        config.nav,
        {
            "environments/": environments(),
            "policies/": policies(),
            "errata/": errata(),
            "figures/": figures(),
            "notebooks/": notebooks(),
            "api/": api(),
        },
    )


main()
