//! Which engine reads PDFs: decided once, when the worker starts.

use std::path::{Path, PathBuf};

use lectern_parse::{
    formats::pdf::{UNUSABLE, library_name},
    protocol::{ParseFrame, ParseOptions, SourceKind},
};
use lectern_shared::config::PdfSettings;

use super::ocr::OcrCommand;
use crate::sandbox::{ParseRequest, Sandbox, SandboxError};

/// Where the library may lie when it is neither named nor beside the program: where the image has it, and where systems
/// put such things.
const FOLDERS: &[&str] =
    &["/usr/local/lib", "/usr/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];

/// One empty page, to see whether the library works.
const TRIAL: &[u8] = b"%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj
3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >> endobj
trailer << /Root 1 0 R /Size 4 >>
%%EOF
";

/// What the settings say of PDFs cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum PdfEngineError {
    /// The named library is not there.
    #[error(
        "LECTERN_PDFIUM_LIB: there is no pdfium library at {0}; name the file ({name}) or its folder, or unset it to read PDFs with the built-in engine",
        name = library_name().display()
    )]
    NoLibrary(PathBuf),
    /// The named library is there and does not work.
    #[error(
        "LECTERN_PDFIUM_LIB: {0} cannot be used: it must be a pdfium library of version 6611 or later for this machine, and LECTERN_PARSER_MEMORY at least 256MiB; correct that, or unset it to read PDFs with the built-in engine"
    )]
    UnusableLibrary(PathBuf),
    /// The recogniser is not there.
    #[error("LECTERN_OCR_COMMAND: the program {0:?} is not there, or may not be run")]
    NoRecogniser(String),
    /// Pages cannot be drawn for the recogniser.
    #[error(
        "LECTERN_OCR_COMMAND: text recognition needs the pdfium library, which draws the pages; set LECTERN_PDFIUM_LIB to it, or unset LECTERN_OCR_COMMAND"
    )]
    RecogniserWithoutLibrary,
    /// The library could not be tried.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

/// How PDFs are read. The default is the built-in engine, without text recognition.
#[derive(Debug, Clone, Default)]
pub struct PdfEngine {
    pdfium: Option<PathBuf>,
    ocr: Option<OcrCommand>,
}

impl PdfEngine {
    /// Looks for the library, tries it in `sandbox`, and says in the log what reads PDFs from now on.
    pub async fn choose(settings: &PdfSettings, sandbox: &Sandbox) -> Result<Self, PdfEngineError> {
        let mut pdfium = find(settings.pdfium.as_deref())?;
        if let Some(library) = &pdfium
            && !works(library, sandbox).await?
        {
            if settings.pdfium.is_some() {
                return Err(PdfEngineError::UnusableLibrary(library.clone()));
            }
            tracing::warn!(library = %library.display(), "this pdfium library cannot be used");
            pdfium = None;
        }
        let ocr = settings.ocr.clone().map(OcrCommand::new);
        if let (Some(ocr), Some(settings)) = (&ocr, &settings.ocr) {
            if ocr.program().is_none() {
                let name = settings.command.first().cloned().unwrap_or_default();
                return Err(PdfEngineError::NoRecogniser(name));
            }
            if pdfium.is_none() {
                return Err(PdfEngineError::RecogniserWithoutLibrary);
            }
        }
        match &pdfium {
            Some(library) => {
                tracing::info!(engine = "pdfium", library = %library.display(), ocr = ocr.is_some(), "PDFs");
            }
            None => tracing::info!(engine = "built-in", "PDFs"),
        }
        Ok(Self { pdfium, ocr })
    }

    /// What reads, for telling whether something else read the same file before.
    pub(crate) fn name(&self) -> &'static str {
        match (&self.pdfium, &self.ocr) {
            (Some(_), Some(_)) => "pdfium+ocr",
            (Some(_), None) => "pdfium",
            (None, _) => "built-in",
        }
    }

    /// These options with this engine.
    pub(super) fn options(&self, options: ParseOptions) -> ParseOptions {
        ParseOptions { pdfium: self.pdfium.clone(), images: self.ocr.is_some(), ..options }
    }

    /// What recognises text on pages that are images.
    pub(super) fn ocr(&self) -> Option<&OcrCommand> {
        self.ocr.as_ref()
    }
}

/// Where the pdfium library is: at `setting` (a file, or a folder that holds it), else beside the running program, else
/// where systems have their libraries.
fn find(setting: Option<&Path>) -> Result<Option<PathBuf>, PdfEngineError> {
    let there = |path: PathBuf| path.canonicalize().ok().filter(|path| path.is_file());
    if let Some(named) = setting {
        let library = if named.is_dir() { named.join(library_name()) } else { named.to_owned() };
        return there(library).map(Some).ok_or_else(|| PdfEngineError::NoLibrary(named.to_owned()));
    }
    let program = std::env::current_exe().ok();
    let beside = program.as_deref().and_then(Path::parent).into_iter();
    let mut folders = beside.chain(FOLDERS.iter().map(Path::new));
    Ok(folders.find_map(|folder| there(folder.join(library_name()))))
}

/// Whether the library can be loaded and reads a page, in a child like any other.
async fn works(library: &Path, sandbox: &Sandbox) -> Result<bool, SandboxError> {
    let options = ParseOptions { pdfium: Some(library.to_owned()), ..ParseOptions::default() };
    let mut frames = sandbox.parse(ParseRequest { kind: SourceKind::Pdf, source: TRIAL, options }).await?;
    loop {
        match frames.next().await {
            Ok(Some(ParseFrame::Warning(warning))) if warning.code == UNUSABLE => return Ok(false),
            Ok(Some(_)) => {}
            Ok(None) => return Ok(true),
            Err(_) => return Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_found_by_its_file_or_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().canonicalize().unwrap().join(library_name());
        std::fs::write(&library, "").unwrap();
        assert_eq!(find(Some(folder.path())).unwrap().as_ref(), Some(&library));
        assert_eq!(find(Some(&library)).unwrap().as_ref(), Some(&library));
    }

    #[test]
    fn a_setting_that_names_nothing_is_an_error_that_says_what_to_change() {
        let folder = tempfile::tempdir().unwrap();
        for named in [folder.path().to_owned(), folder.path().join("nothing.so")] {
            let error = find(Some(&named)).unwrap_err().to_string();
            assert!(
                error.contains("LECTERN_PDFIUM_LIB") && error.contains(named.to_str().unwrap()),
                "{error}"
            );
        }
    }
}
