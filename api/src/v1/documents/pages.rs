//! The pages of a document, as pictures.

use axum::{
    Json, RequestPartsExt as _,
    extract::{FromRequestParts, Path, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, request::Parts},
    response::IntoResponse,
};
use lectern_derive::handler;
use lectern_parse::protocol::{IMAGE_WIDTHS, ImageFormat};
use lectern_shared::{
    ids::DocumentId,
    model::page::{PageBox, PageInfo},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::number_paging::NumberPaging;
use crate::{
    auth::Caller,
    error::{ApiError, FieldError},
    extract::{PathId, parameter},
    response::ApiResult,
    services::pages::{DrawnPage, PageService, PageView, ShownPage},
    source_file::is_known,
};

/// Pixels from left to right when nothing is said.
const WIDTH: u32 = 1_200;
/// Things that are marked at once, at most.
const HIGHLIGHTS: usize = 20;
/// Where the marks are.
const BOXES: HeaderName = HeaderName::from_static("lectern-page-boxes");

/// A page.
#[derive(Serialize, ToSchema)]
#[schema(as = DocumentPage)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageRow {
    /// Its place in the source, counted from 1.
    #[schema(minimum = 1)]
    page: u32,
    /// How wide it is, in points (1/72 inch), as it is seen.
    width: f32,
    /// How high it is, in points.
    height: f32,
    /// Whether any text was read of it.
    has_text: bool,
    /// How many characters were.
    chars: u32,
}

impl From<PageInfo> for PageRow {
    fn from(page: PageInfo) -> Self {
        let PageInfo { number, width, height, chars, .. } = page;
        Self { page: number, width, height, has_text: chars > 0, chars }
    }
}

/// Some of a document's pages.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PagesOfDocument {
    /// True when the call succeeded.
    success: bool,
    /// The pages, in the order of the source.
    data: Vec<PageRow>,
    /// Where the next ones begin; absent when these are the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// List a document's pages
///
/// Shows the pages of a PDF that can be drawn, with their sizes and how much text was read of each, at most 200 at a time. Only
/// uploaded files are kept, and so only their pages can be seen. Askers, and API tokens that are bound to an agent, see the pages on
/// which passages stand that were cited to them.
#[utoipa::path(
    get,
    path = "/documents/{id}/pages",
    tag = "Documents",
    operation_id = "listDocumentPages",
    params(
        ("id" = String, Path, description = "The document's id"),
        ("limit" = Option<u32>, Query, description = "Pages at a time", minimum = 1, maximum = 200),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the answer before"),
    ),
    responses((
        status = 200,
        description = "Pages",
        body = inline(PagesOfDocument),
        example = json!({
            "success": true,
            "data": [{"page": 1, "width": 595.3, "height": 841.9, "hasText": true, "chars": 2140}],
            "nextCursor": "2",
        }),
    )),
)]
#[handler]
pub(super) async fn list(
    State(pages): State<PageService>,
    caller: Caller,
    PathId(id): PathId<DocumentId>,
    paging: NumberPaging,
) -> ApiResult {
    // One page more than is shown tells that there are more.
    let mut pages = pages.list(&caller.actor(), id, paging.from, paging.limit + 1).await?;
    let more = pages.len() > paging.limit as usize;
    pages.truncate(paging.limit as usize);
    let next_cursor = pages.last().filter(|_| more).map(|page| (page.number + 1).to_string());
    let data = pages.into_iter().map(PageRow::from).collect();
    Ok(Json(PagesOfDocument { success: true, data, next_cursor }).into_response())
}

/// The page that is asked for, and how.
pub(super) struct PageRequest {
    document: DocumentId,
    view: PageView,
}

impl<S: Send + Sync> FromRequestParts<S> for PageRequest {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let unknown = || ApiError::not_found("page");
        let Path((document, page)) =
            parts.extract::<Path<(String, String)>>().await.map_err(|_| unknown())?;
        let document = document.parse().map_err(|_| ApiError::not_found("document"))?;
        let page = page.parse().ok().filter(|page| *page > 0).ok_or_else(unknown)?;
        let mut wrong = Vec::new();
        let mut refuse = |path: &str, message: String| {
            wrong.push(FieldError::new(path, &message));
        };
        let mut view = PageView { page, width: WIDTH, format: ImageFormat::Png, highlights: Vec::new() };
        match parameter(&parts.uri, "width").map(|text| text.parse()) {
            None => {}
            Some(Ok(width)) if IMAGE_WIDTHS.contains(&width) => view.width = width,
            Some(Ok(_) | Err(_)) => {
                let (least, most) = (IMAGE_WIDTHS.start(), IMAGE_WIDTHS.end());
                refuse("width", format!("must be a number between {least} and {most}"));
            }
        }
        match parameter(&parts.uri, "format").as_deref() {
            None | Some("png") => {}
            Some("webp") => view.format = ImageFormat::Webp,
            Some(_) => refuse("format", "must be png or webp".to_owned()),
        }
        if let Some(text) = parameter(&parts.uri, "highlight") {
            let all: Result<Vec<_>, ()> = text.split(',').map(str::parse).collect();
            match all {
                Ok(all) if all.len() <= HIGHLIGHTS => view.highlights = all,
                Ok(_) | Err(()) => refuse(
                    "highlight",
                    format!(
                        "must be the id of a passage, or start-end in characters of the text, or up to {HIGHLIGHTS} of them with commas between"
                    ),
                ),
            }
        }
        if wrong.is_empty() { Ok(Self { document, view }) } else { Err(ApiError::invalid(wrong)) }
    }
}

/// Bytes.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "it is written down for the documentation only")]
struct ImageSchema(Vec<u8>);

/// Get a page's image
///
/// Draws a page of an uploaded PDF, with what `highlight` names marked on it. Where the words are not found on the page nothing is
/// marked. `ETag` changes when the image does; with `If-None-Match`, the answer is 304 while it is the same. `404 no_page_images` is
/// told where there is no such image: the document is no PDF, or its file is not stored. Askers, and API tokens that are bound to an
/// agent, see the pages on which passages stand that were cited to them, and nothing else is marked there.
#[utoipa::path(
    get,
    path = "/documents/{id}/pages/{n}",
    tag = "Documents",
    operation_id = "getDocumentPage",
    params(
        ("id" = String, Path, description = "The document's id"),
        ("n" = u32, Path, description = "The page, counted from 1", minimum = 1),
        ("width" = Option<u32>, Query, description = "Pixels from left to right; 1200 when nothing is said", minimum = 200, maximum = 2400),
        (
            "highlight" = Option<String>,
            Query,
            description = "What is marked: the id of a passage, or `start-end` in characters (Unicode code points) of the extracted \
                text; up to 20 of them with commas between",
        ),
        ("format" = Option<String>, Query, description = "`png`, or `webp`, which is smaller; `png` when nothing is said"),
    ),
    responses(
        (
            status = 200,
            description = "The image",
            content((inline(ImageSchema) = "image/png"), (inline(ImageSchema) = "image/webp")),
            headers(
                ("ETag" = String, description = "Changes when the image does"),
                ("Lectern-Page-Boxes" = String, description = "What is marked: the left, top, right and bottom edge of each box in points from the page's left upper corner, with `;` between the boxes; absent when nothing is"),
            ),
        ),
        (status = 304, description = "The image is the one that `If-None-Match` names"),
    ),
)]
#[handler]
pub(super) async fn show(
    State(pages): State<PageService>,
    caller: Caller,
    headers: HeaderMap,
    PageRequest { document, view }: PageRequest,
) -> ApiResult {
    let shown = pages.find(&caller.actor(), document, view).await?;
    image_response(&pages, vec![shown], &headers).await
}

/// The image of the first of some pages on which something is marked, or else of the first, and where the marks are; 304 when the
/// request names it as one that its sender has.
pub(crate) async fn image_response(
    pages: &PageService,
    shown: Vec<ShownPage>,
    headers: &HeaderMap,
) -> ApiResult {
    if let Some(page) = shown.iter().find(|page| is_known(headers, &page.etag)) {
        return Ok((StatusCode::NOT_MODIFIED, caching(&page.etag)?).into_response());
    }
    let mut found: Option<(String, DrawnPage)> = None;
    for page in shown {
        let etag = page.etag.clone();
        let drawn = pages.image(page).await?;
        let is_marked = !drawn.boxes.is_empty();
        if is_marked || found.is_none() {
            found = Some((etag, drawn));
        }
        if is_marked {
            break;
        }
    }
    let (etag, DrawnPage { format, image, boxes }) = found.ok_or_else(|| ApiError::not_found("page"))?;
    let mut response = (caching(&etag)?, image).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    let told =
        |PageBox { left, top, right, bottom }: &PageBox| format!("{left:.1},{top:.1},{right:.1},{bottom:.1}");
    let told = boxes.iter().map(told).collect::<Vec<_>>().join(";");
    if !told.is_empty() {
        headers.insert(BOXES, HeaderValue::from_str(&told).map_err(|_| ApiError::internal())?);
    }
    Ok(response)
}

/// The headers of an image that may be kept.
fn caching(etag: &str) -> Result<[(HeaderName, HeaderValue); 2], ApiError> {
    let etag = HeaderValue::from_str(etag).map_err(|_| ApiError::internal())?;
    Ok([
        (header::ETAG, etag),
        // It is for those who may see the document, as long as they may.
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
    ])
}
