-- What read a PDF: empty for other sources, and for what was read before this was noted.
ALTER TABLE generations ADD COLUMN engine TEXT;
-- The pages of a generation that can be drawn: their size as they are seen, in points, and how many characters were read of each.
-- Words that were recognised on a page's image: a JSON array, each word with its box and how sure the recogniser is.
CREATE TABLE pages (
    generation_id UUID NOT NULL,
    number BIGINT NOT NULL,
    workspace_id UUID NOT NULL,
    width REAL NOT NULL,
    height REAL NOT NULL,
    chars BIGINT NOT NULL,
    words TEXT,
    PRIMARY KEY (generation_id, number)
);
