//! Lists that lead to documents, read in the sandboxed child.

use lectern_parse::protocol::Listing;
use lectern_sandbox::{ListFailure, ListOrder, Sandbox};

use super::failure::RunFailure;

/// Has a list read; none when the bytes are none, or need more time or memory than is allowed.
///
/// # Errors
/// When the child cannot be started.
pub(super) async fn read(
    sandbox: &Sandbox,
    order: ListOrder,
    bytes: &[u8],
) -> Result<Option<Listing>, RunFailure> {
    let kind = order.kind;
    match sandbox.list(order, bytes).await {
        Ok(listing) => Ok(Some(listing)),
        Err(ListFailure::Sandbox(error)) => Err(RunFailure::Outage(error.to_string())),
        Err(failure @ (ListFailure::Bytes(_) | ListFailure::TooSlow | ListFailure::Crashed)) => {
            tracing::debug!(?kind, %failure, "a list was not read");
            Ok(None)
        }
    }
}
