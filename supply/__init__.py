"""What mannerly is built from: lock files with hashes, a bill of materials, an audit.

Run `python -m supply` for the commands. Nothing here is part of the installed package.
"""
