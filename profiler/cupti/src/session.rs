//! Recording: CUPTI switched on in this process, and a thread that turns its buffers into tracks of the running
//! session.

use crate::buffer::records;
use crate::layout::{Kind, Layout, NEWEST, OLDEST};
use crate::library::{CuptiError, CuptiLibrary, Library};
use crate::pool::{BUFFER_BYTES, BufferPool, N_BUFFERS};
use crate::translate::{Report, Translator};
use events::meta::NoteKind;
use events::track::note;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// The pause between two passes over the full buffers.
const INTERVAL: Duration = Duration::from_millis(20);
/// Passes between two flushes of complete buffers (240 ms). A program that ends without its exit handlers loses records
/// of this time, and kernels appear in a live window after this delay.
const FLUSH_EVERY: u32 = 12;
/// The name of this source in traces and `doctor`.
const SOURCE: &str = "CUDA (CUPTI)";

/// Why CUDA cannot be recorded here, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// No CUPTI library is found.
    #[error(
        "{0}; install the CUDA toolkit's CUPTI (pip: nvidia-cuda-cupti-cu12), and have its folder in LD_LIBRARY_PATH"
    )]
    NoLibrary(CuptiError),
    /// The library is too old to take our clock.
    #[error("CUPTI's version {0} is older than CUDA 11.7's ({OLDEST}): install a newer CUDA toolkit")]
    TooOld(u32),
    /// A function of the library returned an error.
    #[error(
        "{0}; CUPTI needs NVIDIA's driver and, for counters, the right to profile (NVreg_RestrictProfilingToAdminUsers=0); \
         another profiler in the same process excludes it"
    )]
    Refused(CuptiError),
    /// This process records CUDA already.
    #[error("this process records CUDA already")]
    AlreadyRecording,
    /// The thread that reads the buffers cannot be started.
    #[error("no thread for it can be started: {0}")]
    NoThread(String),
}

/// Returns the library's version if it is recent enough for recording.
///
/// # Errors
/// The library returns an error, or is too old.
pub fn probe(library: &dyn Library) -> Result<u32, Unavailable> {
    let version = library.version().map_err(Unavailable::Refused)?;
    if version < OLDEST { Err(Unavailable::TooOld(version)) } else { Ok(version) }
}

/// The buffers, which live as long as the process, since CUPTI may retain one for any time.
static POOL: OnceLock<BufferPool> = OnceLock::new();
/// Whether a recorder runs; there is one at a time.
static RUNNING: AtomicBool = AtomicBool::new(false);

fn pool() -> &'static BufferPool {
    POOL.get_or_init(|| BufferPool::new(N_BUFFERS))
}

extern "C" fn lend_buffer(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize) {
    let lent = pool().lend();
    // SAFETY: CUPTI passes pointers to three variables of its own.
    unsafe {
        *buffer = lent.map_or(std::ptr::null_mut(), std::ptr::NonNull::as_ptr);
        *size = if lent.is_some() { BUFFER_BYTES } else { 0 };
        // 0: as many records as fit.
        *max_records = 0;
    }
}

extern "C" fn return_buffer(context: *mut c_void, stream: u32, buffer: *mut u8, _size: usize, valid: usize) {
    if !buffer.is_null() {
        pool().take_back(buffer, valid, context as usize, stream);
    }
}

extern "C" fn clock() -> u64 {
    events::now()
}

/// A running recording of this process's CUDA activity; stops when it is dropped.
#[must_use = "recording stops when it is dropped"]
pub struct Recorder {
    library: Arc<dyn Library>,
    is_stopping: Arc<AtomicBool>,
    reader: Option<JoinHandle<Report>>,
    enabled_kinds: Vec<Kind>,
    is_ended: bool,
}

impl Recorder {
    /// Starts recording; the events session must run. Kinds that the library lacks are reported in the trace, and are
    /// no error where others can be recorded.
    ///
    /// # Errors
    /// No kind can be recorded; the trace reports it too.
    pub fn start(library: Arc<dyn Library>) -> Result<Recorder, Unavailable> {
        Recorder::start_without_note(library).inspect_err(note_unavailable)
    }

    /// Finds NVIDIA's library and starts recording, as [`Recorder::start`] does.
    ///
    /// # Errors
    /// Those of [`Recorder::start`]; no library is found.
    pub fn find_and_start() -> Result<Recorder, Unavailable> {
        let library = CuptiLibrary::find().map_err(Unavailable::NoLibrary).inspect_err(note_unavailable)?;
        Recorder::start(Arc::new(library))
    }

    fn start_without_note(library: Arc<dyn Library>) -> Result<Recorder, Unavailable> {
        if RUNNING.swap(true, Ordering::AcqRel) {
            return Err(Unavailable::AlreadyRecording);
        }
        let mut recorder =
            Recorder { library, is_stopping: Arc::default(), reader: None, enabled_kinds: Vec::new(), is_ended: false };
        // From here on a failure drops the recorder, which switches off the kinds that are on.
        let version = probe(&*recorder.library)?;
        let library = &recorder.library;
        library.register(lend_buffer, return_buffer).map_err(Unavailable::Refused)?;
        // Before any kind is switched on: all times must be of one clock.
        library.use_clock(clock).map_err(Unavailable::Refused)?;
        if let Err(why) = library.use_system_thread_ids() {
            let text = format!("threads are identified by CUDA's own ids: {why}");
            note(NoteKind::Unavailable, 1, "CUDA thread ids", &text);
        }
        let (mut enabled, mut refused) = (Vec::new(), Vec::new());
        for kind in Kind::ALL {
            match library.switch(kind, true) {
                Ok(()) => enabled.push(kind),
                Err(why) => refused.push((kind, why)),
            }
        }
        recorder.enabled_kinds = enabled;
        if let (Some((_, why)), true) = (refused.first(), recorder.enabled_kinds.is_empty()) {
            return Err(Unavailable::Refused(why.clone()));
        }
        for (kind, why) in refused {
            let text = format!("{kind:?} records are not recorded: {why}");
            note(NoteKind::Unavailable, 1, &format!("CUDA {kind:?}"), &text);
        }
        recorder.spawn_reader(version)?;
        Ok(recorder)
    }

    fn spawn_reader(&mut self, version: u32) -> Result<(), Unavailable> {
        let mut reader = Reader {
            library: Arc::clone(&self.library),
            layout: Layout::for_version(version),
            translator: Translator::new(),
            n_wrong_lengths: 0,
            n_dropped: 0,
        };
        if reader.layout.is_none() {
            let text = format!(
                "CUPTI's version {version} is newer than what is known ({NEWEST}): fields are read where they have been since CUDA 9"
            );
            note(NoteKind::Unavailable, 1, "CUDA record versions", &text);
        }
        let is_stopping = Arc::clone(&self.is_stopping);
        let thread = std::thread::Builder::new().name("cuda-records".to_owned()).spawn(move || {
            for pass in (1..=FLUSH_EVERY).cycle() {
                if is_stopping.load(Ordering::Acquire) {
                    break;
                }
                reader.read_full_buffers();
                if pass == FLUSH_EVERY {
                    // An error is reported when the last flush fails too.
                    let _ = reader.library.flush(false);
                }
                std::thread::park_timeout(INTERVAL);
            }
            reader.finish()
        });
        self.reader = Some(thread.map_err(|e| Unavailable::NoThread(e.to_string()))?);
        Ok(())
    }

    /// Stops recording after writing everything that was recorded so far.
    #[must_use]
    pub fn stop(mut self) -> Report {
        self.stop_once()
    }

    fn stop_once(&mut self) -> Report {
        for kind in std::mem::take(&mut self.enabled_kinds) {
            // A kind that cannot be switched off records into a pool that nobody reads.
            let _ = self.library.switch(kind, false);
        }
        let flushed = if self.reader.is_some() { self.library.flush(true) } else { Ok(()) };
        if let Err(why) = flushed {
            note(NoteKind::Lost, 1, SOURCE, &format!("the last records of CUDA are missing: {why}"));
        }
        self.is_ended = true;
        self.is_stopping.store(true, Ordering::Release);
        let report = self.reader.take().map(|thread| {
            thread.thread().unpark();
            // A panic there has been reported by its hook.
            thread.join().unwrap_or_default()
        });
        RUNNING.store(false, Ordering::Release);
        report.unwrap_or_default()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.is_ended {
            self.stop_once();
        }
    }
}

fn note_unavailable(why: &Unavailable) {
    note(NoteKind::Unavailable, 1, SOURCE, &format!("{SOURCE}: not recorded on this machine; {why}"));
}

/// The state of the reading thread, which turns full buffers into tracks.
struct Reader {
    library: Arc<dyn Library>,
    layout: Option<Layout>,
    translator: Translator,
    /// The number of records whose length differs from that of the library's version.
    n_wrong_lengths: u64,
    n_dropped: u64,
}

impl Reader {
    fn read_full_buffers(&mut self) {
        let mut has_read_any = false;
        while let Some(full) = pool().take_full() {
            has_read_any = true;
            let offsets = self.record_starts(full.bytes());
            let (records, unread) = records(full.bytes(), &offsets);
            self.translator.translate(&records, &unread, &*self.library);
            self.n_dropped += self.library.dropped(full.context, full.stream);
        }
        if has_read_any {
            self.report_losses();
        }
    }

    /// Asks the library for the offsets of a buffer's records; counts records whose length is not the version's.
    fn record_starts(&mut self, bytes: &[u8]) -> Vec<usize> {
        let mut offsets = Vec::new();
        while let Some(offset) = self.library.next(bytes, offsets.last().copied()) {
            offsets.push(offset);
        }
        if let Some(layout) = self.layout {
            for pair in offsets.windows(2) {
                let kind = bytes.get(pair[0]..).and_then(|b| b.first_chunk()).map(|kind| u32::from_le_bytes(*kind));
                let expected = kind.and_then(Kind::from_bits).map(|kind| layout.length(kind));
                self.n_wrong_lengths += u64::from(expected.is_some_and(|length| length != pair[1] - pair[0]));
            }
        }
        offsets
    }

    /// Writes the counts of lost and invalid records so far to the trace.
    fn report_losses(&self) {
        let report = self.translator.report();
        let (refused, foreign) = pool().error_counts();
        let (dropped, n_wrong_lengths, no_time, no_track) =
            (self.n_dropped, self.n_wrong_lengths, report.without_time, report.no_track);
        let (unread, kinds) = (report.unread.total(), report.unread.n_by_unknown_kind.keys().map(u32::to_string));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        let kinds_suffix = if kinds.is_empty() { String::new() } else { format!(" (kinds {kinds})") };
        for (n, source, text) in [
            (dropped, "CUDA records", format!("CUPTI dropped {dropped} records: {refused} times no buffer was free")),
            (foreign, "CUDA buffers", format!("{foreign} buffers came back that had not been lent")),
            (unread, "CUDA unread", format!("{unread} records of CUPTI could not be read{kinds_suffix}")),
            (
                n_wrong_lengths,
                "CUDA lengths",
                format!("{n_wrong_lengths} records of CUPTI have another length than its version says"),
            ),
            (no_time, "CUDA times", format!("{no_time} records of CUPTI have no time and are left out")),
            (no_track, "CUDA tracks", format!("{no_track} CUDA events found no track")),
        ] {
            if n > 0 {
                note(NoteKind::Lost, n, source, &text);
            }
        }
        let (n_early, max_early_ns) = (report.n_early, report.max_early_ns);
        if n_early > 0 {
            let text = format!(
                "{n_early} pieces of CUDA work begin before their call, by up to {max_early_ns} ns: so wrong are times"
            );
            note(NoteKind::Clock, n_early, "CUDA clock", &text);
        }
    }

    fn finish(mut self) -> Report {
        self.read_full_buffers();
        self.translator.finish();
        self.report_losses();
        let report = self.translator.report();
        for (n, what) in [(report.without_call, "work without its call"), (report.unended, "ranges without an end")] {
            if n > 0 {
                note(NoteKind::Lost, n, &format!("CUDA {what}"), &format!("{n} pieces of {what}"));
            }
        }
        Report { dropped: self.n_dropped, ..report }
    }
}
