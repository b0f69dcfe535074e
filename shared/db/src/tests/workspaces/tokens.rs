//! API tokens of workspaces: whose roles they have, and when they end.

use lectern_shared::{
    ids::UserId,
    model::{
        Json,
        user::ApiToken,
        workspace::{Role, RowOwner},
    },
};

use super::{put, remove, shared};
use crate::{
    Db, accounts, api_tokens, documents, storage,
    testing::{at, both, commit, made_in, user},
    tests::{accounts::new_token, agents::agent},
    workspaces,
};

pub(super) async fn add_token(db: &Db, token: &ApiToken) {
    commit!(db, |tx| api_tokens::insert(tx, token, token.id.as_uuid().as_bytes()));
}

/// What an API token and its maker may do; none when it opens nothing.
pub(super) async fn grant(db: &Db, token: &ApiToken, now: u64) -> Option<(Option<Role>, Role)> {
    let granted = api_tokens::find_grant(db, token.id.as_uuid().as_bytes(), at(now)).await.unwrap();
    let in_force = api_tokens::in_force(db, &[token.id], at(now)).await.unwrap();
    assert_eq!(granted.is_some(), in_force.iter().any(|found| found.id == token.id));
    let granted = granted?;
    assert_eq!(
        (granted.token_id, granted.workspace_id, granted.user.id),
        (token.id, token.owner.workspace_id, token.owner.creator())
    );
    assert_eq!(granted.search_epoch, documents::search_epoch(db, granted.workspace_id).await.unwrap());
    Some((granted.token_role, granted.maker_role))
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
        commit!(t.db, |tx| documents::bump_search_epoch(tx, workspace));
        assert_eq!(
            commit!(t.db, |tx| storage::admit(tx, workspace, 7, None, Some(10))),
            Ok(()),
            "{}",
            t.name
        );
        let granted = api_tokens::find_grant(&t.db, free.id.as_uuid().as_bytes(), at(2)).await.unwrap();
        assert_eq!(granted.and_then(|granted| granted.stored_at_most), Some(7), "{}", t.name);
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
            origins: Some(Json(origins.clone())),
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
            let origins = Some(Json(origins));
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
