//! What answers have to say.

use serde_json::Value;

use crate::{
    api::RequestProblem,
    facts::{DocumentFact, flattened},
};

/// The items of a list.
pub(crate) fn array(value: &Value) -> Result<&Vec<Value>, RequestProblem> {
    value.as_array().ok_or_else(|| RequestProblem::new("not_an_answer", "no list where there should be one"))
}

/// Whether a passage has the sentence of a fact.
pub(crate) fn says(passage: &Value, fact: &DocumentFact) -> bool {
    passage["text"].as_str().is_some_and(|text| flattened(text).contains(&fact.sentence))
}

/// One of the passages that a search found has to say the fact.
pub(crate) fn found(passages: &Value, fact: &DocumentFact) -> Result<(), RequestProblem> {
    if array(passages)?.iter().any(|passage| says(passage, fact)) {
        return Ok(());
    }
    Err(RequestProblem::new("fact_not_found", fact.question.clone()))
}

/// The answer of an agent, as a whole envelope, has to give the fact, and to cite the document for it with a quote that was found
/// there.
pub(crate) fn answered(envelope: &Value, document: &str, fact: &DocumentFact) -> Result<(), RequestProblem> {
    let answer = envelope["data"].as_str().unwrap_or_default();
    if !flattened(answer).contains(&fact.answer) {
        let message = format!("{:?} is {:?}, said was {answer:?}", fact.question, fact.answer);
        return Err(RequestProblem::new("wrong_answer", message));
    }
    let backs = |citation: &&Value| {
        citation["documentId"] == document
            && citation["quote"].as_str().is_some_and(|quote| flattened(quote).contains(&fact.answer))
    };
    match array(&envelope["trace"]["citations"])?.iter().find(backs) {
        Some(citation) if citation["verified"] == true => Ok(()),
        Some(citation) => Err(RequestProblem::new("not_verified", citation.to_string())),
        None => Err(RequestProblem::new("not_cited", format!("{:?}: {answer:?}", fact.question))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::DocumentLibrary;

    fn fact() -> DocumentFact {
        DocumentLibrary::new("Load", 7).fact(3, 1)
    }

    #[test]
    fn a_fact_is_found_however_its_lines_are_broken() {
        let broken = fact().sentence.replacen(' ', "\n  ", 3);
        assert!(found(&json!([{"text": "Nothing."}, {"text": format!("So: {broken}")}]), &fact()).is_ok());
        assert_eq!(found(&json!([{"text": "Nothing."}]), &fact()).unwrap_err().code, "fact_not_found");
        assert_eq!(found(&json!({}), &fact()).unwrap_err().code, "not_an_answer");
    }

    #[test]
    fn an_answer_needs_the_fact_and_a_verified_quote_of_the_right_document() {
        let envelope = |document: &str, verified: bool| {
            let quote = fact().sentence;
            let citation = json!({"documentId": document, "quote": quote, "verified": verified});
            json!({"data": format!("It says: {quote} [1]"), "trace": {"citations": [citation]}})
        };
        let code = |envelope: &Value| answered(envelope, "a", &fact()).map_err(|problem| problem.code);
        assert_eq!(code(&envelope("a", true)), Ok(()));
        assert_eq!(code(&envelope("a", false)), Err("not_verified".to_owned()));
        assert_eq!(code(&envelope("b", true)), Err("not_cited".to_owned()));
        assert_eq!(code(&json!({"data": "It does not say."})), Err("wrong_answer".to_owned()));
    }
}
