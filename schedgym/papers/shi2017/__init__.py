"""Claims of "Energy-aware Scheduling of Embarrassingly Parallel Jobs and Resource Allocation" (shi2017).

Resource allocation, the relaxation, REC and the local search are checked in exact numbers on tiny jobs
(``reference``). The experiments of section 6 come from short runs of the registered policies. The paper says
"x% smaller" of a completion time that its rival exceeds by x%; so do its numbers here.

Jobs are written load, efficiency (a row per task), groups of servers, limits B and energy cap E_MAX. A
counterexample is the smallest one by number of tasks, servers, groups, loads and limits, of those enumerated,
unless the evidence says otherwise.
"""

from schedgym.papers.paper import import_in_order

__all__ = ["MODULES"]

#: in the order of the paper
MODULES = ("introduction", "allocation", "placement", "online", "one_job", "many_jobs", "figures")

import_in_order(__name__, MODULES)
