//! The container of older office files and of e-mails of Outlook (OLE2, the Compound File Binary format), as far as it is looked at before a
//! library opens it.

use crate::protocol::ParseError;

/// Where the header says how long a sector is, as a power of 2.
const SECTOR_SHIFT: usize = 30;
/// Where it says which sector has the first part of the DIFAT: the list of the sectors that the FAT, the table of all sectors, is in. Its beginning
/// stands in the header itself.
const FIRST_DIFAT_SECTOR: usize = 68;
/// Numbers from this on are no sector, but the end of a chain.
const NO_SECTOR: u32 = 0xffff_fffa;

/// Refuses a file that has more sectors of the DIFAT than a FAT of all its sectors needs. Libraries read the FAT as long as the DIFAT says that it is,
/// and that may name the same sector again and again: it would take hundreds of times the memory that the file has.
pub(super) fn check(bytes: &[u8]) -> Result<(), ParseError> {
    let sector_len = if bytes.get(SECTOR_SHIFT) == Some(&12) { 4_096 } else { 512 };
    // One sector of the DIFAT names more than a hundred of the FAT, so one for each of the FAT is far more than a file needs.
    let most = 1 + bytes.len() / sector_len / (sector_len / 4);
    let mut next = FIRST_DIFAT_SECTOR;
    for _ in 0..=most {
        let sector = number(bytes, next).ok_or(ParseError::Damaged)?;
        if sector >= NO_SECTOR {
            return Ok(());
        }
        // The header takes a sector, too. Each ends with the number of the next.
        next = (sector as usize + 2) * sector_len - 4;
    }
    Err(ParseError::Damaged)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}
