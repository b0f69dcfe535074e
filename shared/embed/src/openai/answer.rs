//! What an embedding server answers.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};

/// Numbers for which room is made before they come.
const PLAUSIBLE: usize = 4096;

/// Why an answer cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AnswerError {
    #[error("it does not answer as an embedding server does")]
    Foreign,
    #[error("it answers with {got} vectors for {wanted} texts")]
    Count { got: usize, wanted: usize },
    #[error("it answers with vectors of {got} numbers, where {wanted} are expected")]
    Dimensions { got: usize, wanted: usize },
    #[error("it answers with vectors that have no direction")]
    Numbers,
}

#[derive(Deserialize)]
struct EmbeddingsResponse {
    data: Vec<EmbeddingItem>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    index: Option<usize>,
    #[serde(deserialize_with = "numbers")]
    embedding: Vec<f32>,
}

/// The vectors of so many texts, in the order of the texts, of unit length. They have the wanted dimension, or one that they
/// share.
pub(super) fn vectors(
    body: &[u8],
    texts: usize,
    wanted: Option<usize>,
) -> Result<Vec<Vec<f32>>, AnswerError> {
    let EmbeddingsResponse { mut data } = serde_json::from_slice(body).map_err(|_| AnswerError::Foreign)?;
    if data.len() != texts {
        return Err(AnswerError::Count { got: data.len(), wanted: texts });
    }
    if data.iter().any(|item| item.index.is_some()) {
        data.sort_by_key(|item| item.index);
        if !data.iter().enumerate().all(|(place, item)| item.index == Some(place)) {
            return Err(AnswerError::Foreign);
        }
    }
    let Some(first) = data.first() else { return Ok(Vec::new()) };
    let wanted = wanted.unwrap_or(first.embedding.len());
    data.into_iter().map(|item| unit(item.embedding, wanted)).collect()
}

fn unit(mut vector: Vec<f32>, wanted: usize) -> Result<Vec<f32>, AnswerError> {
    if vector.len() != wanted {
        return Err(AnswerError::Dimensions { got: vector.len(), wanted });
    }
    let squares: f64 = vector.iter().map(|&number| f64::from(number) * f64::from(number)).sum();
    let length = squares.sqrt();
    if !length.is_normal() {
        return Err(AnswerError::Numbers);
    }
    for number in &mut vector {
        #[expect(clippy::cast_possible_truncation, reason = "it is at most 1, and was an f32")]
        let scaled = (f64::from(*number) / length) as f32;
        *number = scaled;
    }
    Ok(vector)
}

/// A list of numbers, or the same in base64: 32-bit floats, little endian.
fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f32>, D::Error> {
    struct VectorVisitor;

    impl<'de> Visitor<'de> for VectorVisitor {
        type Value = Vec<f32>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("numbers")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<f32>, A::Error> {
            let mut numbers = Vec::with_capacity(list.size_hint().unwrap_or(PLAUSIBLE).min(PLAUSIBLE));
            while let Some(number) = list.next_element::<f64>()? {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "what is too large becomes infinite, and is refused"
                )]
                numbers.push(number as f32);
            }
            numbers.shrink_to_fit();
            Ok(numbers)
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<f32>, E> {
            let bytes = STANDARD.decode(text).map_err(|_| E::custom("not base64"))?;
            let (numbers, rest) = bytes.as_chunks::<4>();
            if !rest.is_empty() {
                return Err(E::custom("not whole numbers"));
            }
            Ok(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
        }
    }

    deserializer.deserialize_any(VectorVisitor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_come_in_the_order_of_the_texts_and_of_unit_length() {
        let body = br#"{"object":"list","data":[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[3.0,4.0]}],"model":"m"}"#;
        assert_eq!(vectors(body, 2, Some(2)), Ok(vec![vec![0.6, 0.8], vec![0.0, 1.0]]));
        let without = br#"{"data":[{"embedding":[3,4]},{"embedding":[0,1e-20]}]}"#;
        assert_eq!(vectors(without, 2, None), Ok(vec![vec![0.6, 0.8], vec![0.0, 1.0]]));
    }

    #[test]
    fn base64_is_read_as_well() {
        let encoded = STANDARD.encode([3.0_f32, 4.0].map(f32::to_le_bytes).concat());
        let body = format!(r#"{{"data":[{{"index":0,"embedding":"{encoded}"}}]}}"#);
        assert_eq!(vectors(body.as_bytes(), 1, None), Ok(vec![vec![0.6, 0.8]]));
        let nan = STANDARD.encode([f32::NAN, 4.0].map(f32::to_le_bytes).concat());
        let body = format!(r#"{{"data":[{{"index":0,"embedding":"{nan}"}}]}}"#);
        assert_eq!(vectors(body.as_bytes(), 1, None), Err(AnswerError::Numbers));
    }

    #[test]
    fn what_cannot_be_compared_is_no_vector() {
        for (body, error) in [
            (r#"{"data":[{"embedding":[0,0]}]}"#, AnswerError::Numbers),
            (r#"{"data":[{"embedding":[1e39,0]}]}"#, AnswerError::Numbers),
            (r#"{"data":[{"embedding":[NaN,0]}]}"#, AnswerError::Foreign),
            (r#"{"data":[{"embedding":[null,0]}]}"#, AnswerError::Foreign),
            (r#"{"data":[{"embedding":"not base64"}]}"#, AnswerError::Foreign),
            (r#"{"data":[{"embedding":"AAAA"}]}"#, AnswerError::Foreign),
            (r#"{"data":[{"index":1,"embedding":[1,0]}]}"#, AnswerError::Foreign),
            (r#"{"data":[{"embedding":[1,0,0]}]}"#, AnswerError::Dimensions { got: 3, wanted: 2 }),
            (r#"{"data":[]}"#, AnswerError::Count { got: 0, wanted: 1 }),
            ("<html>", AnswerError::Foreign),
        ] {
            assert_eq!(vectors(body.as_bytes(), 1, Some(2)), Err(error), "{body}");
        }
    }
}
