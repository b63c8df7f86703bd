"""Rendering: a page is shown in a Chromium that has no network, and its final DOM is read.

    values        a page to render, what it asks for, and its result
    chromium      find a Chromium, start it in a network namespace without a route, end it
    devtools      its DevTools protocol over a pipe: commands, replies, events
    page_scripts  the JavaScript that is run in a page
    tab           one page in one tab, from the navigation to the final DOM
    browser       one Chromium and its tabs, one site each
    answers       what was fetched for pages before
    choice        the pages that are rendered, and those that seem to need it

Every request that a page makes is intercepted and handed to the crawl, which fetches it as any
other: robots.txt, pace, Retry-After and the guard of addresses hold. Nothing here opens a socket.
Time is an argument; only the thread that drives a browser (`runtime.browser_desk`) reads a clock.
"""
