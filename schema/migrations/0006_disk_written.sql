-- When a run last began to write a node's OS disk (''), or a root slot of it beside its jobs: {"": time, "b": time}. It was read out of
-- the journals for each plan before. Of a run whose plan cannot be read, each action may have written the disk.
ALTER TABLE node ADD COLUMN disk_written TEXT NOT NULL DEFAULT '{}';
CREATE TEMP TABLE begun AS
  SELECT journal.node AS node, journal.action AS action, journal.time AS time, run.plan_digest AS plan
  FROM journal JOIN run ON run.id = journal.run JOIN node ON node.name = journal.node
  WHERE journal.event = 'intent' AND journal.time >= node.facts_time;
CREATE TEMP TABLE readable AS
  SELECT digest FROM plan
  WHERE digest IN (SELECT plan FROM begun)
    AND CASE WHEN json_valid(json) THEN json_type(json, '$.actions') = 'array' ELSE 0 END;
CREATE TEMP TABLE writer AS
  SELECT plan.digest AS plan, json_extract(action.value, '$.id') AS action,
         CASE WHEN json_extract(action.value, '$.kind') = 'write_slot' AND json_type(action.value, '$.params.slot') = 'text'
              THEN json_extract(action.value, '$.params.slot') ELSE '' END AS slot
  FROM readable JOIN plan ON plan.digest = readable.digest, json_each(plan.json, '$.actions') AS action
  WHERE CASE action.type WHEN 'object'
        THEN json_extract(action.value, '$.kind') = 'image'
             OR json_extract(action.value, '$.kind') = 'write_slot' AND json_type(action.value, '$.params') = 'object' END;
UPDATE node SET disk_written = (
  SELECT json_group_object(slot, last) FROM (
    SELECT coalesce(writer.slot, '') AS slot, max(begun.time) AS last
    FROM begun LEFT JOIN writer ON writer.plan = begun.plan AND writer.action = begun.action
    WHERE begun.node = node.name AND (writer.slot IS NOT NULL OR begun.plan NOT IN (SELECT digest FROM readable))
    GROUP BY coalesce(writer.slot, '')))
WHERE name IN (SELECT node FROM begun);
DROP TABLE temp.writer;
DROP TABLE temp.readable;
DROP TABLE temp.begun;
