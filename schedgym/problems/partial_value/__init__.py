"""PartialValue: deadline-sensitive jobs that are worth something when partly done (paper 002)."""
