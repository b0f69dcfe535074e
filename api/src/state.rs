//! What handlers share.

use std::sync::Arc;

use axum::extract::FromRef;
use lectern_shared::{clock::Clock, db::Db, runtime::Runtime};

use crate::auth::{jwt::Jwt, password::Passwords, throttle::Throttle};

/// Everything that a handler may take a part of. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AppState {
    pub(crate) runtime: Runtime,
    pub(crate) jwt: Arc<Jwt>,
    pub(crate) passwords: Passwords,
    pub(crate) throttle: Arc<Throttle>,
}

impl AppState {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Self {
            jwt: Arc::new(Jwt::new(&runtime.keyring, runtime.settings.jwt_ttl)),
            passwords: Passwords::new(),
            throttle: Arc::new(Throttle::default()),
            runtime,
        }
    }
}

impl FromRef<AppState> for Runtime {
    fn from_ref(state: &AppState) -> Self {
        state.runtime.clone()
    }
}

impl FromRef<AppState> for Db {
    fn from_ref(state: &AppState) -> Self {
        state.runtime.db.clone()
    }
}

impl FromRef<AppState> for Clock {
    fn from_ref(state: &AppState) -> Self {
        state.runtime.clock.clone()
    }
}
