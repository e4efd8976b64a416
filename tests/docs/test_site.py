"""The documentation site builds without a warning, and all that its pages point to is there."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from schedgym.core.policy import list_policies
from schedgym.core.problem import list_problems
from schedgym.papers import list_claims, list_figures
from schedgym.papers.paper import PAPERS
from tests.interpreted import python
from tests.long import long

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MOST_BYTES = 150_000  # of a picture made by the generator

pytestmark = long


class Page(HTMLParser):
    """The links of a page, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []  # by the browser, without a click
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        for name in ("href", "src", "srcset", "poster", "data-src"):
            value = given.get(name)
            if value:
                (self.links if tag == "a" else self.loaded).append(value.split(" ")[0])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built anew; no network is needed for it."""
    folder = tmp_path_factory.mktemp("site")
    offline = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    variables = {**offline, "NO_MKDOCS_2_WARNING": "1"}
    done = python("-m", "mkdocs", "build", "--strict", "--site-dir", str(folder), **variables)
    output = done.stdout + done.stderr
    assert not re.search("warning|error", output, flags=re.IGNORECASE), output
    return folder


@pytest.fixture(scope="module")
def pages(site):
    """Path -> page, of every HTML file."""
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def test_every_link_and_picture_resolves(site, pages):
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":  # served for any path, so its links begin at the host
            continue
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith(("data:", "javascript:")):
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.is_file():
                broken.append((path.relative_to(site), link))
            elif (
                anchor
                and target in pages
                and not anchor.startswith("__")
                and anchor not in pages[target].anchors
            ):
                broken.append((path.relative_to(site), link))
    assert not broken, broken[:20]


def test_nothing_is_loaded_from_another_host(site, pages):
    for path, page in pages.items():
        other = [link for link in page.loaded if urlsplit(link).netloc]
        assert not other, (path, other)
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import )['\"]?(https?:)?//", path.read_text(encoding="utf-8")), path


def test_every_registered_thing_has_its_page(site):
    for problem in list_problems().values():
        for id in problem.ids:
            assert (site / "environments" / f"{id.partition('/')[2]}.html").is_file(), id
    index = (site / "policies" / "index.html").read_text(encoding="utf-8")
    for spec in list_policies():
        assert f">{spec.name.partition('/')[2]}</code></a>" in index, spec.name
    assert len(list((site / "policies").glob("*/*.html"))) == len(list_policies())
    for paper in PAPERS:
        assert (site / "errata" / f"{paper.key}.html").is_file(), paper.key


def test_an_environment_page_tells_all(site):
    """Every parameter, metric, preset, view and default policy of every id, and its pictures."""
    for problem in list_problems().values():
        for id, variant in problem.ids.items():
            short = id.partition("/")[2]
            text = (site / "environments" / f"{short}.html").read_text(encoding="utf-8")
            names = [*problem.parameters.kinds(), *(m.name for m in problem.metrics), *problem.presets]
            for name in (*names, *(view.name for view in problem.views), *variant.policies):
                assert f"<code>{name}</code>" in text, (id, name)
            for picture in (f"{short}.png", f"{short}-schedule.png"):
                size = (site / "environments" / picture.lower()).stat().st_size
                assert 2_000 < size < MOST_BYTES, (picture, size)


def test_a_policy_page_tells_all(site):
    for spec in list_policies():
        problem, _, short = spec.name.partition("/")
        name = short.replace("+", "-plus")
        text = (site / "policies" / problem / f"{name}.html").read_text(encoding="utf-8")
        for word in (*spec.options(), *spec.views, *spec.knows):
            assert f"<code>{word}</code>" in text, (spec.name, word)


def test_the_roles_of_docstrings_are_links(pages, site):
    for path in pages:
        assert not re.search(r":(class|func|meth|mod):`?<code>", path.read_text(encoding="utf-8")), path
    text = (site / "environments" / "PartialValue-v0.html").read_text(encoding="utf-8")
    assert "autoref" not in text and "<code>PartialValueParameters</code>" in text


def test_formulas_are_typeset(pages, site):
    """As MathML, which needs no script; none is left as text."""
    for path in pages:
        assert "arithmatex" not in path.read_text(encoding="utf-8"), path
    for name in ("environments/FlowtimePacking-v0", "policies/flowtime/ocorp", "notebooks/xu2021"):
        assert "<math " in (site / f"{name}.html").read_text(encoding="utf-8"), name


def test_the_committed_claims_are_the_registered_ones():
    """`schedgym claims --json docs/claims.json` must be run again when claims change."""
    entries = json.loads((DOCS / "claims.json").read_text(encoding="utf-8"))["claims"]
    names = ("verdict", "text", "source", "ours")
    committed = {entry["claim"]: tuple(entry[name] for name in names) for entry in entries}
    registered = {c.name: (c.verdict, c.text, c.source, c.ours) for c in list_claims()}
    assert committed == registered
    found = {e["claim"]: {name: own["found"] for name, own in e["readings"].items()} for e in entries}
    assert found == {
        c.name: {name: str(verdict) for name, verdict in c.recorded.items() if name} for c in list_claims()
    }


def test_errata_show_what_a_paper_leaves_open(site):
    """Each open point with its choices, and each claim that depends on one with its verdicts."""
    for paper in PAPERS:
        page = (site / "errata" / f"{paper.key}.html").read_text(encoding="utf-8")
        above = page.partition('id="its-claims"')[0]
        claims = list_claims(paper.key)
        for point in {point for entry in (*claims, *list_figures(paper.key)) for point in entry.under}:
            assert f"<td>{html.escape(point.name, quote=False)}</td>" in above, point.name
        for claim in claims:
            assert (f"<code>{claim.name}</code>" in above) == bool(claim.under and not claim.ours), claim.name


def test_errata_show_apart_what_a_paper_does_not_say(site):
    """On a paper's page below its own claims; in the summary in a column of their own."""
    summary = re.sub(r"\s+", " ", (site / "errata" / "index.html").read_text(encoding="utf-8"))
    for paper in PAPERS:
        claims = list_claims(paper.key)
        page = (site / "errata" / f"{paper.key}.html").read_text(encoding="utf-8")
        above, found, below = page.partition('<h2 id="statements-that-the-paper-does-not-make"')
        assert bool(found) == any(claim.ours for claim in claims)
        for claim in claims:
            assert (f">{claim.name}\n</code>" in below) == claim.ours, claim.name
            assert (f">{claim.name}\n</code>" in above) != claim.ours, claim.name
        row = rf"<td>{paper.key} [^<]*</td> (<td>\d+</td> ){{9}}<td>{sum(c.ours for c in claims)}</td> </tr>"
        assert re.search(row, summary), paper.key


def test_the_committed_benchmarks_are_of_every_id():
    """`python -m benchmarks speed --json docs/benchmarks.json` must be run again when ids are added."""
    rows = json.loads((DOCS / "benchmarks.json").read_text(encoding="utf-8"))["benchmark"]
    ids = {id for problem in list_problems().values() for id in problem.ids}
    assert {row["id"] for row in rows} == ids
    assert all(row["value"] > 0 for row in rows)


def test_the_committed_figures_are_registered():
    """Each with its picture and its data; files of a figure that is no more would be in no page."""
    known = {figure.stem: figure.name for figure in list_figures()}
    for path in (DOCS / "reproduced").rglob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        assert content["figure"] == known[path.stem]
        assert content["scale"] == ("paper" if path.parent.name == "paper" else "small")
        assert path.with_suffix(".png").is_file() and path.with_suffix(".csv").is_file(), path.stem


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.json")), ids=lambda path: path.name)
def test_committed_results_name_no_folder_of_the_machine(path):
    """Manifests hold the command line, and with it where a program or an output file was."""
    found = re.findall(r"(?:^|[\"' =])(/(?:home|root|tmp|usr|opt|work|Users)/[^\"' ]*)", path.read_text())
    assert not found, found[:5]
