//! What the figures were measured on.

use std::{fs, io, os::unix::fs::MetadataExt as _, path::Path, thread};

/// The processor, memory and kernel of this machine, as far as it tells.
pub(crate) fn facts() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processor = field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".to_owned());
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let memory = field(&read("/proc/meminfo"), "MemTotal").and_then(|size| kibibytes(&size));
    let memory = memory.map_or_else(|| "?".to_owned(), |bytes| (bytes >> 30).to_string());
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("Machine: {processor}, {cores} cores, {memory} GiB of memory, Linux {}", kernel.trim())
}

/// The memory that a process holds, in bytes: resident, shared pages included.
pub(crate) fn resident(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    kibibytes(&field(&status, "VmRSS")?)
}

/// What a folder and everything in it takes on the disk, in bytes. What vanishes meanwhile counts as nothing.
pub(crate) fn allocated(folder: &Path) -> io::Result<u64> {
    /// What the system counts allocated space in.
    const BLOCK: u64 = 512;
    let mut bytes = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            match entry.metadata() {
                Ok(there) if there.is_dir() => folders.push(entry.path()),
                Ok(there) => bytes += there.blocks() * BLOCK,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(bytes)
}

/// The first value of a name, of lines `name: value`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// `1024 kB` in bytes.
fn kibibytes(text: &str) -> Option<u64> {
    let number: u64 = text.strip_suffix(" kB")?.trim().parse().ok()?;
    Some(number * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_folders_of_a_folder_counts() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        assert_eq!(allocated(&inner).unwrap(), 0);
        // Random enough that no file system stores it in less.
        let bytes: Vec<u8> =
            (0..1_u32 << 17).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
        let mut file = fs::File::create(inner.join("file")).unwrap();
        io::Write::write_all(&mut file, &bytes).unwrap();
        file.sync_all().unwrap();
        assert!(allocated(folder.path()).unwrap() > 1 << 18);
        assert_eq!(allocated(&folder.path().join("none")).unwrap(), 0);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = "VmRSSExtra:\t 1 kB\nVmRSS:\t   20480 kB\nmodel name\t: Some CPU @ 2.0GHz: fast\n";
        assert_eq!(field(status, "VmRSS").and_then(|size| kibibytes(&size)), Some(20_480 * 1024));
        assert_eq!(field(status, "model name").as_deref(), Some("Some CPU @ 2.0GHz: fast"));
        assert_eq!(field(status, "model"), None);
        assert_eq!(kibibytes("12 MB"), None);
    }
}
