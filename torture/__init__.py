"""Crawl a hostile web while processes are killed and stopped, and let the servers' logs judge.

Everything random comes from one seed: the web, the command's options, what is done to it and when.
The same seed repeats the same plan; instants differ by what the machine's scheduler adds. Run
`python -m torture --seed 7 --minutes 30`, or `make torture`.
"""
