//! Forms (form XObjects): pieces of a page that are kept outside it, and that may draw one another. `pdf_oxide` goes only so
//! deep, and takes only so many for a page, without a word; so that a page is not thought to be empty, they are counted here.

use std::collections::{HashMap, HashSet};

use pdf_oxide::{
    PdfDocument,
    object::{Object, ObjectRef},
};

/// Forms within forms that are read.
const DEEPEST: usize = 10;
/// Forms that are read of a page.
const MOST: usize = 500;
/// Steps that the whole document is worth: a page may draw what all pages share.
const STEPS: usize = 1_000_000;

/// The forms of a document, as far as they were looked at.
#[derive(Debug, Default)]
pub(super) struct FormXObjects {
    drawn_by: HashMap<ObjectRef, Vec<ObjectRef>>,
    steps: usize,
}

impl FormXObjects {
    /// Whether a page, by its index, has more forms than are read.
    pub(super) fn are_too_many(&mut self, document: &PdfDocument, page: usize) -> bool {
        let Ok(page) = document.get_page(page) else { return false };
        let mut level = drawn_by(document, &page);
        let mut seen: HashSet<ObjectRef> = level.iter().copied().collect();
        for _ in 0..DEEPEST {
            if seen.len() > MOST {
                return true;
            }
            let mut next = Vec::new();
            for form in level {
                self.steps += 1;
                if self.steps > STEPS {
                    return false;
                }
                let drawn = self.drawn_by.entry(form).or_insert_with(|| {
                    document.load_object(form).map(|form| drawn_by(document, &form)).unwrap_or_default()
                });
                next.extend(drawn.iter().filter(|form| seen.insert(**form)));
            }
            if next.is_empty() {
                return false;
            }
            level = next;
        }
        true
    }
}

/// The forms that a page or a form can draw.
fn drawn_by(document: &PdfDocument, drawing: &Object) -> Vec<ObjectRef> {
    let entry = |object: &Object, name: &str| {
        let entry = object.as_dict().and_then(|entries| entries.get(name))?;
        document.resolve_object(entry).ok()
    };
    let drawn = entry(drawing, "Resources").and_then(|resources| entry(&resources, "XObject"));
    let Some(drawn) = drawn else { return Vec::new() };
    let references =
        drawn.as_dict().into_iter().flat_map(|entries| entries.values()).filter_map(Object::as_reference);
    let mut forms: Vec<ObjectRef> = references.filter(|drawn| document.is_form_xobject(*drawn)).collect();
    // The same document is to give the same answer, however its dictionaries are kept.
    forms.sort_unstable_by_key(|form| (form.id, form.r#gen));
    forms
}
