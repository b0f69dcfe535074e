//! The text of documents, put together from their passages, of which each may repeat the end of the one before.

use lectern_shared::{ids::DocumentId, model::document::Chunk};

use crate::{
    error::ApiError,
    services::{actor::Actor, documents::DocumentService},
};

/// Passages that are read at a time.
const PAGE: u32 = 200;

/// Some of a document's text.
#[derive(Default)]
pub(super) struct DocumentText {
    pub(super) text: String,
    /// The first passage of it; none in a document without any.
    pub(super) first: Option<Chunk>,
    /// The number of the passage that follows; none at the end of the document.
    pub(super) next: Option<i64>,
    characters: usize,
    /// Where the text ends in the document's, in characters.
    end: u64,
}

impl DocumentText {
    /// The text from a passage on, in whole passages of about so many characters together.
    pub(super) async fn read(
        documents: &DocumentService,
        actor: &Actor,
        id: DocumentId,
        mut from: i64,
        most: usize,
    ) -> Result<Self, ApiError> {
        let mut read = Self::default();
        loop {
            let page = documents.chunks(actor, id, from, PAGE).await?;
            let is_last = page.len() < usize::try_from(PAGE).unwrap_or(usize::MAX);
            for chunk in page {
                if read.first.is_some() && read.characters + chunk.text.chars().count() > most {
                    read.next = Some(chunk.ordinal);
                    return Ok(read);
                }
                from = chunk.ordinal + 1;
                read.add(chunk);
            }
            if is_last {
                return Ok(read);
            }
        }
    }

    /// Adds what a passage says that the ones before did not.
    pub(super) fn add(&mut self, chunk: Chunk) {
        let (start, end) = (chunk.place.0.char_start, chunk.place.0.char_end);
        let repeated = match self.first {
            Some(_) => usize::try_from(self.end.saturating_sub(start)).unwrap_or(usize::MAX),
            None => 0,
        };
        if self.first.is_some() && start > self.end {
            self.text.push_str("\n\n");
        }
        self.text.extend(chunk.text.chars().skip(repeated));
        self.characters += chunk.text.chars().count().saturating_sub(repeated);
        self.end = self.end.max(end);
        self.first.get_or_insert(chunk);
    }
}

#[cfg(test)]
mod tests {
    use lectern_shared::{
        ids::ChunkId,
        model::{Json, place::SourceSpan},
    };

    use super::*;

    /// A passage of a text, by its place in it.
    fn chunk(ordinal: i64, whole: &str, start: usize, end: usize) -> Chunk {
        let place = SourceSpan { char_start: start as u64, char_end: end as u64, ..SourceSpan::default() };
        Chunk {
            ordinal,
            chunk_id: ChunkId::from(uuid::Uuid::nil()),
            document_id: DocumentId::from(uuid::Uuid::nil()),
            tokens: 1,
            place: Json(place),
            text: whole.chars().skip(start).take(end - start).collect(),
        }
    }

    #[test]
    fn what_passages_repeat_stands_in_the_text_once() {
        let whole = "Grüße 🌍 aus dem Hafen, und bis bald.";
        let mut read = DocumentText::default();
        for (ordinal, (start, end)) in [(0, 12), (8, 20), (10, 14), (20, 36)].into_iter().enumerate() {
            read.add(chunk(i64::try_from(ordinal).unwrap(), whole, start, end));
        }
        assert_eq!(read.text, whole.chars().take(36).collect::<String>());
        assert_eq!(read.characters, 36);
    }

    #[test]
    fn passages_with_something_between_them_are_apart() {
        let mut read = DocumentText::default();
        read.add(chunk(0, "one   two", 0, 3));
        read.add(chunk(1, "one   two", 6, 9));
        assert_eq!(read.text, "one\n\ntwo");
    }
}
