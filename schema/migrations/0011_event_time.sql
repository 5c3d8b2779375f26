-- So that old events are found, to be deleted, without reading the whole log.
CREATE INDEX event_by_time ON event (time);
