//! Landlock: which files, sockets and processes can be reached at all.

use std::{
    io,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::{AccessGrant, RUN_FOLDER};

/// The newest version whose rights are asked for. A kernel that knows fewer of them gives those that it knows.
const NEWEST: ABI = ABI::V9;

/// Takes every file, every TCP port, and every process outside from this thread and those that it starts. What is open
/// stays open. Whether the kernel does it.
pub(super) fn close() -> io::Result<bool> {
    let closed = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(NEWEST)))
        .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .and_then(RulesetCreated::restrict_self);
    stands(closed)
}

/// Takes only what is hidden, the folders of other runs, and the memory and the environment of every process outside. Whether
/// the kernel does it.
pub(super) fn hide(grant: &AccessGrant) -> io::Result<bool> {
    let own = grant.folder.canonicalize()?;
    let mut hidden: Vec<PathBuf> = grant.hidden.iter().filter_map(|path| path.canonicalize().ok()).collect();
    // It is given by itself. Were it not hidden, the folder of all temporary files would be given, and with it the others.
    hidden.push(own.clone());
    let mut shown = vec![own];
    show_all_but(Path::new("/"), &hidden, &mut shown);
    let all = AccessFs::from_all(NEWEST);
    let mut rules = Ruleset::default().handle_access(all).and_then(|rules| rules.scope(Scope::Signal));
    if !grant.network {
        rules = rules
            .and_then(|rules| rules.handle_access(AccessNet::from_all(NEWEST)))
            .and_then(|rules| rules.scope(Scope::AbstractUnixSocket));
    }
    let closed = rules
        .and_then(Ruleset::create)
        .and_then(|rules| rules.add_rules(path_beneath_rules(shown, all)))
        .and_then(RulesetCreated::restrict_self);
    stands(closed)
}

/// Everything under `folder` that neither is hidden nor holds something hidden, but for the folders of runs. Landlock can only
/// give: to keep one folder back, all those beside the way to it have to be given.
fn show_all_but(folder: &Path, hidden: &[PathBuf], shown: &mut Vec<PathBuf>) {
    // What cannot be listed here could hardly be read there.
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        // What a link leads to is given or kept back by its own name; by the link's it could be given all the same.
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        // By the name and not from a list: one may be made right now.
        let is_of_a_run = entry.file_name().as_encoded_bytes().starts_with(RUN_FOLDER.as_bytes());
        if is_link || is_of_a_run || hidden.contains(&path) {
            continue;
        }
        if hidden.iter().any(|hidden| hidden.starts_with(&path)) {
            show_all_but(&path, hidden, shown);
        } else {
            shown.push(path);
        }
    }
}

fn stands(closed: Result<RestrictionStatus, RulesetError>) -> io::Result<bool> {
    Ok(closed.map_err(io::Error::other)?.ruleset != RulesetStatus::NotEnforced)
}
