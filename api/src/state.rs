//! What handlers share.

use std::{num::NonZeroUsize, sync::Arc};

use axum::extract::FromRef;
use lectern_shared::{
    clock::{Clock, Timestamp},
    db::Db,
    ids::ApiTokenId,
    runtime::Runtime,
};
use lru::LruCache;
use parking_lot::Mutex;

use crate::{
    auth::{in_force::InForce, jwt::Jwt, password::Passwords, throttle::Throttle},
    body::Bodies,
    tools::Toolbox,
    upload_slots::UploadSlots,
};

/// Everything that a handler may take a part of. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AppState {
    pub(crate) runtime: Runtime,
    pub(crate) jwt: Arc<Jwt>,
    pub(crate) passwords: Passwords,
    pub(crate) throttle: Throttle,
    /// By what answers that go on for long were opened.
    pub(crate) in_force: InForce,
    /// Opens agents' tools.
    pub(crate) toolbox: Toolbox,
    /// The memory for bodies.
    pub(crate) bodies: Bodies,
    /// The turns of uploads.
    pub(crate) uploads: UploadSlots,
    /// When this process last noted the use of an API token.
    pub(crate) touched: Arc<Mutex<LruCache<ApiTokenId, Timestamp>>>,
}

/// API tokens whose last use is remembered.
const TOUCHED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);

impl AppState {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Self {
            jwt: Arc::new(Jwt::new(&runtime.keyring, runtime.settings.jwt_ttl)),
            passwords: Passwords::new(),
            throttle: Throttle::new(runtime.limits.clone()),
            in_force: InForce::new(runtime.db.clone(), runtime.clock.clone()),
            toolbox: Toolbox::new(&runtime),
            bodies: Bodies::new(&runtime.settings.limits),
            uploads: UploadSlots::new(runtime.settings.limits.uploads),
            touched: Arc::new(Mutex::new(LruCache::new(TOUCHED))),
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

impl FromRef<AppState> for Bodies {
    fn from_ref(state: &AppState) -> Self {
        state.bodies.clone()
    }
}

impl FromRef<AppState> for UploadSlots {
    fn from_ref(state: &AppState) -> Self {
        state.uploads.clone()
    }
}

impl FromRef<AppState> for Toolbox {
    fn from_ref(state: &AppState) -> Self {
        state.toolbox.clone()
    }
}
