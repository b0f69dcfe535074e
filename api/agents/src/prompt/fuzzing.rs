//! Prompt templates, as the target in `fuzz/` calls what reads and fills them.

use super::{PromptTemplate, TemplateFormatError, is_variable_name};

const LIMIT: usize = 10_000;

/// A template that can be read names its variables and is filled within its limit; another's error says where in the text it is. The
/// braces of any text can be written so that they are braces.
pub fn prompt(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match PromptTemplate::parse(&text) {
        Ok(template) => {
            let variables = template.variables();
            assert!(variables.iter().all(|name| is_variable_name(name)), "{variables:?}");
            assert_eq!(template.disagreement(&variables), None);
            match template.format(|name| Some(format!("{{{name}}}")), LIMIT) {
                Ok(filled) => assert!(filled.len() <= LIMIT),
                Err(error) => assert_eq!(error, TemplateFormatError::TooLong(LIMIT)),
            }
        }
        Err(error) => assert!((1..=text.chars().count()).contains(&error.position), "{error}"),
    }
    let written = text.replace('{', "{{").replace('}', "}}");
    let filled =
        PromptTemplate::parse(&written).map(|template| template.format(|_| None::<String>, usize::MAX));
    assert_eq!(filled, Ok(Ok(text.into_owned())));
}
