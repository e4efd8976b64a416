"""The exact model of shi2017: one job (sections 3, 4 and 6.1.3), and jobs over time (section 5)."""
