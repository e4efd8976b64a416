"""Write tables of README.md and of pages in docs from what was measured: ``python docs/tables.py``.

Between ``<!-- NAME -->`` and ``<!-- /NAME -->`` stands what the function of that name makes. Sources are
docs/leaderboard.csv, docs/agents.csv, docs/matrix, docs/board, docs/reproduced, docs/sbom.json,
baselines/tuned.json, the verdicts that are recorded with the claims, and the shipped agents; a test holds
texts and sources together. What the figures of docs/reproduced show of the papers' statements goes into
schedgym/papers/verdicts.json as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas
from rendering import render

from schedgym.agents.config import make_config
from schedgym.agents.files import Agent, list_pretrained, load_agent
from schedgym.board.entries import known, read_entries
from schedgym.board.scores import Result, estimate_score, facts_of, ratio_to_bound
from schedgym.board.suites import load_suite
from schedgym.core.policy import list_policies
from schedgym.core.problem import Parameters, get_problem, sign_of
from schedgym.core.tokens import tokens_of
from schedgym.documents import read_yaml
from schedgym.evaluation.statistics import estimate, judge_interval
from schedgym.evaluation.tuned import read_tuned
from schedgym.evaluation.wording import metric_text, options_text
from schedgym.papers import PAPERS, Figure, Paper, list_figures
from schedgym.papers.verdicts import COMMITTED, HEADS, count_row, statements
from schedgym.traces import formats

DOCS = Path(__file__).parent
#: scale -> folder of the figures that are committed at it
FOLDERS = {"small": "reproduced", "paper": "reproduced/paper"}
#: where differences refer to another policy than the one that the paper proposes
PROPOSED = {"schedgym/GeoAssign-v0": "ata"}


def part(template: str, **context: Any) -> str:
    """A template of docs/pages as a part of a page."""
    helpers = (bare, title_of, percent, ratio, over_bound, options_text)
    return render(template, **{one.__name__: one for one in helpers}, **context).strip("\n")


def bare(id: str) -> str:
    """An id without what all have."""
    return id.removeprefix("schedgym/").removesuffix("-v0")


def title_of(id: str) -> str:
    """The title of an id."""
    return get_problem(id).ids[id].title


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
    return part("leaderboard.md", boards=boards())


def shipped() -> str:
    """The shipped agents at the papers' sizes."""
    return part("shipped.md", boards=boards())


#: of an agent's file: libraries on which its weights depend
LIBRARIES = ("schedgym", "python", "numpy", "numba", "cma", "torch", "stable-baselines3")


def cards() -> str:
    """A card for each shipped agent: intended use, training, where it wins and where it does not."""
    return "\n\n".join(card(path) for path in list_pretrained().values())


def card(path: Path) -> str:
    """The card of an agent file, with its results of docs/agents.csv."""
    agent = load_agent(path)
    given, config = agent.metadata["versions"], make_config(agent.metadata["config"])
    return part(
        "card.md",
        **{"agent": agent, "path": path, "results": results(agent), "config": config},
        parameters={name: value for name, value in config.parameters.items() if name != "window"},
        training=agent.metadata["training"],
        versions=", ".join(f"{name} {given[name]}" for name in LIBRARIES if name in given),
    )


def rows_of(agent: Agent, name: str = "agents.csv") -> list[dict[str, str]]:
    """The rows of an agent in an export of docs, each a setting.

    Further entries: ``setting`` has the parameters as text, ``told`` the difference to the best baseline with
    its interval, ``verdict`` that of the interval, ``means`` the agent's mean with its interval, and
    ``start_means`` and ``rival_means`` those of the start of its training ("-" if the export has none) and of
    the best baseline.
    """
    everything = pandas.read_csv(DOCS / name, dtype=str, keep_default_na=False)
    names = list(everything.columns[1 : everything.columns.get_loc("policy")])
    own = everything[everything["id"] == agent.id]
    rows = []
    for values, found in own.groupby(names, sort=False) if names else [((), own)]:
        by_policy = {row["policy"]: row for row in found.to_dict("records")}
        row = by_policy["agent"]
        setting = options_text({key: value for key, value in zip(names, values, strict=True) if value})
        told, verdict = difference(row)
        row |= {"setting": setting or "default", "told": told, "verdict": verdict}
        row |= {"means": means(row), "rival_means": means(by_policy[row["rival"]])}
        rows.append(row | {"start_means": means(by_policy["start"]) if "start" in by_policy else "-"})
    return rows


def is_current(agent: Agent, rows: list[dict[str, str]]) -> bool:
    """True if an agent took part in all of its rows, and no earlier one in its place."""
    return all(agent.sha256 in row["agent"].split() for row in rows)


def means(row: dict[str, str]) -> str:
    """The mean of a policy with its interval."""
    return "{:.5g} [{:.5g}, {:.5g}]".format(
        *(float(row[f"mean{end}"] or "nan") for end in ("", "_low", "_high"))
    )


#: of the best baseline's mean: what is worse by less is level. Where that mean is less than this share of the
#: one at the default parameters, it is near 0, and the difference counts over the latter.
LEAST = 0.01


def judge_setting(row: dict[str, str], usual: dict[str, str]) -> str:
    """Whether an agent wins, is level or loses in a setting.

    Args:
        row: its row, as :func:`rows_of` returns it.
        usual: its row at the default parameters.
    """
    rival, standard = (abs(float(each["rival_mean"])) for each in (row, usual))
    loss = sign_of(row["better"]) * float(row["rival_difference"])
    if row["verdict"] == "worse" and loss > LEAST * (rival if rival >= LEAST * standard else standard):
        return "lost"
    return "won" if row["verdict"] == "better" else "level"


#: share of its mean by which the best baseline misses the bound, below which no agent can be much better
ROOM = 0.02


def leaves_room(row: dict[str, str]) -> bool:
    """True if there is a bound, from which the best baseline is further away than ``ROOM``."""
    mean = float(row["rival_mean"])
    return abs(mean - float(row["bound"] or mean)) > ROOM * abs(mean)


def matrix() -> str:
    """In how many settings of docs/matrix each shipped agent wins, is level or loses, and where it loses."""
    rows = []
    for path in sorted((DOCS / "matrix").glob("*.csv")):
        agent = load_agent(list_pretrained()[f"schedgym/{path.stem}-v0"])
        usual = next(row for row in rows_of(agent) if row["setting"] == "default")
        found = [row | {"judged": judge_setting(row, usual)} for row in rows_of(agent, f"matrix/{path.name}")]
        trained = settings_of(agent)
        unseen = [row for row in found if parsed(agent, row["setting"]) not in trained]
        roomy = [row for row in found if leaves_room(row)]
        rows.append((agent.id, found, unseen, roomy, is_current(agent, found)))
    return part("matrix.md", rows=rows)


def settings_of(agent: Agent) -> list[Parameters]:
    """The parameters of each domain of an agent's training, without those that say how it acts."""
    acting = tokens_of(agent.id).acting
    domains = make_config(agent.metadata["config"]).domains.values()
    given = [domain.parameters for domain in domains if domain.use == "training"] or [{}]
    trained = [{name: value for name, value in one.items() if name not in acting} for one in given]
    return [get_problem(agent.id).build(agent.id, one) for one in trained]


def parsed(agent: Agent, setting: str) -> Parameters:
    """The parameters that the text of a setting tells."""
    problem = get_problem(agent.id)
    pairs = [pair.partition("=") for pair in setting.split() if setting != "default"]
    return problem.build(agent.id, {name: problem.parameters.parse(name, text) for name, _, text in pairs})


def agents() -> str:
    """The shipped agents at the default sizes against the best tuned baselines, and where they lose."""
    rows = []
    for path in list_pretrained().values():
        agent = load_agent(path)
        found = rows_of(agent)
        usual = next(row for row in found if row["setting"] == "default")
        worse = [row for row in found if row["verdict"] == "worse"]
        rows.append((agent.id, usual, worse, is_current(agent, found)))
    return part("agents.md", rows=rows)


def before() -> str:
    """The shipped agents against those before them, in the settings of the cards that both played alike."""
    everything = pandas.read_csv(DOCS / "agents-before.csv", dtype=str)
    rows = []
    for path in list_pretrained().values():
        agent = load_agent(path)
        earlier = everything[everything["id"] == agent.id]
        means = {(row.setting, row.episodes): float(row.mean) for row in earlier.itertuples()}
        found = [(row, means.get((row["setting"], row["episodes"]))) for row in rows_of(agent)]
        pairs = [(row["setting"], float(row["mean"]) / mean - 1.0) for row, mean in found if mean]
        if pairs:
            rows.append((agent.id, pairs))
    return part("before.md", rows=rows)


def ablations() -> str:
    """What agents and baselines reach without a part, or with more of it (docs/agents-ablations.csv)."""
    found = pandas.read_csv(DOCS / "agents-ablations.csv", dtype=str, keep_default_na=False)
    names = list(found.columns[1 : found.columns.get_loc("policy")])
    rows = found.to_dict("records")
    settings = [options_text({name: row[name] for name in names if row[name]}) for row in rows]
    return part("ablations.md", rows=list(zip(settings, rows, strict=True)), means=means)


def best_known() -> str:
    """The best known schedules (docs/best_known), the shipped agents and the best baselines."""
    rows = []
    for path in sorted((DOCS / "best_known").glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        metric = get_problem(found["id"]).metric(found["objective"])
        summary = {row["policy"]: row for row in found["summary"]}
        known, agent = summary.pop("best-known"), summary.pop("pretrained")
        best = min(summary.values(), key=lambda row: metric.sign * row["mean"])
        rows.append((path.stem, metric, known, agent, best, found["best_known"]["best-known"]["evaluations"]))
    return part("best_known.md", rows=rows, metric_text=metric_text)


def results(agent: Agent) -> str:
    """The part of a card on the results: verdicts, and the table of the settings that were run."""
    rows = rows_of(agent)
    settings: dict[str, list[str]] = {}
    for row in rows:
        settings.setdefault(row["verdict"], []).append(row["setting"])
    return part(
        "results.md",
        **{"rows": rows, "settings": settings},
        trainings=int(rows[0]["trainings"]) if rows else 0,
        current=is_current(agent, rows),
    )


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


def over_bound(row: dict[str, str], name: str) -> str:
    """A mean over the bound, "-" where there is none."""
    bound = float(row["bound"] or "nan")
    return f"{float(row[name]) / bound:.3f}" if bound > 0 else "-"


def figures_verdicts() -> str:
    """What the committed figures show, each statement under each reading, as schedgym/papers/verdicts.json.

    A figure counts at the paper's scale where it is committed at it, and at the small one under readings that
    only the latter was run under. Its scale is that of the default reading.
    """
    rows = []
    for figure in list_figures():
        found: dict[str, dict[str, Any]] = {}
        scales = [scale for scale in FOLDERS if committed(figure, scale)]  # the small one first
        for scale in scales:
            for said in committed(figure, scale)["claims"]:
                own = {words: under["verdict"] for words, under in said["readings"].items()}
                known = found.get(said["claim"], {"text": said["claim"], "name": "", "readings": {}})
                readings = known["readings"] | (own or {"": said["verdict"]})
                found[said["claim"]] = known | {"name": said["name"], "readings": readings}
        order = list(figure.readings)  # the default, which a committed figure may have had elsewhere, first
        for said in found.values():
            own = said["readings"]
            said["readings"] = {words: own[words] for words in order if words in own}
        made = [scale for scale in scales if committed(figure, scale)["reading"] == order[0]]
        scale = (made or scales or [""])[-1]
        rows.append({"figure": figure.name, "scale": scale, "statements": list(found.values())})
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def committed(figure: Figure, scale: str) -> dict[str, Any]:
    """The results of a figure at a scale; empty if it is not committed at it."""
    path = DOCS / FOLDERS[scale] / f"{figure.stem}.json"
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return content


def verdicts() -> str:
    """The numbers of statements of each paper that hold, and of further ones that are checked."""
    lines = [[*HEADS], ["---"] * len(HEADS), *(count_row(paper) for paper in PAPERS)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def findings() -> str:
    """The main statements of each paper with their verdicts and what was measured, at the paper's size."""
    counted = {"papers": PAPERS, "statements": statements, "audit": read_yaml(DOCS / "audit.yaml")}
    return part("findings.md", shown=shown, told=told, **counted)


def shown(name: str, begin: str, reading: str = "") -> str:
    """A line on the statement of a figure that begins so.

    Args:
        name: the figure.
        begin: how the statement begins.
        reading: the reading under which it is judged, by its words, if it is not the default.
    """
    figure = next(figure for figure in list_figures() if figure.name == name)
    words = reading or next(iter(figure.readings))
    for scale in reversed(FOLDERS):  # the paper's, if the figure was run under the reading at it
        content = committed(figure, scale)
        for said in content.get("claims", []):
            readings = said["readings"] | ({} if reading else {content["reading"]: said})
            if said["claim"].startswith(begin) and words in readings:
                found = readings[words]
                own = f", if {reading}" if reading else ""
                size = "" if scale == "paper" else ", at the small scale"
                head = f"- {capitalized(said['claim'])} ({figure.source}{own}): **{found['verdict']}**"
                return f"{head}. Measured{size}: {found['measured']}."
    raise ValueError(f"{name}: no statement begins with {begin!r}")


def capitalized(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def told(name: str, counterexample: bool = False) -> str:
    """A line on a claim of docs/claims.json, with its counterexample where that is asked for."""
    everything = json.loads((DOCS / "claims.json").read_text(encoding="utf-8"))["claims"]
    claim = next(claim for claim in everything if claim["claim"] == name)
    head = f"- {capitalized(claim['text'])} ({claim['source']}): **{claim['verdict']}**"
    evidence = f"{head}. Found: {claim['evidence']}"
    if counterexample:
        evidence += f": `{json.dumps(claim['counterexample'])}`"
    return f"{evidence}."


def citations() -> str:
    """The papers, as they are cited."""
    return part("citations.md", papers=PAPERS)


def tuned() -> str:
    """The values that were tried for each policy, what was found, and the options that were not tuned."""
    closed: dict[tuple[str, str], list[str]] = {}
    for spec in list_policies():
        names = [f"`{name}`" for name in spec.options() if name not in spec.open_options()]
        if names:
            closed.setdefault((spec.problem, ", ".join(names)), []).append(spec.name)
    return part("tuned.md", entries=read_tuned(), closed=closed)


def searches() -> str:
    """The tree search of ``docs/tree_search`` at each number of simulations, against the shipped agent."""
    rows = []
    for path in sorted((DOCS / "tree_search").glob("*.json")):
        tried = json.loads(path.read_text(encoding="utf-8"))
        agent = tried["objectives"].pop("agent")
        for search, found in tried["objectives"].items():
            rows.append((tried["id"], search, found, agent))
    return part("searches.md", rows=rows, against=against)


def plans() -> str:
    """What searches at decisions reach (``docs/search``), against the shipped agent and the best baseline."""
    cases = []
    for path in sorted((DOCS / "search").glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8"))["search"]:
            agent, *others = case["rows"]
            rivals = [row for row in others if ":" not in row["policy"]]
            best = best_of(case["id"], rivals)
            kept = [row for row in others if row == best or row not in rivals]
            cases.append((case, [(row, [agent, best]) for row in kept]))
    return part("plans.md", cases=cases, against=against)


def trainers() -> str:
    """What each algorithm reaches from nothing (``docs/training``), beside the best baseline."""
    ids, marks = [], set[float]()
    for path in sorted((DOCS / "training").glob("*.json")):
        rows = json.loads(path.read_text(encoding="utf-8"))["training"]
        trained: dict[str, dict[float, Any]] = {}
        for row in rows:
            if "trainer" in row:
                trained.setdefault(row["trainer"], {})[row["seconds"]] = row
                marks.add(row["seconds"])
        best, *drawn = (row for row in rows if "policy" in row)
        ids.append((best["id"], trained, best, drawn))
    return part("trainers.md", ids=ids, marks=sorted(marks))


def transfer() -> str:
    """Agents whose training left a domain or a trace out, there (``docs/transfer``)."""
    cases = []
    for path in sorted((DOCS / "transfer").glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8"))["transfer"]:
            rows = {row["policy"]: row for row in case["rows"]}
            left, taken = rows.pop("without"), rows.pop("with")
            cases.append((case, left, taken, best_of(case["id"], rows.values())))
    return part("transfer.md", cases=cases, against=against)


def best_of(id: str, rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The row with the best sum of objectives."""
    metric = get_problem(id).metric(get_problem(id).objective)
    return min(rows, key=lambda row: metric.sign * sum(row["objectives"]))


def against(own: list[float], other: list[float]) -> str:
    """The ratio of the means of objectives of the same episodes with its interval, if these are not few."""
    found, low, high = estimate(own, other)
    return f"{found:.3f}" + (f" [{low:.3f}, {high:.3f}]" if low <= high else "")


def data_sets() -> str:
    """Every data set that ``schedgym trace fetch`` can fetch, with its licence."""
    return part("data-sets.md", formats=formats().values())


def packages() -> str:
    """Every package that ``make compare`` installs, with its licence, from the bill of materials."""
    parts = json.loads((DOCS / "sbom.json").read_text(encoding="utf-8"))["components"]
    parts.sort(key=lambda one: one["name"].lower())
    return part("packages.md", parts=[(one, licence_of(one["licenses"])) for one in parts])


def licence_of(given: list[dict[str, Any]]) -> str:
    """The expression or identifier of a licence, or its name where it has neither."""
    for one in given:
        if found := one.get("expression") or one["license"].get("id"):
            return str(found)
    return next(
        one["license"]["name"].rpartition(" :: ")[2] for one in given if "name" in one.get("license", {})
    )


def board() -> str:
    """The entries of each suite with their scores, the best one first, and programs against the others."""
    rows = []
    for entry in read_entries():
        instances = load_suite(entry.suite).instances("test")
        found = zip(instances, facts_of(instances), entry.values, strict=True)
        rows.append((entry, [Result(instance, *facts, value) for instance, facts, value in found]))
    rows.sort(key=lambda row: -estimate_score(row[1]).value)
    suites = [load_suite(name) for name in sorted({row[0].suite for row in rows})]
    known_by = {suite.name: [known(one).by for one in suite.instances("test")] for suite in suites}
    helpers = {"estimate_score": estimate_score, "ratio_to_bound": ratio_to_bound}
    return part("board.md", rows=rows, suites=suites, known_by=known_by, **helpers)


def processes() -> str:
    """What it costs that candidates decide in processes of their own (``docs/processes.json``)."""
    measured = json.loads((DOCS / "processes.json").read_text(encoding="utf-8"))
    return part("processes.md", rows=sorted(measured["board"], key=lambda row: row["suite"]))


#: file -> the functions of its tables
TABLES: dict[Path, tuple[Callable[[], str], ...]] = {
    DOCS.parent / "README.md": (leaderboard, verdicts, citations),
    DOCS / "papers.md": (verdicts, findings),
    DOCS / "agents.md": (agents, matrix, transfer, shipped, best_known, ablations, before, cards),
    DOCS / "board.md": (board,),
    DOCS / "how-to" / "board.md": (processes,),
    DOCS / "how-to" / "agent.md": (trainers, searches, plans),
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
