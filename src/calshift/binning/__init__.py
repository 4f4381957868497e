"""Events, bin edges, placement of scores in bins, and sums over bins."""
