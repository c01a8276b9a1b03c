//! The HTTP server.

use core::convert::Infallible;
use core::net::SocketAddr;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot;

use crate::metric::{Metric, render};

/// What there is to tell. Called from the server's thread; must not wait for the data path.
pub trait Source: Send + Sync + 'static {
    /// The figures now, asked for at every scrape (S0B-027); figures of one name stand together.
    fn metrics(&self) -> Vec<Metric>;
    /// Whether the process serves, and a line of JSON that says so.
    fn health(&self) -> (bool, String);
}

/// A running server. Dropping it ends its thread and its connections.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Binds `address` (port 0 takes a free one) and serves `source` from a thread of its own.
    pub fn start(address: SocketAddr, source: Arc<dyn Source>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("springtide-http".into()).spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    () = accept(listener, source) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Accepts for ever. A failed accept (too many descriptors) waits for a moment, so that it cannot spin.
async fn accept(listener: TcpListener, source: Arc<dyn Source>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(core::time::Duration::from_millis(100)).await;
            continue;
        };
        let source = Arc::clone(&source);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let source = Arc::clone(&source);
                async move { Ok::<_, Infallible>(answer(&*source, &request)) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(hyper_util::rt::TokioTimer::new())
                .header_read_timeout(core::time::Duration::from_secs(10));
            if let Err(error) = http.serve_connection(TokioIo::new(stream), service).await {
                tracing::debug!(%error, "http connection ended");
            }
        });
    }
}

fn answer(source: &dyn Source, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return text(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET is served here\n".into());
    }
    match request.uri().path() {
        "/metrics" => text(StatusCode::OK, "text/plain; version=0.0.4", render(&source.metrics())),
        "/health" => {
            let (ready, line) = source.health();
            let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            text(status, "application/json", line + "\n")
        }
        "/" => text(StatusCode::OK, "text/plain", "springtide\n/metrics\n/health\n".into()),
        _ => text(StatusCode::NOT_FOUND, "text/plain", "no such page; try /\n".into()),
    }
}

fn text(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    struct Fixed;

    impl Source for Fixed {
        fn metrics(&self) -> Vec<Metric> {
            vec![Metric::gauge("springtide_x", "X.", 7)]
        }
        fn health(&self) -> (bool, String) {
            (false, r#"{"status":"starting"}"#.into())
        }
    }

    fn fetch(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn serves_its_routes_and_stops() {
        let server = Server::start("127.0.0.1:0".parse().unwrap(), Arc::new(Fixed)).unwrap();
        let address = server.local_addr();
        assert!(fetch(address, "GET /metrics").ends_with("springtide_x 7\n"));
        assert!(fetch(address, "GET /health").starts_with("HTTP/1.1 503"));
        assert!(fetch(address, "GET /nothing").starts_with("HTTP/1.1 404"));
        assert!(fetch(address, "POST /metrics").starts_with("HTTP/1.1 405"));
        drop(server);
        assert!(TcpStream::connect(address).is_err());
    }

    #[test]
    fn a_taken_port_is_an_error() {
        let server = Server::start("127.0.0.1:0".parse().unwrap(), Arc::new(Fixed)).unwrap();
        assert!(Server::start(server.local_addr(), Arc::new(Fixed)).is_err());
    }
}
