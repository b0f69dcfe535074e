//! The files of a folder that the operator has opened. Links are not followed, so that nothing leads out of it.

use std::{
    collections::HashSet,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

use lectern_db::sync::items;
use lectern_shared::{
    compute::ComputeStopped,
    config::SyncSettings,
    model::sync::{FolderConfig, PathFilter},
};
use rustix::fs::{Mode, OFlags, open, openat};
use tokio_util::io::ReaderStream;

use super::{
    bucket::most_objects,
    context::{Enumeration, SyncContext},
    failure::RunFailure,
    item::{FoundItem, ItemValidators, StagedFile, StagingFailure, is_unreadable},
    record::{ItemState, RunRecorder, document_name},
    vanished::MoveRule,
};

/// Folders within folders that are looked into.
const DEEPEST: usize = 64;

/// Things of one folder of which it is said that they are left out.
const MOST_NAMED: usize = 1_000;

/// Why something in a folder becomes no document.
const HIDDEN: &str =
    "Hidden files and folders, and the locks of editors, are left out, unless include names them.";
const LINK: &str = "It is a link, which is not followed.";
const NO_FILE: &str = "It is no file.";
const NO_TEXT: &str = "Its name is not UTF-8.";
const TOO_DEEP: &str = "It lies too deep in the folder.";

/// A file, as a folder lists it.
struct ListedFile {
    /// Its path within the folder.
    path: String,
    bytes: u64,
    /// It changes with the file.
    version: String,
}

/// The files of a folder.
#[derive(Default)]
struct FolderListing {
    files: Vec<ListedFile>,
    /// New files that are not listed, since there are so many.
    left_out: u64,
    /// What is no file to be read, and why.
    skipped: Vec<(String, &'static str)>,
    /// Whether there was more to look at.
    is_cut_off: bool,
}

/// Reads a folder.
pub(super) async fn read(
    context: &SyncContext<'_>,
    config: &FolderConfig,
    recorder: &mut RunRecorder<'_>,
) -> Result<Enumeration, RunFailure> {
    let (settings, wanted) = (context.runtime.settings.sync.clone(), config.path.clone());
    let (filter, most) = (config.filter.clone(), recorder.most());
    let known: HashSet<String> =
        items::keys(&context.runtime.db, context.source.id).await?.into_iter().collect();
    // Of a folder that was read before.
    let hidden_by_now: Vec<String> = known.iter().filter(|key| filter.hides(key)).cloned().collect();
    let listed = context.folders.run(move || {
        let root = opened(&settings, &wanted)?;
        let search = FolderSearch {
            root: &root,
            hidden: &HiddenPlaces::of(&settings),
            filter: &filter,
            known: &known,
            most: most as usize,
            most_entries: most_objects(most),
        };
        let listing = search
            .list()
            .map_err(|error| RunFailure::stop(format!("The folder cannot be read: {}", error.kind())))?;
        Ok::<_, RunFailure>((root, listing, known))
    });
    let (root, listing, known) =
        listed.await.map_err(|ComputeStopped| RunFailure::stop("The folder could not be read"))??;
    // What is not listed may be there for all that, where not everything is.
    if !listing.is_cut_off {
        recorder.vanish(missing(known, &listing.files)).await?;
    }
    for file in &listing.files {
        look_at(context, &root, recorder, file).await?;
    }
    recorder.left_out += listing.left_out;
    let hidden_by_now = hidden_by_now.into_iter().map(|key| (key, HIDDEN));
    for (key, reason) in listing.skipped.into_iter().chain(hidden_by_now) {
        recorder.skip(&key, reason).await?;
    }
    let reason = "The folder does not have it any more.";
    let is_complete = !listing.is_cut_off;
    Ok(Enumeration { unseen: is_complete.then_some(reason), is_complete, validators: None })
}

/// What is known of a folder that does not list it, if there is something new that it may be.
fn missing(mut known: HashSet<String>, files: &[ListedFile]) -> Vec<String> {
    let mut has_new = false;
    for file in files {
        has_new |= !known.remove(&file.path);
    }
    if has_new { known.into_iter().collect() } else { Vec::new() }
}

async fn look_at(
    context: &SyncContext<'_>,
    root: &Path,
    recorder: &mut RunRecorder<'_>,
    file: &ListedFile,
) -> Result<(), RunFailure> {
    let key = file.path.as_str();
    let ItemState::Open(known) = recorder.look(key, Some(file.bytes)).await? else { return Ok(()) };
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
        moves: MoveRule::Likest,
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

/// A search for the files of a folder and those below it that pass a filter and are not hidden.
struct FolderSearch<'s> {
    root: &'s Path,
    hidden: &'s HiddenPlaces,
    filter: &'s PathFilter,
    /// Of what there are documents: it is listed however much else there is.
    known: &'s HashSet<String>,
    /// New files that are listed, at most, besides as many as are known: each of these may be one of them, moved.
    most: usize,
    /// What is looked at, at most.
    most_entries: u64,
}

impl FolderSearch<'_> {
    /// The files, in the order of their paths.
    fn list(&self) -> io::Result<FolderListing> {
        let mut listing = FolderListing::default();
        let mut folders = vec![(self.root.to_owned(), 0)];
        let (mut looked_at, mut new) = (0, 0);
        let most_new = self.most.saturating_add(self.known.len());
        while let Some((folder, depth)) = folders.pop() {
            // One more than is looked at, which tells that there are more.
            let most = self.most_entries.saturating_sub(looked_at).saturating_add(1);
            let entries = first_entries(&folder, usize::try_from(most).unwrap_or(usize::MAX))?;
            let mut below = Vec::new();
            for entry in entries {
                looked_at += 1;
                if looked_at > self.most_entries {
                    listing.is_cut_off = true;
                    listing.files.sort_by(|a, b| a.path.cmp(&b.path));
                    return Ok(listing);
                }
                match self.look(&entry, depth)? {
                    FoundEntry::Folder => below.push((entry.path(), depth + 1)),
                    FoundEntry::File(file) if self.known.contains(&file.path) => listing.files.push(file),
                    FoundEntry::File(_) if new >= most_new => listing.left_out += 1,
                    FoundEntry::File(file) => {
                        new += 1;
                        listing.files.push(file);
                    }
                    FoundEntry::Skipped(path, why) if listing.skipped.len() < MOST_NAMED => {
                        listing.skipped.push((path, why));
                    }
                    FoundEntry::Skipped(..) | FoundEntry::Nothing => {}
                }
            }
            folders.extend(below.into_iter().rev());
        }
        listing.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listing)
    }

    /// What something in a folder is that is so deep below the first one.
    fn look(&self, entry: &fs::DirEntry, depth: usize) -> io::Result<FoundEntry> {
        // Of a link itself, not of what it leads to.
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FoundEntry::Nothing),
            Err(error) => return Err(error),
        };
        if self.hidden.has(&metadata) {
            return Ok(FoundEntry::Nothing);
        }
        let path = entry.path();
        let Ok(within) = path.strip_prefix(self.root) else { return Ok(FoundEntry::Nothing) };
        let Some(within) = within.to_str() else {
            return Ok(self.skipped(&within.to_string_lossy(), NO_TEXT));
        };
        let name = within.rsplit('/').next().unwrap_or(within);
        Ok(if metadata.is_dir() {
            match (self.filter.hides_folder(name), depth < DEEPEST) {
                (true, _) => self.skipped(within, HIDDEN),
                (false, false) => self.skipped(within, TOO_DEEP),
                (false, true) => FoundEntry::Folder,
            }
        } else if self.filter.hides(within) {
            self.skipped(within, HIDDEN)
        } else if is_unreadable(within) {
            FoundEntry::Nothing
        } else if metadata.is_symlink() {
            self.skipped(within, LINK)
        } else if !metadata.is_file() {
            self.skipped(within, NO_FILE)
        } else if self.filter.admits(within) {
            FoundEntry::File(ListedFile {
                path: within.to_owned(),
                bytes: metadata.len(),
                version: format!("{}.{} {}", metadata.mtime(), metadata.mtime_nsec(), metadata.len()),
            })
        } else {
            FoundEntry::Nothing
        })
    }

    /// Something that is left out, unless nobody wants to hear of it.
    fn skipped(&self, path: &str, why: &'static str) -> FoundEntry {
        if self.filter.excludes(path) {
            FoundEntry::Nothing
        } else {
            FoundEntry::Skipped(path.to_owned(), why)
        }
    }
}

/// What something in a folder is.
enum FoundEntry {
    /// A folder that is looked into.
    Folder,
    /// A file that is meant.
    File(ListedFile),
    /// What is left out, by its path, and why.
    Skipped(String, &'static str),
    /// What is not meant.
    Nothing,
}

/// The first entries of a folder by their names, so many at most, in memory that does not grow with the folder.
fn first_entries(folder: &Path, most: usize) -> io::Result<Vec<fs::DirEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        entries.push(entry?);
        if entries.len() >= most.saturating_mul(2) {
            entries.sort_by_key(fs::DirEntry::file_name);
            entries.truncate(most);
        }
    }
    entries.sort_by_key(fs::DirEntry::file_name);
    entries.truncate(most);
    Ok(entries)
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
    use std::{
        ffi::OsStr,
        io::Read,
        os::unix::{ffi::OsStrExt, fs::symlink},
        time::Duration,
    };

    use super::*;

    fn settings(folder: &Path, hidden: Vec<PathBuf>) -> SyncSettings {
        SyncSettings { folders: vec![folder.to_owned()], hidden, runs: 1, pause: Duration::ZERO, items: 10 }
    }

    fn listed(root: &Path, hidden: &HiddenPlaces, most: usize) -> FolderListing {
        let (filter, known) = (PathFilter::default(), HashSet::new());
        let search = FolderSearch { root, hidden, filter: &filter, known: &known, most, most_entries: 100 };
        search.list().unwrap()
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
        let listing = listed(root.path(), &hidden, 10);
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
        let listing = listed(root.path(), &nothing, 10);
        let paths: Vec<_> = listing.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!((paths, listing.is_cut_off), (vec!["a/one.txt"], false));
        let mut skipped = listing.skipped;
        skipped.sort_unstable();
        assert_eq!(skipped, [("link".to_owned(), LINK), ("secret.txt".to_owned(), LINK)]);
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
    fn of_a_folder_with_too_many_files_those_that_are_known_are_listed_and_the_others_counted() {
        let root = tempfile::tempdir().unwrap();
        for name in ["1.txt", "2.txt", "3.txt", "4.png", "9.txt"] {
            fs::write(root.path().join(name), name).unwrap();
        }
        let nothing = HiddenPlaces(HashSet::new());
        let known = HashSet::from(["9.txt".to_owned()]);
        let list = |most, most_entries| {
            let filter = PathFilter::default();
            let search = FolderSearch {
                root: root.path(),
                hidden: &nothing,
                filter: &filter,
                known: &known,
                most,
                most_entries,
            };
            let listing = search.list().unwrap();
            let paths: Vec<_> = listing.files.into_iter().map(|file| file.path).collect();
            (paths.join(" "), listing.left_out, listing.is_cut_off)
        };
        // The one that is known may be a new one, moved.
        assert_eq!(list(1, 5), ("1.txt 2.txt 9.txt".to_owned(), 1, false));
        assert_eq!(list(2, 5), ("1.txt 2.txt 3.txt 9.txt".to_owned(), 0, false));
        assert_eq!(list(2, 2), ("1.txt 2.txt".to_owned(), 0, true));
        for number in 10..100 {
            fs::write(root.path().join(format!("3-{number}.txt")), "more").unwrap();
        }
        assert_eq!(list(2, 2), ("1.txt 2.txt".to_owned(), 0, true));
        assert_eq!(list(2, 200), ("1.txt 2.txt 3-10.txt 9.txt".to_owned(), 90, false));
    }

    #[test]
    fn what_is_not_listed_is_looked_for_where_there_is_something_new() {
        let file = |path: &str| ListedFile { path: path.to_owned(), bytes: 1, version: String::new() };
        let missing = |files: &[ListedFile]| {
            let mut missing = missing(["a", "b", "c"].map(str::to_owned).into(), files);
            missing.sort_unstable();
            missing
        };
        assert_eq!(missing(&[file("b"), file("new")]), ["a", "c"]);
        assert!(missing(&[file("a"), file("b")]).is_empty());
        assert!(missing(&[file("a"), file("b"), file("c"), file("new")]).is_empty());
    }

    #[test]
    fn what_is_hidden_is_said_to_be_left_out() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(".git")).unwrap();
        for name in ["open.txt", ".secret", ".git/config", "~$plan.docx"] {
            fs::write(root.path().join(name), name).unwrap();
        }
        fs::write(root.path().join(OsStr::from_bytes(b"caf\xe9.txt")), "coffee").unwrap();
        let listing = listed(root.path(), &HiddenPlaces(HashSet::new()), 10);
        let paths: Vec<_> = listing.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["open.txt"]);
        let mut skipped = listing.skipped;
        skipped.sort_unstable();
        let told =
            [(".git", HIDDEN), (".secret", HIDDEN), ("caf\u{fffd}.txt", NO_TEXT), ("~$plan.docx", HIDDEN)];
        assert_eq!(skipped, told.map(|(path, why)| (path.to_owned(), why)));
    }
}
