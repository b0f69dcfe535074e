//! The search index, and the generations and passages that it is made of.

use lectern_db::{
    checkup::{self, SearchableDocument},
    singletons,
};
use lectern_index::{
    EntryMismatch, LocalIndex, QdrantIndex, SearchIndex,
    audit::{self, AuditedDocument, DocumentDamage, is_under_way},
    segment::Segment,
};
use lectern_runtime as runtime;
use lectern_shared::{compute::ComputePool, ids::GenerationId};

use super::{
    DoctorContext, DoctorError, DoctorFinding, DoctorReport, FindingTally, InstallationPart, Severity,
    blobs::CheckedBlobStore,
    documents, leftovers,
    mend::{self, RepairPlan},
};

const REPAIR: &str = "run `lectern doctor --repair`";

/// Where entries are looked for.
enum IndexAccess {
    /// In the database.
    Embedded(Box<LocalIndex>),
    /// In Qdrant.
    Qdrant(Box<QdrantIndex>),
    /// It cannot be asked.
    Away,
}

/// What was found of each kind.
#[derive(Default)]
struct IndexFindings {
    /// Documents that answer.
    looked_at: u64,
    entries: FindingTally,
    rows: FindingTally,
    passages: FindingTally,
    /// Passages are lost and there is nothing to make them of again; of some, a part is left.
    lost: FindingTally,
    partly_lost: FindingTally,
    /// Whether there is a source could not be told.
    unclear: FindingTally,
    under_way: FindingTally,
    /// No vectors are kept for them.
    vectors: FindingTally,
}

pub(super) async fn look(
    look: &DoctorContext<'_>,
    store: Option<&CheckedBlobStore>,
    report: &mut DoctorReport,
) -> Result<(), DoctorError> {
    let (entries, serves) = open(look, report).await?;
    let mut found = IndexFindings::default();
    let mut after = checkup::beginning();
    loop {
        let page = checkup::answering(look.db, after).await?;
        let Some(last) = page.last() else { break };
        after = last.id;
        examine(look, &entries, store, page, &mut found, report).await?;
    }
    let damaged = tell(look, &found, report);
    leftovers::look(look, report).await?;
    if !damaged && serves {
        report.ok(InstallationPart::Index, documents(found.looked_at, ("is searchable", "are searchable")));
    }
    Ok(())
}

/// Opens the index; whether it serves.
async fn open(
    look: &DoctorContext<'_>,
    report: &mut DoctorReport,
) -> Result<(IndexAccess, bool), DoctorError> {
    let set = runtime::index_name(look.settings);
    if let Some(known) = singletons::get(look.db, runtime::INDEX).await?.filter(|known| known != set) {
        let what = format!("the documents are in the index of {known}, and the settings name {set}");
        let finding = DoctorFinding::new(InstallationPart::Index, Severity::Error, "elsewhere", what);
        report.add(finding.todo(format!(
            "set QDRANT_URL as the service has it; to move to {set}, stop every process and run `lectern reindex`"
        )));
        return Ok((IndexAccess::Away, false));
    }
    let (Some(config), Some(instance)) = (&look.settings.qdrant, &look.instance) else {
        // It only counts, so it keeps nothing in memory.
        return Ok((IndexAccess::Embedded(Box::new(LocalIndex::new(look.db.clone(), 0))), true));
    };
    let index = match QdrantIndex::open_read_only(config, instance).await {
        Ok(index) => index,
        Err(failure) => {
            let finding = DoctorFinding::new(
                InstallationPart::Index,
                Severity::Error,
                "unreachable",
                failure.to_string(),
            );
            report.add(finding.todo(
                "start Qdrant, or correct QDRANT_URL and QDRANT_API_KEY; passages were looked at without it",
            ));
            return Ok((IndexAccess::Away, false));
        }
    };
    // The collection of an embedding space is made by the first document that needs it.
    let missing = index.missing(&[]).await?;
    if missing.is_empty() {
        return Ok((IndexAccess::Qdrant(Box::new(index)), true));
    }
    if look.options.repair {
        QdrantIndex::open(config, instance, false).await?;
    }
    let what = format!("the Qdrant collection {} is gone", missing.join(", "));
    let finding = DoctorFinding::new(InstallationPart::Index, Severity::Error, "collection_missing", what);
    report.add(finding.repairable(look.options.repair).todo(format!(
        "check QDRANT_URL, or restore a snapshot; to make it again and fill it from the stored passages, {REPAIR}"
    )));
    Ok((IndexAccess::Qdrant(Box::new(index)), false))
}

/// Looks at a page of documents, and mends what can be mended.
async fn examine(
    look: &DoctorContext<'_>,
    entries: &IndexAccess,
    store: Option<&CheckedBlobStore>,
    page: Vec<SearchableDocument>,
    found: &mut IndexFindings,
    report: &mut DoctorReport,
) -> Result<(), DoctorError> {
    found.looked_at += page.len() as u64;
    let generations: Vec<GenerationId> = page.iter().map(|document| document.generation).collect();
    let embedded = checkup::embedded(look.db, &generations).await?;
    let mut mending = RepairPlan::default();
    for audited in audit::compare(look.db, entries.index(), page).await? {
        let chunks = audited.expected();
        let AuditedDocument { document, damage } = audited;
        let damage = match damage {
            None if !entries.decodes(look, &document).await? => {
                Some(DocumentDamage::Entries(EntryMismatch::Missing))
            }
            known => known,
        };
        let Some(damage) = damage else {
            if document.embedding_space.is_some() && !embedded.contains_key(&document.generation) {
                found.vectors.add(document.id);
            }
            continue;
        };
        if is_under_way(&document, damage) {
            found.under_way.add(document.id);
            continue;
        }
        match damage {
            DocumentDamage::Entries(_) => {
                found.entries.add(document.id);
                mending.index.push(document);
            }
            DocumentDamage::Row => {
                found.rows.add(document.id);
                mending.rows.push((document, chunks));
            }
            DocumentDamage::Passages { left } => match mend::has_source(&document, store).await {
                Some(true) => {
                    found.passages.add(document.id);
                    mending.ingest.push((document, left));
                }
                Some(false) if left == 0 => {
                    found.lost.add(document.id);
                    mending.ingest.push((document, left));
                }
                Some(false) => found.partly_lost.add(document.id),
                None => found.unclear.add(document.id),
            },
        }
    }
    if look.options.repair {
        report.queued += mending.run(look).await?;
    }
    Ok(())
}

impl IndexAccess {
    /// The index, if it can be asked.
    fn index(&self) -> Option<&dyn SearchIndex> {
        match self {
            Self::Embedded(index) => Some(&**index),
            Self::Qdrant(index) => Some(&**index),
            Self::Away => None,
        }
    }

    /// Whether what is held of a document can be read; asked of the embedded index alone, and only by a deep look.
    async fn decodes(
        &self,
        look: &DoctorContext<'_>,
        document: &SearchableDocument,
    ) -> Result<bool, DoctorError> {
        match self {
            Self::Embedded(_) if look.options.deep => decodes(look, document).await,
            Self::Embedded(_) | Self::Qdrant(_) | Self::Away => Ok(true),
        }
    }
}

/// Whether every part of the embedded index of a document can be read, and has the vectors that it should have. One is in memory at
/// a time.
async fn decodes(look: &DoctorContext<'_>, document: &SearchableDocument) -> Result<bool, DoctorError> {
    let compute = ComputePool::per_core();
    for (part, _) in checkup::parts(look.db, document.generation).await? {
        let Some(data) = checkup::part(look.db, document.generation, part).await? else { return Ok(false) };
        let has_vectors = document.embedding_space.is_some();
        let is_sound = move || match Segment::from_bytes(data) {
            Ok(segment) => segment.dense().is_some() == has_vectors,
            Err(_) => false,
        };
        if !compute.run(is_sound).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Tells what was found; true when anything is wrong.
fn tell(look: &DoctorContext<'_>, found: &IndexFindings, report: &mut DoctorReport) -> bool {
    let repaired = look.options.repair;
    let before = report.findings.len();
    let mut error = |code, tally: &FindingTally, what: &str, todo: String, mends: bool| {
        if !tally.is_empty() {
            let what = format!("{} {what}", documents(tally.count, ("has", "have")));
            let finding =
                DoctorFinding::new(InstallationPart::Index, Severity::Error, code, what).of(tally).todo(todo);
            report.add(if mends { finding.repairable(repaired) } else { finding });
        }
    };
    error(
        "entries_missing",
        &found.entries,
        "damaged or missing index entries",
        format!("{REPAIR}: they are indexed again from their stored passages"),
        true,
    );
    error(
        "generation_missing",
        &found.rows,
        "no generation that answers, though the passages are there",
        format!("{REPAIR}: they answer again, and are indexed again from their stored passages"),
        true,
    );
    error(
        "passages_missing",
        &found.passages,
        "lost passages",
        format!("{REPAIR}: they are ingested again from their sources"),
        true,
    );
    error(
        "passages_lost",
        &found.lost,
        "lost all passages, and the source is gone",
        format!(
            "restore a backup, or delete them and upload them again; {REPAIR} so that they are not shown as searchable"
        ),
        true,
    );
    error(
        "passages_partly_lost",
        &found.partly_lost,
        "lost some passages, and the source is gone; what is left is found still",
        "restore a backup, or delete them and upload them again".to_owned(),
        false,
    );
    error(
        "passages_unclear",
        &found.unclear,
        "lost passages, and whether the source is there cannot be told",
        "make the blob store answer, and run this again".to_owned(),
        false,
    );
    let mut warning = |code, tally: &FindingTally, what: &str, todo: &str| {
        if !tally.is_empty() {
            let what = format!("{} {what}", documents(tally.count, ("is", "are")));
            report.add(
                DoctorFinding::new(InstallationPart::Index, Severity::Warning, code, what)
                    .of(tally)
                    .todo(todo),
            );
        }
    };
    warning(
        "under_way",
        &found.under_way,
        "queued to be mended",
        "nothing, if the service runs: it does the work; start it if not",
    );
    warning(
        "vectors_missing",
        &found.vectors,
        "searchable, and their vectors are not kept besides",
        "nothing: they are made again when these documents are indexed again, which takes the longer",
    );
    report.findings.len() > before
}
