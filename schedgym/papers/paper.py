"""The papers whose problems and algorithms are in the package: their keys and citations."""

from __future__ import annotations

import dataclasses

from schedgym.errors import UnknownName

__all__ = ["PAPERS", "Paper", "get_paper"]


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


PAPERS = (
    Paper(
        "xu2021",
        "online packing",
        "Optimal Job Scheduling With Resource Packing for Heterogeneous Servers",
        "Huanle Xu, Yang Liu, Wing Cheong Lau",
        "IEEE/ACM Transactions on Networking, 2021",
        ("schedgym/FlowtimePacking-v0",),
    ),
    Paper(
        "shi2017",
        "parallel jobs",
        "Energy-aware Scheduling of Embarrassingly Parallel Jobs and Resource Allocation in Cloud",
        "Li Shi, Zhemin Zhang, Thomas Robertazzi",
        "IEEE Transactions on Parallel and Distributed Systems, 2017",
        ("schedgym/SingleJob-v0", "schedgym/ParallelJCT-v0"),
    ),
    Paper(
        "zheng2016",
        "partial values",
        "Online Multi-Resource Allocation for Deadline Sensitive Jobs with Partial Values in the Cloud",
        "Zizhan Zheng, Ness B. Shroff",
        "IEEE INFOCOM, 2016",
        ("schedgym/PartialValue-v0",),
    ),
    Paper(
        "noroozoliaee2014",
        "task completion",
        "Online Multi-Resource Scheduling for Minimum Task Completion Time in Cloud Servers",
        "MohammadJavad NoroozOliaee, Bechir Hamdaoui, Mohsen Guizani, Mahdi Ben Ghorbel",
        "IEEE INFOCOM Workshops, 2014",
        ("schedgym/QueueDelay-v0",),
    ),
    Paper(
        "guan2022",
        "distributed jobs",
        "Task Allocation and Scheduling for Distributed Job Execution",
        "Guan Yitong",
        "Thesis, Nanyang Technological University, Singapore, 2022",
        ("schedgym/GeoAssign-v0", "schedgym/GeoFair-v0"),
    ),
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
