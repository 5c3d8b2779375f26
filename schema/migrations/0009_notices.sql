-- What operators were sent, and what is still to be sent, as JSON; the row has id 1.
CREATE TABLE notices (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  time INTEGER NOT NULL,  -- of its last change
  text TEXT NOT NULL
) STRICT;
