//! Answers that are failures, described once and referred to by every operation that can give them.

use serde_json::{Value, json};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        Components, Content, ContentBuilder, Header, HeaderBuilder, Ref, RefOr, Response, ResponseBuilder,
        schema::{Object, ObjectBuilder, Type},
    },
};

/// An answer that is no success.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `http` writes")]
#[serde(rename_all = "camelCase")]
#[schema(as = Failure)]
struct FailureResponse {
    /// Always false.
    success: bool,
    /// Null, but for `/health/ready`, which tells the state of the parts.
    #[schema(value_type = Option<Object>, required = true)]
    data: Option<Value>,
    /// What is wrong.
    error: FailureDetail,
    /// Finds the request in the service's log.
    request_id: String,
}

/// What is wrong with a request.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes `error::ApiError`")]
#[schema(as = Problem)]
struct FailureDetail {
    /// For programs; it stays the same.
    #[schema(pattern = "^[a-z0-9_]+$")]
    code: String,
    /// One sentence, for people.
    message: String,
    /// With status 422: every field or parameter that is wrong.
    fields: Option<Vec<WrongField>>,
}

/// A field or parameter that is wrong.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes `error::FieldError`")]
struct WrongField {
    /// Where it stands, such as `llm.model`.
    path: String,
    /// What would be right.
    message: String,
}

/// The name of the schema of failures.
pub(super) const FAILURE: &str = "Failure";
/// The same of those in OpenAI's form, which one response describes.
pub(super) const OPENAI_FAILURE: &str = "OpenAiFailure";
const JSON: &str = "application/json";

/// An answer that is no success, to clients of OpenAI's interface.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `openai::error` writes")]
#[schema(as = OpenAiFailure)]
struct OpenAiFailureResponse {
    /// What is wrong.
    error: OpenAiProblem,
}

/// What is wrong with a request, in OpenAI's form.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `openai::error` writes")]
struct OpenAiProblem {
    /// One sentence, for people.
    message: String,
    /// What sort of error it is, such as `invalid_request_error`.
    r#type: String,
    /// The field that is wrong, if it is one.
    #[schema(required = true)]
    param: Option<String>,
    /// For programs, if there is one.
    #[schema(required = true)]
    code: Option<String>,
}

fn openai_response() -> Response {
    let example = json!({"error": {
        "message": "The model `support` does not exist, or you may not ask it.",
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }});
    let content =
        ContentBuilder::new().schema(Some(Ref::from_schema_name(OPENAI_FAILURE))).example(Some(example));
    let mut response =
        ResponseBuilder::new().description("It did not work.").content(JSON, content.build()).build();
    add_headers("", &mut response);
    response
}

/// A failure that many operations share.
pub(super) struct SharedFailure {
    pub(super) status: &'static str,
    /// Its name among the components.
    name: &'static str,
    description: &'static str,
    code: &'static str,
    message: &'static str,
}

macro_rules! shared {
    ($($constant:ident = $status:literal $name:literal $code:literal $message:literal: $description:literal;)*) => {
        $(pub(super) const $constant: SharedFailure = SharedFailure {
            status: $status,
            name: $name,
            description: $description,
            code: $code,
            message: $message,
        };)*
        const ALL: &[SharedFailure] = &[$($constant),*];
    };
}

shared! {
    MALFORMED = "400" "Malformed" "malformed_json" "The body is not valid JSON (line 1, column 2).":
        "The body cannot be read.";
    UNAUTHORIZED = "401" "Unauthorized" "unauthorized" "The credentials are not valid, or not valid any more. Sign in again, or use another API token.":
        "There are no valid credentials.";
    FORBIDDEN = "403" "Forbidden" "forbidden" "This is for admins. Your account is none.":
        "The account is no admin's.";
    NOT_ALLOWED = "403" "NotAllowed" "role_required" "This needs the role `editor` in the workspace; yours is `asker`.":
        "The role in the workspace or the API token does not reach, what may be stored or used is used up, or a page may not ask for it.";
    NOT_FOUND = "404" "NotFound" "not_found" "There is no such agent.":
        "An id in the request, that of `X-Workspace` included, is not known, or is somebody else's.";
    TOO_SLOW = "408" "TooSlow" "timeout" "The body came too slowly.":
        "The body was not sent in time.";
    CONFLICT = "409" "IdempotencyConflict" "idempotency_key_reused" "This Idempotency-Key was used for another request within the last 24 hours. Use a new one.":
        "The `Idempotency-Key` was used for another request, or the same request is being answered at this moment.";
    TOO_LARGE = "413" "TooLarge" "too_large" "The body may have at most 2097152 bytes.":
        "The body is too large.";
    UNSUPPORTED = "415" "UnsupportedMediaType" "unsupported_media_type" "Send the body as JSON, with Content-Type: application/json.":
        "The body's `Content-Type` or `Content-Encoding` is not one that is read.";
    INVALID = "422" "Invalid" "invalid_fields" "Some fields are not valid; see `fields`.":
        "Fields or parameters are wrong; `error.fields` names each of them.";
    TOO_MANY = "429" "TooManyRequests" "rate_limited" "Too many requests. Wait before you send more.":
        "Too many requests. `Retry-After` says when to try again.";
    INTERNAL = "500" "Internal" "internal" "Something failed inside the service. The request id finds it in the log.":
        "Something failed inside the service.";
    FULL = "507" "StorageFull" "storage_full" "The service has no room left to store this. What is stored can be read, searched and deleted.":
        "The service has no room to store this. Deleting works.";
    UNAVAILABLE = "503" "Unavailable" "unavailable" "A part of the service is away; try again shortly.":
        "A part of the service is away. `Retry-After` says when to try again.";
}

impl SharedFailure {
    /// What an operation that can give it says.
    pub(super) fn reference(&self) -> RefOr<Response> {
        RefOr::Ref(Ref::from_response_name(self.name))
    }

    /// The same for clients of OpenAI's interface, which know fewer statuses.
    pub(super) fn openai_reference(&self) -> (&'static str, RefOr<Response>) {
        let status = if self.status == INVALID_STATUS { MALFORMED.status } else { self.status };
        (status, RefOr::Ref(Ref::from_response_name(OPENAI_FAILURE)))
    }

    fn response(&self) -> Response {
        let mut error = json!({"code": self.code, "message": self.message});
        if let (INVALID_STATUS, Some(error)) = (self.status, error.as_object_mut()) {
            error.insert("fields".to_owned(), json!([{"path": "name", "message": "is required"}]));
        }
        let example = json!({
            "success": false,
            "data": null,
            "error": error,
            "requestId": "019a8f40-9b1c-7d55-8e02-6a4f0c1d2b3e",
        });
        let content =
            ContentBuilder::new().schema(Some(Ref::from_schema_name(FAILURE))).example(Some(example));
        let mut response =
            ResponseBuilder::new().description(self.description).content(JSON, content.build()).build();
        add_headers(self.status, &mut response);
        response
    }
}

const INVALID_STATUS: &str = INVALID.status;

/// Adds the shared failures, and what they consist of, to the components.
pub(super) fn register(components: &mut Components) {
    let mut schemas = vec![(FAILURE.to_owned(), FailureResponse::schema())];
    FailureResponse::schemas(&mut schemas);
    schemas.push((OPENAI_FAILURE.to_owned(), OpenAiFailureResponse::schema()));
    OpenAiFailureResponse::schemas(&mut schemas);
    components.schemas.extend(schemas);
    components.responses.insert(OPENAI_FAILURE.to_owned(), openai_response().into());
    for shared in ALL {
        components.responses.insert(shared.name.to_owned(), shared.response().into());
    }
}

/// Adds what a handler need not say of its own failures: their body and headers.
pub(super) fn complete(status: &str, response: &mut Response, form: &str) {
    if response.content.is_empty() && status.starts_with(['4', '5']) {
        response.content.insert(JSON.to_owned(), Content::new(Some(Ref::from_schema_name(form))));
    }
    add_headers(status, response);
}

fn add_headers(status: &str, response: &mut Response) {
    let mut add = |name: &str, header: Header| {
        response.headers.entry(name.to_owned()).or_insert(header);
    };
    add("x-request-id", header(Type::String, "The request's id: the caller's own, or a new one."));
    if matches!(status, "429" | "503") {
        let wait = "Seconds after which the same request may work.";
        add("Retry-After", header(Type::Integer, wait));
    }
    if status == "401" {
        add("WWW-Authenticate", header(Type::String, "`Bearer`."));
    }
}

pub(super) fn header(kind: Type, description: &str) -> Header {
    HeaderBuilder::new().schema(text(kind)).description(Some(description)).build()
}

fn text(kind: Type) -> Object {
    ObjectBuilder::new().schema_type(kind).build()
}
