"""Where learned state lives between runs: `base` says what a memory must do.

`inmemory` forgets with the process, `sqlite` keeps a file. The core imports only `base`.
"""
