//! Uploading a file. It becomes a document that is called like it.

use axum::{
    Extension,
    extract::{Request, State},
};
use lectern_derive::{RequestBody, handler};
use lectern_shared::model::document::DocumentFile;
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use utoipa::ToSchema;

use super::{
    object_encoder,
    view::{FileObject, example},
};
use crate::{
    auth::{Caller, in_force::RequestCredential},
    error::ApiError,
    fields::{FieldRule, JsonFields, validate},
    idempotency::{IdempotencyKey, creation_response},
    multipart::{MultipartForm, MultipartPart, PartBudget},
    openapi::{ApiRouter, routes},
    response::ApiResult,
    services::{
        actor::Actor,
        documents::DocumentDetails,
        uploads::{
            FileDescription, LONGEST_UPLOAD, NewUpload, UploadService, UploadTarget, UploadedFile, late,
        },
    },
};

/// Parts that are known besides the file.
const KNOWN: [&str; 2] = ["purpose", "expires_after"];
/// What every file is for: these say the same here, and which of them was given is not kept.
pub(super) const PURPOSES: [&str; 2] = ["assistants", "user_data"];
/// Bytes that are kept of such a part.
const TEXT: usize = 1_000;

pub(super) fn router() -> ApiRouter {
    // The file is measured by the blob store, and the other parts here.
    ApiRouter::new().routes(routes!(upload)).without_body_limit()
}

/// A file, and what it is for.
#[derive(RequestBody, ToSchema)]
#[schema(as = OpenAiUpload)]
struct FileForm {
    /// The file: PDF; text, Markdown, HTML, XML or JSON; a table or a spreadsheet; DOCX, PPTX, ODT, ODP or EPUB; an e-mail or
    /// a web archive; captions.
    #[schema(value_type = String, format = Binary)]
    #[body(skip)]
    #[expect(dead_code, reason = "it is stored while it is sent, and a part of the same form")]
    file: (),
    /// What it is for: `assistants` or `user_data`, which are the same here.
    #[schema(pattern = "^(assistants|user_data)$")]
    #[body(with = purpose)]
    #[expect(dead_code, reason = "all files are for the same")]
    purpose: String,
    /// Not taken: a file is kept until it is deleted.
    #[schema(value_type = Option<Object>)]
    #[body(with = expiry)]
    #[expect(dead_code, reason = "it is refused")]
    expires_after: Option<Map<String, Value>>,
}

fn purpose(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<String> {
    match fields.get(rule.name).map(Value::as_str) {
        Some(Some(purpose)) if PURPOSES.contains(&purpose) => return Some(purpose.to_owned()),
        Some(_) => {
            fields.refuse(rule.name, "must be assistants or user_data: files here are for nothing else");
        }
        None => fields.refuse(rule.name, "is required: assistants or user_data"),
    }
    None
}

/// Refuses an end: nothing here goes by itself.
pub(in crate::openai) fn expiry(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Map<String, Value>> {
    if fields.get(rule.name).is_some() {
        fields.refuse(rule.name, "cannot be set: what is stored is kept until it is deleted. Leave it out");
    }
    None
}

/// Upload a file
///
/// Makes a document of a file, which is called like it, and queues it to be ingested. What the file is, is told by its bytes first, then
/// by its name. It is searched as soon as it is `processed`; put it into a vector store to search it there.
#[utoipa::path(
    post,
    path = "/files",
    tag = "OpenAI-compatible",
    operation_id = "openaiUploadFile",
    request_body(
        content = FileForm,
        content_type = "multipart/form-data",
        example = json!({"file": "(the file)", "purpose": "assistants"}),
    ),
    responses((
        status = 200,
        description = "The new file",
        body = inline(FileObject),
        example = json!(uploaded_example()),
    )),
)]
#[handler]
async fn upload(
    State(uploads): State<UploadService>,
    Extension(opened): Extension<RequestCredential>,
    caller: Caller,
    request: Request,
) -> ApiResult {
    let key = IdempotencyKey::of(request.headers())?;
    let path = request.uri().path().to_owned();
    let form = MultipartForm::of(request).await?;
    let actor = caller.actor();
    // Nothing of the form is read before its turn, so that its sender waits too. Held until the document is made.
    let _turn = opened.while_in_force(uploads.turn(&actor)).await?;
    let reading = Box::pin(receive(&uploads, &actor, form));
    // It may go on for so long that its sender may not do it any more.
    let in_time = async { timeout(LONGEST_UPLOAD, reading).await.map_err(|_| late())? };
    let file = opened.while_in_force(in_time).await?;
    let new = NewUpload::of_file(&file.kind)?;
    let once = key.once(&actor, &path, new.identity(&file).as_bytes());
    let (bytes, name) = (file.bytes(), file.kind.file_name.clone());
    let show =
        object_encoder(move |made: &DocumentDetails| FileObject::from(as_file(made, name.clone(), bytes)));
    uploads.complete(&actor, file, new, once, show).await.map(creation_response)
}

fn as_file(made: &DocumentDetails, source_name: Option<String>, bytes: u64) -> DocumentFile {
    let document = &made.document;
    DocumentFile {
        id: document.id,
        name: document.name.clone(),
        source_name,
        stored_bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
        created_at: document.created_at,
        state: document.ingestion.state,
        last_error: None,
    }
}

/// Reads a form to its end, and stores its file.
async fn receive(
    uploads: &UploadService,
    actor: &Actor,
    mut form: MultipartForm,
) -> Result<UploadedFile, ApiError> {
    let (mut known, mut file) = (KnownParts::within(uploads.text_bytes()), None);
    while let Some(part) = form.next().await? {
        if part.name().map(field_name) != Some("file") {
            known.add(part).await?;
        } else if file.is_none() {
            file = Some(uploads.store(actor, UploadTarget::NewDocument, part.into_file()).await?);
        } else {
            return Err(ApiError::invalid_field("file", "must be given once"));
        }
    }
    validate::<FileForm>(&Value::Object(known.texts))?;
    file.ok_or_else(|| ApiError::invalid_field("file", "is required: the file to upload"))
}

/// Those parts besides the file that are known.
struct KnownParts {
    budget: PartBudget,
    texts: Map<String, Value>,
}

impl KnownParts {
    /// Of a form whose parts besides the file have at most `limit` bytes in sum.
    fn within(limit: u64) -> Self {
        Self { budget: PartBudget::within(limit), texts: Map::new() }
    }

    /// Reads a part, and keeps what it says if it is known, as far as that can matter.
    async fn add(&mut self, part: MultipartPart<'_>) -> Result<(), ApiError> {
        let name = part.name().map(field_name).unwrap_or_default();
        let known = KNOWN.into_iter().find(|known| *known == name);
        let bytes = self.budget.read(part, if known.is_some() { TEXT } else { 0 }).await?;
        if let Some(name) = known {
            // What holds NUL is refused by its field.
            self.texts.insert(name.to_owned(), Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        }
        Ok(())
    }
}

/// The field that a part is one of: the fields of an object are written as `expires_after[seconds]`.
fn field_name(part: &str) -> &str {
    part.split('[').next().unwrap_or_default()
}

/// A file that was just uploaded, for the documentation.
fn uploaded_example() -> Value {
    let mut file = example();
    file["status"] = json!("uploaded");
    file
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::header::CONTENT_TYPE};

    use super::*;

    /// What is kept of a form with these parts when it may have so many bytes.
    async fn kept(parts: &[(&str, &str)], limit: u64) -> Result<Map<String, Value>, &'static str> {
        let part = |(name, text): &(&str, &str)| {
            format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
        };
        let body = parts.iter().map(part).chain(["--x--\r\n".to_owned()]).collect::<String>();
        let request = axum::http::Request::builder().header(CONTENT_TYPE, "multipart/form-data; boundary=x");
        let mut form = MultipartForm::of(request.body(Body::from(body)).unwrap()).await.ok().unwrap();
        let mut known = KnownParts::within(limit);
        while let Some(part) = form.next().await.ok().unwrap() {
            known.add(part).await.map_err(|error| error.code)?;
        }
        Ok(known.texts)
    }

    #[tokio::test]
    async fn nothing_is_kept_of_parts_that_nobody_knows_and_all_of_them_count() {
        let long = "x".repeat(2 * TEXT);
        let long = long.as_str();
        let parts = [("purpose", "user_data"), (long, "a"), ("other", long), ("expires_after[x]", long)];
        let texts = kept(&parts, 10_000).await.unwrap();
        let expected = json!({"purpose": "user_data", "expires_after": long[..TEXT]});
        assert_eq!(Value::Object(texts), expected);
        assert_eq!(kept(&parts, 4_000).await, Err("too_large"));
        assert_eq!(kept(&[("other", long)], 1_000).await, Err("too_large"), "an unknown one too");
    }

    #[test]
    fn a_file_has_a_purpose_and_no_end() {
        let wrong = |body: Value| {
            let error = validate::<FileForm>(&body).err()?;
            Some(error.fields.into_iter().map(|field| field.path).collect::<Vec<_>>())
        };
        for purpose in ["assistants", "user_data"] {
            assert_eq!(wrong(json!({"purpose": purpose, "other": "x"})), None);
        }
        assert_eq!(wrong(json!({})), Some(vec!["purpose".to_owned()]));
        assert_eq!(wrong(json!({"purpose": "fine-tune"})), Some(vec!["purpose".to_owned()]));
        let ends = json!({"purpose": "assistants", field_name("expires_after[anchor]"): "created_at"});
        assert_eq!(wrong(ends), Some(vec!["expires_after".to_owned()]));
    }
}
