"""Drivers: they read the clock and wait, around the core. One for asyncio, one for threads.

Import the one you need; neither imports the other.
"""
