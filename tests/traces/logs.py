"""Small logs in exactly the schemas of published traces: what all formats are tested on."""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Sequence
from pathlib import Path

from schedgym.traces import formats
from schedgym.traces.google2011 import TASK_EVENTS
from schedgym.traces.swf import NAMES

# Google 2011 ------------------------------------------------------------------------------------------------

SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST, UPDATE_PENDING, UPDATE_RUNNING = range(9)
AFTER = 2**63 - 1
S = 1_000_000  # us


def event(time: int, task: int, kind: int, cpu: float | str = 0.25, memory: float | str = 0.125) -> str:
    machine = "" if kind == SUBMIT else "4155527081"
    return (
        f"{time},,{6251639646 + task // 10},{task % 10},{machine},{kind},aB+/c=,2,9,{cpu},{memory},0.00019,0"
    )


def machine(time: int, number: int, kind: int, cpu: float | str = 0.5, memory: float | str = 0.25) -> str:
    return f"{time},{4155527081 + number},{kind},HofLGzk1Or/8Ildj2+Lqv0UGGvY82NLoni8+J/Yy0RU=,{cpu},{memory}"


EVENTS = [
    event(0, 0, SUBMIT),  # 0 was submitted before the trace
    event(0, 0, SCHEDULE),
    event(600 * S, 1, SUBMIT, 0.0625, 0.03125),  # 1 runs from 602.5 to 610
    event(600 * S, 2, SUBMIT, 0.5, 0.5),  # 2 runs twice, from 605 and from 630 to 640
    event(601 * S, 3, SCHEDULE),  # 3 has lost its first row
    event(602_500_000, 1, SCHEDULE, 0.0625, 0.03125),
    event(603 * S, 1, UPDATE_RUNNING, 0.75, 0.75),
    event(605 * S, 2, SCHEDULE, 0.5, 0.5),
    event(606 * S, 4, SUBMIT, "", 0.1),  # 4 and 5 have no request
    event(606 * S, 5, SUBMIT, 0.1, ""),
    event(607 * S, 4, SCHEDULE, 0.1, 0.1),
    event(608 * S, 6, SUBMIT),  # 6 is never scheduled
    event(609 * S, 7, SUBMIT),  # 7 finishes in no time
    event(610 * S, 1, FINISH, 0.0625, 0.03125),
    event(611 * S, 0, FINISH),
    event(612 * S, 4, FINISH, 0.1, 0.1),
    event(613 * S, 3, FINISH),
]
MORE = [
    event(614 * S, 7, SCHEDULE),
    event(614 * S, 7, FINISH),
    event(615 * S, 2, EVICT, 0.5, 0.5),
    event(615 * S, 2, SUBMIT, 0.75, 0.75),
    event(616 * S, 8, SUBMIT),  # 8 is still running at the end
    event(617 * S, 8, SCHEDULE),
    *(event(618 * S, task, SUBMIT) for task in (11, 12, 13, 14)),
    *(event(619 * S, task, SCHEDULE) for task in (11, 12, 13, 14)),
    event(620 * S, 11, EVICT),
    event(620 * S, 12, FAIL),
    event(620 * S, 13, KILL),
    event(620 * S, 14, LOST),
    event(621 * S, 15, SUBMIT),  # 15 ends without having started
    event(622 * S, 15, UPDATE_PENDING),
    event(623 * S, 15, FINISH),
    event(625 * S, 1, SUBMIT, 0.25, 0.25),  # the name of 1 again: another task
    event(626 * S, 1, SCHEDULE),
    event(630 * S, 2, SCHEDULE, 0.75, 0.75),
    event(635 * S, 1, FINISH),
    event(640 * S, 2, FINISH),
    event(AFTER, 8, FINISH),
]
DROPPED = {
    "submitted before the trace": 1,
    "no SUBMIT": 1,
    "request missing": 2,
    "no SCHEDULE": 1,
    "execution <= 0": 1,
    **{f"unfinished: {state}": 1 for state in ("pending", "running", "evicted", "failed", "killed", "lost")},
}
MACHINES = [
    machine(0, 0, 0),
    machine(0, 1, 0, 1, 1),
    machine(0, 2, 0, "", 0.5),
    machine(0, 3, 0, 0.25, 0.5),
    machine(700 * S, 0, 1),
    machine(701 * S, 4, 0),
    machine(702 * S, 3, 2, 0.5, 0.5),
    machine(703 * S, 0, 2, 0.75, 0.75),  # an update of a machine that is gone
    machine(AFTER, 1, 1),
]

# the Standard Workload Format -------------------------------------------------------------------------------

SWF_HEADER = [
    "; Version: 2.2",
    "; Computer: test",
    ";",
    "; MaxNodes: 4 (3, 1)",
    "; MaxProcs: 32",
    "; Note: MaxNodes and MaxProcs count everything",
]
# job, submit, wait, run, allocated, cpu, used KiB, requested, time, requested KiB, status, user ... think
SWF_ROWS = [
    "    1   100    5    60    4   55 1048576    8  3600 2097152  1 1 1 1 1 1 -1 -1",
    "    2   100   -1    30   -1   -1      -1    2    -1  524288  0 2 1 1 1 1 -1 -1",
    "    3    50    0  10.5    1   -1      -1   -1    -1      -1 -1 2 1 1 1 1 -1 -1",
    "    4   120    0     0    8   -1      -1    8    60      -1  5 2 1 1 1 1 -1 -1",  # cancelled
    "    5   130   -1    -1    8   -1      -1    8    60      -1  5 2 1 1 1 1 -1 -1",  # cancelled
    "    6   140    0    10   -1   -1      -1   -1    60      -1  1 2 1 1 1 1 -1 -1",  # on how many?
    "    7   140    0    10    0   -1      -1    4    60      -1  1 2 1 1 1 1 -1 -1",  # on none
    "    8    -1    0    10    2   -1      -1    4    60      -1  1 2 1 1 1 1  7  5",  # after 7
    "    9   150    0     5    2   -1      -1    4    60      -1  2 2 1 1 1 1 -1 -1",  # a first period
    "    9    -1    0     5    2   -1      -1    4    60      -1  3 2 1 1 1 1 -1 -1",  # its last
    "   10   160    0     5    2   -1      -1    4    60      -1  4 2 1 1 1 1 -1 -1",  # a last one, killed
]
SWF_DROPPED = {
    "execution <= 0": 2,
    "processors <= 0 or unknown": 2,
    "submit time unknown": 1,
    "partial execution": 3,
}
MACHINES_CSV = "cores,memory\n16,64\n8,32\n"

# Alibaba 2023, SWIM, Slurm ----------------------------------------------------------------------------------

PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time"
)
POD_ROWS = [
    "openb-pod-0000,12000,16384,1,1000,,LS,Running,100,600,200",
    "openb-pod-0001,6500,12288,1,460,V100M16|V100M32,BE,Failed,50,950,50",
    "openb-pod-0002,8000,30517,1,230,,BE,Pending,300,300,",  # deleted as it was created
    "openb-pod-0003,1000,0,0,0,,Burstable,Pending,300,420,",
    "openb-pod-0004,2000,1536,0,0,,LS,Succeeded,400,390,395",  # ends before it starts
]
NODES = "sn,cpu_milli,memory_mib,gpu,model"
NODE_ROWS = ["openb-node-0000,32000,262144,0,", "openb-node-0001,96000,393216,8,G2"]
SWIM_ROWS = [
    "job0\t9\t9\t1762\t0\t14347",
    "job1\t18\t9\t3000000000\t609\t697",
    "job2\t18\t0\t3000000001\t1510005522\t5759777",
    "job3\t22\t4\t0\t49\t0",
    "job4\t25.5\t3.5\t404\t22\t191",
]
SLURM = "JobID|JobName|Submit|Start|End|Elapsed|State|AllocCPUS|ReqCPUS|NNodes|ReqMem"
SLURM_JOBS = [
    "100|a|2024-03-01T08:00:00|2024-03-01T08:00:10|2024-03-02T09:00:10|1-01:00:00|COMPLETED|8|8|2|16Gn",
    "100.batch|batch|2024-03-01T08:00:10|2024-03-01T08:00:10|2024-03-02T09:00:10|1-01:00:00|COMPLETED|4|4|1|",
    "100.0|x|2024-03-01T08:00:10|2024-03-01T08:00:10|2024-03-02T09:00:10|1-01:00:00|COMPLETED|8|8|2|",
    "101_1|b|2024-03-01T08:01:00|2024-03-01T08:01:30|2024-03-01T08:11:30|00:10:00|FAILED|4|4|1|4Gc",
    "101_2|b|2024-03-01T08:01:00|2024-03-01T08:01:31|2024-03-01T08:11:31|00:10:00|TIMEOUT|4|4|1|4Gc",
    "101_[3-9]|b|2024-03-01T08:01:00|Unknown|Unknown|00:00:00|PENDING|0|4|1|4Gc",
    "102|c|2024-03-01T08:02:00|None|2024-03-01T08:03:00|00:00:00|CANCELLED by 1000|0|4|1|0n",
    "103|d|2024-03-01T08:03:00|2024-03-01T08:04:00|Unknown|02:00:00|RUNNING|1|1|1|500M",
    "104+0|e|2024-03-01T08:05:00|2024-03-01T08:06:00|2024-03-01T08:06:05|00:00:05|OUT_OF_MEMORY|1|1|1|512",
    "105|f|2024-03-01T08:06:00|2024-03-01T08:07:00|2024-03-01T08:07:30|00:30|NODE_FAIL|2|2|1|1.50T",
]


@dataclasses.dataclass(frozen=True)
class Log:
    """The log of a format.

    Attributes:
        suffix: of its file.
        head: lines before the rows.
        rows: one a row.
        delimiter: between fields; None: any run of blanks.
        names: of the columns.
        read: those that are read as numbers.
        gaps: those of them that may be empty.
        whole: those that must be whole numbers.
        changed: number of a row that becomes a task on its own, and can be done without.
        machines: lines of the file of machines, the first with the names of its columns; none: the format
            has no such file, or one of another kind.
    """

    suffix: str
    head: Sequence[str]
    rows: Sequence[str]
    delimiter: str | None
    names: Sequence[str]
    read: Sequence[str]
    gaps: Sequence[str] = ()
    whole: Sequence[str] = ()
    changed: int = 1
    machines: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        """All lines of the file."""
        return [*self.head, *self.rows]

    def with_field(self, column: str, value: str) -> str:
        """The row that is changed, with another value in a column."""
        fields = self.rows[self.changed].split(self.delimiter)
        fields[list(self.names).index(column)] = value
        return (self.delimiter or " ").join(fields)


SWF_READ = ("submit time", "run time", "allocated processors", "used memory", "requested processors")
SWF_READ += ("requested memory", "status")
SWIM_NAMES = tuple(formats()["swim"].names or ())  # type: ignore[union-attr]
LOGS = {
    "alibaba": Log(
        "csv",
        [PODS],
        POD_ROWS,
        ",",
        PODS.split(","),
        ("cpu_milli", "memory_mib", "creation_time", "deletion_time", "scheduled_time"),
        gaps=("scheduled_time",),
        machines=[NODES, *NODE_ROWS],
    ),
    "google2011": Log(
        "csv",
        (),
        [*EVENTS, *MORE],
        ",",
        TASK_EVENTS,
        ("timestamp", "job id", "task index", "event type", "cpu request", "memory request"),
        gaps=("cpu request", "memory request"),
        whole=("timestamp", "job id", "task index", "event type"),
        changed=2,
    ),
    "slurm": Log("txt", [SLURM], SLURM_JOBS, "|", SLURM.split("|"), ("AllocCPUS",), changed=3),
    "swf": Log(
        "swf",
        SWF_HEADER,
        SWF_ROWS,
        None,
        NAMES,
        SWF_READ,
        whole=("allocated processors", "requested processors", "status"),
        machines=MACHINES_CSV.splitlines(),
    ),
    "swim": Log("tsv", (), SWIM_ROWS, "\t", SWIM_NAMES, SWIM_NAMES[1:], whole=SWIM_NAMES[3:]),
}


def text(lines: Sequence[str]) -> bytes:
    """The lines as a file has them."""
    return "".join(f"{line}\n" for line in lines).encode()


def write(path: Path, content: bytes | str | Sequence[str]) -> Path:
    """A file with a content, or lines; packed if its name ends in .gz."""
    path.parent.mkdir(exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    data = data if isinstance(data, bytes) else text(data)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def swf_log(folder: Path) -> Path:
    """Thirty jobs on 32 processors: number i comes at 7 i, for 5 + i s, on 1 + i mod 8 with 1 GiB each."""
    jobs = (
        f"{i + 1} {7 * i} -1 {5 + i} {1 + i % 8} -1 1048576 -1 -1 -1 1 1 1 1 1 1 -1 -1" for i in range(30)
    )
    lines = ["; Version: 2.2", "; MaxNodes: 4", "; MaxProcs: 32", *jobs]
    return write(folder / "log.swf.gz", lines)
