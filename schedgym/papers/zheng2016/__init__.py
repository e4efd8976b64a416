"""Claims of "Online Multi-Resource Allocation for Deadline Sensitive Jobs with Partial Values" (zheng2016).

Linear utilities and whole tasks are checked in exact numbers (``reference``). For strictly concave
utilities no optimum is computed: the prices of Algorithm 1's slots give dual solutions as the paper's proofs
build them, and these bound every schedule. Section V comes from short runs of the registered policies.

Jobs are written arrival, deadline, parallelism X, tasks Y, demand R of a task, and value v; one value is a
linear utility, a list the values of tasks 1, 2, ..., the last one also that of all further tasks. A
counterexample is the smallest one by number of jobs, slots, capacity, tasks and values, of those enumerated,
unless the evidence says otherwise.
"""

from schedgym.papers.paper import import_in_order

__all__ = ["MODULES"]

#: in the order of the paper
MODULES = ("divisible_tasks", "whole_tasks", "curves", "figures")

import_in_order(__name__, MODULES)
