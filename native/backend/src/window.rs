//! Device memory that is open to the host for one bulk copy, so that its data need not lie anywhere else.

use std::io;

/// Direction of a bulk copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Host to device.
    In,
    /// Device to host.
    Out,
}

/// See the module. Used from several threads at once, for different bytes. Open until [`Window::close`].
pub trait Window: Send + Sync {
    /// Has `fill` write `length` bytes, which go to `offset` of the window. An error of `fill` leaves them undefined.
    fn put(&self, offset: u64, length: usize, fill: &mut dyn FnMut(&mut [u8]) -> io::Result<()>) -> io::Result<()>;

    /// Hands the `length` bytes at `offset` of the window to `take`.
    fn get(&self, offset: u64, length: usize, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>;

    /// The copy is done: the stream goes on. Called once.
    fn close(&self);
}

/// What to do with a window when its turn in the stream has come.
pub type Opened = Box<dyn FnOnce(std::sync::Arc<dyn Window>) + Send>;
