//! What questions have to know of an agent.

use lectern_shared::ids::DocumentId;

use super::{agent, link};
use crate::{
    agents::{self, KnownDocuments},
    documents,
    testing::{at, both, commit, document, workspace},
};

#[tokio::test]
async fn documents_that_are_known_are_read_again_once_an_agent_may_answer_from_others() {
    for t in &both().await {
        let workspace = workspace(&t.db, at(0)).await;
        let agent = agent(&t.db, workspace, at(0)).await;
        let [one, two] =
            [document(&t.db, workspace, "one", at(0)).await, document(&t.db, workspace, "two", at(0)).await];
        let first = link(&t.db, workspace, agent, one).await.unwrap();
        let brief = async |known: Option<&KnownDocuments>| {
            agents::brief(&t.db, workspace, agent, known).await.unwrap().unwrap()
        };
        let read = brief(None).await;
        assert_eq!(*read.links.documents, [one], "{}", t.name);
        // Something else than the database says tells what is given back from what is read.
        let made_up = DocumentId::generate();
        let known = |stamp| KnownDocuments { stamp, documents: [made_up].into() };
        let again = brief(Some(&known(read.stamp()))).await;
        assert_eq!((&*again.links.documents, again.stamp()), (&[made_up][..], read.stamp()), "{}", t.name);

        link(&t.db, workspace, agent, two).await.unwrap();
        let linked = brief(Some(&known(again.stamp()))).await;
        assert_eq!(*linked.links.documents, [one, two], "{}", t.name);
        commit!(t.db, |tx| agents::unlink(tx, workspace, first));
        let unlinked = brief(Some(&known(linked.stamp()))).await;
        assert_eq!(*unlinked.links.documents, [two], "{}", t.name);
        commit!(t.db, |tx| documents::delete(tx, workspace, two, at(1), at(1)));
        let deleted = brief(Some(&known(unlinked.stamp()))).await;
        assert_eq!(*deleted.links.documents, [], "{}", t.name);
    }
}
