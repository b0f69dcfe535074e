//! What PostgreSQL's planner knows of the tables.

use sqlx::QueryBuilder;

use super::{Db, Result, silence};

/// A table of fewer rows is read quickly by any plan.
const FEW: i64 = 50;

/// Has PostgreSQL look at tables that have become twice as large since it last did; how many. Its own upkeep comes once a minute: until
/// then it takes a table that is being filled for a small one, and any index for as good as another. So each document that is looked up may
/// go through all of its workspace's, in the first minute that a user sees of the service. Of tables that belong to a role whose rights this
/// one does not have, nothing is known but by the server's own upkeep.
pub async fn keep_up(db: &Db) -> Result<usize> {
    let Db::Postgres { pool, .. } = db else { return Ok(0) };
    let grown = sqlx::query_scalar(
        "SELECT quote_ident(grown.relname) FROM pg_stat_user_tables AS grown JOIN pg_class ON pg_class.oid = grown.relid
         WHERE grown.schemaname = current_schema() AND pg_has_role(pg_class.relowner, 'USAGE')
           AND grown.n_live_tup >= GREATEST(2 * pg_class.reltuples, $1)",
    )
    .bind(FEW)
    .fetch_all(pool);
    let grown: Vec<String> = silence::answered(grown).await?;
    for table in &grown {
        let mut analyze = QueryBuilder::new("ANALYZE ");
        analyze.push(table);
        silence::answered(analyze.build().execute(pool)).await?;
    }
    Ok(grown.len())
}
