//! The records of TLS 1.3 (RFC 8446, section 5) after the handshake, which rustls has made: sealing, opening and the update
//! of keys. The two directions share nothing but a flag, so that neither thread waits for the other; and whoever has a
//! connection's [`Keys`] goes on with it, in another process too.

use ring::{aead, hkdf};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Content type, version and length.
pub(super) const HEADER_BYTES: usize = 5;
/// Most bytes that a record carries.
const MOST_PLAIN: usize = 1 << 14;
/// Longest record behind its header: what it carries, its inner content type, padding, and the tag.
const MOST_SEALED: usize = MOST_PLAIN + 256;
/// So many bytes are sealed for one call of the system: the other end opens them while the next are sealed.
const BATCH: usize = 4 * MOST_PLAIN;
/// Records are opened where they were read.
const BUFFER_BYTES: usize = 128 << 10;
/// So many records may follow each other that carry no data: each costs more than it is long.
const MOST_WITHOUT_DATA: u32 = 32;
/// A key seals fewer records than this. AES-GCM's bound is 2^24.5 records of full length (RFC 8446, section 5.5).
const RECORDS_A_KEY: u64 = 1 << 23;

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;

const CLOSE_NOTIFY: u8 = 0;
const USER_CANCELED: u8 = 90;

/// One direction: its traffic secret, and the number of its next record.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Direction {
    pub(super) secret: Vec<u8>,
    pub(super) number: u64,
}

/// All that one end has to know to go on with a connection.
#[derive(Clone, Serialize, Deserialize)]
pub struct Keys {
    /// Number of the cipher suite (RFC 8446, appendix B.4).
    pub(super) suite: u16,
    pub(super) reading: Direction,
    pub(super) writing: Direction,
    /// The other end has asked for an update of the key that is written with.
    pub(super) update_asked: bool,
}

impl Keys {
    /// What a handshake with this cipher suite ended with.
    pub(super) fn fresh(suite: u16, reading: Vec<u8>, writing: Vec<u8>) -> Self {
        let [reading, writing] = [reading, writing].map(|secret| Direction { secret, number: 0 });
        Self { suite, reading, writing, update_asked: false }
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Keys").field("suite", &self.suite).finish_non_exhaustive()
    }
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// What came is not what the other end has sealed: the connection is of no more use.
fn broken(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, format!("TLS: {text}"))
}

/// HKDF-Expand-Label without a context (RFC 8446, section 7.1).
fn expand(algorithm: hkdf::Algorithm, secret: &[u8], label: &str, out: &mut [u8]) -> io::Result<()> {
    struct Length(usize);
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let length = (out.len() as u16).to_be_bytes();
    let label_length = [(b"tls13 ".len() + label.len()) as u8];
    let info = [&length[..], &label_length, b"tls13 ", label.as_bytes(), &[0]];
    let secret = hkdf::Prk::new_less_safe(algorithm, secret);
    let expanded = secret.expand(&info, Length(out.len())).and_then(|expanded| expanded.fill(out));
    expanded.map_err(|_| invalid("a key of this length cannot be derived"))
}

/// The key of one direction.
struct Cipher {
    suite: u16,
    direction: Direction,
    hash: hkdf::Algorithm,
    key: aead::LessSafeKey,
    iv: [u8; aead::NONCE_LEN],
}

impl Cipher {
    fn new(suite: u16, direction: Direction) -> io::Result<Self> {
        let (algorithm, hash) = match suite {
            0x1301 => (&aead::AES_128_GCM, hkdf::HKDF_SHA256),
            0x1302 => (&aead::AES_256_GCM, hkdf::HKDF_SHA384),
            0x1303 => (&aead::CHACHA20_POLY1305, hkdf::HKDF_SHA256),
            _ => return Err(invalid("not a cipher suite of TLS 1.3 that is spoken here")),
        };
        let (mut bytes, mut iv) = (vec![0; algorithm.key_len()], [0; aead::NONCE_LEN]);
        expand(hash, &direction.secret, "key", &mut bytes)?;
        expand(hash, &direction.secret, "iv", &mut iv)?;
        let key = aead::UnboundKey::new(algorithm, &bytes).map_err(|_| invalid("a key of the wrong length"))?;
        Ok(Self { suite, direction, hash, key: aead::LessSafeKey::new(key), iv })
    }

    /// Goes over to the next key (RFC 8446, section 7.2).
    fn update(&mut self) -> io::Result<()> {
        let mut secret = vec![0; self.direction.secret.len()];
        expand(self.hash, &self.direction.secret, "traffic upd", &mut secret)?;
        *self = Self::new(self.suite, Direction { secret, number: 0 })?;
        Ok(())
    }

    fn next_nonce(&mut self) -> aead::Nonce {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(self.direction.number.to_be_bytes()) {
            *byte ^= number;
        }
        self.direction.number += 1;
        aead::Nonce::assume_unique_for_key(nonce)
    }
}

/// The writing side.
pub(super) struct Sealer {
    cipher: Cipher,
    /// Records on their way to the socket.
    sealed: Vec<u8>,
    /// The other end has asked for an update of this key.
    asked: Arc<AtomicBool>,
    records_a_key: u64,
}

impl Sealer {
    /// Writes all of it.
    pub(super) fn write(&mut self, socket: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
        for batch in bytes.chunks(BATCH) {
            self.sealed.clear();
            for plain in batch.chunks(MOST_PLAIN) {
                if self.cipher.direction.number >= self.records_a_key || self.asked.load(Ordering::Relaxed) {
                    self.asked.store(false, Ordering::Relaxed);
                    self.seal(HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 0])?;
                    self.cipher.update()?;
                }
                self.seal(APPLICATION_DATA, plain)?;
            }
            socket.write_all(&self.sealed)?;
        }
        Ok(bytes.len())
    }

    fn seal(&mut self, content_type: u8, plain: &[u8]) -> io::Result<()> {
        let length = plain.len() + 1 + aead::MAX_TAG_LEN;
        let [high, low] = (length as u16).to_be_bytes();
        let header = [APPLICATION_DATA, 3, 3, high, low];
        self.sealed.extend_from_slice(&header);
        let start = self.sealed.len();
        self.sealed.extend_from_slice(plain);
        self.sealed.push(content_type);
        let (nonce, header) = (self.cipher.next_nonce(), aead::Aad::from(header));
        let tag = self.cipher.key.seal_in_place_separate_tag(nonce, header, &mut self.sealed[start..]);
        self.sealed.extend_from_slice(tag.map_err(|_| broken("a record cannot be sealed"))?.as_ref());
        Ok(())
    }
}

/// The reading side.
pub(super) struct Opener {
    cipher: Cipher,
    buffer: Box<[u8]>,
    /// Of `buffer`: opened, and not handed out.
    plain: Range<usize>,
    /// Of `buffer`: read from the socket, and not opened.
    sealed: Range<usize>,
    /// The other end has said that no more comes.
    ended: bool,
    /// For the [`Sealer`].
    asked: Arc<AtomicBool>,
    /// Records without data since the last with some.
    without_data: u32,
    /// Reads no further than to a record's end: the socket goes to another process.
    by_record: bool,
}

impl Opener {
    /// Reads as [`Read::read`] does.
    pub(super) fn read(&mut self, socket: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        loop {
            let more = self.plain.len().min(out.len() - count);
            out[count..count + more].copy_from_slice(&self.buffer[self.plain.start..self.plain.start + more]);
            self.plain.start += more;
            count += more;
            let enough = count == out.len() || (count > 0 && !self.holds_record());
            if enough || self.ended {
                return Ok(count);
            }
            self.open_next(socket)?;
        }
    }

    /// Bytes wait to be read that the socket does not show any more.
    pub(super) fn holds_bytes(&self) -> bool {
        !self.plain.is_empty() || self.holds_record()
    }

    /// Reads as much at once as there is, from now on.
    pub(super) fn read_ahead(&mut self) {
        self.by_record = false;
    }

    fn holds_record(&self) -> bool {
        let sealed = &self.buffer[self.sealed.clone()];
        sealed.first_chunk().is_some_and(|header| sealed.len() >= HEADER_BYTES + length_of(*header))
    }

    /// Opens the next record, with `plain` empty. Whatever follows it in the buffer stays.
    fn open_next(&mut self, socket: &mut impl Read) -> io::Result<()> {
        if self.sealed.is_empty() {
            self.sealed = 0..0;
        }
        let header = match self.have(socket, HEADER_BYTES)? {
            [] => {
                self.ended = true;
                return Ok(());
            }
            bytes => *bytes.first_chunk::<HEADER_BYTES>().ok_or(io::ErrorKind::UnexpectedEof)?,
        };
        let length = length_of(header);
        if header[0] != APPLICATION_DATA || !(aead::MAX_TAG_LEN + 1..=MOST_SEALED).contains(&length) {
            return Err(broken("not a record"));
        }
        if self.have(socket, HEADER_BYTES + length)?.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let start = self.sealed.start + HEADER_BYTES;
        self.sealed.start = start + length;
        let (nonce, header) = (self.cipher.next_nonce(), aead::Aad::from(header));
        let opened = self.cipher.key.open_in_place(nonce, header, &mut self.buffer[start..start + length]);
        let opened = opened.map_err(|_| broken("a record is not what the other end has sealed"))?;
        let Some(end) = opened.iter().rposition(|byte| *byte != 0) else {
            return Err(broken("a record without a content type"));
        };
        let content_type = opened[end];
        if end > MOST_PLAIN {
            return Err(broken("a record is too long"));
        }
        self.without_data = if content_type == APPLICATION_DATA && end > 0 { 0 } else { self.without_data + 1 };
        if self.without_data > MOST_WITHOUT_DATA {
            return Err(broken("the other end sends nothing but records without data"));
        }
        match content_type {
            APPLICATION_DATA => {
                self.plain = start..start + end;
                Ok(())
            }
            HANDSHAKE => self.take_messages(start..start + end),
            ALERT => match self.buffer[start..start + end] {
                [_, CLOSE_NOTIFY | USER_CANCELED] => {
                    self.ended = true;
                    Ok(())
                }
                [_, description] => Err(broken(&format!("the other end sends the alert {description}"))),
                _ => Err(broken("not an alert")),
            },
            _ => Err(broken("a record of an unknown kind")),
        }
    }

    /// What is said after the handshake: tickets, of which nobody makes use, and updates of the key.
    fn take_messages(&mut self, messages: Range<usize>) -> io::Result<()> {
        let mut rest = &self.buffer[messages];
        let mut update = false;
        while let Some(([kind, length @ ..], behind)) = rest.split_first_chunk::<4>() {
            let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            let (body, behind) = behind.split_at_checked(length).ok_or_else(|| broken("half a message"))?;
            rest = behind;
            match (*kind, body) {
                (NEW_SESSION_TICKET, _) => {}
                (KEY_UPDATE, [asked @ 0..=1]) if rest.is_empty() => {
                    update = true;
                    if *asked == 1 {
                        self.asked.store(true, Ordering::Relaxed);
                    }
                }
                _ => return Err(broken("a message that does not belong here")),
            }
        }
        if !rest.is_empty() {
            return Err(broken("half a message"));
        }
        if update { self.cipher.update() } else { Ok(()) }
    }

    /// Has `count` sealed bytes in the buffer and answers them; answers nothing where the stream has ended before the
    /// first of them.
    fn have(&mut self, socket: &mut impl Read, count: usize) -> io::Result<&[u8]> {
        if self.sealed.start + count > self.buffer.len() {
            self.buffer.copy_within(self.sealed.clone(), 0);
            self.sealed = 0..self.sealed.len();
        }
        while self.sealed.len() < count {
            let limit = if self.by_record { self.sealed.start + count } else { self.buffer.len() };
            match socket.read(&mut self.buffer[self.sealed.end..limit]) {
                Ok(0) if self.sealed.is_empty() => return Ok(&[]),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => self.sealed.end += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[self.sealed.start..self.sealed.start + count])
    }
}

/// Bytes that follow a record's header.
pub(super) fn length_of(header: [u8; HEADER_BYTES]) -> usize {
    usize::from(u16::from_be_bytes([header[3], header[4]]))
}

/// Both sides of a connection. Records are read one by one until [`Opener::read_ahead`].
pub(super) fn take_up(keys: Keys) -> io::Result<(Opener, Sealer)> {
    let asked = Arc::new(AtomicBool::new(keys.update_asked));
    let opener = Opener {
        cipher: Cipher::new(keys.suite, keys.reading)?,
        buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
        plain: 0..0,
        sealed: 0..0,
        ended: false,
        without_data: 0,
        asked: Arc::clone(&asked),
        by_record: true,
    };
    let cipher = Cipher::new(keys.suite, keys.writing)?;
    Ok((opener, Sealer { cipher, sealed: Vec::new(), asked, records_a_key: RECORDS_A_KEY }))
}

/// The keys of a connection of which all that came has been read ([`Opener::holds_bytes`]); fails where that is not so.
pub(super) fn hand_over(opener: Opener, sealer: Sealer) -> io::Result<Keys> {
    if !opener.plain.is_empty() || !opener.sealed.is_empty() {
        return Err(broken("what has come was not read before the connection was handed over"));
    }
    let Cipher { suite, direction: reading, .. } = opener.cipher;
    let update_asked = sealer.asked.load(Ordering::Relaxed);
    Ok(Keys { suite, reading, writing: sealer.cipher.direction, update_asked })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRETS: [[u8; 32]; 2] = [[1; 32], [2; 32]];

    /// What one end reads and writes with.
    fn end(suite: u16, [reading, writing]: [[u8; 32]; 2]) -> (Opener, Sealer) {
        take_up(Keys::fresh(suite, reading.to_vec(), writing.to_vec())).expect("keys")
    }

    /// What one end writes with, and the other reads with.
    fn ends() -> (Sealer, Opener) {
        let [ours, theirs] = SECRETS;
        (end(0x1301, [ours, theirs]).1, end(0x1301, [theirs, ours]).0)
    }

    fn read_all(opener: &mut Opener, mut bytes: &[u8]) -> io::Result<Vec<u8>> {
        let (mut all, mut part) = (Vec::new(), vec![0; 50_000]);
        loop {
            match opener.read(&mut bytes, &mut part)? {
                0 => return Ok(all),
                count => all.extend_from_slice(&part[..count]),
            }
        }
    }

    /// One record of this content.
    fn record(content_type: u8, plain: &[u8]) -> Vec<u8> {
        let (mut sealer, _) = ends();
        sealer.seal(content_type, plain).expect("sealed");
        sealer.sealed
    }

    #[test]
    fn bytes_of_any_length_come_out_as_they_went_in_through_updates_of_the_key() {
        let (mut sealer, mut opener) = ends();
        sealer.records_a_key = 5;
        opener.read_ahead();
        let (mut sent, mut wire) = (Vec::new(), Vec::new());
        for length in [0, 1, 16_383, 16_384, 16_385, 300_000, 7, 65_536] {
            let bytes: Vec<u8> = (0..length).map(|at| (at * 31 + length) as u8).collect();
            assert_eq!(sealer.write(&mut wire, &bytes).expect("written"), length);
            sent.extend(bytes);
        }
        assert!(read_all(&mut opener, &wire).expect("read") == sent);
        assert_eq!(opener.cipher.direction.number, sealer.cipher.direction.number);
        assert_eq!(opener.cipher.direction.secret, sealer.cipher.direction.secret);
        assert_ne!(sealer.cipher.direction.secret, SECRETS[1]);
    }

    #[test]
    fn a_changed_bit_anywhere_is_noticed() {
        let sound = record(APPLICATION_DATA, b"what was said");
        assert_eq!(read_all(&mut ends().1, &sound).expect("read"), b"what was said");
        for bit in 0..sound.len() * 8 {
            let mut changed = sound.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(read_all(&mut ends().1, &changed).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_record_that_comes_twice_or_is_left_out_is_noticed() {
        let (mut sealer, _) = ends();
        let records = [b"one", b"two"].map(|text| {
            sealer.sealed.clear();
            sealer.seal(APPLICATION_DATA, text).expect("sealed");
            sealer.sealed.clone()
        });
        let [one, two] = &records;
        assert_eq!(read_all(&mut ends().1, &records.concat()).expect("read"), b"onetwo");
        for wrong in [[one, one].map(Vec::as_slice).concat(), two.clone(), [two, one].map(Vec::as_slice).concat()] {
            assert!(read_all(&mut ends().1, &wrong).is_err());
        }
    }

    #[test]
    fn a_stream_that_ends_inside_a_record_is_an_error_and_between_two_is_not() {
        let sound = record(APPLICATION_DATA, &[7; 1000]);
        for length in 1..sound.len() {
            let error = read_all(&mut ends().1, &sound[..length]).expect_err("cut");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{length}");
        }
        assert!(read_all(&mut ends().1, &[]).expect("the end").is_empty());
    }

    #[test]
    fn nothing_that_follows_a_close_is_read() {
        let mut closed = record(ALERT, &[1, CLOSE_NOTIFY]);
        closed.resize(closed.len() + 1_000_000, 0);
        let (_, mut opener) = ends();
        let (mut rest, mut room) = (closed.as_slice(), [0; 100]);
        for _ in 0..3 {
            assert_eq!(opener.read(&mut rest, &mut room).expect("the end"), 0);
        }
        assert_eq!(rest.len(), 1_000_000);
    }

    #[test]
    fn what_does_not_belong_after_a_handshake_is_refused() {
        for (content_type, plain) in [
            (ALERT, &[2, 20][..]),
            (ALERT, &[2]),
            (20, &[1]),
            (0, &[]),
            (0, &[0; 20]),
            (HANDSHAKE, &[KEY_UPDATE, 0, 0, 1]),
            (HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 2]),
            (HANDSHAKE, &[KEY_UPDATE, 0, 0, 2, 0, 0]),
            // The next message would be under another key.
            (HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 0, NEW_SESSION_TICKET, 0, 0, 0]),
            (HANDSHAKE, &[NEW_SESSION_TICKET, 0, 0]),
            (HANDSHAKE, &[1, 0, 0, 0]),
            (APPLICATION_DATA, &[0; MOST_PLAIN + 1]),
            (APPLICATION_DATA, &[0; MOST_SEALED]),
        ] {
            let outcome = read_all(&mut ends().1, &record(content_type, plain));
            assert_eq!(
                outcome.expect_err("refused").kind(),
                io::ErrorKind::ConnectionAborted,
                "{content_type} {plain:?}"
            );
        }
        let ticket = record(HANDSHAKE, &[NEW_SESSION_TICKET, 0, 0, 2, 9, 9, NEW_SESSION_TICKET, 0, 0, 0]);
        assert!(read_all(&mut ends().1, &ticket).expect("of no interest").is_empty());
        // Padding is no content.
        assert_eq!(read_all(&mut ends().1, &record(0, b"text\x17\0\0\0")).expect("read"), b"text");
    }

    #[test]
    fn records_without_data_do_not_follow_each_other_for_ever() {
        let (mut sealer, mut opener) = ends();
        for round in 0..3 {
            (0..MOST_WITHOUT_DATA).for_each(|_| sealer.seal(APPLICATION_DATA, &[]).expect("sealed"));
            sealer.seal(APPLICATION_DATA, &[round]).expect("sealed");
        }
        assert_eq!(read_all(&mut opener, &sealer.sealed).expect("read"), [0, 1, 2]);
        let (mut sealer, mut opener) = ends();
        for _ in 0..=MOST_WITHOUT_DATA {
            sealer.seal(HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 0]).expect("sealed");
            sealer.cipher.update().expect("updated");
        }
        assert!(read_all(&mut opener, &sealer.sealed).is_err());
    }

    #[test]
    fn an_update_that_is_asked_for_goes_out_before_the_next_bytes() {
        let [ours, theirs] = SECRETS;
        let (mut here_reads, here_writes) = end(0x1303, [ours, theirs]);
        let (mut there_reads, mut there_writes) = end(0x1303, [theirs, ours]);
        there_writes.seal(HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 1]).expect("sealed");
        there_writes.cipher.update().expect("updated");
        there_writes.seal(APPLICATION_DATA, b"under the next key").expect("sealed");
        assert_eq!(read_all(&mut here_reads, &there_writes.sealed).expect("read"), b"under the next key");
        // The wish is not lost when another process goes on.
        let keys = hand_over(here_reads, here_writes).expect("handed over");
        let (_, mut here_writes) = take_up(keys).expect("taken up");
        let mut wire = Vec::new();
        here_writes.write(&mut wire, b"and so is this").expect("written");
        assert_eq!(read_all(&mut there_reads, &wire).expect("read"), b"and so is this");
        assert_ne!(there_reads.cipher.direction.secret, SECRETS[1]);
        assert!(!there_writes.asked.load(Ordering::Relaxed), "an update was answered by a wish for one");
    }

    #[test]
    fn a_connection_is_handed_over_only_when_all_that_came_has_been_read() {
        let (mut sealer, mut opener) = ends();
        let mut wire = Vec::new();
        sealer.write(&mut wire, b"hello").expect("written");
        let first = wire.len();
        sealer.write(&mut wire, b"and more").expect("written");
        let (mut rest, mut room) = (wire.as_slice(), [0; 5]);
        assert_eq!(opener.read(&mut rest, &mut room).expect("read"), 5);
        assert_eq!(rest.len(), wire.len() - first, "it has read beyond its record");
        let keys = hand_over(opener, ends().0).expect("handed over");
        let (mut opener, _) = take_up(keys).expect("taken up");
        assert_eq!(opener.read(&mut rest, &mut room).expect("read"), 5);
        assert!(hand_over(opener, ends().0).is_err());
    }
}
