//! gpud's own key and its place in the pool, kept in the state directory.

use crate::token::to_base64url;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const KEY_FILE: &str = "server-key.pk8";
const PLACE_FILE: &str = "server.json";

/// What joining left behind.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Place {
    pub server_id: String,
    /// The broker that was joined.
    pub broker: String,
    /// SHA-256 of the token that it was joined with: a start with the same line goes on, one with a new token asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_hash: Option<String>,
}

/// The key (this host's only secret) and the place in the pool, if gpud has joined one.
pub struct Identity {
    directory: PathBuf,
    key: Ed25519KeyPair,
    place: Option<Place>,
}

impl Identity {
    /// Opens the state directory; makes it and the key at the first start.
    pub fn open(directory: &Path) -> io::Result<Identity> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let path = directory.join(KEY_FILE);
        let document = match fs::read(&path) {
            Ok(document) => document,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
                    .map_err(|_| io::Error::other("no random numbers for the server's key"))?;
                write_private(&path, document.as_ref())?;
                document.as_ref().to_vec()
            }
            Err(error) => return Err(error),
        };
        let key = Ed25519KeyPair::from_pkcs8(&document)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display())))?;
        let place = match fs::read(directory.join(PLACE_FILE)) {
            Ok(text) => Some(serde_json::from_slice(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Identity { directory: directory.to_owned(), key, place })
    }

    /// The public key, base64url.
    pub fn public_key(&self) -> String {
        to_base64url(self.key.public_key().as_ref())
    }

    /// Signs with the server's key; base64url.
    pub fn sign(&self, message: &[u8]) -> String {
        to_base64url(self.key.sign(message).as_ref())
    }

    /// The place in the pool.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// Keeps the place in the pool.
    pub fn set_place(&mut self, place: Place) -> io::Result<()> {
        write_private(&self.directory.join(PLACE_FILE), &serde_json::to_vec_pretty(&place)?)?;
        self.place = Some(place);
        Ok(())
    }

    /// Deletes key and place: the server was removed from the pool, which never takes this key again.
    pub fn forget(directory: &Path) -> io::Result<()> {
        for name in [PLACE_FILE, KEY_FILE] {
            match fs::remove_file(directory.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Writes a file that only this user can read, whole or not at all.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let next = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(next, path)
}
