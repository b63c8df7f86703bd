"""Page records in files, for a store whose server keeps only what is left to do.

A server holds the queue and the fingerprints of known URLs; the records of pages, the reasons of
skipped URLs, links and extracted items are too many for its memory. They go to *logs*: segments
(`store.segments`) of frames that are only appended to, valid up to the length that the server has
committed. Nothing here knows a server.

    frames    the values that a log holds, and their bytes
    elements  where the elements of pages are, and how they are read
    writer    appends what a batch brought to the log of one claim of a shard
    reader    the records of a shard, from the logs of all its claims

Every claim of a shard begins a log of its own, named after the claim. Claims of a shard follow each
other, so the logs of a shard, in the order of their beginning, are one history.
"""
