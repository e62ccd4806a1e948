//! A call to a library as part of graphs: gpud keeps it with what its objects said when it was captured.

use super::encode::Encoded;
use super::{Loaded, Outcome, Refusal};
use crate::connection::Connection;
use crate::error::{CudaError, CudaResult};
use crate::objects::new_handle;
use crate::session::Session;
use sluice_api::libraries::Function;
use sluice_protocol::cuda;
use sluice_protocol::messages::{LibraryForget, LibraryRecord};
use std::sync::{Arc, Weak};

/// A captured call; gpud forgets it with the last node that holds it.
pub struct Recording {
    number: u64,
    generation: u64,
    connection: Weak<Connection>,
    /// The function's name.
    pub symbol: &'static str,
}

impl Recording {
    /// Has gpud keep a call; waits, so that the library's own refusals are synchronous.
    pub(super) fn make(
        session: &Session,
        loaded: Loaded,
        function: &'static Function,
        encoded: &Encoded,
    ) -> Outcome<Arc<Self>> {
        let number = new_handle();
        let request = LibraryRecord {
            recording: number,
            library: loaded.id,
            function: function.number,
            stream: encoded.stream,
            arguments: &encoded.arguments,
        };
        let answer = session.connection.call(&request).map_err(|error| Refusal::from_cuda(loaded.status(), error))?;
        if answer.status != 0 {
            let text = (!answer.text.is_empty()).then_some(answer.text);
            return Err(Refusal { status: answer.status, text });
        }
        let (generation, connection) = (session.generation, Arc::downgrade(&session.connection));
        Ok(Arc::new(Self { number, generation, connection, symbol: &function.symbol }))
    }

    /// Its number at this session's gpud. What it computes on lies in its own generation's memory, so another has no
    /// use for it.
    pub fn number_in(&self, session: &Session) -> CudaResult<u64> {
        if self.generation == session.generation {
            return Ok(self.number);
        }
        let text = format!(
            "the graph holds {} on a GPU that is gone, or another one than the graph's: capture it again",
            self.symbol
        );
        Err(CudaError::new(cuda::ERROR_INVALID_VALUE, text))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.upgrade() {
            // A connection that is lost by now has forgotten it.
            let _ = connection.post(&LibraryForget { recording: self.number });
        }
    }
}
