//! Links that are made while something else becomes of them or of their agent.

use super::{agent, end, link, version};
use crate::{
    agents,
    testing::{at, both, document, finished_or_blocked, workspace},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_link_that_goes_while_it_is_made_again_is_there_again() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let (agent, document) =
            (agent(&t.db, workspace, at(0)).await, document(&t.db, workspace, "one", at(0)).await);
        let former = link(&t.db, workspace, agent, document).await.unwrap();
        let mut first = t.db.begin().await.unwrap();
        assert!(agents::unlink(&mut first, workspace, former).await.unwrap(), "{}", t.name);
        let db = t.db.clone();
        let second = tokio::spawn(async move { link(&db, workspace, agent, document).await });
        finished_or_blocked(&t.db, &second).await;
        first.commit().await.unwrap();
        let made = second.await.unwrap().unwrap();
        assert_ne!(made, former, "{}: the old link is gone", t.name);
        let links = agents::list_links(&t.db, workspace, Some(agent), end(), 10).await.unwrap();
        assert_eq!(links.iter().map(|link| link.id).collect::<Vec<_>>(), [made], "{}", t.name);
        assert_eq!(version(&t.db, agent).await, 4, "{}: none of the three changes is lost", t.name);
    }
}
