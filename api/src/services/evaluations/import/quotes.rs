//! Whether the documents say what an imported file quotes of them. What they do not say may come with what is ingested later, so that it
//! is told and refuses nothing.

use std::{collections::BTreeSet, sync::LazyLock, time::Duration};

use lectern_agents::evaluation::{GoldError, GoldFinder};
use lectern_shared::{
    ids::{DocumentId, WorkspaceId},
    model::evaluation::GoldQuote,
};
use tokio::{sync::Semaphore, time::timeout};

use super::ResolvedCase;
use crate::{
    error::{ApiError, NAMED_ERRORS},
    services::evaluations::EvaluationService,
};

/// Files at once in a process whose quotations are looked for: each has documents in memory.
static LOOKUPS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(2));
/// The longest that they are looked for: whoever sent the file waits.
const LOOKED_WITHIN: Duration = Duration::from_secs(10);

/// Why a quotation is not in its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QuoteProblem {
    /// The document does not say it.
    NotSaid,
    /// The document cannot be searched, or not yet.
    NotSearchable,
}

/// What is to be known of the quotations of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QuoteReport {
    /// The lines whose quotations are not in their documents, the first ones.
    pub(crate) lines: Vec<(u64, QuoteProblem)>,
    /// How many further lines there are of this kind.
    pub(crate) more: usize,
    /// How many quotations were not looked for: there was no time for it.
    pub(crate) unlooked: usize,
}

impl EvaluationService {
    /// Looks for the quotations of some cases in their documents.
    pub(super) async fn look_for_quotes(
        &self,
        workspace: WorkspaceId,
        cases: &[ResolvedCase],
    ) -> Result<QuoteReport, ApiError> {
        let mut quotes: Vec<(DocumentId, u64, &str)> = Vec::new();
        for ResolvedCase { case, lines } in cases {
            let places = case.expect.gold().iter().zip(lines);
            quotes.extend(places.filter_map(|(GoldQuote { document_id, quote, .. }, line)| {
                Some((*document_id, *line, quote.as_deref()?))
            }));
        }
        // So each document is read once.
        quotes.sort_by_key(|(document, ..)| *document);
        let mut finder = GoldFinder::new(self.db.clone(), workspace, self.compute.clone());
        let (mut problems, mut looked) = (BTreeSet::new(), 0);
        let looking = async {
            let _turn = LOOKUPS.acquire().await.map_err(|_| ApiError::internal())?;
            for (document, line, quote) in &quotes {
                let problem = match finder.says(*document, quote).await.map_err(of_gold)? {
                    Some(true) => None,
                    Some(false) => Some(QuoteProblem::NotSaid),
                    None => Some(QuoteProblem::NotSearchable),
                };
                problems.extend(problem.map(|problem| (*line, problem)));
                looked += 1;
            }
            Ok::<(), ApiError>(())
        };
        // What was found out until then stands.
        timeout(LOOKED_WITHIN, looking).await.unwrap_or(Ok(()))?;
        let more = problems.len().saturating_sub(NAMED_ERRORS);
        let lines = problems.into_iter().take(NAMED_ERRORS).collect();
        Ok(QuoteReport { lines, more, unlooked: quotes.len() - looked })
    }
}

fn of_gold(error: GoldError) -> ApiError {
    match error {
        GoldError::Db(error) => error.into(),
        GoldError::Stopped(_) => ApiError::internal(),
    }
}
