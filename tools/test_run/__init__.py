"""Runs and judges the tests: steps with limits, methods, one retry, history, a report."""
