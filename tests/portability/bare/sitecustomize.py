"""Take away what only Linux has, in every process that has this folder on its path.

Windows has neither fork nor fcntl nor poll, macOS has no epoll. Python imports a module of this
name when it starts, before anything of ours.
"""

import os
import select
import sys

for module, names in (
    (os, ("fork", "forkpty", "register_at_fork")),
    (select, ("epoll", "poll", "devpoll", "kqueue")),
):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
sys.modules["fcntl"] = None  # type: ignore[assignment]
