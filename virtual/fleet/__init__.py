"""Whole fleets in virtual time: the real members, leases and scripts on a modelled server.

    keyspace   the data of a Redis or Valkey server: the commands that the store uses
    server     such a server: scripts, restarts that lose the last second, failovers, its own clock
    link       the connection of one member: cut one way or both, slow, or breaking
    aside      lets a member wait for an answer in the middle of its turn
    members    one member: the real code, with clocks and web in virtual time
    calm       stands in for looks that would find nothing, so that a day of 200 members is possible
    judge      counts broken promises
    planted    errors that the judge has to find
    faults     makes things go wrong, and knows what that excuses
    plan       its size, the faults that happen, and the figures of a run
    world      members, servers of a web and one clock; faults at random instants; the judge

Scripts are the real ones, run by a real Lua interpreter (the package `lupa`; this and `greenlet`
are needed here only). The store's own client talks to the modelled server instead of a socket. So
an error that is found here is an error of the store, of the members or of both together.
"""
