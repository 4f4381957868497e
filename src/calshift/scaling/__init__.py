"""Calibrators softmax(slope log p + bias), their penalised maximum-likelihood fit and its prior."""
