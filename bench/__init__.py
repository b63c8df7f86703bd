"""Benchmarks that measure every figure of the documentation; `python -m bench` runs them."""
