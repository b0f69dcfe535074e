//! What holds for every operation of a kind. The kind is told from what the operation is, and where that says nothing, from
//! its id: `list…` pages, `create…` and `upload…` take an `Idempotency-Key`. The tests hold each of these against the
//! running service, so that a name which promises something else than the handler does is found.

use std::collections::BTreeMap;

use serde_json::json;
use utoipa::openapi::{
    OpenApi, PathItem, Ref, RefOr, Required, Response,
    path::{Operation, Parameter, ParameterBuilder, ParameterIn},
    schema::{AdditionalProperties, ArrayItems, Object, ObjectBuilder, Schema, Type},
};

use super::failures::{self, SharedFailure};

/// The schemas of the components, by name.
type SchemaMap = BTreeMap<String, RefOr<Schema>>;

/// What is outside of this and of [`ADMIN`] is neither limited nor needs the stores.
const VERSION: &str = "/api/v1/";
/// What answers in OpenAI's form.
const OPENAI: &str = "/v1/";
/// What is for admins only.
const ADMIN: &str = "/admin/";

/// Adds to each operation what all of its kind have.
pub(crate) fn finish(document: &mut OpenApi) {
    let schemas =
        document.components.as_ref().map(|components| components.schemas.clone()).unwrap_or_default();
    for (path, item) in &mut document.paths.paths {
        for operation in operations(item) {
            finish_operation(path, operation, &schemas);
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, options, head, patch, trace, .. } = item;
    [get, put, post, delete, options, head, patch, trace].into_iter().flatten()
}

fn finish_operation(path: &str, operation: &mut Operation, schemas: &SchemaMap) {
    let id = operation.operation_id.clone().unwrap_or_default();
    if id.starts_with("list") {
        add_paging(operation, schemas);
    }
    if id.starts_with("create") || id.starts_with("upload") || KEYED.contains(&id.as_str()) {
        add_idempotency(operation);
    }
    // `security(())` is written as one alternative that asks for nothing; no alternative at all is clearer to readers.
    let nothing = utoipa::openapi::security::SecurityRequirement::default();
    if let Some(security) = &mut operation.security {
        security.retain(|requirement| *requirement != nothing);
    }
    let public = operation.security.as_ref().is_some_and(Vec::is_empty);
    if !public {
        add_workspace(operation);
    }
    let body = operation.request_body.as_ref();
    let body_has_ids = body.is_some_and(|body| {
        body.content
            .values()
            .filter_map(|content| content.schema.as_ref())
            .any(|schema| has_ids(schema, schemas))
    });
    let query = || parameters(operation).filter(|parameter| parameter.parameter_in == ParameterIn::Query);
    let has_query = query().next().is_some();
    let query_has_ids = query().any(|parameter| is_id(&parameter.name));
    let for_admins = path.starts_with(ADMIN);
    let for_openai_clients = path.starts_with(OPENAI);
    let limited = for_admins || for_openai_clients || path.starts_with(VERSION);
    let has_body = body.is_some();
    let idempotent = parameters(operation).any(|parameter| parameter.name == IDEMPOTENCY_KEY);
    // Of two with one status, the first one is described.
    let can_give: [(bool, SharedFailure); 14] = [
        (has_body, failures::MALFORMED),
        (!public, failures::UNAUTHORIZED),
        (for_admins, failures::FORBIDDEN),
        (!public, failures::NOT_ALLOWED),
        // Whoever signs in may name a workspace that is none of theirs, and an API token one that it does not belong to.
        (!public || path.contains('{') || query_has_ids || body_has_ids, failures::NOT_FOUND),
        (has_body, failures::TOO_SLOW),
        (idempotent, failures::CONFLICT),
        (has_body, failures::TOO_LARGE),
        (has_body, failures::UNSUPPORTED),
        (!public || has_body || has_query, failures::INVALID),
        (limited, failures::TOO_MANY),
        (true, failures::INTERNAL),
        (limited && (has_body || STORING.contains(&id.as_str())), failures::FULL),
        (limited, failures::UNAVAILABLE),
    ];
    let responses = &mut operation.responses.responses;
    for (_, failure) in can_give.into_iter().filter(|(can, _)| *can) {
        if for_openai_clients {
            let (status, reference) = failure.openai_reference();
            responses.entry(status.to_owned()).or_insert(reference);
        } else {
            responses.entry(failure.status.to_owned()).or_insert_with(|| failure.reference());
        }
    }
    let form = if for_openai_clients { failures::OPENAI_FAILURE } else { failures::FAILURE };
    for (status, response) in responses {
        if let RefOr::T(response) = response {
            failures::complete(status, response, form);
        }
    }
}

/// What whoever signs in may say of where they are.
fn add_workspace(operation: &mut Operation) {
    let description = "The workspace that the request is about, by its id, of which you are a member; your own when left out. An API token \
        belongs to one, and needs no such header.";
    let id = ObjectBuilder::new().schema_type(Type::String);
    add_parameter(operation, parameter("X-Workspace", ParameterIn::Header, description, id));
}

fn parameters(operation: &Operation) -> impl Iterator<Item = &Parameter> {
    operation.parameters.iter().flatten()
}

/// Adds a parameter, unless the handler describes it itself.
fn add_parameter(operation: &mut Operation, parameter: Parameter) {
    let parameters = operation.parameters.get_or_insert_default();
    if parameters.iter().all(|known| known.name != parameter.name) {
        parameters.push(parameter);
    }
}

fn parameter(name: &str, place: ParameterIn, description: &str, schema: ObjectBuilder) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema.build()))
        .build()
}

fn success(operation: &mut Operation) -> Option<&mut Response> {
    match operation.responses.responses.get_mut("200") {
        Some(RefOr::T(response)) => Some(response),
        Some(RefOr::Ref(_)) | None => None,
    }
}

fn add_paging(operation: &mut Operation, schemas: &SchemaMap) {
    let limit = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(200));
    let description = "How many to give. Without it all are given, but no `nextCursor`.";
    add_parameter(operation, parameter("limit", ParameterIn::Query, description, limit));
    let cursor = ObjectBuilder::new().schema_type(Type::String);
    let description = "The `nextCursor` of the page before.";
    add_parameter(operation, parameter("cursor", ParameterIn::Query, description, cursor));

    let contents = success(operation).map(|response| response.content.values_mut());
    for schema in contents.into_iter().flatten().filter_map(|content| content.schema.as_mut()) {
        // An envelope among the components is not this operation's own, so a copy of it is extended.
        if let Some(Schema::Object(object)) = resolve(schema, schemas) {
            let mut object = object.clone();
            let description = "Send it as `cursor` to get the next page. Absent on the last one.";
            let cursor =
                ObjectBuilder::new().schema_type(Type::String).description(Some(description)).build();
            object.properties.entry("nextCursor".to_owned()).or_insert_with(|| cursor.into());
            *schema = RefOr::T(Schema::Object(object));
        }
    }
}

/// Operations that take an [`IDEMPOTENCY_KEY`] although their ids do not say so.
const KEYED: [&str; 10] = [
    "importEvaluationCases",
    "openaiAddVectorStoreFile",
    "openaiCreateFileBatch",
    "openaiCreateVectorStore",
    "openaiUploadFile",
    "replaceDocumentFile",
    "rotateWebhookSecret",
    "runEvaluation",
    "runSource",
    "testWebhook",
];
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// Operations that need room although they have no body. What ends something, or takes it away, needs none.
const STORING: [&str; 6] = [
    "ingestDocument",
    "putCollectionDocument",
    "replayWebhookDelivery",
    "restoreAgentVersion",
    "rotateWebhookSecret",
    "testWebhook",
];

fn add_idempotency(operation: &mut Operation) {
    let key = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(255))
        .pattern(Some("^[ -~]+$"))
        .examples([json!("5b0c7c9e-6d5f-4c1b-9f5e-0f2f4f1c9a11")]);
    let description = "1 to 255 printable ASCII characters of your own, sent once. The same request with the same key within 24 hours gets the \
        first answer again.";
    add_parameter(operation, parameter(IDEMPOTENCY_KEY, ParameterIn::Header, description, key));
    if let Some(response) = success(operation) {
        let description = "`true` when this answer was given before to the same `Idempotency-Key`.";
        let header = failures::header(Type::String, description);
        response.headers.insert("Idempotent-Replayed".to_owned(), header);
    }
}

fn resolve<'a>(schema: &'a RefOr<Schema>, schemas: &'a SchemaMap) -> Option<&'a Schema> {
    match schema {
        RefOr::T(schema) => Some(schema),
        RefOr::Ref(Ref { ref_location, .. }) => {
            let name = ref_location.strip_prefix("#/components/schemas/")?;
            match schemas.get(name)? {
                RefOr::T(schema) => Some(schema),
                RefOr::Ref(_) => None,
            }
        }
    }
}

/// Whether a field or parameter names another thing. Agents' tags do without saying so.
fn is_id(name: &str) -> bool {
    name.ends_with("Id") || name.ends_with("Ids") || name == "tags"
}

/// Whether a body names other things by their ids.
fn has_ids(schema: &RefOr<Schema>, schemas: &SchemaMap) -> bool {
    // Schemas may contain themselves; no body of ours is nested deeper.
    within(schema, schemas, 8)
}

fn within(schema: &RefOr<Schema>, schemas: &SchemaMap, depth: u8) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    let any = |items: &[RefOr<Schema>]| items.iter().any(|item| within(item, schemas, depth));
    match resolve(schema, schemas) {
        Some(Schema::Object(Object { properties, additional_properties, .. })) => {
            let other = match additional_properties.as_deref() {
                Some(AdditionalProperties::RefOr(schema)) => within(schema, schemas, depth),
                Some(AdditionalProperties::FreeForm(_)) | None => false,
            };
            other || properties.iter().any(|(name, schema)| is_id(name) || within(schema, schemas, depth))
        }
        Some(Schema::OneOf(one)) => any(&one.items),
        Some(Schema::AllOf(all)) => any(&all.items),
        Some(Schema::AnyOf(some)) => any(&some.items),
        Some(Schema::Array(array)) => match &array.items {
            ArrayItems::RefOrSchema(item) => within(item, schemas, depth),
            ArrayItems::False => false,
        },
        Some(_) | None => false,
    }
}
