-- What tells this database from an older copy of itself, together with a mark outside of it (controller/store/mark.h).
CREATE TABLE history (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  name     TEXT NOT NULL,     -- of this line of events: another one whenever an older copy was put in its place
  start    TEXT NOT NULL,     -- of the controller's last start: another one each time; '' before the first
  commits  INTEGER NOT NULL,  -- transactions since the beginning
  restored INTEGER NOT NULL   -- when an older copy was found in its place, last; 0: never
) STRICT;
INSERT INTO history VALUES (1, '', '', 0, 0);
