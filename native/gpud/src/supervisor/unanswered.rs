//! The answer to a client whose worker ends before it has answered.

use sluice_protocol::handshake::Refused;
use sluice_transport::tls::Keys;
use sluice_transport::{Stream, write_handshake};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Timeout for writing the refusal.
const REFUSAL_TIME: Duration = Duration::from_secs(5);

/// The supervisor's copy of a connection that a worker has been given and has not answered on yet.
pub struct Unanswered {
    connection: OwnedFd,
    tls: Option<Keys>,
    pub lease_id: String,
}

impl Unanswered {
    /// Duplicates what the worker gets of the connection.
    pub fn copy(connection: &OwnedFd, tls: Option<&Keys>, lease_id: &str) -> io::Result<Unanswered> {
        Ok(Unanswered { connection: connection.try_clone()?, tls: tls.cloned(), lease_id: lease_id.to_owned() })
    }

    /// Refuses the client. The worker must have ended without writing: a second writer would repeat the numbers of TLS
    /// records.
    pub fn refuse(self, refusal: &Refused) -> io::Result<()> {
        let mut stream = Stream::from_parts(self.connection, self.tls)?;
        stream.set_timeout(Some(REFUSAL_TIME))?;
        write_handshake(&mut stream, refusal)
    }
}
