"""A crawl in a Redis or Valkey server, which any number of machines may work on.

The server keeps what is left to do and what must not be forgotten; the records of pages are in
files of the members (`store.records`). Decision record 0062 tells what lives where, and why.

    address    `redis://HOST:PORT/DB#NAME`, and where the password comes from
    client     one connection: scripts by digest, errors in the words of `store.base`
    keys       the names of all keys
    scripts    the Lua files, one a change; each begins with its invariant
    packing    entries and hosts as bytes
    crawl      ValkeyCrawl: the whole crawl, and its fleet
    shard      ValkeyShard: one shard, for its owner
    listing    the crawls of a server
    hosts      ValkeyHosts: the memory of hosts that all crawls of a server share
    health     what is wrong with a server
    reader     one shard, for readers beside its owner
"""
