//! Asking: one batch of queries to each collection, all at once.

use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::Ordering,
};

use futures::future::{try_join, try_join_all};
use lectern_shared::{ids::GenerationId, model::language::Language};
use qdrant_client::qdrant::{
    AcornSearchParamsBuilder, Filter, PayloadIncludeSelector, Query as PointQuery, QueryBatchPointsBuilder,
    QueryPoints, QueryPointsBuilder, ScoredPoint, SearchParamsBuilder, VectorInput,
};
use uuid::Uuid;

use super::{
    super::{IndexCandidates, IndexQuery, SearchCandidate, lexical::LexicalQuery},
    QdrantIndexState,
    client::{QdrantErrorKind, QdrantFailure, QdrantRetryPolicy},
    gone,
    points::{GenerationTag, TEXT, among, entry, entry_of_id, except, field, sparse},
};
use crate::lexical::detect_language;

/// How much deeper the second try goes when the first met too much that is not searched.
const DEEPER: usize = 4;

/// What is searched, and how it is told to the server.
struct SearchScope {
    /// The generations that are searched, and their places in the query, by what stands for them in the ids of points.
    places: HashMap<GenerationTag, (usize, GenerationId)>,
    /// The filters to try. Whatever the last of them finds can be shown.
    tries: Vec<SearchTry>,
    depth: usize,
}

/// A filter to try.
#[derive(Clone)]
struct SearchTry {
    filter: Filter,
    /// How many hits to ask for.
    limit: usize,
    /// Whether the filter may pass few of a workspace's vectors, so that those that pass are hardly linked to one another.
    is_narrow: bool,
}

impl SearchScope {
    /// The server is told what to search, or what to leave out, whichever is less. What is left out is only what could be
    /// shown: generations that are being written or removed are found too then, and dropped. There are few of them; when they
    /// fill the list all the same, it is made longer, and then the server is told what to search after all.
    fn new(query: &IndexQuery) -> Self {
        let depth = query.depth;
        let inclusion =
            SearchTry { filter: among(query.workspace, &query.generations), limit: depth, is_narrow: true };
        let tries = if query.others.len() < query.generations.len() {
            let filter = except(query.workspace, &query.others);
            let exclusion = SearchTry { filter, limit: depth, is_narrow: false };
            let deeper = SearchTry { limit: depth.saturating_mul(DEEPER), ..exclusion.clone() };
            vec![exclusion, deeper, inclusion]
        } else {
            vec![inclusion]
        };
        let tagged = |(place, generation): (usize, &GenerationId)| {
            (GenerationTag::of(*generation), (place, *generation))
        };
        let places = (0..).zip(&query.generations).map(tagged).collect();
        Self { places, tries, depth }
    }

    /// The hits that can be shown, best first; of equals the earlier one in the order of the query.
    fn candidates(&self, hits: &[ScoredPoint]) -> Vec<SearchCandidate> {
        let mut candidates: Vec<(usize, SearchCandidate)> = hits
            .iter()
            .filter_map(|hit| {
                let by_payload = || {
                    let (generation, ordinal) = entry(&hit.payload)?;
                    Some((GenerationTag::of(generation), ordinal))
                };
                let (tag, ordinal) = entry_of_id(hit.id.as_ref()?).or_else(by_payload)?;
                let (place, generation) = *self.places.get(&tag)?;
                Some((place, SearchCandidate { generation, ordinal, score: hit.score }))
            })
            .collect();
        candidates.sort_by(|(place, a), (other, b)| {
            b.score.total_cmp(&a.score).then_with(|| (place, a.ordinal).cmp(&(other, b.ordinal)))
        });
        candidates.into_iter().map(|(_, candidate)| candidate).take(self.depth).collect()
    }
}

/// Whatever of a workspace's matches.
pub(super) async fn search(
    inner: &QdrantIndexState,
    query: IndexQuery,
) -> Result<IndexCandidates, QdrantFailure> {
    if query.generations.is_empty() || query.depth == 0 {
        return Ok(IndexCandidates { lexical: Vec::new(), dense: vec![Vec::new(); query.vectors.len()] });
    }
    let scope = SearchScope::new(&query);
    let IndexQuery { text, languages, vectors, .. } = query;
    let lexical = lexical(inner, &scope, text, languages);
    // The places of the vectors of each space.
    let mut spaces = BTreeMap::<Uuid, Vec<usize>>::new();
    for (place, vector) in vectors.iter().enumerate() {
        spaces.entry(vector.space).or_default().push(place);
    }
    let dense = spaces.iter().map(|(space, places)| {
        let vectors: Vec<&[f32]> = places.iter().map(|place| vectors[*place].vector.as_slice()).collect();
        dense(inner, &scope, *space, vectors)
    });
    let (lexical, found) = try_join(lexical, try_join_all(dense)).await?;
    let mut dense = vec![Vec::new(); vectors.len()];
    for (place, list) in spaces.values().flatten().zip(found.into_iter().flatten()) {
        dense[*place] = list;
    }
    Ok(IndexCandidates { lexical, dense })
}

async fn lexical(
    inner: &QdrantIndexState,
    scope: &SearchScope,
    text: String,
    mut languages: Vec<Language>,
) -> Result<Vec<SearchCandidate>, QdrantFailure> {
    let analyse = move || {
        let question = LexicalQuery::new(&text);
        if languages.is_empty() {
            // Nothing is known of the passages: they may be in any language, most likely in that of the question.
            languages.push(detect_language(&text));
            languages
                .extend(Language::ALL.into_iter().filter(|other| *other != languages[0]).collect::<Vec<_>>());
        }
        sparse(&question.sparse(&languages))
    };
    let analysed = inner.compute.run(analyse).await;
    let (indices, weights) = analysed.map_err(|stopped| QdrantFailure::refused(stopped.to_string()))?;
    if indices.is_empty() {
        return Ok(Vec::new());
    }
    let question = PointQuery::new_nearest(VectorInput::new_sparse(indices, weights));
    match lists(inner, scope, &inner.names.lexical, vec![(question, Some(TEXT))]).await {
        // What shares no word is no hit.
        Ok(lists) => Ok(lists.into_iter().flatten().filter(|candidate| candidate.score > 0.0).collect()),
        Err(failure) if failure.kind == QdrantErrorKind::Missing => Err(gone(&inner.names)),
        Err(failure) => Err(failure),
    }
}

/// A list for each of these vectors of one space; empty for one that is not of the space's dimension, and when nothing of
/// the space was ever stored.
async fn dense(
    inner: &QdrantIndexState,
    scope: &SearchScope,
    space: Uuid,
    vectors: Vec<&[f32]>,
) -> Result<Vec<Vec<SearchCandidate>>, QdrantFailure> {
    let mut all = vec![Vec::new(); vectors.len()];
    let Some(dimension) = inner.dimension(space).await? else { return Ok(all) };
    let fitting: Vec<usize> = (0..vectors.len()).filter(|at| vectors[*at].len() == dimension).collect();
    let questions = fitting
        .iter()
        .map(|at| (PointQuery::new_nearest(VectorInput::new_dense(vectors[*at])), None))
        .collect();
    match lists(inner, scope, &inner.names.dense(space), questions).await {
        Ok(found) => {
            for (at, list) in fitting.into_iter().zip(found) {
                all[at] = list;
            }
            Ok(all)
        }
        Err(failure) if failure.kind == QdrantErrorKind::Missing => {
            inner.forget(space);
            Ok(all)
        }
        Err(failure) => Err(failure),
    }
}

/// A list for each of these questions to one collection.
async fn lists(
    inner: &QdrantIndexState,
    scope: &SearchScope,
    collection: &str,
    questions: Vec<(PointQuery, Option<&str>)>,
) -> Result<Vec<Vec<SearchCandidate>>, QdrantFailure> {
    let mut lists = vec![Vec::new(); questions.len()];
    // The questions whose lists are not full yet.
    let mut open: Vec<usize> = (0..questions.len()).collect();
    for attempt in &scope.tries {
        if open.is_empty() {
            break;
        }
        let ask = async |with_payload| {
            let queries = open.iter().map(|at| {
                let (question, using) = &questions[*at];
                query_points(collection, question.clone(), *using, attempt, with_payload)
            });
            ask(inner, collection, queries.collect()).await
        };
        let had_payload = inner.reads_payload.load(Ordering::Relaxed);
        let mut answers = ask(had_payload).await?;
        let tells = |hit: &ScoredPoint| hit.id.as_ref().is_some_and(|id| entry_of_id(id).is_some());
        if !had_payload && !answers.iter().flatten().all(tells) {
            // Some are of before ids told anything; there will be more of them.
            inner.reads_payload.store(true, Ordering::Relaxed);
            answers = ask(true).await?;
        }
        if answers.len() != open.len() {
            return Err(QdrantFailure::refused(
                "Qdrant answered another number of questions than it was asked",
            ));
        }
        let mut short = Vec::new();
        for (at, hits) in open.into_iter().zip(answers) {
            lists[at] = scope.candidates(&hits);
            if lists[at].len() < scope.depth && hits.len() >= attempt.limit {
                short.push(at);
            }
        }
        open = short;
    }
    Ok(lists)
}

fn query_points(
    collection: &str,
    question: PointQuery,
    using: Option<&str>,
    attempt: &SearchTry,
    with_payload: bool,
) -> QueryPoints {
    let query = QueryPointsBuilder::new(collection).query(question);
    let query = query.filter(attempt.filter.clone()).limit(attempt.limit as u64);
    let query = if with_payload {
        let fields = [field::GENERATION, field::ORDINAL].map(str::to_owned).into();
        query.with_payload(PayloadIncludeSelector { fields })
    } else {
        // The server reads it from its files, hit by hit, which takes most of the time of a search.
        query.with_payload(false)
    };
    match using {
        Some(vector) => query.using(vector).build(),
        // In the graph of vectors, what does not pass is gone through to what is linked to it.
        None if attempt.is_narrow => {
            query.params(SearchParamsBuilder::default().acorn(AcornSearchParamsBuilder::new(true))).build()
        }
        None => query.build(),
    }
}

async fn ask(
    inner: &QdrantIndexState,
    collection: &str,
    queries: Vec<QueryPoints>,
) -> Result<Vec<Vec<ScoredPoint>>, QdrantFailure> {
    if queries.is_empty() {
        return Ok(Vec::new());
    }
    let request = QueryBatchPointsBuilder::new(collection, queries).build();
    let query = || async { Ok(inner.client.qdrant().query_batch(request.clone()).await?) };
    let answer = inner.client.call("a search", QdrantRetryPolicy::Read, query).await?;
    Ok(answer.result.into_iter().map(|batch| batch.result).collect())
}
