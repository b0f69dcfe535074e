//! Text recognition for pages that are images: a program is run once for each page, tesseract (`tesseract`) or the operator's
//! own command.
//!
//! Only the PDF reader comes here, with images that the parsing child has drawn. Programs run behind walls (`program`), and what
//! tesseract writes is read in `table`.

mod languages;
mod program;
mod table;
mod tesseract;

use lectern_parse::formats::pdf;
use lectern_shared::{
    config::{OcrProgram, PdfSettings},
    model::{job::IngestionWarning, page::RecognisedWord},
};

use self::{
    program::{ConfinedProgram, OcrError},
    tesseract::Tesseract,
};

/// After so many failures in a row the program is not asked for the rest of a document.
const MAX_FAILURES_IN_A_ROW: u32 = 5;

/// What the settings say of text recognition cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum OcrStartError {
    /// The operator's command is not there.
    #[error("LECTERN_OCR_COMMAND: the program {0:?} is not there, or may not be run")]
    NoProgram(String),
    /// Tesseract is not there.
    #[error(
        "LECTERN_OCR: tesseract is not on the PATH; install it (Debian: apt-get install tesseract-ocr), or set LECTERN_OCR to auto or off"
    )]
    NoTesseract,
    /// Tesseract is there and does not work.
    #[error(
        "LECTERN_OCR: tesseract does not say which languages it has ({0}); correct its installation, or set LECTERN_OCR to off"
    )]
    UnusableTesseract(String),
    /// It lacks languages.
    #[error(
        "LECTERN_OCR_LANGUAGES: tesseract lacks {missing}, it has {present}; install what is missing (Debian: apt-get install tesseract-ocr-{example}), or name others"
    )]
    NoLanguage {
        /// What is missing, separated by commas.
        missing: String,
        /// What is there, separated by commas.
        present: String,
        /// A language that is missing, as packages are called.
        example: String,
    },
}

/// What was recognised on one page.
#[derive(Debug, Clone, Default, PartialEq)]
struct RecognisedPage {
    /// In reading order, cleaned like any other page's.
    text: String,
    /// Where its words are; none when the program does not tell.
    words: Vec<RecognisedWord>,
}

/// What recognises text. Cheap enough to clone.
#[derive(Debug, Clone)]
pub(super) struct Recogniser(OcrEngine);

#[derive(Debug, Clone)]
enum OcrEngine {
    /// The operator's command, which writes plain text.
    Command(ConfinedProgram),
    /// Tesseract, which tells where the words are too.
    Tesseract(Tesseract),
}

impl Recogniser {
    /// Whether the settings name what may not be there. What is asked for by nobody is done without.
    pub(super) fn may_be_refused(settings: &PdfSettings) -> bool {
        settings.ocr.as_ref().is_some_and(|settings| match &settings.program {
            OcrProgram::Command(_) => true,
            OcrProgram::Tesseract { is_required, languages } => *is_required || languages.is_some(),
        })
    }

    /// What the settings name, or what is there; it says in the log why there is none.
    pub(super) async fn choose(settings: &PdfSettings) -> Result<Option<Self>, OcrStartError> {
        let strict = Self::may_be_refused(settings);
        let Some(settings) = &settings.ocr else { return Ok(None) };
        match &settings.program {
            OcrProgram::Command(words) => {
                let name = words.first().cloned().unwrap_or_default();
                let program = ConfinedProgram::find(words.clone(), settings);
                let program = program.ok_or(OcrStartError::NoProgram(name))?;
                Ok(Some(Self(OcrEngine::Command(program))))
            }
            OcrProgram::Tesseract { is_required, languages } => {
                let languages = languages.as_deref();
                match Tesseract::choose(settings, languages).await {
                    Ok(tesseract) => Ok(Some(Self(OcrEngine::Tesseract(tesseract)))),
                    Err(OcrStartError::NoTesseract) if !*is_required => {
                        tracing::info!("tesseract is not on the PATH: the text of scanned pages is not read");
                        Ok(None)
                    }
                    Err(error) if strict => Err(error),
                    Err(error) => {
                        tracing::warn!(%error, "the text of scanned pages is not read");
                        Ok(None)
                    }
                }
            }
        }
    }

    /// What recognises, in one word.
    pub(super) fn name(&self) -> &'static str {
        match &self.0 {
            OcrEngine::Command(_) => "command",
            OcrEngine::Tesseract(_) => "tesseract",
        }
    }

    /// Recognises one page, whose language the document may tell. Dropping the future ends the program.
    async fn read(
        &self,
        png: Vec<u8>,
        density: f32,
        language: Option<&str>,
    ) -> Result<RecognisedPage, OcrError> {
        match &self.0 {
            OcrEngine::Command(program) => {
                let said = program.run(png).await?;
                let tidy = move || pdf::tidy(&String::from_utf8_lossy(&said));
                let text = tokio::task::spawn_blocking(tidy).await;
                let text = text.map_err(|error| OcrError::Pipe(error.into()))?;
                Ok(RecognisedPage { text, words: Vec::new() })
            }
            OcrEngine::Tesseract(tesseract) => tesseract.read(png, density, language).await,
        }
    }
}

/// The recognition of one document's pages, and how it went.
#[derive(Debug)]
pub(super) struct PageRecognition<'a> {
    ocr: Option<&'a Recogniser>,
    /// The language that the document says it is in, as a tag such as `de-AT`.
    language: Option<&'a str>,
    /// The page that comes next.
    next: NextPage,
    read: u64,
    failed: u64,
    failed_in_a_row: u32,
    /// Pages that are images of which no text is known, but for those that failed.
    without_text: u64,
}

/// What is known of the page that comes next.
#[derive(Debug)]
enum NextPage {
    /// It was not looked at.
    Unseen,
    /// What was recognised, which may be nothing.
    Recognised(RecognisedPage),
    /// The program failed, or was not asked any more.
    Failed,
}

impl<'a> PageRecognition<'a> {
    /// Of a document that nothing has come of yet.
    pub(super) fn new(ocr: Option<&'a Recogniser>) -> Self {
        Self {
            ocr,
            language: None,
            next: NextPage::Unseen,
            read: 0,
            failed: 0,
            failed_in_a_row: 0,
            without_text: 0,
        }
    }

    /// The same of a document that says what language it is in.
    pub(super) fn in_language(self, language: Option<&'a str>) -> Self {
        Self { language, ..self }
    }

    /// Recognises the text on the image of the page that comes next, which has `density` pixels per inch.
    pub(super) async fn image(&mut self, page: u32, png: Vec<u8>, density: f32) {
        self.next = NextPage::Unseen;
        let Some(ocr) = self.ocr else { return };
        if self.failed_in_a_row >= MAX_FAILURES_IN_A_ROW {
            self.fail();
            return;
        }
        match ocr.read(png, density, self.language).await {
            Ok(recognised) => {
                self.failed_in_a_row = 0;
                self.next = NextPage::Recognised(recognised);
            }
            Err(error) => {
                if self.failed == 0 {
                    tracing::warn!(%error, page, ocr = ocr.name(), "text recognition failed");
                }
                self.fail();
                self.failed_in_a_row += 1;
            }
        }
    }

    fn fail(&mut self) {
        self.failed += 1;
        self.next = NextPage::Failed;
    }

    /// What the page says, and where, if that was recognised: what was recognised, unless the page itself says more.
    pub(super) fn page(&mut self, of_page: String, is_scan: bool) -> (String, Vec<RecognisedWord>) {
        match std::mem::replace(&mut self.next, NextPage::Unseen) {
            NextPage::Recognised(page) if letters(&page.text) > letters(&of_page) => {
                self.read += 1;
                (page.text, page.words)
            }
            NextPage::Recognised(_) => {
                self.without_text += u64::from(is_scan && letters(&of_page) == 0);
                (of_page, Vec::new())
            }
            // What little it says of itself is a stamp, or a number.
            NextPage::Unseen => {
                self.without_text += u64::from(is_scan);
                (of_page, Vec::new())
            }
            NextPage::Failed => (of_page, Vec::new()),
        }
    }

    /// What the owner of the document, which has so many pages, should know.
    pub(super) fn warnings(&self, pages: u32) -> Vec<IngestionWarning> {
        let warning = |code: &str, message, count| IngestionWarning { code: code.to_owned(), message, count };
        let read = "Some pages are images; their text was recognised (OCR) and may hold mistakes.";
        let failed = "Some pages are images, and their text could not be recognised (OCR); it is not found.";
        [
            warning("ocr_pages", read.to_owned(), self.read),
            warning("ocr_failed", failed.to_owned(), self.failed),
            warning("pages_without_text", self.without_text_message(pages), self.without_text),
        ]
        .into_iter()
        .filter(|warning| warning.count > 0)
        .collect()
    }

    fn without_text_message(&self, pages: u32) -> String {
        let count = self.without_text;
        let begin = match (count, pages) {
            (_, 1) => "The only page has no text: it is an image".to_owned(),
            (1, _) => format!("1 of {pages} pages has no text: it is an image"),
            _ => format!("{count} of {pages} pages have no text: they are images"),
        };
        match self.ocr {
            None => format!(
                "{begin}. What they show is not found. Ask the operator to turn on text recognition (LECTERN_OCR), and ingest the document again."
            ),
            Some(_) => format!(
                "{begin} on which none was recognised. Photos and handwriting have none, nor has a language that the operator has not installed (LECTERN_OCR_LANGUAGES)."
            ),
        }
    }
}

/// How much a text says.
fn letters(text: &str) -> usize {
    text.chars().filter(|c| !c.is_whitespace()).count()
}

#[cfg(test)]
mod tests;
