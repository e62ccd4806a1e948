//! The questions whether a lease may use a device that others use too, and how much memory it has left.

/// Asked on the thread that is about to run work, and told when the work has run.
pub trait Gate: Send + Sync {
    /// Returns when an operation may begin, and whether it matters when that ends: others wait for the device, or the
    /// lease has a ceiling.
    fn enter(&self) -> bool;
    /// The operation has ended.
    fn leave(&self);
    /// Charges memory that work needs while it runs; false if the lease has less left.
    fn charge(&self, bytes: u64) -> bool;
    /// Gives it back.
    fn discharge(&self, bytes: u64);
}
