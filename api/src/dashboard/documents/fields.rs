//! The inputs of a document's form, filled in with what it is.

use lectern_shared::model::document::{Document, DocumentType};

use crate::{dashboard::edits::ShownFields, error::ApiError, response::ApiResult};

/// What stands in the inputs, besides its name.
pub(super) struct DocumentFields {
    /// Where its source is; none for a file and for a text.
    pub(super) address: Option<String>,
    /// There may be several addresses.
    pub(super) takes_several: bool,
    /// The first and the last page that are read, of what has pages.
    pub(super) pages: Option<(String, String)>,
    pub(super) description: String,
    /// As JSON.
    pub(super) metadata: String,
    /// What the form is made from.
    pub(super) seen: String,
}

impl DocumentFields {
    pub(super) fn of(document: &Document, has_file: bool) -> ApiResult<Self> {
        let page = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
        let pages = || (page(document.from_page), page(document.to_page));
        let metadata = document.metadata.as_ref().map(|metadata| serde_json::to_string_pretty(&metadata.0));
        let mut fields = Self {
            // A file that a source has found has its address too, and is not fetched from there.
            address: Some(document.url.clone()).filter(|url| !url.is_empty() && !has_file),
            takes_several: document.r#type == DocumentType::Url,
            pages: (document.r#type == DocumentType::Pdf).then(pages),
            description: document.description.clone(),
            metadata: metadata.transpose().map_err(|_| ApiError::internal())?.unwrap_or_default(),
            seen: String::new(),
        };
        fields.seen = fields.shown(document).seen();
        Ok(fields)
    }

    /// What the form shows of a document.
    pub(super) fn shown(&self, document: &Document) -> ShownFields {
        let (first, last) =
            self.pages.as_ref().map_or(("", ""), |(first, last)| (first.as_str(), last.as_str()));
        ShownFields::of(document.updated_at)
            .text("name", "Name", &document.name)
            .text("url", "Address", self.address.as_deref().unwrap_or_default())
            .choice("from_page", "First page to read", first, &[])
            .choice("to_page", "Last page to read", last, &[])
            .text("description", "Description", &self.description)
            .object("metadata", "Metadata", &self.metadata)
    }

    /// Whether something can be changed of what is read.
    pub(super) fn has_source(&self) -> bool {
        self.address.is_some() || self.pages.is_some()
    }
}
