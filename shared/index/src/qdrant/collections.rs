//! The collections: one for words, one for the vectors of each embedding space, all of every workspace. They are marked with the
//! installation that they belong to, so that two installations cannot mix their passages on one server.

use std::collections::HashMap;

use qdrant_client::qdrant::{
    CollectionInfo, CreateCollection, CreateCollectionBuilder, CreateFieldIndexCollectionBuilder, Distance,
    FieldType, HnswConfigDiffBuilder, Modifier, SparseIndexConfigBuilder, SparseVectorParamsBuilder,
    SparseVectorsConfigBuilder, UpdateCollectionBuilder, UuidIndexParamsBuilder, Value, VectorParamsBuilder,
    vectors_config::Config,
};
use uuid::Uuid;

use super::{
    client::{QdrantClient, QdrantErrorKind, QdrantFailure, QdrantRetryPolicy},
    points::{TEXT, field},
};

/// The oldest server that does what is needed here. 1.18.0 can hide a living point from filtered searches while it optimizes
/// (<https://github.com/qdrant/qdrant/pull/9116>).
const OLDEST: (u64, u64, u64) = (1, 18, 1);
/// Where a collection says whose it is.
const INSTANCE: &str = "lectern_instance";
/// Links of a vector to any others (`m`), and in workspaces that are a small part of all as many to others of theirs (`payload_m`). Every search
/// is of one workspace, but without the former Qdrant remembers a single way into the vectors of each: a search that leaves that one vector
/// out, or comes after its removal, finds nothing. A search follows no more links of a vector than `m` allows it, so one alone is no help.
const LINKS: u64 = 16;

/// The names of an installation's collections.
#[derive(Clone, Debug)]
pub(super) struct CollectionNames {
    pub(super) lexical: String,
    dense: String,
}

impl CollectionNames {
    pub(super) fn new(prefix: &str) -> Self {
        Self { lexical: format!("{prefix}_lexical"), dense: format!("{prefix}_dense_") }
    }

    /// The collection of an embedding space.
    pub(super) fn dense(&self, space: Uuid) -> String {
        format!("{}{}", self.dense, space.simple())
    }

    /// Whether this can only be a collection of an embedding space.
    fn is_dense(&self, name: &str) -> bool {
        name.strip_prefix(&self.dense).is_some_and(|id| id.len() == 32 && Uuid::try_parse(id).is_ok())
    }
}

/// What a collection holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CollectionContent {
    /// Words.
    Words,
    /// Vectors of this dimension.
    Vectors(usize),
}

/// Asks for the server's version.
pub(super) async fn version(client: &QdrantClient) -> Result<String, QdrantFailure> {
    let check = || async { Ok(client.qdrant().health_check().await?) };
    Ok(client.call("its version", QdrantRetryPolicy::Read, check).await?.version)
}

/// Refuses a server that is too old.
pub(super) fn check_version(version: &str) -> Result<(), QdrantFailure> {
    // Of a patch such as `0-dev` the number counts.
    let mut numbers =
        version.split('.').map(|part| part.split('-').next().and_then(|number| number.parse::<u64>().ok()));
    let mut next = || numbers.next().flatten();
    let numbers = next().zip(next()).map(|(major, minor)| (major, minor, next().unwrap_or(0)));
    match numbers {
        Some(numbers) if numbers >= OLDEST => Ok(()),
        _ => {
            let (major, minor, patch) = OLDEST;
            let version: String = version.chars().filter(|c| !c.is_control()).take(40).collect();
            Err(QdrantFailure::refused(format!(
                "Qdrant {version:?} cannot be used: install version {major}.{minor}.{patch} or a later one"
            )))
        }
    }
}

/// Whether there is a collection of this name.
pub(super) async fn exists(client: &QdrantClient, name: &str) -> Result<bool, QdrantFailure> {
    let exists = || async { Ok(client.qdrant().collection_exists(name).await?) };
    client.call("a collection", QdrantRetryPolicy::Read, exists).await
}

/// The names of all collections that hold entries of this installation.
pub(super) async fn list(
    client: &QdrantClient,
    names: &CollectionNames,
) -> Result<Vec<String>, QdrantFailure> {
    let list = || async { Ok(client.qdrant().list_collections().await?) };
    let all = client.call("its collections", QdrantRetryPolicy::Read, list).await?.collections;
    let ours = |name: &String| *name == names.lexical || names.is_dense(name);
    Ok(all.into_iter().map(|collection| collection.name).filter(ours).collect())
}

/// What a collection of this installation holds; none when there is no such collection.
pub(super) async fn content(
    client: &QdrantClient,
    name: &str,
    instance: &str,
) -> Result<Option<CollectionContent>, QdrantFailure> {
    let Some(info) = info(client, name).await? else { return Ok(None) };
    check_owner(name, &info, instance)?;
    Ok(Some(content_of(name, &info)?))
}

/// Makes a collection, if it is not there, and its payload indexes. Several processes may do so at once.
pub(super) async fn ensure(
    client: &QdrantClient,
    name: &str,
    content: CollectionContent,
    instance: &str,
) -> Result<(), QdrantFailure> {
    let existing = match info(client, name).await? {
        Some(info) => info,
        None => create(client, name, content, instance).await?,
    };
    check_owner(name, &existing, instance)?;
    let found = content_of(name, &existing)?;
    if found != content {
        return Err(QdrantFailure::refused(match (content, found) {
            (CollectionContent::Vectors(wanted), CollectionContent::Vectors(found)) => format!(
                "the Qdrant collection {name} is for vectors of {found} numbers, and these have {wanted}: delete the collection and embed everything again"
            ),
            _ => not_ours(name),
        }));
    }
    let tenant = UuidIndexParamsBuilder::default().is_tenant(true);
    // Vectors get links of their own among those of a workspace only.
    let plain = UuidIndexParamsBuilder::default().enable_hnsw(false);
    for (field, params) in
        [(field::USER, tenant), (field::DOCUMENT, plain.clone()), (field::GENERATION, plain)]
    {
        if existing.payload_schema.contains_key(field) {
            continue;
        }
        let request = CreateFieldIndexCollectionBuilder::new(name, field, FieldType::Uuid)
            .field_index_params(params)
            .wait(true);
        let create = || async { Ok(client.qdrant().create_field_index(request.clone()).await?) };
        client.call("an index of a field", QdrantRetryPolicy::Write, create).await?;
    }
    Ok(())
}

async fn create(
    client: &QdrantClient,
    name: &str,
    content: CollectionContent,
    instance: &str,
) -> Result<CollectionInfo, QdrantFailure> {
    let request = request(name, content, instance);
    let create = || async { Ok(client.qdrant().create_collection(request.clone()).await?) };
    let created = client.call("a new collection", QdrantRetryPolicy::Write, create).await;
    // Whoever made it: it is there.
    match (info(client, name).await?, created) {
        (Some(info), _) => Ok(info),
        (None, Err(failure)) => Err(failure),
        (None, Ok(_)) => {
            Err(QdrantFailure::refused(format!("the Qdrant collection {name} was made and is gone")))
        }
    }
}

fn request(name: &str, content: CollectionContent, instance: &str) -> CreateCollection {
    let metadata = HashMap::from([(INSTANCE.to_owned(), Value::from(instance))]);
    let collection = CreateCollectionBuilder::new(name).on_disk_payload(true);
    // What is searched is mapped into memory from files: the size of an installation is bounded by its disk, and what is
    // searched often is in the page cache.
    let request = match content {
        CollectionContent::Words => {
            let index = SparseIndexConfigBuilder::default().on_disk(true);
            let mut vectors = SparseVectorsConfigBuilder::default();
            vectors.add_named_vector_params(
                TEXT,
                SparseVectorParamsBuilder::default().modifier(Modifier::Idf).index(index),
            );
            collection.sparse_vectors_config(vectors).build()
        }
        // Of unit vectors the dot product is the cosine.
        CollectionContent::Vectors(dimension) => {
            let vectors = VectorParamsBuilder::new(dimension as u64, Distance::Dot).on_disk(true);
            collection.vectors_config(vectors).hnsw_config(links()).build()
        }
    };
    CreateCollection { metadata, ..request }
}

/// How vectors are linked: every one is, so the links are in files like the vectors, or they alone would have to fit into memory.
fn links() -> HnswConfigDiffBuilder {
    HnswConfigDiffBuilder::default().m(LINKS).payload_m(LINKS).on_disk(true)
}

/// Has vectors linked as those of a new collection where they are linked within workspaces only, as they were at first. Qdrant makes the new
/// graphs in the background, and searches the old ones until then. Several processes may do so at once: it is the same change.
pub(super) async fn link_across(
    client: &QdrantClient,
    names: &CollectionNames,
    instance: &str,
) -> Result<(), QdrantFailure> {
    for name in list(client, names).await? {
        let Some(info) = info(client, &name).await? else { continue };
        let across = info.config.as_ref().and_then(|config| config.hnsw_config.as_ref()?.m);
        if across != Some(0) || check_owner(&name, &info, instance).is_err() {
            continue;
        }
        let request = UpdateCollectionBuilder::new(name.as_str()).hnsw_config(links()).build();
        let update = || async { Ok(client.qdrant().update_collection(request.clone()).await?) };
        client.call("a change of a collection", QdrantRetryPolicy::Write, update).await?;
        tracing::info!(
            collection = name,
            "Qdrant links the vectors of a collection anew; it is busy with that for a while"
        );
    }
    Ok(())
}

async fn info(client: &QdrantClient, name: &str) -> Result<Option<CollectionInfo>, QdrantFailure> {
    let get = || async { Ok(client.qdrant().collection_info(name).await?) };
    // A collection that is just being made cannot be described.
    match client.call("a collection", QdrantRetryPolicy::Settle, get).await {
        Ok(answer) => Ok(answer.result),
        Err(failure) if failure.kind == QdrantErrorKind::Missing => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn not_ours(name: &str) -> String {
    format!(
        "the Qdrant collection {name} is not one that this service made: use another Qdrant, or delete the collection if nobody needs it"
    )
}

/// Refuses a collection of another installation.
fn check_owner(name: &str, info: &CollectionInfo, instance: &str) -> Result<(), QdrantFailure> {
    let metadata = info.config.as_ref().map(|config| &config.metadata);
    match metadata.and_then(|metadata| metadata.get(INSTANCE)?.as_str()) {
        Some(owner) if owner == instance => Ok(()),
        Some(_) => Err(QdrantFailure::refused(format!(
            "the Qdrant collection {name} belongs to another installation, with another database: set QDRANT_URL to this installation's own Qdrant; or, if that database is gone for good, delete the collections of this one and ingest every document again"
        ))),
        None => Err(QdrantFailure::refused(not_ours(name))),
    }
}

fn content_of(name: &str, info: &CollectionInfo) -> Result<CollectionContent, QdrantFailure> {
    let params = info.config.as_ref().and_then(|config| config.params.as_ref());
    let words = params
        .and_then(|params| params.sparse_vectors_config.as_ref())
        .and_then(|vectors| vectors.map.get(TEXT))
        .is_some_and(|vector| vector.modifier == Some(Modifier::Idf.into()));
    let vectors = params.and_then(|params| params.vectors_config.as_ref()?.config.as_ref());
    match vectors {
        _ if words => Ok(CollectionContent::Words),
        Some(Config::Params(vectors)) if vectors.distance == i32::from(Distance::Dot) => {
            usize::try_from(vectors.size)
                .map(CollectionContent::Vectors)
                .map_err(|_| QdrantFailure::refused(not_ours(name)))
        }
        _ => Err(QdrantFailure::refused(not_ours(name))),
    }
}

/// The embedding spaces that are known to have a collection, with their dimensions.
pub(super) type SpaceDimensions = HashMap<Uuid, usize>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_too_old_is_refused_with_what_to_install() {
        for good in ["1.18.1", "1.18.3", "1.19.0-dev", "1.20", "2.0.0"] {
            assert!(check_version(good).is_ok(), "{good}");
        }
        for bad in ["1.17.9", "1.18.0", "1.18", "0.19.0", "1", "", "nonsense", "1.x.3"] {
            let failure = check_version(bad).unwrap_err();
            assert!(format!("{failure:?}").contains("1.18.1"), "{failure:?}");
        }
    }

    #[test]
    fn only_collections_of_this_installation_are_taken_for_its_own() {
        let names = CollectionNames::new("lectern");
        let space = Uuid::from_u128(7);
        assert!(names.is_dense(&names.dense(space)));
        for other in ["lectern_dense_", "lectern_dense_old", "lectern_lexical", "x", "lectern_test_dense_1"] {
            assert!(!names.is_dense(other), "{other}");
        }
        assert!(!names.is_dense(&CollectionNames::new("other").dense(space)));
    }
}
