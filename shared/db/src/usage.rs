//! What workspaces have used of their models, by calendar months in UTC.

use lectern_shared::{clock::Timestamp, ids::WorkspaceId};

use crate::{Db, Result, Tx, execute, on};

/// What was used in one month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct MonthlyUsage {
    /// Tokens, read and written.
    pub tokens: i64,
    /// Millionths of the currency of the service's prices.
    pub cost_micros: i64,
}

/// Millionths of a unit of currency.
const MICROS: f64 = 1_000_000.0;
/// The most that is added at once, of either.
const MOST: f64 = 1e12;
const MOST_TOKENS: i64 = 1_000_000_000_000;

impl MonthlyUsage {
    /// So many tokens, and so much money.
    pub fn new(tokens: u64, cost: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "it is bounded")]
        let cost_micros = (cost * MICROS).round().clamp(0.0, MOST) as i64;
        // A server may tell whatever it likes of one answer, and the sum of a month has to stay a number.
        Self { tokens: i64::try_from(tokens).unwrap_or(i64::MAX).min(MOST_TOKENS), cost_micros }
    }

    /// The money, in the currency of the service's prices.
    #[expect(clippy::cast_precision_loss, reason = "an amount that people read")]
    pub fn cost(&self) -> f64 {
        self.cost_micros as f64 / MICROS
    }
}

/// What a workspace has used in the month that began at this moment.
pub async fn of_month(db: &Db, workspace: WorkspaceId, month: Timestamp) -> Result<MonthlyUsage> {
    let found: Option<MonthlyUsage> = on!(db, |c| sqlx::query_as(
        "SELECT tokens, cost_micros FROM workspace_usage WHERE workspace_id = $1 AND month = $2"
    )
    .bind(workspace)
    .bind(month)
    .fetch_optional(c))?;
    Ok(found.unwrap_or_default())
}

/// Adds what was used.
pub async fn add(tx: &mut Tx, workspace: WorkspaceId, month: Timestamp, used: MonthlyUsage) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO workspace_usage (workspace_id, month, tokens, cost_micros) VALUES ($1, $2, $3, $4)
             ON CONFLICT (workspace_id, month) DO UPDATE SET
                 tokens = workspace_usage.tokens + excluded.tokens,
                 cost_micros = workspace_usage.cost_micros + excluded.cost_micros"
        )
        .bind(workspace)
        .bind(month)
        .bind(used.tokens)
        .bind(used.cost_micros)
    )?;
    Ok(())
}
