//! TLS below the HTTP client: a connection that is not plain is wrapped in rustls.
//!
//! ureq's own connector takes no verifier of ours. Refuses to judge certificates: `trust.rs` does.

use std::{
    fmt,
    io::{self, Read, Write},
    sync::Arc,
};

use rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};
use ureq::{
    Error,
    unversioned::transport::{
        Buffers, ConnectProxyConnector, ConnectionDetails, Connector, Either, LazyBuffers,
        NextTimeout, TcpConnector, Transport, TransportAdapter,
    },
};

/// Connections to servers, through a proxy where the environment names one; those of https by `tls`.
pub fn connector(tls: Option<Arc<ClientConfig>>) -> impl Connector {
    ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default()).chain(Tls(tls))
}

/// Wraps connections of https, where it knows how.
#[derive(Debug)]
struct Tls(Option<Arc<ClientConfig>>);

impl<In: Transport> Connector<In> for Tls {
    type Out = Either<In, Wrapped>;

    fn connect(
        &self,
        details: &ConnectionDetails,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        let Some(inner) = chained else { return Ok(None) };
        // Without a configuration ureq itself finds that https is not met.
        let Some(config) = self.0.as_ref().filter(|_| details.needs_tls() && !inner.is_tls())
        else {
            return Ok(Some(Either::A(inner)));
        };
        let host = details.uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(|_| Error::Tls("the host is not a name"))?;
        let mut connection =
            ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
        let mut socket = TransportAdapter::new(inner.boxed(), details.current_time.clone());
        socket.set_timeout(details.timeout);
        connection.complete_io(&mut socket)?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(Either::B(Wrapped { buffers, stream: StreamOwned::new(connection, socket) })))
    }
}

/// A connection in TLS.
struct Wrapped {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl Transport for Wrapped {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.get_mut().set_timeout(timeout);
        self.stream.write_all(&self.buffers.output()[..amount])?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.get_mut().set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

impl fmt::Debug for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wrapped(…)")
    }
}
