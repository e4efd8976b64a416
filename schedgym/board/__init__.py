"""The board: frozen instances, a judge of schedules, and the best known values of each instance."""
