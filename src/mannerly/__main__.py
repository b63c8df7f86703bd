"""`python -m mannerly` is the command `mannerly`.

The processes of a crawl import this file too, as everything that starts processes this way does;
they need no command line, so it is imported by whoever runs it.
"""

from __future__ import annotations


def main() -> None:
    """Run the command."""
    from .cli import main as command

    command()


if __name__ == "__main__":
    main()
