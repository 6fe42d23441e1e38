//! A site's database server: its address, our secrets, TLS, one HTTP client. Both `jobtrace push`, which writes there,
//! and reports, which ask there, come through here.
//!
//! Refuses to know what is sent or answered.

mod connector;
pub mod http;
pub mod secret;
pub mod target;
mod trust;

/// How a command calls its options of a server: messages name the cure.
#[derive(Clone, Copy, Debug)]
pub struct OptionNames {
    /// The one that names the server.
    pub url: &'static str,
    /// What all others begin with.
    pub prefix: &'static str,
    /// Variable with a token.
    pub token_variable: &'static str,
    /// Variable with the user's password.
    pub password_variable: &'static str,
}

/// Those of `jobtrace push`.
pub const PUSH: OptionNames = OptionNames {
    url: "--url",
    prefix: "--",
    token_variable: "JOBTRACE_PUSH_TOKEN",
    password_variable: "JOBTRACE_PUSH_PASSWORD",
};

/// Those of what reads.
pub const INFLUX: OptionNames = OptionNames {
    url: "--influx",
    prefix: "--influx-",
    token_variable: "JOBTRACE_INFLUX_TOKEN",
    password_variable: "JOBTRACE_INFLUX_PASSWORD",
};
