"""Public data sets by name: downloaded once into the user's cache, their SHA-256 always checked.

The environment variable ``SCHEDGYM_DATA`` names a folder that is used instead of the cache; a folder
that already holds the files may be read-only and needs no network and no pooch.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path

from schedgym.errors import TraceFormatError, UnknownName

__all__ = ["ENVIRONMENT_VARIABLE", "KNOWN", "DataSet", "fetch"]

ENVIRONMENT_VARIABLE = "SCHEDGYM_DATA"


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A published file.

    Attributes:
        file: its name.
        url: where it is published.
        sha256: of its content, in hexadecimal.
        help: one line: what it is.
    """

    file: str
    url: str
    sha256: str
    help: str


_ALIBABA = "https://raw.githubusercontent.com/alibaba/clusterdata/master/cluster-trace-gpu-v2023/csv"
_SWIM = "https://raw.githubusercontent.com/SWIMProjectUCB/SWIM/master/workloadSuite"

#: name -> data set
KNOWN: dict[str, DataSet] = {
    "alibaba-2023-pods": DataSet(
        "openb_pod_list_default.csv",
        f"{_ALIBABA}/openb_pod_list_default.csv",
        "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8",
        "Alibaba GPU cluster trace 2023: 8152 pods",
    ),
    "alibaba-2023-nodes": DataSet(
        "openb_node_list_all_node.csv",
        f"{_ALIBABA}/openb_node_list_all_node.csv",
        "5a85c2af79c66a1efff8bbcbda430400aae56d8431370d738480967e1a9c6b15",
        "Alibaba GPU cluster trace 2023: 1523 nodes",
    ),
    "facebook-2010": DataSet(
        "FB-2010_samples_24_times_1hr_0.tsv",
        f"{_SWIM}/FB-2010_samples_24_times_1hr_0.tsv",
        "65f758ecd0495955de30c560b2d57fc351c9b2c89117b82f16b2f8f30fb4e9d9",
        "Facebook MapReduce workload 2010 (SWIM): 24442 jobs",
    ),
}


def fetch(name: str) -> Path:
    """The local path of a data set, downloaded if it is not there yet.

    Args:
        name: a key of :data:`KNOWN`.

    Returns:
        the file, in the folder that ``SCHEDGYM_DATA`` names, else in the user's cache.

    Raises:
        UnknownName: when there is no such data set.
        TraceFormatError: when ``SCHEDGYM_DATA`` holds the file with another content; it is left as it is.
        OSError: when the download fails, yields another content, or cannot be written.
        gymnasium.error.DependencyNotInstalled: when a download is needed and pooch is not installed.
    """
    if name not in KNOWN:
        raise UnknownName("data set", name, KNOWN)
    known = KNOWN[name]
    folder = os.environ.get(ENVIRONMENT_VARIABLE)
    if folder and (held := Path(folder).expanduser() / known.file).exists():
        found = sha256(held)
        if found != known.sha256:  # the user's own file: pooch would overwrite it
            raise TraceFormatError(held, 0, "", f"SHA-256 must be {known.sha256}, got {found}")
        return held
    try:
        import pooch
    except ImportError:
        from gymnasium.error import DependencyNotInstalled

        raise DependencyNotInstalled('downloading traces needs pooch: pip install "schedgym[eval]"') from None
    cache = pooch.create(
        path=pooch.os_cache("schedgym"),
        base_url="",
        env=ENVIRONMENT_VARIABLE,
        registry={known.file: f"sha256:{known.sha256}"},
        urls={known.file: known.url},
    )
    try:
        return Path(cache.fetch(known.file))
    except (OSError, ValueError) as error:  # pooch raises ValueError for a wrong hash
        cause: BaseException = error
        while earlier := cause.__cause__ or cause.__context__:
            cause = earlier  # the rest only wraps it, in 400 characters
        reason = " ".join((getattr(cause, "strerror", None) or str(cause)).split())
        where = folder or f"a folder that the environment variable {ENVIRONMENT_VARIABLE} names"
        raise OSError(
            f"{name}: cannot fetch {known.url} into {cache.abspath}: {reason}; "
            f"without a network, put {known.file} into {where}"
        ) from error


def sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
