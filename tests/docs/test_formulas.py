"""The formulas of docstrings, readable as text, and of notebooks: both are MathML on the site."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path
from xml.etree import ElementTree

import gymnasium
import pytest

from schedgym.core.policy import list_policies
from schedgym.core.problem import list_problems
from tests.tables import table

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def formulas():
    spec = importlib.util.spec_from_file_location("formulas", ROOT / "docs" / "formulas.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def documented() -> dict[str, str]:
    """Docstrings of all environments and policies."""
    ids = [id for problem in list_problems().values() for id in problem.ids]
    found = {id: type(gymnasium.make(id, disable_env_checker=True).unwrapped) for id in ids}
    found |= {spec.name: spec.factory for spec in list_policies()}
    return {name: inspect.getdoc(item) or "" for name, item in found.items()}


def test_every_formula_is_text_and_mathml(formulas) -> None:
    pages = documented()
    for name, text in pages.items():
        parts = text.split("$")
        assert len(parts) % 2 == 1, f"{name}: a formula does not end"
        for formula in parts[1::2]:
            assert not re.search(r"[\\{}]", formula), (name, formula)
            ElementTree.fromstring(formulas.convert(formulas.latex(formula)))
    assert all(
        "$" in text for name, text in pages.items() if name.startswith("schedgym/") and "Fair" not in name
    )


@pytest.mark.parametrize(
    ("formula", "latex"),
    table(__file__, "test_a_formula_as_latex"),
)
def test_a_formula_as_latex(formulas, formula: str, latex: str) -> None:
    assert formulas.latex(formula) == latex


def test_only_formulas_of_a_page_are_replaced(formulas) -> None:
    page = '<p><span class="arithmatex">\\(x &lt;= y\\)</span> and <code>$x$</code></p>'
    replaced = formulas.on_page_content(page)
    assert replaced.startswith("<p><math ") and replaced.endswith("</math> and <code>$x$</code></p>")


def test_formulas_of_notebooks(formulas) -> None:
    """In text cells only, and not in code."""
    cell = '<div class="jp-RenderedMarkdown jp-MarkdownOutput"><p>{}</p></div>'
    page = cell.format("$a_1 &lt; 2$ and $$b$$ <code>$c</code>") + "<pre>$d$</pre>"
    found = formulas.typeset_notebook(page)
    assert found.count("<math ") == 2 and 'display="block"' in found
    assert "<code>$c</code>" in found and "<pre>$d$</pre>" in found and "$a_1" not in found
