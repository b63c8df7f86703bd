"""P5 memory is bounded, P6 nothing hangs, P7 an exit of 0 means done, P8 near the limit."""

from __future__ import annotations

from .model import Mutant

_TRANSFER = "crawler/fetch/transfer.py"
_BUDGET = "crawler/runtime/budget.py"

BOUNDED = (
    Mutant(
        "keep a body beyond its cap",
        "P5",
        _TRANSFER,
        "        self._body.write(chunk[: self._room])\n        self._is_cut = True\n"
        "        return _REFUSE\n",
        "        self._body.write(chunk)\n        self._is_cut = True\n        return None\n",
        ("crawler/fetch/test_fetch_curl.py", "crawler/fetch/test_fetch_contract.py"),
    ),
    Mutant(
        "read headers without end",
        "P5",
        _TRANSFER,
        "        is_oversized = self._is_oversized(head)",
        "        is_oversized = False",
        ("crawler/fetch/test_fetch_curl.py",),
    ),
    Mutant(
        "ignore the frontier's memory limit",
        "P5",
        "crawler/frontier/core.py",
        "            is_full = self._in_memory >= self._memory_limit\n",
        "            is_full = False\n",
        ("crawler/frontier/test_frontier_window.py", "crawler/frontier/test_frontier.py"),
    ),
    Mutant(
        "refill a window without regard to memory",
        "P5",
        "crawler/frontier/core.py",
        "            limit = max(1, min(self._per_host_window, room))\n",
        "            limit = self._per_host_window\n",
        ("crawler/frontier/test_frontier_window.py", "crawler/frontier/test_frontier.py"),
    ),
    Mutant(
        "grow a window beyond its limit",
        "P5",
        "crawler/frontier/window.py",
        "            return 1 - self._cut(max(1, room))",
        "            return 1",
        ("crawler/frontier/test_frontier_window.py", "crawler/frontier/test_frontier.py"),
    ),
    Mutant(
        "remember recent URLs without end",
        "P5",
        "crawler/store/sqlite/shard.py",
        "        self._recent = set()\n\n    def _hand_over",
        "\n    def _hand_over",
        ("crawler/store/test_store_sqlite.py",),
    ),
    Mutant(
        "keep a robots.txt beyond its cap",
        "P5",
        "crawler/robots/answer.py",
        "body[:MAX_BODY_BYTES]",
        "body",
        ("crawler/robots/test_gate.py",),
    ),
    Mutant(
        "let a host sleep that could be asked again",
        "P6",
        "crawler/frontier/core.py",
        "        if len(queue) and earliest < inf:\n            self._to_heap(queue, earliest)\n",
        "        if len(queue) and earliest < 0:\n            self._to_heap(queue, earliest)\n",
        ("crawler/frontier/test_frontier_robots.py", "crawler/frontier/test_frontier.py"),
    ),
    Mutant(
        "leave waiting hosts of a group uncalled",
        "P6",
        "crawler/frontier/core.py",
        "            self._call(key, ready if ready - now <= _WORTH_A_REASON_S else now)",
        "            pass",
        ("crawler/frontier/test_frontier.py",),
    ),
    Mutant(
        "call a crawl idle with links in its outbox",
        "P7",
        "crawler/shard/shard.py",
        " and counts.outgoing == 0",
        "",
        ("crawler/shard/test_idle.py",),
    ),
    Mutant(
        "call a crawl idle with URLs in its waiting room",
        "P7",
        "crawler/shard/shard.py",
        "counts.queued == 0 and counts.waiting == 0",
        "counts.queued == counts.waiting",
        ("crawler/shard/test_idle.py",),
    ),
    Mutant(
        "call a crawl idle with a page under way",
        "P7",
        "crawler/shard/shard.py",
        "        if self.flights.pending or self.parts.batch or self.parts.given_up:\n"
        "            return False\n        counts",
        "        if self.parts.batch or self.parts.given_up:\n"
        "            return False\n        counts",
        ("crawler/shard/test_idle.py",),
    ),
    Mutant(
        "call a crawl idle with links in its inbox",
        "P7",
        "crawler/runtime/worker.py",
        "            and all(self._store.unread(each) == 0 for each in self._numbers)\n",
        "",
        ("crawler/runtime/test_idle.py",),
    ),
    Mutant(
        "start one page more than asked for",
        "P7",
        _BUDGET,
        "        self._loan = int(max(0, min(wanted, self._limit - self._used)))",
        "        self._loan = int(max(0, min(wanted, self._limit - self._used + 1)))",
        ("crawler/runtime/test_budget.py",),
    ),
    Mutant(
        "end while unused pages may come back",
        "P7",
        _BUDGET,
        "        return self._limit - self._lost - sum(self._used) <= 0",
        "        return self._limit - self._lost - sum(self._out) <= 0",
        ("crawler/runtime/test_budget.py",),
    ),
    Mutant(
        "grant a dead worker's pages again",
        "P2",
        _BUDGET,
        "        self._lost += self._used[worker] if self._limit == inf else self._out[worker]\n",
        "",
        ("crawler/runtime/test_budget.py",),
    ),
    Mutant(
        "go on after --duration",
        "P7",
        "crawler/runtime/ending.py",
        "            return Ending.DURATION",
        "            return None",
        ("crawler/runtime/test_orders.py",),
    ),
)
