"""The report: one file, its figures, its numbers, hostile names, and how it behaves in a real browser."""

import base64
import dataclasses
import functools
import hashlib
import html
import html.parser
import json
import math
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
from gymnasium.error import DependencyNotInstalled

from schedgym.agents.files import list_pretrained, load_agent, save_agent
from schedgym.core.policy import make_policy
from schedgym.core.problem import list_problems
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation import figures, gantt, plot, report
from schedgym.evaluation.episodes import make_env, play
from schedgym.evaluation.pictures import MARKS
from schedgym.evaluation.plan import Line, Setting, Unit
from schedgym.evaluation.report import write_report
from schedgym.evaluation.runner import compare
from schedgym.evaluation.standings import board_of, read_boards
from schedgym.evaluation.statistics import (
    Estimate,
    interquartile_mean,
    performance_ratios,
    stratified_interval,
    two_level_interval,
)
from schedgym.evaluation.store import ResultsStore
from schedgym.evaluation.sweeps import make_spec, run_sweep
from schedgym.evaluation.wording import estimate_text, number, percent_text
from tests.evaluation.test_gantt import played
from tests.long import long
from tests.tables import table

QUEUE, PARTIAL = "schedgym/QueueDelay-v0", "schedgym/PartialValue-v0"
SETTINGS = {"tasks": 40, "servers": [2, 3], "arrival_rate": 10.0}
HOSTILE = "<script>window.hacked=1</script><img src=x onerror=window.hacked=2> %{x} \"quoted' & <b>bold</b>"
SEEDS, EPISODES = (0, 1), 4
TRAININGS = (3, 5, 8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A store: a real sweep, an agent trained three times and a hostile name, both made up, and a failure."""
    folder = tmp_path_factory.mktemp("report")
    spec = {
        "name": "test",
        "seeds": list(SEEDS),
        "episodes": EPISODES,
        "experiments": [
            {"id": QUEUE, "parameters": SETTINGS, "policies": ["bf-exec", "fcfs"]},
            {"id": PARTIAL, "parameters": {"jobs": 8}, "policies": ["concave", "edf"]}
            | {"agents": {"shipped": "pretrained"}},
        ],
    }
    assert not run_sweep(make_spec(spec), folder / "results.db", n_jobs=1, progress=False).failed
    rng = np.random.default_rng(0)
    with ResultsStore(folder / "results.db", "w") as store:
        for number, setting in enumerate(s for s in store.settings() if s.id == QUEUE):
            lines = [Line(setting, HOSTILE, {"policy": HOSTILE}, None, f"hostile {number}")]
            lines += [
                Line(setting, "agent", {"agent": "0" * 64}, training, f"agent {number} {training}")
                for training in TRAININGS
            ]
            for line in lines:
                for seed in SEEDS:
                    values = 1e3 + rng.exponential(1e3, size=(EPISODES, 1))
                    store.add(Unit(line, seed, 0, EPISODES), ["mean_delay"], values, policy_seconds=0.01)
            broken = Line(setting, "broken", {"policy": "fcfs"}, None, f"broken {number}")
            store.fail(Unit(broken, 0, 0, EPISODES), "Traceback <i>x</i>\nValueError: <u>no</u>")
    return folder


@pytest.fixture(scope="module")
def made(folder):
    """The report's path and remarks."""
    pytest.importorskip("plotly")
    remarks = write_report(folder / "results.db", folder / "report.html")
    return folder / "report.html", remarks


class Elements(html.parser.HTMLParser):
    """Start tags with their attributes, and the text of each script."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.scripts, self.texts, self.inside = [], [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag in ("script", "style")
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside and self.tags[-1][0] == "script":
            self.scripts[-1] += data
        elif not self.inside:
            self.texts.append(data)


@pytest.fixture(scope="module")
def page(made):
    return Elements(made[0].read_text(encoding="utf-8"))


def plots(page):
    return json.loads(page.scripts[0])["plots"]


# the file ------------------------------------------------------------------------------------------


@long
def test_one_file_that_needs_nothing_else(made, page):
    text = made[0].read_text(encoding="utf-8")
    assert len(page.scripts) == 3
    assert "environments" in page.texts and "failed units" in page.texts
    assert sum("Plotly, Inc." in script and "plotly.js v" in script[:200] for script in page.scripts) == 1
    assert text.count("* plotly.js v") == 1
    for tag, attributes in page.tags:
        for name in ("src", "href", "action", "data", "srcset", "poster"):
            assert attributes.get(name, "data:,") == "data:,", (tag, name)
        assert tag not in ("iframe", "object", "embed", "base", "form")
        assert not [name for name in attributes if name.startswith("on")], tag
    assert 4_000_000 < len(text) < 8_000_000


@long
def test_only_our_scripts_may_run(page):
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    hashes = [
        "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"
        for script in page.scripts[1:]
    ]
    scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
    assert scripts.split()[1:] == hashes
    assert "default-src 'none'" in policy and "unsafe-eval" not in policy


@long
def test_text_of_a_store_is_text(page):
    assert {tag for tag, _ in page.tags} >= {"table", "svg", "section"}
    assert not {"img", "i", "u"} & {tag for tag, _ in page.tags}
    text = "".join(page.texts)
    assert HOSTILE in text and "Traceback <i>x</i>" in text and "ValueError: <u>no</u>" in text
    found = [variant["figure"] for variants in plots(page).values() for variant in variants]
    shown = [text for figure in found for text in texts_of(figure)]
    assert any("&lt;script&gt;" in text for text in shown)
    assert not any("<script" in text or "<img" in text for text in shown)
    # a name in a template would be taken for one of its places
    templates = [trace.get("hovertemplate", "") for figure in found for trace in figure["data"]]
    assert not any("%{x}" in template for template in templates if "quoted" in template)


def texts_of(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)


def painted(value):
    if isinstance(value, str):
        return "#123456" if value.startswith("@") else value
    if isinstance(value, dict):
        return {name: painted(item) for name, item in value.items()}
    return [painted(item) for item in value] if isinstance(value, list) else value


def test_plotly_knows_every_property_of_the_figures(page):
    graph_objects = pytest.importorskip("plotly.graph_objects")
    found = plots(page)
    kinds = {name.rstrip("0123456789") for name in found}
    assert kinds == {"gaps", "sweep", "means", "differences", "profile", "effort", "schedule"}
    for variants in found.values():
        for variant in variants:
            graph_objects.Figure(painted(variant["figure"]))  # raises for a property that it does not know


def test_settings_can_be_chosen(page):
    found = plots(page)
    index = next(i for i in range(2) if len(found[f"means{i}"]) == 2)
    assert len(found[f"profile{index}"]) == 3  # all settings, and each
    assert len(found[f"means{1 - index}"]) == 1
    assert f"sweep{1 - index}" not in found


# numbers -------------------------------------------------------------------------------------------


def read(folder, name="results.db"):
    with ResultsStore(folder / name) as store:
        return {board.id: board for board in read_boards(store)}


@pytest.fixture(scope="module")
def boards(folder):
    """The boards of the store, which no test changes."""
    return read(folder)


def test_the_gaps_say_what_they_leave_out(folder, monkeypatch):
    queue, partial = (read(folder)[id] for id in (QUEUE, PARTIAL))
    first, second = queue.settings
    for setting in queue.settings:  # as where the bound is 0
        for entry in setting.entries:
            entry.relative_gap = Estimate()
    panel, text = plot.gaps_panel([queue, partial], ["Q", "P"])
    assert panel is not None and panel.rows == ["P"]
    assert text == f"Left out: Q, {first.label} (the bound is 0); Q, {second.label} (the bound is 0)."
    for entry in second.entries:
        entry.gap = Estimate()
    assert f"Q, {second.label} (no bound is known)" in plot.gaps_panel([queue], ["Q"])[1]
    assert plot.gaps_panel([partial], ["P"])[1] == ""
    entry = partial.settings[0].entries[0]
    with monkeypatch.context() as patched:
        patched.setattr(entry, "relative_gap", Estimate())
        assert plot.gaps_panel([partial], ["P"])[1] == f"Left out: P: {entry.policy} (the bound is 0)."
    monkeypatch.setattr(plot, "MOST_GAPS", 1)
    assert "Q, all but the first 1 settings (1 more)" in plot.gaps_panel([queue], ["Q"])[1]


def test_the_gaps_have_their_intervals(boards):
    board = boards[PARTIAL]
    series = plot.gaps_panel([board], ["P"])[0].series
    gaps = [entry.relative_gap for setting in board.settings for entry in setting.entries]
    assert len({own.y[0] for own in series}) == len(gaps)  # none hides another
    assert sum(gap.low < gap.high for gap in gaps) > 1
    found = [(own.x[0], own.low[0], own.high[0]) for own in series]
    assert np.allclose(found, [(100 * g.value, 100 * g.low, 100 * g.high) for g in gaps], equal_nan=True)


def test_the_gaps_have_a_legend_and_say_what_a_mark_is(made, boards):
    text = made[0].read_text(encoding="utf-8")
    card = text[text.index("<h3>Gaps to the bound</h3>") : text.index('data-plot="gaps"')]
    assert "in percent of that bound" in card and "mean gap with its 95% interval" in card
    for id, board in boards.items():
        begin = card.index(f"<b>{id.partition('/')[2].partition('-v')[0]}</b>")
        legend = card[begin : card.index("</p>", begin)]
        for policy, (_, _, letter) in zip(board.policies, MARKS, strict=False):
            mark = f"{letter}</b>{html.escape(policy)}<"
            assert mark.replace("&quot;", "&#34;").replace("&#x27;", "&#39;") in legend
        assert legend.count("<span>") == len(board.policies)


def test_the_numbers_are_those_of_a_comparison(boards):
    """Means, intervals, gaps and differences equal those of an evaluation of the same runs."""
    board, fixed = boards[QUEUE], {"tasks": 40, "arrival_rate": 10.0}
    assert board.swept == ["servers"] and board.common == fixed
    policies, swept = ["bf-exec", "fcfs"], {"servers": SETTINGS["servers"]}
    parts = [compare(QUEUE, policies, swept, EPISODES, seed, parameters=fixed) for seed in SEEDS]
    found = dataclasses.replace(parts[0], frame=pd.concat([part.frame for part in parts]))
    differences = found.differences("bf-exec").set_index("servers")
    for setting, other in zip(board.settings, board_of(found, None, None, 0.95).settings, strict=True):
        assert (other.label, other.episodes) == (setting.label, setting.episodes)
        row = differences.loc[setting.parameters["servers"]]
        assert other.entry("fcfs").against.difference == Estimate(row["difference"], row["low"], row["high"])
        for entry, same in ((setting.entry(policy), other.entry(policy)) for policy in policies):
            for name in ("mean", "middle", "gap", "relative_gap"):
                ends, expected = (dataclasses.astuple(getattr(one, name)) for one in (entry, same))
                assert ends == pytest.approx(expected, rel=1e-12, nan_ok=True)
            assert entry.episodes == 8
            assert entry.against.row() == pytest.approx(same.against.row(), rel=1e-12, nan_ok=True)


def test_trainings_are_the_units_of_an_agent(boards):
    setting = boards[QUEUE].settings[0]
    agent = setting.entry("agent")
    assert agent.trainings == TRAININGS and agent.table.shape == (3, 8) and agent.episodes == 8
    assert (agent.mean.low, agent.mean.high) == two_level_interval(agent.table)
    assert (agent.middle.low, agent.middle.high) == stratified_interval([agent.table])
    assert agent.middle.value == interquartile_mean(agent.table)
    rival = setting.entry("bf-exec").table[0]
    _, low, high = agent.against.difference
    assert (low, high) == two_level_interval(agent.table - rival)


def test_ratios_are_to_the_best_of_the_episode(boards):
    setting = boards[PARTIAL].settings[0]
    columns = np.concatenate([entry.table for entry in setting.entries])
    expected = performance_ratios(columns.T, "max").T
    assert np.array_equal(np.concatenate([entry.ratios for entry in setting.entries]), expected)
    assert setting.entries[0].mean.value >= setting.entries[1].mean.value
    assert setting.bound >= setting.entries[0].mean.value
    assert all(entry.gap.value >= -1e-9 for entry in setting.entries)


def test_those_that_tie_are_all_first_and_repeated_episodes_are_said(folder):
    board = read(folder)[QUEUE]
    for setting in board.settings:
        setting.entries[1] = dataclasses.replace(setting.entries[0], policy=setting.entries[1].policy)
    page = report._Page([board], [], [], "", [""], 0.95)
    assert sum(first for *_, first in page.overall(board)) == 2 * len(board.settings)
    board.settings[1].parameters["trace"] = "t.csv"
    assert "All seeds have the same windows of a trace" in page.render("title", "store", "")


def test_missing_episodes_are_left_out_of_both(tmp_path, folder, boards):
    shutil.copy(folder / "results.db", tmp_path / "results.db")
    with ResultsStore(tmp_path / "results.db", "w") as store:
        setting = next(s for s in store.settings() if s.id == PARTIAL)
        line = Line(setting, "part", {"policy": "edf"}, None, "part")
        bounds = boards[PARTIAL].settings[0].entries[0].bounds
        easiest = int(np.argmax(bounds[:4]))
        best = bounds[easiest]
        store.add(Unit(line, 0, easiest, 1), ["value"], np.array([[best]]))
        for training in (0, 1):  # two trainings that met no episode in common
            line = Line(setting, "apart", {"agent": "x"}, training, f"apart {training}")
            store.add(Unit(line, training, 0, 2), ["value"], np.zeros((2, 1)))
    setting = read(tmp_path)[PARTIAL].settings[0]
    entry, rival = setting.entry("part"), setting.entry("concave").table[0, easiest]
    assert entry.episodes == 1 and len(setting.episodes) == 8
    assert entry.against.difference.value == pytest.approx(best - rival)
    *complete, last, apart = setting.entries
    assert last is entry and entry.mean.value > complete[0].mean.value, "of an easy episode: not the best"
    assert apart.policy == "apart" and apart.episodes == 0 and math.isnan(apart.mean.value)
    pytest.importorskip("plotly")
    assert write_report(tmp_path / "results.db", tmp_path / "r.html", schedules=False) == []


@pytest.mark.parametrize(("value", "like", "digits", "text"), table(__file__, "test_numbers_are_short"))
def test_numbers_are_short(value, like, digits, text):
    assert number(value, like, digits) == text
    assert (like, digits) != (None, 4) or estimate_text(Estimate(value)) == text  # without an interval
    assert percent_text(-0.0) == percent_text(-0.04) == "+0.0"
    assert estimate_text(Estimate(2.0, 1.0, 3.0), 100, "%") == "200.0% [100.0, 300.0]%"


# schedules -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(list_problems()))
def test_the_gantt_chart_is_the_schedule(name):
    """Every piece of work is a bar of its length, and no two bars of a lane overlap."""
    record = played(name).record()
    figure, note = figures.gantt_figure(record)
    trace = next(trace for trace in figure["data"] if trace.get("hoverinfo") != "skip")
    bars = list(zip(trace["base"], trace["x"], trace["y"], trace["text"], strict=True))
    assert len(bars) == len(record.job)
    assert f"{len(record.job):,} pieces of work" in note
    expected = sorted(zip(record.start.tolist(), (record.end - record.start).tolist(), strict=True))
    assert sorted((base, length) for base, length, _, _ in bars) == expected
    by_lane = {}
    for base, length, lane, _ in bars:
        by_lane.setdefault(lane, []).append((base, base + length))
    for pieces in by_lane.values():
        pieces.sort()
        for (_, end), (start, _) in zip(pieces, pieces[1:], strict=False):
            assert end <= start + 1e-6 * max(1.0, abs(start))
    assert all("<b>" in text and "arrived" in text or name == "single-job" for *_, text in bars)


def test_long_schedules_are_cut_and_say_so():
    env = make_env(QUEUE, {"tasks": 4500, "servers": 60, "arrival_rate": 100.0})
    play(env, make_policy("bf-exec", "queue-delay"))
    figure, note = figures.gantt_figure(env.record())
    drawn = sum(len(trace["x"]) for trace in figure["data"])
    assert drawn <= gantt.MOST_PIECES
    assert "the busiest of 60" in note
    assert len(figure["layout"]["yaxis"]["tickvals"]) == gantt.MOST_ROWS


def test_what_was_played_again_is_compared_with_the_store(folder, made, page, tmp_path):
    assert made[1] == []  # made up, the agent is the worst: only real policies are played again
    notes = [variant["note"] for name, v in plots(page).items() if "schedule" in name for variant in v]
    assert len(notes) >= 2 and all(", as stored." in note for note in notes)
    shutil.copy(folder / "results.db", tmp_path / "results.db")
    with ResultsStore(tmp_path / "results.db", "w") as store:
        setting = next(s for s in store.settings() if s.id == PARTIAL)
        line = Line(setting, "forged", {"policy": "edf"}, None, "forged")
        store.add(Unit(line, 0, 0, 2), ["value"], np.ones((2, 1)))
    remarks = write_report(tmp_path / "results.db", tmp_path / "r.html", policy="forged", episode=1)
    assert len(remarks) == 1 and "but the store says 1.000" in remarks[0]


@long
def test_a_policy_and_an_episode_can_be_chosen(folder, tmp_path):
    path = tmp_path / "r.html"
    assert write_report(folder / "results.db", path, policy="fcfs", episode=2, seed=1) == []
    found = plots(Elements(path.read_text(encoding="utf-8")))
    ((schedule,),) = [v for name, v in found.items() if "schedule" in name]
    assert schedule["note"].startswith("Seed 1, episode 2, servers = 2; played again")
    assert write_report(folder / "results.db", path, schedules=False, title="A <title>") == []
    text = path.read_text(encoding="utf-8")
    assert "<title>A &lt;title&gt;</title>" in text and "Schedule of an episode" not in text


def replay(folder, boards, **which):
    """The page of a store's boards, of which nothing but these episodes is made."""
    with ResultsStore(folder / "results.db") as store:
        page = report._Page([*boards.values()], [], store.manifests(), "", [""], 0.95)
    page.play(which)
    return page


def test_a_shipped_agent_is_played_again_without_trust(folder, boards):
    page = replay(folder, boards, policy="shipped")
    ((_, _, note),) = page.schedules[1]
    assert page.remarks == [] and ", as stored." in note


def test_an_agent_of_a_folder_is_played_again(tmp_path):
    """Of a sweep that named a folder of agents, the report found no file."""
    shipped = load_agent(list_pretrained()[PARTIAL])
    (tmp_path / "agents").mkdir()
    save_agent(tmp_path / "agents" / "a.npz", shipped.weights, {**shipped.metadata, "command": "another"})
    experiment = {"id": PARTIAL, "parameters": {"jobs": 8}, "policies": ["edf"]}
    experiment["agents"] = {"mine": str(tmp_path / "agents")}
    spec = make_spec({"name": "a", "episodes": 1, "experiments": [experiment]})
    assert not run_sweep(spec, tmp_path / "results.db", n_jobs=1, progress=False).failed
    assert replay(tmp_path, read(tmp_path), policy="mine", trust=True).remarks == []


def test_what_cannot_be_played_again_is_a_remark(folder, boards):
    for trust, reason in ((False, "is in a file: --trust lets"), (True, "no manifest names its file")):
        remarks = replay(folder, boards, policy="agent", trust=trust).remarks
        assert len(remarks) == 1 and f"cannot be played again: agent agent: {reason}" in remarks[0]
    remarks = replay(folder, boards, policy=HOSTILE).remarks
    assert len(remarks) == 1 and "unknown policy" in remarks[0] and "\n" not in remarks[0]


# errors --------------------------------------------------------------------------------------------


def made_up(path, rows, settings=({},)):
    """The page of a made-up store: label -> an objective and whether work was left, for each episode."""
    with ResultsStore(path, "w") as store:
        for number, own in enumerate(settings):
            setting = Setting("queue-delay", QUEUE, own, "mean_delay", "min", "code")
            for label, values in rows.items():
                line = Line(setting, label, {"policy": label}, None, f"{number} {label}")
                store.add(Unit(line, 0, 0, len(values)), ["mean_delay", "truncated"], np.array(values, float))
    write_report(path, path.with_suffix(".html"), schedules=False)
    return Elements(path.with_suffix(".html").read_text(encoding="utf-8"))


def test_episodes_with_work_left_are_counted_of_those_that_were_played(tmp_path):
    rows = {"fcfs": [[9, 1], [9, 1], [1, 0]], "bf-exec": [[9, 1], [1, 0]]}
    text = "".join(made_up(tmp_path / "r.db", rows, [{"load": 1}, {"load": 2}]).texts)
    left = "fcfs (2 of 3), bf-exec (1 of 2)"
    assert f"(its charge is included): load = 1: {left}; load = 2: {left}." in text


def test_settings_whose_short_texts_are_the_same_are_told_apart(tmp_path):
    settings = [{"trace": f"{folder}/t.csv", "load": load} for folder in "ab" for load in (1, 1 + 1e-9)]
    page = made_up(tmp_path / "r.db", {"fcfs": [[1, 0]], "bf-exec": [[2, 0]]}, settings)
    board = read(tmp_path, "r.db")[QUEUE]
    assert len({setting.label for setting in board.settings}) == 4
    slices = plot.slices_of(board, "load")
    assert {text: len(own) for text, own in slices.items()} == {f"trace = {f}/t.csv": 2 for f in "ab"}
    assert len(plots(page)["sweep0"]) == 2


def test_infinite_values_are_left_out(tmp_path):
    page = made_up(tmp_path / "r.db", {"fcfs": [[np.inf, 0]] * 3, "bf-exec": [[2, 0]] * 3})
    assert "∞" in page.texts and "15 ms" not in page.texts


def test_errors(folder, tmp_path, monkeypatch):
    store, path = folder / "results.db", tmp_path / "r.html"
    for arguments, error, match in (
        ({"output": tmp_path / "r.pdf"}, InvalidParameter, "must end in .html"),
        ({"confidence": 1.0}, InvalidParameter, "confidence"),
        ({"policy": "bf-exce"}, UnknownName, "did you mean 'bf-exec'"),
        ({"episode": 99}, UnknownName, "episode"),
        ({"seed": 7}, UnknownName, "seed"),
        ({"code": "x"}, UnknownName, "version"),
        ({"store_path": tmp_path / "none.db"}, FileNotFoundError, "no results store"),
    ):
        with pytest.raises(error, match=match):
            write_report(**{"store_path": store, "output": path, **arguments})
    ResultsStore(tmp_path / "empty.db", "w").close()
    with pytest.raises(InvalidParameter, match="nothing to report"):
        write_report(tmp_path / "empty.db", path)
    with pytest.raises(TypeError, match="unexpected keyword argument 'polcy'"):
        write_report(store, path, polcy="bf-exec")
    for module in ("jinja2", "plotly.offline"):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(DependencyNotInstalled, match=r"schedgym\[report\]"):
            write_report(store, path)
    assert not path.exists()


def test_a_store_of_failures_only(folder, tmp_path):
    with ResultsStore(folder / "results.db") as store:
        setting = store.settings()[0]
    with ResultsStore(tmp_path / "f.db", "w") as store:
        store.fail(Unit(Line(setting, "fcfs", {}, None, "x"), 0, 0, 3), "KeyError: 'gone'")
    assert write_report(tmp_path / "f.db", tmp_path / "f.html") == []
    text = "".join(Elements((tmp_path / "f.html").read_text(encoding="utf-8")).texts)
    assert "1 unit failed" in text and "KeyError: 'gone'" in text and "episodes 0–2" in text


# a real browser ------------------------------------------------------------------------------------

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--window-size=1300,1000",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield browser
    browser.quit()


def wait(browser, condition, seconds=60):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, seconds, 0.05).until(lambda driver: driver.execute_script(condition))


def hover(browser, selector, condition):
    """Move the mouse about an element until the page answers, as a reader does: what a busy machine
    draws or scrolls late takes the answer to the first move away."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    def answered(driver):
        element = driver.find_element("css selector", selector)
        for offset in (1, 0):
            ActionChains(driver).move_to_element_with_offset(element, offset, 0).perform()
        return driver.execute_script(condition)

    browser.execute_script(
        "document.querySelector(arguments[0]).scrollIntoView({block: 'center'})",
        selector,
    )
    return WebDriverWait(browser, 60, 0.2).until(answered)


@pytest.fixture
def opened(browser, made):
    """A fresh view of the report; afterwards nothing may have been complained of, or fetched."""
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(made[0].as_uri())
    wait(browser, "return document.documentElement.dataset.ready === '1'")
    yield browser
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert browser.execute_script("return window.hacked === undefined")


def panel(browser):
    return browser.execute_script(
        "const open = [...document.querySelectorAll('section.panel')].filter(p => p.offsetParent !== null);"
        "return open.map(p => p.id)"
    )


def open_tab(browser, name):
    tab = browser.find_element("css selector", f'[role="tab"][data-name="{name}"]')
    tab.click()
    section = tab.get_attribute("aria-controls")
    wait(browser, f"return [...document.querySelectorAll('#{section} .plot')].every(p => p.dataset.drawn)")
    return section


@long
def test_tabs(opened):
    assert panel(opened) == ["panel0"]
    section = open_tab(opened, "QueueDelay")
    assert panel(opened) == [section]
    assert opened.execute_script(f"return document.querySelectorAll('#{section} .main-svg').length") >= 6
    names = opened.execute_script(f"return document.querySelector('#{section} .plot').textContent")
    assert "<script>" in names and "bold" in names  # the name is shown letter by letter
    selected = opened.find_elements("css selector", '[role="tab"][aria-selected="true"]')
    assert [tab.text for tab in selected] == ["QueueDelay"]
    selected[0].send_keys("\ue012")  # arrow left
    assert panel(opened) == ["panel0"]
    opened.execute_script("location.hash = '#manifest'")
    wait(opened, "return document.querySelector('section.panel.open h2')?.textContent === 'Manifest'")


@long
def test_tooltips(opened):
    section = open_tab(opened, "PartialValue")
    shown = "document.getElementById('tip').classList.contains('on')"
    hover(opened, f"#{section} th button[data-tip*='Rank']", f"return {shown}")
    tip = opened.find_element("id", "tip")
    assert tip.text == "Rank of the mean; those over fewer episodes come later." and tip.is_displayed()
    hover(opened, "h1", f"return !{shown}")


def test_the_plots_answer_the_mouse(opened):
    section = open_tab(opened, "PartialValue")
    bar = f"#{section} .plot[data-plot^=schedule] .barlayer .trace:last-child .point"
    text = hover(opened, bar, "return document.querySelector('.hoverlayer .hovertext')?.textContent")
    assert "job" in text and "slots" in text


def test_tables_are_sorted_and_settings_chosen(opened):
    section = open_tab(opened, "QueueDelay")
    rows = f"return [...document.querySelectorAll('#{section} tbody')][0].rows"
    shown = f"{rows.replace('return ', 'const r = ')}; return [...r].filter(x => !x.hidden).length"
    assert opened.execute_script(shown) == 4  # the first setting's
    select = opened.find_element("css selector", f"#{section} select[data-table]")
    choose = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))"
    opened.execute_script(choose, select, "1")
    assert opened.execute_script(shown) == 4
    means = opened.find_element("css selector", f"#{section} .plot[data-plot^=means]")
    assert means.get_attribute("data-variant") == "1"  # the plots follow
    opened.execute_script(choose, select, "all")
    assert opened.execute_script(shown) == 8
    order = f"const r = [...document.querySelectorAll('#{section} tbody')[0].rows]; "
    order += "return r.map(x => Number(x.children[3].dataset.value))"
    head = opened.find_element("xpath", f"//section[@id='{section}']//th/button[starts-with(text(), 'Mean')]")
    head.click()
    values = opened.execute_script(order)
    assert values == sorted(values) and len(values) == 8
    head.click()
    assert opened.execute_script(order) == values[::-1]
    assert head.find_element("xpath", "..").get_attribute("aria-sort") == "descending"


@long
def test_dark_light_and_paper(opened):
    section = open_tab(opened, "PartialValue")
    ink = f"getComputedStyle(document.querySelector('#{section} .plot .ytick text')).fill"
    body = "getComputedStyle(document.body)"
    emulate = functools.partial(opened.execute_cdp_cmd, "Emulation.setEmulatedMedia")
    seen = {}
    for theme in ("light", "dark"):
        emulate({"features": [{"name": "prefers-color-scheme", "value": theme}]})
        wait(opened, f"return matchMedia('(prefers-color-scheme: {theme})').matches")
        wait(opened, f"return {ink} === {body}.color")  # drawn again, in the ink of the page
        seen[theme] = opened.execute_script(f"return [{body}.backgroundColor, {ink}]")
    assert seen["light"][0] != seen["dark"][0] and seen["light"][1] != seen["dark"][1]
    printed = opened.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True, "printBackground": True})
    pdf = base64.b64decode(printed["data"])
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") >= 4 or pdf.count(b"/Type /Page") >= 4
    wait(opened, "return !document.documentElement.classList.contains('printing')")
    drawn = "return [...document.querySelectorAll('.plot')].every(p => p.querySelector('.main-svg'))"
    assert opened.execute_script(drawn)  # also of the tabs that were closed
    assert panel(opened) == [section] and open_tab(opened, "QueueDelay") != section
    emulate({"features": []})


@long
def test_a_narrow_screen_shows_the_winners_numbers_and_the_gaps_whole(opened):
    narrow = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    inside = """
        const inside = (name, texts) => {
            const card = document.querySelector(name).closest(".card"), all = card.getBoundingClientRect();
            const shown = [...card.querySelectorAll(texts)].filter((text) => text.style.display !== "none");
            return shown.length > 6 && shown.map((text) => text.getBoundingClientRect())
                .every((own) => own.left >= all.left && own.right <= all.right);
        };
        return inside(".summary", "td > span:not(.dot, .tag), td .range")
            && inside('[data-plot="gaps"]', "svg text") && document.documentElement.scrollWidth === 390;
    """
    wait(opened, inside)
    names = "return getComputedStyle(document.querySelector('.marks > b')).color"
    assert opened.execute_script(names) != "rgba(0, 0, 0, 0)"  # whose marks they are
    section = open_tab(opened, "QueueDelay")
    place = f"document.querySelector('#{section} .plot[data-plot^=profile] "
    ends = f"{place} .xtitle').getBoundingClientRect().bottom, {place} .legend').getBoundingClientRect().top"
    title, legend = opened.execute_script(f"return [{ends}]")
    assert title <= legend
