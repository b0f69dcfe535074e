//! Which engine reads PDFs: decided once, when the worker starts.

use std::path::{Path, PathBuf};

use lectern_parse::{
    formats::pdf::{UNUSABLE, library_name},
    protocol::{ParseFrame, ParseOptions, SourceKind},
};
use lectern_sandbox::{ParseRequest, Sandbox, SandboxError};
use lectern_shared::{
    config::{PdfEngineChoice, PdfSettings},
    model::page::PdfEngineName,
};

use super::ocr::{OcrStartError, Recogniser};

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
    /// pdfium was asked for, and no library was found.
    #[error(
        "LECTERN_PDF_ENGINE: there is no pdfium library beside the program or where the system has its libraries ({name}); set LECTERN_PDFIUM_LIB to it, or LECTERN_PDF_ENGINE to auto",
        name = library_name().display()
    )]
    NoLibraryFound,
    /// Text recognition cannot be had as the settings say.
    #[error(transparent)]
    Recogniser(#[from] OcrStartError),
    /// The library could not be tried.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

/// How PDFs are read. The default is the built-in engines, without text recognition.
#[derive(Debug, Clone, Default)]
pub struct PdfEngine {
    pdfium: Option<PathBuf>,
    ocr: Option<Recogniser>,
}

impl PdfEngine {
    /// Whether the settings ask for what may not be there, which is refused. What else there is is taken as it is, and nothing fails.
    pub(crate) fn may_be_refused(settings: &PdfSettings) -> bool {
        let library = match (settings.engine, &settings.pdfium) {
            (PdfEngineChoice::Auto, None) => false,
            (PdfEngineChoice::Auto | PdfEngineChoice::Pdfium, _) => true,
        };
        library || Recogniser::may_be_refused(settings)
    }

    /// Looks for what the settings name, tries it in `sandbox`, and says in the log what reads PDFs from now on.
    pub async fn choose(settings: &PdfSettings, sandbox: &Sandbox) -> Result<Self, PdfEngineError> {
        let (pdfium, ocr) = tokio::join!(usable_library(settings, sandbox), Recogniser::choose(settings));
        let (pdfium, ocr) = (pdfium?, ocr?);
        match &pdfium {
            Some(library) => {
                tracing::info!(engine = "pdfium", library = %library.display(), ocr = ocr.is_some(), "PDFs");
            }
            None => tracing::info!(engine = "built-in", ocr = ocr.is_some(), "PDFs"),
        }
        Ok(Self { pdfium, ocr })
    }

    /// What reads, for telling whether something else read the same file before.
    pub(crate) fn name(&self) -> String {
        let engine = if self.pdfium.is_some() { "pdfium" } else { "built-in" };
        match &self.ocr {
            Some(ocr) => format!("{engine}+{}", ocr.name()),
            None => engine.to_owned(),
        }
    }

    /// The ways in which a file is read, one after the other until the child survives one.
    pub(super) fn attempts(&self, options: ParseOptions) -> Vec<ParseOptions> {
        let images = self.ocr.is_some();
        let built_in = ParseOptions { pdfium: None, images: false, ..options.clone() };
        let mut attempts = Vec::new();
        if self.pdfium.is_some() {
            attempts.push(ParseOptions { pdfium: self.pdfium.clone(), images, ..options });
        }
        if images {
            attempts.push(ParseOptions { images, ..built_in.clone() });
        }
        attempts.push(built_in.clone());
        attempts.push(ParseOptions { engine: Some(PdfEngineName::PdfOxide), ..built_in });
        attempts
    }

    /// What recognises text on pages that are images.
    pub(super) fn ocr(&self) -> Option<&Recogniser> {
        self.ocr.as_ref()
    }
}

/// The pdfium library, if the settings want it, tried.
async fn usable_library(
    settings: &PdfSettings,
    sandbox: &Sandbox,
) -> Result<Option<PathBuf>, PdfEngineError> {
    match (settings.engine, &settings.pdfium) {
        (PdfEngineChoice::Auto, None) => Ok(None),
        (PdfEngineChoice::Auto | PdfEngineChoice::Pdfium, named) => {
            let library = find(named.as_deref())?.ok_or(PdfEngineError::NoLibraryFound)?;
            if works(&library, sandbox).await? {
                Ok(Some(library))
            } else {
                Err(PdfEngineError::UnusableLibrary(library))
            }
        }
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
    fn a_start_waits_for_what_the_settings_ask_for_alone() {
        let nothing = PdfSettings::default();
        assert!(!PdfEngine::may_be_refused(&nothing));
        let named = PdfSettings { pdfium: Some("/nowhere".into()), ..nothing.clone() };
        assert!(PdfEngine::may_be_refused(&named));
        let wanted = PdfSettings { engine: PdfEngineChoice::Pdfium, ..nothing };
        assert!(PdfEngine::may_be_refused(&wanted));
    }

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
