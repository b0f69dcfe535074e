//! Cases from files into a set, and out into lines of JSON.

mod files;

use std::collections::{HashMap, HashSet};

use lectern_db::{
    collections,
    documents::metadata,
    evaluations::cases::{self, NewEvaluationCase},
};
use lectern_shared::{
    ids::{DocumentId, EvaluationCaseId, EvaluationId, WorkspaceId},
    model::{
        audit::AuditAction,
        evaluation::{DeclineWord, ExpectedOutcome, GoldQuote},
    },
};
use serde::Serialize;
use uuid::Uuid;

pub(crate) use self::files::ImportFormat;
use self::files::{FileExpectation, FileGold, FileProblems, problem, read};
use super::{EvaluationService, unknown};
use crate::{
    error::{ApiError, ApiErrorKind},
    services::{
        actor::{Actor, Permission},
        creation::{CreationOutcome, IdempotentRequest, ResponseEncoder},
    },
};

/// Characters of a name that is told.
const TOLD: usize = 100;
/// Documents that are read at a time when names are looked for.
const PAGE: u32 = 1_000;
/// Cases that are read at a time when they are exported.
const EXPORTED: u32 = 500;
/// The key of a document's metadata by which collections name it.
const OWN_ID: &str = "_id";

/// What became of an imported file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImportOutcome {
    /// Cases that were added.
    pub(crate) added: usize,
    /// Questions that were left out, since none of what answers them is among the documents.
    pub(crate) skipped: usize,
}

impl EvaluationService {
    /// Adds the cases of a file to a set. Documents are named by their ids, by `_id` in their metadata, or by their names. In a collection
    /// of others', questions are left out of which nothing that answers is among the documents.
    ///
    /// # Errors
    /// What is wrong with the file: nothing is added then.
    pub(crate) async fn import(
        &self,
        actor: &Actor,
        id: EvaluationId,
        format: ImportFormat,
        bytes: Vec<u8>,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<ImportOutcome>,
    ) -> Result<CreationOutcome, ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        if let Some(told) = self.creations.stored_response(&once).await? {
            return Ok(CreationOutcome::Before(told));
        }
        let evaluation = self.find(actor, id).await?;
        let read = tokio::task::spawn_blocking(move || read(format, &bytes));
        let read = read.await.map_err(|_| ApiError::internal())??;
        let mut problems = FileProblems::default();
        for case in &read {
            if let Some(problem) = problem(case) {
                problems.note(case.line, problem);
            }
        }
        problems.end(())?;
        let wanted = read.iter().flat_map(|case| match &case.expect {
            FileExpectation::Decline => &[][..],
            FileExpectation::Gold(gold) => gold,
        });
        let wanted: HashSet<String> = wanted.filter_map(FileGold::name).map(str::to_owned).collect();
        // Collections of others call their documents by numbers, each its own.
        let scope = match evaluation.collection_ids.0.as_slice() {
            [] => None,
            ids => Some(collections::documents_of(&self.db, workspace, ids).await?.into_iter().collect()),
        };
        let known = self.documents_named(workspace, &wanted, scope.as_ref()).await?;
        let mut problems = FileProblems::default();
        let (mut new, mut skipped) = (Vec::with_capacity(read.len()), 0);
        for case in read {
            let expect = match case.expect {
                FileExpectation::Decline => ExpectedOutcome::Decline(DeclineWord::Decline),
                FileExpectation::Gold(gold) => {
                    let unknown =
                        gold.iter().filter_map(FileGold::name).find(|name| !known.contains_key(*name));
                    let unknown = unknown.filter(|_| format != ImportFormat::Beir).map(str::to_owned);
                    let found: Vec<GoldQuote> =
                        gold.into_iter().filter_map(|gold| resolve(gold, &known)).collect();
                    if let Some(name) = unknown {
                        let name: String = name.chars().take(TOLD).collect();
                        problems.note(
                            case.line,
                            &format!("names the document {name:?}, which is not there, or a name of several"),
                        );
                        continue;
                    }
                    if found.is_empty() {
                        skipped += 1;
                        continue;
                    }
                    ExpectedOutcome::Gold(found)
                }
            };
            let id = EvaluationCaseId::generate();
            new.push(NewEvaluationCase { id, question: case.question, expect, note: case.note });
        }
        problems.end(())?;
        if new.is_empty() {
            let message = "None of the collection's documents is here. Add them first, each with its id as `_id` in its metadata \
                           or as its name.";
            return Err(ApiError::new(ApiErrorKind::Conflict, "no_documents", message));
        }
        let outcome = ImportOutcome { added: new.len(), skipped };
        let (tx, _) = self.insert_cases(actor, id, new).await?;
        self.creations.commit(tx, once, &outcome, tell).await
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

fn resolve(gold: FileGold, known: &HashMap<String, DocumentId>) -> Option<GoldQuote> {
    let document_id = *known.get(gold.name()?)?;
    let quote = gold.quote.filter(|quote| !quote.trim().is_empty());
    Some(GoldQuote { document_id, quote, grade: gold.grade })
}
