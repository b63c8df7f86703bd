"""Whole crawls and whole fleets in virtual time: for tests and benchmarks, and not in the wheel.

    fetcher   a fetcher whose answers are made by a function and whose clock moves when it waits
    web       the pages and links of a generated web of any size
    servers   the servers of that web, which count broken promises
    crawl     one crawl of many hosts: the real engine, frontier and politeness core
    store     crawls in this process: `memory:NAME`
    fleet     many members on a modelled Redis or Valkey server, with faults

What users simulate with, one host against one modelled server, is `mannerly.simulation`.
"""
