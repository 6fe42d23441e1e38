//! What the rings share.
