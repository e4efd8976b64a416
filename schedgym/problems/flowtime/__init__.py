"""FlowtimePacking: preemptible jobs packed on heterogeneous servers, slot by slot, for short flowtimes."""
