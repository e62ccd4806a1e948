//! Joining a pool: a one-time token for a place in it.

use crate::config::parse_broker;
use crate::control::messages::{JoinAnswer, JoinInput};
use crate::identity::{Identity, Place};
use crate::token::to_base64url;
use ring::digest::{SHA256, digest};
use sluice_transport::authorities::https_config;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Longest answer to a join, bytes: an id, or an error's sentence.
const LONGEST_ANSWER: u64 = 64 * 1024;

/// Trades the token for this server's id and keeps it in the state directory.
pub fn join(identity: &mut Identity, broker: &str, token: &str, name: &str) -> io::Result<String> {
    let broker = broker.trim_end_matches('/');
    let address = parse_broker(broker).map_err(|text| io::Error::new(io::ErrorKind::InvalidInput, text))?;
    let input = JoinInput { token: token.to_owned(), name: name.to_owned(), public_key: identity.public_key() };
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(20)))
        .http_status_as_error(false)
        .https_only(address.secure)
        // The token goes to the address that the operator named, and nowhere else.
        .max_redirects(0)
        .tls_config(https_config())
        .build();
    let mut answer = ureq::Agent::new_with_config(config)
        .post(format!("{broker}/v1/gpu-servers/join"))
        .send_json(&input)
        .map_err(|error| io::Error::other(format!("{broker} cannot be reached: {error}")))?;
    let status = answer.status();
    let text = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_string().map_err(io::Error::other)?;
    if !status.is_success() {
        return Err(io::Error::other(format!("{broker} refused: {}", message_of(&text).unwrap_or(status.to_string()))));
    }
    let answer: JoinAnswer = serde_json::from_str(&text)?;
    let token_hash = Some(hash(token));
    identity.set_place(Place { server_id: answer.server_id.clone(), broker: broker.to_owned(), token_hash })?;
    Ok(answer.server_id)
}

/// Whether a start with this token goes on in the place that the token was used for.  A new token is not spent on a
/// state directory that belongs to a server already.
pub fn stay(place: &Place, broker: &str, token: &str, state: &Path) -> io::Result<()> {
    let same = match &place.token_hash {
        Some(known) => *known == hash(token),
        // Joined before hashes were kept.
        None => place.broker == broker.trim_end_matches('/'),
    };
    if same {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{} belongs to {}, a server in the pool of {}; the new token was not used.\n  \
         To start that server: gpud --state {0}\n  \
         To add one more server on this host: the same line with --state and another directory\n  \
         To replace it: remove it on the pool page, start it once so that it hears of that, then join again",
        state.display(),
        place.server_id,
        place.broker,
    )))
}

fn hash(token: &str) -> String {
    to_base64url(digest(&SHA256, token.as_bytes()).as_ref())
}

/// The sentence in an error answer, `{"error":{"message":…}}`.
fn message_of(text: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    value.pointer("/error/message")?.as_str().map(str::to_owned)
}
