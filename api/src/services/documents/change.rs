//! Changing a document. What its index depends on is ingested again; until that is done, the index answers as before.

use lectern_db::{self as db, Tx, documents::NewDocumentRow as Row};
use lectern_derive::RequestBody;
use lectern_shared::{
    ids::DocumentId,
    model::{
        Json,
        audit::AuditAction,
        document::{
            Document, DocumentSource, DocumentType, PageRange, SourceAuthorization, SplitterConfig, addresses,
        },
        job::JobState,
    },
    secrets::CiphertextLocation,
};
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};
use url::Url;
use utoipa::ToSchema;

use super::{
    super::{
        actor::{Actor, Permission},
        edits::EditBase,
    },
    DocumentDetails, DocumentService, check_stored_bytes,
    readers::{self, GivenPage},
    rules::{self, address_problems},
    schema::{AuthorizationSchema, PageSchema},
    splitter::{self, NewSplitter},
    unknown,
};
use crate::{
    error::{ApiError, FieldError},
    fields::JsonFields,
};

/// What is to be different about a document. What is left out stays as it is; null empties a field.
#[derive(Default, RequestBody, ToSchema)]
#[body(change, after = check_source)]
#[expect(clippy::option_option, reason = "absent, null and a value are three things")]
pub(crate) struct DocumentChange {
    /// How to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S", nullable = false)]
    pub(crate) name: Option<String>,
    /// Anything worth saying of it.
    #[schema(max_length = 10_000)]
    pub(crate) description: Option<String>,
    /// Where the source is; for `URL`, up to 50 addresses, separated by commas. It takes the place of the content, if there is one.
    #[schema(max_length = 20_000)]
    #[body(with = readers::changed_url)]
    pub(crate) url: Option<String>,
    /// The text itself, for TXT, CSV and VIDEO. It takes the place of the url, if there is one.
    #[schema(value_type = Option<String>)]
    pub(crate) content: Option<Option<String>>,
    /// Your own values, all of them: they take the place of the earlier ones.
    #[schema(value_type = Option<Object>)]
    #[body(with = readers::metadata)]
    pub(crate) metadata: Option<Option<Map<String, Value>>>,
    /// How to cut the text into passages.
    #[schema(value_type = Option<NewSplitter>)]
    #[body(with = splitter::read)]
    pub(crate) splitter: Option<Option<SplitterConfig>>,
    /// PDF: the first page to ingest. Ignored for other types.
    #[schema(value_type = Option<PageSchema>)]
    #[body(with = readers::changed_page)]
    from_page: Option<Option<GivenPage>>,
    /// PDF: the last page to ingest. Ignored for other types.
    #[schema(value_type = Option<PageSchema>)]
    #[body(with = readers::changed_page)]
    to_page: Option<Option<GivenPage>>,
    /// What opens the source.
    #[schema(value_type = Option<AuthorizationSchema>)]
    #[body(with = readers::authorization)]
    pub(crate) authorization: Option<Option<SourceAuthorization>>,
}

impl DocumentChange {
    /// The addresses that take the place of the source.
    pub(crate) fn new_url(&self) -> Option<&str> {
        self.url.as_deref().filter(|url| !url.is_empty())
    }

    /// The text that takes the place of the source.
    pub(crate) fn new_content(&self) -> Option<&str> {
        self.content.as_ref()?.as_deref()
    }
}

fn check_source(change: &DocumentChange, fields: &mut JsonFields<'_>) {
    if change.new_url().is_some() && change.new_content().is_some() {
        fields.refuse("content", "cannot be given together with url");
    }
}

/// What a change makes necessary.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ReindexScope {
    Nothing,
    /// The passages stay as they are.
    Index,
    Ingest,
}

/// What becomes of what opens a document's source.
enum AuthorizationChange {
    Kept,
    /// Another one, sealed, or none.
    To(Option<Vec<u8>>),
}

impl AuthorizationChange {
    fn is_change(&self) -> bool {
        matches!(self, Self::To(_))
    }

    /// What is stored then.
    fn sealed<'a>(&'a self, source: &'a DocumentSource) -> Option<&'a [u8]> {
        match self {
            Self::Kept => source.authorization_sealed.as_deref(),
            Self::To(sealed) => sealed.as_deref(),
        }
    }
}

impl DocumentService {
    /// Changes a document, which is as it is returned afterwards.
    ///
    /// # Errors
    /// When it cannot be as it is to be, and when it is not what the change begins from.
    pub(crate) async fn change(
        &self,
        actor: &Actor,
        id: DocumentId,
        change: DocumentChange,
        base: EditBase,
    ) -> Result<DocumentDetails, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let workspace = owner.workspace_id;
        let mut tx = self.db.begin().await?;
        let found = db::documents::find_locked(&mut tx, workspace, id).await?;
        let (before, source) = found.ok_or_else(unknown)?;
        base.check(before.updated_at)?;
        let work = self.apply(actor, &mut tx, &change, &before, &source).await?;
        let after = db::documents::find_collected(&mut tx, workspace, id).await?.ok_or_else(unknown)?;
        tx.commit().await?;
        if work > ReindexScope::Nothing {
            self.jobs.doorbell().ring(1);
        }
        Ok(after)
    }

    /// Stores what is to be different, and queues what that makes necessary.
    async fn apply(
        &self,
        actor: &Actor,
        tx: &mut Tx,
        change: &DocumentChange,
        before: &Document,
        source: &DocumentSource,
    ) -> Result<ReindexScope, ApiError> {
        let (owner, id) = (before.owner, before.id);
        let workspace = owner.workspace_id;
        let (url, content) = resulting_source(change, source)?;
        let pages = resulting_pages(change, source)?;
        let splitter_before = source.splitter.as_ref().map(|Json(splitter)| splitter);
        let splitter = change.splitter.as_ref().map_or(splitter_before, Option::as_ref);
        let metadata_before = before.metadata.as_ref().map(|Json(metadata)| metadata);
        let metadata = change.metadata.as_ref().map_or(metadata_before, Option::as_ref);
        let authorization = self.resulting_authorization(change, source, url)?;
        let after = Row {
            id,
            owner,
            r#type: before.r#type,
            name: change.name.as_deref().unwrap_or(&before.name),
            description: change.description.as_deref().unwrap_or(&before.description),
            url,
            content,
            metadata,
            splitter,
            pages,
            authorization_sealed: authorization.sealed(source),
        };
        let named_anew = after.name != before.name;
        let source_changed = after.url != source.url
            || after.content != source.content.as_deref()
            || pages != pages_of(source)
            || splitter != splitter_before
            || authorization.is_change();
        let filters_changed = metadata != metadata_before;
        if !(named_anew || source_changed || filters_changed || after.description != before.description) {
            return Ok(ReindexScope::Nothing);
        }
        // Citations show the name and lead to the url.
        if named_anew || filters_changed || after.url != source.url {
            db::documents::bump_search_epoch(tx, workspace).await?;
        }
        self.store_changed(actor, tx, source, &after).await?;
        if authorization.is_change() {
            self.audit.note(tx, actor, AuditAction::SecretChanged, "document", id).await?;
        }
        if !(named_anew || source_changed) {
            return Ok(ReindexScope::Nothing);
        }
        self.queue_changed(tx, before, source_changed).await
    }

    /// Stores a document as it is to be, if there is room for it.
    async fn store_changed(
        &self,
        actor: &Actor,
        tx: &mut Tx,
        source: &DocumentSource,
        after: &Row<'_>,
    ) -> Result<(), ApiError> {
        let bytes = |content: Option<&str>| content.map_or(0, str::len) as u64;
        let more = bytes(after.content).saturating_sub(bytes(source.content.as_deref()));
        // Whoever has too much may change it, as long as it does not become more.
        if more > 0 {
            check_stored_bytes(&self.settings, tx, actor, after.owner.workspace_id, more).await?;
        }
        db::documents::update(tx, after, self.clock.now()).await?;
        if after.content != source.content.as_deref() {
            db::documents::content::set(tx, after.id, after.content).await?;
        }
        Ok(())
    }

    /// Queues a document that was changed, to be ingested as far as it has to be.
    async fn queue_changed(
        &self,
        tx: &mut Tx,
        before: &Document,
        source_changed: bool,
    ) -> Result<ReindexScope, ApiError> {
        if !self.jobs.enqueue_ingest(tx, before.owner.workspace_id, before.id).await? {
            return Err(unknown());
        }
        // Its passages are those of its source only when its last ingestion ended well.
        let current = before.search_index.is_some() && before.ingestion.state == JobState::Done;
        if source_changed || !current {
            return Ok(ReindexScope::Ingest);
        }
        db::documents::from_stored(tx, before.id, &before.ingestion.warnings.0).await?;
        Ok(ReindexScope::Index)
    }

    /// What becomes of the authorization of a document that is then at this address.
    fn resulting_authorization(
        &self,
        change: &DocumentChange,
        source: &DocumentSource,
        url: &str,
    ) -> Result<AuthorizationChange, ApiError> {
        let Some(given) = &change.authorization else {
            // It goes with the address that it was given for.
            if source.authorization_sealed.is_some() && is_gone(source, url) {
                return Ok(AuthorizationChange::To(None));
            }
            check_kept_authorization(source, url)?;
            return Ok(AuthorizationChange::Kept);
        };
        // Without an address there is nothing that it could open.
        let given = given.as_ref().filter(|_| !url.is_empty());
        if self.is_same(source, given)? {
            return Ok(AuthorizationChange::Kept);
        }
        let sealed = given.map(|given| self.seal(source.id, given)).transpose()?;
        Ok(AuthorizationChange::To(sealed))
    }

    /// Whether a document's authorization is this one already.
    fn is_same(
        &self,
        source: &DocumentSource,
        given: Option<&SourceAuthorization>,
    ) -> Result<bool, ApiError> {
        let Some(sealed) = &source.authorization_sealed else { return Ok(given.is_none()) };
        let Some(given) = given else { return Ok(false) };
        let known = self
            .keyring
            .decrypt_text(CiphertextLocation::document_authorization(source.id.as_uuid()), sealed)?;
        Ok(serde_json::from_str(known.expose_secret()).is_ok_and(|known: Value| known == json!(given)))
    }
}

/// Whether the address that a document's authorization was given for is there no more, or was not before.
fn is_gone(source: &DocumentSource, url: &str) -> bool {
    url != source.url && (url.is_empty() || source.url.is_empty())
}

/// Refuses to keep an authorization that would then be sent somewhere else: whoever may change the document could have it sent to
/// a host of their own, and read what is never shown.
fn check_kept_authorization(source: &DocumentSource, url: &str) -> Result<(), ApiError> {
    if source.authorization_sealed.is_none() {
        return Ok(());
    }
    // It is for the origin of the first address.
    let origin = |addresses_of: &str| {
        let first = addresses(source.r#type, addresses_of).into_iter().next()?;
        Url::parse(first).ok().map(|first| first.origin())
    };
    let after = origin(url);
    if after.is_none() || after == origin(&source.url) {
        return Ok(());
    }
    let message = "was given for another host than that of the new url; send it again, or null to do without";
    Err(ApiError::invalid_field("authorization", message))
}

/// The url and the content that a document has after the change: one of them, or none for an uploaded one.
fn resulting_source<'a>(
    change: &'a DocumentChange,
    source: &'a DocumentSource,
) -> Result<(&'a str, Option<&'a str>), ApiError> {
    if source.blob_key.is_some() {
        let refuse = |path| {
            let message = "cannot be set: the document was uploaded; replace its file (PUT …/file)";
            Err(ApiError::invalid_field(path, message))
        };
        // One that a source was made into has its address too.
        return match (change.new_url(), change.new_content()) {
            (Some(url), _) if url != source.url => refuse("url"),
            (_, Some(_)) => refuse("content"),
            (_, None) => Ok((&source.url, None)),
        };
    }
    if let Some(url) = change.new_url() {
        return match address_problems(source.r#type, url) {
            // What was taken before stays what it is.
            problems if problems.is_empty() || url == source.url => Ok((url, None)),
            problems => {
                let wrong = |message: String| FieldError::new("url", &message);
                Err(ApiError::invalid(problems.into_iter().map(wrong).collect()))
            }
        };
    }
    if let Some(content) = change.new_content() {
        if !rules::takes_content(source.r#type) {
            return Err(ApiError::invalid_field("content", rules::NO_CONTENT));
        }
        return Ok(("", Some(content)));
    }
    let url = if change.url.is_some() { "" } else { &source.url };
    let content = if change.content.is_some() { None } else { source.content.as_deref() };
    if url.is_empty() && content.is_none() {
        return Err(ApiError::invalid_field("url", rules::SOURCE_MISSING));
    }
    Ok((url, content))
}

fn resulting_pages(change: &DocumentChange, source: &DocumentSource) -> Result<PageRange, ApiError> {
    let before = pages_of(source);
    if source.r#type != DocumentType::Pdf {
        return Ok(before);
    }
    let mut wrong = Vec::new();
    let mut read = |path: &str, given: Option<&Option<GivenPage>>, before: Option<u32>| match given {
        None => before,
        Some(None) => None,
        Some(Some(GivenPage(Ok(page)))) => Some(*page),
        Some(Some(GivenPage(Err(message)))) => {
            wrong.push(FieldError::new(path, message));
            None
        }
    };
    let pages = PageRange {
        from: read("from_page", change.from_page.as_ref(), before.from),
        to: read("to_page", change.to_page.as_ref(), before.to),
    };
    if !wrong.is_empty() {
        return Err(ApiError::invalid(wrong));
    }
    if rules::are_reversed(pages) {
        return Err(ApiError::invalid_field("to_page", rules::PAGES_REVERSED));
    }
    Ok(pages)
}

fn pages_of(source: &DocumentSource) -> PageRange {
    let page = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
    PageRange { from: page(source.from_page), to: page(source.to_page) }
}
