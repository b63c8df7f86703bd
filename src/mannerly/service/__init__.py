"""The service: jobs, their HTTP API, and the live page (`mannerly serve`, `crawl --dashboard`).

    jobs/       a job is a crawl with a name and a state, run in a process of its own
    jobs_api    the operations on jobs, `crawl_api` those on one crawl, `app` all of them
    dashboard   the page of one crawl, in a process beside it; `beside` is the crawl's side
    live_crawl  what the page shows, with `history`, `host_table`, `errors`, `proof`
    access      who may call it: host, origin, token, size and rate of requests
    problems    errors as RFC 9457 problem details

The service reads the stores of crawls and writes control records, as the command does; a crawl
never waits for it. It needs the extra `serve`.
"""
