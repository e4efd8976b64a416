"""Baselines of GeoAssign and GeoFair."""
