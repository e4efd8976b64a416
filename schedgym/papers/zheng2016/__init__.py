"""Claims of "Online Multi-Resource Allocation for Deadline Sensitive Jobs with Partial Values" (zheng2016).

Claims on linear utilities and whole tasks are checked in exact numbers (``model``). For strictly concave
utilities no optimum is computed. Instead, the prices of Algorithm 1 in each slot give dual solutions, built
as in the paper's proofs, and these bound every schedule. What section V says is judged where its figures are
made.

Jobs are written as arrival, deadline, parallelism X, tasks Y, demand R of a task, and value v. A single value
means a linear utility; a list has the values of tasks 1, 2, ..., and its last entry is also the value of all
further tasks. A counterexample is the smallest one of those enumerated, by number of jobs, slots, capacity,
tasks and values, unless the evidence says otherwise.
"""
