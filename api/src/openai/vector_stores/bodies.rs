//! What is sent to vector stores.

use std::collections::HashSet;

use lectern_agents::search::MetadataFilter;
use lectern_derive::RequestBody;
use lectern_shared::{
    ids::DocumentId,
    model::document::{SplitterConfig, SplitterType},
};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    super::{
        entries::{attributes, metadata},
        files::expiry,
    },
    schema::{QuerySchema, TypedFilterSchema},
};
use crate::{
    fields::{FieldRule, FromFields, GivenId, GivenIds, JsonFields, required},
    services::{
        collections::{CollectionDraft, FileAddition},
        documents::{AttributeValues, FileAttributes},
        search::expression,
    },
};

/// What a vector store is called that has no name.
const NAMELESS: &str = "Untitled";
/// Most files at once: others wait until all of them are there.
const FILES: usize = 500;
/// Most queries at once, and the most characters that they have together.
const QUERIES: usize = 100;
const QUESTION: usize = 10_000;

/// A new vector store.
#[derive(RequestBody, ToSchema)]
#[schema(as = OpenAiNewVectorStore)]
#[body(after = check_store)]
pub(super) struct NewVectorStore {
    /// What to call it; `Untitled` when left out.
    #[schema(max_length = 1_000)]
    name: Option<String>,
    /// Anything worth saying of it.
    #[schema(max_length = 10_000)]
    description: Option<String>,
    /// Files that are to be in it.
    #[schema(value_type = Option<Vec<String>>, max_items = 500)]
    file_ids: Option<GivenIds<DocumentId>>,
    /// How to cut these files into passages. `auto`, as when left out, leaves them as they are.
    #[schema(value_type = Option<ChunkingSchema>)]
    #[body(with = chunking)]
    chunking_strategy: Option<SplitterConfig>,
    /// Texts of your own: at most 16, with keys of at most 64 characters and values of at most 512.
    #[schema(value_type = Option<Object>)]
    #[body(with = metadata)]
    metadata: Option<Map<String, Value>>,
    /// Not taken: a vector store is kept until it is deleted.
    #[schema(value_type = Option<Object>)]
    #[body(with = expiry)]
    #[expect(dead_code, reason = "it is refused")]
    expires_after: Option<Map<String, Value>>,
}

impl From<NewVectorStore> for CollectionDraft {
    fn from(new: NewVectorStore) -> Self {
        let NewVectorStore { name, description, file_ids, chunking_strategy, metadata, .. } = new;
        let attributes = FileAttributes::added(None, chunking_strategy);
        Self {
            name: named(name).unwrap_or_else(|| NAMELESS.to_owned()),
            description: description.unwrap_or_default(),
            metadata,
            files: file_ids.map_or_else(Vec::new, |ids| additions(ids, &attributes)),
        }
    }
}

fn check_store(store: &NewVectorStore, fields: &mut JsonFields<'_>) {
    check_once(fields, "file_ids", store.file_ids.iter().flatten().flatten().copied());
}

/// Refuses files of which one is named twice: what is said of it could be two things.
fn check_once(fields: &mut JsonFields<'_>, name: &str, mut ids: impl Iterator<Item = DocumentId>) {
    let mut seen = HashSet::new();
    if !ids.all(|id| seen.insert(id)) {
        fields.refuse(name, "must not name a file twice");
    }
}

/// A name that says something.
fn named(name: Option<String>) -> Option<String> {
    name.filter(|name| !name.trim().is_empty())
}

/// Files that get the same attributes. An id that cannot be one stands for itself: it is not found.
fn additions(ids: GivenIds<DocumentId>, attributes: &FileAttributes) -> Vec<FileAddition> {
    let ids: Vec<GivenId<DocumentId>> = match ids {
        Ok(ids) => ids.into_iter().map(Ok).collect(),
        Err(invalid) => vec![Err(invalid)],
    };
    let addition = |document| FileAddition { document, attributes: attributes.clone() };
    ids.into_iter().map(addition).collect()
}

/// What is to be different about a vector store. What is left out stays as it is.
#[derive(RequestBody, ToSchema)]
#[schema(as = OpenAiVectorStoreChange)]
pub(super) struct VectorStoreChange {
    /// What to call it.
    #[schema(max_length = 1_000)]
    name: Option<String>,
    /// Texts of your own, all of them: they take the place of the earlier ones. Null for none.
    #[schema(value_type = Option<Object>)]
    #[body(with = changed_metadata)]
    metadata: MetadataChange,
    /// Not taken: a vector store is kept until it is deleted.
    #[schema(value_type = Option<Object>)]
    #[body(with = expiry)]
    #[expect(dead_code, reason = "it is refused")]
    expires_after: Option<Map<String, Value>>,
}

/// The texts that take the place of the earlier ones, if any do.
#[derive(Default)]
struct MetadataChange(Option<Map<String, Value>>);

impl VectorStoreChange {
    /// The new name and metadata, where they are given.
    pub(super) fn into_parts(self) -> (Option<String>, Option<Map<String, Value>>) {
        (named(self.name), self.metadata.0)
    }
}

/// A file that is to be in a vector store.
#[derive(RequestBody, ToSchema)]
#[schema(as = OpenAiNewVectorStoreFile)]
pub(super) struct NewStoreFile {
    /// The file.
    #[schema(value_type = String)]
    file_id: GivenId<DocumentId>,
    /// Values that become part of the metadata of its document: strings, numbers and booleans, at most 16.
    #[schema(value_type = Option<Object>)]
    #[body(with = attributes)]
    attributes: Option<Map<String, Value>>,
    /// How to cut it into passages: if it is cut in another way now, it is ingested again. `auto`, as when left out, leaves it as it is.
    #[schema(value_type = Option<ChunkingSchema>)]
    #[body(with = chunking)]
    chunking_strategy: Option<SplitterConfig>,
}

impl From<NewStoreFile> for FileAddition {
    fn from(NewStoreFile { file_id, attributes, chunking_strategy }: NewStoreFile) -> Self {
        let attributes = FileAttributes::added(attributes, chunking_strategy);
        Self { document: file_id, attributes }
    }
}

/// Attributes of a file. What is left out stays as it is.
#[derive(RequestBody, ToSchema)]
#[schema(as = OpenAiVectorStoreFileChange)]
pub(super) struct StoreFileChange {
    /// All of its attributes, in the place of the earlier ones: the strings, numbers and booleans in its document's metadata. Null for none.
    #[schema(value_type = Option<Object>)]
    #[body(with = changed_attributes)]
    attributes: AttributeValues,
}

impl From<StoreFileChange> for FileAttributes {
    fn from(change: StoreFileChange) -> Self {
        Self { values: change.attributes, splitter: None }
    }
}

/// Files that are to be in a vector store: `file_ids`, or `files` with attributes of their own.
#[derive(RequestBody, ToSchema)]
#[schema(as = OpenAiNewFileBatch)]
#[body(after = check_batch)]
pub(super) struct NewFileBatch {
    /// The files.
    #[schema(value_type = Option<Vec<String>>, max_items = 500)]
    file_ids: Option<GivenIds<DocumentId>>,
    /// The files, each with what is said of it.
    #[schema(value_type = Option<Vec<NewStoreFile>>, max_items = 500)]
    #[body(with = batch_files)]
    files: Option<Vec<NewStoreFile>>,
    /// What `file_ids` get: values that become part of the metadata of their documents.
    #[schema(value_type = Option<Object>)]
    #[body(with = attributes)]
    attributes: Option<Map<String, Value>>,
    /// How to cut `file_ids` into passages.
    #[schema(value_type = Option<ChunkingSchema>)]
    #[body(with = chunking)]
    chunking_strategy: Option<SplitterConfig>,
}

impl From<NewFileBatch> for Vec<FileAddition> {
    fn from(NewFileBatch { file_ids, files, attributes, chunking_strategy }: NewFileBatch) -> Self {
        let attributes = FileAttributes::added(attributes, chunking_strategy);
        let mut added = file_ids.map_or_else(Vec::new, |ids| additions(ids, &attributes));
        added.extend(files.into_iter().flatten().map(FileAddition::from));
        added
    }
}

fn check_batch(batch: &NewFileBatch, fields: &mut JsonFields<'_>) {
    let given =
        |name: &str| fields.get(name).and_then(Value::as_array).is_some_and(|files| !files.is_empty());
    match (given("file_ids"), given("files")) {
        (true, true) => fields.refuse("files", "cannot be given together with file_ids"),
        (false, false) if batch.file_ids.is_some() || batch.files.is_some() || is_bare(fields) => {
            fields.refuse("file_ids", "must have at least one file, or files must");
        }
        _ => {}
    }
    check_once(fields, "file_ids", batch.file_ids.iter().flatten().flatten().copied());
    check_once(fields, "files", batch.files.iter().flatten().filter_map(|file| file.file_id.ok()));
}

/// Whether neither is there: what is of a wrong type was said already.
fn is_bare(fields: &JsonFields<'_>) -> bool {
    fields.get("file_ids").is_none() && fields.get("files").is_none()
}

fn batch_files(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Vec<NewStoreFile>> {
    fields.objects(rule.name, FILES, NewStoreFile::from_fields)
}

/// What to search for in a vector store.
#[derive(RequestBody, ToSchema)]
#[schema(as = OpenAiVectorStoreSearch)]
pub(super) struct StoreSearch {
    /// The question; several texts are searched for as one.
    #[schema(value_type = QuerySchema)]
    #[body(with = queries)]
    pub(super) query: Vec<String>,
    /// Only files whose attributes meet it are searched.
    #[schema(value_type = Option<TypedFilterSchema>)]
    #[body(with = expression::typed)]
    pub(super) filters: MetadataFilter,
    /// The most passages that are wanted; 10 when left out.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 50)]
    #[body(default = 10)]
    pub(super) max_num_results: usize,
    /// How the passages are judged.
    #[expect(dead_code, reason = "it has no effect, and is described")]
    ranking_options: Option<RankingOptions>,
}

/// How passages are judged. All of it is without effect: there is one ranker.
#[derive(RequestBody, ToSchema)]
#[schema(as = OpenAiRankingOptions)]
pub(super) struct RankingOptions {
    /// Without effect: scores tell the order of the passages of one answer, and the best may have a low one.
    #[schema(minimum = 0, maximum = 1)]
    #[expect(dead_code, reason = "there is no score that it could be held against")]
    score_threshold: Option<f64>,
}

fn queries(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Vec<String>> {
    let queries = match fields.get(rule.name) {
        None => {
            fields.refuse(rule.name, "is required: a string, or an array of strings");
            return None;
        }
        Some(Value::String(query)) => vec![query.as_str()],
        Some(_) => fields.texts(rule.name, QUERIES, "strings")?,
    };
    let length: usize = queries.iter().map(|query| query.chars().count()).sum();
    if length > QUESTION {
        fields.refuse(rule.name, format_args!("must have at most {QUESTION} characters"));
    }
    if queries.iter().all(|query| query.trim().is_empty()) {
        fields.refuse(rule.name, "must not be empty");
    }
    Some(queries.into_iter().map(str::to_owned).collect())
}

/// How to cut a text into passages.
#[derive(ToSchema)]
#[schema(as = OpenAiChunking)]
#[serde(tag = "type", rename_all = "lowercase")]
#[expect(dead_code, reason = "it is written down for the documentation only")]
enum ChunkingSchema {
    /// As it is cut without this.
    Auto,
    /// Into passages of at most so many tokens.
    Static {
        /// The sizes.
        #[serde(rename = "static")]
        sizes: StaticChunking,
    },
}

/// Sizes of passages, in tokens.
#[derive(RequestBody, ToSchema)]
#[schema(as = OpenAiStaticChunking)]
#[body(after = check_overlap)]
pub(super) struct StaticChunking {
    /// The most that a passage holds.
    #[schema(value_type = u32, minimum = 100, maximum = 4_096)]
    max_chunk_size_tokens: usize,
    /// How much of one passage's end the next one repeats: at most half of its size.
    #[schema(value_type = u32, minimum = 0, maximum = 2_048)]
    chunk_overlap_tokens: usize,
}

fn check_overlap(chunking: &StaticChunking, fields: &mut JsonFields<'_>) {
    let sizes = ["max_chunk_size_tokens", "chunk_overlap_tokens"];
    let given = sizes.iter().all(|name| fields.get(name).is_some_and(Value::is_u64));
    if given && chunking.chunk_overlap_tokens > chunking.max_chunk_size_tokens / 2 {
        fields.refuse("chunk_overlap_tokens", "must be at most half of max_chunk_size_tokens");
    }
}

/// How a text is to be cut; none for `auto`.
fn chunking(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<SplitterConfig> {
    fields.nested(rule.name, read_chunking).flatten()
}

fn read_chunking(fields: &mut JsonFields<'_>) -> Option<SplitterConfig> {
    match fields.get("type").and_then(Value::as_str) {
        Some("auto") => None,
        Some("static") => {
            let sizes: StaticChunking = required(fields, &FieldRule::named("static"));
            let size = |tokens: usize| u32::try_from(tokens).unwrap_or(u32::MAX);
            Some(SplitterConfig {
                r#type: SplitterType::Token,
                chunk_size: size(sizes.max_chunk_size_tokens),
                chunk_overlap: size(sizes.chunk_overlap_tokens),
                given: None,
            })
        }
        Some(_) | None => {
            fields.refuse("type", "must be auto or static");
            None
        }
    }
}

/// What is given takes the place of the earlier texts, and null is none.
fn changed_metadata(fields: &mut JsonFields<'_>, rule: &FieldRule) -> MetadataChange {
    let given = fields.given(rule.name);
    MetadataChange(given.then(|| metadata(fields, rule).unwrap_or_default()))
}

/// What is given takes the place of the earlier attributes, and null is none.
fn changed_attributes(fields: &mut JsonFields<'_>, rule: &FieldRule) -> AttributeValues {
    if !fields.given(rule.name) {
        return AttributeValues::Kept;
    }
    AttributeValues::Replaced(attributes(fields, rule).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fields::validate;

    fn wrong<T: FromFields>(body: &Value) -> Vec<String> {
        let error = validate::<T>(body).err();
        error.into_iter().flat_map(|error| error.fields).map(|field| field.path).collect()
    }

    #[test]
    fn a_vector_store_may_say_nothing_and_is_called_something() {
        let draft = CollectionDraft::from(validate::<NewVectorStore>(&json!({})).ok().unwrap());
        assert_eq!((draft.name.as_str(), draft.files.len()), (NAMELESS, 0));
        let named = json!({"name": "Handbooks", "metadata": {"team": "people"}, "unknown": 1});
        let draft = CollectionDraft::from(validate::<NewVectorStore>(&named).ok().unwrap());
        assert_eq!(draft.name, "Handbooks");
        assert_eq!(draft.metadata.map(Value::from), Some(json!({"team": "people"})));
        let files = json!({"file_ids": ["file-abc"], "chunking_strategy": {"type": "auto"}});
        let draft = CollectionDraft::from(validate::<NewVectorStore>(&files).ok().unwrap());
        assert!(draft.files[0].document.is_err(), "it is not found");
        assert_eq!(draft.files[0].attributes, FileAttributes::default());
        assert_eq!(wrong::<NewVectorStore>(&json!({"expires_after": {"days": 1}})), ["expires_after"]);
    }

    #[test]
    fn files_are_few_enough_that_nobody_waits_long_for_them_and_each_is_named_once() {
        let ids = |count: usize| (0..count).map(|_| DocumentId::generate()).collect::<Vec<_>>();
        let [one, other] = [DocumentId::generate(), DocumentId::generate()];
        for (ids, path) in [
            (ids(FILES), None),
            (ids(FILES + 1), Some("file_ids")),
            (vec![one, other], None),
            (vec![one, other, one], Some("file_ids")),
        ] {
            for found in [
                wrong::<NewVectorStore>(&json!({ "file_ids": ids })),
                wrong::<NewFileBatch>(&json!({ "file_ids": ids })),
            ] {
                assert_eq!(found.first().map(String::as_str), path, "{} files", ids.len());
            }
        }
        let files = |ids: &[DocumentId]| {
            let files: Vec<Value> = ids.iter().map(|id| json!({"file_id": id, "attributes": {}})).collect();
            wrong::<NewFileBatch>(&json!({ "files": files }))
        };
        assert!(files(&[one, other]).is_empty());
        assert_eq!(files(&[one, one]), ["files"]);
        assert_eq!(files(&ids(FILES + 1)), ["files"]);
    }

    #[test]
    fn metadata_holds_texts_alone_and_attributes_numbers_and_booleans_too() {
        assert_eq!(wrong::<NewVectorStore>(&json!({"metadata": {"n": 1}})), ["metadata.n"]);
        let with = |attributes: Value| json!({"file_id": DocumentId::generate(), "attributes": attributes});
        assert!(wrong::<NewStoreFile>(&with(json!({"a": "x", "b": 1.5, "c": true}))).is_empty());
        assert_eq!(wrong::<NewStoreFile>(&with(json!({"a": null}))), ["attributes.a"]);
        assert_eq!(wrong::<NewStoreFile>(&json!({})), ["file_id"]);
    }

    #[test]
    fn null_empties_metadata_and_leaving_it_out_keeps_it() {
        let parts = |body: Value| validate::<VectorStoreChange>(&body).ok().unwrap().into_parts();
        assert_eq!(parts(json!({})), (None, None));
        assert_eq!(parts(json!({"name": null, "metadata": null})), (None, Some(Map::new())));
        let (name, metadata) = parts(json!({"name": "a", "metadata": {"b": "c"}}));
        assert_eq!((name.as_deref(), metadata.map(Value::from)), (Some("a"), Some(json!({"b": "c"}))));
    }

    #[test]
    fn null_takes_attributes_away_and_leaving_them_out_keeps_them() {
        let values =
            |body: Value| FileAttributes::from(validate::<StoreFileChange>(&body).ok().unwrap()).values;
        assert_eq!(values(json!({})), AttributeValues::Kept);
        for none in [json!({"attributes": null}), json!({"attributes": {}})] {
            assert_eq!(values(none), AttributeValues::Replaced(Map::new()));
        }
        assert_eq!(wrong::<StoreFileChange>(&json!({"attributes": {"a": null}})), ["attributes.a"]);
    }

    #[test]
    fn a_way_of_cutting_has_sizes_that_fit_each_other() {
        let body = |size: u32, overlap: u32| {
            let sizes = json!({"max_chunk_size_tokens": size, "chunk_overlap_tokens": overlap});
            json!({"file_id": DocumentId::generate(), "chunking_strategy": {"type": "static", "static": sizes}})
        };
        let read = validate::<NewStoreFile>(&body(800, 400)).ok().unwrap();
        let splitter = read.chunking_strategy.unwrap();
        assert_eq!(
            (splitter.r#type, splitter.chunk_size, splitter.chunk_overlap),
            (SplitterType::Token, 800, 400)
        );
        let overlap = "chunking_strategy.static.chunk_overlap_tokens";
        assert_eq!(wrong::<NewStoreFile>(&body(800, 401)), [overlap]);
        assert_eq!(wrong::<NewStoreFile>(&body(99, 0)), ["chunking_strategy.static.max_chunk_size_tokens"]);
        let bare = json!({"file_id": DocumentId::generate(), "chunking_strategy": {"type": "static"}});
        assert_eq!(wrong::<NewStoreFile>(&bare), ["chunking_strategy.static"]);
    }

    #[test]
    fn a_batch_names_its_files_in_one_of_two_ways() {
        let id = DocumentId::generate();
        let both = json!({"file_ids": [id], "files": [{"file_id": id}]});
        assert_eq!(wrong::<NewFileBatch>(&both), ["files"]);
        for nothing in [json!({}), json!({"file_ids": []}), json!({"files": []})] {
            assert_eq!(wrong::<NewFileBatch>(&nothing), ["file_ids"], "{nothing}");
        }
        let bad = json!({"files": [{"file_id": id}, {"attributes": {}}, 3]});
        assert_eq!(wrong::<NewFileBatch>(&bad), ["files.1.file_id", "files.2"]);
        let own = json!({"files": [{"file_id": id, "attributes": {"a": 1}}], "attributes": {"b": 2}});
        let files = Vec::<FileAddition>::from(validate::<NewFileBatch>(&own).ok().unwrap());
        assert_eq!(files[0].attributes, FileAttributes::added(json!({"a": 1}).as_object().cloned(), None));
        let shared = json!({"file_ids": [id], "attributes": {"b": 2}});
        let files = Vec::<FileAddition>::from(validate::<NewFileBatch>(&shared).ok().unwrap());
        assert_eq!(files[0].attributes, FileAttributes::added(json!({"b": 2}).as_object().cloned(), None));
    }

    #[test]
    fn a_search_takes_one_text_or_several() {
        let read = |query: Value| validate::<StoreSearch>(&json!({ "query": query }));
        assert_eq!(read(json!("gate")).ok().unwrap().query, ["gate"]);
        assert_eq!(read(json!(["gate", "door"])).ok().unwrap().query, ["gate", "door"]);
        assert_eq!(read(json!("gate")).ok().unwrap().max_num_results, 10);
        for query in
            [json!(""), json!([]), json!([" "]), json!(1), Value::Null, json!("x".repeat(QUESTION + 1))]
        {
            assert_eq!(wrong::<StoreSearch>(&json!({ "query": query })), ["query"]);
        }
        let least = json!({"query": "x", "ranking_options": {"ranker": "auto", "score_threshold": 0.5}});
        assert!(wrong::<StoreSearch>(&least).is_empty());
        let many = json!({"query": "x", "max_num_results": 51});
        assert_eq!(wrong::<StoreSearch>(&many), ["max_num_results"]);
    }
}
