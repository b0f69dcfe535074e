//! Prompt templates.

#![no_main]

use lectern_shared::prompt::{FormatError, Template, is_variable_name};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 10_000;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match Template::parse(&text) {
        Ok(template) => {
            let variables = template.variables();
            assert!(variables.iter().all(|name| is_variable_name(name)), "{variables:?}");
            assert_eq!(template.disagreement(&variables), None);
            match template.format(|name| Some(format!("{{{name}}}")), LIMIT) {
                Ok(filled) => assert!(filled.len() <= LIMIT),
                Err(error) => assert_eq!(error, FormatError::TooLong(LIMIT)),
            }
        }
        Err(error) => assert!((1..=text.chars().count()).contains(&error.position), "{error}"),
    }
    // Whatever stands in a text, its braces can be written so that they are braces.
    let written = text.replace('{', "{{").replace('}', "}}");
    let template = Template::parse(&written).expect("a text without variables");
    let filled = template.format(|_| None::<String>, usize::MAX).expect("nothing is missing");
    assert_eq!(filled, text);
});
