"""Writes the generated pages of the site: environments, policies, errata, figures, benchmarks, API.

The plugin gen-files runs it during ``mkdocs build``. Everything comes from the registries, the docstrings, an
episode played now, and the committed results in ``docs/`` (claims.json, benchmarks.json, growth.json,
reproduced/). Nothing is written to the checkout.
"""

from __future__ import annotations

import collections
import importlib
import inspect
import io
import itertools
import json
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import griffe
import gymnasium
import mkdocs_gen_files
import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
REPRODUCED = {"small": "reproduced", "paper": "reproduced/paper"}  # scale -> folder of the figures
sys.path.insert(0, str(DOCS))

import tables  # noqa: E402
from roles import ROLE, link_roles  # noqa: E402

from schedgym.agents.files import list_pretrained  # noqa: E402
from schedgym.core.policy import PolicySpec, list_policies, make_policy  # noqa: E402
from schedgym.core.problem import Problem, list_problems  # noqa: E402
from schedgym.core.record import ScheduleRecord  # noqa: E402
from schedgym.core.workload import Field, Schema  # noqa: E402
from schedgym.evaluation.episodes import Step, make_env, steps  # noqa: E402
from schedgym.evaluation.gantt import plot_schedule  # noqa: E402
from schedgym.evaluation.plan import acting_parameters  # noqa: E402
from schedgym.evaluation.wording import describe_range, describe_space, four_digits, time_text, value_text  # noqa: E402
from schedgym.papers import (  # noqa: E402
    PAPERS,
    Claim,
    Figure,
    Paper,
    list_claims,
    list_figures,
    show,
    verdicts,
)

MOST_BYTES = 150_000  # of a picture
#: class -> name of the id, which is that of its page
ENVIRONMENTS = {
    f"{id.partition('/')[2].rpartition('-v')[0]}Env": id.partition("/")[2]
    for problem in list_problems().values()
    for id in problem.ids
}
BETTER = {"min": "less", "max": "more", "": ""}

Rows = Iterable[Sequence[str]]

#: code and formulas, or, as a group, a symbol with an index in plain text, such as c_j
SYMBOL = re.compile(r"(?s)```.*?```|`[^`]*`|\$[^$]*\$|\b((?:[A-Za-z]|Leq|lambda|load)_(?:[a-z]{1,3}|\d))\b")


# Markdown ------------------------------------------------------------------------------------------


def plain(text: object) -> str:
    """Return ``text`` escaped so that Markdown shows it letter by letter, also in the cell of a table."""
    safe = str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", safe).replace("\n", " ")


def code(text: object) -> str:
    """Return ``text`` as code, or nothing for nothing. A bar within code does not end the cell of a table."""
    return f"`{text}`" if str(text) else ""


def table(headings: Sequence[str], rows: Rows) -> str:
    """Return a table; its cells are Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def values(items: Mapping[str, Any]) -> str:
    """Return names and values as code."""
    return ", ".join(code(f"{name}={value_text(value)}") for name, value in items.items()) or "the defaults"


def slug(name: str) -> str:
    """Return a name as the name of a file."""
    return name.replace("+", "-plus").replace("/", "-").lower()


def docstring(item: Any, scope: str = "") -> str:
    """Return a docstring with symbols as formulas, and roles as links, for environments to their pages."""
    text = SYMBOL.sub(lambda match: f"${match[1]}$" if match[1] else match[0], inspect.getdoc(item) or "")
    for match in ROLE.finditer(text):
        id = ENVIRONMENTS.get(match[2].rpartition(".")[2])
        if id is not None:
            text = text.replace(match[0], f"[`{match[2]}`]({id}.md)")
    return link_roles(text, scope)


def write(name: str, *parts: str) -> str:
    """Write a page, or extend a hand-written one, and return its name."""
    written = (DOCS / name).exists()
    with mkdocs_gen_files.open(name, "a" if written else "w") as page:
        page.write(("\n\n" if written else "") + "\n\n".join(part for part in parts if part) + "\n")
    return name


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
    pages, cards = [], []
    for problem in list_problems().values():
        for id in problem.ids:
            page, frame = environment(problem, id)
            pages.append(page)
            paper = paper_of(id)
            cards.append(
                [
                    f"[`{Path(page).stem}`]({Path(page).name})",
                    plain(problem.ids[id].title),
                    code(problem.objective_of(problem.build(id))),
                    f"[{paper.key}](../errata/{paper.key}.md)",
                    f"[![A frame of {id}]({Path(frame).name}){{ width=320 }}]({Path(page).name})",
                ]
            )
    index = write(
        "environments/index.md",
        "# Environments",
        "Every environment is made by `gym.make(id, **parameters)`, and `gym.make_vec(id, num_envs=n)` "
        "makes n of them in one compiled simulator.",
        table(["id", "what is decided", "objective", "paper", "the middle of an episode"], cards),
    )
    return [index, *pages]


def paper_of(id: str) -> Paper:
    """The paper that an environment comes from."""
    return next(paper for paper in PAPERS if id in paper.problems)


def environment(problem: Problem, id: str) -> tuple[str, str]:
    """The page of an id, and its picture."""
    variant, paper = problem.ids[id], paper_of(id)
    short = id.partition("/")[2]
    env_class = type(gymnasium.make(id, disable_env_checker=True).unwrapped)
    head, _, body = docstring(env_class, env_class.__module__).partition("\n## ")
    image, moment, record, policy = played(problem, id)
    frame = save_picture(f"environments/{slug(short)}.png", image)
    schedule = save_picture(f"environments/{slug(short)}-schedule.png", schedule_picture(record, policy))
    page = write(
        f"environments/{short}.md",
        f"# {short}",
        head,
        f"![A frame of an episode]({Path(frame).name})",
        f"*{moment} of an episode of the preset `small`, played by {policy_link(policy)}.*",
        f"![The schedule of that episode]({Path(schedule).name})",
        "*The schedule of that episode: which job ran where and when, and below it the load; the dashed "
        "line is the capacity. A job has the same colour in both pictures.*",
        f"## {body}",
        "## Paper",
        f"{plain(paper.citation)} [What holds of it](../errata/{paper.key}.md).",
        "## Parameters",
        f"These are keyword arguments of `gym.make`, and options of `schedgym compare {id}`. Comparisons of "
        f"baselines set {values(variant.baseline_parameters)} by default.",
        parameters(problem, id),
        "## Presets",
        "`schedgym compare --preset NAME` sets these values.",
        table(["preset", "parameters"], [[code(k), values(v)] for k, v in problem.presets.items()]),
        "## Views and their spaces",
        "The first view is of [full fidelity](../glossary.md). Spaces are those of the preset `small`.",
        views(problem, id),
        "## Workload file",
        workload_file(problem, id),
        "## Metrics",
        f'`info["metrics"]` has these at the end of an episode. The objective is '
        f"{code(problem.objective_of(problem.build(id)))}.",
        table(
            ["metric", "unit", "better", "meaning"],
            [[code(m.name), plain(m.unit), BETTER[m.better], plain(m.help)] for m in problem.metrics],
        ),
        "## Policies",
        f"A comparison runs {', '.join(policy_link(f'{problem.name}/{name}') for name in variant.policies)}; "
        f"differences refer to {policy_link(f'{problem.name}/{variant.reference}')}. "
        f"[All policies of the problem](../policies/index.md#{problem.name}).",
        statements(problem),
        "## Bounds",
        bounds(problem),
        agents(id),
    )
    return page, frame


def parameters(problem: Problem, id: str) -> str:
    """The table of an id's parameters."""
    kinds, own = problem.parameters.kinds(), problem.ids[id].parameters
    rows = []
    for name, field in problem.parameters.__dataclass_fields__.items():
        kind, rules = kinds[name], field.metadata
        rows.append(
            [
                code(name),
                code(getattr(kind, "__name__", str(kind)) if "|" not in str(kind) else kind),
                code(value_text(own.get(name, field.default))),
                plain(describe_range(kind, rules)),
                plain(rules.get("help", "")),
            ]
        )
    return table(["parameter", "type", "default", "range", "meaning"], rows)


def workload_file(problem: Problem, id: str) -> str:
    """The fields of a workload file, and where an example lies."""
    schema: Schema = problem.module("workload").SCHEMA
    rows = []
    for section in ("jobs", "tasks", "cluster", "parameters"):
        for field in getattr(schema, section):
            name, shape = code(f"{section}.{field.name}"), ", ".join(field.dimensions) or "-"
            rows.append([name, plain(shape), plain(field.unit), *field_range(field)])
    folder = Path(problem.module("workload").__file__).parent.relative_to(ROOT)
    text = (
        f"`gym.make(..., workload=FILE)` and `schedgym run {id} --workload FILE` read JSON, whose "
        f"sections are objects of named arrays, or a numpy archive. `{folder}/example.json` is one, and "
        "`schedgym.save_workload(env.unwrapped.record().workload, FILE)` writes the workload of any episode."
    )
    return f"{text}\n\n{table(['field', 'a value for each', 'unit', 'range', ''], rows)}"


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
    return allowed, plain("; ".join(note for note, holds in notes.items() if holds))


def views(problem: Problem, id: str) -> str:
    """A table of the views, and of each the observations' spaces in both kinds."""
    rows, details = [], []
    for view in problem.views:
        spaces = {}
        for kind in ("dict", "features"):
            chosen = {**problem.presets["small"], "view": view.name, "observation": kind}
            env = gymnasium.make(id, disable_env_checker=True, **chosen)
            spaces[kind] = env.observation_space.spaces
        rows.append([code(view.name), plain(view.help), code(describe_space(env.action_space))])
        details.append(f'??? note "Observations of view {view.name}"\n')
        for kind, found in spaces.items():
            lines = table(
                [f'`observation="{kind}"`', "space"],
                [[code(k), code(describe_space(s))] for k, s in found.items()],
            )
            details.append("".join(f"    {line}\n" for line in lines.splitlines()))
    return table(["view", "actions", "action space"], rows) + "\n" + "\n".join(details)


def statements(problem: Problem) -> str:
    """Return a table of what the paper says about the policies, which comparisons examine."""
    if not problem.statements:
        return ""
    rows = [
        [
            plain(item.source),
            policy_link(f"{problem.name}/{item.policy}"),
            ", ".join(policy_link(f"{problem.name}/{rival}") for rival in item.rivals),
            code(item.metric),
            f"{item.by:.0%}" if item.by else "",
        ]
        for item in problem.statements
    ]
    heads = ["source", "better policy", "worse policies", "metric", "stated difference"]
    text = "The paper states these differences; a comparison of the policies says whether they hold:"
    return f"{text}\n\n{table(heads, rows)}"


def bounds(problem: Problem) -> str:
    """Return the docstring of the module of bounds, and a table of its functions."""
    module = problem.module("bounds")
    found = [getattr(module, name) for name in module.__all__ if inspect.isfunction(getattr(module, name))]
    rows = [[code(f.__name__), link_roles((inspect.getdoc(f) or "").partition("\n")[0])] for f in found]
    own = [row for row in rows if row[1]]
    return docstring(module, module.__name__) + "\n\n" + table(["function", "what it gives"], own)


def agents(id: str) -> str:
    """Return a section on the shipped agent, or nothing if none is shipped."""
    if id not in list_pretrained():
        return ""
    return (
        "## Agent\n\nAn agent is shipped: `schedgym compare "
        f"{id} --agents pretrained` compares it with the baselines ([results](../agents.md))."
    )


# policies ------------------------------------------------------------------------------------------


def policy_page(name: str) -> str:
    """The page of a registered policy, below docs."""
    problem, _, short = name.partition("/")
    return f"policies/{problem}/{slug(short)}.md"


def policy_link(name: str, start: str = "../") -> str:
    """A link to the page of a policy."""
    return f"[`{name.partition('/')[2]}`]({start}{policy_page(name)})"


def policies() -> list[Any]:
    """A page per policy, by problem, and the index."""
    nav: list[Any] = []
    parts = [
        "# Policies",
        "A policy acts from the observation alone, through the same interface as an agent. "
        "`schedgym.make_policy(name, **options)` builds one; `schedgym describe NAME` prints its page.",
    ]
    for problem in list_problems().values():
        found = list_policies(problem.name)
        pages = [policy(problem, spec) for spec in found]
        nav.append({problem.name: [{spec.name: page} for spec, page in zip(found, pages, strict=True)]})
        parts += [
            f"## {problem.name}",
            environments_of(problem.ids),
            table(
                ["policy", "source", "what it does"],
                [[policy_link(spec.name), plain(spec.source), plain(spec.help)] for spec in found],
            ),
        ]
    return [write("policies/index.md", *parts), *nav]


def policy(problem: Problem, spec: PolicySpec) -> str:
    """The page of a policy."""
    factory = spec.factory
    text, options, complexity = "", {}, ""
    for section in griffe.Docstring(docstring(factory, factory.__module__)).parse("google", warnings=False):
        if section.kind is griffe.DocstringSectionKind.parameters:
            options = {entry.name: entry.description for entry in section.value}
        elif section.kind is griffe.DocstringSectionKind.text:
            text += section.value + "\n\n"
    if found := re.search(r"^Complexity: (.*?)(\n\n|\Z)", text, flags=re.DOTALL | re.MULTILINE):
        complexity, text = found[1], text.replace(found[0], "\n\n")
    signature = inspect.signature(factory).parameters
    defaults = [
        id.partition("/")[2] for id, v in problem.ids.items() if spec.name in full(problem, v.policies)
    ]
    unmet = ", ".join(spec.unmet(collections.defaultdict(lambda: None)))
    facts = {
        "source": plain(spec.source),
        "deviations": plain(spec.deviations or "none"),
        "needs to know of the jobs": ", ".join(map(code, spec.knows)) or "nothing",
        "acts in the views": ", ".join(map(code, spec.views)),
        "needs parameters": plain(unmet).replace("'", ""),
        "complexity": complexity.replace("\n", " "),
        "run by default on": ", ".join(f"[{id}](../../environments/{id}.md)" for id in defaults),
        "options set by the name": values(spec.fixed) if spec.fixed else "",
        "class": code(f"{factory.__module__}.{factory.__qualname__}"),
    }
    candidates = spec.open_options()
    rows = [
        [
            code(name),
            code(kind_of(signature[name])),
            code(value_text(value)),
            ", ".join(code(value_text(tried)) for tried in candidates.get(name, ())),
            plain(options.get(name, "")),
        ]
        for name, value in spec.options().items()
    ]
    return write(
        policy_page(spec.name),
        f"# {spec.name}",
        spec.summary,
        text,
        table(["", ""], [[f"**{name}**", fact] for name, fact in facts.items() if fact]),
        "## Options",
        table(["option", "type", "default", "tried by `schedgym tune`", "meaning"], rows)
        if rows
        else "The policy has no options.",
    )


def full(problem: Problem, names: Iterable[str]) -> set[str]:
    """Short names of policies as full ones."""
    return {f"{problem.name}/{name}" for name in names}


def kind_of(parameter: inspect.Parameter) -> str:
    """The annotation of a parameter as text."""
    kind = parameter.annotation
    if kind is inspect.Parameter.empty:
        return ""
    return kind if isinstance(kind, str) else inspect.formatannotation(kind)


# errata --------------------------------------------------------------------------------------------


def errata() -> list[Any]:
    """A page per paper of its claims, and the summary."""
    evidence = {entry["claim"]: entry for entry in json.loads((DOCS / "claims.json").read_text())["claims"]}
    pages = []
    for paper in PAPERS:
        registered = list_claims(paper.key)
        own, ours = ([claim for claim in registered if claim.ours == mark] for mark in (False, True))
        parts = [f"# {paper.title}", plain(paper.citation), environments_of(paper.problems)]
        stated = {said.name: said for said in verdicts.statements(paper)}
        parts += open_points(paper)
        parts.append(claim_table(own, stated) if own else "No claim of this paper is registered.")
        for claim in own:
            parts += claim_parts(claim, evidence.get(claim.name), stated[claim.name])
        if ours:
            parts += [
                "## Statements that the paper does not make",
                "They say under which conditions a claim above holds, or whether a conclusion is right that "
                "one might draw from the paper. They do not count as its claims.",
                claim_table(ours, {}),
            ]
        for claim in ours:
            parts += claim_parts(claim, evidence.get(claim.name), level=3)
        pages.append({f"{paper.key}: {paper.topic}": write(f"errata/{paper.key}.md", *parts)})
    return [write("errata/index.md", tables.verdicts()), *pages]


def open_points(paper: Paper) -> list[str]:
    """The points that a paper leaves open, and its statements by readings."""
    entries = [*list_claims(paper.key), *list_figures(paper.key)]
    points = dict.fromkeys(point for entry in entries for point in entry.under)
    if not points:
        return []
    rows = [
        [
            point.name,
            plain(point.says),
            plain(point.leaves_open),
            "; ".join(
                f"**{plain(choice)}** (default)" if choice == point.default else plain(choice)
                for choice in point.choices
            ),
        ]
        for point in points
    ]
    turned = [
        [
            plain(said.text),
            code(said.name) if said.name else ", ".join(code(own.figure) for own in said.shown),
            "<br>".join(f"{plain(words)}: {verdict}" for words, verdict in said.readings.items()),
        ]
        for said in verdicts.statements(paper)
        if len(said.readings) > 1
    ]
    return [
        "## What the paper leaves open",
        "A choice at each point is a [reading](../glossary.md). The default is the choice under which the "
        "paper's own statements hold best.",
        table(["point", "the paper says", "it leaves open", "choices"], rows),
        "## Verdicts under each reading",
        table(["statement", "claim or figure", "verdicts"], turned),
        "## Its claims",
    ]


def claim_table(claims: Iterable[Claim], stated: Mapping[str, verdicts.Stated]) -> str:
    """Claims with links to their evidence, and their verdicts with what figures show of them."""
    rows = [
        [
            f"[{claim.short}](#{slug(claim.short)})",
            plain(claim.source),
            plain(claim.text),
            stated[claim.name].verdict if claim.name in stated else claim.verdict,
        ]
        for claim in claims
    ]
    return table(["claim", "source", "what is claimed", "verdict"], rows)


def claim_parts(
    claim: Claim, entry: Mapping[str, Any] | None, stated: verdicts.Stated | None = None, level: int = 2
) -> list[str]:
    """A claim: its verdict, what the committed run found, and the command that checks it."""
    verdict = claim.verdict if stated is None else stated.verdict
    return [
        f"{'#' * level} {claim.short} {{ #{slug(claim.short)} }}",
        f"**{plain(claim.source)}**: {plain(claim.text)}",
        f"**Verdict**: {verdict}.",
        *([] if stated is None or not stated.shown else [by_figures(stated, claim)]),
        *finding(entry),
        f"```bash\nschedgym claims {claim.name}\n```",
    ]


def by_figures(stated: verdicts.Stated, claim: Claim) -> str:
    """What each figure shows of a claim by default, and the verdict without them if it is another one."""
    pages = (
        f"[{own.figure}](../figures/{claim.paper.key}.md#{anchor(own.figure.partition('/')[2])}) "
        f"({own.scale} scale): {own.verdict}"
        for own in stated.shown
    )
    small = "" if claim.verdict == stated.verdict else f"; `schedgym claims` alone: {claim.verdict}"
    return f"Figures: {', '.join(pages)}{small}."


def environments_of(ids: Iterable[str]) -> str:
    """Links to environments, from a page of another section."""
    links = [f"[{id}](../environments/{id.partition('/')[2]}.md)" for id in ids]
    return f"Environments: {', '.join(links)}."


def finding(entry: Mapping[str, Any] | None) -> list[str]:
    """Return what the committed run found: evidence, and the instance against the claim or for it."""
    if entry is None:
        return []
    parts = [f"**Found**: {plain(entry['evidence'])}"]
    for kind in ("counterexample", "witness"):
        if entry[kind] is not None:
            parts.append(f"**{kind.capitalize()}**: {plain(show(entry[kind]))}")
    return parts


# figures -------------------------------------------------------------------------------------------


def figures() -> list[Any]:
    """A page per paper of its figures that have been reproduced, and the table of all figures."""
    rows, pages = [], []
    for paper in PAPERS:
        parts = []
        for figure in list_figures(paper.key):
            result, large = made(figure, "small"), made(figure, "paper")
            name, verdicts = code(figure.name), ["not committed", ""]
            if result is not None:
                name = f"[{figure.name}]({paper.key}.md#{anchor(figure.short)})"
                verdicts[0] = f"{plain(result['verdict'])} ({time_text(result['seconds'])})"
                parts += figure_parts(figure, result, large)
            if large is not None:
                verdicts[1] = f"{plain(large['verdict'])} ({time_text(large['seconds'])})"
            rows.append([name, plain(figure.title), code(figure.command), *verdicts])
        if parts:
            head = [
                f"# {paper.title}",
                plain(paper.citation),
                environments_of(paper.problems),
            ]
            page = write(f"figures/{paper.key}.md", *head, *parts)
            pages.append({f"{paper.key}: {paper.topic}": page})
    heads = ["the paper's claims, small scale", "`--scale paper`"]
    index = table(["figure", "what it shows", "command", *heads], rows)
    return [write("figures/index.md", index), *pages]


def made(figure: Figure, scale: str) -> dict[str, Any] | None:
    """A figure that is committed at a scale."""
    path = DOCS / REPRODUCED[scale] / f"{figure.stem}.json"
    return json.loads(path.read_text()) if path.exists() else None


def anchor(name: str) -> str:
    """The anchor of a figure on its paper's page."""
    return re.sub(r"[^a-z0-9-]+", "-", name.lower())


def figure_parts(figure: Figure, result: Mapping[str, Any], large: Mapping[str, Any] | None) -> list[str]:
    """A figure: its picture, and each claim beside what was measured; what the paper's scale changes."""
    facts = f"{result['sizes']}; scale small, seed {result['seed']}, {time_text(result['seconds'])}"
    claims = [[plain(c[name]) for name in ("claim", "measured", "verdict")] for c in result["claims"]]
    return [
        f"## {figure.short}: {figure.title} {{ #{anchor(figure.short)} }}",
        f"![{plain(figure.title)}](../reproduced/{figure.stem}.png)",
        f"Source: {plain(figure.source)}. **{plain(result['verdict'])}**. Run: {plain(facts)}.",
        table(["the paper's claim", "measured", "verdict"], claims) if claims else "",
        "\n".join(f"- {plain(remark)}" for remark in result["remarks"]),
        f"```bash\n{result['command']}\n```",
        f"Data: {files(figure, 'small')}.",
        *([] if large is None else large_parts(figure, result, large)),
    ]


def files(figure: Figure, scale: str) -> str:
    """Links to the data of a figure."""
    stem = f"../{REPRODUCED[scale]}/{figure.stem}"
    return f"[CSV]({stem}.csv), [JSON]({stem}.json)"


def large_parts(figure: Figure, result: Mapping[str, Any], large: Mapping[str, Any]) -> list[str]:
    """The same figure at the paper's scale: the claims that have another verdict there, by default."""
    before = {said["claim"]: by_default(said) for said in result["claims"]}
    rows = [
        [
            plain(said["claim"]),
            plain(said["measured"]),
            by_default(said),
            before.get(said["claim"], "not asked"),
        ]
        for said in large["claims"]
        if by_default(said) != before.get(said["claim"])
    ]
    facts = f"{plain(large['sizes'])}; {time_text(large['seconds'])}"
    says = "These verdicts differ" if rows else "All verdicts are the same as at the small scale"
    picture = f"[picture](../{REPRODUCED['paper']}/{figure.stem}.png)"
    under = f", under the reading: {plain(large['reading'])}" if large["reading"] else ""
    text = f"At the paper's scale ({facts}{under}): **{plain(large['verdict'])}**."
    text += f" {says}." if large["claims"] else ""
    return [
        f"{text} Data: {picture}, {files(figure, 'paper')}.",
        table(["the paper's claim", "measured", "verdict", "at the small scale"], rows) if rows else "",
    ]


def by_default(said: Mapping[str, Any]) -> str:
    """The verdict on a statement under the default reading."""
    return str(next(iter(said["readings"].values()), said)["verdict"])


# benchmarks ----------------------------------------------------------------------------------------


def benchmarks() -> None:
    """The tables below the hand-written page: speed, and growth where it was measured."""
    parts = []
    measured = json.loads((DOCS / "benchmarks.json").read_text())
    parts += ["## Measured speed", machine(measured)]
    for id, rows in grouped(measured["benchmark"], "id").items():
        parts += [
            f"### {id}",
            table(
                ["measured", "median", "unit", "times CartPole", "target", ""],
                [
                    [
                        plain(row["what"]),
                        four_digits(row["value"]),
                        plain(row["unit"]),
                        str(row.get("ratio", "")),
                        *target(row),
                    ]
                    for row in rows
                ],
            ),
        ]
    if (DOCS / "growth.json").exists():
        measured = json.loads((DOCS / "growth.json").read_text())
        parts += ["## Measured growth", machine(measured)]
        for id, rows in grouped(measured["growth"], "id").items():
            parts += [
                f"### {id}: growth",
                table(
                    [
                        "what grows",
                        "policy",
                        "exponent: policy",
                        "environment",
                        "largest",
                        "seconds",
                        "verdict",
                    ],
                    [growth_row(row) for row in rows],
                ),
            ]
    write("benchmarks.md", *parts)


def target(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the target of a benchmark, and a word that says if this run met it."""
    if row["target"] == "-":
        return "", ""
    sign, aim, *relative = row["target"].split()
    value = float(row["ratio"]) if relative else row["value"]  # to CartPole
    met = value >= float(aim) if sign == ">=" else value <= float(aim)
    return plain(row["target"]), "met" if met else "missed"


def growth_row(row: Mapping[str, Any]) -> list[str]:
    """One policy on one axis: the exponents found beside those expected."""
    last = row["points"][-1]
    exponents = [
        f"{row[f'{name}_exponent']:.2f} (expected {expected:g})"
        for name, expected in zip(("policy", "env"), row["expected"], strict=True)
    ]
    seconds = f"{last['policy'] + last['env']:.3g}"
    return [row["axis"], code(row["policy"]), *exponents, f"{last['size']:,}", seconds, row["verdict"]]


def machine(measured: Mapping[str, Any]) -> str:
    """The machine on which a benchmark ran; "" if its file does not say."""
    found = measured.get("manifest", {}).get("machine")
    return f"Measured on {plain(found['cpu'])}, {found['cores']} cores, one of them used." if found else ""


def grouped(rows: Iterable[dict[str, Any]], key: str) -> dict[str, list[dict[str, Any]]]:
    """Rows by the value of a key, in order of appearance."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return found


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
    nav: list[Any] = []
    rows = []
    for public, title in API.items():
        found = importlib.import_module(public)
        modules = [found]
        if public in SEPARATE:
            names = [module.name for module in pkgutil.iter_modules(found.__path__) if not module.ispkg]
            modules += [importlib.import_module(f"{public}.{name}") for name in names]
        parts = [f"# {title}"]
        for module in modules:
            names = [name for name in getattr(module, "__all__", []) if is_new(getattr(module, name), taken)]
            members = f"[{', '.join(names)}]" if names else "false"
            parts.append(f"::: {module.__name__}\n    options:\n      members: {members}")
        page = write(f"api/{slug(public.replace('.', '-'))}.md", *parts)
        nav.append({title: page})
        rows.append([f"[{title}]({Path(page).name})", code(public), docstring(found).partition("\n")[0]])
    package = importlib.import_module("schedgym")
    exported = [name for name in package.__all__ if not name.startswith("__")]
    homes = [[f"[`schedgym.{name}`][{home(getattr(package, name))}]"] for name in exported]
    index = write(
        "api/index.md",
        "# API",
        "The public names, from their docstrings.",
        table(["page", "module", ""], rows),
        "## Names of the package itself",
        table(["name"], homes),
    )
    return [index, *nav]


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
