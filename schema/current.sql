-- What all migrations together make. Written by the tests with MUSTER_ACCEPT=1.
CREATE TABLE certificate (
  serial      TEXT PRIMARY KEY,
  node        TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  issued      INTEGER NOT NULL,
  revoked     INTEGER NOT NULL
, contested INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE event (
  seq  INTEGER PRIMARY KEY AUTOINCREMENT,
  time INTEGER NOT NULL,
  run  INTEGER NOT NULL,
  node TEXT NOT NULL,
  kind TEXT NOT NULL,
  json TEXT NOT NULL
) STRICT;
CREATE TABLE history (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  name     TEXT NOT NULL,     -- of this line of events: another one whenever an older copy was put in its place
  start    TEXT NOT NULL,     -- of the controller's last start: another one each time; '' before the first
  commits  INTEGER NOT NULL,  -- transactions since the beginning
  restored INTEGER NOT NULL   -- when an older copy was found in its place, last; 0: never
) STRICT;
CREATE TABLE journal (
  seq     INTEGER PRIMARY KEY AUTOINCREMENT,
  run     INTEGER REFERENCES run (id),  -- NULL: not of a run
  action  TEXT NOT NULL,
  node    TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  event   TEXT NOT NULL,
  time    INTEGER NOT NULL,
  data    TEXT NOT NULL
) STRICT;
CREATE TABLE node (
  name           TEXT PRIMARY KEY,
  state          TEXT NOT NULL,
  reason         TEXT NOT NULL,
  image_digest   TEXT NOT NULL,
  config_digest  TEXT NOT NULL,
  mode           TEXT NOT NULL,
  boot_id        TEXT NOT NULL,
  product_uuid   TEXT NOT NULL,
  system_serial  TEXT NOT NULL,
  last_seen      INTEGER NOT NULL,
  facts_time     INTEGER NOT NULL,
  facts          TEXT NOT NULL,
  accepted_run   INTEGER NOT NULL
, held_by TEXT NOT NULL DEFAULT '', disk_written TEXT NOT NULL DEFAULT '{}', held_since INTEGER NOT NULL DEFAULT 0, held_caller TEXT NOT NULL DEFAULT '', faulty_part TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE notices (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  time INTEGER NOT NULL,  -- of its last change
  text TEXT NOT NULL
) STRICT;
CREATE TABLE plan (
  digest        TEXT PRIMARY KEY,
  kind          TEXT NOT NULL,
  spec_revision INTEGER NOT NULL,
  time          INTEGER NOT NULL,
  json          TEXT NOT NULL
) STRICT;
CREATE TABLE report (
  run      INTEGER PRIMARY KEY REFERENCES run (id),
  time     INTEGER NOT NULL,
  json     TEXT NOT NULL,  -- the signed text, byte for byte
  measured TEXT NOT NULL   -- {node: {"check|subject": {value, verdict}}}
) STRICT;
CREATE TABLE rollout (
  id   INTEGER PRIMARY KEY,
  time INTEGER NOT NULL,  -- of its last change
  text TEXT NOT NULL
) STRICT;
CREATE TABLE run (
  id          INTEGER PRIMARY KEY,
  plan_digest TEXT NOT NULL,
  state       TEXT NOT NULL,
  started     INTEGER NOT NULL,
  ended       INTEGER NOT NULL,
  approved_by TEXT NOT NULL
) STRICT;
CREATE TABLE secret (
  name   TEXT PRIMARY KEY,
  time   INTEGER NOT NULL,
  sealed TEXT NOT NULL
) STRICT;
CREATE TABLE spec (
  revision INTEGER PRIMARY KEY,
  time     INTEGER NOT NULL,
  text     TEXT NOT NULL,
  digest   TEXT NOT NULL,
  note     TEXT NOT NULL
, caller TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE token (
  digest      TEXT PRIMARY KEY,
  node        TEXT NOT NULL,
  purpose     TEXT NOT NULL,
  expires     INTEGER NOT NULL,
  public_key  TEXT NOT NULL,
  certificate TEXT NOT NULL
) STRICT;
CREATE INDEX event_by_node ON event (node, seq);
CREATE INDEX event_by_time ON event (time);
CREATE INDEX journal_by_run ON journal (run, seq);
