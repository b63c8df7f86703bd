"""Fetching: a request goes in, an answer or a typed error comes out.

`base` is the contract, `curl` the network, `fake` the same in virtual time, `guard` checks every
address that is about to be connected.
"""
