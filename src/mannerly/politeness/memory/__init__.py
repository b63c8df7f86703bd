"""Memories: they keep what was learned about hosts between runs. `base` has the interface.

`inmemory` lasts as long as the process, `sqlite` uses a file. The core imports only `base`.
"""
