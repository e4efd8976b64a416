"""A hook of mkdocs: typesets formulas as MathML, which browsers show without a script.

Formulas of notebooks are LaTeX. A formula of a docstring stands between single dollars, and is readable as
text in a terminal: ``$sum_j (c_j - a_j)^k <= lambda$``. It differs from LaTeX in three ways: commands have no
backslash, other words of several letters are upright, and _ and ^ take a whole word or the content of round
brackets.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

COMMANDS = set("Gamma alpha delta exp lambda log max min mu rho sigma sqrt sum".split())
SIGNS = {"<=": r"\le ", ">=": r"\ge "}
#: what pymdownx.arithmatex makes of a formula
FOUND = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', flags=re.DOTALL)
#: a cell of text of a notebook, whose formulas are still between dollars
TEXT_CELL = re.compile(r'<div class="[^"]*\bjp-MarkdownOutput\b[^"]*"[^>]*>.*?</div>', flags=re.DOTALL)
CODE_OR_FORMULA = re.compile(r"<code>.*?</code>|\$\$(.+?)\$\$|\$(.+?)\$", flags=re.DOTALL)


def latex(formula: str) -> str:
    """Return a formula of a docstring as LaTeX."""

    def word(match: re.Match[str]) -> str:
        before, name = match.groups()
        if name in COMMANDS:
            shown = f"\\{name} "
        else:
            shown = name if before == "_" and len(name) < 4 else f"\\text{{{name}}}"  # indices are not a word
        return f"{before}{{{shown}}}" if before else shown

    inner = r"\(((?:[^()]|\([^()]*\))*)\)"  # brackets within brackets, once
    text = re.sub(rf"([_^]|\bsqrt){inner}", r"\1{\2}", " ".join(formula.split()))
    for sign, command in SIGNS.items():
        text = text.replace(sign, command)
    return re.sub(r"([_^]|(?<![A-Za-z\\]))([A-Za-z]{2,})", word, text)


def typeset_notebook(content: str) -> str:
    """Replace the formulas in the text cells of a notebook's HTML."""

    def typeset(match: re.Match[str]) -> str:
        block, inline = match.groups()
        if block is None and inline is None:
            return match[0]
        display = "block" if block is not None else "inline"
        return convert(html.unescape(block or inline), display=display)

    return TEXT_CELL.sub(lambda cell: CODE_OR_FORMULA.sub(typeset, cell[0]), content)


def on_page_content(content: str, **kwargs: Any) -> str:
    """Replace every formula of a page; mkdocs calls this with the page's HTML."""
    return typeset_notebook(FOUND.sub(lambda match: convert(latex(html.unescape(match[1]))), content))
