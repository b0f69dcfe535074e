//! How a file would be read and cut, without a service: for operators and for measuring.

use std::{io, path::Path, sync::Arc};

use lectern_sandbox::{Sandbox, SandboxConfig};
use lectern_shared::{
    config::Settings,
    model::{
        document::{DocumentType, PageRange},
        job::{IngestionWarning, SourceInfo},
        place::SourceSpan,
    },
};
use serde::Serialize;
use tokio::fs::File;

use crate::{
    failure::IngestFailure,
    ingest::passages,
    lease::ProgressReporter,
    source::{self, DownloadedFile, FetchedSource, LoadContext, pdf::PdfEngine},
    splitter::TokenCounter,
};

/// What a file says, as the service would read it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DocumentPreview {
    /// What was learnt of it.
    pub source: SourceInfo,
    /// Pages read, for files that have pages.
    pub pages: Option<u32>,
    /// What was gone past.
    pub warnings: Vec<IngestionWarning>,
    /// The text.
    pub text: String,
    /// The passages that it would be searched by.
    pub passages: Vec<PreviewPassage>,
}

/// A passage.
#[derive(Debug, Serialize)]
pub struct PreviewPassage {
    /// Where it stands.
    pub place: SourceSpan,
    /// Roughly how many tokens it has.
    pub tokens: usize,
    /// What it says.
    pub text: String,
}

/// Reads a file as a document of this type would be read, in the same child process and within the same limits.
///
/// # Errors
/// The code and the message that the document's owner would see.
pub async fn read(path: &Path, r#type: DocumentType, settings: &Settings) -> Result<DocumentPreview, String> {
    let limits = &settings.limits;
    let told = |failure: IngestFailure| {
        let error = failure.into_error();
        format!("{}: {}", error.code, error.message)
    };
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    // Before it is opened: a pipe would be opened when somebody writes into it.
    if !tokio::fs::metadata(path).await.map_err(failed)?.is_file() {
        // Parsers go back and forth in it.
        return Err(format!("{}: it must be a file, and is a folder, a pipe or a device", path.display()));
    }
    let file = File::open(path).await.map_err(failed)?;
    let bytes = file.metadata().await.map_err(failed)?.len();
    let download = DownloadedFile {
        file,
        bytes,
        content_type: None,
        charset: None,
        url: None,
        name: path.file_name().map(|name| name.to_string_lossy().into_owned()),
    };
    let config = SandboxConfig::within(limits, 1).map_err(|error| error.to_string())?;
    let sandbox = Sandbox::new(config);
    let pdf = PdfEngine::choose(&settings.pdf, &sandbox).await.map_err(|error| error.to_string())?;
    let context = LoadContext {
        sandbox: &sandbox,
        limits,
        pages: PageRange::default(),
        pdf: &pdf,
        language: None,
        progress: &ProgressReporter::new(Arc::default()),
    };
    let extracted =
        source::load(r#type, FetchedSource::Download(Box::new(download)), &context).await.map_err(told)?;
    let sizing = TokenCounter::of(None, &settings.embedding);
    let work = tokio::task::spawn_blocking(move || {
        let mut passages = Vec::new();
        let Ok(()) = passages::cut(&extracted, None, &sizing, &|_| Ok(()), |passage| {
            passages.push(PreviewPassage {
                place: passage.place,
                tokens: sizing.count(passage.text),
                text: passage.text.to_owned(),
            });
            Ok::<_, std::convert::Infallible>(())
        });
        DocumentPreview {
            source: extracted.source.clone(),
            pages: extracted.pages,
            warnings: extracted.warnings.clone(),
            text: extracted.text().to_owned(),
            passages,
        }
    });
    work.await.map_err(|error| error.to_string())
}
