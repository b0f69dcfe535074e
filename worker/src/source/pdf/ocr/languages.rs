//! What tesseract calls languages.

/// Languages by their ISO 639-1 codes, and the names of tesseract's models of them.
const MODELS: &[(&str, &str)] = &[
    ("af", "afr"),
    ("am", "amh"),
    ("ar", "ara"),
    ("az", "aze"),
    ("be", "bel"),
    ("bg", "bul"),
    ("bn", "ben"),
    ("bs", "bos"),
    ("ca", "cat"),
    ("cs", "ces"),
    ("cy", "cym"),
    ("da", "dan"),
    ("de", "deu"),
    ("el", "ell"),
    ("en", "eng"),
    ("eo", "epo"),
    ("es", "spa"),
    ("et", "est"),
    ("eu", "eus"),
    ("fa", "fas"),
    ("fi", "fin"),
    ("fr", "fra"),
    ("ga", "gle"),
    ("gl", "glg"),
    ("gu", "guj"),
    ("he", "heb"),
    ("hi", "hin"),
    ("hr", "hrv"),
    ("hu", "hun"),
    ("hy", "hye"),
    ("id", "ind"),
    ("is", "isl"),
    ("it", "ita"),
    ("ja", "jpn"),
    ("ka", "kat"),
    ("kk", "kaz"),
    ("km", "khm"),
    ("kn", "kan"),
    ("ko", "kor"),
    ("la", "lat"),
    ("lo", "lao"),
    ("lt", "lit"),
    ("lv", "lav"),
    ("mk", "mkd"),
    ("ml", "mal"),
    ("mn", "mon"),
    ("mr", "mar"),
    ("ms", "msa"),
    ("mt", "mlt"),
    ("my", "mya"),
    ("nb", "nor"),
    ("ne", "nep"),
    ("nl", "nld"),
    ("nn", "nor"),
    ("no", "nor"),
    ("pa", "pan"),
    ("pl", "pol"),
    ("pt", "por"),
    ("ro", "ron"),
    ("ru", "rus"),
    ("si", "sin"),
    ("sk", "slk"),
    ("sl", "slv"),
    ("sq", "sqi"),
    ("sr", "srp"),
    ("sv", "swe"),
    ("sw", "swa"),
    ("ta", "tam"),
    ("te", "tel"),
    ("th", "tha"),
    ("tr", "tur"),
    ("uk", "ukr"),
    ("ur", "urd"),
    ("uz", "uzb"),
    ("vi", "vie"),
    ("yi", "yid"),
];

/// What tesseract's model of a language is called, by the language's tag (BCP 47) such as `de-AT` or `zh-Hant`. A code of three
/// letters is its own name.
pub(super) fn model_of(tag: &str) -> Option<String> {
    let tag = tag.trim().to_ascii_lowercase();
    let mut parts = tag.split(['-', '_']);
    let language = parts.next()?;
    let mut is_one_of = |wanted: &[&str]| parts.any(|part| wanted.contains(&part));
    let name = match language {
        "zh" if is_one_of(&["hant", "tw", "hk", "mo"]) => "chi_tra",
        "zh" => "chi_sim",
        "sr" if is_one_of(&["latn"]) => "srp_latn",
        code if code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_lowercase()) => code,
        code => MODELS.iter().find(|(iso, _)| *iso == code)?.1,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::model_of;

    #[test]
    fn a_tag_leads_to_the_model_of_its_language_and_script() {
        for (tag, model) in [
            ("de", "deu"),
            ("de-AT", "deu"),
            ("PT_br", "por"),
            ("zh", "chi_sim"),
            ("zh-Hant-HK", "chi_tra"),
            ("sr-Latn", "srp_latn"),
            ("sr", "srp"),
            ("frk", "frk"),
        ] {
            assert_eq!(model_of(tag).as_deref(), Some(model), "{tag}");
        }
        for tag in ["", "xx", "German", "d/.", "-l"] {
            assert_eq!(model_of(tag), None, "{tag}");
        }
    }

    #[test]
    fn every_language_is_found_once() {
        let mut codes: Vec<_> = super::MODELS.iter().map(|(iso, _)| iso).collect();
        codes.dedup();
        assert!(codes.is_sorted() && codes.len() == super::MODELS.len());
    }
}
