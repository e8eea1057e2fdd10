//! The rendezvous of a step: where a `_Send` hands a value over and its `_Recv` takes it (white paper section 3.2.2).
//!
//! A [`Rendezvous`] belongs to one step. [`LocalRendezvous`] joins the devices of a process; what joins processes
//! implements the same trait.

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use engine_core::device::Device;
pub use engine_core::kernel::{EdgeKey, Key, Message, Receiver, Rendezvous, RendezvousError};

/// What waits under a key.
enum Waiting {
    Value(Key, Message),
    Receiver(Key, Receiver),
}

impl Waiting {
    fn key(&self) -> &Key {
        match self {
            Waiting::Value(key, _) | Waiting::Receiver(key, _) => key,
        }
    }
}

#[derive(Default)]
struct Shard {
    /// By the key's hash; keys that share one are compared in full.
    waiting: FxHashMap<u64, Vec<Waiting>>,
    aborted: Option<RendezvousError>,
}

impl Shard {
    /// Takes what waits under the key.
    fn take(&mut self, hash: u64, key: &Key) -> Option<Waiting> {
        let waiting = self.waiting.get_mut(&hash)?;
        let at = waiting.iter().position(|w| w.key() == key)?;
        let found = waiting.swap_remove(at);
        if waiting.is_empty() {
            self.waiting.remove(&hash);
        }
        Some(found)
    }

    fn put(&mut self, hash: u64, waiting: Waiting) {
        self.waiting.entry(hash).or_default().push(waiting);
    }
}

const N_SHARDS: usize = 16;

/// The rendezvous of the devices of one process.
#[derive(Default)]
pub struct LocalRendezvous {
    shards: [Mutex<Shard>; N_SHARDS],
}

impl LocalRendezvous {
    /// One where nobody waits.
    pub fn new() -> LocalRendezvous {
        LocalRendezvous::default()
    }

    /// Makes it as new, for the next step. Nobody may use it meanwhile.
    pub(crate) fn reset(&self) {
        for shard in &self.shards {
            let waiting = {
                let mut shard = shard.lock();
                shard.aborted = None;
                std::mem::take(&mut shard.waiting)
            };
            drop(waiting);
        }
    }

    /// How many values and receivers wait.
    pub fn n_waiting(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().waiting.values().map(Vec::len).sum::<usize>()).sum()
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        // The hash's high bits: the map in the shard uses the low ones.
        &self.shards[(hash >> 60) as usize % N_SHARDS]
    }
}

impl Rendezvous for LocalRendezvous {
    fn send(&self, key: Key, message: Message) -> Result<(), RendezvousError> {
        let hash = key.hash();
        let receiver = {
            let mut shard = self.shard(hash).lock();
            if let Some(error) = &shard.aborted {
                return Err(error.clone());
            }
            match shard.take(hash, &key) {
                Some(Waiting::Receiver(_, receiver)) => receiver,
                Some(value) => {
                    shard.put(hash, value);
                    return Err(RendezvousError::SentTwice(key.to_string()));
                }
                None => {
                    shard.put(hash, Waiting::Value(key, message));
                    return Ok(());
                }
            }
        };
        // Outside the lock: it may send and receive in turn.
        receiver(Ok(message));
        Ok(())
    }

    fn recv(&self, key: Key, receiver: Receiver) {
        let hash = key.hash();
        let result = {
            let mut shard = self.shard(hash).lock();
            match (shard.aborted.clone(), shard.take(hash, &key)) {
                (Some(error), _) => Err(error),
                (None, Some(Waiting::Value(_, message))) => Ok(message),
                (None, Some(other)) => {
                    shard.put(hash, other);
                    Err(RendezvousError::ReceivedTwice(key.to_string()))
                }
                (None, None) => {
                    shard.put(hash, Waiting::Receiver(key, receiver));
                    return;
                }
            }
        };
        receiver(result);
    }

    fn waiting(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let receivers = shard.waiting.values().flatten().filter(|one| matches!(one, Waiting::Receiver(..)));
            keys.extend(receivers.map(|one| one.key().to_string()));
        }
        keys
    }

    fn abort(&self, error: RendezvousError) {
        for shard in &self.shards {
            let waiting = {
                let mut shard = shard.lock();
                shard.aborted.get_or_insert_with(|| error.clone());
                std::mem::take(&mut shard.waiting)
            };
            for waiting in waiting.into_values().flatten() {
                if let Waiting::Receiver(_, receiver) = waiting {
                    receiver(Err(error.clone()));
                }
            }
        }
    }
}

/// The key of an edge between two devices of this process.
pub fn local_edge(from: &Device, to: &Device, edge: &str) -> EdgeKey {
    EdgeKey::new(&from.full_name().to_string(), from.incarnation(), &to.full_name().to_string(), edge)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use engine_core::kernel::FrameTag;
    use engine_core::tensor::Tensor;

    fn key(edge: &str, iteration: u64) -> Key {
        let edge = EdgeKey::new("/job:a/device:CPU:0", 7, "/job:a/device:CPU:1", edge);
        Key { edge: Arc::new(edge), frame: FrameTag { frame: 3, iteration } }
    }

    fn message(value: f32) -> Message {
        Message { value: Some(Tensor::scalar(value)), transfer: 0, is_there: false }
    }

    type ReceivedValues = Arc<Mutex<Vec<Result<Option<f32>, String>>>>;

    fn receiver(got: &ReceivedValues) -> Receiver {
        let got = Arc::clone(got);
        Box::new(move |result| {
            let value = result.map(|m| m.value.map(|t| t.item::<f32>().unwrap())).map_err(|e| e.to_string());
            got.lock().push(value);
        })
    }

    #[test]
    fn keys_say_all_that_distinguishes_transfers() {
        let text = key("x/y:1", 5).to_string();
        assert_eq!(text, "/job:a/device:CPU:0;0000000000000007;/job:a/device:CPU:1;x/y:1;3:5");
        assert_eq!(key("x/y:1", 5).edge.edge(), "x/y:1");
        assert_eq!(key("x/y:1", 5).edge.to(), "/job:a/device:CPU:1");
        let edge = key("x/y:1", 5).edge;
        assert_eq!(EdgeKey::parse(edge.text().to_owned()).as_ref(), Some(&*edge));
        for text in ["", "a;b", "a;0;b;c", "a;0000000000000007;b;", ";;;", "a;000000000000000g;b;c"] {
            assert_eq!(EdgeKey::parse(text.to_owned()), None, "{text}");
        }
        assert_ne!(key("x/y:1", 5).hash(), key("x/y:1", 6).hash());
    }

    #[test]
    fn either_side_may_come_first_and_values_are_taken_once() {
        let (r, got) = (LocalRendezvous::new(), ReceivedValues::default());
        r.send(key("a:0", 0), message(1.0)).unwrap();
        r.recv(key("b:0", 0), receiver(&got));
        assert_eq!((r.n_waiting(), got.lock().len()), (2, 0));
        r.recv(key("a:0", 0), receiver(&got));
        r.send(key("b:0", 0), Message { value: None, transfer: 0, is_there: false }).unwrap();
        assert_eq!((r.n_waiting(), &got.lock()[..]), (0, &[Ok(Some(1.0)), Ok(None)][..]));
        // Another iteration is another value.
        r.recv(key("a:0", 1), receiver(&got));
        assert_eq!(r.n_waiting(), 1);
    }

    #[test]
    fn a_key_used_twice_is_an_error() {
        let (r, got) = (LocalRendezvous::new(), ReceivedValues::default());
        r.send(key("a:0", 0), message(1.0)).unwrap();
        let error = r.send(key("a:0", 0), message(2.0)).unwrap_err().to_string();
        assert!(error.contains("a:0;3:0 was sent twice"), "{error}");
        r.recv(key("b:0", 0), receiver(&got));
        r.recv(key("b:0", 0), receiver(&got));
        assert!(got.lock()[0].as_ref().unwrap_err().ends_with("is received twice"));
        r.recv(key("a:0", 0), receiver(&got));
        assert_eq!(got.lock()[1], Ok(Some(1.0)), "the first value stays");
    }

    #[test]
    fn an_abort_ends_all_waiting_and_the_first_error_stays() {
        let (r, got) = (LocalRendezvous::new(), ReceivedValues::default());
        r.recv(key("a:0", 0), receiver(&got));
        r.abort(RendezvousError::Remote("worker 3 is gone".into()));
        r.abort(RendezvousError::Aborted);
        r.recv(key("b:0", 0), receiver(&got));
        let error = r.send(key("c:0", 0), message(1.0)).unwrap_err().to_string();
        assert_eq!(error, "worker 3 is gone");
        let gone = || Err("worker 3 is gone".to_owned());
        assert_eq!(&got.lock()[..], &[gone(), gone()][..]);
        r.reset();
        assert!(r.send(key("c:0", 0), message(1.0)).is_ok());
    }

    #[test]
    fn threads_meet() {
        let r = LocalRendezvous::new();
        let n_got = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for side in 0..4 {
                let (r, n_got) = (&r, Arc::clone(&n_got));
                scope.spawn(move || {
                    for i in 0..500 {
                        let key = key(["a:0", "b:0"][side / 2], i);
                        if side % 2 == 0 {
                            r.send(key, message(i as f32)).unwrap();
                        } else {
                            let n_got = Arc::clone(&n_got);
                            r.recv(
                                key,
                                Box::new(move |result| {
                                    assert_eq!(result.unwrap().value.unwrap().item::<f32>().unwrap(), i as f32);
                                    n_got.fetch_add(1, Ordering::Relaxed);
                                }),
                            );
                        }
                    }
                });
            }
        });
        assert_eq!((n_got.load(Ordering::Relaxed), r.n_waiting()), (1000, 0));
    }
}
