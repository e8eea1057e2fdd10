//! Clients in other processes: a master listens with gRPC, since what they ask is not done in microseconds. Messages and service are
//! TensorFlow's (`proto/master_service.proto`), so that a TensorFlow client can have its graphs run here:
//! `tf.compat.v1.Session("grpc://127.0.0.1:4100")`.

mod client;
mod server;

pub use client::ClientSession;
pub use server::{ServeError, Server};

/// The generated messages, client and service.
#[allow(missing_docs, unused_qualifications, clippy::all, clippy::pedantic)]
mod wire {
    tonic::include_proto!("tensorflow");
}

/// The longest message: a graph, or all feeds or fetches of a step. Protobuf ends there.
const MAX_MESSAGE: usize = (2 << 30) - 1;
