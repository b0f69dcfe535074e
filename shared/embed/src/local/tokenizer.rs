//! From texts to a model's tokens.

use std::{
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
};

use lectern_shared::secrets::{hex, sha256};
use tokenizers::{
    Encoding, PostProcessor as _, Tokenizer, TruncationDirection, TruncationParams, TruncationStrategy,
    utils::truncation::truncate_encodings,
};

use super::{
    ModelError,
    config::{LocalModelConfig, read_file},
    languages::LanguageSet,
    prompts::EmbeddingPrompts,
};

/// More than the largest vocabularies take.
const MOST_BYTES: u64 = 128 << 20;

/// The bytes of a text that are looked at for each token that the model takes in, and at least. Words are shorter than that, so that what
/// stands behind them is cut off in any case.
const BYTES_OF_TOKEN: usize = 64;
const LEAST_BYTES: usize = 32 << 10;

/// A model's tokenizer, with the limits of the model and without those that came with it: files are published with the padding
/// and cutting of whoever exported them.
pub(super) struct ModelTokenizer {
    path: PathBuf,
    tokenizer: Tokenizer,
    hash: String,
    lower_case: bool,
    /// The most tokens of a text, without those that the tokenizer adds.
    most: usize,
    /// The most tokens of two texts together, without those that the tokenizer adds.
    most_of_pair: usize,
    /// Tokens of what stands before each passage.
    passage_prefix: usize,
}

impl ModelTokenizer {
    /// Reads `tokenizer.json`.
    pub(super) fn read(
        dir: &Path,
        config: &LocalModelConfig,
        prompts: &EmbeddingPrompts,
    ) -> Result<Self, ModelError> {
        let path = dir.join("tokenizer.json");
        let bytes = read_file(&path, MOST_BYTES)?.ok_or_else(|| {
            let hint = "download it with the model; a model that is published without one is not supported";
            ModelError::Missing { path: path.clone(), hint: hint.to_owned() }
        })?;
        // Another's parser, over a file that may hold anything.
        let parsed = panic::catch_unwind(AssertUnwindSafe(|| Tokenizer::from_bytes(&bytes)));
        let mut tokenizer = match parsed {
            Ok(parsed) => parsed.map_err(|error| ModelError::damaged(&path, error))?,
            Err(_) => return Err(ModelError::damaged(&path, "it is no tokenizer")),
        };
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(|error| ModelError::damaged(&path, error))?;
        let hash = hex(&sha256(&bytes));
        let lower_case = config.lower_case;
        let of_pair = tokenizer.get_post_processor().map_or(0, |added| added.added_tokens(true));
        let most_of_pair = config.max_tokens.saturating_sub(of_pair);
        let mut tokens =
            Self { path, tokenizer, hash, lower_case, most: usize::MAX, most_of_pair, passage_prefix: 0 };
        let added = tokens.of("", "").map_err(|reason| ModelError::damaged(&tokens.path, reason))?.len();
        if added == 0 {
            let reason = "it marks neither the beginning nor the end of a text, as these models need it";
            return Err(ModelError::unsupported(&tokens.path, reason));
        }
        tokens.passage_prefix = tokens.count(&prompts.passage);
        let longest = tokens.passage_prefix.max(tokens.count(&prompts.question));
        tokens.most = config.max_tokens.saturating_sub(added);
        if tokens.most <= longest {
            let reason = format!("the limit of {} tokens leaves none for a text", config.max_tokens);
            return Err(ModelError::damaged(&tokens.path, reason));
        }
        Ok(tokens)
    }

    /// Refuses a tokenizer that makes tokens which the model has no state for.
    pub(super) fn check_vocabulary(&self, vocabulary: usize) -> Result<(), ModelError> {
        let largest = self.tokenizer.get_vocab(true).into_values().max().unwrap_or_default();
        if (largest as usize) < vocabulary {
            return Ok(());
        }
        let reason = format!("it has the token {largest}, but the model knows only {vocabulary}");
        Err(ModelError::damaged(&self.path, reason))
    }

    /// The SHA-256 of the file, in hexadecimal digits.
    pub(super) fn hash(&self) -> &str {
        &self.hash
    }

    /// The most tokens of a passage.
    pub(super) fn passage_tokens(&self) -> usize {
        self.most - self.passage_prefix
    }

    /// The languages that its vocabulary is made for.
    pub(super) fn languages(&self) -> LanguageSet {
        LanguageSet::of(&self.tokenizer)
    }

    /// How many tokens a text has, those that the tokenizer adds not counted.
    pub(super) fn count(&self, text: &str) -> usize {
        // What cannot be cut up is one piece, and what is refused here is refused again when it is embedded.
        self.encode("", text).map_or(1, |encoding| encoding.len())
    }

    /// The tokens of a text after a prefix, cut at the limit, with those that the tokenizer adds. Errors are in words for the
    /// operator, without the text.
    pub(super) fn of(&self, prefix: &str, text: &str) -> Result<Vec<u32>, String> {
        let mut encoding = self.encode(prefix, beginning(text, self.most))?;
        encoding.truncate(self.most, 0, TruncationDirection::Right);
        let done = self.tokenizer.post_process(encoding, None, true);
        Ok(done.map_err(|_| failed())?.get_ids().to_vec())
    }

    /// The tokens of a pair of texts with those that the tokenizer adds, and of each the text that it is of. What is too long
    /// for the model is cut at the end of the longer text first, as these models were trained.
    pub(super) fn pair(&self, first: &str, second: &str) -> Result<(Vec<u32>, Vec<u32>), String> {
        let room = TruncationParams {
            max_length: self.most_of_pair,
            strategy: TruncationStrategy::LongestFirst,
            direction: TruncationDirection::Right,
            stride: 0,
        };
        let (first, second) = (beginning(first, self.most_of_pair), beginning(second, self.most_of_pair));
        let (first, second) = (self.encode("", first)?, self.encode("", second)?);
        let (first, second) = truncate_encodings(first, Some(second), &room).map_err(|_| failed())?;
        let done = self.tokenizer.post_process(first, second, true).map_err(|_| failed())?;
        Ok((done.get_ids().to_vec(), done.get_type_ids().to_vec()))
    }

    fn encode(&self, prefix: &str, text: &str) -> Result<Encoding, String> {
        let mut text = if prefix.is_empty() {
            std::borrow::Cow::Borrowed(text.trim())
        } else {
            format!("{prefix}{}", text.trim()).into()
        };
        if self.lower_case {
            text = text.to_lowercase().into();
        }
        self.tokenizer.encode_fast(&*text, false).map_err(|_| failed())
    }
}

/// What of a text can become its first tokens. Cutting up a text takes time and memory for all of it.
fn beginning(text: &str, tokens: usize) -> &str {
    let most = tokens.saturating_mul(BYTES_OF_TOKEN).max(LEAST_BYTES);
    if text.len() <= most {
        return text;
    }
    let text = text.trim_start();
    &text[..text.floor_char_boundary(most)]
}

fn failed() -> String {
    "its tokenizer could not cut up a text".to_owned()
}
