//! A database of the test's own making: it speaks HTTP/1.1, stores lines, and misbehaves as told.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use flate2::read::GzDecoder;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// What came.
#[derive(Clone, Debug)]
pub struct Request {
    /// `POST /write?db=x HTTP/1.1`.
    pub head: String,
    /// By their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Unpacked.
    pub text: String,
    /// When it was read to its end.
    pub at: Instant,
}

/// What the server does with a request.
#[derive(Clone, Debug)]
pub enum Act {
    /// Stores the lines and says 204.
    Take,
    /// Stores nothing; status, headers (each with its line's end) and body.
    Say(u16, &'static str, String),
    /// Stores the lines, and then all this.
    TakeAndWrite(&'static str),
    /// Never answers.
    Hang,
    /// Answers when it has seen the head, and closes without reading more.
    SayEarly(u16),
}

type Script = Box<dyn Fn(usize, &Request) -> Act + Send + Sync>;

struct Shared {
    script: Script,
    requests: Mutex<Vec<Request>>,
    stored: Mutex<BTreeMap<String, usize>>,
}

/// Runs until the process ends.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
    port: u16,
}

impl Server {
    /// Answers each request as `script` says of its number, from 0, and itself.
    pub fn start(script: impl Fn(usize, &Request) -> Act + Send + Sync + 'static) -> Self {
        Self::start_with(None, Box::new(script))
    }

    /// The same behind TLS.
    pub fn start_tls(config: ServerConfig) -> Self {
        Self::start_with(Some(Arc::new(config)), Box::new(|_, _| Act::Take))
    }

    fn start_with(tls: Option<Arc<ServerConfig>>, script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Shared { script, requests: Mutex::default(), stored: Mutex::default() };
        let server = Self { shared: Arc::new(shared), port };
        let serving = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (server, tls) = (serving.clone(), tls.clone());
                thread::spawn(move || match (stream, tls) {
                    (Ok(stream), None) => server.serve(stream),
                    (Ok(stream), Some(tls)) => {
                        let connection = ServerConnection::new(tls).unwrap();
                        server.serve(StreamOwned::new(connection, stream));
                    }
                    (Err(_), _) => {}
                });
            }
        });
        server
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn tls_url(&self, host: &str) -> String {
        format!("https://{host}:{}", self.port)
    }

    /// All that came, in its order.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// How often each line was stored.
    pub fn stored(&self) -> BTreeMap<String, usize> {
        self.shared.stored.lock().unwrap().clone()
    }

    fn serve(&self, stream: impl Read + Write) {
        let mut stream = BufReader::new(stream);
        while self.answer(&mut stream).is_some() {}
    }

    /// One request; `None` where the connection ends.
    fn answer<S: Read + Write>(&self, stream: &mut BufReader<S>) -> Option<()> {
        let mut request = read_head(stream)?;
        // A script that speaks early is asked before the body.
        let number = self.shared.requests.lock().unwrap().len();
        let early = (self.shared.script)(number, &request);
        if let Act::SayEarly(status) = early {
            self.shared.requests.lock().unwrap().push(request);
            let answer =
                format!("HTTP/1.1 {status} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = stream.get_mut().write_all(answer.as_bytes());
            let _ = stream.get_mut().flush();
            thread::sleep(Duration::from_millis(300));
            return None;
        }
        if request.headers.get("expect").is_some_and(|value| value == "100-continue") {
            stream.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
            stream.get_mut().flush().ok()?;
        }
        let body = read_body(stream, &request.headers)?;
        if request.head.contains("/query?") {
            request.text = String::from_utf8(body).expect("UTF-8");
        } else {
            assert_eq!(request.headers.get("content-encoding").map(String::as_str), Some("gzip"));
            GzDecoder::new(&body[..]).read_to_string(&mut request.text).expect("gzip of UTF-8");
        }
        request.at = Instant::now();
        let act = {
            let mut requests = self.shared.requests.lock().unwrap();
            let act = (self.shared.script)(requests.len(), &request);
            requests.push(request.clone());
            act
        };
        let taken = "HTTP/1.1 204 No Content\r\n\r\n".to_owned();
        let (answer, goes_on) = match act {
            Act::Take => {
                self.store(&request.text);
                (taken, true)
            }
            Act::Say(status, headers, body) => {
                let length = body.len();
                (
                    format!(
                        "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n{body}"
                    ),
                    true,
                )
            }
            Act::TakeAndWrite(text) => {
                self.store(&request.text);
                (text.to_owned(), false)
            }
            Act::Hang => loop {
                thread::sleep(Duration::from_secs(60));
            },
            Act::SayEarly(_) => unreachable!("said above"),
        };
        stream.get_mut().write_all(answer.as_bytes()).ok()?;
        stream.get_mut().flush().ok()?;
        goes_on.then_some(())
    }

    fn store(&self, text: &str) {
        assert!(text.ends_with('\n'), "{text:?}");
        let mut stored = self.shared.stored.lock().unwrap();
        for line in text.lines() {
            *stored.entry(line.to_owned()).or_insert(0) += 1;
        }
    }
}

fn read_head(stream: &mut impl BufRead) -> Option<Request> {
    let mut head = String::new();
    stream.read_line(&mut head).ok().filter(|length| *length > 0)?;
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|length| *length > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let head = head.trim_end().to_owned();
    Some(Request { head, headers, text: String::new(), at: Instant::now() })
}

fn read_body(stream: &mut impl BufRead, headers: &BTreeMap<String, String>) -> Option<Vec<u8>> {
    let length = headers.get("content-length").expect("a body of known length").parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

/// A port where nobody listens.
pub fn dead_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Whether something listens there.
pub fn connects(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}
