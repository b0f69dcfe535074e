//! What searches are asked for.

use super::text_enum;

text_enum! {
    /// By what passages are found.
    SearchMode {
        /// By words and by meaning.
        Hybrid => "hybrid",
        /// By meaning only.
        Dense => "dense",
        /// By words only.
        Lexical => "lexical",
    }
}
