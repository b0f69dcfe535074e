-- A place in the queue (fair_at) counts documents from now on, in halves; until now it was a moment. queue_head has the highest
-- number that a worker has taken, and users the last one of each. What waits for a later moment has no place until then, which is written as the last one there is.
CREATE TABLE queue_head (
    id BIGINT NOT NULL PRIMARY KEY,
    fair_at BIGINT NOT NULL
);
INSERT INTO queue_head (id, fair_at) VALUES (1, 1);

-- Each user's queued jobs keep their order, one place apart from the first one on.
UPDATE jobs SET fair_at = 0 WHERE state <> 'queued';
UPDATE jobs SET fair_at = 2 * place.number + 1
FROM (SELECT id AS job_id, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY fair_at, id) AS number
      FROM jobs WHERE state = 'queued') AS place
WHERE jobs.id = place.job_id;
UPDATE users SET fair_at = COALESCE(
    (SELECT MAX(jobs.fair_at) / 2 FROM jobs WHERE jobs.user_id = users.id AND jobs.state = 'queued'), 0);

CREATE INDEX jobs_line ON jobs (user_id, fair_at, id) WHERE state = 'queued' AND fair_at < 9223372036854775807;
CREATE INDEX jobs_waiting ON jobs (fair_at, run_at) WHERE state = 'queued' AND fair_at = 9223372036854775807;
CREATE INDEX jobs_held ON jobs (user_id, fair_at) WHERE state = 'running';
