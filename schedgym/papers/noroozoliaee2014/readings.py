"""Points that the paper leaves open, on measures of size (section III-A) and measurements (section VI)."""

from __future__ import annotations

from schedgym.papers.readings import OpenPoint

#: whether fewer bins count
OUTPERFORMING = OpenPoint(
    "what outperforming means",
    "dot product and L2 norm outperform the other measures of size in most cases, as shown in reference "
    "[4], which is about packing a given list of items into as few bins as possible (section III-A3)",
    "whether this means fewer bins, as in [4], or the paper's own objective",
    {"fewer bins": True, "a shorter average delay": False},
    "fewer bins",
)
#: what the names of the FFD policies end with
HEAD = OpenPoint(
    "front of FFD's queue",
    "FFD assigns according to first fit, which looks for a server when a task is submitted, and tries the "
    "task at the front of the queue when one completes (section III-A)",
    "whether tasks behind a waiting task that does not fit have to wait, too, and tasks that arrive later",
    {
        "the front blocks": "-blocking",
        "the front blocks, but not what arrives": "-bypass",
        "what does not fit is passed over": "",
    },
    "the front blocks",
)
#: what the names of the utilisation metrics end with
WINDOW = OpenPoint(
    "window of the utilisation",
    "Fig. 2 shows the utilisation by number of servers (section VI-A)",
    "the time over which it is averaged",
    {
        "to the last arrival": "_to_last_arrival",
        "while tasks wait": "_backlog",
        "to the last completion": "",
    },
    "to the last arrival",
)
