//! What an error of a provider says beyond its status: a status in an error event, a wrong key behind a 400, a setting that
//! the model does not take. Texts are looked at here and nowhere kept.

use std::time::Duration;

use lectern_shared::egress::EgressResponse;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{
    ChatErrorKind,
    answer::CompleteAnswer,
    retry::{AttemptFailure, requested_wait},
    settings::RequestSetting,
};

/// Read of an error body at most; all that is looked for stands near its beginning.
const MAX_ERROR_BYTES: usize = 8 * 1024;

/// The longest wait for an error body.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a response amounts to whose status is no success: in one case an answer, and else a failure. Its body is read only
/// where it can make a difference, and only its beginning.
pub(super) async fn classify_response(
    mut response: EgressResponse,
    deadline: Instant,
) -> Result<CompleteAnswer, AttemptFailure> {
    let status = response.status;
    let asked = requested_wait(&response.headers);
    let failure = AttemptFailure::from_status(status).after(asked);
    if !matches!(status, 400 | 413 | 422 | 429) {
        return Err(failure);
    }
    let body = beginning(&mut response, deadline.min(Instant::now() + PATIENCE)).await;
    let text = String::from_utf8_lossy(&body);
    // OpenAI's word, which comes as 429 and is no limit that waiting helps against; and Anthropic's.
    if text.contains("\"insufficient_quota\"") || text.contains("credit balance is too low") {
        return Err(AttemptFailure::new(ChatErrorKind::NoCredit { status }));
    }
    if status == 429 {
        let named = || serde_json::from_slice(&body).ok().and_then(|body| retry_delay(&body));
        return Err(failure.after(asked.or_else(named)));
    }
    // Azure withholds the answer to a prompt that its filter dislikes by a status.
    if text.contains("\"content_filter\"") {
        return Ok(CompleteAnswer::withheld());
    }
    // Google's word for a wrong key.
    if text.contains("\"API_KEY_INVALID\"") {
        return Err(AttemptFailure::new(ChatErrorKind::Unauthorized { status }));
    }
    let text = text.to_ascii_lowercase();
    if is_too_long(&text) {
        return Err(AttemptFailure::new(ChatErrorKind::TooLong { status }));
    }
    Err(AttemptFailure { refused: refused_setting(&text), ..failure })
}

/// Whether an error text, in lower case, says that the model has no room for the conversation.
fn is_too_long(text: &str) -> bool {
    const WORDS: [&str; 5] = [
        "context_length_exceeded",
        "maximum context length",
        "exceed context limit",
        "exceeds the maximum number of tokens",
        "prompt is too long",
    ];
    WORDS.iter().any(|words| text.contains(words))
}

async fn beginning(response: &mut EgressResponse, until: Instant) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < MAX_ERROR_BYTES
        && let Ok(Ok(Some(piece))) = timeout_at(until, response.chunk()).await
    {
        body.extend_from_slice(&piece[..piece.len().min(MAX_ERROR_BYTES - body.len())]);
    }
    body
}

/// The setting that an error text, in lower case, calls unsupported. A wrong guess costs one more request.
fn refused_setting(text: &str) -> Option<RequestSetting> {
    const WORDS: [&str; 8] = [
        "unsupported",
        "not support",
        "n't support",
        "deprecated",
        "not permitted",
        "unknown",
        "unrecognized",
        "unexpected",
    ];
    if !WORDS.iter().any(|word| text.contains(word)) {
        return None;
    }
    let names = |word: &str| {
        let inside = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
        text.match_indices(word).any(|(at, _)| {
            !inside(text[..at].chars().next_back()) && !inside(text[at + word.len()..].chars().next())
        })
    };
    if names("stream_options") {
        Some(RequestSetting::StreamOptions)
    } else if names("max_completion_tokens") || names("max_tokens") {
        Some(RequestSetting::LimitName)
    } else if names("temperature") {
        Some(RequestSetting::Temperature)
    } else if names("stop") || names("stop_sequences") || names("stopsequences") {
        Some(RequestSetting::Stop)
    } else {
        None
    }
}

/// The wait that Google's 429 asks for: `{"error": {"details": [{"@type": "…RetryInfo", "retryDelay": "27s"}]}}`.
fn retry_delay(body: &Value) -> Option<Duration> {
    let details = body["error"]["details"].as_array()?;
    let seconds = details.iter().find_map(|detail| detail["retryDelay"].as_str())?.strip_suffix('s')?;
    seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

/// The failure that an event of a stream reports: its status by number, or by the words that providers use for one.
pub(super) fn error_event(error: &Value) -> AttemptFailure {
    const FIELDS: [&str; 4] = ["code", "status", "status_code", "type"];
    let fields = || FIELDS.iter().map(|field| &error[*field]);
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let is_named = |name: &str| fields().any(|value| value.as_str() == Some(name));
    if is_named("insufficient_quota") {
        return AttemptFailure::new(ChatErrorKind::NoCredit { status: 429 });
    }
    if is_named("context_length_exceeded") {
        return AttemptFailure::new(ChatErrorKind::TooLong { status: 400 });
    }
    fields()
        .find_map(|value| number(value).filter(|status| (400..600).contains(status)))
        .and_then(|status| u16::try_from(status).ok())
        .or_else(|| fields().find_map(|value| named_status(&value.as_str()?.to_ascii_lowercase())))
        .map_or_else(
            || AttemptFailure::new(ChatErrorKind::Upstream { status: None }),
            AttemptFailure::from_status,
        )
}

fn named_status(name: &str) -> Option<u16> {
    Some(match name {
        "invalid_request_error" | "invalid_argument" | "failed_precondition" => 400,
        "authentication_error" | "unauthenticated" | "invalid_api_key" => 401,
        "billing_error" => 402,
        "permission_error" | "permission_denied" => 403,
        "not_found_error" | "not_found" | "model_not_found" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" | "resource_exhausted" => 429,
        "api_error" | "server_error" | "internal_server_error" | "internal" => 500,
        "unavailable" | "service_unavailable" | "service_unavailable_error" => 503,
        "timeout_error" | "deadline_exceeded" => 504,
        "overloaded_error" | "overloaded" => 529,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{RequestSetting, error_event, refused_setting};
    use crate::models::ChatErrorKind;

    #[test]
    fn a_setting_that_a_model_does_not_take_is_recognised() {
        for (text, setting) in [
            (
                "unsupported value: 'temperature' does not support 0.2 with this model.",
                RequestSetting::Temperature,
            ),
            ("`temperature` is deprecated for this model.", RequestSetting::Temperature),
            ("unsupported parameter: 'stop' is not supported with this model.", RequestSetting::Stop),
            (
                "'max_tokens' is not supported; use 'max_completion_tokens' instead.",
                RequestSetting::LimitName,
            ),
            (
                r#"{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"extra inputs are not permitted"}"#,
                RequestSetting::StreamOptions,
            ),
        ] {
            assert_eq!(refused_setting(text), Some(setting), "{text}");
        }
        for text in ["the temperature must be at most 1", "unknown model stopper", ""] {
            assert_eq!(refused_setting(text), None, "{text}");
        }
    }

    #[test]
    fn an_error_event_has_the_class_of_the_status_that_it_names() {
        let upstream = |status| ChatErrorKind::Upstream { status };
        for (event, kind, retryable) in [
            (json!({"code": 503, "status": "UNAVAILABLE"}), upstream(Some(503)), true),
            (json!({"code": "429"}), ChatErrorKind::RateLimited { retry_after: None }, true),
            (json!({"type": "overloaded_error"}), upstream(Some(529)), true),
            (json!({"code": null, "type": "server_error"}), upstream(Some(500)), true),
            (json!({"type": "authentication_error"}), ChatErrorKind::Unauthorized { status: 401 }, false),
            (json!({"status": 408}), upstream(Some(408)), true),
            (
                json!({"code": "insufficient_quota", "type": "insufficient_quota"}),
                ChatErrorKind::NoCredit { status: 429 },
                false,
            ),
            (json!({"type": "billing_error"}), ChatErrorKind::NoCredit { status: 402 }, false),
            (
                json!({"type": "invalid_request_error", "code": "context_length_exceeded"}),
                ChatErrorKind::TooLong { status: 400 },
                false,
            ),
            (json!({"type": "not_found_error"}), ChatErrorKind::NotFound, false),
            (json!({"code": 1, "message": "429"}), upstream(None), false),
            (json!("oops"), upstream(None), false),
        ] {
            let failure = error_event(&event);
            assert_eq!((failure.kind, failure.retryable), (kind, retryable), "{event}");
        }
    }
}
