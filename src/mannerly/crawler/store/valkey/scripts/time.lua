-- Invariant: nothing is changed. The clock of the server that holds this key.
return now_ms()
