//! The question before something that cannot be taken back. Scripts ask it in a dialog, and say so in the field `confirmed`; without
//! them the form leads to a page in between that asks it, and sends the same form with that field. A handler of what destroys takes
//! its form as [`Confirmed`] or [`ConfirmedForm`], and is not called before.

use askama::Template;
use axum::{
    extract::{FromRef, FromRequest, FromRequestParts, Request},
    http::{HeaderMap, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use serde_json::Value;

use super::{
    PagePolicy,
    frame::{Frame, NONCE, SEEN, SubmittedForm, Visitor, here, list_of, root_of},
    html,
    text::for_people,
};
use crate::{
    body::BodyReader,
    fields::{FromFields, JsonFields, validate},
    idempotency::IdempotencyKey,
    response::ApiResult,
    state::AppState,
};

/// The field in which a button brings its question.
const QUESTION: &str = "confirm";
/// The field that says that the question was answered.
const CONFIRMED: &str = "confirmed";
/// A secret is not repeated on a page: it is typed once more.
const PASSWORD: &str = "password";
/// Longest question that is shown, in characters.
const LONGEST: usize = 2_000;
/// What is asked where a form brings no question.
const PLAIN_QUESTION: &str = "This cannot be taken back. Is it what you want?";

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage {
    frame: Frame,
    question: String,
    /// What the button says.
    label: &'static str,
    /// Where the form was sent, from the root.
    path: String,
    /// What the form says, by the names of inputs.
    inputs: Vec<(String, String)>,
    needs_password: bool,
    /// The page that has the form.
    back: String,
}

/// Whether somebody has confirmed what a form does, and what it takes to ask.
pub(super) struct Confirmation {
    is_given: bool,
    question: Option<String>,
    path: String,
    back: String,
    nonce: Option<String>,
    seen: Option<String>,
    fields: Value,
}

/// What a form has said, as it came.
pub(super) struct SentFields {
    /// Where it was sent, from the root.
    pub(super) path: String,
    /// What stood in the form when its page was shown, in the form's own words.
    pub(super) seen: Option<String>,
    pub(super) fields: Value,
}

impl Confirmation {
    /// What the form has said, where nothing is to be asked.
    pub(super) fn into_sent(self) -> SentFields {
        SentFields { path: self.path, seen: self.seen, fields: self.fields }
    }

    pub(super) fn is_given(&self) -> bool {
        self.is_given
    }

    /// The page in between that asks this.
    pub(super) fn ask(self, frame: Frame, question: String) -> ApiResult {
        let needs_password = self.fields.get(PASSWORD).is_some();
        let page = ConfirmPage {
            frame,
            label: label_of(&question),
            question,
            inputs: inputs(&self.fields, self.nonce),
            path: self.path,
            needs_password,
            back: self.back,
        };
        html(&PagePolicy::Own, StatusCode::OK, &page)
    }

    /// The page with the question that the form brings.
    fn ask_its_own(self, frame: Frame) -> Response {
        let question = self.question.clone().unwrap_or_else(|| PLAIN_QUESTION.to_owned());
        self.ask(frame, question).into_response()
    }
}

/// The inputs that say what a form has said, each as it was read.
fn inputs(fields: &Value, nonce: Option<String>) -> Vec<(String, String)> {
    let fields = fields.as_object().into_iter().flatten().filter(|(name, _)| *name != PASSWORD);
    let inputs = fields.map(|(name, value)| match value.as_str() {
        Some(text) => (format!("{name}:text"), text.to_owned()),
        None => (format!("{name}:json"), value.to_string()),
    });
    inputs.chain(nonce.map(|nonce| (NONCE.to_owned(), nonce))).collect()
}

/// What the button says that answers a question: questions begin with what is done.
fn label_of(question: &str) -> &'static str {
    const VERBS: [&str; 4] = ["Delete", "Leave", "Remove", "Stop"];
    let verb = question.split(' ').next().unwrap_or_default();
    VERBS.into_iter().find(|known| *known == verb).unwrap_or("Go on")
}

/// Where the page with the form is, as its browser says; else the list that it is about.
fn back_of(headers: &HeaderMap, path: &str) -> String {
    let page = headers.get(header::REFERER).and_then(|value| value.to_str().ok());
    match page.and_then(|page| page.parse::<Uri>().ok()) {
        Some(page) => format!("/{}", here(&page)),
        None => format!("{}./{}", root_of(path), list_of(path)),
    }
}

/// Reads a form that somebody has sent who is signed in, and whether it was confirmed.
async fn receive<T: FromFields + Send>(
    request: Request,
    state: &AppState,
) -> Result<(SubmittedForm<T>, Confirmation), Response> {
    let (mut parts, body) = request.into_parts();
    let visitor = Visitor::from_request_parts(&mut parts, state).await?;
    let path = parts.uri.path().to_owned();
    let back = back_of(&parts.headers, &path);
    let request = Request::from_parts(parts, body);
    let read = async {
        let sent = BodyReader::from_ref(state).read_form(request, T::SENDER).await?;
        let mut fields = sent.value.clone();
        let mut take = |name: &str| {
            let taken = fields.as_object_mut().and_then(|fields| fields.remove(name));
            taken.as_ref().and_then(Value::as_str).map(str::to_owned)
        };
        let (nonce, seen) = (take(NONCE), take(SEEN));
        let (question, confirmed) = (take(QUESTION), take(CONFIRMED));
        let content = fields.to_string();
        let key = IdempotencyKey::of_form(nonce.as_deref(), &content);
        let once = key.once(&visitor.actor(), &path, content.as_bytes());
        let body = validate(&fields)?;
        let confirmation = Confirmation {
            is_given: confirmed.is_some(),
            question: question.map(|question| question.chars().take(LONGEST).collect()),
            path: path.trim_start_matches('/').to_owned(),
            back,
            nonce,
            seen,
            fields,
        };
        ApiResult::Ok((body, once, confirmation))
    };
    let (body, once, confirmation) = read.await.map_err(|error| for_people(error).into_response())?;
    Ok((SubmittedForm { visitor, body, once }, confirmation))
}

impl<T: FromFields + Send> FromRequest<AppState> for SubmittedForm<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Response> {
        let (form, confirmation) = receive(request, state).await?;
        if confirmation.question.is_some() && !confirmation.is_given {
            return Err(confirmation.ask_its_own(form.visitor.frame));
        }
        Ok(form)
    }
}

/// A form of which the handler says whether it asks, and what.
pub(super) struct UnconfirmedForm<T>(pub(super) SubmittedForm<T>, pub(super) Confirmation);

impl<T: FromFields + Send> FromRequest<AppState> for UnconfirmedForm<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Response> {
        receive(request, state).await.map(|(form, confirmation)| Self(form, confirmation))
    }
}

/// A form that somebody was asked about, and has confirmed.
pub(super) struct ConfirmedForm<T>(pub(super) SubmittedForm<T>);

impl<T: FromFields + Send> FromRequest<AppState> for ConfirmedForm<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Response> {
        let (form, confirmation) = receive(request, state).await?;
        if !confirmation.is_given {
            return Err(confirmation.ask_its_own(form.visitor.frame));
        }
        Ok(Self(form))
    }
}

/// Somebody who was asked about what a button without any fields does, and has confirmed it.
pub(super) struct Confirmed(pub(super) Visitor);

impl FromRequest<AppState> for Confirmed {
    type Rejection = Response;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Response> {
        let ConfirmedForm(form) = ConfirmedForm::<NoFields>::from_request(request, state).await?;
        Ok(Self(form.visitor))
    }
}

/// What a form has whose button says it all.
pub(super) struct NoFields;

impl FromFields for NoFields {
    fn from_fields(_: &mut JsonFields<'_>) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_typed_is_sent_again_but_for_a_secret() {
        let fields = json!({"name": " Team ", "password": "secret", "ids": ["a", "b"], "all": true});
        let mut sent = inputs(&fields, Some("n".to_owned()));
        sent.sort();
        let expected =
            [("all:json", "true"), ("ids:json", "[\"a\",\"b\"]"), ("name:text", " Team "), ("nonce", "n")];
        assert_eq!(sent, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_button_says_what_is_done() {
        for (question, label) in [
            ("Delete the document “A”?", "Delete"),
            ("Remove Ben?", "Remove"),
            ("Make a new secret?", "Go on"),
            ("", "Go on"),
        ] {
            assert_eq!(label_of(question), label, "{question}");
        }
    }

    #[test]
    fn the_way_back_is_a_page_of_this_service() {
        let back = |referer: Option<&'static str>| {
            let referer = referer.map(|referer| (header::REFERER, HeaderValue::from_static(referer)));
            let headers: HeaderMap = referer.into_iter().collect();
            back_of(&headers, "/documents/1/delete")
        };
        assert_eq!(back(Some("https://kb.example/kb/documents?name=a&said=saved")), "/kb/documents?name=a");
        assert_eq!(back(Some("https://kb.example//evil.example/x")), "/evil.example/x");
        assert_eq!(back(None), "../.././documents");
    }
}
