//! Jobs, and what wakes workers for them.

use std::{collections::BTreeMap, time::Duration};

use lectern_db::{self as db, checkup};
use lectern_shared::{
    ids::JobId,
    model::job::{IngestionError, JobKind},
    redis::Redis,
};

use super::{
    DoctorContext, DoctorError, DoctorFinding, DoctorReport, FindingTally, InstallationPart, Severity,
    documents,
};
use crate::jobs::counted;

/// A job that is due for longer is waited for in vain: workers look every few seconds.
const LATE: Duration = Duration::from_mins(1);
/// A lease that ran out so long ago would have been taken back, if a worker ran.
const STALE: Duration = Duration::from_secs(30);
/// How long Redis may take to answer.
const REDIS: Duration = Duration::from_secs(3);

pub(super) async fn look(look: &DoctorContext<'_>, report: &mut DoctorReport) -> Result<(), DoctorError> {
    stale(look, report).await?;
    unqueued(look, report).await?;
    let depth = db::jobs::depth(look.db, look.now).await?;
    let due = counted(depth.due, "job", "jobs");
    let summary = format!("{due} due, {} waiting, {} running", depth.waiting, depth.running);
    let waited = depth.oldest_due.map(|due| look.now.since(due)).filter(|waited| *waited > LATE);
    match waited {
        Some(waited) => {
            let waited = humantime::format_duration(Duration::from_secs(waited.as_secs()));
            let what = format!("{summary}; the oldest waits for {waited}");
            let finding = DoctorFinding::new(InstallationPart::Queue, Severity::Warning, "late", what);
            report.add(
                finding.todo("start the service or a worker, or more of them if they have too much to do"),
            );
        }
        None => report.ok(InstallationPart::Queue, summary),
    }
    dead(look, report).await?;
    redis(look, report).await;
    Ok(())
}

/// Jobs of workers that went away, and that nobody took back.
async fn stale(look: &DoctorContext<'_>, report: &mut DoctorReport) -> Result<(), DoctorError> {
    let before = look.now.minus(STALE);
    let mut found = FindingTally::default();
    for job in checkup::stale(look.db, before).await? {
        found.add(job);
    }
    if found.is_empty() {
        return Ok(());
    }
    if look.options.repair {
        let mut tx = look.db.begin().await?;
        db::jobs::expire_leases(&mut tx, before, look.now, &IngestionError::interrupted()).await?;
        tx.commit().await?;
    }
    let what = format!("{} held by workers that are gone", counted(found.count, "job is", "jobs are"));
    let finding =
        DoctorFinding::new(InstallationPart::Queue, Severity::Warning, "stale_leases", what).of(&found);
    report.add(
        finding.repairable(look.options.repair).todo(
            "start the service or a worker, which takes them back; `lectern doctor --repair` does it too",
        ),
    );
    Ok(())
}

/// Documents that have no job: nobody sees them, and nothing is done for them.
async fn unqueued(look: &DoctorContext<'_>, report: &mut DoctorReport) -> Result<(), DoctorError> {
    let mut found = FindingTally::default();
    let mut after = checkup::beginning();
    loop {
        let page = checkup::unqueued(look.db, after).await?;
        let Some(last) = page.last() else { break };
        after = last.id;
        for document in &page {
            found.add(document.id);
        }
        if look.options.repair {
            let mut tx = look.db.begin().await?;
            for document in &page {
                let attempts = look.settings.jobs.max_attempts;
                let job = db::jobs::enqueue(
                    &mut tx,
                    document.workspace_id,
                    document.id,
                    JobKind::Ingest,
                    attempts,
                    look.now,
                );
                if job.await?.is_some() {
                    report.queued += 1;
                    if document.searchable {
                        db::documents::from_stored(&mut tx, document.id, &[]).await?;
                    }
                }
            }
            tx.commit().await?;
        }
    }
    if !found.is_empty() {
        let what = format!("{} no job, so that nobody sees them", documents(found.count, ("has", "have")));
        let finding = DoctorFinding::new(InstallationPart::Queue, Severity::Error, "no_job", what).of(&found);
        report.add(
            finding.repairable(look.options.repair).todo("run `lectern doctor --repair`, which queues them"),
        );
    }
    Ok(())
}

/// Documents that failed for good, by the word for why.
async fn dead(look: &DoctorContext<'_>, report: &mut DoctorReport) -> Result<(), DoctorError> {
    let mut codes: BTreeMap<String, u64> = BTreeMap::new();
    let mut found = FindingTally::default();
    let mut after = JobId::from(uuid::Uuid::nil());
    loop {
        let page = checkup::dead(look.db, after).await?;
        let Some((last, _)) = page.last() else { break };
        after = *last;
        for (job, error) in page {
            let error = error.and_then(|text| serde_json::from_str::<IngestionError>(&text).ok());
            *codes.entry(error.map_or_else(|| "unknown".to_owned(), |error| error.code)).or_default() += 1;
            found.add(job);
        }
    }
    if !found.is_empty() {
        let codes: Vec<String> = codes.into_iter().map(|(code, count)| format!("{code} {count}")).collect();
        let what =
            format!("{} for good ({})", documents(found.count, ("failed", "failed")), codes.join(", "));
        let finding =
            DoctorFinding::new(InstallationPart::Queue, Severity::Warning, "failed_documents", what)
                .of(&found);
        report.add(finding.todo(
            "mostly a matter of the documents, whose owners are told why; `lectern jobs list --state dead` lists them, and `lectern jobs retry --dead` tries them again",
        ));
    }
    Ok(())
}

/// Redis is never needed; without it, work is noticed some seconds later.
async fn redis(look: &DoctorContext<'_>, report: &mut DoctorReport) {
    let (Some(url), Some(instance)) = (&look.settings.redis, &look.instance) else { return };
    let problem = match Redis::new(url, instance) {
        Err(error) => Some(error.to_string()),
        Ok(redis) => match tokio::time::timeout(REDIS, redis.ping()).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("no answer in time".to_owned()),
        },
    };
    match problem {
        None => report.ok(InstallationPart::Queue, "Redis can be used"),
        Some(problem) => {
            let what = format!("Redis cannot be used ({problem}): new work is noticed some seconds later");
            let finding = DoctorFinding::new(InstallationPart::Queue, Severity::Warning, "redis_away", what);
            report.add(finding.todo("start Redis, let it take writes (it may be a replica, or its memory full), or correct REDIS_URL"));
        }
    }
}
