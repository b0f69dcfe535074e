//! A collector of spans: a server that takes OTLP over HTTP on loopback and keeps what it gets.

use std::sync::Arc;

use axum::{Router, extract::Request, http::StatusCode};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value::Value as Any,
};
use parking_lot::Mutex;
use prost::Message as _;

use super::{
    loopback::{Listening, Seen},
    process::POLL,
    within_deadline,
};

/// A span as it was received.
#[derive(Clone, Debug)]
pub struct Span {
    pub service: String,
    pub name: String,
    pub trace: Vec<u8>,
    pub id: Vec<u8>,
    pub parent: Vec<u8>,
    pub attributes: Vec<(String, String)>,
}

impl Span {
    /// An attribute as text.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct Shared {
    spans: Mutex<Vec<Span>>,
    headers: Mutex<Vec<Option<String>>>,
}

/// The server. It stops when it is dropped.
pub struct Collector {
    shared: Arc<Shared>,
    listening: Listening,
}

impl Collector {
    /// Starts a collector.
    pub async fn start() -> Self {
        let shared = Arc::<Shared>::default();
        let router = Router::new().fallback({
            let shared = Arc::clone(&shared);
            move |request: Request| async move {
                let seen = Seen::read(request).await;
                assert_eq!(seen.path(), "/v1/traces");
                shared.headers.lock().push(seen.header("x-collector-key").map(str::to_owned));
                let request = ExportTraceServiceRequest::decode(seen.body).expect("a request of OTLP");
                shared.spans.lock().extend(spans(request));
                StatusCode::OK
            }
        });
        Self { shared, listening: Listening::start(router).await }
    }

    /// What `OTEL_EXPORTER_OTLP_ENDPOINT` is to be.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.listening.address())
    }

    /// The values of the header `x-collector-key`, one a batch.
    pub fn keys(&self) -> Vec<Option<String>> {
        self.shared.headers.lock().clone()
    }

    /// Everything that has come.
    pub fn spans(&self) -> Vec<Span> {
        self.shared.spans.lock().clone()
    }

    /// Waits for a span that `is_it`.
    pub async fn wait_for(&self, what: &str, is_it: impl Fn(&Span) -> bool) -> Span {
        let found = async {
            loop {
                if let Some(span) = self.spans().into_iter().find(&is_it) {
                    return span;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        within_deadline(what, found).await
    }
}

fn spans(request: ExportTraceServiceRequest) -> Vec<Span> {
    let text = |value: Any| match value {
        Any::StringValue(text) => text,
        Any::BoolValue(value) => value.to_string(),
        Any::IntValue(value) => value.to_string(),
        Any::DoubleValue(value) => value.to_string(),
        other => format!("{other:?}"),
    };
    let mut all = Vec::new();
    for resource in request.resource_spans {
        let attributes = resource.resource.map(|resource| resource.attributes).unwrap_or_default();
        let service = attributes.into_iter().find(|attribute| attribute.key == "service.name");
        let service = service.and_then(|name| name.value?.value).map(text).unwrap_or_default();
        for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            let attributes = span.attributes.into_iter().map(|attribute| {
                (attribute.key, attribute.value.and_then(|value| value.value).map(text).unwrap_or_default())
            });
            all.push(Span {
                service: service.clone(),
                name: span.name,
                trace: span.trace_id,
                id: span.span_id,
                parent: span.parent_span_id,
                attributes: attributes.collect(),
            });
        }
    }
    all
}
