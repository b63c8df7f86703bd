"""Benchmarks: every figure that the documentation states, measured again by one command."""
