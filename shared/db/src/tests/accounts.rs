//! Accounts, where they were signed in to, and API tokens.

use lectern_shared::{
    clock::Timestamp,
    ids::{ApiTokenId, UserId, WorkspaceId},
    model::{
        user::{ApiToken, email_key},
        workspace::{Role, RowOwner},
    },
};

use crate::{
    Db, DbError,
    accounts::{self, AccountMembership, NewUser},
    api_tokens, documents, generations, known_addresses,
    testing::{account_of, at, both, claimed, commit, enqueue, made_in, published, user, workspace},
};

/// An API token without bounds.
pub(super) fn new_token(owner: RowOwner, now: Timestamp) -> ApiToken {
    ApiToken {
        id: ApiTokenId::generate(),
        owner,
        description: "for the tests".to_owned(),
        role: None,
        agent_id: None,
        origins: None,
        expires_at: None,
        rate_per_minute: None,
        token_sealed: b"\x00sealed".to_vec(),
        created_at: now,
        last_used_at: None,
    }
}

async fn token(db: &Db, workspace: WorkspaceId, hash: &[u8], now: Timestamp) -> ApiToken {
    let token = new_token(made_in(workspace), now);
    commit!(db, |tx| api_tokens::insert(tx, &token, hash));
    token
}

#[tokio::test]
async fn an_account_is_found_by_its_id_and_by_its_folded_e_mail() {
    for t in &both().await {
        let (email, key) = ("Änne@Example.com", email_key(" Änne@Example.com "));
        let new = NewUser {
            id: UserId::generate(),
            email,
            email_key: &key,
            name: "Änne",
            password_hash: "$argon2id$",
            is_admin: true,
        };
        let added = commit!(t.db, |tx| accounts::insert(tx, &new, at(5)));
        assert_eq!((added.id, &*added.email, &*added.name), (new.id, email, "Änne"), "{}", t.name);
        assert_eq!((added.is_admin, added.token_version), (true, 0), "{}", t.name);
        assert_eq!(
            (added.created_at, added.updated_at, added.deleted_at),
            (at(5), at(5), None),
            "{}",
            t.name
        );

        let found = accounts::find(&t.db, new.id).await.unwrap().unwrap();
        assert_eq!(format!("{found:?}"), format!("{added:?}"), "{}", t.name);
        for credentials in [
            accounts::find_by_email(&t.db, &key).await.unwrap().unwrap(),
            accounts::find_credentials(&t.db, new.id).await.unwrap().unwrap(),
        ] {
            assert_eq!(credentials.password_hash, "$argon2id$", "{}", t.name);
            assert_eq!(format!("{:?}", credentials.user), format!("{added:?}"), "{}", t.name);
        }
        assert!(accounts::find_by_email(&t.db, email).await.unwrap().is_none(), "{}: not folded", t.name);
        let nobody = UserId::generate();
        assert!(accounts::find(&t.db, nobody).await.unwrap().is_none(), "{}", t.name);
        assert!(accounts::find_credentials(&t.db, nobody).await.unwrap().is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn an_e_mail_signs_up_once() {
    for t in &both().await {
        let mut new = NewUser {
            id: UserId::generate(),
            email: "A@example.com",
            email_key: "a@example.com",
            name: "first",
            password_hash: "hash",
            is_admin: false,
        };
        commit!(t.db, |tx| accounts::insert(tx, &new, at(0)));
        (new.id, new.email, new.name) = (UserId::generate(), "a@EXAMPLE.com", "second");
        let mut tx = t.db.begin().await.unwrap();
        let refused = accounts::insert(&mut tx, &new, at(0)).await;
        assert!(matches!(refused, Err(DbError::Duplicate)), "{}: {refused:?}", t.name);
        drop(tx);
        let found = accounts::find_by_email(&t.db, "a@example.com").await.unwrap().unwrap();
        assert_eq!(found.user.name, "first", "{}", t.name);
        assert!(accounts::find(&t.db, new.id).await.unwrap().is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn an_e_mail_is_changed_to_one_that_no_other_account_has() {
    for t in &both().await {
        let (id, other) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        for (email, now, changed_at) in
            [("New@example.com", 5, 5), ("New@example.com", 6, 5), ("new@example.com", 7, 7)]
        {
            let changed = commit!(t.db, |tx| accounts::set_email(tx, id, email, "new@example.com", at(now)));
            let changed = changed.unwrap();
            assert_eq!((&*changed.email, changed.updated_at), (email, at(changed_at)), "{}", t.name);
            assert_eq!(changed.token_version, 0, "{}: sign-ins go on", t.name);
        }
        let mut tx = t.db.begin().await.unwrap();
        let refused = accounts::set_email(&mut tx, other, "NEW@example.com", "new@example.com", at(8)).await;
        assert!(matches!(refused, Err(DbError::Duplicate)), "{}: {refused:?}", t.name);
        drop(tx);
        let found = accounts::find_by_email(&t.db, "new@example.com").await.unwrap().unwrap();
        assert_eq!(found.user.id, id, "{}", t.name);
    }
}

#[tokio::test]
async fn a_new_password_ends_sessions_and_a_new_name_does_not() {
    for t in &both().await {
        let (id, other) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        for (name, password, now, changed_at, expected) in [
            (None, None, 6, 0, ("someone", "hash", 0)),
            (Some("someone"), None, 7, 0, ("someone", "hash", 0)),
            (Some("new name"), None, 8, 8, ("new name", "hash", 0)),
            (Some("new name"), None, 9, 8, ("new name", "hash", 0)),
            (None, Some("new hash"), 10, 10, ("new name", "new hash", 1)),
            (Some("newest"), Some("newest hash"), 11, 11, ("newest", "newest hash", 2)),
        ] {
            let updated = commit!(t.db, |tx| accounts::update(tx, id, name, password, at(now))).unwrap();
            let stored = accounts::find_credentials(&t.db, id).await.unwrap().unwrap();
            let seen = (&*stored.user.name, &*stored.password_hash, stored.user.token_version);
            assert_eq!(seen, expected, "{}", t.name);
            assert_eq!(format!("{updated:?}"), format!("{:?}", stored.user), "{}", t.name);
            assert_eq!((updated.created_at, updated.updated_at), (at(0), at(changed_at)), "{}", t.name);
        }
        commit!(t.db, |tx| accounts::end_sessions(tx, id));
        assert_eq!(accounts::find(&t.db, id).await.unwrap().unwrap().token_version, 3, "{}", t.name);
        let untouched = accounts::find_credentials(&t.db, other).await.unwrap().unwrap();
        let seen = (&*untouched.user.name, &*untouched.password_hash, untouched.user.token_version);
        assert_eq!(seen, ("someone", "hash", 0), "{}", t.name);
        let nobody = commit!(t.db, |tx| accounts::update(tx, UserId::generate(), Some("x"), None, at(9)));
        assert!(nobody.is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn a_token_names_its_owner_until_it_is_deleted() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let token = token(&t.db, owner, b"\x00hash", at(3)).await;
        let found = api_tokens::find(&t.db, owner, token.id).await.unwrap().unwrap();
        assert_eq!(format!("{found:?}"), format!("{token:?}"), "{}", t.name);
        let holder = api_tokens::find_grant(&t.db, b"\x00hash", at(9)).await.unwrap().unwrap();
        assert_eq!(
            (holder.token_id, holder.user.id, holder.last_used_at),
            (token.id, account_of(owner), None),
            "{}",
            t.name
        );
        assert!(api_tokens::find_grant(&t.db, b"\x00has", at(9)).await.unwrap().is_none(), "{}", t.name);

        commit!(t.db, |tx| api_tokens::touch(tx, token.id, at(7)));
        let holder = api_tokens::find_grant(&t.db, b"\x00hash", at(9)).await.unwrap().unwrap();
        assert_eq!(holder.last_used_at, Some(at(7)), "{}", t.name);

        assert!(api_tokens::find(&t.db, other, token.id).await.unwrap().is_none(), "{}", t.name);
        assert!(commit!(t.db, |tx| api_tokens::delete(tx, other, token.id)).is_none(), "{}", t.name);
        let deleted = commit!(t.db, |tx| api_tokens::delete(tx, owner, token.id)).unwrap();
        assert_eq!((deleted.id, deleted.last_used_at), (token.id, Some(at(7))), "{}", t.name);
        assert!(commit!(t.db, |tx| api_tokens::delete(tx, owner, token.id)).is_none(), "{}", t.name);
        assert!(api_tokens::find_grant(&t.db, b"\x00hash", at(9)).await.unwrap().is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn tokens_are_listed_newest_first_page_by_page_to_their_owner() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let mut ids = Vec::new();
        for hash in [b"a", b"b", b"c"] {
            ids.push(token(&t.db, owner, hash, at(0)).await.id);
        }
        let end: ApiTokenId = uuid::Uuid::max().into();
        for (workspace, before, expected) in [
            (owner, end, vec![ids[2], ids[1]]),
            (owner, ids[1], vec![ids[0]]),
            (owner, ids[0], vec![]),
            (other, end, vec![]),
        ] {
            let page: Vec<_> = api_tokens::list(&t.db, workspace, "", before, 2)
                .await
                .unwrap()
                .iter()
                .map(|token| token.id)
                .collect();
            assert_eq!(page, expected, "{}", t.name);
        }
    }
}

#[tokio::test]
async fn a_deleted_account_is_gone_with_all_it_owns_and_no_other_account_is_touched() {
    for t in &both().await {
        let (gone, kept) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        let account = account_of(gone);
        let (document, generation) = published(&t.db, gone, "d", &["text"], at(1)).await;
        let (other, _) = published(&t.db, kept, "k", &["text"], at(1)).await;
        let running = claimed(&t.db, gone, "running", at(2)).await;
        token(&t.db, gone, b"hash", at(2)).await;
        let email = accounts::find(&t.db, account).await.unwrap().unwrap().email;

        commit!(t.db, |tx| accounts::delete(tx, account, at(3)));

        assert!(accounts::find(&t.db, account).await.unwrap().is_none(), "{}", t.name);
        assert!(accounts::find_by_email(&t.db, &email).await.unwrap().is_none(), "{}", t.name);
        assert!(api_tokens::find_grant(&t.db, b"hash", at(9)).await.unwrap().is_none(), "{}", t.name);
        assert!(documents::find(&t.db, gone, document).await.unwrap().is_none(), "{}", t.name);
        assert!(documents::active(&t.db, gone).await.unwrap().is_empty(), "{}", t.name);
        let new = generations::NewGeneration {
            id: lectern_shared::ids::GenerationId::generate(),
            space: None,
            stored_bytes: 0,
            engine: None,
        };
        let may_write = commit!(t.db, |tx| generations::begin(tx, &running, new, at(3)));
        assert!(!may_write, "{}: the running job was cancelled", t.name);
        assert!(!enqueue(&t.db, gone, document, at(4)).await, "{}: nothing more is queued", t.name);
        let purgeable: Vec<_> = generations::purgeable(&t.db, at(3), 10).await.unwrap();
        assert_eq!(purgeable.iter().map(|p| p.retired.id()).collect::<Vec<_>>(), [generation], "{}", t.name);

        assert_eq!(documents::active(&t.db, kept).await.unwrap().len(), 1, "{}", t.name);
        assert!(documents::find(&t.db, kept, other).await.unwrap().is_some(), "{}", t.name);
        let again = NewUser {
            id: UserId::generate(),
            email: &email,
            email_key: &email,
            name: "somebody else",
            password_hash: "hash",
            is_admin: false,
        };
        commit!(t.db, |tx| accounts::insert(tx, &again, at(5)));
    }
}

#[tokio::test]
async fn an_account_becomes_an_admin_and_an_ordinary_one_again() {
    for t in &both().await {
        let (ada, grace) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let is_admin = async |id| accounts::find(&t.db, id).await.unwrap().unwrap().is_admin;
        assert!(commit!(t.db, |tx| accounts::set_admin(tx, ada, true)).unwrap().is_admin, "{}", t.name);
        assert_eq!((is_admin(ada).await, is_admin(grace).await), (true, false), "{}", t.name);
        assert!(!commit!(t.db, |tx| accounts::set_admin(tx, ada, false)).unwrap().is_admin, "{}", t.name);
        assert!(!is_admin(ada).await, "{}", t.name);
        commit!(t.db, |tx| accounts::delete(tx, grace, at(1)));
        for nobody in [grace, UserId::generate()] {
            assert!(commit!(t.db, |tx| accounts::set_admin(tx, nobody, true)).is_none(), "{}", t.name);
        }
    }
}

#[tokio::test]
async fn a_sign_in_tells_whether_the_account_was_signed_in_to_from_there() {
    for t in &both().await {
        let (ada, grace) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        let seen = async |user: UserId, hash: &[u8]| {
            let email = format!("{user}@example.com");
            let found = accounts::find_for_sign_in(&t.db, &email, hash).await.unwrap().unwrap();
            assert_eq!(found.credentials.user.id, user, "{}", t.name);
            assert_eq!(found.credentials.password_hash, "hash", "{}", t.name);
            found.seen_there_at
        };
        assert_eq!(seen(ada, b"home").await, None, "{}", t.name);
        commit!(t.db, |tx| known_addresses::remember(tx, ada, b"home", at(1), 2));
        assert_eq!((seen(ada, b"home").await, seen(grace, b"home").await), (Some(at(1)), None), "{}", t.name);
        commit!(t.db, |tx| known_addresses::remember(tx, ada, b"work", at(2), 2));
        commit!(t.db, |tx| known_addresses::remember(tx, ada, b"home", at(3), 2));
        commit!(t.db, |tx| known_addresses::remember(tx, grace, b"home", at(3), 2));
        // Of more than are kept, the one that was not met for longest goes.
        commit!(t.db, |tx| known_addresses::remember(tx, ada, b"train", at(4), 2));
        assert_eq!(seen(ada, b"home").await, Some(at(3)), "{}", t.name);
        assert_eq!(seen(ada, b"train").await, Some(at(4)), "{}", t.name);
        assert_eq!(seen(ada, b"work").await, None, "{}", t.name);

        assert_eq!(commit!(t.db, |tx| known_addresses::expire(tx, at(4), 1)), 1, "{}", t.name);
        assert_eq!(commit!(t.db, |tx| known_addresses::expire(tx, at(4), 9)), 1, "{}", t.name);
        assert_eq!((seen(ada, b"home").await, seen(grace, b"home").await), (None, None), "{}", t.name);
        assert_eq!(seen(ada, b"train").await, Some(at(4)), "{}", t.name);
        assert!(accounts::find_for_sign_in(&t.db, "nobody", b"home").await.unwrap().is_none(), "{}", t.name);
    }
}

#[tokio::test]
async fn credentials_that_are_in_force_are_told_from_those_that_have_ended() {
    for t in &both().await {
        let (ada, gone) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        commit!(t.db, |tx| accounts::end_sessions(tx, ada));
        commit!(t.db, |tx| accounts::delete(tx, gone, at(1)));
        let nobody = UserId::generate();
        let own =
            AccountMembership { user_id: ada, token_version: 1, workspace_id: ada.into(), role: Role::Owner };
        let memberships =
            accounts::memberships(&t.db, &[ada, gone, nobody], &[ada, gone, nobody].map(WorkspaceId::from))
                .await
                .unwrap();
        assert_eq!(memberships, [own], "{}", t.name);

        let mut ids = Vec::new();
        for (user, hash) in [(ada, b"a"), (ada, b"b"), (gone, b"c")] {
            let token = new_token(made_in(user.into()), at(2));
            commit!(t.db, |tx| api_tokens::insert(tx, &token, hash));
            ids.push(token.id);
        }
        commit!(t.db, |tx| api_tokens::delete(tx, ada.into(), ids[1]));
        let in_force = api_tokens::in_force(&t.db, &ids, at(3)).await.unwrap();
        assert_eq!(in_force.iter().map(|found| found.id).collect::<Vec<_>>(), [ids[0]], "{}", t.name);
    }
}
