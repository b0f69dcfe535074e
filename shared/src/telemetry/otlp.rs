//! Spans on their way to a collector, by OTLP over HTTP in batches. A collector that is away costs the spans and nothing else.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{Sampler, SdkTracer, SdkTracerProvider},
};
use secrecy::ExposeSecret;
use tokio::runtime::Handle;

use crate::{
    config::{ConfigError, TracingSettings},
    egress,
};

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// The longest that a collector may be silent.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long the end of the process waits for the last spans.
const FINISH_WITHIN: Duration = Duration::from_secs(3);
/// What is read of a collector's answer, in bytes: whether it took the spans, and a sentence if not.
const LARGEST_ANSWER: usize = 64 << 10;

/// Sends spans.
#[derive(Debug)]
pub(super) struct OtlpExporter {
    provider: SdkTracerProvider,
}

impl OtlpExporter {
    /// None when no collector is set.
    pub(super) fn new(settings: &TracingSettings) -> Result<Option<Self>, ConfigError> {
        let Some(endpoint) = &settings.endpoint else { return Ok(None) };
        let refused =
            |problem: String| ConfigError { setting: "OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), problem };
        crate::tls::install();
        let http = egress::operator_client(CONNECT_WITHIN, ANSWER_WITHIN)
            .map_err(|error| refused(error.to_string()))?;
        let headers: HashMap<_, _> = settings
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.expose_secret().to_owned()))
            .collect();
        let collector = CollectorClient { http, runtime: Handle::current(), failing: Arc::default() };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(collector)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint.as_str())
            .with_headers(headers)
            .build()
            .map_err(|error| refused(error.to_string()))?;
        let name = settings.service_name.clone().unwrap_or_else(program);
        let resource = Resource::builder()
            .with_service_name(name)
            .with_attributes([
                KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
                KeyValue::new("service.instance.id", uuid::Uuid::now_v7().to_string()),
            ])
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(settings.ratio))))
            .with_resource(resource)
            .build();
        Ok(Some(Self { provider }))
    }

    pub(super) fn tracer(&self) -> SdkTracer {
        self.provider.tracer("lectern")
    }

    pub(super) fn finish(self) {
        if let Err(error) = self.provider.shutdown_with_timeout(FINISH_WITHIN) {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}

/// The name of the program that runs.
fn program() -> String {
    let path = std::env::current_exe().ok();
    let name = path.as_deref().and_then(|path| path.file_name()?.to_str());
    name.unwrap_or("lectern").to_owned()
}

/// The way to the collector. Spans are sent from a thread of their own, which knows no async runtime.
#[derive(Clone, Debug)]
struct CollectorClient {
    http: reqwest::Client,
    runtime: Handle,
    failing: Arc<AtomicBool>,
}

impl CollectorClient {
    async fn send(http: reqwest::Client, request: reqwest::Request) -> Result<Response<Bytes>, String> {
        // An error's own text holds the address, and so perhaps a key.
        let failed = |error: reqwest::Error| {
            if error.is_timeout() { "it does not answer in time" } else { "it cannot be reached" }.to_owned()
        };
        let mut answer = http.execute(request).await.map_err(failed)?;
        let status = answer.status();
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(failed)? {
            if body.len() + piece.len() > LARGEST_ANSWER {
                return Err("it answers too much".to_owned());
            }
            body.extend_from_slice(&piece);
        }
        if !status.is_success() {
            return Err(format!("it answers {status}"));
        }
        Ok(Response::new(Bytes::from(body)))
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = reqwest::Request::try_from(request.map(reqwest::Body::from))?;
        let sent = self.runtime.spawn(Self::send(self.http.clone(), request)).await?;
        // One line for an outage, not one for every batch.
        match &sent {
            Ok(_) => self.failing.store(false, Ordering::Relaxed),
            Err(problem) => {
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(problem, "the collector of spans fails; spans are lost until it is back");
                }
            }
        }
        Ok(sent?)
    }
}
