//! Invitations to workspaces.

use lectern_shared::{
    ids::{InvitationId, UserId, WorkspaceId},
    model::workspace::{Invitation, Role},
};
use uuid::Uuid;

use super::{put, shared};
use crate::{
    Db, audit,
    testing::{at, both, commit, user},
    workspaces::invitations,
};

/// An invitation that ends at 10 seconds.
pub(super) async fn invite(db: &Db, workspace: WorkspaceId, email: Option<&str>, token: &[u8]) -> Invitation {
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
        for (token, email, now, is_told) in [
            (&b"open"[..], "anybody@example.com", 9, true),
            (b"open", "anybody@example.com", 10, false),
            (b"ope", "ada@example.com", 2, false),
            (b"named", "ada@example.com", 2, true),
            (b"named", "grace@example.com", 2, false),
        ] {
            let told = invitations::offer(&t.db, token, email, at(now)).await.unwrap();
            let told = told.map(|offer| (offer.role, offer.inviter, offer.expires_at));
            // Whoever has invited is nobody here, which leaves a name out.
            let expected = is_told.then(|| (Role::Editor, String::new(), at(10)));
            assert_eq!(told, expected, "{}: {email}", t.name);
        }
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
async fn an_invitation_is_called_by_whom_it_is_for_as_long_as_it_is_there() {
    for t in &both().await {
        let (workspace, other) = (shared(&t.db, &[]).await, shared(&t.db, &[]).await);
        let named = invite(&t.db, workspace, Some("ada@example.com"), b"named").await.id;
        let open = invite(&t.db, workspace, None, b"open").await.id;
        let ids = [named, open].map(|id| *id.as_uuid());
        let names = async |workspace| audit::names(&t.db, workspace, "invitation", &ids).await.unwrap();
        assert_eq!(names(workspace).await, [(ids[0], "ada@example.com".to_owned())], "{}", t.name);
        assert_eq!(names(other).await, [], "{}: it is another's", t.name);
        assert!(commit!(t.db, |tx| invitations::delete(tx, workspace, named)), "{}", t.name);
        assert_eq!(names(workspace).await, [], "{}: it was withdrawn", t.name);
    }
}
