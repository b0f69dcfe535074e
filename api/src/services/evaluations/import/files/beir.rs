//! Collections in the form of BEIR: a ZIP file with questions, and with judgements of what answers them.

use std::{
    collections::BTreeMap,
    fmt,
    io::{Cursor, Read},
};

use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};

use super::{
    Bounds, FileCase, FileExpectation, FileGold, FileProblems, ReadFile, json_lines::broken, lines,
    unreadable,
};
use crate::error::ApiError;

/// Bytes of one file of a collection that are unpacked: a list of questions, or of what answers them.
const UNPACKED: u64 = 64 << 20;
/// Files of a collection's ZIP file.
pub(super) const FILES: usize = 10_000;
/// What begins each entry of a ZIP file's list of files.
pub(super) const ZIP_ENTRY: &[u8] = b"PK\x01\x02";

/// The id of a question, a text or a number; nothing else is built.
struct QueryId(String);

impl<'de> Deserialize<'de> for QueryId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Id;

        impl Visitor<'_> for Id {
            type Value = QueryId;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text or a number")
            }

            fn visit_str<E: de::Error>(self, id: &str) -> Result<Self::Value, E> {
                Ok(QueryId(id.to_owned()))
            }

            fn visit_u64<E: de::Error>(self, id: u64) -> Result<Self::Value, E> {
                Ok(QueryId(id.to_string()))
            }

            fn visit_i64<E: de::Error>(self, id: i64) -> Result<Self::Value, E> {
                Ok(QueryId(id.to_string()))
            }

            fn visit_f64<E: de::Error>(self, id: f64) -> Result<Self::Value, E> {
                // As JSON has it.
                let id = serde_json::Number::from_f64(id).ok_or_else(|| E::custom("no number"))?;
                Ok(QueryId(id.to_string()))
            }
        }

        deserializer.deserialize_any(Id)
    }
}

/// The questions of a collection in the form of BEIR that have judgements, those of its test set if it has several.
pub(super) fn read_collection(bytes: &[u8], bounds: Bounds) -> Result<ReadFile, ApiError> {
    // Each takes many times the bytes of its entry once the list is read.
    if bytes.windows(ZIP_ENTRY.len()).filter(|entry| *entry == ZIP_ENTRY).count() > FILES {
        return Err(unreadable(&format!(
            "has more than {FILES} files in it: leave out all but `queries.jsonl` and `qrels/test.tsv`"
        )));
    }
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|_| no_archive())?;
    let names: Vec<String> = archive.file_names().filter_map(|name| Some(name.ok()?.into_owned())).collect();
    let ends = |end: &str| names.iter().find(|name| *name == end || name.ends_with(&format!("/{end}")));
    let questions = ends("queries.jsonl").ok_or_else(|| unreadable("has no `queries.jsonl`"))?;
    let judgements = ends("qrels/test.tsv").or_else(|| names.iter().find(|name| is_judgement(name)));
    let judgements = judgements.ok_or_else(|| unreadable("has no `qrels/test.tsv`"))?;
    let mut problems = FileProblems::default();
    // One file at a time is in memory.
    let judged = unpack(&mut archive, judgements)?;
    let gold = read_judgements(&judged, judgements, bounds, &mut problems)?;
    drop(judged);
    let asked = unpack(&mut archive, questions)?;
    read_questions(&asked, questions, gold, bounds, problems)
}

fn no_archive() -> ApiError {
    unreadable("is no ZIP file that can be read")
}

fn is_judgement(name: &str) -> bool {
    let path = std::path::Path::new(name);
    let folder = path.parent().and_then(|folder| folder.file_name());
    path.extension().is_some_and(|end| end == "tsv") && folder.is_some_and(|folder| folder == "qrels")
}

fn unpack(archive: &mut zip::ZipArchive<Cursor<&[u8]>>, name: &str) -> Result<Vec<u8>, ApiError> {
    let file = archive.by_name(name).map_err(|_| no_archive())?;
    let mut plain = Vec::new();
    file.take(UNPACKED + 1).read_to_end(&mut plain).map_err(|_| unreadable("is damaged"))?;
    if plain.len() as u64 > UNPACKED {
        return Err(unreadable(&format!("has more than {UNPACKED} bytes in `{name}`: shorten it")));
    }
    Ok(plain)
}

/// The questions of the file of that name that something answers.
fn read_questions(
    asked: &[u8],
    name: &str,
    mut gold: BTreeMap<String, Vec<FileGold>>,
    bounds: Bounds,
    mut problems: FileProblems,
) -> Result<ReadFile, ApiError> {
    #[derive(Deserialize)]
    struct JsonQuery {
        #[serde(rename = "_id")]
        id: QueryId,
        text: String,
    }
    let mut read = Vec::new();
    for (line, bytes) in lines(asked) {
        if problems.is_full() {
            break;
        }
        let Some(text) = bounds.text(bytes) else {
            problems.note(line, format!("of `{name}` {}", bounds.too_long()));
            continue;
        };
        let JsonQuery { id: QueryId(id), text } = match serde_json::from_str::<JsonQuery>(&text) {
            Ok(query) => query,
            Err(_) if text.trim().is_empty() => continue,
            Err(error) if error.is_data() => {
                let wanted = "must be an object with `_id`, a text or a number, and `text`, a text";
                problems.note(line, format!("of `{name}` {wanted}"));
                continue;
            }
            Err(error) => {
                problems.note(line, format!("of `{name}` {}", broken(&text, &error)));
                continue;
            }
        };
        if let Some(gold) = gold.remove(&id) {
            if read.len() == bounds.cases {
                problems.end()?;
                return Err(bounds.too_many_cases());
            }
            let expect = FileExpectation::Gold(gold);
            read.push(FileCase { line, question: text, expect, note: Some(id) });
        }
    }
    Ok(ReadFile { cases: read, problems })
}

/// What answers each question of a collection, of the file of that name in it.
fn read_judgements(
    judged: &[u8],
    name: &str,
    bounds: Bounds,
    problems: &mut FileProblems,
) -> Result<BTreeMap<String, Vec<FileGold>>, ApiError> {
    let mut gold: BTreeMap<String, Vec<FileGold>> = BTreeMap::new();
    let mut read = 0;
    for (line, bytes) in lines(judged) {
        if problems.is_full() {
            break;
        }
        let Some(text) = bounds.text(bytes) else {
            problems.note(line, format!("of `{name}` {}", bounds.too_long()));
            continue;
        };
        if text.trim().is_empty() {
            continue;
        }
        if read == bounds.places {
            std::mem::take(problems).end()?;
            return Err(bounds.too_many_places(&format!("judgements in `{name}`")));
        }
        let mut cells = text.split('\t').map(str::trim);
        let row = (cells.next(), cells.next(), cells.next(), cells.next());
        let (Some(question), Some(document), Some(grade), None) = row else {
            problems.note(line, format!("of `{name}` has not three columns"));
            continue;
        };
        let grade = match grade.parse::<i64>() {
            Ok(grade) => grade,
            // The header.
            Err(_) if line == 1 => continue,
            Err(_) => {
                problems.note(line, format!("of `{name}` has a grade that is no whole number"));
                continue;
            }
        };
        read += 1;
        // Else it does not answer.
        if let Ok(grade @ 1..) = u32::try_from(grade) {
            let document = Some(document.to_owned());
            let place = FileGold { line, document_id: None, document, quote: None, grade };
            match gold.get_mut(question) {
                Some(places) => places.push(place),
                // Most questions have one: there is room for no more.
                None => {
                    gold.insert(question.to_owned(), vec![place]);
                }
            }
        }
    }
    Ok(gold)
}
