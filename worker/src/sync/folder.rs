//! The files of a folder that the operator has opened. Links are not followed, so that nothing leads out of it.

use std::{
    collections::HashSet,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

use lectern_shared::{
    compute::ComputeStopped,
    config::SyncSettings,
    model::sync::{FolderConfig, PathFilter},
};
use rustix::fs::{Mode, OFlags, open, openat};
use tokio_util::io::ReaderStream;

use super::{
    context::{Enumeration, SyncContext},
    failure::RunFailure,
    item::{FoundItem, ItemValidators, StagedFile, StagingFailure, is_unreadable},
    record::{ItemState, RunRecorder, document_name},
};

/// Folders within folders that are looked into.
const DEEPEST: usize = 64;

/// A file, as a folder lists it.
struct ListedFile {
    /// Its path within the folder.
    path: String,
    bytes: u64,
    /// It changes with the file.
    version: String,
}

/// The files of a folder.
struct FolderListing {
    files: Vec<ListedFile>,
    is_complete: bool,
}

/// Reads a folder.
pub(super) async fn read(
    context: &SyncContext<'_>,
    config: &FolderConfig,
    recorder: &mut RunRecorder<'_>,
) -> Result<Enumeration, RunFailure> {
    let (settings, wanted) = (context.runtime.settings.sync.clone(), config.path.clone());
    let (filter, most) = (config.filter.clone(), config.max_documents.min(settings.items) as usize);
    let listed = context.folders.run(move || {
        let root = opened(&settings, &wanted)?;
        let files = list(&root, &HiddenPlaces::of(&settings), &filter, most)
            .map_err(|error| RunFailure::stop(format!("The folder cannot be read: {}", error.kind())))?;
        Ok::<_, RunFailure>((root, files))
    });
    let (root, listing) =
        listed.await.map_err(|ComputeStopped| RunFailure::stop("The folder could not be read"))??;
    for file in &listing.files {
        look_at(context, &root, recorder, file).await?;
    }
    let reason = "The folder does not have it any more.";
    Ok(Enumeration { unseen: listing.is_complete.then_some(reason), validators: None })
}

async fn look_at(
    context: &SyncContext<'_>,
    root: &Path,
    recorder: &mut RunRecorder<'_>,
    file: &ListedFile,
) -> Result<(), RunFailure> {
    let key = file.path.as_str();
    let ItemState::Open(known) = recorder.look(key).await? else { return Ok(()) };
    if let Some(current) = recorder.current(known.as_ref())
        && (current.etag.as_ref() == Some(&file.version) || !current.is_alive)
    {
        return recorder.unchanged(current).await;
    }
    let most = context.runtime.settings.limits.source_bytes;
    if file.bytes > most {
        let reason = format!("It has {} bytes, and {most} may be read.", file.bytes);
        return recorder.failed(key, &reason, known.as_ref()).await;
    }
    let (from, path) = (root.to_owned(), file.path.clone());
    let opened = context.folders.run(move || open_within(&from, &path)).await;
    let opened = opened.map_err(|ComputeStopped| RunFailure::stop("A file could not be opened"))?;
    let staged = match opened {
        Ok(opened) => {
            use tokio::io::AsyncReadExt;
            // It may grow while it is read.
            let reader = tokio::fs::File::from_std(opened).take(most);
            StagedFile::of(ReaderStream::new(reader)).await
        }
        Err(error) => Err(StagingFailure::Source(error)),
    };
    let staged = match staged {
        Ok(staged) => staged,
        Err(StagingFailure::Source(error)) => {
            let reason = format!("It cannot be read: {}.", error.kind());
            return recorder.failed(key, &reason, known.as_ref()).await;
        }
        Err(StagingFailure::Here(failure)) => return Err(failure),
    };
    let item = FoundItem {
        key,
        name: document_name(Some(key), key),
        url: None,
        file_name: key.rsplit('/').next().map(str::to_owned),
        content_type: None,
        charset: None,
        staged,
        validators: ItemValidators { etag: Some(&file.version), ..ItemValidators::default() },
    };
    recorder.found(known, item).await
}

/// Folders and files that no source reads, by device and inode: so by whatever path or mount they are come upon.
struct HiddenPlaces(HashSet<(u64, u64)>);

impl HiddenPlaces {
    fn of(settings: &SyncSettings) -> Self {
        let places = settings.hidden.iter().filter_map(|path| fs::metadata(path).ok());
        Self(places.map(|place| (place.dev(), place.ino())).collect())
    }

    fn has(&self, metadata: &fs::Metadata) -> bool {
        self.0.contains(&(metadata.dev(), metadata.ino()))
    }
}

/// The folder as it really is, if it is within one that the operator has opened, and not within what is hidden.
fn opened(settings: &SyncSettings, wanted: &str) -> Result<PathBuf, RunFailure> {
    let missing = |_| RunFailure::stop("There is no such folder where the worker runs");
    let wanted = fs::canonicalize(wanted).map_err(missing)?;
    let is_open = settings
        .folders
        .iter()
        .filter_map(|folder| fs::canonicalize(folder).ok())
        .any(|folder| wanted.starts_with(folder));
    let hidden = HiddenPlaces::of(settings);
    let is_hidden =
        wanted.ancestors().any(|folder| fs::metadata(folder).is_ok_and(|metadata| hidden.has(&metadata)));
    match (is_open, is_hidden) {
        (true, false) => Ok(wanted),
        (true, true) => Err(RunFailure::stop(
            "The service keeps its own files in this folder, which no source reads. The operator can move yours out of it",
        )),
        (false, _) => Err(RunFailure::stop("The operator has not opened this folder")),
    }
}

/// The files of a folder and those below it that pass a filter and are not hidden, in the order of their paths.
fn list(root: &Path, hidden: &HiddenPlaces, filter: &PathFilter, most: usize) -> io::Result<FolderListing> {
    let mut listing = FolderListing { files: Vec::new(), is_complete: true };
    let mut folders = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let mut entries = fs::read_dir(&folder)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries.into_iter().rev() {
            // Of a link itself, not of what it leads to.
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if hidden.has(&metadata) {
                continue;
            }
            let path = entry.path();
            if metadata.is_dir() && depth < DEEPEST {
                folders.push((path, depth + 1));
                continue;
            }
            let within = path.strip_prefix(root).ok().and_then(Path::to_str);
            let Some(within) = within.filter(|_| metadata.is_file()) else { continue };
            if is_unreadable(within) || !filter.admits(within) {
                continue;
            }
            if listing.files.len() >= most {
                listing.is_complete = false;
                return Ok(listing);
            }
            listing.files.push(ListedFile {
                path: within.to_owned(),
                bytes: metadata.len(),
                version: format!("{}.{} {}", metadata.mtime(), metadata.mtime_nsec(), metadata.len()),
            });
        }
    }
    listing.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(listing)
}

/// Opens a file below a folder, whatever has become of what is between: no link is followed, and nothing that is no file is waited for.
fn open_within(root: &Path, path: &str) -> io::Result<fs::File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut folder = open(root, flags | OFlags::DIRECTORY, Mode::empty())?;
    let path = Path::new(path);
    for part in path.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(part) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
        folder = openat(&folder, part, flags | OFlags::DIRECTORY, Mode::empty())?;
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let file = fs::File::from(openat(&folder, name, flags | OFlags::NONBLOCK, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, os::unix::fs::symlink, time::Duration};

    use super::*;

    fn settings(folder: &Path, hidden: Vec<PathBuf>) -> SyncSettings {
        SyncSettings { folders: vec![folder.to_owned()], hidden, runs: 1, pause: Duration::ZERO, items: 10 }
    }

    #[test]
    fn what_the_service_keeps_is_not_read_in_a_folder_that_has_it() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        fs::create_dir_all(data.join("blobs")).unwrap();
        for file in ["data/secret.key", "data/blobs/one.txt", "lectern.toml", "open.txt"] {
            fs::write(root.path().join(file), file).unwrap();
        }
        let config = root.path().join("lectern.toml");
        fs::hard_link(&config, root.path().join("linked.toml")).unwrap();
        let settings = settings(root.path(), vec![data.clone(), config]);
        let hidden = HiddenPlaces::of(&settings);
        let listing = list(root.path(), &hidden, &PathFilter::default(), 10).unwrap();
        let paths: Vec<_> = listing.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["open.txt"]);
        let is_open = |path: &Path| opened(&settings, path.to_str().unwrap()).is_ok();
        assert!(is_open(root.path()) && !is_open(&data) && !is_open(&data.join("blobs")));
    }

    #[test]
    fn nothing_leads_out_of_a_folder() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret.txt"), "secret").unwrap();
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("a")).unwrap();
        fs::write(root.path().join("a/one.txt"), "one").unwrap();
        symlink(outside.path(), root.path().join("link")).unwrap();
        symlink(outside.path().join("secret.txt"), root.path().join("secret.txt")).unwrap();

        let nothing = HiddenPlaces(HashSet::new());
        let listing = list(root.path(), &nothing, &PathFilter::default(), 10).unwrap();
        let paths: Vec<_> = listing.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!((paths, listing.is_complete), (vec!["a/one.txt"], true));
        let mut text = String::new();
        open_within(root.path(), "a/one.txt").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "one");
        for path in ["link/secret.txt", "secret.txt", "../x", "a", "a/../a/one.txt", "/etc/passwd"] {
            assert!(open_within(root.path(), path).is_err(), "{path}");
        }
    }

    #[test]
    fn only_what_the_operator_has_opened_is_read() {
        let (open, shut) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(open.path().join("docs")).unwrap();
        symlink(shut.path(), open.path().join("link")).unwrap();
        let settings = settings(open.path(), Vec::new());
        let is_open = |path: &Path| opened(&settings, path.to_str().unwrap()).is_ok();
        assert!(is_open(open.path()) && is_open(&open.path().join("docs")));
        assert!(!is_open(shut.path()) && !is_open(&open.path().join("link")));
        assert!(!is_open(&open.path().join("docs/../..")) && !is_open(&open.path().join("none")));
    }

    #[test]
    fn a_folder_with_too_many_files_is_not_whole() {
        let root = tempfile::tempdir().unwrap();
        for name in ["1.txt", "2.txt", "3.txt", "4.png"] {
            fs::write(root.path().join(name), name).unwrap();
        }
        let count = |most| {
            let nothing = HiddenPlaces(HashSet::new());
            let listing = list(root.path(), &nothing, &PathFilter::default(), most).unwrap();
            (listing.files.len(), listing.is_complete)
        };
        assert_eq!((count(2), count(3)), ((2, false), (3, true)));
    }
}
