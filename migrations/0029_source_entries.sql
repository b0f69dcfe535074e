-- What a feed calls an entry, whatever page it links to: by that it is told again when it links to another one.
ALTER TABLE source_items ADD COLUMN entry_id TEXT;
