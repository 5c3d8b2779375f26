-- The report of each run that ended, as it was signed, and what it measured in short, for comparison in later runs.
CREATE TABLE report (
  run      INTEGER PRIMARY KEY REFERENCES run (id),
  time     INTEGER NOT NULL,
  json     TEXT NOT NULL,  -- the signed text, byte for byte
  measured TEXT NOT NULL   -- {node: {"check|subject": {value, verdict}}}
) STRICT;
