-- What a source last called the document of an item: as long as it is called so, nobody has given it another name.
ALTER TABLE source_items ADD COLUMN name TEXT;
