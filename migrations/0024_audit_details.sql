-- What a line of the audit log says further, such as which role a member had and has: JSON, an object of texts.
ALTER TABLE audit_events ADD COLUMN details TEXT;
