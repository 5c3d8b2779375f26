-- Who took a node out: '' (nobody), 'run' or 'operator'. It was read out of the reason's first words before.
ALTER TABLE node ADD COLUMN held_by TEXT NOT NULL DEFAULT '';
UPDATE node SET held_by = CASE WHEN reason LIKE 'by an operator%' THEN 'operator' ELSE 'run' END WHERE state = 'quarantined';
