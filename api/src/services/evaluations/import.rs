//! Cases from files into a set, and out into lines of JSON.

mod files;
mod quotes;

use std::collections::{HashMap, HashSet};

use lectern_db::{
    Tx, collections,
    documents::metadata,
    evaluations::cases::{self, NewEvaluationCase},
};
use lectern_shared::{
    ids::{DocumentId, EvaluationCaseId, EvaluationId, WorkspaceId},
    model::{
        audit::AuditAction,
        evaluation::{DeclineWord, Evaluation, ExpectedOutcome, GoldQuote},
    },
    secrets::sha256,
};
use serde::Serialize;
use uuid::Uuid;

use self::files::{FileCase, FileExpectation, FileGold, FileProblems, ReadFile, check, read};
pub(crate) use self::{
    files::ImportFormat,
    quotes::{QuoteProblem, QuoteReport},
};
use super::{EvaluationService, unknown};
use crate::{
    error::{ApiError, ApiErrorKind, FieldErrorCause},
    services::{
        actor::{Actor, Permission},
        creation::{CreationOutcome, IdempotentRequest, ResponseEncoder},
    },
    turns::FairPermit,
};

/// Characters of a name that is told.
const TOLD: usize = 100;
/// Documents that are read at a time when names are looked for.
const PAGE: u32 = 1_000;
/// Cases that are read at a time when they are exported, or compared with new ones.
const EXPORTED: u32 = 500;
/// The key of a document's metadata by which collections name it.
const OWN_ID: &str = "_id";

/// A file with cases.
pub(crate) struct CaseFile {
    pub(crate) format: ImportFormat,
    pub(crate) bytes: Vec<u8>,
    /// The turn in which it is taken in, if that is large enough for one. It ends when the cases are added, and not before the file is read:
    /// that goes on when its sender hangs up.
    pub(crate) turn: Option<FairPermit>,
}

/// What became of an imported file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImportOutcome {
    /// Cases that were added.
    pub(crate) added: usize,
    /// Cases that were left out: the set has them already, or the file has them twice.
    pub(crate) known: usize,
    /// Questions that were left out, since none of what answers them is among the documents.
    pub(crate) foreign: usize,
    /// What is to be known of its quotations.
    pub(crate) quotes: QuoteReport,
}

/// A case of a file, with its documents.
struct ResolvedCase {
    case: NewEvaluationCase,
    /// Where in the file each place stands that answers.
    lines: Vec<u64>,
}

impl EvaluationService {
    /// Adds the cases of a file to a set. Documents are named by their ids, by `_id` in their metadata, or by their names. In a collection
    /// of others', questions are left out of which nothing that answers is among the documents; and cases that the set has already are.
    ///
    /// # Errors
    /// What is wrong with the file: nothing is added then.
    pub(crate) async fn import(
        &self,
        actor: &Actor,
        id: EvaluationId,
        file: CaseFile,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<ImportOutcome>,
    ) -> Result<CreationOutcome, ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        if let Some(told) = self.creations.stored_response(&once).await? {
            return Ok(CreationOutcome::Before(told));
        }
        let evaluation = self.find(actor, id).await?;
        let CaseFile { format, bytes, turn } = file;
        let read = tokio::task::spawn_blocking(move || (turn, read(format, &bytes)));
        let (_turn, read) = read.await.map_err(|_| ApiError::internal())?;
        let ReadFile { cases: read, problems } = read?;
        let known = self.known_documents(&evaluation, format, &read, problems).await?;
        let all = read.len();
        let resolved: Vec<ResolvedCase> = read.into_iter().filter_map(|case| resolve(case, &known)).collect();
        let foreign = all - resolved.len();
        if resolved.is_empty() {
            let message = "None of the collection's documents is here. Add them first, each with its id as `_id` in its metadata \
                           or as its name.";
            return Err(ApiError::new(ApiErrorKind::Conflict, "no_documents", message));
        }
        let quotes = Box::pin(self.look_for_quotes(workspace, &resolved)).await?;
        let (mut tx, evaluation) = self.lock_set(actor, id).await?;
        let new: Vec<NewEvaluationCase> = resolved.into_iter().map(|resolved| resolved.case).collect();
        let given = new.len();
        let new = without_known(&mut tx, &evaluation, new).await?;
        let (added, known) = (new.len(), given - new.len());
        self.insert_locked(&mut tx, actor, &evaluation, new).await?;
        let outcome = ImportOutcome { added, known, foreign, quotes };
        self.creations.commit(tx, once, &outcome, tell).await
    }

    /// The documents that the cases of a file name.
    ///
    /// # Errors
    /// All that is wrong with the file, which includes what could not be read of it and, but for collections of others, names of documents
    /// that are not there.
    async fn known_documents(
        &self,
        evaluation: &Evaluation,
        format: ImportFormat,
        read: &[FileCase],
        mut problems: FileProblems,
    ) -> Result<HashMap<String, DocumentId>, ApiError> {
        for case in read {
            check(case, &mut problems);
        }
        if problems.is_full() {
            return problems.end().map(|()| HashMap::new());
        }
        let workspace = evaluation.owner.workspace_id;
        let gold: Vec<&FileGold> = read.iter().flat_map(FileCase::gold).collect();
        let wanted = gold.iter().filter_map(|gold| gold.name());
        let wanted: HashSet<String> = wanted.map(str::to_owned).collect();
        // Collections of others call their documents by numbers, each its own.
        let scope = match evaluation.collection_ids.0.as_slice() {
            [] => None,
            ids => Some(collections::documents_of(&self.db, workspace, ids).await?.into_iter().collect()),
        };
        let known = self.documents_named(workspace, &wanted, scope.as_ref()).await?;
        if format != ImportFormat::Beir {
            for gold in &gold {
                if let Some(name) = gold.name().filter(|name| !known.contains_key(*name)) {
                    let name: String = name.chars().take(TOLD).collect();
                    let what =
                        format!("names the document {name:?}, which is not there, or a name of several");
                    problems.note_because(FieldErrorCause::UnknownDocument, gold.line, what);
                }
            }
        }
        problems.end()?;
        Ok(known)
    }

    /// The documents, of those of `scope` if there is one, that these words name: as an id, as `_id` in the metadata, or as a name that no other one has.
    async fn documents_named(
        &self,
        workspace: WorkspaceId,
        wanted: &HashSet<String>,
        scope: Option<&HashSet<DocumentId>>,
    ) -> Result<HashMap<String, DocumentId>, ApiError> {
        let mut by_name: HashMap<String, Option<DocumentId>> = HashMap::new();
        let mut known: HashMap<String, DocumentId> = HashMap::new();
        let mut after: DocumentId = Uuid::nil().into();
        loop {
            let page = metadata::named(&self.db, workspace, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.id;
            for document in page.into_iter().filter(|one| scope.is_none_or(|scope| scope.contains(&one.id))) {
                let id = document.id.to_string();
                let own = document.metadata.as_ref().and_then(|metadata| metadata.0.get(OWN_ID));
                let own = own.map(|own| own.as_str().map_or_else(|| own.to_string(), str::to_owned));
                for name in [Some(id), own].into_iter().flatten().filter(|name| wanted.contains(name)) {
                    known.entry(name).or_insert(document.id);
                }
                if wanted.contains(&document.name) {
                    by_name.entry(document.name).and_modify(|id| *id = None).or_insert(Some(document.id));
                }
            }
        }
        for (name, id) in by_name {
            if let Some(id) = id {
                known.entry(name).or_insert(id);
            }
        }
        Ok(known)
    }

    /// Some cases of a set behind one, as lines of JSON that can be imported again, and the last of them; none when there are no more.
    pub(crate) async fn export(
        &self,
        actor: &Actor,
        id: EvaluationId,
        after: EvaluationCaseId,
    ) -> Result<Option<(String, EvaluationCaseId)>, ApiError> {
        #[derive(Serialize)]
        struct JsonCase<'a> {
            question: &'a str,
            expect: &'a ExpectedOutcome,
            #[serde(skip_serializing_if = "Option::is_none")]
            note: Option<&'a str>,
        }
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        lectern_db::evaluations::find(&self.db, workspace, id).await?.ok_or_else(unknown)?;
        if after.as_uuid().is_nil() {
            self.note_export(actor, id).await?;
        }
        let cases = cases::following(&self.db, workspace, id, self.clock.now(), after, EXPORTED).await?;
        let Some(last) = cases.last() else { return Ok(None) };
        let mut lines = String::new();
        for case in &cases {
            let line =
                JsonCase { question: &case.question, expect: &case.expect.0, note: case.note.as_deref() };
            lines.push_str(&serde_json::to_string(&line).map_err(|_| ApiError::internal())?);
            lines.push('\n');
        }
        Ok(Some((lines, last.id)))
    }

    async fn note_export(&self, actor: &Actor, id: EvaluationId) -> Result<(), ApiError> {
        // On a full disk what is there can still be read.
        let mut tx = self.db.begin_essential().await?;
        self.audit.note(&mut tx, actor, AuditAction::Exported, "evaluation", id).await?;
        Ok(tx.commit().await?)
    }
}

/// A case with the documents that it names; none when none of them is there.
fn resolve(case: FileCase, known: &HashMap<String, DocumentId>) -> Option<ResolvedCase> {
    let (expect, lines) = match case.expect {
        FileExpectation::Decline => (ExpectedOutcome::Decline(DeclineWord::Decline), Vec::new()),
        FileExpectation::Gold(gold) => {
            let found = gold.into_iter().filter_map(|gold| Some((gold.line, quoted(gold, known)?)));
            let (lines, found): (Vec<u64>, Vec<GoldQuote>) = found.unzip();
            if found.is_empty() {
                return None;
            }
            (ExpectedOutcome::Gold(found), lines)
        }
    };
    let id = EvaluationCaseId::generate();
    Some(ResolvedCase {
        case: NewEvaluationCase { id, question: case.question, expect, note: case.note },
        lines,
    })
}

fn quoted(gold: FileGold, known: &HashMap<String, DocumentId>) -> Option<GoldQuote> {
    let document_id = *known.get(gold.name()?)?;
    let quote = gold.quote.filter(|quote| !quote.trim().is_empty());
    Some(GoldQuote { document_id, quote, grade: gold.grade })
}

/// Those of some cases that a set which is locked does not have yet, each once.
async fn without_known(
    tx: &mut Tx,
    evaluation: &Evaluation,
    mut new: Vec<NewEvaluationCase>,
) -> Result<Vec<NewEvaluationCase>, ApiError> {
    let mut known: HashSet<[u8; 32]> = HashSet::new();
    let mut after: EvaluationCaseId = Uuid::nil().into();
    loop {
        let workspace = evaluation.owner.workspace_id;
        let page = cases::page(tx, workspace, evaluation.id, after, EXPORTED).await?;
        let Some(last) = page.last() else { break };
        after = last.id;
        for case in &page {
            known.insert(fingerprint(&case.question, &case.expect.0)?);
        }
    }
    let mut is_new = Vec::with_capacity(new.len());
    for case in &new {
        is_new.push(known.insert(fingerprint(&case.question, &case.expect)?));
    }
    let mut is_new = is_new.into_iter();
    new.retain(|_| is_new.next().unwrap_or(true));
    Ok(new)
}

/// What is the same of two cases that ask the same and expect the same of it, in whatever order.
fn fingerprint(question: &str, expect: &ExpectedOutcome) -> Result<[u8; 32], ApiError> {
    let places = expect.gold().iter();
    let mut places: Vec<_> =
        places.map(|gold| (gold.document_id, gold.quote.as_deref(), gold.grade)).collect();
    places.sort_unstable();
    places.dedup();
    let asked = serde_json::to_vec(&(question, places)).map_err(|_| ApiError::internal())?;
    Ok(sha256(&asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_the_same_that_ask_and_expect_the_same_in_whatever_order() {
        let (one, two) = (DocumentId::generate(), DocumentId::generate());
        let gold = |document_id, quote: Option<&str>, grade| {
            let quote = quote.map(str::to_owned);
            GoldQuote { document_id, quote, grade }
        };
        let expect = |gold: Vec<GoldQuote>| fingerprint("Who?", &ExpectedOutcome::Gold(gold)).unwrap();
        let (ada, all) = (gold(one, Some("Ada"), 1), gold(two, None, 1));
        let same = expect(vec![ada.clone(), all.clone()]);
        assert_eq!(same, expect(vec![all.clone(), ada.clone(), all.clone()]));
        let decline = ExpectedOutcome::Decline(DeclineWord::Decline);
        let declined = |question| fingerprint(question, &decline).unwrap();
        assert_eq!(declined("Who?"), declined("Who?"));
        for other in [
            expect(vec![ada.clone()]),
            expect(vec![ada.clone(), gold(two, None, 2)]),
            expect(vec![gold(one, Some("Eve"), 1), all]),
            declined("Who?"),
            declined("Why?"),
        ] {
            assert_ne!(same, other);
        }
        assert_ne!(declined("Who?"), declined("Why?"));
    }
}
