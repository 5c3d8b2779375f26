-- Rollouts and the approvals they stand on, as JSON; the one with the greatest id is the one there is.
CREATE TABLE rollout (
  id   INTEGER PRIMARY KEY,
  time INTEGER NOT NULL,  -- of its last change
  text TEXT NOT NULL
) STRICT;
