"""Choose the next request: `core` is the scheduler, `window` the queue of one host."""
