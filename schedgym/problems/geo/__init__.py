"""GeoAssign and GeoFair: jobs whose tasks may run at some of the sites: placement, order, fair shares."""
