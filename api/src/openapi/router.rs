//! Routes together with what describes them. The description is written when somebody asks for it: what it is made of is some megabytes,
//! and a service that nobody asks needs none of them.

use axum::{Router, extract::DefaultBodyLimit, routing::MethodRouter};
use utoipa::openapi::{ComponentsBuilder, OpenApi, OpenApiBuilder, Paths, RefOr, Schema};

use super::{base, finish};
use crate::state::AppState;

/// The schemas that some operations name, and the operations.
pub(crate) type OperationParts = (Vec<(String, RefOr<Schema>)>, Paths);

/// Operations that were given to [`routes!`].
pub(crate) struct DescribedRoutes {
    /// Each path with what answers there.
    pub(crate) served: Vec<(String, MethodRouter<AppState>)>,
    /// Describes them.
    pub(crate) describe: fn() -> OperationParts,
}

/// Operations: what serves them, and what will describe them.
pub(crate) struct ApiRouter {
    served: Router<AppState>,
    described: ApiDescription,
}

impl ApiRouter {
    pub(crate) fn new() -> Self {
        Self { served: Router::new(), described: ApiDescription(Vec::new()) }
    }

    /// Adds what [`routes!`] makes of handlers.
    #[expect(clippy::disallowed_methods, reason = "what describes the route is kept with it")]
    pub(crate) fn routes(self, DescribedRoutes { served, describe }: DescribedRoutes) -> Self {
        let Self { served: router, mut described } = self;
        let served = served.into_iter().fold(router, |router, (path, methods)| router.route(&path, methods));
        described.0.push((String::new(), describe));
        Self { served, described }
    }

    /// Adds the operations of another one.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.described.0.extend(other.described.0);
        Self { served: self.served.merge(other.served), ..self }
    }

    /// Adds the operations of another one under a path.
    pub(crate) fn nest(mut self, path: &str, other: Self) -> Self {
        let below = other.described.0.into_iter().map(|(rest, describe)| (format!("{path}{rest}"), describe));
        self.described.0.extend(below);
        Self { served: self.served.nest(path, other.served), ..self }
    }

    /// Has bodies of any length read by what answers, which bounds them itself.
    pub(crate) fn without_body_limit(self) -> Self {
        Self { served: self.served.layer(DefaultBodyLimit::disable()), ..self }
    }

    /// What serves the operations, and what describes them.
    pub(crate) fn into_parts(self) -> (Router<AppState>, ApiDescription) {
        (self.served, self.described)
    }
}

/// What describes operations: below which path each of them is, and what writes it down.
pub(crate) struct ApiDescription(Vec<(String, fn() -> OperationParts)>);

impl ApiDescription {
    /// The OpenAPI document. It takes some tens of milliseconds, and blocks.
    pub(crate) fn document(&self) -> OpenApi {
        let mut document = base();
        for (path, describe) in &self.0 {
            let (schemas, paths) = describe();
            let components = ComponentsBuilder::new().schemas_from_iter(schemas).build();
            let part = OpenApiBuilder::new().paths(paths).components(Some(components)).build();
            document.merge(if path.is_empty() { part } else { OpenApi::default().nest(path, part) });
        }
        finish(&mut document);
        document
    }
}

/// [`DescribedRoutes`] of handlers, whose paths and methods are those that `#[utoipa::path]` names.
macro_rules! routes {
    ($($handler:path),+ $(,)?) => {{
        use utoipa_axum::PathItemExt as _;
        let served = vec![$({
            let (path, methods) = utoipa_axum::paste! {(
                utoipa_axum::routes!(@path [path()] of $handler),
                utoipa_axum::routes!(@path [methods()] of $handler),
            )};
            let served = methods.iter().fold(axum::routing::MethodRouter::new(), |served, method| {
                served.on(method.to_method_filter(), $handler)
            });
            (path, served)
        }),+];
        $crate::openapi::DescribedRoutes {
            served,
            describe: || {
                let described: utoipa_axum::router::UtoipaMethodRouter<$crate::state::AppState> =
                    utoipa_axum::routes!($($handler),+);
                (described.0, described.1)
            },
        }
    }};
}
pub(crate) use routes;
