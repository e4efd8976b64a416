"""The paper noroozoliaee2014, "Online Multi-Resource Scheduling for Minimum Task Completion Time".

Statements that the paper derives, or makes about single schedules, are checked on small instances in exact
numbers (``model``). Its measurements (section VI) are checked by short runs of the registered policies:
2000 tasks of the stand-in for the Google trace on 10 to 80 servers. Instances are confirmed by the registered
policies in the environment, and by plain arithmetic.

Tasks are written as arrival, execution time, cpu and memory; demands and capacities are shares of the largest
server. W is the mean queuing delay, T the mean response time, lambda the tasks per unit of time from the
first arrival to the last completion, beta the part of that time in which tasks wait. U and L are the largest
and smallest demands, which are positive here; k_low and k_high are the tasks that run at once, on all
servers, if all have the demands U or L: sum_j floor(min(C_j / U_c, M_j / U_m)).

A counterexample is the smallest one of those enumerated, by number of tasks, number of servers, execution
times, unit of the demands, arrivals and demands.
"""
