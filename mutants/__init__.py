"""Break each promise on purpose, and show that a test notices.

A mutant is one line of the source that is made wrong. It is applied in a copy of the tree, and the
few tests that must notice run against the copy. One that they do not notice is a promise without
a test. Run `make mutants`.
"""
