//! What the figures were measured on.

use std::{fs, thread};

/// The processor, memory and kernel of this machine, as far as it tells.
pub(super) fn facts() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processor = field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".to_owned());
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let memory = field(&read("/proc/meminfo"), "MemTotal").and_then(|size| kibibytes(&size));
    let memory = memory.map_or_else(|| "?".to_owned(), |bytes| (bytes >> 30).to_string());
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("Machine: {processor}, {cores} cores, {memory} GiB of memory, Linux {}", kernel.trim())
}

/// The memory that a process holds, in bytes: resident, shared pages included.
pub(super) fn resident(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    kibibytes(&field(&status, "VmRSS")?)
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
    fn fields_are_found_by_their_whole_name() {
        let status = "VmRSSExtra:\t 1 kB\nVmRSS:\t   20480 kB\nmodel name\t: Some CPU @ 2.0GHz: fast\n";
        assert_eq!(field(status, "VmRSS").and_then(|size| kibibytes(&size)), Some(20_480 * 1024));
        assert_eq!(field(status, "model name").as_deref(), Some("Some CPU @ 2.0GHz: fast"));
        assert_eq!(field(status, "model"), None);
        assert_eq!(kibibytes("12 MB"), None);
    }
}
