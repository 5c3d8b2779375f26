-- Two machines joined with one token: which of them is the node, nobody can say. Its certificate is left, its holder gets nothing.
ALTER TABLE certificate ADD COLUMN contested INTEGER NOT NULL DEFAULT 0;
