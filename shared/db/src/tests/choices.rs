//! What is chosen by its name.

use lectern_shared::{
    ids::PromptId,
    model::{Json, prompt::Prompt},
};

use super::collections::collection;
use crate::{
    choices, prompts,
    testing::{at, both, commit, made_in, workspace},
};

#[tokio::test]
async fn the_newest_of_a_workspace_are_offered_and_all_of_it_are_counted() {
    for t in &both().await {
        let db = &t.db;
        let (ours, theirs) = (workspace(db, at(0)).await, workspace(db, at(0)).await);
        let older = collection(db, made_in(ours), "Fräe").await;
        let newer = collection(db, made_in(ours), "Shelf").await;
        collection(db, made_in(theirs), "Shelf").await;
        let offered = async |name: &str, limit| {
            let offered = choices::collections(db, ours, name, limit).await.unwrap();
            (offered.newest.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), offered.count)
        };
        assert_eq!(offered("", 10).await, (vec![newer, older], 2), "{}", t.name);
        assert_eq!(offered("", 1).await, (vec![newer], 2), "{}", t.name);
        assert_eq!(offered("RÄ", 10).await, (vec![older], 1), "{}", t.name);
        assert_eq!(offered("_", 10).await, (Vec::new(), 0), "{}", t.name);

        let prompt = Prompt {
            id: PromptId::generate(),
            owner: made_in(ours),
            name: "Brief".to_owned(),
            template: "Be brief.".to_owned(),
            input_variables: Json(Vec::new()),
            created_at: at(0),
            updated_at: at(0),
        };
        commit!(db, |tx| prompts::insert(tx, &prompt));
        let offered = choices::prompts(db, ours, "brief", 10).await.unwrap();
        assert_eq!((offered.newest, offered.count), (vec![(prompt.id, prompt.name)], 1), "{}", t.name);
        assert_eq!(choices::prompts(db, theirs, "", 10).await.unwrap().count, 0, "{}", t.name);
    }
}
