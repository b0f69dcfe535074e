//! Pages of documents that can be drawn.

use lectern_shared::{
    ids::{DocumentId, GenerationId, WorkspaceId},
    model::{
        Json,
        page::{PageBox, PageInfo, RecognisedWord},
    },
};
use sqlx::QueryBuilder;

use crate::{Db, DbError, Result, Tx, execute, generations::RetiredGeneration, on};

/// The most rows that one transaction adds or removes, so that other writers get their turn.
pub const BATCH: usize = 200;

/// A word as it is kept: its text, its box in points (left, top, right, bottom), and how sure the recogniser is.
type StoredWord = (String, [f32; 4], u8);

/// Adds at most [`BATCH`] pages to a generation.
pub async fn insert(
    tx: &mut Tx,
    workspace: WorkspaceId,
    generation: GenerationId,
    pages: &[PageInfo],
) -> Result<()> {
    debug_assert!(pages.len() <= BATCH);
    if pages.is_empty() {
        return Ok(());
    }
    on!(tx, |c| async {
        let mut query = QueryBuilder::new(
            "INSERT INTO pages (generation_id, number, workspace_id, width, height, chars, words) ",
        );
        query.push_values(pages, |mut row, page| {
            row.push_bind(generation)
                .push_bind(i64::from(page.number))
                .push_bind(workspace)
                .push_bind(page.width)
                .push_bind(page.height)
                .push_bind(i64::from(page.chars))
                .push_bind(stored(&page.words).map(Json));
        });
        query.build().execute(c).await.map(|_| ())
    })?;
    Ok(())
}

/// Gives a generation the pages of the one that its passages are taken from.
pub async fn copy(tx: &mut Tx, workspace: WorkspaceId, from: GenerationId, to: GenerationId) -> Result<()> {
    execute!(
        tx,
        sqlx::query(
            "INSERT INTO pages (generation_id, number, workspace_id, width, height, chars, words)
             SELECT $3, number, workspace_id, width, height, chars, words FROM pages
             WHERE generation_id = $1 AND workspace_id = $2"
        )
        .bind(from)
        .bind(workspace)
        .bind(to)
    )?;
    Ok(())
}

/// At most `limit` pages of a workspace's document from a number on, those of its active generation, in order and without their
/// words.
pub async fn list(
    db: &Db,
    workspace: WorkspaceId,
    document: DocumentId,
    from: i64,
    limit: u32,
) -> Result<Vec<PageInfo>> {
    let rows: Vec<PageRow> = on!(db, |c| {
        sqlx::query_as(
            "SELECT pages.number, pages.width, pages.height, pages.chars, NULL AS words
             FROM documents JOIN pages ON pages.generation_id = documents.active_generation
             WHERE documents.id = $1 AND documents.workspace_id = $2 AND documents.deleted_at IS NULL
               AND pages.number >= $3
             ORDER BY pages.number LIMIT $4",
        )
        .bind(document)
        .bind(workspace)
        .bind(from)
        .bind(i64::from(limit))
        .fetch_all(c)
    })?;
    rows.into_iter().map(PageInfo::try_from).collect()
}

/// One page of a workspace's document, of its active generation, with its words.
pub async fn get(
    db: &Db,
    workspace: WorkspaceId,
    document: DocumentId,
    number: u32,
) -> Result<Option<PageInfo>> {
    let row: Option<PageRow> = on!(db, |c| {
        sqlx::query_as(
            "SELECT pages.number, pages.width, pages.height, pages.chars, pages.words
             FROM documents JOIN pages ON pages.generation_id = documents.active_generation
             WHERE documents.id = $1 AND documents.workspace_id = $2 AND documents.deleted_at IS NULL
               AND pages.number = $3",
        )
        .bind(document)
        .bind(workspace)
        .bind(i64::from(number))
        .fetch_optional(c)
    })?;
    row.map(PageInfo::try_from).transpose()
}

/// Removes at most [`BATCH`] pages of a generation; false when none are left.
pub async fn purge_some(tx: &mut Tx, retired: RetiredGeneration) -> Result<bool> {
    let limit = i64::try_from(BATCH).unwrap_or(i64::MAX);
    let rows = execute!(
        tx,
        sqlx::query(
            "DELETE FROM pages WHERE generation_id = $1 AND number IN (
                 SELECT number FROM pages WHERE generation_id = $1 ORDER BY number LIMIT $2)",
        )
        .bind(retired.id())
        .bind(limit)
    )?;
    Ok(rows == BATCH as u64)
}

/// How many bytes the words of a page take, about.
pub fn stored_bytes(page: &PageInfo) -> u64 {
    const BESIDES_TEXT: usize = 40;
    page.words.iter().map(|word| (word.text.len() + BESIDES_TEXT) as u64).sum()
}

#[derive(sqlx::FromRow)]
struct PageRow {
    number: i64,
    width: f32,
    height: f32,
    chars: i64,
    words: Option<Json<Vec<StoredWord>>>,
}

fn stored(words: &[RecognisedWord]) -> Option<Vec<StoredWord>> {
    // A tenth of a point is finer than anything on a scan.
    let tenth = |place: f32| (place * 10.0).round() / 10.0;
    let stored = |word: &RecognisedWord| {
        let PageBox { left, top, right, bottom } = word.place;
        (word.text.clone(), [left, top, right, bottom].map(tenth), word.confidence)
    };
    (!words.is_empty()).then(|| words.iter().map(stored).collect())
}

impl TryFrom<PageRow> for PageInfo {
    type Error = DbError;

    fn try_from(row: PageRow) -> Result<Self> {
        let unreadable = |what: &str| DbError::Unreadable(format!("{what} of a page"));
        let words = row.words.map(|Json(words)| words).unwrap_or_default().into_iter();
        let word = |(text, [left, top, right, bottom], confidence): StoredWord| RecognisedWord {
            text,
            place: PageBox { left, top, right, bottom },
            confidence,
        };
        Ok(Self {
            number: u32::try_from(row.number).map_err(|_| unreadable("the number"))?,
            width: row.width,
            height: row.height,
            chars: u32::try_from(row.chars).map_err(|_| unreadable("the count of characters"))?,
            words: words.map(word).collect(),
        })
    }
}
