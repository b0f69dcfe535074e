//! Accounts at other providers of identity.

use lectern_shared::ids::UserId;

use crate::{
    accounts, identities,
    testing::{at, both, commit, finished_or_blocked, user},
};

#[tokio::test]
async fn somebody_at_a_provider_is_the_account_that_was_linked_as_long_as_there_is_one() {
    const HERE: &str = "https://login.example.com";
    for t in &both().await {
        let find = async |issuer: &str, subject: &str| {
            let found = identities::find_user(&t.db, issuer, subject).await.unwrap();
            found.map(|user| user.id)
        };
        let (ada, grace) = (user(&t.db, at(0)).await, user(&t.db, at(0)).await);
        assert_eq!(find(HERE, "ada").await, None::<UserId>, "{}", t.name);
        commit!(t.db, |tx| identities::link(tx, HERE, "ada", ada, at(1)));
        commit!(t.db, |tx| identities::link(tx, HERE, "grace", grace, at(1)));
        // The same name is somebody else's elsewhere, and in other letters.
        commit!(t.db, |tx| identities::link(tx, "https://other.example.com", "ada", grace, at(1)));
        assert_eq!(find(HERE, "ada").await, Some(ada), "{}", t.name);
        assert_eq!(find("https://other.example.com", "ada").await, Some(grace), "{}", t.name);
        assert_eq!(find(HERE, "Ada").await, None, "{}", t.name);

        commit!(t.db, |tx| accounts::close(tx, ada, at(2)));
        assert_eq!(find(HERE, "ada").await, None, "{}: the account has ended", t.name);
        let again = user(&t.db, at(3)).await;
        commit!(t.db, |tx| identities::link(tx, HERE, "ada", again, at(3)));
        commit!(t.db, |tx| accounts::delete(tx, ada, at(4)));
        assert_eq!(find(HERE, "ada").await, Some(again), "{}: a new account has its place", t.name);
        assert_eq!(find(HERE, "grace").await, Some(grace), "{}", t.name);
    }
}

#[tokio::test]
async fn an_account_is_one_persons_at_a_provider_until_it_is_unlinked() {
    const HERE: &str = "https://login.example.com";
    for t in &both().await {
        let ada = user(&t.db, at(0)).await;
        let mut first = t.db.begin().await.unwrap();
        assert!(identities::link_unless_taken(&mut first, HERE, "a", ada, at(1)).await.unwrap());
        let db = t.db.clone();
        let second = tokio::spawn(async move {
            commit!(db, |tx| identities::link_unless_taken(tx, HERE, "b", ada, at(1)))
        });
        finished_or_blocked(&t.db, &second).await;
        first.commit().await.unwrap();
        assert!(!second.await.unwrap(), "{}: the first has it", t.name);
        assert!(commit!(t.db, |tx| identities::link_unless_taken(
            tx,
            "https://other.example.com",
            "b",
            ada,
            at(1)
        )));

        assert_eq!(commit!(t.db, |tx| identities::unlink(tx, ada)), 2, "{}", t.name);
        assert!(commit!(t.db, |tx| identities::link_unless_taken(tx, HERE, "b", ada, at(2))), "{}", t.name);
    }
}
