"""Fetching: a request goes in, an answer or a typed error comes out.

`base` is the contract, `curl` fetches over the network; `guard` checks every address that is about
to be connected. A fetcher in virtual time, for tests, is `virtual/fetcher.py`.
"""
