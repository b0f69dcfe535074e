//! The order in which workers take jobs, fair between workspaces: start-time fair queueing.
//!
//! Jobs have numbers, counted in documents. A workspace's own jobs are one number apart, and `queue_head` has the highest number that was
//! taken so far. A workspace's next job has the number behind the workspace's last one, but never one before the head's, so whoever comes
//! new is next, however long another's line is, and of those who have a line each has one job taken in turn.
//!
//! Jobs that are cancelled, deleted or queued anew leave a gap before those behind them. These are not renumbered then, since
//! thousands may go at once. Instead, whenever the head goes on, the first job of each workspace whose line begins farther off moves
//! up to it.

use lectern_shared::{clock::Timestamp, ids::WorkspaceId};

use super::place::{self, none_yet, number_of_place, place_in_line};
use crate::{
    PgWrite, Result, Tx,
    commit::{PgIdentity, pg_identity},
    execute, on, silence,
    storage::StorageDemand,
};

/// Jobs that get a place in one transaction, at most.
const ADMITTED: i64 = 200;

/// Where a workspace's line ends, and where that of all begins.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
struct QueueEnds {
    /// The number that the workspace's last job was given.
    given: i64,
    /// The highest number that was taken, of anybody's.
    head: i64,
    /// The last place among the workspace's queued jobs.
    queued: Option<i64>,
    /// The last place among the workspace's running jobs.
    running: Option<i64>,
    /// The first place among the queued jobs of all.
    front: Option<i64>,
}

/// Selects the [`QueueEnds`] for the workspace $1. Asked for by `=`, PostgreSQL may look for a workspace's last place among those of all, from
/// the end on: by a range, with the workspace first in the order, only the index of the workspace's own line will do.
macro_rules! select_ends {
    ($given:literal, $from:literal) => {
        concat!(
            "SELECT ",
            $given,
            ", queue_head.fair_at AS head,
            (SELECT fair_at FROM jobs
             WHERE workspace_id >= $1 AND workspace_id <= $1 AND state = 'queued' AND fair_at < ",
            none_yet!(),
            " ORDER BY workspace_id DESC, fair_at DESC LIMIT 1) AS queued,
            (SELECT MAX(fair_at) FROM jobs WHERE workspace_id = $1 AND state = 'running') AS running,
            (SELECT fair_at FROM jobs WHERE state = 'queued' AND fair_at < ",
            none_yet!(),
            " ORDER BY fair_at, id LIMIT 1) AS front
     FROM ",
            $from
        )
    };
}

/// The [`QueueEnds`] for the workspace $1, whose last job was given the number $2.
const ENDS: &str = select_ends!("CAST($2 AS BIGINT) AS given", "queue_head");

/// Gives the next number to the workspace $1, which stores $2 bytes and has $4 documents more, unless more than $3 bytes are stored already:
/// in one statement, so that a quota makes nobody wait for longer. The parameters may have other names.
macro_rules! take_number {
    (($workspace:literal, $more:literal, $room:literal, $documents:literal), $($returning:expr),+) => {
        concat!(
            "UPDATE workspaces SET fair_at = fair_at + 1, stored_at_most = stored_at_most + ",
            $more,
            ", documents_at_most = documents_at_most + ",
            $documents,
            " WHERE id = ",
            $workspace,
            " AND deleted_at IS NULL AND (",
            $room,
            " IS NULL OR stored_at_most <= ",
            $room,
            ") RETURNING ",
            $($returning),+
        )
    };
    ($($returning:expr),+) => {
        take_number!(("$1", "$2", "$3", "$4"), $($returning),+)
    };
}
pub(super) use take_number;

/// Takes the next number, and tells the [`QueueEnds`] as they were before: where nobody else can queue anything for the workspace
/// meanwhile. For PostgreSQL.
const NEXT_AND_ENDS: &str = concat!(
    "WITH own AS (",
    take_number!("fair_at - 1 AS given, ", pg_identity!()),
    ") ",
    select_ends!("own.given, own.xid, own.backend", "queue_head, own")
);

impl QueueEnds {
    /// The number of the workspace's next job.
    fn next_number(self) -> i64 {
        // How far the line really goes: what was cancelled from its end does not count against the workspace.
        let last = [self.queued, self.running].into_iter().flatten().map(place::number).max();
        let end = self.head.max(last.unwrap_or(0));
        if self.given >= end {
            end + 1
        } else if self.given >= self.head {
            // What is farther off was queued by an operator, or waited for its moment: it takes turns with what the workspace adds.
            self.given + 1
        } else {
            self.head
        }
    }

    /// The place of the workspace's next job, which has this number. An only one whose number has come is put before all others:
    /// somebody whom the limit on slots holds up may still stand before the head.
    fn place(self, number: i64) -> i64 {
        if self.queued.is_some() || self.running.is_some() {
            return place::in_line(number);
        }
        match self.front {
            Some(front) if number <= self.head && front < place::alone(number) => {
                place::alone(place::number(front))
            }
            Some(_) | None => place::alone(number),
        }
    }
}

/// Where a workspace's next job stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinePlace {
    /// Its place.
    pub(super) place: i64,
    /// Its number, which the statement that queues it has to note: [`note_number`].
    pub(super) number: i64,
}

/// Notes the number $8 as that of the last job of the workspace $3, where another one was guessed.
macro_rules! note_number {
    () => {
        "UPDATE workspaces SET fair_at = $8 WHERE id = $3 AND fair_at <> $8"
    };
}
pub(super) use note_number;

/// Where a workspace's next job stands, with which so many documents are made. None when there is no such workspace, and when what is demanded
/// does not fit beside the last sum: then nothing has happened.
pub(super) async fn next_place(
    tx: &mut Tx,
    workspace: WorkspaceId,
    demand: StorageDemand,
    made: i64,
) -> Result<Option<LinePlace>> {
    let ends = lock_and_find_ends(tx, workspace, demand, made).await?;
    Ok(ends.map(|ends| {
        let number = ends.next_number();
        LinePlace { place: ends.place(number), number }
    }))
}

/// Locks a workspace, gives it the number that its next job has mostly, and tells where the lines end; none where [`next_place`] gives none.
async fn lock_and_find_ends(
    tx: &mut Tx,
    workspace: WorkspaceId,
    demand: StorageDemand,
    made: i64,
) -> Result<Option<QueueEnds>> {
    if let Tx::Postgres(numbered) = tx
        && let Some(number) = numbered.use_number(workspace)
    {
        return ends_behind(tx, workspace, number).await.map(Some);
    }
    if let Tx::Postgres(tx) = tx
        && tx.knows_locked(workspace)
    {
        let next = sqlx::query_as(NEXT_AND_ENDS).bind(workspace).bind(demand.added()).bind(demand.room());
        let next = next.bind(made);
        let found: Option<IdentifiedEnds> = silence::answered(next.fetch_optional(&mut **tx)).await?;
        return Ok(found.map(|IdentifiedEnds { ends, identity }| {
            tx.note(Some(identity));
            tx.note_active(workspace);
            ends
        }));
    }
    // In a statement of its own: the next one then sees what others have queued for this workspace until now.
    let Some(guessed) = lock(tx, workspace, demand, made).await? else { return Ok(None) };
    ends_behind(tx, workspace, guessed).await.map(Some)
}

/// Where the lines end, for a workspace that is locked and was given this number for its next job.
async fn ends_behind(tx: &mut Tx, workspace: WorkspaceId, guessed: i64) -> Result<QueueEnds> {
    Ok(on!(tx, |c| sqlx::query_as(ENDS).bind(workspace).bind(guessed - 1).fetch_one(c))?)
}

/// Locks a workspace who is there still and has room, and gives the number after that of the workspace's last job.
async fn lock(tx: &mut Tx, workspace: WorkspaceId, demand: StorageDemand, made: i64) -> Result<Option<i64>> {
    let (added, room) = (demand.added(), demand.room());
    match tx {
        Tx::Postgres(tx) => {
            let lock = sqlx::query_as(take_number!("fair_at, ", pg_identity!()));
            let lock = lock.bind(workspace).bind(added).bind(room).bind(made);
            let locked: Option<LockedWorkspace> = silence::answered(lock.fetch_optional(&mut **tx)).await?;
            Ok(locked.map(|locked| locked.note(tx, workspace)))
        }
        Tx::Sqlite(tx) => {
            let lock = sqlx::query_scalar(take_number!("fair_at")).bind(workspace).bind(added).bind(room);
            let lock = lock.bind(made);
            let locked: Option<i64> = lock.fetch_optional(&mut **tx).await?;
            if locked.is_some() {
                tx.note_active(workspace);
            }
            Ok(locked)
        }
    }
}

#[derive(sqlx::FromRow)]
struct IdentifiedEnds {
    #[sqlx(flatten)]
    ends: QueueEnds,
    #[sqlx(flatten)]
    identity: PgIdentity,
}

/// A workspace that is there still and has room, locked by [`take_number`].
#[derive(sqlx::FromRow)]
pub(super) struct LockedWorkspace {
    fair_at: i64,
    #[sqlx(flatten)]
    identity: PgIdentity,
}

impl LockedWorkspace {
    /// Notes what is known by it, and gives the number after that of the workspace's last job.
    pub(super) fn note(self, tx: &mut PgWrite, workspace: WorkspaceId) -> i64 {
        let Self { fair_at, identity } = self;
        tx.note(Some(identity));
        tx.note_active(workspace);
        tx.note_locked(workspace);
        fair_at
    }
}

/// The last number in a workspace's line, or the head's if that is higher: what is queued besides is counted from there. By a range,
/// as in [`ENDS`].
macro_rules! end_of_line {
    ($workspace:literal) => {
        concat!(
            "(SELECT MAX(ends.number) FROM (
                  SELECT fair_at AS number FROM queue_head
                  UNION ALL
                  SELECT ",
            number_of_place!("last_one.fair_at"),
            " FROM (SELECT own.fair_at FROM jobs AS own
                          WHERE own.workspace_id >= ",
            $workspace,
            " AND own.workspace_id <= ",
            $workspace,
            " AND own.state = 'queued' AND own.fair_at < ",
            none_yet!(),
            " ORDER BY own.workspace_id DESC, own.fair_at DESC LIMIT 1) AS last_one) AS ends)"
        )
    };
}

/// In a statement that selects from `jobs`: the place of each behind what its workspace has queued, in the order of the documents.
pub(crate) const BEHIND_OWN: &str = place_in_line!(
    "ROW_NUMBER() OVER (PARTITION BY jobs.workspace_id ORDER BY jobs.document_id) + ",
    end_of_line!("jobs.workspace_id")
);

macro_rules! admit {
    ($lock:literal) => {
        concat!(
            "UPDATE jobs SET fair_at = place.fair_at
             FROM (SELECT waiting.id AS job_id, ",
            place_in_line!(
                "ROW_NUMBER() OVER (PARTITION BY waiting.workspace_id ORDER BY waiting.run_at, waiting.id) + ",
                end_of_line!("waiting.workspace_id")
            ),
            " AS fair_at
                   FROM (SELECT id, workspace_id, run_at FROM jobs
                         WHERE state = 'queued' AND fair_at = ",
            none_yet!(),
            " AND run_at <= $1
                         ORDER BY run_at LIMIT $2 ",
            $lock,
            ") AS waiting) AS place
             WHERE jobs.id = place.job_id"
        )
    };
}

/// Gives those that waited for a moment which has come their places, each behind what its workspace has queued; how many. It takes on some
/// hundred at most, the longest due first.
pub async fn admit(tx: &mut Tx, now: Timestamp) -> Result<u64> {
    let statement = match tx {
        Tx::Postgres(_) => admit!("FOR UPDATE SKIP LOCKED"),
        Tx::Sqlite(_) => admit!(""),
    };
    execute!(tx, sqlx::query(statement).bind(now).bind(ADMITTED))
}

/// Selects workspaces by `front`, which has the first place of each who has a due job in line; $1 is the moment. It goes from workspace to
/// workspace, so it takes as long as there are workspaces, however many jobs they have. By a range, as in [`ENDS`].
macro_rules! workspaces_by_front {
    ($which:literal) => {
        workspaces_by_front!("", $which)
    };
    ($besides:literal, $which:literal) => {
        concat!(
            "WITH RECURSIVE ",
            $besides,
            "waiting (workspace_id) AS (
                 SELECT (SELECT workspace_id FROM jobs WHERE state = 'queued' AND fair_at < ",
            none_yet!(),
            " ORDER BY workspace_id, fair_at, id LIMIT 1)
                 UNION ALL
                 SELECT (SELECT jobs.workspace_id FROM jobs
                         WHERE jobs.workspace_id > waiting.workspace_id AND jobs.state = 'queued' AND jobs.fair_at < ",
            none_yet!(),
            " ORDER BY jobs.workspace_id, jobs.fair_at, jobs.id LIMIT 1)
                 FROM waiting WHERE waiting.workspace_id IS NOT NULL),
             front (workspace_id, fair_at) AS MATERIALIZED (
                 SELECT waiting.workspace_id,
                        (SELECT jobs.fair_at FROM jobs
                         WHERE jobs.workspace_id >= waiting.workspace_id AND jobs.workspace_id <= waiting.workspace_id
                           AND jobs.state = 'queued' AND jobs.run_at <= $1 AND jobs.fair_at < ",
            none_yet!(),
            " ORDER BY jobs.workspace_id, jobs.fair_at, jobs.id LIMIT 1)
                 FROM waiting)
             SELECT workspace_id FROM front WHERE ",
            $which
        )
    };
}

pub(crate) const NEXT_BESIDES: &str =
    workspaces_by_front!("workspace_id <> $2 AND fair_at IS NOT NULL ORDER BY fair_at, workspace_id LIMIT 1");

/// Who of the others is next if this workspace is passed over; none when nobody else waits.
pub(super) async fn next_besides(
    tx: &mut Tx,
    workspace: WorkspaceId,
    now: Timestamp,
) -> Result<Option<WorkspaceId>> {
    Ok(on!(tx, |c| sqlx::query_scalar(NEXT_BESIDES).bind(now).bind(workspace).fetch_optional(c))?)
}

/// Has others who claim wait from here on to the end of the transaction. Of SQLite there is one writer anyway.
pub(super) async fn lock_head(tx: &mut Tx) -> Result<()> {
    if let Tx::Postgres(_) = tx {
        execute!(tx, sqlx::query("SELECT fair_at FROM queue_head FOR UPDATE"))?;
    }
    Ok(())
}

/// Notes that the head has gone on to this number.
pub(super) async fn note_head(tx: &mut Tx, number: i64) -> Result<()> {
    execute!(tx, sqlx::query("UPDATE queue_head SET fair_at = $1").bind(number))?;
    Ok(())
}

/// Notes that the head has gone on to this number while several workspaces have jobs in line, and closes those lines up to it.
pub(super) async fn advance_head(tx: &mut Tx, number: i64, now: Timestamp) -> Result<()> {
    let place = place::in_line(number + 1);
    let behind = match tx {
        // In one round trip.
        Tx::Postgres(_) => {
            on!(tx, |c| sqlx::query_scalar(MOVES_HEAD).bind(now).bind(place).bind(number).fetch_all(c))?
        }
        Tx::Sqlite(_) => {
            note_head(tx, number).await?;
            on!(tx, |c| sqlx::query_scalar(BEGINS_BEHIND).bind(now).bind(place).fetch_all(c))?
        }
    };
    compact_lines(tx, place, behind).await
}

pub(crate) const BEGINS_BEHIND: &str = workspaces_by_front!("fair_at > $2");
const MOVES_HEAD: &str =
    workspaces_by_front!("moved AS (UPDATE queue_head SET fair_at = $3), ", "fair_at > $2");

/// That a job of the table that goes before this, which is found by its id or its document, is queued still. Said of the state itself, PostgreSQL may go
/// through an index of queued jobs for it: as long as it knows of none that is queued, it takes that for the quickest way, however many
/// are in line by then.
macro_rules! still_queued {
    ($table:literal) => {
        concat!($table, "state || '' = 'queued'")
    };
}
pub(crate) use still_queued;

macro_rules! move_up {
    ($lock:literal) => {
        concat!(
            "UPDATE jobs SET fair_at = $1
             WHERE id = (SELECT id FROM jobs
                         WHERE workspace_id >= $2 AND workspace_id <= $2 AND state = 'queued' AND fair_at < ",
            none_yet!(),
            " ORDER BY workspace_id, fair_at, id LIMIT 1 ",
            $lock,
            ") AND ",
            still_queued!(""),
            " AND fair_at > $1 AND fair_at < ",
            none_yet!()
        )
    };
}

/// Moves the first job of each of these workspaces, whose lines begin behind this place, up to it.
async fn compact_lines(tx: &mut Tx, place: i64, workspaces: Vec<WorkspaceId>) -> Result<()> {
    // The owners of these may be changing them: nobody waits for that here.
    let statement = match tx {
        Tx::Postgres(_) => move_up!("FOR UPDATE SKIP LOCKED"),
        Tx::Sqlite(_) => move_up!(""),
    };
    for workspace in workspaces {
        execute!(tx, sqlx::query(statement).bind(place).bind(workspace))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a workspace who has been served before, with nothing queued and nothing running.
    const SERVED: QueueEnds = QueueEnds { given: 5, head: 10, queued: None, running: None, front: None };

    #[test]
    fn whoever_comes_new_has_the_number_that_is_being_taken() {
        assert_eq!(QueueEnds { given: 0, head: 1, ..SERVED }.next_number(), 1);
        assert_eq!(SERVED.next_number(), 10);
        let held_up = QueueEnds { queued: Some(place::in_line(7)), ..SERVED };
        assert_eq!(held_up.next_number(), 10);
    }

    #[test]
    fn a_workspaces_next_job_is_behind_the_last_one_that_is_still_there() {
        let queued = QueueEnds { given: 30, queued: Some(place::in_line(30)), ..SERVED };
        assert_eq!(queued.next_number(), 31);
        let cancelled = QueueEnds { given: 30, queued: Some(place::in_line(12)), ..SERVED };
        assert_eq!(cancelled.next_number(), 13);
        let none_is_left = QueueEnds { given: 30, ..SERVED };
        assert_eq!(none_is_left.next_number(), 11);
        let runs_and_is_queued_again = QueueEnds { given: 12, running: Some(place::in_line(12)), ..SERVED };
        assert_eq!(runs_and_is_queued_again.next_number(), 13);
    }

    #[test]
    fn what_an_operator_queued_does_not_come_before_what_the_workspace_adds() {
        let reindexed = QueueEnds { queued: Some(place::in_line(500)), ..SERVED };
        assert_eq!(reindexed.next_number(), 10);
        assert_eq!(QueueEnds { given: 10, ..reindexed }.next_number(), 11);
    }

    #[test]
    fn an_only_job_comes_before_those_of_a_line_with_its_number() {
        assert_eq!(SERVED.place(10), place::alone(10));
        assert!(place::alone(10) < place::in_line(10) && place::in_line(10) < place::alone(11));
        for other in [place::alone(9), place::in_line(11)] {
            let queued = QueueEnds { queued: Some(other), ..SERVED };
            assert_eq!(queued.place(10), place::in_line(10));
            let running = QueueEnds { running: Some(other), ..SERVED };
            assert_eq!(running.place(10), place::in_line(10));
        }
    }

    #[test]
    fn an_only_job_whose_number_has_come_is_before_whoever_is_held_up() {
        let held_up = QueueEnds { front: Some(place::in_line(3)), ..SERVED };
        assert_eq!(held_up.place(10), place::alone(3));
        assert_eq!(held_up.place(11), place::alone(11), "its number has not come");
        let nobody = QueueEnds { front: Some(place::in_line(10)), ..SERVED };
        assert_eq!(nobody.place(10), place::alone(10));
    }
}
