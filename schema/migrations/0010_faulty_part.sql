-- The part that the last acceptance of a node located at it, or between it and others; '' if none.
ALTER TABLE node ADD COLUMN faulty_part TEXT NOT NULL DEFAULT '';
