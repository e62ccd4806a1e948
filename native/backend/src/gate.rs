//! The question whether a lease may use a device that others use too.

/// Asked on the thread that is about to run work, and told when the work has run.
pub trait Gate: Send + Sync {
    /// Returns when an operation may begin.
    fn enter(&self);
    /// The operation has ended.
    fn leave(&self);
}
