"""Write tables of README.md and of pages in docs from what was measured: ``python docs/tables.py``.

Between ``<!-- NAME -->`` and ``<!-- /NAME -->`` stands what the function of that name makes. Sources are
docs/leaderboard.csv, docs/agents.csv, docs/reproduced, docs/sbom.json, baselines/tuned.json, the verdicts
that are recorded with the claims, and the shipped agents; a test holds texts and sources together. What the
figures of docs/reproduced show of the papers' statements goes into schedgym/papers/verdicts.json as well.
"""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas

from schedgym.agents.config import Config, make_config
from schedgym.agents.files import Agent, list_pretrained, load_agent
from schedgym.core.policy import get_policy_spec, list_policies
from schedgym.core.problem import get_problem
from schedgym.evaluation.statistics import judge_interval
from schedgym.evaluation.tuned import read_tuned
from schedgym.evaluation.wording import options_text
from schedgym.papers import PAPERS, Figure, Paper, list_figures
from schedgym.papers.verdicts import COMMITTED, HEADS, count_row
from schedgym.traces import formats

DOCS = Path(__file__).parent
#: scale -> folder of the figures that are committed at it
FOLDERS = {"small": "reproduced", "paper": "reproduced/paper"}
#: where differences refer to another policy than the one that the paper proposes
PROPOSED = {"schedgym/GeoAssign-v0": "ata"}


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


class Rows(NamedTuple):
    """Rows of an id's leaderboard: the best policy, the paper's own, the shipped agent, the best baseline."""

    best: pandas.Series[float]
    own: pandas.Series[float]
    agent: pandas.Series[float]
    rival: pandas.Series[float]


def boards() -> Iterator[tuple[Paper, str, Rows]]:
    """The leaderboard of each id, paper by paper."""
    everything = pandas.read_csv(DOCS / "leaderboard.csv", dtype={"servers": str})
    for paper in PAPERS:
        for id in paper.problems:
            board = everything[everything["id"] == id]
            board = board.sort_values("mean", ascending=board["better"].iloc[0] == "min")
            proposed = PROPOSED.get(id, get_problem(id).ids[id].reference)
            own, agent = (board[board["policy"] == name].iloc[0] for name in (proposed, "agent"))
            yield paper, id, Rows(board.iloc[0], own, agent, board[board["policy"] != "agent"].iloc[0])


def leaderboard() -> str:
    """Every id with its best policy, and how far from the bound that and the paper's own policy are."""
    rows = []
    for paper, id, found in boards():
        best, own = found.best, found.own
        name = "the shipped agent" if best["policy"] == "agent" else f"`{best['policy']}`"
        told = [ratio(best), f"`{own['policy']}` {ratio(own)}", ratio(found.agent)]
        rows.append([f"`{id}`", get_problem(id).ids[id].title, paper.key, name, *told])
    heads = ["id", "problem and objective", "paper", "best policy", "mean / bound", "the paper's own"]
    return table([*heads, "the shipped agent"], rows)


def shipped() -> str:
    """The shipped agents at the papers' sizes."""
    rows = []
    for _, id, found in boards():
        agent, rival = found.agent, found.rival
        # paired intervals are against the reference
        told = f"{percent(agent['relative'])} against `{agent['reference']}`"
        told += f" [{percent(agent['relative_low'])}, {percent(agent['relative_high'])}]"
        against = f"`{rival['policy']}` {percent(agent['mean'] / rival['mean'] - 1.0)}"
        mean = f"{agent['mean']:.5g}" + (f" {agent['unit']}" if isinstance(agent["unit"], str) else "")
        rows.append([id.removeprefix("schedgym/").removesuffix("-v0"), mean, told, against])
    return table(["id", "agent", "difference, paired", "against the best baseline"], rows)


#: of an agent's file: libraries on which its weights depend
LIBRARIES = ("schedgym", "python", "numpy", "numba", "cma", "torch", "stable-baselines3")


def cards() -> str:
    """A card for each shipped agent: intended use, training, where it wins and where it does not."""
    return "\n\n".join(card(path) for path in list_pretrained().values())


def card(path: Path) -> str:
    """The card of an agent file, with its cells of docs/agents.csv."""
    agent = load_agent(path)
    config, training = make_config(agent.metadata["config"]), agent.metadata["training"]
    title = get_problem(agent.id).ids[agent.id].title
    given = agent.metadata["versions"]
    versions = ", ".join(f"{name} {given[name]}" for name in LIBRARIES if name in given)
    steps = training["steps"] if "steps" in training else training["decisions"]
    lines = [
        f"### {path.stem.removesuffix('-v0')}\n",
        f"- Intended use: `{agent.id}` ({title}), view `{agent.view}`, with workloads like those of its "
        "training. For other workloads compare it first, and use the baseline where the agent is worse.",
        f"- Training: algorithm `{config.algorithm}`, seed {config.seed}, {training['seconds']:.0f} s, "
        f"{steps:,} environment steps; domains: {domains(config, 'training')}.",
        f"- Validation: domains: {domains(config, 'validation')}.",
        f"- File: `{path.name}`, {path.stat().st_size / 1000:.1f} kB, SHA-256 `{agent.sha256[:16]}...`, made "
        f"by `{agent.metadata['command']}` with {versions}.",
    ]
    return "\n".join([*lines, *cells(agent)])


def domains(config: Config, use: str) -> str:
    """The domains of a configuration that are trained or validated in, with their parameters."""
    given = {name: own for name, own in config.domains.items() if own.use == use} or config.domains
    if not given:
        own = {name: value for name, value in config.parameters.items() if name != "window"}
        return f"`{options_text(own)}`" if own else "the default parameters"
    texts = []
    for own in given.values():
        text = f"`{options_text(own.parameters)}`" if own.parameters else "the default parameters"
        texts.append(text if own.weight == 1 else f"{text} (weight {own.weight:g})")
    return ", ".join(texts)


def results_of(agent: Agent) -> pandas.DataFrame:
    """The rows of docs/agents.csv of an agent; the further column ``setting`` has the parameters as text."""
    everything = pandas.read_csv(DOCS / "agents.csv", dtype=str, keep_default_na=False)
    names = list(everything.columns[1 : everything.columns.get_loc("policy")])
    found = everything[(everything["id"] == agent.id) & (everything["policy"] == "agent")].copy()
    found["setting"] = [
        options_text({name: value for name, value in row.items() if value}) or "default"
        for row in found[names].to_dict("records")
    ]
    return found


def agents() -> str:
    """The shipped agents at the default sizes against the best tuned baselines, and where they lose."""
    rows = []
    for path in list_pretrained().values():
        found = results_of(load_agent(path))
        usual = found[found["setting"] == "default"].iloc[0]
        told = [(row["setting"], *difference(row)) for row in found.to_dict("records")]
        worse = [f"`{setting}` {by}" for setting, by, verdict in told if verdict == "worse"]
        by, verdict = difference(usual.to_dict())
        bound = float(usual["bound"] or "nan")
        rows.append(
            [
                path.stem.removesuffix("-v0"),
                *(f"{usual['trainings']} x {usual['episodes']}", f"`{usual['rival']}`", by, verdict),
                f"{float(usual['mean']) / bound:.3f}" if bound > 0 else "-",
                f"{float(usual['rival_mean']) / bound:.3f}" if bound > 0 else "-",
                "; ".join(worse) or "-",
            ]
        )
    heads = ["id", "trainings x episodes", "best baseline", "agent's difference, 95% interval", "verdict"]
    return table([*heads, "agent / bound", "baseline / bound", "worse in these settings"], rows)


def cells(agent: Agent) -> Iterator[str]:
    """The lines of a card on the results: verdicts, and the table of the settings that were run."""
    found = results_of(agent)
    rows, verdicts = [], collections.defaultdict(list)
    for row in found.to_dict("records"):
        setting = row["setting"]
        told, verdict = difference(row)
        verdicts[verdict].append(f"`{setting}`")
        mean, bound = float(row["mean"]), float(row["bound"] or "nan")
        rows.append(
            [
                *(f"`{setting}`", row["episodes"], f"{mean:.5g}"),
                *(f"`{row['rival']}` {float(row['rival_mean']):.5g}", told, verdict),
                *(f"{float(row['probability']):.2f}", f"{mean / bound:.3f}" if bound > 0 else "-"),
            ]
        )
    if not rows:
        yield "- Results: none."
        return
    for verdict in ("better", "worse", "not different"):
        if verdicts[verdict]:
            than = "from" if verdict == "not different" else "than"
            where = ", ".join(verdicts[verdict])
            yield f"- {verdict.capitalize()} {than} the best baseline in the settings {where}."
    if verdicts["no interval"]:
        yield f"- No interval, and no verdict: {', '.join(verdicts['no interval'])}."
    trainings = int(found["trainings"].iloc[0])
    if trainings > 1:
        yield (
            f"- {trainings} trainings: differences are interquartile means over the trainings of their means "
            "over the episodes, and intervals resample trainings and episodes."
        )
    else:
        yield "- One training: the intervals are over episodes; another training may give another result."
    if not found["agent"].str.split().map(lambda files: agent.sha256 in files).all():
        yield "- **These results are of an earlier agent**: the sweep must be run again."
    unit = f" [{found['unit'].iloc[0]}]" if found["unit"].iloc[0] else ""
    heads = ["setting", "episodes", f"agent: {found['objective'].iloc[0]}{unit}", "best baseline"]
    heads += ["difference, 95% interval", "verdict", "probability of improvement", "agent / bound"]
    yield "\n" + table(heads, rows)


def difference(row: dict[str, str]) -> tuple[str, str]:
    """The difference to the best baseline with its interval, and the verdict of that interval.

    It is not relative where the baseline may be 0.
    """
    relative = bool(row["rival_relative_low"])
    name, show = ("rival_relative", percent) if relative else ("rival_difference", "{:+.4g}".format)
    value, low, high = (float(row[f"{name}{end}"] or "nan") for end in ("", "_low", "_high"))
    verdict = judge_interval(low, high, row["better"])
    interval = "" if verdict == "no interval" else f" [{show(low)}, {show(high)}]"
    unit = "" if relative else f" {row['unit']}"
    return f"{show(value)}{interval}{unit}".rstrip(), verdict


def percent(share: float) -> str:
    """A difference."""
    return f"{100 * share:+.{1 if abs(share) >= 0.01 else 2}f}%"


def ratio(row: pandas.Series[float]) -> str:
    """Mean over bound, or the mean itself where there is no bound."""
    if row["bound"] > 0:
        return f"{row['mean'] / row['bound']:.3f}"
    return f"{row['mean']:.4g} {row['unit']}, no bound"


def figures_verdicts() -> str:
    """What the committed figures show, each statement under each reading, as schedgym/papers/verdicts.json.

    A figure counts at the paper's scale where it is committed at it, and at the small one under readings that
    only the latter was run under.
    """
    rows = []
    for figure in list_figures():
        found: dict[str, dict[str, Any]] = {}
        scale = ""
        for scale in made_at(figure):
            for said in committed(figure, scale)["claims"]:
                own = {words: under["verdict"] for words, under in said["readings"].items()}
                known = found.get(said["claim"], {"text": said["claim"], "name": "", "readings": {}})
                readings = known["readings"] | (own or {"": said["verdict"]})
                found[said["claim"]] = known | {"name": said["name"], "readings": readings}
        rows.append({"figure": figure.name, "scale": scale, "statements": list(found.values())})
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def made_at(figure: Figure) -> list[str]:
    """The scales at which a figure is committed, the small one first."""
    return [scale for scale in FOLDERS if (DOCS / FOLDERS[scale] / f"{figure.stem}.json").exists()]


def committed(figure: Figure, scale: str) -> dict[str, Any]:
    """The results of a figure at a scale."""
    path = DOCS / FOLDERS[scale] / f"{figure.stem}.json"
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def verdicts() -> str:
    """The numbers of statements of each paper that hold, and of further ones that are checked."""
    return table([*HEADS], [count_row(paper) for paper in PAPERS])


def citations() -> str:
    """The papers, as they are cited."""

    def line(paper: Paper) -> str:
        ids = ", ".join(f"`{id.removeprefix('schedgym/')}`" for id in paper.problems)
        return f"- {paper.key}: {paper.citation} ({ids})"

    return "\n".join(line(paper) for paper in PAPERS)


def tuned() -> str:
    """The values that were tried for each policy, what was found, and the options that were not tuned."""
    rows = []
    for entry in read_tuned():
        spec = get_policy_spec(entry["policy"])
        where = entry["id"].removeprefix("schedgym/").removesuffix("-v0")
        where += f", `{options_text(entry['parameters'])}`" if entry["parameters"] else ""
        tried = []
        for name, values in entry["tried"].items():
            texts = [options_text({name: value}).partition("=")[2] for value in values]
            tried.append(f"`{name}`: {'; '.join([f'**{texts[0]}**', *texts[1:]])}")
        told = "the defaults", "", ""
        if entry["best"]:
            interval = f"[{percent(entry['relative_low'])}, {percent(entry['relative_high'])}]"
            told = f"`{options_text(entry['best'])}`", f"{percent(entry['relative'])} {interval}", "as good"
            if entry["options"]:
                told = *told[:2], "**better**"
        rows.append([where, f"`{spec.name.partition('/')[2]}`", "<br>".join(tried), *told])
    heads = ["id", "policy", "values tried (the default first)", "best", "difference to the default, paired"]
    closed: dict[str, list[str]] = {}
    for spec in list_policies():
        names = [f"`{name}`" for name in spec.options() if name not in spec.open_options()]
        if names:
            closed.setdefault(f"{spec.problem} {', '.join(names)}", []).append(
                f"`{spec.name.partition('/')[2]}`"
            )
    others = [[*key.split(" ", 1), ", ".join(names)] for key, names in closed.items()]
    return f"{table([*heads, 'verdict'], rows)}\n\n{table(['problem', 'not tuned', 'of'], others)}"


def data_sets() -> str:
    """Every data set that ``schedgym trace fetch`` can fetch, with its licence."""
    rows = []
    for format in formats().values():
        for name, one in format.files.items():
            checked = "yes" if one.sha256 else "no"
            rows.append([f"`{name}`", format.name, one.licence, checked, format.address])
    return table(["data set", "format", "licence", "SHA-256 checked", "published at"], rows)


def packages() -> str:
    """Every package that ``make compare`` installs, with its licence, from the bill of materials."""
    rows = []
    for part in json.loads((DOCS / "sbom.json").read_text(encoding="utf-8"))["components"]:
        told = [one.get("expression") or one["license"].get("id") for one in part["licenses"]]
        names = [
            one["license"]["name"].rpartition(" :: ")[2]
            for one in part["licenses"]
            if "license" in one and "name" in one["license"]
        ]
        rows.append([part["name"], part["version"], next(filter(None, told), None) or names[0]])
    return table(["package", "version", "licence"], sorted(rows, key=lambda row: row[0].lower()))


#: file -> the functions of its tables
TABLES: dict[Path, tuple[Callable[[], str], ...]] = {
    DOCS.parent / "README.md": (leaderboard, agents, verdicts, citations),
    DOCS / "agents.md": (agents, shipped, cards),
    DOCS / "how-to" / "tune.md": (tuned,),
    DOCS / "supply.md": (data_sets, packages),
}


def filled(path: Path, text: str) -> str:
    """The text of a file with its tables made anew."""
    for make in TABLES[path]:
        name = make.__name__
        pattern = rf"(?s)<!-- {name} -->\n.*?<!-- /{name} -->"
        if not re.search(pattern, text):
            raise ValueError(f"{path.name} has no place for {name}")
        content = f"<!-- {name} -->\n{make()}\n<!-- /{name} -->"
        text = re.sub(pattern, lambda _, content=content: content, text)
    return text


if __name__ == "__main__":
    COMMITTED.write_text(figures_verdicts(), encoding="utf-8")  # from which the tables of papers are made
    for path in TABLES:
        path.write_text(filled(path, path.read_text(encoding="utf-8")), encoding="utf-8")
