//! What the interface says of itself: an OpenAPI 3.1 document, made from the handlers.

use serde::Serialize;
use utoipa::ToSchema;

/// An answer that is a success.
#[derive(Serialize, ToSchema)]
pub(crate) struct Data<T> {
    /// True when the call succeeded.
    pub(crate) success: bool,
    /// What it gives.
    pub(crate) data: T,
}
