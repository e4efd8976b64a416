"""Claims of "Task Allocation and Scheduling for Distributed Job Execution" (GUAN Yitong, NTU, 2022).

Chapter 3 assigns tasks to sites; chapters 4 and 5 share the sites' slots: IMF, AMF, SIG-AMF, GAMF and
SIG-GAMF. Most claims are about single decisions and need no simulator; those of ``experiments`` run policies.

Properties of fair shares as the thesis defines them, with A_i the aggregate of job i and n jobs:

* Pareto efficiency (4.4.1, 5.3.1): no job can have more without another having less.
* Envy-freeness (4.4.2, 5.3.2): sum_k min(a_lk, d_ik) <= A_i, a_lk being what job l gets for group k.
* Strategy-proofness (4.4.3, 5.3.3): a job that reports other demands d', upward or downward, and gets a'
  has sum_k min(a'_k, d_k) <= A_i.
* Sharing incentive (4.4.4): a_ij >= min(d_ij, u_j / n). With groups (5.24): A_i >= X_i, the most that job i
  can use of u_j / n slots at each site.

A policy fixes only the aggregates; several matrices of allocations can have them. A property "holds" if none
of these matrices violates it; for AMF and GAMF even if a slot counts as useful whenever any task of the job
could run there, not only tasks of the group it was given for. In a counterexample all of them violate it. It
is the smallest by jobs, sites, groups, total slots and total tasks, of those enumerated (``share_search``).
"""
