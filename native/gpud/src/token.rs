//! The session token: an EdDSA JWT that the broker signs and gpud verifies offline
//! (`server/contracts/session-token.ts`).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Clocks of broker and gpud may differ by this much.
const LEEWAY_SECONDS: i64 = 30;

/// What the token says.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    pub iss: String,
    pub aud: String,
    /// Workspace id.
    pub sub: String,
    pub jti: String,
    pub iat: i64,
    pub exp: i64,
    /// Session id.
    pub sid: String,
    pub cnf: Confirmation,
    pub lease: LeaseClaims,
}

/// The key that the client must prove to hold.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    pub ed25519: String,
}

/// The lease that the session runs under.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeaseClaims {
    pub id: String,
    pub epoch: u64,
    pub device_uuid: String,
    pub milli: u32,
    /// Thousandths of the device that the lease never gets more than, also while it is alone; absent: all of it.
    pub ceiling_milli: Option<u32>,
    pub memory_bytes: u64,
    pub gpu_type: String,
    /// Seconds since 1970.
    pub expires_at: i64,
}

#[derive(Deserialize)]
struct JoseHeader {
    alg: String,
    kid: String,
}

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    Malformed,
    UnknownKey,
    Signature,
    Audience,
    Expired,
    NotYetValid,
}

impl std::fmt::Display for TokenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TokenError::Malformed => "the session token cannot be read",
            TokenError::UnknownKey => "the session token is signed with a key that this GPU server does not know",
            TokenError::Signature => "the session token's signature does not hold",
            TokenError::Audience => "the session token is for another GPU server",
            TokenError::Expired => "the session token has expired; if that happens again, check the clocks",
            TokenError::NotYetValid => "the session token is not valid yet; check the clocks",
        })
    }
}

impl std::error::Error for TokenError {}

/// Key id to Ed25519 public key.
pub type Keys = BTreeMap<String, Vec<u8>>;

/// Decodes base64url without padding.
pub fn from_base64url(text: &str) -> Option<Vec<u8>> {
    BASE64URL.decode(text).ok()
}

/// Encodes base64url without padding.
pub fn to_base64url(bytes: &[u8]) -> String {
    BASE64URL.encode(bytes)
}

/// Verifies a token for this server at `now` (seconds since 1970).  `expired_is_fine` for a session that is already
/// open and goes on after a lost connection.
pub fn verify(token: &str, keys: &Keys, audience: &str, now: i64, expired_is_fine: bool) -> Result<Claims, TokenError> {
    let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
    let (header, payload) = signed.split_once('.').ok_or(TokenError::Malformed)?;
    let header: JoseHeader = part(header)?;
    if header.alg != "EdDSA" {
        return Err(TokenError::Malformed);
    }
    let key = keys.get(&header.kid).ok_or(TokenError::UnknownKey)?;
    let signature = from_base64url(signature).ok_or(TokenError::Malformed)?;
    UnparsedPublicKey::new(&ED25519, key).verify(signed.as_bytes(), &signature).map_err(|_| TokenError::Signature)?;
    let claims: Claims = part(payload)?;
    if claims.lease.ceiling_milli.is_some_and(|milli| !(1..=1000).contains(&milli)) {
        return Err(TokenError::Malformed);
    }
    if claims.iss != "sluice" || claims.aud != audience {
        return Err(TokenError::Audience);
    }
    if claims.iat > now + LEEWAY_SECONDS {
        return Err(TokenError::NotYetValid);
    }
    if claims.exp <= now && !expired_is_fine {
        return Err(TokenError::Expired);
    }
    Ok(claims)
}

/// Whether `signature` proves that the client holds the key in the token.
pub fn proves_possession(claims: &Claims, message: &[u8], signature: &str) -> bool {
    let (Some(key), Some(signature)) = (from_base64url(&claims.cnf.ed25519), from_base64url(signature)) else {
        return false;
    };
    UnparsedPublicKey::new(&ED25519, key).verify(message, &signature).is_ok()
}

fn part<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, TokenError> {
    let bytes = from_base64url(text).ok_or(TokenError::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| TokenError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{Ed25519KeyPair, KeyPair};

    fn key(seed: u8) -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).expect("32 bytes")
    }

    fn token(signer: &Ed25519KeyPair, header: &str, aud: &str, iat: i64, exp: i64) -> String {
        token_with(signer, header, payload(aud, iat, exp))
    }

    fn payload(aud: &str, iat: i64, exp: i64) -> serde_json::Value {
        serde_json::json!({
            "iss": "sluice", "aud": aud, "sub": "ws-1", "jti": "j", "iat": iat, "exp": exp, "sid": "s",
            "cnf": {"ed25519": to_base64url(key(9).public_key().as_ref())},
            "lease": {"id": "lea-1", "epoch": 1, "deviceUuid": "GPU-1", "milli": 500, "memoryBytes": 4096,
                      "gpuType": "soft", "expiresAt": exp},
        })
    }

    fn token_with(signer: &Ed25519KeyPair, header: &str, payload: serde_json::Value) -> String {
        let signed = format!("{}.{}", to_base64url(header.as_bytes()), to_base64url(payload.to_string().as_bytes()));
        let signature = to_base64url(signer.sign(signed.as_bytes()).as_ref());
        format!("{signed}.{signature}")
    }

    const HEADER: &str = r#"{"alg":"EdDSA","kid":"k1","typ":"JWT"}"#;

    fn keys() -> Keys {
        Keys::from([("k1".to_owned(), key(1).public_key().as_ref().to_vec())])
    }

    #[test]
    fn a_good_token_is_read() {
        let claims = verify(&token(&key(1), HEADER, "gpud:a", 100, 400), &keys(), "gpud:a", 200, false);
        assert_eq!(claims.expect("good").lease.memory_bytes, 4096);
    }

    #[test]
    fn a_ceiling_is_a_part_of_the_device_or_none() {
        let read = |ceiling: Option<serde_json::Value>| {
            let mut payload = payload("gpud:a", 100, 400);
            if let Some(ceiling) = ceiling {
                payload["lease"]["ceilingMilli"] = ceiling;
            }
            let claims = verify(&token_with(&key(1), HEADER, payload), &keys(), "gpud:a", 200, false);
            claims.map(|claims| claims.lease.ceiling_milli)
        };
        assert_eq!(read(None), Ok(None));
        for milli in [1, 500, 1000] {
            assert_eq!(read(Some(milli.into())), Ok(Some(milli)));
        }
        for wrong in [0.into(), 1001.into(), (-1).into(), 0.5.into(), "500".into()] {
            assert_eq!(read(Some(wrong)), Err(TokenError::Malformed));
        }
    }

    #[test]
    fn bad_tokens_are_refused_with_their_reason() {
        let check = |token: &str, now| verify(token, &keys(), "gpud:a", now, false).expect_err("bad");
        assert_eq!(check(&token(&key(2), HEADER, "gpud:a", 100, 400), 200), TokenError::Signature);
        assert_eq!(check(&token(&key(1), HEADER, "gpud:b", 100, 400), 200), TokenError::Audience);
        assert_eq!(check(&token(&key(1), HEADER, "gpud:a", 100, 400), 400), TokenError::Expired);
        assert_eq!(check(&token(&key(1), HEADER, "gpud:a", 100, 400), 50), TokenError::NotYetValid);
        let none = r#"{"alg":"none","kid":"k1"}"#;
        assert_eq!(check(&token(&key(1), none, "gpud:a", 100, 400), 200), TokenError::Malformed);
        let other = r#"{"alg":"EdDSA","kid":"k2"}"#;
        assert_eq!(check(&token(&key(1), other, "gpud:a", 100, 400), 200), TokenError::UnknownKey);
        for text in ["", ".", "..", "a.b.c", "é.é.é"] {
            assert_eq!(check(text, 200), TokenError::Malformed);
        }
    }

    #[test]
    fn an_expired_token_resumes_an_open_session_only() {
        let text = token(&key(1), HEADER, "gpud:a", 100, 400);
        assert!(verify(&text, &keys(), "gpud:a", 5_000, true).is_ok());
        assert!(verify(&text, &keys(), "gpud:a", 5_000, false).is_err());
    }

    #[test]
    fn possession_is_proven_by_the_key_in_the_token_alone() {
        let claims = verify(&token(&key(1), HEADER, "gpud:a", 100, 400), &keys(), "gpud:a", 200, false).expect("good");
        let good = to_base64url(key(9).sign(b"message").as_ref());
        let stolen = to_base64url(key(8).sign(b"message").as_ref());
        assert!(proves_possession(&claims, b"message", &good));
        assert!(!proves_possession(&claims, b"another", &good));
        assert!(!proves_possession(&claims, b"message", &stolen));
    }
}
