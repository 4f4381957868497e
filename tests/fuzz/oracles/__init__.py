"""What the outcome of a call may be, what must be true of results, and when two results agree."""
