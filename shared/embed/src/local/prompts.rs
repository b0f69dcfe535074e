//! What a model wants to stand before questions and before passages.

use std::{collections::HashMap, path::Path};

use serde::Deserialize;

use super::{ModelError, config::read_json};

/// What is put before each text. Mostly nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EmbeddingPrompts {
    pub(super) question: String,
    pub(super) passage: String,
}

/// `config_sentence_transformers.json`.
#[derive(Deserialize, Default)]
struct PromptsFile {
    prompts: Option<HashMap<String, Option<String>>>,
    default_prompt_name: Option<String>,
}

/// What models want whose files do not say it, by the words of their name: all of the first, none of the second.
const KNOWN: &[(&[&str], &[&str], &str, &str)] = &[
    (
        &["e5", "instruct"],
        &[],
        "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ",
        "",
    ),
    (&["e5"], &["instruct"], "query: ", "passage: "),
    (&["bge", "en"], &["m3"], "Represent this sentence for searching relevant passages: ", ""),
    (&["bge", "zh"], &["m3"], "为这个句子生成表示以用于检索相关文章：", ""),
];

impl EmbeddingPrompts {
    /// What the files of a folder say, or else what is known of a model of one of these names.
    pub(super) fn read(dir: &Path, names: &[&str]) -> Result<Self, ModelError> {
        let file: PromptsFile =
            read_json(&dir.join("config_sentence_transformers.json"))?.unwrap_or_default();
        let prompts = file.prompts.unwrap_or_default();
        let prompt = |name: &str| prompts.get(name).and_then(Option::as_deref);
        let default = file.default_prompt_name.as_deref().and_then(prompt);
        // Newer versions write empty prompts into every model.
        if prompts.values().flatten().all(String::is_empty) {
            return Ok(names.iter().find_map(|name| Self::known(name)).unwrap_or_default());
        }
        let any = |names: &[&str]| names.iter().find_map(|name| prompt(name)).or(default).unwrap_or_default();
        Ok(Self {
            question: any(&["query"]).to_owned(),
            passage: any(&["passage", "document", "corpus"]).to_owned(),
        })
    }

    fn known(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        let words: Vec<_> = name.split(|c: char| !c.is_alphanumeric()).collect();
        let (_, _, question, passage) = KNOWN.iter().find(|(all, none, _, _)| {
            all.iter().all(|word| words.contains(word)) && !none.iter().any(|word| words.contains(word))
        })?;
        Some(Self { question: (*question).to_owned(), passage: (*passage).to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::EmbeddingPrompts;

    #[test]
    fn models_are_known_by_the_words_of_their_names() {
        for (name, question, passage) in [
            ("intfloat/e5-small-v2", "query: ", "passage: "),
            ("intfloat/multilingual-e5-base", "query: ", "passage: "),
            ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
            ("BAAI/bge-base-zh-v1.5", "为这个句子生成表示以用于检索相关文章：", ""),
        ] {
            let prompts = EmbeddingPrompts::known(name).expect(name);
            assert_eq!((&*prompts.question, &*prompts.passage), (question, passage), "{name}");
        }
        for name in ["all-MiniLM-L6-v2", "thenlper/gte-base", "BAAI/bge-m3", "some-e55-model"] {
            assert_eq!(EmbeddingPrompts::known(name), None, "{name}");
        }
    }
}
