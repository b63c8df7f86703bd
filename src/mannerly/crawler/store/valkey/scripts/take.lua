-- Invariant: an owner is told what others have queued in its shard by a write like any other.
if is_repeated then return answered() end
begin()
return done({})
