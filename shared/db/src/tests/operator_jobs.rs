//! Jobs as their operator sees and changes them.

use lectern_shared::{
    clock::Timestamp,
    ids::{DocumentId, JobId, UserId, WorkspaceId},
    model::{
        document::DocumentType,
        job::{IngestionError, IngestionWarning, JobClaim, JobPhase, JobRecord, JobState},
    },
};

use crate::{
    Db, accounts, documents,
    jobs::{self, JobProgress, ReindexTarget},
    operator_jobs::{self, JobAction, JobActionOutcome, JobCursor, JobRowFilter, find, find_account, list},
    testing::{
        ATTEMPTS, account_of, at, both, claim, claimed, commit, document, enqueue, made_in, publish,
        published, staged, user, workspace,
    },
};

/// Attempts that retried jobs get.
const AGAIN: u32 = 7;

fn error(code: &str) -> IngestionError {
    IngestionError { code: code.to_owned(), message: "It did not work.".to_owned(), retryable: true }
}

/// Ends an attempt with this code: dead, or to be tried again at `retry_at`.
async fn fail(db: &Db, claim: &JobClaim, code: &str, retry_at: Option<Timestamp>, now: Timestamp) {
    let end = commit!(db, |tx| jobs::fail(tx, claim, &error(code), retry_at, &JobProgress::default(), now));
    assert!(end.is_some());
}

/// Adds a document whose job dies at `now` with this code.
async fn dead(db: &Db, workspace: WorkspaceId, code: &str, now: Timestamp) -> JobClaim {
    let claim = claimed(db, workspace, code, now).await;
    fail(db, &claim, code, None, now).await;
    claim
}

fn standing(standing: JobPhase) -> JobRowFilter {
    JobRowFilter { standing: Some(standing), ..JobRowFilter::default() }
}

async fn listed(db: &Db, filter: &JobRowFilter, now: Timestamp) -> Vec<DocumentId> {
    let page = list(db, filter, None, 200, now).await.unwrap();
    assert_eq!(page.next, None);
    page.jobs.iter().map(|job| job.document_id).collect()
}

async fn job_of(db: &Db, document: DocumentId, now: Timestamp) -> JobRecord {
    let filter = JobRowFilter { document: Some(document), ..JobRowFilter::default() };
    list(db, &filter, None, 1, now).await.unwrap().jobs.pop().unwrap()
}

async fn change(
    db: &Db,
    action: JobAction,
    jobs: &[JobRecord],
    filter: &JobRowFilter,
    now: Timestamp,
) -> Vec<(JobId, JobActionOutcome)> {
    commit!(db, |tx| operator_jobs::change(tx, action, jobs, filter, AGAIN, now))
}

async fn change_one(db: &Db, action: JobAction, document: DocumentId, now: Timestamp) -> JobActionOutcome {
    let job = job_of(db, document, now).await;
    let done = change(db, action, std::slice::from_ref(&job), &JobRowFilter::default(), now).await;
    assert_eq!(done.len(), 1);
    assert_eq!(done[0].0, job.id);
    done[0].1
}

/// One job of each standing, at 100 seconds.
struct Each {
    due: DocumentId,
    waiting: DocumentId,
    running: DocumentId,
    dead: DocumentId,
    done: DocumentId,
    cancelled: DocumentId,
}

async fn each(db: &Db, workspace: WorkspaceId) -> Each {
    let (done, _) = published(db, workspace, "done", &["text"], at(1)).await;
    let dead = dead(db, workspace, "not_found", at(10)).await.document_id;
    let cancelled = document(db, workspace, "cancelled", at(20)).await;
    assert!(commit!(db, |tx| jobs::cancel(tx, workspace, cancelled, at(20))));
    let waiting = claimed(db, workspace, "waiting", at(30)).await;
    fail(db, &waiting, "timeout", Some(at(200)), at(30)).await;
    let running = claimed(db, workspace, "running", at(40)).await.document_id;
    let due = document(db, workspace, "due", at(50)).await;
    Each { due, waiting: waiting.document_id, running, dead, done, cancelled }
}

#[tokio::test]
async fn jobs_are_told_apart_by_how_they_stand() {
    for t in &both().await {
        let ada = workspace(&t.db, at(0)).await;
        let all = each(&t.db, ada).await;
        for (wanted, found) in [
            (JobPhase::Due, vec![all.due]),
            (JobPhase::Waiting, vec![all.waiting]),
            (JobPhase::Queued, vec![all.due, all.waiting]),
            (JobPhase::Running, vec![all.running]),
            (JobPhase::Dead, vec![all.dead]),
            (JobPhase::Done, vec![all.done]),
            (JobPhase::Cancelled, vec![all.cancelled]),
        ] {
            assert_eq!(listed(&t.db, &standing(wanted), at(100)).await, found, "{} {wanted}", t.name);
            let shown = job_of(&t.db, found[0], at(100)).await.standing(at(100));
            assert!(wanted.covers(shown), "{} {wanted}: {shown}", t.name);
        }
        let newest_first = [all.due, all.running, all.waiting, all.cancelled, all.dead, all.done];
        assert_eq!(listed(&t.db, &JobRowFilter::default(), at(100)).await, newest_first, "{}", t.name);
        // Time alone makes the one that waits due.
        assert_eq!(
            listed(&t.db, &standing(JobPhase::Due), at(200)).await,
            [all.due, all.waiting],
            "{}",
            t.name
        );
    }
}

#[tokio::test]
async fn a_job_is_shown_whole_and_its_owner_by_e_mail() {
    for t in &both().await {
        let ada = workspace(&t.db, at(0)).await;
        let held = dead(&t.db, ada, "not_found", at(10)).await;
        let job = find(&t.db, held.id).await.unwrap().unwrap();
        assert_eq!(
            (job.id, job.owner, job.document_id),
            (held.id, made_in(ada), held.document_id),
            "{}",
            t.name
        );
        assert_eq!(job.user_email, format!("{ada}@example.com"), "{}", t.name);
        assert_eq!((job.document_type, job.state), (DocumentType::Txt, JobState::Dead), "{}", t.name);
        assert_eq!((job.attempts, job.max_attempts), (1, i64::from(ATTEMPTS)), "{}", t.name);
        assert_eq!((job.queued_at, job.run_at), (at(10), at(10)), "{}", t.name);
        assert_eq!((job.started_at, job.finished_at), (Some(at(10)), Some(at(10))), "{}", t.name);
        assert_eq!((job.lease_until, job.worker.as_deref()), (None, Some("worker")), "{}", t.name);
        assert_eq!(job.last_error.unwrap().0, error("not_found"), "{}", t.name);
        assert!(job.warnings.0.is_empty() && !job.from_stored, "{}", t.name);
        assert!(find(&t.db, JobId::generate()).await.unwrap().is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_list_is_narrowed_by_account_and_by_code() {
    for t in &both().await {
        let (ada, grace) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let lost = dead(&t.db, ada, "embedder_failed", at(1)).await.document_id;
        let missing = dead(&t.db, ada, "not_found", at(2)).await.document_id;
        let other = dead(&t.db, grace, "embedder_failed", at(3)).await.document_id;
        let of = |user, code: Option<&str>| JobRowFilter {
            standing: Some(JobPhase::Dead),
            user,
            code: code.map(str::to_owned),
            document: None,
        };
        for (filter, found) in [
            (of(None, None), vec![other, missing, lost]),
            (of(Some(account_of(ada)), None), vec![missing, lost]),
            (of(None, Some("embedder_failed")), vec![other, lost]),
            (of(Some(account_of(ada)), Some("embedder_failed")), vec![lost]),
            // Neither a part of a code nor a pattern is one.
            (of(None, Some("embedder")), vec![]),
            (of(None, Some("%")), vec![]),
            (of(None, Some("embedder-failed")), vec![]),
            (of(None, Some("\"")), vec![]),
            (of(Some(UserId::generate()), None), vec![]),
        ] {
            assert_eq!(listed(&t.db, &filter, at(9)).await, found, "{} {filter:?}", t.name);
        }
        let of_account = JobRowFilter { user: Some(account_of(ada)), ..JobRowFilter::default() };
        assert_eq!(listed(&t.db, &of_account, at(9)).await, [missing, lost], "{}", t.name);
    }
}

#[tokio::test]
async fn every_list_comes_page_by_page_and_whole() {
    for t in &both().await {
        let (ada, grace) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        // Several of one moment, so that the time alone is no place in the list.
        let mut ended = Vec::new();
        for owner in [ada, grace, ada, grace, ada] {
            ended.push(dead(&t.db, owner, "timeout", at(5)).await.document_id);
        }
        for (action, before, after) in [
            (None, JobPhase::Dead, JobPhase::Dead),
            (Some(JobAction::Discard), JobPhase::Dead, JobPhase::Cancelled),
            (Some(JobAction::Retry), JobPhase::Cancelled, JobPhase::Due),
        ] {
            if let Some(action) = action {
                let found = list(&t.db, &standing(before), None, 200, at(6)).await.unwrap().jobs;
                assert_eq!(
                    change(&t.db, action, &found, &standing(before), at(6)).await.len(),
                    5,
                    "{}",
                    t.name
                );
            }
            for filter in [standing(after), JobRowFilter::default()] {
                let whole = listed(&t.db, &filter, at(9)).await;
                assert_eq!(whole.len(), 5, "{} {filter:?}", t.name);
                let (mut paged, mut position) = (Vec::new(), None);
                loop {
                    let page = list(&t.db, &filter, position, 2, at(9)).await.unwrap();
                    assert!(page.jobs.len() <= 2, "{}", t.name);
                    paged.extend(page.jobs.iter().map(|job| job.document_id));
                    let Some(next) = page.next else { break };
                    position = Some(next.to_string().parse::<JobCursor>().unwrap());
                    assert_eq!(position, Some(next));
                }
                assert_eq!(paged, whole, "{} {filter:?}", t.name);
            }
        }
        // As workers take them: by turns.
        let queue = listed(&t.db, &standing(JobPhase::Due), at(9)).await;
        let mut taken = Vec::new();
        while let Some(claim) = claim(&t.db, at(9)).await {
            taken.push(claim.document_id);
        }
        assert_eq!(queue, taken, "{}", t.name);
        // All began at one moment, and are a list all the same.
        let first = list(&t.db, &standing(JobPhase::Running), None, 3, at(10)).await.unwrap();
        let second = list(&t.db, &standing(JobPhase::Running), first.next, 3, at(10)).await.unwrap();
        assert_eq!((first.jobs.len(), second.jobs.len(), second.next), (3, 2, None), "{}", t.name);
        ended
            .retain(|document| first.jobs.iter().chain(&second.jobs).all(|job| job.document_id != *document));
        assert_eq!(ended, [], "{}", t.name);
    }
}

#[test]
fn no_other_text_is_a_position() {
    for wrong in [
        "",
        "_",
        "1",
        "1_",
        "_019a8f50-3c77-7d02-b1e9-84a6f2c05d13",
        "1_x",
        "019a8f50-3c77-7d02-b1e9-84a6f2c05d13",
    ] {
        assert!(wrong.parse::<JobCursor>().is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn a_retried_job_is_due_at_once_with_all_attempts_before_it() {
    for t in &both().await {
        let ada = workspace(&t.db, at(0)).await;
        let all = each(&t.db, ada).await;
        for (document, outcome) in [
            (all.dead, JobActionOutcome::Changed),
            (all.cancelled, JobActionOutcome::Changed),
            (all.waiting, JobActionOutcome::Changed),
            (all.done, JobActionOutcome::Changed),
            (all.due, JobActionOutcome::Unchanged),
            (all.running, JobActionOutcome::Running),
        ] {
            let before = job_of(&t.db, document, at(100)).await;
            let on = format!("{} {}", t.name, before.standing(at(100)));
            assert_eq!(change_one(&t.db, JobAction::Retry, document, at(100)).await, outcome, "{on}");
            let after = job_of(&t.db, document, at(100)).await;
            if outcome == JobActionOutcome::Changed {
                assert_eq!(after.standing(at(100)), JobPhase::Due, "{on}");
                assert_eq!((after.attempts, after.max_attempts), (0, i64::from(AGAIN)), "{on}");
                assert_eq!((after.queued_at, after.run_at), (at(100), at(100)), "{on}");
                assert!(after.last_error.is_none() && after.finished_at.is_none(), "{on}");
            } else {
                assert_eq!(format!("{after:?}"), format!("{before:?}"), "{on}");
            }
        }
        let mut taken = 0;
        while claim(&t.db, at(200)).await.is_some() {
            taken += 1;
        }
        assert_eq!(taken, 5, "{}", t.name);
    }
}

#[tokio::test]
async fn a_discarded_job_is_cancelled_and_what_can_be_searched_stays() {
    for t in &both().await {
        let ada = workspace(&t.db, at(0)).await;
        let all = each(&t.db, ada).await;
        // One that is searchable, and failed later.
        enqueue(&t.db, ada, all.done, at(60)).await;
        let again = claim(&t.db, at(60)).await.unwrap();
        let generation = staged(&t.db, &again, &["new"], at(61)).await;
        let (running_again, due) =
            if again.document_id == all.done { (all.done, all.due) } else { (all.due, all.done) };
        for (document, outcome) in [
            (all.dead, JobActionOutcome::Changed),
            (all.waiting, JobActionOutcome::Changed),
            (all.running, JobActionOutcome::Changed),
            (running_again, JobActionOutcome::Changed),
            (due, JobActionOutcome::Changed),
            (all.cancelled, JobActionOutcome::Unchanged),
        ] {
            let before = job_of(&t.db, document, at(100)).await;
            let on = format!("{} {}", t.name, before.standing(at(100)));
            assert_eq!(change_one(&t.db, JobAction::Discard, document, at(100)).await, outcome, "{on}");
            let after = job_of(&t.db, document, at(100)).await;
            assert_eq!((after.state, after.lease_until), (JobState::Cancelled, None), "{on}");
            let ended = if outcome == JobActionOutcome::Changed { at(100) } else { at(20) };
            assert_eq!(after.finished_at, Some(ended), "{on}");
            let why = |job: &JobRecord| job.last_error.as_ref().map(|error| error.0.code.clone());
            assert_eq!(why(&after), why(&before), "{on}: why it failed stays");
        }
        assert_eq!(
            publish(&t.db, &again, generation, at(101)).await,
            jobs::PublishOutcome::ClaimLost,
            "{}",
            t.name
        );
        assert!(claim(&t.db, at(300)).await.is_none(), "{}: nothing is tried again", t.name);
        let searchable = documents::active(&t.db, ada).await.unwrap();
        assert_eq!(searchable.len(), 1, "{}", t.name);
        assert_eq!(searchable[0].id, all.done, "{}", t.name);
        assert_eq!(
            documents::list(&t.db, ada, DocumentId::generate(), 200).await.unwrap().len(),
            6,
            "{}",
            t.name
        );
    }
}

#[tokio::test]
async fn a_discard_leaves_a_job_alone_that_ended_well() {
    for t in &both().await {
        let ada = workspace(&t.db, at(0)).await;
        let (done, _) = published(&t.db, ada, "done", &["text"], at(1)).await;
        assert_eq!(
            change_one(&t.db, JobAction::Discard, done, at(5)).await,
            JobActionOutcome::Unchanged,
            "{}",
            t.name
        );
        assert_eq!(job_of(&t.db, done, at(5)).await.state, JobState::Done, "{}", t.name);
    }
}

#[tokio::test]
async fn a_job_of_a_deleted_document_does_not_exist() {
    for t in &both().await {
        let (ada, grace) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let one = dead(&t.db, ada, "timeout", at(1)).await;
        let other = dead(&t.db, grace, "timeout", at(2)).await;
        let found = list(&t.db, &standing(JobPhase::Dead), None, 200, at(5)).await.unwrap().jobs;
        assert_eq!(found.len(), 2, "{}", t.name);
        commit!(t.db, |tx| documents::delete(tx, ada, one.document_id, at(3), at(3)));
        commit!(t.db, |tx| accounts::delete(tx, account_of(grace), at(3)));
        assert_eq!(listed(&t.db, &JobRowFilter::default(), at(5)).await, [], "{}", t.name);
        for (action, id) in [(JobAction::Retry, one.id), (JobAction::Discard, other.id)] {
            assert!(find(&t.db, id).await.unwrap().is_none(), "{}", t.name);
            // Found before the deletion, and gone when it is its turn.
            assert_eq!(
                change(&t.db, action, &found, &JobRowFilter::default(), at(5)).await,
                [],
                "{}",
                t.name
            );
        }
        assert!(claim(&t.db, at(9)).await.is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_job_that_is_no_longer_as_it_was_found_is_left_alone() {
    for t in &both().await {
        let ada = workspace(&t.db, at(0)).await;
        let mended = dead(&t.db, ada, "timeout", at(1)).await.document_id;
        let otherwise = dead(&t.db, ada, "timeout", at(2)).await.document_id;
        let same = dead(&t.db, ada, "timeout", at(3)).await;
        let filter = JobRowFilter { code: Some("timeout".to_owned()), ..standing(JobPhase::Dead) };
        let found = list(&t.db, &filter, None, 200, at(4)).await.unwrap().jobs;
        assert_eq!(found.len(), 3, "{}", t.name);
        for (document, code) in [(mended, None), (otherwise, Some("not_found"))] {
            enqueue(&t.db, ada, document, at(5)).await;
            let claim = claim(&t.db, at(60)).await.unwrap();
            match code {
                Some(code) => fail(&t.db, &claim, code, None, at(60)).await,
                None => {
                    let generation = staged(&t.db, &claim, &["text"], at(60)).await;
                    publish(&t.db, &claim, generation, at(60)).await;
                }
            }
        }
        let changed = change(&t.db, JobAction::Discard, &found, &filter, at(70)).await;
        assert_eq!(changed, [(same.id, JobActionOutcome::Changed)], "{}", t.name);
        assert_eq!(job_of(&t.db, mended, at(70)).await.state, JobState::Done, "{}", t.name);
        assert_eq!(job_of(&t.db, otherwise, at(70)).await.state, JobState::Dead, "{}", t.name);
    }
}

#[tokio::test]
async fn what_was_to_be_made_from_stored_passages_still_is() {
    for t in &both().await {
        let ada = workspace(&t.db, at(0)).await;
        let (document, _) = published(&t.db, ada, "one", &["text"], at(1)).await;
        let queue_again = async |now| commit!(t.db, |tx| jobs::enqueue_again(tx, ReindexTarget::All, now));
        assert_eq!(queue_again(at(2)).await, 1, "{}", t.name);
        let warnings =
            [IngestionWarning { code: "cut".to_owned(), message: "It was cut.".to_owned(), count: 1 }];
        commit!(t.db, |tx| documents::from_stored(tx, document, &warnings));
        let held = claim(&t.db, at(10)).await.unwrap();
        fail(&t.db, &held, "embedder_failed", None, at(11)).await;

        assert_eq!(
            change_one(&t.db, JobAction::Retry, document, at(12)).await,
            JobActionOutcome::Changed,
            "{}",
            t.name
        );
        let job = job_of(&t.db, document, at(12)).await;
        assert!(job.from_stored && job.warnings.0 == warnings, "{}: {job:?}", t.name);
        let held = claim(&t.db, at(20)).await.unwrap();
        assert!(held.from_stored, "{}", t.name);
        let generation = staged(&t.db, &held, &["text"], at(21)).await;
        publish(&t.db, &held, generation, at(21)).await;

        // It ended well, so there is nothing to go on with, and the source is read again.
        assert_eq!(
            change_one(&t.db, JobAction::Retry, document, at(30)).await,
            JobActionOutcome::Changed,
            "{}",
            t.name
        );
        assert!(!job_of(&t.db, document, at(30)).await.from_stored, "{}", t.name);
    }
}

#[tokio::test]
async fn two_operators_who_change_the_same_jobs_wait_for_each_other_and_change_each_once() {
    for t in &both().await {
        let mut workspaces = Vec::new();
        for _ in 0..4 {
            workspaces.push(workspace(&t.db, at(0)).await);
        }
        for number in 0..40 {
            dead(&t.db, workspaces[number % workspaces.len()], "timeout", at(number as u64)).await;
        }
        let filter = standing(JobPhase::Dead);
        let found = list(&t.db, &filter, None, 200, at(100)).await.unwrap().jobs;
        let mut backwards = found.clone();
        backwards.reverse();
        let both_at_once = tokio::join!(
            change(&t.db, JobAction::Retry, &found, &filter, at(100)),
            change(&t.db, JobAction::Retry, &backwards, &filter, at(100))
        );
        assert_eq!(both_at_once.0.len() + both_at_once.1.len(), found.len(), "{}", t.name);
        assert_eq!(listed(&t.db, &standing(JobPhase::Due), at(100)).await.len(), found.len(), "{}", t.name);
    }
}

#[tokio::test]
async fn an_account_is_named_by_its_e_mail_or_its_id() {
    for t in &both().await {
        let ada = user(&t.db, at(0)).await;
        for name in [ada.to_string(), format!(" {ada}@EXAMPLE.com "), format!("{ada}@example.com")] {
            assert_eq!(find_account(&t.db, &name).await.unwrap(), Some(ada), "{}: {name}", t.name);
        }
        for name in ["", "nobody@example.com", &UserId::generate().to_string()] {
            assert_eq!(find_account(&t.db, name).await.unwrap(), None, "{}: {name}", t.name);
        }
        commit!(t.db, |tx| accounts::delete(tx, ada, at(1)));
        assert_eq!(find_account(&t.db, &ada.to_string()).await.unwrap(), None, "{}", t.name);
    }
}

/// A list reads what it shows, and little more, however many jobs there are.
#[tokio::test]
async fn lists_are_read_by_an_index_in_their_order() {
    let tests = both().await;
    for (filter, index) in [
        ("j.state = 'queued' ORDER BY j.fair_at, j.id", "jobs_queued"),
        ("j.state = 'dead' ORDER BY j.finished_at DESC, j.id DESC", "jobs_dead"),
        ("j.state = 'cancelled' ORDER BY j.finished_at DESC, j.id DESC", "jobs_cancelled"),
        ("j.workspace_id = x'00' ORDER BY j.id DESC", "jobs_by_workspace"),
        ("1 = 1 ORDER BY j.id DESC", "sqlite_autoindex_jobs_1"),
    ] {
        let plan = tests[0].query_plan(&format!("{}{filter} LIMIT 51", operator_jobs::SELECT)).await;
        assert!(plan[0].contains(index), "{filter}: {plan:#?}");
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{filter}: {plan:#?}");
    }
}
