"""Every time of a crawl that several runs share, in seconds: leases, renewals, polls, patience.

What must hold between them is asserted by `tests/crawler/store/test_fleet_times.py`. Times of a
host's lease are in `mannerly.hosts.base`; how often a member writes is a `fleet.Rhythm`.
"""

from __future__ import annotations

# ---------------------------------------------------------------------- leases of shards

# A shard may be claimed when its owner's last renewal is so old, as the claimer counts it.
LEASE_S = 15.0
# A member prolongs its claims and shows its heartbeat so often.
RENEW_S = 5.0
# An owner sends nothing more from so long before its lease could end.
MARGIN_S = 3.0

# ---------------------------------------------------------------------- exchanges with a server

# A call without an answer fails after `database.client.TIMEOUT_S`: the loop of its member waits.
# Between two tries while the server is away.
AGAIN_S = 1.0
# An owner that learned so lately what others have queued in its shard does not ask.
POLL_S = 0.1
# A member that has read or written a wait so lately writes it to a server that was restarted.
WAITS_KEPT_S = 20.0
# A replica lacks so much at most (`min-replicas-max-lag`).
REPLICA_LAG_S = 10.0
# Sentinels notice that a primary has failed within so long.
FAILOVER_NOTICED_S = 5.0

# ---------------------------------------------------------------------- members

# Between two polls for control records.
ORDERS_S = 1.0
# Between two inspections of the other members; longer if there are more than MANY.
BALANCE_S = 1.0
# The same while shards change hands,
MOVING_S = 0.25
# and for so long afterwards.
MOVED_S = 3.0
# A member whose heartbeat was not renewed for so long is not counted any more.
SILENT_S = 8.0
# After an outage no shard moves for so long: the others have to renew their heartbeats, too.
BACK_S = 4.0
# A shard that was claimed beyond the quota is not released for so long.
BEYOND_KEPT_S = 15.0
# Requests under way in a shard that is released are waited for so long.
HAND_OVER_S = 2.0
# Claims take so much of one turn of the loop at most.
CLAIMING_S = 0.5
# Between two polls for a robots.txt that another shard has fetched for one of ours.
ROBOTS_S = 1.0
# Heartbeats of two members whose clocks differ by no more agree, for readers.
CLOCKS_S = 2.0
# The heartbeat of a member that was lost is removed after so long.
FORGOTTEN_S = 600.0

# ---------------------------------------------------------------------- shards without an owner

# After a restart of the server shards can be claimed, and ended leases renewed, within so long.
RESTARTED_S = LEASE_S + RENEW_S
# A lease that has ended is left to its owner for so long, while a heartbeat shows that it lives.
LEFT_S = RESTARTED_S + 2.0
# A shard that is free for so long is claimed before others,
WAITING_S = 0.75
# and after so long beyond the quota.
OVERDUE_S = 2.0

# ---------------------------------------------------------------------- the end

# Between two notes of which shards rest.
REST_S = 0.5
# A rest may have ended by a write of its owner: it is noted again after so long.
REST_AGAIN_S = 10.0
# Hosts that only refuse are given up when no member has had other work for so long.
QUIET_S = 12.0
