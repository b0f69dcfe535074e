-- Where accounts were signed in to of late: a keyed hash of the account and the address, and when that was last noted.
CREATE TABLE known_addresses (
    user_id UUID NOT NULL REFERENCES users (id),
    address_hash BYTEA NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, address_hash)
);
CREATE INDEX known_addresses_by_time ON known_addresses (seen_at);

-- Accounts that are deleted, of which something may be left.
CREATE INDEX users_deleted ON users (id) WHERE deleted_at IS NOT NULL;
