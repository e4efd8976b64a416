"""PartialValue: jobs with deadlines that gain a partial value when partly done (zheng2016)."""
