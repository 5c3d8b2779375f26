-- Who stored a revision of the spec, and which operator took a node out, and when: '' and 0 where it was not recorded.
ALTER TABLE spec ADD COLUMN caller TEXT NOT NULL DEFAULT '';
ALTER TABLE node ADD COLUMN held_since INTEGER NOT NULL DEFAULT 0;
ALTER TABLE node ADD COLUMN held_caller TEXT NOT NULL DEFAULT '';
