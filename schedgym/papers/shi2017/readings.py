"""The points that the paper leaves open on its experiments (section 6), and the choices.

Defaults are those under which most of the paper's own statements hold: equal shares in all statements on
times of Figs. 4 and 5, the MAR test of all schedulers in those of Fig. 6(a) (without it the rivals take 3 to
60 times as long as OnTaPRA, where the paper states 1.05 to 3.3 times), 70 times the Weibull variable, as only
then jobs have to wait. Between thresholds of 30% and 50% of that test only the verdict on the numbers of
DRC's impact turns; with 5% or 10% the rivals without DRC are further from the paper's numbers (3 draws). At
30% OnTaPRA's own average JCT with DRC is the lowest.
"""

from __future__ import annotations

from schedgym.papers.readings import OpenPoint

#: what the names of the rivals' policies end with
SIZING = OpenPoint(
    "vCPU of the rivals' tasks",
    "Min-Min, MM-GA and GSA place the tasks of a job (sections 6.1.3 and 6.2.3); in the algorithms from "
    "which MM-GA and GSA are derived, the resources of a task are static (section 2)",
    "how many vCPU they give to a task: Eq. 16 is the paper's own proposal, for its own algorithms, and no"
    " static size is given",
    {"rivals share limits equally": "-equal", "rivals use Eq. 16": ""},
    "rivals share limits equally",
)
#: whether rivals of OnTaPRA make the MAR test
MAR = OpenPoint(
    "MAR test of the rivals",
    "the MAR test is a step of SJF, the policy of OnTaPRA (section 5, Algorithm 4); SLF, FCFS and LLF are"
    " described by their orders (section 6.2.3)",
    "whether SLF, FCFS and LLF, too, launch no job while few vCPU are available",
    {"all make the MAR test": True, "only OnTaPRA makes the MAR test": False},
    "all make the MAR test",
)
#: of all vCPU, how much must be available
THRESHOLD = OpenPoint(
    "threshold of the MAR test",
    "the MAR test fails if no more than a certain percentage of the total capacity, Max_Percent, is available"
    " (section 5, Eq. 56)",
    "the percentage",
    {"test at 30%": 0.3, "test at 50%": 0.5},
    "test at 30%",
)
#: names of the workload generator's readings
TASKS = OpenPoint(
    "number of tasks of a job",
    "Weibull with scale parameter A = 0.5 and scale parameter B = 0.8, at most 70 (section 6.2.1)",
    "which of the two scale parameters is the shape, and why there is a limit of 70 if the mean is below 2",
    {
        "70 times scale 0.5, shape 0.8": "x70",
        "scale 0.5, shape 0.8": "scale-half",
        "scale 0.8, shape 0.5": "shape-half",
    },
    "70 times scale 0.5, shape 0.8",
)
#: by how much [%] average JCTs exceed those with TaPRA and TaPRA-fast, by planner or by scheduler
RESPECTIVELY = OpenPoint(
    "80% and 140%",
    "nearly 80% and 140% compared to MM-GA and GSA in the SLF and FCFS scheduler respectively"
    " (section 6.2.4)",
    "whether the numbers belong to MM-GA and GSA, or to SLF and FCFS",
    {"80% against MM-GA": {"MM-GA": 80, "GSA": 140}, "80% in SLF": {"SLF": 80, "FCFS": 140}},
    "80% against MM-GA",
)
POINTS = (SIZING, MAR, THRESHOLD, TASKS, RESPECTIVELY)
