//! Embeddings: texts as vectors, by the model that documents are searched with.

use std::borrow::Cow;

use axum::{
    Extension, Json,
    extract::State,
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use lectern_derive::{RequestBody, handler};
use serde::Serialize;
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ArrayBuilder, ObjectBuilder, OneOfBuilder, RefOr, Schema, Type},
};

use super::error::unknown_model;
use crate::{
    auth::{Caller, in_force::RequestCredential},
    error::ApiError,
    extract::ValidJson,
    fields::{FieldRule, JsonFields},
    openapi::{ApiRouter, routes},
    response::ApiResult,
    services::embeddings::{EmbeddedTexts, EmbeddingService, TextEmbedder},
};

pub(super) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(create))
}

/// Texts of a request, at most, as OpenAI has it.
const MOST_TEXTS: usize = 2_048;
/// Characters of a text, at most: longer ones are cut by every model long before.
const LONGEST_TEXT: usize = 100_000;

/// Numbers of an answer's vectors, at most.
const MOST_NUMBERS: usize = 2_000_000;

/// Texts that are to become vectors.
#[derive(RequestBody, ToSchema)]
#[schema(as = OpenAiEmbeddingRequest)]
struct EmbeddingRequest {
    /// The service's embedding model.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    model: String,
    /// One text, or several.
    #[schema(value_type = EmbeddingInputSchema)]
    #[body(with = texts)]
    input: Vec<String>,
    /// How vectors are written; `float` when left out.
    #[schema(value_type = Option<EncodingSchema>)]
    #[body(with = encoding)]
    encoding_format: VectorEncoding,
    /// The numbers of a vector: as many as the model's have, and no others.
    #[schema(minimum = 1)]
    dimensions: Option<u32>,
}

/// How a vector is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum VectorEncoding {
    #[default]
    Float,
    /// Little-endian 32-bit numbers in base64.
    Base64,
}

/// How vectors can be written.
struct EncodingSchema;

impl PartialSchema for EncodingSchema {
    fn schema() -> RefOr<Schema> {
        let description =
            "`float`: an array of numbers. `base64`: the same as little-endian 32-bit numbers in base64.";
        let words = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["float", "base64"]));
        words.description(Some(description)).into()
    }
}

impl ToSchema for EncodingSchema {
    fn name() -> Cow<'static, str> {
        "OpenAiEncoding".into()
    }
}

/// One text, or several.
struct EmbeddingInputSchema;

impl PartialSchema for EmbeddingInputSchema {
    fn schema() -> RefOr<Schema> {
        let text = || {
            let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some(r"\S"));
            text.max_length(Some(LONGEST_TEXT))
        };
        let several = ArrayBuilder::new().items(text()).min_items(Some(1)).max_items(Some(MOST_TEXTS));
        let description = "A text, or several. Texts that are longer than the model reads are cut there.";
        OneOfBuilder::new().item(text()).item(several).description(Some(description)).into()
    }
}

impl ToSchema for EmbeddingInputSchema {
    fn name() -> Cow<'static, str> {
        "OpenAiEmbeddingInput".into()
    }
}

/// The vectors of texts.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiEmbeddings)]
struct EmbeddingList {
    /// Always `list`.
    object: &'static str,
    /// A vector for each text, in their order.
    data: Vec<EmbeddingView>,
    /// The model.
    model: String,
    /// What was read.
    usage: EmbeddingUsage,
}

/// The vector of a text.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiEmbedding)]
struct EmbeddingView {
    /// Always `embedding`.
    object: &'static str,
    /// The text's place in the request.
    index: usize,
    /// Of unit length.
    embedding: WrittenVector,
}

/// A vector as it is written.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = OpenAiVector)]
#[serde(untagged)]
enum WrittenVector {
    /// Its numbers.
    Numbers(Vec<f32>),
    /// Little-endian 32-bit numbers in base64.
    Base64(String),
}

/// Tokens of the texts.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiEmbeddingUsage)]
struct EmbeddingUsage {
    /// Tokens that the model read.
    prompt_tokens: usize,
    /// The same.
    total_tokens: usize,
}

fn texts(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Vec<String>> {
    let texts = match fields.get(rule.name) {
        None => {
            fields.refuse(rule.name, "is required: a string, or an array of strings");
            return None;
        }
        Some(Value::String(text)) => vec![text.as_str()],
        Some(Value::Array(items)) if items.iter().any(|item| item.is_number() || item.is_array()) => {
            fields.refuse(rule.name, "must be a string or an array of strings: send text instead of tokens");
            return None;
        }
        Some(_) => fields.texts(rule.name, MOST_TEXTS, "strings")?,
    };
    if texts.is_empty() {
        fields.refuse(rule.name, "must have at least one text");
    }
    if texts.iter().any(|text| text.trim().is_empty()) {
        fields.refuse(rule.name, "must not have empty texts");
    }
    if texts.iter().any(|text| text.chars().count() > LONGEST_TEXT) {
        fields.refuse(rule.name, format_args!("must have texts of at most {LONGEST_TEXT} characters"));
    }
    Some(texts.into_iter().map(str::to_owned).collect())
}

fn encoding(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<VectorEncoding> {
    match fields.get(rule.name)?.as_str() {
        Some("float") => Some(VectorEncoding::Float),
        Some("base64") => Some(VectorEncoding::Base64),
        Some(_) | None => {
            fields.refuse(rule.name, "must be one of float, base64");
            None
        }
    }
}

/// Create embeddings
///
/// Gives each text's vector, as passages of documents have them. `model` is the one that the operator has set; an unknown one is
/// answered with its name. The tokens count towards the month's of the workspace, whose requests are done one after the other. Those that are
/// sent at once wait for that, up to 64 of an account and 64 MiB of texts of a workspace, for at most five minutes; further ones get a 503 with
/// `Retry-After`.
#[utoipa::path(
    post,
    path = "/embeddings",
    tag = "OpenAI-compatible",
    operation_id = "openaiCreateEmbedding",
    request_body(
        content = EmbeddingRequest,
        example = json!({"model": "sentence-transformers/all-MiniLM-L6-v2", "input": ["Who was the captain?"]}),
    ),
    responses((
        status = 200,
        description = "The vectors",
        body = inline(EmbeddingList),
        example = json!({
            "object": "list",
            "data": [{"object": "embedding", "index": 0, "embedding": [0.0625, -0.125, 0.5]}],
            "model": "sentence-transformers/all-MiniLM-L6-v2",
            "usage": {"prompt_tokens": 5, "total_tokens": 5},
        }),
    )),
)]
#[handler]
async fn create(
    State(embeddings): State<EmbeddingService>,
    caller: Caller,
    Extension(opened): Extension<RequestCredential>,
    ValidJson(body): ValidJson<EmbeddingRequest>,
) -> ApiResult<Response> {
    let EmbeddingRequest { model, input, encoding_format, dimensions } = body;
    let embedder = fitting(embeddings.open(&caller.actor()).await?, &model, dimensions)?;
    check_size(input.len(), embedder.dimensions())?;
    let embedded = Box::pin(opened.while_in_force(embedder.embed(input))).await?;
    Ok(Json(EmbeddingList::new(embedded, model, encoding_format)).into_response())
}

/// The model that there is, if it is this one and has such vectors.
fn fitting(
    embedder: Option<TextEmbedder>,
    model: &str,
    dimensions: Option<u32>,
) -> Result<TextEmbedder, ApiError> {
    let Some(embedder) = embedder else {
        return Err(unknown_model(model, " This service has no embedding model."));
    };
    if !embedder.is_called(model) {
        return Err(unknown_model(model, &format!(" The embedding model is `{}`.", embedder.model())));
    }
    let own = embedder.dimensions();
    if dimensions.is_some_and(|asked| usize::try_from(asked) != Ok(own)) {
        let message = format!("must be {own}, or left out: the model has no other vectors");
        return Err(ApiError::invalid_field("dimensions", &message));
    }
    Ok(embedder)
}

/// Refuses more texts than an answer has room for, with vectors of so many numbers.
fn check_size(texts: usize, dimensions: usize) -> Result<(), ApiError> {
    let most = (MOST_NUMBERS / dimensions.max(1)).max(1);
    if texts > most {
        let message =
            format!("must have at most {most} texts, as the model's vectors have {dimensions} numbers");
        return Err(ApiError::invalid_field("input", &message));
    }
    Ok(())
}

impl EmbeddingList {
    fn new(embedded: EmbeddedTexts, model: String, encoding: VectorEncoding) -> Self {
        let EmbeddedTexts { vectors, tokens } = embedded;
        let data = vectors.into_iter().enumerate().map(|(index, vector)| EmbeddingView {
            object: "embedding",
            index,
            embedding: WrittenVector::new(vector, encoding),
        });
        Self {
            object: "list",
            data: data.collect(),
            model,
            usage: EmbeddingUsage { prompt_tokens: tokens, total_tokens: tokens },
        }
    }
}

impl WrittenVector {
    fn new(vector: Vec<f32>, encoding: VectorEncoding) -> Self {
        match encoding {
            VectorEncoding::Float => Self::Numbers(vector),
            VectorEncoding::Base64 => {
                let bytes: Vec<u8> = vector.into_iter().flat_map(f32::to_le_bytes).collect();
                Self::Base64(STANDARD.encode(bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fields::validate;

    fn request(body: &Value) -> Result<EmbeddingRequest, Vec<String>> {
        let wrong = |error: ApiError| error.fields.into_iter().map(|field| field.path).collect();
        validate(body).map_err(wrong)
    }

    #[test]
    fn one_text_and_several_are_read() {
        let one = request(&json!({"model": "m", "input": "Who?", "user": "me"})).ok().unwrap();
        assert_eq!((one.input, one.encoding_format), (vec!["Who?".to_owned()], VectorEncoding::Float));
        let body = json!({"model": "m", "input": ["Who?", "Why?"], "encoding_format": "base64"});
        let several = request(&body).ok().unwrap();
        assert_eq!((several.input.len(), several.encoding_format), (2, VectorEncoding::Base64));
    }

    #[test]
    fn tokens_and_empty_texts_are_refused() {
        for input in
            [json!([1, 2]), json!([[1], [2]]), json!([]), json!(" "), json!(["a", ""]), json!(7), json!(null)]
        {
            let wrong = request(&json!({"model": "m", "input": input})).err().unwrap();
            assert_eq!(wrong, ["input"], "{input}");
        }
        let wrong = request(&json!({"model": "m", "input": "x", "encoding_format": "hex"})).err().unwrap();
        assert_eq!(wrong, ["encoding_format"]);
    }

    #[test]
    fn an_answer_has_no_more_numbers_than_may_be() {
        for (texts, dimensions, is_taken) in
            [(MOST_TEXTS, 384, true), (MOST_TEXTS, 1_024, false), (1_953, 1_024, true), (1, 3_000_000, true)]
        {
            let checked = check_size(texts, dimensions);
            assert_eq!(checked.is_ok(), is_taken, "{texts} of {dimensions}");
            assert!(checked.err().is_none_or(|error| error.fields[0].message.contains("1953 texts")));
        }
    }

    #[test]
    fn base64_holds_the_numbers_as_clients_read_them() {
        let written = WrittenVector::new(vec![1.0, -0.5], VectorEncoding::Base64);
        assert_eq!(written, WrittenVector::Base64("AACAPwAAAL8=".to_owned()));
    }
}
