//! The container of older office files and of e-mails of Outlook (OLE2), as far as it is looked at before a library opens it.

use crate::protocol::ParseError;

/// Where the header says how long a sector is, as a power of 2.
const SECTOR_SHIFT: usize = 30;
/// Where it says which sector has the first list of the sectors with the table of all. A short list stands in the header itself.
const FIRST_LIST: usize = 68;
/// What is not less than this is no sector, but the end of the lists.
const NO_SECTOR: u32 = 0xffff_fffa;

/// Refuses a file that has more such lists than all its sectors need. Libraries read the table as long as the lists say that it is, and lists may
/// name the same sector again and again: it would take hundreds of times the memory that the file has.
pub(super) fn check(bytes: &[u8]) -> Result<(), ParseError> {
    let sector_len = if bytes.get(SECTOR_SHIFT) == Some(&12) { 4_096 } else { 512 };
    // A list names more than a hundred sectors of the table: one list for each of them is far more than a file needs.
    let most = 1 + bytes.len() / sector_len / (sector_len / 4);
    let mut next = FIRST_LIST;
    for _ in 0..=most {
        let list = number(bytes, next).ok_or(ParseError::Damaged)?;
        if list >= NO_SECTOR {
            return Ok(());
        }
        // The header takes a sector, too. A list ends with where the next one is.
        next = (list as usize + 2) * sector_len - 4;
    }
    Err(ParseError::Damaged)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}
