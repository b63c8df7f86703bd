"""Whose turn is it: `core` is the scheduler, `window` one host's queue."""
