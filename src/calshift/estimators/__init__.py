"""Estimators: from sums or rows, and a vector of class weights, to the error of each event."""
