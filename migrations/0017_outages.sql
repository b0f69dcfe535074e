-- Since when parts of the service that are away keep a job from its end; none when none has. By when it was queued that cannot be told: in
-- a long line it waits for hours before it is tried at all.
ALTER TABLE jobs ADD COLUMN outage_at BIGINT;

-- What became of a document's last ingestion that had not ended well, and why, while the document is indexed again from its stored passages:
-- that mends nothing of it, so the job ends as that one did.
ALTER TABLE jobs ADD COLUMN former_state TEXT;
ALTER TABLE jobs ADD COLUMN former_error TEXT;

-- The next deliveries of one webhook, whatever waits for others.
CREATE INDEX webhook_deliveries_next ON webhook_deliveries (webhook_id, next_at, id) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_tests ON webhook_deliveries (webhook_id, event, next_at, id)
    WHERE state = 'pending' AND event = 'webhook.test';
DROP INDEX webhook_deliveries_due;
