//! A worker that runs by itself answers on an address of its own whether it lives and is ready, and what it has
//! counted.

use std::{convert::Infallible, io, net::SocketAddr, time::Duration};

use hyper::{
    Method, Request, Response, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use lectern_runtime::{Runtime, health};
use lectern_shared::{metrics, shutdown::Shutdown};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The longest that a client may take to send its request.
const HEADERS_WITHIN: Duration = Duration::from_secs(5);
/// The longest that one exchange may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// The pause after the system refused to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Binds the address that is `LECTERN_WORKER_ADDR`; none when it is not set.
///
/// # Errors
/// When the address cannot be listened on.
pub async fn bind(addr: Option<SocketAddr>) -> Result<Option<TcpListener>, String> {
    let Some(addr) = addr else { return Ok(None) };
    let listener = TcpListener::bind(addr).await;
    listener.map(Some).map_err(|error| format!("LECTERN_WORKER_ADDR: {addr} cannot be listened on: {error}"))
}

/// Answers in the background until the shutdown begins.
///
/// # Errors
/// When the listener has no address.
pub fn serve(runtime: Runtime, listener: TcpListener, shutdown: &Shutdown) -> io::Result<()> {
    tracing::info!(addr = %listener.local_addr()?, "listening");
    let soft = shutdown.soft().clone();
    shutdown.spawn(async move {
        loop {
            let accepted = tokio::select! {
                () = soft.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let runtime = runtime.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| answer(runtime.clone(), request));
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEADERS_WITHIN)
                    .keep_alive(false)
                    .serve_connection(TokioIo::new(stream), service);
                // A client that breaks off is no event.
                let _ = tokio::time::timeout(ANSWER_WITHIN, connection).await;
            });
        }
    });
    Ok(())
}

async fn answer(runtime: Runtime, request: Request<Incoming>) -> Result<Response<String>, Infallible> {
    if (request.method(), request.uri().path()) == (&Method::GET, "/metrics") {
        return Ok(metrics_of(&runtime, request.headers()).await);
    }
    let (status, body) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/health/live") => (StatusCode::OK, success(&json!({"status": "live"}))),
        (&Method::GET, "/health/ready") => {
            let health = Box::pin(health::check(&runtime)).await;
            if health.ready {
                (StatusCode::OK, success(&json!({"status": "ready", "parts": health.parts})))
            } else {
                let data = json!({"status": "not_ready", "parts": health.parts});
                let body = failure("not_ready", "A part of the service is down; see `data`.", &data);
                (StatusCode::SERVICE_UNAVAILABLE, body)
            }
        }
        (_, "/health/live" | "/health/ready" | "/metrics") => {
            let body = failure("method_not_allowed", "Only GET is answered here.", &Value::Null);
            (StatusCode::METHOD_NOT_ALLOWED, body)
        }
        _ => (StatusCode::NOT_FOUND, failure("not_found", "There is nothing here.", &Value::Null)),
    };
    Ok(response(status, "application/json", body.to_string()))
}

async fn metrics_of(runtime: &Runtime, headers: &header::HeaderMap) -> Response<String> {
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if metrics::may_read(runtime.settings.metrics_token.as_ref(), authorization) {
        return response(
            StatusCode::OK,
            metrics::CONTENT_TYPE,
            lectern_runtime::metrics::text(runtime).await,
        );
    }
    let message = "Send the service's metrics token as `Authorization: Bearer …`.";
    let body = failure("unauthorized", message, &Value::Null).to_string();
    let mut refusal = response(StatusCode::UNAUTHORIZED, "application/json", body);
    refusal.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    refusal
}

fn response(status: StatusCode, content_type: &'static str, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

fn success(data: &Value) -> Value {
    json!({"success": true, "data": data})
}

fn failure(code: &str, message: &str, data: &Value) -> Value {
    json!({"success": false, "data": data, "error": {"code": code, "message": message}})
}
