//! The Qdrant server of `TEST_QDRANT_URL`, when there is one.

use std::path::Path;

use qdrant_client::{
    Qdrant,
    qdrant::{CountPointsBuilder, DeletePointsBuilder, Filter},
};

use super::{proxy::Proxy, service::Service, setup::Setup};

/// A Qdrant server that is there already; what an installation keeps on it is removed with this value.
pub struct QdrantServer {
    url: String,
    key: Option<String>,
}

impl QdrantServer {
    /// The server, or, when none was named, nothing and a loud word.
    pub fn named() -> Option<Self> {
        match std::env::var("TEST_QDRANT_URL") {
            Ok(url) if !url.is_empty() => Some(Self { url, key: std::env::var("TEST_QDRANT_API_KEY").ok() }),
            _ => {
                eprintln!("NOT TESTED: this test needs a Qdrant server, and TEST_QDRANT_URL names none");
                None
            }
        }
    }

    /// Its address, `http://host:6334`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A proxy in front of it, and the address by way of that.
    pub async fn behind_a_proxy(&self) -> (Proxy, String) {
        Proxy::in_front_of(&self.url, 6334).await
    }

    /// Lets a service use it, by way of `url`.
    pub fn used_by(&self, setup: Setup, url: &str) -> Setup {
        let setup = setup.env("QDRANT_URL", url);
        match &self.key {
            Some(key) => setup.env("QDRANT_API_KEY", key),
            None => setup,
        }
    }

    /// How many points it holds of this service, in all collections.
    pub async fn points(&self, service: &Service) -> u64 {
        let client = self.client();
        let mut points = 0;
        for collection in self.collections(&client, service.data_dir()).await {
            let request = CountPointsBuilder::new(collection).exact(true);
            points += client.count(request).await.expect("it counts").result.map_or(0, |result| result.count);
        }
        points
    }

    /// Removes every point of this service, and leaves the collections.
    pub async fn remove_points(&self, service: &Service) {
        let client = self.client();
        for collection in self.collections(&client, service.data_dir()).await {
            let request = DeletePointsBuilder::new(collection).points(Filter::default()).wait(true);
            client.delete_points(request).await.expect("points can be removed");
        }
    }

    /// Removes everything of this service.
    pub async fn forget(&self, service: &Service) {
        let client = self.client();
        for collection in self.collections(&client, service.data_dir()).await {
            client.delete_collection(collection).await.expect("a collection can be deleted");
        }
    }

    fn client(&self) -> Qdrant {
        let client = Qdrant::from_url(&self.url).skip_compatibility_check().api_key(self.key.clone());
        client.build().expect("an address")
    }

    /// The collections carry the installation's id, which the marker of its blobs begins with.
    async fn collections(&self, client: &Qdrant, data_dir: &Path) -> Vec<String> {
        let mark = std::fs::read_to_string(data_dir.join("blobs/instance")).expect("a marker");
        let instance = mark.split('.').next().unwrap_or_default().replace('-', "");
        let all = client.list_collections().await.expect("it lists").collections;
        all.into_iter().map(|collection| collection.name).filter(|name| name.contains(&instance)).collect()
    }
}
