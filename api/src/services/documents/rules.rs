//! Which sources a document may have. It holds for a new document, and for one that is changed.

use lectern_shared::model::document::{DocumentType, PageRange, addresses};
use url::Url;

/// Longest address, in characters.
const ONE: usize = 8_000;
/// Most addresses of a document.
const MOST: usize = 50;

pub(crate) const SOURCE_MISSING: &str = "is required, unless the text is given as content";
pub(crate) const NO_CONTENT: &str = "can be given for TXT, CSV and VIDEO; give a url for this type";
pub(crate) const PAGES_REVERSED: &str = "must not be before from_page";

/// Whether a document of this type may be given as text.
pub(crate) fn takes_content(r#type: DocumentType) -> bool {
    matches!(r#type, DocumentType::Txt | DocumentType::Csv | DocumentType::Video)
}

/// Whether the first page comes after the last one.
pub(crate) fn are_reversed(pages: PageRange) -> bool {
    matches!((pages.from, pages.to), (Some(from), Some(to)) if from > to)
}

/// What is wrong with the addresses of a document of this type; nothing when there are none.
pub(crate) fn address_problems(r#type: DocumentType, url: &str) -> Vec<String> {
    if url.is_empty() {
        return Vec::new();
    }
    // One address may hold another behind a comma, but no blank.
    let has_blanks = url.trim().contains(char::is_whitespace);
    if r#type != DocumentType::Url && has_blanks && addresses(DocumentType::Url, url).len() > 1 {
        return vec!["several addresses need the type URL".to_owned()];
    }
    match addresses(r#type, url).as_slice() {
        [address] => problem(address).map(str::to_owned).into_iter().collect(),
        several if several.len() > MOST => {
            vec![format!("must hold at most {MOST} addresses; these are {}", several.len())]
        }
        several => {
            let wrong = |(at, address): (usize, &&str)| {
                Some(format!("address {} of {}: {}", at + 1, several.len(), problem(address)?))
            };
            several.iter().enumerate().filter_map(wrong).collect()
        }
    }
}

fn problem(address: &str) -> Option<&'static str> {
    if address.chars().count() > ONE {
        return Some("must have at most 8000 characters");
    }
    match Url::parse(address) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => Some("must begin with http:// or https://"),
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Some("must not hold credentials; give them as authorization")
        }
        Ok(_) => None,
        Err(_) => Some("must be an address such as https://example.com/file.pdf"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_a_list_is_looked_at() {
        let good = "https://a.example, https://b.example/1,2";
        assert!(address_problems(DocumentType::Url, good).is_empty());
        assert!(address_problems(DocumentType::Url, "").is_empty());
        let wrong = address_problems(
            DocumentType::Url,
            "https://a.example, https://, https://me:secret@c.example\nhttps://d.example,",
        );
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].starts_with("address 2 of 4: must be an address"), "{wrong:?}");
        assert!(wrong[1].starts_with("address 3 of 4: must not hold credentials"), "{wrong:?}");
        assert!(wrong.iter().all(|wrong| !wrong.contains("secret")));
        for r#type in [DocumentType::Txt, DocumentType::Pdf] {
            assert_eq!(address_problems(r#type, good), ["several addresses need the type URL"]);
            for one in
                ["https://b.example/1,2?of=http://c.example", "https://b.example/f,https://c.example/a.pdf"]
            {
                assert!(address_problems(r#type, one).is_empty(), "{one}");
            }
        }
        let wrong = address_problems(DocumentType::Pdf, "ftp://a.example");
        assert_eq!(wrong, ["must begin with http:// or https://"]);
    }

    #[test]
    fn lists_and_addresses_have_a_length() {
        let list = |count: usize| vec!["https://a.example"; count].join(",");
        assert!(address_problems(DocumentType::Url, &list(MOST)).is_empty());
        assert!(address_problems(DocumentType::Url, &list(MOST + 1))[0].contains("these are 51"));
        let long = |length: usize| format!("https://a.example/{}", "x".repeat(length - 18));
        assert!(address_problems(DocumentType::Txt, &long(ONE)).is_empty());
        assert_eq!(address_problems(DocumentType::Txt, &long(ONE + 1)).len(), 1);
    }
}
