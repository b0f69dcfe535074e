//! What the operator sees and does over HTTP, outside of `/api/v1`: jobs, for admins only, and health and metrics, for monitors.

mod bulk;
mod health;
mod jobs;
mod view;

pub use view::JobView;

use crate::openapi::ApiRouter;

/// Everything under `/admin` and `/health`, and `/metrics`.
pub(crate) fn router() -> ApiRouter {
    ApiRouter::new().merge(jobs::router()).merge(bulk::router()).merge(health::router())
}
