//! Links of citations: each holds, sealed, which passage it opens and until when. Whoever has one may read that passage and what
//! stands around it, and nothing else; nothing is stored for it, so every process opens it, and it ends by itself.

use std::{collections::HashSet, ops::Range, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use icu_segmenter::{GraphemeClusterSegmenter, WordSegmenter, options::WordBreakInvariantOptions};
use lectern_agents::answer::{place_url, verify_quote};
use lectern_db::{self as db, Db};
use lectern_parse::protocol::{ImageFormat, TextToMark};
use lectern_runtime::Runtime;
use lectern_shared::{
    clock::{Clock, Timestamp},
    ids::{ChunkId, DocumentId, WorkspaceId},
    model::{
        document::{Chunk, Document},
        place::SourceSpan,
    },
    secrets::{CiphertextLocation, Keyring},
};
use uuid::Uuid;

use super::pages::{Highlight, PageService, PageView, ShownPage};
use crate::error::{ApiError, ApiErrorKind};

/// Pixels of a page's image from left to right.
const PAGE_WIDTH: u32 = 1_200;
/// Pages of a passage that are looked at for its words.
const MAX_PAGES: u32 = 4;
/// What is shown of each neighbour of a passage, in characters: enough to see what it is about.
const CONTEXT: usize = 600;
/// Bytes that hardly any word has more of.
const LONGEST_WORD: usize = 256;

/// A passage, and the words of it that are quoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PassageReference {
    pub(crate) document: DocumentId,
    pub(crate) chunk: ChunkId,
    /// Where the quoted words stand in the passage's text, in bytes; none when they were not found there.
    pub(crate) quote: Option<Range<usize>>,
}

/// What a link opens.
#[derive(Debug)]
pub(crate) struct CitedPage {
    pub(crate) document_name: String,
    /// None when the document has changed, and does not hold the passage any more.
    pub(crate) passage: Option<CitedPassage>,
}

/// A passage with the words that are quoted, and what stands around it.
#[derive(Debug)]
pub(crate) struct CitedPassage {
    pub(crate) place: SourceSpan,
    /// The page that the quoted words begin on, or the passage without any, as far as that is known.
    pub(crate) page: Option<u32>,
    /// Width and height of the page that is shown first, in points, where there is an image of it.
    pub(crate) page_size: Option<(f32, f32)>,
    /// Where the document itself can be opened, if it has an address.
    pub(crate) url: Option<String>,
    /// The end of the passage before it, without what both hold.
    pub(crate) before: String,
    /// The passage up to the quoted words.
    pub(crate) lead: String,
    /// The quoted words; empty when there are none.
    pub(crate) quote: String,
    /// The passage after the quoted words.
    pub(crate) rest: String,
    /// The beginning of the passage after it, without what both hold.
    pub(crate) after: String,
}

/// Makes the links of citations, and opens them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CitationLinks {
    db: Db,
    clock: Clock,
    keyring: Arc<Keyring>,
    /// How long a link opens.
    ttl: Duration,
    pages: PageService,
}

/// For every link that opens nothing, whatever the reason is.
fn opens_nothing() -> ApiError {
    let message = "This link does not lead to a passage, or not any more.";
    ApiError::new(ApiErrorKind::NotFound, "not_found", message)
}

impl CitationLinks {
    pub(crate) fn new(runtime: &Runtime, pages: PageService) -> Self {
        let Runtime { db, clock, keyring, settings, .. } = runtime.clone();
        Self { db, clock, keyring, ttl: settings.citation_links, pages }
    }

    /// The path of a link that opens a workspace's passage from now on.
    pub(crate) fn path(
        &self,
        workspace: WorkspaceId,
        passage: &PassageReference,
    ) -> Result<String, ApiError> {
        let ends_at = self.clock.now().plus(self.ttl).as_secs();
        let link = SealedCitation { workspace, passage: passage.clone(), ends_at };
        Ok(format!("/cite/{}", link.seal(&self.keyring)?))
    }

    /// The path of a link that opens a workspace's passage with these words marked, where they still stand in it.
    pub(crate) async fn path_to_quote(
        &self,
        workspace: WorkspaceId,
        document: DocumentId,
        chunk: ChunkId,
        quote: &str,
    ) -> Result<String, ApiError> {
        let around = self.around(workspace, document, chunk).await?;
        let quote = quoted(&around, chunk, quote);
        self.path(workspace, &PassageReference { document, chunk, quote })
    }

    /// Those of these documents that a workspace has not, since they were deleted.
    pub(crate) async fn deleted(
        &self,
        workspace: WorkspaceId,
        documents: &[DocumentId],
    ) -> Result<HashSet<DocumentId>, ApiError> {
        let present = db::documents::present(&self.db, workspace, documents).await?;
        Ok(documents.iter().copied().filter(|document| !present.contains(document)).collect())
    }

    /// What the link with this token leads to.
    ///
    /// # Errors
    /// Not found, in one form, when it is none of this service's or has ended, and when its document was deleted.
    pub(crate) async fn open(&self, token: &str) -> Result<CitedPage, ApiError> {
        let link = SealedCitation::open(&self.keyring, token, self.clock.now()).ok_or_else(opens_nothing)?;
        let id = link.passage.document;
        let document = db::documents::find(&self.db, link.workspace, id).await?.ok_or_else(opens_nothing)?;
        let chunks = self.around(link.workspace, id, link.passage.chunk).await?;
        let mut passage = CitedPassage::find(&document, &chunks, &link.passage);
        if let Some(passage) = &mut passage
            && let Some((number, _)) = passage.pages()
        {
            passage.page_size = self.pages.size(link.workspace, id, number).await?;
        }
        Ok(CitedPage { document_name: document.name, passage })
    }

    /// The pages that the words of a link may be on, with these to be marked: of what was read before it was noted where pages begin,
    /// nobody knows which of them it is before it is drawn.
    ///
    /// # Errors
    /// Not found as in [`CitationLinks::open`], and when there are no such images.
    pub(crate) async fn pages(&self, token: &str) -> Result<Vec<ShownPage>, ApiError> {
        let link = SealedCitation::open(&self.keyring, token, self.clock.now()).ok_or_else(opens_nothing)?;
        let SealedCitation { workspace, passage, .. } = link;
        let document = db::documents::find(&self.db, workspace, passage.document).await?;
        let document = document.ok_or_else(opens_nothing)?;
        let chunks = self.around(workspace, passage.document, passage.chunk).await?;
        let cited = CitedPassage::find(&document, &chunks, &passage).ok_or_else(opens_nothing)?;
        let (first, last) = cited.pages().ok_or_else(opens_nothing)?;
        let CitedPassage { lead, quote, rest, .. } = cited;
        let mark = if quote.is_empty() {
            TextToMark::from((lead + &rest).as_str())
        } else {
            TextToMark { text: quote, before: lead, after: rest }
        };
        let highlights = vec![Highlight::Text(mark)];
        let mut pages = Vec::new();
        for page in first..=last {
            let (document, highlights) = (document.clone(), highlights.clone());
            let view = PageView { page, width: PAGE_WIDTH, format: ImageFormat::Png, highlights };
            pages.push(self.pages.of(workspace, document, view).await?);
        }
        Ok(pages)
    }

    /// A passage of what is searched of a document now, between its neighbours; nothing when it is not in that.
    async fn around(
        &self,
        workspace: WorkspaceId,
        document: DocumentId,
        chunk: ChunkId,
    ) -> Result<Vec<Chunk>, ApiError> {
        let Some(ordinal) = db::chunks::ordinal(&self.db, workspace, document, chunk).await? else {
            return Ok(Vec::new());
        };
        Ok(db::chunks::list(&self.db, workspace, document, ordinal - 1, 3).await?)
    }
}

/// What a link holds.
struct SealedCitation {
    workspace: WorkspaceId,
    passage: PassageReference,
    /// In seconds since 1970.
    ends_at: i64,
}

impl SealedCitation {
    /// The link's token.
    fn seal(&self, keyring: &Keyring) -> Result<String, ApiError> {
        let sealed = keyring.encrypt(CiphertextLocation::citation_link(), &self.to_bytes())?;
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// What a token holds, unless it has ended.
    fn open(keyring: &Keyring, token: &str, now: Timestamp) -> Option<Self> {
        let sealed = URL_SAFE_NO_PAD.decode(token).ok()?;
        let bytes = keyring.decrypt(CiphertextLocation::citation_link(), &sealed).ok()?;
        Self::from_bytes(&bytes).filter(|link| link.ends_at > now.as_secs())
    }

    /// Of a fixed length, so that a link tells nothing by its own.
    fn to_bytes(&self) -> Vec<u8> {
        let PassageReference { document, chunk, quote } = &self.passage;
        let quote = quote.clone().unwrap_or_default();
        let mut bytes = Vec::with_capacity(64);
        for id in [self.workspace.as_uuid(), document.as_uuid(), chunk.as_uuid()] {
            bytes.extend_from_slice(id.as_bytes());
        }
        for at in [quote.start, quote.end] {
            bytes.extend_from_slice(&u32::try_from(at).unwrap_or(u32::MAX).to_be_bytes());
        }
        bytes.extend_from_slice(&self.ends_at.to_be_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let (workspace, document) = (take_id(&mut rest)?, take_id(&mut rest)?);
        let chunk = take_id(&mut rest)?;
        let (start, end) = (take_offset(&mut rest)?, take_offset(&mut rest)?);
        let ends_at = i64::from_be_bytes(take(&mut rest)?);
        let quote = (start < end).then_some(start..end);
        let passage = PassageReference { document: document.into(), chunk: chunk.into(), quote };
        rest.is_empty().then_some(Self { workspace: workspace.into(), passage, ends_at })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

fn take_id(bytes: &mut &[u8]) -> Option<Uuid> {
    take(bytes).map(Uuid::from_bytes)
}

fn take_offset(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(take(bytes)?)).ok()
}

impl CitedPassage {
    /// The passage among these, which follow one another.
    fn find(document: &Document, chunks: &[Chunk], cited: &PassageReference) -> Option<Self> {
        let at = chunks.iter().position(|chunk| chunk.chunk_id == cited.chunk)?;
        let chunk = chunks.get(at)?;
        let neighbour = |at: Option<usize>| at.and_then(|at| chunks.get(at));
        let place = chunk.place.0.clone();
        let (lead, quote, rest) = marked(&chunk.text, cited.quote.clone());
        let page = place.page_at(&chunk.text, lead.len()).filter(|_| !quote.is_empty());
        let page = page.or_else(|| place.only_page());
        Some(Self {
            url: place_url(document.r#type, &document.url, &place.cited_on(page)),
            page,
            before: neighbour(at.checked_sub(1)).map_or_else(String::new, |other| end_of(other, chunk)),
            lead: lead.to_owned(),
            quote: quote.to_owned(),
            rest: rest.to_owned(),
            after: neighbour(at.checked_add(1)).map_or_else(String::new, |other| beginning_of(other, chunk)),
            place,
            page_size: None,
        })
    }

    /// The first and the last page that its words may be on; of many, the first few.
    pub(crate) fn pages(&self) -> Option<(u32, u32)> {
        if let Some(page) = self.page {
            return Some((page, page));
        }
        let first = self.place.page?;
        let last = self.place.page_end.unwrap_or(first);
        Some((first, last.clamp(first, first.saturating_add(MAX_PAGES - 1))))
    }
}

/// Where words stand in a passage among these, which follow one another, in bytes: looked for as they were when they were cited, so that
/// lines may break otherwise, and they may go on in the next one.
fn quoted(chunks: &[Chunk], cited: ChunkId, words: &str) -> Option<Range<usize>> {
    let at = chunks.iter().position(|chunk| chunk.chunk_id == cited)?;
    let passage = chunks.get(at)?;
    verify_quote(words, &passage.text).or_else(|| {
        let next = chunks.get(at.checked_add(1)?)?;
        let touches = next.place.0.char_start <= passage.place.0.char_end;
        let gap = if touches { "" } else { "\n" };
        let found = verify_quote(words, &format!("{}{gap}{}", passage.text, own_text(next, passage)))?;
        (found.start < passage.text.len()).then_some(found)
    })
}

/// A text before the words at these bytes, those words, and the text after them. A quotation may go on in the next passage.
fn marked(text: &str, quote: Option<Range<usize>>) -> (&str, &str, &str) {
    let found = quote.and_then(|quote| {
        let end = quote.end.min(text.len());
        Some((text.get(..quote.start)?, text.get(quote.start..end)?, text.get(end..)?))
    });
    found.unwrap_or((text, "", ""))
}

/// The end of the passage before another, up to where that one begins.
fn end_of(chunk: &Chunk, next: &Chunk) -> String {
    let own = next.place.0.char_start.saturating_sub(chunk.place.0.char_start);
    let own = chunk.text.split_at(byte_of(&chunk.text, own)).0;
    let cut = own.chars().count().saturating_sub(CONTEXT);
    if cut == 0 {
        return own.trim().to_owned();
    }
    let start = word_start(own, byte_of(own, cut as u64));
    format!("… {}", own.get(start..).unwrap_or_default().trim())
}

/// What a passage says from where the one before it ends.
fn own_text<'a>(chunk: &'a Chunk, previous: &Chunk) -> &'a str {
    let repeated = previous.place.0.char_end.saturating_sub(chunk.place.0.char_start);
    chunk.text.split_at(byte_of(&chunk.text, repeated)).1
}

/// The beginning of the passage after another, from where that one ends.
fn beginning_of(chunk: &Chunk, previous: &Chunk) -> String {
    let own = own_text(chunk, previous);
    let most = byte_of(own, CONTEXT as u64);
    if most == own.len() {
        return own.trim().to_owned();
    }
    format!("{} …", own.get(..word_end(own, most)).unwrap_or_default().trim())
}

/// Where a character begins, by its number; the end of a text that has fewer.
fn byte_of(text: &str, character: u64) -> usize {
    let at = usize::try_from(character).unwrap_or(usize::MAX);
    text.char_indices().nth(at).map_or(text.len(), |(at, _)| at)
}

/// Where the first word begins that does not begin before this byte; where there is none nearby, a character as people see it.
fn word_start(text: &str, least: usize) -> usize {
    let near = near(text, least);
    let part = text.get(near.clone()).unwrap_or_default();
    let is_wanted = |at: &usize| (least..near.end).contains(at);
    let is_word = |at: &usize| text.get(*at..).is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
    let words = WordSegmenter::new_dictionary(WordBreakInvariantOptions::default());
    let mut words = words.segment_str(part).map(|at| near.start + at).filter(is_wanted);
    let mut characters = GraphemeClusterSegmenter::new().segment_str(part).map(|at| near.start + at);
    words.find(is_word).or_else(|| characters.find(is_wanted)).unwrap_or(least)
}

/// Where the last word ends, or a sign behind one, that does not end behind this byte; where there is none nearby, a character as people
/// see it.
fn word_end(text: &str, most: usize) -> usize {
    let near = near(text, most);
    let part = text.get(near.clone()).unwrap_or_default();
    let is_wanted = |at: &usize| near.start < *at && *at <= most;
    let words = WordSegmenter::new_dictionary(WordBreakInvariantOptions::default());
    let words = words.segment_str(part).map(|at| near.start + at).filter(is_wanted);
    let characters = GraphemeClusterSegmenter::new().segment_str(part).map(|at| near.start + at);
    words.last().or_else(|| characters.filter(is_wanted).last()).unwrap_or(most)
}

/// What is looked at for the bounds of words around a byte.
fn near(text: &str, byte: usize) -> Range<usize> {
    let from = text.floor_char_boundary(byte.saturating_sub(LONGEST_WORD));
    from..text.ceil_char_boundary(byte.saturating_add(LONGEST_WORD))
}

#[cfg(test)]
mod tests;
