//! Workspaces: members, invitations, API tokens, what is noted of them, and how they end.

use lectern_shared::{
    ids::{ApiTokenId, AuditEventId, InvitationId, UserId, WorkspaceId},
    model::{
        audit::AuditAction,
        user::ApiToken,
        workspace::{Invitation, Member, Role, RowOwner, Workspace, WorkspaceQuotas},
    },
};
use uuid::Uuid;

use super::{
    accounts::new_token,
    agents::agent,
    leftovers::{columns_with, sweep},
};
use crate::{
    Db, accounts, agents, api_tokens,
    audit::{self, AuditEvent},
    collections, documents,
    testing::{at, both, commit, document, enqueue, made_in, plain, published, user},
    usage::{self, MonthlyUsage},
    workspaces::{
        self, invitations, leftovers,
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
    commit!(db, |tx| members::remove(tx, workspace, user))
}

async fn find(db: &Db, workspace: WorkspaceId, user: UserId) -> Option<Member> {
    commit!(db, |tx| members::find(tx, workspace, user))
}

/// What an account may do somewhere, by each of the ways to ask.
async fn role_in(db: &Db, user: UserId, workspace: WorkspaceId) -> Option<Role> {
    let role = accounts::find_in_workspace(db, user, workspace).await.unwrap().unwrap().role;
    let joined = workspaces::find_joined(db, user, workspace).await.unwrap();
    assert_eq!(joined.map(|joined| joined.role), role);
    let memberships = accounts::memberships(db, &[user], &[workspace]).await.unwrap();
    let listed = memberships.iter().find(|membership| membership.workspace_id == workspace);
    assert_eq!(listed.map(|membership| membership.role), role);
    role
}

async fn add_token(db: &Db, token: &ApiToken) {
    commit!(db, |tx| api_tokens::insert(tx, token, token.id.as_uuid().as_bytes()));
}

/// What an API token and its maker may do; none when it opens nothing.
async fn grant(db: &Db, token: &ApiToken, now: u64) -> Option<(Option<Role>, Role)> {
    let granted = api_tokens::find_grant(db, token.id.as_uuid().as_bytes(), at(now)).await.unwrap();
    let in_force = api_tokens::in_force(db, &[token.id], at(now)).await.unwrap();
    assert_eq!(granted.is_some(), in_force.iter().any(|found| found.id == token.id));
    let granted = granted?;
    assert_eq!(
        (granted.token_id, granted.workspace_id, granted.user.id),
        (token.id, token.owner.workspace_id, token.owner.creator())
    );
    Some((granted.token_role, granted.maker_role))
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
        let list = async |before, limit| members::list(&t.db, workspace, before, limit).await.unwrap();
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
        let listed = members::list(&t.db, workspace, Uuid::max().into(), 9).await.unwrap();
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

/// An invitation that ends at 10 seconds.
async fn invite(db: &Db, workspace: WorkspaceId, email: Option<&str>, token: &[u8]) -> Invitation {
    let invitation = Invitation {
        id: InvitationId::generate(),
        workspace_id: workspace,
        role: Role::Editor,
        email: email.map(str::to_owned),
        created_by: UserId::generate(),
        created_at: at(1),
        expires_at: at(10),
    };
    commit!(db, |tx| invitations::insert(tx, &invitation, email, token));
    invitation
}

#[tokio::test]
async fn an_invitation_works_once_and_in_its_time_for_whom_it_is_meant() {
    for t in &both().await {
        let workspace = shared(&t.db, &[]).await;
        let take = async |token: &[u8], email: &str, now| {
            commit!(t.db, |tx| invitations::take(tx, token, email, at(now)))
        };
        let open = invite(&t.db, workspace, None, b"open").await;
        let named = invite(&t.db, workspace, Some("ada@example.com"), b"named").await;
        assert_eq!(take(b"ope", "ada@example.com", 2).await, None, "{}", t.name);
        assert_eq!(take(b"open", "anybody@example.com", 10).await, None, "{}: it has ended", t.name);
        assert_eq!(take(b"open", "anybody@example.com", 9).await, Some(open), "{}", t.name);
        assert_eq!(take(b"open", "anybody@example.com", 9).await, None, "{}: it was used", t.name);
        assert_eq!(take(b"named", "grace@example.com", 2).await, None, "{}: it is another's", t.name);
        assert_eq!(take(b"named", "ada@example.com", 2).await, Some(named), "{}", t.name);
        assert_eq!(take(b"named", "ada@example.com", 2).await, None, "{}", t.name);
    }
}

#[tokio::test]
async fn whoever_is_an_owner_no_more_has_invited_nobody() {
    for t in &both().await {
        let ada = user(&t.db, at(0)).await;
        let workspace = shared(&t.db, &[(ada, Role::Owner)]).await;
        let others = invite(&t.db, workspace, None, b"others").await;
        let mine = Invitation { id: InvitationId::generate(), created_by: ada, ..others };
        commit!(t.db, |tx| invitations::insert(tx, &mine, None, b"mine"));
        let take = async |token: &[u8]| commit!(t.db, |tx| invitations::take(tx, token, "", at(2))).is_some();
        put(&t.db, workspace, ada, Role::Owner, 1).await;
        put(&t.db, workspace, ada, Role::Builder, 1).await;
        assert!(!take(b"mine").await, "{}", t.name);
        assert!(take(b"others").await, "{}: another's stays", t.name);
    }
}

#[tokio::test]
async fn invitations_are_listed_until_they_are_withdrawn_or_have_ended() {
    for t in &both().await {
        let (workspace, other) = (shared(&t.db, &[]).await, shared(&t.db, &[]).await);
        let mut made = Vec::new();
        for token in [b"1", b"2", b"3"] {
            made.push(invite(&t.db, workspace, None, token).await);
        }
        let end = InvitationId::from(Uuid::max());
        let list = async |workspace, now, before| {
            invitations::list(&t.db, workspace, at(now), before, 2).await.unwrap()
        };
        assert_eq!(list(workspace, 9, end).await, [made[2].clone(), made[1].clone()], "{}", t.name);
        assert_eq!(list(workspace, 9, made[1].id).await, [made[0].clone()], "{}", t.name);
        assert_eq!(list(workspace, 10, end).await, [], "{}", t.name);
        assert_eq!(list(other, 9, end).await, [], "{}", t.name);

        assert!(!commit!(t.db, |tx| invitations::delete(tx, other, made[2].id)), "{}", t.name);
        assert!(commit!(t.db, |tx| invitations::delete(tx, workspace, made[2].id)), "{}", t.name);
        assert!(!commit!(t.db, |tx| invitations::delete(tx, workspace, made[2].id)), "{}", t.name);
        assert_eq!(commit!(t.db, |tx| invitations::take(tx, b"3", "", at(2))), None, "{}", t.name);
        for (now, gone) in [(9, 0), (10, 1), (10, 1), (10, 0)] {
            assert_eq!(commit!(t.db, |tx| invitations::expire(tx, at(now), 1)), gone, "{}", t.name);
        }
    }
}

#[tokio::test]
async fn an_api_token_has_its_own_role_and_its_makers_while_that_is_a_member() {
    for t in &both().await {
        let (owner, maker) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let workspace = shared(&t.db, &[(owner, Role::Owner), (maker, Role::Builder)]).await;
        let in_shared = RowOwner::new(workspace, maker);
        let bounded = ApiToken { role: Some(Role::Asker), ..new_token(in_shared, at(1)) };
        let (free, owners) = (new_token(in_shared, at(1)), new_token(RowOwner::new(workspace, owner), at(1)));
        let own = new_token(made_in(maker.into()), at(1));
        for token in [&bounded, &free, &owners, &own] {
            add_token(&t.db, token).await;
        }
        assert_eq!(grant(&t.db, &bounded, 2).await, Some((Some(Role::Asker), Role::Builder)), "{}", t.name);
        assert_eq!(grant(&t.db, &free, 2).await, Some((None, Role::Builder)), "{}", t.name);
        put(&t.db, workspace, maker, Role::Editor, 2).await;
        assert_eq!(grant(&t.db, &free, 2).await, Some((None, Role::Editor)), "{}", t.name);

        let mut went = remove(&t.db, workspace, maker).await;
        went.sort_unstable_by_key(|id| *id.as_uuid());
        let mut expected = [bounded.id, free.id];
        expected.sort_unstable_by_key(|id| *id.as_uuid());
        assert_eq!(went, expected, "{}", t.name);
        for gone in [&bounded, &free] {
            assert_eq!(grant(&t.db, gone, 3).await, None, "{}", t.name);
            let found = api_tokens::find(&t.db, workspace, gone.id).await.unwrap();
            assert!(found.is_none(), "{}: it does not come back with its maker", t.name);
        }
        assert_eq!(grant(&t.db, &owners, 3).await, Some((None, Role::Owner)), "{}", t.name);
        assert_eq!(grant(&t.db, &own, 3).await, Some((None, Role::Owner)), "{}", t.name);
        // One that was added at the moment when its maker was removed.
        let late = new_token(in_shared, at(3));
        add_token(&t.db, &late).await;
        assert_eq!(grant(&t.db, &late, 3).await, None, "{}", t.name);

        commit!(t.db, |tx| workspaces::close(tx, workspace, at(4)));
        assert_eq!(grant(&t.db, &owners, 4).await, None, "{}", t.name);
        commit!(t.db, |tx| accounts::close(tx, maker, at(4)));
        assert_eq!(grant(&t.db, &own, 4).await, None, "{}", t.name);
    }
}

#[tokio::test]
async fn an_api_token_ends_at_its_time_and_names_the_origins_that_may_use_it() {
    for t in &both().await {
        let owner = user(&t.db, at(0)).await;
        let agent = agent(&t.db, owner.into(), at(0)).await;
        let origins = vec!["https://a.example".to_owned(), "https://b.example:8443".to_owned()];
        let token = ApiToken {
            agent_id: Some(agent),
            origins: Some(lectern_shared::model::Json(origins.clone())),
            expires_at: Some(at(10)),
            rate_per_minute: Some(60),
            ..new_token(made_in(owner.into()), at(1))
        };
        add_token(&t.db, &token).await;
        let found = api_tokens::find(&t.db, owner.into(), token.id).await.unwrap().unwrap();
        assert_eq!(format!("{found:?}"), format!("{token:?}"), "{}", t.name);
        let granted =
            api_tokens::find_grant(&t.db, token.id.as_uuid().as_bytes(), at(9)).await.unwrap().unwrap();
        assert_eq!((granted.agent_id, granted.rate_per_minute), (Some(agent), Some(60)), "{}", t.name);
        assert_eq!((granted.origins.unwrap().0, granted.expires_at), (origins, Some(at(10))), "{}", t.name);
        assert!(grant(&t.db, &token, 9).await.is_some(), "{}", t.name);
        assert_eq!(grant(&t.db, &token, 10).await, None, "{}", t.name);

        let listed = async |now| {
            let found = api_tokens::page_origins(&t.db, at(now), 9).await.unwrap();
            found.into_iter().flat_map(|origins| origins.0).collect::<Vec<_>>()
        };
        assert_eq!(listed(9).await, ["https://a.example", "https://b.example:8443"], "{}", t.name);
        assert_eq!(listed(10).await, [""; 0], "{}", t.name);
    }
}

#[tokio::test]
async fn the_origins_of_pages_are_read_up_to_a_length_for_each_token_and_each_workspace() {
    for t in &both().await {
        let (ada, ben) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let add = async |owner: UserId, origins: Vec<String>| {
            let origins = Some(lectern_shared::model::Json(origins));
            add_token(&t.db, &ApiToken { origins, ..new_token(made_in(owner.into()), at(1)) }).await;
        };
        let origin = |host: &str| format!("https://{host}.example");
        add(ben, vec![origin("ben")]).await;
        // As one from before there was a length, and one of a page that is published.
        add(ada, vec![origin(&"x".repeat(20_000))]).await;
        add(ada, Vec::new()).await;
        for token in 0..30 {
            let of_token = |number| origin(&format!("{}-{token}-{number}", "x".repeat(240)));
            add(ada, (0..50).map(of_token).collect()).await;
        }
        let found = api_tokens::page_origins(&t.db, at(2), 1_000).await.unwrap();
        assert!(found.iter().all(|origins| !origins.0.is_empty()), "{}", t.name);
        let all: Vec<String> = found.into_iter().flat_map(|origins| origins.0).collect();
        assert!(all.contains(&origin("ben")), "{}: nobody pushes another's out", t.name);
        assert!(all.iter().all(|origin| origin.len() < 300), "{}", t.name);
        assert!(all.iter().any(|origin| origin.ends_with("-29-0.example")), "{}: the newest", t.name);
        let bytes: usize = all.iter().map(String::len).sum();
        assert!(bytes < 300_000, "{}: {bytes}", t.name);

        let tokens = async |owner: UserId| commit!(t.db, |tx| api_tokens::count(tx, owner.into()));
        assert_eq!((tokens(ada).await, tokens(ben).await), (31, 1), "{}: without that of a page", t.name);
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
        let end = AuditEventId::from(Uuid::max());
        let list = async |user: UserId, before| audit::list(&t.db, user.into(), before, 2).await.unwrap();
        assert_eq!(list(ada, end).await, [noted[2].clone(), noted[1].clone()], "{}", t.name);
        assert_eq!(list(ada, noted[1].id).await, [noted[0].clone()], "{}", t.name);
        assert_eq!(list(other, end).await, [], "{}", t.name);

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
        let noted = audit::list(&t.db, workspace, Uuid::max().into(), 9).await.unwrap();
        assert_eq!(noted.iter().map(|event| event.user_id).collect::<Vec<_>>(), [gone], "{}", t.name);
        assert_eq!(role_in(&t.db, kept, workspace).await, Some(Role::Owner), "{}", t.name);
        // The account is the only thing that has the id now, besides what tells who did something.
        let left = columns_with(&t.db, gone.into()).await;
        assert_eq!(left, [("audit_events".to_owned(), "user_id".to_owned())], "{}", t.name);
    }
}
