"""Feature geometry: spread, centroids, decision boundaries, the head and a 2-D map."""
