//! Answers to calls. Payload of a `REPLY` frame: `call u64 | code u32 | text (u32 length + UTF-8) | body`; the body is
//! there only when the code is 0 (CUDA_SUCCESS).

use crate::wire::{DecodeError, Reader, Wire};
use std::marker::PhantomData;
use std::sync::Arc;

/// A CUDA error with an optional sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// CUresult, never 0.
    pub code: u32,
    pub text: String,
}

impl Failure {
    /// An error with a sentence.
    pub fn new(code: u32, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// An error whose code says everything.
    pub fn code(code: u32) -> Self {
        Self { code, text: String::new() }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CUDA error {}: {}", self.code, self.text)
    }
}

impl std::error::Error for Failure {}

/// Where the payloads of finished replies go (the worker's outgoing side); called from any thread.
pub trait ReplySink: Send + Sync {
    /// Sends the payload of a `REPLY` frame to the client; `thread` is the calling client thread.
    fn send_reply(&self, thread: u32, payload: Vec<u8>);
}

/// The duty to answer one call, now or later, from any thread. Dropped unanswered it answers CUDA_ERROR_UNKNOWN.
pub struct ReplyTo<R> {
    call: u64,
    thread: u32,
    sink: Option<Arc<dyn ReplySink>>,
    kind: PhantomData<fn(R)>,
}

impl<R: for<'a> Wire<'a>> ReplyTo<R> {
    /// The answer to frame `call` of client thread `thread`.
    pub fn new(call: u64, thread: u32, sink: Arc<dyn ReplySink>) -> Self {
        Self { call, thread, sink: Some(sink), kind: PhantomData }
    }

    /// Answers.
    pub fn send(mut self, result: Result<R, Failure>) {
        if let Some(sink) = self.sink.take() {
            sink.send_reply(self.thread, encode_reply(self.call, result.as_ref()));
        }
    }
}

impl<R> Drop for ReplyTo<R> {
    fn drop(&mut self) {
        if let Some(sink) = self.sink.take() {
            let failure = Failure::new(crate::cuda::ERROR_UNKNOWN, "the GPU server gave no answer");
            sink.send_reply(self.thread, encode_reply::<u8>(self.call, Err(&failure)));
        }
    }
}

/// The payload of a `REPLY` frame.
pub fn encode_reply<R: for<'a> Wire<'a>>(call: u64, result: Result<&R, &Failure>) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    call.put(&mut out);
    match result {
        Ok(reply) => {
            0u32.put(&mut out);
            "".put(&mut out);
            reply.put(&mut out);
        }
        Err(failure) => {
            failure.code.max(1).put(&mut out);
            failure.text.as_str().put(&mut out);
        }
    }
    out
}

/// Splits a `REPLY` payload: the call's number, and its body or failure.
pub fn decode_reply(payload: &[u8]) -> Result<(u64, Result<&[u8], Failure>), DecodeError> {
    let mut reader = Reader::new(payload);
    let call = u64::take(&mut reader)?;
    let code = u32::take(&mut reader)?;
    let text = String::take(&mut reader)?;
    Ok((call, if code == 0 { Ok(reader.rest()) } else { Err(Failure { code, text }) }))
}
