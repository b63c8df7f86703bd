"""The clock readers and sleepers around the core: one for asyncio, one for threads.

Import the one you need; neither pulls in the other.
"""
