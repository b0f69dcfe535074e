-- Who last answered for a webhook, by pointing it to another address or by switching it on; whoever made it as long as nobody did.
ALTER TABLE webhooks ADD COLUMN vouched_by UUID;
