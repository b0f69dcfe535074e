//! Pages of documents, as pictures on which what is quoted is marked. They are drawn from the stored file when somebody looks, in a
//! child process, and kept in memory for a while.

mod cache;
mod highlight;
mod line;

use std::{sync::Arc, time::Instant};

use lectern_db::{self as db, Db, documents::uploads};
use lectern_parse::protocol::{DrawError, ImageFormat, PageDrawing};
use lectern_runtime::Runtime;
use lectern_sandbox::{DrawFailure, DrawOrder, Sandbox, SandboxConfig};
use lectern_shared::{
    ids::{DocumentId, WorkspaceId},
    metrics::Metrics,
    model::{
        document::{Document, DocumentType, StoredFile},
        job::JobState,
        page::PageInfo,
    },
    secrets::{hex, sha256},
};

use self::{cache::DrawingCache, line::DrawingLine};
pub(crate) use self::{cache::DrawnPage, highlight::Highlight};
use super::{
    actor::{Actor, Permission},
    documents::{CitedParts, DocumentService},
};
use crate::error::{ApiError, ApiErrorKind};

/// Raised whenever the same page would be drawn in another way.
const DRAWING_VERSION: u32 = 3;

/// Pages that are read at a time where not all of them are shown.
const READ_AT_ONCE: u32 = 200;

/// How a page is to be shown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PageView {
    /// The page, counted from 1.
    pub(crate) page: u32,
    /// Pixels from left to right.
    pub(crate) width: u32,
    pub(crate) format: ImageFormat,
    /// What is to be marked.
    pub(crate) highlights: Vec<Highlight>,
}

/// A page that may be shown, and is not drawn yet.
pub(crate) struct ShownPage {
    workspace: WorkspaceId,
    document: Document,
    file: StoredFile,
    info: Option<PageInfo>,
    view: PageView,
    /// Changes when the image would.
    pub(crate) etag: String,
}

/// Draws pages. Cheap to clone.
#[derive(Clone)]
pub(crate) struct PageService {
    db: Db,
    documents: DocumentService,
    metrics: Arc<Metrics>,
    sandbox: Sandbox,
    line: DrawingLine,
    cache: DrawingCache,
}

fn no_pages(why: &str) -> ApiError {
    let message = format!("There are no images of this document's pages: {why}.");
    ApiError::new(ApiErrorKind::NotFound, "no_page_images", message)
}

impl PageService {
    pub(crate) fn new(runtime: &Runtime, documents: DocumentService) -> Self {
        let settings = runtime.settings.page_images;
        let config =
            SandboxConfig::for_drawing(&runtime.settings.limits, settings.timeout, settings.parallel);
        Self {
            db: runtime.db.clone(),
            documents,
            metrics: runtime.metrics.clone(),
            sandbox: Sandbox::new(config),
            line: DrawingLine::new(settings.parallel),
            cache: DrawingCache::new(settings.cache),
        }
    }

    /// A document, the workspace that it is in, and what of it may be seen, as far as it takes until `is_enough`; none when all of it may.
    ///
    /// # Errors
    /// Not found, too, for roles that do not edit documents, when nothing of it was cited to them.
    async fn open(
        &self,
        actor: &Actor,
        id: DocumentId,
        is_enough: impl Fn(&CitedParts) -> bool + Send,
    ) -> Result<(WorkspaceId, Document, Option<CitedParts>), ApiError> {
        let Ok(owner) = actor.may(Permission::EditDocuments) else {
            let owner = actor.may_read_cited()?;
            let (document, cited) = self.documents.cited_parts(owner, id, is_enough).await?;
            return Ok((owner.workspace_id, document, Some(cited)));
        };
        Ok((owner.workspace_id, self.documents.load(actor, id).await?, None))
    }

    /// At most `limit` of a document's pages that can be drawn, from a number on; for roles that do not edit documents those alone on
    /// which something stands that was cited to them.
    ///
    /// # Errors
    /// Not found, too, when it has none.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        id: DocumentId,
        from: i64,
        limit: u32,
    ) -> Result<Vec<PageInfo>, ApiError> {
        let (workspace, document, cited) = self.open(actor, id, |_: &CitedParts| false).await?;
        self.stored(workspace, &document).await?;
        let pages = match &cited {
            None => db::pages::list(&self.db, workspace, id, from, limit).await?,
            Some(cited) => self.list_cited(workspace, id, cited, from, limit).await?,
        };
        if pages.is_empty() && !self.has_pages(workspace, id).await? {
            return Err(no_pages(without_pages(&document)));
        }
        Ok(pages)
    }

    async fn list_cited(
        &self,
        workspace: WorkspaceId,
        id: DocumentId,
        cited: &CitedParts,
        mut from: i64,
        limit: u32,
    ) -> Result<Vec<PageInfo>, ApiError> {
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut shown = Vec::new();
        loop {
            let pages = db::pages::list(&self.db, workspace, id, from, READ_AT_ONCE).await?;
            let Some(last) = pages.last().map(|last| last.number) else { return Ok(shown) };
            shown.extend(pages.into_iter().filter(|page| cited.has_page(page.number)));
            if shown.len() >= most {
                shown.truncate(most);
                return Ok(shown);
            }
            from = i64::from(last) + 1;
        }
    }

    /// Width and height of a page that can be drawn, in points. Who may know was decided before.
    pub(crate) async fn size(
        &self,
        workspace: WorkspaceId,
        id: DocumentId,
        page: u32,
    ) -> Result<Option<(f32, f32)>, ApiError> {
        let Some(page) = db::pages::get(&self.db, workspace, id, page).await? else { return Ok(None) };
        let is_stored = uploads::find(&self.db, workspace, id).await?.is_some();
        Ok(is_stored.then_some((page.width, page.height)))
    }

    /// A page of a document, if it may be shown to this actor. What may not be read is not marked on it either.
    pub(crate) async fn find(
        &self,
        actor: &Actor,
        id: DocumentId,
        mut view: PageView,
    ) -> Result<ShownPage, ApiError> {
        let is_enough = |cited: &CitedParts| {
            cited.has_page(view.page) && view.highlights.iter().all(|highlight| highlight.is_within(cited))
        };
        let (workspace, document, cited) = self.open(actor, id, is_enough).await?;
        if let Some(cited) = cited {
            if !cited.has_page(view.page) {
                return Err(self.no_such_page(workspace, &document).await?);
            }
            view.highlights.retain(|highlight| highlight.is_within(&cited));
        }
        self.of(workspace, document, view).await
    }

    /// A page of a workspace's document. Who may see it was decided before.
    pub(crate) async fn of(
        &self,
        workspace: WorkspaceId,
        document: Document,
        view: PageView,
    ) -> Result<ShownPage, ApiError> {
        let file = self.stored(workspace, &document).await?;
        let info = db::pages::get(&self.db, workspace, document.id, view.page).await?;
        // What was read before pages were noted can be drawn all the same.
        if info.is_none() && document.r#type != DocumentType::Pdf {
            return Err(self.no_such_page(workspace, &document).await?);
        }
        let generation = document.search_index.as_ref().map(|index| index.0.generation.to_string());
        let PageView { page, width, format, highlights } = &view;
        let identity = format!(
            "{DRAWING_VERSION} {workspace} {} {} {generation:?} {page} {width} {format:?} {highlights:?}",
            document.id,
            hex(&file.source_sha256),
        );
        let etag = format!("\"{}\"", hex(sha256(identity.as_bytes()).get(..16).unwrap_or_default()));
        Ok(ShownPage { workspace, document, file, info, view, etag })
    }

    /// What is said of a page that is not there, or not to be seen.
    async fn no_such_page(&self, workspace: WorkspaceId, document: &Document) -> Result<ApiError, ApiError> {
        let has_pages =
            document.r#type == DocumentType::Pdf || self.has_pages(workspace, document.id).await?;
        Ok(if has_pages { ApiError::not_found("page") } else { no_pages(without_pages(document)) })
    }

    async fn has_pages(&self, workspace: WorkspaceId, id: DocumentId) -> Result<bool, ApiError> {
        Ok(!db::pages::list(&self.db, workspace, id, 0, 1).await?.is_empty())
    }

    async fn stored(&self, workspace: WorkspaceId, document: &Document) -> Result<StoredFile, ApiError> {
        let file = uploads::find(&self.db, workspace, document.id).await?;
        file.ok_or_else(|| no_pages(without_file(document)))
    }

    /// The page's image, which may have been drawn before.
    pub(crate) async fn image(&self, shown: ShownPage) -> Result<DrawnPage, ApiError> {
        let ShownPage { workspace, document, file, info, view, etag } = shown;
        if let Some(drawn) = self.cache.get(&etag) {
            return Ok(drawn);
        }
        // Whoever waits here for the same page mostly finds it drawn.
        let _place = self.line.wait(workspace).await?;
        if let Some(drawn) = self.cache.get(&etag) {
            return Ok(drawn);
        }
        let order = DrawOrder {
            page: view.page,
            width: view.width,
            format: view.format,
            marks: highlight::texts(&self.db, workspace, &document, view.page, &view.highlights).await?,
            words: info.map(|page| page.words).unwrap_or_default(),
        };
        let mut source = self.documents.open_file(document.id, &file).await?;
        let began = Instant::now();
        let drawing = self.sandbox.draw(order, &mut source).await;
        self.metrics.drawn(drawing.is_ok(), began.elapsed());
        let drawing = drawing.map_err(|failure| failed(&failure, document.id))?;
        let PageDrawing { image, boxes, .. } = drawing;
        let drawn = DrawnPage { format: view.format, image: image.into(), boxes: boxes.into() };
        self.cache.put(etag, drawn.clone());
        Ok(drawn)
    }
}

/// Why a document of which no file is stored has no pages.
fn without_file(document: &Document) -> &'static str {
    match document.r#type {
        DocumentType::Pdf | DocumentType::Url => {
            "its file is not stored; upload the file instead of naming its address to see its pages"
        }
        DocumentType::Txt | DocumentType::Csv | DocumentType::Video => {
            "only PDFs have them that were uploaded, or that a source has brought"
        }
    }
}

/// Why a document that is stored has no pages.
fn without_pages(document: &Document) -> &'static str {
    if document.search_index.is_none() {
        match document.ingestion.state {
            JobState::Dead => "it could not be read; `ingestion.error` says why",
            JobState::Cancelled => "it was stopped before it was read",
            JobState::Queued | JobState::Running | JobState::Done => "it was not read yet",
        }
    } else if document.r#type == DocumentType::Pdf {
        "it was read by an older version; ingest it again"
    } else {
        "it is no PDF"
    }
}

fn failed(failure: &DrawFailure, document: DocumentId) -> ApiError {
    let invalid = |message: String| ApiError::new(ApiErrorKind::Invalid, "page_not_drawn", message);
    match failure {
        DrawFailure::Page(DrawError::NoSuchPage { pages }) => {
            let message = format!("The document has {pages} pages.");
            ApiError::new(ApiErrorKind::NotFound, "not_found", message)
        }
        DrawFailure::Page(
            DrawError::PasswordRequired | DrawError::Damaged | DrawError::TooLarge | DrawError::Failed,
        )
        | DrawFailure::TooSlow
        | DrawFailure::Crashed => invalid(format!("The page is not drawn: {failure}.")),
        DrawFailure::Sandbox(error) => {
            tracing::error!(%document, %error, "a page could not be drawn");
            ApiError::internal()
        }
    }
}
