//! Points: what an entry becomes in a collection, and how entries are named in filters.

use std::collections::HashMap;

use lectern_shared::ids::{DocumentId, GenerationId, WorkspaceId};
use qdrant_client::qdrant::{
    Condition, Filter, NamedVectors, PointId, PointStruct, Value, Vector, Vectors, r#match::MatchValue,
    point_id::PointIdOptions,
};
use uuid::{Uuid, Version};

use super::super::lexical::TermId;

/// The fields of a point.
pub(super) mod field {
    /// Whose it is.
    pub(in super::super) const USER: &str = "user";
    /// Its document.
    pub(in super::super) const DOCUMENT: &str = "document";
    /// Its generation.
    pub(in super::super) const GENERATION: &str = "generation";
    /// Its number in the generation.
    pub(in super::super) const ORDINAL: &str = "ordinal";
}

/// The sparse vector of a point's words.
pub(super) const TEXT: &str = "text";

/// What stands for a generation in the ids of its points: 90 bits, and the six of a UUID's version and variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct GenerationTag([u8; 12]);

/// Spreads whatever differs between two generations over all bits. Part of the data format: it never changes.
const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

impl GenerationTag {
    pub(super) fn of(generation: GenerationId) -> Self {
        let mut mixed = generation.as_uuid().as_u128();
        for _ in 0..2 {
            mixed ^= mixed >> 61;
            mixed = mixed.wrapping_mul(SPREAD);
        }
        let id = uuid::Builder::from_custom_bytes((mixed ^ mixed >> 64).to_be_bytes()).into_uuid();
        Self::split(id).0
    }

    fn split(id: Uuid) -> (Self, u32) {
        let [tag @ .., a, b, c, d] = id.into_bytes();
        (Self(tag), u32::from_be_bytes([a, b, c, d]))
    }

    /// The id of a point of the generation: by it alone a search knows what it has found. It depends on the generation and the ordinal only, so
    /// that writing an entry again overwrites it.
    fn point(self, ordinal: u32) -> Uuid {
        let mut id = [0; 16];
        let (tag, number) = id.split_at_mut(12);
        tag.copy_from_slice(&self.0);
        number.copy_from_slice(&ordinal.to_be_bytes());
        Uuid::from_bytes(id)
    }
}

/// What the id of a point that was found tells: its generation's tag, and its ordinal. Nothing, of points of before ids told anything.
pub(super) fn entry_of_id(id: &PointId) -> Option<(GenerationTag, u32)> {
    let Some(PointIdOptions::Uuid(text)) = &id.point_id_options else { return None };
    let id = Uuid::try_parse(text).ok()?;
    (id.get_version() == Some(Version::Custom)).then(|| GenerationTag::split(id))
}

/// Whose entries they are, which document's, and which generation's.
#[derive(Clone, Copy, Debug)]
pub(super) struct PointOwner {
    pub(super) workspace: WorkspaceId,
    pub(super) document: DocumentId,
    pub(super) generation: GenerationId,
}

impl PointOwner {
    /// The point of an entry without any vector.
    pub(super) fn point(&self, ordinal: u32) -> PointStruct {
        let id = GenerationTag::of(self.generation).point(ordinal);
        let payload = HashMap::from([
            (field::USER.to_owned(), Value::from(self.workspace.to_string())),
            (field::DOCUMENT.to_owned(), Value::from(self.document.to_string())),
            (field::GENERATION.to_owned(), Value::from(self.generation.to_string())),
            (field::ORDINAL.to_owned(), Value::from(i64::from(ordinal))),
        ]);
        // A collection of named vectors takes a point that has none of them only if it says so.
        let vectors = Some(Vectors::from(NamedVectors { vectors: HashMap::new() }));
        PointStruct { id: Some(PointId::from(id.to_string())), payload, vectors }
    }
}

/// A sparse vector with 32-bit indices: the weights of terms that are not told apart any more are added up. The terms are
/// ascending, so equal ones are neighbours.
pub(super) fn sparse(terms: &[(TermId, f32)]) -> (Vec<u32>, Vec<f32>) {
    let (mut indices, mut weights) = (Vec::with_capacity(terms.len()), Vec::with_capacity(terms.len()));
    for (term, weight) in terms {
        let index = term.narrow();
        match weights.last_mut() {
            Some(sum) if indices.last() == Some(&index) => *sum += weight,
            _ => {
                indices.push(index);
                weights.push(*weight);
            }
        }
    }
    (indices, weights)
}

/// The vectors of a point with words.
pub(super) fn text_vector(terms: &[(TermId, f32)]) -> Vectors {
    let (indices, weights) = sparse(terms);
    let vector = Vector::new_sparse(indices, weights);
    Vectors::from(NamedVectors { vectors: HashMap::from([(TEXT.to_owned(), vector)]) })
}

/// All that a workspace has of one generation.
pub(super) fn of_generation(workspace: WorkspaceId, generation: GenerationId) -> Filter {
    Filter::must([of_workspace(workspace), Condition::matches(field::GENERATION, generation.to_string())])
}

/// All of these generations, whoever's they are: for the operator alone.
pub(super) fn of_any(generations: &[GenerationId]) -> Filter {
    Filter::must([any_of(generations)])
}

/// All that a workspace has of these generations.
pub(super) fn among(workspace: WorkspaceId, generations: &[GenerationId]) -> Filter {
    Filter::must([of_workspace(workspace), any_of(generations)])
}

/// All that a workspace has except these generations.
pub(super) fn except(workspace: WorkspaceId, generations: &[GenerationId]) -> Filter {
    let must_not = if generations.is_empty() { Vec::new() } else { vec![any_of(generations)] };
    Filter { must: vec![of_workspace(workspace)], must_not, ..Filter::default() }
}

fn of_workspace(workspace: WorkspaceId) -> Condition {
    Condition::matches(field::USER, workspace.to_string())
}

fn any_of(generations: &[GenerationId]) -> Condition {
    let ids: Vec<String> = generations.iter().map(ToString::to_string).collect();
    Condition::matches(field::GENERATION, MatchValue::from(ids))
}

/// The generation and the ordinal of a point that was found, by what it carries.
pub(super) fn entry(payload: &HashMap<String, Value>) -> Option<(GenerationId, u32)> {
    let generation = payload.get(field::GENERATION)?.as_str()?.parse().ok()?;
    let ordinal = payload.get(field::ORDINAL)?.as_integer()?;
    Some((generation, u32::try_from(ordinal).ok()?))
}

/// Whose a point that was found is, and of which generation.
pub(super) fn owner(payload: &HashMap<String, Value>) -> Option<(WorkspaceId, GenerationId)> {
    let text = |field| payload.get(field).and_then(Value::as_str);
    Some((text(field::USER)?.parse().ok()?, text(field::GENERATION)?.parse().ok()?))
}

/// The text of a point's id, as all points of ours have one.
pub(super) fn id_text(id: PointId) -> Option<String> {
    match id.point_id_options? {
        PointIdOptions::Uuid(id) => Some(id),
        PointIdOptions::Num(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_that_are_the_same_in_32_bits_have_their_weights_added_up() {
        let term = |upper: u64, lower: u64| TermId(upper << 32 | lower);
        let terms = [(term(1, 5), 1.0), (term(2, 1), 0.5), (term(2, 7), 0.25), (term(9, 0), 2.0)];
        assert_eq!(sparse(&terms), (vec![1, 2, 9], vec![1.0, 0.75, 2.0]));
        assert_eq!(sparse(&[]), (vec![], vec![]));
    }

    #[test]
    fn an_entry_is_the_same_point_however_often_it_is_written() {
        let owner = PointOwner {
            workspace: WorkspaceId::generate(),
            document: DocumentId::generate(),
            generation: GenerationId::generate(),
        };
        assert_eq!(owner.point(7), owner.point(7));
        assert_ne!(owner.point(7).id, owner.point(8).id);
        let other = PointOwner { generation: GenerationId::generate(), ..owner };
        assert_ne!(owner.point(7).id, other.point(7).id);
        assert_eq!(entry(&owner.point(7).payload), Some((owner.generation, 7)));
    }

    #[test]
    fn the_id_of_a_point_tells_its_generation_and_its_ordinal() {
        // Made in the same millisecond: they differ in a few bits.
        let owners: Vec<_> = (0..1_000)
            .map(|_| PointOwner {
                workspace: WorkspaceId::generate(),
                document: DocumentId::generate(),
                generation: GenerationId::generate(),
            })
            .collect();
        let mut tags = std::collections::HashSet::new();
        for owner in &owners {
            for ordinal in [0, 7, u32::MAX] {
                let id = owner.point(ordinal).id.unwrap();
                assert_eq!(entry_of_id(&id), Some((GenerationTag::of(owner.generation), ordinal)));
            }
            tags.insert(GenerationTag::of(owner.generation));
        }
        assert_eq!(tags.len(), owners.len());
        // As they were made by 0.1.
        let former = Uuid::new_v5(&Uuid::nil(), b"a generation and an ordinal");
        assert_eq!(entry_of_id(&PointId::from(former.to_string())), None);
    }

    #[test]
    fn the_tag_of_a_generation_never_changes() {
        let generation = GenerationId::from(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001));
        let id = GenerationTag::of(generation).point(3);
        assert_eq!(id.to_string(), "d261c82f-2181-871a-a888-ce4100000003");
    }
}
