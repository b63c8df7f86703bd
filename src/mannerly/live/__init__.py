"""The state of a running crawl, as values and in words: what the terminal and the live page show.

    meter       folds the reports of a run into its state at one moment (`Live`)
    sentence    says in words what it does or waits for, and how long it still takes

Nothing here reads a clock, knows a terminal or a page.
"""
