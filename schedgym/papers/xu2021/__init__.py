"""Claims of "Optimal Job Scheduling With Resource Packing for Heterogeneous Servers" (OCORP, xu2021).

Statements that the paper proves, or makes about single slots and small instances, are checked in exact
numbers (``model``). What section VI says of its trace is judged by the figures (``schedgym reproduce``),
and what no figure shows by ``experiments``. Jobs are written as arrival, processing and cpu; cores are those
of all servers. "Literal" OCORP is Algorithm 1 as printed: no job runs unless its omega is negative. What the
paper leaves open, such as where lambda begins, stands in ``readings.yaml``. Two corrections remain: a job
gets no more cores than it has work left, and case 2 of Eq. 22 sums to j - 1.

A counterexample is the smallest one of those enumerated, by number of jobs, number of cores, total core-slots
and total slots.
"""
