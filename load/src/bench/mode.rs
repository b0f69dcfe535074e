//! One of the two ways to run the service.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{BenchError, BenchRun, RunDatabases, ServiceSetup, machine};

/// A mode of the service, with its programs.
pub(crate) struct ServiceMode<'a> {
    /// `embedded` or `cluster`.
    pub(crate) title: &'static str,
    run: &'a BenchRun<'a>,
    programs: Vec<PathBuf>,
    /// The server of a cluster's databases.
    databases: Option<&'a RunDatabases>,
    /// The folder of the embedding model, if one is used.
    pub(crate) model: Option<PathBuf>,
}

impl<'a> ServiceMode<'a> {
    /// The mode of these programs. The first of them answers requests; of several, all are a cluster.
    pub(super) fn new(
        run: &'a BenchRun<'a>,
        title: &'static str,
        names: &[&str],
    ) -> Result<Self, BenchError> {
        // They run in a folder of their own, where a relative path would mean something else.
        let folder = fs::canonicalize(&run.args.programs)
            .map_err(|error| BenchError::Program { path: run.args.programs.clone(), error })?;
        let programs: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        for path in &programs {
            fs::metadata(path).map_err(|error| BenchError::Program { path: path.clone(), error })?;
        }
        let databases = run.databases.as_ref().filter(|_| names.len() > 1);
        let model = run.args.model_dir.as_deref().map(fs::canonicalize).transpose()?;
        Ok(Self { title, run, programs, databases, model })
    }

    /// The size of each program in bytes, with its name.
    pub(crate) fn sizes(&self) -> Result<Vec<(String, u64)>, BenchError> {
        let size = |path: &PathBuf| Ok((name_of(path), fs::metadata(path)?.len()));
        self.programs.iter().map(size).collect()
    }

    /// A service with nothing in it.
    pub(crate) async fn fresh(&self) -> Result<ServiceSetup, BenchError> {
        // It goes with the folder that it is in, unless somebody has to look at it.
        let folder = tempfile::Builder::new().prefix("service-").tempdir_in(self.run.folder())?.keep();
        let setup = ServiceSetup { programs: self.programs.clone(), folder, database: None, env: Vec::new() };
        let mut setup = setup
            .with("LECTERN_RATE_LIMIT", "off")
            .with("LECTERN_SIGN_UP", "open")
            .with("LECTERN_EGRESS_ALLOW", "127.0.0.1/32");
        for (name, value) in &self.run.args.settings {
            setup = setup.with(name, value);
        }
        if let (Some(databases), Some(redis)) = (self.databases, &self.run.args.redis_url) {
            let database = databases.fresh().await?;
            setup = setup
                .with("DATABASE_URL", database.as_str())
                .with("REDIS_URL", redis.as_str())
                .with("LECTERN_SECRET_KEY", "a key for nothing but measurements");
            setup.database = Some(database);
            if let Some(qdrant) = &self.run.args.qdrant_url {
                setup = setup.with("QDRANT_URL", qdrant.as_str());
            }
        }
        Ok(setup)
    }

    /// What a service takes on the disk, in bytes: its data directory, and its database. An index in Qdrant is not in it.
    pub(crate) async fn disk(&self, setup: &ServiceSetup) -> Result<Vec<(String, u64)>, BenchError> {
        let mut sizes = vec![("files".to_owned(), machine::allocated(&setup.data())?)];
        if let (Some(databases), Some(database)) = (self.databases, &setup.database) {
            sizes.push(("database".to_owned(), databases.size(database).await?));
        }
        Ok(sizes)
    }

    /// Removes what a stopped service has kept.
    pub(crate) async fn remove(&self, setup: &ServiceSetup) -> Result<(), BenchError> {
        fs::remove_dir_all(&setup.folder)?;
        match self.databases {
            // Each service has its own, and only one runs at a time.
            Some(databases) => databases.drop_all().await,
            None => Ok(()),
        }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
