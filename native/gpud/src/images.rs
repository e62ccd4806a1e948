//! Images of modules that clients have sent, for whoever needs them next: other processes, leases and teams.
//!
//! They are kept by their SHA-256, which is looked at before one is kept. A hash is no secret and gives nobody an image:
//! who wants one says a SHA-256 of the session's nonce and the image, which only its holder can make, and the supervisor
//! makes it too. That also finds an image that has changed in memory. A worker gets no image without it, so one that
//! is not what it should be any more can neither read nor run what others have sent.
//!
//! An image lies in a memory file that is sealed: nobody can change it or make it shorter. The store holds so many bytes
//! (`--image-limit`), and gives up first what was not used for longest.

use ring::digest::{Context, SHA256};
use sluice_protocol::handshake::IMAGE_CONTEXT;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What has to be there of a memory file's seals.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;

/// A SHA-256.
pub type Hash = [u8; 32];

/// The SHA-256 of these, one after the other.
pub fn hash_of(parts: &[&[u8]]) -> Hash {
    let mut context = Context::new(&SHA256);
    parts.iter().for_each(|part| context.update(part));
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

/// What a holder of the image says in a session with this nonce.
pub fn proof_of(nonce: &[u8], image: &[u8]) -> Hash {
    hash_of(&[IMAGE_CONTEXT, nonce, image])
}

/// Puts an image into a memory file that nobody can change any more.
pub fn seal(image: &[u8]) -> io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string.
    let descriptor = unsafe { libc::memfd_create(c"sluice-image".as_ptr(), flags) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and nobody else's.
    let mut memory = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
    memory.write_all(image)?;
    // SAFETY: numbers alone.
    let sealed = unsafe { libc::fcntl(memory.as_raw_fd(), libc::F_ADD_SEALS, SEALS | libc::F_SEAL_SEAL) };
    if sealed == 0 { Ok(memory.into()) } else { Err(io::Error::last_os_error()) }
}

/// An image in sealed memory, mapped.
pub struct Image {
    memory: OwnedFd,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: bytes that nobody can change, mapped as long as the value lives.
unsafe impl Send for Image {}
// SAFETY: as above.
unsafe impl Sync for Image {}

impl Image {
    /// Maps what [`seal`] has made, perhaps in another process.
    pub fn open(memory: OwnedFd) -> io::Result<Image> {
        let bytes = File::from(memory.try_clone()?).metadata()?.len() as usize;
        // SAFETY: an open descriptor.
        let seals = unsafe { libc::fcntl(memory.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 || seals & SEALS != SEALS || bytes == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not an image in sealed memory"));
        }
        // SAFETY: a mapping of a file that is as long and stays so; the address is the kernel's choice.
        let address = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_PRIVATE, memory.as_raw_fd(), 0)
        };
        match NonNull::new(address.cast()) {
            Some(start) if address != libc::MAP_FAILED => Ok(Image { memory, start, bytes }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The image.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped with this length, and sealed against every change.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// Its memory, to hand it to another process.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: mapped by `open` with this length, and used through `self` alone.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

struct Kept {
    image: Arc<Image>,
    /// When it was last used, counted.
    used: u64,
}

#[derive(Default)]
struct State {
    kept: HashMap<Hash, Kept>,
    bytes: u64,
    clock: u64,
}

/// See the module.
pub struct Images {
    limit: u64,
    /// Each is an open file.
    most: usize,
    state: Mutex<State>,
}

impl Images {
    /// An empty store for so many bytes, and at most so many images.
    pub fn new(limit: u64, most: usize) -> Images {
        Images { limit, most, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The image of this hash, if the proof shows that who asks holds it.
    pub fn find(&self, hash: &Hash, nonce: &[u8], proof: &Hash) -> Option<Arc<Image>> {
        // Not under the lock: a large image takes its time.
        let image = self.lock().kept.get(hash).map(|kept| Arc::clone(&kept.image))?;
        if proof_of(nonce, image.bytes()) != *proof {
            return None;
        }
        let mut state = self.lock();
        state.clock += 1;
        let now = state.clock;
        if let Some(kept) = state.kept.get_mut(hash) {
            kept.used = now;
        }
        Some(image)
    }

    /// Keeps an image, if it is the one of its hash.
    pub fn keep(&self, hash: &Hash, memory: OwnedFd) -> io::Result<()> {
        let image = Image::open(memory)?;
        if image.bytes as u64 > self.limit {
            return Ok(());
        }
        if hash_of(&[image.bytes()]) != *hash {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the image does not have its hash"));
        }
        let mut state = self.lock();
        state.clock += 1;
        let kept = Kept { used: state.clock, image: Arc::new(image) };
        state.bytes += kept.image.bytes as u64;
        if let Some(before) = state.kept.insert(*hash, kept) {
            state.bytes -= before.image.bytes as u64;
        }
        while state.bytes > self.limit || state.kept.len() > self.most {
            let oldest = state.kept.iter().min_by_key(|(_, kept)| kept.used).map(|(hash, _)| *hash);
            let Some(gone) = oldest.and_then(|oldest| state.kept.remove(&oldest)) else { break };
            state.bytes -= gone.image.bytes as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &[u8] = b"of this session";

    fn image(seed: u8, bytes: usize) -> (Hash, Vec<u8>) {
        let image: Vec<u8> = (0..bytes).map(|at| (at / 7) as u8 ^ seed).collect();
        (hash_of(&[&image]), image)
    }

    fn kept(images: &Images, seed: u8, bytes: usize) -> (Hash, Vec<u8>) {
        let (hash, image) = image(seed, bytes);
        images.keep(&hash, seal(&image).expect("sealed")).expect("kept");
        (hash, image)
    }

    fn is_there(images: &Images, (hash, image): &(Hash, Vec<u8>)) -> bool {
        let found = images.find(hash, NONCE, &proof_of(NONCE, image));
        found.is_some_and(|found| found.bytes() == image)
    }

    #[test]
    fn an_image_is_for_who_holds_it_and_the_hash_alone_gives_nothing() {
        let images = Images::new(1 << 20, 10);
        let one = kept(&images, 1, 5000);
        assert!(is_there(&images, &one));
        let (hash, bytes) = &one;
        for proof in [*hash, [0; 32], proof_of(b"of another", bytes), proof_of(NONCE, &bytes[1..])] {
            assert!(images.find(hash, NONCE, &proof).is_none());
        }
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first_and_what_is_too_large_is_not_kept() {
        let images = Images::new(10_000, 10);
        let (one, two) = (kept(&images, 1, 4000), kept(&images, 2, 4000));
        assert!(is_there(&images, &one));
        let three = kept(&images, 3, 4000);
        assert!(is_there(&images, &one) && is_there(&images, &three) && !is_there(&images, &two));
        let large = kept(&images, 4, 10_001);
        assert!(!is_there(&images, &large) && is_there(&images, &one));
        // The same again takes no more room.
        kept(&images, 1, 4000);
        assert!(is_there(&images, &three));
    }

    #[test]
    fn there_are_at_most_so_many() {
        let images = Images::new(1 << 20, 2);
        let [one, two, three] = [1, 2, 3].map(|seed| kept(&images, seed, 100));
        assert!(!is_there(&images, &one) && is_there(&images, &two) && is_there(&images, &three));
    }

    #[test]
    fn what_is_not_sealed_or_has_another_hash_is_not_kept() {
        let images = Images::new(1 << 20, 10);
        let (hash, bytes) = image(1, 5000);
        // SAFETY: a C string.
        let open = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC)) };
        File::from(open.try_clone().expect("copy")).write_all(&bytes).expect("written");
        assert!(images.keep(&hash, open).is_err());
        let (_, other) = image(2, 5000);
        assert!(images.keep(&hash, seal(&other).expect("sealed")).is_err());
        assert!(!is_there(&images, &(hash, bytes)));
    }
}
