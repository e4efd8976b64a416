"""PartialValue: deadline-sensitive jobs that are worth something when partly done (zheng2016)."""
