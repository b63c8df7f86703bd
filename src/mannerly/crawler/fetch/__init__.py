"""Fetching: a request goes in, an answer or a typed error comes out.

`base` is the contract, `curl` fetches over the network, `fake` in virtual time; `guard` checks
every address that is about to be connected.
"""
