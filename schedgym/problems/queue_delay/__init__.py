"""QueueDelay: minimise the mean queuing delay of tasks on heterogeneous servers with several resources."""
