//! Uploaded files.

use std::{collections::HashMap, time::Duration};

use futures::StreamExt as _;
use lectern_db::{checkup, singletons};
use lectern_runtime as runtime;
use lectern_shared::{
    blobs::{BlobLocation, BlobStore, ListedBlob},
    ids::DocumentId,
};

use super::{
    DoctorContext, DoctorError, DoctorFinding, DoctorReport, FindingTally, InstallationPart, Severity,
    documents,
};
use crate::jobs::counted;

/// Files that are asked after at once.
const AT_ONCE: usize = 16;
/// A file of no document that is younger may still get one.
const YOUNG: Duration = Duration::from_hours(1);

/// The blob store.
pub(super) struct CheckedBlobStore {
    pub(super) blobs: BlobStore,
    /// Whether it carries this installation's mark. One that does not is looked at, and nothing is concluded from what it lacks.
    pub(super) is_ours: bool,
}

fn error(code: &'static str, what: impl Into<String>) -> DoctorFinding {
    DoctorFinding::new(InstallationPart::Blobs, Severity::Error, code, what)
}

/// Opens the store; none when it cannot be had.
pub(super) async fn open(look: &DoctorContext<'_>, report: &mut DoctorReport) -> Option<CheckedBlobStore> {
    let place = &look.settings.blobs;
    if let BlobLocation::Folder(folder) = place
        && !folder.is_dir()
    {
        let known = singletons::get(look.db, runtime::BLOBS).await.ok().flatten();
        if known.is_some() {
            let finding = error("missing", format!("the folder {place} is not there"));
            report.add(finding.todo("mount or restore it, or correct LECTERN_BLOBS"));
        } else {
            report.ok(InstallationPart::Blobs, "none yet");
        }
        return None;
    }
    match mark(look).await {
        Ok((blobs, Ok(()))) => Some(CheckedBlobStore { blobs, is_ours: true }),
        Ok((blobs, Err(finding))) => {
            report.add(*finding);
            Some(CheckedBlobStore { blobs, is_ours: false })
        }
        Err(trouble) => {
            let finding = error("unreachable", trouble.to_string());
            report.add(finding.todo("make the store answer, or correct LECTERN_BLOBS and the AWS_ settings"));
            None
        }
    }
}

/// Opens the store, and sees whether it is the one that the database knows of.
async fn mark(look: &DoctorContext<'_>) -> Result<(BlobStore, Result<(), Box<DoctorFinding>>), DoctorError> {
    let place = &look.settings.blobs;
    let blobs = BlobStore::open(place).await?;
    let known = singletons::get(look.db, runtime::BLOBS).await?;
    let end = match (blobs.owner().await?, known) {
        (owner, known) if owner == known => Ok(()),
        (None, Some(known)) => Err(error("unmarked", format!("{place} has lost its mark, so it may be another place than it should be"))
            .todo(format!(
                "mount or restore the right one (LECTERN_BLOBS); if the files are lost for good, put a file named `instance` that holds {known} there"
            ))),
        (Some(_), None) => Err(error("foreign", format!("{place} is marked, and this database knows of no blobs"))
            .todo("correct LECTERN_BLOBS, or restore the database that belongs to it")),
        (_, _) => Err(error("foreign", format!("{place} carries another mark than this installation's"))
            .todo("correct LECTERN_BLOBS")),
    };
    Ok((blobs, end.map_err(Box::new)))
}

pub(super) async fn look(
    look: &DoctorContext<'_>,
    store: &CheckedBlobStore,
    report: &mut DoctorReport,
) -> Result<(), DoctorError> {
    let before = report.findings.len();
    let files = missing(look, store, report).await?;
    orphans(look, store, report).await?;
    if report.findings.len() == before && store.is_ours {
        let files = counted(files, "file", "files");
        report.ok(InstallationPart::Blobs, format!("{files} in {}", look.settings.blobs));
    }
    Ok(())
}

/// Documents whose file is gone, or is not as long as it was; how many files there should be.
async fn missing(
    look: &DoctorContext<'_>,
    store: &CheckedBlobStore,
    report: &mut DoctorReport,
) -> Result<u64, DoctorError> {
    let (mut gone, mut altered) = (FindingTally::default(), FindingTally::default());
    let mut files = 0;
    let mut after = checkup::beginning();
    loop {
        let page = checkup::uploads(look.db, after).await?;
        let Some(last) = page.last() else { break };
        after = last.id;
        files += page.len() as u64;
        let asked = futures::stream::iter(page)
            .map(|upload| async move { store.blobs.size(&upload.blob_key).await.map(|size| (upload, size)) })
            .buffered(AT_ONCE);
        let answers: Vec<_> = asked.collect().await;
        for answer in answers {
            let (upload, size) = answer?;
            match size {
                None => gone.add(upload.id),
                Some(size) if i64::try_from(size) != Ok(upload.source_bytes) => altered.add(upload.id),
                Some(_) => {}
            }
        }
    }
    let todo = "restore the blobs from a backup, or have these documents deleted and uploaded again; what is indexed of them is found still";
    for (code, tally, what) in [
        ("files_missing", &gone, "lost the uploaded file"),
        ("files_altered", &altered, "an uploaded file of another length than it had"),
    ] {
        if !tally.is_empty() {
            let what = format!("{} {what}", documents(tally.count, ("has", "have")));
            report.add(error(code, what).of(tally).todo(todo));
        }
    }
    Ok(files)
}

/// Files that no document names, and that the sweeper does not see to.
async fn orphans(
    look: &DoctorContext<'_>,
    store: &CheckedBlobStore,
    report: &mut DoctorReport,
) -> Result<(), DoctorError> {
    let mut found = FindingTally::default();
    let before = look.now.minus(YOUNG);
    let visit = async |listed: Vec<ListedBlob>| {
        // First: what becomes a document's file meanwhile is named by it below.
        let keys: Vec<String> = listed.iter().map(|blob| blob.key.clone()).collect();
        let loose = checkup::loose(look.db, &keys).await?;
        let ids: Vec<DocumentId> = listed.iter().map(|blob| blob.document).collect();
        let holders = checkup::holders(look.db, &ids).await?;
        let holders: HashMap<DocumentId, _> = holders.into_iter().map(|holder| (holder.id, holder)).collect();
        for blob in listed {
            let is_owned = holders
                .get(&blob.document)
                .is_some_and(|holder| holder.tombstone || holder.blob_key.as_ref() == Some(&blob.key));
            if is_owned || loose.contains(&blob.key) || blob.modified > before {
                continue;
            }
            found.add(&blob.key);
            // What is in another installation's store is not ours to remove.
            if look.options.repair && store.is_ours {
                store.blobs.remove(&blob.key).await?;
            }
        }
        Ok::<(), DoctorError>(())
    };
    store.blobs.list(visit).await?;
    if !found.is_empty() {
        let what = if found.count == 1 {
            "1 file belongs to no document and only takes room".to_owned()
        } else {
            format!("{} files belong to no document and only take room", found.count)
        };
        let finding =
            DoctorFinding::new(InstallationPart::Blobs, Severity::Warning, "orphans", what).of(&found);
        report.add(if store.is_ours {
            finding.repairable(look.options.repair).todo("run `lectern doctor --repair`, which removes them")
        } else {
            finding.todo("see first why the mark is not this installation's")
        });
    }
    Ok(())
}
