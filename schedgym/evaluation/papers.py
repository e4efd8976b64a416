"""The papers whose problems and algorithms the package has: what to call and how to cite them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from schedgym.errors import UnknownName

__all__ = ["PAPERS", "Paper", "get_paper"]


@dataclasses.dataclass(frozen=True)
class Paper:
    """A paper.

    Attributes:
        number: three digits, as in "004/fig4.6".
        name: short name that commands take, too.
        title: of the paper.
        authors: as printed.
        published: where, and the year.
        problems: environment ids that come from it.
    """

    number: str
    name: str
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
        "000",
        "online-packing",
        "Optimal Job Scheduling With Resource Packing for Heterogeneous Servers",
        "Huanle Xu, Yang Liu, Wing Cheong Lau",
        "IEEE/ACM Transactions on Networking, 2021",
        ("schedgym/FlowtimePacking-v0",),
    ),
    Paper(
        "001",
        "parallel-jobs",
        "Energy-aware Scheduling of Embarrassingly Parallel Jobs and Resource Allocation in Cloud",
        "Li Shi, Zhemin Zhang, Thomas Robertazzi",
        "IEEE Transactions on Parallel and Distributed Systems, 2017",
        ("schedgym/SingleJob-v0", "schedgym/ParallelJCT-v0"),
    ),
    Paper(
        "002",
        "partial-values",
        "Online Multi-Resource Allocation for Deadline Sensitive Jobs with Partial Values in the Cloud",
        "Zizhan Zheng, Ness B. Shroff",
        "IEEE INFOCOM, 2016",
        ("schedgym/PartialValue-v0",),
    ),
    Paper(
        "003",
        "task-completion",
        "Online Multi-Resource Scheduling for Minimum Task Completion Time in Cloud Servers",
        "MohammadJavad NoroozOliaee, Bechir Hamdaoui, Mohsen Guizani, Mahdi Ben Ghorbel",
        "IEEE INFOCOM Workshops, 2014",
        ("schedgym/QueueDelay-v0",),
    ),
    Paper(
        "004",
        "distributed-jobs",
        "Task Allocation and Scheduling for Distributed Job Execution",
        "Guan Yitong",
        "Thesis, Nanyang Technological University, Singapore, 2022",
        ("schedgym/GeoAssign-v0", "schedgym/GeoFair-v0"),
    ),
)


def get_paper(name: str, among: Iterable[Paper] = PAPERS) -> Paper:
    """The paper of a number ("004") or a short name ("distributed-jobs").

    Raises:
        UnknownName: proposing the nearest.
    """
    found = {key: paper for paper in among for key in (paper.number, paper.name)}
    if name not in found:
        raise UnknownName("paper", name, found)
    return found[name]
