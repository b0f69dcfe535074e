//! Prompts.

use axum::{extract::State, http::Uri};
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{PromptId, UserId},
    model::prompt::Prompt,
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::users::NullBody;
use crate::{
    auth::Caller,
    error::ApiError,
    extract::{NamePart, PathId, ValidJson, parameter},
    idempotency::{CreateRequest, creation_response, json_encoder},
    openapi::{ApiRouter, SuccessResponse, routes},
    response::{ApiResult, Paging, data, list_by},
    services::{
        edits::EditBase,
        prompts::{FormerTexts, NewPrompt, PromptChange, PromptService},
    },
};

/// Rows that a list without a limit reads at a time: a template may be long.
const PAGE: u32 = 20;

pub(crate) fn router() -> ApiRouter {
    ApiRouter::new().routes(routes!(index, create)).routes(routes!(find, change, remove))
}

/// A prompt.
#[derive(Serialize, ToSchema)]
#[schema(as = Prompt)]
#[serde(rename_all = "camelCase")]
struct PromptView {
    /// Its id.
    #[schema(value_type = String)]
    id: PromptId,
    /// Its owner's id.
    #[schema(value_type = String)]
    user_id: UserId,
    /// What it is called.
    name: String,
    /// The text, in which `{name}` stands for a variable's value, `{{` for `{` and `}}` for `}`.
    template: String,
    /// The names of the variables that the template takes.
    #[serde(rename = "input_variables")]
    input_variables: Vec<String>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<Prompt> for PromptView {
    fn from(prompt: Prompt) -> Self {
        let Prompt { id, owner, name, template, input_variables, created_at, updated_at } = prompt;
        let (user_id, input_variables) = (owner.creator(), input_variables.0);
        Self { id, user_id, name, template, input_variables, created_at, updated_at }
    }
}

fn example() -> Value {
    json!({
        "id": "019a8f41-7d20-7b6a-9c11-5e8f0a2b4c3d",
        "userId": "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55",
        "name": "Caretaker",
        "template": "You are the caretaker of {house}. Answer in one sentence: {input}",
        "input_variables": ["house", "input"],
        "createdAt": "2026-01-31T08:05:00.000000+00:00",
        "updatedAt": "2026-01-31T08:05:00.000000+00:00",
    })
}

/// Create a prompt
///
/// Makes a prompt, whose template and variables have to agree. Agents take it by its id, as `promptId`.
#[utoipa::path(
    post,
    path = "/prompts",
    tag = "Prompts",
    operation_id = "createPrompt",
    request_body(content = NewPrompt, example = json!({
        "name": "Caretaker",
        "template": "You are the caretaker of {house}. Answer in one sentence: {input}",
        "input_variables": ["house", "input"],
    })),
    responses((
        status = 200,
        description = "The new prompt",
        body = inline(SuccessResponse<PromptView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn create(
    State(prompts): State<PromptService>,
    caller: Caller,
    CreateRequest { body, once }: CreateRequest<NewPrompt>,
) -> ApiResult {
    let show = json_encoder(|prompt: &Prompt| Ok(PromptView::from(prompt.clone())));
    prompts.create(&caller.actor(), body, once, show).await.map(creation_response)
}

/// List your prompts
///
/// Shows every prompt, newest first.
#[utoipa::path(
    get,
    path = "/prompts",
    tag = "Prompts",
    operation_id = "listPrompts",
    params(("name" = Option<String>, Query, description = "Only those whose names have this somewhere, in whichever case", max_length = 1_000)),
    responses((
        status = 200,
        description = "Your prompts",
        body = inline(SuccessResponse<Vec<PromptView>>),
        example = json!({"success": true, "data": [example()]}),
    )),
)]
#[handler]
async fn index(
    State(prompts): State<PromptService>,
    caller: Caller,
    paging: Paging,
    NamePart(name): NamePart,
) -> ApiResult {
    list_by(PAGE, paging, move |before, limit| {
        let (prompts, actor, name) = (prompts.clone(), caller.actor(), name.clone());
        async move {
            let prompts = prompts.list(&actor, &name, before, limit).await?;
            let row = |prompt: Prompt| (*prompt.id.as_uuid(), PromptView::from(prompt));
            Ok(prompts.into_iter().map(row).collect())
        }
    })
    .await
}

/// Get a prompt
///
/// Shows one prompt.
#[utoipa::path(
    get,
    path = "/prompts/{id}",
    tag = "Prompts",
    operation_id = "getPrompt",
    params(("id" = String, Path, description = "The prompt's id")),
    responses((
        status = 200,
        description = "The prompt",
        body = inline(SuccessResponse<PromptView>),
        example = json!({"success": true, "data": example()}),
    )),
)]
#[handler]
async fn find(
    State(prompts): State<PromptService>,
    caller: Caller,
    PathId(id): PathId<PromptId>,
) -> ApiResult {
    Ok(data(PromptView::from(prompts.find(&caller.actor(), id).await?)))
}

/// Change a prompt
///
/// Changes what is given and leaves the rest as it is. The template and the variables have to agree afterwards: give both to
/// add, remove or rename a variable. Agents that use the prompt are told the new text from the next call on.
#[utoipa::path(
    patch,
    path = "/prompts/{id}",
    tag = "Prompts",
    operation_id = "updatePrompt",
    params(("id" = String, Path, description = "The prompt's id")),
    request_body(content = PromptChange, example = json!({
        "template": "You are the caretaker of {house}. Answer in {language}: {input}",
        "input_variables": ["house", "language", "input"],
    })),
    responses((
        status = 200,
        description = "The prompt as it is now",
        body = inline(SuccessResponse<PromptView>),
        example = json!({"success": true, "data": changed_example()}),
    )),
)]
#[handler]
async fn change(
    State(prompts): State<PromptService>,
    caller: Caller,
    PathId(id): PathId<PromptId>,
    ValidJson(change): ValidJson<PromptChange>,
) -> ApiResult {
    Ok(data(PromptView::from(prompts.change(&caller.actor(), id, change, EditBase::Present).await?)))
}

fn changed_example() -> Value {
    let mut prompt = example();
    prompt["template"] = json!("You are the caretaker of {house}. Answer in {language}: {input}");
    prompt["input_variables"] = json!(["house", "language", "input"]);
    prompt["updatedAt"] = json!("2026-01-31T08:07:12.250000+00:00");
    prompt
}

/// Delete a prompt
///
/// Deletes a prompt. Agents that used it have none from then on: their `promptId` is null. Earlier versions of agents keep what it said, so that
/// they can be asked and restored; with `erase` they keep nothing of it, and can be neither. That can be asked for after it was deleted, too.
#[utoipa::path(
    delete,
    path = "/prompts/{id}",
    tag = "Prompts",
    operation_id = "deletePrompt",
    params(
        ("id" = String, Path, description = "The prompt's id"),
        ("erase" = Option<bool>, Query, description = "Whether what it says is erased from the earlier versions of agents too; not, when left out"),
    ),
    responses((
        status = 200,
        description = "It is deleted",
        body = inline(SuccessResponse<NullBody>),
        example = json!({"success": true, "data": null}),
    )),
)]
#[handler]
async fn remove(
    State(prompts): State<PromptService>,
    caller: Caller,
    PathId(id): PathId<PromptId>,
    uri: Uri,
) -> ApiResult {
    let former = match parameter(&uri, "erase").as_deref() {
        None | Some("false") => FormerTexts::Kept,
        Some("true") => FormerTexts::Erased,
        Some(_) => return Err(ApiError::invalid_field("erase", "must be true or false")),
    };
    prompts.delete(&caller.actor(), id, former).await?;
    Ok(data(NullBody))
}
