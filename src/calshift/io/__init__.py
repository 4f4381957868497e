"""Files and batches of rows, read as Predictions."""
