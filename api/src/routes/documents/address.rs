//! Where sources are: addresses that are given for documents.

use lectern_shared::model::document::{DocumentType, addresses};
use url::Url;

use crate::extract::Fields;

/// Longest address, in characters.
const ONE: usize = 8_000;
/// Longest list of addresses, in characters.
const ALL: usize = 20_000;
/// Most addresses of a document.
const MOST: usize = 50;

/// Reads the addresses as they are given. Whether they are any depends on the document: see [`problems`].
pub(super) fn read(fields: &mut Fields<'_>) -> Option<String> {
    Some(fields.optional_text("url", ALL)?.trim().to_owned())
}

/// What is wrong with the addresses of a document of this type; nothing when there are none.
pub(super) fn problems(r#type: DocumentType, url: &str) -> Vec<String> {
    if url.is_empty() {
        return Vec::new();
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
        assert!(problems(DocumentType::Url, good).is_empty());
        assert!(problems(DocumentType::Url, "").is_empty());
        let wrong = problems(
            DocumentType::Url,
            "https://a.example, https://, https://me:secret@c.example\nhttps://d.example,",
        );
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].starts_with("address 2 of 4: must be an address"), "{wrong:?}");
        assert!(wrong[1].starts_with("address 3 of 4: must not hold credentials"), "{wrong:?}");
        assert!(wrong.iter().all(|wrong| !wrong.contains("secret")));
        assert_eq!(problems(DocumentType::Pdf, "ftp://a.example"), ["must begin with http:// or https://"]);
    }

    #[test]
    fn lists_and_addresses_have_a_length() {
        let list = |count: usize| vec!["https://a.example"; count].join(",");
        assert!(problems(DocumentType::Url, &list(MOST)).is_empty());
        assert!(problems(DocumentType::Url, &list(MOST + 1))[0].contains("these are 51"));
        let long = |length: usize| format!("https://a.example/{}", "x".repeat(length - 18));
        assert!(problems(DocumentType::Txt, &long(ONE)).is_empty());
        assert_eq!(problems(DocumentType::Txt, &long(ONE + 1)).len(), 1);
    }
}
