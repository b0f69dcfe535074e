-- Webhooks of people who left, or may set up none any more, from before that switched them off. The reasons are those of today. Times are made by
-- the program, so that this one only comes to differ: whoever began to change such a webhook before begins anew.
UPDATE webhooks
SET active = FALSE,
    updated_at = updated_at + 1,
    disabled = CASE
        WHEN EXISTS (
            SELECT 1 FROM members JOIN users ON users.id = members.user_id
            WHERE members.workspace_id = webhooks.workspace_id AND users.deleted_at IS NULL
              AND members.user_id = COALESCE(webhooks.vouched_by, webhooks.created_by, webhooks.workspace_id)
        ) THEN 'Whoever set it up builds here no more. Look where it leads, and switch it on if it is still wanted.'
        ELSE 'Whoever set it up is a member no more. Look where it leads, and switch it on if it is still wanted.'
    END
WHERE active AND NOT EXISTS (
    SELECT 1 FROM members JOIN users ON users.id = members.user_id
    WHERE members.workspace_id = webhooks.workspace_id AND users.deleted_at IS NULL
      AND members.user_id = COALESCE(webhooks.vouched_by, webhooks.created_by, webhooks.workspace_id)
      AND members.role IN ('builder', 'owner')
);
