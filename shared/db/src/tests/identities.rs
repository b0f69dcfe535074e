//! Accounts at other providers of identity.

use lectern_shared::ids::UserId;

use crate::{
    accounts, identities,
    testing::{at, both, commit, user},
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
