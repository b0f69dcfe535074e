//! What the operator sees and does over HTTP. Outside of `/api/v1`, for admins only.

mod bulk;
mod jobs;
mod view;

use utoipa_axum::router::OpenApiRouter;

pub use view::JobView;

use crate::state::AppState;

/// Everything under `/admin`.
pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().merge(jobs::router()).merge(bulk::router())
}
