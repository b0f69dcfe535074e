//! Workspaces: members, invitations, API tokens, what is noted of them, and how they end.

mod invitations;
mod tokens;

use lectern_shared::{
    ids::{ApiTokenId, AuditEventId, UserId, WorkspaceId},
    model::{
        Json,
        audit::{AuditAction, AuditDetails},
        workspace::{Member, Role, RowOwner, Workspace, WorkspaceQuotas},
    },
};
use uuid::Uuid;

use self::{
    invitations::invite,
    tokens::{add_token, grant},
};
use super::{
    accounts::new_token,
    leftovers::{columns_with, sweep},
};
use crate::{
    Db, accounts, agents, api_tokens,
    audit::{self, AuditEvent, AuditFilter},
    collections, documents,
    testing::{at, both, commit, document, enqueue, plain, published, user},
    usage::{self, MonthlyUsage},
    workspaces::{
        self, leftovers,
        members::{self, has_other_owner, has_others, joined_by},
    },
};

/// Adds a workspace with these members.
async fn shared(db: &Db, people: &[(UserId, Role)]) -> WorkspaceId {
    let workspace = Workspace {
        id: WorkspaceId::generate(),
        name: "shared".to_owned(),
        is_personal: false,
        quotas: None,
        created_at: at(0),
        updated_at: at(0),
    };
    commit!(db, |tx| workspaces::insert(tx, &workspace));
    for (user, role) in people {
        put(db, workspace.id, *user, *role, 0).await;
    }
    workspace.id
}

async fn put(db: &Db, workspace: WorkspaceId, user: UserId, role: Role, now: u64) {
    commit!(db, |tx| members::put(tx, workspace, user, role, at(now)));
}

async fn remove(db: &Db, workspace: WorkspaceId, user: UserId) -> Vec<ApiTokenId> {
    commit!(db, |tx| members::remove(tx, workspace, user, at(0))).tokens
}

async fn find(db: &Db, workspace: WorkspaceId, user: UserId) -> Option<Member> {
    commit!(db, |tx| members::find(tx, workspace, user))
}

/// What an account may do somewhere, by each of the ways to ask.
async fn role_in(db: &Db, user: UserId, workspace: WorkspaceId) -> Option<Role> {
    let found = accounts::find_in_workspace(db, user, workspace).await.unwrap().unwrap();
    let role = found.role;
    let epoch = match role {
        Some(_) => Some(documents::search_epoch(db, workspace).await.unwrap()),
        None => None,
    };
    assert_eq!(found.search_epoch, epoch);
    let joined = workspaces::find_joined(db, user, workspace).await.unwrap();
    assert_eq!(joined.map(|joined| joined.role), role);
    let memberships = accounts::memberships(db, &[user], &[workspace]).await.unwrap();
    let listed = memberships.iter().find(|membership| membership.workspace_id == workspace);
    assert_eq!(listed.map(|membership| membership.role), role);
    role
}

#[tokio::test]
async fn a_member_has_one_role_and_is_listed_newest_account_first() {
    for t in &both().await {
        let mut people = Vec::new();
        for _ in 0..4 {
            people.push(user(&t.db, at(0)).await);
        }
        let owner = people[0];
        let workspace = shared(&t.db, &[(owner, Role::Owner)]).await;
        for (id, role) in [(people[2], Role::Editor), (people[1], Role::Asker)] {
            put(&t.db, workspace, id, role, 5).await;
        }
        let list = async |before, limit| members::list(&t.db, workspace, "", before, limit).await.unwrap();
        let end = UserId::from(Uuid::max());
        let ids = async |before, limit| {
            list(before, limit).await.iter().map(|member| member.user_id).collect::<Vec<_>>()
        };
        assert_eq!(ids(end, 2).await, [people[2], people[1]], "{}", t.name);
        assert_eq!(ids(people[1], 2).await, [owner], "{}", t.name);

        put(&t.db, workspace, people[1], Role::Builder, 9).await;
        let changed = Member {
            user_id: people[1],
            email: format!("{}@example.com", people[1]),
            name: "someone".to_owned(),
            role: Role::Builder,
            joined_at: at(5),
        };
        assert_eq!(find(&t.db, workspace, people[1]).await, Some(changed.clone()), "{}", t.name);
        assert_eq!(list(people[2], 1).await, [changed], "{}: once", t.name);
        assert_eq!(role_in(&t.db, people[1], workspace).await, Some(Role::Builder), "{}", t.name);
        assert_eq!(find(&t.db, workspace, people[3]).await, None, "{}", t.name);

        for person in [people[1], people[1], people[3]] {
            assert_eq!(remove(&t.db, workspace, person).await, [], "{}", t.name);
        }
        assert_eq!(role_in(&t.db, people[1], workspace).await, None, "{}", t.name);
        assert_eq!(role_in(&t.db, people[1], people[1].into()).await, Some(Role::Owner), "{}", t.name);
        assert_eq!(ids(end, 9).await, [people[2], owner], "{}", t.name);
    }
}

#[tokio::test]
async fn an_owner_is_the_last_one_when_no_other_owners_account_is_active() {
    for t in &both().await {
        let (ada, grace) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let workspace = shared(&t.db, &[(ada, Role::Owner)]).await;
        let asked = async || {
            let mut tx = t.db.begin().await.unwrap();
            (
                has_other_owner(&mut tx, workspace, ada).await.unwrap(),
                has_others(&mut tx, workspace, ada).await.unwrap(),
            )
        };
        let joined = async |user| commit!(t.db, |tx| joined_by(tx, user));
        assert_eq!(asked().await, (false, false), "{}", t.name);
        put(&t.db, workspace, grace, Role::Builder, 1).await;
        assert_eq!(asked().await, (false, true), "{}", t.name);
        assert_eq!(
            (joined(ada).await, joined(grace).await),
            (vec![workspace], vec![workspace]),
            "{}",
            t.name
        );
        put(&t.db, workspace, grace, Role::Owner, 1).await;
        assert_eq!(asked().await, (true, true), "{}", t.name);
        commit!(t.db, |tx| accounts::close(tx, grace, at(2)));
        assert_eq!(asked().await, (false, false), "{}: the other one's account is closed", t.name);
        let listed = members::list(&t.db, workspace, "", Uuid::max().into(), 9).await.unwrap();
        assert_eq!(listed.iter().map(|member| member.user_id).collect::<Vec<_>>(), [ada], "{}", t.name);
        commit!(t.db, |tx| workspaces::close(tx, workspace, at(3)));
        assert_eq!(joined(ada).await, [], "{}", t.name);
    }
}

#[tokio::test]
async fn a_workspace_is_found_and_listed_by_its_members_alone() {
    for t in &both().await {
        let (ada, grace) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let (first, second) =
            (shared(&t.db, &[(ada, Role::Owner)]).await, shared(&t.db, &[(ada, Role::Asker)]).await);
        let listed = async |user, before: WorkspaceId, limit| {
            let page = workspaces::list_joined(&t.db, user, before, limit).await.unwrap();
            page.iter().map(|joined| (joined.workspace.id, joined.role)).collect::<Vec<_>>()
        };
        let end = WorkspaceId::from(Uuid::max());
        let (own, his) = ((ada.into(), Role::Owner), (grace.into(), Role::Owner));
        assert_eq!(listed(ada, end, 2).await, [(second, Role::Asker), (first, Role::Owner)], "{}", t.name);
        assert_eq!(listed(ada, first, 2).await, [own], "{}", t.name);
        assert_eq!(listed(grace, end, 9).await, [his], "{}", t.name);
        for stranger in [first, second, ada.into(), WorkspaceId::generate()] {
            assert_eq!(role_in(&t.db, grace, stranger).await, None, "{}", t.name);
        }
        let personal = workspaces::find_joined(&t.db, ada, ada.into()).await.unwrap().unwrap().workspace;
        assert_eq!((&*personal.name, personal.is_personal), ("someone", true), "{}", t.name);

        let quotas = WorkspaceQuotas { documents: Some(3), cost_per_month: Some(1.5), ..Default::default() };
        assert!(commit!(t.db, |tx| workspaces::rename(tx, first, "Näme", at(4))), "{}", t.name);
        assert_eq!(
            commit!(t.db, |tx| workspaces::quotas(tx, first)),
            WorkspaceQuotas::default(),
            "{}",
            t.name
        );
        assert!(commit!(t.db, |tx| workspaces::set_quotas(tx, first, quotas, at(5))), "{}", t.name);
        assert_eq!(commit!(t.db, |tx| workspaces::quotas(tx, first)), quotas, "{}", t.name);
        let found = workspaces::find(&t.db, first).await.unwrap().unwrap();
        assert_eq!((&*found.name, found.is_personal), ("Näme", false), "{}", t.name);
        assert_eq!((found.created_at, found.updated_at), (at(0), at(5)), "{}", t.name);
        assert_eq!(found.quotas.unwrap().0, quotas, "{}", t.name);

        commit!(t.db, |tx| workspaces::close(tx, first, at(6)));
        assert_eq!(role_in(&t.db, ada, first).await, None, "{}", t.name);
        assert_eq!(listed(ada, end, 9).await, [(second, Role::Asker), own], "{}", t.name);
        assert!(workspaces::find(&t.db, first).await.unwrap().is_none(), "{}", t.name);
        let all: Vec<_> = workspaces::list(&t.db, end, 9).await.unwrap().iter().map(|one| one.id).collect();
        assert_eq!(all, [second, grace.into(), ada.into()], "{}", t.name);
        assert!(!commit!(t.db, |tx| workspaces::rename(tx, first, "late", at(7))), "{}", t.name);
        assert!(!commit!(t.db, |tx| workspaces::set_quotas(tx, first, quotas, at(7))), "{}", t.name);
    }
}

async fn note(db: &Db, workspace: WorkspaceId, user: UserId) -> AuditEvent {
    let event = AuditEvent {
        id: AuditEventId::generate(),
        workspace_id: workspace,
        at: at(3),
        user_id: user,
        token_id: None,
        action: AuditAction::RoleChanged,
        target_kind: "member".to_owned(),
        target_id: user.to_string(),
        address: Some("192.0.2.1".to_owned()),
        request_id: None,
        details: Some(Json(AuditDetails::change(Some(Role::Editor), Some(Role::Builder)))),
    };
    commit!(db, |tx| audit::insert(tx, &event));
    event
}

#[tokio::test]
async fn what_happened_and_what_was_used_is_told_of_each_workspace_alone() {
    for t in &both().await {
        let (ada, other) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let mut noted = Vec::new();
        for _ in 0..3 {
            noted.push(note(&t.db, ada.into(), ada).await);
        }
        let (end, every) = (AuditEventId::from(Uuid::max()), AuditFilter::default());
        let list =
            async |user: UserId, before| audit::list(&t.db, user.into(), every, before, 2).await.unwrap();
        assert_eq!(list(ada, end).await, [noted[2].clone(), noted[1].clone()], "{}", t.name);
        assert_eq!(list(ada, noted[1].id).await, [noted[0].clone()], "{}", t.name);
        assert_eq!(list(other, end).await, [], "{}", t.name);
        for (filter, count) in [
            (AuditFilter { actor: Some(ada), action: Some(AuditAction::RoleChanged), ..every }, 3),
            (
                AuditFilter { target: Some(*ada.as_uuid()), since: Some(at(3)), until: Some(at(4)), ..every },
                3,
            ),
            (AuditFilter { actor: Some(other), ..every }, 0),
            (AuditFilter { action: Some(AuditAction::Deleted), ..every }, 0),
            (AuditFilter { target: Some(*other.as_uuid()), ..every }, 0),
            (AuditFilter { since: Some(at(4)), ..every }, 0),
            (AuditFilter { until: Some(at(3)), ..every }, 0),
        ] {
            let found = audit::list(&t.db, ada.into(), filter, end, 9).await.unwrap();
            assert_eq!(found.len(), count, "{}: {filter:?}", t.name);
        }

        let used = MonthlyUsage { tokens: 5, cost_micros: 7 };
        let of = async |user: UserId, month| usage::of_month(&t.db, user.into(), at(month)).await.unwrap();
        for month in [0, 0, 100] {
            commit!(t.db, |tx| usage::add(tx, ada.into(), at(month), used));
        }
        assert_eq!(of(ada, 0).await, MonthlyUsage { tokens: 10, cost_micros: 14 }, "{}", t.name);
        assert_eq!(of(ada, 100).await, used, "{}", t.name);
        assert_eq!(of(ada, 200).await, MonthlyUsage::default(), "{}", t.name);
        assert_eq!(of(other, 0).await, MonthlyUsage::default(), "{}", t.name);
    }
}

/// Fills a workspace by one of its members; the agent and a document.
async fn fill(db: &Db, owner: RowOwner) -> (lectern_shared::ids::AgentId, lectern_shared::ids::DocumentId) {
    let workspace = owner.workspace_id;
    let (searchable, _) = published(db, workspace, "searchable", &["text"], at(1)).await;
    let made = documents::NewDocumentRow { owner, ..plain(workspace, "made") };
    commit!(db, |tx| documents::insert(tx, &made, at(1)));
    enqueue(db, workspace, made.id, at(1)).await;
    let agent =
        lectern_shared::model::agent::Agent { owner, ..super::agents::new(workspace, "agent", at(1)) };
    commit!(db, |tx| agents::insert(tx, &agent));
    commit!(db, |tx| agents::link(tx, owner, agent.id, searchable, at(1)));
    let collection = super::collections::collection(db, owner, "set").await;
    commit!(db, |tx| collections::add_documents(tx, workspace, collection, &[searchable, made.id]));
    commit!(db, |tx| collections::link(tx, owner, agent.id, collection, at(1))).unwrap();
    add_token(db, &new_token(owner, at(1))).await;
    invite(db, workspace, None, workspace.as_uuid().as_bytes()).await;
    note(db, workspace, owner.creator()).await;
    commit!(db, |tx| usage::add(tx, workspace, at(0), MonthlyUsage { tokens: 1, cost_micros: 1 }));
    (agent.id, made.id)
}

#[tokio::test]
async fn a_shared_workspace_goes_with_all_it_owns_and_its_members_keep_their_own() {
    for t in &both().await {
        let (ada, grace) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let gone = shared(&t.db, &[(ada, Role::Owner), (grace, Role::Editor)]).await;
        let kept = shared(&t.db, &[(grace, Role::Owner), (ada, Role::Asker)]).await;
        let all = [gone, kept, ada.into(), grace.into()];
        for workspace in all {
            fill(&t.db, RowOwner::new(workspace, ada)).await;
        }
        let mut before = Vec::new();
        for workspace in &all[1..] {
            before.push(columns_with(&t.db, *workspace).await);
        }

        commit!(t.db, |tx| workspaces::close(tx, gone, at(2)));
        assert!(!commit!(t.db, |tx| workspaces::is_active(tx, gone)), "{}", t.name);
        commit!(t.db, |tx| workspaces::delete(tx, gone, at(3)));
        // Somebody had begun before.
        document(&t.db, gone, "late", at(3)).await;
        commit!(t.db, |tx| members::put(tx, gone, grace, Role::Owner, at(3)));
        assert_eq!(leftovers::deleted(&t.db, Uuid::nil().into(), 9).await.unwrap(), [gone], "{}", t.name);
        assert!(
            !commit!(t.db, |tx| leftovers::purge(tx, gone, at(4), at(9))),
            "{}: documents are left",
            t.name
        );
        sweep(&t.db, at(4)).await;
        assert_eq!(columns_with(&t.db, gone).await, [], "{}", t.name);
        assert!(!commit!(t.db, |tx| leftovers::purge(tx, gone, at(5), at(2))), "{}: too early", t.name);
        assert!(commit!(t.db, |tx| leftovers::purge(tx, gone, at(5), at(9))), "{}", t.name);
        assert!(!commit!(t.db, |tx| leftovers::purge(tx, gone, at(5), at(9))), "{}", t.name);
        assert_eq!(leftovers::deleted(&t.db, Uuid::nil().into(), 9).await.unwrap(), [], "{}", t.name);

        for (workspace, before) in all[1..].iter().zip(before) {
            assert!(!commit!(t.db, |tx| leftovers::purge(tx, *workspace, at(5), at(9))), "{}", t.name);
            assert_eq!(columns_with(&t.db, *workspace).await, before, "{}", t.name);
        }
        for account in [ada, grace] {
            assert!(accounts::find(&t.db, account).await.unwrap().is_some(), "{}", t.name);
        }
        assert_eq!(role_in(&t.db, ada, kept).await, Some(Role::Asker), "{}", t.name);
    }
}

#[tokio::test]
async fn an_account_that_is_deleted_leaves_shared_workspaces_and_what_it_made_there_stays() {
    for t in &both().await {
        let (gone, kept) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let workspace = shared(&t.db, &[(gone, Role::Builder), (kept, Role::Owner)]).await;
        let made = RowOwner::new(workspace, gone);
        let (agent, document) = fill(&t.db, made).await;
        fill(&t.db, RowOwner::new(gone.into(), gone)).await;
        let token = new_token(made, at(1));
        add_token(&t.db, &token).await;

        commit!(t.db, |tx| accounts::close(tx, gone, at(2)));
        assert_eq!(grant(&t.db, &token, 2).await, None, "{}", t.name);
        commit!(t.db, |tx| accounts::delete(tx, gone, at(3)));
        assert_eq!(find(&t.db, workspace, gone).await, None, "{}", t.name);
        assert!(!commit!(t.db, |tx| has_others(tx, workspace, kept)), "{}", t.name);
        assert!(api_tokens::find(&t.db, workspace, token.id).await.unwrap().is_none(), "{}", t.name);
        sweep(&t.db, at(3)).await;
        assert!(commit!(t.db, |tx| leftovers::purge(tx, gone.into(), at(4), at(9))), "{}", t.name);

        let agent = agents::find(&t.db, workspace, agent).await.unwrap().unwrap();
        let document = documents::find(&t.db, workspace, document).await.unwrap().unwrap();
        assert_eq!((agent.owner, document.owner), (made, made), "{}", t.name);
        assert_eq!(documents::active(&t.db, workspace).await.unwrap().len(), 1, "{}", t.name);
        let noted =
            audit::list(&t.db, workspace, AuditFilter::default(), Uuid::max().into(), 9).await.unwrap();
        assert_eq!(noted.iter().map(|event| event.user_id).collect::<Vec<_>>(), [gone], "{}", t.name);
        assert_eq!(role_in(&t.db, kept, workspace).await, Some(Role::Owner), "{}", t.name);
        // The account is the only thing that has the id now, besides what tells who did something.
        let left = columns_with(&t.db, gone.into()).await;
        assert_eq!(left, [("audit_events".to_owned(), "user_id".to_owned())], "{}", t.name);
    }
}
