-- Invariant: what is known of letters can be kept without a batch.
if is_repeated then return answered() end
set_fields(P .. 'oc', note_letters())
return done({})
