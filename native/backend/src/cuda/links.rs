//! Which of a host's cards reach each other directly over NVLink, as NVIDIA's management library tells it.

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{P2pCapabilitiesIndex, P2pStatus};
use std::ffi::OsStr;
use std::io;

/// For each of these cards which ones it reaches over NVLink, with or without switches between them. One that the
/// library does not know by this name, such as a part of a card, or does not tell of, reaches none.
pub fn linked(library: &str, uuids: &[String]) -> io::Result<Vec<Vec<bool>>> {
    let opened = Nvml::builder().lib_path(OsStr::new(library)).init();
    let nvml = opened.map_err(|error| io::Error::other(format!("{library}: {error}")))?;
    let cards: Vec<_> = uuids.iter().map(|uuid| nvml.device_by_uuid(uuid.as_str()).ok()).collect();
    let reaches = |from: usize, to: usize| match (&cards[from], &cards[to]) {
        (Some(one), Some(other)) if from != to => {
            matches!(one.p2p_status(other, P2pCapabilitiesIndex::NvLink), Ok(P2pStatus::Ok))
        }
        _ => false,
    };
    let all = 0..cards.len();
    Ok(all.clone().map(|from| all.clone().map(|to| reaches(from, to)).collect()).collect())
}
