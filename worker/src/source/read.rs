//! Reading a document's source: one address, several, a video, an upload or what came inline; and telling whether it has
//! changed since it was read the last time.

use std::io::{Read, Seek};

use lectern_parse::formats::html::{TrackElement, TrackKind};
use lectern_sandbox::Sandbox;
use lectern_shared::{
    config::Settings,
    egress::Egress,
    model::{
        Json,
        document::{DocumentSource, DocumentType, PageRange, SourceState, addresses},
        job::{IngestionStage, IngestionWarning, SourceInfo},
    },
    secrets::{Sha256Hasher, hex, sha256},
};
use serde_json::json;
use tokio::fs::File;
use url::Url;

use super::{
    fetch::{CacheValidators, FetchBudget, FetchOutcome, SourceFetcher},
    load::{self, DownloadedFile, FetchedSource, LoadContext},
    pdf::PdfEngine,
    video::{self, VideoCaptions},
};
use crate::{
    extracted::ExtractedText, failure::IngestFailure, lease::ProgressReporter, splitter::TokenCounter,
};

/// Raised whenever parsers or the splitter make something else of the same bytes: sources are then read again, changed or not.
const READERS: u32 = 5;
/// Bytes that are hashed at a time.
const HASHED: usize = 64 << 10;

/// What came of reading a source.
pub(crate) enum ReadOutcome {
    /// It is as it was: the passages that are stored are still right.
    Unchanged,
    /// Its text, and what to know it by the next time.
    Read(Box<(ExtractedText, SourceState)>),
}

/// Reads a document's source. `known` is what was read the last time, if its passages are stored.
pub(crate) struct SourceReading<'a> {
    pub(crate) fetcher: SourceFetcher<'a>,
    pub(crate) settings: &'a Settings,
    /// The way to the video site alone.
    pub(crate) video_egress: &'a Egress,
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) pdf: &'a PdfEngine,
    pub(crate) source: &'a DocumentSource,
    pub(crate) sizing: &'a TokenCounter,
    pub(crate) progress: &'a ProgressReporter,
    pub(crate) budget: FetchBudget,
}

impl SourceReading<'_> {
    pub(crate) async fn read(&self, known: Option<&SourceState>) -> Result<ReadOutcome, IngestFailure> {
        let Self { source, progress, .. } = *self;
        let settings = self.settings().await?;
        let known = known.filter(|known| known.settings == settings);
        if known.is_some() && (source.content.is_some() || source.blob_key.is_some()) {
            // What they hold is part of the settings, or never changes.
            return Ok(ReadOutcome::Unchanged);
        }
        progress.stage(IngestionStage::Fetch);
        let (validators, mut extracted) = if let Some(content) = &source.content {
            (CacheValidators::default(), self.load(FetchedSource::Inline(content.clone())).await?)
        } else if source.blob_key.is_some() {
            (CacheValidators::default(), self.load(self.fetcher.upload().await?).await?)
        } else {
            match addresses(source.r#type, &source.url).as_slice() {
                [address] => match self.address(address, known).await? {
                    Some((validators, extracted)) => (validators, extracted),
                    None => return Ok(ReadOutcome::Unchanged),
                },
                several => (CacheValidators::default(), self.several(several).await?),
            }
        };
        if let Some(given) = source.splitter.as_ref().and_then(|Json(splitter)| splitter.given.as_deref()) {
            extracted.warnings.push(IngestionWarning {
                code: "legacy_splitter".to_owned(),
                message: format!("The splitter's name {given} is an old one; it was read as its successor."),
                count: 1,
            });
        }
        let CacheValidators { etag, last_modified, sha256 } = validators;
        let state = SourceState {
            settings,
            etag,
            last_modified,
            sha256,
            source: extracted.source.clone(),
            warnings: extracted.warnings.clone(),
        };
        Ok(ReadOutcome::Read(Box::new((extracted, state))))
    }

    /// Everything besides the bytes at an address that the passages depend on.
    async fn settings(&self) -> Result<String, IngestFailure> {
        let DocumentSource { r#type, url, content, blob_key, splitter, from_page, to_page, .. } = self.source;
        let limits = &self.settings.limits;
        // Captions are chosen by it, and the text of scans is recognised by it.
        let language = match r#type {
            DocumentType::Video | DocumentType::Pdf | DocumentType::Url => self.language(),
            DocumentType::Txt | DocumentType::Csv => None,
        };
        let content = match content {
            Some(content) => Some(hash_text(content.clone()).await?.1),
            None => None,
        };
        let all = json!([
            READERS,
            r#type,
            url,
            content,
            blob_key,
            splitter.as_ref().map(|Json(splitter)| splitter),
            from_page,
            to_page,
            language,
            limits.characters,
            limits.pages,
            self.pdf.name(),
            self.sizing.to_string()
        ]);
        Ok(hex(&sha256(all.to_string().as_bytes())))
    }

    /// The language that the document says it is in; of a video, the one that is wanted.
    fn language(&self) -> Option<&str> {
        self.source.metadata.as_ref()?.0.get("language")?.as_str()
    }

    /// What is at an address; none when it is what it was.
    async fn address(
        &self,
        address: &str,
        known: Option<&SourceState>,
    ) -> Result<Option<(CacheValidators, ExtractedText)>, IngestFailure> {
        let url = Url::parse(address).map_err(|_| {
            IngestFailure::permanent("invalid_url", "The document's address is not a valid one.")
        })?;
        if matches!(self.source.r#type, DocumentType::Video | DocumentType::Url)
            && let Some(id) = video::video_id(&url, &self.settings.video)
        {
            return self.video(&id, known).await;
        }
        let got = self.fetch(url, known).await?;
        let FetchOutcome::New { mut download, mut validators } = got else { return Ok(None) };
        if self.source.r#type == DocumentType::Video
            && let Some(tracks) = load::tracks_of_page(&mut download).await?
        {
            return self.captions_of_page(tracks, download).await.map(Some);
        }
        let (file, sha256) = hash(download.file).await?;
        if known.is_some_and(|known| known.sha256.as_ref() == Some(&sha256)) {
            return Ok(None);
        }
        validators.sha256 = Some(sha256);
        download.file = file;
        let extracted = self.load(FetchedSource::Download(download)).await?;
        Ok(Some((validators, extracted)))
    }

    async fn fetch(&self, url: Url, known: Option<&SourceState>) -> Result<FetchOutcome, IngestFailure> {
        self.budget.spend(|within| self.fetcher.fetch(url, known, within)).await
    }

    /// What is said in a video of the video site; none when it is what it was.
    async fn video(
        &self,
        id: &str,
        known: Option<&SourceState>,
    ) -> Result<Option<(CacheValidators, ExtractedText)>, IngestFailure> {
        let wanted = self.language();
        let captions =
            |within| video::captions(self.settings, self.video_egress, id, wanted, within, self.progress);
        let captions = self.budget.spend(captions).await?;
        let VideoCaptions { body, title, canonical_url, language, automatic, .. } = captions;
        let bytes = body.len() as u64;
        let (body, hash) = hash_text(body).await?;
        if known.is_some_and(|known| known.sha256.as_ref() == Some(&hash)) {
            return Ok(None);
        }
        let mut extracted = self.load(FetchedSource::Captions(body)).await?;
        let mut warn = |code: &str, message: String| {
            extracted.warnings.push(IngestionWarning { code: code.to_owned(), message, count: 1 });
        };
        if automatic {
            let message =
                "The captions were written by a machine that listened; names and numbers may be wrong.";
            warn("automatic_captions", message.to_owned());
        }
        if let Some(wanted) = wanted.filter(|wanted| base(wanted) != base(&language)) {
            warn(
                "other_language",
                format!("There are no captions in {wanted}; those in {language} were taken."),
            );
        }
        extracted.source =
            SourceInfo { title, canonical_url: Some(canonical_url), mime_type: None, bytes: Some(bytes) };
        Ok(Some((CacheValidators { sha256: Some(hash), ..CacheValidators::default() }, extracted)))
    }

    /// The captions that a web page gives its video.
    async fn captions_of_page(
        &self,
        tracks: Vec<TrackElement>,
        page: Box<DownloadedFile>,
    ) -> Result<(CacheValidators, ExtractedText), IngestFailure> {
        let wanted = self.language();
        let speech = tracks
            .into_iter()
            .filter(|track| matches!(track.kind, TrackKind::Captions | TrackKind::Subtitles));
        let rank = |track: &TrackElement| {
            let language = track.language.as_deref().map(base);
            let fits = wanted.is_some_and(|wanted| language == Some(base(wanted)));
            (fits, track.is_default, track.kind == TrackKind::Captions)
        };
        // The first of the best.
        let best = speech.reduce(|best, track| if rank(&track) > rank(&best) { track } else { best });
        let Some(best) = best else {
            let message = "The page has no captions that can be read. Give the address of a .vtt or .srt file, or add \
                           the transcript as a text.";
            return Err(IngestFailure::permanent("transcripts_disabled", message));
        };
        let got = self.fetch(best.url, None).await?;
        let FetchOutcome::New { download, .. } = got else {
            return Err(IngestFailure::Internal("captions that were never read are unchanged".to_owned()));
        };
        let mut extracted = self.load(FetchedSource::Download(download)).await?;
        extracted.source.canonical_url = page.url.map(load::without_credentials);
        Ok((CacheValidators::default(), extracted))
    }

    /// Several addresses as one text. One that is gone for good is left out and noted.
    async fn several(&self, addresses: &[&str]) -> Result<ExtractedText, IngestFailure> {
        let mut whole = ExtractedText::default();
        let (mut read, mut bytes) = (0, 0);
        let mut failed = None;
        let total = addresses.len() as u64;
        for (number, address) in (1_u32..).zip(addresses) {
            self.progress.of_several(Some((u64::from(number) - 1, total)));
            self.progress.stage(IngestionStage::Fetch);
            match self.address(address, None).await {
                Ok(found) => {
                    let Some((_, extracted)) = found else { continue };
                    bytes += extracted.source.bytes.unwrap_or(0);
                    let title = extracted.source.title.clone();
                    let address = extracted.source.canonical_url.clone();
                    let title = title.or(address).unwrap_or_default();
                    whole.append(&title, number, extracted);
                    read += 1;
                }
                Err(IngestFailure::Document(error)) if !error.retryable => {
                    tracing::debug!(code = error.code, "one of several addresses was left out");
                    failed.get_or_insert((error, 0)).1 += 1;
                }
                Err(failure) => return Err(failure),
            }
            if whole.length() > self.settings.limits.characters {
                let limit = self.settings.limits.characters;
                let message = format!(
                    "The pages together have more than {limit} characters. Split them into several documents."
                );
                return Err(IngestFailure::permanent("too_large", message));
            }
        }
        self.progress.of_several(None);
        match failed {
            Some((error, _)) if read == 0 => return Err(IngestFailure::Document(error)),
            Some((error, count)) => whole.warnings.push(IngestionWarning {
                code: "address_left_out".to_owned(),
                message: format!("Some addresses could not be read. The first: {}", error.message),
                count,
            }),
            None => {}
        }
        whole.source = SourceInfo { bytes: Some(bytes), ..SourceInfo::default() };
        Ok(whole)
    }

    async fn load(&self, fetched: FetchedSource) -> Result<ExtractedText, IngestFailure> {
        self.progress.stage(IngestionStage::Parse);
        let page = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
        let context = LoadContext {
            sandbox: self.sandbox,
            limits: &self.settings.limits,
            pages: PageRange { from: page(self.source.from_page), to: page(self.source.to_page) },
            pdf: self.pdf,
            language: self.language(),
            progress: self.progress,
        };
        load::load(self.source.r#type, fetched, &context).await
    }
}

/// The language of a tag without its region.
fn base(tag: &str) -> String {
    tag.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase()
}

/// A text and its SHA-256 in hexadecimal.
async fn hash_text(text: String) -> Result<(String, String), IngestFailure> {
    let work = tokio::task::spawn_blocking(move || {
        let hash = hex(&sha256(text.as_bytes()));
        (text, hash)
    });
    work.await.map_err(|_| IngestFailure::Panicked)
}

/// SHA-256 of a file from its beginning, in hexadecimal; the file stands at its beginning again.
async fn hash(file: File) -> Result<(File, String), IngestFailure> {
    let mut file = file.into_std().await;
    let work = tokio::task::spawn_blocking(move || {
        let mut hasher = Sha256Hasher::default();
        let mut piece = vec![0; HASHED];
        loop {
            match file.read(&mut piece)? {
                0 => break,
                read => hasher.update(piece.get(..read).unwrap_or_default()),
            }
        }
        file.rewind()?;
        Ok::<_, std::io::Error>((file, hex(&hasher.finish())))
    });
    let (file, hash) = work.await.map_err(|_| IngestFailure::Panicked)??;
    Ok((File::from_std(file), hash))
}
