"""Claims of "Energy-aware Scheduling of Embarrassingly Parallel Jobs and Resource Allocation" (shi2017).

Resource allocation, the relaxation, REC and the local search are checked in exact numbers on tiny jobs
(``model``). The experiments of section 6 come from short runs of the registered policies. The paper calls
a completion time "x% smaller" if its rival's is x% larger; the same holds for the numbers here.

Jobs are written as load, efficiency (a row per task), groups of servers, limits B and energy cap E_MAX. A
counterexample is the smallest one of those enumerated, by number of tasks, servers and groups, loads and
limits, unless the evidence says otherwise.
"""
