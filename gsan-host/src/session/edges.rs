//! What a session does for its detector besides ordering launches, each of which the tests take away to see that it is missed.

/// Something that can be taken away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Edge {
    /// Memory that was freed starts clean when it is handed out again.
    Fresh,
    /// Forgetting makes cells clean.
    Forget,
    /// Devices know what multicast addresses stand for.
    Multicast,
    /// The host's operations are checked.
    Operation,
    /// They begin with what their stream knows …
    OperationBase,
    /// … and the stream knows what they did.
    OperationRow,
}

#[cfg(not(test))]
pub(crate) const fn without(_: Edge) -> bool {
    false
}

#[cfg(test)]
pub(crate) fn without(edge: Edge) -> bool {
    crate::mutant::is_removed(OF, edge as u32)
}

/// For [`crate::mutant`].
#[cfg(test)]
pub(crate) const OF: &str = "session";
