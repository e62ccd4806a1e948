//! The broker's HTTP, with this workspace's credential.

use serde_json::{Value, json};
use sluice_transport::authorities::https_config;
use sluice_transport::{unix_http, variables};
use std::sync::OnceLock;
use std::time::Duration;
use ureq::Agent;

/// Longest answer of the broker, bytes: lists of leases and GPUs.
const LONGEST_ANSWER: u64 = 4 * 1024 * 1024;

/// `base`: the broker's address, the same for the process's life.
fn agent(base: &str) -> &'static Agent {
    static AGENT: OnceLock<Agent> = OnceLock::new();
    AGENT.get_or_init(|| {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .timeout_connect(Some(Duration::from_secs(5)))
            .timeout_global(Some(Duration::from_secs(40)));
        if let Some(socket) = unix_http::socket_of(base) {
            return unix_http::agent(config.build(), &socket);
        }
        // Reading a distribution's authorities takes milliseconds.
        if base.starts_with("https:") { config.tls_config(https_config()) } else { config }.build().into()
    })
}

/// A method of the broker.
pub enum Method {
    Get,
    Post(Value),
    Delete,
}

/// One question; the answer's body, or `{code, message}` as the error.
pub fn ask(method: Method, path: &str) -> Result<Value, Value> {
    let base = variables::text("SLUICE_BROKER_URL")
        .ok_or_else(|| failure("unavailable", "this is no Sluice workspace: SLUICE_BROKER_URL is not set".into()))?;
    let reached = if unix_http::socket_of(&base).is_some() { unix_http::BASE } else { base.trim_end_matches('/') };
    let url = format!("{reached}{path}");
    let bearer = format!("Bearer {}", credential()?);
    let sent = match method {
        Method::Get => agent(&base).get(&url).header("authorization", &bearer).call(),
        Method::Delete => agent(&base).delete(&url).header("authorization", &bearer).call(),
        Method::Post(body) => agent(&base).post(&url).header("authorization", &bearer).send_json(&body),
    };
    let mut answer = sent.map_err(|error| failure("unavailable", format!("the broker cannot be reached: {error}")))?;
    let status = answer.status().as_u16();
    let body: Value = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_json().unwrap_or(Value::Null);
    // A redirect is no answer of a broker.
    if status < 300 {
        return Ok(body);
    }
    match body.get("error") {
        Some(error) => Err(error.clone()),
        None => Err(failure("internal", format!("the broker answered {status}"))),
    }
}

fn credential() -> Result<String, Value> {
    let path = variables::text("SLUICE_CREDENTIAL_FILE").unwrap_or_else(|| "/run/sluice/credential".into());
    std::fs::read_to_string(&path)
        .map(|text| text.trim().to_owned())
        .map_err(|error| failure("unauthenticated", format!("the workspace's credential {path}: {error}")))
}

/// An error as the broker writes them.
pub fn failure(code: &str, message: String) -> Value {
    json!({ "code": code, "message": message })
}
