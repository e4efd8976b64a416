"""Claims of "Optimal Job Scheduling With Resource Packing for Heterogeneous Servers" (OCORP, xu2021).

What the paper proves or says of single slots and of small instances, in exact numbers (``reference``).
Its trace experiments (section VI) are left to ``schedgym compare``. Jobs are written arrival, processing,
cpu; cores are those of all servers. "Literal" OCORP is Algorithm 1 as printed: no job runs unless its omega
is negative; in it the work left is a cap, and case 2 of Eq. 22 sums to j - 1.

A counterexample is the smallest one by number of jobs, cores, core-slots in all and slots in all, of those
enumerated.
"""

from schedgym.papers.paper import import_in_order

__all__ = ["MODULES"]

#: in the order of the paper
MODULES = ("fractional_flowtime", "memory", "one_resource", "all_at_once", "figures")

import_in_order(__name__, MODULES)
