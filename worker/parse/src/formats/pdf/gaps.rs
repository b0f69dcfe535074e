//! What a PDF names and does not have. A download that broke off, or a disk that lost a block, leaves pages that every viewer shows empty:
//! they are no blank ones, and whoever searches has to know.

use std::{
    collections::{BTreeSet, HashSet},
    panic::{AssertUnwindSafe, catch_unwind},
};

use ::hayro::hayro_syntax::{
    Pdf,
    object::{Array, Dict, MaybeRef, Object, ObjectIdentifier},
    page::Page,
};
use lectern_shared::model::job::IngestionWarning;

use crate::protocol::INCOMPLETE_FILE;

/// Where a whole file says where its table of objects is: in its last bytes, after which some programs add others.
const TABLE_IS_AT: &[u8] = b"startxref";
const LAST_BYTES: usize = 4_096;

/// What of a file is known to be missing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileGaps {
    /// The pages whose content is not in the file, or not all of it; numbered from 1.
    pages: BTreeSet<u32>,
    /// The parts of the file that say where pages are, and are not in it. Each stands for a page at least.
    branches: u64,
}

impl FileGaps {
    /// Those of a file that could be opened.
    pub(super) fn of(pdf: &Pdf) -> Self {
        let look = || {
            let pages = pdf.pages().iter().zip(1..).filter(|(page, _)| lacks_content(page));
            Self { pages: pages.map(|(_, number)| number).collect(), branches: missing_branches(pdf) }
        };
        catch_unwind(AssertUnwindSafe(look)).unwrap_or_default()
    }

    /// Those of a file that only an engine opens that mends it, and does not tell what it found nowhere: whether it breaks off.
    pub(super) fn of_mended(bytes: &[u8]) -> Self {
        let end = bytes.get(bytes.len().saturating_sub(LAST_BYTES)..).unwrap_or(bytes);
        let is_whole = end.windows(TABLE_IS_AT.len()).any(|window| window == TABLE_IS_AT);
        Self { branches: u64::from(!is_whole), ..Self::default() }
    }

    /// Whether the file lacks content of a page.
    pub(super) fn has(&self, page: u32) -> bool {
        self.pages.contains(&page)
    }

    /// What is said of pages that nothing is left of, not even that they are pages.
    pub(super) fn warning(&self) -> Option<IngestionWarning> {
        (self.branches > 0).then(|| IngestionWarning {
            code: INCOMPLETE_FILE.to_owned(),
            message: "The file is incomplete: pages that it should have are not in it, and are not found."
                .to_owned(),
            count: self.branches,
        })
    }
}

/// Whether content that a page names is not in the file. Nobody says that a page without any is not blank.
fn lacks_content(page: &Page<'_>) -> bool {
    match page.raw().get::<Object<'_>>("Contents") {
        None => page.raw().contains_key("Contents"),
        Some(Object::Array(parts)) => parts.raw_iter().any(|part| match part {
            MaybeRef::Ref(part) => page.xref().get::<Object<'_>>(part.into()).is_none(),
            MaybeRef::NotRef(_) => false,
        }),
        Some(_) => false,
    }
}

/// How many branches of the tree of pages, and pages that it names, are not in the file. Without the tree the pages were looked for one by
/// one, and nothing says how many there were.
fn missing_branches(pdf: &Pdf) -> u64 {
    let xref = pdf.xref();
    let catalog = xref.get::<Dict<'_>>(xref.root_id());
    let Some(root) = catalog.and_then(|catalog| catalog.get::<Dict<'_>>("Pages")) else { return 1 };
    let (mut missing, mut seen, mut open) = (0, HashSet::new(), vec![root]);
    while let Some(branch) = open.pop() {
        let Some(kids) = branch.get::<Array<'_>>("Kids") else { continue };
        for kid in kids.raw_iter() {
            let MaybeRef::Ref(kid) = kid else { continue };
            let kid = ObjectIdentifier::from(kid);
            // A tree that leads back into itself ends.
            if !seen.insert(kid) {
                continue;
            }
            match xref.get::<Dict<'_>>(kid) {
                Some(branch) => open.push(branch),
                None => missing += 1,
            }
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// A file of two pages, each with a content of its own. The objects stand in the order in which they are needed, contents last, as
    /// most programs write them.
    fn two_pages() -> Vec<u8> {
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 5 0 R >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents [5 0 R 6 0 R] >>",
            "<< /Length 3 >>\nstream\nq Q\nendstream",
            "<< /Length 3 >>\nstream\nq Q\nendstream",
        ];
        let mut file = "%PDF-1.4\n".to_owned();
        let mut table = "xref\n0 7\n0000000000 65535 f \n".to_owned();
        for (number, body) in (1..).zip(objects) {
            writeln!(table, "{:010} 00000 n ", file.len()).unwrap();
            writeln!(file, "{number} 0 obj\n{body}\nendobj").unwrap();
        }
        let end = file.len();
        write!(file, "{table}trailer\n<< /Size 7 /Root 1 0 R >>\nstartxref\n{end}\n%%EOF\n").unwrap();
        file.into_bytes()
    }

    /// What is missing of the file when it ends before `place`.
    fn gaps_before(place: &str) -> FileGaps {
        let whole = String::from_utf8(two_pages()).unwrap();
        let cut = whole.split(place).next().unwrap().as_bytes().to_vec();
        FileGaps::of(&super::super::open(cut).unwrap())
    }

    #[test]
    fn a_whole_file_lacks_nothing() {
        let gaps = FileGaps::of(&super::super::open(two_pages()).unwrap());
        assert_eq!((gaps.warning(), &gaps), (None, &FileGaps::default()));
        assert_eq!(FileGaps::of_mended(&two_pages()).warning(), None);
    }

    #[test]
    fn a_file_that_breaks_off_lacks_the_content_that_comes_after() {
        let last = gaps_before("6 0 obj");
        assert_eq!((last.has(1), last.has(2), last.warning()), (false, true, None));
        let both = gaps_before("5 0 obj");
        assert_eq!((both.has(1), both.has(2)), (true, true));
    }

    #[test]
    fn a_page_that_is_not_in_the_file_is_told_of() {
        let gaps = gaps_before("4 0 obj");
        assert_eq!(gaps.warning().map(|warning| warning.count), Some(1));
        let whole = two_pages();
        assert!(FileGaps::of_mended(&whole[..whole.len() / 2]).warning().is_some());
    }
}
