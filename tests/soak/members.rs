//! A team whose members gain and lose rights while they work: nobody is answered by a right that was gone before the request began.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use reqwest::StatusCode;
use serde_json::json;
use tokio::time::Instant;

use super::below;
use crate::{
    people::Team,
    support::{
        client::{Client, id},
        service::{Mode, Service},
    },
};

const MEMBERS: usize = 50;
/// Who change what members may do, at the same time.
const MANAGERS: usize = 4;
const LASTS: Duration = Duration::from_mins(1);
/// By how much they may, the least first.
const ROLES: [&str; 3] = ["asker", "editor", "builder"];
const EDITOR: usize = 1;
const BUILDER: usize = 2;

/// What is known of a member's rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    /// The role, as a place in [`ROLES`].
    role: usize,
    /// How often it was changed.
    changes: u64,
    /// It is being changed: any answer is right.
    is_changing: bool,
}

struct Member {
    client: Client,
    standing: Mutex<Standing>,
    /// Held by whoever changes it.
    managed: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    refused: AtomicU64,
    undecided: AtomicU64,
}

impl Member {
    fn standing(&self) -> Standing {
        *self.standing.lock()
    }

    /// Checks an answer to something that needs a role, by what was known before it was asked for and is known after.
    fn check(&self, before: Standing, needed: usize, status: StatusCode, counts: &Counts) {
        assert!(status.is_success() || status == StatusCode::FORBIDDEN, "{status}: {before:?}");
        let after = self.standing();
        let count = if before != after || before.is_changing {
            &counts.undecided
        } else if before.role >= needed {
            assert!(status.is_success(), "{status} although {before:?}");
            &counts.answered
        } else {
            assert_eq!(status, StatusCode::FORBIDDEN, "answered by a right that was gone: {before:?}");
            &counts.refused
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    async fn work(&self, counts: &Counts) {
        let before = self.standing();
        let client = &self.client;
        match below(4) {
            0 => {
                let (status, _) = client.get("/documents?limit=5").await;
                self.check(before, EDITOR, status, counts);
            }
            1 => {
                let body = json!({"name": "note", "type": "TXT", "content": "The gate opens at nine."});
                let (status, _) = client.post("/documents", &body).await;
                self.check(before, EDITOR, status, counts);
            }
            2 => {
                let (status, _) = client.get("/api-tokens").await;
                self.check(before, BUILDER, status, counts);
            }
            _ => self.use_token(before, counts).await,
        }
    }

    /// Makes an API token, uses it, deletes it, and uses it again. It never may more than its maker.
    async fn use_token(&self, before: Standing, counts: &Counts) {
        let (status, answer) = self.client.post("/api-tokens", &json!({"description": "mine"})).await;
        self.check(before, BUILDER, status, counts);
        if !status.is_success() {
            return;
        }
        let token = &answer["data"];
        let program = self.client.with_token(token["token"].as_str().expect("its value is shown"));
        let before = self.standing();
        let (status, _) = program.get("/documents?limit=5").await;
        self.check(before, EDITOR, status, counts);
        let before = self.standing();
        let (status, _) = self.client.delete(&format!("/api-tokens/{}", id(token))).await;
        self.check(before, BUILDER, status, counts);
        if status.is_success() {
            let (status, _) = program.get("/documents?limit=5").await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "a token that was deleted opens something");
        }
    }

    async fn change(&self, team: &Team) {
        let _alone = self.managed.lock().await;
        let role = usize::try_from(below(3)).expect("a small number");
        {
            let mut standing = self.standing.lock();
            standing.is_changing = true;
            standing.changes += 1;
        }
        team.give(&self.client, ROLES[role]).await;
        let mut standing = self.standing.lock();
        *standing = Standing { role, changes: standing.changes + 1, is_changing: false };
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/soak.sh members"]
async fn nobody_is_answered_by_a_right_that_was_gone_before_embedded() {
    team_at_work(Mode::Embedded).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: scripts/soak.sh members"]
async fn nobody_is_answered_by_a_right_that_was_gone_before_in_the_cluster() {
    team_at_work(Mode::Cluster).await;
}

async fn team_at_work(mode: Mode) {
    let service = Service::in_mode(mode).env("LECTERN_RATE_LIMIT", "off").start().await;
    let founder = service.signed_up("founder@example.com").await;
    let team = Arc::new(Team::of(&founder, "Team").await);
    let mut members = Vec::new();
    for number in 0..MEMBERS {
        let client = team.joined(&service, &format!("member{number}"), ROLES[BUILDER]).await;
        let standing = Mutex::new(Standing { role: BUILDER, changes: 0, is_changing: false });
        members.push(Arc::new(Member { client, standing, managed: tokio::sync::Mutex::default() }));
    }
    let (counts, end) = (Arc::new(Counts::default()), Instant::now() + LASTS);
    let mut tasks = Vec::new();
    for member in &members {
        let (member, counts) = (Arc::clone(member), Arc::clone(&counts));
        tasks.push(tokio::spawn(async move {
            while Instant::now() < end {
                member.work(&counts).await;
            }
        }));
    }
    for _ in 0..MANAGERS {
        let (team, members) = (Arc::clone(&team), members.clone());
        tasks.push(tokio::spawn(async move {
            while Instant::now() < end {
                let which = below(MEMBERS as u64);
                members[usize::try_from(which).expect("a small number")].change(&team).await;
            }
        }));
    }
    for task in tasks {
        task.await.expect("everybody was answered as they may");
    }
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let changes: u64 = members.iter().map(|member| member.standing().changes / 2).sum();
    let (answered, refused, undecided) =
        (count(&counts.answered), count(&counts.refused), count(&counts.undecided));
    eprintln!(
        "{MEMBERS} members: {changes} changes of a role; {answered} requests answered, {refused} refused, {undecided} during a change"
    );
    assert!(answered > 0 && refused > 0 && changes > 0);
}
