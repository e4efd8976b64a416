"""The papers whose problems and algorithms are in the package: their keys and citations."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from schedgym.documents import read_yaml
from schedgym.errors import UnknownName


@dataclasses.dataclass(frozen=True)
class Paper:
    """A paper.

    Attributes:
        key: short name by which it is cited, as in "guan2022/fig4.6"; also the name of its package here.
        topic: its topic, in two or three words.
        title: of the paper.
        authors: as printed.
        published: place and year of publication.
        problems: environment ids that come from it.
    """

    key: str
    topic: str
    title: str
    authors: str
    published: str
    problems: tuple[str, ...]

    @property
    def citation(self) -> str:
        """Authors, title, place and year in one line."""
        return f"{self.authors}: {self.title}. {self.published}."


PAPERS = tuple(
    Paper(**{**row, "problems": tuple(row["problems"])})
    for row in read_yaml(Path(__file__).with_name("papers.yaml"))
)


def get_paper(key: str) -> Paper:
    """Return the paper of a key ("guan2022").

    Raises:
        UnknownName: there is no such key; the message proposes the nearest one.
    """
    papers = {paper.key: paper for paper in PAPERS}
    if key not in papers:
        raise UnknownName("paper", key, papers)
    return papers[key]
