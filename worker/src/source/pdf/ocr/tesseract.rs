//! Tesseract: which languages it has, and what it reads on a page.

use lectern_shared::config::OcrSettings;

use super::{
    OcrStartError, RecognisedPage, languages,
    program::{ConfinedProgram, OcrError},
    table,
};

/// The program, as it is called everywhere.
const PROGRAM: &str = "tesseract";
/// What is read when nothing is said.
const DEFAULT_LANGUAGE: &str = "eng";
/// The model that tells how a page is turned.
const ORIENTATION: &str = "osd";
/// Pixels per inch that tesseract believes.
const DENSITIES: std::ops::RangeInclusive<f32> = 70.0..=2400.0;

/// Tesseract with what is installed of it. Cheap enough to clone.
#[derive(Debug, Clone)]
pub(super) struct Tesseract {
    program: ConfinedProgram,
    /// The models of the operator's languages, the most likely first.
    languages: Vec<String>,
    /// All models that are there.
    present: Vec<String>,
}

impl Tesseract {
    /// Looks for it on the path and asks it for its languages, which must hold those that are named.
    pub(super) async fn choose(
        settings: &OcrSettings,
        languages: Option<&[String]>,
    ) -> Result<Self, OcrStartError> {
        let program = ConfinedProgram::find(vec![PROGRAM.to_owned()], settings);
        let program = program.ok_or(OcrStartError::NoTesseract)?.within(settings.memory_bytes);
        let listing = program.with_arguments(vec!["--list-langs".to_owned()]).run(Vec::new()).await;
        let listing = listing.map_err(|error| OcrStartError::UnusableTesseract(error.to_string()))?;
        let present = listed(&String::from_utf8_lossy(&listing));
        let languages = languages.map_or_else(|| vec![DEFAULT_LANGUAGE.to_owned()], <[String]>::to_vec);
        let missing: Vec<&str> =
            languages.iter().map(String::as_str).filter(|name| !holds(&present, name)).collect();
        if let Some(first) = missing.first() {
            return Err(OcrStartError::NoLanguage {
                example: first.replace('_', "-"),
                missing: missing.join(", "),
                present: if present.is_empty() { "none".to_owned() } else { present.join(", ") },
            });
        }
        tracing::info!(languages = languages.join("+"), "tesseract reads scanned pages");
        Ok(Self { program, languages, present })
    }

    /// Recognises one page. The document's own language comes before the operator's, when it is installed.
    pub(super) async fn read(
        &self,
        png: Vec<u8>,
        density: f32,
        language: Option<&str>,
    ) -> Result<RecognisedPage, OcrError> {
        let said = self.program.with_arguments(self.arguments(density, language)).run(png).await?;
        let parse = move || table::read(&String::from_utf8_lossy(&said), density);
        tokio::task::spawn_blocking(parse).await.map_err(|error| OcrError::Pipe(error.into()))
    }

    fn arguments(&self, density: f32, language: Option<&str>) -> Vec<String> {
        let own = language.and_then(languages::model_of).filter(|name| holds(&self.present, name));
        let others = self.languages.iter().filter(|name| Some(*name) != own.as_ref());
        let all: Vec<&str> = own.iter().chain(others).map(String::as_str).collect();
        let all = all.join("+");
        // Segmentation into columns; with the model of orientation also of pages that are turned, whose words come in order
        // and with boxes on the page as it is.
        let segmentation = if holds(&self.present, ORIENTATION) { "1" } else { "3" };
        let words =
            ["stdin", "stdout", "-l", all.as_str(), "--psm", segmentation, "-c", "tessedit_create_tsv=1"];
        let mut words = words.map(str::to_owned).to_vec();
        if DENSITIES.contains(&density) {
            words.extend(["--dpi".to_owned(), format!("{density:.0}")]);
        }
        words
    }
}

fn holds(names: &[String], name: &str) -> bool {
    names.iter().any(|other| other == name)
}

/// The models in a listing, whose first line is a sentence.
fn listed(listing: &str) -> Vec<String> {
    let is_name = |line: &&str| {
        !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_/-".contains(&byte))
    };
    listing.lines().map(str::trim).filter(is_name).map(str::to_owned).collect()
}
